"""Gradients of kernels whose left side is not packed at all: tiles read it from a copy of a region of the array.

A row of C is a place of the window with one feature, a step along K a position in an image: a regular convolution whose
two sides are exchanged. As in `gemm_direct`, the region of the array under some lines of positions is copied once, with
zeros for what lies outside. Then the elements that belong to neighbouring rows of C lie side by side in it, and those
of the next step are the same number of bytes further until a line ends. So tiles take some features of a place, and go
through the lines of a unit, where B is read as it lies:

    for each unit, for each strip of B, for each place of the window, for each tile of features:
        C[place and features, strip] += region[positions + place, features]' B[positions, strip]

Packing would write each element as often as there are places in the window, and C is too small for that to be little.
As C is small, too, it is no C that threads share out: lines of positions are cut into pieces, whose sums are added up
in their order (`gemm_pieces`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from xlapy.codegen.ir import I1, I32, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_pieces import LEAST_STEPS, MOST_PIECES, GemmPieces
from xlapy.codegen.libraries.gemm_problem import PROBLEM, RANGE, ceil_div, round_up
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_regions import Geometry
from xlapy.codegen.libraries.gemm_tile import TILE_PARAMETERS
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy_runtime.records import Record, replaced

_LEAST_POSITIONS = 24
"""Of a line. In shorter ones tiles are mostly on their way to the next (14 by 14: packing is as good)."""

_MOST_SUMS = 1 << 17
"""Of one piece, which stay in the second-level cache beside what is multiplied."""

_LEAST_PIECES = 4
"""To share out, of the least steps that make a piece."""


_PART_OF_NEAR_CACHE = 2
"""Of the first-level cache, that the strip of B for a unit may take where it is copied."""

_COPY = [("b", PTR), ("b_step", I64), ("steps", I64), ("columns", I64), ("copy", PTR)]


class _Operands(Record):
    """Where in a region, in B and in the sums a tile or a unit begins, and from a row of B to the next; and where a
    strip of B may be copied."""

    a: Value
    b: Value
    b_step: Value
    c: Value
    copy: Value


class GemmGradient(GemmPieces):
    """Writes what decides for this way of computing a convolution, and the pieces."""

    def _is_direct_gradient(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a convolution is computed in this way. No cache has a part in it: sums of pieces have other bits."""
        if not self._can_read_regions:
            return k.const(I1, 0)
        number = functools.partial(self._window_number, k, problem)
        conditions = [
            k.compare("ne", number("is_gradient"), 0),
            k.compare("ne", number("follows_rows"), 0),
            k.compare("eq", problem["batches"], 1),
            k.compare("ge", number("step_count3"), _LEAST_POSITIONS),
            k.compare("ge", problem["k"], _LEAST_PIECES * LEAST_STEPS),
            k.compare("le", k.mul(problem["m"], problem["n"]), _MOST_SUMS),
            self._can_read_b(k, problem),
        ]
        return functools.reduce(k.and_, conditions)

    def _run_gradient(self, k: KernelBuilder, problem: RecordValue) -> None:
        """All pieces, and their sum."""
        if not self._can_read_regions:
            return
        gradient = problem.copy()
        gradient["windows"] = self._exchanged(k, problem["windows"])
        self._cut_lines(k, gradient)
        count = ceil_div(k, self._lines_of_positions(k, gradient), gradient["piece_lines"])
        scratch = self._room_for_pieces(k, gradient, count)
        pieces = k.function_pointer(f"{self._prefix}_gradient_pieces")
        k.call(k.parameters["parallel"], [pieces, gradient.place, count, k.const(I64, 1)])
        self._add_up_pieces(k, gradient)
        release_scratch(k, scratch)

    def _exchanged(self, k: KernelBuilder, windows: Value) -> Value:
        """The same numbers with rows and steps exchanged, in the stack frame."""
        first_of_rows, first_of_steps = (WINDOW_NUMBERS.index(f"{side}_count0") for side in ("row", "step"))
        digits = first_of_steps - first_of_rows
        numbers = k.alloca(I64, len(WINDOW_NUMBERS))
        for goal, source, count in (
            (0, 0, first_of_rows),
            (first_of_rows, first_of_steps, digits),
            (first_of_steps, first_of_rows, digits),
        ):
            k.memcpy(k.gep(numbers, goal, I64.bytes), k.gep(windows, source, I64.bytes), count * I64.bytes)
        return numbers

    def _lines_of_positions(self, k: KernelBuilder, problem: RecordValue) -> Value:
        counts = [self._window_number(k, problem, f"row_count{level}") for level in range(3)]
        return functools.reduce(k.mul, counts)

    def _cut_lines(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Pieces of about the same number of lines, and units of as many as a region has room for."""
        geometry = self._geometry(k, problem)
        rows, positions = (self._window_number(k, problem, name) for name in ("row_count2", "row_count3"))
        pixels = k.add(k.mul(k.sub(positions, 1), geometry.position_pixels), geometry.window_pixels)
        plane_lines = k.sdiv(self._region_bytes, k.mul(geometry.planes, k.mul(pixels, geometry.pixel_bytes)))
        fitting = k.add(k.sdiv(k.smax(k.sub(plane_lines, geometry.window_lines), 0), geometry.row_lines), 1)
        unit_rows = k.smin(fitting, rows)
        if self._has_low_tiles:
            near = self._target.l1_bytes // _PART_OF_NEAR_CACHE
            unit_rows = k.smin(unit_rows, k.smax(k.sdiv(near, k.mul(positions, self._strip_row_bytes)), 1))
        pieces = k.smin(k.sdiv(problem["k"], LEAST_STEPS), MOST_PIECES)
        problem.set(
            unit_rows=unit_rows,
            lines=k.add(k.mul(k.sub(unit_rows, 1), geometry.row_lines), geometry.window_lines),
            pixels=pixels,
            piece_lines=ceil_div(k, ceil_div(k, problem["k"], pieces), positions),
        )

    def gradient(self) -> None:
        """A range of pieces, unit by unit."""
        if not self._can_read_regions:
            return
        if self._has_low_tiles:
            self._copying_of_strips()
        with self._function("gradient_pieces", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            geometry = self._geometry(k, problem)
            copy_bytes = k.const(I64, 0)
            if self._has_low_tiles:
                positions = self._window_number(k, problem, "row_count3")
                copy_bytes = round_up(
                    k, k.mul(k.mul(problem["unit_rows"], positions), self._strip_row_bytes), CACHE_LINE
                )
            scratch = acquire_scratch(k, k.add(copy_bytes, self._bytes_of_region(k, problem, geometry)))
            room = scratch.memory, k.gep(scratch.memory, copy_bytes)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as piece:
                self._piece_of_gradient(k, problem, geometry, room, piece.index)
            release_scratch(k, scratch)

    @property
    def _strip_row_bytes(self) -> int:
        return self._shape.columns * self._kind.packed.bytes

    def _copying_of_strips(self) -> None:
        """The function that copies a strip of B, some steps of it."""
        with self._function("copy_strip", _COPY) as k:
            vector = self._kind.packed.with_lanes(self._shape.lanes)
            left = k.splat(k.trunc(k.parameters["columns"], I32), vector.lanes)
            numbers = k.lane_numbers(I32.with_lanes(vector.lanes))
            starts = range(0, self._shape.columns, vector.lanes)
            masks = [k.compare("lt", k.add(numbers, start), left) for start in starts]
            with k.loop(0, k.parameters["steps"]) as step:
                source = k.gep(k.parameters["b"], k.mul(step.index, k.parameters["b_step"]))
                goal = k.gep(k.parameters["copy"], k.mul(step.index, self._strip_row_bytes))
                for start, mask in zip(starts, masks, strict=True):
                    offset = start * vector.element.bytes
                    k.store(k.gep(goal, offset), k.masked_load(k.gep(source, offset), vector, mask))

    def _piece_of_gradient(
        self, k: KernelBuilder, problem: RecordValue, geometry: Geometry, room: tuple[Value, Value], piece: Value
    ) -> None:
        """A piece with `room` for a strip of B and a region."""
        copy, region = room

        def unit(position: Value, rows: Value, sums: Value, adds: Value) -> None:
            self._copy_whole_region(k, problem, problem["a"], position, region)
            b = k.gep(problem["b"], k.mul(position, problem["b_step"]))
            operands = _Operands(region, b, problem["b_step"], sums, copy)
            self._unit_of_gradient(k, problem, geometry, operands, rows, adds)

        self._units_of_piece(k, problem, piece, unit)

    def _units_of_piece(
        self, k: KernelBuilder, problem: RecordValue, piece: Value, unit: Callable[[Value, Value, Value, Value], None]
    ) -> None:
        """Unit by unit, of which none has lines of two images or planes: `unit` gets the number of its first position,
        its lines, where the sums of the piece are, and whether there are some already."""
        rows, positions = (self._window_number(k, problem, name) for name in ("row_count2", "row_count3"))
        first = k.mul(piece, problem["piece_lines"])
        last = k.smin(k.add(first, problem["piece_lines"]), self._lines_of_positions(k, problem))
        sums = k.gep(problem["sums"], k.mul(piece, problem["sums_batch"]))

        def lines(values: list[Value]) -> Value:
            (line,) = values
            count = k.smin(k.smin(problem["unit_rows"], k.sub(last, line)), k.sub(rows, k.srem(line, rows)))
            unit(k.mul(line, positions), count, sums, k.zext(k.compare("ne", line, first), I64))
            return k.add(line, count)

        k.while_loop(lambda values: k.compare("lt", values[0], last), lines, [first])

    def _unit_of_gradient(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        geometry: Geometry,
        operands: _Operands,
        rows: Value,
        adds: Value,
    ) -> None:
        """What so many lines of positions say to all of C."""
        places = self._window_number(k, problem, "step_count2")
        line_bytes = k.mul(problem["pixels"], geometry.pixel_bytes)
        place_sums = k.mul(self._window_number(k, problem, "step_count3"), problem["sums_row"])
        with k.loop(0, problem["n"], self._shape.columns) as strip:
            columns = k.smin(k.sub(problem["n"], strip.index), self._shape.columns)
            c = k.gep(operands.c, strip.index, self._kind.accumulator.bytes)
            b = k.gep(operands.b, strip.index, self._element_bytes)
            here = self._with_near_strip(k, problem, replaced(operands, b=b, c=c), rows, columns)
            with (
                k.loop(0, geometry.planes) as plane,
                k.loop(0, geometry.place_rows) as place_row,
                k.loop(0, places) as place,
            ):
                line = k.add(k.mul(plane.index, problem["lines"]), k.mul(place_row.index, geometry.place_lines))
                pixel = k.mul(place.index, geometry.place_pixels)
                number = k.add(k.mul(plane.index, geometry.place_rows), place_row.index)
                number = k.add(k.mul(number, places), place.index)
                a = k.gep(k.gep(here.a, k.mul(line, line_bytes)), k.mul(pixel, geometry.pixel_bytes))
                at_place = replaced(here, a=a, c=k.gep(here.c, k.mul(number, place_sums)))
                self._place_of_window(k, problem, geometry, at_place, (rows, columns), adds)

    def _with_near_strip(
        self, k: KernelBuilder, problem: RecordValue, operands: _Operands, rows: Value, columns: Value
    ) -> _Operands:
        """The operands with the strip of B side by side, where tiles are low: it stays in the nearest cache for all of
        them, while rows a power of two apart would be in each other's way (Zen 3, 8 by 56 by 56 of 64 features: 0.8 of
        the time)."""
        if not self._has_low_tiles:
            return operands
        steps = k.mul(rows, self._window_number(k, problem, "row_count3"))
        copied = [operands.b, operands.b_step, steps, columns, operands.copy]
        assert len(copied) == len(_COPY)
        k.call(f"{self._prefix}_copy_strip", copied)
        return replaced(operands, b=operands.copy, b_step=k.const(I64, self._strip_row_bytes))

    def _place_of_window(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        geometry: Geometry,
        operands: _Operands,
        size: tuple[Value, Value],
        adds: Value,
    ) -> None:
        """The tiles of one place of the window and a strip of B, of about the same height."""
        rows, columns = size
        features, positions = (self._window_number(k, problem, name) for name in ("step_count3", "row_count3"))
        height = ceil_div(k, features, ceil_div(k, features, self._line_rows))
        a_row, pitch = k.const(I64, self._element_bytes), problem["sums_row"]
        a_step = k.mul(geometry.position_pixels, geometry.pixel_bytes)
        a_run = k.mul(geometry.row_lines, k.mul(problem["pixels"], geometry.pixel_bytes))
        tile_of = self._tiles_for(k, columns)
        with k.loop(0, features, height) as feature:
            count = k.smin(k.sub(features, feature.index), height)
            c = k.gep(operands.c, k.mul(feature.index, pitch))
            arguments = [positions, k.gep(operands.a, k.mul(feature.index, a_row)), a_row, a_step]
            arguments += [operands.b, operands.b_step, c, pitch, columns, adds]
            arguments += [c, pitch, operands.b, k.const(I64, 0)]  # nothing for later
            arguments += [rows, a_run]
            assert len(arguments) == len(TILE_PARAMETERS)
            k.call(tile_of(count), arguments)
