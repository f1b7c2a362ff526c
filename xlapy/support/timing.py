"""Timing: how long named steps take, summed by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Timings:
    """Seconds and number of runs by name, in the order in which the names first ran."""

    seconds: dict[str, float] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Adds the time that the block takes to `name`, also when it raises."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - begin)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.runs[name] = self.runs.get(name, 0) + 1

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def table(self) -> str:
        """One line per name, the slowest first, with its share of the whole."""
        total = self.total or 1.0
        lines = [
            f"{seconds * 1e3:10.2f} ms  {seconds / total:6.1%}  {self.runs[name]:5d} x  {name}"
            for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])
        ]
        return "\n".join([*lines, f"{self.total * 1e3:10.2f} ms  total"])
