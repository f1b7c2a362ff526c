"""Loops that count: from a constant, by a constant, to a constant."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    counting = _counting(loop)
    if counting is None:
        return None
    first, last = number_of(counting.start), number_of(counting.limit)
    return None if first is None or last is None else counting.between(int(first), int(last))


@dataclass(frozen=True, slots=True)
class _Counting:
    """A while that goes on as long as the element `index` of its state compares so with a limit."""

    index: int
    start: Instruction
    step: int
    direction: ComparisonDirection
    limit: Instruction

    def between(self, first: int, last: int) -> LoopCounter | None:
        """The counter from one number to another."""
        trips = _TRIPS[self.direction](first, self.step, last)
        if trips is None or not _fits(self.start, first + trips * self.step):
            return None
        return LoopCounter(self.index, first, self.step, trips)


def _counting(loop: Instruction) -> _Counting | None:
    condition, body = loop.called
    init, root, test = loop.operands[0], body.root, condition.root
    if test.opcode != "compare" or init.opcode != "tuple" or root.opcode != "tuple":
        return None
    direction, (counter, limit) = test.attributes["direction"], test.operands
    if not _changes(counter, loop):
        direction, counter, limit = _SWAPPED[direction], limit, counter
    index = state_index(counter, condition)
    if index is None or not counter.shape.type.is_integer:
        return None
    step = _step(root.operands[index], body, index)
    return None if step is None else _Counting(index, init.operands[index], step, direction, _in_front(limit, loop))


def _changes(value: Instruction, loop: Instruction) -> bool:
    """An element of the state, in the condition, that is not the same in each iteration."""
    index = state_index(value, loop.called[0])
    return index is not None and state_index(loop.called[1].root.operands[index], loop.called[1]) != index


def _in_front(value: Instruction, loop: Instruction) -> Instruction:
    """What an element of the state that never changes is in front of the loop; other values of the condition as is."""
    index = state_index(value, loop.called[0])
    return value if index is None or _changes(value, loop) else loop.operands[0].operands[index]


def mean_trips(loop: Instruction, around: Instruction) -> float | None:
    """How often the body of a while in the body of a loop `around` it runs, on average over the iterations of the
    latter, where that follows from its counters; None where that is not plain.

    A number that would wrap is not known."""
    counting, counters = _counting(loop), {counter.index: counter for counter in loop_counters(around)}
    iterations = next(iter(counters.values())).trips if counters else 0
    if counting is None or not 0 < iterations <= _MOST_ITERATIONS:
        return None
    body, total = around.called[1], 0
    for iteration in range(iterations):
        values = {index: counter.first + iteration * counter.step for index, counter in counters.items()}
        first, last = (value_within(bound, body, values) for bound in (counting.start, counting.limit))
        counter = None if first is None or last is None else counting.between(first, last)
        if counter is None:
            return None
        total += counter.trips
    return total / iterations


_MOST_ITERATIONS = 10_000
"""Of how many iterations each is looked at."""


def counters_within(loop: Instruction, values: Mapping[int, int]) -> tuple[int, list[LoopCounter]] | None:
    """How often the body of a while runs, and what counts there, in the body of another loop if `values` are known of
    the elements of its state (none elsewhere); None where that is not plain. What never changes counts by nothing."""
    counting, (init,), body = _counting(loop), loop.operands, loop.called[1]
    if counting is None:
        return None
    first, last = (value_within(bound, loop.parent, values) for bound in (counting.start, counting.limit))
    counter = None if first is None or last is None else counting.between(first, last)
    if counter is None:
        return None
    found = []
    for index, (start, following) in enumerate(zip(init.operands, body.root.operands, strict=True)):
        known = value_within(start, loop.parent, values) if start.shape.is_scalar else None
        step = 0 if state_index(following, body) == index else _step(following, body, index)
        if known is not None and step is not None and _fits(start, known + counter.trips * step):
            found.append(LoopCounter(index, known, step, counter.trips))
    return counter.trips, found


def value_within(value: Instruction, body: Computation, values: Mapping[int, int], depth: int = 4) -> int | None:
    """A number, an element of the state of a loop, or what at most `depth` levels of simple arithmetic make of them."""
    number = number_of(value)
    if number is not None:
        return int(number) if value.shape.type.is_integer else None
    index = state_index(value, body)
    if index is not None:
        return values.get(index)
    arithmetic = _ARITHMETIC.get(value.opcode)
    if arithmetic is None or not depth:
        return None
    one, other = (value_within(operand, body, values, depth - 1) for operand in value.operands)
    if one is None or other is None:
        return None
    result = arithmetic(one, other)
    return result if value.shape.type.holds(result, result) else None


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "minimum": min,
    "maximum": max,
}


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


def counted_range(
    loop: Instruction, range_of: Callable[[Instruction], tuple[int, int] | None]
) -> tuple[int, tuple[int, int]] | None:
    """The element of the state that counts up to a limit, and the least and the greatest value that the body may see;
    `range_of` says between which numbers its start and its limit lie, if that is known."""
    counting = _counting(loop)
    past = None if counting is None else _UPWARD.get(counting.direction)
    if counting is None or past is None or counting.step < 1:
        return None
    start, limit = (range_of(end) for end in (counting.start, counting.limit))
    if start is None or limit is None:
        return None
    last = max(limit[1] + past, start[0])
    return (counting.index, (start[0], last)) if _fits(counting.start, last + counting.step) else None


_UPWARD = {ComparisonDirection.LT: -1, ComparisonDirection.LE: 0}
"""How much more than the limit the last value is that goes on."""


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
