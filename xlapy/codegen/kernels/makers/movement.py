"""Kernels that change the places of elements."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.concatenate import emit_concatenate, plan_concatenate
from xlapy.codegen.kernels.interleave import emit_interleave, plan_interleave
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation, kernel_of_call
from xlapy.codegen.kernels.makers.loops import loop_of
from xlapy.codegen.kernels.repack import emit_repack, plan_repack
from xlapy.codegen.kernels.transpose import TransposePlan, emit_transpose, plan_short_transpose, plan_transpose
from xlapy.codegen.libraries.copies import call_of_join, units_of_copy
from xlapy.codegen.libraries.turn import call_of_transpose
from xlapy.codegen.registers import memory_type
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Dims


@KERNELS.register("transpose")
def _transpose(instruction: Instruction, situation: Situation) -> Kernel:
    return transpose_kernel(instruction, (), situation) or loop_of(instruction, situation)


def transpose_kernel(transpose: Instruction, mirrored: Dims, situation: Situation) -> Kernel | None:
    plan = plan_transpose(transpose, situation.target, mirrored)
    if plan is None:
        return None if mirrored else _kernel_of_short_sides(transpose, situation)
    call = call_of_transpose(plan, memory_type(transpose.shape.type).bytes)
    if call is not None:
        return Kernel(plan.units, plan.bytes_per_unit, call, has_long_tasks=plan.streaming)
    return _kernel_of_blocks(plan)


def _kernel_of_short_sides(transpose: Instruction, situation: Situation) -> Kernel | None:
    interleave = _interleave_kernel(transpose, situation)
    if interleave is not None:
        return interleave
    plan = plan_short_transpose(transpose, situation.target)
    return None if plan is None else _kernel_of_blocks(plan)


def _kernel_of_blocks(plan: TransposePlan) -> Kernel:
    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_transpose(k, plan, arrays[0], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


def _interleave_kernel(transpose: Instruction, situation: Situation) -> Kernel | None:
    plan = plan_interleave(transpose, situation.target)
    if plan is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_interleave(k, plan, arrays[0], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("bitcast-convert")
def _bitcast_convert(instruction: Instruction, situation: Situation) -> Kernel:
    """Between types of one width an element-wise loop."""
    if instruction.shape.type.bits == instruction.operands[0].shape.type.bits:
        return loop_of(instruction, situation)
    plan = plan_repack(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_repack(k, plan, arrays[0], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.lanes)


@KERNELS.register("concatenate")
def _concatenate(instruction: Instruction, situation: Situation) -> Kernel:
    operands = instruction.operands
    call = call_of_join(instruction, situation.target)
    if call is not None:
        return kernel_of_call(call, units_of_copy(instruction.shape.bytes), operands, instruction)
    return concatenate_kernel(instruction, operands, situation) or loop_of(instruction, situation)


def concatenate_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    known = frozenset(operands)
    plan = plan_concatenate(root, known.__contains__, sum(i.shape.bytes for i in known), situation.target)
    if plan is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_concatenate(k, plan, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)
