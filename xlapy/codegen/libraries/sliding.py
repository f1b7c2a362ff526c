"""Folds of windows over rows and positions, with channels side by side in lanes, as `sliding_plan` finds them.

    slide_OPERATION_TYPE.V          V vectors of channels side by side
    slide_OPERATION_TYPE_MAP.V      the same of what `sliding_maps` makes from the elements
    slide_OPERATION_TYPE_W.V        the same of windows of W places in a row, with _MAP or without

The results of a tile are in registers while the places of the window run; tiles lie where all places of a row are
inside, and the positions beside them go one by one, over those places that are. The places of a short row are written
out: a loop over two or three costs more than what they fold. Results are folded place by place, those outside left out,
in the order of the window; extrema in whichever way takes the least time. Results that no cache holds go past the
caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product, starmap

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I64, KernelBuilder, Module, Value
from xlapy.codegen.kernels.float_order import (
    FloatOrder,
    extreme_of_numbers,
    finds_integers_sooner,
)
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.libraries.sliding_folds import FOLD_NUMBERS, FoldingLines, fold_numbers
from xlapy.codegen.libraries.sliding_lines import (
    LEAST_SIZE,
    LINE_NUMBERS,
    LineWriter,
    Range,
    SlidingCall,
    Steps,
    line_numbers,
    module_of_lines,
    positions_inside,
    sliding_call,
)
from xlapy.codegen.libraries.sliding_maps import CHANNELS, ITSELF, MAPS, SlidingMap
from xlapy.codegen.libraries.sliding_plan import TYPES, Sliding, sliding_fold
from xlapy.codegen.libraries.sliding_planes import call_of_planes
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction

_NUMBERS_OF_CHANNELS = tuple(f"numbers_{leaf.value}" for leaf in CHANNELS)
NUMBERS = (
    *(*LINE_NUMBERS, *_NUMBERS_OF_CHANNELS, "inside", "first", *FOLD_NUMBERS, "streams"),
    *("fetched_first", "fetched_rows"),
)
"""By name, in order: behind those of `sliding_lines`, places in the table of the arrays of numbers for channels, if
there are such; the positions of which all places are inside, and the first of them; the bits of what folds begin with,
and of what results are multiplied or divided by; whether these are better stored past the caches; and which rows are
fetched ahead, from the first one of the window on.

