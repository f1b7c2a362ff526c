"""Integers that change evenly from iteration to iteration of a loop: counters, and sums with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import LoopCounter, loop_counters, state_index, trip_count
from xlapy.hlo.patterns import number_of
from xlapy.support.records import Record


class Progression(Record):
    """An integer that is `first` in the first iteration, and `step` more in each following one, without wrapping."""

    first: int
    step: int


def progression(value: Instruction, loop: Instruction) -> Progression | None:
    """How a scalar of the body changes from iteration to iteration, if it is a counter or a sum with one."""
    counters = {counter.index: counter for counter in loop_counters(loop)}
    trips = trip_count(loop)
    return progression_of(value, loop.called[1], counters, trips) if trips else None


def progression_of(
    value: Instruction, body: Computation, counters: Mapping[int, LoopCounter], trips: int
) -> Progression | None:
    """The same, in a loop that runs `trips` times and has these counters, by their elements of the state."""
    found = _Search(body, counters, {}).of(value)
    if found is None:
        return None
    last = found.first + (trips - 1) * found.step
    return found if value.shape.type.holds(min(found.first, last), max(found.first, last)) else None


MOST_FOLLOWED = 64
"""Instructions that are looked at, of one value."""


class _Search(NamedTuple):
    """What is known of values in the body of a loop, but for multiples of what a type has numbers: sums may wrap, on
    the way or at the end. Each is followed once."""

    body: Computation
    counters: Mapping[int, LoopCounter]
    known: dict[Instruction, Progression | None]

    def of(self, value: Instruction) -> Progression | None:
        if value not in self.known and len(self.known) < MOST_FOLLOWED:
            self.known[value] = None  # counts while it is looked for
            self.known[value] = self._of_new(value)
        return self.known.get(value)

    def _of_new(self, value: Instruction) -> Progression | None:
        number = number_of(value)
        if number is not None:
            return Progression(int(number), 0) if value.shape.type.is_integer else None
        index = state_index(value, self.body)
        if index is not None:
            counter = self.counters.get(index)
            return None if counter is None else Progression(counter.first, counter.step)
        sign = _SIGNS.get(value.opcode)
        if sign is None:
            return None
        one, other = map(self.of, value.operands)
        if one is None or other is None:
            return None
        return Progression(one.first + sign * other.first, one.step + sign * other.step)


_SIGNS = {"add": 1, "subtract": -1}
