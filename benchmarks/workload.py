"""What a workload is: a function, its inputs at each size, and what it costs at the least."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = list[np.ndarray]
Maker = Callable[[np.random.Generator, Any], Arrays]
"""Makes the inputs of one size; the generator is seeded with the case's name, so inputs never change."""


@dataclass(frozen=True)
class Workload:
    """A function over flat arrays, at one or more sizes.

    `sizes` maps a label to whatever `inputs` takes. `operations` counts multiplications and additions of one call, for
    workloads that arithmetic can limit; `moves_memory` is False for those whose bytes in and out are no measure.
    `equivalent` makes the same function for an array module such as numpy. `tolerance` multiplies the tolerance of the
    element type; `may_differ` is the share of the results that may lie outside it, for programs in which a rounding can
    decide a branch. `compare_memory` says that temporaries matter: what the engines need of memory is compared too."""

    family: str
    name: str
    function: Callable[..., Any]
    inputs: Maker
    sizes: Mapping[str, Any]
    operations: Callable[[Any], float] | None = None
    moves_memory: bool = True
    equivalent: Callable[[Any], Callable[..., Any]] | None = None
    tolerance: float = 1.0
    may_differ: float = 0.0
    compare_memory: bool = False


@dataclass(frozen=True)
class Case:
    """A workload at one size."""

    workload: Workload
    size: str
    seed: int = field(default=20240229, repr=False)

    @property
    def name(self) -> str:
        return f"{self.workload.family}/{self.workload.name}/{self.size}"

    @property
    def parameters(self) -> Any:
        return self.workload.sizes[self.size]

    def inputs(self) -> Arrays:
        generator = np.random.default_rng([self.seed, *self.name.encode()])
        return [np.array(array, order="C") for array in self.workload.inputs(generator, self.parameters)]

    def operations(self) -> float:
        return self.workload.operations(self.parameters) if self.workload.operations else 0.0


def cases(
    workloads: Iterable[Workload], *, only: str = "", families: Sequence[str] = (), largest: bool = True
) -> list[Case]:
    """The cases whose name matches `only` and whose family is listed (all where nothing is said).

    Without `largest`, the last of three or more sizes is left out."""
    selected = []
    for workload in workloads:
        labels = list(workload.sizes)
        if not largest and len(labels) > 2:
            labels.pop()
        selected += [Case(workload, label) for label in labels]
    return [
        case for case in selected if re.search(only, case.name) and (not families or case.workload.family in families)
    ]
