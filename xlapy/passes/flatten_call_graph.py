"""Flattening of the call graph: each computation that runs as control flow is called from exactly one place.

    a = while(s), condition=c, body=b            a = while(s), condition=c, body=b
    b = while(t), condition=c, body=b   becomes  b = while(t), condition=c.clone, body=b.clone

Afterwards an instruction of the program runs in one context, so a buffer, a layout or a fusion can be chosen for it.
The regions of reduce, map, sort ... stay shared: they become part of a kernel, or a function that kernels call. What
such a function runs as control flow is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.ops import Trait
from xlapy.passes.base import Pass


@dataclass
class FlattenCallGraph(Pass):
    name: ClassVar[str] = "flatten-call-graph"
    required: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Walks from the entry and region functions down, cloning what has been met before: the clone's own callees are
        met again."""
        changed = False
        waiting = [module.entry, *_region_functions(module)]
        met = set(waiting)
        while waiting:
            computation = waiting.pop()
            for instruction in computation.post_order():
                if Trait.CONTROL in instruction.spec.traits:
                    called = tuple(_own(callee, met) for callee in instruction.called)
                    changed = changed or called != instruction.called
                    _set_called(computation, instruction, called)
                    waiting.extend(called)
        return changed


def _region_functions(module: HloModule) -> list[Computation]:
    callers = (instruction for computation in module.computations() for instruction in computation.calling)
    return list(dict.fromkeys(function for caller in callers for function in region_functions(caller)))


def _own(callee: Computation, met: set[Computation]) -> Computation:
    own = callee if callee not in met else callee.clone(f"{callee.name}.clone")
    met.add(own)
    return own


def _set_called(computation: Computation, instruction: Instruction, called: tuple[Computation, ...]) -> None:
    if called != instruction.called:
        computation.set_called(instruction, called)
