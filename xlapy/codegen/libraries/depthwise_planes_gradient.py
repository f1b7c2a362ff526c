"""Gradients of the kernels of depthwise convolutions, where the positions of a row are neighbours: channels first.

    depthwise_planes_gradient_TYPE_NxS      kernels of N by N places, that moved by S from row to row

Words are those of `depthwise_gradient`. Lanes lie across the positions of a row of slopes, and each has sums of its own
for some columns of the kernel, which are in registers while the planes of all images run:

    for each channel, for some columns of the kernel, for each image, for a tile of rows, for a vector of positions:
        for each place in these columns, for each row: sums[place] += slopes[row] * array[row + place]

Lanes whose places are outside, or that are behind the end of a row, keep their sums. A unit is a channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

from xlapy.codegen.ir import I32, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.libraries.depthwise import TYPES, steps_of
from xlapy.codegen.libraries.depthwise_gradient import axes_of_gradient
from xlapy.codegen.libraries.sliding_lines import (
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
from xlapy.hlo.kernel_plan import PLANE_KERNELS, PLANE_STRIDES, is_gradient_of_planes

NUMBERS = (
    *(*LINE_NUMBERS, "source_channel", "result_channel", "images"),
    *("kernel_row", "kernel_position", "kernel_channel"),
)
"""By name, in order: behind those of `sliding_lines`, of which the result is the array of slopes, bytes from channel to
channel, images, and bytes of the kernel from one row, place and channel to the next."""

SOURCE, SLOPES, KERNEL = FIRST_ARRAY, FIRST_ARRAY + 1, FIRST_ARRAY + 2

COLUMNS = {3: 3, 5: 1, 7: 1}
"""Of a kernel, of which all places have sums in registers at a time."""

ROWS, FEW_ROWS = {3: 4, 5: 7, 7: 7}, 4
"""Of a tile, where there are 32 registers, by the size of the kernel, and where there are 16. Their slopes are in
registers, and so is all that they see of the array, for LLVM puts the products of each sum together: with 7 rows for
three columns there were too few (72 us with 4, 100 with 7, for 4 images of 64 channels, 56 by 56)."""


def call_of_depthwise_planes_gradient(convolution: Instruction, target: Target) -> SlidingCall | None:
    """How a library computes a convolution, if that is such a gradient."""
    axes = axes_of_gradient(convolution)
    if axes is None or not is_gradient_of_planes(convolution):
        return None
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, slopes, kernel = (value.shape for value in (*convolution.operands, convolution))
    rows, positions = axes
    channels = kernel.dims[numbers.output_feature]
    read = steps_of(source, numbers.input_feature, numbers.input_spatial)
    slope = steps_of(slopes, numbers.kernel_input_feature, numbers.kernel_spatial)
    written = steps_of(kernel, numbers.output_batch, numbers.output_spatial)
    values = line_numbers(axes, channels, (SOURCE, read), (SLOPES, slope))
    values |= {"images": slopes.dims[numbers.kernel_input_feature]}
    values |= {"kernel_row": written.row, "kernel_position": written.position}
    values |= channel_numbers(
        source=(source, numbers.input_batch),
        result=(slopes, numbers.kernel_output_feature),
        kernel=(kernel, numbers.output_feature),
    )
    name = library_name(kernel.type, rows.part.size, rows.part.stride)
    products = slopes.size * rows.part.size * positions.part.size  # about one for the time of a byte
    call = LibraryCall(name, name, tuple(values[number] for number in NUMBERS))
    return SlidingCall(call, channels, max(products, source.bytes + slopes.bytes) // channels, 1)


def library_name(type: ElementType, size: int, stride: int) -> str:
    return f"depthwise_planes_gradient_{type.name}_{size}x{stride}"


def emit_depthwise_planes_gradient(type: ElementType, size: int, stride: int, target: Target) -> Module:
    writer = partial(_Planes, type=type, size=size, stride=stride, target=target)
    return module_of_lines(target, {library_name(type, size, stride): writer})


def _library(type: ElementType, size: int, stride: int) -> Library:
    name = library_name(type, size, stride)
    return Library(name, (name,), partial(emit_depthwise_planes_gradient, type, size, stride))


DEPTHWISE_PLANES_GRADIENT_LIBRARIES = {
    library.name: library for library in (_library(*kind) for kind in product(TYPES, PLANE_KERNELS, PLANE_STRIDES))
}
"""By name."""


class _Planes(LineFunction):
    """Writes one function."""

    def __init__(self, k: KernelBuilder, type: ElementType, size: int, stride: int, target: Target) -> None:
        super().__init__(k, NUMBERS)
        self._type = type
        self._size = size
        self._stride = stride
        self._columns = COLUMNS[size]
        self._rows = ROWS[size] if target.is_avx512 or not target.is_x86 else FEW_ROWS
        self._vector = register_type(type).with_lanes(target.lanes(type.bits))
        self._kernel = k.load(k.gep(k.parameters["table"], KERNEL, PTR.bytes), PTR, hoistable=True)

    def emit(self) -> None:
        """Channel by channel, some columns of the kernel after the other."""
        k = self._k
        with (
            k.loop(k.parameters["begin"], k.parameters["end"]) as channel,
            k.loop(0, self._size, self._columns) as columns,
        ):
            source, slopes = (
                k.gep(self._array(name), k.mul(channel.index, self[f"{name}_channel"])) for name in ("source", "result")
            )
            sums = iter(self._over_images(source, slopes, columns.index))
            kernel = k.gep(self._kernel, k.mul(channel.index, self["kernel_channel"]))
            goal = k.gep(kernel, k.mul(columns.index, self["kernel_position"]))
            for line in self._in_a_row(goal, self["kernel_row"], self._size):
                for place in self._in_a_row(line, self["kernel_position"], self._columns):
                    k.store(place, self._across_lanes(next(sums)))

    def _over_images(self, source: Value, slopes: Value, column: Value) -> list[Value]:
        """The sums of lanes, row by row of the kernel."""
        k = self._k
        nothing = [k.const(self._vector, 0)] * (self._size * self._columns)
        with k.loop(0, self["images"], carry=nothing) as image:
            plane = k.gep(source, k.mul(image.index, self["source_image"]))
            of_slopes = k.gep(slopes, k.mul(image.index, self["result_image"]))
            image.next = self._plane(plane, of_slopes, column, image.values)
        return image.results

    def _across_lanes(self, sums: Value) -> Value:
        """The sum of all lanes, by halves."""
        k, lanes = self._k, self._vector.lanes
        while lanes > 1:
            lanes //= 2
            sums = k.add(k.shuffle(sums, None, range(lanes)), k.shuffle(sums, None, range(lanes, 2 * lanes)))
        return sums

    def _plane(self, source: Value, slopes: Value, column: Value, sums: Sequence[Value]) -> list[Value]:
        """The sums with what one image adds to them: whole tiles of rows, and the rows behind them."""
        k, rows = self._k, self["row_count"]
        tiled = k.mul(k.udiv(rows, self._rows), self._rows)
        add = partial(self._rows_of_slopes, source, slopes, column)
        with k.loop(0, tiled, self._rows, carry=sums) as tile:
            tile.next = add(tile.index, self._rows, tile.values)
        with k.loop(tiled, rows, carry=tile.results) as single:
            single.next = add(single.index, 1, single.values)
        return single.results

    def _rows_of_slopes(
        self, source: Value, slopes: Value, column: Value, row: Value, count: int, sums: Sequence[Value]
    ) -> list[Value]:
        """The sums with what some rows of slopes add to them, vector by vector of positions."""
        k, lanes, width = self._k, self._vector.lanes, self._type.bytes
        line = k.sub(k.mul(row, self._stride), self["row_low"])
        has_rows = self._is_inside(line, k.add(line, (count - 1) * self._stride + self._size), "row")
        top, first = k.gep(source, k.mul(line, self["row_source"])), k.gep(slopes, k.mul(row, self["row_result"]))
        with k.loop(0, self["position_count"], lanes, carry=sums) as loop:
            start = k.add(k.sub(loop.index, self["position_low"]), column)
            is_whole = k.compare("le", k.add(loop.index, lanes), self["position_count"])
            has_positions = self._is_inside(start, k.add(start, lanes + self._columns - 1), "position")
            places = k.gep(top, k.mul(start, width)), k.gep(first, k.mul(loop.index, width))
            add = partial(self._vector_of_positions, *places, count, loop.values)
            masks = partial(self._masks, loop.index, start)

            def choose(line: Value | None, add: partial[list[Value]], masks: partial[list[Value]]) -> list[Value]:
                return k.if_else(
                    k.and_(is_whole, has_positions),
                    lambda: add(line, None),
                    lambda: add(line, masks()),
                )

            loop.next = k.if_else(has_rows, partial(choose, None, add, masks), partial(choose, line, add, masks))
        return loop.results

    def _masks(self, position: Value, start: Value) -> list[Value]:
        """The lanes that have a slope, and then those that have an element as well, for each of the columns."""
        k, lanes = self._k, self._vector.lanes

        def below(first: Value, size: str) -> Value:
            numbers = k.add(k.lane_numbers(I32.with_lanes(lanes)), k.splat(k.trunc(first, I32), lanes))
            return k.compare("lt", numbers, k.splat(k.trunc(self[size], I32), lanes), signed=False)

        slopes = below(position, "position_count")
        elements = [below(k.add(start, column), "position_size") for column in range(self._columns)]
        return [slopes, *(k.and_(slopes, inside) for inside in elements)]

    def _vector_of_positions(
        self,
        source: Value,
        slopes: Value,
        count: int,
        sums: Sequence[Value],
        line: Value | None,
        masks: Sequence[Value] | None,
    ) -> list[Value]:
        """The sums with what a vector of positions in some rows of slopes adds to them, row by row of the array. If not
        all of these are inside, it is told where the first one is, and likewise of lanes."""
        totals = list(sums)
        lines = self._in_a_row(slopes, self["row_result"], count)
        mine = [self._load(place, masks[0] if masks else None) for place in lines]
        rows = (count - 1) * self._stride + self._size
        for number, row in enumerate(self._in_a_row(source, self["row_source"], rows)):
            add = partial(self._added, number, row, mine, totals, masks)
            totals = self._if_inside("row", line, number, add, totals)
        return totals

    def _load(self, place: Value, mask: Value | None) -> Value:
        k = self._k
        return k.load(place, self._vector) if mask is None else k.masked_load(place, self._vector, mask)

    def _added(
        self, number: int, row: Value, slopes: Sequence[Value], sums: Sequence[Value], masks: Sequence[Value] | None
    ) -> list[Value]:
        """The sums with what one row of the array adds to them."""
        k, totals = self._k, list(sums)
        for column in range(self._columns):
            mask = masks[1 + column] if masks else None
            pixels = self._load(k.gep(row, column * self._type.bytes), mask)
            for place in range(self._size):
                slope, rest = divmod(number - place, self._stride)
                if 0 <= slope < len(slopes) and not rest:
                    cell = place * self._columns + column
                    total = k.muladd(pixels, slopes[slope], totals[cell])
                    totals[cell] = total if mask is None else k.select(mask, total, totals[cell])
        return totals
