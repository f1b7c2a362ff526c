"""Which kernel computes an instruction.

A kernel is a native function over a range of units of work:

    void kernel(ptr operand..., ptr result..., ptr scratch, ptr context, i64 begin, i64 end)

(scratch where the kernel has such, the context of the call where it listens, as those that call region functions do).

`KERNELS` maps an op to a function that decides how an instruction runs and returns a `Kernel`: the number of units,
what a unit costs, and how to write the body, or which function of a library has it. Ops that are element-wise or move
data all share the loop kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.fourier_transforms import fourier_scratch_bytes
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.columns import emit_columns, plan_columns
from xlapy.codegen.kernels.concatenate import emit_concatenate, plan_concatenate
from xlapy.codegen.kernels.convolution import emit_convolution, plan_convolution
from xlapy.codegen.kernels.dot import emit_dot, plan_dot
from xlapy.codegen.kernels.effort import is_bound_by_memory, is_broken_up, is_plain, is_small
from xlapy.codegen.kernels.interleave import emit_interleave, plan_interleave
from xlapy.codegen.kernels.linalg import emit_cholesky, emit_triangular_solve, plan_triangle
from xlapy.codegen.kernels.loop import LoopPlan, emit_loop, plan_loop
from xlapy.codegen.kernels.random import emit_bits, plan_bits
from xlapy.codegen.kernels.reduce import emit_reduce, plan_reduce
from xlapy.codegen.kernels.reduce_window import emit_reduce_window, plan_reduce_window
from xlapy.codegen.kernels.repack import emit_repack, plan_repack
from xlapy.codegen.kernels.row_order import rows_and_columns
from xlapy.codegen.kernels.rows import emit_rows, plan_rows
from xlapy.codegen.kernels.scan import emit_scan, plan_scan
from xlapy.codegen.kernels.scatter import emit_scatter, scatter_lanes
from xlapy.codegen.kernels.select_and_scatter import emit_select_and_scatter, plan_select_and_scatter
from xlapy.codegen.kernels.sort import emit_sort
from xlapy.codegen.kernels.tasks import MOST_TASKS_WITH_SCRATCH, units_per_task
from xlapy.codegen.kernels.transpose import emit_transpose, plan_transpose
from xlapy.codegen.kernels.update import emit_update
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.chain import ChainCall, call_over_columns, call_over_rows
from xlapy.codegen.libraries.fold import FoldCall, call_of_first_step, call_of_fusion, call_of_reduce, calls_of_steps
from xlapy.codegen.libraries.sliding import call_of_window, call_of_windows
from xlapy.codegen.libraries.small_product import call_of_small_product
from xlapy.codegen.libraries.sort import library_call
from xlapy.codegen.libraries.turn import call_of_transpose
from xlapy.codegen.registers import memory_type
from xlapy.codegen.stopping import LONG
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.buffer_plan import FunctionPlans
from xlapy.hlo.fold_steps import fold_steps, split_at
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import (
    FOLDING_KINDS,
    FOLDS,
    column_space,
    fold_of,
    fusion_roots,
    is_blocked_transpose,
    region_functions,
    turns_reversed,
)
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.sort_plan import plan_sort
from xlapy.hlo.sort_plan import scratch_bytes as scratch_of_sort
from xlapy.support.errors import UnsupportedError
from xlapy.support.registry import Registry
from xlapy_runtime.records import Record, field

SCRATCH_ALIGNMENT = 64

Body = Callable[[KernelBuilder, Sequence[Array], Sequence[Array], Value, Value], None]
Finish = Callable[[KernelBuilder, Sequence[Array], Sequence[Array]], None]


class Kernel(Record):
    """How one instruction runs: `body(k, operands, results, begin, end)` writes the code for a range of units, unless
    a library has it."""

    units: int
    bytes_per_unit: int
    body: Body | LibraryCall
    overwrites: tuple[tuple[int, int], ...] = ()  # (operand, leaf): the operand must be in the leaf's memory before
    shared_bytes: int = 0  # memory of all tasks: `k.parameters["shared"]`
    functions: tuple[Computation, ...] = ()  # regions that it calls as functions
    own_bytes: int = 0  # memory of its own for each task, in which these work, or which it uses itself
    listens: bool = False  # it may take long, and looks whether the run was stopped
    is_quick: bool = False  # it has so little to do that LLVM should not spend time on it
    finish: Finish | LibraryCall | None = None  # what is left to do, by one thread, when all units are done
    is_small: bool = False  # it has so little to do, once in a call, that LLVM should not try hard
    is_plain: bool = False  # LLVM would try hard for nothing
    least_units: int = 1  # that a task must have

    @property
    def is_light(self) -> bool:
        """LLVM selects instructions and registers, and looks for nothing better."""
        return self.is_small or self.is_plain

    @property
    def is_for_once(self) -> bool:
        """Not good enough for a loop of the program."""
        return self.is_quick or (self.is_small and not self.is_plain)

    @property
    def grain(self) -> int:
        """Units per task: all of them if the kernel is too small to split. Fixed, whatever the threads."""
        grain = units_per_task(self.units, self.bytes_per_unit, self.least_units)
        return max(grain, -(-self.units // MOST_TASKS_WITH_SCRATCH)) if self.task_bytes else grain

    @property
    def task_bytes(self) -> int:
        """Memory of its own for each task, behind what they share."""
        return aligned(self.own_bytes)

    @property
    def tasks(self) -> int:
        return -(-self.units // self.grain)


class Situation(Record):
    """What a kernel may know besides the instruction: the target, whether a result overwrites an operand, and what
    memory region functions need, and whether it runs once per call of the program, or perhaps in a loop."""

    target: Target
    in_place: bool
    functions: FunctionPlans = field(default_factory=dict)
    runs_once: bool = False


KernelMaker = Callable[[Instruction, Situation], Kernel]
KERNELS: Registry[KernelMaker] = Registry("native kernels", OPS)


def kernel_for(instruction: Instruction, situation: Situation) -> Kernel:
    """The kernel of an instruction; raises UnsupportedError if there is none."""
    maker = KERNELS.get(instruction.opcode)
    if maker is None and runs_as_loop(instruction):
        maker = _loop
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
    is_small_here = situation.runs_once and is_small(instruction)
    finds_nothing = is_plain(instruction) or is_broken_up(instruction)
    plain = finds_nothing or is_bound_by_memory(instruction, situation.target)
    return replace(kernel, is_small=is_small_here, is_plain=plain)


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


HAVE_SCRATCH = frozenset({"sort", "topk"})
"""Ops whose kernels may want memory besides operands and results."""

LIBRARY_SCRATCH: dict[str, Callable[[Instruction, Target], int]] = {"fft": fourier_scratch_bytes}
"""How much of it the library functions want that compute an instruction."""


def scratch_bytes(instruction: Instruction, target: Target, functions: FunctionPlans) -> int:
    """Bytes of memory that the kernels of an instruction want for themselves."""
    if Trait.RUNTIME in instruction.spec.traits:
        return 0
    if instruction.opcode in LIBRARY_SCRATCH:
        return LIBRARY_SCRATCH[instruction.opcode](instruction, target)
    if not _may_have_scratch(instruction) and not region_functions(instruction):
        return 0
    kernel = kernel_for(instruction, Situation(target, in_place=False, functions=functions))
    return aligned(kernel.shared_bytes) + kernel.task_bytes * kernel.tasks


def _may_have_scratch(instruction: Instruction) -> bool:
    if instruction.opcode != "fusion" or instruction.attributes["kind"] not in FOLDING_KINDS:
        return instruction.opcode in HAVE_SCRATCH
    computation = instruction.called[0]
    is_rows = instruction.attributes["kind"] is FusionKind.OUTPUT
    has_steps = fold_steps(computation) is not None or _fold_to_finish(computation) is not None
    return has_steps or (is_rows and column_space(computation) is not None)


def aligned(size: int) -> int:
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


RUNS_AS_LOOP = ("iota", "dynamic-slice", "gather")


def runs_as_loop(instruction: Instruction) -> bool:
    """Every element of the result is a function of a few elements of the operands."""
    traits = instruction.spec.traits
    return Trait.ELEMENTWISE in traits or Trait.INDEX_MAP in traits or instruction.opcode in RUNS_AS_LOOP


def _loop(instruction: Instruction, situation: Situation) -> Kernel:
    """One unfused instruction: its operands are the inputs."""
    operands = tuple(dict.fromkeys(instruction.operands))
    return _loop_kernel((instruction,), operands, instruction.operands, situation)


def _loop_kernel(
    roots: Sequence[Instruction],
    inputs: Sequence[Instruction],
    operands: Sequence[Instruction],
    situation: Situation,
) -> Kernel:
    """`operands` are the instructions that the kernel's pointer arguments stand for, in order."""
    known = frozenset(inputs)
    operand_bytes = sum(i.shape.bytes for i in inputs)
    plan = plan_loop(roots, known.__contains__, operand_bytes, situation.target, runs_once=situation.runs_once)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        emit_loop(k, plan, bound, outputs, begin, end, in_place=situation.in_place)

    units = plan.units if plan.shape.size else 0
    return Kernel(units, plan.bytes_per_unit, body, is_quick=plan.is_quick, least_units=plan.least_units)


