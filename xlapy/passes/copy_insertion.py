"""Copy insertion: values that will be written to one place each must not be one value.

    body { p = (f32[8], f32[8]) parameter(0)                 body { ...
           a = get-tuple-element(p), index=0                        c = f32[8] copy(a)
           b = get-tuple-element(p), index=1                        d = f32[8] copy(b)
           ROOT t = tuple(b, a) }                   becomes         ROOT t = tuple(d, c) }

At the end of a while body each element of the new state is written where the old one lies. An element that is another
element of the old state, or a constant, or occurs twice, gets a copy, so that no write destroys what a later one reads.
Scalars are exempt: they live in registers.

In front of a loop, an array of one number that is the first value of several elements is made for each of them: where
the state is, if anybody sees it (`hlo/overwritten.py`), instead of somewhere else, to be copied.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.leaves import Leaf, leaf_count, origin_of_leaf
from xlapy.hlo.loop_counter import state_index
from xlapy.passes.base import Pass


@dataclass
class CopyInsertion(Pass):
    name: ClassVar[str] = "copy-insertion"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = frozenset({"while"})

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in module.computations():
            for instruction in [*computation]:
                if instruction.opcode == "while":
                    changed |= _separate_state(instruction.called[1])
                    changed |= _separate_initial_state(instruction)
        return changed


def _separate_state(body: Computation) -> bool:
    """Copies what stands in another element's place, or in two; a body whose root needs it gets a new one."""
    root = body.root
    seen: set[Leaf] = set()
    shared: list[int] = []
    for number, shape in enumerate(root.shape.leaves()):
        if not shape.is_array or not shape.rank:
            continue
        origin = _origin(root, number)
        passes_through = origin == (body.parameters[0], number)
        external = origin[0].opcode in ("parameter", "constant")
        if not passes_through and (external or origin in seen):
            shared.append(number)
        seen.add(origin)
    if not shared:
        return False
    body.set_root(_with_copies(body, root, frozenset(shared)))
    return True


def _separate_initial_state(loop: Instruction) -> bool:
    """Gives each element that begins as an array of one number, and does not stay so, such an array of its own."""
    (init,), body, computation = loop.operands, loop.called[1], loop.parent
    if init.opcode != "tuple" or init.sole_user is not loop or body.root.opcode != "tuple":
        return False
    elements = [*init.operands]
    for index, element in enumerate(elements):
        is_shared = element.sole_user is not init or elements.count(element) > 1
        is_filled = element.opcode == "broadcast" and element.operands[0].shape.is_scalar
        if is_filled and is_shared and state_index(body.root.operands[index], body) != index:
            elements[index] = computation.add_copy(element, element.operands)
    if elements == [*init.operands]:
        return False
    state = computation.add_copy(init, elements)
    computation.replace(init, state)
    computation.remove([init])
    return True


def _origin(instruction: Instruction, leaf: int) -> Leaf:
    """Whose memory a leaf is; a loop that passes an element through gives it none of its own."""
    origin = origin_of_leaf(instruction, leaf)
    while origin[0].opcode == "while":
        loop, number = origin
        inner = loop.called[1]
        if _origin(inner.root, number) != (inner.parameters[0], number):
            break
        origin = origin_of_leaf(loop.operands[0], number)
    return origin


def _with_copies(body: Computation, value: Instruction, leaves: frozenset[int], first: int = 0) -> Instruction:
    """The value with copies of some of its leaves, the first leaf of all having number `first`."""
    count = leaf_count(value.shape)
    if not any(first <= leaf < first + count for leaf in leaves):
        return value
    if not value.shape.is_tuple:
        return body.add("copy", [value], shape=value.shape)
    parts = []
    for index, part in enumerate(value.shape.parts):
        is_tuple = value.opcode == "tuple"
        operand = value.operands[index] if is_tuple else body.add("get-tuple-element", [value], index=index)
        parts.append(_with_copies(body, operand, leaves, first))
        first += leaf_count(part)
    return body.add("tuple", parts)
