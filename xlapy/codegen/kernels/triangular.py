"""Triangular systems and Cholesky factors of blocks, in buffers on the stack.

Only one case is ever computed: a lower triangle, forward substitution. A matrix is seen through pitches, so the upper
triangle is the lower one seen from its last element, a transposed matrix has its pitches exchanged, and x a = b is
aT xT = bT. Buffers hold rows of lanes, real and imaginary parts apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xlapy.codegen.ir import I64, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.ir_types import QUIET_NAN_BITS
from xlapy.codegen.math.complex import Complex
from xlapy.codegen.math.complex import divide as complex_quotient
from xlapy.codegen.register_transpose import transposed
from xlapy.codegen.registers import Element, Pair, from_parts, parts_of
from xlapy.codegen.target import Target
from xlapy_runtime.records import Record

MOST_TILE_ROWS = 4
"""More would only make the triangle within a tile larger, in which each row waits for the one before."""


class Matrix(Record):
    """Elements in memory: `parts` is 2 for complex ones. Pitches count elements."""

    pointer: Value
    type: IRType
    parts: int
    row_pitch: Value
    column_pitch: Value

    def at(self, k: KernelBuilder, row: Operand, column: Operand) -> Value:
        position = k.add(k.mul(row, self.row_pitch), k.mul(column, self.column_pitch))
        return k.gep(self.pointer, position, self.parts * self.type.bytes)

    def load(self, k: KernelBuilder, row: Operand, column: Operand) -> Element:
        place = self.at(k, row, column)
        return from_parts([k.load(k.gep(place, part, self.type.bytes), self.type) for part in range(self.parts)])

    def store(self, k: KernelBuilder, row: Operand, column: Operand, element: Element) -> None:
        place = self.at(k, row, column)
        for number, part in enumerate(parts_of(element)):
            k.store(k.gep(place, number, self.type.bytes), part)

    def load_row(self, k: KernelBuilder, row: Operand, column: Operand, lanes: int) -> Element:
        """Neighbouring columns, which must be neighbours in memory."""
        place = self.at(k, row, column)
        whole = k.load(place, self.type.with_lanes(lanes * self.parts))
        if self.parts == 1:
            return whole
        return Pair(*(k.shuffle(whole, None, range(part, 2 * lanes, 2)) for part in range(2)))

    def store_row(self, k: KernelBuilder, row: Operand, column: Operand, element: Element) -> None:
        place = self.at(k, row, column)
        k.store(place, _joined(k, element.re, element.im) if isinstance(element, Pair) else element)

    def transposed(self) -> Matrix:
        return Matrix(self.pointer, self.type, self.parts, self.column_pitch, self.row_pitch)

    def moved(self, k: KernelBuilder, row: Operand, column: Operand) -> Matrix:
        """The matrix that begins at an element of this one."""
        return Matrix(self.at(k, row, column), self.type, self.parts, self.row_pitch, self.column_pitch)


def _joined(k: KernelBuilder, re: Value, im: Value) -> Value:
    """Real and imaginary parts in turn, as they lie in memory."""
    lanes = re.type.lanes
    if lanes == 1:
        return k.insert(k.splat(re, 2), im, 1)
    return k.shuffle(re, im, [lane + lanes * part for lane in range(lanes) for part in range(2)])


@dataclass(frozen=True, slots=True)
class Buffer:
    """Rows of `width` elements in the stack frame."""

    pointer: Value
    type: IRType
    parts: int
    width: int

    @classmethod
    def new(cls, k: KernelBuilder, type: IRType, parts: int, rows: int, width: int) -> Buffer:
        return cls(k.alloca(type, rows * parts * width, align=64), type, parts, width)

    def at(self, k: KernelBuilder, row: Operand, column: Operand, part: int) -> Value:
        start = k.add(k.mul(row, k.const(I64, self.parts * self.width)), column)
        return k.gep(self.pointer, k.add(start, part * self.width), self.type.bytes)

    def load(self, k: KernelBuilder, row: Operand, column: Operand, lanes: int = 1) -> Element:
        type = self.type.with_lanes(lanes)
        return from_parts([k.load(self.at(k, row, column, part), type) for part in range(self.parts)])

    def store(self, k: KernelBuilder, row: Operand, column: Operand, element: Element) -> None:
        for number, part in enumerate(parts_of(element)):
            k.store(self.at(k, row, column, number), part)


# -- elements ----------------------------------------------------------------------------------------------------------


def zero(k: KernelBuilder, type: IRType, parts: int, lanes: int) -> Element:
    return from_parts([k.const(type.with_lanes(lanes), 0.0)] * parts)


def conjugate(k: KernelBuilder, element: Element) -> Element:
    return Pair(element.re, k.neg(element.im)) if isinstance(element, Pair) else element


def negate(k: KernelBuilder, element: Element) -> Element:
    return from_parts([k.neg(part) for part in parts_of(element)])


def minus_product(k: KernelBuilder, total: Element, a: Element, b: Element) -> Element:
    """total - a b; one of the factors may have one lane."""
    if isinstance(total, Pair) and isinstance(a, Pair) and isinstance(b, Pair):
        minus_re, minus_im = k.neg(a.re), k.neg(a.im)
        re = k.muladd(a.im, b.im, k.muladd(minus_re, b.re, total.re))
        im = k.muladd(minus_im, b.re, k.muladd(minus_re, b.im, total.im))
        return Pair(re, im)
    assert isinstance(total, Value) and isinstance(a, Value) and isinstance(b, Value)
    return k.muladd(k.neg(a), b, total)


def quotient(k: KernelBuilder, a: Element, b: Element) -> Element:
    """a / b, where `b` may have one lane."""
    if isinstance(a, Pair) and isinstance(b, Pair):
        lanes = a.re.type.lanes
        result = complex_quotient(k, Complex(a.re, a.im), Complex(k.splat(b.re, lanes), k.splat(b.im, lanes)))
        return Pair(result.re, result.im)
    assert isinstance(a, Value) and isinstance(b, Value)
    return k.div(a, b)


def divided_by_real(k: KernelBuilder, a: Element, b: Value) -> Element:
    return from_parts([k.div(part, b) for part in parts_of(a)])


def real_part(element: Element) -> Value:
    return parts_of(element)[0]


def real_element(k: KernelBuilder, value: Value, parts: int) -> Element:
    """The real number as an element."""
    return value if parts == 1 else Pair(value, k.const(value.type, 0.0))


class Tile(Record):
    """What registers hold of a triangle: `rows` rows of some vectors of `lanes` lanes."""

    rows: int
    lanes: int


def solving_tile(width: int, lanes: int, parts: int, target: Target) -> Tile:
    """For right sides `width` at a time."""
    lanes = min(lanes, width)
    return Tile(_tile_rows(width // lanes, parts, target), lanes)


def factoring_tile(lanes: int, parts: int, target: Target) -> Tile:
    """Two vectors wide: in a vector for each row there would be too few sums to hide the latency of multiply-adds."""
    return Tile(_tile_rows(2, parts, target), 2 * lanes)


def _tile_rows(vectors: int, parts: int, target: Target) -> int:
    """As many as leave registers for what they are multiplied with."""
    sums, factor = vectors * parts, parts
    return max(1, min(MOST_TILE_ROWS, (target.vector_registers - sums - factor) // sums))


# -- solving -----------------------------------------------------------------------------------------------------------

Coefficient = Callable[[Value, Value], Element]
"""The element of the lower triangle at a row and a column."""


def substitute(
    k: KernelBuilder, coefficient: Coefficient, rows: Operand, x: Buffer, tile: Tile, *, unit_diagonal: bool
) -> None:
    """Turns the right sides in `x` into the solutions, a tile after the other; each lane is a system of its own."""
    _in_tiles(k, rows, tile, lambda numbers: _substitute_rows(k, coefficient, numbers, x, tile, unit_diagonal))


def _in_tiles(k: KernelBuilder, rows: Operand, tile: Tile, step: Callable[[list[Value]], None]) -> None:
    """Calls `step` with the numbers of all rows: as many at once as a tile has, and those left over one by one."""
    count = k.add(rows, k.const(I64, 0))
    whole = k.sub(count, k.urem(count, tile.rows))
    with k.loop(0, whole, tile.rows) as tiles:
        step([k.add(tiles.index, number) for number in range(tile.rows)])
    with k.loop(whole, count) as rest:
        step([rest.index])


def _substitute_rows(
    k: KernelBuilder, coefficient: Coefficient, rows: Sequence[Value], x: Buffer, tile: Tile, unit_diagonal: bool
) -> None:
    """The next rows: what all rows before contribute, then what they do to each other."""
    places = [k.const(I64, place) for place in range(0, x.width, tile.lanes)]
    totals = _without_known(k, coefficient, rows, x, places, tile.lanes)
    for number, row in enumerate(rows):
        for earlier in range(number):
            factor = coefficient(row, rows[earlier])
            totals[number] = [
                minus_product(k, total, factor, value)
                for total, value in zip(totals[number], totals[earlier], strict=True)
            ]
        if not unit_diagonal:
            divisor = coefficient(row, row)
            totals[number] = [quotient(k, total, divisor) for total in totals[number]]
        for place, total in zip(places, totals[number], strict=True):
            x.store(k, row, place, total)


def _without_known(
    k: KernelBuilder, coefficient: Coefficient, rows: Sequence[Value], x: Buffer, places: Sequence[Value], lanes: int
) -> list[list[Element]]:
    """Vectors of the next rows, without what the rows of `x` before them contribute: all sums stay in registers."""
    grid = [(row, place) for row in range(len(rows)) for place in range(len(places))]
    starts = [part for row, place in grid for part in parts_of(x.load(k, rows[row], places[place], lanes))]
    with k.loop(0, rows[0], carry=starts) as known:
        totals = _elements(known.values, x.parts)
        factors = [coefficient(row, known.index) for row in rows]
        values = [x.load(k, known.index, place, lanes) for place in places]
        left = [
            minus_product(k, total, factors[row], values[place])
            for total, (row, place) in zip(totals, grid, strict=True)
        ]
        known.next = [part for element in left for part in parts_of(element)]
    sums = _elements(known.results, x.parts)
    return [sums[first : first + len(places)] for first in range(0, len(sums), len(places))]


def _elements(values: list[Value], parts: int) -> list[Element]:
    return [from_parts(values[first : first + parts]) for first in range(0, len(values), parts)]


def load_columns(
    k: KernelBuilder,
    source: Matrix,
    rows: Operand,
    columns: Value,
    target: Buffer,
    tile: Tile,
    change: Change | None = None,
) -> None:
    """Fills a buffer with the first `columns` columns of a matrix, at most its width."""
    count = k.add(rows, k.const(I64, 0))
    change = change or _same

    def vectors() -> None:
        with k.loop(0, count) as loop:
            target.store(k, loop.index, 0, change(source.load_row(k, loop.index, 0, target.width)))

    def turned() -> None:
        with _square_blocks(k, count, target, tile) as (row, column):
            lines = [change(each.load_row(k, 0, 0, tile.lanes)) for each in _lines(k, source, row, column, tile)]
            for number, line in enumerate(_turned(k, lines)):
                target.store(k, k.add(row, number), column, line)

    def elements() -> None:
        if target.width > 1:
            with k.loop(0, count) as loop:
                target.store(k, loop.index, 0, zero(k, source.type, source.parts, target.width))

        def load(row: Value, column: Value) -> None:
            target.store(k, row, column, change(source.load(k, row, column)))

        _each_element(k, source, count, columns, load)

    _in_fastest_order(k, source, count, columns, target, tile, (vectors, turned, elements))


def store_columns(
    k: KernelBuilder,
    source: Buffer,
    rows: Operand,
    columns: Value,
    target: Matrix,
    tile: Tile,
    change: Change | None = None,
) -> None:
    """The inverse of `load_columns`."""
    count = k.add(rows, k.const(I64, 0))
    change = change or _same

    def vectors() -> None:
        with k.loop(0, count) as loop:
            target.store_row(k, loop.index, 0, change(source.load(k, loop.index, 0, source.width)))

    def turned() -> None:
        with _square_blocks(k, count, source, tile) as (row, column):
            block = [change(source.load(k, k.add(row, number), column, tile.lanes)) for number in range(tile.lanes)]
            for each, line in zip(_lines(k, target, row, column, tile), _turned(k, block), strict=True):
                each.store_row(k, 0, 0, line)

    def elements() -> None:
        def store(row: Value, column: Value) -> None:
            target.store(k, row, column, change(source.load(k, row, column)))

        _each_element(k, target, count, columns, store)

    _in_fastest_order(k, target, count, columns, source, tile, (vectors, turned, elements))


@contextlib.contextmanager
def _square_blocks(k: KernelBuilder, rows: Value, buffer: Buffer, tile: Tile) -> Iterator[tuple[Value, Value]]:
    """The row and the column at which blocks of as many rows as lanes begin: the last ones overlap those above."""
    with k.loop(0, rows, tile.lanes) as down, k.loop(0, buffer.width, tile.lanes) as across:
        yield k.smin(down.index, k.sub(rows, tile.lanes)), across.index


def _lines(k: KernelBuilder, matrix: Matrix, row: Value, column: Value, tile: Tile) -> list[Matrix]:
    """The columns of a block, each as the matrix whose first row it is."""
    return [matrix.moved(k, row, k.add(column, number)).transposed() for number in range(tile.lanes)]


def _turned(k: KernelBuilder, block: Sequence[Element]) -> list[Element]:
    """A square block by columns."""
    parts = zip(*(parts_of(line) for line in block), strict=True)
    return [from_parts(both) for both in zip(*(transposed(k, part) for part in parts), strict=True)]


def _in_fastest_order(
    k: KernelBuilder,
    matrix: Matrix,
    rows: Value,
    columns: Value,
    buffer: Buffer,
    tile: Tile,
    ways: tuple[Callable[[], None], Callable[[], None], Callable[[], None]],
) -> None:
    """Does the first of the ways that is possible: by rows, which the buffer has as the matrix; by square blocks, which
    are turned in registers, where columns of the matrix are neighbours in memory; by elements.

    One by one, elements take as long as what is computed from them (a factor of 256 rows: 1.25 times the time)."""
    vectors, turned, elements = ways
    is_whole = k.compare("eq", columns, buffer.width)
    has_rows = k.and_(is_whole, k.compare("eq", matrix.column_pitch, 1))
    has_lines = k.and_(is_whole, k.compare("eq", matrix.row_pitch, 1))
    has_lines = k.and_(has_lines, k.compare("ge", rows, tile.lanes))

    def not_by_rows() -> None:
        if tile.lanes == 1 or buffer.width % tile.lanes:
            elements()
        else:
            k.if_else(has_lines, turned, elements)

    k.if_else(has_rows, vectors, not_by_rows)


Change = Callable[[Element], Element]


def _same(element: Element) -> Element:
    return element


def _each_element(
    k: KernelBuilder, matrix: Matrix, rows: Value, columns: Value, step: Callable[[Value, Value], None]
) -> None:
    """Does `step` for all rows and columns, along the rows if neighbours in a row are neighbours in memory.

    Against the order in memory, rows of 4 KB put all that is read into one set of a cache: a Cholesky factor of 1024
    rows takes 2.8 times as long."""

    def along_rows() -> None:
        with k.loop(0, rows) as row, k.loop(0, columns) as column:
            step(row.index, column.index)

    def along_columns() -> None:
        with k.loop(0, columns) as column, k.loop(0, rows) as row:
            step(row.index, column.index)

    k.if_else(k.compare("eq", matrix.column_pitch, 1), along_rows, along_columns)


# -- factors -----------------------------------------------------------------------------------------------------------


def load_triangle(k: KernelBuilder, source: Matrix, rows: Operand, target: Buffer, tile: Tile) -> None:
    """The adjoint of the lower triangle of a matrix: an upper triangle, row by row.

    What else is in its vectors is zero: memory as it is found holds subnormal numbers, which take a hundred times as
    long."""
    count = k.add(rows, k.const(I64, 0))
    nothing = zero(k, target.type, target.parts, tile.lanes)
    with k.loop(0, count) as loop:
        with k.loop(k.and_(loop.index, -tile.lanes), count, tile.lanes) as vectors:
            target.store(k, loop.index, vectors.index, nothing)
        with k.loop(loop.index, count) as each:
            target.store(k, loop.index, each.index, conjugate(k, source.load(k, each.index, loop.index)))


def factor_upper(k: KernelBuilder, u: Buffer, rows: Operand, tile: Tile, failed: Value, before: Operand = 0) -> Value:
    """Replaces the upper triangle in `u` by the factor u with uH u = a; returns `failed`, or else the number of the
    first pivot that was not positive, counted from 1 behind `before` others, or else 0.

    What lies below the diagonal in the same vectors is overwritten."""
    count = k.add(rows, k.const(I64, 0))
    whole = k.sub(count, k.urem(count, tile.rows))
    with k.loop(0, whole, tile.rows, carry=[failed]) as tiles:
        numbers = [k.add(tiles.index, number) for number in range(tile.rows)]
        tiles.next = [_factor_rows(k, u, numbers, count, tile, tiles.values[0], before)]
    with k.loop(whole, count, carry=tiles.results) as rest:
        rest.next = [_factor_rows(k, u, [rest.index], count, tile, rest.values[0], before)]
    return rest.results[0]


def _factor_rows(
    k: KernelBuilder, u: Buffer, rows: Sequence[Value], count: Value, tile: Tile, failed: Value, before: Operand
) -> Value:
    """The next rows: what all rows before contribute, then what they do to each other."""
    lanes = tile.lanes
    first = k.and_(rows[0], -lanes)

    def coefficient(row: Value, known: Value) -> Element:
        return conjugate(k, u.load(k, known, row))

    with k.loop(first, count, lanes) as columns:
        totals = _without_known(k, coefficient, rows, u, [columns.index], lanes)
        for row, (total,) in zip(rows, totals, strict=True):
            u.store(k, row, columns.index, total)
    for number, row in enumerate(rows):
        pivot = real_part(u.load(k, row, row))
        root = k.sqrt(pivot)
        following = rows[number + 1 :]
        factors = [coefficient(later, row) for later in following]
        _finish_row(
            k, u, row, following, [divided_by_real(k, factor, root) for factor in factors], root, (first, count), lanes
        )
        is_fine = k.or_(k.compare("gt", pivot, 0.0), k.compare("ne", failed, 0))
        failed = k.select(is_fine, failed, k.add(k.add(row, before), 1))
    return failed


def _finish_row(
    k: KernelBuilder,
    u: Buffer,
    row: Value,
    following: Sequence[Value],
    factors: Sequence[Element],
    root: Value,
    columns: tuple[Value, Value],
    lanes: int,
) -> None:
    """Divides a row by the root of its pivot, and takes it, times their factors, from the rows that follow."""
    with k.loop(*columns, lanes) as loop:
        values = divided_by_real(k, u.load(k, row, loop.index, lanes), root)
        u.store(k, row, loop.index, values)
        for later, factor in zip(following, factors, strict=True):
            u.store(k, later, loop.index, minus_product(k, u.load(k, later, loop.index, lanes), factor, values))
    u.store(k, row, row, real_element(k, root, u.parts))


def store_triangle(k: KernelBuilder, source: Buffer, rows: Operand, target: Matrix) -> None:
    """The adjoint of an upper triangle, in the lower triangle of the target."""
    count = k.add(rows, k.const(I64, 0))
    with k.loop(0, count) as loop, k.loop(0, k.add(loop.index, 1)) as each:
        target.store(k, loop.index, each.index, conjugate(k, source.load(k, each.index, loop.index)))


def finish_factor(k: KernelBuilder, target: Matrix, rows: Operand, failed: Value) -> None:
    """Zeros above the diagonal; if a pivot failed, NaN with its number everywhere else."""
    count = k.add(rows, k.const(I64, 0))
    nothing = zero(k, target.type, target.parts, 1)

    def along_rows() -> None:
        with k.loop(0, count) as row, k.loop(k.add(row.index, 1), count) as column:
            target.store(k, row.index, column.index, nothing)

    def along_columns() -> None:
        with k.loop(1, count) as column, k.loop(0, column.index) as row:
            target.store(k, row.index, column.index, nothing)

    k.if_else(k.compare("eq", target.column_pitch, 1), along_rows, along_columns)
    with k.if_(k.compare("ne", failed, 0)):
        number = failed if target.type.bits == I64.bits else k.trunc(failed, target.type.integer())
        nan = real_element(k, _numbered_nan(k, target.type, number), target.parts)
        with k.loop(0, count) as loop, k.loop(0, k.add(loop.index, 1)) as each:
            target.store(k, loop.index, each.index, nan)


# -- small matrices, one in each lane ----------------------------------------------------------------------------------


def small_factor(k: KernelBuilder, a: Sequence[Sequence[Element]]) -> list[list[Element]]:
    """The lower factor of a lower triangle whose elements are known one by one."""
    size = len(a)
    factor: list[list[Element]] = [[] for _ in range(size)]
    are_positive: list[Value] = []
    for column in range(size):
        rest = [a[row][column] for row in range(column, size)]
        for known in range(column):
            own = conjugate(k, factor[column][known])
            rest = [minus_product(k, rest[n], factor[column + n][known], own) for n in range(size - column)]
        pivot = real_part(rest[0])
        root = k.sqrt(pivot)
        are_positive.append(k.compare("gt", pivot, 0.0))
        factor[column].append(real_element(k, root, len(parts_of(rest[0]))))
        for n in range(1, size - column):
            factor[column + n].append(divided_by_real(k, rest[n], root))
    type = real_part(a[0][0]).type
    failed = k.const(type.integer(), 0)
    for number in range(size, 0, -1):
        failed = k.select(are_positive[number - 1], failed, k.const(type.integer(), number))
    is_fine, nan = k.compare("eq", failed, 0), _numbered_nan(k, type, failed)
    return [[_or_nan(k, is_fine, element, nan) for element in row] for row in factor]


def _or_nan(k: KernelBuilder, condition: Value, element: Element, nan: Value) -> Element:
    first, *rest = parts_of(element)
    return from_parts([k.select(condition, first, nan), *(k.select(condition, part, 0.0) for part in rest)])


def _numbered_nan(k: KernelBuilder, type: IRType, number: Value) -> Value:
    """A NaN that holds a number in its low bits."""
    return k.bitcast(k.or_(number, QUIET_NAN_BITS[type.bits]), type)


def small_substitute(
    k: KernelBuilder, a: Mapping[tuple[int, int], Element], right_side: Sequence[Element], *, unit_diagonal: bool
) -> list[Element]:
    """The solution of one system with a lower triangle."""
    x: list[Element] = []
    for row, total in enumerate(right_side):
        for column, known in enumerate(x):
            total = minus_product(k, total, a[row, column], known)
        x.append(total if unit_diagonal else quotient(k, total, a[row, row]))
    return x
