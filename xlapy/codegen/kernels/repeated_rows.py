"""Element-wise programs over short rows, each of which meets the same row of other numbers: colours of images less the
means of colours, or layers of few neurons and their bias.

    f32[64,64,3] subtract(x, broadcast(f32[3] mean))        0 1 2 0 1 2 0 1   2 0 1 2 0 1 2 0   1 2 0 1 2 0 1 2

If nothing else depends on where an element is, elements are computed by their numbers, whatever rows these are in: what
is repeated lies in vectors that come by again when as many elements are done as whole rows and whole vectors have: a
unit of work. They are made before the loop. The last unit may overlap the one before it: it begins where a row does,
too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import (
    VECTORS_PER_STEP,
    element_lanes,
    follows_row_major_numbers,
    is_streamed,
    work_per_element,
)
from xlapy.codegen.kernels.strip import past_caches
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
    """`repeated` are instructions whose elements depend on their place in a row only. A unit has `period` elements."""

    roots: tuple[Instruction, ...]
    repeated: tuple[Instruction, ...]
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

    def length(instruction: Instruction) -> int:
        return 0 if inputs(instruction) else _row(instruction, size)

    instructions = between(roots, lambda i: inputs(i) or length(i) > 0)
    repeated = [instruction for instruction in instructions if length(instruction)]
    row = math.lcm(*map(length, repeated))
    if not repeated or row > MOST_IN_ROW or any(i.shape.type.is_complex or region_functions(i) for i in instructions):
        return None
    if not all(length(i) or follows_row_major_numbers(i, size, inputs(i)) for i in instructions):
        return None
    lanes = element_lanes(instructions, lambda i: inputs(i) or length(i) > 0, target, 1)
    if not row % lanes:
        return None
    period = max(math.lcm(row, lanes), VECTORS_PER_STEP * lanes)
    vectors = period // lanes
    if vectors > MOST_VECTORS or vectors * work_per_element(instructions) > MOST_WORK:
        return None
    if period > size or (in_place and size % period):
        return None
    streaming = not size % lanes and is_streamed(roots, lanes, target)
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    return RepeatedRowsPlan(tuple(roots), tuple(repeated), lanes, period, total * period // size, streaming)


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
    streams = plan.streaming and not in_place
    if streams:
        outputs = past_caches(k, outputs)
    ix = Indexing(k, plan.lanes)
    starts = range(0, plan.period, plan.lanes)
    repeated = [_vectors(ix, plan, instruction, arrays) for instruction in plan.repeated]
    graphs = [
        ElementGraph(ix, arrays, dict(zip(plan.repeated, those, strict=True))) for those in zip(*repeated, strict=True)
    ]
    with k.loop(begin, end) as units:
        first = k.mul(units.index, plan.period)
        if plan.size % plan.period:
            first = k.smin(first, plan.size - plan.period)
        for start, graph in zip(starts, graphs, strict=True):
            index = Index(plan.roots[0].shape.dims, None, ix.along_lanes(k.add(first, start)))
            values = graph.values([(root, index) for root in plan.roots])
            for output, value in zip(outputs, values, strict=True):
                output.store(ix, index, value)
    if streams:
        k.fence()


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
