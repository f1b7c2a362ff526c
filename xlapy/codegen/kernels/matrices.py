"""How what factors matrices, and solves with them, runs as a kernel: one maker for all such ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.eigh import emit_eigh
from xlapy.codegen.kernels.factors import plan_factors
from xlapy.codegen.kernels.linalg import emit_cholesky, emit_triangular_solve, plan_triangle
from xlapy.codegen.kernels.lu import emit_lu
from xlapy.codegen.kernels.reflections import emit_householder_product, emit_qr_decomposition
from xlapy.codegen.kernels.rotations import plan_rotations
from xlapy.codegen.kernels.svd import emit_svd
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

Body = Callable[[KernelBuilder, Sequence[Array], Sequence[Array], Value, Value], None]


class MatrixWork(Record):
    """The code for a range of units, and how many these are. Matrices go `across` lanes, or one by one."""

    body: Body
    units: int
    bytes_per_unit: int
    least_units: int
    lanes: int
    across: bool
    scratch_bytes: int = 0
    takes_long: bool = False
    streaming: bool = False


def work_on_matrices(instruction: Instruction, target: Target, *, in_place: bool) -> MatrixWork:
    """How an instruction runs whose result may be where an operand is."""
    return MATRIX_OPS[instruction.opcode](instruction, target, in_place)


def _triangular(emit: Callable[..., None], instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    plan = plan_triangle(instruction, target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit(k, instruction, plan, *arrays, outputs[0], begin, end, in_place=in_place)

    return _work(body, plan, plan.across, streaming=plan.streaming)


def _rotations(emit: Callable[..., None], instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    plan = plan_rotations(instruction, target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit(k, plan, arrays[0], outputs, begin, end, **instruction.attributes)

    return _work(body, plan, plan.lanes > 1, scratch_bytes=plan.scratch_bytes, takes_long=plan.takes_long)


def _factors(emit: Callable[..., None], instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    plan = plan_factors(instruction, target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit(k, plan, arrays, outputs, begin, end, in_place=in_place)

    return _work(body, plan, plan.across, takes_long=plan.takes_long)


def _work(body: Body, plan: Any, across: bool, **others: Any) -> MatrixWork:
    return MatrixWork(body, plan.units, plan.bytes_per_unit, plan.least_units, plan.lanes, across, **others)


MATRIX_OPS: Mapping[str, Callable[[Instruction, Target, bool], MatrixWork]] = {
    "cholesky": partial(_triangular, emit_cholesky),
    "triangular-solve": partial(_triangular, emit_triangular_solve),
    "eigh": partial(_rotations, emit_eigh),
    "svd": partial(_rotations, emit_svd),
    "lu": partial(_factors, emit_lu),
    "qr-decomposition": partial(_factors, emit_qr_decomposition),
    "householder-product": partial(_factors, emit_householder_product),
}
