"""Loop kernels: every element of the result is a function of elements of the operands.

Two loop nests serve all of them. If every array is read at the element's own row-major number, one loop runs over these
numbers. Otherwise rows are the outer loop and the last dimension of the result in memory is the inner one:

    for row in [begin, end):  for position in row, `lanes` at a time:  store(f(load ...))

The last vector of a row (or of the range) overlaps the one before it, instead of a second loop for the rest; where the
result overwrites an operand that would compute elements twice, so there the rest runs one element at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.fetching import Fetching
from xlapy.codegen.kernels.padded_rows import emit_padded_row, interior_of
from xlapy.codegen.kernels.row_order import inner_dim, inner_size, outer_positions, place_in_row, rows_and_columns
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.kernels.tasks import units_per_task
from xlapy.codegen.registers import memory_type, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape

STREAMED_BYTES = 16 << 20  # results smaller than this may be in cache when they are read next
VECTORS_PER_STEP = 2  # two native vectors hide the latency of one another's operations
QUICK_WORK = 1 << 15  # operations on elements that take no longer than a call of the program, even if done badly
FUNCTION_WORK = 20  # a transcendental function is about so many operations


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """The shape of a loop kernel: how many units of work there are, and how they are walked."""

    roots: tuple[Instruction, ...]
    shape: Shape  # of the results
    is_linear: bool
    lanes: int
    units: int  # elements if linear, else rows
    bytes_per_unit: int
    streaming: bool  # results are too large to stay in cache until somebody reads them
    is_quick: bool = False  # better compiled fast than run fast

    @property
    def fills_vectors(self) -> bool:
        """Tasks of a linear loop have no elements left over behind the last whole vector."""
        return not self.units % self.lanes and not units_per_task(self.units, self.bytes_per_unit) % self.lanes


def plan_loop(
    roots: Sequence[Instruction],
    inputs: Callable[[Instruction], bool],
    operand_bytes: int,
    target: Target,
    *,
    runs_once: bool = False,
) -> LoopPlan:
    """How to compute `roots` (of equal dimensions) from instructions for which `inputs` holds.

    `runs_once` per call of the program: then a kernel with next to nothing to do need not be a fast one."""
    shape = roots[0].shape
    instructions = between(roots, inputs)
    is_linear = shape.rank == 1 or all(follows_row_major_numbers(i, shape.size, inputs(i)) for i in instructions)
    extent = shape.size if is_linear else inner_size(shape)
    # Functions take one element at a time, and tasks that call them are too small to be whole vectors.
    calls = any(region_functions(instruction) for instruction in instructions)
    is_quick = runs_once and not calls and shape.size * work_per_element(instructions) <= QUICK_WORK
    widest = widest_lanes(instructions, target, 1 if is_quick else VECTORS_PER_STEP)
    lanes = 1 if calls else min(widest, power_of_two_below(extent))
    units = shape.size if is_linear else rows_and_columns(shape)[0]
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    streaming = (is_linear or not extent % lanes) and is_streamed(roots, lanes, target)
    return LoopPlan(tuple(roots), shape, is_linear, lanes, units, total // max(units, 1), streaming, is_quick)


def work_per_element(instructions: Sequence[Instruction]) -> int:
    """About how many operations compute one element."""
    return sum(FUNCTION_WORK if instruction.opcode in TRANSCENDENTAL else 1 for instruction in instructions)


def is_streamed(roots: Sequence[Instruction], lanes: int, target: Target) -> bool:
    """Whether storing past the caches pays: it saves reading the lines that are overwritten, and what else is in
    cache."""
    widths = [memory_type(root.shape.type).bytes * lanes for root in roots]
    return (
        sum(root.shape.bytes for root in roots) >= max(target.l3_bytes // 2, STREAMED_BYTES)
        and not any(root.shape.type.is_complex for root in roots)
        and all(width % target.vector_bytes == 0 for width in widths)
    )


def follows_row_major_numbers(instruction: Instruction, size: int, is_input: bool) -> bool:
    """The instruction is read at the result's own element number, or is the same everywhere."""
    shape = instruction.shape
    if not shape.rank:
        return True
    layout = shape.layout
    if shape.size != size or not (layout is None or layout.is_row_major):
        return False
    if is_input or Trait.ELEMENTWISE in instruction.spec.traits or instruction.opcode in ("reshape", "bitcast"):
        return True
    if instruction.opcode == "constant":
        return bool(instruction.attributes["literal"].is_splat)
    return instruction.opcode == "broadcast" and not instruction.operands[0].shape.rank


def widest_lanes(instructions: Sequence[Instruction], target: Target, vectors: int = VECTORS_PER_STEP) -> int:
    """Lanes per step, by the widest register among the values."""
    bits = max((register_type(i.shape.type).bits for i in instructions if i.shape.is_array), default=32)
    return target.lanes(max(bits, 32)) * vectors


