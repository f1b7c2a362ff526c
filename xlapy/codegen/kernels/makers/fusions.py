"""Kernels of fusions: loops, and folds with what they fold and what is made from their results, in a step or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.makers.base import KERNELS, Finish, Kernel, Situation, kernel_of_call, kernel_of_fold
from xlapy.codegen.kernels.makers.chains import kernel_of_chain, kernel_of_first_step
from xlapy.codegen.kernels.makers.folds import FOLD_KERNELS, with_brief_kernel
from xlapy.codegen.kernels.makers.loops import columns_kernel, kernel_of_runs, loop_kernel, update_kernel
from xlapy.codegen.kernels.makers.movement import concatenate_kernel, renamed_kernel, transpose_kernel
from xlapy.codegen.kernels.makers.scatters import selection_kernel
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.column_maps import call_of_column_map
from xlapy.codegen.libraries.fold import call_of_fusion, call_of_step, calls_of_steps
from xlapy.codegen.libraries.sliding import call_of_windows
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.fold_steps import fold_steps, split_at
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import (
    FOLDING_KINDS,
    FOLDS,
    fold_of,
    fusion_roots,
    is_blocked_transpose,
    turns_reversed,
)
from xlapy.hlo.padded_selections import padded_selection
from xlapy.hlo.shape import Shape

MOST_FINISHED = 1 << 14  # results of a fold that one thread takes some microseconds to finish
LEAST_FOLDED_BYTES = 2 << 20  # smaller ones may run together with others, and are kernels as others are for that


@KERNELS.register("fusion")
def _fusion(instruction: Instruction, situation: Situation) -> Kernel:
    computation = instruction.called[0]
    root = computation.root
    kind = instruction.attributes["kind"]
    if kind in FOLDING_KINDS:
        steps = fold_steps(computation)
        return _one_step(computation, kind, situation) if steps is None else _two_steps(*steps, kind, situation)
    selection = padded_selection(root)
    if selection is not None:
        return selection_kernel(selection, computation.parameters, situation)
    if root.opcode == "dynamic-update-slice":
        return update_kernel(root, computation.parameters, situation)
    if is_blocked_transpose(root) and turns_reversed(root, root.operands[0]):
        turned = transpose_kernel(root, root.operands[0].attributes["dimensions"], situation)
        if turned is not None:
            return turned
    if root.opcode == "transpose":
        renamed = renamed_kernel(root, situation)
        if renamed is not None:
            return renamed
    moved = kernel_of_runs(root, computation.parameters, situation)
    if moved is not None:
        return moved
    if root.opcode == "concatenate":
        joined = columns_kernel(root, computation.parameters, situation) or concatenate_kernel(
            root, computation.parameters, situation
        )
        if joined is not None:
            return joined
    mapped = call_of_column_map(root, computation.parameters, situation.target, in_place=situation.in_place)
    if mapped is not None:
        return kernel_of_call(mapped.call, mapped.units, computation.parameters, root)
    roots = root.operands if root.opcode == "tuple" else (root,)
    return loop_kernel(roots, computation.parameters, computation.parameters, situation)


def _one_step(computation: Computation, kind: FusionKind, situation: Situation) -> Kernel:
    call = call_of_fusion(computation, situation.target)
    if call is not None:
        return kernel_of_fold(call, computation.parameters, computation.root)
    windows = call_of_windows(computation, situation.target)
    if windows is not None:
        return Kernel(windows.units, windows.unit_bytes, windows.call, least_units=windows.least_units)
    finished = _finished_fold(computation, situation)
    if finished is not None:
        return finished
    kernel = _fold_kernel(computation, kind, situation)
    return with_brief_kernel(kernel, partial(_brief_fold, computation, situation))


def _brief_fold(computation: Computation, situation: Situation) -> Kernel | None:
    """A fold by a library, which hardly matters, and what is made from its results."""
    call = call_of_fusion(computation, situation.target, is_small=True)
    if call is not None:
        return kernel_of_fold(call, computation.parameters, computation.root)
    return _finished_fold(computation, situation, is_small=True)


def has_results_to_finish(computation: Computation) -> bool:
    """A large fold by a library may have shared memory, for somebody to finish what is there."""
    fold = _fold_to_finish(computation)
    return fold is not None and _is_large(fold)


def brief_fold_to_finish(computation: Computation) -> Instruction | None:
    """The same fold, however small, if something is made from its results."""
    fold = _fold_to_finish(computation)
    return None if fold is computation.root else fold


def bytes_of_brief_results(computation: Computation, fold: Instruction, target: Target) -> int:
    """The shared memory of such a one that is a small part of the program, where there is a library for it."""
    is_whole = call_of_fusion(computation, target, is_small=True) is not None
    has_step = not is_whole and call_of_step(computation, fold, target, is_small=True) is not None
    return fold.shape.bytes if has_step else 0


def _fold_to_finish(computation: Computation) -> Instruction | None:
    """The only fold of a computation, if it has few results, of which all roots are made."""
    fold, *others = (instruction for instruction in computation if instruction.opcode in FOLDS)
    if others or fold.opcode != "reduce" or not fold.shape.is_array or fold.shape.size > MOST_FINISHED:
        return None
    is_whole = all(root.shape.dims == fold.shape.dims for root in fusion_roots(computation))
    return fold if is_whole else None


def _is_large(fold: Instruction) -> bool:
    return fold.operands[0].shape.bytes >= LEAST_FOLDED_BYTES


def _finished_fold(computation: Computation, situation: Situation, *, is_small: bool = False) -> Kernel | None:
    """A fold by a library into shared memory, and behind it, by one thread, what is made from its results."""
    fold = _fold_to_finish(computation)
    if fold is None or not (is_small or _is_large(fold)):
        return None
    call = call_of_step(computation, fold, situation.target, is_small=is_small)
    if call is None:
        return None
    _, second = split_at(computation, fold)
    loop = loop_kernel(fusion_roots(second), second.parameters, second.parameters, situation)
    return replace(
        kernel_of_fold(call, computation.parameters, fold),
        finish=_of_shared(loop, fold.shape),
        is_quick=loop.is_quick,
        shared_bytes=fold.shape.bytes,
    )


def _fold_kernel(computation: Computation, kind: FusionKind, situation: Situation) -> Kernel:
    if kind is FusionKind.OUTPUT:
        return kernel_of_chain(computation, situation)
    fold = fold_of(computation)
    roots = (fold,) if computation.root is fold else fusion_roots(computation)
    return FOLD_KERNELS[fold.opcode](fold, roots, computation.parameters, situation)


def _two_steps(first: Computation, second: Computation, kind: FusionKind, situation: Situation) -> Kernel:
    """A fold of parts that lie in shared memory, behind one that makes them."""
    calls = calls_of_steps(first, second, situation.target)
    if calls is not None:
        call, finish_call = calls
        parts = kernel_of_fold(call, first.parameters, first.root)
        return replace(parts, finish=finish_call, shared_bytes=first.root.shape.bytes)
    shape = first.root.shape
    finish = _of_shared(_fold_kernel(second, FusionKind.INPUT, situation), shape)
    of_library = kernel_of_first_step(first, kind, situation.target)
    if of_library is not None:
        return replace(of_library, finish=finish, shared_bytes=shape.bytes)
    return _into_shared(_fold_kernel(first, kind, situation), shape, finish)


def _into_shared(made: Kernel, shape: Shape, finish: Finish) -> Kernel:
    """A kernel with its result in shared memory, for somebody to finish; and so the one with less code."""

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        assert not isinstance(made.body, LibraryCall)
        made.body(k, arrays, [_shared_array(k, shape, read_only=False)], begin, end)

    def brief() -> Kernel | None:
        parts = None if made.brief is None else made.brief()
        return None if parts is None else _into_shared(parts, shape, finish)

    return replace(made, body=body, finish=finish, shared_bytes=shape.bytes, brief=brief)


def _of_shared(last: Kernel, shape: Shape) -> Finish:
    """A kernel, of which the last operand lies in shared memory, for all its units."""

    def finish(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array]) -> None:
        assert not isinstance(last.body, LibraryCall)
        units = k.const(I64, 0), k.const(I64, last.units)
        last.body(k, [*arrays, _shared_array(k, shape, read_only=True)], outputs, *units)

    return finish


def _shared_array(k: KernelBuilder, shape: Shape, *, read_only: bool) -> Array:
    return Array(k.parameters["shared"], shape, "parts", read_only=read_only)
