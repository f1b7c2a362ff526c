"""Unrolling: a loop that runs a few times, by its own counting, is its body that many times in a row.

    w = (s32[], f32[8]) while(t), condition=i < 2, body={ i + 1, tanh(x) }       becomes       tanh(tanh(x))

What runs once needs no loop at all, however large it is. Else the copies together must be small: they are compiled
each for itself, and gain by what they then share with their neighbours. Loops whose body has an effect, or control
flow of its own, are copied at most once.

Rounds of a generator of random numbers may be more: whole numbers, element by element, so that all copies are one loop
over the elements, in which the state stays in registers, and by how much a round turns bits is known.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import loop_counter
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape
from xlapy.passes.base import ComputationPass, Record, pinned

LEAST_ROW = 16
LEAST_ARRAY = 64


@dataclass
class LoopUnrolling(ComputationPass):
    """`trips` and `instructions` bound how often a body is copied, and how many instructions that may make; `rounds`
    and `instructions_of_rounds` do so where it is made of whole numbers."""

    name: ClassVar[str] = "unroll-loops"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    trips: int = 4
    instructions: int = 64
    rounds: int = 8
    instructions_of_rounds: int = 512

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode == "while" and instruction not in fixed:
                changed = self._unroll(instruction) or changed
        return changed

    def _unroll(self, loop: Instruction) -> bool:
        counter = loop_counter(loop)
        if counter is None or not self._is_small(loop.called[1], counter.trips) or loop.called[0].has_effect:
            return False
        self.records.append(Record.of(loop, True, f"runs {counter.trips} times"))
        loop.parent.replace(loop, _in_a_row(loop, counter.trips))
        loop.parent.remove([loop])
        return True

    def _is_small(self, body: Computation, trips: int) -> bool:
        if trips <= 1:
            return True
        if body.has_effect or any(Trait.CONTROL in i.spec.traits for i in body):
            return False
        if trips <= self.trips and trips * len(body) <= self.instructions:
            return True
        is_short = trips <= self.rounds and trips * len(body) <= self.instructions_of_rounds
        return is_short and all(map(_is_of_rounds, body))


def _in_a_row(loop: Instruction, trips: int) -> Instruction:
    """The state behind so many runs of the body. Elements go from one to the next by themselves, and numbers are there
    once: later passes have less to look at."""
    parent, body, state = loop.parent, loop.called[1], loop.operands[0]
    reads = {user: user.attributes["index"] for user in body.parameters[0].users if user.opcode == "get-tuple-element"}
    order = [i for i in body.post_order() if i not in reads and i not in (body.parameters[0], body.root)]
    if not trips or len(reads) < len(body.parameters[0].users) or not _ends_in_tuple(body):
        for _ in range(trips):
            state = parent.insert(body, [state])
        return state
    elements = list(state.operands) if state.opcode == "tuple" else parent.unpacked(state)
    shared = {i: parent.add_copy(i, []) for i in order if i.opcode == "constant"}
    for _ in range(trips):
        copies = {**shared, **{read: elements[index] for read, index in reads.items()}}
        for instruction in order:
            if instruction not in copies:
                copies[instruction] = parent.add_copy(instruction, [copies[o] for o in instruction.operands])
        elements = [copies[operand] for operand in body.root.operands]
    return parent.add("tuple", elements)


def _ends_in_tuple(body: Computation) -> bool:
    """Whether elements of the next state are known one by one, and nothing is in order but by what it uses."""
    is_tuple = body.root.opcode == "tuple" and not body.root.users
    return is_tuple and not any(instruction.control_predecessors for instruction in body)


def _is_of_rounds(instruction: Instruction) -> bool:
    """Whether whole numbers are computed element by element, from others at the same place, and from single ones."""
    if not all(leaf.type.is_integer for leaf in instruction.shape.leaves() if leaf.is_array):
        return False
    if instruction.opcode in _AROUND or instruction.shape.size == 1 or _keeps_places(instruction):
        return True
    return Trait.ELEMENTWISE in instruction.spec.traits and _has_long_rows(instruction.shape)


def _keeps_places(instruction: Instruction) -> bool:
    """Whether it is a reshape that adds or drops dimensions of one element, as keys side by side have them."""
    if instruction.opcode != "reshape":
        return False
    before, after = instruction.operands[0].shape.dims, instruction.shape.dims
    return [size for size in before if size != 1] == [size for size in after if size != 1]


def _has_long_rows(array: Shape) -> bool:
    """Whether it does not matter that a loop goes row by row, where it is told the elements' numbers by dimension: with
    2 to 12 in a row it takes up to four times as long as one after the other from memory. So it does not if they are
    few."""
    return array.rank < 2 or array.dims[-1] >= LEAST_ROW or array.size <= LEAST_ARRAY


_AROUND = frozenset({"parameter", "tuple", "get-tuple-element", "constant", "broadcast"})
