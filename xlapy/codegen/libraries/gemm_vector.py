"""Products of a matrix with a few vectors, where the matrix is read once, as it lies, and its layout decides how.

A row of B contiguous: `stream` goes along several rows of B at a time and adds multiples of them to C, so that memory
is read in long runs. It takes the parameters of a tile, for any number of columns, and `depth` counts elements. There
is one for each small number of rows.

A column of B contiguous: `dots` multiplies columns of B with rows of A, both read along K by whole vectors, and sums
the lanes at the end.

    dots(depth, a, a_row, b, b_column, c, c_row, c_column, accumulate, rows, columns)

is made for some numbers of rows and columns; of fewer columns, the last one is computed as often as it takes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I1, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_tile import (
    PRODUCT_PARAMETERS,
    TileShape,
    first_lanes,
    has_short_vectors,
    store_first,
)
from xlapy.codegen.libraries.gemm_types import GemmType
from xlapy.codegen.register_transpose import lane_sums
from xlapy.codegen.target import Target
from xlapy.support.records import Record

NEAR, FAR, FARTHEST = range(3)
"""Where B comes from: a cache that holds all of it for sure, one that may, or memory."""

STREAM_PARAMETERS = [*PRODUCT_PARAMETERS, ("distance", I64)]
"""`distance` is where B comes from: unless it is `NEAR`, rows of it may be fetched ahead. From a cache they are there
in time, and it takes a fifth longer to ask for them."""

_MANY_REGISTERS = 32
"""With so many, eight rows of C can have two factors each."""

_FEW_ROWS = 2
"""Of A. With so few, products only wait for memory."""

_MOST_ROWS_OF_B = 4
"""Read side by side. More of them, a power of two apart, push each other and what is fetched for later out of the
nearest cache; so the latter goes to the next one (1 by 1024 by 4096 takes 0.6 of the time so)."""

_LEAST_LINES = 8
"""Of a row of B, so that it pays to begin with the first of them: the columns in front are one vector more."""

_FARTHEST_ROWS_OF_B = 6
"""Read side by side from memory for a single row of C: with more on their way a core waits less (1 by 4096 by 4096 on a
Zen 4: 0.9 of the time of four). Not where the processor foresees them."""

_LESSER_L1_BYTES = 1 << 15
"""Processors with a larger nearest cache also foresee four rows by themselves: to ask for those of a single row of C
takes longer (1 by 4096 by 4096 on a Zen 5: 0.79 of the time without on one core, 0.85 on two). Not those that are
widened, whose lines are read more slowly (bf16 takes 1.1 of the time)."""

_FORESEEN_ROWS_OF_B = 4
"""Read side by side where vectors are shorter: the processor foresees them, and asking takes longer. Twice as many for
a single row of C (Zen 3, one core: 1 by 4096 by 1024 0.8 of the time of two with asking, 2 by 4096 by 1024 0.65, 4 by
1024 by 1024 0.7). Not for several rows where those of B are widened, or complex, which takes registers (bf16, 4 by 1024
by 1024: 1.2, c64, 2 by 1024 by 1024: 1.2)."""

DOT_ROWS = 8
DOT_ROWS_ALONG_LINES = 16
DOT_COLUMNS = 4
_DOT_COLUMNS_OF_ONE_ROW = 8
DOT_PARAMETERS = [
    ("depth", I64),
    ("a", PTR),
    ("a_row", I64),
    ("b", PTR),
    ("b_column", I64),
    ("c", PTR),
    ("c_row", I64),
    ("c_column", I64),
    ("accumulate", I64),
    ("rows", I64),
    ("columns", I64),
]
SHARING_PARAMETERS = [*DOT_PARAMETERS, ("later", PTR), ("share", I64)]
"""Of those that fetch a share of the columns of B that come later: the first one's place, and how many."""


def dot_heights(kind: GemmType, shape: TileShape) -> tuple[int, ...]:
    """Rows that `dots` is made for, the most last, which all go through it that there are; a complex product takes two
    accumulators. Where registers are few, two rows: accumulators and operands have room in them, and the other matrix
    comes from the nearest cache for the next two (Zen 3, 8 by 256 by 512: 0.65 of the time of four together, 8 by 4096
    by 4096 0.82, bf16, 4 by 1024 by 1024 0.68); of complex ones a single row."""
    most = (4 if shape.registers >= _MANY_REGISTERS else 2) // kind.parts
    return tuple(range(1, most + 1))


