"""Rows of an array each of which is made of one row of another, all in the same way: images with borders that repeat or
mirror what lies beside them, or are filled.

    u8[4,106,106,3] from u8[4,100,100,3] with edges          2 1 0 | 0 1 2 3 4 ... 99 | 99 98 97
    u8[480,640] from u8[240,320], each pixel four times      0 0 1 1 2 2 3 3 ...

`hlo/axis_maps.py` knows where each element of a row comes from. Long stretches of neighbours are copied as they lie.
What is left is stored in whole vectors, which may reach into these stretches: the lanes of each are picked from a few
vectors of the other array, so that no element is asked where it lies. Of rows that go on as they begin, or do so
between their ends, some vectors are written down, and the same ones follow all along the row. Which row that is made
of, and whether it is all filled, is found once for each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import SCALAR, Coordinate, Indexing
from xlapy.codegen.ir import I8, I16, I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.loop import streamed_bytes
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES, TASK_BYTES
from xlapy.codegen.register_transpose import picked
from xlapy.codegen.registers import parts_of, to_memory
from xlapy.codegen.target import Target
from xlapy.hlo.axis_maps import FILL, AxisMaps, Offsets, axis_maps, joined_offsets
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

LEAST_BYTES = 1 << 10  # of a result, for which loops of its own are worth their code
LEAST_VECTOR, MOST_VECTOR = 8, 32  # bytes, any of which are picked in a few instructions
STRETCH_VECTORS = 2  # that are copied as they lie by a loop
MOST_STRETCHES, MOST_WINDOWS, MOST_LOADS, MOST_SEGMENTS = 4, 16, 3, 6  # for which there is code
MOST_REPEATED = 8  # times that something outside of rows is repeated
MOST_LISTED = 1 << 12  # positions outside of rows
MOST_PART = 24  # words after which a row goes on as it begins
CYCLE_WINDOWS = 4  # that are worth a jump
MOST_UNIT_BYTES = TASK_BYTES // 8  # of a unit of many rows
WIDE_ELEMENTS = 4  # bytes, of which masked vectors also go past the caches
WORDS = {word.bytes: word for word in (I64, I32, I16, I8)}


class Window(Record):
    """A vector of a row: where it goes, where vectors are loaded for it, both in bytes, and the (vector, lane) of each
    lane. The vector behind those that are loaded is filled."""

    place: int
    loads: tuple[int, ...]
    picks: tuple[tuple[int, int], ...]


class Stretch(Record):
    """Bytes of a row that are copied as they lie; those without a source are filled."""

    place: int
    source: int | None
    size: int


class Segment(Record):
    """Positions up to `end` in a dimension, and where they lead: `start` and `step` times their number, in bytes. What
    has no start is filled."""

    end: int
    start: int | None
    step: int


class Cycle(Record):
    """The windows of so many bytes come again, in a stretch of a row from `place` on. It goes on as it begins after
    each `part`, of which `size` are a whole number, with what lies `source_part` further on in the source, all in
    bytes."""

    bytes: int
    part: int
    source_part: int
    place: int
    size: int
    windows: tuple[Window, ...] = ()


class Listed(Record):
    """Where each position in a dimension leads, in bytes, or `FILL`."""

    offsets: tuple[int, ...]


Dim = tuple[Segment, ...] | Listed


class MappedRowsPlan(Record):
    """`dims` are those outside of a row. A unit is a row, or all those along the last of them. The windows and
    stretches are what a row has beside its `cycle`, if it has one."""

    vector: IRType
    start: int
    row_bytes: int
    stretches: tuple[Stretch, ...]
    windows: tuple[Window, ...]
    cycle: Cycle | None
    dims: tuple[Dim, ...]
    has_inner: bool

    @property
    def vector_bytes(self) -> int:
        return self.vector.bytes * self.vector.lanes

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(map(_count, self.dims))

    @property
    def units(self) -> int:
        return int(np.prod(self.counts[: len(self.dims) - self.has_inner], dtype=np.int64))

    @property
    def bytes_per_unit(self) -> int:
        return 2 * self.row_bytes * (self.counts[-1] if self.has_inner else 1)


class MappedRows(Record):
    """A plan with the array it reads, and the number that fills its result."""

    source: Instruction
    fill: Instruction | None
    plan: MappedRowsPlan


def plan_mapped_rows(root: Instruction, is_input: Callable[[Instruction], bool], target: Target) -> MappedRows | None:
    """How to make the rows of `root` so; None if nothing is padded or joined in it, or not in this way. What is only
    repeated is left to loops, which spread few numbers as quickly."""
    if not root.shape.is_array or root.shape.bytes < LEAST_BYTES:
        return None
    moved = {each.opcode for each in between((root,), is_input) if not is_input(each)}
    if moved.isdisjoint(("pad", "concatenate", "broadcast")) or (moved == {"broadcast"} and is_input(root.operands[0])):
        return None
    width = root.shape.bytes // root.shape.size
    if width >= WIDE_ELEMENTS and root.shape.bytes >= streamed_bytes(target):
        return None
    maps = axis_maps(root, is_input)
    if maps is None:
        return None
    found = None
    for first in reversed(range(root.shape.rank)):
        row = joined_offsets(maps.offsets[first:])
        if len(row) * width > PARALLEL_BYTES:
            break
        plan = _Rows(maps, first, row, width, target).plan(only_cycles=moved.isdisjoint(("pad", "concatenate")))
        found = plan or found
        if plan is not None and plan.vector_bytes == min(MOST_VECTOR, target.vector_bytes):
            break
    return None if found is None else MappedRows(maps.source, maps.fill, found)


class _Rows:
    """The rows that the dimensions from `first` on make together."""

    def __init__(self, maps: AxisMaps, first: int, row: Offsets, width: int, target: Target) -> None:
        self._outer = [np.where(own == FILL, FILL, own * width) for own in maps.offsets[:first] if len(own) > 1]
        alone = [int(own[0]) for own in maps.offsets[:first] if len(own) == 1]
        self._is_filled = FILL in alone or bool((row == FILL).all()) or any((own == FILL).all() for own in self._outer)
        self._start = 0 if self._is_filled else (maps.start + sum(alone)) * width
        self._row = np.where(row == FILL, FILL, row * width)
        self._width = width
        self._source_bytes = maps.source.shape.bytes
        self._target = target

    def plan(self, *, only_cycles: bool) -> MappedRowsPlan | None:
        size = len(self._row) * self._width
        if size < LEAST_VECTOR or self._is_filled:
            return None
        found = [_in_dims(own) for own in self._outer]
        if None in found:
            return None
        dims = _merged([dim for parts in found for dim in parts or ()])
        word, row = self._words()
        low, high = self._extent()
        vector = min(MOST_VECTOR, self._target.vector_bytes, 1 << (min(size, high - low).bit_length() - 1))
        if vector < max(LEAST_VECTOR, 2 * word.bytes):
            return None
        layout = _RowLayout(row, word.bytes, vector, low, high)
        parts = layout.with_cycle() or (None if only_cycles else layout.without_cycle())
        if parts is None:
            return None
        type = word.with_lanes(vector // word.bytes)
        rows = _count(dims[-1]) if dims else 1
        has_inner = len(dims) > 1 and rows * size <= MOST_UNIT_BYTES
        return MappedRowsPlan(type, self._start, size, *parts, (*dims,), has_inner)

    def _words(self) -> tuple[IRType, Offsets]:
        """The longest words that rows are made of, and where each of a row comes from."""
        for size, word in WORDS.items():
            if size <= self._width:
                inside = np.arange(0, self._width, size)
                return word, np.where(self._row[:, None] == FILL, FILL, self._row[:, None] + inside).reshape(-1)
            count = size // self._width
            if len(self._row) % count:
                continue
            words = self._row.reshape(-1, count)
            starts = words[:, 0]
            known = starts[starts != FILL]
            inside = np.where(starts[:, None] == FILL, FILL, starts[:, None] + np.arange(count) * self._width)
            if np.array_equal(words, inside) and not ((known - known[:1]) % size).any():
                return word, starts
        raise AssertionError("no element is narrower than a byte")

    def _extent(self) -> tuple[int, int]:
        """From where on, and up to where, there is memory of the source around what each row comes from."""
        known = self._row[self._row != FILL]
        ends = [(int(own[own != FILL].min()), int(own[own != FILL].max())) for own in self._outer]
        first, last = (self._start + sum(end) for end in zip(*ends, strict=True)) if ends else (self._start,) * 2
        return min(int(known.min()), -first), max(int(known.max()) + self._width, self._source_bytes - last)


def _count(dim: Dim) -> int:
    return len(dim.offsets) if isinstance(dim, Listed) else dim[-1].end


def _in_dims(offsets: Offsets) -> list[Dim] | None:
    """A dimension in segments, or two that it is made of, if these have far fewer, or its offsets in a list."""
    segments = _segments(offsets)
    if len(segments) <= MOST_SEGMENTS:
        return [segments]
    for count in range(2, MOST_REPEATED + 1):
        parts = _outer_and_inner(offsets.reshape(-1, count)) if not len(offsets) % count else None
        split = [] if parts is None else [_segments(part) for part in parts]
        if split and max(map(len, split)) <= MOST_SEGMENTS:
            return [*split]
    return [Listed((*offsets.tolist(),))] if len(offsets) <= MOST_LISTED else None


def _outer_and_inner(rows: Offsets) -> tuple[Offsets, Offsets] | None:
    """Offsets of rows and of columns whose sums these are; of columns that are filled, as those between spread elements
    are, there is none."""
    is_known = (rows != FILL).any(axis=0)
    if not is_known.any():
        return None
    outer = rows[:, is_known.argmax()]
    differences = rows[:, is_known] - outer[:, None]  # 0 for what is filled in both
    steps = differences[(outer != FILL).argmax()]
    expected = np.where(outer[:, None] == FILL, 0, steps)
    if not (differences == expected).all():
        return None
    inner = np.full(len(is_known), FILL)
    inner[is_known] = steps
    return outer, inner


def _segments(offsets: Offsets) -> tuple[Segment, ...]:
    """The positions of a dimension in as few parts as have even steps."""
    segments: list[Segment] = []
    begin, count = 0, len(offsets)
    filled = offsets == FILL
    while begin < count and len(segments) <= MOST_SEGMENTS:
        step = (
            0 if begin + 1 == count or filled[begin] or filled[begin + 1] else int(offsets[begin + 1] - offsets[begin])
        )
        expected = FILL if filled[begin] else offsets[begin] + step * np.arange(count - begin)
        other = np.flatnonzero(offsets[begin:] != expected)
        end = begin + int(other[0]) if len(other) else count
        start = None if filled[begin] else int(offsets[begin]) - step * begin
        segments.append(Segment(end, start, step))
        begin = end
    return (*segments,)


def _merged(dims: Sequence[Dim]) -> list[Dim]:
    """The same with as few dimensions as can be counted through in one."""
    merged: list[Dim] = []
    for dim in dims:
        one = _as_one(merged[-1], dim) if merged else None
        if one is None:
            merged.append(dim)
        else:
            merged[-1] = (one,)
    return merged


def _as_one(before: Dim, after: Dim) -> Segment | None:
    """Two dimensions as one segment, if they are that."""
    if isinstance(before, Listed) or isinstance(after, Listed) or not len(before) == len(after) == 1:
        return None
    (outer,), (inner,) = before, after
    if outer.start is None or inner.start is None or outer.step != inner.step * inner.end:
        return None
    return Segment(outer.end * inner.end, outer.start + inner.start, inner.step)


RowParts = tuple[tuple[Stretch, ...], tuple[Window, ...], Cycle | None]


class _RowLayout:
    """How a row of words is written in vectors of so many bytes, if there is memory of the source from `low` to `high`
    around it."""

    def __init__(self, row: Offsets, word: int, vector: int, low: int, high: int) -> None:
        self._row, self._word, self._lanes = row, word, vector // word
        self._vector, self._low, self._high = vector, low, high

    def without_cycle(self) -> RowParts | None:
        parts = _parts(self._row, range(0), self._word, self._vector, self._low, self._high)
        return None if parts is None else (*parts, None)

    def with_cycle(self) -> RowParts | None:
        """In which whole vectors come again for most of the row; None if it does not go on so, or is one stretch."""
        for part in range(2, MOST_PART + 1):
            cycle = self._cycle(part)
            if cycle is not None:
                inside = range(cycle.place // self._word, (cycle.place + cycle.size) // self._word)
                parts = _parts(self._row, inside, self._word, self._vector, self._low, self._high)
                if parts is not None:
                    return *parts, cycle
        return None

    def _cycle(self, part: int) -> Cycle | None:
        length = math.lcm(part, self._lanes)
        if length > MOST_WINDOWS * self._lanes:
            return None
        begin, end, step = _going_on(self._row, part, self._word)
        count = (end - begin) // part * part
        if count < 2 * length:
            return None
        while length < CYCLE_WINDOWS * self._lanes and 4 * length <= count:
            length *= 2
        last = (count - length) // part * step
        first = self._row[begin : begin + length]
        parts = _parts(first, range(0), self._word, self._vector, self._low, self._high - last, most_stretches=0)
        sizes = (length * self._word, part * self._word, step, begin * self._word, count * self._word)
        return None if parts is None else Cycle(*sizes, parts[1])


def _going_on(row: Offsets, part: int, word: int) -> tuple[int, int, int]:
    """The places around the middle of a row between which each word lies a step behind the one `part` before it, and
    that step; none where nothing lies so, or simply side by side."""
    later, earlier = row[part:], row[:-part]
    middle = len(earlier) // 2
    known = np.flatnonzero(earlier[middle : middle + part] != FILL)
    first = middle + int(known[0]) if len(known) else 0
    step = int(later[first] - earlier[first]) if len(known) else 0
    if step <= 0:
        return 0, 0, 0
    others = np.flatnonzero(np.where(earlier == FILL, later != FILL, later - earlier != step))
    after = int(np.searchsorted(others, middle))
    begin = int(others[after - 1]) + 1 if after else 0
    end = (int(others[after]) if after < len(others) else len(earlier)) + part
    is_plain = bool((np.diff(row[begin : begin + part + 1]) == word).all())
    return (0, 0, 0) if is_plain else (begin, end, step)


def _parts(
    row: Offsets, without: range, word: int, vector: int, low: int, high: int, *, most_stretches: int = MOST_STRETCHES
) -> tuple[tuple[Stretch, ...], tuple[Window, ...]] | None:
    """What is copied of a row as it lies, and the vectors in which the rest is picked, but that `without` which nothing
    is missing; None if that is too much."""
    lanes, count = vector // word, len(row)
    is_left = np.ones(count, bool)
    is_left[without.start : without.stop] = False
    is_even = (np.diff(row) == word) | ((row[1:] == FILL) & (row[:-1] == FILL))
    breaks = np.flatnonzero(~is_even | (np.diff(is_left))) + 1
    ends = [0, *breaks.tolist(), count]
    runs = [(b, e) for b, e in pairwise(ends) if is_left[b] and e - b >= STRETCH_VECTORS * lanes]
    if not most_stretches:
        runs = []
    if len(runs) > most_stretches:
        return None
    for begin, end in runs:
        is_left[begin:end] = False
    is_picked = np.zeros(count, bool)
    windows: list[Window] = []
    while is_left.any():
        place = min(int(is_left.argmax()), count - lanes)
        window = _window(row[place : place + lanes], place * word, word, vector, low, high)
        if window is None or len(windows) == MOST_WINDOWS:
            return None
        windows.append(window)
        is_left[place : place + lanes] = False
        is_picked[place : place + lanes] = True
    stretches = []
    for begin, end in runs:
        copied = np.flatnonzero(~is_picked[begin:end])
        if len(copied):
            first = begin + min(int(copied[0]), end - begin - lanes)
            last = max(begin + int(copied[-1]) + 1, first + lanes)
            source = None if row[first] == FILL else int(row[first])
            stretches.append(Stretch(first * word, source, (last - first) * word))
    return tuple(stretches), tuple(windows)


def _window(sources: Offsets, place: int, word: int, vector: int, low: int, high: int) -> Window | None:
    """How lanes that come from these places are picked; None if from too many vectors."""
    loads: list[int] = []
    rest = np.unique(sources[sources != FILL])
    while len(rest):
        first = int(rest[0])
        at = first - -(-max(first + vector - high, 0) // word) * word
        if at < low or len(loads) == MOST_LOADS:
            return None
        loads.append(at)
        rest = rest[rest >= at + vector]

    def pick(lane: int, source: int) -> tuple[int, int]:
        if source == FILL:
            return len(loads), lane
        number = next(number for number, at in enumerate(loads) if at <= source < at + vector)
        return number, (source - loads[number]) // word

    return Window(place, tuple(loads), tuple(pick(*each) for each in enumerate(sources.tolist())))


def emit_mapped_rows(
    k: KernelBuilder, rows: MappedRows, arrays: dict[Instruction, Array], result: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end)."""
    plan = rows.plan
    filled = None if rows.fill is None else _filled(k, rows.fill, arrays, plan.vector)
    emitter = _RowEmitter(k, plan, arrays[rows.source], result, filled)
    with k.loop(begin, end) as units:
        if not plan.has_inner:
            emitter.row(units.index)
            return
        first = k.mul(units.index, plan.counts[-1])
        with k.loop(0, plan.counts[-1]) as inner:
            emitter.row(k.add(first, inner.index), (units.index, inner.index))


