"""Select-and-scatter kernels.

Windows are taken row after row, as the rows lie in memory: a row of the result is filled with the initial value when
the first window reaches it, and is in a cache until the last one has added to it. Lanes lie across a fastest dimension
that the window leaves alone; each selects an element of its own.

A unit of work owns some rows of the result. It looks at all windows that reach these, those of its neighbours as well,
and scatters only to its own rows. So the order of what is added to an element never depends on how units are split.

What is selected is known as a place of the window. If there are several lanes, each place of the result is loaded,
updated in the lanes that selected it, and stored; scattering lane by lane would take several times as long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array, zero_element
from xlapy.codegen.element_graph import ElementGraph
from xlapy.codegen.indexing import SCALAR, Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.reduce_window import UNROLLED_INSTRUCTIONS
from xlapy.codegen.kernels.select_and_scatter_plan import SelectAndScatterPlan
from xlapy.codegen.kernels.window_axes import WindowAxis, both, carried_choice, carried_loop, shared_rows
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element, from_parts, parts_of, select, splat
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_inlinable
from xlapy.hlo.shape import Shape


def emit_select_and_scatter(
    k: KernelBuilder,
    plan: SelectAndScatterPlan,
    arrays: Mapping[Instruction, Array],
    output: Array,
    begin: Value,
    end: Value,
) -> None:
    """Writes units [begin, end)."""
    scalar = Indexing(k, 1)
    with k.loop(begin, end) as units:
        places = scalar.delinearize(Coordinate(units.index), plan.unit_sizes)
        leading = dict(zip(plan.leading, places, strict=False))
        block = places[-1].start if plan.unit_rows else None
        _Unit(k, plan, arrays, output, leading, block).emit()


Positions = Mapping[int, Coordinate]
"""Where loops are, by dimension."""


class _Unit:
    """Writes the code of one unit; `leading` says where it is, and `block` the number of its rows, if there are several
    such blocks."""

    def __init__(
        self,
        k: KernelBuilder,
        plan: SelectAndScatterPlan,
        arrays: Mapping[Instruction, Array],
        output: Array,
        leading: Positions,
        block: Value | None,
    ) -> None:
        self._k = k
        self._plan = plan
        self._ix = Indexing(k, plan.lanes)
        self._arrays = arrays
        self._array = arrays[plan.found.array]
        self._output = output
        _, self._source, init = plan.selection.operands
        self._init = splat(k, self._scalar(init), plan.lanes)
        self._nothing = splat(k, zero_element(k, plan.operand, 1), plan.lanes)
        beside = plan.found.beside
        self._beside = None if beside is None else splat(k, self._scalar(beside), plan.lanes)
        self._leading = {dim: self._free(dim, at.start) for dim, at in leading.items()}
        self._block = block
        self._rows = self._own_rows() if plan.touched else None

    def _scalar(self, value: Instruction) -> Element:
        return ElementGraph(Indexing(self._k, 1), self._arrays).values([(value, SCALAR)])[0]

    def emit(self) -> None:
        """Fills rows as windows reach them, and takes the windows."""
        k, plan = self._k, self._plan
        if self._rows is None:
            self._over(plan.inner, self._leading, self._element)
            return
        low, high = self._rows
        row = plan.windows[0]
        first, last = self._rows_of_windows()

        def reached(position: Value) -> Value:
            """The end of the own rows that the windows up to some row of them see."""
            end = k.add(k.mul(position, row.part.stride), row.part.size - row.part.padding_low)
            return k.smin(k.smax(end, low), high)

        with k.loop(first, last) as windows:
            before = reached(k.sub(windows.index, 1))
            self._fill(k.select(k.compare("eq", windows.index, first), low, before), reached(windows.index))
            positions = {**self._leading, plan.touched[0]: Coordinate(windows.index)}
            self._over(plan.touched[1:], positions, self._windows, [range(size) for size in plan.source.dims])
        self._fill(k.select(k.compare("lt", first, last), reached(k.sub(last, 1)), low), high)

    def _own_rows(self) -> tuple[Value, Value]:
        """The range of rows of the result that the unit owns."""
        k, plan, row, kept = self._k, self._plan, self._plan.windows[0], self._plan.kept[0]
        if self._block is None:
            return k.const(I64, kept.start), k.const(I64, kept.stop)
        distance = plan.unit_rows * row.part.stride
        start = k.sub(k.mul(self._block, distance), row.part.padding_low)
        low, high = (k.smin(k.smax(at, kept.start), kept.stop) for at in (start, k.add(start, distance)))
        is_first, is_last = (k.compare("eq", self._block, number) for number in (0, plan.unit_sizes[-1] - 1))
        return k.select(is_first, kept.start, low), k.select(is_last, kept.stop, high)

    def _rows_of_windows(self) -> tuple[Value, Value]:
        """The range of rows of windows that reach these."""
        k, plan, row = self._k, self._plan, self._plan.windows[0]
        if self._block is None:
            return k.const(I64, 0), k.const(I64, row.count if plan.source.size else 0)
        first = k.mul(self._block, plan.unit_rows)
        return k.smax(k.sub(first, shared_rows(row)), 0), k.smin(k.add(first, plan.unit_rows), row.count)

    def _free(self, dim: int, number: Value) -> Coordinate:
        """Where the elements with that number lie along a free dimension."""
        lanes = self._plan.steps[dim]
        return self._ix.along_lanes(self._k.mul(number, lanes)) if lanes > 1 else Coordinate(number)

    def _over(
        self,
        dims: Sequence[int],
        positions: Positions,
        body: Callable[[Positions], None],
        spans: Sequence[range] | None = None,
    ) -> None:
        """Loops over `dims`, outermost first, where the result is kept if nothing else is said."""
        if not dims:
            body(positions)
            return
        dim, *others = dims
        spans = self._plan.found.kept if spans is None else spans
        if dim in self._plan.touched:
            with self._k.loop(spans[dim].start, spans[dim].stop) as loop:
                self._over(others, {**positions, dim: Coordinate(loop.index)}, body, spans)
        else:
            with self._k.loop(0, len(spans[dim]) // self._plan.steps[dim]) as loop:
                self._over(others, {**positions, dim: self._free(dim, loop.index)}, body, spans)

    def _element(self, positions: Positions) -> None:
        """The result of a window of one element."""
        self._store(positions, self._scattered(self._init, positions))

    def _store(self, positions: Positions, element: Element) -> None:
        """Writes one element of the result, the same in all lanes or one for each."""
        output = _flat(self._output)
        at = self._number(self._output, self._plan.found.kept, positions)
        output.store(self._ix, Index(output.shape.dims, None, at), element)

    def _fill(self, begin: Value, end: Value) -> None:
        """Writes the initial value to rows of the result, unless windows write all elements anyway."""
        plan = self._plan
        if plan.is_tiling and plan.by_places:
            return
        first, *others = plan.touched
        inside = [dim for dim in reversed(plan.operand.minor_to_major) if dim in (*others, *plan.inner)]

        with self._k.loop(begin, end) as rows:
            positions = {**self._leading, first: Coordinate(rows.index)}
            self._over(inside, positions, lambda each: self._store(each, self._init))

    # -- windows -------------------------------------------------------------------------------------------------------

    def _windows(self, positions: Positions) -> None:
        """All windows at one position: most of them see nothing but own rows of the array."""

        def take(is_whole: bool) -> None:
            self._over(self._plan.inner, positions, lambda each: self._window(each, is_whole))

        whole = self._are_whole(positions) if self._plan.by_places else None
        if whole is None:
            take(True)
        else:
            self._k.if_else(whole, lambda: take(True), lambda: take(False))

    def _are_whole(self, positions: Positions) -> Value | None:
        """All places of windows lie on elements of the array that the unit may write; None if they always do."""
        k, plan, whole = self._k, self._plan, None
        for dim, axis, read, kept in zip(plan.touched, plan.windows, plan.read, plan.kept, strict=True):
            both_in = range(max(read.start, kept.start), min(read.stop, kept.stop))
            rows = self._rows if self._block is not None and dim == plan.touched[0] else None
            if rows is None and _always_lies_in(axis, both_in):
                continue
            start = k.sub(k.mul(positions[dim].start, axis.part.stride), axis.part.padding_low)
            end = k.add(start, axis.part.size)
            whole = both(k, whole, _are_in_order(k, both_in.start, start, end, both_in.stop))
            if rows is not None:
                whole = both(k, whole, _are_in_order(k, rows[0], start, end, rows[1]))
        return whole

    def _window(self, positions: Positions, is_whole: bool) -> None:
        """Selects an element in each lane, and scatters the source element to it."""
        start = dict(positions)
        for dim, axis in zip(self._plan.touched, self._plan.windows, strict=True):
            start[dim] = self._ix.add(self._ix.scale(positions[dim], axis.part.stride), -axis.part.padding_low)
        if self._plan.by_places:
            self._scatter_to_places(positions, start, self._number_of_place(positions, start, is_whole), is_whole)
        else:
            self._scatter_to_elements(positions, start, *self._selected(positions, start))

    def _places(self) -> Iterator[tuple[int, ...]]:
        """The places of the window, by touched dimension."""
        return itertools.product(*(range(axis.part.size) for axis in self._plan.windows))

    def _is_inside(self, positions: Positions, offsets: Sequence[Value]) -> Value | None:
        """There is an element at a place of the window; None if there is one everywhere."""
        inside: Value | None = None
        for dim, axis, offset in zip(self._plan.touched, self._plan.windows, offsets, strict=True):
            inside = both(self._k, inside, axis.locate(self._ix, positions[dim], offset)[1])
        return inside

    def _lies_in(self, start: Positions, place: Sequence[int], spans: Sequence[range]) -> Value | None:
        """A place of the window lies in parts of the touched dimensions; None if all of them do."""
        k, plan = self._k, self._plan
        inside: Value | None = None
        for dim, axis, offset, span in zip(plan.touched, plan.windows, place, spans, strict=True):
            if not _always_lies_in(axis, span):
                distance = k.sub(k.add(start[dim].start, offset), span.start)
                inside = both(k, inside, k.compare("lt", distance, len(span), signed=False))
        return inside

    def _is_own(self, start: Positions, place: Sequence[int]) -> Value | None:
        """A place of the window lies in own rows of the result."""
        k, inside = self._k, self._lies_in(start, place, self._plan.kept)
        if self._block is None or self._rows is None:
            return inside
        row = k.add(start[self._plan.touched[0]].start, place[0])
        low, high = self._rows
        return both(k, inside, k.and_(k.compare("ge", row, low), k.compare("lt", row, high)))

    def _numbers(self, offsets: Sequence[int]) -> list[Value]:
        return [self._k.const(I64, offset) for offset in offsets]

    def _number(self, array: Array, spans: Sequence[range], positions: Positions) -> Coordinate:
        """How many elements of an array that lies in `spans` come before one in memory. The number is negative for
        places in front of it."""
        moved = [self._ix.add(positions[dim], -span.start) for dim, span in enumerate(spans)]
        return self._ix.linearize(moved, array.shape.strides())

    def _number_of_place(self, positions: Positions, start: Positions, is_whole: bool) -> Value:
        """The number of the place that each lane selects, -1 if there is no element in the window."""
        k, ix, plan = self._k, self._ix, self._plan
        first = self._number(self._array, plan.found.read, start)
        numbers = I32.with_lanes(ix.lanes)
        running: list[Element] = [k.const(I1, 0), k.const(numbers, -1), self._nothing]
        for number, place in enumerate(self._places()):
            element = ix.add(first, _distance(self._array.shape, plan.touched, place))
            in_array = None if is_whole else self._lies_in(start, place, plan.read)
            inside = None if is_whole else self._is_inside(positions, self._numbers(place))
            look = partial(self._looked_at, element, in_array, k.const(numbers, number), running)
            running = carried_choice(k, inside, running, look, partial(list, running))
        chosen = running[1]
        assert isinstance(chosen, Value)
        return chosen

    def _looked_at(
        self, element: Coordinate, in_array: Value | None, number: Value, seen: Sequence[Element]
    ) -> list[Element]:
        """What is selected once one more element was looked at, with a condition for there being one in memory."""
        beside = self._nothing if self._beside is None else self._beside
        (value,) = carried_choice(self._k, in_array, [beside], lambda: [self._loaded(element)], partial(list, [beside]))
        return self._looked(value, number, seen)

    def _loaded(self, element: Coordinate) -> Element:
        """The elements of the array with these numbers in memory."""
        array, ix = _flat(self._array), self._ix
        return splat(self._k, array.load(ix, Index(array.shape.dims, None, element)), ix.lanes)

    def _looked(self, value: Element, number: Value, seen: Sequence[Element]) -> list[Element]:
        """What is selected then: (found, number, value)."""
        k, ix = self._k, self._ix
        found, chosen, best = seen
        assert isinstance(found, Value) and isinstance(chosen, Value)
        if found.constant == 0:
            return [k.const(I1, 1), number, value]
        keep = _keeps(k, self._plan.selection.called[0], found, best, value, ix.lanes)
        return [k.const(I1, 1), k.select(keep, chosen, number), select(k, keep, best, value)]

    def _scatter_to_places(self, positions: Positions, start: Positions, chosen: Value, is_whole: bool) -> None:
        """Updates the lanes of each place that selected it."""
        k, ix = self._k, self._ix
        output, first = _flat(self._output), self._number(self._output, self._plan.found.kept, start)
        only = self._scattered(self._init, positions) if self._plan.is_disjoint else None
        for number, place in enumerate(self._places()):
            at = ix.add(first, _distance(self._output.shape, self._plan.touched, place))
            index = Index(output.shape.dims, None, at)
            own = None if is_whole else self._is_own(start, place)
            with nullcontext() if own is None else k.if_(own):
                old = self._loaded_apart(output, index) if only is None else self._init
                new = self._scattered(old, positions) if only is None else only
                is_chosen = k.compare("eq", chosen, k.const(chosen.type, number))
                output.store(ix, index, select(k, is_chosen, new, old))

    def _loaded_apart(self, output: Array, index: Index) -> Element:
        """Lanes that no window selects are stored as they were."""
        return from_parts([self._k.apart(part) for part in parts_of(output.load(self._ix, index))])

    def _selected(self, positions: Positions, start: Positions) -> tuple[Value, Value]:
        """Whether there is an element in the window, and how far each lane's is behind the start of the result's."""
        k, ix, plan = self._k, self._ix, self._plan
        first = self._number(self._array, plan.found.read, start)
        running: list[Element] = [k.const(I1, 0), k.const(I64.with_lanes(ix.lanes), 0), self._nothing]

        def visit(offsets: Sequence[Value], seen: Sequence[Element]) -> list[Element]:
            def look() -> list[Element]:
                element = ix.add(first, _moved(k, self._array.shape, plan.touched, offsets))
                distance = k.splat(_moved(k, self._output.shape, plan.touched, offsets), ix.lanes)
                return self._looked(self._loaded(element), distance, seen)

            return carried_choice(k, self._is_inside(positions, offsets), seen, look, lambda: seen)

        sizes = [axis.part.size for axis in plan.windows]
        if math.prod(sizes) * len(plan.selection.called[0]) <= UNROLLED_INSTRUCTIONS:
            for place in self._places():
                running = visit(self._numbers(place), running)
        else:

            def nest(offsets: Sequence[Value], values: Sequence[Element]) -> Sequence[Element]:
                if len(offsets) == len(sizes):
                    return visit(offsets, values)
                begin, end = k.const(I64, 0), k.const(I64, sizes[len(offsets)])
                return carried_loop(k, begin, end, values, lambda offset, inner: nest([*offsets, offset], inner))

            running = list(nest([], running))
        found, chosen, _ = running
        assert isinstance(found, Value) and isinstance(chosen, Value)
        return found, chosen

    def _scatter_to_elements(self, positions: Positions, start: Positions, found: Value, chosen: Value) -> None:
        """Updates the element that each lane selected."""
        k, ix = self._k, self._ix
        output, first = _flat(self._output), self._number(self._output, self._plan.found.kept, start)
        with k.if_(found):
            index = Index(output.shape.dims, None, ix.at(k.add(chosen, ix.vector(first))))
            output.store(ix, index, self._scattered(output.load(ix, index), positions))

    def _scattered(self, old: Element, positions: Positions) -> Element:
        """What becomes of elements of the result to which the source elements of a window are scattered."""
        index = Index(self._plan.source.dims, tuple(positions[dim] for dim in range(self._plan.source.rank)))
        (source,) = ElementGraph(self._ix, self._arrays).values([(self._source, index)])
        return emit_region(self._k, self._plan.selection.called[1], [old, source])[0]


def _are_in_order(k: KernelBuilder, low: Value | int, start: Value, end: Value, high: Value | int) -> Value:
    return k.and_(k.compare("ge", start, low), k.compare("le", end, high))


def _always_lies_in(axis: WindowAxis, span: range) -> bool:
    """All places of the window, in all its positions, lie in a part of the dimension."""
    last = (axis.count - 1) * axis.part.stride + axis.part.size - axis.part.padding_low
    return -axis.part.padding_low >= span.start and last <= span.stop


def _flat(array: Array) -> Array:
    """The array as a line of elements, as they lie in memory."""
    return replace(array, shape=Shape.array(array.shape.type, (array.shape.size,)))


def _distance(shape: Shape, dims: Sequence[int], place: Sequence[int]) -> int:
    """Elements in memory from the first place of a window over some dimensions to another one."""
    strides = shape.strides()
    return sum(offset * strides[dim] for dim, offset in zip(dims, place, strict=True))


def _moved(k: KernelBuilder, shape: Shape, dims: Sequence[int], offsets: Sequence[Value]) -> Value:
    """The same, where the place is known at run time only."""
    strides = shape.strides()
    distance = k.const(I64, 0)
    for dim, offset in zip(dims, offsets, strict=True):
        distance = k.add(distance, k.mul(offset, strides[dim]))
    return distance


def _keeps(k: KernelBuilder, selection: Computation, found: Value, best: Element, value: Element, lanes: int) -> Value:
    """The lanes that keep what they found. A function is not asked about what nobody found: it might loop forever."""

    def ask() -> Value:
        (keeps,) = emit_region(k, selection, [best, value])
        assert isinstance(keeps, Value)
        return k.splat(keeps, lanes)

    if is_inlinable(selection):
        return k.and_(ask(), k.splat(found, lanes))
    return k.if_else(found, ask, lambda: k.const(I1.with_lanes(lanes), 0))[0]
