"""Convolutions of each channel by itself, where the positions of a row are neighbours: channels first.

    depthwise_planes_TYPE_HxS       windows of H rows, that move by S from row to row, and by one along a row

Lanes lie across the positions of a row. The results of a tile, a vector in each of several rows, are in registers while
the places in a row of the window run, and each vector of the array is read once for all rows of the window (it was read
for each: 4 images of 64 channels, 56 by 56, took half as long again). Lanes whose places are outside keep their sums; a
tile at the first row or the last looks which rows there are. A unit is one channel of an image.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.libraries.depthwise import TYPES, axes_of, numbers_of_kernel, steps_of
from xlapy.codegen.libraries.sliding_lines import (
    LEAST_SIZE,
    LINE_NUMBERS,
    LineFunction,
    SlidingCall,
    channel_numbers,
    line_numbers,
    module_of_lines,
)
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import ConvolutionDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction

NUMBERS = (
    *(*LINE_NUMBERS, "source_channel", "result_channel"),
    *("kernel_first", "kernel_row", "kernel_position", "kernel_channel"),
)
"""By name, in order: behind those of `sliding_lines`, bytes from channel to channel; and where in the kernel the first
place of the window is, and bytes from one row, place and channel to the next, which may lead backwards."""

SOURCE, KERNEL, RESULT = FIRST_ARRAY, FIRST_ARRAY + 1, FIRST_ARRAY + 2

HEIGHTS = (3, 5, 7)
STRIDES = (1, 2)
ROWS = {True: 14, False: 7}
"""Of a tile, by whether there are 32 registers (or 16): their sums, and the column of the window, are in registers."""

LEAST_UNITS = 16  # to share out, where there is enough to do

LEAST_SIZES = {3: LEAST_SIZE, 5: 1 << 9, 7: 1 << 9}
"""Results, by the rows of a window: with few of these, a kernel for a program's shapes is faster for fewer results
(Zen 3, one image of 64 by 64: 3 rows 1.1 of its time, 5 rows 0.8, 7 rows 0.7; of 16 by 16: 1.8, 1.06, 0.97)."""

LEAST_SHARE = 1.2
"""A vector may have so many times more lanes than a row has positions."""


def call_of_depthwise_planes(convolution: Instruction, target: Target) -> SlidingCall | None:
    """How a library computes a convolution, if that has one filter for each channel, and rows of neighbours."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, kernel, result = (value.shape for value in (*convolution.operands, convolution))
    axes = axes_of(convolution)
    if axes is None:
        return None
    channels = result.dims[numbers.output_feature]
    read = steps_of(source, numbers.input_batch, numbers.input_spatial)
    written = steps_of(result, numbers.output_batch, numbers.output_spatial)
    rows, positions = axes
    if not read.position == written.position == result.type.bytes:
        return None
    if positions.part.stride > 1 or positions.part.window_dilation > 1 or rows.part.window_dilation > 1:
        return None
    if rows.part.size not in HEIGHTS or rows.part.stride not in STRIDES:
        return None
    units = result.dims[numbers.output_batch] * channels
    products = result.size * rows.part.size * positions.part.size  # about one for the time of a byte
    if result.size < LEAST_SIZES[rows.part.size] or (units < LEAST_UNITS and products >= PARALLEL_BYTES):
        return None
    if LEAST_SHARE * positions.count < target.lanes(result.type.bits) or rows.count < _rows_of_tile(target):
        return None
    values = line_numbers(axes, channels, (SOURCE, read), (RESULT, written))
    values |= numbers_of_kernel(kernel, numbers, axes)
    values |= channel_numbers(
        source=(source, numbers.input_feature),
        result=(result, numbers.output_feature),
        kernel=(kernel, numbers.kernel_output_feature),
    )
    name = library_name(result.type, rows.part.size, rows.part.stride)
    call = LibraryCall(name, name, tuple(values[number] for number in NUMBERS))
    return SlidingCall(call, units, max(products, source.bytes + result.bytes) // units, 1)


def library_name(type: ElementType, height: int, stride: int) -> str:
    return f"depthwise_planes_{type.name}_{height}x{stride}"


def _rows_of_tile(target: Target) -> int:
    return ROWS[target.is_avx512 or not target.is_x86]


def emit_depthwise_planes(type: ElementType, height: int, stride: int, target: Target) -> Module:
    writer = partial(_Planes, type=type, height=height, stride=stride, target=target)
    return module_of_lines(target, {library_name(type, height, stride): writer})


def _library(type: ElementType, height: int, stride: int) -> Library:
    name = library_name(type, height, stride)
    return Library(name, (name,), partial(emit_depthwise_planes, type, height, stride))


DEPTHWISE_PLANES_LIBRARIES = {
    library.name: library for library in (_library(*kind) for kind in product(TYPES, HEIGHTS, STRIDES))
}
"""By name."""


class _Planes(LineFunction):
    """Writes one function."""

    def __init__(self, k: KernelBuilder, type: ElementType, height: int, stride: int, target: Target) -> None:
        super().__init__(k, NUMBERS)
        self._type = type
        self._height = height
        self._stride = stride
        self._rows = _rows_of_tile(target)
        self._vector = register_type(type).with_lanes(target.lanes(type.bits))
        self._kernel = k.load(k.gep(k.parameters["table"], KERNEL, PTR.bytes), PTR, hoistable=True)

    @property
    def _rows_of_array(self) -> int:
        """Those that the windows of a tile cover."""
        return (self._rows - 1) * self._stride + self._height

    def emit(self) -> None:
        k = self._k
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            image = k.udiv(units.index, self["channels"])
            channel = k.sub(units.index, k.mul(image, self["channels"]))
            source, result = (
                k.gep(
                    k.gep(self._array(name), k.mul(image, self[f"{name}_image"])),
                    k.mul(channel, self[f"{name}_channel"]),
                )
                for name in ("source", "result")
            )
            kernel = k.gep(k.gep(self._kernel, self["kernel_first"]), k.mul(channel, self["kernel_channel"]))
            self._plane(source, kernel, result)

    def _plane(self, source: Value, kernel: Value, result: Value) -> None:
        """Tiles, the last of which may overlap."""
        k, lanes = self._k, self._vector.lanes
        rows, positions = self["row_count"], self["position_count"]
        with k.loop(0, rows, self._rows) as row_loop, k.loop(0, positions, lanes) as loop:
            row = k.smin(row_loop.index, k.sub(rows, self._rows))
            position = k.smax(k.smin(loop.index, k.sub(positions, lanes)), 0)
            line = k.sub(k.mul(row, self._stride), self["row_low"])
            start = k.sub(position, self["position_low"])
            end = k.add(start, k.add(self["position_window"], lanes - 1))
            has_rows = self._is_inside(line, k.add(line, self._rows_of_array), "row")
            has_lanes = k.compare("ge", positions, lanes)
            has_positions = k.and_(has_lanes, self._is_inside(start, end, "position"))
            corner = k.gep(k.gep(source, k.mul(line, self["row_source"])), k.mul(start, self._type.bytes))
            goal = k.gep(k.gep(result, k.mul(row, self["row_result"])), k.mul(position, self._type.bytes))
            write = partial(self._tile, corner, kernel, goal)

            def choose(line: Value | None, start: Value, has_positions: Value, write: partial[None]) -> None:
                k.if_else(has_positions, partial(write, line, None), partial(write, line, start))

            k.if_else(
                has_rows,
                partial(choose, None, start, has_positions, write),
                partial(choose, line, start, has_positions, write),
            )

    def _tile(self, source: Value, kernel: Value, result: Value, line: Value | None, start: Value | None) -> None:
        """A tile, place by place of a row of the window. If not all of its rows are inside, it is told where the first
        one is, and likewise of the positions of its lanes."""
        k, lanes = self._k, self._vector.lanes
        nothing = [k.const(self._vector, 0)] * self._rows
        with k.loop(0, self["position_window"], carry=nothing) as place:
            first = k.gep(kernel, k.mul(place.index, self["kernel_position"]))
            column = self._in_a_row(first, self["kernel_row"], self._height)
            weights = [k.splat(k.load(weight, self._vector.element), lanes) for weight in column]
            mask = None if start is None else self._lanes_below(k.add(start, place.index), self["position_size"])
            top = k.gep(source, k.mul(place.index, self._type.bytes))
            place.next = self._column(top, weights, place.values, line, mask)
        stored = None if start is None else self._lanes_below(k.const(I64, 0), self["position_count"])
        for goal, total in zip(self._in_a_row(result, self["row_result"], self._rows), place.results, strict=True):
            if stored is None:
                k.store(goal, total)
            else:
                k.masked_store(goal, total, stored)

    def _lanes_below(self, position: Value, end: Value) -> Value:
        """The lanes from 0 to an end, if the first one is at a position."""
        k, lanes = self._k, self._vector.lanes
        numbers = k.add(k.lane_numbers(I32.with_lanes(lanes)), k.splat(k.trunc(position, I32), lanes))
        return k.compare("lt", numbers, k.splat(k.trunc(end, I32), lanes), signed=False)

    def _column(
        self, top: Value, weights: Sequence[Value], sums: Sequence[Value], line: Value | None, mask: Value | None
    ) -> list[Value]:
        """Adds what one column of the window says to the sums of a tile, row by row of the array."""
        totals = list(sums)
        for number, row in enumerate(self._in_a_row(top, self["row_source"], self._rows_of_array)):
            add = partial(self._added, number, row, weights, totals, mask)
            totals = self._if_inside("row", line, number, add, totals)
        return totals

    def _added(
        self, number: int, row: Value, weights: Sequence[Value], sums: Sequence[Value], mask: Value | None
    ) -> list[Value]:
        """The sums with what one row of the array adds to them."""
        k, totals = self._k, list(sums)
        pixels = k.load(row, self._vector) if mask is None else k.masked_load(row, self._vector, mask)
        for cell in range(self._rows):
            window_row = number - cell * self._stride
            if 0 <= window_row < self._height:
                total = k.muladd(pixels, weights[window_row], totals[cell])
                totals[cell] = total if mask is None else k.select(mask, total, totals[cell])
        return totals
