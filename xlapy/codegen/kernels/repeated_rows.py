"""Element-wise programs over short rows, each of which meets the same row of other numbers, or one number: colours of
images less the means of colours, or times what their pixel lets through; layers of few neurons and their bias.

    f32[64,64,3] subtract(x, broadcast(f32[3] mean))        0 1 2 0 1 2 0 1   2 0 1 2 0 1 2 0   1 2 0 1 2 0 1 2
    f32[64,64,3] multiply(x, broadcast(f32[64,64] mask))    0 0 0 1 1 1 2 2   2 3 3 3 4 4 4 5   5 5 6 6 6 7 7 7

If nothing else depends on where an element is, elements are computed by their numbers, whatever rows these are in, as
many at a time as whole rows and whole vectors have: a unit of work. What is repeated in each row lies in vectors that
come by again in each unit, and are made before the loop. What each row has one of is computed once for the rows of a
unit, and then spread. The last unit may overlap the one before it: it begins where a row does, too. (Rows that fill
vectors are left to loops over rows, which take more vectors at a time.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import (
    VECTORS_PER_STEP,
    element_lanes,
    follows_row_major_numbers,
    is_streamed,
    work_per_element,
)
from xlapy.codegen.kernels.strip import stored_past_caches
from xlapy.codegen.registers import Element, memory_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major, region_functions
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

LEAST_ELEMENTS = 2048  # for which it is worth to make vectors first
MOST_IN_ROW = 64  # elements, of which most vectors of a row are no shorter
MOST_VECTORS = 8  # of a unit: each has code of its own
MOST_WORK = 128  # operations of all vectors of a unit


class RepeatedRowsPlan(Record):
    """`repeated` are instructions whose elements depend on their place in a row only, and `spread` those that are the
    same for all of a row. A unit has `period` elements."""

    roots: tuple[Instruction, ...]
    repeated: tuple[Instruction, ...]
    spread: tuple[Instruction, ...]
    lanes: int
    period: int
    bytes_per_unit: int
    streaming: bool

    @property
    def size(self) -> int:
        return self.roots[0].shape.size

    @property
    def units(self) -> int:
        return -(-self.size // self.period)


def plan_repeated_rows(
    roots: Sequence[Instruction],
    inputs: Callable[[Instruction], bool],
    operand_bytes: int,
    target: Target,
    *,
    in_place: bool,
) -> RepeatedRowsPlan | None:
    """How to compute `roots` so, of which some may be where an operand is (`in_place`); None if they depend on more
    than their numbers and places in short rows."""
    size = roots[0].shape.size
    if size < LEAST_ELEMENTS or not all(map(is_row_major, roots)):
        return None

    def is_leaf(instruction: Instruction) -> bool:
        return inputs(instruction) or _row(instruction, size) > 0 or _spread(instruction, size) > 0

    instructions = between(roots, is_leaf)
    leaves = [instruction for instruction in instructions if is_leaf(instruction) and not inputs(instruction)]
    repeated = [instruction for instruction in leaves if _row(instruction, size)]
    spread = [instruction for instruction in leaves if instruction not in repeated]
    row = math.lcm(*(_row(each, size) or _spread(each, size) for each in leaves))
    if not leaves or row > MOST_IN_ROW:
        return None
    if not all(follows_row_major_numbers(i, size, inputs(i)) for i in instructions if i not in leaves):
        return None
    parts = [_part(each, size, inputs) for each in spread]
    once = [instruction for part in parts for instruction in part or ()]
    if None in parts or any(i.shape.type.is_complex or region_functions(i) for i in (*instructions, *once)):
        return None
    lanes = element_lanes(instructions, is_leaf, target, 1)
    if not row % lanes:
        return None
    period = max(math.lcm(row, lanes), VECTORS_PER_STEP * lanes)
    vectors = period // lanes
    if vectors > MOST_VECTORS or vectors * work_per_element(instructions) + work_per_element(once) > MOST_WORK:
        return None
    if period > size or (in_place and size % period):
        return None
    streaming = not size % lanes and is_streamed(roots, lanes, target)
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    return RepeatedRowsPlan(
        tuple(roots), tuple(repeated), tuple(spread), lanes, period, total * period // size, streaming
    )


def _row(instruction: Instruction, size: int) -> int:
    """After how many elements those of an instruction come again, if these are all that it is made from; else 0."""
    dims = instruction.shape.dims
    if not is_row_major(instruction) or instruction.shape.size != size:
        return 0
    if instruction.opcode == "iota":
        first = instruction.attributes["dimension"]
    elif instruction.opcode == "broadcast" and instruction.operands[0].shape.rank:
        dimensions = instruction.attributes["dimensions"]
        first = min((dim for dim in dimensions if dims[dim] > 1), default=len(dims) - 1)
        if any(dims[dim] > 1 and dim not in dimensions for dim in range(first, len(dims))):
            return 0
    else:
        return 0
    return math.prod(dims[first:])


def _spread(instruction: Instruction, size: int) -> int:
    """How many neighbours an instruction repeats each element of its operand for, in its order, if it does; else 0."""
    dims = instruction.shape.dims
    if instruction.opcode != "broadcast" or not is_row_major(instruction) or instruction.shape.size != size:
        return 0
    (operand,), dimensions = instruction.operands, instruction.attributes["dimensions"]
    end = max((dim for dim in dimensions if dims[dim] > 1), default=-1) + 1
    is_in_order = is_row_major(operand) and list(dimensions) == sorted(dimensions)
    is_whole = all(dims[dim] == 1 or dim in dimensions for dim in range(end))
    return math.prod(dims[end:]) if end and is_in_order and is_whole else 0


def _part(instruction: Instruction, size: int, inputs: Callable[[Instruction], bool]) -> list[Instruction] | None:
    """What computes what an instruction spreads; None if that is not all read at the number of its row."""
    rows = size // _spread(instruction, size)
    members = between(instruction.operands, inputs)
    return members if all(follows_row_major_numbers(i, rows, inputs(i)) for i in members) else None


def emit_repeated_rows(
    k: KernelBuilder,
    plan: RepeatedRowsPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """Writes units [begin, end). `in_place`: some output is also an operand."""
    with stored_past_caches(k, outputs, streams=plan.streaming and not in_place) as outputs:
        ix = Indexing(k, plan.lanes)
        starts = range(0, plan.period, plan.lanes)
        repeated = [_vectors(ix, plan, instruction, arrays) for instruction in plan.repeated]
        with k.loop(begin, end) as units:
            spread = [_spread_vectors(ix, plan, instruction, arrays, units.index) for instruction in plan.spread]
            first = _first(k, units.index, plan.period, plan.size)
            for start, *known in zip(starts, *repeated, *spread, strict=True):
                graph = ElementGraph(ix, arrays, dict(zip((*plan.repeated, *plan.spread), known, strict=True)))
                index = Index(plan.roots[0].shape.dims, None, ix.along_lanes(k.add(first, start)))
                values = graph.values([(root, index) for root in plan.roots])
                for output, value in zip(outputs, values, strict=True):
                    output.store(ix, index, value)


def _vectors(
    ix: Indexing, plan: RepeatedRowsPlan, instruction: Instruction, arrays: Mapping[Instruction, Array]
) -> list[Element]:
    """The elements of a unit, in vectors, of an instruction that is the same in all units."""
    k, element_type = ix.k, instruction.shape.type
    room = k.alloca(memory_type(element_type), plan.period, align=CACHE_LINE)
    array = Array(room, Shape.array(element_type, (plan.period,)), read_only=False)
    scalar = Indexing(k, 1)
    with k.loop(0, plan.period) as loop:
        index = Index(instruction.shape.dims, None, Coordinate(loop.index))
        (element,) = ElementGraph(scalar, arrays).values([(instruction, index)])
        array.store(scalar, Index(array.shape.dims, None, Coordinate(loop.index)), element)
    places = [Coordinate(k.const(I64, start), 1) for start in range(0, plan.period, plan.lanes)]
    return [array.load(ix, Index(array.shape.dims, None, place)) for place in places]


def _first(k: KernelBuilder, unit: Value, period: int, size: int) -> Value:
    """The first of so many elements of a unit."""
    first = k.mul(unit, period)
    return k.smin(first, size - period) if size % period else first


def _spread_vectors(
    ix: Indexing, plan: RepeatedRowsPlan, instruction: Instruction, arrays: Mapping[Instruction, Array], unit: Value
) -> list[Element]:
    """The elements of a unit, in vectors, of an instruction that is the same for all of a row."""
    k, (operand,) = ix.k, instruction.operands
    length = _spread(instruction, plan.size)
    rows = Indexing(k, plan.period // length)
    first = _first(k, unit, rows.lanes, plan.size // length)
    index = Index(operand.shape.dims, None, rows.along_lanes(first))
    (element,) = ElementGraph(rows, arrays).values([(operand, index)])
    assert isinstance(element, Value)
    whole = k.splat(element, rows.lanes)
    is_mask = whole.type.kind == I1.kind
    if is_mask:  # lanes of masks change their places as those of numbers
        whole = k.sext(whole, I32)
    vectors: list[Element] = []
    for start in range(0, plan.period, plan.lanes):
        vector = k.shuffle(whole, None, [place // length for place in range(start, start + plan.lanes)])
        vectors.append(k.compare("lt", vector, 0) if is_mask else vector)
    return vectors
