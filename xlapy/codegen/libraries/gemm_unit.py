"""Tiles of the matrix unit (AMX): the inner loop of products of types that have a `unit`.

Eight registers hold a tile each, of up to 16 rows of 64 bytes. One instruction adds to a tile of C, 16 rows of 16 sums,
the product of a tile of A, 16 rows of 64 bytes along K, and one of B, 16 steps of 16 columns, each of as many elements
along K as fill 32 bits. Four tiles of C, two by two, two of A and two of B are all there are:

    tile(depth, a, a_row, a_step, b, b_step, c, c_row, columns, accumulate, ...)

computes up to 32 rows and columns like the tiles in `gemm_tile`, and has their parameters. Rows of A are contiguous
along K; `depth` is a multiple of `UNIT_STEPS`. Whole tiles find the unit configured, which takes as long as two steps.
Those of an edge configure it to have as many rows and columns as there are, and leave it as it was: one function does
for all, and for each height there is one that says it.

Of operands in planes (`gemm_types`), strips have all planes of a tile along K, and then those of the next one; steps
count those of all planes. In regions of an array (`gemm_unit_regions`) planes lie line by line: for these there are
tiles of C of which tiles along K lie anywhere, or B has pairs.

The order of sums is that of the processor: of floats, even and odd elements along K of a tile are summed apart. It
depends on K alone. Subnormal bf16, and sums that are such, count as zero: the instruction knows no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.ir import I8, I16, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_record import Record
from xlapy.codegen.libraries.gemm_tile import PRODUCT_PARAMETERS, TILE_PARAMETERS, Tile
from xlapy.codegen.libraries.gemm_types import UNIT_ROW_BYTES, UNIT_ROWS, UNIT_STEPS, GemmType

_SUM_BYTES = 4
_SIDE = 2
"""Tiles of C beside and below each other."""

PLANE_BYTES = _SIDE * UNIT_ROWS * UNIT_ROW_BYTES
"""Of a plane of A's part of a tile along K."""

SUMS_BYTES = (_SIDE * UNIT_ROWS) ** 2 * _SUM_BYTES
"""Of a whole tile of C."""

_PRODUCTS_AT_ONCE = 72
"""After so many, a tile of sums is stored, where nobody reads it: a Sapphire Rapids takes a break of 250 ns for each
tile that is stored more than 128 products after the one before (f32 in planes, tiles in a near cache: 0.8 of the time).
"""

_A, _B = _SIDE * _SIDE, _SIDE * _SIDE + _SIDE
"""The first tiles of A and of B; those of C come first."""

_CONFIGURATION_BYTES = 64
_COLUMNS_AT, _ROWS_AT = 16, 48
"""In a configuration: the bytes of a row of each tile, 16 bits each, and the rows of each, 8 bits each. The first byte
is 1."""

_WHOLE = "whole_tiles"  # the name of the configuration that whole tiles find

_BODY_PARAMETERS = [("rows", I64), *PRODUCT_PARAMETERS]

PLACE = Record(of_a=I64, of_b=I64)
"""Where a tile along K lies, in bytes from the beginnings of A and of B."""

_LINES_OF_ROW = 2
"""That are fetched of a row of B: a strip of f32."""

_PAIRS_PARAMETERS = [("count", I64), ("a", PTR), ("a_row", I64)]
_PAIRS_PARAMETERS += [("b", PTR), ("b_step", I64), ("c", PTR), ("c_row", I64), ("accumulate", I64)]

_KEPT_PARAMETERS = [("count", I64), ("a", PTR), ("b", PTR), ("old", PTR), ("adds", I64), ("c", PTR), ("c_row", I64)]
_KEPT_PARAMETERS += [("c_beside", I64), ("c_below", I64), ("later", PTR)]

_PLACES_PARAMETERS = [("count", I64), ("places", PTR), ("a", PTR), ("a_row", I64)]
_PLACES_PARAMETERS += [("b", PTR), ("b_step", I64), ("c", PTR), ("c_row", I64)]
_PLACES_PARAMETERS += [("accumulate", I64), ("later", PTR), ("later_row", I64), ("later_rows", I64)]


def emit_unit_bodies(module: Module, kind: GemmType, prefix: str, attributes: str) -> None:
    """Writes what the tiles of all heights call: for one or two tiles below, and beside each other."""
    _define_configuration(module, prefix)
    for below in range(1, _SIDE + 1):
        for beside in range(1, _SIDE + 1):
            name = _body_name(prefix, below, beside)
            with KernelBuilder(module, name, _BODY_PARAMETERS, None, attributes=attributes) as k:
                body = _BodyEmitter(k, kind, below, beside)
                body.configure()
                body.emit()
                configure_unit(k, prefix)


