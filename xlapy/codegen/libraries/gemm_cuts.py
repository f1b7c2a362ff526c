"""How a panel is cut: the tiles that suit it, the rows and columns of blocks, the chunks along K, and who copies A."""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_finish import GemmFinish
from xlapy.codegen.libraries.gemm_problem import (
    BLOCK_COLUMNS,
    EVEN_BLOCKS,
    LONG_UNIT_CHUNK_STEPS,
    PANELS_IN_CACHE,
    PLANES_CHUNK_STEPS,
    UNIT_CHUNK_STEPS,
    WAY_BYTES,
    ceil_div,
    even_part,
    round_up,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import PREPARED_ROWS_OF_GROUP, STEPS_OF_GROUP, TileShape

_WIDE_BLOCKS = ((BLOCK_COLUMNS, 8), (512, 8), (1024, 16))
"""Columns of a block, and how many blocks there must be even then if each copies rows of A: the widest wins. At 1024
columns a product of 2048 by 2048 copies A half as often (3 % faster)."""

TILES_THAT_PREPARE = STEPS_OF_GROUP // PREPARED_ROWS_OF_GROUP + 2
"""So many tiles below one another pack all rows of the strip of B beside theirs, besides the first, which may have to
copy its own, and the last, which may be lower. A tile that copies takes twice as long as others (with this, 1024 by
1024 takes 0.95 of the time)."""

_COPY_STRIPS = 4
"""With fewer strips of B to be multiplied with, it takes longer to copy rows of A than to wait for them."""


class GemmCuts(GemmFinish):
    """Writes the numbers by which a panel is cut."""

    def _columns_of_tile(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Reals in a row of the tiles that the problem is cut into."""
        return self._by_tile(k, problem, lambda shape: shape.columns)

    def _rows_of_tile(self, k: KernelBuilder, problem: RecordValue) -> Value:
        return self._by_tile(k, problem, lambda shape: shape.rows // self._kind.parts)

    def _by_tile(self, k: KernelBuilder, problem: RecordValue, number: Callable[[TileShape], int]) -> Value:
        """A number that depends on whether tiles are broad."""
        usual = k.const(I64, number(self._shape))
        if self._broad is None:
            return usual
        return k.select(k.compare("ne", problem["is_broad"], 0), k.const(I64, number(self._broad)), usual)

    def _set_blocks(self, k: KernelBuilder, problem: RecordValue, rows: Value | int, columns: Value) -> Value:
        """Cuts the panel into blocks of about this size; how many there are in one matrix."""
        row_blocks = ceil_div(k, problem["rows"], rows)
        block_rows = round_up(k, ceil_div(k, problem["rows"], row_blocks), self._rows_of_tile(k, problem))
        block_columns = round_up(k, columns, problem["strip_columns"])
        row_blocks = ceil_div(k, problem["rows"], block_rows)
        column_blocks = ceil_div(k, problem["columns"], block_columns)
        chunk_steps = self._steps_of_chunk(k, problem)
        column_bytes = k.mul(k.smax(problem["depth"], 1), self._kind.packed.bytes)
        panel_blocks = k.sdiv(
            k.const(I64, self._target.l3_bytes // PANELS_IN_CACHE), k.mul(column_bytes, block_columns)
        )
        problem.set(
            panel_blocks=k.smax(panel_blocks, 1),
            ahead_a=0,
            ahead_b=0,
            block_rows=block_rows,
            block_columns=block_columns,
            row_blocks=row_blocks,
            column_blocks=column_blocks,
            chunk_steps=chunk_steps,
            copies_a=k.zext(self._copies_a(k, problem, block_rows, columns), I64),
        )
        return k.mul(row_blocks, column_blocks)

    def _steps_of_chunk(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of each, if K is cut evenly."""
        if self._kind.unit:
            steps = k.smax(self._steps(k, problem["depth"]), 1)
            is_crowded = k.compare("eq", k.and_(problem["sums_row"], WAY_BYTES - 1), 0)
            is_long = k.compare("gt", steps, 2 * UNIT_CHUNK_STEPS)
            most = k.select(k.or_(is_crowded, is_long), k.const(I64, LONG_UNIT_CHUNK_STEPS), UNIT_CHUNK_STEPS)
            if self._kind.planes > 1:
                most = k.const(I64, PLANES_CHUNK_STEPS)
            return even_part(k, steps, most, self._kind.steps_of_tile)
        return k.if_else(
            k.compare("gt", problem["depth"], self._longest_chunk(k, problem)),
            lambda: even_part(k, problem["depth"], self._part_steps, STEPS_OF_GROUP),
            lambda: k.const(I64, self._chunk_steps),
        )[0]

    def _longest_chunk(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Steps that are not cut: fewer where tiles of high blocks prepare the strips of B beside theirs. (Not those of
        complex numbers, whose sums are put together at the end of each chunk: bits would depend on where B lies.)"""
        if self._kind.parts == 2:
            return k.const(I64, self._chunk_steps)
        is_high = k.compare("ge", problem["rows"], k.mul(self._rows_of_tile(k, problem), TILES_THAT_PREPARE))
        prepares = k.and_(k.compare("ne", problem["copies"], 0), is_high)
        return k.select(prepares, k.const(I64, self._part_steps), self._chunk_steps)

    def _copies_a(self, k: KernelBuilder, problem: RecordValue, block_rows: Value, columns: Value) -> Value:
        """Whether rows of A that are in each other's way are read often enough to be copied.

        A nearest cache with a way for each row of a tile can do without, as long as the rows of a block are in nobody's
        way in the second one (197 by 1024 by 768: 5 % faster without); one with ways for a row of B, too, always can
        (f64 with broad tiles, 1024 by 1024: 0.98 of the time, by 4096 steps 0.96).
        """
        is_read_often = k.compare("ge", k.smin(problem["columns"], columns), _COPY_STRIPS * self._shape.columns)
        is_high = k.compare("gt", problem["rows"], self._tile_rows)
        pays = k.and_(self._has_crowded_rows(k, problem), k.and_(is_read_often, is_high))
        ways = self._target.l1_bytes // WAY_BYTES
        if self._tile_rows > ways:
            return pays
        span = k.mul(block_rows, problem["tile_a_row"])
        pays = k.and_(pays, k.compare("gt", span, self._target.l2_bytes))
        if self._broad is None or self._broad.rows + self._broad.vectors > ways:
            return pays
        return k.and_(pays, k.compare("eq", problem["is_broad"], 0))

    def _columns_of_wide_block(
        self, k: KernelBuilder, problem: RecordValue, row_blocks: Value, least: Value | int
    ) -> Value:
        """How wide blocks are: wide, if there are enough to share out evenly even then."""
        columns = k.const(I64, least) if isinstance(least, int) else least
        is_crowded = self._has_crowded_rows(k, problem)
        for wider, least_blocks in _WIDE_BLOCKS:
            blocks = k.mul(row_blocks, ceil_div(k, problem["columns"], wider))
            enough = k.select(is_crowded, k.const(I64, least_blocks), EVEN_BLOCKS)
            columns = k.select(k.compare("ge", blocks, enough), k.const(I64, wider), columns)
        return columns

    def _has_crowded_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether the rows of a tile take turns in a set of the nearest cache, at each step along K."""
        if not self._kind.is_packed_in_memory or self._tile_rows < self._target.l1_bytes // WAY_BYTES:
            return k.const(I1, 0)
        is_row = k.compare("eq", problem["tile_a_step"], self._element_bytes)
        return k.and_(is_row, k.compare("eq", k.and_(problem["tile_a_row"], WAY_BYTES - 1), 0))
