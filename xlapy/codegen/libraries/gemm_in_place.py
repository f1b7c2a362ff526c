"""Products that read at least one operand where it lies: small ones, and those with few rows or columns."""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I1, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_dots import GemmDots
from xlapy.codegen.libraries.gemm_panels import UNPACKED_TILES_BY_ROWS, UNPACKED_TILES_IN_LINES
from xlapy.codegen.libraries.gemm_problem import (
    BLOCK_COLUMNS,
    EVEN_BLOCKS,
    LEAST_BLOCK_ROWS,
    PANELS_IN_CACHE,
    ceil_div,
    round_up,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_vector import (
    FAR,
    FARTHEST,
    NEAR,
    emit_stream,
    stream_heights,
    stream_name,
)
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch

_STREAMED_ELEMENTS = 32768
"""Elements of B in a block that is read only once."""

_STREAM_COLUMNS = 1024
_STREAM_COLUMNS_OF_SHORT_VECTORS = 4096
_STREAM_SPARED_BYTES = 1 << 14
"""At least so many columns of C, and the bytes of the first-level cache that are not for sums while rows of B are
streamed. Memory is read in runs that are as long as the rows (1 by 4096 by 4096: 1024 columns take 1.1 times as long; 1
by 8192 by 4096: 4096 columns, on one core; with short vectors 4 by 4096 by 4096 takes 0.85 of the time, 2 by 4096 by
4096 0.9 and 1 by 4096 by 8192 0.93 in runs of 4096, sums that are no more in the nearest cache notwithstanding)."""

_STREAM_FEW_COLUMNS = 512
_STREAM_BLOCKS = 4
"""Fewer columns where there would not be so many blocks to share out. With less than these, memory is read in pieces
that are too short (20 % slower)."""

STREAM_LEAST_COLUMNS = 128
"""Shorter rows of B are read by tiles just as well."""

_STREAM_ALWAYS_ROWS = 2
"""With more rows than these, tiles are quicker if they can read B where it lies, and find it in the second-level cache.
"""

_UNPACKED_TILES = 4
"""Up to so many tiles one below the other A is not read often enough to be packed, whatever its strides."""

_PACKING_COLUMNS = 512
"""Of a block that packs its part of A: so many products make that a small part of the time."""

_BROAD_STRIPS = 8
"""Of a B that broad tiles copy. The last one may have a single vector, which takes as long as two."""

_PARTS_OF_NEAR_CACHE = 32
"""Of the second-level cache, one of which B may fill beside A and C if the last cache is far (3136 by 64, 576 steps:
packed, it takes 0.91 of the time; 256 by 256 the same)."""

_TILES_FROM_AFAR, _TILES_OF_LONG_FROM_AFAR = 16, 10
_SHORT_BYTES = 4
"""So many tiles one below the other meet a B that is copied from afar only once; of elements of more bytes, fewer
(Sapphire Rapids: f64, 240 by 1024 by 2048 0.93 of the time packed, f32 128 by 768 by 3072 1.1)."""

_FAR_CACHES = 4
"""A batch that is so many times as large as the second-level cache is fetched too slowly unless asked for early; with
half of that, asking takes longer than waiting."""

_CROWDING_STRIDE = 4096
_L1_CROWDING_STRIDE = 512
"""Rows of B a multiple of so many bytes apart are in each other's way in the second-level cache, or in the nearest
one."""


class GemmInPlace(GemmDots):
    """Writes what decides for these ways of computing a product, and what prepares them."""

    # Unpacked tiles

    def _stays_unpacked(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether tiles can read the operands where they lie, and packing would not pay.

        The first tile of a strip of B copies it for those below, which costs nothing as long as it computes; so it is A
        that decides. One that is contiguous along K is packed well enough: a block's part of it is read in long pieces.
        Where its rows are a power of two apart they are in each other's way, so each block copies its part. With short
        vectors there are so many strips of B that rows which lie apart are read too often (`_turns_rows`).
        If B fits the second-level cache, there are so few strips that A is not read often.

        Where the last cache is far, each block would read B from there: it is packed once for all unless there are few
        rows, or it leaves room for the rest in the second-level cache (Sapphire Rapids: 1024 by 1024 and 512 by 512
        0.9 of the time, but 197 by 768 by 768 1.07).
        """
        m, n = problem["m"], problem["n"]
        possible = k.and_(k.compare("eq", problem["uses_scratch"], 0), self._can_read_b(k, problem))
        b_bytes = k.mul(k.mul(problem["k"], n), self._kind.element.bytes)
        by_rows = k.compare("eq", problem["a_step"], self._element_bytes)
        by_columns = k.compare("eq", problem["a_row"], self._element_bytes)
        tiles = k.select(by_columns, k.const(I64, UNPACKED_TILES_IN_LINES), _UNPACKED_TILES)
        if self._target.has_far_last_cache:
            tiles = k.select(k.or_(by_rows, by_columns), k.const(I64, self._tiles_from_afar), tiles)
            by_rows = k.const(I1, 0)
        elif self._turns_rows:
            tiles = k.select(by_rows, k.const(I64, UNPACKED_TILES_BY_ROWS), tiles)
            by_rows = k.const(I1, 0)
        few = k.compare("le", m, k.mul(tiles, self._tile_rows))
        parts = _PARTS_OF_NEAR_CACHE if self._target.has_far_last_cache else 1
        small = k.compare("le", b_bytes, self._target.l2_bytes // parts)
        return k.and_(possible, k.or_(k.or_(by_rows, self._packs_rows(k, problem)), k.or_(few, small)))

    @property
    def _tiles_from_afar(self) -> int:
        """Up to so many tiles, one below the other, each block reads a large B where that lies."""
        return _TILES_FROM_AFAR if self._kind.packed.bytes <= _SHORT_BYTES else _TILES_OF_LONG_FROM_AFAR

    def _packs_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether each block packs its part of an A whose rows are side by side at each step. It is in the near cache
        then, and B need not be packed at all (1024 by 1024: 0.94 of the time; with vectors half as long 1.01). Blocks
        have to be wide, or A would be packed too often."""
        if self._has_short_vectors or self._target.has_far_last_cache:
            return k.const(I1, 0)
        m, n = problem["m"], problem["n"]
        row_blocks = k.mul(ceil_div(k, m, LEAST_BLOCK_ROWS), problem["batches"])
        is_column = k.compare("ne", problem["a_step"], self._element_bytes)
        is_column = k.and_(is_column, k.compare("eq", problem["a_row"], self._element_bytes))
        b_bytes = k.mul(k.mul(problem["k"], n), self._kind.element.bytes)
        conditions = [
            is_column,
            k.compare("gt", m, UNPACKED_TILES_IN_LINES * self._tile_rows),
            k.compare("gt", b_bytes, self._target.l2_bytes),
            k.compare("ge", n, _PACKING_COLUMNS),
            k.compare("ge", k.mul(row_blocks, ceil_div(k, n, _PACKING_COLUMNS)), EVEN_BLOCKS),
        ]
        return functools.reduce(k.and_, conditions)

    def _is_crowded(self, k: KernelBuilder, stride: Value) -> Value:
        """Whether rows so many bytes apart are in each other's way."""
        return k.compare("eq", k.and_(stride, _CROWDING_STRIDE - 1), 0)

    def _run_unpacked(self, k: KernelBuilder, problem: RecordValue, block_columns: Value | None = None) -> None:
        """One panel per matrix, the whole of it, read where it lies; all matrices at once."""
        shape, parts = self._shape, self._kind.parts
        b_bytes = k.mul(k.mul(problem["k"], problem["n"]), self._kind.element.bytes)
        strip_columns = k.const(I64, shape.columns)
        is_packed = self._is_packed_before(k, problem)
        has_wide = k.and_(k.compare("ne", problem["wide_tiles"], k.const(PTR, 0)), k.not_(is_packed))
        for rows, vectors in reversed(shape.wide):
            fits = k.and_(has_wide, k.compare("le", problem["m"], rows // parts))
            strip_columns = k.select(fits, k.const(I64, vectors * shape.lanes), strip_columns)
        copies_b = self._copies_b(k, problem, b_bytes)
        problem["is_broad"] = k.zext(self._has_broad_tiles(k, problem, copies_b), I64)
        strip_columns = k.select(
            k.compare("ne", problem["is_broad"], 0), self._columns_of_tile(k, problem), strip_columns
        )
        self._describe_operands_in_place(k, problem)
        problem.set(
            tile_b_strip=k.select(is_packed, problem["b_strip"], k.mul(strip_columns, self._kind.element.bytes)),
            stream=k.const(PTR, 0),
            copies=k.zext(copies_b, I64),
            strip_columns=strip_columns,
        )
        is_streamed = k.compare("le", problem["m"], self._tile_rows)
        if block_columns is None:
            block_columns = self._columns_of_block(k, problem)
        columns = k.select(is_streamed, self._streamed_columns(k, problem), block_columns)
        reads_rows = self._reads_far_rows(k, problem, b_bytes)
        columns = k.select(reads_rows, self._columns_of_far_rows(k, problem), columns)
        count = self._set_blocks(k, problem, self._even_rows(k, problem, columns), columns)
        problem["chunk_steps"] = k.select(reads_rows, self._steps_of_far_rows(k, problem), problem["chunk_steps"])
        problem["copies_a"] = k.or_(problem["copies_a"], k.zext(self._packs_rows(k, problem), I64))
        self._fetch_matrices_ahead(k, problem)
        blocks = k.mul(count, problem["batches"])
        run = functools.partial(self._run_blocks, k, k.parameters["parallel"], problem, blocks)
        self._with_sums_of_far_rows(k, problem, reads_rows, run)

    def _copies_b(self, k: KernelBuilder, problem: RecordValue, b_bytes: Value) -> Value:
        """Whether the first tile of a strip of B copies it for those below.

        Where it comes from afar, or its rows are in each other's way in the second-level cache; or in the nearest one,
        while each vector lies across two lines (16 bytes behind a line: 256 by 256 takes 0.95 of the time so, 64
        batches of 128 by 128 0.93). Tiles of short vectors wait for the second level wherever these lie (AVX2: 256 by
        256 takes 0.78 of the time so, f64 0.75, 128 by 128 0.88).
        """
        is_slow = k.or_(k.compare("gt", b_bytes, self._target.l2_bytes), self._is_crowded(k, problem["b_step"]))
        as_it_lies = k.not_(self._is_packed_before(k, problem))
        crowds_l1 = k.compare("eq", k.and_(problem["b_step"], _L1_CROWDING_STRIDE - 1), 0)
        is_high = k.compare("gt", problem["m"], _UNPACKED_TILES * self._tile_rows)
        if self._has_short_vectors:
            return k.and_(as_it_lies, k.or_(is_slow, k.and_(crowds_l1, is_high)))
        is_split = k.compare("ne", k.and_(k.address(problem["b"]), CACHE_LINE - 1), 0)
        return k.and_(as_it_lies, k.or_(is_slow, k.and_(is_split, k.and_(crowds_l1, is_high))))

    def _has_broad_tiles(self, k: KernelBuilder, problem: RecordValue, copies_b: Value) -> Value:
        """Whether tiles are broad: rows of A are read as they lie, B has many strips, and there are several rows of
        blocks, as rounding columns up to these strips leaves fewer in each, which threads would share less evenly. With
        an epilogue nothing was gained (f64 with bias and tanh, 1024 by 1024)."""
        if self._broad is None:
            return k.const(I1, 0)
        conditions = [
            copies_b,
            k.compare("eq", problem["a_step"], self._element_bytes),
            k.compare("gt", problem["m"], LEAST_BLOCK_ROWS),
            k.compare("eq", problem["epilogue"], k.const(PTR, 0)),
            k.compare("ge", problem["n"], _BROAD_STRIPS * self._broad.columns),
        ]
        return functools.reduce(k.and_, conditions)

    def _fetch_matrices_ahead(self, k: KernelBuilder, problem: RecordValue) -> None:
        """The next matrices of a batch that is in no near cache are fetched while tiles compute, an even share of them
        for each row of each strip (one core, 256 of 64 by 64: 0.8 of the time)."""
        rows = k.mul(ceil_div(k, problem["n"], problem["strip_columns"]), problem["m"])
        a_bytes, b_bytes = (k.mul(k.mul(problem["k"], problem[side]), self._kind.element.bytes) for side in "mn")
        both = k.add(a_bytes, b_bytes)
        is_far = k.compare("gt", k.mul(both, problem["batches"]), _FAR_CACHES * self._target.l2_bytes)
        is_small = k.compare("le", both, self._target.l2_bytes // 2)
        pays = k.and_(is_far, is_small)
        for name, bytes in (("a", a_bytes), ("b", b_bytes)):
            follows = k.compare("eq", problem[f"{name}_batch"], bytes)
            problem[f"ahead_{name}"] = k.select(k.and_(pays, follows), ceil_div(k, bytes, rows), 0)

    def _columns_of_block(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """More if there are enough blocks to share out evenly even then, above all where each must copy its rows of A;
        each copies strips of B, too (1000 by 1000: 2 % faster). Less if all of C were a single block."""
        row_blocks = k.mul(ceil_div(k, problem["m"], LEAST_BLOCK_ROWS), problem["batches"])
        is_single = k.compare("eq", k.mul(row_blocks, ceil_div(k, problem["n"], BLOCK_COLUMNS // 2)), 1)
        least = k.select(is_single, k.const(I64, BLOCK_COLUMNS // 4), BLOCK_COLUMNS // 2)
        return self._columns_of_wide_block(k, problem, row_blocks, least)

    def _even_rows(self, k: KernelBuilder, problem: RecordValue, columns: Value) -> Value:
        """Rows of a block that has so many columns: fewer where there would be too few blocks to share out evenly, but
        all where each block would copy a B from afar (f32, 140 by 1024 by 1024: 0.94 of the time)."""

        def even() -> Value:
            column_blocks = k.mul(ceil_div(k, problem["n"], columns), problem["batches"])
            part = ceil_div(k, k.mul(problem["m"], column_blocks), EVEN_BLOCKS)
            is_cut = k.compare("gt", problem["k"], self._longest_chunk(k, problem))
            most = k.select(is_cut, k.const(I64, self._part_rows), self._block_rows)
            least = k.smin(k.smax(part, LEAST_BLOCK_ROWS), most)
            if not self._target.has_far_last_cache:
                return least
            is_low = k.compare("le", problem["m"], self._tiles_from_afar * self._tile_rows)
            return k.select(is_low, problem["m"], least)

        is_high = k.compare("gt", problem["m"], LEAST_BLOCK_ROWS)
        return k.if_else(is_high, even, lambda: k.const(I64, max(self._block_rows, LEAST_BLOCK_ROWS)))[0]

    def _describe_operands_in_place(self, k: KernelBuilder, problem: RecordValue) -> None:
        """One panel, the whole matrix, as it lies in memory."""
        problem.set(
            batch=0,
            row=0,
            rows=problem["m"],
            column=0,
            columns=problem["n"],
            step=0,
            depth=problem["k"],
            adds=problem["accumulate"],
            is_last=1,
            tile_a=problem["a"],
            tile_a_batch=problem["a_batch"],
            tile_a_strip=k.mul(problem["a_row"], self._rows_of_tile(k, problem)),
            tile_a_row=problem["a_row"],
            tile_a_step=problem["a_step"],
            tile_b=problem["b"],
            tile_b_batch=problem["b_batch"],
            tile_b_step=problem["b_step"],
            sums=problem["c"],
            sums_batch=problem["c_batch"],
            sums_row=problem["c_row"],
        )

    def _streamed_columns(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """How many columns of B make a block when all of B is read only once."""
        return k.smax(k.sdiv(k.const(I64, _STREAMED_ELEMENTS), k.smax(problem["k"], 1)), 1)

    # Few rows, B by rows

    def _run_streams_if_suited(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Adds up rows of B, in C or in scratch if C cannot hold the sums and scratch can."""
        m, n = problem["m"], problem["n"]
        is_row = k.compare("eq", problem["b_column"], self._element_bytes)
        is_in_c = k.compare("eq", problem["uses_scratch"], 0)
        has_tiles = k.and_(is_in_c, self._can_read_b(k, problem))
        b_bytes = k.mul(k.mul(problem["k"], n), self._kind.element.bytes)
        is_near = k.compare("le", b_bytes, self._target.l2_bytes)
        in_tiles = k.select(is_near, k.const(I64, _STREAM_ALWAYS_ROWS), self._shape.streamed_rows)
        few = k.select(has_tiles, in_tiles, stream_heights(self._kind, self._shape)[-1])
        is_few = k.and_(k.compare("le", m, few), k.compare("ge", n, STREAM_LEAST_COLUMNS))
        sums_row = k.mul(n, self._kind.accumulator.bytes)
        fits = k.and_(
            k.compare("eq", problem["batches"], 1), k.compare("le", k.mul(m, sums_row), self._most_scratch_bytes)
        )
        with k.if_(k.and_(k.and_(is_row, is_few), k.or_(is_in_c, fits))):
            self._describe_operands_in_place(k, problem)
            blocks = ceil_div(k, k.const(I64, _STREAM_BLOCKS), problem["batches"])
            few_columns = round_up(k, ceil_div(k, n, blocks), self._shape.columns)
            bytes_of_sums = max(self._target.l1_bytes - _STREAM_SPARED_BYTES, _STREAM_SPARED_BYTES)
            near_columns = k.sdiv(k.const(I64, bytes_of_sums // self._kind.accumulator.bytes), m)
            least = _STREAM_COLUMNS_OF_SHORT_VECTORS if self._has_short_vectors else _STREAM_COLUMNS
            most_columns = k.smax(k.and_(near_columns, -self._shape.columns), least)
            columns = k.smin(k.smax(few_columns, _STREAM_FEW_COLUMNS), most_columns)
            bytes_of_b = k.mul(b_bytes, problem["batches"])
            problem.set(
                stream=self._stream_fitting(k, m),
                copies=0,
                distance=self._distance_of(k, bytes_of_b),
                strip_columns=columns,
                tile_b_strip=k.mul(columns, self._kind.element.bytes),
            )

            def in_scratch() -> None:
                scratch = acquire_scratch(k, k.mul(m, sums_row))
                problem.set(sums=scratch.memory, sums_row=sums_row, adds=0)
                self._run_streams(k, problem)
                release_scratch(k, scratch)

            k.if_else(is_in_c, lambda: self._run_streams(k, problem), in_scratch)
            k.ret()

    def streams(self) -> None:
        for rows in stream_heights(self._kind, self._shape):
            emit_stream(self._module, self._target, self._kind, self._shape, rows)

    def _stream_fitting(self, k: KernelBuilder, rows: Value) -> Value:
        """The function for so many rows."""
        *others, last = stream_heights(self._kind, self._shape)
        found = k.function_pointer(stream_name(self._kind, last))
        for height in others:
            function = k.function_pointer(stream_name(self._kind, height))
            found = k.select(k.compare("eq", rows, height), function, found)
        return found

    def _distance_of(self, k: KernelBuilder, bytes_of_b: Value) -> Value:
        """Where a B of so many bytes comes from that is streamed."""
        last_cache = self._target.l3_bytes
        is_far = k.compare("gt", bytes_of_b, last_cache // PANELS_IN_CACHE)
        distance = k.select(is_far, k.const(I64, FAR), NEAR)
        return k.select(k.compare("ge", bytes_of_b, last_cache), k.const(I64, FARTHEST), distance)

    def _run_streams(self, k: KernelBuilder, problem: RecordValue) -> None:
        count = self._set_blocks(k, problem, problem["m"], self._streamed_columns(k, problem))
        self._run_blocks(k, k.parameters["parallel"], problem, k.mul(count, problem["batches"]))