@KERNELS.register("fusion")
def _fusion(instruction: Instruction, situation: Situation) -> Kernel:
    computation = instruction.called[0]
    root = computation.root
    kind = instruction.attributes["kind"]
    if kind in FOLDING_KINDS:
        steps = fold_steps(computation)
        return _one_step(computation, kind, situation) if steps is None else _two_steps(*steps, kind, situation)
    if root.opcode == "dynamic-update-slice":
        return _update_kernel(root, computation.parameters, situation)
    if is_blocked_transpose(root) and turns_reversed(root, root.operands[0]):
        turned = _transpose_kernel(root, root.operands[0].attributes["dimensions"], situation)
        if turned is not None:
            return turned
    if root.opcode == "concatenate":
        joined = _concatenate_kernel(root, computation.parameters, situation)
        if joined is not None:
            return joined
    roots = root.operands if root.opcode == "tuple" else (root,)
    return _loop_kernel(roots, computation.parameters, computation.parameters, situation)


def _one_step(computation: Computation, kind: FusionKind, situation: Situation) -> Kernel:
    call = call_of_fusion(computation, situation.target)
    if call is not None:
        return _library_fold(call, computation.parameters, computation.root)
    windows = call_of_windows(computation, situation.target)
    if windows is not None:
        return Kernel(windows.units, windows.unit_bytes, windows.call)
    return _finished_fold(computation, situation) or _fold_kernel(computation, kind, situation)


