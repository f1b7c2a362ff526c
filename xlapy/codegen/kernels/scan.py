"""Cumulative scans: a reduce-window whose window reaches from each element to the first (or last) of its dimension.

    reduce-window(x, init), window={size=n pad=n-1_0}         r[0] = init + x[0], r[i] = r[i-1] + x[i]

Each result continues the one before it, instead of folding its window anew. That is right if the initial values that
padding holds change nothing, which the kernel finds out at run time: init + init = init. If not, it folds windows.

Lanes lie across the rows, where another dimension is the fastest: a strip of such vectors goes from one end to the
other, so that memory is read by more than a line at a time. Along the fastest dimension a vector is scanned in itself
in log2(lanes) steps, if the computation is one associative op; any other runs element by element.

Long sums of floats are in two parts (`kernels.split_sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I8, I64, IRType, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.fetching import fetched_by_rows
from xlapy.codegen.kernels.float_order import FloatOrder
from xlapy.codegen.kernels.folding import only
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.kernels.reduce import identity_element
from xlapy.codegen.kernels.reduce_window import ReduceWindowPlan, WindowFold
from xlapy.codegen.kernels.split_sums import (
    STEPS,
    block,
    blocks_of,
    gains_by_splitting,
    nothing_since,
    summed_in_parts,
    taken_over,
)
from xlapy.codegen.kernels.strip import stored_past_caches
from xlapy.codegen.kernels.window_axes import both, carried_loop
from xlapy.codegen.registers import Element, flatten, from_parts, parts_of, register_type, splat, unflatten
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy_runtime.records import Record

SHORTEST = 8  # elements; shorter windows are folded anew

STRIP_BYTES = 2048  # of the operands: more lets the processor fetch what comes next in a row, and stays in cache
LEAST_UNITS = 16  # into which the rows are cut if there are enough vectors, whatever the strips


class ScanPlan(Record):
    """`windows` says how the windows would be folded; the scan runs along `dim`, from its end if `is_reversed`."""

    windows: ReduceWindowPlan
    dim: int
    is_reversed: bool
    strip: int  # vectors side by side in a unit, if lanes are rows
    streaming: bool  # results bypass the caches
    units: int
    bytes_per_unit: int

    @property
    def is_along_lanes(self) -> bool:
        """The scanned dimension is the fastest."""
        return self.windows.inner == self.dim

    @property
    def count(self) -> int:
        return self.windows.axes[self.dim].count

    @property
    def is_split(self) -> bool:
        """What is carried is in two parts."""
        steps = self.count // self.windows.lanes if self.is_along_lanes else self.count
        return gains_by_splitting(sole_operation(self.windows.computation), steps)

    @property
    def strips(self) -> int:
        """Side by side."""
        return 1 if self.is_along_lanes else -(-self.windows.blocks // self.strip)


def plan_scan(windows: ReduceWindowPlan, target: Target) -> ScanPlan | None:
    """How a reduce-window runs as a scan, or None if its window is another."""
    instruction = windows.instruction
    wide = [dim for dim, axis in enumerate(windows.axes) if not axis.is_trivial or axis.size != axis.count]
    if len(wide) != 1:
        return None
    dim = wide[0]
    axis = windows.axes[dim]
    if not axis.is_cumulative or axis.size < SHORTEST:
        return None
    if windows.inner == dim and sole_operation(windows.computation) is None:
        windows = replace(windows, lanes=1)
    rows = math.prod(windows.result.dims) // axis.count
    units, strip = rows, 1
    if windows.inner != dim and windows.inner >= 0:
        rows //= windows.axes[windows.inner].count
        strip = _vectors_of_strip(windows, rows)
        units = rows * -(-windows.blocks // strip)
    total = sum(operand.shape.bytes for operand in instruction.operands) + instruction.shape.bytes
    fills_vectors = windows.inner >= 0 and not windows.axes[windows.inner].count % windows.lanes
    streaming = windows.lanes > 1 and fills_vectors and is_streamed(windows.roots, windows.lanes, target)
    is_reversed = axis.part.padding_high > 0
    return ScanPlan(windows, dim, is_reversed, strip, streaming, units, total // max(units, 1))


def _vectors_of_strip(windows: ReduceWindowPlan, rows: int) -> int:
    """As many as `STRIP_BYTES`, or fewer to make enough units of so many rows."""
    inputs, _ = windows.instruction.grouped_operands()
    vector_bytes: int = windows.lanes * sum(operand.shape.type.bytes for operand in inputs)
    return max(1, min(STRIP_BYTES // vector_bytes, rows * windows.blocks // LEAST_UNITS))


def emit_scan(
    k: KernelBuilder,
    plan: ScanPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """Writes units [begin, end): rows, or strips of neighbouring rows."""
    windows = plan.windows
    with stored_past_caches(k, outputs, streams=plan.streaming and not in_place) as outputs:
        fold = WindowFold(k, windows, _fetched(plan, arrays))
        neutral = changes_nothing(k, fold)
        scalar = Indexing(k, 1)
        outer = [dim for dim in windows.outer if dim != plan.dim]
        with k.loop(begin, end) as units:
            row, strip = scalar.divide(Coordinate(units.index), plan.strips)
            places = scalar.delinearize(row, [windows.axes[dim].count for dim in outer])
            positions = dict(zip(outer, places, strict=True))

            def scanned() -> None:
                if not plan.is_along_lanes:
                    _scan_strip(k, plan, fold, outputs, positions, strip.start)
                elif windows.lanes > 1:
                    _scan_vectors(k, plan, fold, outputs, positions)
                else:
                    _scan_elements(k, plan, fold, outputs, scalar, positions)

            def folded() -> None:
                with k.loop(*_vectors_of(k, plan, strip.start)) as vectors, k.loop(0, plan.count) as loop:
                    ix, here = _place_of(k, plan, positions, vectors.index)
                    here[plan.dim] = Coordinate(loop.index)
                    fold.store(ix, outputs, here, fold.results(ix, here))

            k.if_else(neutral, scanned, folded)


def _fetched(plan: ScanPlan, arrays: Mapping[Instruction, Array]) -> Mapping[Instruction, Array]:
    """The arrays, with what comes next in strips fetched ahead."""
    windows = plan.windows
    if plan.is_along_lanes:
        return arrays
    return fetched_by_rows(arrays, windows.operand.dims, plan.dim, plan.strip * windows.lanes)


def _vectors_of(k: KernelBuilder, plan: ScanPlan, strip: Value) -> tuple[Value, Value]:
    """The vectors of rows [first, end) that a strip has; a row along lanes counts as one."""
    if plan.is_along_lanes:
        return k.const(I64, 0), k.const(I64, 1)
    first = k.mul(strip, plan.strip)
    return first, k.smin(k.add(first, plan.strip), plan.windows.blocks)


def _place_of(
    k: KernelBuilder, plan: ScanPlan, positions: Mapping[int, Coordinate], vector: Value
) -> tuple[Indexing, dict[int, Coordinate]]:
    """Where one of those vectors is, but for the place along the scan; the last one of a row overlaps another."""
    if plan.is_along_lanes:
        return Indexing(k, 1), {**positions}
    windows = plan.windows
    ix = Indexing(k, windows.lanes)
    first = k.smin(k.mul(vector, windows.lanes), windows.axes[windows.inner].count - windows.lanes)
    return ix, {**positions, windows.inner: ix.along_lanes(first)}


def changes_nothing(k: KernelBuilder, fold: WindowFold) -> Value:
    """Folding the initial values into themselves leaves them as they are."""
    unchanged: Value | None = None
    for result, init in zip(fold.combine(fold.inits, fold.inits, 1), fold.inits, strict=True):
        for part, before in zip(parts_of(result), parts_of(init), strict=True):
            unchanged = both(k, unchanged, k.compare("eq", part, before))
    return unchanged if unchanged is not None else k.const(I1, 1)


def load_elements(fold: WindowFold, ix: Indexing, positions: dict[int, Coordinate]) -> list[Element]:
    dims = fold.plan.operand.dims
    index = Index(dims, tuple(positions[dim] for dim in range(len(dims))))
    return [splat(fold.k, element, ix.lanes) for element in fold.elements(ix, index)]


def _in_order(
    plan: ScanPlan, fold: WindowFold, earlier: Sequence[Element], later: Sequence[Element], lanes: int
) -> list[Element]:
    """Combines what was scanned with what comes; in a reversed scan that lies in front of it."""
    return fold.combine(later, earlier, lanes) if plan.is_reversed else fold.combine(earlier, later, lanes)


def _scan_elements(
    k: KernelBuilder,
    plan: ScanPlan,
    fold: WindowFold,
    outputs: Sequence[Array],
    ix: Indexing,
    positions: dict[int, Coordinate],
) -> None:
    """One element after the other; the lanes are rows."""

    def step(number: Value, most: Sequence[Element], running: Sequence[Element]) -> list[Element]:
        place = k.sub(plan.count - 1, number) if plan.is_reversed else number
        here = {**positions, plan.dim: Coordinate(place)}
        grown = _in_order(plan, fold, running, load_elements(fold, ix, here), ix.lanes)
        fold.store(ix, outputs, here, _whole(fold, most, grown, ix.lanes))
        return grown

    initial = [splat(k, init, ix.lanes) for init in fold.inits]
    _carried(k, 0, plan.count, _halves(k, plan, initial), step)


_Halves: TypeAlias = tuple[Sequence[Element], Sequence[Element]]
"""Most of what was scanned, if that is apart, and the rest, or all."""


def _halves(k: KernelBuilder, plan: ScanPlan, initial: Sequence[Element]) -> _Halves:
    return (initial, [nothing_since(k, one) for one in initial]) if plan.is_split else ([], initial)


def _whole(fold: WindowFold, most: Sequence[Element], rest: Sequence[Element], lanes: int) -> Sequence[Element]:
    return fold.combine(most, rest, lanes) if most else rest


def _carried(
    k: KernelBuilder,
    begin: int,
    end: int,
    halves: _Halves,
    step: Callable[[Value, Sequence[Element], Sequence[Element]], Sequence[Element]],
) -> _Halves:
    """A loop that carries what was scanned; `step` gives what the second half becomes."""
    most, rest = halves
    if not most:
        rest = carried_loop(k, k.const(I64, begin), k.const(I64, end), rest, lambda number, all: step(number, [], all))
        return most, rest
    settled, grown = summed_in_parts(k, begin, end, most[0], rest[0], lambda n, one, other: step(n, [one], [other])[0])
    return [settled], [grown]


def _scan_strip(
    k: KernelBuilder,
    plan: ScanPlan,
    fold: WindowFold,
    outputs: Sequence[Array],
    positions: Mapping[int, Coordinate],
    strip: Value,
) -> None:
    """Vectors of rows side by side. What was scanned of several lies in the stack frame, as many registers there are
    not."""
    first, end = _vectors_of(k, plan, strip)
    if plan.strip == 1:
        ix, here = _place_of(k, plan, positions, first)
        _scan_elements(k, plan, fold, outputs, ix, here)
        return
    lanes, width = plan.windows.lanes, k.sub(end, first)
    inits = [splat(k, init, lanes) for init in fold.inits]
    most, rest = (_KeptElements.new(k, half, plan.strip) for half in _halves(k, plan, inits))

    def row(number: Value) -> None:
        along = k.sub(plan.count - 1, number) if plan.is_reversed else number
        with k.loop(first, end) as vectors:
            ix, here = _place_of(k, plan, positions, vectors.index)
            here[plan.dim] = Coordinate(along)
            place = k.sub(vectors.index, first)
            grown = _in_order(plan, fold, rest.load(k, place), load_elements(fold, ix, here), lanes)
            fold.store(ix, outputs, here, _whole(fold, most.load(k, place), grown, lanes))
            rest.store(k, place, grown)

    if not plan.is_split:
        with listening_loop(k, 0, plan.count, weight=plan.strip) as rows:
            row(rows.index)
        return
    with listening_loop(k, 0, blocks_of(0, plan.count), weight=plan.strip * STEPS) as blocks:
        with k.loop(*block(k, blocks.index, 0, plan.count)) as rows:
            row(rows.index)
        with k.loop(0, width) as vectors:
            settled = taken_over(k, most.load(k, vectors.index)[0], rest.load(k, vectors.index)[0])
            most.store(k, vectors.index, settled[:1])
            rest.store(k, vectors.index, settled[1:])


class _KeptElements(Record):
    """Vectors of elements in the stack frame."""

    parts: Sequence[_Kept]
    like: Sequence[Element]

    @classmethod
    def new(cls, k: KernelBuilder, initial: Sequence[Element], count: int) -> _KeptElements:
        kept = cls([_Kept.new(k, part.type, count) for part in flatten(initial)], initial)
        with k.loop(0, count) as vectors:
            kept.store(k, vectors.index, initial)
        return kept

    def load(self, k: KernelBuilder, number: Value) -> list[Element]:
        return unflatten([part.load(k, number) for part in self.parts], self.like)

    def store(self, k: KernelBuilder, number: Value, elements: Sequence[Element]) -> None:
        for part, value in zip(self.parts, flatten(elements), strict=True):
            part.store(k, number, value)


class _Kept(Record):
    """Vectors of a type in the stack frame; truth values as bytes."""

    room: Value
    type: IRType

    @classmethod
    def new(cls, k: KernelBuilder, type: IRType, count: int) -> _Kept:
        wide = I8.with_lanes(type.lanes) if type.element == I1 else type
        return cls(k.alloca(wide, count, align=CACHE_LINE), type)

    def load(self, k: KernelBuilder, number: Value) -> Value:
        if self.type.element == I1:
            return k.compare("ne", k.load(self._place(k, number), I8.with_lanes(self.type.lanes)), 0)
        return k.load(self._place(k, number), self.type)

    def store(self, k: KernelBuilder, number: Value, value: Value) -> None:
        if self.type.element == I1:
            value = k.zext(value, I8.with_lanes(self.type.lanes))
        k.store(self._place(k, number), value)

    def _place(self, k: KernelBuilder, number: Value) -> Value:
        return k.gep(self.room, number, self.type.bytes * self.type.lanes)


class LaneScan(Record):
    """How vectors are scanned: on numbers into which elements are turned, and from which results are turned back. What
    is combined with `identity` stays as it is."""

    encode: Callable[[Element], Element]
    combine: Callable[[Element, Element, int], Element]  # what comes first, what follows, lanes
    decode: Callable[[Element], Element]
    identity: Element


def lane_scan(k: KernelBuilder, plan: ScanPlan, fold: WindowFold) -> LaneScan:
    """Extrema of floats are those of integers in the same order."""
    operation = sole_operation(plan.windows.computation)
    assert operation is not None
    type = register_type(operation.shape.type)
    if type.is_float and operation.opcode in ("maximum", "minimum"):
        order = FloatOrder(k, type, operation.opcode == "maximum")
        first = k.const(type.integer(), 0 if operation.opcode == "maximum" else -1)

        def extreme(one: Element, other: Element, lanes: int) -> Element:
            return order.extreme(only(one), only(other))

        return LaneScan(lambda x: order.encode(only(x)), extreme, lambda x: order.decode(only(x)), first)

    def combine(earlier: Element, later: Element, lanes: int) -> Element:
        return _in_order(plan, fold, [earlier], [later], lanes)[0]

    return LaneScan(lambda x: x, combine, lambda x: x, identity_element(k, operation))


def _scan_vectors(
    k: KernelBuilder, plan: ScanPlan, fold: WindowFold, outputs: Sequence[Array], positions: dict[int, Coordinate]
) -> None:
    """Vectors of neighbours, each scanned in itself and then combined with all before it; the rest one by one."""
    lanes = plan.windows.lanes
    vector, scalar = Indexing(k, lanes), Indexing(k, 1)
    whole = plan.count // lanes
    end = 0 if plan.is_reversed else lanes - 1  # the lane that has everything so far
    scan = lane_scan(k, plan, fold)

    def place(first: Value, ix: Indexing) -> dict[int, Coordinate]:
        start = k.sub(plan.count - ix.lanes, first) if plan.is_reversed else first
        return {**positions, plan.dim: ix.along_lanes(start)}

    def of_vector(number: Value, most: Sequence[Element], running: Sequence[Element]) -> list[Element]:
        """The total so far comes from those before it and the vector: so it does not wait for lanes of the results."""
        here = place(k.mul(number, lanes), vector)
        (element,), (before,) = load_elements(fold, vector, here), running
        own = scanned_vector(k, plan, scan, scan.encode(element))
        done = _whole(fold, most, [scan.combine(before, own, lanes)], lanes)
        fold.store(vector, outputs, here, [scan.decode(done[0])])
        total = from_parts([k.shuffle(part, None, [end] * lanes) for part in parts_of(own)])
        return [scan.combine(before, total, lanes)]

    def of_element(number: Value, most: Sequence[Element], running: Sequence[Element]) -> list[Element]:
        here = place(number, scalar)
        grown = _in_order(plan, fold, running, load_elements(fold, scalar, here), 1)
        fold.store(scalar, outputs, here, _whole(fold, most, grown, 1))
        return grown

    def lane(totals: Sequence[Element]) -> list[Element]:
        return [scan.decode(from_parts([k.extract(part, end) for part in parts_of(total)])) for total in totals]

    halves = _halves(k, plan, list(fold.inits))
    if whole:
        initial = [scan.encode(splat(k, init, lanes)) for init in fold.inits]
        most, rest = _carried(k, 0, whole, _halves(k, plan, initial), of_vector)
        halves = lane(most), lane(rest)
    if whole * lanes < plan.count:
        _carried(k, whole * lanes, plan.count, halves, of_element)


def scanned_vector(k: KernelBuilder, plan: ScanPlan, scan: LaneScan, element: Element) -> Element:
    """Each lane combined with all lanes before it (behind it, if reversed), by doubling distances."""
    lanes = plan.windows.lanes
    identity = splat(k, scan.identity, lanes)
    distance = 1
    while distance < lanes:
        if plan.is_reversed:
            order = range(distance, lanes + distance)  # lanes from the end on are the identity's
        else:
            order = range(lanes - distance, 2 * lanes - distance)
        pairs = zip(parts_of(element), parts_of(identity), strict=True)
        parts = [
            k.shuffle(part, neutral, order) if plan.is_reversed else k.shuffle(neutral, part, order)
            for part, neutral in pairs
        ]
        element = scan.combine(from_parts(parts), element, lanes)
        distance *= 2
    return element
