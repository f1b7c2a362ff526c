"""Transposes that change the fastest dimension, by square blocks.

Reading along one dimension and writing along the other touches a new cache line per element on one side. So R x R
blocks are read by rows, turned over in registers and written by rows; and they are walked within larger squares, so
that the lines of both sides are still in cache when the next block needs their other half.

Results that no cache holds bypass them, in blocks whose rows are whole cache lines, so that no line is needed twice.
Squares follow each other along the rows of the operand then, which are fetched ahead: see `libraries.turn`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import IRType, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.registers import memory_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Dims, row_major_strides
from xlapy.support.records import Record

SQUARE_BYTES = 256  # side of the larger squares: four lines of each row, and rows enough to use them up
WAY_BYTES = 4096  # lines so far apart have the same places in the nearest cache
MOST_ALIKE = 8  # of which there are so many
MOST_ALIKE_BYTES = 8  # of an operand, times those of the second cache
STREAMED_BYTES = 16384  # of each row of the operand, where results bypass the caches: the longer, the faster
UNIT_BYTES = 256 << 10  # of the operand, about; enough to be worth a task
MOST_LANES = 16
LEAST_LANES = 4
LEVELS = 3  # dimensions in front of those that are turned over, at most, in the library


class TransposePlan(Record):
    """Which dimensions are turned over, of `dims`: those of the operand, neighbours that stay neighbours as one.

    Elements change places with their opposites in those that are `reversed`. `slow` are those that become the last ones
    of the result, in its order, and `fast` the last ones of the operand; the elements of either are numbered together:
    those of one dimension, or of several if the last one is shorter than a block. `lanes` is the side of a block,
    `square` that of the larger squares, of which `stretch` rows below one another are a unit of work. `streaming`
    results bypass the caches."""

    dims: tuple[int, ...]
    permutation: tuple[int, ...]
    reversed: tuple[int, ...]
    fast: tuple[int, ...]
    slow: tuple[int, ...]
    lanes: int
    square: int
    stretch: int
    streaming: bool
    units: int
    bytes_per_unit: int

    @property
    def columns(self) -> int:
        return _size(self.dims, self.fast)

    @property
    def rows(self) -> int:
        return _size(self.dims, self.slow)

    @property
    def outer(self) -> list[int]:
        """The dimensions that are not turned over."""
        return [dim for dim in range(len(self.dims)) if dim not in (*self.fast, *self.slow)]

    @property
    def strips(self) -> int:
        """How many squares lie side by side."""
        return -(-self.columns // self.square)

    @property
    def stretches(self) -> int:
        """How many units lie below one another."""
        return -(-self.rows // self.stretch)


def plan_transpose(transpose: Instruction, target: Target, mirrored: Dims = ()) -> TransposePlan | None:
    """How to run a transpose by blocks, of an operand in which the dimensions `mirrored` are reversed first; None if it
    keeps its fastest dimension or that is a reversed one, or if a side is shorter than a block."""
    dims, permutation, mirrored = merged_dimensions(
        transpose.operands[0].shape.dims, transpose.attributes["permutation"], mirrored
    )
    if not _has_blocks(transpose, dims, permutation) or permutation[-1] in mirrored:
        return None
    slow, width = permutation[-1], memory_type(transpose.shape.type).bytes
    lanes = block_lanes(width, target)
    fast = _last_ones(range(slow + 1, len(dims)), dims, lanes)
    if fast is None or dims[slow] < lanes:
        return None
    is_streaming = (
        len(fast) == 1
        and len(dims) - 2 <= LEVELS
        and has_streamed_blocks(target)
        and dims[fast[0]] >= line_lanes(width)
        and not dims[slow] % line_lanes(width)
        and is_streamed([transpose], line_lanes(width), target)
    )
    side = _side_of_squares(transpose.shape.bytes, dims, permutation, fast, (slow,), target)
    square = STREAMED_BYTES // width if is_streaming else side
    stretch = side if is_streaming else max(UNIT_BYTES // (square * width), square)
    plan = TransposePlan(dims, permutation, mirrored, fast, (slow,), lanes, square, stretch, is_streaming, 0, 0)
    return _with_units(plan, transpose.operands[0].shape.bytes)


def plan_short_transpose(transpose: Instruction, target: Target) -> TransposePlan | None:
    """The same where the last dimension of the result is shorter than a block: together with those before it, as long
    as these are none of the last ones of the operand; else by smaller blocks."""
    dims, permutation, _ = merged_dimensions(transpose.operands[0].shape.dims, transpose.attributes["permutation"])
    if not _has_blocks(transpose, dims, permutation):
        return None
    width = memory_type(transpose.shape.type).bytes
    lanes = block_lanes(width, target)
    while lanes >= LEAST_LANES:
        fast = _last_ones(range(permutation[-1] + 1, len(dims)), dims, lanes)
        slow = _last_ones(permutation, dims, lanes, apart_from=fast or ())
        if fast is not None and slow is not None:
            square = _side_of_squares(transpose.shape.bytes, dims, permutation, fast, slow, target)
            stretch = max(UNIT_BYTES // (square * width), square)
            plan = TransposePlan(dims, permutation, (), fast, slow, lanes, square, stretch, False, 0, 0)
            return _with_units(plan, transpose.operands[0].shape.bytes)
        lanes //= 2
    return None


def _has_blocks(transpose: Instruction, dims: Dims, permutation: Dims) -> bool:
    """Whether rows and columns of row-major arrays change places, in elements that vectors hold."""
    shapes = transpose.operands[0].shape, transpose.shape
    row_major = all(shape.layout is None or shape.layout.is_row_major for shape in shapes)
    return row_major and len(dims) > 1 and permutation[-1] != len(dims) - 1 and not transpose.shape.type.is_complex


def _last_ones(
    order: Sequence[int], dims: Dims, least: int, *, apart_from: Sequence[int] = ()
) -> tuple[int, ...] | None:
    """The fewest dimensions at the end of an order that have so many elements together, and none of those."""
    for count in range(1, len(order) + 1):
        found = tuple(order[-count:])
        if not {*apart_from}.isdisjoint(found):
            return None
        if _size(dims, found) >= least:
            return found
    return None


def _with_units(plan: TransposePlan, operand_bytes: int) -> TransposePlan:
    units = _size(plan.dims, plan.outer) * plan.strips * plan.stretches
    return replace(plan, units=units, bytes_per_unit=2 * operand_bytes // max(units, 1))


def has_streamed_blocks(target: Target) -> bool:
    """Whether results may bypass the caches: one or two vectors make a line."""
    return 2 * target.vector_bytes >= CACHE_LINE


def block_lanes(width: int, target: Target) -> int:
    """The side of a block of elements so wide."""
    return min(target.vector_bytes // width, MOST_LANES)


def line_lanes(width: int) -> int:
    """The side of a block of elements so wide whose rows are whole cache lines."""
    return CACHE_LINE // width


def square_side(width: int, target: Target) -> int:
    """The side of the larger squares."""
    return max(block_lanes(width, target), SQUARE_BYTES // width)


def _side_of_squares(total: int, dims: Dims, permutation: Dims, fast: Dims, slow: Dims, target: Target) -> int:
    """The side of the larger squares of `total` bytes; or a line where most of the lines below one another, in the
    operand or in the result, would drive each other out of the nearest cache, as in rows whose length is a power of
    two. (A Zen 3 takes 0.6 to 0.75 of the time then. Of what is much larger than the second cache, short pieces of many
    pages would take longer.)"""
    width = total // math.prod(dims)
    side = square_side(width, target)
    before, after = row_major_strides(dims), row_major_strides([dims[dim] for dim in permutation])
    pitches = width * before[slow[-1]], width * after[permutation.index(fast[-1])]
    alike = max(side * math.gcd(pitch, WAY_BYTES) // WAY_BYTES for pitch in pitches)
    if alike <= MOST_ALIKE or total > MOST_ALIKE_BYTES * target.l2_bytes:
        return side
    return max(block_lanes(width, target), line_lanes(width))


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


def emit_transpose(
    k: KernelBuilder, plan: TransposePlan, source: Array, result: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end): stretches of strips of the result, `square` wide in the operand's fastest
    dimension."""
    ix, dims = Indexing(k, 1), plan.dims
    source_strides = row_major_strides(dims)
    strides = row_major_strides([dims[dim] for dim in plan.permutation])
    result_strides = [strides[plan.permutation.index(dim)] for dim in range(len(dims))]
    width = memory_type(source.shape.type).bytes
    block = memory_type(source.shape.type, plan.lanes)
    with k.loop(begin, end) as units:
        above, stretch = ix.divide(Coordinate(units.index), plan.stretches)
        position, strip = ix.divide(above, plan.strips)
        places = ix.delinearize(position, [dims[dim] for dim in plan.outer])
        goals = _mirrored(ix, plan, plan.outer, places)
        bases = [
            ix.linearize(positions, [strides[dim] for dim in plan.outer]).start
            for positions, strides in ((places, source_strides), (goals, result_strides))
        ]

        def rows_from(row: Value) -> list[Value]:
            return [k.add(bases[0], start) for start in _rows_of_source(ix, plan, source_strides, row)]

        def lines_from(column: Value) -> list[Value]:
            return [k.add(bases[1], line) for line in _lines_of_result(ix, plan, dims, result_strides, column)]

        def turn(starts: Sequence[Value], lines: Sequence[Value], row: Value, column: Value) -> None:
            sources = [k.gep(source.pointer, k.add(start, column), width) for start in starts]
            targets = [k.gep(result.pointer, k.add(line, row), width) for line in lines]
            _turn_block(k, block, sources, targets)

        first, top = k.mul(strip.start, plan.square), k.mul(stretch.start, plan.stretch)
        last = k.smin(k.add(first, plan.square), plan.columns)
        bottom = k.smin(k.add(top, plan.stretch), plan.rows)
        with k.loop(top, bottom, plan.square) as across:
            edge = k.smin(k.add(across.index, plan.square), bottom)
            over_rows, over_columns = (across.index, edge, plan.lanes), (first, last, plan.lanes)
            if len(plan.slow) > 1:  # which rows these are takes long to tell
                with k.loop(*over_rows) as rows:
                    row = k.smin(rows.index, plan.rows - plan.lanes)
                    starts = rows_from(row)
                    with k.loop(*over_columns) as columns:
                        column = k.smin(columns.index, plan.columns - plan.lanes)
                        turn(starts, lines_from(column), row, column)
            else:
                with k.loop(*over_columns) as columns:
                    column = k.smin(columns.index, plan.columns - plan.lanes)
                    lines = lines_from(column)
                    with k.loop(*over_rows) as rows:
                        row = k.smin(rows.index, plan.rows - plan.lanes)
                        turn(rows_from(row), lines, row, column)


