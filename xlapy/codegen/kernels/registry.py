"""Which kernel computes an instruction.

A kernel is a native function over a range of units of work:

    void kernel(ptr operand..., ptr result..., ptr scratch, ptr context, i64 begin, i64 end)

(scratch where the kernel has such, the context of the call where it listens, as those that call region functions do).

`KERNELS` maps an op to a function that decides how an instruction runs and returns a `Kernel`: the number of units,
what a unit costs, and how to write the body, or which function of a library has it. Ops that are element-wise or move
data all share the loop kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xlapy.codegen.fourier_transforms import fourier_scratch_bytes
from xlapy.codegen.kernels.effort import (
    is_bound_by_memory,
    is_broken_up,
    is_mostly_one_function,
    is_plain,
    is_small,
    is_small_part,
)
from xlapy.codegen.kernels.makers import (
    KERNELS,
    Kernel,
    Situation,
    aligned,
    brief_fold_to_finish,
    bytes_of_brief_results,
    has_results_to_finish,
    loop_of,
    runs_as_loop,
)
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.depthwise_gradient import scratch_of_convolution
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.buffer_plan import FunctionPlans
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import FOLDING_KINDS, fold_of, keeps_much, region_functions
from xlapy.hlo.ops import Trait
from xlapy.support.errors import UnsupportedError


def kernel_for(instruction: Instruction, situation: Situation) -> Kernel:
    """The kernel of an instruction; raises UnsupportedError if there is none."""
    maker = KERNELS.get(instruction.opcode)
    if maker is None and runs_as_loop(instruction):
        maker = loop_of
    if maker is None:
        raise UnsupportedError(f"{instruction.opcode} has no native code").add_context(
            where=instruction.metadata.location()
        )
    kernel = maker(instruction, situation)
    functions = region_functions(instruction)
    if functions:
        return _with_functions(kernel, functions, situation)
    if kernel.is_quick or isinstance(kernel.body, LibraryCall):
        return kernel
    target = situation.target
    if kernel.brief is not None and situation.runs_once and is_small_part(instruction, situation.whole_work):
        brief = kernel.brief()
        if brief is not None:
            return brief
    is_small_here = situation.runs_once and is_small(instruction, target, situation.whole_work)
    finds_nothing = (
        kernel.is_plain
        or is_plain(instruction)
        or is_broken_up(instruction)
        or is_bound_by_memory(instruction, target)
        or is_mostly_one_function(instruction, target)
    )
    return replace(kernel, is_small=is_small_here, is_plain=finds_nothing)


CALL_WEIGHT = 64  # how much longer the call of a region function takes than to read and write its operands


def _with_functions(kernel: Kernel, functions: tuple[Computation, ...], situation: Situation) -> Kernel:
    """The kernel with memory for its functions, of which it runs one at a time. Its units are worth more."""
    return replace(
        kernel,
        bytes_per_unit=kernel.bytes_per_unit * CALL_WEIGHT,
        functions=functions,
        listens=True,
        own_bytes=max(situation.functions[function].arena_bytes for function in functions),
    )


HAVE_SCRATCH = frozenset({"eigh", "reduce-window", "sort", "svd", "topk"})
"""Ops whose kernels may want memory besides operands and results."""

LIBRARY_SCRATCH: dict[str, Callable[[Instruction, Target], int]] = {
    "fft": fourier_scratch_bytes,
    "convolution": scratch_of_convolution,
}
"""How much of it the library functions want that compute an instruction."""


def scratch_bytes(
    instruction: Instruction,
    target: Target,
    functions: FunctionPlans,
    *,
    runs_once: bool = False,
    whole: Callable[[], float] = lambda: 0,
) -> int:
    """Bytes of memory that the kernels of an instruction want for themselves, which may be a part of the `whole` work
    around it."""
    if Trait.RUNTIME in instruction.spec.traits:
        return 0
    if instruction.opcode in LIBRARY_SCRATCH:
        return LIBRARY_SCRATCH[instruction.opcode](instruction, target)
    brief = _bytes_of_brief_results(instruction, target, whole) if runs_once else 0
    if brief:
        return aligned(brief)
    if not _may_have_scratch(instruction) and not region_functions(instruction):
        return 0
    kernel = kernel_for(instruction, Situation(target, in_place=False, functions=functions))
    return aligned(kernel.shared_bytes) + kernel.task_bytes * kernel.tasks


def _may_have_scratch(instruction: Instruction) -> bool:
    if instruction.opcode != "fusion" or instruction.attributes["kind"] not in FOLDING_KINDS:
        return instruction.opcode in HAVE_SCRATCH
    computation = instruction.called[0]
    is_rows = instruction.attributes["kind"] is FusionKind.OUTPUT
    if not is_rows and fold_of(computation).opcode == "reduce-window":
        return True
    has_steps = fold_steps(computation) is not None or has_results_to_finish(computation)
    return has_steps or (is_rows and keeps_much(computation))


def _bytes_of_brief_results(instruction: Instruction, target: Target, whole: Callable[[], float]) -> int:
    """Those of a fold by a library that is a small part of the program."""
    if instruction.opcode != "fusion" or instruction.attributes["kind"] not in FOLDING_KINDS:
        return 0
    computation = instruction.called[0]
    fold = brief_fold_to_finish(computation)
    if fold is None or not is_small_part(instruction, whole):
        return 0
    return bytes_of_brief_results(computation, fold, target)
