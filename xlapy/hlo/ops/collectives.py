"""What the processes of a run do together: reductions, exchanges and copies among groups of them."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import ReplicaGroups, SourceTargetPairs
from xlapy.hlo.ops.reductions import check_reduction
from xlapy.hlo.ops.spec import ResultShape, Trait, Variadic, op
from xlapy.hlo.process_groups import group_size
from xlapy.hlo.shape import UNBOUNDED, Shape, Signature, shape_of_results
from xlapy.support.errors import ShapeError

COLLECTIVE = {Trait.EFFECT, Trait.RUNTIME, Trait.COLLECTIVE, Trait.ASYNC}
ALL_PROCESSES = ReplicaGroups()


def _require_arrays(operands: Sequence[Shape], verb: str) -> None:
    if not operands:
        raise ShapeError("some-operands", f"nothing to {verb}")
    for shape in operands:
        if not shape.is_array:
            raise ShapeError("array-operands", f"{shape} is not an array")


def _check_members(
    replica_groups: ReplicaGroups, channel_id: int | None, use_global_device_ids: bool = False, *, equal: bool = True
) -> None:
    """Raises unless every process is in one group at most (-1 fills up short groups), and the groups have one size if
    they must be `equal`."""
    ids = [process for group in replica_groups.groups for process in group if process != -1]
    if len(set(ids)) != len(ids) or any(process < 0 for process in ids):
        raise ShapeError("unique-ids", f"replica groups {replica_groups.groups} list a process twice or a negative one")
    if use_global_device_ids and not channel_id:
        raise ShapeError("global-ids", "use_global_device_ids needs a channel_id")
    if equal and len({group_size(group) for group in replica_groups.groups}) > 1:
        raise ShapeError("equal-groups", f"the groups {replica_groups.groups} have different sizes")


def _known_group_size(replica_groups: ReplicaGroups, channel_id: int | None, use_global_device_ids: bool) -> int | None:
    """How many processes a group has, if the groups say so; replicas with all their partitions are more than listed."""
    listed = group_size(replica_groups.groups[0]) if replica_groups.groups else None
    return listed if use_global_device_ids or not channel_id else None


def _is_multiple(whole: Shape, part: Shape, dimension: int, size: int) -> bool:
    """Whether `whole` is `size` parts along a dimension, as far as its sizes are known."""
    sizes = whole.dims[dimension], part.dims[dimension]
    return UNBOUNDED in sizes or sizes[0] == sizes[1] * size


def _results(result: Shape, count: int) -> tuple[Shape, ...]:
    """The stated results, one for each of `count` operands."""
    results = (result,) if count == 1 else result.parts if result.is_tuple else ()
    if len(results) != count or not all(shape.is_array for shape in results):
        raise ShapeError("result", f"{result} is not the shape of {count} arrays")
    return results


def _pair_of_start(operands: Sequence[Shape], result: Shape) -> Shape:
    """(operands, results), each a tuple only if there are several operands."""
    return Shape.tuple([shape_of_results(operands), result])


def _tuples_of_start(operands: Sequence[Shape], result: Shape) -> Shape:
    """((operands), result)"""
    return Shape.tuple([Shape.tuple([*operands]), result])


def _started_result(started: Shape) -> Shape:
    if not started.is_tuple or len(started.parts) < 2:
        raise ShapeError("started", f"{started} is not a pair of operands and results")
    return started.parts[1]


@op(
    "all-reduce",
    traits=COLLECTIVE,
    hlo_text={"computation": "to_apply"},
)
def all_reduce(
    operands: Variadic,
    *,
    computation: Signature,
    replica_groups: ReplicaGroups = ALL_PROCESSES,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    constrain_layout: bool = False,
) -> Shape:
    """Reduces each operand over the processes of a group, element by element.

    some-operands [B3]: there is at least one operand.
    array-operands: the operands are arrays.
    unique-ids [B1 C1]: no process is in two groups.
    all-processes [C2]: groups name every process, or are left out.
    known-processes [C3]: groups name processes of the grid, as is known when a program is compiled.
    global-ids [C4]: global device ids need a channel.
    computation-type [C5]: the computation has type (T, T) -> T for each element type T.
    """
    _require_arrays(operands, "reduce")
    for shape in operands:
        check_reduction((shape.with_dims(()),), computation)
    _check_members(replica_groups, channel_id, use_global_device_ids, equal=False)
    return shape_of_results([shape.without_layout() for shape in operands])


def _check_gathered(operands: Sequence[Shape], result: Shape, dimension: int, size: int) -> None:
    """Raises unless each result is what `size` processes have together."""
    for operand, gathered in zip(operands, _results(result, len(operands)), strict=True):
        if not _is_multiple(gathered, operand, dimension, size):
            wanted = f"{operand} of {size} processes, joined along dimension {dimension}"
            raise ShapeError("result", f"{gathered} is not {wanted}")


@op(
    "all-gather",
    traits=COLLECTIVE,
    hlo_text={"dimension": "dimensions={}"},
    async_shape=_pair_of_start,
    done_shape=_started_result,
    check_group=_check_gathered,
)
def all_gather(
    operands: Variadic,
    *,
    dimension: int,
    replica_groups: ReplicaGroups = ALL_PROCESSES,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    constrain_layout: bool = False,
    result: ResultShape,
) -> Shape:
    """Concatenates the operands of all processes of a group along `dimension`, in the order of the group.

    The result says how many processes there are: its dimension is so many times larger.

    some-operands: there is at least one operand.
    array-operands: the operands are arrays.
    dimension-in-range [B1 C1]: `dimension` is a dimension of each operand.
    unique-ids [B2 C2]: no process is in two groups.
    all-processes [C3]: groups name every process, or are left out.
    known-processes [C4]: groups name processes of the grid, as is known when a program is compiled.
    equal-groups [B3]: the groups have the same size.
    global-ids [C5]: global device ids need a channel.
    result [B3 C6]: each result is its operand, with `dimension` multiplied by the size of a group.
    """
    _require_arrays(operands, "gather")
    _check_members(replica_groups, channel_id, use_global_device_ids)
    size = _known_group_size(replica_groups, channel_id, use_global_device_ids)
    factors = set()
    for operand, gathered in zip(operands, _results(result, len(operands)), strict=True):
        if not 0 <= dimension < operand.rank:
            raise ShapeError("dimension-in-range", f"dimension {dimension} is outside {operand}")
        own, all_ = operand.dims[dimension], gathered.dims[dimension] if gathered.rank == operand.rank else -1
        factors.add(all_ // own if own else size or 1)
        if not gathered.matches(operand.with_dim(dimension, all_)) or (own and all_ % own) or all_ < own:
            raise ShapeError("result", f"{gathered} is not {operand}, repeated along dimension {dimension}")
    if len(factors) > 1:
        raise ShapeError("result", f"the results gather {sorted(factors)} operands, but groups have one size")
    if size is not None:
        _check_gathered(operands, result, dimension, size)
    return result.without_layout()


def _check_scattered(operands: Sequence[Shape], result: Shape, dimension: int, size: int) -> None:
    """Raises unless each result is one of `size` equal parts of its operand."""
    for operand, scattered in zip(operands, _results(result, len(operands)), strict=True):
        whole = operand.dims[dimension]
        if whole != UNBOUNDED and (not size or whole % size):
            raise ShapeError("parts", f"{operand} is not cut into {size} equal parts along dimension {dimension}")
        if not _is_multiple(operand, scattered, dimension, size):
            raise ShapeError("result", f"{scattered} is not one of {size} parts of {operand}")


@op(
    "reduce-scatter",
    traits=COLLECTIVE,
    hlo_text={"computation": "to_apply", "dimension": "dimensions={}"},
    async_shape=_tuples_of_start,
    done_shape=_started_result,
    check_group=_check_scattered,
)
def reduce_scatter(
    operands: Variadic,
    *,
    computation: Signature,
    dimension: int,
    replica_groups: ReplicaGroups = ALL_PROCESSES,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    constrain_layout: bool = False,
    result: ResultShape,
) -> Shape:
    """Reduces each operand over the processes of a group; the k-th process of the group gets the k-th part of it.

    The parts are cut along `dimension`. The result says into how many.

    some-operands: there is at least one operand.
    array-operands: the operands are arrays.
    dimension-in-range [C2]: `dimension` is a dimension of each operand.
    unique-ids [B1 C3]: no process is in two groups.
    all-processes [C4]: groups name every process, or are left out.
    known-processes [C5]: groups name processes of the grid, as is known when a program is compiled.
    equal-groups [B2]: the groups have the same size.
    global-ids [C6]: global device ids need a channel.
    computation-type [C7]: the computation has type (T, T) -> T for each element type T.
    parts [B4 C1]: the size of a group, or that of the result, divides `dimension`.
    result [B3 C8]: each result is its operand, with `dimension` divided by the size of a group.
    result-type [C9]: each result has the element type of its operand.
    """
    _require_arrays(operands, "reduce")
    _check_members(replica_groups, channel_id, use_global_device_ids)
    size = _known_group_size(replica_groups, channel_id, use_global_device_ids)
    for operand, scattered in zip(operands, _results(result, len(operands)), strict=True):
        check_reduction((operand.with_dims(()),), computation)
        if not 0 <= dimension < operand.rank:
            raise ShapeError("dimension-in-range", f"dimension {dimension} is outside {operand}")
        if scattered.element_type is not operand.element_type:
            raise ShapeError("result-type", f"{scattered} and {operand} have different element types")
        whole, own = operand.dims[dimension], scattered.dims[dimension] if scattered.rank == operand.rank else -1
        if own > 0 and whole % own:
            raise ShapeError("parts", f"{operand} is not cut into equal parts along dimension {dimension}")
        if not scattered.matches(operand.with_dim(dimension, own)) or own > whole:
            raise ShapeError("result", f"{scattered} is not a part of {operand} along dimension {dimension}")
    if size is not None:
        _check_scattered(operands, result, dimension, size)
    return result.without_layout()


def _check_exchanged(operands: Sequence[Shape], result: Shape, dimension: int | None, size: int) -> None:
    """Raises unless each operand has a part for each of `size` processes, or there is an operand for each."""
    if dimension is None:
        if len(operands) != size:
            raise ShapeError("split-count", f"groups of {size} processes exchange {size} operands, not {len(operands)}")
    elif operands[0].dims[dimension] != UNBOUNDED and (not size or operands[0].dims[dimension] % size):
        raise ShapeError("split-count", f"dimension {dimension} of {operands[0]} cannot be cut into {size} parts")


@op(
    "all-to-all",
    traits=COLLECTIVE,
    hlo_text={"dimension": "dimensions={}"},
    async_shape=_tuples_of_start,
    done_shape=_started_result,
    channel_means_partitions=True,
    check_group=_check_exchanged,
)
def all_to_all(
    operands: Variadic,
    *,
    dimension: int | None = None,
    replica_groups: ReplicaGroups = ALL_PROCESSES,
    channel_id: int | None = None,
    constrain_layout: bool = False,
) -> Shape:
    """The k-th process of a group gets the k-th part of everybody's operand, in the order of the group.

    With `dimension`, there is one operand: it is cut along `dimension`, and the parts are concatenated along it again.
    Without, there is one operand for each process of the group, and the result is the tuple of what was received.

    some-operands: there is at least one operand.
    array-operands [B2]: the operands are arrays.
    one-operand: with a dimension there is one operand.
    same-shape: without a dimension, the operands have the same shape.
    dimension-in-range [C1]: `dimension` is a dimension of the operand.
    unique-ids [C5]: no process is in two groups.
    all-processes [C6]: groups name every process, or are left out.
    known-processes [C7]: groups name processes of the grid, as is known when a program is compiled.
    equal-groups: the groups have the same size.
    split-count [B1 B3 C2 C8]: a group has as many processes as there are parts, or operands.
    """
    _require_arrays(operands, "exchange")
    _check_members(replica_groups, channel_id)
    if dimension is None:
        if any(not operand.matches(operands[0]) for operand in operands):
            raise ShapeError("same-shape", f"the operands differ in shape: {', '.join(map(str, operands))}")
        result = Shape.tuple([operand.without_layout() for operand in operands])
    elif len(operands) != 1:
        raise ShapeError("one-operand", f"{len(operands)} operands cannot all be cut along dimension {dimension}")
    elif not 0 <= dimension < operands[0].rank:
        raise ShapeError("dimension-in-range", f"dimension {dimension} is outside {operands[0]}")
    else:
        result = operands[0].without_layout()
    if replica_groups.groups:
        _check_exchanged(operands, result, dimension, group_size(replica_groups.groups[0]))
    return result


@op(
    "collective-broadcast",
    traits=COLLECTIVE,
    async_shape=_tuples_of_start,
    done_shape=_started_result,
    channel_means_partitions=True,
)
def collective_broadcast(
    operands: Variadic, *, replica_groups: ReplicaGroups = ALL_PROCESSES, channel_id: int | None = None
) -> Shape:
    """Everybody in a group gets the operands of its first process; who is in no group gets zeros.

    some-operands: there is at least one operand.
    array-operands: the operands are arrays.
    unique-ids [C1]: no process is in two groups.
    known-processes [C2]: groups name processes of the grid, as is known when a program is compiled.
    """
    _require_arrays(operands, "broadcast")
    _check_members(replica_groups, channel_id, equal=False)
    return shape_of_results([shape.without_layout() for shape in operands])


@op(
    "collective-permute",
    traits=COLLECTIVE,
    async_shape=_pair_of_start,
    done_shape=_started_result,
    channel_means_partitions=True,
)
def collective_permute(
    operands: Variadic, *, source_target_pairs: SourceTargetPairs, channel_id: int | None = None
) -> Shape:
    """Each target gets the operands of its source; who is no target gets zeros.

    some-operands: there is at least one operand.
    array-operands: the operands are arrays.
    unique-sources [B1 C2]: no process is the source of two pairs.
    unique-targets [B1 C3]: no process is the target of two pairs.
    positive-ids [C4]: processes have numbers from 0 on.
    known-processes [C4]: pairs name processes of the grid, as is known when a program is compiled.
    """
    _require_arrays(operands, "send")
    pairs = source_target_pairs.pairs
    for slug, position in (("unique-sources", 0), ("unique-targets", 1)):
        ends = [pair[position] for pair in pairs]
        if len(set(ends)) != len(ends):
            raise ShapeError(slug, f"the pairs {pairs} name a process twice on the same side")
    if any(process < 0 for pair in pairs for process in pair):
        raise ShapeError("positive-ids", f"the pairs {pairs} name a negative process")
    return shape_of_results([shape.without_layout() for shape in operands])
