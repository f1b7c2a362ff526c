"""Convolutions by the matrix unit, whose tiles read regions of the array that are copied, f32 in planes of bf16.

A unit of work is some rows of positions of the window. The region of the array under all of them is copied once, with
zeros for what lies outside; f32 is split into planes, as `gemm_planes` does with matrices: 32 features of a pixel make
a line of each plane, and those lines follow each other, then the next features.

The positions of all rows of a unit are numbered through, as pixels of the region are: between the end of a row and the
beginning of the next one are some where the window has a part of both. Their sums are made, and dropped. So a tile
reads 32 pixels one after the other wherever rows end, and what a place of the window adds to its address is the same
for all tiles:

    for each strip of B, for each tile of positions: sums over places and features of region[tile + place] B[place]

Where the window moves by several lines, or pixels, those that one place sees lie together: a region has a part for each
remainder of a division by the stride. What is added for each tile along K is a table, made once; features are a loop
around the places of a line, which have nearly all pixels in common, in the nearest cache.

Steps along K that follow each other in a region are a run: the features of a place; of bytes those of all places of a
line, if these lie side by side. Tiles along K divide each run by itself, and B has zeros where the last one reads what
lies behind the run. Of bytes that is anything; of floats, zeros too, to which the features of each pixel are filled up.

Where no sum of planes is an element, the processor convolves (`gemm_magnitudes`): then no infinity meets the zeros
around the array.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import F32, I1, I8, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_direct import Unit
from xlapy.codegen.libraries.gemm_gradient import GemmGradient
from xlapy.codegen.libraries.gemm_magnitudes import Seen, SeenMagnitudes, Side, fit_planes, side_of
from xlapy.codegen.libraries.gemm_planes import pairs_of_planes
from xlapy.codegen.libraries.gemm_problem import PROBLEM, RANGE, ceil_div, round_up
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_regions import Geometry, Region
from xlapy.codegen.libraries.gemm_types import BF16_BYTES, UNIT_ROW_BYTES, UNIT_ROWS, UNIT_STEPS
from xlapy.codegen.libraries.gemm_unit import PLACE, SUMS_BYTES, configure_unit, emit_unit_places, release_unit
from xlapy.codegen.libraries.gemm_windows import Spot, Windows
from xlapy.codegen.libraries.scratch import Scratch, acquire_scratch, release_scratch
from xlapy_runtime.records import Record

FEATURES_OF_LINE = UNIT_ROW_BYTES // BF16_BYTES
"""Of a pixel, in a line of each plane."""

_LANES = UNIT_STEPS

_SUMS_ROW = SUMS_BYTES // (2 * UNIT_ROWS)
"""Bytes, of a tile of C."""

_REGION_PART = 4
"""Of the second-level cache, for a region: it stays there beside a strip of B and what else a unit reads."""

_LEAST_UNITS = 8
_FEW_ROWS = 4
"""There should be so many units to share out, but not units of so few rows that most of a region is what they share."""

_LEAST_TILES = 4
_PART_BETWEEN_ROWS = 5
"""Positions between two rows are at most this part of those in a row, and so many tiles high is the whole."""

COPY_PARAMETERS = [("windows", PTR), ("array", PTR), ("row", I64), ("rows", I64), ("lines", I64), ("pixels", I64)]
COPY_PARAMETERS += [("region", PTR)]


class _Runs(Record):
    """How K is divided: so many runs in a line of places, of so many steps and tiles each."""

    of_line: Value
    steps: Value
    tiles: Value
    count: Value


class GemmUnitRegions(GemmGradient):
    """Writes this way of computing a convolution."""

    def unit_regions(self) -> None:
        """The functions that units of work call, and the units."""
        emit_unit_places(self._module, self._kind, self._prefix, self._attributes)
        parameters, emitter = COPY_PARAMETERS, UnitRegionEmitter
        if self._kind.planes > 1:
            parameters, emitter = [*COPY_PARAMETERS, ("seen", PTR)], PlaneRegionEmitter
        elif self._has_whole_pixels:
            emitter = WholePixelEmitter
        with self._function("copy_region", parameters) as k:
            emitter(k, self._kind, self._shape, self._prefix).emit()
        self._units_of_regions()

    def _windows_fit_planes(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether elements of the array and of B are sums of planes. All of the array is looked at, group by group or
        not: it has no gaps."""
        number = functools.partial(self._window_number, k, problem)
        lines = k.mul(k.mul(number("row_count0"), number("size0")), number("size1"))
        length = k.mul(k.mul(number("size2"), number("step_count3")), problem["batches"])
        array = Side(
            place=problem["a"],
            rows=lines,
            rows_of_matrix=lines,
            matrix=k.const(I64, 0),
            row=k.mul(length, F32.bytes),
            length=length,
            step=k.const(I64, F32.bytes),
        )
        sides = {"a": array, "b": side_of(k, problem, "b")}
        return fit_planes(k, self._prefix, k.parameters["parallel"], sides)

    def _suits_unit_regions(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a convolution that is not computed in planes is computed in this way: if not too much of the tiles
        is idle."""
        number = functools.partial(self._window_number, k, problem)
        geometry = self._geometry(k, problem)
        runs, side = self._runs(k, problem, geometry), self._shape.rows
        run_bytes, line_bytes = k.mul(runs.steps, self._element_bytes), k.mul(runs.tiles, UNIT_ROW_BYTES)
        is_whole = k.compare("eq", run_bytes, line_bytes)
        is_mostly_full = k.compare("le", line_bytes, k.mul(run_bytes, 2))
        is_full = k.or_(is_whole, k.and_(is_mostly_full, k.not_(self._is_packed_before(k, problem))))
        positions = number("row_count3")
        more = k.sub(ceil_div(k, geometry.window_pixels, geometry.position_pixels), 1)
        conditions = [
            k.compare("ne", number("is_regular"), 0),
            k.compare("eq", k.or_(number("follows_rows"), number("has_few")), 0),
            is_full,
            k.compare("le", k.mul(more, _PART_BETWEEN_ROWS), positions),
            k.compare("ge", problem["m"], _LEAST_TILES * side),
            k.compare("le", k.mul(round_up(k, problem["n"], side), 2), k.mul(problem["n"], 3)),
        ]
        return functools.reduce(k.and_, conditions)

    def _runs(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> _Runs:
        number = functools.partial(self._window_number, k, problem)
        places, features = number("step_count2"), number("step_count3")
        is_line = k.and_(k.compare("eq", geometry.place_pixels, 1), k.compare("eq", geometry.position_pixels, 1))
        if self._has_whole_pixels:
            is_line = k.const(I1, 0)
        of_line = k.select(is_line, 1, places)
        steps = k.select(is_line, k.mul(places, features), features)
        tiles = ceil_div(k, steps, self._features_of_line)
        return _Runs(of_line, steps, tiles, k.mul(k.mul(geometry.planes, geometry.place_rows), of_line))

    @property
    def _has_whole_pixels(self) -> bool:
        """Whether the features of a pixel are filled up with zeros to whole lines."""
        return self._kind.accumulator.is_float

    @property
    def _features_of_line(self) -> int:
        """Of a pixel, that a tile has along K."""
        return UNIT_ROW_BYTES * self._kind.planes // self._bytes_in_region

    @property
    def _bytes_in_region(self) -> int:
        """Of an element, all planes together."""
        return self._kind.planes * BF16_BYTES if self._kind.planes > 1 else self._element_bytes

    def _run_unit_regions(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Panel by panel of columns: B is packed, unless it is already, then units are computed."""
        runs = self._runs(k, problem, self._geometry(k, problem))
        tile_b_step = self._shape.columns * self._kind.packed.bytes
        steps = k.mul(k.mul(runs.count, runs.tiles), self._kind.steps_of_tile)
        problem.set(
            uses_scratch=1,
            copies=0,
            strip_columns=self._shape.columns,
            tile_b_strip=k.mul(steps, tile_b_step),
            tile_b_step=tile_b_step,
            a_strips=0,
        )
        self._cut_unit_rows(k, problem)
        places = self._table_of_places(k, problem, runs)
        k.if_else(
            self._is_packed_before(k, problem),
            lambda: self._run_with_b_in_place(k, problem),
            lambda: self._run_with_packed_runs(k, problem, runs),
        )
        release_scratch(k, places)

    def _run_with_packed_runs(self, k: KernelBuilder, problem: RecordValue, runs: _Runs) -> None:
        """Panel by panel of columns: B is packed, all of it at once or run by run, then units are computed."""
        shape, strip = self._shape, problem["tile_b_strip"]
        panel_columns = k.mul(k.smax(k.sdiv(self._most_packed_bytes, strip), 1), shape.columns)
        scratch = acquire_scratch(k, k.mul(ceil_div(k, k.smin(problem["n"], panel_columns), shape.columns), strip))
        is_whole = k.compare("eq", k.mul(runs.tiles, self._features_of_line), runs.steps)
        count, steps = k.select(is_whole, 1, runs.count), k.select(is_whole, problem["k"], runs.steps)
        run_bytes = k.mul(k.mul(runs.tiles, self._kind.steps_of_tile), problem["tile_b_step"])
        with k.loop(0, problem["batches"]) as batch, k.loop(0, problem["n"], panel_columns) as column:
            columns = k.smin(k.sub(problem["n"], column.index), panel_columns)
            problem.set(batch=batch.index, column=column.index, columns=columns, depth=steps)
            with k.loop(0, count) as run:
                place = k.gep(scratch.memory, k.mul(run.index, run_bytes))
                problem.set(step=k.mul(run.index, steps), tile_b=place)
                self._pack_columns(k, problem)
            problem["tile_b"] = scratch.memory
            self._run_units(k, problem)
        release_scratch(k, scratch)

    def _cut_unit_rows(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Rows of positions, as many as a region has room for, or fewer for all threads to have some."""
        number = functools.partial(self._window_number, k, problem)
        outer = k.mul(number("row_count0"), number("row_count1"))
        even = k.smax(ceil_div(k, k.mul(outer, number("row_count2")), k.const(I64, _LEAST_UNITS)), _FEW_ROWS)
        self._cut_rows(k, problem, self._pixel_bytes(k, problem), self._target.l2_bytes // _REGION_PART, even)
        problem.set(
            unit_positions=number("row_count3"),
            row_groups=ceil_div(k, number("row_count2"), problem["unit_rows"]),
            position_groups=1,
        )

    def _cut_rows(
        self, k: KernelBuilder, problem: RecordValue, pixel_bytes: Value, region_bytes: int, most: Value
    ) -> None:
        """The rows of positions of a unit, and the lines and pixels of a part of its region: as many as it has room
        for, and no more than `most`, all units of about the same size."""
        geometry, rows = self._geometry(k, problem), self._window_number(k, problem, "row_count2")
        more_lines = k.sub(ceil_div(k, geometry.window_lines, geometry.row_lines), 1)
        more_pixels = k.sub(ceil_div(k, geometry.window_pixels, geometry.position_pixels), 1)
        pixels = k.add(self._window_number(k, problem, "row_count3"), more_pixels)
        parts = k.mul(k.mul(geometry.planes, geometry.row_lines), geometry.position_pixels)
        line_bytes = k.mul(k.mul(parts, pixels), pixel_bytes)
        fitting = k.smax(k.sub(k.sdiv(k.const(I64, region_bytes), line_bytes), more_lines), 1)
        unit_rows = ceil_div(k, rows, ceil_div(k, rows, k.smin(k.smin(fitting, most), rows)))
        problem.set(unit_rows=unit_rows, lines=k.add(unit_rows, more_lines), pixels=pixels)

    def _pixel_bytes(self, k: KernelBuilder, problem: RecordValue) -> Value:
        features = self._window_number(k, problem, "step_count3")
        if not self._has_whole_pixels:
            return k.mul(features, self._bytes_in_region)
        return k.mul(ceil_div(k, features, self._features_of_line), self._kind.planes * UNIT_ROW_BYTES)

    def _table_of_places(
        self, k: KernelBuilder, problem: RecordValue, runs: _Runs, chunk: Value | None = None
    ) -> Scratch:
        """For each tile along K, in the order of their products, where its lines are in a region, and in a strip; or in
        a chunk of one, which has so many tiles of each place of a line."""
        geometry, tiles = self._geometry(k, problem), runs.tiles
        table = acquire_scratch(k, k.mul(k.mul(runs.count, tiles), PLACE.size))
        pixel_bytes = self._pixel_bytes(k, problem)
        tile_bytes = k.mul(problem["tile_b_step"], self._kind.steps_of_tile)
        with (
            k.loop(0, geometry.planes) as plane,
            k.loop(0, geometry.place_rows) as row,
            k.loop(0, runs.of_line) as column,
        ):
            first = k.mul(k.add(k.mul(plane.index, geometry.place_rows), row.index), k.mul(runs.of_line, tiles))
            pixel = self._pixel_of_place(k, problem, geometry, plane.index, row.index, column.index)
            of_a = k.mul(pixel, pixel_bytes)
            with k.loop(0, tiles) as tile:
                number = k.add(k.add(first, k.mul(column.index, tiles)), tile.index)
                if chunk is not None:
                    number = k.add(k.mul(column.index, chunk), k.urem(tile.index, chunk))
                at = k.add(first, k.add(k.mul(tile.index, runs.of_line), column.index))
                PLACE.at(k, k.gep(table.memory, at, PLACE.size)).set(
                    of_a=k.add(of_a, k.mul(tile.index, self._kind.planes * UNIT_ROW_BYTES)),
                    of_b=k.mul(number, tile_bytes),
                )
        problem.set(places=table.memory, place_count=k.mul(runs.count, tiles))
        return table

    def _pixel_of_place(
        self, k: KernelBuilder, problem: RecordValue, geometry: Geometry, plane: Value, row: Value, column: Value
    ) -> Value:
        """The number of the pixel in a region that a place of the window sees at the first position."""
        down, parts = divided(k, k.add(geometry.first_line, k.mul(row, geometry.place_lines)), geometry.row_lines)
        across = k.add(geometry.first_pixel, k.mul(column, geometry.place_pixels))
        across, part = divided(k, across, geometry.position_pixels)
        parts = k.add(k.mul(plane, geometry.row_lines), parts)
        line = k.add(k.mul(k.add(k.mul(parts, geometry.position_pixels), part), problem["lines"]), down)
        return k.add(k.mul(line, problem["pixels"]), across)

    def _pixels_of_region(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        parts = k.mul(k.mul(geometry.planes, geometry.row_lines), geometry.position_pixels)
        return k.mul(parts, k.mul(problem["lines"], problem["pixels"]))

    # Units

    def _units_of_regions(self) -> None:
        """A range of pairs of a unit and a block of columns, those of one unit next to each other."""
        with self._function("units", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            geometry = self._geometry(k, problem)
            pixel_bytes, pixels = self._pixel_bytes(k, problem), self._pixels_of_region(k, problem, geometry)
            behind = k.add(k.mul(pixel_bytes, self._shape.rows), UNIT_ROW_BYTES)
            scratch = acquire_scratch(k, k.add(k.mul(pixels, pixel_bytes), behind))
            region = Region(scratch.memory, k.mul(problem["pixels"], pixel_bytes), pixel_bytes)
            array = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
            blocks = problem["column_blocks"]
            seen = Seen(k)
            configure_unit(k, self._prefix)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                number, block = divided(k, item.index, blocks)
                first, rows, positions = self._positions_of_unit(k, problem, number)
                unit = Unit(problem, geometry, region, region.memory, first, rows, positions)
                is_new = k.or_(k.compare("eq", block, 0), k.compare("eq", item.index, k.parameters["begin"]))
                with k.if_(is_new):
                    self._copy_unit(k, problem, array, first, rows, region.memory, seen)
                self._block_in_planes(k, unit, k.mul(block, problem["block_columns"]))
            release_unit(k)
            release_scratch(k, scratch)

    def _copy_unit(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        array: Value,
        first: Value,
        rows: Value,
        region: Value,
        seen: Seen,
    ) -> None:
        """The region under so many rows of positions; what is split adds to the magnitudes that are `seen`."""
        copied = [problem["windows"], array, first, rows, problem["lines"], problem["pixels"], region]
        more = [seen.place] if self._kind.planes > 1 else []
        k.call(f"{self._prefix}_copy_region", [*copied, *more])

    def _block_in_planes(self, k: KernelBuilder, unit: Unit, column: Value) -> None:
        """The block of columns from `column` of the panel on: strip by strip, the tiles of all rows."""
        problem, shape = unit.problem, self._shape
        sums = k.alloca(I8, SUMS_BYTES, align=CACHE_LINE)
        places = problem["places"], problem["place_count"]
        end = k.smin(k.add(column, problem["block_columns"]), problem["columns"])
        pixels = k.add(k.mul(k.sub(unit.rows, 1), problem["pixels"]), unit.positions)
        with k.loop(column, end, shape.columns) as strip, k.loop(0, pixels, shape.rows) as tile:
            b = k.gep(problem["tile_b"], k.mul(k.sdiv(strip.index, shape.columns), problem["tile_b_strip"]))
            self._tile_in_planes(k, unit, tile.index, b, sums, places)
            columns = [k.add(problem["column"], strip.index), k.smin(k.sub(end, strip.index), shape.columns)]
            self._finish_rows(k, unit, tile.index, pixels, sums, columns)

    def _tile_in_planes(
        self,
        k: KernelBuilder,
        unit: Unit,
        first: Value,
        b: Value,
        sums: Value,
        places: tuple[Value, Value],
        adds: Value | None = None,
        fetched: tuple[Value, ...] | None = None,
    ) -> None:
        """The sums of a tile, whose first pixel of the region is number `first`, over so many places from one on: added
        to what is there if that is said. What is fetched for later: where, bytes from row to row, and rows."""
        if adds is None:
            adds = k.const(I64, 0)
        if fetched is None:
            fetched = k.const(PTR, 0), k.const(I64, 0), k.const(I64, 0)
        place, count = places
        a = k.gep(unit.region.memory, k.mul(first, unit.region.position_bytes))
        sides = [a, unit.region.position_bytes, b, unit.problem["tile_b_step"]]
        given = [count, place, *sides, sums, k.const(I64, _SUMS_ROW), adds, *fetched]
        k.call(f"{self._prefix}_places", given)

    def _finish_rows(
        self, k: KernelBuilder, unit: Unit, first: Value, pixels: Value, sums: Value, columns: list[Value]
    ) -> None:
        """What a tile has of rows of positions, from pixel `first` of the unit's `pixels` on."""
        problem, shape = unit.problem, self._shape
        end, pitch = k.smin(k.add(first, shape.rows), pixels), problem["pixels"]
        with k.loop(k.sdiv(first, pitch), ceil_div(k, end, pitch)) as row:
            left = k.mul(row.index, pitch)
            begin, last = k.smax(first, left), k.smin(end, k.add(left, unit.positions))
            with k.if_(k.compare("lt", begin, last)):
                place = k.gep(sums, k.mul(k.sub(begin, first), _SUMS_ROW))
                position = k.add(k.mul(row.index, unit.positions), k.sub(begin, left))
                part = [problem["batch"], k.add(unit.first, position), k.sub(last, begin), *columns]
                k.call(f"{self._prefix}_finish", [problem.place, place, k.const(I64, _SUMS_ROW), *part])


class UnitRegionEmitter(Windows):
    """Copies the lines under `rows` of positions, the first of which is that of `row`, into parts of so many `lines`
    and `pixels`."""

    _whole_lines = False
    """Whether lines that nothing lies under are zeros, too."""

    def emit(self) -> None:
        k, given, numbers = self._k, self._k.parameters, self._numbers
        spot = self._spot("row", self._digits("row", given["row"]))
        top = k.add(spot.places[1], self._least_move("step_move1_1", "step_count1"))
        left = k.add(spot.places[2], self._least_move("step_move2_2", "step_count2"))
        down, across = (k.smax(numbers[name], 1) for name in ("row_move1_2", "row_move2_3"))
        part_bytes = k.mul(given["lines"], self._line_bytes)
        used = k.add(k.mul(k.sub(given["rows"], 1), down), self._reach("step_move1_1", "step_count1"))
        lines = k.mul(given["lines"], down) if self._whole_lines else used
        with k.loop(0, numbers["step_count0"]) as plane, k.loop(0, lines) as line:
            depth = k.add(spot.places[0], k.mul(plane.index, numbers["step_move0_0"]))
            height = k.add(top, line.index)
            is_inside = k.and_(self._is_within(0, depth), self._is_within(1, height))
            is_inside = k.and_(is_inside, k.compare("lt", line.index, used))
            line_of_part, parts = divided(k, line.index, down)
            parts = k.mul(k.add(k.mul(plane.index, down), parts), across)
            place = k.gep(given["region"], k.mul(line_of_part, self._line_bytes))
            with k.loop(0, across) as part:
                goal = k.gep(place, k.mul(k.add(parts, part.index), part_bytes))
                self._copy_line(goal, Spot(spot.offset, [depth, height, k.add(left, part.index)]), across, is_inside)

    @property
    def _line_bytes(self) -> Value:
        return self._k.mul(self._k.parameters["pixels"], self._pixel_bytes)

    @property
    def _pixel_bytes(self) -> Value:
        return self._k.mul(self._numbers["step_count3"], self._kind.element.bytes)

    def _reach(self, move: str, count: str) -> Value:
        """Places in a space between the first and the last one of the window, these included."""
        k = self._k
        moved = k.mul(self._numbers[move], k.sub(self._numbers[count], 1))
        return k.add(k.smax(moved, k.sub(0, moved)), 1)

    def _copy_line(self, goal: Value, spot: Spot, step: Value, is_inside: Value) -> None:
        """Every `step`th pixel of a line from `spot` on; zeros where there is none."""
        k, pixels = self._k, self._k.parameters["pixels"]
        depth, height, left = spot.places
        low = k.smin(ceil_div(k, k.smax(k.sub(0, left), 0), step), pixels)
        high = k.smin(ceil_div(k, k.smax(k.sub(self._numbers["size2"], left), 0), step), pixels)
        low, high = k.select(is_inside, low, 0), k.select(is_inside, k.smax(low, high), 0)
        k.memset(goal, 0, k.mul(low, self._pixel_bytes))
        k.memset(k.gep(goal, k.mul(high, self._pixel_bytes)), 0, k.mul(k.sub(pixels, high), self._pixel_bytes))
        first = Spot(spot.offset, [depth, height, k.add(left, k.mul(low, step))])
        source = k.gep(k.parameters["array"], self._offset(first))
        distance = k.mul(self._numbers["stride2"], step)
        self._copy_pixels(k.gep(goal, k.mul(low, self._pixel_bytes)), source, k.sub(high, low), distance)

    def _copy_pixels(self, goal: Value, source: Value, count: Value, distance: Value) -> None:
        """So many pixels as they are, which lie `distance` bytes apart."""
        k, pixel_bytes = self._k, self._pixel_bytes

        def apart() -> None:
            with k.loop(0, count) as pixel:
                place = k.gep(source, k.mul(pixel.index, distance))
                k.memcpy(k.gep(goal, k.mul(pixel.index, pixel_bytes)), place, pixel_bytes)

        together = functools.partial(k.memcpy, goal, source, k.mul(count, pixel_bytes))
        k.if_else(k.compare("eq", distance, pixel_bytes), together, apart)


class WholePixelEmitter(UnitRegionEmitter):
    """The same with features filled up to whole lines."""

    @property
    def _pixel_bytes(self) -> Value:
        return self._k.mul(self._lines, self._kind.planes * UNIT_ROW_BYTES)

    @property
    def _lines(self) -> Value:
        """Of a pixel, in each plane."""
        return ceil_div(self._k, self._numbers["step_count3"], FEATURES_OF_LINE)

    def _copy_pixels(self, goal: Value, source: Value, count: Value, distance: Value) -> None:
        k = self._k
        whole = k.udiv(self._numbers["step_count3"], FEATURES_OF_LINE)
        with k.loop(0, count) as pixel:
            place = k.gep(source, k.mul(pixel.index, distance))
            pixel_of_region = k.gep(goal, k.mul(pixel.index, self._pixel_bytes))
            with k.loop(0, whole) as line:
                self._copy_features(pixel_of_region, place, line.index, FEATURES_OF_LINE)
            with k.if_(k.compare("lt", whole, self._lines)):
                left = k.sub(self._numbers["step_count3"], k.mul(whole, FEATURES_OF_LINE))
                self._copy_features(pixel_of_region, place, whole, left)

    def _copy_features(self, goal: Value, source: Value, line: Value, count: Value | int) -> None:
        """A line of a pixel, or so many features and zeros."""
        self._k.store(self._k.gep(goal, line, UNIT_ROW_BYTES), self._features(source, line, 0, FEATURES_OF_LINE, count))

    def _features(self, source: Value, line: Value, first: int, lanes: int, count: Value | int) -> Value:
        """Features of a line from its `first` one on, with zeros for those from number `count` on."""
        k, element = self._k, self._kind.element
        place = k.gep(k.gep(source, line, FEATURES_OF_LINE * element.bytes), first * element.bytes)
        if isinstance(count, int):
            return k.load(place, element.with_lanes(lanes))
        return k.masked_load(place, element.with_lanes(lanes), k.first_lanes(k.sub(count, first), lanes))


class PlaneRegionEmitter(WholePixelEmitter):
    """The same in planes; adds the magnitudes of elements to those at `seen`."""

    def emit(self) -> None:
        self._magnitudes = SeenMagnitudes(self._k)
        super().emit()
        self._magnitudes.tell(self._k.parameters["seen"])

    def _copy_features(self, goal: Value, source: Value, line: Value, count: Value | int) -> None:
        k, planes = self._k, self._kind.planes
        low, high = (self._features(source, line, first, _LANES, count) for first in (0, _LANES))
        for elements in (low, high):
            self._magnitudes.look_at(elements)
        for plane, pairs in enumerate(pairs_of_planes(k, low, high, planes)):
            k.store(k.gep(goal, k.add(k.mul(line, planes), plane), UNIT_ROW_BYTES), pairs)


def divided(k: KernelBuilder, number: Value, by: Value) -> tuple[Value, Value]:
    """Quotient and remainder."""
    quotient = k.sdiv(number, by)
    return quotient, k.sub(number, k.mul(quotient, by))
