"""Folds of windows over rows and positions where nothing is behind these, as where features come first: lanes lie along
the positions of a row.

    slide_planes_OPERATION_TYPE_W_S.P       windows of W places in a row, S apart; the lanes of a P-th of a vector

Windows are as far apart as they are wide, or nearly so: the elements that a vector of results sees are some vectors
side by side. These are folded down the rows of the window first, and then place by place, each of which is picked out
of them: once for all rows. Positions at the ends of a row, of which some places are outside, go one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import product

from xlapy.codegen.ir import KernelBuilder, Module, Value
from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.libraries.sliding_folds import FOLD_NUMBERS, FoldingLines, fold_numbers
from xlapy.codegen.libraries.sliding_lines import (
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
from xlapy.codegen.libraries.sliding_maps import ITSELF
from xlapy.codegen.libraries.sliding_plan import NEUTRAL, TYPES, Sliding
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType

NUMBERS = (*LINE_NUMBERS, "inside", "first", "is_even", "is_plain", *FOLD_NUMBERS)
"""By name, in order: behind those of `sliding_lines`, the positions of which all places are inside, and the first of
them; whether windows are squares that lie side by side in all images, and these behind one another, so that one row of
results begins as far behind the one before as any other; whether it makes no difference what folds begin and end with;
and what that is."""

WINDOWS = ((2, 2), (3, 2), (3, 3), (4, 4))
"""Places in a row, and positions from one window to the next."""

KINDS = tuple(kind for kind in product(NEUTRAL, WINDOWS) if kind != ("add", (2, 2)))
"""By operation. Sums of 2 by 2 places take so little that a kernel of the program, which knows its sizes, takes nine
tenths of the time (one core of an Intel server); of others, it takes 1.1 to 3 times as long."""

PARTS = (1, 2, 4)
LEAST_LANES = 2
LEAST_SIZE = 1 << 11  # results, beside which it does not count what a call takes
LEAST_INSIDE = 4  # positions of a row, for each of which some places are outside


def call_of_planes(sliding: Sliding, source: int, result: int, target: Target) -> SlidingCall | None:
    """How a library folds windows, of arrays in these places of the table."""
    rows, positions = sliding.axes
    window = (positions.part.size, positions.part.stride)
    first, inside = positions_inside(positions)
    parts = next((parts for parts in PARTS if LEAST_LANES <= _lanes(sliding.type, parts, target) <= inside), None)
    results = sliding.images * rows.count * positions.count
    is_dense = positions.part.window_dilation == 1 and (sliding.operation, window) in KINDS
    is_mostly_inside = inside >= LEAST_INSIDE * max(1, positions.count - inside)
    if parts is None or not is_dense or sliding.map is not ITSELF or results < LEAST_SIZE or not is_mostly_inside:
        return None
    bytes = sliding.type.bytes
    read, written = (
        Steps(lines * cells * bytes, cells * bytes, bytes)
        for lines, cells in ((rows.size, positions.size), (rows.count, positions.count))
    )
    values = line_numbers(sliding.axes, 1, (source, read), (result, written))
    values |= {"first": first, "inside": inside, "is_even": int(_is_even(rows, positions))}
    values |= {"is_plain": int(_is_plain(sliding))} | fold_numbers(sliding)
    kind = sliding.operation, sliding.type, *window
    call = LibraryCall(library_name(*kind), function_name(*kind, parts), tuple(values[name] for name in NUMBERS))
    work = positions.count * rows.part.size * positions.part.size * bytes
    return sliding_call(call, rows, sliding.images * rows.count, work)


def _is_even(rows: WindowAxis, positions: WindowAxis) -> bool:
    is_square = positions.count == positions_inside(positions)[1] and rows.part.size == positions.part.size
    return is_square and rows.is_always_inside and rows.size == rows.count * rows.part.stride


def _is_plain(sliding: Sliding) -> bool:
    """Results are what the elements fold to. (A sum of negative zeros is none if it begins with a positive one.)"""
    is_scaled = sliding.factor != 1 or sliding.divisor != 1
    return sliding.operation != "add" and sliding.init == NEUTRAL[sliding.operation] and not is_scaled


def library_name(operation: str, type: ElementType, width: int, stride: int) -> str:
    return f"slide_planes_{operation}_{type.name}_{width}_{stride}"


def function_name(operation: str, type: ElementType, width: int, stride: int, parts: int) -> str:
    return f"{library_name(operation, type, width, stride)}.{parts}"


def _lanes(type: ElementType, parts: int, target: Target) -> int:
    return target.lanes(type.bits) // parts


def emit_planes(operation: str, type: ElementType, width: int, stride: int, target: Target) -> Module:
    def writer(lanes: int) -> LineWriter:
        return lambda k: _Rows(k, operation, type, width, stride, lanes)

    lanes = {parts: max(LEAST_LANES, _lanes(type, parts, target)) for parts in PARTS}
    names = {parts: function_name(operation, type, width, stride, parts) for parts in PARTS}
    return module_of_lines(target, {names[parts]: writer(lanes[parts]) for parts in PARTS})


def _library(operation: str, type: ElementType, window: tuple[int, int]) -> Library:
    kind = operation, type, *window
    names = tuple(function_name(*kind, parts) for parts in PARTS)
    return Library(library_name(*kind), names, partial(emit_planes, *kind))


PLANES_LIBRARIES = {
    library.name: library
    for (operation, window), type in product(KINDS, TYPES)
    for library in [_library(operation, type, window)]
}
"""By name."""


class _Rows(FoldingLines):
    """Writes one function."""

    def __init__(
        self, k: KernelBuilder, operation: str, type: ElementType, width: int, stride: int, lanes: int
    ) -> None:
        super().__init__(k, NUMBERS, operation, type, lanes)
        self._width = width
        self._stride = stride
        self._neutral = NEUTRAL[operation]

    def emit(self) -> None:
        self._k.if_else(self._k.compare("ne", self["is_even"], 0), self._even_rows, super().emit)

    def _even_rows(self) -> None:
        k, source, result = self._k, self._array("source"), self._array("result")
        step = k.mul(self["row_stride"], self["row_source"])
        with k.loop(k.parameters["begin"], k.parameters["end"]) as row:
            start, goal = k.gep(source, k.mul(row.index, step)), k.gep(result, k.mul(row.index, self["row_result"]))
            self._vectors(start, goal, None)

    def _line(self, source: Value, result: Value, rows: Sequence[Range]) -> None:
        """One row: vectors where all places are inside, the last of which may overlap; the others one by one."""
        k, (begin, end) = self._k, rows[0]
        is_square = k.and_(k.compare("eq", begin, 0), k.compare("eq", end, self._width))
        vectors = partial(self._vectors, source, result)
        k.if_else(is_square, partial(vectors, None), partial(vectors, rows[0]))
        first, inside = self["first"], self["inside"]
        with k.loop(0, k.sub(self["position_count"], inside)) as loop:
            position = k.add(loop.index, k.select(k.compare("ge", loop.index, first), inside, 0))
            _, places = self._places_mostly_dense("position", position)
            start, goal = self._at(source, result, position)
            self._store([goal], [self._of_position(start, rows[0], places)])

    def _vectors(self, source: Value, result: Value, rows: Range | None) -> None:
        """The vectors of a row, two at a time, and one by one what is left over."""
        k, lanes, inside = self._k, self._vector.lanes, self["inside"]
        in_pairs = k.and_(inside, -2 * lanes)
        with k.loop(0, in_pairs, 2 * lanes) as loop:
            self._vectors_at(source, result, rows, [k.add(loop.index, number) for number in (0, lanes)])
        with k.loop(in_pairs, inside, lanes) as loop:
            self._vectors_at(source, result, rows, [k.smin(loop.index, k.sub(inside, lanes))])

    def _vectors_at(self, source: Value, result: Value, rows: Range | None, positions: Sequence[Value]) -> None:
        """Vectors that begin at positions behind the first one inside."""
        places = [self._at(source, result, self._k.add(self["first"], position)) for position in positions]
        self._store([goal for _, goal in places], [self._of_vector(start, rows) for start, _ in places])

    def _store(self, goals: Sequence[Value], totals: Sequence[Value]) -> None:
        """What windows fold to, after what the folds begin with."""
        k = self._k

        def begun() -> list[Value]:
            init = k.splat(self._float("init"), totals[0].type.lanes)
            return self._scaled(self._combined([init] * len(totals), totals))

        finished = k.if_else(k.compare("ne", self["is_plain"], 0), lambda: list(totals), begun)
        for goal, total in zip(goals, finished, strict=True):
            k.store(goal, total)

    def _of_vector(self, source: Value, rows: Range | None) -> Value:
        """The windows of neighbouring positions, of which the first begins at `source`: of the given rows, or of as
        many as there are places in each, which are written out."""
        k, lanes = self._k, self._vector.lanes
        last = self._stride * (lanes - 1) + self._width - lanes
        starts = [*range(0, last, lanes), last]
        step = k.mul(self["row_dilation"], self["row_source"])

        def elements(row: Value | int) -> list[Value]:
            line = k.gep(source, k.mul(step, row))
            return [k.load(k.gep(line, start * self._type.bytes), self._vector) for start in starts]

        if rows is None:
            totals = reduce(self._combined, map(elements, range(self._width)))
        else:
            neutral = k.const(self._vector, self._neutral)
            with k.loop(*rows, carry=[neutral] * len(starts)) as loop:
                loop.next = self._combined(loop.values, elements(loop.index))
            totals = loop.results
        return reduce(self._combined_one, [self._picked(totals, starts, place) for place in range(self._width)])

    def _combined_one(self, total: Value, element: Value) -> Value:
        return self._combined([total], [element])[0]

    def _picked(self, vectors: Sequence[Value], starts: Sequence[int], place: int) -> Value:
        """One place of each window, out of vectors that begin so many elements behind the first window."""
        k, lanes = self._k, self._vector.lanes
        chosen: Value | None = None
        for vector, start in zip(vectors, starts, strict=True):
            at = [lane * self._stride + place - start for lane in range(lanes)]
            if chosen is None:
                chosen = k.shuffle(vector, None, [number if number < lanes else 0 for number in at])
            else:
                chosen = k.shuffle(chosen, vector, [lanes + n if 0 <= n < lanes else lane for lane, n in enumerate(at)])
        assert chosen is not None
        return chosen

    def _of_position(self, source: Value, rows: Range, places: Range) -> Value:
        """One window that begins at `source`, of which the given rows and places are inside."""
        k, scalar = self._k, self._vector.element
        with k.loop(*rows, carry=[k.const(scalar, self._neutral)]) as row:
            line = k.gep(source, k.mul(row.index, k.mul(self["row_dilation"], self["row_source"])))
            with k.loop(*places, carry=row.values) as place:
                element = k.load(k.gep(line, place.index, self._type.bytes), scalar)
                place.next = self._combined(place.values, [element])
            row.next = place.results
        return row.results[0]
