"""How long each kernel took: counters in the program, read around calls of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from xlapy.codegen.clock import ticks_per_second
from xlapy.codegen.target import host_target
from xlapy.hlo.graph import Instruction
from xlapy.report.explain import elided, table
from xlapy.report.units import number, time_text
from xlapy.support.errors import ArgumentError
from xlapy.support.wording import counted

PATIENCE_SECONDS = 0.5
"""Calls are repeated for this long, so that the shortest times are none that another process disturbed."""

MOST_CALLS = 1000


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One instruction: how often it ran in one call, and the seconds of all these runs, in the best of the calls.

    In the fastest call its first run began at `began`, and its last one ended at `ended`, in seconds from the begin of
    the first kernel."""

    computation: str
    name: str
    opcode: str
    runs: int
    seconds: float
    began: float
    ended: float

    def event(self, line: int) -> dict[str, object]:
        """The kernel in a trace, on a line of its own if it ran more than once."""
        return {
            "name": self.name,
            "cat": self.opcode,
            "ph": "X",
            "pid": 0,
            "tid": line if self.runs > 1 else 0,
            "ts": self.began * 1e6,
            "dur": (self.ended - self.began) * 1e6,
            "args": {"computation": self.computation, "runs": self.runs, "microseconds": self.seconds * 1e6},
        }


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """Times of one program: `seconds` of the fastest call, and of each kernel the shortest that was seen.

    Times are those of the calling thread, so a kernel that is split among threads counts until the last one is done.
    Kernels that run together begin and end together, and each has the part of the time that is its part of the bytes.
    Scalars that are computed in registers are in no kernel."""

    program: str
    calls: int
    seconds: float
    kernels: tuple[KernelTime, ...]

    def times(self) -> dict[tuple[str, str], KernelTime]:
        """Those of the kernels that have run, by computation and name."""
        return {(time.computation, time.name): time for time in self.kernels if time.runs}

    def to_perfetto(self) -> str:
        """The fastest call as a trace in JSON, for Perfetto and what else reads Chrome's traces.

        A kernel that runs more than once has a line of its own, from its first begin to its last end."""
        events = [kernel.event(line) for line, kernel in enumerate(self.kernels, 1) if kernel.runs]
        names = [{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": self.program}}]
        return json.dumps({"traceEvents": [*names, *events], "displayTimeUnit": "ns"}, indent=1)

    @property
    def in_kernels(self) -> float:
        """Seconds of all kernels together."""
        return sum(kernel.seconds for kernel in self.kernels)

    def __repr__(self) -> str:
        calls, kernels = counted(self.calls, "call"), counted(len(self.kernels), "kernel")
        return f"<Profile {self.program}, {calls}, the fastest {time_text(self.seconds)}, {kernels}>"

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
                f"{self.program}: {time_text(self.seconds)} in the fastest of {counted(self.calls, 'call')}, "
                f"{time_text(self.in_kernels)} of it in {counted(len(rows), 'kernel')}",
                *elided(table(rows, right=(2, 3, 4))),
            ]
        )


def measure(
    program: str, call: Callable[[], object], steps: Sequence[Instruction], counters: np.ndarray, calls: int | None
) -> Profile:
    """Calls a counting program, once to warm it up and then `calls` times or until time is up; `counters` is its table,
    with a row for each of `steps`."""
    if calls is not None and calls < 1:
        raise ArgumentError(f"{program}: a profile needs at least one call, not {calls}")
    call()
    began = time.perf_counter()
    fastest, chosen = np.inf, counters.copy()
    least = np.full(len(steps), np.iinfo(np.int64).max)
    done = 0
    while done < (calls or MOST_CALLS) and (calls or not done or time.perf_counter() - began < PATIENCE_SECONDS):
        counters[:] = 0
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        if seconds < fastest:
            fastest, chosen = seconds, counters.copy()
        np.minimum(least, counters[:, 1], out=least)
        done += 1
    return Profile(program, done, float(fastest), tuple(_times(steps, chosen, least)))


def _times(steps: Sequence[Instruction], counters: np.ndarray, least: np.ndarray) -> Iterator[KernelTime]:
    """From ticks to seconds; `counters` are those of the fastest call, `least` the fewest ticks of each step."""
    rate = ticks_per_second(host_target())
    runs, _, first, last = counters.T
    origin = min((int(tick) for tick, count in zip(first, runs, strict=True) if count), default=0)
    for row, step in enumerate(steps):
        began, ended = ((int(ticks[row]) - origin) / rate if runs[row] else 0.0 for ticks in (first, last))
        seconds = float(least[row]) / rate
        yield KernelTime(step.parent.name, step.name, step.opcode, int(runs[row]), seconds, began, ended)