def dot_rows(kind: GemmType, shape: TileShape) -> int:
    """The most rows (or columns) of a product that is computed as so many dot products along K. Else the other side
    would be turned while it is packed; with many registers, and vectors as long as lines, that pays later (Sapphire
    Rapids, by 4096 by 1024, one core: 12 rows take 0.46 of the time of that, 16 0.43 to 0.52, 24 0.85 to 1.1; 16 by 768
    by 768 0.84, by 512 by 512 0.66)."""
    return DOT_ROWS_ALONG_LINES if has_sharing_dots(kind, shape) else DOT_ROWS


def has_sharing_dots(kind: GemmType, shape: TileShape) -> bool:
    """Whether several passes over rows of A, with the same columns of B, go chunk by chunk along K, and share what
    there is to fetch: with many registers, vectors as long as lines, and sums that C can hold meanwhile."""
    is_wide = shape.registers >= _MANY_REGISTERS and not has_short_vectors(kind, shape.lanes)
    return is_wide and kind.parts == 1 and kind.accumulates_in_result


def dot_columns(kind: GemmType, shape: TileShape, rows: int) -> int:
    """Columns of a product of `rows` rows in all that `dots` is made for. Twice as many for a single row where vectors
    are as long as lines, and registers many: to add up the lanes of the sums takes as long as 12 vectors of all columns
    (256 by 256, f32, in a near cache: 0.88 of the time of four). More shorter ones would push each other out of it."""
    has_lines = shape.lanes * kind.pair * kind.element.bytes == CACHE_LINE
    many = has_lines and shape.registers >= _MANY_REGISTERS and kind.parts == 1
    return _DOT_COLUMNS_OF_ONE_ROW if rows == 1 and many else DOT_COLUMNS


def reads_lines(target: Target, kind: GemmType, shape: TileShape) -> bool:
    """Whether vectors are as long as lines, and lanes of sums change places in one go."""
    has_lines = shape.lanes * kind.pair * kind.element.bytes == CACHE_LINE and shape.masks_are_free
    return has_lines and target.has_permute and kind.accumulator.bits >= 32


def stream_heights(kind: GemmType, shape: TileShape) -> range:
    """Rows of C that `stream` is made for: more if tiles could read B only once it is packed, unless it takes longer to
    add to eight rows than memory to send the next ones, as with short vectors."""
    has_room = shape.registers >= _MANY_REGISTERS and kind.parts == 1
    has_many = has_room and not (has_short_vectors(kind, shape.lanes) or kind.is_packed_in_memory)
    return range(1, (8 if has_many else 4) + 1)


def stream_name(kind: GemmType, rows: int) -> str:
    return f"gemm_{kind.name}_stream_{rows}"


def dots_name(kind: GemmType, rows: int, columns: int, *, shares: bool = False) -> str:
    return f"gemm_{kind.name}_{'sharing_' if shares else ''}dots_{rows}x{columns}"


def emit_stream(module: Module, target: Target, kind: GemmType, shape: TileShape, rows: int) -> None:
    attributes = f"nounwind {target.function_attributes}".rstrip()
    noalias = {"a": "noalias", "b": "noalias", "c": "noalias"}
    name = stream_name(kind, rows)
    with KernelBuilder(module, name, STREAM_PARAMETERS, None, attributes=attributes, parameter_attributes=noalias) as k:
        _StreamEmitter(k, target, kind, shape, rows).emit()


def emit_dots(
    module: Module,
    target: Target,
    kind: GemmType,
    shape: TileShape,
    rows: int,
    columns: int,
    *,
    shares: bool = False,
) -> None:
    """The products of so many rows of A and columns of B, all of them contiguous along K. If it `shares`, it fetches
    only some of the columns that come later, as others multiply the same columns."""
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = SHARING_PARAMETERS if shares else DOT_PARAMETERS
    name = dots_name(kind, rows, columns, shares=shares)
    with KernelBuilder(module, name, parameters, None, attributes=attributes) as k:
        _DotsEmitter(k, target, kind, shape, rows, columns, shares=shares).emit()


