"""Kernels of what multiplies matrices, and solves with them, where no library does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.convolution import emit_convolution, plan_convolution
from xlapy.codegen.kernels.dot import emit_dot, plan_dot
from xlapy.codegen.kernels.eigh import emit_eigh
from xlapy.codegen.kernels.factors import plan_factors
from xlapy.codegen.kernels.linalg import emit_cholesky, emit_triangular_solve, plan_triangle
from xlapy.codegen.kernels.lu import emit_lu
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation, kernel_of_call
from xlapy.codegen.kernels.reflections import emit_householder_product, emit_qr_decomposition
from xlapy.codegen.kernels.rotations import plan_rotations
from xlapy.codegen.kernels.svd import emit_svd
from xlapy.codegen.libraries.depthwise import call_of_depthwise
from xlapy.codegen.libraries.depthwise_gradient import call_of_depthwise_gradient
from xlapy.codegen.libraries.depthwise_planes import call_of_depthwise_planes
from xlapy.codegen.libraries.depthwise_planes_gradient import call_of_depthwise_planes_gradient
from xlapy.codegen.libraries.direct import call_of_direct
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
    call = call_of_small_product(instruction)
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

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("cholesky")
def _cholesky(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_triangle(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_cholesky(k, instruction, plan, arrays[0], outputs[0], begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.least_units)


_BY_ROTATIONS: Mapping[str, Callable[..., None]] = {"eigh": emit_eigh, "svd": emit_svd}
_FACTORING = {"householder-product": emit_householder_product, "lu": emit_lu, "qr-decomposition": emit_qr_decomposition}


@KERNELS.register(*_BY_ROTATIONS)
def _rotations(instruction: Instruction, situation: Situation) -> Kernel:
    plan, emit = plan_rotations(instruction, situation.target), _BY_ROTATIONS[instruction.opcode]

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit(k, plan, arrays[0], outputs, begin, end, **instruction.attributes)

    return Kernel(
        plan.units,
        plan.bytes_per_unit,
        body,
        own_bytes=plan.scratch_bytes,
        least_units=plan.least_units,
        listens=plan.takes_long,
    )


@KERNELS.register(*_FACTORING)
def _factors(instruction: Instruction, situation: Situation) -> Kernel:
    plan, emit = plan_factors(instruction, situation.target), _FACTORING[instruction.opcode]

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit(k, plan, arrays, outputs, begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.least_units, listens=plan.takes_long)


@KERNELS.register("triangular-solve")
def _triangular_solve(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_triangle(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        a, b = arrays
        emit_triangular_solve(k, instruction, plan, a, b, outputs[0], begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.least_units)
