"""Convolutions whose left side is not packed at all: tiles read it from a copy of a region of the array.

A unit is some rows of positions of the window, next to each other. The region of the array under all of them is copied
once, with zeros for what lies outside; features of a pixel, and pixels of a line, follow each other in it. Then the
steps along K that belong to one line of a window are a run: contiguous, and the same number of bytes further for each
next position. So a tile computes as many positions of a row as it has rows of its own, one run after the other:

    for each strip of B, for each run (a place of the window in the outer spaces), for each row of the unit:
        for each tile of the row: C[positions, strip] += region[positions + run] B[run, strip]

A run of B is in a near cache while all tiles of the unit use it. Where the nearest one holds several runs, tiles sum up
all of them before they store anything: few input features make short runs. Longer ones are packed by the first tile of
the unit while it computes, for all others of the unit, so that nobody waits for it; short ones are packed beforehand.

Packing A would write each element of the array as often as there are places in the window; this pays where runs are
long, and most where the result has few features.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from xlapy.codegen.ir import I1, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_panels import WIDE_STRIPS
from xlapy.codegen.libraries.gemm_problem import (
    PACKED_CHUNK,
    PROBLEM,
    RANGE,
    ceil_div,
    strip_bytes,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_regions import GemmRegions, Geometry, Region
from xlapy.codegen.libraries.gemm_tile import COPYING_PARAMETERS, TILE_PARAMETERS, TileShape, tiles_of
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy_runtime.records import Record, replaced

_LEAST_STEPS = 48
"""Steps of the runs of a tile. With fewer, it would mostly load and store its sums."""

_COLUMNS_PER_STEP = 4
"""With so many times more columns than steps in a run, packing is cheap beside what tiles spend on their sums."""

_LEAST_POSITIONS = 12
"""Positions of a row in a region."""

_LEAST_UNITS = 8
_FEW_ROWS = 4
"""There should be so many units to share out, but not units of so few rows that most of a region is what they share."""

_HIGH_TILE = 12
"""Rows of a tile beside which what it packs of B is little."""

_UNITS_THAT_SHARE_B = 3
"""With low tiles: with so many units B is packed once for all of them. A tile of 6 rows that packs takes more than
twice as long as others, and of a small unit it is a large part (Zen 3, 1 by 28 by 28 of 128 features: 0.96 of the time,
8 by 14 by 14 of 256: 0.9)."""

_LEAST_ROWS_TO_PACK_FOR = 64
_LEAST_POSITIONS_OF_LOW_TILES = 4
"""With low tiles: of so many positions, so many in a line, regions are better than to unfold them or to copy rows (Zen
3, 8 by 7 by 7 of 512 features: 0.7 of the time; 8 by 8 of 256 to 512: 0.9). To pack B by rows costs less than that the
first of few tiles does it, but of 49 positions as much as a third of the products, where others use the last cache."""

_TILES_BELOW = 16
"""In a unit whose first tile packs B for the others, unless there would be too few units to share out."""


class Unit(Record):
    """Positions that are computed together: what is copied of the array under them, memory for the run of B that a tile
    packs for others, the row of the matrix for the first one, how many rows of positions, and how many of each row."""

    problem: RecordValue
    geometry: Geometry
    region: Region
    copy: Value
    first: Value
    rows: Value
    positions: Value


class _Strip(Record):
    """Some columns of B, as many as a tile has or fewer: the first one's number in the panel, and where the unit's sums
    begin in C."""

    column: Value
    columns: Value
    sums: Value


class _Run(Record):
    """What tiles read along one run: the part of A under a row of positions, and of a strip of B; and whether they add
    to what earlier runs made."""

    a: Value
    b: Value
    adds: Value
    next_bytes: Value
    """From one run in A to the next, where tiles sum up several."""


class GemmDirect(GemmRegions):
    """Writes what decides for this way of computing a convolution, and the units of work."""

    def direct(self) -> None:
        """The functions that units of work call."""
        if not self._can_read_regions:
            return
        self._high_tiles()
        self._copying_of_regions()
        self._units()

    @property
    def _line_rows(self) -> int:
        """Of the highest tile for positions of a line."""
        return self._shape.of_lines.rows

    @property
    def _has_high_tiles(self) -> bool:
        """Whether those tiles are higher than products have them."""
        return self._line_rows > self._shape.rows

    def _high_tiles(self) -> None:
        """Those that products have not, and those that copy strips of B."""
        if not self._has_high_tiles:
            return
        shape, least = self._shape.of_lines, self._shape.rows + 1
        self._table_of_tiles("high_tiles", [tile for tile in tiles_of(self._kind, shape) if tile.rows >= least], shape)
        self._table_of_copying_tiles("high_copying_tiles", shape)

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

    @property
    def _has_low_tiles(self) -> bool:
        """Whether tiles have so few rows that few of them are too many to pack B on the way."""
        return self._shape.rows < _HIGH_TILE

    def _prefers_direct(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a convolution that can be computed in this way had better not be unfolded, or its rows copied."""
        if not (self._has_low_tiles and self._can_read_regions):
            return k.const(I1, 0)
        positions = self._window_number(k, problem, "row_count3")
        are_many = k.compare("ge", problem["m"], _LEAST_ROWS_TO_PACK_FOR)
        conditions = [
            self._is_direct(k, problem),
            k.compare("ge", positions, _LEAST_POSITIONS_OF_LOW_TILES),
            k.and_(are_many, k.not_(self._is_packed_before(k, problem))),
        ]
        return functools.reduce(k.and_, conditions)

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
        pairs = k.smax(k.sdiv(ceil_div(k, problem["n"], self._shape.columns), 2), 1)
        large = k.sdiv(k.mul(k.mul(outer, rows), unit_positions), _TILES_BELOW * self._line_rows)
        fewer = k.smax(k.smin(large, _LEAST_UNITS), ceil_div(k, k.const(I64, _LEAST_UNITS), pairs))
        wanted = k.select(k.compare("ne", problem["copies"], 0), fewer, _LEAST_UNITS)
        even = k.smax(ceil_div(k, k.mul(outer, rows), wanted), _FEW_ROWS)
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
        problem.set(
            copies=k.zext(self._copies_runs_of_b(k, problem), I64),
            strip_columns=self._shape.columns,
            tile_b_strip=self._strip_bytes_of_b(k, problem),
            tile_b_step=self._shape.columns * self._kind.packed.bytes,
            tile_a_step=self._element_bytes,
            step=0,
            depth=problem["k"],
            a_strips=0,
            packs_steps=0,
        )
        self._cut_units(k, problem)
        if self._has_low_tiles:
            has_few = k.compare("lt", self._units_of_matrix(k, problem), _UNITS_THAT_SHARE_B)
            problem["copies"] = k.and_(problem["copies"], k.zext(has_few, I64))
            self._cut_units(k, problem)
        in_place = k.or_(k.compare("ne", problem["copies"], 0), self._is_packed_before(k, problem))
        k.if_else(in_place, lambda: self._run_with_b_in_place(k, problem), lambda: self._run_with_packed_b(k, problem))

    def _copies_runs_of_b(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether the first tile of a unit packs each run of B for the others while it computes: it needs a run to
        itself, and all rows that a tile may have."""
        geometry, positions = self._geometry(k, problem), self._window_number(k, problem, "row_count3")
        conditions = [
            self._can_read_b(k, problem),
            k.not_(self._is_packed_before(k, problem)),
            k.compare("eq", k.mul(geometry.rows_per_tile, geometry.runs_per_tile), 1),
            k.compare("ge", positions, self._line_rows * 3 // 2),  # so that the tile beside it is no low one
            k.compare("ge", self._most_positions(k, geometry), positions),
        ]
        return functools.reduce(k.and_, conditions)

    def _run_with_b_in_place(self, k: KernelBuilder, problem: RecordValue) -> None:
        """All columns at once: units pack what they need of B, or the caller has packed it."""
        with k.loop(0, problem["batches"]) as batch:
            problem.set(batch=batch.index, column=0, columns=problem["n"])
            self._find_packed_b(k, problem)
            self._run_units(k, problem)

    def _find_packed_b(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Where tiles find the matrix at hand of a B that the caller has packed."""
        place = k.gep(problem["b"], k.mul(problem["batch"], problem["b_batch"]))
        problem.set(tile_b=place, tile_b_strip=problem["b_strip"])

    def _run_with_packed_b(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Panel by panel of columns: B is packed, then units are computed."""
        shape, strip = self._shape, problem["tile_b_strip"]
        panel_columns = k.mul(k.sdiv(self._most_packed_bytes, strip), shape.columns)
        scratch = acquire_scratch(k, k.mul(ceil_div(k, k.smin(problem["n"], panel_columns), shape.columns), strip))
        problem["tile_b"] = scratch.memory
        with k.loop(0, problem["batches"]) as batch, k.loop(0, problem["n"], panel_columns) as column:
            columns = k.smin(k.sub(problem["n"], column.index), panel_columns)
            problem.set(batch=batch.index, column=column.index, columns=columns)
            self._pack_columns(k, problem)
            self._run_units(k, problem)
        release_scratch(k, scratch)

    def _pack_columns(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Packs B, the columns and the steps along K at hand: strip by strip, or some steps of all strips."""
        columns, shape = problem["columns"], self._shape
        by_rows = k.compare("eq", problem["b_column"], self._element_bytes)
        by_rows = k.and_(by_rows, k.compare("ge", columns, WIDE_STRIPS * shape.columns))
        problem["packs_steps"] = k.zext(by_rows, I64)
        pack = k.function_pointer(f"{self._prefix}_pack_strips")
        parts = ceil_div(k, problem["depth"], self._steps_of_part), ceil_div(k, columns, shape.columns)
        grains = ceil_div(k, k.const(I64, PACKED_CHUNK // self._steps_of_part), columns), k.const(I64, 1)
        count, grain = (k.select(by_rows, *either) for either in (parts, grains))
        k.call(k.parameters["parallel"], [pack, problem.place, count, grain])

    def _run_units(self, k: KernelBuilder, problem: RecordValue) -> None:
        """All units of one matrix, for the columns at hand."""
        units, strips = self._units_of_matrix(k, problem), ceil_div(k, problem["columns"], self._shape.columns)
        blocks = k.smax(k.smin(k.sdiv(strips, 2), ceil_div(k, k.const(I64, _LEAST_UNITS), units)), 1)
        block_columns = k.mul(ceil_div(k, strips, blocks), self._shape.columns)
        column_blocks = ceil_div(k, problem["columns"], block_columns)
        problem.set(block_columns=block_columns, column_blocks=column_blocks)
        positions = k.mul(problem["unit_rows"], problem["unit_positions"])
        work = k.mul(k.mul(positions, block_columns), work_per_element(k, problem, problem["k"]))
        function, count = k.function_pointer(f"{self._prefix}_units"), k.mul(units, column_blocks)
        k.call(k.parameters["parallel"], [function, problem.place, count, self._grain(k, count, work)])

    def _units_of_matrix(self, k: KernelBuilder, problem: RecordValue) -> Value:
        outer = k.mul(self._window_number(k, problem, "row_count0"), self._window_number(k, problem, "row_count1"))
        return k.mul(k.mul(outer, problem["row_groups"]), problem["position_groups"])

    # Units

    def _units(self) -> None:
        """A range of pairs of a unit and a block of columns, those of one unit next to each other."""
        with self._function("units", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            geometry = self._geometry(k, problem)
            region_bytes = k.and_(k.add(self._bytes_of_region(k, problem, geometry), CACHE_LINE - 1), -CACHE_LINE)
            run_bytes = k.mul(k.mul(geometry.run_steps, problem["tile_b_step"]), problem["copies"])
            scratch = acquire_scratch(k, k.add(region_bytes, run_bytes))
            region = Region(
                scratch.memory,
                k.mul(problem["pixels"], geometry.pixel_bytes),
                k.mul(geometry.position_pixels, geometry.pixel_bytes),
            )
            copy = k.gep(region.memory, region_bytes)
            array = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
            blocks = problem["column_blocks"]
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                number = k.sdiv(item.index, blocks)
                block = k.sub(item.index, k.mul(number, blocks))
                first, rows, positions = self._positions_of_unit(k, problem, number)
                unit = Unit(problem, geometry, region, copy, first, rows, positions)
                is_new = k.or_(k.compare("eq", block, 0), k.compare("eq", item.index, k.parameters["begin"]))
                with k.if_(is_new):
                    self._copy_whole_region(k, problem, array, first, region.memory)
                self._block_of_unit(k, unit, k.mul(block, problem["block_columns"]))
            release_scratch(k, scratch)

    def _positions_of_unit(self, k: KernelBuilder, problem: RecordValue, number: Value) -> tuple[Value, Value, Value]:
        """The first one, how many rows of them there are, and how many there are in each. Units along a row follow each
        other, then those of the next rows."""
        rows, positions = (self._window_number(k, problem, name) for name in ("row_count2", "row_count3"))
        rest = k.sdiv(number, problem["position_groups"])
        position = k.mul(k.sub(number, k.mul(rest, problem["position_groups"])), problem["unit_positions"])
        outer = k.sdiv(rest, problem["row_groups"])
        row = k.mul(k.sub(rest, k.mul(outer, problem["row_groups"])), problem["unit_rows"])
        return (
            k.add(k.mul(k.add(k.mul(outer, rows), row), positions), position),
            k.smin(k.sub(rows, row), problem["unit_rows"]),
            k.smin(k.sub(positions, position), problem["unit_positions"]),
        )

    def _block_of_unit(self, k: KernelBuilder, unit: Unit, column: Value) -> None:
        """All of a unit that lies in the block of columns from `column` of the panel on, strip by strip."""
        problem = unit.problem
        c = k.gep(problem["c"], k.mul(problem["batch"], problem["c_batch"]))
        c = k.gep(k.gep(c, k.mul(unit.first, problem["c_row"])), problem["column"], self._result_bytes)
        end = k.smin(k.add(column, problem["block_columns"]), problem["columns"])
        with k.loop(column, end, self._shape.columns) as at:
            columns = k.smin(k.sub(end, at.index), self._shape.columns)
            strip = _Strip(at.index, columns, k.gep(c, at.index, self._result_bytes))
            self._sum_up_strip(k, unit, strip)
            self._finish_strip(k, unit, strip)

    def _sum_up_strip(self, k: KernelBuilder, unit: Unit, strip: _Strip) -> None:
        """Run after run of B, each with all rows of the unit."""
        problem, geometry = unit.problem, unit.geometry
        copies = k.compare("ne", problem["copies"], 0)
        row_bytes = k.mul(self._window_number(k, problem, "row_count3"), problem["c_row"])
        run_bytes = k.mul(geometry.run_steps, problem["tile_b_step"])
        b = k.gep(problem["tile_b"], k.mul(k.sdiv(strip.column, self._shape.columns), problem["tile_b_strip"]))
        a_run_bytes = k.select(
            k.compare("eq", geometry.runs_per_line, 1),
            k.mul(geometry.place_lines, unit.region.line_bytes),
            k.mul(geometry.place_pixels, geometry.pixel_bytes),
        )
        with (
            k.loop(0, geometry.planes) as plane,
            k.loop(0, geometry.place_rows, geometry.rows_per_tile) as place_row,
            k.loop(0, geometry.runs_per_line, geometry.runs_per_tile) as place,
        ):
            number = k.add(k.mul(plane.index, geometry.place_rows), place_row.index)
            number = k.add(k.mul(number, geometry.runs_per_line), place.index)
            adds = k.or_(problem["accumulate"], k.zext(k.compare("ne", number, 0), I64))
            a = self._place_of_run(k, unit, (plane.index, place_row.index, place.index))
            run = _Run(a, k.select(copies, unit.copy, k.gep(b, k.mul(number, run_bytes))), adds, a_run_bytes)
            packed = k.if_else(
                copies,
                functools.partial(self._copying_tile, k, unit, strip, run, number),
                lambda: [k.const(I64, 0)],
            )[0]
            with k.loop(0, unit.rows) as row:
                a_row = k.gep(a, k.mul(k.mul(row.index, geometry.row_lines), unit.region.line_bytes))
                c_row = k.gep(strip.sums, k.mul(row.index, row_bytes))
                start = k.select(k.compare("eq", row.index, 0), packed, 0)
                self._row(k, unit, strip.columns, replaced(run, a=a_row), c_row, start)

    def _place_of_run(self, k: KernelBuilder, unit: Unit, number: tuple[Value, Value, Value]) -> Value:
        """Where the region has the run of a plane, a row of places and a run of that line, for the first position."""
        geometry, region = unit.geometry, unit.region
        plane, place_row, run = number
        line = k.add(geometry.first_line, k.mul(place_row, geometry.place_lines))
        line = k.add(line, k.mul(plane, unit.problem["lines"]))
        pixel = k.add(geometry.first_pixel, k.mul(run, geometry.place_pixels))
        pixel = k.select(k.compare("eq", geometry.runs_per_line, 1), 0, pixel)
        return k.gep(k.gep(region.memory, k.mul(line, region.line_bytes)), k.mul(pixel, geometry.pixel_bytes))

    def _finish_strip(self, k: KernelBuilder, unit: Unit, strip: _Strip) -> None:
        """All rows at once if they are whole, as these follow each other in C."""
        problem = unit.problem
        row_length = self._window_number(k, problem, "row_count3")
        are_whole = k.compare("eq", unit.positions, row_length)
        parts = k.select(are_whole, 1, unit.rows)
        length = k.select(are_whole, k.mul(unit.rows, unit.positions), unit.positions)
        with k.loop(0, parts) as row:
            sums = [k.gep(strip.sums, k.mul(row.index, k.mul(row_length, problem["c_row"]))), problem["c_row"]]
            place_of_c = [k.add(unit.first, k.mul(row.index, row_length)), length]
            place_of_c += [k.add(problem["column"], strip.column), strip.columns]
            k.call(f"{self._prefix}_finish", [problem.place, *sums, problem["batch"], *place_of_c])

    # Tiles

    def _copying_tile(self, k: KernelBuilder, unit: Unit, strip: _Strip, run: _Run, number: Value) -> list[Value]:
        """The first tile of a unit, which packs run `number` of a strip of B for all others; its positions."""
        problem, steps = unit.problem, unit.geometry.run_steps
        first_column = self._whole_columns(k, k.add(problem["column"], strip.column))
        b = k.gep(problem["b"], k.mul(problem["batch"], problem["b_batch"]))
        b = k.gep(b, k.mul(first_column, problem["b_column"]))
        b = k.gep(b, k.mul(k.mul(number, steps), problem["b_step"]))
        next_run = k.gep(b, k.mul(steps, problem["b_step"]))
        arguments = [steps, run.a, unit.region.position_bytes, problem["tile_a_step"]]
        arguments += [b, problem["b_step"], strip.sums, problem["c_row"], strip.columns, run.adds]
        arguments += [strip.sums, problem["c_row"], next_run, problem["b_step"], run.b]
        assert len(arguments) == len(COPYING_PARAMETERS)
        vectors = k.sdiv(k.add(strip.columns, self._shape.lanes - 1), self._shape.lanes)
        is_edge = k.zext(k.compare("lt", strip.columns, self._shape.columns), I64)
        table = "high_copying_tiles" if self._has_high_tiles else "copying_tiles"
        self._call_copying(k, vectors, is_edge, arguments, k.function_pointer(f"{self._prefix}_{table}"))
        return [k.const(I64, self._line_rows)]

    def _row(self, k: KernelBuilder, unit: Unit, columns: Value, run: _Run, c: Value, start: Value) -> None:
        """The tiles of one row from position `start` on. Their heights differ by one at most: a tile of two rows takes
        as long as one of four (Zen 3, 56 positions of 64 features: 9 tiles of 6 rows and one of 2 take 1.04 of the time
        of 6 and 4 of 5)."""
        problem, geometry = unit.problem, unit.geometry
        tile_of = self._tiles_for(k, columns)
        left = k.sub(unit.positions, start)
        tiles = ceil_div(k, left, self._line_rows)
        low = k.sdiv(left, k.smax(tiles, 1))
        higher = k.sub(left, k.mul(low, tiles))
        with k.loop(0, tiles, carry=[start]) as tile:
            (position,) = tile.values
            count = k.add(low, k.zext(k.compare("lt", tile.index, higher), I64))
            tile.next = [k.add(position, count)]
            arguments = [
                geometry.run_steps,
                k.gep(run.a, k.mul(position, unit.region.position_bytes)),
                unit.region.position_bytes,
                problem["tile_a_step"],
            ]
            place, pitch = k.gep(c, k.mul(position, problem["c_row"])), problem["c_row"]
            arguments += [run.b, problem["tile_b_step"], place, pitch, columns, run.adds]
            arguments += [place, pitch, run.b, k.const(I64, 0)]  # nothing for later
            arguments += [k.mul(geometry.rows_per_tile, geometry.runs_per_tile), run.next_bytes]
            assert len(arguments) == len(TILE_PARAMETERS)
            k.call(tile_of(count), arguments)

    def _tiles_for(self, k: KernelBuilder, columns: Value) -> Callable[[Value], Value]:
        """The function with so many columns, by its rows."""
        usual = self._part_of_table(k, "tiles", self._shape, columns)
        if not self._has_high_tiles:
            return lambda rows: k.load(k.gep(usual, k.sub(rows, 1), 8), PTR)
        high = self._part_of_table(k, "high_tiles", self._shape.of_lines, columns)

        def function(rows: Value) -> Value:
            table = k.select(k.compare("le", rows, self._shape.rows), usual, high)
            return k.load(k.gep(table, k.sub(rows, 1), 8), PTR)

        return function

    def _part_of_table(self, k: KernelBuilder, name: str, shape: TileShape, columns: Value) -> Value:
        """Those with so many columns, by rows from one on."""
        vectors = ceil_div(k, columns, shape.lanes)
        is_edge = k.zext(k.compare("lt", columns, shape.columns), I64)
        index = k.mul(k.sub(k.add(k.mul(is_edge, shape.most_vectors), vectors), 1), shape.rows)
        return k.gep(k.function_pointer(f"{self._prefix}_{name}"), index, 8)