class _PartialVectors:
    """Access to the first lanes of a vector only: by masks where they are cheap, else by way of the stack."""

    def __init__(self, k: KernelBuilder, target: Target, shape: TileShape) -> None:
        self._k = k
        self._target = target
        self._shape = shape

    @property
    def masks_are_free(self) -> bool:
        return self._shape.masks_are_free

    def load(self, place: Value, type: IRType, count: Value | None) -> Value:
        """The first `count` lanes, or all, with zeros behind them."""
        k = self._k
        if count is None:
            return k.load(place, type)
        if self._has_masks(type):
            return k.masked_load(place, type, self._mask(type, count))
        room = k.alloca(type)
        k.store(room, k.const(type, 0))
        k.memcpy(room, place, k.mul(count, type.bytes))
        return k.load(room, type)

    def store(self, place: Value, value: Value, count: Value | None) -> None:
        k = self._k
        if count is None:
            k.store(place, value)
        elif self.masks_are_free:
            k.masked_store(place, value, self._mask(value.type, count))
        else:
            store_first(k, [(place, value)], count)

    def _has_masks(self, type: IRType) -> bool:
        return self._target.is_avx512 or (self._shape.has_masks and type.bits >= 32)

    def _mask(self, type: IRType, count: Value) -> Value:
        return first_lanes(self._k, type.lanes, count)


class _Group(Record):
    """How many (packed) rows of B are read side by side, from which distance on, and from where the next are asked for
    early."""

    rows: int
    distance: int = NEAR
    fetched_from: int | None = None