def _filled(k: KernelBuilder, fill: Instruction, arrays: dict[Instruction, Array], vector: IRType) -> Value:
    """A vector of the number that fills."""
    (element,) = ElementGraph(Indexing(k, 1), arrays).values([(fill, SCALAR)])
    parts = [k.to_integer_bits(to_memory(k, part, fill.shape.type)) for part in parts_of(element)]
    count = vector.bytes * vector.lanes // parts[0].type.bytes
    whole = k.splat(parts[0], count)
    for lane in range(1, count, 2) if len(parts) > 1 else ():
        whole = k.insert(whole, parts[1], lane)
    return k.bitcast(whole, vector)


class _RowEmitter(Record):
    """What the code of a row knows."""

    k: KernelBuilder
    plan: MappedRowsPlan
    source: Array
    result: Array
    filled: Value | None

    def row(self, number: Value, known: tuple[Value, Value] | None = None) -> None:
        """Writes row `number`; `known` are the number of the last dimension, and that of the others."""
        k, plan = self.k, self.plan
        to = k.gep(k.gep(self.result.pointer, self.result.displacement), number, plan.row_bytes)
        own, conditions = k.gep(self.source.pointer, self.source.displacement + plan.start), []
        for dim, position in zip(plan.dims, self._positions(number, known), strict=True):
            offset, is_filled = _led_to(k, dim, position)
            own = k.gep(own, offset)
            conditions += is_filled
        if conditions:
            k.if_else(reduce(k.or_, conditions), lambda: self._fill(to, plan.row_bytes), lambda: self._made(own, to))
        else:
            self._made(own, to)

    def _positions(self, number: Value, known: tuple[Value, Value] | None) -> Iterator[Value]:
        counts = self.plan.counts
        if known is not None:
            outer, inner = known
            digits = Indexing(self.k, 1).delinearize(Coordinate(outer), counts[:-1])
            yield from (digit.start for digit in digits)
            yield inner
        elif counts:
            digits = Indexing(self.k, 1).delinearize(Coordinate(number), counts)
            yield from (digit.start for digit in digits)

    def _made(self, own: Value, to: Value) -> None:
        k, cycle = self.k, self.plan.cycle
        if cycle is not None:
            with k.loop(0, cycle.size, cycle.bytes) as loop:
                at = k.smin(loop.index, cycle.size - cycle.bytes)
                source = k.mul(k.udiv(at, cycle.part), cycle.source_part)
                self._picked(cycle.windows, k.gep(own, source), k.gep(k.gep(to, cycle.place), at))
        self._picked(self.plan.windows, own, to)
        for stretch in self.plan.stretches:
            goal = k.gep(to, stretch.place)
            if stretch.source is None:
                self._fill(goal, stretch.size)
            else:
                self._copy(k.gep(own, stretch.source), goal, stretch.size)

    def _picked(self, windows: Sequence[Window], own: Value, to: Value) -> None:
        k, vector = self.k, self.plan.vector
        for window in windows:
            loaded = [k.load(k.gep(own, at), vector, 1, self.source.alias) for at in window.loads]
            vectors = loaded if self.filled is None else [*loaded, self.filled]
            k.store(k.gep(to, window.place), picked(k, vectors, window.picks), 1, self.result.alias)

    def _copy(self, own: Value, to: Value, size: int) -> None:
        """Copies some vectors at a time, of which the last ones overlap those before."""
        k, width = self.k, self.plan.vector_bytes
        vector = I8.with_lanes(2 * width if size >= 2 * width else width)
        with k.loop(0, size, vector.lanes) as loop:
            at = k.smin(loop.index, size - vector.lanes)
            k.store(k.gep(to, at), k.load(k.gep(own, at), vector, 1, self.source.alias), 1, self.result.alias)

    def _fill(self, to: Value, size: int) -> None:
        k, width = self.k, self.plan.vector_bytes
        assert self.filled is not None
        with k.loop(0, size, width) as loop:
            at = k.smin(loop.index, size - width)
            k.store(k.gep(to, at), self.filled, 1, self.result.alias)


def _led_to(k: KernelBuilder, dim: Dim, position: Value) -> tuple[Value, list[Value]]:
    """Where a position in a dimension leads, and whether it is filled, if it may be."""
    if isinstance(dim, Listed):
        offset = k.load(k.gep(k.table(I64, dim.offsets), position, I64.bytes), I64)
        return offset, [k.compare("eq", offset, FILL)] if FILL in dim.offsets else []
    offset, is_filled = k.const(I64, 0), None
    for number, segment in enumerate(reversed(dim)):
        is_here = k.compare("lt", position, segment.end)
        if segment.start is not None:
            own = k.add(k.mul(position, segment.step), segment.start)
            offset = own if not number else k.select(is_here, own, offset)
        if any(each.start is None for each in dim):
            own_filled = k.const(is_here.type, segment.start is None)
            is_filled = own_filled if is_filled is None else k.select(is_here, own_filled, is_filled)
    return offset, [] if is_filled is None else [is_filled]
