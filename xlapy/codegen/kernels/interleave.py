"""Transposes between a long dimension and a few elements: pairs, pixels, small matrices.

    f32[1048576,3] -> f32[3,1048576]     deals: what lies side by side goes to as many lines
    f32[3,1048576] -> f32[1048576,3]     joins: lines come side by side

An element may be a run of eight or sixteen bytes, which stays together. There are too few elements for a square block.
But as many vectors as there are elements hold a whole number of each line, so each vector of the result is picked out
of them. Large results bypass the caches, and what comes next of the operand is fetched meanwhile, of as many lines as
there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.kernels.transpose import MOST_LANES, merged_dimensions
from xlapy.codegen.register_transpose import dealt, joined
from xlapy.codegen.registers import memory_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Dims, row_major_strides
from xlapy_runtime.records import Record

STRIP = 32  # vectors of each line that a task does at least
RUN_BYTES = (8, 16)  # that a vector has several of, and a loop over runs would load one by one
MOST_RUNS = 4  # side by side


class Sides(Record):
    """Which dimensions change places.

    `few` are those whose `count` elements lie side by side, in their order: in the result if it `joins` them, else in
    the operand. Neighbours along `long` are neighbours on the other side."""

    few: tuple[int, ...]
    long: int
    joins: bool
    count: int


class InterleavePlan(Record):
    """A transpose of `dims`: those of the operand, neighbours that stay neighbours as one. It takes `lanes` of the long
    one at a time, and each task takes a `strip` of it. An element has so many `parts`, which stay side by side.
    `streaming` results are too large for the caches, and all their vectors lie so that they may bypass them if the
    first one does."""

    dims: tuple[int, ...]
    permutation: tuple[int, ...]
    sides: Sides
    parts: int
    lanes: int
    strip: int
    units: int
    bytes_per_unit: int
    streaming: bool

    @property
    def length(self) -> int:
        return self.dims[self.sides.long]

    @property
    def outer(self) -> list[int]:
        return [dim for dim in range(len(self.dims)) if dim != self.sides.long and dim not in self.sides.few]

    def lines(self, strides: Sequence[int]) -> Iterator[int]:
        """Where the lines begin, in the order in which their elements lie side by side."""
        for digits in product(*(range(self.dims[dim]) for dim in self.sides.few)):
            yield sum(digit * strides[dim] for digit, dim in zip(digits, self.sides.few, strict=True))


def plan_interleave(transpose: Instruction, target: Target) -> InterleavePlan | None:
    """How to run a transpose between a long dimension and a few elements; None if it is another one."""
    operand = transpose.operands[0].shape
    dims, permutation, _ = merged_dimensions(operand.dims, transpose.attributes["permutation"])
    row_major = all(shape.layout is None or shape.layout.is_row_major for shape in (operand, transpose.shape))
    if not row_major or len(dims) < 2 or operand.type.is_complex:
        return None
    width, parts = memory_type(operand.type).bytes, 1
    if permutation[-1] == len(dims) - 1:  # runs of the fastest dimension are elements
        parts, dims, permutation = dims[-1], dims[:-1], permutation[:-1]
        if parts * width not in RUN_BYTES or 2 * parts * width > target.vector_bytes:
            return None
    lanes = min(target.vector_bytes // (parts * width), MOST_LANES)
    most = lanes - 1 if parts == 1 else MOST_RUNS
    found = next(
        (sides for sides in _sides(dims, permutation) if sides.count <= most and lanes <= dims[sides.long]), None
    )
    if found is None:
        return None
    strip = STRIP * lanes
    units = math.prod(dims) // (dims[found.long] * found.count) * -(-dims[found.long] // strip)
    streaming = not dims[found.long] % lanes and is_streamed([transpose], lanes * parts, target)
    bytes_per_unit = 2 * operand.bytes // max(units, 1)
    return InterleavePlan(dims, permutation, found, parts, lanes, strip, units, bytes_per_unit, streaming)


def _sides(dims: Dims, permutation: Dims) -> Iterator[Sides]:
    """Both ways to look at a transpose: the operand's last dimensions are few, or the result's."""
    last = len(dims) - 1
    for few, long, joins in (
        (tuple(range(permutation[-1] + 1, len(dims))), permutation[-1], False),
        (permutation[permutation.index(last) + 1 :], last, True),
    ):
        if few:
            yield Sides(few, long, joins, math.prod(dims[dim] for dim in few))


def emit_interleave(
    k: KernelBuilder, plan: InterleavePlan, source: Array, result: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end): strips of the long dimension."""
    ix, dims, length, joins = Indexing(k, 1), plan.dims, plan.length, plan.sides.joins
    permuted = row_major_strides([dims[dim] for dim in plan.permutation])
    all_strides = (row_major_strides(dims), [permuted[plan.permutation.index(dim)] for dim in range(len(dims))])
    block = memory_type(source.shape.type, plan.lanes * plan.parts)
    width, vector_bytes = block.bytes * plan.parts, block.bytes * block.lanes
    is_misplaced = k.compare("ne", k.and_(k.address(result.pointer), vector_bytes - 1), 0)
    with k.loop(begin, end) as units:
        position, strip = ix.divide(Coordinate(units.index), -(-length // plan.strip))
        outer = ix.delinearize(position, [dims[dim] for dim in plan.outer])
        bases = [ix.linearize(outer, [strides[dim] for dim in plan.outer]).start for strides in all_strides]
        first = k.mul(strip.start, plan.strip)
        with k.loop(first, k.smin(k.add(first, plan.strip), length), plan.lanes) as blocks:
            start = k.smin(blocks.index, length - plan.lanes)
            side_by_side, lines = (1, 0) if joins else (0, 1)
            places = {
                side_by_side: _neighbours(k, plan, bases[side_by_side], start),
                lines: [k.add(k.add(bases[lines], line), start) for line in plan.lines(all_strides[lines])],
            }
            sources = [k.gep(source.pointer, place, width) for place in places[0]]
            for pointer in sources if plan.streaming else ():
                k.prefetch(k.gep(pointer, FETCHED_AHEAD), vector_bytes)
            vectors = [k.load(pointer, block) for pointer in sources]
            changed = joined(k, vectors, plan.parts) if joins else dealt(k, vectors, plan.parts)
            goals = [k.gep(result.pointer, place, width) for place in places[1]]
            if plan.streaming:
                past_caches = partial(_store, k, goals, changed, align=vector_bytes)
                k.if_else(is_misplaced, partial(_store, k, goals, changed), past_caches, likely=False)
            else:
                _store(k, goals, changed)
    if plan.streaming:
        k.fence()


def _store(k: KernelBuilder, goals: Sequence[Value], vectors: Sequence[Value], *, align: int | None = None) -> None:
    """Stores each vector; past the caches, if all lie at multiples of `align`."""
    for goal, vector in zip(goals, vectors, strict=True):
        k.store(goal, vector, align=align, nontemporal=align is not None)


def _neighbours(k: KernelBuilder, plan: InterleavePlan, base: Value, start: Value) -> list[Value]:
    """Where the vectors begin that hold all of the few elements, from some place in the long dimension on."""
    first = k.add(base, k.mul(start, plan.sides.count))
    return [k.add(first, vector * plan.lanes) for vector in range(plan.sides.count)]
