"""Scheduling: the order of execution.

Depth first from the root: a value is computed shortly before its first user, which keeps few values alive. Effects keep
the order of their tokens and control edges, since these are dependences like any other. Start ops run as early as they
can, and what does not need them runs before the first done op: it is what they overlap with.
"""

from __future__ import annotations

from xlapy.hlo.graph import Computation, HloModule, Instruction, topological
from xlapy.hlo.kernel_plan import sequences
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule


def schedule(module: HloModule) -> Schedule:
    """An order for every computation of the module that runs as a sequence (fused ones and inlined regions do not)."""
    order: dict[Computation, tuple[Instruction, ...]] = {}
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation not in order:
            order[computation] = tuple(topological((*_first(computation), computation.root, *computation)))
            for instruction in order[computation]:
                pending.extend(sequences(instruction))
    return Schedule(order)


def _first(computation: Computation) -> list[Instruction]:
    """What runs before the first done op: start ops, and values that are combined with what they deliver."""
    dones = [instruction for instruction in computation if Trait.DONE in instruction.spec.traits]
    if not dones:
        return []
    starts = [instruction for instruction in computation if _is_start(instruction)]
    late: set[Instruction] = set()
    pending = list(dones)
    while pending:
        instruction = pending.pop()
        if instruction not in late:
            late.add(instruction)
            pending.extend(instruction.users)
    early = [operand for instruction in late for operand in instruction.operands if operand not in late]
    position = {instruction: number for number, instruction in enumerate(computation)}
    early_starts = [start for start in starts if start not in late]
    return [*early_starts, *sorted(dict.fromkeys(early), key=position.__getitem__)]


def _is_start(instruction: Instruction) -> bool:
    """A start op, or a send or recv: something that only begins, for a done op to wait for."""
    return Trait.START in instruction.spec.traits or any(Trait.DONE in user.spec.traits for user in instruction.users)
