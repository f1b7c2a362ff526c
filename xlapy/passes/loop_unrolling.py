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

LEAST_ROW = 64


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
        state = loop.operands[0]
        for _ in range(counter.trips):
            state = loop.parent.insert(loop.called[1], [state])
        loop.parent.replace(loop, state)
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


def _is_of_rounds(instruction: Instruction) -> bool:
    """Whether whole numbers are computed element by element, from others at the same place, and from single ones."""
    arrays = [leaf for leaf in instruction.shape.leaves() if leaf.is_array]
    if not all(array.type.is_integer and _has_long_rows(array) for array in arrays):
        return False
    is_elementwise = Trait.ELEMENTWISE in instruction.spec.traits
    return is_elementwise or instruction.opcode in _AROUND or instruction.shape.size == 1


def _has_long_rows(array: Shape) -> bool:
    """Whether it does not matter that a loop goes row by row, where it is told the elements' numbers by dimension: with
    3 to 33 in a row it takes up to twice as long as one after the other from memory. So it does not if they are few."""
    return array.rank < 2 or array.dims[-1] >= LEAST_ROW or array.size <= LEAST_ROW


_AROUND = frozenset({"parameter", "tuple", "get-tuple-element", "constant", "broadcast"})