MOST_FINISHED = 1 << 14  # results of a fold that one thread takes some microseconds to finish
LEAST_FOLDED_BYTES = 2 << 20  # smaller ones may run together with others, and are kernels as others are for that


def _fold_to_finish(computation: Computation) -> Instruction | None:
    """The only fold of a computation, if it is large and has few results, of which all roots are made."""
    fold, *others = (instruction for instruction in computation if instruction.opcode in FOLDS)
    if others or fold.opcode != "reduce" or not fold.shape.is_array or fold.shape.size > MOST_FINISHED:
        return None
    is_whole = all(root.shape.dims == fold.shape.dims for root in fusion_roots(computation))
    return fold if is_whole and fold.operands[0].shape.bytes >= LEAST_FOLDED_BYTES else None


def _finished_fold(computation: Computation, situation: Situation) -> Kernel | None:
    """A fold by a library into shared memory, and behind it, by one thread, what is made from its results."""
    fold = _fold_to_finish(computation)
    if fold is None:
        return None
    first, second = split_at(computation, fold)
    call = call_of_first_step(first, situation.target)
    if call is None:
        return None
    loop = _loop_kernel(fusion_roots(second), second.parameters, second.parameters, situation)
    return replace(
        _library_fold(call, first.parameters, fold),
        finish=_of_shared(loop, fold.shape),
        is_quick=loop.is_quick,
        shared_bytes=fold.shape.bytes,
    )


def _fold_kernel(computation: Computation, kind: FusionKind, situation: Situation) -> Kernel:
    if kind is FusionKind.OUTPUT:
        maker = _rows_kernel if column_space(computation) is None else _columns_kernel
        return maker(computation, situation)
    fold = fold_of(computation)
    roots = (fold,) if computation.root is fold else fusion_roots(computation)
    return FOLD_KERNELS[fold.opcode](fold, roots, computation.parameters, situation)


def _two_steps(first: Computation, second: Computation, kind: FusionKind, situation: Situation) -> Kernel:
    """A fold of parts that lie in shared memory, behind one that makes them."""
    calls = calls_of_steps(first, second, situation.target)
    if calls is not None:
        call, finish_call = calls
        library_fold = _library_fold(call, first.parameters, first.root)
        return replace(library_fold, finish=finish_call, shared_bytes=first.root.shape.bytes)
    made = _library_of_first_step(first, kind, situation.target)
    made = made or _into_shared(_fold_kernel(first, kind, situation), first.root.shape)
    last = _fold_kernel(second, FusionKind.INPUT, situation)
    shape = first.root.shape
    return replace(made, finish=_of_shared(last, shape), shared_bytes=shape.bytes)


