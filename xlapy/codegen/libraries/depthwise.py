"""Convolutions of each channel by itself, with channels side by side in lanes.

    depthwise_TYPE_WxS.L            windows of W places in a row, that move by S; tiles of L lines of the result

The results of a tile are in registers while the rows of the window run. How a window moves along a row is known, so
each vector of the array is read once for all positions of the tile that have a place on it, and each vector of the
kernel once for all positions. Two lines of the result share most of the rows that they see: even what the first cache
holds takes longer to read than to multiply, if an array begins in the middle of a cache line, as numpy's do (28 by 28
by 64 channels: 127 GFLOP/s with one line, 149 with two). A tile at an edge looks which of its vectors there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from xlapy.codegen.ir import PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.libraries.sliding_lines import (
    LEAST_SIZE,
    LINE_NUMBERS,
    LineWriter,
    Range,
    SlidingCall,
    SlidingLines,
    Steps,
    line_numbers,
    module_of_lines,
    sliding_call,
)
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import ConvolutionDimensionNumbers, WindowDimension
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape

NUMBERS = (*LINE_NUMBERS, "kernel_first", "kernel_row", "kernel_position", "is_far")
"""By name, in order: behind those of `sliding_lines`, where in the kernel the first place of the window is, and bytes
from one row and place to the next, which may lead backwards; and whether other work leaves no room for the arrays in
the last cache, so that rows are fetched early."""

SOURCE, KERNEL, RESULT = FIRST_ARRAY, FIRST_ARRAY + 1, FIRST_ARRAY + 2

TYPES = (et.F32, et.F64)
WIDTHS = (3, 5, 7)
STRIDES = (1, 2)
LINES = (2, 1)
POSITIONS = {True: {1: 12, 2: 7}, False: {1: 6, 2: 4}}
"""Of a tile of so many lines, by whether there are 32 registers (or 16): their sums hide the latency of products."""


def call_of_depthwise(convolution: Instruction, target: Target) -> SlidingCall | None:
    """How a library computes a convolution, if that has one filter for each channel."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, kernel, result = (value.shape for value in (*convolution.operands, convolution))
    axes = axes_of(convolution)
    if axes is None:
        return None
    channels = result.dims[numbers.output_feature]
    features = (numbers.input_feature, numbers.kernel_output_feature, numbers.output_feature)
    side_by_side = all(s.strides()[dim] == 1 for s, dim in zip((source, kernel, result), features, strict=True))
    rows, positions = axes
    part = positions.part
    if not side_by_side or channels < target.lanes(result.type.bits):
        return None
    if part.size not in WIDTHS or part.stride not in STRIDES or part.window_dilation > 1:
        return None
    lines = _lines_of_tile(rows)
    if result.size < LEAST_SIZE or positions.count < _positions_of_tile(lines, target):
        return None
    values = line_numbers(
        axes,
        channels,
        (SOURCE, steps_of(source, numbers.input_batch, numbers.input_spatial)),
        (RESULT, steps_of(result, numbers.output_batch, numbers.output_spatial)),
    )
    values |= numbers_of_kernel(kernel, numbers, axes)
    values["is_far"] = int(source.bytes + result.bytes > target.l3_bytes // 2)
    name = library_name(result.type, part.size, part.stride)
    call = LibraryCall(name, f"{name}.{lines}", tuple(values[number] for number in NUMBERS))
    units = result.dims[numbers.output_batch] * -(-rows.count // lines)
    products = result.size * rows.part.size * part.size  # about one for the time of a byte
    return sliding_call(call, rows, units, max(products, source.bytes + result.bytes) // units)


NO_ROWS = WindowAxis(WindowDimension(1), 1, 1)


def axes_of(convolution: Instruction) -> tuple[WindowAxis, WindowAxis] | None:
    """Rows and positions of a convolution over one dimension or two, without holes in the array, if that has one filter
    for each channel, of elements that the libraries multiply."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, kernel, result = (value.shape for value in (*convolution.operands, convolution))
    if result.type not in TYPES or not source.type is kernel.type is result.type:
        return None
    channels, groups = result.dims[numbers.output_feature], convolution.attributes["feature_group_count"]
    if groups != channels or source.dims[numbers.input_feature] != channels:
        return None
    sizes = ([shape.dims[dim] for dim in dims] for shape, dims in _spatial(source, result, numbers))
    axes = [WindowAxis(*each) for each in zip(convolution.attributes["window"].dimensions, *sizes, strict=True)]
    is_suited = 1 <= len(axes) <= 2 and math.prod(result.dims) > 0 and convolution.attributes["batch_group_count"] == 1
    if not is_suited or any(axis.part.base_dilation > 1 for axis in axes):
        return None
    return (NO_ROWS, axes[0]) if len(axes) == 1 else (axes[0], axes[1])


def _spatial(
    source: Shape, result: Shape, numbers: ConvolutionDimensionNumbers
) -> tuple[tuple[Shape, tuple[int, ...]], tuple[Shape, tuple[int, ...]]]:
    return (source, numbers.input_spatial), (result, numbers.output_spatial)


def steps_of(shape: Shape, batch: int, spatial: Sequence[int]) -> Steps:
    strides = [stride * shape.type.bytes for stride in shape.strides()]
    return Steps(strides[batch], strides[spatial[0]] if len(spatial) > 1 else 0, strides[spatial[-1]])


def numbers_of_kernel(
    kernel: Shape, numbers: ConvolutionDimensionNumbers, axes: tuple[WindowAxis, WindowAxis]
) -> dict[str, int]:
    """Where the places of the window are in the kernel, which may be reversed."""
    steps = steps_of(kernel, numbers.kernel_input_feature, numbers.kernel_spatial)
    first, moves = 0, []
    for axis, step in zip(axes, (steps.row, steps.position), strict=True):
        first += (axis.part.size - 1) * step if axis.part.reversal else 0
        moves.append(-step if axis.part.reversal else step)
    return dict(zip(("kernel_first", "kernel_row", "kernel_position"), (first, *moves), strict=True))


def library_name(type: ElementType, width: int, stride: int) -> str:
    return f"depthwise_{type.name}_{width}x{stride}"


def _lines_of_tile(rows: WindowAxis) -> int:
    """How many lines of the result are made at once: several if each row of the array has a place in the windows of all
    of them."""
    return next(count for count in LINES if count == 1 or (rows.count >= count and rows.part.window_dilation == 1))


def _positions_of_tile(lines: int, target: Target) -> int:
    return POSITIONS[target.is_avx512 or not target.is_x86][lines]


def emit_depthwise(type: ElementType, width: int, stride: int, target: Target) -> Module:
    def writer(lines: int) -> LineWriter:
        return lambda k: _Rows(k, type, width, stride, lines, target)

    name = library_name(type, width, stride)
    return module_of_lines(target, {f"{name}.{count}": writer(count) for count in LINES})


def _library(type: ElementType, width: int, stride: int) -> Library:
    name = library_name(type, width, stride)
    functions = tuple(f"{name}.{lines}" for lines in LINES)
    return Library(name, functions, partial(emit_depthwise, type, width, stride), most_parts=2)


DEPTHWISE_LIBRARIES = {
    library.name: library for library in (_library(*kind) for kind in product(TYPES, WIDTHS, STRIDES))
}
"""By name."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """Where a vector of channels of a tile begins, in the array and in the kernel; and its first place in a row of the
    array, unless all are inside."""

    source: Value
    kernel: Value
    begin: Value | None


@dataclass(frozen=True, slots=True)
class _Phase:
    """Rows of the array, as places in the window of the first line of a group, and the lines that see them."""

    rows: Range
    lines: tuple[int, ...]


class _Rows(SlidingLines):
    """Writes one function. A unit is a group of lines of the result, the last of an image perhaps overlapping."""

    def __init__(
        self, k: KernelBuilder, type: ElementType, width: int, stride: int, lines: int, target: Target
    ) -> None:
        super().__init__(k, NUMBERS, lines)
        self._type = type
        self._width = width
        self._stride = stride
        self._lines = lines
        self._vector = register_type(type).with_lanes(target.lanes(type.bits))
        self._tile = _positions_of_tile(lines, target)
        self._kernel = k.load(k.gep(k.parameters["table"], KERNEL, PTR.bytes), PTR, hoistable=True)

    @property
    def _places_of_tile(self) -> int:
        """Places in a row that the windows of a tile cover."""
        return (self._tile - 1) * self._stride + self._width

    def _line(self, source: Value, result: Value, rows: Sequence[Range]) -> None:
        """Tiles, the last of which may overlap."""
        k = self._k
        count = self["position_count"]
        with k.loop(0, count, self._tile) as loop:
            position = k.smin(loop.index, k.sub(count, self._tile))
            begin, _ = self._places("position", position)
            end = k.add(begin, self._places_of_tile)
            is_inside = self._is_inside(begin, end, "position")
            write = partial(self._channels, *self._at(source, result, position), rows)
            k.if_else(is_inside, partial(write, None), partial(write, begin))

    def _channels(self, source: Value, result: Value, rows: Sequence[Range], begin: Value | None) -> None:
        """All channels of a tile; the last vector may overlap the one before it. If not all of its places are inside,
        it is told where the first one is."""
        k, lanes = self._k, self._vector.lanes
        kernel = k.gep(self._kernel, self["kernel_first"])
        with k.loop(0, self["channels"], lanes, runs=True) as loop:
            channel = k.mul(k.smin(loop.index, k.sub(self["channels"], lanes)), self._type.bytes)
            tile = _Tile(k.gep(source, channel), k.gep(kernel, channel), begin)
            with k.if_(k.compare("ne", self["is_far"], 0)):
                self._fetch(tile.source)
            sums = [[k.const(self._vector, 0)] * self._tile for _ in range(self._lines)]
            for phase in self._phases(rows):
                sums = self._over_rows(tile, phase, sums)
            for line, totals in enumerate(sums):
                self._store(k.gep(k.gep(result, channel), k.mul(self["row_result"], line)), totals)

    def _fetch(self, source: Value) -> None:
        """The rows that only the next group sees, as far as they lie below this tile: a tile reads a cache line of each
        pixel at a time, which no processor foresees (16 images of 56 by 56 by 64: 619 us instead of 1.3 to 1.8 ms)."""
        k = self._k
        moved = k.mul(self["row_stride"], self._lines)
        first = k.add(self["row_window"], k.sub(moved, self["row_stride"]))
        with k.loop(first, k.add(first, moved)) as row:
            line = k.gep(source, k.mul(row.index, self["row_source"]))
            for place in self._in_a_row(line, self["position_source"], self._tile * self._stride):
                k.prefetch(place, self._vector.lanes * self._type.bytes, level=2)

    def _phases(self, rows: Sequence[Range]) -> list[_Phase]:
        """Which rows of the array are seen by which lines, in their order, given the rows of the window of each line
        that are inside: those of the second one begin and end later."""
        k = self._k
        if len(rows) == 1:
            return [_Phase(rows[0], (0,))]
        (first, end), second = rows
        second_first, second_end = (k.add(place, self["row_stride"]) for place in second)
        return [
            _Phase((first, k.smin(end, second_first)), (0,)),
            _Phase((second_first, end), (0, 1)),
            _Phase((k.smax(end, second_first), second_end), (1,)),
        ]

    def _over_rows(self, tile: _Tile, phase: _Phase, sums: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """The sums of all lines with what some rows add to those of the lines that see them."""
        k = self._k
        row_step = k.mul(self["row_dilation"], self["row_source"])
        carried = [total for line in phase.lines for total in sums[line]]
        with k.loop(*phase.rows, carry=carried) as row:
            pixels = k.gep(tile.source, k.mul(row.index, row_step))
            places = [k.sub(row.index, k.mul(self["row_stride"], line)) for line in phase.lines]
            weights = [k.gep(tile.kernel, k.mul(place, self["kernel_row"])) for place in places]
            row.next = self._row(pixels, weights, row.values, tile.begin)
        results = [list(totals) for totals in sums]
        for number, line in enumerate(phase.lines):
            results[line] = row.results[number * self._tile : (number + 1) * self._tile]
        return results

    def _row(self, line: Value, weights: Sequence[Value], sums: Sequence[Value], begin: Value | None) -> list[Value]:
        """Adds what one row of the array says to the results of the lines that have these weights for it, one of its
        places after the other."""
        k, totals = self._k, list(sums)
        kernels = [
            [k.load(place, self._vector) for place in self._in_a_row(first, self["kernel_position"], self._width)]
            for first in weights
        ]
        for number, place in enumerate(self._in_a_row(line, self["position_source"], self._places_of_tile)):
            add = partial(self._added, number, place, kernels, totals)
            totals = self._if_inside("position", begin, number, add, totals)
        return totals

    def _added(
        self, number: int, place: Value, kernels: Sequence[Sequence[Value]], totals: Sequence[Value]
    ) -> list[Value]:
        """The results of lines with what one place of the array adds to them."""
        k = self._k
        pixel = k.load(place, self._vector)
        new = list(totals)
        for position in range(self._tile):
            window_place = number - position * self._stride
            if 0 <= window_place < self._width:
                for line, kernel in enumerate(kernels):
                    cell = line * self._tile + position
                    new[cell] = k.muladd(pixel, kernel[window_place], new[cell])
        return new

    def _store(self, first: Value, results: Sequence[Value]) -> None:
        for place, result in zip(self._in_a_row(first, self["position_result"], self._tile), results, strict=True):
            self._k.store(place, result)