def _mirrored(
    ix: Indexing, plan: TransposePlan, chosen: Sequence[int], places: Sequence[Coordinate]
) -> list[Coordinate]:
    """Where in the chosen dimensions the elements of some places go."""
    return [
        ix.add(ix.scale(place, -1), plan.dims[dim] - 1) if dim in plan.reversed else place
        for dim, place in zip(chosen, places, strict=True)
    ]


def _rows_of_source(ix: Indexing, plan: TransposePlan, strides: Sequence[int], row: Value) -> list[Value]:
    """Where, in elements, the rows of the operand are from which a block's rows begin."""
    sizes, steps = [plan.dims[dim] for dim in plan.slow], [strides[dim] for dim in plan.slow]
    numbers = [Coordinate(ix.k.add(row, number)) for number in range(plan.lanes)]
    return [ix.linearize(ix.delinearize(number, sizes), steps).start for number in numbers]


def _lines_of_result(
    ix: Indexing, plan: TransposePlan, dims: Sequence[int], strides: Sequence[int], column: Value
) -> list[Value]:
    """Where, in elements, the lines of the result begin that a block's columns become."""
    k = ix.k
    follow = not {*plan.fast} & {*plan.reversed} and all(
        strides[dim] == strides[inner] * dims[inner] for dim, inner in zip(plan.fast[:-1], plan.fast[1:], strict=True)
    )
    if follow:
        return [k.mul(k.add(column, line), strides[plan.fast[-1]]) for line in range(plan.lanes)]
    lines = []
    for line in range(plan.lanes):
        digits = ix.delinearize(Coordinate(k.add(column, line)), [dims[dim] for dim in plan.fast])
        start = ix.linearize(_mirrored(ix, plan, plan.fast, digits), [strides[dim] for dim in plan.fast]).start
        lines.append(start)
    return lines


def _turn_block(k: KernelBuilder, block: IRType, sources: Sequence[Value], targets: Sequence[Value]) -> None:
    """Reads as many lines as they are long, and writes them as columns."""
    lines = [k.load(source, block) for source in sources]
    for target, column in zip(targets, transposed(k, lines), strict=True):
        k.store(target, column)
