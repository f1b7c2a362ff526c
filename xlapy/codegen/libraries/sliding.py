"""Folds of windows over rows and positions, with channels side by side in lanes, as `sliding_plan` finds them.

    slide_OPERATION_TYPE.V          V vectors of channels side by side
    slide_OPERATION_TYPE_MAP.V      the same of what `sliding_maps` makes from the elements

A unit is a row of the result. The results of a tile are in registers while the places of the window run; tiles lie
where all places of a row are inside, and the positions beside them go one by one, over those places that are. Results
are folded place by place, those outside left out, in the order of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.libraries.fold_problem import FoldKind
from xlapy.codegen.libraries.sliding_maps import CHANNELS, MAPS, SlidingMap
from xlapy.codegen.libraries.sliding_plan import (
    TYPES,
    Sliding,
    bits_of,
    sliding_fold,
)
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction

_AXIS = ("size", "count", "window", "stride", "dilation", "low", "source", "result")
_NUMBERS_OF_CHANNELS = tuple(f"numbers_{leaf.value}" for leaf in CHANNELS)
NUMBERS = (
    *("source", "result", *_NUMBERS_OF_CHANNELS, "channels", "source_image", "result_image"),
    *("inside", "first", "init", "divisor"),
    *(f"{axis}_{name}" for axis in ("row", "position") for name in _AXIS),
)
"""By name, in order: places of the arrays in the table, of those of numbers for channels, too, if there are such;
channels, bytes from image to image; the positions of which all places are inside, and the first of them; the bits of
what folds begin with, and of what results are divided by. Of rows and positions: how many the array has and the result,
places of the window, how it moves, and bytes from one to the next in both arrays.

