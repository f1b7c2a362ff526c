"""How work is dealt out: every unit once, and tasks of about the same size."""

from __future__ import annotations

from itertools import pairwise

import pytest

from xlapy.codegen.kernels.tasks import (
    GRAIN_MULTIPLE,
    JOINT_TASK_BYTES,
    LEAST_LONG_TASKS,
    LONG_TASK_BYTES,
    PARALLEL_BYTES,
    TASK_BYTES,
    Work,
    joint_tasks,
    units_per_task,
)

WORKS = [
    Work(units=100_000, bytes_per_unit=28, grain=4672),  # dealt out alone, too
    Work(units=16_384, bytes_per_unit=28, grain=16_384),
    Work(units=16_385, bytes_per_unit=28, grain=16_385),
    Work(units=70, bytes_per_unit=4000, grain=70),
    Work(units=3, bytes_per_unit=100_000, grain=3),
    Work(units=1, bytes_per_unit=5, grain=1),
    *(Work(units=n, bytes_per_unit=12, grain=n) for n in range(1000, 1040)),
    Work(units=50, bytes_per_unit=0, grain=50),
    Work(units=53_760, bytes_per_unit=3, grain=53_760, least=128),
    Work(units=1000, bytes_per_unit=500, grain=1000, least=3),
]


def test_every_unit_is_computed_once_and_in_order() -> None:
    pieces = [piece for task in joint_tasks(WORKS) for piece in task]
    for number, work in enumerate(WORKS):
        own = [piece for piece in pieces if piece.kernel == number]
        assert own[0].begin == 0 and own[-1].end == work.units
        assert all(one.end == other.begin for one, other in pairwise(own))


def test_tasks_are_of_about_the_same_size() -> None:
    tasks = joint_tasks(WORKS)
    sizes = [sum((p.end - p.begin) * WORKS[p.kernel].bytes_per_unit for p in task) for task in tasks]
    alone = [size for task, size in zip(tasks, sizes, strict=True) if len(task) == 1]
    assert all(size <= JOINT_TASK_BYTES for size in sizes if size not in alone)
    assert sum(sizes) == sum(work.bytes for work in WORKS)
    assert len(tasks) <= 2 * sum(sizes) // JOINT_TASK_BYTES


@pytest.mark.parametrize("work", WORKS)
def test_pieces_are_whole_vectors(work: Work) -> None:
    """Kernels that fill vectors in the tasks in which they are dealt out alone fill them in pieces."""
    if work.grain < work.units:
        assert work.piece == work.grain
    else:
        assert work.piece == work.units or not (work.piece % GRAIN_MULTIPLE or work.piece % work.least)
        assert work.piece <= max(GRAIN_MULTIPLE, 2 * TASK_BYTES // max(work.bytes_per_unit, 1)) or work.units == 50


@pytest.mark.parametrize("least", [1, 8, 32])
def test_a_task_has_a_vector_at_least(least: int) -> None:
    for units in (1, 7, 11, 33, 100, 10_000):
        for size in (1, 500, TASK_BYTES // 40, TASK_BYTES, PARALLEL_BYTES):
            assert units_per_task(units, size, least) >= min(least, units)


def test_long_tasks_are_long_where_there_are_many() -> None:
    for units in (1000, 10_000, 100_000):
        total = units * 4096
        tasks = total // TASK_BYTES, -(-units // units_per_task(units, 4096, is_long=True))
        assert tasks[1] >= min(tasks[0], LEAST_LONG_TASKS)
        assert -(-units // tasks[1]) * 4096 <= LONG_TASK_BYTES
    assert units_per_task(100_000, 4096, is_long=True) * 4096 == LONG_TASK_BYTES
