"""What it takes to make a value: whether it is worth keeping, where it could be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes.fusion.cost import TRANSCENDENTAL, operation_cost


@dataclass(frozen=True, slots=True)
class Making:
    """The bytes of the arrays that a value is made of where it is used, and what is among the work.

    Constants are no bytes. What has a kernel of its own is made of itself too: it is an array in memory anyway."""

    bytes: int = 0
    has_kernel: bool = False
    is_expensive: bool = False


def given(value: Instruction) -> Making:
    """The making of what is there."""
    return Making(sum(leaf.bytes for leaf in value.shape.leaves() if leaf.is_array))


def making_of(instruction: Instruction, known: Mapping[Instruction, Making]) -> Making:
    """What an instruction takes whose operands are `known`."""
    operands = [known[operand] for operand in dict.fromkeys(instruction.operands)]
    has_kernel = not instruction.spec.traits & _IN_PLACE
    read = sum(operand.bytes for operand in operands)
    return Making(
        max(read, given(instruction).bytes) if has_kernel else read,
        has_kernel or any(operand.has_kernel for operand in operands),
        operation_cost(instruction) >= TRANSCENDENTAL or any(operand.is_expensive for operand in operands),
    )


_IN_PLACE = frozenset({Trait.ELEMENTWISE, Trait.INDEX_MAP, Trait.STRUCTURE})
"""What is part of the kernel that reads it."""
