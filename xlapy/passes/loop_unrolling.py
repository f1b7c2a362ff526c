"""Unrolling: a loop that runs a few times, by its own counting, is its body that many times in a row.

    w = (s32[], f32[8]) while(t), condition=i < 2, body={ i + 1, tanh(x) }       becomes       tanh(tanh(x))

What runs once needs no loop at all, however large it is. Else the copies together must be small: they are compiled
each for itself, and gain by what they then share with their neighbours. Loops whose body has an effect, or control
flow of its own, are copied at most once.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import loop_counter
from xlapy.hlo.ops import Trait
from xlapy.passes.base import ComputationPass, Record, pinned


@dataclass
class LoopUnrolling(ComputationPass):
    """`trips` and `instructions` bound how often a body is copied, and how many instructions that may make."""

    name: ClassVar[str] = "unroll-loops"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    trips: int = 4
    instructions: int = 64

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
        is_plain = not body.has_effect and not any(Trait.CONTROL in i.spec.traits for i in body)
        return is_plain and trips <= self.trips and trips * len(body) <= self.instructions
