"""Kernels that change the places of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.concatenate import emit_concatenate, plan_concatenate
from xlapy.codegen.kernels.interleave import emit_interleave, plan_interleave
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation, kernel_of_call
from xlapy.codegen.kernels.makers.loops import kernel_of_runs, loop_of
from xlapy.codegen.kernels.repack import emit_repack, plan_repack
from xlapy.codegen.kernels.transpose import (
    TransposePlan,
    block_lanes,
    emit_transpose,
    plan_short_transpose,
    plan_transpose,
)
from xlapy.codegen.libraries.copies import call_of_join, units_of_copy
from xlapy.codegen.libraries.turn import call_of_transpose
from xlapy.codegen.registers import memory_type
from xlapy.hlo.element_types import U64
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.leaves import is_renaming
from xlapy.hlo.shape import Dims, Shape


@KERNELS.register("transpose")
def _transpose(instruction: Instruction, situation: Situation) -> Kernel:
    return transpose_kernel(instruction, (), situation) or loop_of(instruction, situation)


def transpose_kernel(transpose: Instruction, mirrored: Dims, situation: Situation) -> Kernel | None:
    if not mirrored:
        transpose = _of_words(transpose)
    plan = plan_transpose(transpose, situation.target, mirrored)
    if plan is None:
        return None if mirrored else _kernel_of_short_sides(transpose, situation)
    call = call_of_transpose(plan, memory_type(transpose.shape.type).bytes)
    if call is not None:
        return Kernel(plan.units, plan.bytes_per_unit, call, has_long_tasks=plan.streaming)
    return _kernel_of_blocks(transpose, plan)


def _of_words(transpose: Instruction) -> Instruction:
    """The transpose, or the same one of words that have two or more of its elements each, which stay side by side."""
    operand, permutation = transpose.operands[0].shape, transpose.attributes["permutation"]
    row_major = all(shape.layout is None or shape.layout.is_row_major for shape in (operand, transpose.shape))
    dims = operand.dims
    if not row_major or not operand.size:
        return transpose
    width = memory_type(operand.type).bytes
    if operand.type.is_complex:
        width *= 2
    elif dims and permutation[-1] == len(dims) - 1:
        width *= dims[-1]
        dims, permutation = dims[:-1], permutation[:-1]
    else:
        return transpose
    if width != U64.bytes:
        return transpose
    words = Computation("words")
    source = words.add("parameter", (), shape=Shape.array(U64, dims), number=0)
    return words.add("transpose", (source,), permutation=permutation)


def renamed_kernel(root: Instruction, situation: Situation) -> Kernel | None:
    """A transpose of an operand under another shape."""
    source = root.operands[0]
    while is_renaming(source):
        source = source.operands[0]
    return transpose_kernel(root, (), situation) if source.opcode == "parameter" else None


def _kernel_of_short_sides(transpose: Instruction, situation: Situation) -> Kernel | None:
    interleave = _interleave_kernel(transpose, situation)
    if interleave is not None:
        return interleave
    plan, width = plan_short_transpose(transpose, situation.target), memory_type(transpose.shape.type).bytes
    if plan is None:
        return None
    call = call_of_transpose(plan, width) if plan.lanes == block_lanes(width, situation.target) else None
    return _kernel_of_blocks(transpose, plan) if call is None else Kernel(plan.units, plan.bytes_per_unit, call)


def _kernel_of_blocks(transpose: Instruction, plan: TransposePlan) -> Kernel:
    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_transpose(k, plan, *_seen_by(transpose, arrays[0], outputs[0]), begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


def _interleave_kernel(transpose: Instruction, situation: Situation) -> Kernel | None:
    plan = plan_interleave(transpose, situation.target)
    if plan is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_interleave(k, plan, *_seen_by(transpose, arrays[0], outputs[0]), begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


def _seen_by(transpose: Instruction, source: Array, result: Array) -> tuple[Array, Array]:
    """The arrays as those of words, if a transpose is one of these."""
    return replace(source, shape=transpose.operands[0].shape), replace(result, shape=transpose.shape)


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
    moved = kernel_of_runs(instruction, operands, situation)
    return moved or concatenate_kernel(instruction, operands, situation) or loop_of(instruction, situation)


def concatenate_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    known = frozenset(operands)
    plan = plan_concatenate(root, known.__contains__, sum(i.shape.bytes for i in known), situation.target)
    if plan is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_concatenate(k, plan, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)
