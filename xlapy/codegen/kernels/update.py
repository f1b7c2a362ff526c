"""Update kernels: a dynamic-update-slice writes its slice over the operand, which is in the result's memory already."""

from __future__ import annotations

from collections.abc import Mapping

from xlapy.codegen.arrays import Array, Placement
from xlapy.codegen.element_graph import ElementGraph, clamped_starts
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.loop import LoopPlan, emit_row
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

    No element is written twice if the update is made of what was there."""
    update, starts = update_slice.operands[1], update_slice.operands[2:]
    scalar = ElementGraph(Indexing(k, 1), arrays)
    origin = clamped_starts(scalar, starts, update_slice.shape.dims, update.shape.dims)

    def step(ix: Indexing, index: Index, placement: Placement | None) -> None:
        value = ElementGraph(ix, arrays).values([(update, index)])[0]
        moved = tuple(ix.add(coordinate, start) for coordinate, start in zip(ix.split(index), origin, strict=True))
        output.store(ix, Index(update_slice.shape.dims, moved), value)

    target = update_slice.operands[0]
    is_made_of_target = any(user is not update_slice for user in target.users)
    with k.loop(begin, end) as rows:
        emit_row(k, plan.shape, rows.index, plan.lanes, step, overlapping=not is_made_of_target)
