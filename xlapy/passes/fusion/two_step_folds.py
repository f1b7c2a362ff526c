"""Folds of what a kernel has folded become the second step of that kernel.

    t = f32[64] fusion(x), kind=kInput, calls=sums_of_parts
    ROOT r = f32[] reduce(t, zero), dimensions={0}, to_apply=sum

becomes

    ROOT r.fusion = f32[] fusion(x, zero), kind=kInput, calls=sum_in_two_steps

Large sums are made so (`split_reduction.py`), and means of what is one number per row. The parts are few and nobody
else reads them: they need no array, and no kernel of their own. What happens in which order is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import FOLDING_KINDS, KernelLimits, fold_of, is_inlinable, is_kernel_constant
from xlapy.passes.base import ComputationPass, Record, pinned
from xlapy.passes.fusion.build import empty_box

MOST_PART_BYTES = 64 * 1024  # that one thread folds: more may be worth dealing out


@dataclass
class TwoStepFolds(ComputationPass):
    name: ClassVar[str] = "two-step-folds"

    limits: KernelLimits = field(default_factory=KernelLimits)

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        changed = False
        for second in computation.post_order():
            parts = _parts(second)
            if parts is None or fixed & {second, parts} or not _is_first_step(parts, second):
                continue
            operands = _operands(parts, second)
            if len(operands) <= self.limits.operands:
                fusion = _join(computation, parts, second, operands)
                kept = f"{parts.shape.bytes:,} bytes need no array"
                reason = f"what is folded of {parts.shape.size} results is its second step: {kept}"
                self.records.append(Record.of(fusion, True, reason))
                changed = True
        return changed


def _parts(second: Instruction) -> Instruction | None:
    """The array that a kernel folds as it is in memory."""
    if _is_plain_reduce(second):
        return second.operands[0]
    if second.opcode != "fusion" or second.attributes["kind"] is not FusionKind.INPUT:
        return None
    fold = fold_of(second.called[0])
    source = fold.operands[0]
    if not _is_plain_reduce(fold) or source.opcode != "parameter" or fold_steps(second.called[0]) is not None:
        return None
    number: int = source.attributes["number"]
    return second.operands[number]


def _is_plain_reduce(instruction: Instruction) -> bool:
    return instruction.opcode == "reduce" and len(instruction.operands) == 2 and is_inlinable(instruction.called[0])


def _is_first_step(parts: Instruction, second: Instruction) -> bool:
    """A kernel folds the parts, for `second` alone."""
    if {*parts.users} != {second} or second.operands.count(parts) != 1 or parts.is_root or not parts.shape.is_array:
        return False
    if not 0 < parts.shape.bytes <= MOST_PART_BYTES or parts.control_predecessors:
        return False
    if parts.opcode != "fusion":
        return _is_plain_reduce(parts)
    fused = parts.called[0]
    if parts.attributes["kind"] not in FOLDING_KINDS or fold_steps(fused) is not None:
        return False
    fold = fold_of(fused)  # of a chain over rows the first one
    return _is_plain_reduce(fold) and fold.operands[0].shape.dims != parts.shape.dims


def _operands(parts: Instruction, second: Instruction) -> list[Instruction]:
    """What the two steps read, constants excepted that are written into the code."""
    read = dict.fromkeys((*parts.operands, *second.operands))
    return [operand for operand in read if operand is not parts and not is_kernel_constant(operand)]


def _join(
    computation: Computation, parts: Instruction, second: Instruction, operands: list[Instruction]
) -> Instruction:
    """Puts the fusion of both steps in their place."""
    fused = _both_steps(parts, second, operands)
    fusion = computation.add(
        "fusion",
        operands,
        called=[fused],
        shape=second.shape,
        name=second.name if second.opcode == "fusion" else f"{second.name}.fusion",
        metadata=second.metadata,
        kind=parts.attributes["kind"] if parts.opcode == "fusion" else FusionKind.INPUT,
    )
    computation.replace(second, fusion)
    computation.remove([second, parts])
    return fusion


def _both_steps(parts: Instruction, second: Instruction, operands: Sequence[Instruction]) -> Computation:
    """The fused computation: what the first kernel does, then what the second one does."""
    fused, copies = empty_box(f"fused.{second.name}", operands)
    for step in (parts, second):
        for operand in step.operands:
            if operand not in copies:
                copies[operand] = fused.add_copy(operand, ())
        arguments = [copies[operand] for operand in step.operands]
        is_fusion = step.opcode == "fusion"
        copies[step] = fused.insert(step.called[0], arguments) if is_fusion else fused.add_copy(step, arguments)
    fused.set_root(copies[second])
    return fused
