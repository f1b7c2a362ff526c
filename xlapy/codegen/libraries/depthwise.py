"""Convolutions of each channel by itself, with channels side by side in lanes.

    depthwise_TYPE_WxS.V            windows of W places in a row, that move by S; V vectors of channels side by side

The results of a tile are in registers while the rows of the window run. How a window moves along a row is known, so
each vector of the array is read once for all positions of the tile that have a place on it, and each vector of the
kernel once for all positions. A tile at an edge looks which of its vectors there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product

from xlapy.codegen.ir import PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.libraries.sliding_lines import (
    FIRST_ARRAY,
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

NUMBERS = (*LINE_NUMBERS, "kernel_first", "kernel_row", "kernel_position")
"""By name, in order: behind those of `sliding_lines`, where in the kernel the first place of the window is, and bytes
from one row and place to the next, which may lead backwards."""

SOURCE, KERNEL, RESULT = FIRST_ARRAY, FIRST_ARRAY + 1, FIRST_ARRAY + 2

TYPES = (et.F32, et.F64)
WIDTHS = (3, 5, 7)
STRIDES = (1, 2)
VECTORS = (2, 1)
RESULTS = {True: 12, False: 6}
"""Vectors of a tile, by whether there are 32 registers (or 16): they hide the latency of products."""


def call_of_depthwise(convolution: Instruction, target: Target) -> SlidingCall | None:
    """How a library computes a convolution, if that has one filter for each channel."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, kernel, result = (value.shape for value in (*convolution.operands, convolution))
    axes = _axes(convolution)
    channels = result.dims[numbers.output_feature]
    if axes is None or result.type not in TYPES or not source.type is kernel.type is result.type:
        return None
    if convolution.attributes["feature_group_count"] != channels or source.dims[numbers.input_feature] != channels:
        return None
    features = (numbers.input_feature, numbers.kernel_output_feature, numbers.output_feature)
    side_by_side = all(s.strides()[dim] == 1 for s, dim in zip((source, kernel, result), features, strict=True))
    rows, positions = axes
    part, lanes = positions.part, target.lanes(result.type.bits)
    vectors = next((count for count in VECTORS if channels >= count * lanes), None)
    if not side_by_side or vectors is None or part.size not in WIDTHS or part.stride not in STRIDES:
        return None
    values = line_numbers(
        axes,
        channels,
        (SOURCE, _steps(source, numbers.input_batch, numbers.input_spatial)),
        (RESULT, _steps(result, numbers.output_batch, numbers.output_spatial)),
    )
    if result.size < LEAST_SIZE or positions.count < _tile(vectors, target) or part.window_dilation > 1:
        return None
    values |= _kernel_numbers(kernel, numbers, axes)
    name = library_name(result.type, part.size, part.stride)
    call = LibraryCall(name, f"{name}.{vectors}", tuple(values[number] for number in NUMBERS))
    units = result.dims[numbers.output_batch] * rows.count
    products = result.size * rows.part.size * part.size  # about one for the time of a byte
    return sliding_call(call, rows, units, max(products, source.bytes + result.bytes) // units)


_NO_ROWS = WindowAxis(WindowDimension(1), 1, 1)


def _axes(convolution: Instruction) -> tuple[WindowAxis, WindowAxis] | None:
    """Rows and positions of a convolution over one dimension or two, without holes in the array."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, result = convolution.operands[0].shape, convolution.shape
    sizes = ([shape.dims[dim] for dim in dims] for shape, dims in _spatial(source, result, numbers))
    axes = [WindowAxis(*each) for each in zip(convolution.attributes["window"].dimensions, *sizes, strict=True)]
    is_suited = 1 <= len(axes) <= 2 and math.prod(result.dims) > 0 and convolution.attributes["batch_group_count"] == 1
    if not is_suited or any(axis.part.base_dilation > 1 for axis in axes):
        return None
    return (_NO_ROWS, axes[0]) if len(axes) == 1 else (axes[0], axes[1])


def _spatial(
    source: Shape, result: Shape, numbers: ConvolutionDimensionNumbers
) -> tuple[tuple[Shape, tuple[int, ...]], tuple[Shape, tuple[int, ...]]]:
    return (source, numbers.input_spatial), (result, numbers.output_spatial)


def _steps(shape: Shape, batch: int, spatial: Sequence[int]) -> Steps:
    strides = [stride * shape.type.bytes for stride in shape.strides()]
    return Steps(strides[batch], strides[spatial[0]] if len(spatial) > 1 else 0, strides[spatial[-1]])


def _kernel_numbers(
    kernel: Shape, numbers: ConvolutionDimensionNumbers, axes: tuple[WindowAxis, WindowAxis]
) -> dict[str, int]:
    """Where the places of the window are in the kernel, which may be reversed."""
    steps = _steps(kernel, numbers.kernel_input_feature, numbers.kernel_spatial)
    first, moves = 0, []
    for axis, step in zip(axes, (steps.row, steps.position), strict=True):
        first += (axis.part.size - 1) * step if axis.part.reversal else 0
        moves.append(-step if axis.part.reversal else step)
    return dict(zip(("kernel_first", "kernel_row", "kernel_position"), (first, *moves), strict=True))


def library_name(type: ElementType, width: int, stride: int) -> str:
    return f"depthwise_{type.name}_{width}x{stride}"


def _tile(vectors: int, target: Target) -> int:
    return RESULTS[target.is_avx512 or not target.is_x86] // vectors


def emit_depthwise(type: ElementType, width: int, stride: int, target: Target) -> Module:
    def writer(vectors: int) -> LineWriter:
        return lambda k: _Rows(k, type, width, stride, vectors, target)

    name = library_name(type, width, stride)
    return module_of_lines(target, {f"{name}.{count}": writer(count) for count in VECTORS})


def _library(type: ElementType, width: int, stride: int) -> Library:
    name = library_name(type, width, stride)
    functions = tuple(f"{name}.{vectors}" for vectors in VECTORS)
    return Library(name, functions, partial(emit_depthwise, type, width, stride), most_parts=2)


DEPTHWISE_LIBRARIES = {
    library.name: library for library in (_library(*kind) for kind in product(TYPES, WIDTHS, STRIDES))
}
"""By name."""


class _Rows(SlidingLines):
    """Writes one function."""

    def __init__(
        self, k: KernelBuilder, type: ElementType, width: int, stride: int, vectors: int, target: Target
    ) -> None:
        super().__init__(k, NUMBERS)
        self._type = type
        self._width = width
        self._stride = stride
        self._vectors = vectors
        self._vector = register_type(type).with_lanes(target.lanes(type.bits))
        self._tile = _tile(vectors, target)
        self._kernel = k.load(k.gep(k.parameters["table"], KERNEL, PTR.bytes), PTR, hoistable=True)

    @property
    def _places_of_tile(self) -> int:
        """Places in a row that the windows of a tile cover."""
        return (self._tile - 1) * self._stride + self._width

    def _line(self, source: Value, result: Value, rows: Range) -> None:
        """Tiles, the last of which may overlap."""
        k = self._k
        count = self["position_count"]
        with k.loop(0, count, self._tile) as loop:
            position = k.smin(loop.index, k.sub(count, self._tile))
            begin, _ = self._places("position", position)
            end = k.add(begin, self._places_of_tile)
            is_inside = k.and_(k.compare("ge", begin, 0), k.compare("le", end, self["position_size"]))
            write = partial(self._channels, *self._at(source, result, position), rows)
            k.if_else(is_inside, partial(write, None), partial(write, begin))

    def _channels(self, source: Value, result: Value, rows: Range, begin: Value | None) -> None:
        """All channels of a tile; the last vectors may overlap those before them. If not all of its places are inside,
        it is told where the first one is."""
        k = self._k
        count = self._vectors * self._vector.lanes
        kernel = k.gep(self._kernel, self["kernel_first"])
        row_step = k.mul(self["row_dilation"], self["row_source"])
        with k.loop(0, self["channels"], count, runs=True) as loop:
            channel = k.mul(k.smin(loop.index, k.sub(self["channels"], count)), self._type.bytes)
            nothing = [k.const(self._vector, 0)] * (self._vectors * self._tile)
            with k.loop(*rows, carry=nothing) as row:
                line = k.gep(k.gep(source, channel), k.mul(row.index, row_step))
                weights = k.gep(k.gep(kernel, channel), k.mul(row.index, self["kernel_row"]))
                row.next = self._row(line, weights, row.values, begin)
            self._store(k.gep(result, channel), row.results)

    def _row(self, line: Value, weights: Value, sums: Sequence[Value], begin: Value | None) -> list[Value]:
        """Adds what one row of the window says to the results of a tile, one place of the array after the other."""
        k, totals = self._k, list(sums)
        kernel = [self._vectors_at(place) for place in self._in_a_row(weights, self["kernel_position"], self._width)]
        for number, place in enumerate(self._in_a_row(line, self["position_source"], self._places_of_tile)):
            add = partial(self._added, number, place, kernel, totals)
            if begin is None:
                totals = add()
            else:
                inside = k.compare("lt", k.add(begin, number), self["position_size"], signed=False)
                totals = k.if_else(inside, add, partial(list, totals))
        return totals

    def _added(
        self, number: int, place: Value, kernel: Sequence[Sequence[Value]], totals: Sequence[Value]
    ) -> list[Value]:
        """The results of a tile with what one place of the array adds to them."""
        k, vectors = self._k, self._vectors
        pixel = self._vectors_at(place)
        new = list(totals)
        for position in range(self._tile):
            window_place = number - position * self._stride
            if 0 <= window_place < self._width:
                cells = range(position * vectors, (position + 1) * vectors)
                for cell, element, factor in zip(cells, pixel, kernel[window_place], strict=True):
                    new[cell] = k.muladd(element, factor, new[cell])
        return new

    def _in_a_row(self, first: Value, step: Value, count: int) -> list[Value]:
        """So many addresses, a step apart."""
        places = [first]
        for _ in range(1, count):
            places.append(self._k.gep(places[-1], step))
        return places

    def _vectors_at(self, place: Value) -> list[Value]:
        """Those side by side."""
        k = self._k
        return [k.load(k.gep(place, offset), self._vector) for offset in self._offsets]

    @property
    def _offsets(self) -> list[int]:
        return [vector * self._vector.lanes * self._type.bytes for vector in range(self._vectors)]

    def _store(self, first: Value, results: Sequence[Value]) -> None:
        k, cells = self._k, iter(results)
        for place in self._in_a_row(first, self["position_result"], self._tile):
            for offset in self._offsets:
                k.store(k.gep(place, offset), next(cells))
