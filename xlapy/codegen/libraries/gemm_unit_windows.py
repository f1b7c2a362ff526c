"""Packing for convolutions that the matrix unit computes: rows of A along K, as `gemm_windows` describes them.

Where features lie side by side in memory, a row is made of one piece of memory for each place of the window, which
follow each other along K. So strips are written piece by piece, of all rows, and filled up with zeros.
"""

from __future__ import annotations

from xlapy.codegen.ir import I8, I64, IRType, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_problem import row_pitch
from xlapy.codegen.libraries.gemm_tile import TileShape
from xlapy.codegen.libraries.gemm_types import GemmType
from xlapy.codegen.libraries.gemm_unit import UNIT_STEPS
from xlapy.codegen.libraries.gemm_windows import SPOT_BYTES, Spot, WindowPacking, sum_of_spots

_LINE_BYTES = 64
_LINE: IRType = I8.with_lanes(_LINE_BYTES)


class UnitWindowPacking(WindowPacking):
    """One strip of A, from row `first` and step `step` on, of the `valid` rows."""

    def __init__(self, k: KernelBuilder, kind: GemmType, shape: TileShape, prefix: str) -> None:
        super().__init__(k, kind, shape, prefix)
        groups = k.lshr(k.add(k.parameters["depth"], kind.pair - 1), kind.pair_bits)
        self._groups = k.and_(k.add(groups, UNIT_STEPS - 1), -UNIT_STEPS)
        self._pitch = row_pitch(k, self._groups, kind.packed.bytes)

    def emit(self) -> None:
        k, given = self._k, self._k.parameters
        spots = k.alloca(I64, self._width * SPOT_BYTES // I64.bytes)
        end = k.mul(given["depth"], self._kind.element.bytes)
        is_missing = k.first_lanes(k.sub(k.mul(self._groups, self._kind.packed.bytes), end), _LINE_BYTES)
        with k.loop(0, given["valid"]) as row:
            digits = self._digits("row", k.add(given["first"], row.index))
            self._store_spot(k.gep(spots, row.index, SPOT_BYTES), self._spot("row", digits))
            k.masked_store(k.gep(self._place_of(row.index), end), k.const(_LINE, 0), is_missing)

        def piece(done: Value, length: Value, base: Spot) -> None:
            self._copy(spots, base, k.mul(done, self._kind.element.bytes), k.mul(length, self._kind.element.bytes))

        self._segments(piece)

    def _copy(self, spots: Value, base: Spot, done: Value, size: Value) -> None:
        """Copies `size` bytes of each row to where `done` bytes of it are; zeros, where they are outside of the
        array."""
        k = self._k
        whole = k.and_(size, -_LINE_BYTES)
        is_left = k.first_lanes(k.sub(size, whole), _LINE_BYTES)
        with k.loop(0, k.parameters["valid"]) as row:
            spot = self._load_spot(k.gep(spots, row.index, SPOT_BYTES))
            source = self._address(sum_of_spots(k, spot, base))
            goal = k.gep(self._place_of(row.index), done)
            with k.loop(0, whole, _LINE_BYTES) as line:
                k.store(k.gep(goal, line.index), k.load(k.gep(source, line.index), _LINE, align=1), align=1)
            rest = k.masked_load(k.gep(source, whole), _LINE, is_left)
            k.masked_store(k.gep(goal, whole), rest, is_left)

    def _place_of(self, row: Value) -> Value:
        k = self._k
        return k.gep(k.parameters["packed"], k.mul(self._pitch, row))
