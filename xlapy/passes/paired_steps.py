"""Paired steps: a loop whose steps read what they have to replace takes two of them at a time.

    while (i < 8) { i + 1, f(x) }     becomes     while (i < 8) { i + 2, f(f(x)) }
    while (i < n) { i + 1, f(x) }     becomes     while (i < n) { y = f(x);  i + 1 < n ? (i + 2, f(y)) : (i + 1, y) }

A kernel that reads other elements of the state than that which it makes, as in a stencil, writes elsewhere, and
what it wrote is copied to where the state is. The second one of two steps writes there itself. Where it is not known
that there are two, by the loop's own counting, the condition is asked between them, and what the last step made is
copied if it was alone. That is for bodies that are a few kernels by now: both steps share these.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.leaves import is_renaming
from xlapy.hlo.literal import Literal
from xlapy.hlo.loop_counter import LoopCounter, loop_counters, state_index, trip_count
from xlapy.hlo.ops import Trait
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.passes.base import ComputationPass, Record, pinned
from xlapy.passes.loop_blocks import can_be_cut

LEAST_TRIPS = 4
"""If it is known how many there are."""

LEAST_SHARE = 8
"""What is copied, this many times, is no less than all that a step makes: else more is spent on the temporaries of two
steps, some of which are there at once."""


@dataclass
class PairedSteps(ComputationPass):
    """`instructions` bounds what a body may have."""

    name: ClassVar[str] = "pair-steps"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    instructions: int = 32

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode == "while" and instruction not in fixed:
                changed = self._pair(instruction) or changed
        return changed

    def _pair(self, loop: Instruction) -> bool:
        trips, body = trip_count(loop), loop.called[1]
        if (trips is not None and trips < LEAST_TRIPS) or len(body) > self.instructions or not can_be_cut(loop):
            return False
        has_control = any(Trait.CONTROL in instruction.spec.traits for part in loop.called for instruction in part)
        copied = [made for index, made in enumerate(body.root.operands) if _is_copied(body, index, made)]
        if has_control or not copied or not _is_much(copied, body):
            return False
        counters = [] if trips is None or trips % 2 else loop_counters(loop)
        are_doubled = all(_type_of(loop, counter).holds(2 * counter.step, 2 * counter.step) for counter in counters)
        pair = _twice(body, counters) if counters and are_doubled else _once_or_twice(loop)
        parent, called = loop.parent, [loop.called[0], pair]
        pairs = parent.add("while", loop.operands, called=called, name=loop.name, metadata=loop.metadata)
        self.records.append(Record.of(pairs, True, f"{copied[0].name} would be copied after each step"))
        parent.replace(loop, pairs)
        parent.remove([loop])
        return True


def _type_of(loop: Instruction, counter: LoopCounter) -> ElementType:
    return loop.shape.parts[counter.index].type


def _is_copied(body: Computation, index: int, made: Instruction) -> bool:
    """An element of the new state is made by a kernel that reads the old one and may not write there."""
    leaf = 0
    if made.opcode == "get-tuple-element":
        made, leaf = made.operands[0], made.attributes["index"]
    if made.opcode != "fusion" or _multiplies_matrices(made) or not body.root.operands[index].shape.rank:
        return False
    reading = [number for number, operand in enumerate(made.operands) if state_index(operand, body) == index]
    return bool(reading) and not {(number, leaf) for number in reading} & {*overwritable_operands(made)}


def _multiplies_matrices(fusion: Instruction) -> bool:
    """Beside that a copy is little, and two of them take twice as long to compile."""
    return any(member.opcode in ("dot", "convolution") for member in fusion.called[0])


def _is_much(copied: Sequence[Instruction], body: Computation) -> bool:
    made = sum(instruction.shape.bytes for instruction in body if not _is_there(instruction))
    return LEAST_SHARE * sum(instruction.shape.bytes for instruction in copied) >= made


def _is_there(instruction: Instruction) -> bool:
    return Trait.STRUCTURE in instruction.spec.traits or is_renaming(instruction)


def _twice(body: Computation, counters: list[LoopCounter]) -> Computation:
    """The body of two steps. What counts is one sum, as others expect of it."""
    twice, first = _first_step(body)
    root = twice.insert(body, [first])
    twice.set_root(root)
    _name_elements(first)
    for counter in counters:
        shape = root.operands[counter.index].shape
        step = twice.add("constant", literal=Literal(2 * counter.step, shape))
        old = twice.add("get-tuple-element", twice.parameters, index=counter.index)
        twice.replace(root.operands[counter.index], twice.add("add", [old, step]))
    return twice


def _once_or_twice(loop: Instruction) -> Computation:
    """The body of a step, and of a second one if the loop goes on after it."""
    condition, body = loop.called
    pair, first = _first_step(body)
    goes_on = pair.insert(condition, [first])
    _name_elements(first)
    changing = [index for index, made in enumerate(body.root.operands) if state_index(made, body) != index]
    second, nothing = body.clone(), Computation(f"{body.name}.skipped")
    nothing.add("parameter", shape=loop.shape, name=body.parameters[0].name, number=0)
    kept = [nothing.add("get-tuple-element", nothing.parameters, index=index) for index in changing]
    nothing.set_root(nothing.add("tuple", kept))
    second.set_root(second.add("tuple", [second.root.operands[index] for index in changing]))
    chosen = pair.add("conditional", [goes_on, first, first], called=[second, nothing])
    state = [*first.operands]
    for number, index in enumerate(changing):
        state[index] = pair.add("get-tuple-element", [chosen], index=number)
    pair.set_root(pair.add("tuple", state))
    return pair


def _first_step(body: Computation) -> tuple[Computation, Instruction]:
    """A new body that has done one step so far, and the state after it."""
    (state,) = body.parameters
    new = Computation(body.name)
    return new, new.insert(body, [new.add("parameter", shape=state.shape, name=state.name, number=0)])


def _name_elements(state: Instruction) -> None:
    """What is taken out of a tuple is what was put into it."""
    for user in state.users:
        state.parent.replace(user, state.operands[user.attributes["index"]])
