"""Which kernel computes an instruction.

A kernel is a native function over a range of units of work:

    void kernel(ptr operand..., ptr result..., i64 begin, i64 end)

`KERNELS` maps an op to a function that decides how an instruction runs and returns a `Kernel`: the number of units,
what a unit costs, and how to write the body. Ops that are element-wise or move data all share the loop kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.concatenate import emit_concatenate, plan_concatenate
from xlapy.codegen.kernels.dot import emit_dot, plan_dot
from xlapy.codegen.kernels.loop import LoopPlan, emit_loop, plan_loop, rows_and_columns
from xlapy.codegen.kernels.reduce import emit_reduce, plan_reduce
from xlapy.codegen.kernels.rows import emit_rows, plan_rows
from xlapy.codegen.kernels.transpose import emit_transpose, plan_transpose
from xlapy.codegen.kernels.update import emit_update
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS, Trait
from xlapy.support.errors import UnsupportedError
from xlapy.support.registry import Registry

Body = Callable[[KernelBuilder, Sequence[Array], Sequence[Array], Value, Value], None]


@dataclass(frozen=True, slots=True)
class Kernel:
    """How one instruction runs: `body(k, operands, results, begin, end)` writes the code for a range of units."""

    units: int
    bytes_per_unit: int
    body: Body
    copies_operand: int | None = None  # this operand must be in the result's memory before the kernel runs


@dataclass(frozen=True, slots=True)
class Situation:
    """What a kernel may know besides the instruction: the target, and whether a result overwrites an operand."""

    target: Target
    in_place: bool


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
    return maker(instruction, situation)


RUNS_AS_LOOP = ("iota", "dynamic-slice", "gather", "bitcast-convert")


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
    plan = plan_loop(roots, known.__contains__, sum(i.shape.bytes for i in inputs), situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        emit_loop(k, plan, bound, outputs, begin, end, in_place=situation.in_place)

    return Kernel(plan.units if plan.shape.size else 0, plan.bytes_per_unit, body)


@KERNELS.register("fusion")
def _fusion(instruction: Instruction, situation: Situation) -> Kernel:
    computation = instruction.called[0]
    root = computation.root
    if instruction.attributes["kind"] is FusionKind.OUTPUT:
        return _rows_kernel(computation, situation)
    if root.opcode == "reduce":
        return _reduce_kernel(root, computation.parameters, situation)
    if root.opcode == "dynamic-update-slice":
        return _update_kernel(root, computation.parameters, situation)
    if root.opcode == "concatenate":
        joined = _concatenate_kernel(root, computation.parameters, situation)
        if joined is not None:
            return joined
    roots = root.operands if root.opcode == "tuple" else (root,)
    return _loop_kernel(roots, computation.parameters, computation.parameters, situation)


def _rows_kernel(computation: Computation, situation: Situation) -> Kernel:
    operands = computation.parameters
    total = sum(operand.shape.bytes for operand in operands)
    plan = plan_rows(computation, total, situation.target, in_place=situation.in_place)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        bound = dict(zip(operands, arrays, strict=True))
        emit_rows(k, plan, bound, outputs, begin, end, in_place=situation.in_place)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("transpose")
def _transpose(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_transpose(instruction, situation.target)
    if plan is None:
        return _loop(instruction, situation)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_transpose(k, plan, arrays[0], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


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
    return _reduce_kernel(instruction, instruction.operands, situation)


def _reduce_kernel(reduce: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel:
    known = frozenset(operands)
    plan = plan_reduce(reduce, known.__contains__, sum(i.shape.bytes for i in known), situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_reduce(k, plan, dict(zip(operands, arrays, strict=True)), outputs, begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)


@KERNELS.register("dynamic-update-slice")
def _update(instruction: Instruction, situation: Situation) -> Kernel:
    return _update_kernel(instruction, instruction.operands, situation)


def _update_kernel(root: Instruction, operands: Sequence[Instruction], situation: Situation) -> Kernel:
    known = frozenset(operands)
    plan = _rows(plan_loop((root.operands[1],), known.__contains__, 0, situation.target))

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_update(k, root, plan, dict(zip(operands, arrays, strict=True)), outputs[0], begin, end)

    copied = None if situation.in_place else list(operands).index(root.operands[0])
    return Kernel(plan.units if plan.shape.size else 0, plan.bytes_per_unit, body, copied)


def _rows(plan: LoopPlan) -> LoopPlan:
    """The plan by rows, even where one loop over element numbers would do."""
    rows, columns = rows_and_columns(plan.shape)
    lanes = min(plan.lanes, 1 << (columns.bit_length() - 1)) if columns else 1
    return replace(plan, is_linear=False, lanes=lanes, units=rows)


@KERNELS.register("dot")
def _dot(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_dot(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_dot(k, plan, arrays[0], arrays[1], outputs[0], begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body)
