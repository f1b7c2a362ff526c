"""The left side of a convolution that is computed as a matrix product: never written down, only packed.

A row of A is a position of the window, a step along K a place in it with one input feature; the element is that of the
array under the place, or zero where there is none. It is only made as strips of A are packed:

    row  = mixed-radix number over batch and positions          k = mixed-radix number over places and features
    a[row, k] = array[sum of digit * offset] at  place[s] = start[s] + sum of digit * move[s]   for each space s

Whatever the order of dimensions, strides, padding, dilations or reversal of a convolution, they are numbers of that
form, so that one library serves all. Where features lie side by side in memory, strips are transposed vector by vector
as for any matrix; where neighbours in memory are rows (gradients of kernels), they are copied.

A place outside of the array contributes nothing, but zero times an infinity would be NaN. Should B hold infinities or
NaNs, which show in any row of C, then sums are made again element by element, without what lies outside.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_packing import TurningEmitter, padded_width
from xlapy.codegen.libraries.gemm_tile import TileShape
from xlapy.codegen.libraries.gemm_types import GemmType
from xlapy.codegen.target import Target
from xlapy.hlo.matrix_products import LEVELS, SPACES
from xlapy_runtime.records import Record

_ZERO_BYTES = 1 << 12
"""More than a chunk along K takes of a row."""


def _names() -> tuple[str, ...]:
    spaces = [f"{name}{space}" for space in range(SPACES) for name in ("size", "stride", "start")]
    digits = [
        f"{side}_{name}{level}"
        for side in ("row", "step")
        for level in range(LEVELS)
        for name in ("count", "offset", *(f"move{space}_" for space in range(SPACES)))
    ]
    return ("follows_rows", "has_few", "reaches_outside", "is_regular", "is_gradient", *spaces, *digits)


WINDOW_NUMBERS = _names()
"""What describes A, in order: whether neighbours in memory are rows, not steps; whether so few features are neighbours
that packing them is slow; whether a place may lie outside of the array; whether the digits are batch and spaces, spaces
and features, in these orders, so that tiles may read the array itself (`gemm_direct`), or would be if rows and steps
were exchanged (`gemm_gradient`); for each space its size, its stride in bytes and where the first place of the first
position lies; for each digit of rows and of steps its range, its offset in bytes, and how far it moves the place in
each space."""

_PACK = [("windows", PTR), ("array", PTR), ("first", I64), ("valid", I64), ("step", I64), ("depth", I64)]
_PACK += [("packed", PTR)]

_PACK_ROWS = [("depth", I64), ("rows", PTR), ("valid", I64), ("packed", PTR)]

_COPY_ROW = [("windows", PTR), ("array", PTR), ("row", I64), ("step", I64), ("depth", I64), ("goal", PTR)]

_SUM_ROW = [("windows", PTR), ("array", PTR), ("row", I64), ("step", I64), ("depth", I64)]
_SUM_ROW += [("b", PTR), ("b_step", I64), ("columns", I64), ("c", PTR)]


def has_windows(kind: GemmType) -> bool:
    """Whether the library of a type computes convolutions."""
    return kind.parts == 1 and kind.planes == 1


def emit_window_packing(module: Module, target: Target, kind: GemmType, shape: TileShape, prefix: str) -> None:
    """Writes `PREFIX_pack_windows`, `PREFIX_copy_row`, perhaps `PREFIX_sum_row`, and what they call."""
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, f"{prefix}_pack_rows", _PACK_ROWS, None, "internal", attributes) as k:
        _RowPackingEmitter(k, kind, shape, shape.rows, prefix).emit()
    with KernelBuilder(module, f"{prefix}_copy_row", _COPY_ROW, None, "internal", attributes) as k:
        _RowCopyEmitter(k, kind, shape, prefix).emit()
    emit_pack_windows(module, target, kind, shape, prefix, _WindowPackingEmitter)


def emit_pack_windows(
    module: Module, target: Target, kind: GemmType, shape: TileShape, prefix: str, packing: type[WindowPacking]
) -> None:
    """Writes `PREFIX_pack_windows`, and perhaps `PREFIX_sum_row`."""
    attributes = f"nounwind {target.function_attributes}".rstrip()
    zeros = f"{prefix}_zeros"
    module.define(zeros, f"@{zeros} = internal constant [{_ZERO_BYTES} x i8] zeroinitializer, align 64")
    with KernelBuilder(module, f"{prefix}_pack_windows", _PACK, None, "internal", attributes) as k:
        packing(k, kind, shape, prefix).emit()
    if not kind.accumulator.is_float:
        return
    with KernelBuilder(module, f"{prefix}_sum_row", _SUM_ROW, None, "internal", attributes) as k:
        _RowSumsEmitter(k, kind, shape, prefix).emit()


class _RowPackingEmitter(TurningEmitter):
    """A strip whose rows lie anywhere, each contiguous along K: `rows` are their addresses, the last one as
    often as a block has room for."""

    _can_call_some = False

    def emit(self) -> None:
        self._one_by_one(self._transpose(self._k.parameters["rows"]))

    def _source(self, position: Value | int, depth: Value) -> Value:
        k = self._k
        row = k.load(k.gep(k.parameters["rows"], position, 8), PTR)
        return k.gep(row, depth, self._kind.element.bytes)


class Spot(Record):
    """Where in the array something lies: an offset in bytes, and a place in each space."""

    offset: Value
    places: Sequence[Value]


_SPOT_BYTES = 8 * (1 + SPACES)


class Windows:
    """What a function with the parameters `windows`, `array`, `step` and `depth` knows of A."""

    def __init__(self, k: KernelBuilder, kind: GemmType, shape: TileShape, prefix: str) -> None:
        self._k = k
        self._kind = kind
        self._width = shape.rows
        self._lanes = shape.lanes
        self._has_quick_masks = shape.masks_are_free
        self._prefix = prefix
        numbers = k.parameters["windows"]
        self._numbers = {
            name: k.load(k.gep(numbers, index, 8), I64, invariant=True) for index, name in enumerate(WINDOW_NUMBERS)
        }

    def _segments(self, emit: Callable[[Value, Value, Spot], None]) -> None:
        """Calls `emit(done, length, spot)` for each stretch of steps that differ in their last digit only."""
        k = self._k

        def body(values: list[Value]) -> Value:
            done = values[0]
            digits = self._digits("step", k.add(k.parameters["step"], done))
            left = k.sub(self._numbers[f"step_count{LEVELS - 1}"], digits[-1])
            length = k.smin(left, k.sub(k.parameters["depth"], done))
            emit(done, length, self._spot("step", digits))
            return k.add(done, length)

        k.while_loop(lambda values: k.compare("lt", values[0], k.parameters["depth"]), body, [k.const(I64, 0)])

    def _digits(self, side: str, number: Value) -> list[Value]:
        """The digits of a row or a step, outermost first."""
        k = self._k
        digits: list[Value] = []
        for level in reversed(range(1, LEVELS)):
            count = self._numbers[f"{side}_count{level}"]
            rest = k.udiv(number, count)
            digits.insert(0, k.sub(number, k.mul(rest, count)))
            number = rest
        return [number, *digits]

    def _spot(self, side: str, digits: Sequence[Value]) -> Spot:
        zero = self._k.const(I64, 0)
        starts = [self._numbers[f"start{space}"] if side == "row" else zero for space in range(SPACES)]
        spot = Spot(zero, starts)
        for level, digit in enumerate(digits):
            spot = self._moved(spot, side, level, digit)
        return spot

    def _moved(self, spot: Spot, side: str, level: int, digit: Value) -> Spot:
        k, numbers = self._k, self._numbers
        offset = k.add(spot.offset, k.mul(digit, numbers[f"{side}_offset{level}"]))
        moves = [numbers[f"{side}_move{space}_{level}"] for space in range(SPACES)]
        return Spot(offset, [k.add(place, k.mul(digit, move)) for place, move in zip(spot.places, moves, strict=True)])

    def _least_move(self, move: str, count: str) -> Value:
        """How far the window's first place in a space is before that where its description starts."""
        k = self._k
        return k.smin(k.mul(self._numbers[move], k.sub(self._numbers[count], 1)), 0)

    def _store_spot(self, goal: Value, spot: Spot) -> None:
        for number, value in enumerate((spot.offset, *spot.places)):
            self._k.store(self._k.gep(goal, 8 * number), value)

    def _load_spot(self, source: Value) -> Spot:
        values = [self._k.load(self._k.gep(source, 8 * number), I64) for number in range(1 + SPACES)]
        return Spot(values[0], values[1:])

    def _address(self, spot: Spot) -> Value:
        """The element at a spot, or a zero if there is none."""
        return self._address_if(self._is_inside(spot.places), self._offset(spot))

    def _address_if(self, is_inside: Value, offset: Value) -> Value:
        k = self._k
        return k.select(is_inside, k.gep(k.parameters["array"], offset), k.function_pointer(f"{self._prefix}_zeros"))

    def _is_inside(self, places: Sequence[Value]) -> Value:
        return functools.reduce(self._k.and_, [self._is_within(space, place) for space, place in enumerate(places)])

    def _is_within(self, space: int, place: Value) -> Value:
        k = self._k
        return k.compare("lt", place, k.splat(self._numbers[f"size{space}"], place.type.lanes), signed=False)

    def _offset(self, spot: Spot) -> Value:
        """How far into the array a spot is, in bytes."""
        k = self._k
        strides = [self._numbers[f"stride{space}"] for space in range(SPACES)]
        return functools.reduce(
            k.add, [k.mul(place, stride) for place, stride in zip(spot.places, strides, strict=True)], spot.offset
        )


