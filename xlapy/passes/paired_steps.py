"""Paired steps: a loop whose steps read what they have to replace takes two of them at a time.

    while (i < 8) { i + 1, f(x) }     becomes     while (i < 8) { i + 2, f(f(x)) }

A kernel that reads other elements of the state than that which it makes, as in a stencil, writes elsewhere, and
what it wrote is copied to where the state is. The second one of two steps writes there itself. That is for loops that
run an even number of times, by their own counting, and whose bodies are a few kernels by now: both steps share these.
"""

from __future__ import annotations

from collections.abc import Sequence
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

LEAST_SHARE = 8
"""What is copied, this many times, is no less than all that a step makes: else more is spent on the temporaries of two
steps, some of which are there at once."""


@dataclass
class PairedSteps(ComputationPass):
    """`instructions` bounds what a body may have."""

    name: ClassVar[str] = "pair-steps"

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
        if trips is None or trips % 2 or trips < LEAST_TRIPS or len(body) > self.instructions or not can_be_cut(loop):
            return False
        has_control = any(Trait.CONTROL in instruction.spec.traits for instruction in body)
        copied = [made for index, made in enumerate(body.root.operands) if _is_copied(body, index, made)]
        if has_control or not copied or not _is_much(copied, body):
            return False
        counters = loop_counters(loop)
        if not all(_type_of(loop, counter).holds(2 * counter.step, 2 * counter.step) for counter in counters):
            return False
        twice, parent = _twice(body, counters), loop.parent
        called = [loop.called[0], twice]
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
    if made.opcode != "fusion" or not body.root.operands[index].shape.rank:
        return False
    reading = [number for number, operand in enumerate(made.operands) if state_index(operand, body) == index]
    return bool(reading) and not {(number, leaf) for number in reading} & {*overwritable_operands(made)}


def _is_much(copied: Sequence[Instruction], body: Computation) -> bool:
    made = sum(instruction.shape.bytes for instruction in body if not _is_there(instruction))
    return LEAST_SHARE * sum(instruction.shape.bytes for instruction in copied) >= made


def _is_there(instruction: Instruction) -> bool:
    return Trait.STRUCTURE in instruction.spec.traits or is_renaming(instruction)


def _twice(body: Computation, counters: list[LoopCounter]) -> Computation:
    """The body of two steps. What counts is one sum, as others expect of it."""
    (state,) = body.parameters
    twice = Computation(body.name)
    parameter = twice.add("parameter", shape=state.shape, name=state.name, number=0)
    first = twice.insert(body, [parameter])
    root = twice.insert(body, [first])
    twice.set_root(root)
    for user in first.users:
        twice.replace(user, first.operands[user.attributes["index"]])
    for counter in counters:
        shape = root.operands[counter.index].shape
        step = twice.add("constant", literal=Literal(2 * counter.step, shape))
        old = twice.add("get-tuple-element", [parameter], index=counter.index)
        twice.replace(root.operands[counter.index], twice.add("add", [old, step]))
    return twice