Memory is not fetched ahead: the processor itself fetches lines of several rows at a time, and gets a third more of them
if nobody interferes."""

NUMBERS_PLACE, FIRST_ARRAY = 0, 3  # in the table of a library call

VECTORS = (4, 2, 1)
TILE = 4
"""Positions of a tile, if there are registers for so many results, with as many left for what is read."""

Range = tuple[Value, Value]

LEAST_SIZE = 1 << 13  # results that are made in a microsecond


@dataclass(frozen=True, slots=True)
class SlidingCall:
    """How a library slides windows: by which function, in how many units, and what a unit moves."""

    call: LibraryCall
    units: int
    unit_bytes: int


def call_of_windows(computation: Computation, target: Target) -> SlidingCall | None:
    """How a library computes a fused computation that is nothing but a fold of windows."""
    found = sliding_fold(computation.root, lambda source: source.opcode == "parameter")
    if found is None or (found.makes_elements and found.source.shape.bytes > target.l3_bytes):
        return None  # in order, as kernels of programs read, more comes out of memory
    arrays = [FIRST_ARRAY + array.attributes["number"] for array in (found.source, *found.numbers)]
    return _call(found, arrays, FIRST_ARRAY + len(computation.parameters), target)


def call_of_window(instruction: Instruction, target: Target) -> SlidingCall | None:
    """The same of one instruction by itself."""
    found = sliding_fold(instruction, lambda source: source is instruction.operands[0])
    return None if found is None else _call(found, [FIRST_ARRAY], FIRST_ARRAY + len(instruction.operands), target)


def _call(sliding: Sliding, arrays: Sequence[int], result: int, target: Target) -> SlidingCall | None:
    """Of arrays, the source first, and of a result in these places of the table."""
    lanes, width = _lanes(sliding.type, target), sliding.type.bytes
    rows, positions = sliding.axes
    vectors = next((count for count in VECTORS if sliding.channels >= count * lanes), None)
    line = positions.count * sliding.channels
    if vectors is None or sliding.images * rows.count * line < LEAST_SIZE:
        return None
    first, inside = _inside(positions)
    values = dict.fromkeys(_NUMBERS_OF_CHANNELS, 0) | dict(zip(("source", *_NUMBERS_OF_CHANNELS), arrays, strict=False))
    values |= {
        "result": result,
        "channels": sliding.channels,
        "source_image": rows.size * positions.size * sliding.channels * width,
        "result_image": rows.count * line * width,
        "inside": inside,
        "first": first,
        "init": bits_of(sliding.init, sliding.type),
        "divisor": bits_of(sliding.divisor, sliding.type),
    }
    for name, axis, inner in (("row", rows, (positions.size, positions.count)), ("position", positions, (1, 1))):
        of_axis = _axis_numbers(axis, inner, sliding.channels * width)
        values |= {f"{name}_{what}": value for what, value in of_axis.items()}
    kind = sliding.operation, sliding.type, sliding.map
    units = sliding.images * rows.count
    work = line * rows.part.size * positions.part.size * width
    numbers = tuple(values[name] for name in NUMBERS)
    return SlidingCall(LibraryCall(library_name(*kind), function_name(*kind, vectors), numbers), units, work)


def _axis_numbers(axis: WindowAxis, inner: tuple[int, int], pixel: int) -> dict[str, int]:
    """Of one dimension; `inner` is how many pixels one step of it is in each array."""
    part = axis.part
    values = (axis.size, axis.count, part.size, part.stride, part.window_dilation, part.padding_low)
    return dict(zip(_AXIS, (*values, *(count * pixel for count in inner)), strict=True))


def _inside(axis: WindowAxis) -> tuple[int, int]:
    """The first position of which all places are inside, and how many there are."""
    part = axis.part
    extent = (part.size - 1) * part.window_dilation
    first = max(0, -(-part.padding_low // part.stride))
    end = min(axis.count, (axis.size - 1 + part.padding_low - extent) // part.stride + 1)
    return (first, end - first) if first < end else (0, 0)


def library_name(operation: str, type: ElementType, map: SlidingMap) -> str:
    return f"slide_{operation}_{type.name}{map.name and '_'}{map.name}"


def function_name(operation: str, type: ElementType, map: SlidingMap, vectors: int) -> str:
    return f"{library_name(operation, type, map)}.{vectors}"


def _lanes(type: ElementType, target: Target) -> int:
    return target.lanes(type.bits)


def _tile(vectors: int, target: Target) -> int:
    registers = 32 if target.is_avx512 or not target.is_x86 else 16
    return min(TILE, registers // 2 // vectors)


def emit_sliding(operation: str, type: ElementType, map: SlidingMap, target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    for vectors in VECTORS:
        name = function_name(operation, type, map, vectors)
        with KernelBuilder(module, name, parameters, None, attributes=attributes, joins_offsets=True) as k:
            _Rows(k, operation, type, map, _lanes(type, target), vectors, _tile(vectors, target)).emit()
    return module


def _library(operation: str, type: ElementType, map: SlidingMap) -> Library:
    names = tuple(function_name(operation, type, map, vectors) for vectors in VECTORS)
    return Library(library_name(operation, type, map), names, partial(emit_sliding, operation, type, map), most_parts=2)


SLIDING_LIBRARIES = {
    library.name: library
    for library in (_library(*kind) for operation, maps in MAPS.items() for kind in product((operation,), TYPES, maps))
}
"""By name."""


class _Rows:
    """Writes one function: the loop over rows, and in it those over positions and channels."""

    def __init__(
        self,
        k: KernelBuilder,
        operation: str,
        type: ElementType,
        map: SlidingMap,
        lanes: int,
        vectors: int,
        tile: int,
    ) -> None:
        self._k = k
        self._type = type
        self._map = map
        self._vector = register_type(type).with_lanes(lanes)
        self._vector_bytes = lanes * type.bytes
        self._vectors = vectors
        self._tile = tile
        self._combiner = FoldKind(operation, type, type).combiner()
        table = k.load(k.gep(k.parameters["table"], NUMBERS_PLACE, PTR.bytes), PTR, hoistable=True)
        self._numbers = {
            name: k.load(k.gep(table, place, I64.bytes), I64, hoistable=True) for place, name in enumerate(NUMBERS)
        }
        self._initial = k.splat(self._float("init"), lanes)

    def __getitem__(self, name: str) -> Value:
        return self._numbers[name]

    def _float(self, name: str) -> Value:
        k, scalar = self._k, self._vector.element
        bits = self[name] if scalar.bits == I64.bits else k.trunc(self[name], scalar.integer())
        return k.bitcast(bits, scalar)

    def _array(self, name: str) -> Value:
        k = self._k
        return k.load(k.gep(k.parameters["table"], self[name], PTR.bytes), PTR, hoistable=True)

    def emit(self) -> None:
        k = self._k
        with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
            image = k.udiv(units.index, self["row_count"])
            row = k.sub(units.index, k.mul(image, self["row_count"]))
            source = k.gep(self._array("source"), k.mul(image, self["source_image"]))
            result = k.gep(self._array("result"), k.mul(image, self["result_image"]))
            result = k.gep(result, k.mul(row, self["row_result"]))
            start, places = self._places("row", row)
            source = k.gep(source, k.mul(start, self["row_source"]))
            self._line(source, result, places)

    def _places(self, axis: str, position: Value) -> tuple[Value, Range]:
        """Where the window lies at a position, and which of its places are inside."""
        k = self._k
        dilation = self[f"{axis}_dilation"]
        start = k.sub(k.mul(position, self[f"{axis}_stride"]), self[f"{axis}_low"])
        begin = k.udiv(k.smax(k.sub(k.sub(dilation, 1), start), 0), dilation)
        end = k.udiv(k.smax(k.sub(k.add(self[f"{axis}_size"], k.sub(dilation, 1)), start), 0), dilation)
        return start, (begin, k.smin(end, self[f"{axis}_window"]))

    def _line(self, source: Value, result: Value, rows: Range) -> None:
        """One row: tiles where all places are inside, the last of which may overlap; single positions beside them."""
        k, tile = self._k, self._tile
        first, inside, count = self["first"], self["inside"], self["position_count"]
        covered = k.select(k.compare("ge", inside, tile), inside, 0)
        with k.loop(0, covered, tile) as loop:
            position = k.add(first, k.smin(loop.index, k.sub(covered, tile)))
            everything = k.const(I64, 0), self["position_window"]
            self._positions(source, result, rows, position, everything, tile)
        with k.loop(0, k.sub(count, covered)) as loop:
            is_behind = k.compare("ge", loop.index, first)
            position = k.add(loop.index, k.select(is_behind, covered, 0))
            _, places = self._places("position", position)
            self._positions(source, result, rows, position, places, 1)

    def _positions(
        self,
        source: Value,
        result: Value,
        rows: Range,
        position: Value,
        places: Range,
        tile: int,
    ) -> None:
        """All channels of a tile of positions; the last vectors may overlap those before them."""
        k = self._k
        start = k.sub(k.mul(position, self["position_stride"]), self["position_low"])
        source = k.gep(source, k.mul(start, self["position_source"]))
        result = k.gep(result, k.mul(position, self["position_result"]))
        width = self._vectors * self._vector.lanes
        with k.loop(0, self["channels"], width, runs=True) as loop:
            channel = k.mul(k.smin(loop.index, k.sub(self["channels"], width)), self._type.bytes)
            numbers = self._numbers_of_channels(channel)
            sums = self._folded(k.gep(source, channel), numbers, rows, places, tile)
            cells = iter(self._divided(sums))
            for goal in self._moved(k.gep(result, channel), self["position_result"], tile):
                for vector in range(self._vectors):
                    k.store(k.gep(goal, vector * self._vector_bytes), next(cells))

    def _numbers_of_channels(self, channel: Value) -> list[list[Value]]:
        """What the map takes for each of the vectors side by side."""
        k = self._k
        arrays = [self._array(name) for name in _NUMBERS_OF_CHANNELS[: self._map.arrays]]
        return [
            [k.load(k.gep(array, k.add(channel, vector * self._vector_bytes)), self._vector) for array in arrays]
            for vector in range(self._vectors)
        ]

    def _moved(self, first: Value, step: Value, count: int) -> list[Value]:
        """So many addresses, each a step behind the one before it."""
        k = self._k
        return [k.gep(first, k.mul(step, number)) for number in range(count)]

    def _folded(
        self,
        source: Value,
        numbers: Sequence[Sequence[Value]],
        rows: Range,
        places: Range,
        tile: int,
    ) -> list[Value]:
        """The results of a tile."""
        k = self._k
        row_step = k.mul(self["row_dilation"], self["row_source"])
        step = k.mul(self["position_dilation"], self["position_source"])
        apart = k.mul(self["position_stride"], self["position_source"])
        with k.loop(*rows, carry=[self._initial] * (tile * self._vectors)) as row:
            line = k.gep(source, k.mul(row.index, row_step))
            with k.loop(*places, carry=row.values) as place:
                cells = self._moved(k.gep(line, k.mul(place.index, step)), apart, tile)
                vectors = [
                    (k.gep(cell, vector * self._vector_bytes), numbers[vector])
                    for cell in cells
                    for vector in range(self._vectors)
                ]
                place.next = [self._step(total, *vector) for total, vector in zip(place.values, vectors, strict=True)]
            row.next = place.results
        return row.results

    def _step(self, total: Value, place: Value, numbers: Sequence[Value]) -> Value:
        k = self._k
        element = self._map.emit(k, self._type, k.load(place, self._vector), numbers)
        combined = emit_element(k, self._combiner, [total, element], unrounded=True)
        assert isinstance(combined, Value)
        return combined

    def _divided(self, sums: list[Value]) -> list[Value]:
        """The results, divided if that changes anything."""
        k = self._k
        divisor = self._float("divisor")

        def divide() -> list[Value]:
            return [k.div(value, k.splat(divisor, self._vector.lanes)) for value in sums]

        return k.if_else(k.compare("ne", divisor, 1), divide, lambda: sums)
