"""How the units of a kernel are dealt out: in tasks of equal size, whatever the number of threads."""

from __future__ import annotations

TASK_BYTES = 128 * 1024  # traffic of one task of the pool: some microseconds, well above the cost of handing it out
PARALLEL_BYTES = 4 * TASK_BYTES
MOST_TASKS_WITH_SCRATCH = 16  # each has scratch memory of its own
GRAIN_MULTIPLE = 64  # units: tasks of elements begin where vectors do


def units_per_task(units: int, bytes_per_unit: int) -> int:
    """All units if the kernel is too small to split."""
    if units * bytes_per_unit < PARALLEL_BYTES or units < 2:
        return max(units, 1)
    grain = max(1, TASK_BYTES // max(bytes_per_unit, 1))
    return grain // GRAIN_MULTIPLE * GRAIN_MULTIPLE or grain
