"""Transposes that change the fastest dimension, by square blocks.

Reading along one dimension and writing along the other touches a new cache line per element on one side. So R x R
blocks are read by rows, turned over in registers and written by rows; and they are walked within larger squares, so
that the lines of both sides are still in cache when the next block needs their other half.

Where a row of a block is a whole cache line, no line is needed twice. Then results that no cache holds bypass them, and
blocks follow each other along the rows of the operand, which are fetched ahead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.registers import memory_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Dims

SQUARE_BYTES = 256  # side of the larger squares: four lines of each row, and rows enough to use them up
STREAMED_BYTES = 1024  # of each row of the operand, where results bypass the caches
CROWDING_BYTES = 4096  # lines of the result that lie a multiple of that apart share few places on their way to memory
FETCHED_AHEAD = 256  # in a row of the operand; what begins a row is waited for
UNIT_BYTES = 256 << 10  # of the operand, about; enough to be worth a task
MOST_LANES = 16


@dataclass(frozen=True, slots=True)
class TransposePlan:
    """Which dimensions are turned over, of `dims`: those of the operand, neighbours that stay neighbours as one.

    Elements change places with their opposites in those that are `reversed`. `slow` is the one that becomes the fastest
    of the result; `fast` are the last ones, whose elements are numbered together: one, or several if the last one is
    shorter than a block. `lanes` is the side of a block, `square` that of the larger squares, of which `stretch` rows
    below one another are a unit of work. `streaming` results bypass the caches."""

    dims: tuple[int, ...]
    permutation: tuple[int, ...]
    reversed: tuple[int, ...]
    fast: tuple[int, ...]
    slow: int
    lanes: int
    square: int
    stretch: int
    streaming: bool
    units: int
    bytes_per_unit: int

    @property
    def strips(self) -> int:
        """How many squares lie side by side."""
        return -(-_size(self.dims, self.fast) // self.square)

    @property
    def stretches(self) -> int:
        """How many units lie below one another."""
        return -(-self.dims[self.slow] // self.stretch)


def plan_transpose(transpose: Instruction, target: Target, mirrored: Dims = ()) -> TransposePlan | None:
    """How to run a transpose by blocks, of an operand in which the dimensions `mirrored` are reversed first; None if it
    keeps its fastest dimension or that is a reversed one, or if a side is shorter than a block."""
    operand = transpose.operands[0].shape
    dims, permutation, mirrored = merged_dimensions(operand.dims, transpose.attributes["permutation"], mirrored)
    row_major = all(shape.layout is None or shape.layout.is_row_major for shape in (operand, transpose.shape))
    if not row_major or len(dims) < 2 or operand.type.is_complex or permutation[-1] in mirrored:
        return None
    slow = permutation[-1]
    width = memory_type(operand.type).bytes
    lanes = min(target.vector_bytes // width, MOST_LANES)
    behind = range(slow + 1, len(dims))
    fast = next((behind[-n:] for n in range(1, len(behind) + 1) if _size(dims, behind[-n:]) >= lanes), None)
    if fast is None or dims[slow] < lanes:
        return None
    is_streaming = (
        len(fast) == 1
        and lanes * width == CACHE_LINE
        and not dims[slow] % lanes
        and is_streamed([transpose], lanes, target)
    )
    is_crowded = not dims[slow] * width % CROWDING_BYTES
    side = STREAMED_BYTES if is_streaming and not is_crowded else SQUARE_BYTES
    square = max(lanes, side // width)
    stretch = max(UNIT_BYTES // (square * width), square)
    plan = TransposePlan(dims, permutation, mirrored, tuple(fast), slow, lanes, square, stretch, is_streaming, 0, 0)
    units = operand.size // (_size(dims, fast) * dims[slow]) * plan.strips * plan.stretches
    return replace(plan, units=units, bytes_per_unit=2 * operand.bytes // units)


def merged_dimensions(dims: Dims, permutation: Dims, mirrored: Dims = ()) -> tuple[Dims, Dims, Dims]:
    """The same transpose of fewer dimensions: without those of one element, neighbours that stay neighbours as one."""
    wide = [dim for dim in range(len(dims)) if dims[dim] > 1]
    groups: list[list[int]] = []
    for dim in permutation:
        if dims[dim] == 1:
            continue
        before = groups[-1][-1] if groups else None
        if (
            before is not None
            and wide.index(before) + 1 == wide.index(dim)
            and (before in mirrored) == (dim in mirrored)
        ):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    order = sorted(groups)
    return (
        tuple(_size(dims, group) for group in order),
        tuple(order.index(group) for group in groups),
        tuple(number for number, group in enumerate(order) if group[0] in mirrored),
    )


def _size(dims: Sequence[int], chosen: Sequence[int]) -> int:
    return math.prod(dims[dim] for dim in chosen)


def strides_of(dims: Sequence[int]) -> list[int]:
    """Of a row-major array."""
    return [math.prod(dims[dim + 1 :]) for dim in range(len(dims))]


def emit_transpose(
    k: KernelBuilder, plan: TransposePlan, source: Array, result: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end): stretches of strips of the result, `square` wide in the operand's fastest
    dimension."""
    turning = _Turning(k, plan, source, result)
    with k.loop(begin, end) as units:
        turning.unit(Coordinate(units.index))
    if plan.streaming:
        k.fence()


