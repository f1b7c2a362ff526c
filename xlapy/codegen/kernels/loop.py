"""Loop kernels: every element of the result is a function of elements of the operands.

Two loop nests serve all of them. If every array is read at the element's own row-major number, one loop runs over these
numbers. Otherwise rows are the outer loop and the last dimension of the result in memory is the inner one:

    for row in [begin, end):  for position in row, `lanes` at a time:  store(f(load ...))

Short rows are first made longer, if that can be (`merged_dims`); many that stay short are walked plane by plane.
The last vector of a row (or of the range) overlaps the one before it, instead of a second loop for the rest; where the
result overwrites an operand, it is computed before anything is overwritten, and stored behind everything else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from xlapy.codegen.arrays import FETCHED_AHEAD, MOST_STRIDE, MOST_TURNED, Array, Placement
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I8, I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.fetching import Fetching
from xlapy.codegen.kernels.functions import (
    are_functions_called,
    are_many_in_a_chain,
    is_block_of_functions,
    vectors_of_functions,
)
from xlapy.codegen.kernels.joined_columns import store_columns
from xlapy.codegen.kernels.padded_rows import (
    Interior,
    JoinedParts,
    RowStep,
    emit_joined_row,
    emit_padded_row,
    emit_part,
    interior_of,
    joined_parts,
)
from xlapy.codegen.kernels.row_choice import LEAST_CHOSEN, choice_of_rows, sides_of
from xlapy.codegen.kernels.row_order import (
    RowWalk,
    inner_dim,
    inner_size,
    outer_dims,
    place_in_row,
    rows_and_columns,
    rows_of_operand,
)
from xlapy.codegen.kernels.strip import LEAST_VECTORS, PastCaches, strip
from xlapy.codegen.kernels.tasks import TASK_BYTES, units_per_task
from xlapy.codegen.registers import Element, memory_type, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

STREAMED_BYTES = 16 << 20  # results smaller than this may be in cache when they are read next
LEAST_LEAVING_BYTES = 1 << 16  # of results that bypass the caches because they are some of many
VECTORS_PER_STEP = 2  # two native vectors hide the latency of one another's operations
QUICK_WORK = 1 << 15  # operations on 32 bits that take no longer than a call of the program, even if done badly
LONG_ROW = 64  # operations on one element, behind one another: LLVM takes long to find next to nothing in them
LONG_STEP = 40  # instructions of a step, of which LLVM should not be given four copies for rows in parts
LEAST_INSIDE = 16  # parts of all places, of which those outside are one: these may take twice as long
FEW_STEPS_BYTES = 1 << 10  # of a native vector for each step: as few steps that are so long, of a loop that runs once
LEAST_COMPUTED = 32  # bits of an element: what computes narrow ones may take so many on the way, or as many for indices
LEAST_MOVED = 8  # where nothing is computed, or only what processors do with narrow ones
SHORT_ROW = 4  # vectors in a row: with fewer, what is known of it takes as long to find out as what is done
MANY_ROWS = 256  # for which loops over planes of them are worth their code
CHOICE_WORK = 16  # of what is padded or joined, of which each lane is asked where it lies
MANY_CHOICES = 4  # such, for which it pays to tell the rows and parts of few elements apart, even if that is done once
FUNCTION_WORK = 20  # a transcendental function is about so many operations


class LoopPlan(Record):
    """The shape of a loop kernel: how many units of work there are, and how they are walked."""

    roots: tuple[Instruction, ...]
    shape: Shape  # of the results
    is_linear: bool
    lanes: int
    units: int  # elements if linear, else rows
    bytes_per_unit: int
    streaming: bool  # results are too large to stay in cache until somebody reads them
    walk: RowWalk  # of streamed rows
    repeated: tuple[Instruction, ...] = ()  # inputs that are the same for all streamed rows
    is_quick: bool = False  # better compiled fast than run fast
    calls_functions: bool = False  # long ones, instead of having a copy of each
    is_plain: bool = False  # LLVM would try hard for nothing
    asks_ahead: bool = True  # what will be read is fetched
    joins: bool = False  # the roots are the columns of one result
    is_often_chosen: bool = False  # where elements lie: by a loop of the program, or in many places

    @property
    def fills_vectors(self) -> bool:
        """Tasks of a linear loop have no elements left over behind the last whole vector."""
        grain = units_per_task(self.units, self.bytes_per_unit, self.least_units)
        return not self.units % self.lanes and not grain % self.lanes

    @property
    def least_units(self) -> int:
        """Of a task. Rows are whole, however few."""
        return self.lanes if self.is_linear else 1


def plan_loop(
    roots: Sequence[Instruction],
    inputs: Callable[[Instruction], bool],
    operand_bytes: int,
    target: Target,
    *,
    runs_once: bool = False,
    leaving_bytes: int = 0,
    joins: bool = False,
) -> LoopPlan:
    """How to compute `roots` (of equal dimensions) from instructions for which `inputs` holds.

    `runs_once` per call of the program: then a kernel with next to nothing to do need not be a fast one.
    `leaving_bytes` are those of the roots and of others that nobody reads before the call ends."""
    shape = roots[0].shape
    instructions = between(roots, inputs)
    is_linear = follow_row_major_numbers(roots, inputs)
    extent = shape.size if is_linear else inner_size(shape)
    # Functions take one element at a time, and tasks that call them are too small to be whole vectors.
    calls = any(region_functions(instruction) for instruction in instructions)
    choices = sum(instruction.opcode in ("concatenate", "pad") for instruction in instructions)
    per_element = work_per_element(instructions) + CHOICE_WORK * choices
    work = shape.size * per_element * widest_register(instructions) // 32
    is_tiny = runs_once and not calls and work <= QUICK_WORK
    computed = [instruction for instruction in instructions if not inputs(instruction)]
    turns = target.has_permute and _turns_rows(instructions, inputs)
    vectors = 1 if is_tiny or joins else _vectors_per_step(computed, shape.size, extent, target, turns=turns)
    widest = element_lanes(instructions, inputs, target, vectors)
    lanes = 1 if calls else min(widest, power_of_two_below(extent))
    units = shape.size if is_linear else rows_and_columns(shape)[0]
    steps = -(-extent // lanes) * (1 if is_linear else units)
    few_steps = FEW_STEPS_BYTES // target.vector_bytes
    is_quick = is_tiny or (runs_once and not calls and steps <= few_steps and _is_long_row(instructions))
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    is_placed = is_linear or not extent % lanes or (len(roots) == 1 and extent >= LEAST_VECTORS * lanes)
    is_placed = is_placed and (is_linear or not joins or not extent % lanes)
    streaming = is_placed and is_streamed(roots, lanes, target, leaving_bytes)
    walk = RowWalk.as_they_lie(shape)
    if streaming and not is_linear and not extent % lanes:
        walk = _walk_of_operand(instructions, inputs, shape, target) or walk
    calls_functions = (vectors > VECTORS_PER_STEP or are_many_in_a_chain(computed)) and are_functions_called(
        computed, target, streaming=streaming
    )
    is_one_block = vectors > VECTORS_PER_STEP and is_linear and not calls_functions
    repeated = _repeated_rows(filter(inputs, instructions), shape, target) if streaming and extent > lanes else ()
    return LoopPlan(
        tuple(roots),
        shape,
        is_linear,
        lanes,
        units,
        total // max(units, 1),
        streaming,
        walk,
        repeated,
        is_quick=is_quick,
        calls_functions=calls_functions,
        is_plain=is_one_block and is_block_of_functions(instructions, computed, target),
        asks_ahead=target.asks_ahead
        or not target.reads_side_by_side
        or not (
            (is_linear and _comes_unasked(instructions, inputs, shape, target))
            or _is_picked_from_line(instructions, inputs, target)
        ),
        joins=joins,
        is_often_chosen=not runs_once or choices >= MANY_CHOICES,
    )


def _comes_unasked(
    instructions: Sequence[Instruction], inputs: Callable[[Instruction], bool], shape: Shape, target: Target
) -> bool:
    """Whether a processor that `reads_side_by_side` is disturbed if it is told what will be read next: it follows
    several arrays well enough, if there is little to compute meanwhile. (One core of a Zen 3: sums of two arrays of 16
    MB and more are 1.2 times as fast, and of products with a third one 1.35 times. One array is the same, and functions
    are slower.)"""
    large = [i for i in instructions if inputs(i) and i.shape.size == shape.size and i.shape.bytes > target.l2_bytes]
    is_light = work_per_element(instructions) < FUNCTION_WORK
    return len(large) > 1 and is_light and not any(i.shape.type.is_narrow_float for i in instructions)


def _is_picked_from_line(
    instructions: Sequence[Instruction], inputs: Callable[[Instruction], bool], target: Target
) -> bool:
    """Whether the only large operand is read once, from end to end, and every second element or less is used: there is
    so much to read for each that is stored that asking costs more. (One core of a Zen 3: every second of 8 million
    takes 0.8 of the time, and every third 0.9. If the others are used as well, asking is the same, or better.)"""
    large = [i for i in instructions if inputs(i) and i.shape.bytes > target.l2_bytes]
    picks = [i for i in instructions if i.opcode == "slice" and i.operands[0] in large]
    others = [i for i in instructions if large and large[0] in i.operands and i not in picks]
    if len(large) != 1 or len(picks) != 1 or others or work_per_element(instructions) >= FUNCTION_WORK:
        return False
    is_along = picks[0].shape.dims[:-1] == large[0].shape.dims[:-1]
    return is_along and picks[0].attributes["dimensions"][-1].stride in range(2, MOST_STRIDE + 1)


def _repeated_rows(inputs: Iterable[Instruction], shape: Shape, target: Target) -> tuple[Instruction, ...]:
    """The inputs that may be repeated for each row, if they stay in the nearest cache beside other rows."""
    rows = tuple(i for i in inputs if i.shape.dims == (inner_size(shape),) and not i.shape.type.is_complex)
    return rows if shape.rank > 1 and sum(row.shape.bytes for row in rows) <= target.l1_bytes // 2 else ()


def _walk_of_operand(
    instructions: Sequence[Instruction], inputs: Callable[[Instruction], bool], shape: Shape, target: Target
) -> RowWalk | None:
    """The walk on which the only large operand is read as it lies, if that is a transpose of the result in short rows,
    or reversed. What is stored past the caches may go anywhere; what is picked from an operand is waited for, and what
    is read backwards in parts is not found as fast."""
    large = [each for each in instructions if inputs(each) and each.shape.bytes > target.l2_bytes]
    moved = [i for i in instructions if i.opcode in ("transpose", "reverse") and i.shape.dims == shape.dims]
    if len(large) != 1 or len(moved) != 1 or large[0] not in between(moved[0].operands, inputs):
        return None
    if moved[0].opcode == "reverse":
        return RowWalk(outer_dims(shape), tuple(moved[0].attributes["dimensions"]))
    if moved[0].operands[0] is not large[0]:
        return None
    row_bytes = inner_size(shape) * large[0].shape.type.bytes
    order = rows_of_operand(moved[0]) if CACHE_LINE <= row_bytes < FETCHED_AHEAD else None
    return None if order is None else RowWalk(order)


def work_per_element(instructions: Sequence[Instruction]) -> int:
    """About how many operations compute one element."""
    return sum(FUNCTION_WORK if instruction.opcode in TRANSCENDENTAL else 1 for instruction in instructions)


def _vectors_per_step(
    computed: Sequence[Instruction], size: int, extent: int, target: Target, *, turns: bool = False
) -> int:
    """How many native vectors to compute together: of `size` elements in all, `extent` behind one another. One if they
    are columns of blocks of rows that it `turns`."""
    functions = vectors_of_functions(computed, size, extent, widest_lanes(computed, target, 1), target)
    return functions or (1 if turns else vectors_of_masks(computed, target))


def _turns_rows(instructions: Iterable[Instruction], inputs: Callable[[Instruction], bool]) -> bool:
    """Whether blocks of long rows are turned over, as those of small matrices are: that waits for nothing, so a second
    vector of each column makes it no faster, but twice the code (with AVX-512, sums of 5 to 32 columns take half to two
    thirds of the time to compile, and 1.05 to 0.85 to run, those of narrow elements down to half)."""
    return any(_is_column(instruction, inputs) for instruction in instructions)


def _is_column(instruction: Instruction, inputs: Callable[[Instruction], bool]) -> bool:
    """One element of each of an input's rows, which may have several dimensions."""
    if instruction.opcode != "slice" or not inputs(instruction.operands[0]):
        return False
    whole, dims = instruction.operands[0].shape.dims, instruction.shape.dims
    kept = sum(1 for _ in itertools.takewhile(lambda sizes: sizes[0] == sizes[1], zip(whole, dims, strict=True)))
    return MOST_STRIDE < math.prod(whole[kept:]) <= MOST_TURNED and math.prod(dims[kept:]) == 1


