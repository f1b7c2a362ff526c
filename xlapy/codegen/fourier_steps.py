"""From the length and kind of a Fourier transform to the steps that the library takes for each unit (`fft_record`).

What lies in memory so that vectors can be read and written where it is goes through the stages at once: from the
operand to scratch memory in the first one, to the result in the last. The rest is copied to scratch memory before, or
from there behind: what has too few neighbours, and transforms that are computed side by side to fill the vectors, but
do not lie like this.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlapy.codegen.fourier_rounds import MOST_NEAR_BUFFERS, Round, Stage, rounds_of
from xlapy.codegen.fourier_tables import (
    Tables,
    all_roots_of_unity,
    chirp,
    fill_vectors,
    radices_of,
    roots_of_unity,
    smooth_length,
)
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.fft_record import (
    FETCHED_LINES,
    LARGEST_RADIX,
    PAIRED_RADICES,
    SCRATCH,
    STEP_NUMBERS,
    has_short_stages,
    step_kinds,
)
from xlapy.codegen.target import Target
from xlapy_runtime.records import Record

Array = np.ndarray[Any, Any]
Factors = tuple[float, float]
"""What real and imaginary parts are multiplied by."""

Step = tuple[int, ...]
"""The numbers of a step."""

PLAIN: Factors = (1.0, 1.0)
CONJUGATE: Factors = (1.0, -1.0)


class Place(Record):
    """Where numbers lie: in operand, result or scratch memory, at distances in real numbers."""

    array: int
    offset: int
    row_pitch: int  # from element to element of a transform
    column_pitch: int  # from transform to transform
    plane: int = 0  # from real to imaginary parts, in scratch memory

    @property
    def is_scratch(self) -> bool:
        return self.array == SCRATCH

    @property
    def has_lines(self) -> bool:
        """Only elements of one transform are next to each other."""
        return self.row_pitch == 2 and self.column_pitch > 2

    @property
    def has_columns(self) -> bool:
        """Only elements of different transforms are next to each other."""
        return self.column_pitch == 2 and self.row_pitch > 2


class Block(Record):
    """What a unit is: `width` transforms, or a little less, whose elements are rows; one if lanes run along rows."""

    rows: int  # elements that are in work at once
    width: int
    lanes: int
    fills_vectors: bool
    """Operand and result have enough neighbours, along rows or columns, to be read and written by vectors."""

    near: int
    """Complex numbers of all near buffers, which a cache holds that is nearer than the one for whole units; 0 if there
    is none or no need (`fourier_rounds`)."""

    @property
    def is_row(self) -> bool:
        return self.width == 1

    @property
    def plane(self) -> int:
        """Real numbers from real to imaginary parts, with room for vectors that go beyond the end."""
        return _aligned((self.rows + 1) * self.width + _aligned(LARGEST_RADIX * self.lanes))

    @property
    def buffer(self) -> int:
        """Real numbers of one of the two buffers, with room for vectors that begin before it."""
        return 2 * self.plane + self.front

    @property
    def front(self) -> int:
        return _aligned(2 * self.lanes)

    @property
    def memory(self) -> int:
        return 2 * self.buffer + (2 * self.near + MOST_NEAR_BUFFERS * 4 * _ALIGNMENT if self.near else 0)


_ALIGNMENT = 16  # real numbers


def _aligned(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT


def is_direct(length: int, lanes: int) -> bool:
    """Whether single transforms of a length can be read and written by vectors."""
    radices = radices_of(length, lanes)
    return length >= 2 * lanes and (radices is None or fill_vectors(radices, length, lanes))


def begins_with_stage(length: int, lanes: int) -> bool:
    """Whether the first step of a transform is a stage, and does not only change from pairs to planes."""
    radices = radices_of(length, lanes)
    return radices is None or radices[0] > 1


def rows_in_work(length: int) -> int:
    """Elements that a transform works on: more than its length if that has a large prime factor."""
    return length if radices_of(length, 1) is not None else smooth_length(2 * length - 1)


def _named(step: Step) -> dict[str, int]:
    return dict(zip(STEP_NUMBERS, step, strict=True))


class Composer:
    """Collects the steps of a block, which write to the result `past_caches`, if they can."""

    def __init__(self, block: Block, tables: Tables, target: Target, *, past_caches: bool = False) -> None:
        self._block = block
        self._past_caches = past_caches
        self._tables = tables
        self._kinds = step_kinds(target)
        self._names = list(self._kinds)
        self._has_short = has_short_stages(target)
        self._circles: dict[int, Array] = {}
        self._rounds: list[tuple[int, list[Step]]] = []
        self._begin_round()

    @property
    def rounds(self) -> list[list[Step]]:
        """The steps of each round; the first of them says how many they are, and how often they are taken."""
        found = []
        for parts, (first, *others) in ((parts, steps) for parts, steps in self._rounds if steps):
            head = _named(first) | {"together": 1 + len(others), "parts": parts}
            found.append([tuple(head.values()), *others])
        return found

    @property
    def calls(self) -> int:
        """How often a step is taken for a unit."""
        return sum(parts * len(steps) for parts, steps in self._rounds)

    def _begin_round(self, parts: int = 1) -> None:
        """What follows is done for so many parts; what is done once for all may go on with others that are."""
        if parts > 1 or not self._rounds or self._rounds[-1][0] > 1:
            self._rounds.append((parts, []))

    def _step(self, kind: str, source: Place, target: Place, factors: Factors = PLAIN, /, **numbers: int) -> None:
        values = {
            "kind": self._kinds[kind],
            "source": source.array,
            "source_offset": source.offset,
            "target": target.array,
            "target_offset": target.offset,
            "source_plane": source.plane,
            "target_plane": target.plane,
            "re_factor": _bits(factors[0]),
            "im_factor": _bits(factors[1]),
            "past_caches": int(self._past_caches and not target.is_scratch),
            **numbers,
        }
        self._rounds[-1][1].append(tuple(values.get(name, 0) for name in STEP_NUMBERS))

    def fetch_with_vectors(self, bytes: int) -> None:
        """Spreads the fetching of an operand over the vectors of all stages, the same for each; for single rows. What
        is more than vectors fetch is at its end, where the processor has seen by then what is read."""
        vectors = sum(parts * self._vectors_of(step) for parts, steps in self._rounds for step in steps)
        lines = -(-bytes // (max(1, vectors) * CACHE_LINE))
        part = min(lines, FETCHED_LINES) * CACHE_LINE
        begin = 0
        for parts, steps in self._rounds:
            for number, step in enumerate(steps):
                count = self._vectors_of(step)
                fetched = {"fetched": begin, "fetched_bytes": part if count else 0, "fetched_part": part * count}
                steps[number] = tuple((_named(step) | fetched).values())
                begin += parts * part * count

    def _vectors_of(self, step: Step) -> int:
        """How many vectors a step fetches with."""
        numbers = _named(step)
        lanes, count = self._block.lanes, numbers["count"]
        stage = self._names[numbers["kind"]].rstrip("0123456789")
        return {
            "first_row": -(-count // lanes),
            "middle": count * -(-numbers["inner"] // lanes),
            "paired": count,
            "last": count * -(-numbers["inner"] // lanes),
        }.get(stage, 0)

    # -- places --------------------------------------------------------------------------------------------------------

    def _buffer(self, number: int) -> Place:
        offset = number * self._block.buffer + self._block.front
        return Place(SCRATCH, offset, 2 * self._block.width, 2, self._block.plane)

    def _other(self, place: Place) -> Place:
        """A buffer that is not at `place`."""
        return self._buffer(1 if place == self._buffer(0) else 0)

    def _width(self, *places: Place) -> int:
        """Columns of an inner loop: those of the buffers, if all places are such, or those that there are."""
        return self._block.width if all(place.is_scratch for place in places) else 0

    def _readable(self, place: Place, rows: int) -> Place:
        """Pairs where vectors can read them: there, or a copy."""
        if self._block.fills_vectors:
            return place
        target = self._buffer(0)
        self._copy("copy", place, target, rows)
        return target

    def _deliver(self, source: Place, target: Place, rows: int) -> None:
        """Takes results to their place, unless they are there."""
        if source != target:
            self._copy("copy", source, target, rows)

    def _writable(self, place: Place) -> Place | None:
        """The place, if vectors can write to it."""
        return place if self._block.fills_vectors else None

    def _copy(self, kind: str, source: Place, target: Place, rows: int, factors: Factors = PLAIN) -> None:
        """Copies the elements of all transforms, along what is next to each other in the target."""
        if self._can_turn(kind, source, target, rows, factors):
            self._turn(source, target, rows)
            return
        if self._block.is_row:
            numbers = {"count": 1, "inner": rows}
            numbers |= {"source_distance": source.row_pitch, "target_distance": target.row_pitch}
        else:
            numbers = {"count": rows, "inner": self._width(source, target)}
            numbers |= {"source_step": source.row_pitch, "target_step": target.row_pitch}
            numbers |= {"source_distance": source.column_pitch, "target_distance": target.column_pitch}
        self._step(kind, source, target, factors, **numbers)

    def _can_turn(self, kind: str, source: Place, target: Place, rows: int, factors: Factors) -> bool:
        """Whether to copy squares: transforms are lines on one side and columns on the other, enough for a square."""
        side = self._block.lanes // 2
        turns = (source.has_lines and target.has_columns) or (source.has_columns and target.has_lines)
        return turns and kind == "copy" and factors == PLAIN and rows >= side and self._block.width > side

    def _turn(self, source: Place, target: Place, rows: int) -> None:
        """A line of the source is a transform, or one element of each."""
        columns = self._width(source, target)
        if source.has_lines:
            numbers = {"count": columns, "inner": rows}
            numbers |= {"source_step": source.column_pitch, "target_step": target.row_pitch}
        else:
            numbers = {"count": rows, "inner": columns}
            numbers |= {"source_step": source.row_pitch, "target_step": target.column_pitch}
        self._step("turn", source, target, **numbers)

    # -- complex -------------------------------------------------------------------------------------------------------

    def complex(self, source: Place, target: Place, length: int, *, inverse: bool, scale: float) -> None:
        """From complex numbers to complex numbers; source and target may be the same."""
        pairs = self._readable(source, length)
        result = self._transform(pairs, length, inverse=inverse, scale=scale, to=self._writable(target))
        self._deliver(result, target, length)

    def _transform(
        self, source: Place, length: int, *, inverse: bool = False, scale: float = 1.0, to: Place | None = None
    ) -> Place:
        """From pairs that vectors can read to such that they can write, `to` or some buffer; returns where."""
        radices = self._radices(length)
        if radices is None:
            return self._convolution(source, length, inverse, scale, to)
        before, after = (CONJUGATE if inverse else PLAIN), (scale, -scale if inverse else scale)
        return self._stages(source, length, radices, before, after, to)

    def _radices(self, length: int) -> list[int] | None:
        return radices_of(length, self._block.lanes if self._block.is_row else 1)

    def _stages(
        self,
        source: Place,
        length: int,
        radices: list[int],
        before: Factors = PLAIN,
        after: Factors = PLAIN,
        to: Place | None = None,
    ) -> Place:
        block = self._block
        rounds = rounds_of(tuple(radices), block.width, block.lanes, block.near)
        current = source
        for number, round in enumerate(rounds):
            ends = number == len(rounds) - 1
            target = to if to and ends else self._other(current)
            self._begin_round(round.parts)
            for stage in round.stages:
                goal = target if stage.ends_round else self._near(round, stage.index % MOST_NEAR_BUFFERS)
                if number == stage.index == 0:
                    self._first(stage, current, goal, before)
                elif ends and stage.ends_round:
                    self._last(stage, current, goal, after)
                else:
                    self._middle(stage, current, goal)
                current = goal
        self._begin_round()
        return current

    def _near(self, round: Round, number: int) -> Place:
        """A near buffer of a round."""
        size = round.radix * round.run_part * round.positions_part * self._block.width
        plane = _aligned(size) + _ALIGNMENT
        return Place(SCRATCH, 2 * self._block.buffer + 2 * number * plane, 2 * self._block.width, 2, plane)

    def _first(self, stage: Stage, source: Place, target: Place, factors: Factors) -> None:
        """The stage with runs of 1, into a buffer that is not the source."""
        block, radix, pitch = self._block, stage.radix, source.row_pitch
        roots = self._roots(stage)
        if block.is_row:
            numbers = {"source_distance": stage.source_distance * pitch, "count": stage.count}
            self._step(f"first_row{radix}", source, target, factors, roots=self._row_vectors(roots), **numbers)
            return
        numbers = self._distances(stage) | {
            "source_step": stage.source_step * pitch,
            "source_distance": stage.source_distance * pitch,
            "source_part": stage.source_part * pitch,
            "inner": self._width(source),
            "roots": self._tables.add(roots.T),
        }
        self._step(f"first{radix}", source, target, factors, **numbers)

    def _middle(self, stage: Stage, source: Place, target: Place) -> None:
        block, radix, run = self._block, stage.radix, stage.inner
        numbers, roots = self._distances(stage), self._roots(stage)
        if block.is_row and run < block.lanes and (kind := self._short_kind(stage)):
            used = block.lanes // run * run
            count = -(-stage.count * run // used)
            numbers |= {"inner": run, "source_step": used, "target_step": radix * used, "count": count}
            numbers |= {"butterflies": stage.count * run}
            repeated = np.repeat(roots, run, axis=1)
            begin = self._vectors(repeated, range(0, repeated.shape[1], used))
            self._step(kind, source, target, **numbers | {"roots": begin})
            return
        self._step(f"middle{radix}", source, target, roots=self._tables.add(roots.T), **numbers)

    def _last(self, stage: Stage, source: Place, target: Place, factors: Factors) -> None:
        """Rows that are not next to each other in the target are written one by one."""
        block, pitch = self._block, target.row_pitch
        numbers = self._distances(stage)
        numbers |= {"target_part": stage.target_part * pitch, "target_distance": stage.target_distance * pitch}
        if block.is_row or target.is_scratch:
            numbers |= {"target_step": stage.target_step * pitch}
        else:
            step = stage.target_step if stage.spreads_run else 1
            numbers |= {"count": stage.count * stage.inner, "inner": 0}
            numbers |= {"source_step": block.width, "target_step": step * pitch}
        self._step(f"last{stage.radix}", source, target, factors, **numbers)

    def _distances(self, stage: Stage) -> dict[str, int]:
        """The loops of a stage from planes to planes."""
        width = self._block.width
        return {
            "count": stage.count,
            "inner": stage.inner * width,
            "source_step": stage.source_step * width,
            "source_distance": stage.source_distance * width,
            "source_part": stage.source_part * width,
            "target_step": stage.target_step * width,
            "target_distance": stage.target_distance * width,
            "target_part": stage.target_part * width,
            "roots_part": stage.roots_part * 2 * (stage.radix - 1),
        }

    def _short_kind(self, stage: Stage) -> str | None:
        """The kind of stage for runs shorter than a vector, if there is a special one."""
        if 2 * stage.inner == self._block.lanes and stage.count % 2 == 0 and stage.radix in PAIRED_RADICES:
            return f"paired{stage.radix}"
        return f"short{stage.radix}" if self._has_short else None

    def _roots(self, stage: Stage) -> Array:
        """The roots for outputs 1 ... of butterflies, for each position, those of one part after another."""
        positions = stage.positions * stage.run
        powers = np.arange(1, stage.radix)[:, None] * positions
        return np.asarray(self._circle(stage.radix * positions.size * stage.run)[powers])

    def _circle(self, length: int) -> Array:
        """All roots of unity of an order, which the stages of a transform share."""
        if length not in self._circles:
            self._circles[length] = all_roots_of_unity(length)
        return self._circles[length]

    def _vectors(self, numbers: Array, starts: Sequence[int] | Array) -> int:
        """Adds vectors of numbers that begin at `starts` of each row, all rows of one start before the next; returns
        where they begin in the table."""
        lanes = self._block.lanes
        indices = np.minimum(np.asarray(starts)[:, None] + np.arange(lanes), numbers.shape[-1] - 1)
        return self._tables.add(numbers[:, indices].transpose(1, 0, 2), lanes)

    def _row_vectors(self, numbers: Array) -> int:
        """The same for a loop over the elements of a transform, whose last vector overlaps the one before."""
        count, lanes = numbers.shape[-1], self._block.lanes
        return self._vectors(numbers, np.minimum(np.arange(0, count, lanes), max(count - lanes, 0)))

    def _planes(self, numbers: Array) -> tuple[int, int]:
        """Adds numbers from which vectors may begin anywhere; returns where they begin, and the distance of their
        imaginary parts."""
        padded = np.pad(numbers, (0, self._block.lanes))
        return self._tables.add(padded, len(padded)), len(padded)

    def _convolution(self, source: Place, length: int, inverse: bool, scale: float, to: Place | None) -> Place:
        """Bluestein's way. The second transform, an inverse one, is that of the conjugate."""
        chirps = chirp(length).conj() if inverse else chirp(length)
        padded = smooth_length(2 * length - 1)
        wrapped = np.zeros(padded, chirps.dtype)
        wrapped[:length] = chirps.conj()
        wrapped[padded - length + 1 :] = chirps[:0:-1].conj()
        radices = self._radices(padded)
        assert radices is not None
        operand = self._other(source)
        self._times(source, operand, chirps, PLAIN)
        tail = replace(operand, offset=operand.offset + length * operand.row_pitch)
        self._step("clear", tail, tail, count=(padded - length) * operand.row_pitch)
        spectrum = self._stages(operand, padded, radices)
        product = self._other(spectrum)
        self._times(spectrum, product, np.fft.fft(wrapped) / padded, CONJUGATE)
        result = self._stages(product, padded, radices)
        target = to or self._other(result)
        self._times(result, target, chirps.conj(), (scale, -scale))
        return target

    def _times(self, source: Place, target: Place, numbers: Array, factors: Factors) -> None:
        """Rows times numbers."""
        count = len(numbers)
        if self._block.is_row:
            begin = self._row_vectors(numbers[None])
            self._step("times", source, target, factors, count=count, roots=begin)
            return
        steps = {"source_step": source.row_pitch, "target_step": target.row_pitch}
        inner, begin = self._width(source, target), self._tables.add(numbers)
        self._step("times_rows", source, target, factors, count=count, inner=inner, roots=begin, **steps)

    # -- real ----------------------------------------------------------------------------------------------------------

    def from_real(self, source: Place, target: Place, length: int) -> None:
        half = length // 2
        if length % 2:
            whole = self._buffer(0)
            self._copy("copy_in", source, whole, length)
            self._deliver(self._transform(whole, length), target, half + 1)
            return
        spectrum = self._transform(self._readable(replace(source, row_pitch=2), half), half)
        end = replace(spectrum, offset=spectrum.offset + half * spectrum.row_pitch)
        self._copy("copy", spectrum, end, 1)
        place = self._writable(target) or self._other(spectrum)
        self._halves("split", spectrum, place, half + 1, half, length)
        self._deliver(place, target, half + 1)

    def to_real(self, source: Place, target: Place, length: int, *, scale: float) -> None:
        half = length // 2
        if length % 2:
            whole = self._buffer(0)
            self._fill_in(source, whole, length)
            self._copy("copy_out", self._transform(whole, length, inverse=True), target, length, (scale, scale))
            return
        spectrum = self._readable(source, half + 1)
        joined, pairs = self._other(spectrum), replace(target, row_pitch=2)
        self._halves("join", spectrum, joined, half, half, length)
        result = self._transform(joined, half, inverse=True, scale=scale, to=self._writable(pairs))
        self._deliver(result, pairs, half)

    def _fill_in(self, source: Place, whole: Place, length: int) -> None:
        """The missing half of the spectrum of an odd length; the first element is real."""
        half = length // 2
        self._copy("copy", source, whole, half + 1)
        self._copy("copy_in", source, whole, 1)
        second = replace(source, offset=source.offset + source.row_pitch)
        back = replace(whole, offset=whole.offset + (length - 1) * whole.row_pitch, row_pitch=-whole.row_pitch)
        if half:
            self._copy("copy", second, back, half, CONJUGATE)

    def _halves(self, kind: str, source: Place, target: Place, count: int, half: int, length: int) -> None:
        numbers = roots_of_unity(np.arange(count), length)
        mirror = {"source_distance": half * source.row_pitch, "count": count}
        if self._block.is_row:
            begin, plane = self._planes(numbers)
            self._step(kind, source, target, roots=begin, roots_plane=plane, **mirror)
            return
        steps = {"source_step": source.row_pitch, "target_step": target.row_pitch}
        inner, begin = self._width(source, target), self._tables.add(numbers)
        self._step(f"{kind}_rows", source, target, inner=inner, roots=begin, **steps, **mirror)


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])
