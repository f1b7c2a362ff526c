"""Gradients of kernels of f32 by the matrix unit, whose tiles read regions in planes of bf16.

As in `gemm_gradient`, a step along K is a position, lines of positions are cut into pieces whose sums are added up in
their order, and a unit is some lines of a piece, for which the region of the array under them is copied. As in
`gemm_unit_regions`, positions of all lines of a unit are numbered through like pixels of the region, those between
lines included: their elements of B are zeros. Here the region is what the unit's second operand wants, pairs along K,
and the first one is B, turned round:

    for each strip of B, for each place of the window, for each 32 features:
        sums[place][strip, features] += B[positions, strip]' region[positions + place, features]

A pair is two pixels, one and the 16th behind it, and a place of the window moves by any number of pixels. So a region
has such a pair for each of its pixels, with 16 features of each plane in a line; every pixel is in two of them.

Sums are turned round as they are added up.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import F32, I8, I64, PTR, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_pieces import LEAST_STEPS, MOST_PIECES
from xlapy.codegen.libraries.gemm_planes import pairs_of_planes
from xlapy.codegen.libraries.gemm_problem import PROBLEM, RANGE, ceil_div, round_up
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_regions import Geometry
from xlapy.codegen.libraries.gemm_types import UNIT_ROW_BYTES, UNIT_STEPS
from xlapy.codegen.libraries.gemm_unit import PLANE_BYTES, configure_unit, emit_unit_pairs, release_unit
from xlapy.codegen.libraries.gemm_unit_columns import GemmUnitColumns
from xlapy.codegen.libraries.gemm_unit_regions import COPY_PARAMETERS, FEATURES_OF_LINE, UnitRegionEmitter, divided
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy.codegen.register_transpose import transposed
from xlapy_runtime.records import Record

_LANES = UNIT_STEPS
_VECTOR = F32.with_lanes(_LANES)
_PIXELS_OF_TILE = 2 * _LANES
"""Along K, of which a tile has pairs."""

_REGION_PART = 2
"""Of the second-level cache, for what a unit copies of the array."""

MOST_SUMS = 1 << 22
"""Of all pieces together: added up, they come from memory."""

FEW_IMAGES = 4
"""Fewer are cut into pieces of several lines each, of at least as many positions as other pieces have (`gemm_pieces`),
others into pieces of whole images."""

LEAST_PIECES = 2

_PAIR = [("pixels", I64), ("features", I64), ("region", PTR), ("pairs", PTR)]
_TURN = [("b", PTR), ("b_step", I64), ("rows", I64), ("positions", I64), ("pixels", I64), ("columns", I64)]
_TURN += [("strip", I64), ("packed", PTR)]


class _Room(Record):
    """Memory of a unit: the region as it is, as pairs, and the unit's part of B."""

    region: Value
    pairs: Value
    b: Value


