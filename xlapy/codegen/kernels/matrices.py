"""How what factors matrices, and solves with them, runs as a kernel: one maker for all such ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.eigh import emit_eigh
from xlapy.codegen.kernels.factors import plan_factors
from xlapy.codegen.kernels.linalg import (
    LARGEST_BLOCK,
    TrianglePlan,
    emit_cholesky,
    emit_triangular_solve,
    factor_numbers,
    plan_triangle,
    system_numbers,
    system_of,
)
from xlapy.codegen.kernels.lu import emit_lu
from xlapy.codegen.kernels.reflections import emit_householder_product, emit_qr_decomposition
from xlapy.codegen.kernels.rotations import plan_rotations
from xlapy.codegen.kernels.svd import emit_svd
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import Transpose
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

Body = Callable[[KernelBuilder, Sequence[Array], Sequence[Array], Value, Value, Sequence[Value]], None]
"""Writes code for a range of units. The last are `MatrixWork.numbers`, as they are or to be read when it runs."""


class Pattern(Record):
    """An instruction of which the code serves for many, all but the numbers: sizes of its operands, and attributes."""

    sizes: tuple[tuple[int, ...], ...]
    attributes: Mapping[str, Any]


class MatrixWork(Record):
    """The code for a range of units, and how many these are. Matrices go `across` lanes, or one by one."""

    write: Body
    units: int
    bytes_per_unit: int
    least_units: int
    lanes: int
    across: bool
    scratch_bytes: int = 0
    takes_long: bool = False
    streaming: bool = False
    numbers: tuple[int, ...] = ()  # sizes, and where elements are, for code that is written for any
    pattern: Pattern | None = None  # where there is such code, and matrices come one by one

    def body(
        self, k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value
    ) -> None:
        """The code for these matrices alone."""
        self.write(k, arrays, outputs, begin, end, [k.const(I64, number) for number in self.numbers])


def work_on_matrices(instruction: Instruction, target: Target, *, in_place: bool) -> MatrixWork:
    """How an instruction runs whose result may be where an operand is."""
    return MATRIX_OPS[instruction.opcode](instruction, target, in_place)


def _cholesky(instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    pattern = Pattern(((LARGEST_BLOCK, LARGEST_BLOCK),), {"lower": True})
    numbers = factor_numbers(instruction)
    return _triangular(emit_cholesky, instruction, plan_triangle(instruction, target), in_place, numbers, pattern)


def _triangular_solve(instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    plan, system = plan_triangle(instruction, target), system_of(instruction)
    attributes = {
        "left_side": True,
        "lower": True,
        "unit_diagonal": system.unit_diagonal,
        "transpose_a": Transpose.ADJOINT if system.conjugates else Transpose.NO_TRANSPOSE,
    }
    pattern = Pattern(((LARGEST_BLOCK, LARGEST_BLOCK), (LARGEST_BLOCK, plan.width)), attributes)
    return _triangular(emit_triangular_solve, instruction, plan, in_place, system_numbers(instruction), pattern)


def _triangular(
    emit: Callable[..., None],
    instruction: Instruction,
    plan: TrianglePlan,
    in_place: bool,
    numbers: tuple[int, ...],
    pattern: Pattern,
) -> MatrixWork:
    def body(
        k: KernelBuilder,
        arrays: Sequence[Array],
        outputs: Sequence[Array],
        begin: Value,
        end: Value,
        numbers: Sequence[Value],
    ) -> None:
        emit(k, instruction, plan, *arrays, outputs[0], begin, end, numbers, in_place=in_place)

    return _work(body, plan, plan.across, streaming=plan.streaming, numbers=numbers, pattern=pattern)


def _rotations(emit: Callable[..., None], instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    plan = plan_rotations(instruction, target)

    def body(
        k: KernelBuilder,
        arrays: Sequence[Array],
        outputs: Sequence[Array],
        begin: Value,
        end: Value,
        _: Sequence[Value],
    ) -> None:
        emit(k, plan, arrays[0], outputs, begin, end, **instruction.attributes)

    return _work(body, plan, plan.lanes > 1, scratch_bytes=plan.scratch_bytes, takes_long=plan.takes_long)


def _factors(emit: Callable[..., None], instruction: Instruction, target: Target, in_place: bool) -> MatrixWork:
    plan = plan_factors(instruction, target)
    others = [operand.shape.dims[-1] for operand in instruction.operands[1:]]
    pattern = Pattern(((LARGEST_BLOCK, plan.lanes), *((plan.lanes,) for _ in others)), {})

    def body(
        k: KernelBuilder,
        arrays: Sequence[Array],
        outputs: Sequence[Array],
        begin: Value,
        end: Value,
        numbers: Sequence[Value],
    ) -> None:
        emit(k, plan, arrays, outputs, begin, end, numbers, in_place=in_place)

    numbers = (plan.rows, plan.columns, *others)
    return _work(body, plan, plan.across, takes_long=plan.takes_long, numbers=numbers, pattern=pattern)


def _work(body: Body, plan: Any, across: bool, **others: Any) -> MatrixWork:
    if across:
        others["pattern"] = None
    return MatrixWork(body, plan.units, plan.bytes_per_unit, plan.least_units, plan.lanes, across, **others)


MATRIX_OPS: Mapping[str, Callable[[Instruction, Target, bool], MatrixWork]] = {
    "cholesky": _cholesky,
    "triangular-solve": _triangular_solve,
    "eigh": partial(_rotations, emit_eigh),
    "svd": partial(_rotations, emit_svd),
    "lu": partial(_factors, emit_lu),
    "qr-decomposition": partial(_factors, emit_qr_decomposition),
    "householder-product": partial(_factors, emit_householder_product),
}
