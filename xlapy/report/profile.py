"""How long each kernel took: counters in the program, read around calls of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from xlapy.codegen.clock import ticks_per_second
from xlapy.codegen.target import host_target
from xlapy.hlo.graph import Instruction
from xlapy.report.explain import elided, table
from xlapy.report.units import number, plural, time_text

PATIENCE_SECONDS = 0.5
"""Calls are repeated for this long, so that the shortest times are none that another process disturbed."""

MOST_CALLS = 1000


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One instruction: how often it ran in one call, and the seconds of all these runs, in the best of the calls."""

    computation: str
    name: str
    opcode: str
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of one program: `seconds` of the fastest call, and of each kernel the shortest that was seen.

    Times are those of the calling thread, so a kernel that is split among threads counts until the last one is done.
    Scalars that are computed in registers are in no kernel."""

    program: str
    calls: int
    seconds: float
    kernels: tuple[KernelTime, ...]

    def times(self) -> dict[tuple[str, str], KernelTime]:
        """Those of the kernels that have run, by computation and name."""
        return {(time.computation, time.name): time for time in self.kernels if time.runs}

    @property
    def in_kernels(self) -> float:
        return sum(kernel.seconds for kernel in self.kernels)

    def __str__(self) -> str:
        rows = [
            (
                kernel.name,
                kernel.opcode,
                f"{number(kernel.runs)}x",
                time_text(kernel.seconds),
                f"{kernel.seconds / max(self.seconds, 1e-12):.1%}",
            )
            for kernel in sorted(self.kernels, key=lambda kernel: -kernel.seconds)
        ]
        return "\n".join(
            [
                f"{self.program}: {time_text(self.seconds)} in the fastest of {plural(self.calls, 'call')}, "
                f"{time_text(self.in_kernels)} of it in {plural(len(rows), 'kernel')}",
                *elided(table(rows, right=(2, 3, 4))),
            ]
        )


def measure(
    program: str, call: Callable[[], object], steps: Sequence[Instruction], counters: np.ndarray, calls: int | None
) -> Profile:
    """Calls a counting program, once to warm it up and then `calls` times or until time is up; `counters` is its table,
    with a row for each of `steps`."""
    call()
    began = time.perf_counter()
    fastest = np.inf
    least = np.full(len(steps), np.iinfo(np.int64).max)
    done = 0
    while done < (calls or MOST_CALLS) and (calls or not done or time.perf_counter() - began < PATIENCE_SECONDS):
        counters[:] = 0
        start = time.perf_counter()
        call()
        fastest = min(fastest, time.perf_counter() - start)
        np.minimum(least, counters[:, 0], out=least)
        done += 1
    rate = _rate()
    times = [
        KernelTime(step.parent.name, step.name, step.opcode, int(runs), float(ticks) / rate)
        for step, ticks, runs in zip(steps, least, counters[:, 1], strict=True)
    ]
    return Profile(program, done, float(fastest), tuple(times))


@cache
def _rate() -> float:
    return ticks_per_second(host_target())
