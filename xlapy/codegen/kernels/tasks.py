"""How the units of a kernel are dealt out: in tasks of equal size, whatever the number of threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TASK_BYTES = 128 * 1024  # traffic of one task of the pool: some microseconds, well above the cost of handing it out
PARALLEL_BYTES = 4 * TASK_BYTES
JOINT_TASK_BYTES = 2 * TASK_BYTES  # of a task of several kernels, each of which begins anew
LONG_TASK_BYTES = 4 * TASK_BYTES  # of a task whose first unit takes longer than the others
LEAST_LONG_TASKS = 64  # all of them long: fewer would keep many cores waiting for the last one
MOST_TASKS_WITH_SCRATCH = 16  # each has scratch memory of its own
NEAR_BYTES = 32 * TASK_BYTES  # that the near caches of a few cores may hold from one job to the next
GRAIN_MULTIPLE = 64  # units: tasks of elements begin where vectors do


def units_per_task(units: int, bytes_per_unit: int, least: int = 1, *, is_long: bool = False) -> int:
    """All units if the kernel is too small to split. Never less than `least`, and multiples of it where they are few:
    the last vector of a task, which ends where the task does, must not begin in front of the array. `is_long`: tasks
    are longer where there are many."""
    total = units * bytes_per_unit
    if total < PARALLEL_BYTES or units < 2:
        return max(units, 1)
    task_bytes = max(TASK_BYTES, min(LONG_TASK_BYTES, total // LEAST_LONG_TASKS)) if is_long else TASK_BYTES
    grain = max(least, task_bytes // max(bytes_per_unit, 1))
    return grain // GRAIN_MULTIPLE * GRAIN_MULTIPLE or grain // least * least


@dataclass(frozen=True, slots=True)
class Piece:
    """Some units of one of several kernels."""

    kernel: int
    begin: int
    end: int


Tasks = Sequence[Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel has to do, the `grain` in which it is dealt out alone, and the `least` units of a task."""

    units: int
    bytes_per_unit: int
    grain: int
    least: int = 1

    @property
    def bytes(self) -> int:
        return self.units * self.bytes_per_unit

    @property
    def piece(self) -> int:
        """The units of one piece. A kernel that is never dealt out alone relies on whole vectors, of however many
        elements it has them."""
        if self.grain < self.units:
            return self.grain
        units = max(1, TASK_BYTES // max(self.bytes_per_unit, 1))
        multiple = math.lcm(GRAIN_MULTIPLE, self.least)
        return min(self.units, -(-units // multiple) * multiple)


def joint_tasks(works: Sequence[Work]) -> Tasks:
    """The work of several kernels in tasks of about equal size: pieces of large kernels, or several small kernels."""
    tasks: list[list[Piece]] = [[]]
    filled = 0
    for kernel, work in enumerate(works):
        for begin in range(0, work.units, work.piece):
            piece = Piece(kernel, begin, min(begin + work.piece, work.units))
            size = (piece.end - begin) * work.bytes_per_unit
            if tasks[-1] and filled + size > JOINT_TASK_BYTES:
                tasks.append([])
                filled = 0
            tasks[-1].append(piece)
            filled += size
    return tasks