class _Turning:
    """Emits the loops over squares and blocks."""

    def __init__(self, k: KernelBuilder, plan: TransposePlan, source: Array, result: Array) -> None:
        self.k, self.ix, self.plan = k, Indexing(k, 1), plan
        self.source, self.result = source, result
        self.width = memory_type(source.shape.type).bytes
        self.source_strides = strides_of(plan.dims)
        strides = strides_of([plan.dims[dim] for dim in plan.permutation])
        self.result_strides = [strides[plan.permutation.index(dim)] for dim in range(len(plan.dims))]
        self.columns = _size(plan.dims, plan.fast)
        self.rows = plan.dims[plan.slow]
        lies_apart = k.and_(k.address(result.pointer), CACHE_LINE - 1)
        self.misplaced = k.compare("ne", lies_apart, 0) if plan.streaming else None

    def unit(self, unit: Coordinate) -> None:
        """One strip of some rows."""
        k, ix, plan = self.k, self.ix, self.plan
        above, stretch = ix.divide(unit, plan.stretches)
        position, strip = ix.divide(above, plan.strips)
        bases = self._bases(position)
        left, top = k.mul(strip.start, plan.square), k.mul(stretch.start, plan.stretch)
        right = k.smin(k.add(left, plan.square), self.columns)
        bottom = k.smin(k.add(top, plan.stretch), self.rows)
        if plan.streaming:
            with k.loop(top, bottom, plan.lanes) as rows, k.loop(left, right, plan.lanes) as columns:
                column = self._first_column(columns.index)
                self._block(bases, rows.index, column, self._lines_of_result(column))
            return
        with k.loop(top, bottom, plan.square) as squares:
            edge = k.smin(k.add(squares.index, plan.square), bottom)
            with k.loop(left, right, plan.lanes) as columns:
                column = self._first_column(columns.index)
                lines = self._lines_of_result(column)
                with k.loop(squares.index, edge, plan.lanes) as rows:
                    self._block(bases, k.smin(rows.index, self.rows - plan.lanes), column, lines)

    def _bases(self, position: Coordinate) -> tuple[Value, Value]:
        """Where in the source and in the result a position in the dimensions that are not turned over begins."""
        ix, plan = self.ix, self.plan
        outer = [dim for dim in range(len(plan.dims)) if dim not in (*plan.fast, plan.slow)]
        places = ix.delinearize(position, [plan.dims[dim] for dim in outer])
        goals = _mirrored(ix, plan, outer, places)
        return (
            ix.linearize(places, [self.source_strides[dim] for dim in outer]).start,
            ix.linearize(goals, [self.result_strides[dim] for dim in outer]).start,
        )

    def _first_column(self, index: Value) -> Value:
        """Of a block, which ends where the columns end."""
        return self.k.smin(index, self.columns - self.plan.lanes)

    def _lines_of_result(self, column: Value) -> list[Value]:
        """Where, in elements, the lines of the result begin that a block's columns become."""
        k, ix, plan = self.k, self.ix, self.plan
        dims, strides = plan.dims, self.result_strides
        follow = not {*plan.fast} & {*plan.reversed} and all(
            strides[dim] == strides[inner] * dims[inner]
            for dim, inner in zip(plan.fast[:-1], plan.fast[1:], strict=True)
        )
        if follow:
            return [k.mul(k.add(column, line), strides[plan.fast[-1]]) for line in range(plan.lanes)]
        lines = []
        for line in range(plan.lanes):
            digits = ix.delinearize(Coordinate(k.add(column, line)), [dims[dim] for dim in plan.fast])
            goals = _mirrored(ix, plan, plan.fast, digits)
            lines.append(ix.linearize(goals, [strides[dim] for dim in plan.fast]).start)
        return lines

    def _block(self, bases: tuple[Value, Value], row: Value, column: Value, lines: Sequence[Value]) -> None:
        """Reads as many lines as they are long, and writes them as columns."""
        k, plan, width = self.k, self.plan, self.width
        block = memory_type(self.source.shape.type, plan.lanes)
        stride = self.source_strides[plan.slow]
        start = k.add(k.add(bases[0], k.mul(row, stride)), column)
        place = k.gep(self.source.pointer, start, width)
        if plan.streaming:
            for line in range(plan.lanes):
                k.prefetch(k.gep(place, line * stride * width + FETCHED_AHEAD), CACHE_LINE)
        read = [k.load(k.gep(place, line * stride * width), block) for line in range(plan.lanes)]
        turned = transposed(k, read)
        targets = [k.gep(self.result.pointer, k.add(k.add(bases[1], line), row), width) for line in lines]
        if self.misplaced is None:
            self._store(targets, turned)
            return
        k.if_else(
            self.misplaced,
            lambda: self._store(targets, turned),
            lambda: self._store(targets, turned, past_caches=True),
            likely=False,
        )

    def _store(self, targets: Sequence[Value], columns: Sequence[Value], *, past_caches: bool = False) -> None:
        for target, column in zip(targets, columns, strict=True):
            self.k.store(target, column, align=CACHE_LINE if past_caches else None, nontemporal=past_caches)


def _mirrored(
    ix: Indexing, plan: TransposePlan, chosen: Sequence[int], places: Sequence[Coordinate]
) -> list[Coordinate]:
    """Where in the chosen dimensions the elements of some places go."""
    return [
        ix.add(ix.scale(place, -1), plan.dims[dim] - 1) if dim in plan.reversed else place
        for dim, place in zip(chosen, places, strict=True)
    ]
