"""What two computations have in common that do the same: a key that is equal for both, whatever their names are."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from xlapy.hlo.graph import Computation, Instruction, topological


def content(computation: Computation, described: Callable[[Instruction], Hashable]) -> Hashable:
    """Equal for computations whose instructions are the same one by one: op, shape with layouts, operands, control
    edges, and what `described` says of each, which is to tell apart attributes and the computations that it calls.

    They are compared in the order in which the root needs them, and others behind: in which order they were added does
    not matter."""
    order = topological((computation.root, *computation))
    number = {instruction: place for place, instruction in enumerate(order)}
    number_of = number.__getitem__
    lines = tuple(
        (
            instruction.opcode,
            instruction.shape,
            (*map(number_of, instruction.operands),),
            (*map(number_of, instruction.control_predecessors),),
            described(instruction),
        )
        for instruction in order
    )
    return lines, number[computation.root]
