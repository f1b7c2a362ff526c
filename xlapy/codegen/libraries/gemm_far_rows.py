"""Products of few rows with a large matrix that comes from afar: to read it decides how long they take.

A strip of B has two to four lines of each row, and rows are far apart: what fetches memory does not foresee them, and
rows a power of two apart are in each other's way in all caches. So many strips take turns at a few rows of B, which are
read from end to end, as many at once as there are steps in a chunk:

    for each chunk of K: for each strip of B: C[rows, strip] += A[rows, chunk] B[chunk, strip]

The sums are read and written once per chunk. Rows of C, a power of two apart, would be in the way of those of B: with
long vectors they are in scratch memory, row behind row, until K ends, and each block copies its part of A.

The matrix unit wants B packed, and elements may have to be widened. To pack all of B takes longer than to multiply it
by few rows, and other cores take long to fetch what one has packed: so each part of the columns packs what it needs,
chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_problem import (
    BLOCK_COLUMNS,
    PANELS_IN_CACHE,
    ceil_div,
    round_up,
    row_pitch,
    transpose,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_small import GemmSmall
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch

_CHUNK_BYTES_OF_SHORT_VECTORS = 512
_LEAST_STEPS, _MOST_STEPS = 16, 128
_CHUNKS_IN_CACHE = 4
"""The bytes of a row of A in a chunk, with short vectors. With long ones, the fewest and the most steps of a chunk, and
how many chunks of whole rows of B the second-level cache has room for: one is read while the next is fetched, and rows
a power of two apart share a part of it. (Sapphire Rapids: 16 by 4096 by 4096 takes 5.6 ms in chunks of 32, 5.9 of 16,
7.9 of 64, all of K at once 10.6; 8 by 2048 by 2048 0.79 ms in chunks of 128, 0.95 of 32; 16 by 4096 by 11008 18.4 ms in
chunks of 16, 21.6 of 32.)"""

_TILES = 4
_MOST_BYTES_OF_STEP = 288
"""Up to so many tiles of short vectors, and bytes of A at each step with long ones (Sapphire Rapids, by 4096 by 4096:
4 rows take 0.58 of the time of all of K at once, 8 0.54, 16 0.53, 32 0.6, 64 0.75, 96 1.07; f64, by 2048 by 4096 on two
cores, 32 rows 0.84, 64 1.15)."""

_BLOCKS_OF_SHORT_VECTORS = 4
_MOST_COLUMNS_OF_SHORT_VECTORS = 1024
_BLOCKS_PER_CORE = 2
_LEAST_COLUMNS, _MOST_COLUMNS = 512, 4096
"""Blocks to share out, one for each core if more would have less than so many columns, and the most columns of one:
memory comes in long pieces, and few pages are open at a time (AVX2, one core: 8 by 4096 by 1024 0.84 of the time, 8 by
1024 by 4096 0.8, 24 by 4096 by 1024 0.9; f64 0.87, 0.88). With long vectors, 8 by 4096 by 4096, blocks of 1024 columns
take 3.5 ms, of 4096 3.2."""


_ROWS_OF_TURNED = 96
_COLUMNS_PER_ROW_OF_TURNED = 4
"""Where columns lie along K: up to so many rows, and with so many columns for each, tiles take the columns for rows
(Sapphire Rapids, one core, by 4096 by 1024: 16 rows take 0.43 of the time of turning B while it is packed, 32 0.45, 64
0.66; by 4096 by 4096 32 rows 0.44)."""

_ROWS_OF_UNIT, _ROWS_OF_UNIT_ALONG_K = 256, 96
_ROWS_OF_WIDENED = 64
_PANEL_COLUMN_BYTES = 512
_COLUMNS_ALONG_K = 128
"""Where B has to be packed: the most rows, for the matrix unit by the layout of B, the bytes of a column that a part
packs at once, and the columns of a part if they lie along K. (Two cores, bf16, by 4096 by 4096: 16 rows take 0.46 of
the time of packing all of B, 128 0.47, 256 0.6; along K 16 rows 0.58, 96 0.65. On one core 16 rows take 0.77, f16 0.65,
64 rows 0.9.)"""


class GemmFarRows(GemmSmall):
    """Writes what decides for this way of computing a product, and what prepares it."""

    def _reads_far_rows(self, k: KernelBuilder, problem: RecordValue, b_bytes: Value) -> Value:
        """Whether a B of so many bytes is read by rows. (Not with complex numbers, whose sums are put together at the
        end of each chunk.)"""
        if self._kind.parts == 2 or self._kind.unit:
            return k.const(I1, 0)
        is_short = self._has_short_vectors
        most = _TILES * self._tile_rows if is_short else _MOST_BYTES_OF_STEP // self._kind.packed.bytes
        has_few = k.compare("le", problem["m"], most)
        is_far = k.compare("gt", b_bytes, self._near_bytes)
        return k.and_(k.not_(self._is_packed_before(k, problem)), k.and_(has_few, is_far))

    @property
    def _near_bytes(self) -> int:
        """Of the largest B that is not far."""
        target = self._target
        return target.l2_bytes if target.has_far_last_cache else target.l3_bytes // PANELS_IN_CACHE

    def _columns_of_far_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of a block. Of many rows fewer, so that the second-level cache holds the sums."""
        n = problem["n"]
        if self._has_short_vectors:
            columns = k.smax(ceil_div(k, n, _BLOCKS_OF_SHORT_VECTORS), BLOCK_COLUMNS)
            return k.smin(columns, _MOST_COLUMNS_OF_SHORT_VECTORS)
        cores = self._target.cores
        of_each_core = k.smin(ceil_div(k, n, cores), _LEAST_COLUMNS)
        columns = k.smax(ceil_div(k, n, _BLOCKS_PER_CORE * cores), of_each_core)
        near_sums = k.const(I64, self._target.l2_bytes // (2 * self._kind.accumulator.bytes))
        return k.smin(columns, k.smin(k.sdiv(near_sums, k.smax(problem["m"], 1)), _MOST_COLUMNS))

    def _steps_of_far_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of a chunk."""
        if self._has_short_vectors:
            return k.const(I64, _CHUNK_BYTES_OF_SHORT_VECTORS // self._kind.packed.bytes)
        fitting = k.sdiv(k.const(I64, self._target.l2_bytes // _CHUNKS_IN_CACHE), k.smax(problem["b_step"], 1))
        return k.smin(k.smax(k.and_(fitting, -_LEAST_STEPS), _LEAST_STEPS), _MOST_STEPS)

    def _with_sums_of_far_rows(
        self, k: KernelBuilder, problem: RecordValue, reads_rows: Value, run: Callable[[], None]
    ) -> None:
        """Runs the blocks: if they read far rows of B, and vectors are long, with sums in scratch memory that can hold
        them, and copies of A."""
        if self._has_short_vectors or self._kind.unit:
            run()
            return
        pitch = row_pitch(k, problem["n"], self._kind.accumulator.bytes)
        matrix_bytes = k.mul(pitch, problem["m"])
        bytes = k.mul(matrix_bytes, problem["batches"])

        def in_scratch() -> None:
            scratch = acquire_scratch(k, bytes)
            problem.set(
                sums=scratch.memory, sums_row=pitch, sums_batch=matrix_bytes, uses_scratch=1, adds=0, copies_a=1
            )
            run()
            release_scratch(k, scratch)

        k.if_else(k.and_(reads_rows, k.compare("le", bytes, self._most_scratch_bytes)), in_scratch, run)

    # Columns along K

    def _turn_if_columns_are_far(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Turns a product of few rows with a B from afar whose columns lie along K into that of the transposes: tiles
        read the rows of its left side where they lie, from end to end, and C is scattered."""
        if self._kind.unit or not self._kind.is_packed_in_memory or self._kind.parts == 2 or self._has_short_vectors:
            return
        conditions = [
            k.compare("le", problem["m"], _ROWS_OF_TURNED),
            k.compare("gt", problem["n"], k.mul(problem["m"], _COLUMNS_PER_ROW_OF_TURNED)),
            k.compare("eq", problem["b_step"], self._element_bytes),
            k.not_(self._is_packed_before(k, problem)),
            k.compare("gt", self._bytes_of_b(k, problem), self._near_bytes),
        ]
        with k.if_(reduce(k.and_, conditions)):
            transpose(k, problem)
            problem["uses_scratch"] = 1

    def _bytes_of_b(self, k: KernelBuilder, problem: RecordValue) -> Value:
        return k.mul(k.mul(problem["k"], problem["n"]), self._kind.element.bytes)

    # Where B has to be packed

    def _suits_parts(self, k: KernelBuilder, problem: RecordValue, is_small: Value) -> Value:
        return k.or_(super()._suits_parts(k, problem, is_small), self._has_far_parts(k, problem))

    @property
    def _packs_far_parts(self) -> bool:
        """For the matrix unit, or since elements are widened; not for short vectors, whose parts would be many."""
        kind = self._kind
        is_widened = not (kind.is_packed_in_memory or self._has_short_vectors)
        return kind.planes == 1 and (bool(kind.unit) or is_widened)

    def _has_far_parts(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether few rows are multiplied with a B from afar that has to be packed."""
        if not self._packs_far_parts:
            return k.const(I1, 0)
        is_far = k.compare("gt", self._bytes_of_b(k, problem), self._near_bytes)
        is_row = k.compare("eq", problem["b_column"], self._element_bytes)
        most = k.const(I64, _ROWS_OF_WIDENED)
        if self._kind.unit:
            most = k.select(is_row, k.const(I64, _ROWS_OF_UNIT), _ROWS_OF_UNIT_ALONG_K)
        has_few = k.compare("le", problem["m"], most)
        return k.and_(k.not_(self._is_packed_before(k, problem)), k.and_(has_few, is_far))

    @property
    def _steps_of_far_panel(self) -> int:
        return _PANEL_COLUMN_BYTES * self._kind.pair // self._kind.packed.bytes

    def _run_parts(self, k: KernelBuilder, problem: RecordValue) -> None:
        if not self._packs_far_parts:
            super()._run_parts(k, problem)
            return
        few, usual = partial(self._run_far_parts, k, problem), partial(super()._run_parts, k, problem)
        k.if_else(self._has_far_parts(k, problem), few, usual)

    def _run_far_parts(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Each part packs what it needs of B, some steps of many columns, or all steps of a few that lie along K, and
        multiplies that while it is in a near cache."""
        is_row = k.compare("eq", problem["b_column"], self._element_bytes)
        columns = k.select(is_row, self._columns_of_far_rows(k, problem), _COLUMNS_ALONG_K)
        problem.set(
            block_rows=round_up(k, problem["m"], self._tile_rows),
            block_columns=round_up(k, columns, self._shape.columns),
            row_blocks=1,
            panel_steps=k.select(is_row, self._steps_of_far_panel, problem["panel_steps"]),
            uses_scratch=1,
        )
        parts = k.function_pointer(f"{self._prefix}_parts")
        count = ceil_div(k, problem["n"], problem["block_columns"])
        with k.loop(0, problem["batches"]) as batch:
            problem["batch"] = batch.index
            k.call(k.parameters["parallel"], [parts, problem.place, count, k.const(I64, 1)])