class WindowPacking(Windows, ABC):
    """What packs a strip of A."""

    @abstractmethod
    def emit(self) -> None:
        """Writes the function."""


class _WindowPackingEmitter(WindowPacking):
    """One strip of A, from row `first` and step `step` on; rows behind the `valid` ones may hold anything."""

    def emit(self) -> None:
        k = self._k
        if self._kind.pair > 1 or not self._kind.is_packed_in_memory:
            self._transpose_segments()
            return
        follows_rows = k.compare("ne", self._numbers["follows_rows"], 0)
        k.if_else(follows_rows, self._copy_runs, self._transpose_segments)

    # Features side by side in memory: segments of K, in each of which all rows are contiguous

    def _transpose_segments(self) -> None:
        k, width = self._k, self._width
        padded = padded_width(width, self._lanes)
        spots = k.alloca(I64, padded * (1 + SPACES))
        rows = k.alloca(I64, padded)
        last = k.sub(k.parameters["valid"], 1)
        with k.loop(0, padded) as position:
            number = k.add(k.parameters["first"], k.smin(position.index, last))
            self._store_spot(k.gep(spots, position.index, _SPOT_BYTES), self._spot("row", self._digits("row", number)))

        def segment(done: Value, length: Value, base: Spot) -> None:
            with k.loop(0, padded) as position:
                spot = self._load_spot(k.gep(spots, position.index, _SPOT_BYTES))
                k.store(k.gep(rows, position.index, 8), self._address(_sum(k, spot, base)))
            packed = k.gep(k.parameters["packed"], k.mul(k.lshr(done, self._kind.pair_bits), self._step_bytes))
            k.call(f"{self._prefix}_pack_rows", [length, rows, k.const(I64, width), packed])

        self._segments(segment)

    # Rows side by side in memory: runs of them are copied, each for all steps

    def _copy_runs(self) -> None:
        k = self._k
        valid = k.parameters["valid"]

        def run(values: list[Value]) -> Value:
            position = values[0]
            digits = self._digits("row", k.add(k.parameters["first"], position))
            left = k.sub(self._numbers[f"row_count{LEVELS - 1}"], digits[-1])
            length = k.smin(left, k.sub(valid, position))
            self._copy_run(position, length, self._spot("row", digits))
            return k.add(position, length)

        k.while_loop(lambda values: k.compare("lt", values[0], valid), run, [k.const(I64, 0)])

    def _copy_run(self, position: Value, length: Value, spot: Spot) -> None:
        """Rows that lie side by side, from `position` of the strip on. Where all rows of a strip do and a masked store
        takes long, whole vectors are stored: what they have too many belongs to the next step, which is written later
        (Zen 3, gradient of a kernel of 8 by 14 by 14 of 256 features: 0.86 of the time)."""
        k = self._k
        if self._has_quick_masks:
            self._copy_steps(position, length, spot, masks_stores=True)
            return
        k.if_else(
            k.compare("eq", length, self._width),
            lambda: self._copy_steps(position, length, spot, masks_stores=False),
            lambda: self._copy_steps(position, length, spot, masks_stores=True),
        )

    def _copy_steps(self, position: Value, length: Value, spot: Spot, *, masks_stores: bool) -> None:
        k, lanes = self._k, self._lanes
        type = self._kind.element.with_lanes(lanes)
        vector_bytes = lanes * self._kind.element.bytes
        wanted = k.splat(length, lanes)
        lane_numbers = k.lane_numbers(I64.with_lanes(lanes))
        masks = [k.compare("lt", k.add(lane_numbers, start), wanted) for start in range(0, self._width, lanes)]
        column = k.gep(k.parameters["packed"], position, type.element.bytes)

        def segment(done: Value, steps: Value, base: Spot) -> None:
            first = _sum(k, spot, base)
            goal = k.gep(column, k.mul(done, self._step_bytes))
            moves = [self._numbers[f"step_move{space}_{LEVELS - 1}"] for space in range(SPACES)]
            nothing = Spot(k.const(I64, 0), [k.const(I64, 0)] * SPACES)
            distance = self._offset(self._moved(nothing, "step", LEVELS - 1, k.const(I64, 1)))
            with k.loop(0, steps, carry=[goal, self._offset(first), *first.places]) as step:
                place, offset, *places = step.values
                source = self._address_if(self._is_inside(places), offset)
                for number, mask in enumerate(masks):
                    vector = k.masked_load(k.gep(source, number * vector_bytes), type, mask)
                    here = k.gep(place, number * vector_bytes)
                    if masks_stores:
                        k.masked_store(here, vector, mask)
                    else:
                        k.store(here, vector)
                moved = [k.add(old, move) for old, move in zip(places, moves, strict=True)]
                step.next = [k.gep(place, self._step_bytes), k.add(offset, distance), *moved]

        self._segments(segment)

    @property
    def _step_bytes(self) -> int:
        return self._width * self._kind.packed.bytes


