"""Scheduling: the order of execution.

Depth first from the root: a value is computed shortly before its first user, which keeps few values alive. Effects keep
the order of their tokens and control edges, since these are dependences like any other. Start ops run as early as they
can, and what does not need them runs before the first done op: it is what they overlap with.

Which operand is computed first decides how much memory is held meanwhile:

    a = f32[8] reduce(...big...)         computed first, keeps 32 bytes while b is made
    b = f32[1000000] exponential(x)      computed first, keeps 4 MB while a is made
    ROOT r = add(broadcast(a), b)

So where it lowers the peak, what takes much more memory to compute than to keep comes first. Orders that overlap with
the outside, or in which something is updated in place, stay as the program has them: there a reader that moves behind
the update would cost a copy.
"""

from __future__ import annotations

from xlapy.hlo.graph import Computation, HloModule, Instruction, topological
from xlapy.hlo.kernel_plan import fusion_roots, sequences
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule
from xlapy.passes.analysis.peak import by_need, memory_needs, peak_bytes
from xlapy.support.ordering import post_order


def schedule(module: HloModule) -> Schedule:
    """An order for every computation of the module that runs as a sequence (fused ones and inlined regions do not)."""
    order: dict[Computation, tuple[Instruction, ...]] = {}
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation not in order:
            order[computation] = _order(computation)
            for instruction in order[computation]:
                pending.extend(sequences(instruction))
    return Schedule(order)


def _order(computation: Computation) -> tuple[Instruction, ...]:
    """Depth first, in the order of operands or by what they need, whichever holds less at once."""
    first = _first(computation)
    plain = tuple(topological((*first, computation.root, *computation)))
    if first or any(_is_bound(instruction) for instruction in plain):
        return plain
    needs = memory_needs(plain)
    thrifty = tuple(post_order((computation.root, *computation), lambda instruction: iter(by_need(instruction, needs))))
    return thrifty if peak_bytes(thrifty) < peak_bytes(plain) else plain


def _is_bound(instruction: Instruction) -> bool:
    """Its place among the others matters for more than its result."""
    if instruction.has_effect or instruction.control_predecessors or Trait.CONTROL in instruction.spec.traits:
        return True
    if instruction.opcode == "fusion":
        return any(root.opcode in _UPDATES for root in fusion_roots(instruction.called[0]))
    return instruction.opcode in _UPDATES


_UPDATES = frozenset({"dynamic-update-slice", "scatter", "custom-call"})


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
