"""Collectives: what the processes of a program compute together.

Functions take an array, or several as a list or a tuple; `replica_groups` lists the members of each group, and without
groups all processes are one. Each of HLO's start/done pairs has functions too: what is recorded between them runs while
the processes wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlapy.builder.arguments import as_flag, as_int, as_ints, as_rows
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.communication import channel_number, check_stated
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, Operands, as_handle, as_op, builder_of
from xlapy.builder.regions import computation_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import Reshape, Transpose, require_array
from xlapy.hlo.attributes import ReplicaGroups, SourceTargetPairs
from xlapy.hlo.graph import Computation
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape, shape_of_results
from xlapy.support.errors import ArgumentError, ShapeError


@op_function("all-reduce")
def AllReduce(
    operand: Operands,
    computation: ComputationLike,
    replica_groups: Any = (),
    channel_id: Any = None,
    shape_with_layout: Shape | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Reduces the operand over the processes of each group. A tuple, or a list of arrays, gives a tuple.

    `replica_groups` lists the members of each group; none: all processes are one group. Arrays of several element types
    need a Python function, which is recorded, and reduced by, once for each."""
    builder = builder_of(operand)
    arrays, is_tuple = _arrays_of(builder, operand)
    if callable(computation) and len({require_array(array).type for array in arrays}) > 1:
        rest = (replica_groups, channel_id, None, use_global_device_ids)
        return _by_type(builder, arrays, lambda some: AllReduce(some, computation, *rest))
    meeting = _meeting_of_devices(replica_groups, channel_id, use_global_device_ids)
    reduced = _all_reduce("all-reduce", builder, arrays, computation, meeting)
    if shape_with_layout is not None and not is_tuple:
        check_stated(reduced, shape_with_layout)
    return builder.record("tuple", [reduced]) if is_tuple and len(arrays) == 1 else reduced


def _by_type(builder: XlaBuilder, arrays: Sequence[XlaOp], reduce: Callable[[list[XlaOp]], XlaOp]) -> XlaOp:
    """The tuple of reduced arrays, where those of each element type are reduced together."""
    results: list[XlaOp] = list(arrays)
    for element_type in dict.fromkeys(array.shape.type for array in arrays):
        numbers = [number for number, array in enumerate(arrays) if array.shape.type is element_type]
        for number, reduced in zip(numbers, reduce([arrays[number] for number in numbers]), strict=True):
            results[number] = reduced
    return builder.record("tuple", results)


