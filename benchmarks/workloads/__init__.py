"""All workloads. One file per family; each lists its own in `WORKLOADS`.

These modules import JAX, which only the measuring process (to know what there is) and XLA's worker (to lower it) need.
"""

from __future__ import annotations

from functools import cache

from benchmarks.workload import Workload
from benchmarks.workloads import (
    compilation,
    contractions,
    convolutions,
    dispatch,
    elementwise,
    indexing,
    loops,
    models,
    movement,
    normalization,
    ordering,
    reductions,
    references,
    transforms,
)

FAMILIES = (
    elementwise,
    reductions,
    normalization,
    contractions,
    convolutions,
    movement,
    indexing,
    ordering,
    transforms,
    loops,
    models,
    dispatch,
    compilation,
)


def all_workloads() -> list[Workload]:
    return [workload for family in FAMILIES for workload in family.WORKLOADS]


def find(family: str, name: str) -> Workload:
    return _by_name()[family, name]


@cache
def _by_name() -> dict[tuple[str, str], Workload]:
    found: dict[tuple[str, str], Workload] = {}
    for workload in [*all_workloads(), *references.WORKLOADS]:
        if found.setdefault((workload.family, workload.name), workload) is not workload:
            raise ValueError(f"two workloads are called {workload.family}/{workload.name}")
    return found
