"""Kernels of chains over rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.columns import TASKS_PER_CORE, emit_columns, plan_columns
from xlapy.codegen.kernels.makers.base import Kernel, Situation, kernel_of_call, kernel_of_fold
from xlapy.codegen.kernels.rows import emit_rows, plan_rows
from xlapy.codegen.kernels.wide_columns import WideColumnPlan, emit_wide_columns, plan_wide_columns
from xlapy.codegen.libraries.chain import ChainCall, call_over_columns, call_over_rows, call_over_wide_columns
from xlapy.codegen.libraries.fold import call_of_first_step
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Computation
from xlapy.hlo.kernel_plan import column_space


def kernel_of_chain(computation: Computation, situation: Situation) -> Kernel:
    """The kernel of a fused computation of row kind."""
    maker = _rows_kernel if column_space(computation) is None else _columns_kernel
    return maker(computation, situation)


def kernel_of_first_step(first: Computation, kind: FusionKind, target: Target) -> Kernel | None:
    """A first step that a library computes, in shared memory."""
    if kind is not FusionKind.OUTPUT:
        call = call_of_first_step(first, target)
        return None if call is None else kernel_of_fold(call, first.parameters, first.root)
    if column_space(first) is not None:
        return None
    chain = call_over_rows(first, target, in_place=False, is_first_step=True)
    if chain is None:
        return None
    return replace(kernel_of_call(chain.call, chain.units, first.parameters, first.root), has_long_tasks=True)


def _rows_kernel(computation: Computation, situation: Situation) -> Kernel:
    operands = computation.parameters
    total = sum(operand.shape.bytes for operand in operands)
    chain = call_over_rows(computation, situation.target, in_place=situation.in_place, part=situation.part)
    if chain is not None:
        return _kernel_of_rows(chain, computation, situation.target)
    plan = plan_rows(computation, total, situation.target, in_place=situation.in_place, part=situation.part)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        emit_rows(k, plan, bound, outputs, begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body, has_long_tasks=True)


def _kernel_of_rows(chain: ChainCall, computation: Computation, target: Target) -> Kernel:
    """The kernel of a chain that a library computes. Tasks with memory of their own are few, as in columns."""
    kernel = replace(
        kernel_of_call(chain.call, chain.units, computation.parameters, computation.root), has_long_tasks=True
    )
    if not chain.own_bytes:
        return kernel
    kernel = replace(kernel, own_bytes=chain.own_bytes, least_units=_units_of_few_tasks(chain.units, target))
    return replace(kernel, body=chain.in_tasks(kernel.grain, kernel.task_bytes))


def _units_of_few_tasks(units: int, target: Target) -> int:
    return -(-units // (TASKS_PER_CORE * target.cores))


def _columns_kernel(computation: Computation, situation: Situation) -> Kernel:
    """It is asked for again when the memory is known that it works in."""
    target = situation.target
    return computation.remembered((_columns_kernel, target), lambda: _kernel_over_columns(computation, target))


def _kernel_over_columns(computation: Computation, target: Target) -> Kernel:
    operands = computation.parameters
    total = sum(operand.shape.bytes for operand in operands)
    plan = plan_columns(computation, total, target)
    wide = plan_wide_columns(plan, total, target)
    if wide is not None:
        return _wide_columns_kernel(computation, wide)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_columns(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    least = _units_of_few_tasks(plan.units, target) if plan.scratch_bytes else 1
    kernel = Kernel(
        plan.units,
        plan.bytes_per_unit,
        body,
        own_bytes=plan.scratch_bytes,
        least_units=least,
        has_long_tasks=plan.is_short,
    )
    call = call_over_columns(computation, plan, kernel.grain, kernel.task_bytes, target)
    if call is not None:
        return replace(kernel, body=call)
    return replace(kernel, own_bytes=0, least_units=1) if plan.fits_stack else kernel


def _wide_columns_kernel(computation: Computation, plan: WideColumnPlan) -> Kernel:
    operands = computation.parameters

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_wide_columns(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    call = call_over_wide_columns(computation, plan)
    return Kernel(plan.units, plan.bytes_per_unit, call or body, least_units=plan.units_per_row, has_long_tasks=True)
