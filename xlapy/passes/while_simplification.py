"""Simplification of while loops: loops that never run, carried values that nobody needs, that never change, or twice.

    b { s = (s32[], f32[8], f32[8]) parameter(0) ... ROOT t = tuple(i + 1, x, y * y) }
    w = (s32[], f32[8], f32[8]) while(init), condition=c, body=b        where only element 0 is used

becomes a loop that carries (s32[]) alone. An element is needed if the condition, the users of the loop, an effect in
the body, or the next value of a needed element reads it. An element that the body hands on unchanged is read from the
initial value behind the loop, and inside as well if it is a scalar constant. Of elements that are always equal, as two
counters that count alike, the first is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_kernel_constant
from xlapy.hlo.patterns import number_of
from xlapy.hlo.shape import Shape
from xlapy.passes.analysis.equal_elements import equal_elements
from xlapy.passes.base import ComputationPass, Record, needed_by, pinned, supplant


@dataclass
class WhileSimplification(ComputationPass):
    name: ClassVar[str] = "simplify-while"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode == "while" and instruction not in fixed:
                changed = _skip_idle_loop(instruction) or self._simplify_state(instruction) or changed
        return changed

    def _simplify_state(self, loop: Instruction) -> bool:
        init, body = loop.operands[0], loop.called[1]
        if init.opcode != "tuple" or body.root.opcode != "tuple":
            return False
        changed = self._merge_equal(loop)
        changed = _forward_unchanged(loop) or changed
        return _drop_unneeded(loop) or changed

    def _merge_equal(self, loop: Instruction) -> bool:
        equal = equal_elements(loop)
        merged = sorted(_read_first(loop, equal)) if equal else []
        if merged:
            pairs = ", ".join(f"{index} equals {equal[index]}" for index in merged)
            self.records.append(Record.of(loop, True, f"of the elements of its state, {pairs}"))
        return bool(merged)


def _skip_idle_loop(loop: Instruction) -> bool:
    """A loop whose condition is false from the start is its initial state."""
    stop = number_of(loop.called[0].root)
    if stop is None or stop:
        return False
    loop.parent.replace(loop, loop.operands[0])
    loop.parent.remove([loop])
    return True


def _read_first(loop: Instruction, equal: Mapping[int, int]) -> set[int]:
    """Reads the first of equal elements of the state, inside and outside, but to hand others on; returns which these
    were."""
    merged: set[int] = set()
    for state in (loop, *(called.parameters[0] for called in loop.called)):
        fixed = pinned(state.parent)
        readers = [user for user in state.users if user.opcode == "get-tuple-element"]
        first = {reader.attributes["index"]: reader for reader in reversed(readers)}
        instead: dict[Instruction, Instruction] = {}
        next_state = loop.called[1].root if state.parent is loop.called[1] else None
        misplaced = _misplaced(next_state)
        for reader in readers:
            index = reader.attributes["index"]
            is_read = reader.is_root or reader in misplaced or any(user is not next_state for user in reader.users)
            if index in equal and reader not in fixed and is_read:
                if equal[index] not in first:
                    first[equal[index]] = state.parent.add("get-tuple-element", [state], index=equal[index])
                instead[reader] = first[equal[index]]
                merged.add(index)
        _use_instead(state.parent, instead, next_state)
    return merged


def _misplaced(next_state: Instruction | None) -> set[Instruction]:
    """What the next state has at other places than elements of the state would be handed on at."""
    if next_state is None:
        return set()
    return {operand for place, operand in enumerate(next_state.operands) if not _is_element(operand, place)}


def _use_instead(
    computation: Computation, instead: Mapping[Instruction, Instruction], next_state: Instruction | None
) -> None:
    """Puts values where keys are used, but for elements at their own places in the next state; removes what nothing
    uses any more."""
    for user in dict.fromkeys(user for old in instead for user in old.users):
        operands = [instead.get(operand, operand) for operand in user.operands]
        if user is next_state:
            for place, operand in enumerate(user.operands):
                if _is_element(operand, place):
                    operands[place] = operand
        computation.set_operands(user, operands)
    if computation.root in instead:
        computation.set_root(instead[computation.root])
    computation.remove([old for old in instead if not old.users])


def _forward_unchanged(loop: Instruction) -> bool:
    """Reads elements that the body hands on unchanged from the initial value: outside, and inside where constant."""
    init, (condition, body) = loop.operands[0], loop.called
    unchanged = {
        index: init.operands[index]
        for index, result in enumerate(body.root.operands)
        if _is_element(result, index) and result.operands[0] is body.parameters[0]
    }
    readers = [user for user in loop.users if user.opcode == "get-tuple-element"]
    outside = {reader: unchanged[place] for reader in readers if (place := reader.attributes["index"]) in unchanged}
    changed = supplant(loop.parent, outside)
    constants = {i: value for i, value in unchanged.items() if is_kernel_constant(value) and value.shape.is_scalar}
    for inside in (condition, body):
        changed = _read_constants(inside, constants) or changed
    return changed


def _read_constants(computation: Computation, constants: Mapping[int, Instruction]) -> bool:
    """Puts constants where `computation` reads these elements of its state; the root still hands the elements on."""
    changed = False
    next_state = computation.root if computation.root.shape.is_tuple else None
    for reader in tuple(computation.parameters[0].users):
        source = constants.get(reader.attributes["index"]) if reader.opcode == "get-tuple-element" else None
        others = [user for user in reader.users if user is not next_state]
        if source is not None and (reader.is_root or others):
            constant = computation.add_copy(source, ())
            for user in others:
                operands = [constant if operand is reader else operand for operand in user.operands]
                computation.set_operands(user, operands)
            if reader.is_root:
                computation.set_root(constant)
            changed = True
    return changed


def _drop_unneeded(loop: Instruction) -> bool:
    """Rebuilds the loop with the elements of its state that are needed."""
    count = len(loop.shape.parts)
    needed = _needed_elements(loop)
    if not needed or len(needed) == count:
        return False
    computation, init = loop.parent, loop.operands[0]
    kept = sorted(needed)
    place = {index: number for number, index in enumerate(kept)}
    condition, body = (_with_fewer_elements(called, place) for called in loop.called)
    state = computation.add("tuple", [init.operands[index] for index in kept])
    smaller = computation.add_like(loop, [state], [condition, body])
    supplant(
        computation,
        {
            reader: computation.add("get-tuple-element", [smaller], index=place[reader.attributes["index"]])
            for reader in loop.users
        },
    )
    return computation.remove([loop])


def _needed_elements(loop: Instruction) -> set[int]:
    """The elements of the state that something reads besides their own next values."""
    everything = set(range(len(loop.shape.parts)))
    condition, body = loop.called
    if loop.is_root or any(user.opcode != "get-tuple-element" for user in loop.users):
        return everything
    effects = [instruction for instruction in body if instruction.has_effect]
    waiting = {user.attributes["index"] for user in loop.users}
    waiting |= _elements_read(condition, [condition.root, *(i for i in condition if i.has_effect)])
    waiting |= _elements_read(body, effects)
    seen: set[Instruction] = set()
    needed: set[int] = set()
    while waiting:
        index = waiting.pop()
        needed.add(index)
        waiting |= _elements_read(body, [body.root.operands[index]], seen) - needed
    return needed


def _elements_read(
    computation: Computation, roots: Sequence[Instruction], seen: set[Instruction] | None = None
) -> set[int]:
    """The elements of the state that `roots` depend on: all, if one takes the whole state.

    What is in `seen` has been asked about before and does not count; what is found enters it."""
    (state,) = computation.parameters
    read: set[int] = set()
    found = needed_by(roots, seen or set())
    if seen is not None:
        seen |= found
    for instruction in found:
        if state in instruction.operands:
            if instruction.opcode != "get-tuple-element":
                return set(range(len(state.shape.parts)))
            read.add(instruction.attributes["index"])
    return read | (set(range(len(state.shape.parts))) if state in roots else set())


def _with_fewer_elements(computation: Computation, place: dict[int, int]) -> Computation:
    """A copy whose state has only the elements of `place`, at their new places; so has its result, if it is a state."""
    (state,) = computation.parameters
    small = Computation(computation.name)
    root = computation.root
    is_state = root.shape.is_tuple
    results = [root.operands[index] for index in place] if is_state else [root]
    alive = needed_by([*results, *(instruction for instruction in computation if instruction.has_effect)])
    shape = Shape.tuple([state.shape.parts[index] for index in place])
    copies = {state: small.add("parameter", shape=shape, name=state.name, number=0)}
    for instruction in computation.post_order():
        if instruction not in alive or instruction is state:
            continue
        copy = small.add_copy(instruction, [copies[operand] for operand in instruction.operands])
        if instruction.opcode == "get-tuple-element" and instruction.operands[0] is state:
            small.set_attributes(copy, index=place[instruction.attributes["index"]])
        for predecessor in instruction.control_predecessors:
            small.add_control_edge(copies[predecessor], copy)
        copies[instruction] = copy
    small.set_root(small.add("tuple", [copies[result] for result in results]) if is_state else copies[root])
    return small


def _is_element(instruction: Instruction, index: int) -> bool:
    return instruction.opcode == "get-tuple-element" and instruction.attributes["index"] == index
