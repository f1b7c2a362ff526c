"""Scan batching: a product of what a loop reads step by step is one product, in front of the loop.

    b { ...  x = f32[100,16,128] get-tuple-element(s), index=0  w = f32[128,64] get-tuple-element(s), index=1
        x.i = f32[16,128] reshape(dynamic-slice(x, i, 0, 0))  p = f32[16,64] dot(x.i, w) ... }

becomes

    b { ...  y = f32[100,16,64] dot(x, w)  p = f32[16,64] reshape(dynamic-slice(y, i, 0, 0)) ... }

where x and w never change, so that `hoist-invariants` takes y out of the loop. One product of many rows is quicker than
many of a few: the matrices are packed once, and threads can share it. Recurrent networks multiply their inputs so.

The same element is read, wherever i is clamped to. It pays if the loop comes to most of the slices, if the rows of one
step are few, and as long as the results of all steps are no burden on memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import state_index, trip_count
from xlapy.hlo.patterns import number_of
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.base import ComputationPass, Record, pinned
from xlapy.passes.loop_invariants import is_rewritable, unchanged_elements
from xlapy.passes.new import Value

MOST_ROWS = 128
"""Rows of a step: a product of more is as quick alone."""

MOST_BYTES = 32 << 20
"""Of the results of all steps."""


@dataclass
class ScanBatching(ComputationPass):
    name: ClassVar[str] = "batch-scans"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for loop in computation.post_order():
            if loop.opcode == "while" and loop not in fixed and is_rewritable(loop):
                for product in _batched(loop):
                    self.records.append(Record.of(product, True, f"one product for all steps of {loop.name}"))
                    changed = True
        return changed


def _batched(loop: Instruction) -> list[Instruction]:
    """The dots of the loop's body that now read a part of one product."""
    trips, body = trip_count(loop), loop.called[1]
    if trips is None:
        return []
    unchanged, fixed = unchanged_elements(loop), pinned(body)
    found = []
    for dot in body.post_order():
        if dot.opcode != "dot" or dot in fixed:
            continue
        for side in (0, 1):
            part, other = _part_of(dot.operands[side]), dot.operands[1 - side]
            if part is None or not {state_index(part.whole, body), state_index(other, body)} <= unchanged:
                continue
            if _pays(dot, side, part, trips):
                _replace(dot, side, part)
                found.append(dot)
                break
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """One slice of `whole` along `dim`, the dimension itself dropped."""

    whole: Instruction
    slice: Instruction
    dim: int


def _part_of(operand: Instruction) -> _Part | None:
    if operand.opcode != "reshape" or operand.operands[0].opcode != "dynamic-slice":
        return None
    (cut,) = operand.operands
    whole, *indices = cut.operands
    sizes, taken = whole.shape.dims, cut.shape.dims
    dims = [dim for dim, (size, part) in enumerate(zip(sizes, taken, strict=True)) if part != size]
    if len(dims) != 1 or taken[dims[0]] != 1 or operand.shape.dims != _without(taken, dims[0]):
        return None
    if any(number_of(index) != 0 for dim, index in enumerate(indices) if dim != dims[0]):
        return None
    return _Part(whole, cut, dims[0])


def _without(dims: Dims, dim: int) -> Dims:
    return dims[:dim] + dims[dim + 1 :]


def _pays(dot: Instruction, side: int, part: _Part, trips: int) -> bool:
    steps = part.whole.shape.dims[part.dim]
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    shape = dot.operands[side].shape
    free = numbers.rhs_free(shape.rank) if side else numbers.lhs_free(shape.rank)
    rows = math.prod(shape.dims[dim] for dim in free)
    return 2 * trips > steps and rows <= MOST_ROWS and steps * dot.shape.bytes <= MOST_BYTES


def _replace(dot: Instruction, side: int, part: _Part) -> None:
    """Puts a slice of the product of the whole in the place of the product of the slice."""
    numbers, place = _numbers_of_whole(dot, side, part)
    operands = [*dot.operands]
    operands[side] = part.whole
    dims = [*dot.shape.dims]
    dims.insert(place, part.whole.shape.dims[part.dim])
    product = new.op(
        "dot", operands, shape=dot.shape.with_dims(dims), **{**dot.attributes, "dimension_numbers": numbers}
    )
    index = part.slice.operands[1 + part.dim]
    indices: list[Value] = [new.filled(0, index.shape)] * len(dims)
    indices[place] = index
    dims[place] = 1
    step = new.op("dynamic-slice", [product, *indices], slice_sizes=tuple(dims))
    replacement, _ = new.materialize(new.reshaped(step, dot.shape.dims), dot.parent, dot)
    dot.parent.replace(dot, replacement)


def _numbers_of_whole(dot: Instruction, side: int, part: _Part) -> tuple[DotDimensionNumbers, int]:
    """The dimension numbers of the product of the whole, and which of its dimensions counts the slices."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]

    def moved(dims: Dims) -> Dims:
        return tuple(dim + (dim >= part.dim) for dim in dims)

    left, right = (operand.shape.rank for operand in dot.operands)
    batch = len(numbers.lhs_batch)
    if side == 0:
        numbers = replace(numbers, lhs_contracting=moved(numbers.lhs_contracting), lhs_batch=moved(numbers.lhs_batch))
        return numbers, batch + numbers.lhs_free(left + 1).index(part.dim)
    numbers = replace(numbers, rhs_contracting=moved(numbers.rhs_contracting), rhs_batch=moved(numbers.rhs_batch))
    return numbers, batch + len(numbers.lhs_free(left)) + numbers.rhs_free(right + 1).index(part.dim)
