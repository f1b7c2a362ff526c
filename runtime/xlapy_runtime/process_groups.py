"""Which processes take part in a collective together.

A program runs as a grid of replicas x partitions. A process is numbered replica-major: `replica * num_partitions +
partition`. Each collective divides the grid into groups by one of four strategies; the order within a group is the
order of the collective's operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xlapy_runtime.errors import InternalError

Group = tuple[int, ...]
Ids = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Grid:
    """The processes of one run."""

    num_replicas: int = 1
    num_partitions: int = 1

    @property
    def size(self) -> int:
        return self.num_replicas * self.num_partitions

    def process(self, replica: int, partition: int) -> int:
        return replica * self.num_partitions + partition

    def coordinates(self, process: int) -> tuple[int, int]:
        """(replica, partition) of a process."""
        return divmod(process, self.num_partitions)


def cross_replica(grid: Grid, replica_groups: Ids) -> tuple[Group, ...]:
    """Each group of replicas, once within every partition."""
    return tuple(
        tuple(grid.process(replica, partition) for replica in group)
        for group in replica_groups or [range(grid.num_replicas)]
        for partition in range(grid.num_partitions)
    )


def cross_partition(grid: Grid, partition_groups: Ids) -> tuple[Group, ...]:
    """Each group of partitions, once within every replica."""
    return tuple(
        tuple(grid.process(replica, partition) for partition in group)
        for group in partition_groups or [range(grid.num_partitions)]
        for replica in range(grid.num_replicas)
    )


def cross_replica_and_partition(grid: Grid, replica_groups: Ids) -> tuple[Group, ...]:
    """Each group of replicas with all their partitions; the replicas of one partition are neighbours."""
    return tuple(
        tuple(grid.process(replica, partition) for partition in range(grid.num_partitions) for replica in group)
        for group in replica_groups or [range(grid.num_replicas)]
    )


def flattened_ids(grid: Grid, groups: Ids) -> tuple[Group, ...]:
    """Groups of process numbers, as they are."""
    return tuple(tuple(group) for group in groups or [range(grid.size)])


STRATEGIES: Mapping[str, Callable[[Grid, Ids], tuple[Group, ...]]] = {
    "cross_replica": cross_replica,
    "cross_partition": cross_partition,
    "cross_replica_and_partition": cross_replica_and_partition,
    "flattened_ids": flattened_ids,
}


def process_groups(mode: str, grid: Grid, groups: Ids) -> tuple[Group, ...]:
    """The groups of processes that `groups` denotes under strategy `mode`. No groups at all mean one of everybody.

    Negative ids are padding, which the dense tensor form of unequal groups needs; a group of nothing else is none.
    """
    if mode not in STRATEGIES:
        raise InternalError(f"unknown process group strategy {mode!r}, know {', '.join(STRATEGIES)}")
    found = STRATEGIES[mode](grid, [[number for number in group if number >= 0] for group in groups])
    return tuple(group for group in found if group)


def process_pairs(mode: str, grid: Grid, pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The source process of each target process that `source_target_pairs` denotes."""
    listed = list(pairs)
    return {target: source for source, target in process_groups(mode, grid, listed)} if listed else {}


def connected(sources: Mapping[int, int], process: int) -> Group:
    """The processes that exchange data, directly or through others, with `process`, in ascending order."""
    neighbours: dict[int, set[int]] = {}
    for target, source in sources.items():
        neighbours.setdefault(source, set()).add(target)
        neighbours.setdefault(target, set()).add(source)
    found = {process}
    frontier = [process]
    while frontier:
        fresh = neighbours.get(frontier.pop(), set()) - found
        found |= fresh
        frontier.extend(fresh)
    return tuple(sorted(found))
