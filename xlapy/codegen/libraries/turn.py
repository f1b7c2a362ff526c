"""Transposes by square blocks, as `kernels.transpose` plans them, for any sizes and distances.

    turn_WIDTH                  elements of 1, 2, 4 or 8 bytes, whatever they mean
    turn_WIDTH_past_caches      large results of such elements, of which a block has a cache line in each row
    turn_WIDTH_of_pairs         columns that two dimensions number: channels, and windows of few elements
    turn_WIDTH_to_pairs         rows that two dimensions number

A unit is a stretch of a strip of some columns of one matrix; matrices lie at the places that `LEVELS` digits of their
number say.
Only what turns more dimensions than these at once is compiled with its program.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from functools import partial

from xlapy.codegen.ir import F32, F64, I8, I16, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.transpose import (
    LEVELS,
    SQUARE_BYTES,
    TransposePlan,
    block_lanes,
    has_streamed_blocks,
    line_lanes,
)
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.target import Target
from xlapy.hlo.shape import row_major_strides
from xlapy_runtime.records import Record

NUMBERS = (
    *("square", "strips", "stretch", "stretches"),
    *("columns", "rows", "source_row", "result_column", "source_start", "result_start"),
    *("inner_columns", "outer_column", "inner_rows", "outer_row"),
    *(f"{name}{level}" for level in range(LEVELS) for name in ("count", "source_step", "result_step")),
)
"""By name, in order: columns of a strip, strips of a matrix, rows of a stretch, stretches of a strip, the size of a
matrix, and distances in bytes: between its rows, of the columns that become rows of the result, of the first matrix;
of pairs how many columns or rows the inner dimension numbers, and the distance of those that the outer one does; and
distances from one matrix to the next along each digit of their number, outermost first."""

_NUMBERS_PLACE, _SOURCE_PLACE, _RESULT_PLACE = 0, 3, 4  # in the table of a library call
_RANGE = [("table", PTR), ("begin", I64), ("end", I64)]
_TYPES = {1: I8, 2: I16, 4: F32, 8: F64}
"""Elements by their width: only moved, as what vectors of that width are shuffled as anyway."""

_LINES_OF_SQUARE = SQUARE_BYTES // CACHE_LINE
"""In each row; a square has as many blocks below one another, and as many beside one another."""

_LEAST_LINES = 16
"""Of rows whose first and last lines may be read by two blocks each."""

_SQUARES_OF_PAIRS = 4
"""Squares below one another, for which it is found only once which lines pairs of dimensions number."""

_NEXT_TO_EACH_OTHER = 4
"""Rows that are found from one address, by multiples of their distance that stay in registers."""


def call_of_transpose(plan: TransposePlan, width: int) -> LibraryCall | None:
    """How the library runs a transpose of elements so wide, if it does."""
    if len(plan.fast) + len(plan.slow) > 3 or len(plan.outer) > LEVELS or width not in _TYPES:
        return None
    (*above_fast, fast), (*above_slow, slow), dims, outer = plan.fast, plan.slow, plan.dims, plan.outer
    sources = [stride * width for stride in row_major_strides(dims)]
    results = _result_steps(plan, width)
    values = {
        "square": plan.square,
        "strips": plan.strips,
        "stretch": plan.stretch,
        "stretches": plan.stretches,
        "columns": plan.columns,
        "rows": plan.rows,
        "source_row": sources[slow],
        "result_column": results[fast],
        "source_start": 0,
        "result_start": -sum((dims[dim] - 1) * results[dim] for dim in plan.reversed),
        "inner_columns": dims[fast],
        "outer_column": sum(results[dim] for dim in above_fast),
        "inner_rows": dims[slow],
        "outer_row": sum(sources[dim] for dim in above_slow),
    }
    for level, dim in enumerate(outer, start=LEVELS - len(outer)):
        values |= {f"count{level}": dims[dim], f"source_step{level}": sources[dim], f"result_step{level}": results[dim]}
    missing = {f"count{level}": 1 for level in range(LEVELS)}
    numbers = missing | values
    way = "_of_pairs" if above_fast else "_to_pairs" if above_slow else "_past_caches" if plan.streaming else ""
    return LibraryCall(f"turn_{width}", f"turn_{width}{way}", tuple(numbers.get(name, 0) for name in NUMBERS))


def _result_steps(plan: TransposePlan, width: int) -> list[int]:
    """From one element of each dimension of the operand to the next, in the result; backwards where it is reversed."""
    strides = row_major_strides([plan.dims[dim] for dim in plan.permutation])
    signs = [-1 if dim in plan.reversed else 1 for dim in range(len(plan.dims))]
    return [sign * width * strides[plan.permutation.index(dim)] for dim, sign in enumerate(signs)]


def emit_turn(width: int, target: Target) -> Module:
    module, lanes = Module.of(target), block_lanes(width, target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    for way, emitter in _WAYS.items():
        with KernelBuilder(module, f"turn_{width}{way}", _RANGE, None, attributes=attributes) as k:
            suited = _Squares if emitter is _PastCaches and not has_streamed_blocks(target) else emitter
            suited(k, _TYPES[width], lanes).emit()
    return module


class _Strip(Record):
    """Blocks below one another: where they are and go, their rows, and whether these go to no beginning of a line."""

    source: Value
    result: Value
    rows: Value
    misplaced: Value


class _TurnEmitter(abc.ABC):
    """Writes a function for one width."""

    def __init__(self, k: KernelBuilder, type: IRType, lanes: int) -> None:
        self._k = k
        self._block = type.with_lanes(lanes)
        self._width = type.bytes
        numbers, self._source, self._result = (
            k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)
            for place in (_NUMBERS_PLACE, _SOURCE_PLACE, _RESULT_PLACE)
        )
        self._numbers = {
            name: k.load(k.gep(numbers, number, I64.bytes), I64, hoistable=True) for number, name in enumerate(NUMBERS)
        }

    def emit(self) -> None:
        k, numbers = self._k, self._numbers
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            above, stretch = self._divided(units.index, "stretches")
            matrix, strip = self._divided(above, "strips")
            source, result = self._matrix(matrix)
            top = k.mul(stretch, numbers["stretch"])
            bottom = k.smin(k.add(top, numbers["stretch"]), numbers["rows"])
            self._turn(source, result, self._columns(source, strip), (top, bottom))

    def _columns(self, source: Value, strip: Value) -> tuple[Value, Value]:
        """Where in a matrix a strip begins and ends."""
        k, numbers = self._k, self._numbers
        left = k.mul(strip, numbers["square"])
        return left, k.smin(k.add(left, numbers["square"]), numbers["columns"])

    @abc.abstractmethod
    def _turn(self, source: Value, result: Value, columns: tuple[Value, Value], rows: tuple[Value, Value]) -> None:
        """A part of one matrix, by blocks: the last ones of a matrix overlap those before them."""

    def _divided(self, number: Value, name: str) -> tuple[Value, Value]:
        """Quotient and rest."""
        k, divisor = self._k, self._numbers[name]
        quotient = k.udiv(number, divisor)
        return quotient, k.sub(number, k.mul(quotient, divisor))

    def _matrix(self, number: Value) -> tuple[Value, Value]:
        """Where a matrix is, and where it goes."""
        k, numbers = self._k, self._numbers
        source, result = k.gep(self._source, numbers["source_start"]), k.gep(self._result, numbers["result_start"])
        for level in reversed(range(LEVELS)):
            number, digit = self._divided(number, f"count{level}")
            source = k.gep(source, k.mul(digit, numbers[f"source_step{level}"]))
            result = k.gep(result, k.mul(digit, numbers[f"result_step{level}"]))
        return source, result

    def _first(self, index: Value, count: str) -> Value:
        """The first row or column of a block, of which there are so many."""
        return self._k.smin(index, self._k.sub(self._numbers[count], self._block.lanes))

    def _lines(self, first: Value, distance: Value, count: int = 0) -> list[Value]:
        """The addresses of so many lines, or as many as a block has, so far apart."""
        k, lines = self._k, []
        for line in range(count or self._block.lanes):
            near = line % _NEXT_TO_EACH_OTHER
            if line and not near:
                first = k.gep(first, k.mul(distance, _NEXT_TO_EACH_OTHER))
            lines.append(k.gep(first, k.mul(distance, near)))
        return lines

    def _turned(self, lines: Sequence[Value]) -> list[Value]:
        """The block of those lines, by columns: all of them before any is stored, which is 5 % faster. Each line is
        read once, as so many hardly stay in a first-level cache."""
        k = self._k
        return transposed(k, [k.load(line, self._block) for line in lines])


class _Squares(_TurnEmitter):
    """Squares below one another, of blocks below one another."""

    def _turn(self, source: Value, result: Value, columns: tuple[Value, Value], rows: tuple[Value, Value]) -> None:
        k, numbers = self._k, self._numbers
        top, bottom = rows
        with k.loop(top, bottom, numbers["square"]) as squares:
            edge = k.smin(k.add(squares.index, numbers["square"]), bottom)
            with k.loop(*columns, self._block.lanes) as across:
                column = self._first(across.index, "columns")
                column_of_source = k.gep(source, column, self._width)
                row_of_result = k.gep(result, k.mul(column, numbers["result_column"]))
                with k.loop(squares.index, edge, self._block.lanes) as down:
                    row = self._first(down.index, "rows")
                    place = k.gep(column_of_source, k.mul(row, numbers["source_row"]))
                    turned = self._turned(self._lines(place, numbers["source_row"]))
                    goals = self._lines(k.gep(row_of_result, row, self._width), numbers["result_column"])
                    for goal, line in zip(goals, turned, strict=True):
                        k.store(goal, line)


class _Pairs(_TurnEmitter):
    """Blocks of lines that are no constant distance apart: behind the last one of the inner dimension follows the
    first one of the next place in the outer dimension."""

    def _lines_of_pair(self, start: Value, number: Value, count: str, step: str, outer_step: str) -> list[Value]:
        """The addresses of a block's lines, from that of such a number: so many are numbered by the inner dimension,
        and lines are so far apart along that one and the outer one."""
        k, inner_step = self._k, self._numbers[step]
        outer, inner = self._divided(number, count)
        lines = [k.gep(start, k.add(k.mul(outer, self._numbers[outer_step]), k.mul(inner, inner_step)))]
        last = k.sub(self._numbers[count], 1)
        beyond = k.sub(self._numbers[outer_step], k.mul(last, inner_step))
        for _ in range(self._block.lanes - 1):
            is_last = k.compare("eq", inner, last)
            lines.append(k.gep(lines[-1], k.select(is_last, beyond, inner_step)))
            inner = k.select(is_last, 0, k.add(inner, 1))
        return lines


class _OfPairs(_Pairs):
    """Columns that two dimensions number: several squares below one another have the same ones, whose lines in the
    operand a first-level cache still holds for the columns beside them."""

    def _turn(self, source: Value, result: Value, columns: tuple[Value, Value], rows: tuple[Value, Value]) -> None:
        (top, bottom), k, numbers = rows, self._k, self._numbers
        height = k.mul(numbers["square"], _SQUARES_OF_PAIRS)
        with k.loop(top, bottom, height) as squares, k.loop(*columns, self._block.lanes) as across:
            edge = k.smin(k.add(squares.index, height), bottom)
            column = self._first(across.index, "columns")
            column_of_source = k.gep(source, column, self._width)
            goals = self._lines_of_pair(result, column, "inner_columns", "result_column", "outer_column")
            with k.loop(squares.index, edge, self._block.lanes) as down:
                row = self._first(down.index, "rows")
                place = k.gep(column_of_source, k.mul(row, numbers["source_row"]))
                turned = self._turned(self._lines(place, numbers["source_row"]))
                for goal, line in zip(goals, turned, strict=True):
                    k.store(k.gep(goal, row, self._width), line)


class _ToPairs(_Pairs):
    """Rows that two dimensions number: blocks beside one another have the same ones."""

    def _turn(self, source: Value, result: Value, columns: tuple[Value, Value], rows: tuple[Value, Value]) -> None:
        k, numbers = self._k, self._numbers
        with k.loop(*rows, self._block.lanes) as down:
            row = self._first(down.index, "rows")
            lines = self._lines_of_pair(source, row, "inner_rows", "source_row", "outer_row")
            with k.loop(*columns, self._block.lanes) as across:
                column = self._first(across.index, "columns")
                turned = self._turned([k.gep(line, column, self._width) for line in lines])
                goal = k.gep(k.gep(result, k.mul(column, numbers["result_column"])), row, self._width)
                for place, line in zip(self._lines(goal, numbers["result_column"]), turned, strict=True):
                    k.store(place, line)


class _PastCaches(_TurnEmitter):
    """Squares beside one another, each of blocks below one another; results that lie as they should bypass the caches.

    While a square is turned, the rows of the next one are fetched, all lines of a row together. So memory is read and
    written in pieces of several lines. By single ones, one core of a Zen 5 took twice as long for rows of 16 KB, and a
    third longer for others: lines as far apart as rows wait for the same part of memory."""

    def __init__(self, k: KernelBuilder, type: IRType, lanes: int) -> None:
        super().__init__(k, type, line_lanes(type.bytes))
        self._lanes = lanes

    def emit(self) -> None:
        super().emit()
        self._k.fence()

    def _columns(self, source: Value, strip: Value) -> tuple[Value, Value]:
        """Strips begin where cache lines of the source do, where that is worth a block more in each row: a line that
        two blocks read is fetched twice, as the rows of both are more than a set of a cache holds."""
        k, numbers = self._k, self._numbers
        is_wide = k.compare("ge", numbers["columns"], self._block.lanes * _LEAST_LINES)
        beyond = k.select(is_wide, k.udiv(k.and_(k.address(source), CACHE_LINE - 1), self._width), 0)
        left = k.sub(k.mul(strip, numbers["square"]), beyond)
        is_last = k.compare("eq", k.add(strip, 1), numbers["strips"])
        return left, k.select(is_last, numbers["columns"], k.add(left, numbers["square"]))

    def _turn(self, source: Value, result: Value, columns: tuple[Value, Value], rows: tuple[Value, Value]) -> None:
        k, numbers, side = self._k, self._numbers, self._block.lanes * _LINES_OF_SQUARE
        (left, right), (top, _) = columns, rows
        misplaced = k.compare("ne", k.and_(k.address(result), CACHE_LINE - 1), 0)
        below = self._place(source, k.add(top, side), left)
        with k.loop(left, right, side) as squares:
            first, edge = squares.index, k.add(squares.index, side)
            beside = self._place(source, top, edge)
            following = k.select(k.compare("lt", edge, right), beside, below)
            with k.loop(first, k.smin(edge, right), self._block.lanes) as across:
                column = k.smax(self._first(across.index, "columns"), 0)
                goal = k.gep(k.gep(result, k.mul(column, numbers["result_column"])), top, self._width)
                strip = _Strip(self._place(source, top, column), goal, k.sub(rows[1], top), misplaced)
                fetched = self._place(following, k.sub(across.index, first), k.const(I64, 0))
                if self._lanes == self._block.lanes:
                    self._turn_blocks(strip, fetched)
                else:
                    self._turn_together(strip, fetched)

    def _turn_blocks(self, strip: _Strip, fetched: Value) -> None:
        """Block by block, which registers hold."""
        k, numbers = self._k, self._numbers
        with k.loop(0, strip.rows, self._block.lanes) as down:
            self._fetch(fetched, down.index)
            place = k.gep(strip.source, k.mul(down.index, numbers["source_row"]))
            turned = self._turned(self._lines(place, numbers["source_row"]))
            goals = self._lines(k.gep(strip.result, down.index, self._width), numbers["result_column"])
            k.if_else(
                strip.misplaced,
                partial(self._store, goals, turned),
                partial(self._store, goals, turned, past_caches=True),
                likely=False,
            )

    def _turn_together(self, strip: _Strip, fetched: Value) -> None:
        """The same where registers hold less than a line in each row of a block: parts go to the stack, and rows of the
        result from there to memory, one after the other. Half lines past the caches would be written twice, and single
        lines, of rows a power of two apart, wait for the same part of memory (64 channels first: 1.8 times as long)."""
        k, numbers, lanes = self._k, self._numbers, self._lanes
        part = self._block.element.with_lanes(lanes)
        row_bytes = _LINES_OF_SQUARE * CACHE_LINE
        rows_of_result = k.alloca(self._block, self._block.lanes * _LINES_OF_SQUARE, align=CACHE_LINE)
        with k.loop(0, strip.rows, lanes) as down:
            self._fetch(fetched, down.index)
            place = k.gep(strip.source, k.mul(down.index, numbers["source_row"]))
            with k.loop(0, self._block.lanes, lanes) as across:
                lines = self._lines(k.gep(place, across.index, self._width), numbers["source_row"], lanes)
                start = k.gep(k.gep(rows_of_result, across.index, row_bytes), down.index, self._width)
                for number, line in enumerate(transposed(k, [k.load(line, part) for line in lines])):
                    k.store(k.gep(start, number * row_bytes), line)

        def store(*, past_caches: bool) -> None:
            with k.loop(0, self._block.lanes) as rows, k.loop(0, strip.rows, self._block.lanes) as lines:
                row = k.gep(rows_of_result, rows.index, row_bytes)
                line = k.load(k.gep(row, lines.index, self._width), self._block, align=CACHE_LINE)
                goal = k.gep(strip.result, k.mul(rows.index, numbers["result_column"]))
                self._store([k.gep(goal, lines.index, self._width)], [line], past_caches=past_caches)

        k.if_else(strip.misplaced, partial(store, past_caches=False), partial(store, past_caches=True), likely=False)

    def _place(self, source: Value, row: Value, column: Value) -> Value:
        k = self._k
        return k.gep(k.gep(source, k.mul(row, self._numbers["source_row"])), column, self._width)

    def _fetch(self, first: Value, row: Value) -> None:
        """Fetches as many rows of a square for each block as make the whole of it, if `row` is that of the block."""
        k, distance = self._k, self._numbers["source_row"]
        for number in range(self._lanes // _LINES_OF_SQUARE):
            place = k.gep(first, k.mul(k.add(k.udiv(row, _LINES_OF_SQUARE), number), distance))
            k.prefetch(place, _LINES_OF_SQUARE * CACHE_LINE, level=2)

    def _store(self, goals: Sequence[Value], lines: Sequence[Value], *, past_caches: bool = False) -> None:
        for goal, line in zip(goals, lines, strict=True):
            self._k.store(goal, line, align=CACHE_LINE if past_caches else None, nontemporal=past_caches)


_WAYS: Mapping[str, type[_TurnEmitter]] = {
    "": _Squares,
    "_past_caches": _PastCaches,
    "_of_pairs": _OfPairs,
    "_to_pairs": _ToPairs,
}
"""How functions do it, by the ends of their names."""

TURN_LIBRARIES = {
    f"turn_{width}": Library(f"turn_{width}", tuple(f"turn_{width}{way}" for way in _WAYS), partial(emit_turn, width))
    for width in _TYPES
}
"""By name."""