def _library_of_first_step(first: Computation, kind: FusionKind, target: Target) -> Kernel | None:
    """A first step that a library computes, in shared memory."""
    if kind is not FusionKind.OUTPUT:
        call = call_of_first_step(first, target)
        return None if call is None else _library_fold(call, first.parameters, first.root)
    if column_space(first) is not None:
        return None
    chain = call_over_rows(first, in_place=False, is_first_step=True)
    return None if chain is None else _chain_kernel(chain, first)


def _into_shared(made: Kernel, shape: Shape) -> Kernel:
    """A kernel with its result in shared memory."""

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        assert not isinstance(made.body, LibraryCall)
        made.body(k, arrays, [_shared_array(k, shape, read_only=False)], begin, end)

    return replace(made, body=body)


def _of_shared(last: Kernel, shape: Shape) -> Finish:
    """A kernel, of which the last operand lies in shared memory, for all its units."""

    def finish(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array]) -> None:
        assert not isinstance(last.body, LibraryCall)
        units = k.const(I64, 0), k.const(I64, last.units)
        last.body(k, [*arrays, _shared_array(k, shape, read_only=True)], outputs, *units)

    return finish


def _shared_array(k: KernelBuilder, shape: Shape, *, read_only: bool) -> Array:
    return Array(k.parameters["shared"], shape, "parts", read_only=read_only)


def _rows_kernel(computation: Computation, situation: Situation) -> Kernel:
    operands = computation.parameters
    total = sum(operand.shape.bytes for operand in operands)
    chain = call_over_rows(computation, in_place=situation.in_place)
    if chain is not None:
        return _chain_kernel(chain, computation)
    plan = plan_rows(computation, total, situation.target, in_place=situation.in_place)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        emit_rows(k, plan, bound, outputs, begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body)


