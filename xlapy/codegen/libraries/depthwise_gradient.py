"""Gradients of the kernels of depthwise convolutions, with channels side by side in lanes.

    depthwise_gradient_TYPE_WxS.pieces      kernels of W places in a row, that moved by S
    depthwise_gradient_TYPE_WxS.add         the sum of all pieces

The window of such a convolution is the gradient of another one's result, and its few positions are the places of that
one's kernel. So these are named as there: a line has positions, of which each has a slope; a kernel has rows of places.

    for each piece, for each line of it, for some rows of the kernel, for a tile of positions, for a vector of channels:
        for each place in these rows, for each position: sums[place] += slope[position] * array[position + place]

The sums of a vector are in registers while a tile runs, and each vector of the array is read once for all positions of
it. A tile at an edge looks which of its vectors there are; positions behind the last whole tile go one by one. Channels
run inside of positions, so that memory is read as it lies: with all positions of a line inside, vectors that begin in
the middle of a cache line had each of these read twice (28 by 28 by 256 channels: 275 us instead of 154).

Lines are cut into pieces, whose sums lie in scratch memory and are added up in their order: how many there are depends
on the sizes alone, so that a result is the same for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product

from xlapy.codegen.ir import PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries import FIRST_ARRAY, SCRATCH_PLACE, Library, LibraryCall
from xlapy.codegen.libraries.depthwise import NO_ROWS, TYPES, steps_of
from xlapy.codegen.libraries.sliding_lines import LINE_NUMBERS, LineFunction, LineWriter, line_numbers, module_of_lines
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import ConvolutionDimensionNumbers, WindowDimension
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

NUMBERS = (
    *(*LINE_NUMBERS, "lines", "piece_lines", "pieces", "is_far"),
    *("kernel_row", "kernel_position"),
)
"""By name, in order: behind those of `sliding_lines`, of which the result is the array of slopes, lines of all images,
those of a piece, and pieces; whether other work leaves no room for the arrays in the last cache, so that lines are
fetched early (16 images of 56 by 56 by 64: 693 us instead of 860; 4 of them: 149 instead of 134); and bytes of the
kernel from one row and place to the next."""

SOURCE, SLOPES, KERNEL = FIRST_ARRAY, FIRST_ARRAY + 1, FIRST_ARRAY + 2

WIDTHS = (3, 5, 7)
STRIDES = (1, 2)
ROWS = {3: 3, 5: 2, 7: 2}
FEW_ROWS = {3: 3, 5: 2, 7: 1}
"""Rows of a kernel of which all places have sums in registers, by their width, where there are 32 of these, or 16."""


POSITIONS = {True: 7, False: 4}
"""Of a tile: their slopes are in registers, too, of which there are 32, or 16."""

MOST_PIECES, LEAST_PIECES = 32, 4
LEAST_POSITIONS = 128
"""Of a piece, for each of which a product is added to each sum: that takes longer than to store and to add these."""


class GradientCall(Record):
    """How a library computes the gradient of a kernel: in how many pieces, what each of them moves, and the bytes of
    scratch memory for their sums."""

    pieces: LibraryCall
    add: LibraryCall
    units: int
    unit_bytes: int
    scratch_bytes: int


def call_of_depthwise_gradient(convolution: Instruction, target: Target) -> GradientCall | None:
    """How a library computes a convolution, if that is the gradient of a depthwise kernel."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, slopes, kernel = (value.shape for value in (*convolution.operands, convolution))
    axes = axes_of_gradient(convolution)
    if axes is None or kernel.type not in TYPES or not source.type is slopes.type is kernel.type:
        return None
    channels, groups = kernel.dims[numbers.output_feature], convolution.attributes["batch_group_count"]
    if groups != channels or source.dims[numbers.input_batch] != channels:
        return None
    features = (numbers.input_batch, numbers.kernel_output_feature, numbers.output_feature)
    side_by_side = all(s.strides()[dim] == 1 for s, dim in zip((source, slopes, kernel), features, strict=True))
    rows, positions = axes
    part, lanes = positions.part, target.lanes(kernel.type.bits)
    if not side_by_side or channels < lanes or part.window_dilation > 1:
        return None
    if part.size not in WIDTHS or part.stride not in STRIDES:
        return None
    images = slopes.dims[numbers.kernel_input_feature]
    lines = images * rows.count
    pieces = _pieces(lines, positions.count)
    if pieces < LEAST_PIECES:
        return None
    read = steps_of(source, numbers.input_feature, numbers.input_spatial)
    slope = steps_of(slopes, numbers.kernel_input_feature, numbers.kernel_spatial)
    written = steps_of(kernel, numbers.output_batch, numbers.output_spatial)
    values = line_numbers(axes, channels, (SOURCE, read), (SLOPES, slope))
    values |= {"lines": lines, "piece_lines": -(-lines // pieces), "pieces": pieces}
    values["is_far"] = int(source.bytes + slopes.bytes > target.l3_bytes // 2)
    values |= {"kernel_row": written.row, "kernel_position": written.position}
    name = library_name(kernel.type, part.size, part.stride)
    all_numbers = tuple(values[number] for number in NUMBERS)
    products = slopes.size * rows.part.size * part.size  # about one for the time of a byte
    sums = -(-channels // lanes) * lanes * rows.part.size * part.size
    return GradientCall(
        LibraryCall(name, f"{name}.pieces", all_numbers),
        LibraryCall(name, f"{name}.add", all_numbers),
        pieces,
        max(products, source.bytes + slopes.bytes) // pieces,
        pieces * sums * kernel.type.bytes,
    )


def scratch_of_convolution(convolution: Instruction, target: Target) -> int:
    """Bytes that the library wants for itself, if it computes a convolution."""
    call = call_of_depthwise_gradient(convolution, target)
    return 0 if call is None else call.scratch_bytes


def _pieces(lines: int, positions: int) -> int:
    """Of about the same number of lines, none of which is without any."""
    pieces = min(MOST_PIECES, lines, lines * positions // LEAST_POSITIONS)
    return -(-lines // -(-lines // pieces)) if pieces else 0


def axes_of_gradient(convolution: Instruction) -> tuple[WindowAxis, WindowAxis] | None:
    """Rows and positions of the convolution whose kernel's gradient this is, over one dimension or two: its window and
    its positions are exchanged."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, kernel = convolution.operands[0].shape, convolution.shape
    window: Sequence[WindowDimension] = convolution.attributes["window"].dimensions
    is_suited = 1 <= len(window) <= 2 and math.prod(kernel.dims) > 0 and convolution.operands[1].shape.size > 0
    if not is_suited or convolution.attributes["feature_group_count"] != 1:
        return None
    if any(part.base_dilation > 1 or part.reversal for part in window):
        return None
    axes = [
        WindowAxis(
            WindowDimension(
                kernel.dims[place],
                stride=part.window_dilation,
                padding_low=part.padding_low,
                window_dilation=part.stride,
            ),
            source.dims[position],
            part.size,
        )
        for part, position, place in zip(window, numbers.input_spatial, numbers.output_spatial, strict=True)
    ]
    return (NO_ROWS, axes[0]) if len(axes) == 1 else (axes[0], axes[1])


def library_name(type: ElementType, width: int, stride: int) -> str:
    return f"depthwise_gradient_{type.name}_{width}x{stride}"


def emit_depthwise_gradient(type: ElementType, width: int, stride: int, target: Target) -> Module:
    name = library_name(type, width, stride)
    writers: dict[str, LineWriter] = {
        f"{name}.pieces": partial(_Pieces, type=type, width=width, stride=stride, target=target),
        f"{name}.add": partial(_Addition, type=type, width=width, target=target),
    }
    return module_of_lines(target, writers)


def _library(type: ElementType, width: int, stride: int) -> Library:
    name = library_name(type, width, stride)
    return Library(name, (f"{name}.pieces", f"{name}.add"), partial(emit_depthwise_gradient, type, width, stride))


DEPTHWISE_GRADIENT_LIBRARIES = {
    library.name: library for library in (_library(*kind) for kind in product(TYPES, WIDTHS, STRIDES))
}
"""By name."""


class _Sums(LineFunction):
    """What both functions know of the sums of pieces: vectors of channels, of each the places of the kernel."""

    def __init__(self, k: KernelBuilder, type: ElementType, width: int, target: Target) -> None:
        super().__init__(k, NUMBERS)
        self._type = type
        self._width = width
        self._vector = register_type(type).with_lanes(target.lanes(type.bits))
        self._vector_bytes = self._vector.lanes * type.bytes
        self._row_bytes = width * self._vector_bytes
        self._vectors = k.udiv(k.add(self["channels"], self._vector.lanes - 1), self._vector.lanes)
        self._sums_of_vector = k.mul(self["row_window"], self._row_bytes)
        self._sums_of_piece = k.mul(self._vectors, self._sums_of_vector)
        self._sums = k.load(k.gep(k.parameters["table"], SCRATCH_PLACE, PTR.bytes), PTR, hoistable=True)

    def _channel(self, vector: Value) -> Value:
        """Bytes in front of the channels of a vector; the last one may overlap the one before it."""
        k, lanes = self._k, self._vector.lanes
        return k.mul(k.smin(k.mul(vector, lanes), k.sub(self["channels"], lanes)), self._type.bytes)


class _Pieces(_Sums):
    """Writes the function that sums up pieces, its units."""

    def __init__(self, k: KernelBuilder, type: ElementType, width: int, stride: int, target: Target) -> None:
        super().__init__(k, type, width, target)
        has_many_registers = target.is_avx512 or not target.is_x86
        self._stride = stride
        self._rows = (ROWS if has_many_registers else FEW_ROWS)[width]
        self._tile = POSITIONS[has_many_registers]

    def emit(self) -> None:
        k = self._k
        with k.loop(k.parameters["begin"], k.parameters["end"]) as piece:
            sums = k.gep(self._sums, k.mul(piece.index, self._sums_of_piece))
            k.memset(sums, 0, self._sums_of_piece)
            first = k.mul(piece.index, self["piece_lines"])
            with k.loop(first, k.smin(k.add(first, self["piece_lines"]), self["lines"])) as line:
                self._line(line.index, sums)

    def _line(self, line: Value, sums: Value) -> None:
        """Adds what the positions of a line say."""
        k = self._k
        image = k.udiv(line, self["row_count"])
        row = k.sub(line, k.mul(image, self["row_count"]))
        start, (begin, end) = self._places("row", row)
        source = k.gep(self._array("source"), k.mul(image, self["source_image"]))
        source = k.gep(source, k.mul(start, self["row_source"]))
        slopes = k.gep(self._array("result"), k.mul(image, self["result_image"]))
        slopes = k.gep(slopes, k.mul(row, self["row_result"]))
        whole = k.add(begin, k.mul(k.udiv(k.smax(k.sub(end, begin), 0), self._rows), self._rows))
        with k.loop(begin, whole, self._rows) as rows:
            self._rows_of_kernel(source, slopes, sums, rows.index, self._rows)
        with k.loop(whole, end) as rest:
            self._rows_of_kernel(source, slopes, sums, rest.index, 1)

    def _rows_of_kernel(self, source: Value, slopes: Value, sums: Value, first: Value, count: int) -> None:
        """Adds what the positions of a line say to the sums of some rows of the kernel."""
        k = self._k
        row_step = k.mul(self["row_dilation"], self["row_source"])
        lines = self._in_a_row(k.gep(source, k.mul(first, row_step)), row_step, count)
        add = partial(self._positions, lines, slopes, k.gep(sums, k.mul(first, self._row_bytes)))
        positions = self["position_count"]
        tiled = k.mul(k.udiv(positions, self._tile), self._tile)
        with k.loop(0, tiled, self._tile) as tile:
            add(tile.index, self._tile)
        with k.loop(tiled, positions) as single:
            add(single.index, 1)

    def _positions(self, lines: Sequence[Value], slopes: Value, sums: Value, position: Value, count: int) -> None:
        """Adds what some neighbouring positions say."""
        k = self._k
        places = (count - 1) * self._stride + self._width
        begin, _ = self._places("position", position)
        end = k.add(begin, places)
        is_inside = self._is_inside(begin, end, "position")
        offset = k.mul(begin, self["position_source"])
        first = [k.gep(line, offset) for line in lines]
        slopes = k.gep(slopes, k.mul(position, self["position_result"]))
        add = partial(self._channels, first, slopes, sums, (count, places))
        k.if_else(is_inside, partial(add, None), partial(add, begin))

    def _channels(
        self, lines: Sequence[Value], slopes: Value, sums: Value, size: tuple[int, int], begin: Value | None
    ) -> None:
        """The same, vector by vector of channels, of so many positions and places of each line of the array. If not all
        of these are inside, it is told where the first one is."""
        k, (count, places) = self._k, size
        with k.loop(0, self._vectors, runs=True) as vector:
            channel = self._channel(vector.index)
            mine = k.gep(sums, k.mul(vector.index, self._sums_of_vector))
            cells = [k.gep(mine, cell * self._vector_bytes) for cell in range(len(lines) * self._width)]
            of_slopes = self._in_a_row(k.gep(slopes, channel), self["position_result"], count)
            here = [k.gep(line, channel) for line in lines]
            with k.if_(k.compare("ne", self["is_far"], 0)):
                self._fetch(here[-1], of_slopes)
            totals = self._places_of_array(
                here,
                [k.load(place, self._vector) for place in of_slopes],
                places,
                [k.load(cell, self._vector) for cell in cells],
                begin,
            )
            for cell, total in zip(cells, totals, strict=True):
                k.store(cell, total)

    def _fetch(self, line: Value, slopes: Sequence[Value]) -> None:
        """What the next line of slopes sees, and this one does not, below the last of these lines; and its slopes."""
        k = self._k
        step = self["position_source"]
        below = k.gep(line, k.mul(self["row_stride"], self["row_source"]))
        ahead = self._in_a_row(below, step, len(slopes) * self._stride)
        for place in [*(k.gep(slope, self["row_result"]) for slope in slopes), *ahead]:
            k.prefetch(place, self._vector_bytes, level=2)

    def _places_of_array(
        self, first: Sequence[Value], slopes: Sequence[Value], count: int, sums: Sequence[Value], begin: Value | None
    ) -> list[Value]:
        """Adds so many places of each line of the array, one after the other. If not all of them are inside, it is told
        where the first one is."""
        totals = list(sums)
        lines = [self._in_a_row(line, self["position_source"], count) for line in first]
        for number, cells in enumerate(zip(*lines, strict=True)):
            add = partial(self._added, number, cells, slopes, totals)
            totals = self._if_inside("position", begin, number, add, totals)
        return totals

    def _added(
        self, number: int, cells: Sequence[Value], slopes: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """The sums with what one place of each line of the array adds to them."""
        k, totals = self._k, list(sums)
        for row, cell in enumerate(cells):
            pixel = k.load(cell, self._vector)
            for place in range(self._width):
                slope, rest = divmod(number - place, self._stride)
                if 0 <= slope < len(slopes) and not rest:
                    total = row * self._width + place
                    totals[total] = k.muladd(pixel, slopes[slope], totals[total])
        return totals


class _Addition(_Sums):
    """Writes the function that makes the kernel from the sums of all pieces."""

    def emit(self) -> None:
        k = self._k
        kernel = k.load(k.gep(k.parameters["table"], KERNEL, PTR.bytes), PTR)
        with (
            k.loop(0, self._vectors) as vector,
            k.loop(0, self["row_window"]) as row,
            k.loop(0, self._width) as place,
        ):
            sums = k.gep(self._sums, k.mul(vector.index, self._sums_of_vector))
            sums = k.gep(k.gep(sums, k.mul(row.index, self._row_bytes)), k.mul(place.index, self._vector_bytes))
            with k.loop(1, self["pieces"], carry=[k.load(sums, self._vector)]) as piece:
                added = k.load(k.gep(sums, k.mul(piece.index, self._sums_of_piece)), self._vector)
                piece.next = [k.add(piece.values[0], added)]
            goal = k.gep(kernel, self._channel(vector.index))
            goal = k.gep(goal, k.mul(row.index, self["kernel_row"]))
            k.store(k.gep(goal, k.mul(place.index, self["kernel_position"])), piece.results[0])
