"""Copies that no instruction stands for.

Where a plan of memory leaves the state of a loop, the value of a branch or a result somewhere else than it must be,
the program moves it there. A compiler that writes its copies into the graph shows them as instructions; ours are found
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xlapy.hlo.buffer_plan import BufferPlan, Home
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.report.kernels import runs_of


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes that are read at one place and written at another on behalf of an instruction, `runs` times in a call."""

    instruction: Instruction
    bytes: int
    runs: float


def copies_of(module: HloModule, plan: BufferPlan) -> Iterator[Copy]:
    """The copies of one call of a program. Scalars are in registers, and move for nothing."""
    runs = {instruction: times for instruction, (times, _) in runs_of(module).items()}
    for instruction, times in runs.items():
        if instruction.opcode == "while":
            end_of_body = instruction.called[1].root
            yield from _moves(plan, instruction.operands[0], instruction, times)
            yield from _moves(plan, end_of_body, instruction, runs[end_of_body])
        elif instruction.opcode == "conditional":
            branches = [[*_moves(plan, branch.root, instruction, times)] for branch in instruction.called]
            yield from max(branches, key=lambda moves: sum(move.bytes for move in moves))
    yield from _results(plan, module.entry.root)


def _moves(plan: BufferPlan, source: Instruction, target: Instruction, runs: float) -> Iterator[Copy]:
    for leaf, shape in enumerate(target.shape.leaves()):
        if shape.is_array and shape.rank and plan.location(source, leaf) != plan.location(target, leaf):
            yield Copy(target, shape.bytes, runs)


def _results(plan: BufferPlan, root: Instruction) -> Iterator[Copy]:
    """What is not made in the caller's memory."""
    number = 0
    for leaf, shape in enumerate(root.shape.leaves()):
        if not shape.is_array:
            continue
        location = plan.location(root, leaf)
        if shape.rank and (location.home, location.index) != (Home.RESULT, number):
            yield Copy(root, shape.bytes, 1.0)
        number += 1