class _RowCopyEmitter(Windows):
    """One row of A as it is in the array, features side by side: a piece of memory for each place of the window."""

    def emit(self) -> None:
        k = self._k
        spot = self._spot("row", self._digits("row", k.parameters["row"]))
        element_bytes = self._kind.element.bytes

        def segment(done: Value, length: Value, base: Spot) -> None:
            here = _sum(k, spot, base)
            goal = k.gep(k.parameters["goal"], k.mul(done, element_bytes))
            size = k.mul(length, element_bytes)
            k.if_else(
                self._is_inside(here.places),
                lambda: k.memcpy(goal, k.gep(k.parameters["array"], self._offset(here)), size),
                lambda: k.memset(goal, 0, size),
            )

        self._segments(segment)


class _RowSumsEmitter(Windows):
    """One row of C, of `columns` sums over the steps that lie inside of the array, in their order."""

    def emit(self) -> None:
        k = self._k
        columns = k.parameters["columns"]
        whole = k.and_(columns, -self._lanes)
        spot = self._spot("row", self._digits("row", k.parameters["row"]))
        for first, last, lanes in ((k.const(I64, 0), whole, self._lanes), (whole, columns, 1)):
            with k.loop(first, last, lanes) as column:
                self._sum_columns(spot, column.index, lanes)

    def _sum_columns(self, spot: Spot, column: Value, lanes: int) -> None:
        k, kind = self._k, self._kind
        type = kind.accumulator.with_lanes(lanes)
        total = k.alloca(type)
        k.store(total, k.const(type, 0))
        right = k.gep(k.parameters["b"], column, kind.element.bytes)

        def segment(done: Value, length: Value, base: Spot) -> None:
            with k.loop(0, length) as step:
                here = _sum(k, spot, self._moved(base, "step", LEVELS - 1, step.index))
                with k.if_(self._is_inside(here.places)):
                    one = k.load(k.gep(k.parameters["array"], self._offset(here)), kind.element)
                    row = k.gep(right, k.mul(k.add(done, step.index), k.parameters["b_step"]))
                    other = k.load(row, kind.element.with_lanes(lanes))
                    factors = k.splat(kind.widen(k, one), lanes), kind.widen(k, other)
                    k.store(total, k.muladd(*factors, k.load(total, type)))

        self._segments(segment)
        place = k.gep(k.parameters["c"], column, kind.result.bytes)
        k.store(place, kind.narrow(k, k.load(total, type)))


def _sum(k: KernelBuilder, one: Spot, other: Spot) -> Spot:
    places = [k.add(first, second) for first, second in zip(one.places, other.places, strict=True)]
    return Spot(k.add(one.offset, other.offset), places)
