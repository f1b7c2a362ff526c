"""How much memory an order of execution holds at once, counted on the graph.

An estimate for choosing among orders: what shares memory in place is counted twice, and every array is alive from
where it is made to its last reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_kernel_constant
from xlapy.hlo.leaves import SAME_VALUE, is_renaming
from xlapy.hlo.ops import Trait

Owners = Mapping[Instruction, tuple[Instruction, ...]]
"""The instructions whose memory the value of each is: of a tuple several, of most their own."""


def held_bytes(instruction: Instruction) -> int:
    """The bytes that an instruction asks for: none for what only renames, and for what the caller brings."""
    if Trait.STRUCTURE in instruction.spec.traits or is_renaming(instruction) or is_kernel_constant(instruction):
        return 0
    return sum(leaf.bytes for leaf in instruction.shape.leaves() if leaf.is_array and leaf.rank)


def owners_of(order: Sequence[Instruction]) -> Owners:
    owners: dict[Instruction, tuple[Instruction, ...]] = {}
    for instruction in order:
        owners[instruction] = _owners(instruction, owners)
    return owners


def peak_bytes(order: Sequence[Instruction]) -> int:
    """The most bytes alive at once when the instructions run in this order, beside those of the results: these have
    memory of their own from beginning to end."""
    owners = owners_of(order)
    last_use: dict[Instruction, int] = {}
    for place, instruction in enumerate(order):
        for operand in instruction.operands:
            last_use.update(dict.fromkeys(owners[operand], place))
    for result in owners[order[0].parent.root]:
        last_use.pop(result, None)
    held = {instruction: held_bytes(instruction) for instruction in last_use}
    freed: list[int] = [0] * (len(order) + 1)
    for instruction, place in last_use.items():
        freed[place] += held[instruction]
    alive = peak = 0
    for place, instruction in enumerate(order):
        alive += held.get(instruction, 0)
        peak = max(peak, alive)
        alive -= freed[place]
    return peak


def _owners(instruction: Instruction, owners: dict[Instruction, tuple[Instruction, ...]]) -> tuple[Instruction, ...]:
    """Whose memory the value of an instruction is."""
    if instruction.opcode == "get-tuple-element":
        source = instruction.operands[0]
        while source.opcode in SAME_VALUE:
            source = source.operands[0]
        return owners[source.operands[instruction.attributes["index"]] if source.opcode == "tuple" else source]
    if instruction.opcode in SAME_VALUE:
        return owners[instruction.operands[0]]
    if instruction.opcode == "tuple" or is_renaming(instruction):
        return tuple(dict.fromkeys(owner for operand in instruction.operands for owner in owners[operand]))
    return (instruction,)


def memory_needs(order: Iterable[Instruction]) -> dict[Instruction, int]:
    """About how many bytes it takes to compute each instruction, if what it needs is computed for it alone, and what
    leaves most behind it comes last."""
    needs: dict[Instruction, int] = {}
    for instruction in order:
        held = need = 0
        for operand in by_need(instruction, needs):
            need = max(need, held + needs[operand])
            held += held_bytes(operand)
        needs[instruction] = max(need, held + held_bytes(instruction))
    return needs


def by_need(instruction: Instruction, needs: dict[Instruction, int]) -> list[Instruction]:
    """The operands, what takes much more memory to compute than to keep first."""
    operands = dict.fromkeys(instruction.operands)
    if len(operands) < 2:
        return list(operands)
    return sorted(operands, key=lambda operand: held_bytes(operand) - needs[operand])
