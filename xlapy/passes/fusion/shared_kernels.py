"""Shared kernels: fusions that differ only in where they begin to read an array are made alike.

    a = f32[16] fusion(x), calls={ tanh(slice(x, [0:16])) }
    b = f32[16] fusion(x), calls={ tanh(slice(x, [16:32])) }

becomes

    v = f32[16] slice(x), slice={[0:16]}     a = f32[16] fusion(v), calls={ tanh(v) }
    w = f32[16] slice(x), slice={[16:32]}    b = f32[16] fusion(w), calls={ tanh(w) }

Equal fusions have one kernel, which is written and compiled once. The slices take no time: each is one block of memory
that its reader finds where it lies (`hlo/views.py`). Loops that front ends write out, over time steps, layers or heads,
have such fusions, one for each step. What nobody shares stays as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.views import may_be_part
from xlapy.passes.base import Pass, Record, pinned, program_computations
from xlapy.passes.cse import content

Parts = dict[Instruction, Instruction]
"""Slices in a fused computation, and the arrays outside that they are parts of."""

Numbers = dict[Hashable, int]
"""Of regions, by what they compute: folds that were merged have regions of their own, which are equal."""

MOST_PARTS = 8
"""That a fusion is given: each is one more address to hand over, where one of the array is enough."""


@dataclass
class SharedKernels(Pass):
    name: ClassVar[str] = "share-kernels"
    ops: ClassVar[Set[str]] = frozenset({"slice"})

    def run(self, module: HloModule) -> bool:
        alike: dict[Hashable, list[_Candidate]] = {}
        numbers: Numbers = {}
        for computation in program_computations(module):
            for candidate in _candidates(computation, numbers):
                alike.setdefault(candidate.key, []).append(candidate)
        changed = False
        slices: dict[Hashable, Instruction] = {}
        for candidates in alike.values():
            if len({candidate.places for candidate in candidates}) > 1:
                reason = f"{len(candidates)} of them are one kernel, which reads parts of arrays where they lie"
                for candidate in candidates:
                    self.records.append(Record.of(_replace(candidate, slices), True, reason))
                changed = True
        return changed


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A fusion that could be given `parts` of arrays, and compute what `fused` does of them. `key` is equal for those
    that then have the same kernel, `places` says where the parts begin."""

    fusion: Instruction
    parts: Parts
    fused: Computation
    key: Hashable
    places: Hashable


def _candidates(computation: Computation, numbers: Numbers) -> Iterator[_Candidate]:
    fixed = pinned(computation)
    for instruction in computation.calling:
        if instruction.opcode == "fusion" and instruction not in fixed and (parts := _parts_of(instruction)):
            fused = _fused_of_parts(instruction.called[0], parts)
            key = instruction.attributes["kind"], _number(fused, numbers)
            yield _Candidate(instruction, parts, fused, key, tuple(map(_place, parts)))


def _number(computation: Computation, numbers: Numbers) -> int:
    """Equal for computations that compute the same, and call others that do."""
    called = {region: _number(region, numbers) for inside in computation.calling for region in inside.called}
    return numbers.setdefault(content(computation, called), len(numbers))


def _place(part: Instruction) -> tuple[int, ...]:
    return tuple(dim.start for dim in part.attributes["dimensions"])


def _parts_of(fusion: Instruction) -> Parts:
    """The slices of all arrays of which the fusion reads nothing else. Nobody writes code for one that only moves
    elements, or that consists of kernels."""
    parts: Parts = {}
    fused = fusion.called[0]
    for parameter, operand in zip(fused.parameters, fusion.operands, strict=True):
        slices = list(parameter.users)
        if slices and all(user.opcode == "slice" and may_be_part(user, operand) for user in slices):
            parts.update(dict.fromkeys(slices, operand))
    if not 0 < len(parts) <= MOST_PARTS or any(inside.opcode == "fusion" for inside in fused):
        return {}
    computes = any(Trait.INDEX_MAP not in inside.spec.traits and inside.operands for inside in fused)
    return parts if computes else {}


def _fused_of_parts(fused: Computation, parts: Parts) -> Computation:
    """What is computed of the parts, which are parameters, in the place of the arrays that they are parts of."""
    result = Computation(fused.name)
    copies: dict[Instruction, Instruction] = {}
    for number, argument in enumerate(_arguments(fused, parts)):
        copies[argument] = result.add("parameter", shape=argument.shape, name=argument.name, number=number)
    for inside in fused.post_order():
        if inside not in copies and inside.opcode != "parameter":
            copies[inside] = result.add_copy(inside, [copies[operand] for operand in inside.operands])
    result.set_root(copies[fused.root])
    return result


def _arguments(fused: Computation, parts: Parts) -> Iterator[Instruction]:
    """The parameters of a fused computation, or the slices that stand for them."""
    for parameter in fused.parameters:
        yield from [user for user in parameter.users if user in parts] or [parameter]


def _replace(candidate: _Candidate, slices: dict[Hashable, Instruction]) -> Instruction:
    """Puts a fusion of parts into the place of the one of arrays. `slices` are those that exist by then, by what they
    are parts of, and where."""
    fusion, parts = candidate.fusion, candidate.parts
    caller = fusion.parent
    outside = dict(zip(fusion.called[0].parameters, fusion.operands, strict=True))
    operands: list[Instruction] = []
    for argument in _arguments(fusion.called[0], parts):
        array = parts.get(argument)
        if array is None:
            operands.append(outside[argument])
            continue
        key = array, argument.shape, _place(argument)
        if key not in slices:
            slices[key] = caller.add_copy(argument, [array])
        operands.append(slices[key])
    shared = caller.add_like(fusion, operands, [candidate.fused], fusion.shape)
    caller.replace(fusion, shared)
    caller.remove([fusion])
    return shared
