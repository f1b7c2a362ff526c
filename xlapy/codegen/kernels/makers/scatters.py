"""Kernels that write where run-time numbers say."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation
from xlapy.codegen.kernels.scatter import emit_scatter, scatter_lanes
from xlapy.codegen.kernels.select_and_scatter import emit_select_and_scatter
from xlapy.codegen.kernels.select_and_scatter_plan import plan_select_and_scatter
from xlapy.codegen.stopping import LONG
from xlapy.hlo.graph import Instruction
from xlapy.hlo.padded_selections import PaddedSelection, whole_selection


@KERNELS.register("scatter")
def _scatter(instruction: Instruction, situation: Situation) -> Kernel:
    """One unit: updates of one element must keep their order."""
    lanes = scatter_lanes(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_scatter(k, instruction, lanes, arrays, outputs)

    count = len(instruction.operands) // 2
    updates = instruction.operands[count + 1]
    units = 1 if updates.shape.size and instruction.operands[0].shape.size else 0
    overwrites = tuple((number, number) for number in range(count))
    return Kernel(units, 0, body, overwrites, listens=updates.shape.size >= LONG)


@KERNELS.register("select-and-scatter")
def _select_and_scatter(instruction: Instruction, situation: Situation) -> Kernel:
    return selection_kernel(whole_selection(instruction), instruction.operands, situation)


def selection_kernel(found: PaddedSelection, operands: Sequence[Instruction], situation: Situation) -> Kernel:
    """A selection and what is around it, given the arrays of `operands`."""
    plan = plan_select_and_scatter(found, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_select_and_scatter(k, plan, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)
