"""Products by the matrix unit, of two matrices or a batch: what parts of C share is packed once, the rest by each.

Of the two sides, the shorter one is shared: a panel of it, or all, is packed beforehand, by all threads. The other side
is cut into parts, each some strips, the unit of work of a thread:

    for each chunk along K: pack the chunk of the part
        for each strip of the shared side, for each strip of the part: sums[strip, strip] += tile of the unit

What is packed of a part stays in the second-level cache, where the strips of the shared side go by, the next one
fetched while tiles are computed. Sums lie tile by tile in scratch memory from chunk to chunk, as rows of C may be in
each other's way in the nearest cache, and come to C with the last chunk, rounded if they have to be.

To pack f32 is to split it into planes (`gemm_planes`), which not all numbers can be. C is not written before it is
known whether all elements of the part can. If not, the part is computed by multiply-adds; if those of a shared side
that is in one panel cannot, all of C is.

Of small products, one more thing is cut: the longer side into shares, for each of which a thread packs both sides by
itself. To fetch what another core has just packed takes longer.

If the shared side is longer along K than the second-level cache has room for, and C is small beside that, K is cut into
stretches first: of each, the shared side is packed, then parts are computed, whose sums all stay until the last one.

Parts, chunks and stretches depend on sizes alone, and an element is the same for any number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from xlapy.codegen.ir import I8, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_magnitudes import SEEN_BYTES, Seen, are_sums_of_planes, expect_magnitudes
from xlapy.codegen.libraries.gemm_plane_gradient import GemmPlaneGradient
from xlapy.codegen.libraries.gemm_problem import (
    PACKED_CHUNK,
    PROBLEM,
    RANGE,
    SIZES,
    ceil_div,
    even_part,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.libraries.gemm_types import UNIT_ROW_BYTES, UNIT_ROWS, UNIT_STEPS
from xlapy.codegen.libraries.gemm_unit import PLANE_BYTES, SUMS_BYTES, configure_unit, emit_unit_kept, release_unit
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy_runtime import records

_SIDE = 2 * UNIT_ROWS
"""Rows and columns of a tile."""

_CORNER_ROW = _SIDE * 4
"""Bytes, of sums of which C has some."""

_CHUNK, _CHUNK_OF_PLANES = 32, 16
"""Tiles along K: one of sums takes as long to come and go as half of that."""

_MOST_STRIPS = 8
_FEW_STRIPS, _FEW_PARTS = 4, 4
_MANY_PARTS = 8
"""Strips of a part: fewer than the most where there would be less than many parts to share out, and fewer than a few
where there would be less than a few."""

_LEAST_STRIPS = 2

_MOST_SHARED_BYTES = 1 << 25
_MOST_STEPS = 1 << 14
"""Of a panel of the shared side, and along K: of more, panels would be low."""

_STRETCH_PART, _SUMS_PART = 3, 2
"""Of the second-level cache: for a stretch of the shared side, and for all sums (one core: 200 by 2304 by 256 takes
0.67 of the time so, 128 by 3072 by 768 0.83)."""

_SHARES = 2
_MOST_WORK_TO_SHARE = 1 << 25
"""Into how many shares small products are cut that pack both sides for themselves, and multiplications of these
(Sapphire Rapids, two cores: 256 by 256 takes 0.7 of the time so)."""

_MOST_ASPECT = 4
_COLUMNS_TO_PACK_FOR, _FEW_STEPS = 192, 64
"""Of a product that is not split: how many times as long a side may be as the other one, and for how many columns A is
packed, unless there are few steps. (Sapphire Rapids, bf16: 256 by 256 by 256 takes 0.78 of the time, eight of 512 by 64
by 512 0.6; but 256 by 256 by 64 1.12, 128 by 512 by 128 1.3, and 64 by 1000 by 2048 1.13. Larger ones are packed by
steps of more columns at once, panel by panel, unless they are wide.)"""

_WIDE, _STEPS_PER_ROW = 192, 8
_LEAST_SQUARE, _MOST_SQUARE = 1 << 29, (1 << 31) + 1
"""Of a product that is not split: rows and columns, and times as many steps along K; of squares of bytes not between so
many multiplications. (Sapphire Rapids, one core and two: bf16, 1024 by 1024 takes 0.87 and 0.81 of the time of panels,
2048 by 2048 0.81 and 0.75, 4096 by 256 by 4096 0.57 and 0.49, 320 by 1024 by 1280 0.7 and 0.58; bytes, 2048 by 2048
0.88 and 0.8, 4096 by 256 by 4096 0.71 and 0.72, 320 by 1024 by 1280 0.84 and 0.66. But 1024 by 1024 1.1 and 1.05, and
256 by 4096 by 1024 1.1 to 1.2, 128 by 3072 by 768 1.0 to 1.24.)"""

_PLAN = Record(
    problem=PTR,
    packed=PTR,  # the shared panel
    strip=I64,  # bytes from one of its strips to the next
    first=I64,  # row or column of the panel
    count=I64,  # rows or columns of it
    own_first=I64,  # strip of the other side, and behind the last one
    own_end=I64,
    width=I64,  # strips of a part
    chunk=I64,  # elements along K
    stretch=I64,  # where the stretch of K begins
    depth=I64,  # its length
    sums=PTR,  # of all parts, and what has been seen of each, from stretch to stretch
    seen=PTR,
    least=I64,  # magnitudes of the shared panel
    most=I64,
)

_NAMES = {"a": ("m", "a_row", "a_step"), "b": ("n", "b_column", "b_step")}
"""Of a side: its length across K, and the distances across and along K."""
_OTHER = {"a": "b", "b": "a"}


class _Part(records.Record):
    """Strips of a part, the first one's number; its place in C, rows and columns; where its packed chunk is, sums from
    chunk to chunk, and those of a strip of the shared side that an epilogue will see."""

    first: Value
    strips: Value
    packed: Value
    strip: Value
    sums: Value
    block: Value


class _Chunk(records.Record):
    """A stretch of K: its first step, and tiles along it; whether it is the last one, and its sums go to the epilogue
    without having been in C."""

    step: Value
    tiles: Value
    is_last: Value
    is_shown: Value


class _Tile(records.Record):
    """Sums of a strip of the part: the row and column of C where they begin, the number of the strip, where they lie
    from chunk to chunk, and room for what C has only some of."""

    row: Value
    column: Value
    strip: Value
    sums: Value
    corner: Value


class GemmUnitParts(GemmPlaneGradient):
    """Writes what decides for this way of computing a product, and the units of work."""

    def unit_parts(self) -> None:
        """The functions that threads call."""
        emit_unit_kept(self._module, self._kind, self._prefix, self._attributes)
        for own in "ab":
            self._pack_shared(_OTHER[own])
            self._parts_of(own)
            self._shares_of(own)
        self._matrix_in_parts()
        self._each_alone("matrices_in_parts", "matrix_in_parts")

    @property
    def _block_bytes(self) -> int:
        """Of a strip, for a tile along K."""
        return self._kind.planes * PLANE_BYTES

    @property
    def _steps_of_block(self) -> int:
        """Elements along K of a tile."""
        return UNIT_STEPS * self._kind.pair

    def _suits_unit_parts(self, k: KernelBuilder, problem: RecordValue) -> Value:
        conditions = [
            k.compare("eq", k.or_(problem["accumulate"], problem["b_strip"]), 0),
            k.compare("gt", k.smin(k.smin(problem["m"], problem["n"]), problem["batches"]), 0),
            k.compare("gt", problem["k"], 0),
            k.compare("le", problem["k"], _MOST_STEPS),
            k.compare("eq", self._steps_of_piece(k, problem), problem["k"]),
        ]
        if self._kind.planes == 1:
            is_small = k.and_(self._is_small(k, problem), self._is_worth_packing(k, problem))
            conditions.append(k.or_(is_small, self._is_wide(k, problem)))
        return functools.reduce(k.and_, conditions)

    def _is_worth_packing(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether, of a product that is not split, rows of A had better be packed than read where they lie."""
        longer, shorter = k.smax(problem["m"], problem["n"]), k.smin(problem["m"], problem["n"])
        is_read_often = k.compare("ge", problem["n"], _COLUMNS_TO_PACK_FOR)
        is_wide = k.or_(is_read_often, k.compare("le", problem["k"], _FEW_STEPS))
        return k.and_(is_wide, k.compare("le", longer, k.mul(shorter, _MOST_ASPECT)))

    def _is_wide(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether, of a product that is not split, there are so many sums that packing is little beside them."""
        longer, shorter = k.smax(problem["m"], problem["n"]), k.smin(problem["m"], problem["n"])
        is_short_along_k = k.compare("le", problem["k"], k.mul(shorter, _STEPS_PER_ROW))
        is_wide = k.and_(k.compare("ge", shorter, _WIDE), is_short_along_k)
        if self._kind.accumulator.is_float:
            return is_wide
        work = k.mul(k.mul(longer, shorter), problem["k"])
        is_square = k.compare("le", k.mul(longer, 4), k.mul(shorter, 5))
        is_between = k.and_(k.compare("gt", work, _LEAST_SQUARE), k.compare("lt", work, _MOST_SQUARE))
        return k.and_(is_wide, k.not_(k.and_(is_square, is_between)))

    def _run_unit_parts(self, k: KernelBuilder, problem: RecordValue) -> None:
        """The product, or those of a batch, the small ones by a thread each."""

        def one() -> None:
            self._multiply_in_parts(k, problem, k.const(I64, 0), self._plain_instead)

        def single() -> None:
            k.if_else(self._is_shared_out(k, problem), lambda: self._run_shares(k, problem), one)

        def one_by_one() -> None:
            with k.loop(0, problem["batches"]) as batch:
                k.call(f"{self._prefix}_matrix_in_parts", [k.parameters["parallel"], problem.place, batch.index])

        def several() -> None:
            together = functools.partial(self._run_matrices, k, problem, "matrices_in_parts")
            k.if_else(self._is_small(k, problem), together, one_by_one)

        k.if_else(k.compare("eq", problem["batches"], 1), single, several)

    def _run_shares(self, k: KernelBuilder, problem: RecordValue) -> None:
        """A small product, by threads that pack both sides, or by this one alone if it takes no time to speak of."""
        problem["batch"] = 0  # of which each share is a part
        run = {own: k.function_pointer(f"{self._prefix}_shares_of_{own}") for own in "ab"}
        shares = k.select(self._is_high(k, problem), run["a"], run["b"])
        each = k.mul(k.mul(problem["m"], problem["n"]), work_per_element(k, problem, problem["k"]))
        grain = self._grain(k, k.const(I64, _SHARES), k.udiv(each, _SHARES))
        alone = k.function_pointer(f"{self._prefix}_alone")
        k.if_else(
            k.compare("eq", grain, 1),
            lambda: k.call(k.parameters["parallel"], [shares, problem.place, k.const(I64, _SHARES), grain]),
            lambda: k.call(f"{self._prefix}_matrix_in_parts", [alone, problem.place, k.const(I64, 0)]),
        )

    def _is_high(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether the left side is the longer one."""
        return k.compare("gt", problem["m"], problem["n"])

    def _is_shared_out(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether each thread had better pack all that it needs of a single product: it is sooner done than what
        another core has just packed is there."""
        work = k.mul(k.mul(problem["m"], problem["n"]), problem["k"])
        longer = k.smax(problem["m"], problem["n"])
        is_long = k.compare("gt", longer, (_SHARES - 1) * _LEAST_STRIPS * _SIDE)
        return k.and_(is_long, k.compare("le", work, _MOST_WORK_TO_SHARE))

    def _plain_instead(self, k: KernelBuilder) -> None:
        """All of the product by multiply-adds."""
        k.call(self._plain("run"), list(k.parameters.values()))
        k.ret()

    def _matrix_in_parts(self) -> None:
        """Number `batch` of the problem's products."""
        with self._function(
            "matrix_in_parts", [("parallel", PTR), ("problem", PTR), ("batch", I64)], is_glue=True
        ) as k:
            problem, batch = PROBLEM.at(k, k.parameters["problem"]).copy(), k.parameters["batch"]
            for name in "abc":
                problem[name] = k.gep(problem[name], k.mul(batch, problem[f"{name}_batch"]))
            self._multiply_in_parts(k, problem, batch, None)

    def _multiply_in_parts(
        self, k: KernelBuilder, problem: RecordValue, batch: Value, instead: Callable[[KernelBuilder], None] | None
    ) -> None:
        """The product of two matrices, whose longer side is cut into parts. If all of the shorter side is looked at
        before any part is computed, and cannot be split, what to do `instead`."""
        problem["batch"] = batch

        def parts_of(own: str) -> None:
            strips = k.const(I64, 0), self._strips_of(k, problem, own)
            self._run_parts_of(k, k.parameters["parallel"], problem, own, strips, instead)

        k.if_else(self._is_high(k, problem), lambda: parts_of("a"), lambda: parts_of("b"))

    def _shares_of(self, own: str) -> None:
        """A range of shares of a product, each some strips of a side, by one thread."""
        with self._function(f"shares_of_{own}", RANGE, is_glue=True) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            alone = k.function_pointer(f"{self._prefix}_alone")
            strips = self._strips_of(k, problem, own)
            share = even_part(k, strips, ceil_div(k, strips, _SHARES), 1)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                first = k.smin(k.mul(item.index, share), strips)
                end = k.smin(k.add(first, share), strips)
                self._run_parts_of(k, alone, problem, own, (first, end), None)

    def _strips_of(self, k: KernelBuilder, problem: RecordValue, side: str) -> Value:
        return ceil_div(k, problem[_NAMES[side][0]], _SIDE)

    def _run_parts_of(
        self,
        k: KernelBuilder,
        parallel: Value,
        problem: RecordValue,
        own: str,
        strips_of_own: tuple[Value, Value],
        instead: Callable[[KernelBuilder], None] | None,
    ) -> None:
        """Parts of some strips of a side, panel by panel of the shared one."""
        depth, shared = problem["k"], _OTHER[own]
        own_first, own_end = strips_of_own
        count, strips = problem[_NAMES[shared][0]], k.sub(own_end, own_first)
        tiles = _CHUNK if self._kind.planes == 1 else _CHUNK_OF_PLANES
        chunk = even_part(k, depth, tiles * self._steps_of_block, self._steps_of_block)
        stretch = self._steps_of_stretch(k, depth, count, strips, chunk)
        strip = k.mul(ceil_div(k, stretch, self._steps_of_block), self._block_bytes)
        most = k.mul(k.smax(k.udiv(k.const(I64, _MOST_SHARED_BYTES), strip), 1), _SIDE)
        panel = even_part(k, count, most, _SIDE)
        width = self._strips_of_part(k, strips)
        plan, parts = _PLAN.new(k), ceil_div(k, strips, width)
        of_panel = k.mul(ceil_div(k, k.smin(panel, count), _SIDE), strip)
        of_sums = k.mul(k.mul(k.mul(parts, width), ceil_div(k, count, _SIDE)), SUMS_BYTES)
        is_cut = k.compare("lt", stretch, depth)
        of_seen = k.mul(parts, SEEN_BYTES)
        scratch = acquire_scratch(k, k.add(of_panel, k.select(is_cut, k.add(of_sums, of_seen), 0)))
        sums = k.gep(scratch.memory, of_panel)
        plan.set(
            problem=problem.place,
            packed=scratch.memory,
            strip=strip,
            own_first=own_first,
            own_end=own_end,
            width=width,
            chunk=chunk,
            sums=k.select(is_cut, sums, k.const(PTR, 0)),
            seen=k.gep(sums, of_sums),
        )
        with k.loop(0, count, panel) as first:
            plan.set(first=first.index, count=k.smin(panel, k.sub(count, first.index)))
            expect_magnitudes(plan)
            with k.loop(0, depth, stretch) as start:
                plan.set(stretch=start.index, depth=k.smin(stretch, k.sub(depth, start.index)))
                units, elements = self._units_of_shared(k, plan, problem, shared)
                grain = ceil_div(k, k.const(I64, PACKED_CHUNK), elements)
                k.call(parallel, [k.function_pointer(f"{self._prefix}_pack_shared_{shared}"), plan.place, units, grain])
                if instead is not None and self._kind.planes > 1:
                    is_all = k.compare("ge", plan["count"], count)
                    is_all = k.and_(is_all, k.compare("ge", k.add(start.index, stretch), depth))
                    with k.if_(k.and_(is_all, k.not_(are_sums_of_planes(k, plan)))):
                        release_scratch(k, scratch)
                        instead(k)
                work = k.mul(k.mul(k.mul(width, _SIDE), plan["count"]), k.add(plan["depth"], problem["epilogue_work"]))
                part = k.function_pointer(f"{self._prefix}_parts_of_{own}")
                k.call(parallel, [part, plan.place, parts, self._grain(k, parts, work)])
        release_scratch(k, scratch)

    def _steps_of_stretch(self, k: KernelBuilder, depth: Value, count: Value, strips: Value, chunk: Value) -> Value:
        """All, or some chunks of K, if of those of the shared side the cache has room for no more, but for all sums."""
        row = self._block_bytes // self._steps_of_block  # bytes of a strip, for a step
        of_shared = k.mul(ceil_div(k, count, _SIDE), row)
        sums = k.mul(k.mul(strips, ceil_div(k, count, _SIDE)), SUMS_BYTES)
        near = k.const(I64, self._target.l2_bytes // _STRETCH_PART)
        fits = k.compare("le", sums, self._target.l2_bytes // _SUMS_PART)
        is_long = k.compare("gt", k.mul(depth, of_shared), self._target.l2_bytes)
        most = k.mul(k.smax(k.udiv(near, k.mul(of_shared, chunk)), 1), chunk)
        return k.select(k.and_(fits, is_long), most, depth)

    def _strips_of_part(self, k: KernelBuilder, strips: Value) -> Value:
        few = k.smin(ceil_div(k, strips, _FEW_PARTS), _FEW_STRIPS)
        width = k.smax(k.smin(ceil_div(k, strips, _MANY_PARTS), _MOST_STRIPS), few)
        return even_part(k, strips, k.smax(width, _LEAST_STRIPS), 1)

    # Packing

    def _units_of_shared(
        self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, side: str
    ) -> tuple[Value, Value]:
        """How many units of the shared panel there are to pack, and elements of each."""
        strips, tiles = ceil_div(k, plan["count"], _SIDE), ceil_div(k, plan["depth"], self._steps_of_block)
        is_across = self._is_across(k, problem, side)
        others = k.select(is_across, strips, tiles)
        return k.select(is_across, tiles, strips), k.mul(others, _SIDE * self._steps_of_block)

    def _is_across(self, k: KernelBuilder, problem: RecordValue, side: str) -> Value:
        """Whether elements lie side by side across strips: then all strips are packed together, some steps at a time,
        as a strip has but two lines of a step."""
        return k.compare("ne", problem[_NAMES[side][2]], self._element_bytes)

    def _pack_shared(self, side: str) -> None:
        """A range of units of the shared panel."""
        with self._function(f"pack_shared_{side}", RANGE, is_glue=True) as k:
            plan = _PLAN.at(k, k.parameters["problem"])
            problem = PROBLEM.at(k, plan["problem"])
            begin, end = k.parameters["begin"], k.parameters["end"]
            strips, tiles = ceil_div(k, plan["count"], _SIDE), ceil_div(k, plan["depth"], self._steps_of_block)
            seen = Seen(k)
            goal = plan["packed"], plan["strip"]
            pack = functools.partial(self._pack, k, problem, side, *goal, plan["first"], plan["stretch"], seen=seen)
            zero = k.const(I64, 0)
            k.if_else(
                self._is_across(k, problem, side),
                lambda: pack(zero, strips, begin, k.smin(end, tiles)),
                lambda: pack(begin, end, zero, tiles),
            )
            seen.tell(plan)

    def _pack(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        side: str,
        packed: Value,
        strip_bytes: Value,
        first: Value,
        start: Value,
        begin: Value,
        end: Value,
        begin_tile: Value,
        end_tile: Value,
        *,
        seen: Seen,
    ) -> None:
        """Strips from `begin` to `end` of a side, which begins at row or column `first` and at step `start`: some tiles
        along K."""
        length, across, along = _NAMES[side]
        is_split, is_of_rows = self._kind.planes > 1, side == "a"
        function = f"{self._prefix}_{'copy_rows' if is_of_rows and not is_split else f'pack_{side}'}"
        whole = k.smax(k.sub(end_tile, begin_tile), 1)
        tiles_at_once = k.const(I64, 1)
        if is_split or not is_of_rows:
            tiles_at_once = k.select(self._is_across(k, problem, side), 1, whole)
        more = [seen.place] if is_split else [k.const(I64, UNIT_ROW_BYTES)] if is_of_rows else []
        with k.loop(begin_tile, end_tile, tiles_at_once) as tile, k.loop(begin, end) as strip:
            position = k.add(first, k.mul(strip.index, _SIDE))
            step = k.add(start, k.mul(tile.index, self._steps_of_block))
            depth = k.smin(k.sub(problem["k"], step), k.mul(tiles_at_once, self._steps_of_block))
            valid = k.smin(k.sub(problem[length], position), _SIDE)
            source = k.gep(k.gep(problem[side], k.mul(problem[across], position)), k.mul(problem[along], step))
            goal = k.gep(k.gep(packed, k.mul(strip.index, strip_bytes)), tile.index, self._block_bytes)
            k.call(function, [depth, source, problem[across], problem[along], valid, goal, *more])

    # A part

    def _parts_of(self, own: str) -> None:
        """A range of the parts of a side."""
        with self._function(f"parts_of_{own}", RANGE) as k:
            plan = _PLAN.at(k, k.parameters["problem"])
            problem = PROBLEM.at(k, plan["problem"])
            width, chunk = plan["width"], plan["chunk"]
            shared_strips = ceil_div(k, plan["count"], _SIDE)
            strip = k.mul(k.udiv(chunk, self._steps_of_block), self._block_bytes)
            of_packed, sums_of_part = k.mul(width, strip), k.mul(k.mul(width, shared_strips), SUMS_BYTES)
            is_stretched = k.compare("ne", plan["sums"], k.const(PTR, 0))
            is_cut = k.and_(k.compare("lt", chunk, problem["k"]), k.not_(is_stretched))
            of_sums = k.select(is_cut, sums_of_part, 0)
            of_block = k.mul(k.mul(width, _SIDE), self._block_row_bytes(k, k.const(I64, _SIDE)))
            scratch = acquire_scratch(k, k.add(k.add(of_packed, of_sums), of_block))
            sums = k.gep(scratch.memory, of_packed)
            seen = Seen(k)
            configure_unit(k, self._prefix)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                first = k.add(plan["own_first"], k.mul(item.index, width))
                strips = k.smin(width, k.sub(plan["own_end"], first))
                lasting = k.gep(plan["sums"], k.mul(item.index, sums_of_part))
                block = k.gep(sums, of_sums)
                part = _Part(first, strips, scratch.memory, strip, k.select(is_stretched, lasting, sums), block)
                noted = k.gep(plan["seen"], k.mul(item.index, SEEN_BYTES))
                k.if_else(
                    k.compare("eq", plan["stretch"], 0), seen.forget, lambda: k.memcpy(seen.place, noted, SEEN_BYTES)
                )
                end = k.add(plan["stretch"], plan["depth"])
                with k.loop(plan["stretch"], end, chunk) as step:
                    self._chunk_of_part(k, plan, problem, own, part, step.index, seen)
                with k.if_(is_stretched):
                    k.memcpy(noted, seen.place, SEEN_BYTES)
            release_unit(k)
            release_scratch(k, scratch)

    def _block_row_bytes(self, k: KernelBuilder, columns: Value) -> Value:
        """From row to row of sums that an epilogue sees: no power of two."""
        return k.add(k.mul(columns, self._c_bytes), CACHE_LINE)

    def _chunk_of_part(
        self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, own: str, part: _Part, step: Value, seen: Seen
    ) -> None:
        """Splits it, and adds its products to the sums, unless it is the last one and not all could be split."""
        depth = k.smin(plan["chunk"], k.sub(problem["k"], step))
        is_last = k.compare("ge", k.add(step, depth), problem["k"])
        chunk = _Chunk(
            step, ceil_div(k, depth, self._steps_of_block), is_last, k.and_(is_last, self._may_buffer(k, problem))
        )
        first, zero = k.mul(part.first, _SIDE), k.const(I64, 0)
        strips, tiles = (zero, part.strips), (zero, chunk.tiles)
        self._pack(k, problem, own, part.packed, part.strip, first, step, *strips, *tiles, seen=seen)
        compute = functools.partial(self._tiles_of_chunk, k, plan, problem, own, part, chunk)
        if self._kind.planes == 1:
            compute()
            return
        is_unfit = k.and_(is_last, k.not_(seen.fits_beside(plan)))
        k.if_else(is_unfit, lambda: self._plain_part(k, plan, problem, own, part), compute)

    def _tiles_of_chunk(
        self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, own: str, part: _Part, chunk: _Chunk
    ) -> None:
        """Of each strip of the shared side with each of the part."""
        from_stretch = k.sub(chunk.step, plan["stretch"])
        place = k.gep(plan["packed"], k.udiv(from_stretch, self._steps_of_block), self._block_bytes)
        adds = k.zext(k.compare("gt", chunk.step, 0), I64)
        with k.loop(0, ceil_div(k, plan["count"], _SIDE)) as shared:
            operand = k.gep(place, k.mul(shared.index, plan["strip"]))
            following = k.gep(operand, plan["strip"])
            with k.loop(0, part.strips) as strip:
                sides = {own: k.gep(part.packed, k.mul(strip.index, part.strip)), _OTHER[own]: operand}
                number = k.add(k.mul(shared.index, part.strips), strip.index)
                fetched = k.udiv(k.mul(k.mul(strip.index, chunk.tiles), self._block_bytes), part.strips)
                tile = _Tile(
                    *self._position(k, plan, own, part, shared.index, strip.index),
                    strip=strip.index,
                    sums=k.gep(part.sums, number, SUMS_BYTES),
                    corner=k.alloca(I8, SUMS_BYTES, align=CACHE_LINE),
                )
                given = [chunk.tiles, sides["a"], sides["b"], tile.sums, adds]
                given += [*self._goal(k, problem, own, part, chunk, tile), k.gep(following, fetched)]
                k.call(f"{self._prefix}_kept", given)
                with k.if_(self._is_in_corner(k, problem, chunk, tile)):
                    self._copy_corner(k, problem, own, part, chunk, tile)
            with k.if_(chunk.is_last):
                row, column = self._position(k, plan, own, part, shared.index, k.const(I64, 0))
                self._show(k, problem, own, part, chunk.is_shown, row, column)

    def _goal(
        self, k: KernelBuilder, problem: RecordValue, own: str, part: _Part, chunk: _Chunk, tile: _Tile
    ) -> list[Value]:
        """Where the sums of a tile go: the place, and the bytes to the next row, to the quarter beside, and to that
        below."""

        in_corner = [tile.corner, k.const(I64, _CORNER_ROW)]

        def in_c() -> list[Value]:
            place = self._place_in_c(k, problem, tile.row, tile.column)
            in_rows = [place, problem["c_row"]]
            return k.if_else(self._is_whole(k, problem, tile), lambda: in_rows, lambda: in_corner)

        def complete() -> list[Value]:
            place, pitch = in_corner
            if self._kind.accumulates_in_result:
                in_block = self._place_to_show(k, own, part, tile.strip)
                place, pitch = k.if_else(chunk.is_shown, lambda: in_block, in_c)
            return [place, pitch, k.const(I64, UNIT_ROW_BYTES), k.mul(pitch, UNIT_ROWS)]

        quarter = [k.const(I64, bytes) for bytes in (UNIT_ROW_BYTES, SUMS_BYTES // 4, SUMS_BYTES // 2)]
        return k.if_else(chunk.is_last, complete, lambda: [tile.sums, *quarter])

    def _position(
        self, k: KernelBuilder, plan: RecordValue, own: str, part: _Part, shared: Value, strip: Value
    ) -> tuple[Value, Value]:
        """Row and column of C where a tile begins."""
        of_shared = k.add(plan["first"], k.mul(shared, _SIDE))
        of_own = k.mul(k.add(part.first, strip), _SIDE)
        return (of_own, of_shared) if own == "a" else (of_shared, of_own)

    def _place_in_c(self, k: KernelBuilder, problem: RecordValue, row: Value, column: Value) -> Value:
        return k.gep(k.gep(problem["c"], k.mul(row, problem["c_row"])), k.mul(column, problem["c_column"]))

    def _is_whole(self, k: KernelBuilder, problem: RecordValue, tile: _Tile) -> Value:
        """Whether C has all of a tile, and by rows."""
        has_rows = k.compare("le", k.add(tile.row, _SIDE), problem["m"])
        has_columns = k.compare("le", k.add(tile.column, _SIDE), problem["n"])
        is_by_rows = k.compare("eq", problem["c_column"], self._c_bytes)
        return k.and_(k.and_(has_rows, has_columns), is_by_rows)

    def _is_in_corner(self, k: KernelBuilder, problem: RecordValue, chunk: _Chunk, tile: _Tile) -> Value:
        """Whether sums are complete, and to be copied: rounded, or those of them that C has."""
        if not self._kind.accumulates_in_result:
            return chunk.is_last
        is_in_c = k.and_(chunk.is_last, k.not_(chunk.is_shown))
        return k.and_(is_in_c, k.not_(self._is_whole(k, problem, tile)))

    def _copy_corner(
        self, k: KernelBuilder, problem: RecordValue, own: str, part: _Part, chunk: _Chunk, tile: _Tile
    ) -> None:
        """The part of a tile that C has, to C, or to where the epilogue will see it."""
        places = (("m", tile.row), ("n", tile.column))
        valid = [k.smin(k.sub(problem[name], place), _SIDE) for name, place in places]
        goal = [self._place_in_c(k, problem, tile.row, tile.column), problem["c_row"], problem["c_column"]]
        if not self._kind.accumulates_in_result:
            in_block = [*self._place_to_show(k, own, part, tile.strip), k.const(I64, self._c_bytes)]
            in_c = goal
            goal = k.if_else(chunk.is_shown, lambda: in_block, lambda: in_c)
        k.call(f"{self._prefix}_copy_out", [tile.corner, k.const(I64, _CORNER_ROW), *goal, *valid, k.const(I64, 0)])

    # What an epilogue sees

    def _place_to_show(self, k: KernelBuilder, own: str, part: _Part, strip: Value) -> list[Value]:
        """Where a strip's sums go that the epilogue will see with those of all others of the part, and the bytes from
        row to row."""
        pitch = self._block_pitch(k, own, part)
        offset = k.mul(strip, _SIDE * self._c_bytes) if own == "b" else k.mul(k.mul(strip, _SIDE), pitch)
        return [k.gep(part.block, offset), pitch]

    def _block_pitch(self, k: KernelBuilder, own: str, part: _Part) -> Value:
        columns = k.mul(part.strips, _SIDE) if own == "b" else k.const(I64, _SIDE)
        return self._block_row_bytes(k, columns)

    def _show(
        self, k: KernelBuilder, problem: RecordValue, own: str, part: _Part, is_shown: Value, row: Value, column: Value
    ) -> None:
        """Shows the epilogue the sums of a strip of the shared side and all of the part."""
        length = k.mul(part.strips, _SIDE)
        sizes = (k.const(I64, _SIDE), length) if own == "b" else (length, k.const(I64, _SIDE))
        rows = k.smin(sizes[0], k.sub(problem["m"], row))
        columns = k.smin(sizes[1], k.sub(problem["n"], column))
        c = self._place_in_c(k, problem, row, column)
        in_block = [part.block, self._block_pitch(k, own, part), k.const(I64, self._c_bytes)]
        in_c = [c, problem["c_row"], problem["c_column"]]
        source = k.if_else(is_shown, lambda: in_block, lambda: in_c)
        self._run_epilogue(k, problem, [c, problem["batch"], row, rows, column, columns], source)

    # What cannot be split

    def _plain_part(self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, own: str, part: _Part) -> None:
        """The part by multiply-adds, by this thread alone."""
        row, column = self._position(k, plan, own, part, k.const(I64, 0), k.const(I64, 0))
        length = k.mul(part.strips, _SIDE)
        sizes = (plan["count"], length) if own == "b" else (length, plan["count"])
        rows = k.smin(sizes[0], k.sub(problem["m"], row))
        columns = k.smin(sizes[1], k.sub(problem["n"], column))
        places = [
            k.gep(problem["a"], k.mul(row, problem["a_row"])),
            k.gep(problem["b"], k.mul(column, problem["b_column"])),
            self._place_in_c(k, problem, row, column),
        ]
        numbers = self._numbers_of_plain(k, problem, rows, columns)
        null, alone = k.const(PTR, 0), k.function_pointer(f"{self._prefix}_alone")
        k.call(self._plain("run"), [alone, *places, numbers, null, null])
        source = [places[-1], problem["c_row"], problem["c_column"]]
        self._run_epilogue(k, problem, [places[-1], problem["batch"], row, rows, column, columns], source)

    def _numbers_of_plain(self, k: KernelBuilder, problem: RecordValue, rows: Value, columns: Value) -> Value:
        """The sizes that describe the part to the library's function."""
        given: dict[str, Value] = {"batches": k.const(I64, 1), "m": rows, "n": columns, "k": problem["k"]}
        for name in ("a_row", "a_step", "b_step", "b_column"):
            given[name] = k.sdiv(problem[name], self._element_bytes)
        for name in ("c_row", "c_column"):
            given[name] = k.sdiv(problem[name], self._c_bytes)
        numbers = k.alloca(I64, len(SIZES))
        for index, name in enumerate(SIZES):
            k.store(k.gep(numbers, index, I64.bytes), given.get(name, k.const(I64, 0)))
        return numbers
