"""Kernels of one fold: a reduce, or a fold of windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.block_scan import BlockScanPlan, emit_block_scan, plan_blocks
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation, kernel_of_fold
from xlapy.codegen.kernels.merged_dims import merged_dims
from xlapy.codegen.kernels.reduce import ReducePlan, bytes_of_arrays, emit_reduce, narrowed, plan_reduce
from xlapy.codegen.kernels.reduce_window import emit_reduce_window, plan_reduce_window
from xlapy.codegen.kernels.scan import emit_scan, plan_scan
from xlapy.codegen.libraries.fold import call_of_reduce
from xlapy.codegen.libraries.sliding import call_of_window
from xlapy.codegen.stopping import LONG
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major, sole_operations


@KERNELS.register("reduce")
def _reduce(instruction: Instruction, situation: Situation) -> Kernel:
    """Large folds by one operation are a library's, and those that are a small part of their program."""
    call = call_of_reduce(instruction, situation.target)
    if call is not None:
        return kernel_of_fold(call, instruction.operands, instruction)
    kernel = _reduce_kernel(instruction, (instruction,), instruction.operands, situation)
    return with_brief_kernel(kernel, partial(_brief_reduce, instruction, situation))


def _brief_reduce(instruction: Instruction, situation: Situation) -> Kernel | None:
    call = call_of_reduce(instruction, situation.target, is_small=True)
    return None if call is None else kernel_of_fold(call, instruction.operands, instruction)


def with_brief_kernel(kernel: Kernel, call: Callable[[], Kernel | None]) -> Kernel:
    """The kernel of a fold, for which a library may have a function, too."""

    def brief() -> Kernel | None:
        found = call()
        if found is not None:
            return replace(found, is_small=True)
        return None if kernel.brief is None else kernel.brief()

    return replace(kernel, brief=brief)


def _reduce_kernel(
    reduce: Instruction, roots: Sequence[Instruction], operands: Sequence[Instruction], situation: Situation
) -> Kernel:
    known = frozenset(operands)
    if tuple(roots) == (reduce,) and (kernel := _kernel_of_long_rows(reduce, operands, situation)) is not None:
        return kernel
    plan = plan_reduce(reduce, roots, known.__contains__, bytes_of_arrays(known), situation.target)
    kernel, narrow = _planned_kernel(plan, operands), narrowed(plan)
    if narrow is None:
        return kernel
    return replace(kernel, brief=lambda: replace(_planned_kernel(narrow, operands), is_small=True))


def _kernel_of_long_rows(reduce: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    """A fold of whole rows by one operation along longer ones than its array has, where these are short."""
    known, init, rank = frozenset(operands), reduce.operands[-1], reduce.operands[0].shape.rank
    first = min(reduce.attributes["dimensions"], default=rank)
    is_of_rows = sorted(reduce.attributes["dimensions"]) == [*range(first, rank)] and first < rank - 1
    is_plain = len(reduce.operands) == 2 and reduce.shape.is_array and bool(sole_operations(reduce.called[0]))
    if not (is_of_rows and is_plain and is_row_major(reduce) and (init in known or init.opcode == "constant")):
        return None
    merged = merged_dims(reduce.operands[:1], known.__contains__, folded=first)
    if merged is None:
        return None
    (root,), inputs = merged.roots, dict(merged.inputs)
    computation = root.parent
    if init in known:
        begin = computation.add("parameter", number=len(inputs), shape=init.shape)
        inputs[begin] = init
    else:
        begin = computation.add("constant", literal=init.attributes["literal"])
    kept = _dims_of_size(root.shape.dims, math.prod(reduce.shape.dims)) if first else 0
    attributes = {**reduce.attributes, "dimensions": tuple(range(kept, root.shape.rank))}
    fold = computation.add("reduce", (root, begin), called=reduce.called, **attributes)
    plan = plan_reduce(fold, (fold,), inputs.__contains__, bytes_of_arrays(known), situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        given = dict(zip(operands, arrays, strict=True))
        bound = {own: replace(given[source], shape=own.shape) for own, source in inputs.items()}
        emit_reduce(k, plan, bound, [replace(outputs[0], shape=fold.shape)], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, listens=plan.fold_size >= LONG)


def _dims_of_size(dims: Sequence[int], size: int) -> int:
    """How many of the first dimensions have so many elements."""
    return next(count for count in range(1, len(dims)) if math.prod(dims[:count]) == size)


def _planned_kernel(plan: ReducePlan, operands: Sequence[Instruction]) -> Kernel:
    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_reduce(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, listens=plan.fold_size >= LONG)


@KERNELS.register("reduce-window")
def _reduce_window(instruction: Instruction, situation: Situation) -> Kernel:
    call = call_of_window(instruction, situation.target)
    if call is not None:
        return Kernel(call.units, call.unit_bytes, call.call, least_units=call.least_units)
    return _reduce_window_kernel(instruction, (instruction,), instruction.operands, situation)


def _reduce_window_kernel(
    fold: Instruction, roots: Sequence[Instruction], operands: Sequence[Instruction], situation: Situation
) -> Kernel:
    known = frozenset(operands)
    plan = plan_reduce_window(fold, roots, known.__contains__, situation.target)
    scan = plan_scan(plan, situation.target)
    # Where results take the place of elements, nobody but the thread that scans a block can read it.
    blocks = None if scan is None or situation.in_place else plan_blocks(scan, operands)
    if blocks is not None:
        return _block_scan_kernel(blocks, operands)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        if scan is not None:
            emit_scan(k, scan, bound, outputs, begin, end, in_place=situation.in_place)
        else:
            emit_reduce_window(k, plan, bound, outputs, begin, end)

    chosen = plan if scan is None else scan
    listens = scan is not None and scan.count >= LONG
    return Kernel(chosen.units, chosen.bytes_per_unit, body, listens=listens)


def _block_scan_kernel(plan: BlockScanPlan, operands: Sequence[Instruction]) -> Kernel:
    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_block_scan(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    return Kernel(
        plan.units, plan.bytes_per_unit, body, shared_bytes=plan.shared_bytes, clears_shared=True, listens=True
    )


FOLD_KERNELS = {"reduce": _reduce_kernel, "reduce-window": _reduce_window_kernel}
