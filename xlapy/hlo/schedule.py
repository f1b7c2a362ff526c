"""The order in which the instructions of each computation run, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xlapy.hlo.graph import Computation, Instruction


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """For each computation that runs as a sequence: all its instructions, each behind what it depends on."""

    order: Mapping[Computation, tuple[Instruction, ...]]

    def __getitem__(self, computation: Computation) -> tuple[Instruction, ...]:
        return self.order[computation]
