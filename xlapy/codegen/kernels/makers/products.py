"""Kernels of what multiplies matrices, and solves with them, where no library does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.columns import TASKS_PER_CORE
from xlapy.codegen.kernels.convolution import emit_convolution, plan_convolution
from xlapy.codegen.kernels.dot import emit_dot, plan_dot
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation, kernel_of_call
from xlapy.codegen.kernels.matrices import MATRIX_OPS, work_on_matrices
from xlapy.codegen.libraries.depthwise import call_of_depthwise
from xlapy.codegen.libraries.depthwise_gradient import call_of_depthwise_gradient
from xlapy.codegen.libraries.depthwise_planes import call_of_depthwise_planes
from xlapy.codegen.libraries.depthwise_planes_gradient import call_of_depthwise_planes_gradient
from xlapy.codegen.libraries.direct import call_of_direct
from xlapy.codegen.libraries.matrices import call_on_matrices
from xlapy.codegen.libraries.near_product import call_of_near_product
from xlapy.codegen.libraries.short_product import call_of_short_product
from xlapy.codegen.libraries.small_product import call_of_small_product
from xlapy.hlo.graph import Instruction


@KERNELS.register("dot")
def _dot(instruction: Instruction, situation: Situation) -> Kernel:
    rows = call_of_short_product(instruction)
    if rows is not None:
        units = instruction.shape.size // instruction.shape.dims[-1]
        kernel = kernel_of_call(rows, units, instruction.operands, instruction)
        return replace(kernel, least_units=situation.target.lanes(instruction.shape.type.bits))
    plan = plan_dot(instruction, situation.target)
    call = call_of_small_product(instruction) or (call_of_near_product(plan) if situation.runs_once else None)
    if call is not None:
        return Kernel(plan.units, plan.bytes_per_unit, call)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_dot(k, plan, arrays[0], arrays[1], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("convolution")
def _convolution(instruction: Instruction, situation: Situation) -> Kernel:
    target = situation.target
    calls = (call_of_depthwise, call_of_depthwise_planes, call_of_depthwise_planes_gradient)
    call = next(filter(None, (find(instruction, target) for find in calls)), None)
    if call is not None:
        return Kernel(call.units, call.unit_bytes, call.call, least_units=call.least_units)
    gradient = call_of_depthwise_gradient(instruction, target)
    if gradient is not None:
        return Kernel(
            gradient.units,
            gradient.unit_bytes,
            gradient.pieces,
            shared_bytes=gradient.scratch_bytes,
            finish=gradient.add,
        )
    direct = call_of_direct(instruction, target)
    if direct is not None:
        return Kernel(direct.units, direct.unit_bytes, direct.call)
    plan = plan_convolution(instruction, target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_convolution(k, plan, arrays[0], arrays[1], outputs[0], begin, end)

    least = -(-plan.units // (TASKS_PER_CORE * target.cores)) if plan.lines_at_once else 1
    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=least)


@KERNELS.register(*MATRIX_OPS)
def _of_matrices(instruction: Instruction, situation: Situation) -> Kernel:
    work = work_on_matrices(instruction, situation.target, in_place=situation.in_place)
    call = call_on_matrices(instruction, work, in_place=situation.in_place)
    return Kernel(
        work.units,
        work.bytes_per_unit,
        call or work.body,
        own_bytes=work.scratch_bytes,
        least_units=work.least_units,
        listens=work.takes_long,
    )
