"""Inlining of scalar regions: a map, or a reduce that folds nothing, becomes array operations.

    f { x = f32[] parameter(0)  y = f32[] parameter(1)  d = f32[] subtract(x, y)  ROOT a = f32[] abs(d) }
    ROOT m = f32[8] map(p, q), dimensions={0}, to_apply=f

becomes

    d = f32[8] subtract(p, q)
    ROOT a = f32[8] abs(d)

A region with anything but element-wise operations (a loop, a custom call) stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_scalar_region
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes.base import ComputationPass, pinned, replace_all


@dataclass
class RegionInlining(ComputationPass):
    name: ClassVar[str] = "inline-regions"
    ops: ClassVar[Set[str]] = frozenset({"map", "reduce"})

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements: dict[Instruction, Instruction] = {}
        for instruction in computation.post_order():
            if instruction not in fixed and instruction.called and is_scalar_region(instruction.called[0]):
                if instruction.opcode == "map":
                    arguments = [replacements.get(operand, operand) for operand in instruction.operands]
                    replacements[instruction] = _on_arrays(instruction.called[0], arguments, instruction.shape.dims)
                elif _folds_nothing(instruction):
                    arguments = [replacements.get(operand, operand) for operand in instruction.operands]
                    replacements[instruction] = _single_fold(instruction, arguments)
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _folds_nothing(instruction: Instruction) -> bool:
    """A reduce of one input in which every result has one element to fold."""
    if instruction.opcode != "reduce" or len(instruction.operands) != 2:
        return False
    dims = instruction.operands[0].shape.dims
    folded: tuple[int, ...] = instruction.attributes["dimensions"]
    return math.prod(dims[dim] for dim in folded) == 1


def _single_fold(reduce: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """region(initial value, element), for every element."""
    computation, dims = reduce.parent, reduce.shape.dims
    array, init = operands
    if array.shape.dims != dims:
        array = computation.add("reshape", [array], shape=array.shape.with_dims(dims))
    return _on_arrays(reduce.called[0], [_repeated(init, dims), array], dims)


def _repeated(scalar: Instruction, dims: Dims) -> Instruction:
    if not dims:
        return scalar
    return scalar.parent.add("broadcast", [scalar], shape=scalar.shape.with_dims(dims), dimensions=())


def _on_arrays(region: Computation, arguments: Sequence[Instruction], dims: Dims) -> Instruction:
    """What `region` computes of scalars, for arrays of `dims`; returns the result."""
    computation = arguments[0].parent
    values = dict(zip(region.parameters, arguments, strict=True))
    for instruction in region.post_order():
        if instruction.opcode == "constant":
            values[instruction] = _repeated(computation.add_copy(instruction, ()), dims)
        elif instruction not in values:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction] = computation.add_copy(instruction, operands, Shape.array(instruction.shape.type, dims))
    return values[region.root]
