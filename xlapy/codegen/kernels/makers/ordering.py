"""Kernels of sorts, most of which a library does."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation
from xlapy.codegen.kernels.sort import emit_sort
from xlapy.codegen.libraries.sort import library_call
from xlapy.codegen.stopping import LONG
from xlapy.hlo.graph import Instruction
from xlapy.hlo.sort_plan import plan_sort
from xlapy.hlo.sort_plan import scratch_bytes as scratch_of_sort
from xlapy.support.errors import UnsupportedError

SORT_BYTES_PER_ELEMENT = 64  # traffic of a sorted element, over all passes


@KERNELS.register("sort", "topk")
def _sort(instruction: Instruction, situation: Situation) -> Kernel:
    """A unit is a group of rows. Only what compares in ways of its own has code of its own."""
    plan = plan_sort(instruction)
    are_results = instruction.opcode == "topk"
    if plan.has_positions and not (plan.has_signed_numbers if are_results else plan.has_small_numbers):
        raise UnsupportedError(
            f"{instruction.opcode} of {instruction.operands[0].shape.without_layout()}: "
            f"rows are of {plan.length} elements, and positions of 32 bits{', with a sign' if are_results else ''}"
        ).add_context(where=instruction.metadata.location())

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_sort(k, instruction.called[0], plan, arrays, outputs, begin, end)

    units = plan.units if plan.kept else 0
    total = plan.rows * plan.length * SORT_BYTES_PER_ELEMENT
    code = body if plan.key is None else library_call(instruction, plan, plan.key)
    shared = scratch_of_sort(instruction)
    return Kernel(units, total // max(units, 1), code, shared_bytes=shared, listens=plan.length >= LONG)
