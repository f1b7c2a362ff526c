"""Modules as plain data, to compare programs that went through text."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.graph import Computation, HloModule, Instruction


def structure(module: HloModule) -> list[Any]:
    """Everything about a module but names, computations in the order callees first."""
    numbers = {computation: number for number, computation in enumerate(module.computations())}
    config = (module.config.num_replicas, module.config.num_partitions)
    return [config, *(_computation(computation, numbers) for computation in numbers)]


def _computation(computation: Computation, numbers: dict[Computation, int]) -> list[Any]:
    order = {instruction: number for number, instruction in enumerate(computation.post_order())}
    return [_instruction(instruction, order, numbers) for instruction in order]


def _instruction(
    instruction: Instruction, order: dict[Instruction, int], numbers: dict[Computation, int]
) -> tuple[Any, ...]:
    return (
        instruction.opcode,
        instruction.shape,
        instruction.attributes,
        [order[operand] for operand in instruction.operands],
        [numbers[computation] for computation in instruction.called],
        instruction.metadata,
        instruction.extra,
    )


def opcodes(module: HloModule) -> list[str]:
    """The opcodes of the entry, in order."""
    return [instruction.opcode for instruction in module.entry.post_order()]
