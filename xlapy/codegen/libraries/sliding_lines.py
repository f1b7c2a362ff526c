"""What the functions share that slide windows over rows and positions: how these are walked, and what they are told.

A unit is a row of the result, or a group of neighbouring rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.window_axes import WindowAxis, shared_rows
from xlapy.codegen.libraries import NUMBERS_PLACE, LibraryCall
from xlapy.codegen.target import Target
from xlapy.hlo.shape import Shape

_AXIS = ("size", "count", "window", "stride", "dilation", "low", "source", "result")
LINE_NUMBERS = (
    *("source", "result", "channels", "source_image", "result_image"),
    *(f"{axis}_{name}" for axis in ("row", "position") for name in _AXIS),
)
"""By name, in order: places of the arrays in the table, channels, bytes from image to image. Of rows and positions: how
many the array has and the result, places of the window, how it moves, and bytes from one to the next in both arrays."""

LEAST_ROWS = 16
"""Rows of results of a task, for each of another one that sees elements which its first or last one sees."""

LEAST_TASKS = 64
"""Of many rows: fewer would keep many cores waiting for the last one."""

LEAST_SIZE = 1 << 13  # results that are made in a microsecond

Range = tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class SlidingCall:
    """How a library slides windows: by which function, in how many units, what a unit moves, and how many a task has
    at the least: its neighbours read some of its rows as well, and fetch them for nothing."""

    call: LibraryCall
    units: int
    unit_bytes: int
    least_units: int


def sliding_call(call: LibraryCall, rows: WindowAxis, units: int, unit_bytes: int) -> SlidingCall:
    least = min(LEAST_ROWS * shared_rows(rows), units // LEAST_TASKS)
    return SlidingCall(call, units, unit_bytes, max(least, 1))


@dataclass(frozen=True, slots=True)
class Steps:
    """Bytes from one image, row and position to the next."""

    image: int
    row: int
    position: int


def line_numbers(
    axes: tuple[WindowAxis, WindowAxis], channels: int, source: tuple[int, Steps], result: tuple[int, Steps]
) -> dict[str, int]:
    """`LINE_NUMBERS`, of windows over rows and positions of two arrays, given by their places in the table."""
    (source_place, read), (result_place, written) = source, result
    values = {
        "source": source_place,
        "result": result_place,
        "channels": channels,
        "source_image": read.image,
        "result_image": written.image,
    }
    steps = ((read.row, written.row), (read.position, written.position))
    for name, axis, moves in zip(("row", "position"), axes, steps, strict=True):
        part = axis.part
        numbers = (axis.size, axis.count, part.size, part.stride, part.window_dilation, part.padding_low, *moves)
        values |= {f"{name}_{what}": number for what, number in zip(_AXIS, numbers, strict=True)}
    return values


def positions_inside(axis: WindowAxis) -> tuple[int, int]:
    """The first position of which all places are inside, and how many there are."""
    part = axis.part
    extent = (part.size - 1) * part.window_dilation
    first = max(0, -(-part.padding_low // part.stride))
    end = min(axis.count, (axis.size - 1 + part.padding_low - extent) // part.stride + 1)
    return (first, end - first) if first < end else (0, 0)


def channel_numbers(**arrays: tuple[Shape, int]) -> dict[str, int]:
    """Bytes of arrays from channel to channel, which lie along a dimension of each."""
    return {f"{name}_channel": shape.strides()[dim] * shape.type.bytes for name, (shape, dim) in arrays.items()}


class LineFunction(ABC):
    """Writes one function; the numbers that it is told are found by name."""

    def __init__(self, k: KernelBuilder, names: Sequence[str]) -> None:
        self._k = k
        table = k.load(k.gep(k.parameters["table"], NUMBERS_PLACE, PTR.bytes), PTR, hoistable=True)
        self._numbers: Mapping[str, Value] = {
            name: k.load(k.gep(table, place, I64.bytes), I64, hoistable=True) for place, name in enumerate(names)
        }

    def __getitem__(self, name: str) -> Value:
        return self._numbers[name]

    def _array(self, name: str) -> Value:
        k = self._k
        return k.load(k.gep(k.parameters["table"], self[name], PTR.bytes), PTR, hoistable=True)

    @abstractmethod
    def emit(self) -> None:
        """Writes what a range of units does."""

    def _places(self, axis: str, position: Value) -> tuple[Value, Range]:
        """Where the window lies at a position, and which of its places are inside."""
        k = self._k
        dilation = self[f"{axis}_dilation"]
        start = k.sub(k.mul(position, self[f"{axis}_stride"]), self[f"{axis}_low"])
        begin = k.udiv(k.smax(k.sub(k.sub(dilation, 1), start), 0), dilation)
        end = k.udiv(k.smax(k.sub(k.add(self[f"{axis}_size"], k.sub(dilation, 1)), start), 0), dilation)
        return start, (begin, k.smin(end, self[f"{axis}_window"]))

    def _places_mostly_dense(self, axis: str, position: Value) -> tuple[Value, Range]:
        """The same, without a division where the window has no places apart: this takes as long as a tile."""
        k = self._k
        start = k.sub(k.mul(position, self[f"{axis}_stride"]), self[f"{axis}_low"])

        def neighbours() -> list[Value]:
            return [k.smax(k.sub(0, start), 0), k.smin(k.sub(self[f"{axis}_size"], start), self[f"{axis}_window"])]

        is_dense = k.compare("eq", self[f"{axis}_dilation"], 1)
        begin, end = k.if_else(is_dense, neighbours, lambda: list(self._places(axis, position)[1]))
        return start, (begin, end)

    def _is_inside(self, begin: Value, end: Value, axis: str) -> Value:
        """Whether all elements in a range of rows or positions are those of the array."""
        k = self._k
        return k.and_(k.compare("ge", begin, 0), k.compare("le", end, self[f"{axis}_size"]))

    def _if_inside(
        self, axis: str, begin: Value | None, number: int, add: Callable[[], list[Value]], totals: Sequence[Value]
    ) -> list[Value]:
        """What `add` makes of the totals, if a row or position so many behind `begin` is one of the array; they stay if
        not. None: it is known to be one."""
        if begin is None:
            return add()
        k = self._k
        inside = k.compare("lt", k.add(begin, number), self[f"{axis}_size"], signed=False)
        return k.if_else(inside, add, partial(list, totals))

    def _in_a_row(self, first: Value, step: Value, count: int) -> list[Value]:
        """So many addresses, a step apart."""
        places = [first]
        for _ in range(1, count):
            places.append(self._k.gep(places[-1], step))
        return places

    def _at(self, source: Value, result: Value, position: Value) -> tuple[Value, Value]:
        """Both arrays from a position on; the source from the first place of its window."""
        k = self._k
        start = k.sub(k.mul(position, self["position_stride"]), self["position_low"])
        start_of_source = k.gep(source, k.mul(start, self["position_source"]))
        return start_of_source, k.gep(result, k.mul(position, self["position_result"]))


class SlidingLines(LineFunction):
    """Writes the loop over rows of one function."""

    def __init__(self, k: KernelBuilder, names: Sequence[str], group: int = 1) -> None:
        """A unit is a group of so many rows; the last one of an image may overlap the one before it."""
        super().__init__(k, names)
        self._group = group

    def emit(self) -> None:
        k = self._k
        groups = k.udiv(k.add(self["row_count"], self._group - 1), self._group)
        first = k.udiv(k.parameters["begin"], groups)
        places = [first, k.sub(k.parameters["begin"], k.mul(first, groups))]
        with k.loop(k.parameters["begin"], k.parameters["end"], carry=places) as units:
            image, number = units.values
            row = k.smin(k.mul(number, self._group), k.sub(self["row_count"], self._group))
            source = k.gep(self._array("source"), k.mul(image, self["source_image"]))
            result = k.gep(self._array("result"), k.mul(image, self["result_image"]))
            result = k.gep(result, k.mul(row, self["row_result"]))
            starts, ranges = zip(
                *(self._places_mostly_dense("row", k.add(row, member)) for member in range(self._group)), strict=True
            )
            self._line(k.gep(source, k.mul(starts[0], self["row_source"])), result, ranges)
            following = k.add(number, 1)
            is_last = k.compare("eq", following, groups)
            units.next = [k.select(is_last, k.add(image, 1), image), k.select(is_last, 0, following)]

    @abstractmethod
    def _line(self, source: Value, result: Value, rows: Sequence[Range]) -> None:
        """Writes a group of rows of the result, of which the first begins at `result`, and its window at `source`; of
        the window at each, the given rows are inside."""


LineWriter = Callable[[KernelBuilder], LineFunction]


def module_of_lines(target: Target, writers: Mapping[str, LineWriter]) -> Module:
    """A library of such functions, by name."""
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    for name, writer in writers.items():
        with KernelBuilder(module, name, parameters, None, attributes=attributes, joins_offsets=True) as k:
            writer(k).emit()
    return module
