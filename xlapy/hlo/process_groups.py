"""How the ids of a collective's groups name processes of the grid.

A program runs as replicas x partitions. Which of four strategies a collective uses follows from its channel and, for
some ops, from `use_global_device_ids`. The order within a group is the order of the collective's operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from xlapy.hlo.shape import row_major_strides

MAX_PROCESSES = 1 << 20
"""How many process ids the short form of groups may describe."""

CROSS_REPLICA = "cross_replica"
CROSS_PARTITION = "cross_partition"
CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
FLATTENED_IDS = "flattened_ids"


class Place(NamedTuple):
    """A process in its grid."""

    replica: int
    partition: int
    replicas: int
    partitions: int


def group_mode(channel_id: int | None, use_global_device_ids: bool, channel_means_partitions: bool) -> str:
    """The strategy of a collective."""
    if use_global_device_ids:
        return FLATTENED_IDS
    if not channel_id:
        return CROSS_REPLICA
    return CROSS_PARTITION if channel_means_partitions else CROSS_REPLICA_AND_PARTITION


def group_of(mode: str, groups: Sequence[Sequence[int]], place: Place) -> tuple[int, ...] | None:
    """The process numbers (replica-major) of the group that a process is in; None if it is in none.

    No groups: everybody whom the strategy names is in one. -1 fills up short groups."""
    own, count = _id(mode, place)
    listed = groups or [range(count)]
    members = next(([member for member in group if member >= 0] for group in listed if own in group), None)
    if members is None:
        return None
    if mode == FLATTENED_IDS:
        return tuple(members)
    if mode == CROSS_PARTITION:
        return tuple(process_number(place.replica, member, place) for member in members)
    columns = range(place.partitions) if mode == CROSS_REPLICA_AND_PARTITION else (place.partition,)
    return tuple(process_number(member, column, place) for column in columns for member in members)


def id_count(mode: str, replicas: int, partitions: int) -> int:
    """How many ids groups of a strategy can name."""
    return _id(mode, Place(0, 0, replicas, partitions))[1]


def group_size(group: Sequence[int]) -> int:
    """How many processes a group names; -1 fills up short groups."""
    return sum(member >= 0 for member in group)


def meeting_sizes(mode: str, groups: Sequence[Sequence[int]], replicas: int, partitions: int) -> set[int]:
    """How many processes meet, in the largest and the smallest group and all between."""
    each = partitions if mode == CROSS_REPLICA_AND_PARTITION else 1
    return {each * group_size(group) for group in groups or [range(id_count(mode, replicas, partitions))]}


def _id(mode: str, place: Place) -> tuple[int, int]:
    """By which id groups of a strategy name a process, and how many ids there are."""
    if mode == FLATTENED_IDS:
        return process_number(place.replica, place.partition, place), place.replicas * place.partitions
    if mode == CROSS_PARTITION:
        return place.partition, place.partitions
    return place.replica, place.replicas


def process_number(replica: int, partition: int, grid: Place) -> int:
    return replica * grid.partitions + partition


def iota_groups(sizes: Sequence[int], dims: Sequence[int], permutation: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The groups `[number,size]<=[dims]T(permutation)`: 0, 1 ... as an array of `dims`, transposed, cut into groups.

    No permutation leaves the array as it is. Raises ValueError where the numbers do not fit each other."""
    count = math.prod(dims)
    if len(sizes) != 2 or min((*sizes, *dims)) < 1 or sizes[0] * sizes[1] != count or count > MAX_PROCESSES:
        raise ValueError(f"{list(sizes)} does not cut {count} processes into groups")
    if permutation and sorted(permutation) != list(range(len(dims))):
        raise ValueError(f"T{tuple(permutation)} is not a permutation of {list(dims)}")
    order = _transposed_iota(dims, permutation or range(len(dims)))
    return tuple(tuple(order[i * sizes[1] : (i + 1) * sizes[1]]) for i in range(sizes[0]))


class AxisPart(NamedTuple):
    """Neighbours along an axis of a mesh: `size` of them, where there are `outer` such parts, or groups of parts."""

    axis: int
    outer: int
    size: int


def mesh_groups(
    sizes: Sequence[int], parts: Sequence[AxisPart], ids: Sequence[int] = ()
) -> tuple[tuple[int, ...], ...]:
    """Those who differ only along `parts` of a mesh: processes `ids`, or 0, 1 ..., as an array of `sizes`. Within a
    group they are counted along the last part first.

    Raises ValueError where the numbers do not fit each other."""
    count = math.prod(sizes)
    if min(sizes, default=1) < 1 or count > MAX_PROCESSES:
        raise ValueError(f"{list(sizes)} are no sizes of a mesh")
    if ids and len(ids) != count:
        raise ValueError(f"{len(ids)} processes do not fill a mesh of {count}")
    ends = [(axis, *cut) for axis, size in enumerate(sizes) for cut in pairwise(_cuts(axis, size, parts))]
    dims = [inner // outer for _, outer, inner in ends]
    along = [
        dim
        for part in parts
        for dim, (axis, outer, _) in enumerate(ends)
        if axis == part.axis and part.outer <= outer < part.outer * part.size
    ]
    if len({*along}) < len(along):
        raise ValueError("two parts of an axis overlap")
    order = _transposed_iota(dims, [*(dim for dim in range(len(dims)) if dim not in along), *along])
    members = [ids[number] for number in order] if ids else order
    size = math.prod(dims[dim] for dim in along)
    return tuple(tuple(members[first : first + size]) for first in range(0, count, size))


def _cuts(axis: int, size: int, parts: Sequence[AxisPart]) -> list[int]:
    """Into how many pieces an axis is cut, ever finer: where parts begin and end, whose sizes divide each other."""
    own = [part for part in parts if part.axis == axis]
    cuts = sorted({1, size, *(end for part in own for end in (part.outer, part.outer * part.size))})
    if cuts[0] != 1 or cuts[-1] != size or any(after % before for before, after in pairwise(cuts)):
        raise ValueError(f"an axis of {size} has no parts between {cuts}")
    return cuts


def transposed_ids(dims: Sequence[int], permutation: Sequence[int]) -> list[int]:
    """0, 1 ... as an array of `dims`, transposed. Raises ValueError where the numbers do not fit each other."""
    (ids,) = iota_groups((1, math.prod(dims)), dims, permutation)
    return [*ids]


def _transposed_iota(dims: Sequence[int], permutation: Sequence[int]) -> list[int]:
    strides = row_major_strides(dims)
    order = [0]
    for dim in permutation:
        order = [base + step * strides[dim] for base in order for step in range(dims[dim])]
    return order
