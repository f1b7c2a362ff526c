"""Collectives: what the processes of a program compute together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlapy.hlo.attributes import ReplicaGroups, SourceTargetPairs
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import shape_of_results
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields, integer_table
from xlapy.stablehlo.convert.reductions import promoted
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ShapeError

FILLER = -1
"""Fills up the rows of a table of groups that are shorter than the longest."""


@converts("stablehlo.all_reduce")
def all_reduce(body: Body, operation: Operation) -> Instruction:
    return body.add("all-reduce", *_reduced(body, operation), called=body.called, **reducing_group(operation))


@converts("stablehlo.reduce_scatter")
def reduce_scatter(body: Body, operation: Operation) -> Instruction:
    return body.add(
        "reduce-scatter",
        *_reduced(body, operation),
        called=body.called,
        shape=shape_of_results(operation.result_types),
        dimension=attribute(operation, "scatter_dimension", int),
        **reducing_group(operation),
    )


def _reduced(body: Body, operation: Operation) -> Sequence[Instruction]:
    operands = body.operands(operation)
    if len(operands) != 1:
        return operands
    (computation,) = body.called
    return promoted(body, [*operands, *operands], computation)[:1]


@converts("stablehlo.all_gather")
def all_gather(body: Body, operation: Operation) -> Instruction:
    return body.add(
        "all-gather",
        *body.operands(operation),
        shape=shape_of_results(operation.result_types),
        dimension=attribute(operation, "all_gather_dim", int),
        **reducing_group(operation),
    )


@converts("stablehlo.all_to_all")
def all_to_all(body: Body, operation: Operation) -> Instruction:
    """Each operand for itself. HLO's op concatenates along the dimension that it cuts; the rest is data movement."""
    split, concat = attribute(operation, "split_dimension", int), attribute(operation, "concat_dimension", int)
    count = attribute(operation, "split_count", int)
    group = _group(operation)
    if count < 1:
        raise ShapeError("all_to_all.C4", f"split_count {count} is not positive")
    if any(len(members) != count for members in group["replica_groups"].groups):
        raise ShapeError(
            "all_to_all.C8", f"split_count is {count}, but the groups are {group['replica_groups'].groups}"
        )
    results = []
    for operand in body.operands(operation):
        rank = operand.shape.rank
        if not 0 <= concat < rank:
            raise ShapeError("all_to_all.C3", f"concat_dimension {concat} is outside {operand.shape}")
        exchanged = body.add("all-to-all", operand, dimension=split, **group)
        results.append(_moved_blocks(body, exchanged, split, concat, count))
    return body.pack(results)


def _moved_blocks(body: Body, array: Instruction, source: int, target: int, count: int) -> Instruction:
    """The `count` blocks along one dimension, one after another along another dimension."""
    if source == target:
        return array
    dims = list(array.shape.dims)
    if dims[source] % count:
        raise ShapeError("all_to_all.C2", f"dimension {source} of {array.shape} cannot be cut into {count} parts")
    cut = (*dims[:source], count, dims[source] // count, *dims[source + 1 :])
    order = [dim for dim in range(len(cut)) if dim != source]
    order.insert(target, source)
    dims[source] //= count
    dims[target] *= count
    blocks = body.add("reshape", array, shape=array.shape.with_dims(cut))
    moved = body.add("transpose", blocks, permutation=tuple(order))
    return body.add("reshape", moved, shape=array.shape.with_dims(tuple(dims)))


@converts("stablehlo.collective_broadcast")
def collective_broadcast(body: Body, operation: Operation) -> Instruction:
    return body.add("collective-broadcast", *body.operands(operation), **_group(operation))


@converts("stablehlo.collective_permute")
def collective_permute(body: Body, operation: Operation) -> Instruction:
    table = integer_table(operation, "source_target_pairs")
    if any(len(pair) != 2 for pair in table):
        raise ShapeError("collective_permute.C1", f"{table} are not pairs of a source and a target")
    pairs = SourceTargetPairs(tuple((source, target) for source, target in table))
    channel = _channel_id(operation)
    return body.add("collective-permute", *body.operands(operation), source_target_pairs=pairs, channel_id=channel)


def reducing_group(operation: Operation) -> dict[str, Any]:
    """Who takes part, where groups may name processes instead of replicas."""
    return {
        **_group(operation),
        "use_global_device_ids": attribute(operation, "use_global_device_ids", bool, False),
    }


def _group(operation: Operation) -> dict[str, Any]:
    table = integer_table(operation, "replica_groups")
    groups = tuple(tuple(process for process in group if process != FILLER) for group in table)
    return {"replica_groups": ReplicaGroups(groups), "channel_id": _channel_id(operation)}


def _channel_id(operation: Operation) -> int | None:
    if "channel_handle" not in operation.attributes:
        return None
    return attribute(fields(operation, "channel_handle"), "handle", int) or None