def _define_configuration(module: Module, prefix: str) -> None:
    tiles = _SIDE * _SIDE + 2 * _SIDE
    rows = [UNIT_ROWS] * tiles + [0] * (_CONFIGURATION_BYTES - _ROWS_AT - tiles)
    columns = [byte for _ in range(tiles) for byte in (UNIT_ROW_BYTES, 0)]
    content = [1, *[0] * (_COLUMNS_AT - 1), *columns, *[0] * (_ROWS_AT - _COLUMNS_AT - len(columns)), *rows]
    numbers = ", ".join(f"i8 {byte}" for byte in content)
    name = f"{prefix}_{_WHOLE}"
    module.define(name, f"@{name} = internal constant [{_CONFIGURATION_BYTES} x i8] [{numbers}], align {CACHE_LINE}")


def configure_unit(k: KernelBuilder, prefix: str) -> None:
    """Tells the unit that all tiles are whole."""
    k.call("llvm.x86.ldtilecfg", [k.function_pointer(f"{prefix}_{_WHOLE}")])


def emit_unit_tile(module: Module, kind: GemmType, prefix: str, tile: Tile, attributes: str) -> None:
    """Writes a tile, whose vectors are the unit's tiles of C beside each other."""
    below = -(-tile.rows // UNIT_ROWS)
    with KernelBuilder(module, tile.name(kind), TILE_PARAMETERS, None, attributes=attributes) as k:
        if tile.is_edge:
            given = [k.parameters[name] for name, _ in PRODUCT_PARAMETERS]
            k.call(_body_name(prefix, below, tile.vectors), [k.const(I64, tile.rows), *given])
        else:
            _BodyEmitter(k, kind, below, tile.vectors).emit()


def emit_unit_places(module: Module, kind: GemmType, prefix: str, attributes: str) -> None:
    """Writes `PREFIX_places`, a whole tile of C, of as many tiles along K as there are `places` of them: of A in planes
    a line of each plane, one after the other, for each row. Beside the products of each pair of planes so many rows of
    two lines are fetched that will be read `later`, `later_row` bytes apart."""
    _define_configuration(module, prefix)
    with KernelBuilder(module, f"{prefix}_places", _PLACES_PARAMETERS, None, attributes=attributes) as k:
        _PlacesEmitter(k, kind, _SIDE, _SIDE).emit()


def emit_unit_pairs(module: Module, kind: GemmType, prefix: str, attributes: str) -> None:
    """Writes `PREFIX_pairs`, a whole tile of C, of so many tiles along K: of A in a strip, and of B in planes a line of
    each plane, one after the other, for each pair of steps; from pair to pair `b_step` bytes, all 32 of a tile."""
    with KernelBuilder(module, f"{prefix}_pairs", _PAIRS_PARAMETERS, None, attributes=attributes) as k:
        _PairsEmitter(k, kind, _SIDE, _SIDE).emit()


def emit_unit_kept(module: Module, kind: GemmType, prefix: str, attributes: str) -> None:
    """Writes `PREFIX_kept`, a whole tile of C, of so many tiles along K, of strips in planes: added to sums that lie
    quarter by quarter at `old`, or to zeros. Where they go, rows are `c_row` bytes apart, quarters `c_beside` and
    `c_below`. Beside them lines are fetched that will be read `later`."""
    with KernelBuilder(module, f"{prefix}_kept", _KEPT_PARAMETERS, None, attributes=attributes) as k:
        _KeptEmitter(k, kind, _SIDE, _SIDE).emit()


def release_unit(k: KernelBuilder) -> None:
    """Gives the registers of tiles back, which the system would else save for the thread."""
    k.call("llvm.x86.tilerelease", [])


def _body_name(prefix: str, below: int, beside: int) -> str:
    return f"{prefix}_body_{below}x{beside}"


class _BodyEmitter:
    _plane_bytes = PLANE_BYTES
    """From a line of A in one plane to that in the next one."""

    def __init__(self, k: KernelBuilder, kind: GemmType, below: int, beside: int) -> None:
        self._k = k
        self._kind = kind
        self._below = range(below)
        self._beside = range(beside)

    def emit(self) -> None:
        steps = self._kind.steps_of_tile
        self._add_products(self._k.udiv(self._k.parameters["depth"], steps), steps)

    def _add_products(self, count: Value, steps: int) -> None:
        """Those of so many tiles along K, each of so many steps of B, to C or to zeros."""
        k, given = self._k, self._k.parameters
        self._start_sums()
        next_b = k.mul(given["b_step"], steps)

        def step(_: Value, places: list[Value]) -> list[Value]:
            a, b = places
            self._step(a, b)
            return [k.gep(a, self._next_a), k.gep(b, next_b)]

        self._steps(count, [given["a"], given["b"]], step)
        self._each_of_c("tilestored64")

    def _steps(self, count: Value, first: list[Value], step: Callable[[Value, list[Value]], Sequence[Value]]) -> None:
        """All tiles along K: `step(number, places)` makes the products of one, and tells the places of the next one."""
        k = self._k
        aside = k.alloca(I8, UNIT_ROWS * UNIT_ROW_BYTES, align=CACHE_LINE)
        at_once = max(_PRODUCTS_AT_ONCE // (_SIDE * _SIDE * len(self._kind.plane_products)), 1)
        with k.loop(0, count, at_once, carry=first) as parts:
            last = k.smin(k.add(parts.index, at_once), count)
            with k.loop(parts.index, last, carry=parts.values) as loop:
                loop.next = step(loop.index, loop.values)
            k.call("llvm.x86.tilestored64", [self._number(self._c(0, 0)), aside, k.const(I64, UNIT_ROW_BYTES)])
            parts.next = loop.results

    def configure(self) -> None:
        """Tells the unit how large the tiles are. Those that are not used have no rows."""
        k, given = self._k, self._k.parameters
        rows = self._parts(given["rows"], len(self._below))
        columns = [k.mul(part, _SUM_BYTES) for part in self._parts(given["columns"], len(self._beside))]
        of_c = {self._c(row, column): (rows[row], columns[column]) for row in self._below for column in self._beside}
        of_a = {_A + row: (rows[row], k.const(I64, UNIT_ROW_BYTES)) for row in self._below}
        of_b = {_B + column: (k.const(I64, UNIT_STEPS), columns[column]) for column in self._beside}
        place = k.alloca(I8, _CONFIGURATION_BYTES, align=CACHE_LINE)
        k.memset(place, 0, _CONFIGURATION_BYTES)
        k.store(place, k.const(I8, 1))
        for tile, (height, width) in (of_c | of_a | of_b).items():
            k.store(k.gep(place, _ROWS_AT + tile), k.trunc(height, I8))
            k.store(k.gep(place, _COLUMNS_AT + tile * I16.bytes), k.trunc(width, I16))
        k.call("llvm.x86.ldtilecfg", [place])

    def _parts(self, count: Value, tiles: int) -> list[Value]:
        """Rows or columns of each of so many tiles: all are whole but the last one."""
        k = self._k
        return [*[k.const(I64, UNIT_ROWS)] * (tiles - 1), k.sub(count, (tiles - 1) * UNIT_ROWS)]

    def _start_sums(self) -> None:
        """With those of C, or zeros."""
        accumulates = self._k.compare("ne", self._k.parameters["accumulate"], 0)
        self._k.if_else(accumulates, lambda: self._each_of_c("tileloadd64"), self._clear)

    def _clear(self) -> None:
        for row in self._below:
            for column in self._beside:
                self._k.call("llvm.x86.tilezero", [self._number(self._c(row, column))])

    def _each_of_c(self, instruction: str) -> None:
        """Loads or stores the tiles of C."""
        k, given = self._k, self._k.parameters
        for row in self._below:
            place = k.gep(given["c"], k.mul(given["c_row"], row * UNIT_ROWS))
            for column in self._beside:
                part = k.gep(place, column * UNIT_ROW_BYTES)
                k.call(f"llvm.x86.{instruction}", [self._number(self._c(row, column)), part, given["c_row"]])

    @property
    def _next_a(self) -> int:
        """Bytes to the next tile along K: of rows as they are, or of strips in which whole tiles follow each other."""
        return UNIT_ROW_BYTES if self._kind.planes == 1 else self._kind.planes * PLANE_BYTES

    def _step(self, a: Value, b: Value) -> None:
        """The products of one tile along K, of one pair of planes after the other. Each tile is loaded when the first
        product needs it, behind which others wait that do not."""
        loaded: dict[int, int] = {}
        for number, (plane_a, plane_b) in enumerate(self._kind.plane_products):
            self._beside_products(number)
            for row in self._below:
                for column in self._beside:
                    if loaded.get(_A + row) != plane_a:
                        loaded[_A + row] = plane_a
                        self._load_a(a, plane_a, row)
                    if loaded.get(_B + column) != plane_b:
                        loaded[_B + column] = plane_b
                        self._load_b(b, plane_b, column)
                    tiles = (self._c(row, column), _A + row, _B + column)
                    self._k.call(f"llvm.x86.{self._kind.unit}", [self._number(tile) for tile in tiles])

    def _beside_products(self, number: int) -> None:
        """What is done while the processor waits for those of a pair of planes."""

    def _load_a(self, a: Value, plane: int, row: int) -> None:
        k, pitch = self._k, self._k.parameters["a_row"]
        self._load(_A + row, k.gep(k.gep(a, plane * self._plane_bytes), k.mul(pitch, row * UNIT_ROWS)), pitch)

    def _load_b(self, b: Value, plane: int, column: int) -> None:
        k, pitch = self._k, self._k.parameters["b_step"]
        place = k.gep(b, k.mul(pitch, plane * UNIT_STEPS))
        self._load(_B + column, k.gep(place, column * UNIT_ROW_BYTES), pitch)

    def _load(self, tile: int, place: Value, distance: Value) -> None:
        self._k.call("llvm.x86.tileloadd64", [self._number(tile), place, distance])

    def _c(self, row: int, column: int) -> int:
        return row * _SIDE + column

    def _number(self, tile: int) -> Value:
        return self._k.const(I8, tile)


class _PlacesEmitter(_BodyEmitter):
    """A tile of C whose tiles along K lie anywhere."""

    _plane_bytes = UNIT_ROW_BYTES

    def emit(self) -> None:
        k, given = self._k, self._k.parameters

        def step(number: Value, later: list[Value]) -> list[Value]:
            self._later = later[0]
            place = PLACE.at(k, k.gep(given["places"], number, PLACE.size))
            self._step(k.gep(given["a"], place["of_a"]), k.gep(given["b"], place["of_b"]))
            return [self._later]

        self._start_sums()
        self._steps(given["count"], [given["later"]], step)
        self._each_of_c("tilestored64")

    def _beside_products(self, number: int) -> None:
        k, given = self._k, self._k.parameters
        with k.loop(0, given["later_rows"], carry=[self._later]) as rows:
            for line in range(_LINES_OF_ROW):
                k.prefetch(k.gep(rows.values[0], line * CACHE_LINE), 1, level=2)
            rows.next = [k.gep(rows.values[0], given["later_row"])]
        self._later = rows.results[0]


class _PairsEmitter(_BodyEmitter):
    """A tile of C whose B has a pair for each step."""

    def emit(self) -> None:
        self._add_products(self._k.parameters["count"], 2 * UNIT_STEPS)

    def _load_b(self, b: Value, plane: int, column: int) -> None:
        offset = (column * self._kind.planes + plane) * UNIT_ROW_BYTES
        self._load(_B + column, self._k.gep(b, offset), self._k.parameters["b_step"])


class _KeptEmitter(_BodyEmitter):
    """A tile of C whose sums lie in one piece until they are complete."""

    def emit(self) -> None:
        k, given = self._k, self._k.parameters
        block = self._kind.planes * PLANE_BYTES
        k.if_else(k.compare("ne", given["adds"], 0), self._load_old, self._clear)

        def step(_: Value, places: list[Value]) -> list[Value]:
            a, b, self._later = places
            self._step(a, b)
            return [k.gep(a, block), k.gep(b, block), k.gep(self._later, self._lines_fetched * CACHE_LINE)]

        self._steps(given["count"], [given["a"], given["b"], given["later"]], step)
        for row in self._below:
            for column in self._beside:
                place = k.gep(k.gep(given["c"], k.mul(given["c_below"], row)), k.mul(given["c_beside"], column))
                k.call("llvm.x86.tilestored64", [self._number(self._c(row, column)), place, given["c_row"]])

    @property
    def _lines_fetched(self) -> int:
        """Of what will be read later, beside the products of a tile along K: a quarter of what these read of A."""
        return self._kind.planes * PLANE_BYTES // CACHE_LINE // 4

    def _beside_products(self, number: int) -> None:
        lines = self._lines_fetched // len(self._kind.plane_products)
        for line in range(number * lines, (number + 1) * lines):
            self._k.prefetch(self._k.gep(self._later, line * CACHE_LINE), 1, level=2)

    def _load_old(self) -> None:
        for row in self._below:
            for column in self._beside:
                tile = self._c(row, column)
                place = self._k.gep(self._k.parameters["old"], tile * UNIT_ROWS * UNIT_ROW_BYTES)
                self._load(tile, place, self._k.const(I64, UNIT_ROW_BYTES))

    def _load_a(self, a: Value, plane: int, row: int) -> None:
        place = self._k.gep(a, plane * self._plane_bytes + row * UNIT_ROWS * UNIT_ROW_BYTES)
        self._load(_A + row, place, self._k.const(I64, UNIT_ROW_BYTES))

    def _load_b(self, b: Value, plane: int, column: int) -> None:
        place = self._k.gep(b, plane * self._plane_bytes + column * UNIT_ROW_BYTES)
        self._load(_B + column, place, self._k.const(I64, len(self._beside) * UNIT_ROW_BYTES))