def vectors_of_masks(computed: Iterable[Instruction], target: Target) -> int:
    """How many native vectors a step takes: where masks have no registers of their own, one if any are combined. LLVM
    packs masks of more lanes into bytes for each operation, and unpacks them for each selection (the largest element
    of each column and its place: 50 instructions for what takes 18, and compiled in twice the time)."""
    if target.is_avx512 or not target.is_x86:
        return VECTORS_PER_STEP
    combines = any(i.opcode in _LOGIC and any(operand.opcode == "compare" for operand in i.operands) for i in computed)
    return 1 if combines else VECTORS_PER_STEP


_LOGIC = frozenset({"and", "or", "xor", "not"})


def _is_long_row(instructions: Sequence[Instruction]) -> bool:
    """Whether an element takes many operations, of which none is a function: between the parts of these, an order is
    worth looking for."""
    return len(instructions) >= LONG_ROW and not any(i.opcode in TRANSCENDENTAL for i in instructions)


def is_streamed(roots: Sequence[Instruction], lanes: int, target: Target, leaving_bytes: int = 0) -> bool:
    """Whether storing past the caches pays: it saves reading the lines that are overwritten, and what else is in
    cache. Of many results that nobody reads before all are there (`leaving_bytes`), none is in a cache by then."""
    widths = [memory_type(root.shape.type).bytes * lanes for root in roots]
    own = sum(root.shape.bytes for root in roots)
    return (
        max(own, leaving_bytes if own >= LEAST_LEAVING_BYTES else 0) >= streamed_bytes(target)
        and not any(root.shape.type.is_complex for root in roots)
        and all(width % target.vector_bytes == 0 for width in widths)
    )


