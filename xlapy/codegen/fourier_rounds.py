"""The stages of a long transform in rounds: as many at once as a part of the numbers can take within the nearest cache.

The stages of a round, of radices r1 r2 ... = R, turn numbers of M positions and runs of s (`libraries.fft_stages`)

    source[u + s (p + M n)], n < R      into      target[u + s (R p + j)], j < R

so that each position p, and each number u of a run, has no others to wait for. A part of a round takes one position,
or some numbers of a run, through all its stages: from the large buffer of the source to a near one, to another, ..., to
the large buffer of the target. A butterfly of eight
vectors takes 30 to 50 cycles of a Zen 5 where its numbers are near, and 70 where the second-level cache has them.

Near numbers of a part, with U numbers of a run, lie after stages with a product of B as

    u + U (j + B n), j < B, n < R / B
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy_runtime.records import Record

Array = np.ndarray[Any, Any]
Radices = tuple[int, ...]

MOST_STAGES = 3
"""Of a round: more would leave parts of less than a vector."""

MOST_NEAR_BUFFERS = 2
"""Of a round, whose stages read the one and write the other; a round of two stages has one."""


class Round(Record):
    """Stages, and the parts in which they are taken."""

    radices: Radices
    run: int  # numbers of a run in the source
    positions: int  # in the target
    run_part: int  # numbers of a run that a part has
    positions_part: int  # positions that a part has: one, or all

    @property
    def radix(self) -> int:
        """Of all stages together."""
        return math.prod(self.radices)

    @property
    def parts(self) -> int:
        return self.run // self.run_part * (self.positions // self.positions_part)

    @property
    def stages(self) -> list[Stage]:
        return [Stage(self, index) for index in range(len(self.radices))]


class Stage(Record):
    """One stage of a round: its loops and distances, in elements of a transform.

    `count` times, `step` apart, `inner` butterflies are next to each other, whose inputs and outputs are a distance
    apart; from part to part, source and target move on. Near numbers do not.
    """

    round: Round
    index: int

    @property
    def radix(self) -> int:
        return self.round.radices[self.index]

    @property
    def begins_round(self) -> bool:
        return self.index == 0

    @property
    def ends_round(self) -> bool:
        return self.index == len(self.round.radices) - 1

    @property
    def run(self) -> int:
        """Numbers of a run, of all parts."""
        return self.round.run * self._before

    @property
    def inner(self) -> int:
        return self.round.run_part * (1 if self.spreads_run else self._before)

    @property
    def count(self) -> int:
        return self._before if self.spreads_run else self.round.positions_part * self._rest

    @property
    def _rest(self) -> int:
        """Of the radix of the round, for the stages behind this one."""
        return self.round.radix // (self._before * self.radix)

    @property
    def source_step(self) -> int:
        if not self.begins_round:
            return self.inner
        return self.round.run if self._has_all_positions else self._source_rest

    @property
    def source_distance(self) -> int:
        return self._rest * (self._source_rest if self.begins_round else self._near_rest)

    @property
    def source_part(self) -> int:
        return self._part if self.begins_round else 0

    @property
    def roots_part(self) -> int:
        """Positions, whose roots are those of one part after another. Parts of a run have the same."""
        return 0 if self._splits_run else self.count

    @property
    def target_step(self) -> int:
        if not self.ends_round:
            return self.inner * self.radix
        return self.round.run if self.spreads_run else self.round.run * self.round.radix

    @property
    def target_distance(self) -> int:
        return self.run if self.ends_round else self.inner

    @property
    def target_part(self) -> int:
        if not self.ends_round:
            return 0
        return self._part * (1 if self._splits_run else self.round.radix)

    @property
    def spreads_run(self) -> bool:
        """What is next to each other in the near buffer goes to the target run by run."""
        return self.ends_round and self._splits_run

    @property
    def positions(self) -> Array:
        """Of all butterflies, those of one part after another."""
        numbers = np.arange(self._rest * self.round.positions).reshape(self._rest, -1, self.round.positions_part)
        return numbers.transpose(1, 0, 2).reshape(-1)

    @property
    def _before(self) -> int:
        return math.prod(self.round.radices[: self.index])

    @property
    def _has_all_positions(self) -> bool:
        return self.round.positions_part == self.round.positions

    @property
    def _source_rest(self) -> int:
        """From n to n + 1, in the source of the round."""
        return self.round.run * self.round.positions

    @property
    def _near_rest(self) -> int:
        return self.round.positions_part * self.round.run_part * self._before

    @property
    def _splits_run(self) -> bool:
        return self.round.run_part < self.round.run

    @property
    def _part(self) -> int:
        return self.round.run_part if self._splits_run else self.round.run * self.round.positions_part


@functools.lru_cache(maxsize=32)
def rounds_of(radices: Radices, width: int, lanes: int, near: int) -> tuple[Round, ...]:
    """The rounds for transforms of which `width` lie side by side: as few as there can be. Near buffers have room for
    `near` complex numbers in all; without such, each stage is a round.

    Of several ways, that with the longest last round: what it writes goes to memory while more is computed."""
    if near:
        for lengths in _compositions(len(radices)):
            if rounds := _rounds(radices, lengths, width, lanes, near):
                return rounds
    return _rounds(radices, (1,) * len(radices), width, lanes, near) or ()


@functools.lru_cache(maxsize=16)
def _compositions(count: int) -> Sequence[tuple[int, ...]]:
    """All ways to write a number as a sum of numbers up to that of stages in a round, the best for rounds first."""
    sums: list[tuple[int, ...]] = [()]
    done = []
    while sums:
        begun = sums.pop()
        rest = count - sum(begun)
        done += [] if rest else [begun]
        sums += [(*begun, part) for part in range(1, min(rest, MOST_STAGES) + 1)]
    return sorted(done, key=lambda parts: (len(parts), -parts[-1], parts))


def _rounds(radices: Radices, lengths: Sequence[int], width: int, lanes: int, near: int) -> tuple[Round, ...] | None:
    """Rounds of so many stages, if all of them are possible."""
    rounds: list[Round] = []
    run, positions = 1, math.prod(radices)
    for length in lengths:
        group, radices = radices[:length], radices[length:]
        positions //= math.prod(group)
        found = _round(group, run, positions, width, lanes, near)
        if found is None:
            return None
        rounds.append(found)
        run *= found.radix
    return tuple(rounds)


def _round(group: Radices, run: int, positions: int, width: int, lanes: int, near: int) -> Round | None:
    """A round, if there is room near for at least a vector of it. A single transform begins with a stage by itself:
    its lanes are positions, of which a part would read and write too few next to each other."""
    if len(group) == 1:
        return Round(group, run, positions, run, positions)
    room = near // min(len(group) - 1, MOST_NEAR_BUFFERS) // (math.prod(group) * width)
    if run * width < lanes or (run == 1 and width == 1):
        return None
    if positions > 1:
        return Round(group, run, positions, run, 1) if run <= room else None
    least = lanes if width == 1 else 1
    parts = [part for part in range(least, min(room, run) + 1) if run % part == 0]
    if not parts or (width > 1 and width < lanes):
        return None
    return Round(group, run, positions, max(parts) if width == 1 else 1, positions)
