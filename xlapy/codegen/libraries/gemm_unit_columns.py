"""Convolutions of small images in planes: each thread splits the columns of B that it multiplies with.

Where B is larger than the regions of some images (`gemm_unit_regions`) that have room in the second-level cache, B is
most of what is read. To split all of it first would write it to memory, and read it again for each unit. So all regions
are copied first, by all threads, and then, for one group of images after the other, a share of the columns, some
strips, is the unit of work of a thread:

    for each chunk of K, some features of a row of places of the window: split it
        for each region, for each tile of positions, for each strip: sums[tile, strip] += region[tile] B[chunk, strip]

A chunk stays in the second-level cache beside the regions, and so do the sums. Of a row of B several lines are read at
once, as the processor does not see ahead what lies a row further.

Magnitudes are noted on the way (`gemm_magnitudes`), and C is not written before they are known: if the array is none of
sums of planes, the processor convolves; if a share is none, or not beside the array, it computes those columns.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_direct import Unit
from xlapy.codegen.libraries.gemm_magnitudes import Seen, are_sums_of_planes, expect_magnitudes
from xlapy.codegen.libraries.gemm_problem import PROBLEM, RANGE, SIZES, ceil_div, even_part, work_per_element
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.libraries.gemm_regions import Region
from xlapy.codegen.libraries.gemm_types import BF16_BYTES, UNIT_ROW_BYTES, UNIT_ROWS
from xlapy.codegen.libraries.gemm_unit import PLACE, SUMS_BYTES, configure_unit, release_unit
from xlapy.codegen.libraries.gemm_unit_regions import GemmUnitRegions, divided
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy_runtime import records

_LEAST_STRIPS = 4
"""To share out."""

MUCH_LARGER = 2
"""Than the second-level cache, B is that is split for one group of images after the other (eight of 14 by 14 pixels and
256 features take 1.1 of the time so)."""

MOST_OF_ALL_COLUMNS = (_LEAST_STRIPS - 1) * 2 * UNIT_ROWS
"""Of a B that is split before its columns are shared out."""

BYTES_IN_PLANES = 3 * BF16_BYTES
"""Of an element."""

_SHARES, _MOST_STRIPS = 4, 4
"""So many shares there are at least, and strips of a share at most."""

_LEAST_COPIES = 4
"""Into which copying is shared out: what another core has copied comes slowly (two cores, 28 by 28 of 128 features:
0.89 of the time so)."""

_CHUNK_PART = 12
"""Of the second-level cache, for a chunk."""

_PLAN = Record(
    problem=PTR,
    regions=PTR,
    region=I64,  # bytes from one to the next
    least=I64,  # magnitudes of the array
    most=I64,
    first=I64,  # image of the group at hand, and behind the last one
    end=I64,
    width=I64,  # strips of a share
    chunk=I64,  # tiles along the features of a pixel
    windows=PTR,  # what the library was called with
    sizes=PTR,
)


class _Chunk(records.Record):
    """A part of K: a row of places, the first of some tiles along features, and how many; whether the sums are complete
    behind it."""

    row: Value
    tile: Value
    tiles: Value
    is_last: Value


class _Later(records.Record):
    """The next chunk: its row of places, its first tile along features, the steps of each place, and all of these;
    those that are fetched beside each tile, and beside each pair of planes of a tile along K."""

    row: Value
    tile: Value
    steps: Value
    count: Value
    of_tile: Value
    of_pair: Value


class GemmUnitColumns(GemmUnitRegions):
    """Writes what decides for this way of computing a convolution, and the units of work."""

    def unit_columns(self) -> None:
        """The functions that threads call."""
        self._copies_of_regions()
        self._shares_of_columns()

    # Whether, and how it is cut

    def _suits_unit_columns(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether B is larger than the regions that the cache has room for, much larger if these are not all, and has
        columns to share out."""
        cut = problem.copy()
        self._cut_images(k, cut)
        runs, unit_bytes = self._runs(k, cut, self._geometry(k, cut)), self._bytes_of_unit(k, cut)
        units, group = self._units_of_matrix(k, cut), self._units_of_group(k, cut)
        least = k.select(k.compare("eq", units, group), k.mul(units, unit_bytes), MUCH_LARGER * self._target.l2_bytes)
        strips = ceil_div(k, problem["n"], self._shape.columns)
        of_b = k.mul(k.mul(k.mul(runs.count, runs.tiles), strips), self._bytes_of_tile)
        conditions = [
            k.compare("eq", self._window_number(k, problem, "is_gradient"), 0),
            k.not_(self._is_packed_before(k, problem)),
            k.compare("le", unit_bytes, self._target.l2_bytes),
            k.compare("gt", of_b, least),
            k.compare("ge", strips, _LEAST_STRIPS),
        ]
        return functools.reduce(k.and_, conditions)

    def _units_of_group(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """How many regions there are in the cache at a time."""
        most = k.udiv(k.const(I64, self._target.l2_bytes), self._bytes_of_unit(k, problem))
        return even_part(k, self._units_of_matrix(k, problem), k.smax(most, 1), 1)

    def _cut_images(self, k: KernelBuilder, problem: RecordValue) -> None:
        """All rows of an image are a unit."""
        rows = self._window_number(k, problem, "row_count2")
        self._cut_rows(k, problem, self._pixel_bytes(k, problem), self._target.l2_bytes, rows)
        problem.set(
            unit_positions=self._window_number(k, problem, "row_count3"),
            row_groups=ceil_div(k, rows, problem["unit_rows"]),
            position_groups=1,
        )

    def _bytes_of_unit(self, k: KernelBuilder, problem: RecordValue) -> Value:
        pixels = self._pixels_of_region(k, problem, self._geometry(k, problem))
        return k.mul(pixels, self._pixel_bytes(k, problem))

    def _place_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Rows of places of the window, those of all planes."""
        geometry = self._geometry(k, problem)
        return k.mul(geometry.planes, geometry.place_rows)

    @property
    def _bytes_of_tile(self) -> int:
        """Of a strip of B, for a tile along K."""
        return self._shape.columns * self._kind.packed.bytes * self._kind.steps_of_tile

    def _tiles_of_unit(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """How many there are below one another, in the highest unit."""
        return ceil_div(k, k.mul(problem["unit_rows"], problem["pixels"]), self._shape.rows)

    # All of it

    def _run_unit_columns(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Group by group of features: all regions are copied, then shares of columns computed."""
        self._cut_images(k, problem)
        runs = self._runs(k, problem, self._geometry(k, problem))
        tile_b_step = self._shape.columns * self._kind.packed.bytes
        problem.set(uses_scratch=1, copies=0, strip_columns=self._shape.columns, a_strips=0, tile_b_step=tile_b_step)
        strips = ceil_div(k, problem["n"], self._shape.columns)
        width = k.smax(k.smin(k.udiv(strips, _SHARES), _MOST_STRIPS), 1)
        of_tiles = k.mul(k.mul(runs.of_line, width), self._bytes_of_tile)
        most = k.smax(k.udiv(k.const(I64, self._target.l2_bytes // _CHUNK_PART), of_tiles), 1)
        chunk = even_part(k, runs.tiles, most, 1)
        places = self._table_of_places(k, problem, runs, chunk)
        units, group = self._units_of_matrix(k, problem), self._units_of_group(k, problem)
        unit_bytes = self._bytes_of_unit(k, problem)
        behind = k.add(k.mul(self._pixel_bytes(k, problem), self._shape.rows), UNIT_ROW_BYTES)
        regions = acquire_scratch(k, k.add(k.mul(units, unit_bytes), behind))
        plan = _PLAN.new(k)
        plan.set(problem=problem.place, regions=regions.memory, region=unit_bytes, width=width, chunk=chunk)
        plan.set(windows=k.parameters["windows"], sizes=k.parameters["sizes"])
        expect_magnitudes(plan)
        shares, columns = ceil_div(k, strips, width), k.mul(width, self._shape.columns)
        rows = k.udiv(k.mul(problem["m"], group), units)
        work = k.mul(k.mul(rows, columns), work_per_element(k, problem, problem["k"]))
        is_single = k.compare("eq", problem["batches"], 1)
        with k.loop(0, problem["batches"]) as batch:
            problem["batch"] = batch.index
            copies = k.mul(units, self._copies_of_unit(k, problem))
            self._share_out(k, "copies_of_regions", plan, copies, k.const(I64, 1))
            with k.if_(k.and_(is_single, k.not_(are_sums_of_planes(k, plan)))):
                release_scratch(k, regions)
                release_scratch(k, places)
                k.call(self._plain("windows"), list(k.parameters.values()))
                k.ret()
            with k.loop(0, units, group) as first:
                plan.set(first=first.index, end=k.smin(k.add(first.index, group), units))
                self._share_out(k, "shares_of_columns", plan, shares, self._grain(k, shares, work))
        release_scratch(k, regions)
        release_scratch(k, places)

    def _share_out(self, k: KernelBuilder, name: str, plan: RecordValue, count: Value, grain: Value) -> None:
        function = k.function_pointer(f"{self._prefix}_{name}")
        k.call(k.parameters["parallel"], [function, plan.place, count, grain])

    def _copies_of_unit(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Into how many parts to copy a region is shared out: into some if there are few regions."""
        return k.smin(ceil_div(k, k.const(I64, _LEAST_COPIES), self._units_of_matrix(k, problem)), problem["unit_rows"])

    def _copies_of_regions(self) -> None:
        """A range of parts of units, some rows of positions each: copies the lines under them, and tells of their
        magnitudes. Lines under two parts are copied twice."""
        with self._function("copies_of_regions", RANGE, is_glue=True) as k:
            plan = _PLAN.at(k, k.parameters["problem"])
            problem = PROBLEM.at(k, plan["problem"])
            array = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
            parts = self._copies_of_unit(k, problem)
            most = ceil_div(k, problem["unit_rows"], parts)
            line_bytes = k.mul(problem["pixels"], self._pixel_bytes(k, problem))
            seen = Seen(k)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                unit, part = divided(k, item.index, parts)
                first, rows, positions = self._positions_of_unit(k, problem, unit)
                row = k.mul(part, most)
                count = k.smin(most, k.sub(rows, row))
                region = k.gep(k.gep(plan["regions"], k.mul(unit, plan["region"])), k.mul(row, line_bytes))
                with k.if_(k.compare("gt", count, 0)):
                    self._copy_unit(k, problem, array, k.add(first, k.mul(row, positions)), count, region, seen)
            seen.tell(plan)

    # Shares

    def _shares_of_columns(self) -> None:
        """A range of shares of the columns of B."""
        with self._function("shares_of_columns", RANGE) as k:
            plan = _PLAN.at(k, k.parameters["problem"])
            problem = PROBLEM.at(k, plan["problem"]).copy()
            runs, width = self._runs(k, problem, self._geometry(k, problem)), plan["width"]
            rows, chunk, columns = self._place_rows(k, problem), plan["chunk"], k.mul(width, self._shape.columns)
            strip_bytes = k.mul(k.mul(chunk, runs.of_line), self._bytes_of_tile)
            tiles = k.mul(k.sub(plan["end"], plan["first"]), self._tiles_of_unit(k, problem))
            of_sums = k.mul(k.mul(tiles, width), SUMS_BYTES)
            scratch = acquire_scratch(k, k.add(of_sums, k.mul(width, strip_bytes)))
            problem.set(tile_b=k.gep(scratch.memory, of_sums), tile_b_strip=strip_bytes)
            seen = Seen(k)
            configure_unit(k, self._prefix)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as share:
                column = k.mul(share.index, columns)
                problem.set(column=column, columns=k.smin(k.sub(problem["n"], column), columns))
                seen.forget()
                with k.loop(0, rows) as row, k.loop(0, runs.tiles, chunk) as tile:
                    count = k.smin(chunk, k.sub(runs.tiles, tile.index))
                    is_end = k.compare("ge", k.add(tile.index, count), runs.tiles)
                    is_last = k.and_(k.compare("eq", row.index, k.sub(rows, 1)), is_end)
                    here = _Chunk(row.index, tile.index, count, is_last)
                    self._chunk_of_share(k, plan, problem, here, scratch.memory, seen)
            release_unit(k)
            release_scratch(k, scratch)

    def _chunk_of_share(
        self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, chunk: _Chunk, sums: Value, seen: Seen
    ) -> None:
        """A part of the columns at hand: it is split, and its products added to the sums, unless it is the last one and
        not all could be split. The processor computes the columns of all images then, with those of the first group."""
        self._split_chunk(k, plan, problem, chunk, seen)

        def plain() -> None:
            with k.if_(k.compare("eq", plan["first"], 0)):
                self._plain_columns(k, plan, problem)

        k.if_else(
            k.and_(chunk.is_last, k.not_(seen.fits_beside(plan))),
            plain,
            lambda: self._columns_in_planes(k, plan, problem, chunk, sums),
        )

    def _split_chunk(
        self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, chunk: _Chunk, seen: Seen
    ) -> None:
        """The features of each place, filled up to whole tiles, tile by tile of all strips."""
        runs, shape = self._runs(k, problem, self._geometry(k, problem)), self._shape
        lies = [problem["b_column"], problem["b_step"]]
        with (
            k.loop(0, runs.of_line) as place,
            k.loop(0, chunk.tiles) as tile,
            k.loop(0, problem["columns"], shape.columns) as strip,
        ):
            feature = k.mul(k.add(chunk.tile, tile.index), self._features_of_line)
            source = self._features_of_b(k, problem, chunk.row, place.index, feature, strip.index)
            number = k.add(k.mul(place.index, plan["chunk"]), tile.index)
            goal = k.gep(problem["tile_b"], k.mul(k.udiv(strip.index, shape.columns), problem["tile_b_strip"]))
            goal = k.gep(goal, k.mul(number, self._bytes_of_tile))
            depth = k.smin(k.sub(runs.steps, feature), self._features_of_line)
            valid = k.smin(k.sub(problem["columns"], strip.index), shape.columns)
            k.call(f"{self._prefix}_pack_b", [depth, source, *lies, valid, goal, seen.place])

    def _features_of_b(
        self, k: KernelBuilder, problem: RecordValue, row: Value, place: Value, feature: Value, column: Value
    ) -> Value:
        """Where those of a place of a row begin, in a column of those at hand."""
        runs = self._runs(k, problem, self._geometry(k, problem))
        step = k.add(k.mul(k.add(k.mul(row, runs.of_line), place), runs.steps), feature)
        b = k.gep(problem["b"], k.mul(problem["batch"], problem["b_batch"]))
        column = k.add(problem["column"], column)
        return k.gep(k.gep(b, k.mul(step, problem["b_step"])), k.mul(column, problem["b_column"]))

    def _next_chunk(self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, chunk: _Chunk) -> _Later:
        """What of the columns at hand is split next, and how much of it is fetched beside each tile. Of columns that
        are contiguous, the processor sees by itself what will be read."""
        runs, chunk_tiles = self._runs(k, problem, self._geometry(k, problem)), plan["chunk"]
        behind = k.add(chunk.tile, chunk.tiles)
        is_in_row = k.compare("lt", behind, runs.tiles)
        row, tile = k.select(is_in_row, chunk.row, k.add(chunk.row, 1)), k.select(is_in_row, behind, 0)
        is_across = k.compare("eq", problem["b_column"], self._element_bytes)
        is_there = k.and_(is_across, k.not_(chunk.is_last))
        steps = k.mul(k.smin(chunk_tiles, k.sub(runs.tiles, tile)), self._features_of_line)
        count = k.select(is_there, k.mul(steps, runs.of_line), 0)
        images = k.sub(plan["end"], plan["first"])
        of_tile = ceil_div(k, count, k.mul(images, self._tiles_of_unit(k, problem)))
        pairs = k.mul(k.mul(chunk.tiles, runs.of_line), len(self._kind.plane_products))
        return _Later(row, tile, steps, count, of_tile, ceil_div(k, of_tile, pairs))

    def _beside_tile(
        self, k: KernelBuilder, problem: RecordValue, later: _Later, number: Value, column: Value
    ) -> tuple[Value, ...]:
        """What is fetched beside a tile of a strip: where, the bytes from row to row, and the rows for each pair of
        planes."""
        first = k.mul(number, later.of_tile)
        place, step = divided(k, first, later.steps)
        feature = k.add(k.mul(later.tile, self._features_of_line), step)
        source = self._features_of_b(k, problem, later.row, place, feature, column)
        rows = k.select(k.compare("lt", first, later.count), later.of_pair, 0)
        return source, problem["b_step"], rows

    def _columns_in_planes(
        self, k: KernelBuilder, plan: RecordValue, problem: RecordValue, chunk: _Chunk, sums: Value
    ) -> None:
        """Adds the products of a chunk to the sums of all positions, for the columns at hand."""
        geometry, pixel_bytes, shape = self._geometry(k, problem), self._pixel_bytes(k, problem), self._shape
        runs = self._runs(k, problem, geometry)
        first_place = k.mul(k.add(k.mul(chunk.row, runs.tiles), chunk.tile), runs.of_line)
        place, count = k.gep(problem["places"], k.mul(first_place, PLACE.size)), k.mul(chunk.tiles, runs.of_line)
        adds, later = k.zext(k.compare("gt", first_place, 0), I64), self._next_chunk(k, plan, problem, chunk)
        with k.loop(plan["first"], plan["end"]) as number:
            first, rows, positions = self._positions_of_unit(k, problem, number.index)
            memory = k.gep(plan["regions"], k.mul(number.index, plan["region"]))
            region = Region(memory, k.mul(problem["pixels"], pixel_bytes), pixel_bytes)
            unit = Unit(problem, geometry, region, memory, first, rows, positions)
            pixels = k.add(k.mul(k.sub(rows, 1), problem["pixels"]), positions)
            of_unit = k.mul(k.sub(number.index, plan["first"]), self._tiles_of_unit(k, problem))
            with k.loop(0, pixels, shape.rows) as tile, k.loop(0, problem["columns"], shape.columns) as column:
                strip = k.udiv(column.index, shape.columns)
                row = k.add(of_unit, k.udiv(tile.index, shape.rows))
                kept = k.gep(sums, k.mul(k.add(k.mul(row, plan["width"]), strip), SUMS_BYTES))
                b = k.gep(problem["tile_b"], k.mul(strip, problem["tile_b_strip"]))
                fetched = self._beside_tile(k, problem, later, row, column.index)
                self._tile_in_planes(k, unit, tile.index, b, kept, (place, count), adds, fetched)
                with k.if_(chunk.is_last):
                    valid = k.smin(k.sub(problem["columns"], column.index), shape.columns)
                    columns = [k.add(problem["column"], column.index), valid]
                    self._finish_rows(k, unit, tile.index, pixels, kept, columns)

    def _plain_columns(self, k: KernelBuilder, plan: RecordValue, problem: RecordValue) -> None:
        """The columns at hand by multiply-adds, by this thread alone."""
        places = [k.gep(problem[name], k.mul(problem["batch"], problem[f"{name}_batch"])) for name in "abc"]
        places[1] = k.gep(places[1], k.mul(problem["column"], problem["b_column"]))
        places[2] = k.gep(places[2], k.mul(problem["column"], problem["c_column"]))
        numbers = k.alloca(I64, len(SIZES))
        k.memcpy(numbers, plan["sizes"], len(SIZES) * I64.bytes)
        for name, number in (("batches", k.const(I64, 1)), ("n", problem["columns"])):
            k.store(k.gep(numbers, SIZES.index(name), I64.bytes), number)
        null, alone = k.const(PTR, 0), k.function_pointer(f"{self._prefix}_alone")
        k.call(self._plain("windows"), [alone, *places, numbers, null, null, plan["windows"]])
        block = [k.const(I64, 0), problem["m"], problem["column"], problem["columns"]]
        source = [places[2], problem["c_row"], problem["c_column"]]
        self._run_epilogue(k, problem, [places[2], problem["batch"], *block], source)
