"""Loops that count: from a constant, by a constant, to a constant."""

from __future__ import annotations

import re
from collections.abc import Callable

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.patterns import number_of
from xlapy.support.records import Record


class LoopCounter(Record):
    """The element `index` of the state of a loop is `first`, then `step` more in each of `trips` iterations."""

    index: int
    first: int
    step: int
    trips: int

    @property
    def values(self) -> tuple[int, int]:
        """The least and the greatest value that the body sees, if it runs at all."""
        last = self.first + max(self.trips - 1, 0) * self.step
        return min(self.first, last), max(self.first, last)


def loop_counter(loop: Instruction) -> LoopCounter | None:
    """How a while counts, or None where that is not plain."""
    condition, body = loop.called
    init, root, test = loop.operands[0], body.root, condition.root
    if test.opcode != "compare" or init.opcode != "tuple" or root.opcode != "tuple":
        return None
    direction, (counter, limit) = test.attributes["direction"], test.operands
    index = state_index(counter, condition)
    if index is None:
        direction, counter, limit = _SWAPPED[direction], limit, counter
        index = state_index(counter, condition)
    if index is None or not counter.shape.type.is_integer:
        return None
    numbers = (number_of(init.operands[index]), _step(root.operands[index], body, index), number_of(limit))
    if any(number is None for number in numbers):
        return None
    first, step, last = (int(number) for number in numbers if number is not None)
    trips = _TRIPS[direction](first, step, last)
    if trips is None or not _fits(counter, first + trips * step):
        return None
    return LoopCounter(index, first, step, trips)


def loop_counters(loop: Instruction) -> list[LoopCounter]:
    """Every element of the state that counts from a constant by a constant, in a loop that ends by its own counting."""
    trips = trip_count(loop)
    if trips is None:
        return []
    (init,), root = loop.operands, loop.called[1].root
    found = []
    for index, (start, following) in enumerate(zip(init.operands, root.operands, strict=True)):
        first, step = number_of(start) if start.shape.is_array else None, _step(following, loop.called[1], index)
        if first is None or step is None or not start.shape.type.is_integer:
            continue
        if _fits(start, int(first) + trips * step):
            found.append(LoopCounter(index, int(first), step, trips))
    return found


def trip_count(loop: Instruction) -> int | None:
    """How often the body of a while runs, if it counts; None where that is not plain."""
    counter = loop_counter(loop)
    return None if counter is None else counter.trips


def recorded_trip_count(loop: Instruction) -> int | None:
    """How often the body of a while runs by the word of the compiler whose dump it comes from.

    Nobody has checked that: good for reports, and not for rewriting."""
    found = _RECORDED.search(loop.extra.get("backend_config", ""))
    return int(found[1]) if found else None


_RECORDED = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"(\d+)"')


def state_index(value: Instruction, computation: Computation) -> int | None:
    """Which element of the state `value` is, in the condition or the body of a loop."""
    if value.opcode == "get-tuple-element" and value.operands[0] in computation.parameters[:1]:
        index: int = value.attributes["index"]
        return index
    return None


def _step(following: Instruction, body: Computation, index: int) -> int | None:
    """What the next value of an element of the state is more than the present one."""
    if following.opcode not in ("add", "subtract"):
        return None
    one, other = following.operands
    if following.opcode == "add" and state_index(one, body) != index:
        one, other = other, one
    number = number_of(other)
    if state_index(one, body) != index or number is None:
        return None
    return int(number) if following.opcode == "add" else -int(number)


def _fits(counter: Instruction, value: int) -> bool:
    """The counter does not wrap on its way to `value`."""
    return counter.shape.type.holds(value, value)


def _while_below(first: int, step: int, last: int) -> int | None:
    if first >= last:
        return 0
    return -(-(last - first) // step) if step > 0 else None


def _while_above(first: int, step: int, last: int) -> int | None:
    return _while_below(-first, -step, -last)


def _while_unequal(first: int, step: int, last: int) -> int | None:
    distance = last - first
    if not distance:
        return 0
    reached = step and not distance % step and distance // step > 0
    return distance // step if reached else None


def _while_equal(first: int, step: int, last: int) -> int | None:
    if first != last:
        return 0
    return 1 if step else None


_TRIPS: dict[ComparisonDirection, Callable[[int, int, int], int | None]] = {
    ComparisonDirection.LT: _while_below,
    ComparisonDirection.LE: lambda first, step, last: _while_below(first, step, last + 1),
    ComparisonDirection.GT: _while_above,
    ComparisonDirection.GE: lambda first, step, last: _while_above(first, step, last - 1),
    ComparisonDirection.NE: _while_unequal,
    ComparisonDirection.EQ: _while_equal,
}

_SWAPPED = {
    ComparisonDirection.LT: ComparisonDirection.GT,
    ComparisonDirection.LE: ComparisonDirection.GE,
    ComparisonDirection.GT: ComparisonDirection.LT,
    ComparisonDirection.GE: ComparisonDirection.LE,
    ComparisonDirection.NE: ComparisonDirection.NE,
    ComparisonDirection.EQ: ComparisonDirection.EQ,
}
