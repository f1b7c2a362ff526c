"""Regions: what tiles read of an array where it is not packed, copied with zeros for what lies outside.

Features of a pixel follow each other in a region, pixels of a line, lines of a plane, and planes. `gemm_direct` copies
the lines under some positions as they are, `gemm_unfolded` what lies under each position by itself.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_in_place import GemmInPlace
from xlapy.codegen.libraries.gemm_packing import SLACK_BYTES
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS, Spot, Windows
from xlapy_runtime.records import Record

_NEAR_BYTES = 1 << 15
"""Of B, that the nearest cache holds beside what else tiles read."""

_COPY = [("windows", PTR), ("array", PTR), ("row", I64), ("first_line", I64), ("end_line", I64)]
_COPY += [("lines", I64), ("pieces", I64), ("pixels", I64), ("pitch", I64), ("region", PTR)]


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


class Pieces(Record):
    """What a copied line is made of: each piece has so many pixels, and begins `pitch` bytes behind the one before it,
    where the next position does in the array; one piece is a line as it is."""

    count: Value
    pixels: Value
    pitch: Value


class Region(Record):
    """What tiles read of the array, copied: where it is, and the bytes from line to line, and from what lies under one
    position of a row to what lies under the next."""

    memory: Value
    line_bytes: Value
    position_bytes: Value


class GemmRegions(GemmInPlace):
    """Writes what convolutions have in common whose tiles read regions."""

    def _copying_of_regions(self) -> None:
        """The function that copies lines of a region."""
        with self._function("copy_region", _COPY) as k:
            _RegionEmitter(k, self._kind, self._shape, self._prefix).emit()

    @property
    def _can_read_regions(self) -> bool:
        kind = self._kind
        return kind.parts == 1 and kind.pair == 1 and kind.is_packed_in_memory and kind.accumulates_in_result

    @property
    def _region_bytes(self) -> int:
        """Room for one region: it should stay in the second-level cache beside a run of B."""
        return min(self._target.l2_bytes // 4, self._most_bytes_of_a)

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
        # In a B that was packed beforehand runs follow each other, so that C need not be read for each (28 by 28
        # positions of 128 features: 1 % faster). Where all of them are packed first, they should stay in a cache.
        is_packed = k.compare("eq", problem["copies"], 0)
        is_packed = k.and_(is_packed, k.compare("le", b_bytes, self._target.l2_bytes - self._region_bytes))
        sums_several = k.or_(are_near, k.or_(is_packed, self._is_packed_before(k, problem)))
        return Geometry(
            planes=number("step_count0"),
            place_rows=number("step_count1"),
            runs_per_line=runs_per_line,
            run_steps=run_steps,
            rows_per_tile=k.select(k.and_(sums_several, is_contiguous), neighbours, 1),
            runs_per_tile=k.select(k.and_(sums_several, k.not_(is_contiguous)), neighbours, 1),
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

    def _copy_region(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        array: Value,
        first: Value,
        lines: tuple[Value, Value],
        pieces: Pieces,
        region: Value,
    ) -> None:
        """The lines from one to another of the `problem`'s, each in `pieces`."""
        copied = [problem["windows"], array, first, *lines, problem["lines"]]
        copied += [pieces.count, pieces.pixels, pieces.pitch, region]
        assert len(copied) == len(_COPY)
        k.call(f"{self._prefix}_copy_region", copied)

    def _copy_whole_region(
        self, k: KernelBuilder, problem: RecordValue, array: Value, first: Value, region: Value
    ) -> None:
        """What lies under a unit whose first position is row `first` of the matrix."""
        line_bytes = k.mul(problem["pixels"], self._geometry(k, problem).pixel_bytes)
        line = Pieces(k.const(I64, 1), problem["pixels"], line_bytes)
        self._copy_region(k, problem, array, first, (k.const(I64, 0), problem["lines"]), line, region)

    def _bytes_of_region(self, k: KernelBuilder, problem: RecordValue, geometry: Geometry) -> Value:
        pixels = k.mul(k.mul(geometry.planes, problem["lines"]), problem["pixels"])
        return k.add(k.mul(pixels, geometry.pixel_bytes), SLACK_BYTES)


class _RegionEmitter(Windows):
    """Copies lines `first_line` to `end_line` of the `lines` that lie under some positions, the first of which is that
    of `row`: a line for each place in the space before the last, of `pieces`, whose pixels have all their features;
    planes of lines for the places of the window in the first space."""

    def emit(self) -> None:
        k, numbers = self._k, self._numbers
        spot = self._spot("row", self._digits("row", k.parameters["row"]))
        pieces = k.parameters["pieces"]
        line_bytes = k.mul(k.parameters["pitch"], pieces)
        top = k.add(spot.places[1], self._least_move("step_move1_1", "step_count1"))
        left = k.add(spot.places[2], self._least_move("step_move2_2", "step_count2"))
        step = k.smax(numbers["row_move2_3"], 1)
        with (
            k.loop(0, numbers["step_count0"]) as plane,
            k.loop(k.parameters["first_line"], k.parameters["end_line"]) as line,
        ):
            number = k.add(k.mul(plane.index, k.parameters["lines"]), line.index)
            goal = k.gep(k.parameters["region"], k.mul(number, line_bytes))
            depth = k.add(spot.places[0], k.mul(plane.index, numbers["step_move0_0"]))
            height = k.add(top, line.index)
            is_inside = k.and_(self._is_within(0, depth), self._is_within(1, height))
            with k.if_(k.not_(is_inside)):
                k.memset(goal, 0, line_bytes)
            with k.if_(is_inside), k.loop(0, pieces) as piece:
                place = k.add(left, k.mul(piece.index, step))
                here = Spot(spot.offset, [depth, height, place])
                self._copy_piece(k.gep(goal, k.mul(piece.index, k.parameters["pitch"])), here)

    @property
    def _pixel_bytes(self) -> Value:
        return self._k.mul(self._numbers["step_count3"], self._kind.element.bytes)

    @property
    def _piece_bytes(self) -> Value:
        return self._k.mul(self._k.parameters["pixels"], self._pixel_bytes)

    def _copy_piece(self, goal: Value, spot: Spot) -> None:
        """Pixels of one line from `spot` on, and zeros for those outside of the array."""
        k = self._k
        depth, height, left = spot.places
        pixels = k.parameters["pixels"]
        low = k.smin(k.smax(k.sub(0, left), 0), pixels)
        high = k.smax(k.smin(k.sub(self._numbers["size2"], left), pixels), low)
        with k.if_(k.compare("ne", k.sub(high, low), pixels)):
            k.memset(goal, 0, self._piece_bytes)
        source = self._offset(Spot(spot.offset, [depth, height, k.add(left, low)]))
        place = k.gep(goal, k.mul(low, self._pixel_bytes))
        self._copy_pixels(place, k.gep(k.parameters["array"], source), k.sub(high, low), self._pixel_bytes)

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
