"""Convolutions whose left side is not packed at all: tiles read it from a copy of a region of the array.

A unit is some rows of positions of the window, next to each other. The region of the array under all of them is copied
once, with zeros for what lies outside; features of a pixel, and pixels of a line, follow each other in it. Then the
steps along K that belong to one line of a window are a run: contiguous, and the same number of bytes further for each
next position. So a tile computes as many positions of a row as it has rows of its own, one run after the other:

    for each strip of B, for each run (a place of the window in the outer spaces), for each row of the unit:
        for each tile of the row: C[positions, strip] += region[positions + run] B[run, strip]

A run of B is in the nearest cache while all tiles of the unit use it. Where it holds several runs, tiles sum up all of
them before they store anything: few input features make short runs. Packing would write each element of the array as
often as there are places in the window; this pays where runs are long, and most where the result has few features.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I1, I64, PTR, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_in_place import GemmInPlace
from xlapy.codegen.libraries.gemm_packing import SLACK_BYTES
from xlapy.codegen.libraries.gemm_problem import CHUNK_WORK, PROBLEM, RANGE, ceil_div, strip_bytes, work_per_element
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_tile import TILE_PARAMETERS
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS, Spot, Windows
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy_runtime.records import Record

_LEAST_STEPS = 48
"""Steps of the runs of a tile. With fewer, it would mostly load and store its sums."""

_NEAR_BYTES = 1 << 15
"""Of B, that the nearest cache holds beside what else tiles read."""

_COLUMNS_PER_STEP = 4
"""With so many times more columns than steps in a run, packing is cheap beside what tiles spend on their sums."""

_LEAST_POSITIONS = 12
"""Positions of a row in a region."""

_LEAST_UNITS = 8
_FEW_ROWS = 4
"""There should be so many units to share out, but not units of so few rows that most of a region is what they share."""

_COPY = [("windows", PTR), ("array", PTR), ("row", I64), ("lines", I64), ("pixels", I64), ("region", PTR)]


class Geometry(Record):
    """What the windows look like; pixels and lines are places in the last space and the one before it."""

    planes: Value
    place_rows: Value
    runs_per_line: Value
    run_steps: Value
    rows_per_tile: Value
    """Rows of places whose runs one tile sums up; and below, runs of a line that it does."""
    runs_per_tile: Value
    pixel_bytes: Value
    row_lines: Value
    """How many lines the next row of positions is further down; and below, pixels from one position to the next."""
    position_pixels: Value
    first_line: Value
    """The place of the window's first row of places, from its uppermost one; below, the same along a line."""
    first_pixel: Value
    place_lines: Value
    place_pixels: Value
    window_lines: Value
    window_pixels: Value


class _Unit(Record):
    """Positions that are computed together: the copy of the region under them, the row of the matrix for the first one,
    how many rows of positions, how many of each row, and how many rows have that are whole."""

    region: Value
    first: Value
    rows: Value
    positions: Value
    row_length: Value


