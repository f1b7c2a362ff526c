"""Scheduling: the order of execution.

Depth first from the root: a value is computed shortly before its first user, which keeps few values alive. Effects keep
the order of their tokens and control edges, since these are dependences like any other. Start ops run as early as they
can, and what does not need them runs before the first done op: it is what they overlap with. A result that may live in
the memory of a donated parameter is computed behind whatever else reads the parameter, if it can wait so long.

Which operand is computed first decides how much memory is held meanwhile:

    a = f32[8] reduce(...big...)         computed first, keeps 32 bytes while b is made
    b = f32[1000000] exponential(x)      computed first, keeps 4 MB while a is made
    ROOT r = add(broadcast(a), b)

So where it lowers the peak, what takes much more memory to compute than to keep comes first, unless the order overlaps
with the outside or something is updated in place: there a reader that moves behind the update would cost a copy. Behind
that, what frees memory runs early (`early_release.py`), which moves no reader back, and nothing that has its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

from xlapy.hlo.donation import Donation
from xlapy.hlo.graph import Computation, HloModule, Instruction, topological
from xlapy.hlo.kernel_plan import fusion_roots, sequences
from xlapy.hlo.leaves import Leaf, array_leaves, is_name, leaf_count, origin_of_leaf
from xlapy.hlo.ops import Trait
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.views import is_name_or_part
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.passes.analysis.peak import by_need, memory_needs, peak_bytes
from xlapy.passes.early_release import release_early
from xlapy.support.ordering import post_order


def schedule(module: HloModule, donations: Sequence[Donation] = ()) -> Schedule:
    """An order for every computation of the module that runs as a sequence (fused ones and inlined regions do not)."""
    order: dict[Computation, tuple[Instruction, ...]] = {}
    pending = [module.entry]
    while pending:
        computation = pending.pop()
        if computation not in order:
            order[computation] = _order(computation)
            for instruction in order[computation]:
                pending.extend(sequences(instruction))
    if donations:
        order[module.entry] = _with_late_writes(module.entry, order[module.entry], donations)
    return Schedule(order)


def _order(computation: Computation) -> tuple[Instruction, ...]:
    """Depth first, in the order of operands or by what they need, with early release or without: whichever holds least
    at once."""
    first = _first(computation)
    plain = tuple(topological((*first, computation.root, *computation)))
    if first:
        return plain
    least, peak = plain, peak_bytes(plain)
    bound = {instruction for instruction in plain if _is_bound(instruction)}
    before = _readers_of_old_state(plain)
    if not bound:
        bytes_needed = memory_needs(plain)

        def needs(instruction: Instruction) -> Iterable[Instruction]:
            return (*by_need(instruction, bytes_needed), *before.get(instruction, ()))

        thrifty = tuple(post_order((computation.root, *computation), needs))
        if thrifty != plain:
            least, peak = min((least, peak), (thrifty, peak_bytes(thrifty)), key=itemgetter(1))
    if peak < LEAST_RELEASED:
        return least
    early = release_early(least, bound, before)
    holds_less = early != least and peak_bytes(early) <= peak - peak // LEAST_SHARE_RELEASED
    return early if holds_less else least


def _is_bound(instruction: Instruction) -> bool:
    """Its place among the others matters for more than its result."""
    if instruction.has_effect or instruction.control_predecessors or Trait.CONTROL in instruction.spec.traits:
        return True
    if instruction.opcode == "fusion":
        return any(root.opcode in _UPDATES for root in fusion_roots(instruction.called[0]))
    return instruction.opcode in _UPDATES


LEAST_RELEASED = 1 << 20
"""Bytes alive at once of which it pays to release some earlier: fewer lie in caches."""

LEAST_SHARE_RELEASED = 16
"""An order that holds less by less than one part of so many is not worth to leave the one that was written."""

_UPDATES = frozenset({"dynamic-update-slice", "scatter", "custom-call"})


def _readers_of_old_state(order: Sequence[Instruction]) -> dict[Instruction, list[Instruction]]:
    """For what makes the new state of a loop, in its body: what reads the old one, in whose memory it may be, before
    it in the order."""
    computation = order[0].parent
    root, parameters = computation.root, computation.parameters
    if not root.shape.is_tuple or len(parameters) != 1 or parameters[0].shape != root.shape:
        return {}
    seen: dict[Leaf, list[Instruction]] = {}
    place: dict[Instruction, int] = {}
    for number, instruction in enumerate(order):
        place[instruction] = number
        for operand in () if is_name(instruction) else instruction.operands:
            for leaf in range(leaf_count(operand.shape)):
                seen.setdefault(origin_of_leaf(operand, leaf), []).append(instruction)
    readers: dict[Instruction, list[Instruction]] = {}
    for leaf in range(leaf_count(root.shape)):
        writer, _ = origin_of_leaf(root, leaf)
        early = [reader for reader in seen.get((parameters[0], leaf), ()) if place[reader] < place[writer]]
        readers.setdefault(writer, []).extend(early)
    return readers


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


# -- donated parameters ------------------------------------------------------------------------------------------------


def _with_late_writes(
    entry: Computation, order: Sequence[Instruction], donations: Sequence[Donation]
) -> tuple[Instruction, ...]:
    """The order, with writers of donated memory moved behind its last reader, and no further: their operands wait."""
    moved = list(order)
    for parameter, writer in _writers_of_donated(entry, donations):
        others = _readers(parameter) - {writer}
        if others:
            _move_behind(moved, writer, others)
    return tuple(moved)


def _writers_of_donated(entry: Computation, donations: Sequence[Donation]) -> Iterable[tuple[Instruction, Instruction]]:
    """Donated parameters, each with what makes the result meant for its memory: the only one that may live there, or
    the first that is written over what it reads there."""
    parameters = [leaf for parameter in entry.parameters for leaf in array_leaves(parameter)]
    writers = [origin_of_leaf(*leaf) for leaf in array_leaves(entry.root)]
    overwritten = {writer: _overwritten(writer) for writer in writers}
    choices = Counter(donation.parameter for donation in donations)
    meant: dict[int, tuple[Instruction, Instruction]] = {}
    for result, number in donations:
        parameter, writer = parameters[number], writers[result]
        is_meant = choices[number] == 1 or parameter in overwritten[writer]
        if is_meant and writer[0].opcode != "parameter":
            meant.setdefault(number, (parameter[0], writer[0]))
    return meant.values()


def _overwritten(writer: Leaf) -> set[Leaf]:
    """What a result may be written over, of that which its instruction reads."""
    instruction, leaf = writer
    pairs = overwritable_operands(instruction)
    return {origin_of_leaf(instruction.operands[operand], 0) for operand, result in pairs if result == leaf}


def _readers(parameter: Instruction) -> set[Instruction]:
    """What reads the memory of a parameter, under any name, or a part of it."""
    readers: set[Instruction] = set()
    seen, pending = {parameter}, [parameter]
    while pending:
        for user in pending.pop().users:
            if not is_name_or_part(user):
                readers.add(user)
            elif user not in seen:
                seen.add(user)
                pending.append(user)
    return readers


def _move_behind(order: list[Instruction], writer: Instruction, readers: set[Instruction]) -> None:
    """Moves `writer`, and what depends on it, behind the last of `readers`, unless that is one of them."""
    begin = order.index(writer)
    end = max(number for number, instruction in enumerate(order) if instruction in readers) + 1
    if end <= begin:
        return
    late, early = {writer}, []
    for instruction in order[begin + 1 : end]:
        if any(needed in late for needed in (*instruction.operands, *instruction.control_predecessors)):
            late.add(instruction)
        else:
            early.append(instruction)
    if late & readers or any(instruction.has_effect or _is_start(instruction) for instruction in late):
        return
    order[begin:end] = [*early, *(instruction for instruction in order[begin:end] if instruction in late)]
