"""Common subexpression elimination.

    a = f32[4] exponential(p)
    b = f32[4] exponential(p)
    ROOT s = f32[4] add(a, b)        becomes        ROOT s = f32[4] add(a, a)

Two pure instructions are the same when op, operands, attributes, called computations and shape (layout included) are:
constants by value, the operands of a commutative op in either order. Called computations are the same when their
instructions are, one by one. Effects are never merged, nor is what a control edge holds in place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo import contents
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes.base import Pass, pinned, replace_all


@dataclass
class Cse(Pass):
    name: ClassVar[str] = "cse"
    comes_to_rest: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        changed = False
        identities: dict[Computation, int] = {}
        known: dict[Hashable, int] = {}
        for computation in module.computations():
            changed = _merge_equals(computation, identities) or changed
            if computation is not module.entry:  # which nobody calls, and is long
                identities[computation] = known.setdefault(content(computation, identities), len(known))
        return changed


def _merge_equals(computation: Computation, identities: Mapping[Computation, int]) -> bool:
    """One walk in dependency order: when an instruction is met, the first of their kind are known for its operands."""
    fixed = pinned(computation)
    first_of_kind: dict[Hashable, Instruction] = {}
    first: dict[Instruction, Instruction] = {}
    for instruction in computation.post_order():
        if instruction.opcode == "parameter" or instruction in fixed or not instruction.is_pure:
            continue
        operands = [id(first.get(operand, operand)) for operand in instruction.operands]
        known = first_of_kind.setdefault(kind_of(instruction, operands, identities), instruction)
        if known is not instruction:
            first[instruction] = known
    replace_all(computation, first)
    return computation.remove(first)


def kind_of(instruction: Instruction, operands: Sequence[int], identities: Mapping[Computation, int]) -> Hashable:
    """Equal for pure instructions that compute the same value. `operands` are numbers that tell its operands apart."""
    if Trait.COMMUTATIVE in instruction.spec.traits:
        operands = sorted(operands)
    return instruction.opcode, instruction.shape, tuple(operands), *_attributes_and_called(instruction, identities)


def _attributes_and_called(instruction: Instruction, identities: Mapping[Computation, int]) -> tuple[Hashable, ...]:
    """What attributes say, those included that no op here looks at: passes keep them."""
    called = tuple([identities[computation] for computation in instruction.called])
    extra = tuple(sorted(instruction.extra.items())) if instruction.extra else ()
    return called, tuple(instruction.attributes.items()), extra


def content(computation: Computation, identities: Mapping[Computation, int]) -> Hashable:
    """Equal for computations that compute the same in the same way, names apart.

    `identities` tells the computations that it calls apart."""
    return contents.content(computation, lambda instruction: _attributes_and_called(instruction, identities))
