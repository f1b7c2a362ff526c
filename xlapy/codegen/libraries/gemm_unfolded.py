"""Convolutions over short lines of positions: what lies under a window's row of places is written down for each.

In a copied region (`gemm_direct`) the positions of one line are equally far apart, but those of the next line are not
where a tile would go on: where lines are short, tiles are low. Here each position has the pixels under a row of its
window for itself, one position behind the other, and the lines of an image follow each other:

    for each strip of B, for each row of places of the window:
        for each tile of positions: C[positions, strip] += unfolded[positions + row of places] B[row of places, strip]

So a tile has any positions of an image, the last of one line and the first of the next. To unfold takes as many copies
of an element as a window has places in a row, where `gemm_copied` takes one for each place of the window.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_direct import GemmDirect, Unit
from xlapy.codegen.libraries.gemm_packing import SLACK_BYTES
from xlapy.codegen.libraries.gemm_problem import (
    PACKED_CHUNK,
    PROBLEM,
    RANGE,
    ceil_div,
    row_pitch,
    work_per_element,
)
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_regions import Geometry, Pieces, Region
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch

_LONG_LINE = 16
"""Positions of a line that make tiles high enough, two or three in a line."""

_LOW_TILE = 4
"""Rows of a tile whose sums, two vectors a row, are no more than two units have multiplications under way (16 by 8 by 8
of 256 features, 6 rows at most: 3 % slower than unfolded)."""

_LEAST_COLUMNS = 128
"""Of the result: with fewer, unfolding takes long beside the products."""

_COLUMNS_PER_STEP = 2
"""With more columns for each step of a run, it is little to copy all rows, and their runs are longer (8 by 8 of 128 to
1024 features: 3 % faster)."""

_EVEN_UNITS = 8
"""To share out, if there are so many lines and columns."""

_PART_OF_CACHE = 2
"""Of the second-level cache, that what is unfolded for a unit may take: strip after strip of B goes by it. With low
tiles all of an image must fit, or B would be packed on the way for each of two small units (Zen 3, 7 by 7 of 512
features: to copy rows takes 0.7 of the time)."""


class GemmUnfolded(GemmDirect):
    """Writes what decides for this way of computing a convolution, the unfolding, and the units of work."""

    def unfolded(self) -> None:
        """The functions that unfold some lines, and compute some units."""
        if not self._can_read_regions:
            return
        self._unfold_lines()
        self._unfolded_units()

    def _is_unfolded(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a convolution is computed in this way."""
        if not self._can_read_regions:
            return k.const(I1, 0)
        number = functools.partial(self._window_number, k, problem)
        geometry = self._geometry(k, problem)
        sizes = [number("row_count1"), geometry.planes, geometry.runs_per_line, geometry.row_lines]
        is_packed = self._is_packed_before(k, problem)
        rows, positions = number("row_count2"), number("row_count3")
        conditions = [
            k.compare("ne", number("is_regular"), 0),
            k.compare("eq", number("follows_rows"), 0),
            *(k.compare("eq", size, 1) for size in sizes),
            k.or_(k.compare("eq", geometry.rows_per_tile, 1), is_packed),
            k.compare("gt", number("step_count1"), 1),
            self._can_read_b(k, problem),
            k.compare("ge", problem["n"], _LEAST_COLUMNS),
            k.compare("le", problem["n"], k.mul(geometry.run_steps, _COLUMNS_PER_STEP)),
            k.compare("lt", positions, _LONG_LINE),
            k.or_(self._makes_low_tiles(k, positions), self._writes_less(k, problem, geometry)),
            k.compare("ge", k.mul(rows, positions), 2 * self._shape.rows),
            k.compare("le", self._bytes_of_unfolded(k, problem, geometry), self._most_packed_bytes),
        ]
        if self._has_low_tiles:
            near_bytes = self._target.l2_bytes // _PART_OF_CACHE
            conditions.append(k.compare("le", self._bytes_of_image(k, problem, geometry), near_bytes))
        return functools.reduce(k.and_, conditions)

    def _makes_low_tiles(self, k: KernelBuilder, positions: Value) -> Value:
        """Whether tiles that end where a line does would wait for their own sums."""
        tiles = ceil_div(k, positions, self._line_rows)
        return k.compare("le", ceil_div(k, positions, k.smax(tiles, 1)), _LOW_TILE)

    def _writes_less(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        """Whether unfolding writes less than packing B would, which tiles of a region need (8 by 14 by 14 of 256
        features: unfolding takes 1.04 of the time)."""
        of_b = k.mul(k.mul(problem["k"], problem["n"]), self._kind.packed.bytes)
        return k.compare("le", self._bytes_of_unfolded(k, problem, geometry), of_b)

    def _pitch(self, k: KernelBuilder, geometry: Geometry) -> Value:
        """From what is unfolded for one position to that for the next."""
        return row_pitch(k, geometry.run_steps, self._element_bytes)

    def _lines_of_image(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        return k.add(self._window_number(k, problem, "row_count2"), k.sub(geometry.window_lines, 1))

    def _bytes_of_line(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        return k.mul(self._window_number(k, problem, "row_count3"), self._pitch(k, geometry))

    def _bytes_of_image(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        return k.mul(self._lines_of_image(k, problem, geometry), self._bytes_of_line(k, problem, geometry))

    def _bytes_of_unfolded(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        images = self._window_number(k, problem, "row_count0")
        return k.add(k.mul(images, self._bytes_of_image(k, problem, geometry)), SLACK_BYTES)

    def _run_unfolded(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Unfolds all images of a matrix, then computes units: some lines of an image by some columns."""
        if not self._can_read_regions:
            return
        geometry, parallel = self._geometry(k, problem), k.parameters["parallel"]
        number = functools.partial(self._window_number, k, problem)
        images, rows, positions = (number(f"row_count{level}") for level in (0, 2, 3))
        lines, line_bytes = (f(k, problem, geometry) for f in (self._lines_of_image, self._bytes_of_line))
        scratch = acquire_scratch(k, self._bytes_of_unfolded(k, problem, geometry))
        fitting = k.sdiv(self._target.l2_bytes // _PART_OF_CACHE, line_bytes)
        fitting = k.smax(k.sub(fitting, k.sub(geometry.window_lines, 1)), 1)
        # With as many groups, none has fewer positions than a tile, which its first one must fill.
        most_groups = k.sdiv(k.mul(rows, positions), self._shape.rows + _LONG_LINE)
        row_groups = k.smax(k.smin(ceil_div(k, rows, fitting), most_groups), 1)
        units = k.mul(images, row_groups)
        strips = ceil_div(k, problem["n"], self._shape.columns)
        blocks = k.smax(k.smin(strips, ceil_div(k, k.const(I64, _EVEN_UNITS), units)), 1)
        block_columns = k.mul(ceil_div(k, strips, blocks), self._shape.columns)
        problem.set(
            copies=k.zext(k.not_(self._is_packed_before(k, problem)), I64),
            tile_a=scratch.memory,
            tile_a_step=self._element_bytes,
            tile_b_step=self._shape.columns * self._kind.packed.bytes,
            column=0,
            columns=problem["n"],
            lines=lines,
            row_groups=row_groups,
            block_columns=block_columns,
            column_blocks=ceil_div(k, problem["n"], block_columns),
        )
        grain_of_lines = ceil_div(k, k.const(I64, PACKED_CHUNK), k.lshr(line_bytes, 2))
        elements = k.mul(k.mul(k.sdiv(rows, row_groups), positions), block_columns)
        work = k.mul(elements, work_per_element(k, problem, problem["k"]))
        count = k.mul(units, problem["column_blocks"])
        grain = self._grain(k, count, work)
        with k.loop(0, problem["batches"]) as batch:
            problem["batch"] = batch.index
            self._find_packed_b(k, problem)
            unfold, compute = (k.function_pointer(f"{self._prefix}_{name}") for name in ("unfold", "unfolded_units"))
            k.call(parallel, [unfold, problem.place, k.mul(images, lines), grain_of_lines])
            k.call(parallel, [compute, problem.place, count, grain])
        release_scratch(k, scratch)

    def _unfold_lines(self) -> None:
        """A range of lines, those of all images in order."""
        with (
            self._function("unfold", RANGE, is_glue=True) as k,
            k.loop(k.parameters["begin"], k.parameters["end"]) as item,
        ):
            problem = PROBLEM.at(k, k.parameters["problem"])
            number, geometry = functools.partial(self._window_number, k, problem), self._geometry(k, problem)
            image = k.sdiv(item.index, problem["lines"])
            line = k.sub(item.index, k.mul(image, problem["lines"]))
            positions = number("row_count3")
            first = k.mul(image, k.mul(number("row_count2"), positions))
            array = k.gep(problem["a"], k.mul(problem["batch"], problem["a_batch"]))
            goal = k.gep(problem["tile_a"], k.mul(image, self._bytes_of_image(k, problem, geometry)))
            pieces = Pieces(positions, geometry.window_pixels, self._pitch(k, geometry))
            self._copy_region(k, problem, array, first, (line, k.add(line, 1)), pieces, goal)

    def _unfolded_units(self) -> None:
        """A range of pairs of a unit and a block of columns, those of one unit next to each other."""
        with self._function("unfolded_units", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            number, geometry = functools.partial(self._window_number, k, problem), self._geometry(k, problem)
            rows, positions = number("row_count2"), number("row_count3")
            groups, blocks = problem["row_groups"], problem["column_blocks"]
            line_bytes = self._bytes_of_line(k, problem, geometry)
            scratch = acquire_scratch(k, k.mul(geometry.run_steps, problem["tile_b_step"]))
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                lines = k.sdiv(item.index, blocks)
                block = k.sub(item.index, k.mul(lines, blocks))
                image = k.sdiv(lines, groups)
                group = k.sub(lines, k.mul(image, groups))
                row = k.sdiv(k.mul(group, rows), groups)
                end = k.sdiv(k.mul(k.add(group, 1), rows), groups)
                place = k.gep(problem["tile_a"], k.mul(image, self._bytes_of_image(k, problem, geometry)))
                region = Region(k.gep(place, k.mul(row, line_bytes)), line_bytes, self._pitch(k, geometry))
                first = k.mul(k.add(k.mul(image, rows), row), positions)
                one_row = k.const(I64, 1), k.mul(k.sub(end, row), positions)
                unit = Unit(problem, geometry, region, scratch.memory, first, *one_row)
                self._block_of_unit(k, unit, k.mul(block, problem["block_columns"]))
            release_scratch(k, scratch)
