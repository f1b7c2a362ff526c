"""Initial values that a loop writes over before anybody reads them.

    filled = f32[100,16] broadcast(zero)
    loop = (s32[], f32[100,16]) while(tuple(zero, filled)), with a body that
        puts row i at i, i = 0, 1 ... 99, and does nothing else with the array

Results of all steps of a scan, or of all pieces of a batch, are made so, forwards or backwards. What they are filled
with need not be made. In a loop over blocks of steps it is the loop inside of it that puts the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import LoopCounter, counters_within, state_index, value_within
from xlapy.hlo.progressions import progression_of
from xlapy.support.records import Record

_MOST_BLOCKS = 64
"""Trips of a loop around another one, each of which is looked at."""


def is_overwritten(initial: Instruction) -> bool:
    """Nobody reads an element of `initial`: it is the first value of an element of a loop's state, all of which the
    loop writes."""
    found = None if initial.is_root else _state_with(initial)
    trace = None if found is None else _trace(*found, {})
    return trace is not None and _covers(trace.spans, trace.size)


_Place: TypeAlias = "tuple[Instruction, int]"
"""A loop, and an element of its state."""


def _state_with(value: Instruction) -> _Place | None:
    """The loop whose state begins with `value`, if nobody else reads that."""
    state = value.sole_user
    loop = state.sole_user if state is not None and state.opcode == "tuple" and not state.is_root else None
    if state is None or loop is None or loop.opcode != "while":
        return None
    places = [number for number, operand in enumerate(state.operands) if operand is value]
    return (loop, places[0]) if len(places) == 1 else None


class _Trace(Record):
    """Which of `size` rows a loop writes, from one to behind another one, and what is known of its state behind it."""

    spans: list[tuple[int, int]]
    size: int
    values: Mapping[int, int]


def _trace(loop: Instruction, index: int, values: Mapping[int, int]) -> _Trace | None:
    """What a loop does with an element of its state, if it only writes it; `values` are known of the state of the loop
    around it, if there is one."""
    condition, body = loop.called
    counted = counters_within(loop, values)
    if counted is None or any(_is_whole_state(user) for part in (condition, body) for user in part.parameters[0].users):
        return None
    elements, following = _elements(body, index), body.root.operands[index]
    if _elements(condition, index) or len(elements) != 1:
        return None
    trips, counters = counted
    if following.opcode != "get-tuple-element":
        return _trace_of_steps(body, elements[0], following, trips, counters)
    found = _state_with(elements[0])
    if found is None or following.sole_user is not body.root or following.operands != (found[0],):
        return None
    is_only_reader = [user for user in found[0].users if _reads(user, found[1])] == [following]
    if not is_only_reader or trips > _MOST_BLOCKS:
        return None
    return _trace_of_blocks(loop, *found, trips, _initial(loop, values))


def _is_whole_state(user: Instruction) -> bool:
    return user.opcode != "get-tuple-element"


def _reads(user: Instruction, index: int) -> bool:
    """Whether somebody who has the state of a loop reads this element of it, or all."""
    return _is_whole_state(user) or user.attributes["index"] == index


def _elements(computation: Computation, index: int) -> list[Instruction]:
    return [user for user in computation.parameters[0].users if state_index(user, computation) == index]


def _trace_of_steps(
    body: Computation, element: Instruction, following: Instruction, trips: int, counters: Sequence[LoopCounter]
) -> _Trace | None:
    """Each trip puts a part of the element where a counter says."""
    update = _update_of(element, following) if element.sole_user is following else None
    if update is None or following.sole_user is not body.root:
        return None
    values = {counter.index: counter.first + trips * counter.step for counter in counters}
    whole, part = following.shape.dims, update.part.shape.dims
    cut = [dim for dim, (size, taken) in enumerate(zip(whole, part, strict=True)) if size != taken]
    if not cut or not trips:
        return _Trace([(0, 1)] if trips else [], 1, values)
    size, taken = whole[cut[0]], part[cut[0]]
    start = progression_of(update.starts[cut[0]], body, {counter.index: counter for counter in counters}, trips)
    if len(cut) > 1 or start is None or abs(start.step) > taken:
        return None
    first, last = (min(max(place, 0), size - taken) for place in (start.first, start.first + (trips - 1) * start.step))
    return _Trace([(min(first, last), max(first, last) + taken)], size, values)


def _trace_of_blocks(
    loop: Instruction, inner: Instruction, index: int, trips: int, values: Mapping[int, int]
) -> _Trace | None:
    """Each trip runs a loop that writes the element `index` of its own state; `values` are known in the first one."""
    body, size = loop.called[1], 0
    spans: list[tuple[int, int]] = []
    for _ in range(trips):
        trace = _trace(inner, index, values)
        if trace is None:
            return None
        spans, size = spans + trace.spans, trace.size
        values = _following(body, inner, values, trace.values)
    return _Trace(spans, size, values)


def _initial(loop: Instruction, values: Mapping[int, int]) -> dict[int, int]:
    """What is known of the state of a loop at first, if `values` are known of that of the loop around it."""
    found = ((index, value_within(start, loop.parent, values)) for index, start in enumerate(loop.operands[0].operands))
    return {index: value for index, value in found if value is not None}


def _following(
    body: Computation, inner: Instruction, values: Mapping[int, int], behind: Mapping[int, int]
) -> dict[int, int]:
    """What is known of the state after a trip, with what is known of that of the loop inside of it."""
    found = {}
    for index, made in enumerate(body.root.operands):
        is_of_inner = made.opcode == "get-tuple-element" and made.operands[0] is inner
        value = behind.get(made.attributes["index"]) if is_of_inner else value_within(made, body, values)
        if value is not None:
            found[index] = value
    return found


def _covers(spans: Sequence[tuple[int, int]], size: int) -> bool:
    reached = 0
    for first, end in sorted(spans):
        if first > reached:
            return False
        reached = max(reached, end)
    return reached >= size


class _Update(Record):
    """A part of a whole, and where it begins."""

    part: Instruction
    starts: Sequence[Instruction]


def _update_of(element: Instruction, following: Instruction) -> _Update | None:
    """How `following` is `element` with a part replaced, and nothing else of it; by itself or as a fusion."""
    if following.opcode == "dynamic-update-slice":
        target, part, *starts = following.operands
        is_target = target is element and element not in (part, *starts)
        return _Update(part, starts) if is_target else None
    if following.opcode != "fusion":
        return None
    root = following.called[0].root
    if root.opcode != "dynamic-update-slice" or list(following.operands).count(element) != 1:
        return None
    target, part, *starts = root.operands
    if target.opcode != "parameter" or following.operands[target.attributes["number"]] is not element:
        return None
    if target.sole_user is not root or list(root.operands).count(target) != 1:
        return None
    outside = [
        following.operands[start.attributes["number"]] if start.opcode == "parameter" else start for start in starts
    ]
    return _Update(part, outside)
