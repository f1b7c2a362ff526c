"""Initial values that a loop writes over before anybody reads them.

    filled = f32[100,16] broadcast(zero)
    loop = (s32[], f32[100,16]) while(tuple(zero, filled)), with a body that
        puts row i at i, i = 0, 1 ... 99, and does nothing else with the array

Results of all steps of a scan, or of all pieces of a batch, are made so. What they are filled with need not be made.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import LoopCounter, loop_counter, state_index
from xlapy.support.records import Record


def is_overwritten(initial: Instruction) -> bool:
    """Nobody reads an element of `initial`: it is the first value of an element of a loop's state, all of which the
    loop writes."""
    state = initial.sole_user
    loop = state.sole_user if state is not None and state.opcode == "tuple" and not state.is_root else None
    if initial.is_root or state is None or loop is None or loop.opcode != "while":
        return False
    places = [number for number, operand in enumerate(state.operands) if operand is initial]
    counter = loop_counter(loop)
    if len(places) != 1 or counter is None or counter.first != 0 or counter.step <= 0:
        return False
    condition, body = loop.called
    if any(user.opcode != "get-tuple-element" for part in (condition, body) for user in part.parameters[0].users):
        return False
    if _elements(condition, places[0]):
        return False
    return _writes_all(body, places[0], counter)


def _elements(computation: Computation, index: int) -> list[Instruction]:
    return [user for user in computation.parameters[0].users if state_index(user, computation) == index]


class _Update(Record):
    """A part of a whole, and where it begins."""

    part: Instruction
    starts: Sequence[Instruction]


def _writes_all(body: Computation, index: int, counter: LoopCounter) -> bool:
    """Each trip puts a part of the element where the counter says; together they are all of it."""
    elements = _elements(body, index)
    following = body.root.operands[index] if body.root.opcode == "tuple" else None
    if len(elements) != 1 or following is None or elements[0].sole_user is not following:
        return False
    update = _update_of(elements[0], following)
    if update is None:
        return False
    whole, part = following.shape.dims, update.part.shape.dims
    cut = [dim for dim, (size, taken) in enumerate(zip(whole, part, strict=True)) if size != taken]
    if not cut:
        return counter.trips > 0
    if len(cut) > 1 or state_index(update.starts[cut[0]], body) != counter.index:
        return False
    reached = (counter.trips - 1) * counter.step + part[cut[0]]
    return counter.trips > 0 and counter.step <= part[cut[0]] and reached >= whole[cut[0]]


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