What is fetched is as far ahead as the next row of results, into the second-level cache: the rows that only the windows
there see. What comes sooner the processor fetches itself, and gets a third more of it if nobody interferes. One that
waits for memory (`_asks_ahead`) does not: it is told what comes a page later in the rows that are new, and needs
a fifth less time; a tenth less where windows do not overlap."""

LEAST_MAPPED = LEAST_SIZE // 2
"""Results of what is made first: that is a part of the work that is the same either way. (What is only rectified is
not made at all: its folds begin with zero.)"""

LEAST_ROW_WORK, LEAST_IN_LONG_ROWS = 1000, 1 << 9
"""Elements that are folded in a row of windows, and results: what a row takes besides is little then (Zen 3, 2 by 2
places: 16 results of 32 channels in a row as fast as a kernel for just these, 7 results of 16 channels 1.3 times)."""

LEAST_EXTREMA = 1 << 9
"""Results where extrema of numbers take two instructions, and in a kernel, which looks for NaNs at every step, more: on
one core of an Intel server, 2 by 2 places of 16 channels take 0.7 to 1 of the time, and half of it to compile."""

VECTORS = (4, 2, 1)
WIDTHS, ANY_WIDTH = (2, 3), 0
"""Places of a window in a row that are written out; functions for any width have a loop over them."""

TILE = 4
"""Vectors of results in a tile: enough to hide the latency of sums. More positions at a time would read memory in
pieces of a pixel, of all rows and places of the window by turns: 1.5 times as slow where no cache holds the array."""


def call_of_windows(computation: Computation, target: Target) -> SlidingCall | None:
    """How a library computes a fused computation that is nothing but a fold of windows."""
    found = sliding_fold(computation.root, lambda source: source.opcode == "parameter")
    if found is None:
        return None
    arrays = [FIRST_ARRAY + array.attributes["number"] for array in (found.source, *found.numbers)]
    return _call(computation.root, found, arrays, FIRST_ARRAY + len(computation.parameters), target)


def call_of_window(instruction: Instruction, target: Target) -> SlidingCall | None:
    """The same of one instruction by itself."""
    found = sliding_fold(instruction, lambda source: source is instruction.operands[0])
    if found is None:
        return None
    return _call(instruction, found, [FIRST_ARRAY], FIRST_ARRAY + len(instruction.operands), target)


def _call(
    root: Instruction, sliding: Sliding, arrays: Sequence[int], result: int, target: Target
) -> SlidingCall | None:
    """Of arrays, the source first, and of the result `root`, in these places of the table."""
    if sliding.channels == 1:
        return call_of_planes(sliding, arrays[0], result, target)
    lanes, bytes = _lanes(sliding.type, target), sliding.type.bytes
    rows, positions = sliding.axes
    vectors = next((count for count in VECTORS if sliding.channels >= count * lanes), None)
    line = positions.count * sliding.channels
    if vectors is None or not _is_worth_a_call(sliding, sliding.images * rows.count * line, vectors, target):
        return None
    pixel = sliding.channels * bytes
    read, written = (
        Steps(lines * cells * pixel, cells * pixel, pixel)
        for lines, cells in ((rows.size, positions.size), (rows.count, positions.count))
    )
    values = line_numbers(sliding.axes, sliding.channels, (arrays[0], read), (result, written))
    values |= dict.fromkeys(_NUMBERS_OF_CHANNELS, 0) | dict(zip(_NUMBERS_OF_CHANNELS, arrays[1:], strict=False))
    values |= dict(zip(("first", "inside"), positions_inside(positions), strict=True))
    values |= fold_numbers(sliding)
    values["streams"] = int(is_streamed([root], lanes, target) and sliding.channels % lanes == 0)
    values |= dict(zip(("fetched_first", "fetched_rows"), _fetched(rows, read, sliding, target), strict=True))
    width = _written_out(sliding.operation, positions, target)
    kind = sliding.operation, sliding.type, width, sliding.map
    units = sliding.images * rows.count
    work = line * rows.part.size * positions.part.size * bytes
    numbers = tuple(values[name] for name in NUMBERS)
    call = LibraryCall(library_name(*kind), function_name(*kind, vectors), numbers)
    return sliding_call(call, rows, units, work)


def _is_worth_a_call(sliding: Sliding, results: int, vectors: int, target: Target) -> bool:
    """A kernel for just these shapes would hardly be faster, if at all."""
    rows, positions = sliding.axes
    if sliding.operation != "add" and target.has_range:
        return results >= LEAST_EXTREMA
    row_work = positions.count * sliding.channels * rows.part.size * positions.part.size
    has_long_rows = vectors > 1 and row_work >= LEAST_ROW_WORK and results >= LEAST_IN_LONG_ROWS
    return results >= (LEAST_SIZE if sliding.map is ITSELF else LEAST_MAPPED) or has_long_rows


def _written_out(operation: str, positions: WindowAxis, target: Target) -> int:
    """Places in a row that the function is for. Extrema among integers are as much work as a loop over them."""
    pays = operation == "add" or target.has_range
    return positions.part.size if pays and positions.part.size in WIDTHS else ANY_WIDTH


def _fetched(rows: WindowAxis, read: Steps, sliding: Sliding, target: Target) -> tuple[int, int]:
    """Rows that are to be fetched: the first one and how many. None of an array that the last cache holds, or where
    each row is seen once, so that most processors need no help."""
    part = rows.part
    is_far = part.window_dilation == 1 and sliding.images * read.image > target.l3_bytes
    if is_far and _asks_ahead(target):
        return max(part.size - part.stride, 0), min(part.size, part.stride)
    pays = is_far and part.size > part.stride
    is_near = (part.size + part.stride) * read.row <= target.l2_bytes // 2
    count = part.stride if pays and is_near else 0
    return part.size + part.stride - count, count


def _asks_ahead(target: Target) -> bool:
    """A core that reads several rows side by side as fast as it should is disturbed here, too."""
    return target.asks_ahead and not target.reads_side_by_side


def library_name(operation: str, type: ElementType, width: int, map: SlidingMap) -> str:
    parts = [
        "slide",
        operation,
        type.name,
        *([str(width)] if width != ANY_WIDTH else []),
        *([map.name] if map.name else []),
    ]
    return "_".join(parts)


def function_name(operation: str, type: ElementType, width: int, map: SlidingMap, vectors: int) -> str:
    return f"{library_name(operation, type, width, map)}.{vectors}"


def _lanes(type: ElementType, target: Target) -> int:
    return target.lanes(type.bits)


def emit_sliding(operation: str, type: ElementType, width: int, map: SlidingMap, target: Target) -> Module:
    def writer(vectors: int) -> LineWriter:
        return lambda k: _Rows(k, operation, type, width, map, target, vectors)

    names = {count: function_name(operation, type, width, map, count) for count in VECTORS}
    return module_of_lines(target, {name: writer(count) for count, name in names.items()})


def _library(operation: str, type: ElementType, width: int, map: SlidingMap) -> Library:
    kind = operation, type, width, map
    names = tuple(function_name(*kind, vectors) for vectors in VECTORS)
    return Library(library_name(*kind), names, partial(emit_sliding, *kind), most_parts=2)


SLIDING_LIBRARIES = {
    library.name: library
    for operation, maps in MAPS.items()
    for library in starmap(_library, product((operation,), TYPES, (*WIDTHS, ANY_WIDTH), maps))
}
"""By name."""


_Step = Callable[[Sequence[Value], Sequence[Value]], list[Value]]
_Fold = Callable[[Sequence[Value], _Step], list[Value]]


class _Rows(FoldingLines):
    """Writes one function."""

    def __init__(
        self,
        k: KernelBuilder,
        operation: str,
        type: ElementType,
        width: int,
        map: SlidingMap,
        target: Target,
        vectors: int,
    ) -> None:
        lanes = _lanes(type, target)
        super().__init__(k, NUMBERS, operation, type, lanes)
        self._width = width
        self._asks_ahead = _asks_ahead(target)
        self._tile = TILE // vectors
        self._map = map
        self._vector_bytes = lanes * type.bytes
        self._vectors = vectors
        in_order = operation in ("maximum", "minimum") and finds_integers_sooner(self._vector.element, target)
        self._order = FloatOrder(k, self._vector.element, operation == "maximum") if in_order else None
        self._is_maximum = operation == "maximum"
        self._finds_numbers = self._order is not None and target.has_range
        self._initial = k.splat(self._float("init"), lanes)
        misplaced = k.and_(k.address(self._array("result")), self._vector_bytes - 1)
        self._streams = k.and_(k.compare("ne", self["streams"], 0), k.compare("eq", misplaced, 0))

    def emit(self) -> None:
        super().emit()
        with self._k.if_(self._streams):
            self._k.fence()

    def _line(self, source: Value, result: Value, rows: Sequence[Range]) -> None:
        """One row: tiles where all places are inside, the last of which may overlap; single positions beside them."""
        k, tile = self._k, self._tile
        first, inside, count = self["first"], self["inside"], self["position_count"]
        covered = k.select(k.compare("ge", inside, tile), inside, 0)
        with k.loop(0, covered, tile) as loop:
            position = k.add(first, k.smin(loop.index, k.sub(covered, tile)))
            self._positions(*self._at(source, result, position), rows[0], None)
        with k.loop(0, k.sub(count, covered)) as loop:
            is_behind = k.compare("ge", loop.index, first)
            position = k.add(loop.index, k.select(is_behind, covered, 0))
            _, places = self._places_mostly_dense("position", position)
            self._positions(*self._at(source, result, position), rows[0], places)

    def _positions(self, source: Value, result: Value, rows: Range, places: Range | None) -> None:
        """All channels of a tile, of which all places of the given rows are inside, or of one position, of which the
        given places are; the last vectors may overlap those before them."""
        k = self._k
        tile = self._tile if places is None else 1
        width = self._vectors * self._vector.lanes
        with k.loop(0, self["channels"], width, runs=True) as loop:
            channel = k.mul(k.smin(loop.index, k.sub(self["channels"], width)), self._type.bytes)
            numbers = self._numbers_of_channels(channel)
            self._fetch(k.gep(source, channel), tile)
            sums = self._tile_of(k.gep(source, channel), numbers, rows, places, tile)
            store = partial(self._store, k.gep(result, channel), self._scaled(sums))
            k.if_else(self._streams, partial(store, past_caches=True), store)

    def _fetch(self, source: Value, tile: int) -> None:
        """What the windows of the next row see below those of a tile, which begin at `source`, or what windows behind
        these see."""
        k = self._k
        first = k.gep(source, k.mul(self["fetched_first"], self["row_source"]))
        first, level = (k.gep(first, FETCHED_AHEAD), 1) if self._asks_ahead else (first, 2)
        with k.loop(0, self["fetched_rows"]) as row, k.loop(0, k.mul(self["position_stride"], tile)) as position:
            line = k.gep(first, k.mul(row.index, self["row_source"]))
            pixel = k.gep(line, k.mul(position.index, self["position_source"]))
            k.prefetch(pixel, self._vectors * self._vector_bytes, level=level)

    def _store(self, result: Value, sums: Sequence[Value], *, past_caches: bool = False) -> None:
        k, cells = self._k, iter(sums)
        for goal in self._moved(result, self["position_result"], len(sums) // self._vectors):
            for vector in range(self._vectors):
                place, align = k.gep(goal, vector * self._vector_bytes), self._vector_bytes if past_caches else None
                k.store(place, next(cells), align=align, nontemporal=past_caches)

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

    def _tile_of(
        self, source: Value, numbers: Sequence[Sequence[Value]], rows: Range, places: Range | None, tile: int
    ) -> list[Value]:
        """The results of a tile, of all places in a row if nothing else is said."""
        folded = partial(self._folded, source, numbers, rows, places, tile)
        initial = [self._initial] * (tile * self._vectors)
        if not self._order:
            return folded(initial, self._combined)
        if places is not None or not self._finds_numbers:
            return self._in_order(folded, initial, self._order)
        return self._numbers_or_in_order(folded, initial, self._order)

    def _in_order(self, folded: _Fold, initial: Sequence[Value], order: FloatOrder) -> list[Value]:
        """Extrema among integers."""

        def step(totals: Sequence[Value], elements: Sequence[Value]) -> list[Value]:
            pairs = zip(totals, elements, strict=True)
            return [order.extreme(total, order.encode(element)) for total, element in pairs]

        return [order.decode(result) for result in folded([order.encode(value) for value in initial], step)]

    def _numbers_or_in_order(self, folded: _Fold, initial: Sequence[Value], order: FloatOrder) -> list[Value]:
        """Extrema of numbers, in two instructions for each instead of five; should a sum of them say that there may be
        a NaN (or infinities of both signs), extrema among integers."""
        k, count = self._k, len(initial)
        nothing = k.const(self._vector, 0)

        def step(totals: Sequence[Value], elements: Sequence[Value]) -> list[Value]:
            extremes = [
                extreme_of_numbers(k, total, element, is_maximum=self._is_maximum)
                for total, element in zip(totals[:count], elements, strict=True)
            ]
            return extremes + [k.add(total, element) for total, element in zip(totals[count:], elements, strict=True)]

        results = folded([*initial, *[nothing] * count], step)
        sum_of_all = reduce(k.add, results[count:])
        is_suspicious = k.any_lane(k.is_nan(sum_of_all))
        return k.if_else(is_suspicious, lambda: self._in_order(folded, initial, order), lambda: results[:count])

    def _folded(
        self,
        source: Value,
        numbers: Sequence[Sequence[Value]],
        rows: Range,
        places: Range | None,
        tile: int,
        initial: Sequence[Value],
        combined: _Step,
    ) -> list[Value]:
        """What becomes of `initial` when `combined` was told the elements of a tile, place by place."""
        k = self._k
        row_step = k.mul(self["row_dilation"], self["row_source"])
        step = k.mul(self["position_dilation"], self["position_source"])
        apart = k.mul(self["position_stride"], self["position_source"])
        with k.loop(*rows, carry=initial) as row:
            line = k.gep(source, k.mul(row.index, row_step))

            def folded(place: Value | int, totals: Sequence[Value]) -> list[Value]:
                cells = self._moved(k.gep(line, k.mul(step, place)), apart, tile)
                return combined(totals, self._elements(cells, numbers))

            row.next = self._over_places(places, row.values, folded)
        return row.results

    def _over_places(
        self,
        places: Range | None,
        totals: Sequence[Value],
        folded: Callable[[Value | int, Sequence[Value]], list[Value]],
    ) -> list[Value]:
        k, results = self._k, list(totals)
        if places is None and self._width != ANY_WIDTH:
            for place in range(self._width):
                results = folded(place, results)
            return results
        with k.loop(*(places or (k.const(I64, 0), self["position_window"])), carry=results) as loop:
            loop.next = folded(loop.index, loop.values)
        return loop.results

    def _elements(self, cells: Sequence[Value], numbers: Sequence[Sequence[Value]]) -> list[Value]:
        """What is folded of one place of each window of a tile, which begin at `cells`."""
        k = self._k
        return [
            self._map.emit(k, self._type, k.load(k.gep(cell, vector * self._vector_bytes), self._vector), those)
            for cell in cells
            for vector, those in enumerate(numbers)
        ]