def _chain_kernel(chain: ChainCall, computation: Computation) -> Kernel:
    total = computation.root.shape.bytes + sum(operand.shape.bytes for operand in computation.parameters)
    return Kernel(chain.units, total // chain.units, chain.call)


def _columns_kernel(computation: Computation, situation: Situation) -> Kernel:
    operands = computation.parameters
    total = sum(operand.shape.bytes for operand in operands)
    plan = plan_columns(computation, total, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_columns(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    own_bytes = 0 if plan.fits_stack else plan.scratch_bytes
    kernel = Kernel(plan.units, plan.bytes_per_unit, body, own_bytes=own_bytes)
    call = call_over_columns(computation, plan, kernel.grain, kernel.task_bytes)
    return kernel if call is None else replace(kernel, body=call)


@KERNELS.register("transpose")
def _transpose(instruction: Instruction, situation: Situation) -> Kernel:
    return _transpose_kernel(instruction, (), situation) or _loop(instruction, situation)


def _transpose_kernel(transpose: Instruction, mirrored: Dims, situation: Situation) -> Kernel | None:
    plan = plan_transpose(transpose, situation.target, mirrored)
    if plan is None:
        return None if mirrored else _interleave_kernel(transpose, situation)
    call = call_of_transpose(plan, memory_type(transpose.shape.type).bytes)
    if call is not None:
        return Kernel(plan.units, plan.bytes_per_unit, call)

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
        return _loop(instruction, situation)
    plan = plan_repack(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_repack(k, plan, arrays[0], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.lanes)


@KERNELS.register("concatenate")
def _concatenate(instruction: Instruction, situation: Situation) -> Kernel:
    return _concatenate_kernel(instruction, instruction.operands, situation) or _loop(instruction, situation)


def _concatenate_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel | None:
    known = frozenset(operands)
    plan = plan_concatenate(root, known.__contains__, sum(i.shape.bytes for i in known), situation.target)
    if plan is None:
        return None

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_concatenate(k, plan, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("reduce")
def _reduce(instruction: Instruction, situation: Situation) -> Kernel:
    """Large folds by one operation are a library's."""
    call = call_of_reduce(instruction, situation.target)
    if call is not None:
        return _library_fold(call, instruction.operands, instruction)
    return _reduce_kernel(instruction, (instruction,), instruction.operands, situation)


def _library_fold(fold: FoldCall, operands: Sequence[Instruction], root: Instruction) -> Kernel:
    total = root.shape.bytes + sum(operand.shape.bytes for operand in operands)
    return Kernel(fold.units, total // fold.units, fold.call)


def _reduce_kernel(
    reduce: Instruction, roots: Sequence[Instruction], operands: Sequence[Instruction], situation: Situation
) -> Kernel:
    known = frozenset(operands)
    plan = plan_reduce(reduce, roots, known.__contains__, sum(i.shape.bytes for i in known), situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_reduce(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, listens=plan.fold_size >= LONG)


@KERNELS.register("dynamic-update-slice")
def _update(instruction: Instruction, situation: Situation) -> Kernel:
    return _update_kernel(instruction, instruction.operands, situation)


def _update_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel:
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


@KERNELS.register("dot")
def _dot(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_dot(instruction, situation.target)
    call = call_of_small_product(instruction)
    if call is not None:
        return Kernel(plan.units, plan.bytes_per_unit, call)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_dot(k, plan, arrays[0], arrays[1], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("cholesky")
def _cholesky(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_triangle(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_cholesky(k, instruction, plan, arrays[0], outputs[0], begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.least_units)


@KERNELS.register("triangular-solve")
def _triangular_solve(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_triangle(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        a, b = arrays
        emit_triangular_solve(k, instruction, plan, a, b, outputs[0], begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.least_units)


@KERNELS.register("scatter")
def _scatter(instruction: Instruction, situation: Situation) -> Kernel:
    """One unit: updates of one element must keep their order."""
    lanes = scatter_lanes(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_scatter(k, instruction, lanes, arrays, outputs)

    count = len(instruction.operands) // 2
    updates = instruction.operands[count + 1]
    units = 1 if updates.shape.size and instruction.operands[0].shape.size else 0
    overwrites = tuple((number, number) for number in range(count))
    return Kernel(units, 0, body, overwrites, listens=updates.shape.size >= LONG)


SORT_BYTES_PER_ELEMENT = 64  # traffic of a sorted element, over all passes


@KERNELS.register("sort", "topk")
def _sort(instruction: Instruction, situation: Situation) -> Kernel:
    """A unit is a group of rows. Only what compares in ways of its own has code of its own."""
    plan = plan_sort(instruction)
    if plan.has_positions and not plan.has_small_numbers:
        raise UnsupportedError(
            f"{instruction.opcode} of {instruction.operands[0].shape.without_layout()}: "
            f"rows are of {plan.length} elements, and positions of 32 bits"
        ).add_context(where=instruction.metadata.location())

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_sort(k, instruction.called[0], plan, arrays, outputs, begin, end)

    units = plan.units if plan.kept else 0
    total = plan.rows * plan.length * SORT_BYTES_PER_ELEMENT
    code = body if plan.key is None else library_call(instruction, plan, plan.key)
    shared = scratch_of_sort(instruction)
    return Kernel(units, total // max(units, 1), code, shared_bytes=shared, listens=plan.length >= LONG)


@KERNELS.register("convolution")
def _convolution(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_convolution(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_convolution(k, plan, arrays[0], arrays[1], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("reduce-window")
def _reduce_window(instruction: Instruction, situation: Situation) -> Kernel:
    call = call_of_window(instruction, situation.target)
    if call is not None:
        return Kernel(call.units, call.unit_bytes, call.call)
    return _reduce_window_kernel(instruction, (instruction,), instruction.operands, situation)


def _reduce_window_kernel(
    fold: Instruction, roots: Sequence[Instruction], operands: Sequence[Instruction], situation: Situation
) -> Kernel:
    known = frozenset(operands)
    plan = plan_reduce_window(fold, roots, known.__contains__, situation.target)
    scan = plan_scan(plan)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        if scan is not None:
            emit_scan(k, scan, bound, outputs, begin, end)
        else:
            emit_reduce_window(k, plan, bound, outputs, begin, end)

    chosen = plan if scan is None else scan
    listens = scan is not None and scan.count >= LONG
    return Kernel(chosen.units, chosen.bytes_per_unit, body, listens=listens)


FOLD_KERNELS = {"reduce": _reduce_kernel, "reduce-window": _reduce_window_kernel}


@KERNELS.register("select-and-scatter")
def _select_and_scatter(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_select_and_scatter(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_select_and_scatter(k, plan, arrays, outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("rng-bit-generator")
def _bits(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_bits(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_bits(k, plan, arrays[0], outputs, begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.lanes)