class GemmPlaneGradient(GemmUnitColumns):
    """Writes this way of computing a gradient."""

    def plane_gradient(self) -> None:
        """The functions that pieces call, the pieces, and what adds them up."""
        emit_unit_pairs(self._module, self._kind, self._prefix, self._attributes)
        with self._function("copy_plain_region", COPY_PARAMETERS) as k:
            _PlainRegionEmitter(k, self._kind, self._shape, self._prefix).emit()
        with self._function("pair_pixels", _PAIR) as k:
            self._pair_pixels(k)
        with self._function("turn_positions", _TURN) as k:
            self._turn_positions(k)
        self._pieces_in_planes()
        self._turned_pieces()

    def _run_gradient_in_planes(self, k: KernelBuilder, problem: RecordValue) -> None:
        """All pieces, and their sum. The problem's windows are exchanged already."""
        self._cut_lines_in_planes(k, problem)
        count = ceil_div(k, self._lines_of_positions(k, problem), problem["piece_lines"])
        features = self._window_number(k, problem, "step_count3")
        pitch = k.mul(features, F32.bytes)
        places = k.udiv(problem["m"], features)
        piece_bytes = k.mul(k.mul(places, round_up(k, problem["n"], self._shape.rows)), pitch)
        scratch = acquire_scratch(k, k.mul(count, piece_bytes))
        problem.set(batches=count, sums=scratch.memory, sums_row=pitch, sums_batch=piece_bytes, uses_scratch=1)
        parallel = k.parameters["parallel"]
        pieces = k.function_pointer(f"{self._prefix}_gradient_pieces")
        k.call(parallel, [pieces, problem.place, count, k.const(I64, 1)])
        turned = k.function_pointer(f"{self._prefix}_add_turned_pieces")
        k.call(parallel, [turned, problem.place, k.udiv(problem["m"], _LANES), k.const(I64, 1)])
        release_scratch(k, scratch)

    def _cut_lines_in_planes(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Pieces of whole images, or of about the same number of lines, and units of as many as a region has room
        for."""
        geometry, number = self._geometry(k, problem), functools.partial(self._window_number, k, problem)
        rows, images = number("row_count2"), k.mul(number("row_count0"), number("row_count1"))
        pixel_bytes = k.add(self._bytes_of_pairs(k, problem), geometry.pixel_bytes)
        self._cut_rows(k, problem, pixel_bytes, self._target.l2_bytes // _REGION_PART, rows)
        are_few = k.compare("lt", images, FEW_IMAGES)
        most = k.smin(k.sdiv(k.const(I64, MOST_SUMS), k.mul(problem["m"], problem["n"])), MOST_PIECES)
        most = k.smin(most, k.select(are_few, k.sdiv(problem["k"], LEAST_STEPS), most))
        pieces = k.smax(most, LEAST_PIECES)
        whole_images = k.mul(ceil_div(k, images, pieces), rows)
        problem["piece_lines"] = k.select(are_few, ceil_div(k, k.mul(images, rows), pieces), whole_images)

    def _bytes_of_pairs(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of one pixel."""
        lines = k.udiv(self._window_number(k, problem, "step_count3"), _LANES)
        return k.mul(lines, self._kind.planes * UNIT_ROW_BYTES)

    def _strip_bytes_of_positions(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Of a unit's part of B, turned round: 32 columns, all positions."""
        positions = k.mul(problem["unit_rows"], problem["pixels"])
        return k.mul(ceil_div(k, positions, _PIXELS_OF_TILE), self._kind.planes * PLANE_BYTES)

    # What a unit copies

    def _pair_pixels(self, k: KernelBuilder) -> None:
        """Pairs of so many pixels that follow each other, and of 16 behind them."""
        given, planes = k.parameters, self._kind.planes
        lines = k.udiv(given["features"], _LANES)
        pixel_bytes = k.mul(given["features"], F32.bytes)
        with k.loop(0, given["pixels"]) as pixel:
            first = k.gep(given["region"], k.mul(pixel.index, pixel_bytes))
            second = k.gep(first, k.mul(pixel_bytes, _LANES))
            goal = k.gep(given["pairs"], k.mul(k.mul(pixel.index, lines), planes * UNIT_ROW_BYTES))
            with k.loop(0, lines) as line:
                low, high = (k.load(k.gep(place, line.index, _LANES * F32.bytes), _VECTOR) for place in (first, second))
                for plane, pairs in enumerate(pairs_of_planes(k, low, high, planes)):
                    k.store(k.gep(goal, k.add(k.mul(line.index, planes), plane), UNIT_ROW_BYTES), pairs)

    def _turn_positions(self, k: KernelBuilder) -> None:
        """Strips of B turned round: `rows` of so many `positions`, `pixels` from row to row; zeros where none is."""
        given, planes = k.parameters, self._kind.planes
        end = k.add(k.mul(k.sub(given["rows"], 1), given["pixels"]), given["positions"])
        places = k.alloca(I64, _PIXELS_OF_TILE)
        counts = k.alloca(I64, _PIXELS_OF_TILE)
        with k.loop(0, ceil_div(k, end, _PIXELS_OF_TILE)) as tile:
            with k.loop(0, _PIXELS_OF_TILE) as loop:
                row, position = divided(k, k.add(k.mul(tile.index, _PIXELS_OF_TILE), loop.index), given["pixels"])
                is_there = k.and_(k.compare("lt", row, given["rows"]), k.compare("lt", position, given["positions"]))
                index = k.select(is_there, k.add(k.mul(row, given["positions"]), position), 0)
                k.store(k.gep(places, loop.index, I64.bytes), k.mul(index, given["b_step"]))
                k.store(k.gep(counts, loop.index, I64.bytes), k.select(is_there, given["columns"], 0))
            goal = k.gep(given["packed"], k.mul(tile.index, planes * PLANE_BYTES))
            with k.loop(0, given["columns"], _LANES) as first:
                halves = [
                    transposed(k, [self._columns_of(k, places, counts, start + n, first.index) for n in range(_LANES)])
                    for start in (0, _LANES)
                ]
                strip, column = divided(k, first.index, k.const(I64, self._shape.rows))
                place = k.gep(k.gep(goal, k.mul(strip, given["strip"])), k.mul(column, UNIT_ROW_BYTES))
                for number, (low, high) in enumerate(zip(*halves, strict=True)):
                    for plane, pairs in enumerate(pairs_of_planes(k, low, high, planes)):
                        k.store(k.gep(place, plane * PLANE_BYTES + number * UNIT_ROW_BYTES), pairs)

    def _columns_of(self, k: KernelBuilder, places: Value, counts: Value, number: int, first: Value) -> Value:
        """16 columns of one of the positions, with zeros for what there is not."""
        place, count = (k.load(k.gep(table, number * I64.bytes), I64) for table in (places, counts))
        source = k.gep(k.gep(k.parameters["b"], place), first, F32.bytes)
        return k.masked_load(source, _VECTOR, k.first_lanes(k.sub(count, first), _LANES))

    # Pieces

    def _pieces_in_planes(self) -> None:
        """A range of pieces, unit by unit."""
        with self._function("gradient_pieces", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            geometry = self._geometry(k, problem)
            features = self._window_number(k, problem, "step_count3")
            # A pair has a pixel 16 behind its first one, and a tile along K pairs that lie behind the last position.
            pixels = k.add(self._pixels_of_region(k, problem, geometry), _PIXELS_OF_TILE)
            plain = k.mul(k.add(pixels, _LANES), k.mul(features, F32.bytes))
            pairs = k.mul(pixels, self._bytes_of_pairs(k, problem))
            strips = ceil_div(k, problem["n"], self._shape.rows)
            b = k.mul(strips, self._strip_bytes_of_positions(k, problem))
            scratch = acquire_scratch(k, k.add(k.add(plain, pairs), b))
            of_pairs = k.gep(scratch.memory, plain)
            room = _Room(region=scratch.memory, pairs=of_pairs, b=k.gep(of_pairs, pairs))
            configure_unit(k, self._prefix)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as piece:
                self._piece_in_planes(k, problem, geometry, room, piece.index)
            release_unit(k)
            release_scratch(k, scratch)

    def _piece_in_planes(
        self, k: KernelBuilder, problem: RecordValue, geometry: Geometry, room: _Room, piece: Value
    ) -> None:
        positions = self._window_number(k, problem, "row_count3")

        def unit(first: Value, rows: Value, sums: Value, adds: Value) -> None:
            self._copy_for_unit(k, problem, geometry, room, first, rows)
            pixels = k.add(k.mul(k.sub(rows, 1), problem["pixels"]), positions)
            self._unit_in_planes(k, problem, geometry, room, sums, (ceil_div(k, pixels, _PIXELS_OF_TILE), adds))

        self._units_of_piece(k, problem, piece, unit)

    def _copy_for_unit(
        self, k: KernelBuilder, problem: RecordValue, geometry: Geometry, room: _Room, first: Value, rows: Value
    ) -> None:
        """The region under so many rows of positions, the first of which is number `first`, and their part of B."""
        features = self._window_number(k, problem, "step_count3")
        pixels = self._pixels_of_region(k, problem, geometry)
        copied = [problem["windows"], problem["a"], first, rows, problem["lines"], problem["pixels"], room.region]
        assert len(copied) == len(COPY_PARAMETERS)
        k.call(f"{self._prefix}_copy_plain_region", copied)
        pixel_bytes, behind = k.mul(features, F32.bytes), _PIXELS_OF_TILE + _LANES
        k.memset(k.gep(room.region, k.mul(pixels, pixel_bytes)), 0, k.mul(pixel_bytes, behind))
        paired = [k.add(pixels, _PIXELS_OF_TILE), features, room.region, room.pairs]
        assert len(paired) == len(_PAIR)
        k.call(f"{self._prefix}_pair_pixels", paired)
        turned = [k.gep(problem["b"], k.mul(first, problem["b_step"])), problem["b_step"], rows]
        turned += [self._window_number(k, problem, "row_count3"), problem["pixels"], problem["n"]]
        turned += [self._strip_bytes_of_positions(k, problem), room.b]
        assert len(turned) == len(_TURN)
        k.call(f"{self._prefix}_turn_positions", turned)

    def _unit_in_planes(
        self,
        k: KernelBuilder,
        problem: RecordValue,
        geometry: Geometry,
        room: _Room,
        sums: Value,
        work: tuple[Value, Value],
    ) -> None:
        """What so many tiles along K say to all sums."""
        count, adds = work
        features, places = (self._window_number(k, problem, name) for name in ("step_count3", "step_count2"))
        pair_bytes, pitch = self._bytes_of_pairs(k, problem), problem["sums_row"]
        columns = round_up(k, problem["n"], self._shape.rows)
        with (
            k.loop(0, problem["n"], self._shape.rows) as strip,
            k.loop(0, geometry.planes) as plane,
            k.loop(0, geometry.place_rows) as place_row,
            k.loop(0, places) as place,
        ):
            number = k.udiv(strip.index, self._shape.rows)
            b = k.gep(room.b, k.mul(number, self._strip_bytes_of_positions(k, problem)))
            pixel = self._pixel_of_place(k, problem, geometry, plane.index, place_row.index, place.index)
            pairs = k.gep(room.pairs, k.mul(pixel, pair_bytes))
            number = k.add(k.mul(plane.index, geometry.place_rows), place_row.index)
            number = k.add(k.mul(number, places), place.index)
            c = k.gep(sums, k.mul(k.add(k.mul(number, columns), strip.index), pitch))
            with k.loop(0, features, FEATURES_OF_LINE) as feature:
                of_features = k.mul(feature.index, self._kind.planes * UNIT_ROW_BYTES // _LANES)
                here = [k.gep(pairs, of_features), pair_bytes, k.gep(c, feature.index, F32.bytes), pitch, adds]
                k.call(f"{self._prefix}_pairs", [count, b, k.const(I64, UNIT_ROW_BYTES), *here])

    def _turned_pieces(self) -> None:
        """A range of 16 rows of C each, of one place of the window: the sums of all pieces."""
        with self._function("add_turned_pieces", RANGE) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            pitch, features = problem["sums_row"], self._window_number(k, problem, "step_count3")
            columns = round_up(k, problem["n"], self._shape.rows)
            buffer_row = _LANES * F32.bytes
            buffer = k.alloca(I8, _LANES * buffer_row, align=CACHE_LINE)
            zero = k.const(I64, 0)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as item:
                row = k.mul(item.index, _LANES)
                place, feature = divided(k, row, features)
                first = k.gep(problem["sums"], k.mul(k.mul(place, columns), pitch))
                first = k.gep(first, feature, F32.bytes)
                with k.loop(0, problem["n"], _LANES) as column:
                    here = k.gep(first, k.mul(column.index, pitch))
                    sums = self._sums_of_pieces(k, problem, here)
                    for number, vector in enumerate(transposed(k, sums)):
                        k.store(k.gep(buffer, number * buffer_row), vector)
                    size = [k.const(I64, _LANES), column.index, k.smin(k.sub(problem["n"], column.index), _LANES)]
                    k.call(
                        f"{self._prefix}_finish",
                        [problem.place, buffer, k.const(I64, buffer_row), zero, row, *size],
                    )

    def _sums_of_pieces(self, k: KernelBuilder, problem: RecordValue, first: Value) -> list[Value]:
        """16 rows of sums from `first` on, of all pieces."""

        def rows(place: Value) -> list[Value]:
            return [k.load(k.gep(place, k.mul(problem["sums_row"], number)), _VECTOR) for number in range(_LANES)]

        with k.loop(1, problem["batches"], carry=rows(first)) as piece:
            more = rows(k.gep(first, k.mul(piece.index, problem["sums_batch"])))
            piece.next = [k.add(old, new) for old, new in zip(piece.values, more, strict=True)]
        return piece.results


class _PlainRegionEmitter(UnitRegionEmitter):
    """The same region as it is."""

    _whole_lines = True
