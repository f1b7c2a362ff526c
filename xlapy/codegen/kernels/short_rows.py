"""Element-wise programs over rows of two to four elements, as the colours of an image are: vectors go along the
dimension before.

    f32[64,64,3] select(broadcast(pred[64,64] mask), x, y)

In the row itself most lanes would be idle, and three of them take two vectors. So each vector has one colour of as many
pixels, all colours of these are computed together, and joined in registers. What does not depend on the colour is
computed once. Programs that have longer rows under other dimensions are better off so (`merged_dims`), and light ones
over two or four elements stay as they are: to pick colours apart and join them takes longer than half a vector costs,
unless they choose among columns that are joined, lane by lane. Matrices of a few rows and columns, of which none
fills a vector, are rows of all their elements.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.joined_columns import store_columns
from xlapy.codegen.kernels.loop import is_streamed, power_of_two_below, widest_lanes
from xlapy.codegen.kernels.padded_rows import Interior, between_edges, interior_of, is_within
from xlapy.codegen.kernels.row_choice import LEAST_CHOSEN, choice_of_rows, sides_of
from xlapy.codegen.kernels.strip import stored_past_caches, strip
from xlapy.codegen.registers import memory_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import MOST_COLUMNS, is_row_major, region_functions
from xlapy.hlo.shape import Dims, Shape
from xlapy_runtime.records import Record

LEAST_ELEMENTS = 2048  # for which a loop in other dimensions is worth its code
LEAST_CHOOSING = 128  # the same, if the loop would choose among arrays for each of its elements
LEAST_LANES = 4
MOST_INSTRUCTIONS = 128  # that are written down for each element of a row
HEAVY = 24  # instructions, with which half a vector costs more


class ShortRowsPlan(Record):
    """`along` is the dimension of vectors, and those behind it are a row. A unit is one of its elements if there are no
    other dimensions, else all of them."""

    roots: tuple[Instruction, ...]
    shape: Shape
    along: int
    outer: tuple[int, ...]
    lanes: int
    units: int
    bytes_per_unit: int
    streaming: bool

    @property
    def least_units(self) -> int:
        return 1 if self.outer else self.lanes


def plan_short_rows(
    roots: Sequence[Instruction], inputs: Callable[[Instruction], bool], operand_bytes: int, target: Target
) -> ShortRowsPlan | None:
    """How to compute `roots` so; None if their rows are longer, or other vectors no worse."""
    shape, instructions = roots[0].shape, between(roots, inputs)
    dims = shape.dims
    along = _dimension_of_vectors(dims)
    if along is None or not 2 <= dims[-1] <= MOST_COLUMNS:
        return None
    chooses = any(_joins_columns(instruction) for instruction in instructions if not inputs(instruction))
    if shape.size < (LEAST_CHOOSING if chooses else LEAST_ELEMENTS):
        return None
    count = math.prod(dims[along + 1 :])
    if any(root.shape.type.is_complex or not is_row_major(root) for root in roots):
        return None
    if len(instructions) * count // dims[-1] > MOST_INSTRUCTIONS or any(
        region_functions(instruction) for instruction in instructions
    ):
        return None
    is_wide = all(root.shape.type.bits >= 32 for root in roots)
    is_heavy = len(instructions) >= HEAVY and is_wide
    if dims[-1] == power_of_two_below(dims[-1]) and not (is_heavy or chooses):
        return None
    if count > dims[-1] and not (is_wide or chooses):
        return None
    lanes = min(widest_lanes(instructions, target, 1), power_of_two_below(dims[along]))
    if lanes < LEAST_LANES or dims[-1] >= lanes:
        return None
    outer = tuple(dim for dim in range(along) if dims[dim] > 1)
    units = math.prod(dims[dim] for dim in outer) if outer else dims[along]
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    streaming = not dims[along] % lanes and is_streamed(roots, lanes, target)
    return ShortRowsPlan(tuple(roots), shape, along, outer, lanes, units, total // units, streaming)


def _joins_columns(instruction: Instruction) -> bool:
    """Its rows are short, and each element is of another array, which a loop over elements would choose one by one."""
    if instruction.opcode != "concatenate":
        return False
    dims = instruction.shape.dims
    return (
        instruction.attributes["dimension"] == len(dims) - 1 and len(instruction.operands) == dims[-1] <= MOST_COLUMNS
    )


def _dimension_of_vectors(dims: Dims) -> int | None:
    """The last one in front of the rows that has several elements; if these are too few for a vector, that before."""
    longer = [dim for dim, size in enumerate(dims[:-1]) if size > 1]
    if len(longer) > 1 and dims[longer[-1]] < LEAST_LANES <= dims[longer[-2]]:
        return longer[-2]
    return longer[-1] if longer else None


def emit_short_rows(
    k: KernelBuilder,
    plan: ShortRowsPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
) -> None:
    """Writes units [begin, end). `in_place`: some output is also an operand."""
    with stored_past_caches(k, outputs, streams=plan.streaming and not in_place) as outputs:
        step, dims = partial(_step, plan, arrays, outputs), plan.shape.dims
        if not plan.outer:
            strip(k, begin, end, plan.lanes, step({}), overlapping=not in_place)
            return
        scalar, length = Indexing(k, 1), k.const(I64, dims[plan.along])
        is_long = dims[plan.along] >= LEAST_CHOSEN * plan.lanes
        choice = choice_of_rows(plan.roots, {*range(plan.along, len(dims))}) if is_long else None
        parts_pay = not (in_place or plan.streaming)
        interior = interior_of(plan.roots, arrays.__contains__, plan.lanes, along=plan.along) if parts_pay else {}
        with k.loop(begin, end) as rows:
            places_outside = scalar.delinearize(Coordinate(rows.index), [dims[dim] for dim in plan.outer])
            row = dict(zip(plan.outer, places_outside, strict=True))

            def whole(step: Step) -> None:
                strip(k, k.const(I64, 0), length, plan.lanes, step, overlapping=not in_place)

            def one_side(number: int) -> None:
                sides = sides_of(plan.roots, number)
                if not (in_place or plan.streaming) and all(side in arrays and is_row_major(side) for side in sides):
                    for output, side in zip(outputs, sides, strict=True):
                        size = math.prod(dims[plan.along :]) * memory_type(side.shape.type).bytes
                        goal, source = (k.gep(array.pointer, rows.index, size) for array in (output, arrays[side]))
                        k.memcpy(goal, source, size)
                else:
                    whole(_step(replace(plan, roots=sides), arrays, outputs, row))

            if interior and max(interior) <= plan.along:
                _emit_padded(k, plan, step, row, interior)
            elif choice is None:
                whole(step(row))
            else:
                place = Index(dims, tuple(row.get(dim, scalar.constant(0)) for dim in range(len(dims))))
                (condition,) = ElementGraph(scalar, arrays).values([(choice, place)])
                assert isinstance(condition, Value)
                k.if_else(condition, lambda: one_side(1), lambda: one_side(2))


def _emit_padded(
    k: KernelBuilder, plan: ShortRowsPlan, step: Callable[..., Step], row: Mapping[int, Coordinate], interior: Interior
) -> None:
    """What lies within all borders of what is padded or joined is made of one thing; what does not, of any, and one by
    one where vectors of narrow elements have no masks: LLVM would ask for each lane."""
    size, lanes = plan.shape.dims[plan.along], plan.lanes
    inside = [is_within(k, row[dim], positions) for dim, positions in interior.items() if dim in row]
    is_inside = functools.reduce(k.and_, inside, k.const(I1, 1))
    bounded = {dim: at._replace(bounds=interior.get(dim)) for dim, at in row.items()}
    along = interior.get(plan.along, range(size))
    are_single = not k.has_masks and any(memory_type(root.shape.type).bits < I32.bits for root in plan.roots)
    least = 1 if are_single else lanes  # elements at an end
    part = along if are_single else between_edges(along, lanes, size)
    with k.if_(is_inside):
        own = step(bounded, along if len(along) < size else None)
        strip(k, k.const(I64, part.start), k.const(I64, part.stop), lanes, own, overlapping=True)
    whole = k.const(I64, size)
    first_end = k.select(is_inside, max(along.start, least) if along.start else 0, whole)
    second = k.select(is_inside, min(along.stop, size - least) if along.stop < size else size, whole)
    with k.loop(0, 2) as ends:
        is_second = k.compare("ne", ends.index, 0)
        begin, end = k.select(is_second, second, 0), k.select(is_second, whole, first_end)
        strip(k, begin, end, least, step(row), overlapping=not are_single)


Step = Callable[[Indexing, Value], None]


def _step(
    plan: ShortRowsPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    row: Mapping[int, Coordinate],
    bounds: range | None = None,
) -> Step:
    """Computes and stores all elements of as many short rows as there are lanes, all within `bounds` if given."""
    dims, of_rows = plan.shape.dims, plan.shape.with_dims(plan.shape.dims[: plan.along + 1])
    places = list(itertools.product(*map(range, dims[plan.along + 1 :])))

    def step(ix: Indexing, position: Value) -> None:
        known = {**row, plan.along: ix.along_lanes(position)._replace(bounds=bounds)}
        first = tuple(known.get(dim, ix.constant(0)) for dim in range(plan.along + 1))
        indices = [Index(dims, (*first, *(_column(ix, number) for number in place))) for place in places]
        known_arrays = {instruction: replace(array, blocks={}) for instruction, array in arrays.items()}
        values = ElementGraph(ix, known_arrays).values([(root, index) for root in plan.roots for index in indices])
        for number, output in enumerate(outputs):
            own = values[number * len(places) : (number + 1) * len(places)]
            store_columns(ix, output, of_rows, Index(of_rows.dims, first), own)

    return step


def _column(ix: Indexing, number: int) -> Coordinate:
    return ix.constant(number)._replace(bounds=range(number, number + 1))
