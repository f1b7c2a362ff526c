"""Kernels of what is made element by element: all ops that are element-wise or move data share the loop kernel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import between
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.loop import LoopPlan, emit_loop, follow_row_major_numbers, plan_loop
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation
from xlapy.codegen.kernels.mapped_rows import emit_mapped_rows, plan_mapped_rows
from xlapy.codegen.kernels.merged_dims import merged_dims
from xlapy.codegen.kernels.repeated_rows import emit_repeated_rows, plan_repeated_rows
from xlapy.codegen.kernels.row_order import rows_and_columns
from xlapy.codegen.kernels.short_rows import emit_short_rows, plan_short_rows
from xlapy.codegen.kernels.short_runs import emit_short_runs, plan_short_runs
from xlapy.codegen.kernels.update import emit_update
from xlapy.codegen.libraries.runs import call_of_runs
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import column_of, joins_columns
from xlapy.hlo.leaves import is_renaming
from xlapy.hlo.ops import Trait

RUNS_AS_LOOP = ("iota", "dynamic-slice", "gather")


def runs_as_loop(instruction: Instruction) -> bool:
    """Every element of the result is a function of a few elements of the operands."""
    traits = instruction.spec.traits
    return Trait.ELEMENTWISE in traits or Trait.INDEX_MAP in traits or instruction.opcode in RUNS_AS_LOOP


def loop_of(instruction: Instruction, situation: Situation) -> Kernel:
    """One unfused instruction: its operands are the inputs."""
    operands = tuple(dict.fromkeys(instruction.operands))
    moved = kernel_of_runs(instruction, instruction.operands, situation)
    return moved or loop_kernel((instruction,), operands, instruction.operands, situation)


def kernel_of_runs(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    """A kernel that puts `root` together from runs of elements of the operands: one that a library has, if they are not
    short."""
    if situation.in_place:
        return None
    known = frozenset(operands)
    call = call_of_runs(root, tuple(operands), known.__contains__, situation.target)
    if call is not None:
        return Kernel(call.units, 2 * root.shape.bytes // call.units, call.call)
    short = plan_short_runs(root, known.__contains__, situation.target)
    if short is None:
        return _kernel_of_mapped_rows(root, operands, situation)
    source, plan = short

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_short_runs(k, plan, dict(zip(operands, arrays, strict=True))[source], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


def _kernel_of_mapped_rows(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    """One that picks its rows from those of an operand."""
    rows = plan_mapped_rows(root, frozenset(operands).__contains__, situation.target)
    if rows is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_mapped_rows(k, rows, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    return Kernel(rows.plan.units, rows.plan.bytes_per_unit, body)


def columns_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    """A concatenation of columns, all of them computed at once."""
    if not joins_columns(root) or any(operand in operands for operand in root.operands) or situation.in_place:
        return None
    columns = [column for operand in root.operands if (column := column_of(operand)) is not None]
    return loop_kernel(columns, operands, operands, situation, joins=True)


def loop_kernel(
    roots: Sequence[Instruction],
    inputs: Sequence[Instruction],
    operands: Sequence[Instruction],
    situation: Situation,
    *,
    joins: bool = False,
) -> Kernel:
    """`operands` are the instructions that the kernel's pointer arguments stand for, in order. If the kernel `joins`
    roots, they are the columns of its only result."""
    known = frozenset(inputs)
    members = frozenset(between(roots, known.__contains__))
    operand_bytes = sum(_bytes_read(value, members) for value in inputs)
    if not joins and (kernel := _repeated_rows_kernel(roots, operands, known, operand_bytes, situation)) is not None:
        return kernel
    merged = None if follow_row_major_numbers(roots, known.__contains__) else merged_dims(roots, known.__contains__)
    if merged is not None:
        roots, known = merged.roots, frozenset(own for own, _ in merged.inputs)
    is_linear = follow_row_major_numbers(roots, known.__contains__)
    short = None if joins or is_linear else plan_short_rows(roots, known.__contains__, operand_bytes, situation.target)
    plan = plan_loop(
        roots,
        known.__contains__,
        operand_bytes,
        situation.target,
        runs_once=situation.runs_once,
        leaving_bytes=situation.leaving_bytes,
        joins=joins,
    )

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        if merged is not None:
            bound, outputs = merged.bound(bound), outputs if joins else merged.outputs(outputs)
        if short is not None:
            emit_short_rows(k, short, bound, outputs, begin, end, in_place=situation.in_place)
        else:
            emit_loop(k, plan, bound, outputs, begin, end, in_place=situation.in_place)

    if short is not None:
        return Kernel(short.units, short.bytes_per_unit, body, least_units=short.least_units)
    units = plan.units if plan.shape.size else 0
    return Kernel(
        units,
        plan.bytes_per_unit,
        body,
        is_quick=plan.is_quick,
        calls_functions=plan.calls_functions,
        is_plain=plan.is_plain,
        least_units=plan.least_units,
        has_long_tasks=bool(plan.repeated),
    )


def _repeated_rows_kernel(
    roots: Sequence[Instruction],
    operands: Sequence[Instruction],
    inputs: Collection[Instruction],
    operand_bytes: int,
    situation: Situation,
) -> Kernel | None:
    """A loop over the numbers of elements, in spite of what is the same in all of their short rows."""
    in_place = situation.in_place
    plan = plan_repeated_rows(roots, inputs.__contains__, operand_bytes, situation.target, in_place=in_place)
    if plan is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        emit_repeated_rows(k, plan, bound, outputs, begin, end, in_place=in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body)


def _bytes_read(value: Instruction, members: Collection[Instruction]) -> int:
    """Of an input: all, or the parts that are cut out of it, as a step of a loop over rows does."""
    whole, read = value.shape.bytes, 0
    for user in value.users:
        if user not in members:
            continue
        if is_renaming(user):
            read += _bytes_read(user, members)
        elif user.opcode in ("slice", "dynamic-slice") and value not in user.operands[1:]:
            read += user.shape.bytes
        else:
            return whole
    return min(read, whole)


@KERNELS.register("dynamic-update-slice")
def _update(instruction: Instruction, situation: Situation) -> Kernel:
    return update_kernel(instruction, instruction.operands, situation)


def update_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel:
    known = frozenset(operands)
    plan = _rows(plan_loop((root.operands[1],), known.__contains__, 0, situation.target))

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_update(k, root, plan, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    overwrites = ((list(operands).index(root.operands[0]), 0),)
    return Kernel(plan.units if plan.shape.size else 0, plan.bytes_per_unit, body, overwrites)


def _rows(plan: LoopPlan) -> LoopPlan:
    """The plan by rows, even where one loop over element numbers would do."""
    rows, columns = rows_and_columns(plan.shape)
    lanes = min(plan.lanes, 1 << (columns.bit_length() - 1)) if columns else 1
    return replace(plan, is_linear=False, lanes=lanes, units=rows)
