"""Update kernels: a dynamic-update-slice writes its slice over the operand, which is in the result's memory already."""

from __future__ import annotations

from collections.abc import Mapping

from xlapy.codegen.arrays import Array, Placement
from xlapy.codegen.element_graph import ElementGraph, clamped_starts
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.loop import LoopPlan, emit_row
from xlapy.codegen.kernels.padded_rows import emit_part
from xlapy.codegen.kernels.row_order import RowWalk, inner_size, place_in_row
from xlapy.codegen.registers import Element
from xlapy.hlo.graph import Instruction


def emit_update(
    k: KernelBuilder,
    update_slice: Instruction,
    plan: LoopPlan,
    arrays: Mapping[Instruction, Array],
    output: Array,
    begin: Value,
    end: Value,
) -> None:
    """Writes rows [begin, end) of the update into `output`. `plan` is that of the update.

    If the update is made of what was there, the last vector of a row, which begins inside of the one before it, is made
    before anything of the row is overwritten."""
    update, starts = update_slice.operands[1], update_slice.operands[2:]
    scalar = ElementGraph(Indexing(k, 1), arrays)
    origin = clamped_starts(scalar, starts, update_slice.shape.dims, update.shape.dims)

    def made(ix: Indexing, index: Index) -> Element:
        return ElementGraph(ix, arrays).values([(update, index)])[0]

    def write(ix: Indexing, index: Index, value: Element) -> None:
        moved = tuple(ix.add(coordinate, start) for coordinate, start in zip(ix.split(index), origin, strict=True))
        output.store(ix, Index(update_slice.shape.dims, moved), value)

    def step(ix: Indexing, index: Index, placement: Placement | None) -> None:
        write(ix, index, made(ix, index))

    target = update_slice.operands[0]
    is_made_of_target = any(user is not update_slice for user in target.users)
    size, shape, vector = inner_size(plan.shape), plan.shape, Indexing(k, plan.lanes)
    whole = size - size % plan.lanes
    with k.loop(begin, end) as rows:
        if not is_made_of_target or whole == size:
            emit_row(k, shape, rows.index, plan.lanes, step, overlapping=not is_made_of_target)
            return
        outer = RowWalk.as_they_lie(shape).outer_positions(k, shape, rows.index)
        end_of_row = place_in_row(shape, outer, vector.along_lanes(k.const(I64, size - plan.lanes)))
        last = made(vector, end_of_row)
        part = range(whole)
        emit_part(k, shape, rows.index, outer, part, plan.lanes, step, overlapping=False, past_caches=None)
        write(vector, end_of_row, last)
