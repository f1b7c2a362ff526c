"""Rows that are one of two things, as a condition of the whole row says.

    f32[1024,256] select(broadcast(pred[1024] done), start, state)        copies a row of one of two arrays
    f32[32,64,64,3] select(broadcast(pred[32] b), reverse(x), x)          mirrors some of many images

Element by element, both would be read and computed; here the row is written down twice, and a branch chooses between.
Rows are so long that it matters little whether processors foresee it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from xlapy.hlo.graph import Instruction

LEAST_CHOSEN = 8  # vectors in a row


def choice_of_rows(roots: Sequence[Instruction], inner: Set[int]) -> Instruction | None:
    """The condition by which all roots choose, if it is repeated along the inner dimensions, those of a row."""
    conditions = [root.operands[0] for root in roots if root.opcode == "select"]
    if len(conditions) < len(roots):
        return None
    first = conditions[0]
    if first.opcode != "broadcast" or not inner.isdisjoint(first.attributes["dimensions"]):
        return None
    return first if all(_is_alike(condition, first) for condition in conditions) else None


def _is_alike(broadcast: Instruction, other: Instruction) -> bool:
    return broadcast is other or (
        broadcast.opcode == other.opcode
        and broadcast.operands == other.operands
        and broadcast.attributes == other.attributes
    )


def sides_of(roots: Sequence[Instruction], number: int) -> tuple[Instruction, ...]:
    """What the roots are where the condition is true, number 1, or false, number 2."""
    return tuple(root.operands[number] for root in roots)