@op_function("all-reduce-start")
def AllReduceStart(
    operand: Operands,
    computation: ComputationLike,
    replica_groups: Any = (),
    channel_id: Any = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Begins an AllReduce; its result is for AllReduceDone."""
    builder = builder_of(operand)
    arrays, _ = _arrays_of(builder, operand)
    meeting = _meeting_of_devices(replica_groups, channel_id, use_global_device_ids)
    return _all_reduce("all-reduce-start", builder, arrays, computation, meeting)


@op_function("all-reduce-done")
def AllReduceDone(started: XlaOp) -> XlaOp:
    """Waits for an AllReduceStart and returns what AllReduce would: an array, or a tuple for several operands."""
    return as_handle(started).builder.record("all-reduce-done", [started])


def _arrays_of(builder: XlaBuilder, operand: Operands) -> tuple[list[XlaOp], bool]:
    """The operands of a collective, and whether they were given as a tuple or a list."""
    if isinstance(operand, (list, tuple)):
        return [as_op(builder, array) for array in operand], True
    op = builder.own(operand)
    return (list(op), True) if op.shape.is_tuple else ([op], False)


def _all_reduce(
    opcode: str,
    builder: XlaBuilder,
    arrays: Sequence[XlaOp],
    computation: ComputationLike,
    meeting: Mapping[str, Any],
) -> XlaOp:
    called = _reduction(builder, "AllReduce.B3", arrays, computation)
    return builder.record(opcode, arrays, called=[called], **meeting)


def _reduction(builder: XlaBuilder, rule: str, arrays: Sequence[XlaOp], computation: ComputationLike) -> Computation:
    """What combines two elements. A Python function is recorded for those of the first array."""
    if not arrays:
        raise ShapeError(rule, "there is nothing to reduce")
    scalar = Shape.scalar(require_array(arrays[0]).type)
    return computation_of(builder, computation, [scalar, scalar], "reduction", scalar)


def _meeting(replica_groups: Any, channel_id: Any) -> dict[str, Any]:
    """The attributes that say who meets, and on which channel."""
    return {"replica_groups": as_replica_groups(replica_groups), "channel_id": _optional_channel(channel_id)}


def _meeting_of_devices(replica_groups: Any, channel_id: Any, use_global_device_ids: bool | None) -> dict[str, Any]:
    """The same, and whether groups list devices."""
    is_global = use_global_device_ids is not None and as_flag(use_global_device_ids, "use_global_device_ids")
    return {**_meeting(replica_groups, channel_id), "use_global_device_ids": is_global}


def as_replica_groups(groups: Any) -> ReplicaGroups:
    """Groups of process ids, from a ReplicaGroups, lists of ids, or protos with `replica_ids`."""
    if isinstance(groups, ReplicaGroups):
        return groups
    rows = as_rows(() if groups is None else groups, "replica_groups")
    members = (getattr(group, "replica_ids", group) for group in rows)
    return ReplicaGroups(tuple(as_ints(ids, "a replica group") for ids in members))


@op_function("all-gather")
def AllGather(
    operand: Operands,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Any = (),
    channel_id: Any = None,
    shape_with_layout: Any = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Concatenates the operands of the processes of each group. A tuple, or a list of arrays, gives a tuple.

    `shard_count` is how many processes a group has."""
    meeting = _meeting_of_devices(replica_groups, channel_id, use_global_device_ids)
    return _all_gather("all-gather", operand, all_gather_dimension, shard_count, meeting)


@op_function("all-gather-start")
def AllGatherStart(
    operand: Operands,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Any = (),
    channel_id: Any = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Begins an AllGather; its result is for AllGatherDone."""
    meeting = _meeting_of_devices(replica_groups, channel_id, use_global_device_ids)
    return _all_gather("all-gather-start", operand, all_gather_dimension, shard_count, meeting)


def _all_gather(opcode: str, operand: Operands, dimension: int, shard_count: int, meeting: Mapping[str, Any]) -> XlaOp:
    count = _shard_count("AllGather", shard_count)

    def gathered(shape: Shape, dimension: int) -> Shape:
        return shape.with_dim(dimension, shape.dims[dimension] * count)

    return _resized(opcode, operand, dimension, gathered, (), meeting)


@op_function("all-gather-done")
def AllGatherDone(started: XlaOp) -> XlaOp:
    """Waits for an AllGatherStart and returns what AllGather would."""
    return as_handle(started).builder.record("all-gather-done", [started])


@op_function("reduce-scatter")
def ReduceScatter(
    operand: Operands,
    computation: ComputationLike,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Any = (),
    channel_id: Any = None,
    layout: Any = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Reduces over the processes of each group; the k-th one gets the k-th part. A tuple or a list gives a tuple.

    `shard_count` is how many processes a group has, and how many parts there are."""
    meeting = _meeting_of_devices(replica_groups, channel_id, use_global_device_ids)
    return _reduce_scatter("reduce-scatter", operand, computation, scatter_dimension, shard_count, meeting)


@op_function("reduce-scatter-start")
def ReduceScatterStart(
    operand: Operands,
    computation: ComputationLike,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Any = (),
    channel_id: Any = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Begins a ReduceScatter; its result is for ReduceScatterDone."""
    meeting = _meeting_of_devices(replica_groups, channel_id, use_global_device_ids)
    return _reduce_scatter("reduce-scatter-start", operand, computation, scatter_dimension, shard_count, meeting)


def _reduce_scatter(
    opcode: str,
    operand: Operands,
    computation: ComputationLike,
    dimension: int,
    shard_count: int,
    meeting: Mapping[str, Any],
) -> XlaOp:
    count = _shard_count("ReduceScatter", shard_count)
    builder = builder_of(operand)
    called = _reduction(builder, "ReduceScatter.some-operands", _arrays_of(builder, operand)[0], computation)

    def scattered(shape: Shape, dimension: int) -> Shape:
        if shape.dims[dimension] % count:
            raise ShapeError("ReduceScatter.B4", f"dimension {dimension} of {shape} cannot be cut into {count} parts")
        return shape.with_dim(dimension, shape.dims[dimension] // count)

    return _resized(opcode, operand, dimension, scattered, (called,), meeting)


@op_function("reduce-scatter-done")
def ReduceScatterDone(started: XlaOp) -> XlaOp:
    """Waits for a ReduceScatterStart and returns what ReduceScatter would."""
    return as_handle(started).builder.record("reduce-scatter-done", [started])


def _shard_count(name: str, shard_count: int) -> int:
    count = as_int(shard_count, "shard_count")
    if count < 1:
        raise ShapeError(f"{name}.B3", f"a group of {count} processes is no group")
    return count


def _resized(
    opcode: str,
    operand: Operands,
    dimension: int,
    resize: Callable[[Shape, int], Shape],
    called: Sequence[Computation],
    meeting: Mapping[str, Any],
) -> XlaOp:
    """Records a collective that changes the size of one dimension of each array."""
    builder = builder_of(operand)
    arrays, is_tuple = _arrays_of(builder, operand)
    along = as_int(dimension, "a dimension")
    shapes = [require_array(array) for array in arrays]
    results = [resize(shape, along) if 0 <= along < shape.rank else shape for shape in shapes]  # else the rule refuses
    result = shape_of_results(results)
    if opcode.endswith("-start"):
        result = OPS[opcode].options["async_shape"](shapes, result)
    recorded = builder.record(opcode, arrays, called=called, shape=result, dimension=along, **meeting)
    packs = is_tuple and len(arrays) == 1 and not opcode.endswith("-start")
    return builder.record("tuple", [recorded]) if packs else recorded


@op_function("all-to-all")
def AllToAll(
    operand: Operand,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    replica_groups: Any = (),
    layout: Any = None,
    channel_id: Any = None,
) -> XlaOp:
    """Cuts the operand along one dimension; the k-th process of a group gets the k-th part of everybody's operand, and
    concatenates them along the other dimension. `split_count` is how many processes a group has."""
    builder = builder_of(operand)
    array = as_op(builder, operand)
    shape = array.shape
    if not shape.is_array:
        raise ShapeError("AllToAll.B2", f"{shape} is not an array")
    split, concat = as_int(split_dimension, "split_dimension"), as_int(concat_dimension, "concat_dimension")
    count = _shard_count("AllToAll", split_count)
    if not (0 <= split < shape.rank and 0 <= concat < shape.rank):
        raise ShapeError("dimension-in-range", f"dimensions {split} and {concat} are not both dimensions of {shape}")
    if shape.dims[split] % count:
        raise ShapeError("AllToAll.B1", f"dimension {split} of {shape} cannot be cut into {count} parts")
    meeting = _meeting(replica_groups, channel_id)
    groups = meeting["replica_groups"].groups
    if groups and any(len(group) != count for group in groups):
        raise ShapeError("AllToAll.B3", f"split_count is {count}, but the groups are {groups}")
    exchanged = builder.record("all-to-all", [array], dimension=split, **meeting)
    return exchanged if split == concat else _moved_blocks(exchanged, split, concat, count)


def _moved_blocks(array: XlaOp, source: int, target: int, count: int) -> XlaOp:
    """The `count` blocks along one dimension, one after another along another dimension."""
    dims = list(array.shape.dims)
    cut = [*dims[:source], count, dims[source] // count, *dims[source + 1 :]]
    order = [dim for dim in range(len(cut)) if dim != source]
    order.insert(target, source)
    dims[source] //= count
    dims[target] *= count
    return Reshape(Transpose(Reshape(array, cut), order), dims)


@op_function()
def AllToAllTuple(operands: Operands, replica_groups: Any = (), layout: Any = None, channel_id: Any = None) -> XlaOp:
    """The k-th process of a group gets the k-th operand of everybody, as a tuple."""
    builder = builder_of(operands)
    arrays, _ = _arrays_of(builder, operands)
    return builder.record("all-to-all", arrays, **_meeting(replica_groups, channel_id))


@op_function("all-to-all-start")
def AllToAllStart(operand: Operand, dimension: int, replica_groups: Any = (), channel_id: Any = None) -> XlaOp:
    """Begins an AllToAll that cuts and concatenates along one dimension; its result is for AllToAllDone."""
    builder = builder_of(operand)
    along, meeting = as_int(dimension, "a dimension"), _meeting(replica_groups, channel_id)
    return builder.record("all-to-all-start", [as_op(builder, operand)], dimension=along, **meeting)


@op_function("all-to-all-done")
def AllToAllDone(started: XlaOp) -> XlaOp:
    """Waits for an AllToAllStart and returns what AllToAll would."""
    return as_handle(started).builder.record("all-to-all-done", [started])


@op_function("collective-permute")
def CollectivePermute(
    operand: Operands, source_target_pairs: Any, channel_id: Any = None, inplace: bool = False
) -> XlaOp:
    """Sends the operand from the source to the target of each pair; who is no target gets zeros.

    Several operands, a tuple or a list, give a tuple. Buffers are ours to share, so `inplace` is not read."""
    return _permute("collective-permute", operand, source_target_pairs, channel_id)


@op_function("collective-permute-start")
def CollectivePermuteStart(operand: Operands, source_target_pairs: Any, channel_id: Any = None) -> XlaOp:
    """Begins a CollectivePermute; its result is for CollectivePermuteDone."""
    return _permute("collective-permute-start", operand, source_target_pairs, channel_id)


def _permute(opcode: str, operand: Operands, source_target_pairs: Any, channel_id: Any) -> XlaOp:
    builder = builder_of(operand)
    arrays, _ = _arrays_of(builder, operand)
    return builder.record(
        opcode, arrays, source_target_pairs=_pairs(source_target_pairs), channel_id=_optional_channel(channel_id)
    )


def _pairs(given: Any) -> SourceTargetPairs:
    if isinstance(given, SourceTargetPairs):
        return given
    pairs = [as_ints(pair, "a pair") for pair in as_rows(given, "source_target_pairs")]
    if any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(f"source_target_pairs lists pairs (source, target), not {pairs}")
    return SourceTargetPairs(tuple((source, target) for source, target in pairs))


@op_function("collective-permute-done")
def CollectivePermuteDone(started: XlaOp) -> XlaOp:
    """Waits for a CollectivePermuteStart and returns what CollectivePermute would."""
    return as_handle(started).builder.record("collective-permute-done", [started])


@op_function()
def MultiCollectivePermute(
    operands: Operands, source_target_pairs: Any, channel_id: Any = None, inplace: bool = False
) -> XlaOp:
    """CollectivePermute of several arrays at once; the result is a tuple."""
    return CollectivePermute(operands, source_target_pairs, channel_id, inplace)


@op_function("collective-broadcast")
def CollectiveBroadcast(operand: Operands, replica_groups: Any = (), channel_id: Any = None) -> XlaOp:
    """Everybody in a group gets the operand of its first process; who is in no group gets zeros."""
    return _collective_broadcast("collective-broadcast", operand, replica_groups, channel_id)


@op_function("collective-broadcast-start")
def CollectiveBroadcastStart(operand: Operands, replica_groups: Any = (), channel_id: Any = None) -> XlaOp:
    """Begins a CollectiveBroadcast; its result is for CollectiveBroadcastDone."""
    return _collective_broadcast("collective-broadcast-start", operand, replica_groups, channel_id)


def _collective_broadcast(opcode: str, operand: Operands, replica_groups: Any, channel_id: Any) -> XlaOp:
    builder = builder_of(operand)
    arrays, _ = _arrays_of(builder, operand)
    return builder.record(opcode, arrays, **_meeting(replica_groups, channel_id))


@op_function("collective-broadcast-done")
def CollectiveBroadcastDone(started: XlaOp) -> XlaOp:
    """Waits for a CollectiveBroadcastStart and returns what CollectiveBroadcast would."""
    return as_handle(started).builder.record("collective-broadcast-done", [started])


def _optional_channel(channel_id: Any) -> int | None:
    return None if channel_id is None else channel_number(channel_id)


@op_function()
def CrossReplicaSum(operand: Operands, replica_groups: Any = ()) -> XlaOp:
    """AllReduce with addition. `replica_groups` may also be a flat list: the group of each replica."""
    groups = as_replica_groups(replica_groups)
    if groups.groups and groups is not replica_groups and all(map(_is_number, replica_groups)):
        groups = as_replica_groups(_grouped([group for (group,) in groups.groups]))
    return AllReduce(operand, _sum, groups)


def _is_number(group: Any) -> bool:
    """Whether it is one integer: numpy's arrays have `__index__`, too."""
    return hasattr(group, "__index__") and not getattr(group, "ndim", 0)


def _sum(lhs: XlaOp, rhs: XlaOp) -> XlaOp:
    return lhs + rhs


def _grouped(group_of: Sequence[int]) -> list[list[int]]:
    """The members of each group, from the group of each replica."""
    members: dict[int, list[int]] = {}
    for replica, group in enumerate(group_of):
        members.setdefault(group, []).append(replica)
    groups = [members[group] for group in sorted(members)]
    if len({len(group) for group in groups}) > 1:
        raise ShapeError("CrossReplicaSum.B2", f"the groups of {list(group_of)} have different sizes: {groups}")
    return groups
