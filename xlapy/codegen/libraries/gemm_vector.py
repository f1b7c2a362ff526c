"""Products of a matrix with a few vectors, where the matrix is read once and its layout decides how.

A row of B contiguous: `stream` goes along several rows of B at a time and adds multiples of them to C, so that memory
is read in long runs. It takes the parameters of a tile and computes the same chains of multiply-adds, for any number
of columns.

A column of B contiguous: `dots` multiplies columns of B with rows of A, both read along K by whole vectors, and sums
the lanes at the end.

    dots(depth, a, a_row, b, b_column, c, c_row, c_column, accumulate)
"""

from __future__ import annotations

from xlapy.codegen.ir import I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_tile import TILE_PARAMETERS, TileShape
from xlapy.codegen.libraries.gemm_types import GemmType
from xlapy.codegen.target import Target

STREAM_ROWS = 4
"""The most rows of C that `stream` is made for."""

DOT_ROWS = 4
DOT_COLUMNS = 4
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
]


def stream_name(kind: GemmType, rows: int) -> str:
    return f"gemm_{kind.name}_stream_{rows}"


def dots_name(kind: GemmType, rows: int, columns: int) -> str:
    return f"gemm_{kind.name}_dots_{rows}x{columns}"


def emit_stream(module: Module, target: Target, kind: GemmType, shape: TileShape, rows: int) -> None:
    attributes = f"nounwind {target.function_attributes}".rstrip()
    noalias = {"a": "noalias", "b": "noalias", "c": "noalias"}
    name = stream_name(kind, rows)
    with KernelBuilder(module, name, TILE_PARAMETERS, None, "internal", attributes, noalias) as k:
        _StreamEmitter(k, target, kind, shape, rows).emit()


class _StreamEmitter:
    def __init__(self, k: KernelBuilder, target: Target, kind: GemmType, shape: TileShape, rows: int) -> None:
        self._k = k
        self._target = target
        self._kind = kind
        self._vector: IRType = kind.accumulator.with_lanes(shape.lanes)
        self._rows = rows
        self._group = max(1, shape.registers // 4 // rows)
        """Rows of B that are read side by side: their elements of A are kept in registers."""

    def emit(self) -> None:
        k = self._k
        with k.if_(k.compare("eq", k.parameters["accumulate"], 0)):
            for row in range(self._rows):
                k.memset(self._c_row(row), 0, k.mul(k.parameters["columns"], self._vector.bytes))
        depth = k.parameters["depth"]
        grouped = k.mul(k.udiv(depth, self._group), self._group)
        with k.loop(0, grouped, self._group) as step:
            self._add_rows(step.index, self._group)
        with k.loop(grouped, depth) as step:
            self._add_rows(step.index, 1)

    def _add_rows(self, step: Value, count: int) -> None:
        """Adds multiples of rows `step` ... of B to the rows of C."""
        k, lanes, columns = self._k, self._vector.lanes, self._k.parameters["columns"]
        factors = [[self._factor(row, k.add(step, index)) for index in range(count)] for row in range(self._rows)]
        whole = k.and_(columns, -lanes)
        with k.loop(0, whole, lanes) as column:
            self._add_vectors(factors, step, column.index, None)
        rest = k.splat(k.trunc(k.sub(columns, whole), I32), lanes)
        with k.if_(k.compare("lt", whole, columns)):
            self._add_vectors(factors, step, whole, k.compare("lt", k.lane_numbers(I32.with_lanes(lanes)), rest))

    def _factor(self, row: int, step: Value) -> Value:
        k = self._k
        place = k.gep(k.parameters["a"], k.mul(k.parameters["a_row"], row))
        element = k.load(k.gep(place, k.mul(k.parameters["a_step"], step)), self._kind.packed)
        return k.splat(element, self._vector.lanes)

    def _add_vectors(self, factors: list[list[Value]], step: Value, column: Value, mask: Value | None) -> None:
        k = self._k
        pieces = []
        for index in range(len(factors[0])):
            row = k.gep(k.parameters["b"], k.mul(k.parameters["b_step"], k.add(step, index)))
            pieces.append(self._load(k.gep(row, column, self._vector.bytes), mask))
        for row, of_row in enumerate(factors):
            place = k.gep(self._c_row(row), column, self._vector.bytes)
            total = self._load(place, mask)
            for factor, piece in zip(of_row, pieces, strict=True):
                total = self._kind.multiply_add(k, self._target, factor, piece, total)
            if mask is None:
                k.store(place, total)
            else:
                k.masked_store(place, total, mask)

    def _load(self, place: Value, mask: Value | None) -> Value:
        k = self._k
        return k.load(place, self._vector) if mask is None else k.masked_load(place, self._vector, mask)

    def _c_row(self, row: int) -> Value:
        return self._k.gep(self._k.parameters["c"], self._k.mul(self._k.parameters["c_row"], row))


def emit_dots(module: Module, target: Target, kind: GemmType, shape: TileShape, rows: int, columns: int) -> None:
    """The products of `rows` rows of A with `columns` columns of B, all of them contiguous along K."""
    attributes = f"nounwind {target.function_attributes}".rstrip()
    name = dots_name(kind, rows, columns)
    with KernelBuilder(module, name, DOT_PARAMETERS, None, "internal", attributes) as k:
        depth, lanes = k.parameters["depth"], shape.lanes
        vector = kind.accumulator.with_lanes(lanes)
        size = kind.packed.bytes

        def places(matrix: str, stride: str, count: int) -> list[Value]:
            return [k.gep(k.parameters[matrix], k.mul(k.parameters[stride], index)) for index in range(count)]

        a_rows, b_columns = places("a", "a_row", rows), places("b", "b_column", columns)

        def products(step: Value, sums: list[Value], mask: Value | None) -> list[Value]:
            def load(place: Value) -> Value:
                here = k.gep(place, step, size)
                return k.load(here, vector) if mask is None else k.masked_load(here, vector, mask)

            a_vectors, b_vectors = [load(row) for row in a_rows], [load(column) for column in b_columns]
            pairs = [(a, b) for a in a_vectors for b in b_vectors]
            return [kind.multiply_add(k, target, a, b, total) for (a, b), total in zip(pairs, sums, strict=True)]

        whole = k.and_(depth, -lanes)
        with k.loop(0, whole, lanes, carry=[k.const(vector, 0)] * (rows * columns)) as loop:
            loop.next = products(loop.index, loop.values, None)
        rest = k.splat(k.trunc(k.sub(depth, whole), I32), lanes)
        mask = k.compare("lt", k.lane_numbers(I32.with_lanes(lanes)), rest)
        sums = k.if_else(
            k.compare("lt", whole, depth), lambda: products(whole, loop.results, mask), lambda: loop.results
        )
        adds = k.compare("ne", k.parameters["accumulate"], 0)
        for index, total in enumerate(sums):
            row, column = divmod(index, columns)
            place = k.gep(k.parameters["c"], k.mul(k.parameters["c_row"], row))
            place = k.gep(place, k.mul(k.parameters["c_column"], column))
            old = k.if_else(adds, lambda place=place: k.load(place, kind.result), lambda: k.const(kind.result, 0))[0]
            k.store(place, k.add(old, k.horizontal(k.add, total)))