class _StreamEmitter:
    def __init__(self, k: KernelBuilder, target: Target, kind: GemmType, shape: TileShape, rows: int) -> None:
        self._k = k
        self._target = target
        self._kind = kind
        self._vector: IRType = kind.accumulator.with_lanes(shape.lanes)
        self._partial = _PartialVectors(k, target, shape)
        self._vectors_of_line = max(1, CACHE_LINE // (shape.lanes * kind.element.bytes))
        self._rows = rows
        self._registers = shape.registers
        self._begin = k.const(I64, 0)
        self._groups = self._groups_of_steps(kind, target, shape)

    def _groups_of_steps(self, kind: GemmType, target: Target, shape: TileShape) -> list[_Group]:
        """(Packed) rows of B that are read side by side, the most first. From afar two at least, if there is room for
        what they are multiplied with: sums of four rows come and go half as often (4 by 1024 by 1024, AVX2: 0.5 of the
        time). From memory there are more, for it takes no longer then to add them up."""
        reals = self._rows * kind.parts
        if has_short_vectors(kind, shape.lanes) and not target.asks_ahead:
            are_read = reals <= 2 or (kind.is_packed_in_memory and kind.parts == 1)
            many = [_Group(_FORESEEN_ROWS_OF_B * (2 if reals == 1 else 1))] if are_read else []
            return [*many, _Group(2, NEAR, None if many else FAR), _Group(1)]
        has_two = shape.registers >= 2 * reals + reals + 2  # factors, sums, and the rows of B themselves
        usual = min(max(1 + has_two, shape.registers // 4 // reals), _MOST_ROWS_OF_B)
        foresees = reals == 1 and kind.is_packed_in_memory and target.l1_bytes > _LESSER_L1_BYTES
        most_farthest = _FARTHEST_ROWS_OF_B if reals == 1 and not foresees else _MOST_ROWS_OF_B
        farthest = max(usual, min(shape.registers // 2 // reals, most_farthest))
        from_memory = _Group(farthest, FARTHEST, None if foresees else FARTHEST)
        return [from_memory, _Group(usual, NEAR, FAR), _Group(1, NEAR, FAR)]

    def emit(self) -> None:
        k, pair = self._k, self._kind.pair
        with k.if_(k.compare("eq", k.parameters["accumulate"], 0)):
            for row in range(self._rows):
                k.memset(self._c_row(row), 0, k.mul(k.parameters["columns"], self._vector.bytes))
        first = k.const(I64, 0)
        self._begin = self._first_column()
        for group in self._groups:
            first = self._add_group(first, group)
        if pair == 2:
            with k.if_(k.compare("lt", first, k.parameters["depth"])):
                self._add_rows([first], k.const(I1, 0), is_half=True)

    def _first_column(self) -> Value:
        """The column from which on vectors are whole: where a line of the caches begins, if vectors are as long, lines
        begin in the same columns of all rows of B, and there are many. In a near cache half of the time goes into
        reading from two lines at once (512 by 512, f32, 16 bytes behind a line: 14 us, not 8)."""
        k, kind, columns = self._k, self._kind, self._k.parameters["columns"]
        width, lanes = kind.element.bytes, self._vector.lanes
        if not self._partial.masks_are_free or width * lanes != CACHE_LINE or kind.parts > 1:
            return k.const(I64, 0)
        before = k.and_(k.neg(k.address(k.parameters["b"])), CACHE_LINE - 1)
        are_alike = k.compare("eq", k.and_(k.parameters["b_step"], CACHE_LINE - 1), 0)
        pays = k.and_(are_alike, k.compare("ge", columns, _LEAST_LINES * lanes))
        return k.select(pays, k.udiv(before, width), 0)

    def _add_group(self, first: Value, group: _Group) -> Value:
        """Adds multiples of the rows of B from `first` on that make whole groups; the first row that is left."""
        k, pair, distance = self._k, self._kind.pair, self._k.parameters["distance"]
        rows = group.rows * pair
        whole = k.mul(k.udiv(k.sub(k.parameters["depth"], first), rows), rows)
        if group.distance != NEAR:
            whole = k.select(k.compare("ge", distance, group.distance), whole, 0)
        end = k.add(first, whole)
        fetches = k.const(I1, 0) if group.fetched_from is None else k.compare("ge", distance, group.fetched_from)
        with k.loop(first, end, rows) as step:
            self._add_rows([k.add(step.index, index * pair) for index in range(group.rows)], fetches)
        return end

    def _add_rows(self, steps: Sequence[Value], fetches: Value, *, is_half: bool = False) -> None:
        """Adds multiples of the (pairs of) rows `steps` of B to the rows of C; half a pair lacks its second row."""
        k, lanes, columns = self._k, self._vector.lanes, self._k.parameters["columns"]
        factors = [[self._factors(row, step, is_half) for step in steps] for row in range(self._rows)]
        begin = self._begin
        whole = k.add(begin, k.and_(k.sub(columns, begin), -lanes))
        lines = k.add(begin, k.and_(k.sub(columns, begin), -lanes * self._vectors_of_line))
        are_in_registers = self._rows * len(steps) * self._kind.parts <= self._registers // 2
        together = 1 if are_in_registers else self._vectors_of_line

        def vectors(*, fetches: bool) -> None:
            with k.loop(begin, lines, lanes * self._vectors_of_line) as line:
                if fetches:
                    self._fetch_later(steps, line.index)
                columns_of_line = [k.add(line.index, number * lanes) for number in range(self._vectors_of_line)]
                for first in range(0, self._vectors_of_line, together):
                    self._add_vectors(factors, steps, columns_of_line[first : first + together], None, is_half)
            with k.loop(lines, whole, lanes) as column:
                self._add_vectors(factors, steps, [column.index], None, is_half)

        with k.if_(k.compare("gt", begin, 0)):
            self._add_vectors(factors, steps, [k.const(I64, 0)], begin, is_half)
        k.if_else(fetches, functools.partial(vectors, fetches=True), functools.partial(vectors, fetches=False))
        with k.if_(k.compare("lt", whole, columns)):
            self._add_vectors(factors, steps, [whole], k.sub(columns, whole), is_half)

    def _fetch_later(self, steps: Sequence[Value], column: Value) -> None:
        """Fetches a vector of each of the rows of B that come after these."""
        k, kind = self._k, self._kind
        for step in steps:
            later = k.mul(k.parameters["b_step"], k.add(step, len(steps) * kind.pair))
            place = k.gep(k.gep(k.parameters["b"], later), column, kind.element.bytes)
            k.prefetch(place, CACHE_LINE, level=2)

    def _factors(self, row: int, step: Value, is_half: bool) -> list[Value]:
        """What to multiply the pieces of a row of B with: one vector, or two for a complex element of A."""
        k, kind, lanes = self._k, self._kind, self._vector.lanes
        place = k.gep(k.parameters["a"], k.mul(k.parameters["a_row"], row))
        place = k.gep(place, k.mul(k.parameters["a_step"], step))
        first = k.load(place, kind.element)
        if kind.pair == 2:
            zero = k.const(kind.element, 0)
            second = zero if is_half else k.load(k.gep(place, k.parameters["a_step"]), kind.element)
            return [k.splat(kind.widen_pairs(k, first, second), lanes)]
        real = k.splat(kind.widen(k, first), lanes)
        if kind.parts == 1:
            return [real]
        imaginary = k.splat(k.load(k.gep(place, kind.element.bytes), kind.element), lanes)
        signs = k.const_vector(self._vector, [-1.0, 1.0] * (lanes // 2))
        return [real, k.mul(imaginary, signs)]

    def _pieces(self, step: Value, column: Value, count: Value | None, is_half: bool) -> list[Value]:
        """A vector of a row of B, and, if complex, the same with re and im exchanged."""
        k, kind = self._k, self._kind
        raw = kind.element.with_lanes(self._vector.lanes)
        place = k.gep(k.parameters["b"], k.mul(k.parameters["b_step"], step))
        place = k.gep(place, column, kind.element.bytes)
        first = self._partial.load(place, raw, count)
        if kind.pair == 2:
            next_place = k.gep(place, k.parameters["b_step"])
            second = k.const(raw, 0) if is_half else self._partial.load(next_place, raw, count)
            return [kind.widen_pairs(k, first, second)]
        if kind.parts == 1:
            return [kind.widen(k, first)]
        return [first, _exchanged(k, first)]

    def _add_vectors(
        self,
        factors: list[list[list[Value]]],
        steps: Sequence[Value],
        columns: Sequence[Value],
        count: Value | None,
        is_half: bool,
    ) -> None:
        """Some vectors of each row of C, row by row. Where registers do not suffice, factors come from the stack, once
        for all of these."""
        k = self._k
        pieces = [[self._pieces(step, column, count, is_half) for step in steps] for column in columns]
        for row, of_row in enumerate(factors):
            places = [k.gep(self._c_row(row), column, self._vector.bytes) for column in columns]
            totals = [self._partial.load(place, self._vector, count) for place in places]
            sums = [self._sum(of_row, *of_column) for of_column in zip(pieces, totals, strict=True)]
            for place, total in zip(places, sums, strict=True):
                self._partial.store(place, total, count)

    def _sum(self, factors: list[list[Value]], pieces: list[list[Value]], total: Value) -> Value:
        for of_step, of_row_of_b in zip(factors, pieces, strict=True):
            for factor, piece in zip(of_step, of_row_of_b, strict=True):
                total = self._kind.multiply_add(self._k, self._target, factor, piece, total)
        return total

    def _c_row(self, row: int) -> Value:
        return self._k.gep(self._k.parameters["c"], self._k.mul(self._k.parameters["c_row"], row))


class _DotsEmitter:
    def __init__(
        self,
        k: KernelBuilder,
        target: Target,
        kind: GemmType,
        shape: TileShape,
        rows: int,
        columns: int,
        *,
        shares: bool,
    ) -> None:
        self._k = k
        self._target = target
        self._kind = kind
        self._rows = _numbers(k, "rows", rows)
        self._columns = _numbers(k, "columns", columns)
        self._vector: IRType = kind.accumulator.with_lanes(shape.lanes)
        self._raw = kind.element.with_lanes(shape.lanes * kind.pair)
        self._partial = _PartialVectors(k, target, shape)
        self._reads_lines = reads_lines(target, kind, shape)
        self._shares = shares

    def emit(self) -> None:
        k, kind = self._k, self._kind
        reals = k.mul(k.parameters["depth"], kind.parts)
        zeros = [k.const(self._vector, 0)] * (len(self._rows) * len(self._columns) * kind.parts)
        if not self._reads_lines:
            self._store(self._all_products(k.const(I64, 0), reals, zeros))
            return
        before = self._before_first_line(reals)
        begins_off = k.compare("gt", before, 0)
        first = k.if_else(
            begins_off,
            lambda: self._turned(self._products(k.const(I64, 0), zeros, before), before),
            lambda: zeros,
        )
        sums = self._all_products(before, reals, first)
        self._store(k.if_else(begins_off, lambda: self._turned(sums, k.neg(before)), lambda: sums))

    def _before_first_line(self, reals: Value) -> Value:
        """How many numbers all columns of B have in front of a line of the caches: vectors are whole from there on, if
        lines begin at the same places of all columns, and there are many. In a near cache a third of the time goes into
        reading from two lines at once (512 by 512, f32, 16 bytes behind a line: 14 us, not 9)."""
        k, kind, width = self._k, self._kind, self._raw.bytes
        before = k.and_(k.neg(k.address(k.parameters["b"])), CACHE_LINE - 1)
        broken = k.and_(before, width * kind.pair * kind.parts - 1)
        are_alike = k.compare("eq", k.or_(self._lines_apart(), broken), 0)
        least = _LEAST_LINES * (1 if len(self._rows) <= _FEW_ROWS else 2)  # there are more sums to turn
        are_many = k.compare("ge", reals, least * self._raw.lanes)
        pays = k.and_(are_alike, are_many)
        return k.select(pays, k.udiv(before, width), 0)

    def _turned(self, sums: Sequence[Value], numbers: Value) -> list[Value]:
        """The sums with each lane where the one so many numbers further on was, around the end. So those of numbers
        in front of a line go on as if they stood at the end of one; and are added up, at the end, as those of vectors
        that begin with the column: in the same order wherever that lies."""
        k, lanes, integers = self._k, self._vector.lanes, self._vector.element.integer()
        distance = k.udiv(k.and_(numbers, self._raw.lanes - 1), self._kind.pair)
        first = distance if integers == I64 else k.trunc(distance, integers)
        places = k.and_(k.add(k.splat(first, lanes), k.lane_numbers(integers.with_lanes(lanes))), lanes - 1)
        return [k.picked_from([total], places) for total in sums]

    def _all_products(self, begin: Value, end: Value, sums: Sequence[Value]) -> list[Value]:
        """The sums with all vectors from `begin` on multiplied and added."""
        k, lanes = self._k, self._raw.lanes
        whole = k.add(begin, k.and_(k.sub(end, begin), -lanes))

        def vectors(*, fetches: bool) -> list[Value]:
            with k.loop(begin, whole, lanes, carry=sums) as loop:
                if fetches:
                    self._fetch_later(loop.index)
                loop.next = self._products(loop.index, loop.values, None)
            return loop.results

        of_whole = k.if_else(
            self._asks_ahead(), functools.partial(vectors, fetches=True), functools.partial(vectors, fetches=False)
        )
        return k.if_else(
            k.compare("lt", whole, end),
            lambda: self._products(whole, of_whole, k.sub(end, whole)),
            lambda: of_whole,
        )

    def _asks_ahead(self) -> Value:
        """Whether to ask for what comes next of B. Not for a single row by whole lines: a near cache sends these as
        fast as they are loaded, and memory does not mind (512 by 512, f32: 0.85 of the time, 4096 by 2048 0.99)."""
        k, is_single = self._k, len(self._rows) == 1
        if not (self._target.asks_ahead or len(self._rows) > _FEW_ROWS):
            return k.const(I1, 0)
        if is_single and self._reads_lines:
            return k.compare("ne", self._lines_apart(), 0)
        return k.const(I1, 1)

    def _lines_apart(self) -> Value:
        """How far the columns of B are from beginning at the same place of a line: 0 if they do."""
        return self._k.and_(self._k.parameters["b_column"], CACHE_LINE - 1)

    def _fetch_later(self, position: Value) -> None:
        """Fetches a vector of each of the columns that come after these, or, where that is much, from further on: what
        is nearer than that is mostly in these columns (360 by 360, f32: 0.9 of the time)."""
        k = self._k
        if self._shares:
            for number in _numbers(k, "share", len(self._columns)):
                line = k.gep(k.parameters["later"], k.mul(k.parameters["b_column"], number))
                k.prefetch(k.gep(line, position, self._raw.bytes), self._raw.lanes * self._raw.bytes)
            return
        group = k.mul(k.parameters["b_column"], len(self._columns))
        ahead = k.select(k.compare("le", group, self._target.l1_bytes // 2), group, FETCHED_AHEAD)
        for column in self._columns:
            line = k.gep(k.parameters["b"], k.mul(k.parameters["b_column"], column))
            place = k.gep(k.gep(line, position, self._raw.bytes), ahead)
            k.prefetch(place, self._raw.lanes * self._raw.bytes)

    def _products(self, position: Value, sums: Sequence[Value], count: Value | None) -> list[Value]:
        """The sums with one vector of each row and column multiplied and added."""
        k = self._k
        rows = [self._load("a", "a_row", row, position, count) for row in self._rows]
        columns = [self._load("b", "b_column", column, position, count) for column in self._columns]
        factors = [(a, b) for a in rows for column in columns for b in self._arranged(column)]
        pairs = zip(factors, sums, strict=True)
        return [self._kind.multiply_add(k, self._target, a, b, total) for (a, b), total in pairs]

    def _arranged(self, column: Value) -> list[Value]:
        """A vector of a column, and, if complex, the same with re and im exchanged."""
        return [column] if self._kind.parts == 1 else [column, _exchanged(self._k, column)]

    def _load(self, matrix: str, stride: str, index: Value, position: Value, count: Value | None) -> Value:
        k, kind = self._k, self._kind
        line = k.gep(k.parameters[matrix], k.mul(k.parameters[stride], index))
        place = k.gep(line, position, kind.element.bytes)
        raw = self._partial.load(place, self._raw, count)
        return kind.widen_adjacent(k, raw) if kind.pair == 2 else kind.widen(k, raw)

    def _store(self, sums: Sequence[Value]) -> None:
        """Writes the elements of C, all of them after any is read: some may be the same."""
        k, kind = self._k, self._kind
        places = []
        for row, column in itertools.product(self._rows, self._columns):
            place = k.gep(k.parameters["c"], k.mul(k.parameters["c_row"], row))
            place = k.gep(place, k.mul(k.parameters["c_column"], column))
            places += [k.gep(place, part * kind.result.bytes) for part in range(kind.parts)]
        totals = self._totals(sums)

        def sum_with_old() -> list[Value]:
            old = [k.load(place, kind.result) for place in places]
            if not kind.accumulates_in_result:
                old = [kind.widen(k, number) for number in old]
            return [k.add(number, total) for number, total in zip(old, totals, strict=True)]

        totals = k.if_else(k.compare("ne", k.parameters["accumulate"], 0), sum_with_old, lambda: totals)
        for place, total in zip(places, totals, strict=True):
            k.store(place, total if kind.accumulates_in_result else kind.narrow(k, total))

    def _totals(self, sums: Sequence[Value]) -> list[Value]:
        """The sums over the lanes; if complex, of re re - im im, and of re im + im re, of each element."""
        k = self._k
        if self._kind.parts > 1:
            signs = k.const_vector(self._vector, [1.0, -1.0] * (self._vector.lanes // 2))
            sums = [total if number % 2 else k.mul(total, signs) for number, total in enumerate(sums)]
        pieces = lane_sums(k, sums)
        size = pieces[0].type.lanes
        return [k.extract(pieces[number // size], number % size) for number in range(len(sums))]


def _numbers(k: KernelBuilder, count: str, most: int) -> list[Value]:
    """The numbers from 0 to `most`, or the last one that there is."""
    last = k.sub(k.parameters[count], 1)
    return [k.smin(last, number) for number in range(most)]


def _exchanged(k: KernelBuilder, vector: Value) -> Value:
    """Each lane with its neighbour: (re, im) to (im, re)."""
    return k.shuffle(vector, None, [lane ^ 1 for lane in range(vector.type.lanes)])
