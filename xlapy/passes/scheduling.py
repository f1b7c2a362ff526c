"""Scheduling: the order of execution.

Depth first from the root: a value is computed shortly before its first user, which keeps few values alive. Effects keep
the order of their tokens and control edges, since these are dependences like any other.
"""

from __future__ import annotations

from xlapy.hlo.graph import Computation, HloModule, Instruction, topological
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule


def schedule(module: HloModule) -> Schedule:
    """An order for every computation of the module that runs as a sequence (fused ones and scalar regions do not)."""
    order: dict[Computation, tuple[Instruction, ...]] = {}
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation not in order:
            order[computation] = tuple(topological((computation.root, *computation)))
            for instruction in order[computation]:
                if Trait.CONTROL in instruction.spec.traits:
                    pending.extend(instruction.called)
    return Schedule(order)