class GemmDirect(GemmInPlace):
    """Writes what decides for this way of computing a convolution, and the units of work."""

    def direct(self) -> None:
        """The functions that units of work call."""
        if not self._can_read_regions:
            return
        with self._function("copy_region", _COPY) as k:
            _RegionEmitter(k, self._kind, self._shape, self._prefix).emit()
        self._units()

    @property
    def _can_read_regions(self) -> bool:
        kind = self._kind
        return kind.parts == 1 and kind.pair == 1 and kind.is_packed_in_memory and kind.accumulates_in_result

    @property
    def _region_bytes(self) -> int:
        """Room for one region: it should stay in the second-level cache beside a run of B."""
        return min(self._target.l2_bytes // 4, self._most_bytes_of_a)

    # Whether, and in which units

    def _is_direct(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a convolution is computed in this way."""
        if not self._can_read_regions:
            return k.const(I1, 0)
        number = functools.partial(self._window_number, k, problem)
        geometry = self._geometry(k, problem)
        steps = geometry.run_steps
        tile_steps = k.mul(steps, k.mul(geometry.rows_per_tile, geometry.runs_per_tile))
        pays = [
            k.compare("ge", tile_steps, _LEAST_STEPS),
            k.compare("le", problem["n"], k.mul(tile_steps, _COLUMNS_PER_STEP)),
            k.compare("lt", steps, problem["k"]),
        ]
        conditions = [
            k.compare("ne", number("is_regular"), 0),
            k.compare("eq", number("follows_rows"), 0),
            k.or_(k.compare("ne", number("has_few"), 0), functools.reduce(k.and_, pays)),
            k.compare("ge", self._most_positions(k, geometry), k.smin(_LEAST_POSITIONS, number("row_count3"))),
            k.compare("le", self._strip_bytes_of_b(k, problem), self._most_packed_bytes),
        ]
        return functools.reduce(k.and_, conditions)

    def _window_number(self, k: KernelBuilder, problem: RecordValue, name: str) -> Value:
        return k.load(k.gep(problem["windows"], WINDOW_NUMBERS.index(name), 8), I64)

    def _geometry(self, k: KernelBuilder, problem: RecordValue) -> Geometry:
        number = functools.partial(self._window_number, k, problem)
        features = number("step_count3")
        place_lines, place_pixels = number("step_move1_1"), number("step_move2_2")
        line_reach = k.mul(place_lines, k.sub(number("step_count1"), 1))
        pixel_reach = k.mul(place_pixels, k.sub(number("step_count2"), 1))
        is_contiguous = k.compare("eq", place_pixels, 1)
        runs_per_line = k.select(is_contiguous, 1, number("step_count2"))
        run_steps = k.select(is_contiguous, k.mul(features, number("step_count2")), features)
        neighbours = k.select(is_contiguous, number("step_count1"), runs_per_line)
        b_bytes = k.mul(k.mul(run_steps, neighbours), self._shape.columns * self._kind.packed.bytes)
        are_near = k.compare("le", b_bytes, _NEAR_BYTES)
        return Geometry(
            planes=number("step_count0"),
            place_rows=number("step_count1"),
            runs_per_line=runs_per_line,
            run_steps=run_steps,
            rows_per_tile=k.select(k.and_(are_near, is_contiguous), neighbours, 1),
            runs_per_tile=k.select(k.and_(are_near, k.not_(is_contiguous)), neighbours, 1),
            pixel_bytes=k.mul(features, self._element_bytes),
            row_lines=k.smax(number("row_move1_2"), 1),
            position_pixels=k.smax(number("row_move2_3"), 1),
            first_line=k.sub(0, k.smin(line_reach, 0)),
            first_pixel=k.sub(0, k.smin(pixel_reach, 0)),
            place_lines=place_lines,
            place_pixels=place_pixels,
            window_lines=k.add(k.smax(line_reach, k.sub(0, line_reach)), 1),
            window_pixels=k.add(k.smax(pixel_reach, k.sub(0, pixel_reach)), 1),
        )

    def _strip_bytes_of_b(self, k: KernelBuilder, problem: RecordValue) -> Value:
        return strip_bytes(k, problem["k"], self._shape.columns * self._kind.packed.bytes)

    def _most_positions(self, k: KernelBuilder, geometry: Geometry) -> Value:
        """Of one row, in a region."""
        line_bytes = k.sdiv(self._region_bytes, k.mul(geometry.planes, geometry.window_lines))
        pixels = k.sdiv(line_bytes, geometry.pixel_bytes)
        beyond = k.sub(pixels, geometry.window_pixels)
        return k.select(k.compare("lt", beyond, 0), 0, k.add(k.sdiv(beyond, geometry.position_pixels), 1))

    def _cut_units(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Whole rows of positions if several fit a region, else parts of one; all units of about the same size."""
        geometry = self._geometry(k, problem)
        number = functools.partial(self._window_number, k, problem)
        rows, positions = number("row_count2"), number("row_count3")
        most = k.smin(self._most_positions(k, geometry), positions)
        position_groups = ceil_div(k, positions, most)
        unit_positions = ceil_div(k, positions, position_groups)
        pixels = k.add(k.mul(k.sub(unit_positions, 1), geometry.position_pixels), geometry.window_pixels)
        line_bytes = k.mul(pixels, geometry.pixel_bytes)
        lines = k.sdiv(self._region_bytes, k.mul(geometry.planes, line_bytes))
        fitting = k.add(k.sdiv(k.smax(k.sub(lines, geometry.window_lines), 0), geometry.row_lines), 1)
        outer = k.mul(k.mul(number("row_count0"), number("row_count1")), position_groups)
        even = k.smax(ceil_div(k, k.mul(outer, rows), _LEAST_UNITS), _FEW_ROWS)
        row_groups = ceil_div(k, rows, k.smin(k.smin(fitting, even), rows))
        unit_rows = ceil_div(k, rows, row_groups)
        problem.set(
            unit_rows=unit_rows,
            unit_positions=unit_positions,
            row_groups=ceil_div(k, rows, unit_rows),
            position_groups=position_groups,
            lines=k.add(k.mul(k.sub(unit_rows, 1), geometry.row_lines), geometry.window_lines),
            pixels=pixels,
        )

    # Panels of columns: B is packed, then units are computed

    def _run_direct(self, k: KernelBuilder, problem: RecordValue) -> None:
        if not self._can_read_regions:
            return
        self._cut_units(k, problem)
        shape, parallel = self._shape, k.parameters["parallel"]
        strip = self._strip_bytes_of_b(k, problem)
        step_bytes = shape.columns * self._kind.packed.bytes
        panel_columns = k.mul(k.sdiv(self._most_packed_bytes, strip), shape.columns)
        scratch = acquire_scratch(k, k.mul(ceil_div(k, k.smin(problem["n"], panel_columns), shape.columns), strip))
        problem.set(
            strip_columns=shape.columns,
            tile_b=scratch.memory,
            tile_b_strip=strip,
            tile_b_step=step_bytes,
            tile_a_step=self._element_bytes,
            step=0,
            depth=problem["k"],
            a_strips=0,
            packs_steps=0,
        )
        with k.loop(0, problem["batches"]) as batch, k.loop(0, problem["n"], panel_columns) as column:
            columns = k.smin(k.sub(problem["n"], column.index), panel_columns)
            strips = ceil_div(k, columns, shape.columns)
            problem.set(batch=batch.index, column=column.index, columns=columns)
            pack = k.function_pointer(f"{self._prefix}_pack_strips")
            k.call(parallel, [pack, problem.place, strips, k.const(I64, 1)])
            units = self._units_of_matrix(k, problem)
            blocks = k.smax(k.smin(k.sdiv(strips, 2), ceil_div(k, k.const(I64, _LEAST_UNITS), units)), 1)
            block_columns = k.mul(ceil_div(k, strips, blocks), shape.columns)
            column_blocks = ceil_div(k, columns, block_columns)
            problem.set(block_columns=block_columns, column_blocks=column_blocks)
            positions = k.mul(problem["unit_rows"], problem["unit_positions"])
            work = k.mul(k.mul(positions, block_columns), work_per_element(k, problem, problem["k"]))
            grain = ceil_div(k, k.const(I64, CHUNK_WORK), work)
            function = k.function_pointer(f"{self._prefix}_units")
            k.call(parallel, [function, problem.place, k.mul(units, column_blocks), grain])
        release_scratch(k, scratch)

    def _units_of_matrix(self, k: KernelBuilder, problem: RecordValue) -> Value:
        outer = k.mul(self._window_number(k, problem, "row_count0"), self._window_number(k, problem, "row_count1"))
        return k.mul(k.mul(outer, problem["row_groups"]), problem["position_groups"])

    # Units

    def _units(self) -> None:
        """A range of pairs of a unit and a block of columns, those of one unit next to each other."""
        with self._function("units", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            geometry = self._geometry(k, problem)
            scratch = acquire_scratch(k, self._bytes_of_region(k, problem, geometry))
            region = scratch.memory
            array = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
            blocks = problem["column_blocks"]
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                number = k.sdiv(item.index, blocks)
                block = k.sub(item.index, k.mul(number, blocks))
                unit = self._unit_of_number(k, problem, number, region)
                is_new = k.or_(k.compare("eq", block, 0), k.compare("eq", item.index, k.parameters["begin"]))
                with k.if_(is_new):
                    copied = [problem["windows"], array, unit.first, problem["lines"], problem["pixels"], region]
                    k.call(f"{self._prefix}_copy_region", copied)
                self._block_of_unit(k, problem, geometry, unit, k.mul(block, problem["block_columns"]))
            release_scratch(k, scratch)

    def _unit_of_number(self, k: KernelBuilder, problem: RecordValue, unit: Value, region: Value) -> _Unit:
        """Those along a row follow each other, then those of the next rows."""
        rows, positions = (self._window_number(k, problem, name) for name in ("row_count2", "row_count3"))
        rest = k.sdiv(unit, problem["position_groups"])
        position = k.mul(k.sub(unit, k.mul(rest, problem["position_groups"])), problem["unit_positions"])
        outer = k.sdiv(rest, problem["row_groups"])
        row = k.mul(k.sub(rest, k.mul(outer, problem["row_groups"])), problem["unit_rows"])
        return _Unit(
            region=region,
            first=k.add(k.mul(k.add(k.mul(outer, rows), row), positions), position),
            rows=k.smin(k.sub(rows, row), problem["unit_rows"]),
            positions=k.smin(k.sub(positions, position), problem["unit_positions"]),
            row_length=positions,
        )

    def _bytes_of_region(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        pixels = k.mul(k.mul(geometry.planes, problem["lines"]), problem["pixels"])
        return k.add(k.mul(pixels, geometry.pixel_bytes), SLACK_BYTES)

    def _block_of_unit(
        self, k: KernelBuilder, problem: RecordValue, geometry: Geometry, unit: _Unit, column: Value
    ) -> None:
        """All of a unit that lies in the block of columns from `column` of the panel on, strip by strip."""
        c = k.gep(problem["c"], k.mul(problem["batch"], problem["c_batch"]))
        c = k.gep(k.gep(c, k.mul(unit.first, problem["c_row"])), problem["column"], self._result_bytes)
        end = k.smin(k.add(column, problem["block_columns"]), problem["columns"])
        with k.loop(column, end, self._shape.columns) as strip:
            columns = k.smin(k.sub(end, strip.index), self._shape.columns)
            goal = k.gep(c, strip.index, self._result_bytes)
            b = k.gep(problem["tile_b"], k.mul(k.sdiv(strip.index, self._shape.columns), problem["tile_b_strip"]))
            self._sum_up_strip(k, problem, geometry, unit, b, goal, columns)
            self._finish_strip(k, problem, unit, goal, k.add(problem["column"], strip.index), columns)

    def _sum_up_strip(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        geometry: Geometry,
        unit: _Unit,
        b: Value,
        goal: Value,
        columns: Value,
    ) -> None:
        """Run after run of a strip of B, with all rows of the unit: what the tiles of a row sum up at once."""
        row_bytes = k.mul(unit.row_length, problem["c_row"])
        run_bytes = k.mul(geometry.run_steps, problem["tile_b_step"])
        line_bytes = k.mul(problem["pixels"], geometry.pixel_bytes)
        with (
            k.loop(0, geometry.planes) as plane,
            k.loop(0, geometry.place_rows, geometry.rows_per_tile) as place_row,
            k.loop(0, geometry.runs_per_line, geometry.runs_per_tile) as run,
        ):
            number = k.add(k.mul(plane.index, geometry.place_rows), place_row.index)
            number = k.add(k.mul(number, geometry.runs_per_line), run.index)
            adds = k.or_(problem["accumulate"], k.zext(k.compare("ne", number, 0), I64))
            b_run = k.gep(b, k.mul(number, run_bytes))
            a = self._place_of_run(k, problem, geometry, unit.region, (plane.index, place_row.index, run.index))
            with k.loop(0, unit.rows) as row:
                a_row = k.gep(a, k.mul(k.mul(row.index, geometry.row_lines), line_bytes))
                c_row = k.gep(goal, k.mul(row.index, row_bytes))
                self._row(k, problem, geometry, a_row, b_run, c_row, unit.positions, columns, adds)

    def _place_of_run(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        geometry: Geometry,
        region: Value,
        number: tuple[Value, Value, Value],
    ) -> Value:
        """Where the region has the run of a plane, a row of places and a run of that line, for the first position."""
        plane, place_row, run = number
        line = k.add(geometry.first_line, k.mul(place_row, geometry.place_lines))
        line = k.add(line, k.mul(plane, problem["lines"]))
        pixel = k.add(geometry.first_pixel, k.mul(run, geometry.place_pixels))
        pixel = k.select(k.compare("eq", geometry.runs_per_line, 1), 0, pixel)
        line_bytes = k.mul(problem["pixels"], geometry.pixel_bytes)
        return k.gep(k.gep(region, k.mul(line, line_bytes)), k.mul(pixel, geometry.pixel_bytes))

    def _finish_strip(
        self, k: KernelBuilder, problem: RecordValue, unit: _Unit, goal: Value, column: Value, columns: Value
    ) -> None:
        """Finishes the columns from `column` on, all at once if rows are whole: these follow each other in C."""
        are_whole = k.compare("eq", unit.positions, unit.row_length)
        parts = k.select(are_whole, 1, unit.rows)
        length = k.select(are_whole, k.mul(unit.rows, unit.positions), unit.positions)
        with k.loop(0, parts) as row:
            place = k.gep(goal, k.mul(row.index, k.mul(unit.row_length, problem["c_row"])))
            place_of_c = [k.add(unit.first, k.mul(row.index, unit.row_length)), length, column, columns]
            k.call(f"{self._prefix}_finish", [problem.place, place, problem["c_row"], problem["batch"], *place_of_c])

    def _row(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        geometry: Geometry,
        a: Value,
        b: Value,
        c: Value,
        positions: Value,
        columns: Value,
        adds: Value,
    ) -> None:
        """The tiles of one row of positions, of about the same height."""
        table = self._tiles_for(k, columns)
        height = ceil_div(k, positions, ceil_div(k, positions, self._shape.rows))
        a_row = k.mul(geometry.position_pixels, geometry.pixel_bytes)
        line_bytes = k.mul(problem["pixels"], geometry.pixel_bytes)
        run_bytes = k.select(
            k.compare("eq", geometry.runs_per_line, 1),
            k.mul(geometry.place_lines, line_bytes),
            k.mul(geometry.place_pixels, geometry.pixel_bytes),
        )
        with k.loop(0, positions, height) as tile:
            count = k.smin(k.sub(positions, tile.index), height)
            function = k.load(k.gep(table, k.sub(count, 1), 8), PTR)
            arguments = [geometry.run_steps, k.gep(a, k.mul(tile.index, a_row)), a_row, problem["tile_a_step"]]
            place, pitch = k.gep(c, k.mul(tile.index, problem["c_row"])), problem["c_row"]
            arguments += [b, problem["tile_b_step"], place, pitch, columns, adds]
            arguments += [place, pitch, b, k.const(I64, 0)]  # nothing for later
            arguments += [k.mul(geometry.rows_per_tile, geometry.runs_per_tile), run_bytes]
            assert len(arguments) == len(TILE_PARAMETERS)
            k.call(function, arguments)

    def _tiles_for(self, k: KernelBuilder, columns: Value) -> Value:
        """The table of the functions for so many columns, by rows from one on."""
        shape = self._shape
        vectors = ceil_div(k, columns, shape.lanes)
        is_edge = k.zext(k.compare("lt", columns, shape.columns), I64)
        index = k.mul(k.sub(k.add(k.mul(is_edge, shape.most_vectors), vectors), 1), shape.rows)
        return k.gep(k.function_pointer(f"{self._prefix}_tiles"), index, 8)


class _RegionEmitter(Windows):
    """Copies what lies under some positions, the first of which is that of `row`: a line for each place in the space
    before the last, of pixels with all their features; planes of lines for the places of the window in the first."""

    def emit(self) -> None:
        k, numbers = self._k, self._numbers
        spot = self._spot("row", self._digits("row", k.parameters["row"]))
        pixel_bytes = k.mul(numbers["step_count3"], self._kind.element.bytes)
        line_bytes = k.mul(k.parameters["pixels"], pixel_bytes)
        top = k.add(spot.places[1], self._least_move("step_move1_1", "step_count1"))
        left = k.add(spot.places[2], self._least_move("step_move2_2", "step_count2"))
        low = k.smin(k.smax(k.sub(0, left), 0), k.parameters["pixels"])
        high = k.smax(k.smin(k.sub(numbers["size2"], left), k.parameters["pixels"]), low)
        is_full = k.compare("eq", k.sub(high, low), k.parameters["pixels"])
        with (
            k.loop(0, numbers["step_count0"]) as plane,
            k.loop(0, k.parameters["lines"]) as line,
        ):
            number = k.add(k.mul(plane.index, k.parameters["lines"]), line.index)
            goal = k.gep(k.parameters["region"], k.mul(number, line_bytes))
            depth = k.add(spot.places[0], k.mul(plane.index, numbers["step_move0_0"]))
            places = [depth, k.add(top, line.index), k.add(left, low)]
            is_inside = k.and_(self._is_within(0, places[0]), self._is_within(1, places[1]))
            source = k.gep(k.parameters["array"], self._offset(Spot(spot.offset, places)))

            with k.if_(k.not_(k.and_(is_inside, is_full))):
                k.memset(goal, 0, line_bytes)
            with k.if_(is_inside):
                self._copy_pixels(k.gep(goal, k.mul(low, pixel_bytes)), source, k.sub(high, low), pixel_bytes)

    def _least_move(self, move: str, count: str) -> Value:
        """How far the window's first place in a space is before that where its description starts."""
        k = self._k
        return k.smin(k.mul(self._numbers[move], k.sub(self._numbers[count], 1)), 0)

    def _copy_pixels(self, goal: Value, source: Value, count: Value, pixel_bytes: Value) -> None:
        """Pixels that lie side by side, or apart where features of other groups are between them."""
        k = self._k
        stride = self._numbers["stride2"]

        def apart() -> None:
            with k.loop(0, count) as pixel:
                place = k.gep(goal, k.mul(pixel.index, pixel_bytes))
                k.memcpy(place, k.gep(source, k.mul(pixel.index, stride)), pixel_bytes)

        together = functools.partial(k.memcpy, goal, source, k.mul(count, pixel_bytes))
        k.if_else(k.compare("eq", stride, pixel_bytes), together, apart)
