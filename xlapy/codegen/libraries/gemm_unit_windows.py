"""Packing for convolutions that the matrix unit computes: rows of A along K, as `gemm_windows` describes them.

Where features lie side by side in memory, a row is made of one piece of memory for each place of the window, which
follow each other along K. So strips are written piece by piece, of all rows, and filled up with zeros.
"""

from __future__ import annotations

from xlapy.codegen.ir import I8, I64, PTR, IRType, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_problem import packed_steps, row_pitch
from xlapy.codegen.libraries.gemm_tile import TileShape
from xlapy.codegen.libraries.gemm_types import UNIT_ROW_BYTES, GemmType
from xlapy.codegen.libraries.gemm_windows import Spot, WindowPacking
from xlapy.hlo.matrix_products import SPACES

_LINE: IRType = I8.with_lanes(UNIT_ROW_BYTES)
_ROWS: IRType = I64.with_lanes(8)


class UnitWindowPacking(WindowPacking):
    """One strip of A, from row `first` and step `step` on, of the `valid` rows."""

    def __init__(self, k: KernelBuilder, kind: GemmType, shape: TileShape, prefix: str) -> None:
        super().__init__(k, kind, shape, prefix)
        self._groups = packed_steps(k, kind, k.parameters["depth"])
        self._pitch = row_pitch(k, self._groups, kind.packed.bytes)

    def emit(self) -> None:
        k, given = self._k, self._k.parameters
        spots, sources = k.alloca(I64, self._width * (1 + SPACES), align=UNIT_ROW_BYTES), k.alloca(I64, self._width)
        end = k.mul(given["depth"], self._kind.element.bytes)
        is_missing = k.first_lanes(k.sub(k.mul(self._groups, self._kind.packed.bytes), end), UNIT_ROW_BYTES)
        with k.loop(0, given["valid"]) as row:
            spot = self._spot("row", self._digits("row", k.add(given["first"], row.index)))
            for number, value in enumerate((self._offset(spot), *spot.places)):
                k.store(self._of_spots(spots, number, row.index), value)
            k.masked_store(k.gep(self._place_of(row.index), end), k.const(_LINE, 0), is_missing)

        def piece(done: Value, length: Value, base: Spot) -> None:
            self._find(spots, base, sources)
            self._copy(sources, k.mul(done, self._kind.element.bytes), k.mul(length, self._kind.element.bytes))

        self._segments(piece)

    def _of_spots(self, spots: Value, number: int, row: Value) -> Value:
        """Where the number of a row's spot is: offsets of all rows come first, then the places in each space."""
        return self._k.gep(self._k.gep(spots, number * self._width * I64.bytes), row, I64.bytes)

    def _find(self, spots: Value, base: Spot, sources: Value) -> None:
        """Finds where the piece is that each row has from `base` on, or that it is zeros: some rows at a time."""
        k = self._k
        zeros = k.splat(k.address(k.function_pointer(f"{self._prefix}_zeros")), _ROWS.lanes)
        origin = k.splat(k.add(k.address(k.parameters["array"]), self._offset(base)), _ROWS.lanes)
        with k.loop(0, k.parameters["valid"], _ROWS.lanes) as row:
            offset, *places = (k.load(self._of_spots(spots, n, row.index), _ROWS) for n in range(1 + SPACES))
            places = [k.add(place, k.splat(move, _ROWS.lanes)) for place, move in zip(places, base.places, strict=True)]
            source = k.select(self._is_inside(places), k.add(origin, offset), zeros)
            k.store(k.gep(sources, row.index, I64.bytes), source)

    def _copy(self, sources: Value, done: Value, size: Value) -> None:
        """Copies `size` bytes of each row to where `done` bytes of it are."""
        k = self._k
        whole = k.and_(size, -UNIT_ROW_BYTES)
        is_left = k.first_lanes(k.sub(size, whole), UNIT_ROW_BYTES)
        with k.loop(0, k.parameters["valid"]) as row:
            source = k.load(k.gep(sources, row.index, I64.bytes), PTR)
            goal = k.gep(self._place_of(row.index), done)
            with k.loop(0, whole, UNIT_ROW_BYTES) as line:
                k.store(k.gep(goal, line.index), k.load(k.gep(source, line.index), _LINE))
            with k.if_(k.compare("lt", whole, size)):
                rest = k.masked_load(k.gep(source, whole), _LINE, is_left)
                k.masked_store(k.gep(goal, whole), rest, is_left)

    def _place_of(self, row: Value) -> Value:
        k = self._k
        return k.gep(k.parameters["packed"], k.mul(self._pitch, row))
