"""How the ids of a collective's groups name processes of the grid.

A program runs as replicas x partitions. Which of four strategies a collective uses follows from its channel and, for
some ops, from `use_global_device_ids`. The order within a group is the order of the collective's operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


def _id(mode: str, place: Place) -> tuple[int, int]:
    """By which id groups of a strategy name a process, and how many ids there are."""
    if mode == FLATTENED_IDS:
        return process_number(place.replica, place.partition, place), place.replicas * place.partitions
    if mode == CROSS_PARTITION:
        return place.partition, place.partitions
    return place.replica, place.replicas


def process_number(replica: int, partition: int, grid: Place) -> int:
    return replica * grid.partitions + partition