def streamed_bytes(target: Target) -> int:
    """How large results are that no cache holds until somebody reads them."""
    return max(target.l3_bytes // 2, STREAMED_BYTES)


def follow_row_major_numbers(roots: Sequence[Instruction], inputs: Callable[[Instruction], bool]) -> bool:
    """All that computes `roots` from instructions for which `inputs` holds is read at the number of their element."""
    size, instructions = roots[0].shape.size, between(roots, inputs)
    return roots[0].shape.rank == 1 or all(follows_row_major_numbers(i, size, inputs(i)) for i in instructions)


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


def element_lanes(
    instructions: Sequence[Instruction], inputs: Callable[[Instruction], bool], target: Target, vectors: int
) -> int:
    """Lanes of a step of so many native vectors: more where only what is narrow is computed from what `inputs` holds
    for."""
    is_narrow = all(inputs(i) or _moves_neighbours(i) or _stays_narrow(i) for i in instructions)
    return widest_lanes(instructions, target, vectors, least_bits=LEAST_MOVED if is_narrow else LEAST_COMPUTED)


def _moves_neighbours(instruction: Instruction) -> bool:
    """The instruction only says where its elements come from, and neighbours come from neighbours."""
    if instruction.opcode == "slice":
        return all(part.stride == 1 for part in instruction.attributes["dimensions"])
    return instruction.opcode in ("reverse", "copy")


def _stays_narrow(instruction: Instruction) -> bool:
    """Processors do that with many narrow integers at a time, and nobody counts lanes meanwhile."""
    if instruction.opcode in ("constant", "broadcast"):
        return not any(operand.shape.rank for operand in instruction.operands)
    return instruction.opcode in _NARROW


_NARROW = frozenset(
    {
        *("add", "subtract", "minimum", "maximum", "clamp", "and", "or", "xor", "not", "compare", "select", "convert"),
        *("shift-left", "shift-right-logical", "shift-right-arithmetic"),
    }
)


def widest_lanes(
    instructions: Sequence[Instruction],
    target: Target,
    vectors: int = VECTORS_PER_STEP,
    *,
    least_bits: int = LEAST_COMPUTED,
) -> int:
    """Lanes per step, by the widest register among the values."""
    return target.lanes(widest_register(instructions, least_bits)) * vectors


def widest_register(instructions: Sequence[Instruction], least_bits: int = LEAST_COMPUTED) -> int:
    """Bits of an element in the widest register among the values."""
    return max([least_bits, *(register_type(i.shape.type).bits for i in instructions if i.shape.is_array)])


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
    streams = plan.streaming and not in_place
    if plan.is_linear:
        _by_numbers(k, plan, arrays, outputs, begin, end, in_place=in_place)
    else:
        _by_rows(k, plan, arrays, outputs, begin, end, in_place=in_place)
    if streams:
        k.fence()


def _by_numbers(
    k: KernelBuilder,
    plan: LoopPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """The loop over the numbers of elements: those inside, if that is told from the ends, and all others."""
    if not plan.asks_ahead:
        arrays = {instruction: replace(array, ahead=0) for instruction, array in arrays.items()}
    rest = _rest_of_addresses(k, plan, outputs) if plan.streaming and not in_place else None
    step = _Storing(plan, Fetching(plan.roots, plan.shape, arrays, plan.walk).arrays, outputs)

    def linear(ix: Indexing, position: Value) -> None:
        placement = None if rest is None else Placement(_is_misplaced(k, plan, position, rest))
        step(ix, Index(plan.shape.dims, None, ix.along_lanes(position)), placement)

    joined = _joined_parts(plan, arrays.__contains__) if _has_parts(plan, in_place=in_place) else None
    if joined is not None:
        for part in joined.parts:
            _part_of_line(k, plan, part, begin, end, step, rest)
        return
    inside = _inside_of_line(plan, arrays) if not in_place else None
    if in_place and not plan.joins and leaves_rest(plan.units, plan.lanes):
        _by_numbers_in_place(k, plan, step, begin, end)
        return
    if inside is None:
        strip(k, begin, end, plan.lanes, linear, overlapping=not in_place, fits=plan.fills_vectors)
        return

    def bounded(ix: Indexing, position: Value) -> None:
        placement = None if rest is None else Placement(_is_misplaced(k, plan, position, rest))
        step(ix, Index(plan.shape.dims, (ix.along_lanes(position)._replace(bounds=inside),)), placement)

    low, high = k.smax(begin, inside.start), k.smin(end, inside.stop)
    has_inside = k.compare("le", k.add(low, plan.lanes), high)
    low, high = (k.select(has_inside, place, end) for place in (low, high))
    strip(k, low, high, plan.lanes, bounded, overlapping=True)
    with k.loop(0, 2) as sides:
        is_first = k.compare("eq", sides.index, 0)
        strip(k, k.select(is_first, begin, high), k.select(is_first, low, end), plan.lanes, linear, overlapping=True)


def _has_parts(plan: LoopPlan, *, in_place: bool) -> bool:
    """Whether loops for what is made in different ways pay, in a kernel over arrays of one dimension."""
    return plan.shape.rank == 1 and not (in_place or plan.is_quick or plan.lanes == 1)


def _part_of_line(
    k: KernelBuilder, plan: LoopPlan, part: range, begin: Value, end: Value, step: RowStep, rest: Value | None
) -> None:
    """What lies in a part of the elements [begin, end): in vectors, which begin where those do that bypass the caches,
    if any do. What is left over of it runs one by one: the vectors of other parts are made otherwise."""

    def bounded(ix: Indexing, position: Value) -> None:
        placement = None if rest is None else Placement(k.compare("ne", rest, 0) if ix.lanes > 1 else k.const(I1, 1))
        step(ix, Index(plan.shape.dims, (ix.along_lanes(position)._replace(bounds=part),)), placement)

    low = k.smax(begin, part.start)
    high = k.smax(k.smin(end, part.stop), low)
    if rest is not None:
        first = k.smin(k.and_(k.add(low, plan.lanes - 1), -plan.lanes), high)
        strip(k, low, first, 1, bounded, overlapping=False)
        low = first
    strip(k, low, high, plan.lanes, bounded, overlapping=False)


def _inside_of_line(plan: LoopPlan, arrays: Mapping[Instruction, Array]) -> range | None:
    """The elements of an array of one dimension that no end of what is padded or joined is among, in whole vectors."""
    if not _has_parts(plan, in_place=False):
        return None
    inside = interior_of(plan.roots, arrays.__contains__, plan.lanes, repeated=plan.is_often_chosen).get(0)
    if inside is None:
        return None
    start, stop = -(-inside.start // plan.lanes) * plan.lanes, inside.stop // plan.lanes * plan.lanes
    return range(start, stop) if stop > start else None


def _joined_parts(plan: LoopPlan, is_input: Callable[[Instruction], bool]) -> JoinedParts | None:
    """The parts that have loops of their own; none if several would each have a copy of much code, for what is made of
    what is joined, though nearly all of it lies in one of them."""
    joined = joined_parts(plan.roots, is_input, plan.lanes)
    if joined is None or len(joined.parts) == 2:
        return joined
    behind = between(plan.roots, lambda i: is_input(i) or i.opcode == "concatenate")
    outside = plan.shape.dims[joined.dim] - max(map(len, joined.parts))
    is_alike = len(behind) >= LONG_STEP and outside * LEAST_INSIDE <= plan.shape.dims[joined.dim]
    return None if is_alike else joined


@dataclass(frozen=True, slots=True)
class _Storing:
    """Computes the elements at an index, and stores them: past the caches if they lie so that this may be."""

    plan: LoopPlan
    arrays: Mapping[Instruction, Array]
    outputs: Sequence[Array]

    def __call__(self, ix: Indexing, index: Index, placement: Placement | None) -> None:
        self.store(ix, index, self.made(ix, index), placement)

    def made(self, ix: Indexing, index: Index) -> Sequence[Element]:
        return ElementGraph(ix, self.arrays).values([(root, index) for root in self.plan.roots])

    def store(self, ix: Indexing, index: Index, values: Sequence[Element], placement: Placement | None) -> None:
        if self.plan.joins:
            store_columns(ix, replace(self.outputs[0], placement=placement), self.plan.shape, index, values)
            return
        for output, value in zip(self.outputs, values, strict=True):
            replace(output, placement=placement).store(ix, index, value)


def leaves_rest(size: int, lanes: int) -> bool:
    """Whether something is left over behind the whole vectors of what is overwritten, and more than one element: then
    the last vector, which begins inside of the one before it, is better made first, and stored behind all others."""
    return size > lanes > 1 and size % lanes > 1


def _by_numbers_in_place(k: KernelBuilder, plan: LoopPlan, step: _Storing, begin: Value, end: Value) -> None:
    """The loop over the numbers of elements that overwrites an operand, with a rest. A task of fewer elements than a
    vector has, the last one of several, takes them one by one."""
    vector, scalar, lanes = Indexing(k, plan.lanes), Indexing(k, 1), plan.lanes

    def index(ix: Indexing, position: Value) -> Index:
        return Index(plan.shape.dims, None, ix.along_lanes(position))

    last = index(vector, k.smax(k.sub(end, lanes), 0))
    values, length = step.made(vector, last), k.sub(end, begin)
    with k.loop(begin, k.add(begin, k.and_(length, -lanes)), lanes) as loop:
        step(vector, index(vector, loop.index), None)

    def store_last() -> None:
        step.store(vector, last, values, None)

    def one_by_one() -> None:
        with k.loop(begin, end) as loop:
            step(scalar, index(scalar, loop.index), None)

    if plan.units * plan.bytes_per_unit <= TASK_BYTES:
        store_last()  # such a kernel is one piece
    else:
        k.if_else(k.compare("le", lanes, length), store_last, one_by_one)


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
    """The loop over rows."""
    parts_pay = not (in_place or plan.is_quick or plan.lanes == 1)
    joined = _joined_parts(plan, arrays.__contains__) if parts_pay else None
    interior: Interior = {}
    if parts_pay and joined is None:
        interior = interior_of(plan.roots, arrays.__contains__, plan.lanes, repeated=plan.is_often_chosen)
    streams, shape = plan.streaming and not in_place, plan.shape
    if not plan.asks_ahead:
        arrays = {instruction: replace(array, ahead=0) for instruction, array in arrays.items()}
    in_parts = {*interior} if joined is None else {joined.dim}
    walk = plan.walk if streams and not in_parts else RowWalk.as_they_lie(shape)
    if streams:
        arrays = {**arrays, **{row: _by_lines(k, arrays[row]) for row in plan.repeated}}
    is_long = len(between(plan.roots, arrays.__contains__)) >= LONG_STEP
    fetching = Fetching(plan.roots, shape, arrays, walk)
    storing = _Storing(plan, fetching.arrays, outputs)
    past_caches, placement_of_all = None, None
    if streams:
        if len(outputs) > 1 and inner_dim(shape) in in_parts:
            interior, joined = {}, None  # parts of rows begin at other places in other results
            in_parts = set()
        if (inner_dim(shape) in in_parts or inner_size(shape) % plan.lanes) and not plan.joins:
            past_caches = PastCaches.of(k, outputs[0], plan.lanes)
        else:
            placement_of_all = Placement(k.compare("ne", _rest_of_addresses(k, plan, outputs), 0))

    def step(ix: Indexing, index: Index, placement: Placement | None) -> None:
        storing(ix, index, placement or placement_of_all)

    is_long_enough = plan.lanes > 1 and inner_size(shape) >= LEAST_CHOSEN * plan.lanes
    is_whole = not (in_parts or plan.is_quick)
    choice = choice_of_rows(plan.roots, {inner_dim(shape)}) if is_whole and is_long_enough else None

    def one_row(row: Value, outer: Mapping[int, Coordinate] | None) -> None:
        fetching.emit(k, row, end)
        if joined is not None:
            emit_joined_row(k, shape, row, plan.lanes, step, joined, past_caches)
            return
        if interior:
            emit_padded_row(k, shape, row, plan.lanes, step, interior, past_caches, is_long=is_long)
            return
        places = walk.outer_positions(k, shape, row) if outer is None else outer

        def whole(storing: _Storing) -> None:
            def step(ix: Indexing, index: Index, placement: Placement | None) -> None:
                storing(ix, index, placement or placement_of_all)

            def emit(part: range, *, overlapping: bool) -> None:
                emit_part(
                    k,
                    shape,
                    row,
                    places,
                    part,
                    plan.lanes,
                    step,
                    overlapping=overlapping,
                    past_caches=past_caches,
                    backwards=inner_dim(shape) in walk.backwards,
                )

            size = inner_size(shape)
            if not in_place or plan.joins or not leaves_rest(size, plan.lanes):
                emit(range(size), overlapping=not in_place)
                return
            vector = Indexing(k, plan.lanes)
            end_of_row = place_in_row(shape, places, vector.along_lanes(k.const(I64, size - plan.lanes)))
            last = storing.made(vector, end_of_row)
            emit(range(size - size % plan.lanes), overlapping=False)
            storing.store(vector, end_of_row, last, None)

        if choice is None:
            whole(storing)
            return

        def one_side(number: int) -> None:
            whole(_Storing(replace(plan, roots=sides_of(plan.roots, number)), fetching.arrays, outputs))

        ix = Indexing(k, 1)
        place = place_in_row(shape, places, ix.along_lanes(k.const(I64, 0)))
        (condition,) = ElementGraph(ix, fetching.arrays).values([(choice, place)])
        assert isinstance(condition, Value)
        k.if_else(condition, lambda: one_side(1), lambda: one_side(2))

    is_short = inner_size(shape) < SHORT_ROW * plan.lanes and plan.units >= MANY_ROWS
    if in_parts or streams or plan.is_quick or not is_short:
        with k.loop(begin, end) as loop:
            one_row(loop.index, None)
    else:
        walk.rows_in_planes(k, shape, begin, end, one_row)


def _by_lines(k: KernelBuilder, row: Array) -> Array:
    """The array, or a copy of it that begins with a cache line.

    Beside stores that bypass the caches, loads that cross lines take long: on a Zen 5, rows took up to 1.7 times as
    long if each was computed with the same three others, which lay across lines, as numpy's arrays do."""
    room = k.alloca(I8, row.shape.bytes, align=CACHE_LINE)
    crosses = k.compare("ne", k.and_(k.address(row.pointer), CACHE_LINE - 1), 0)
    with k.if_(crosses):
        k.memcpy(room, row.pointer, row.shape.bytes)
    return replace(row, pointer=k.select(crosses, room, row.pointer), read_only=False)


def _rest_of_addresses(k: KernelBuilder, plan: LoopPlan, outputs: Sequence[Array]) -> Value:
    """Zero if all results lie as stores need it that bypass the caches. (Ours do; memory of others may not.)"""
    rest = k.const(I64, 0)
    for output in outputs:
        width = memory_type(output.shape.type).bytes * plan.lanes
        rest = k.or_(rest, k.and_(k.address(output.pointer), width - 1))
    return rest


def _is_misplaced(k: KernelBuilder, plan: LoopPlan, position: Value, rest: Value) -> Value:
    """Whether the vectors at a position may not bypass the caches. The branch on it costs nothing, while a second loop,
    for the vector that does not begin where vectors do, would take as long to compile as the first one."""
    if not plan.fills_vectors:
        rest = k.or_(rest, k.and_(position, plan.lanes - 1))
    return k.compare("ne", rest, 0)


def emit_row(k: KernelBuilder, shape: Shape, row: Value, lanes: int, step: RowStep, *, overlapping: bool) -> None:
    """The inner loop over one row of an array of `shape`: row number in memory order, outer dimensions major."""
    outer, whole = RowWalk.as_they_lie(shape).outer_positions(k, shape, row), range(inner_size(shape))
    emit_part(k, shape, row, outer, whole, lanes, step, overlapping=overlapping, past_caches=None)