def power_of_two_below(size: int) -> int:
    """The largest power of two that is at most `size`; 1 for nothing at all."""
    return 1 << (size.bit_length() - 1) if size > 0 else 1


def emit_loop(
    k: KernelBuilder,
    plan: LoopPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """Writes the loop nest over units [begin, end). `in_place`: some output is also an operand."""
    if not plan.is_linear:
        _by_rows(k, plan, arrays, outputs, begin, end, in_place=in_place)
    elif plan.streaming and not in_place:
        _stream(k, plan, arrays, outputs, begin, end)
    else:
        step = _linear(plan, _storing(plan, arrays, outputs))
        strip(k, begin, end, plan.lanes, step, overlapping=not in_place, fits=plan.fills_vectors)


Step: TypeAlias = Callable[[Indexing, Index], None]


def _storing(plan: LoopPlan, arrays: Mapping[Instruction, Array], outputs: Sequence[Array]) -> Step:
    """Computes the elements at an index, and stores them."""

    def step(ix: Indexing, index: Index) -> None:
        values = ElementGraph(ix, arrays).values([(root, index) for root in plan.roots])
        for output, value in zip(outputs, values, strict=True):
            output.store(ix, index, value)

    return step


def _linear(plan: LoopPlan, step: Step) -> Callable[[Indexing, Value], None]:
    """A step over element numbers."""
    return lambda ix, position: step(ix, Index(plan.shape.dims, None, ix.along_lanes(position)))


def _stream(
    k: KernelBuilder,
    plan: LoopPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """The linear loop with stores that bypass the caches, where the results lie as these need it; the rest as usual."""
    usual = _linear(plan, _storing(plan, arrays, outputs))
    streamed = _linear(plan, _storing(plan, arrays, _streaming(outputs)))
    misplaced = k.or_(k.and_(begin, plan.lanes - 1), _misplaced(k, plan, outputs))
    whole = k.select(k.compare("eq", misplaced, 0), k.add(begin, k.and_(k.sub(end, begin), -plan.lanes)), begin)
    vector = Indexing(k, plan.lanes)
    with k.loop(begin, whole, plan.lanes) as loop:
        streamed(vector, loop.index)
    k.fence()
    strip(k, whole, end, plan.lanes, usual, overlapping=True)


def _by_rows(
    k: KernelBuilder,
    plan: LoopPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """The loop over rows. Results past the caches if they lie as that needs it; else as usual, with nothing fetched
    ahead: that is rare, and more code."""
    parts_pay = not (in_place or plan.is_quick or plan.lanes == 1)
    interior = interior_of(plan.roots, arrays.__contains__, plan.lanes) if parts_pay else {}
    if plan.streaming and inner_dim(plan.shape) in interior:
        interior = {}  # parts of rows do not begin where vectors may be stored past the caches

    def rows(arrays: Mapping[Instruction, Array], targets: Sequence[Array], first: Value, last: Value) -> None:
        fetching = Fetching(plan.roots, plan.shape, arrays)
        step = _storing(plan, fetching.arrays, targets)
        with k.loop(first, last) as loop:
            fetching.emit(k, loop.index, last)
            if interior:
                emit_padded_row(k, plan.shape, loop.index, plan.lanes, step, interior)
            else:
                emit_row(k, plan.shape, loop.index, plan.lanes, step, overlapping=not in_place)

    if not plan.streaming or in_place:
        rows(arrays, outputs, begin, end)
        return
    whole = k.select(k.compare("eq", _misplaced(k, plan, outputs), 0), end, begin)
    rows(arrays, _streaming(outputs), begin, whole)
    k.fence()
    rows({operand: replace(array, ahead=0) for operand, array in arrays.items()}, outputs, whole, end)


def _streaming(outputs: Sequence[Array]) -> list[Array]:
    return [replace(output, streaming=True) for output in outputs]


def _misplaced(k: KernelBuilder, plan: LoopPlan, outputs: Sequence[Array]) -> Value:
    """Zero if all results begin where a step's vector may be stored past the caches."""
    places = [
        k.and_(k.address(output.pointer), memory_type(output.shape.type).bytes * plan.lanes - 1) for output in outputs
    ]
    return functools.reduce(k.or_, places)


def emit_row(
    k: KernelBuilder,
    shape: Shape,
    row: Value,
    lanes: int,
    step: Callable[[Indexing, Index], None],
    *,
    overlapping: bool,
) -> None:
    """The inner loop over one row of an array of `shape`: row number in memory order, outer dimensions major."""
    outer = outer_positions(k, shape, row)

    def inner_step(ix: Indexing, position: Value) -> None:
        step(ix, place_in_row(shape, outer, ix.along_lanes(position)))

    size = inner_size(shape)
    strip(k, k.const(I64, 0), k.const(I64, size), lanes, inner_step, overlapping=overlapping)
