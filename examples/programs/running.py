"""One program of the catalogue, compiled and run: how far it is from the recorded results, and how fast."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import xlapy
from examples.programs.catalogue import Program
from xlapy.compiled import CompileStats

SLACK = 8
"""Roundings are not all one unit: sums of many terms lose more, and functions up to two units."""

TIMED_SECONDS = 0.3
CALLS_PER_ROUND = 5
MILLISECONDS, MICROSECONDS = 1e3, 1e6


@dataclass(frozen=True, slots=True)
class Agreement:
    """One result beside the recorded one."""

    name: str
    shape: str
    error: float  # relative to the largest number of the result; the share of different elements for integers
    allowed: float

    @property
    def is_good(self) -> bool:
        return self.error <= self.allowed


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one program."""

    agreements: list[Agreement]
    stats: CompileStats
    compile_ms: float
    call_us: float

    @property
    def is_good(self) -> bool:
        return all(agreement.is_good for agreement in self.agreements)


def run(program: Program, *, timed_seconds: float = TIMED_SECONDS) -> Report:
    leaves = program.leaves
    begin = time.perf_counter()
    executable = xlapy.compile(program.text)
    compile_ms = (time.perf_counter() - begin) * MILLISECONDS
    results = executable(*leaves)
    agreements = compare(program, results if isinstance(results, tuple) else (results,))
    return Report(
        agreements,
        executable.compile_stats(),
        compile_ms,
        seconds_per_call(executable, leaves, timed_seconds) * MICROSECONDS,
    )


def compare(program: Program, results: tuple[np.ndarray, ...]) -> list[Agreement]:
    recorded = program.recorded
    return [_agreement(program, name, got, want) for (name, want), got in zip(recorded.items(), results, strict=True)]


def _agreement(program: Program, name: str, got: np.ndarray, want: np.ndarray) -> Agreement:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), f"{name}: {got.dtype}{got.shape}"
    shape = f"{want.dtype}[{','.join(map(str, want.shape))}]"
    if want.dtype.kind != "f":
        return Agreement(name, shape, float(np.mean(got != want)), 0.0)
    error = float(np.abs(got - want).max() / (np.abs(want).max() or 1))
    return Agreement(name, shape, error, SLACK * program.chain * float(np.finfo(want.dtype).eps))


def seconds_per_call(executable: xlapy.Executable, leaves: list[np.ndarray], budget: float) -> float:
    """The best mean of a few calls, within a budget of seconds."""
    best, end = np.inf, time.perf_counter() + budget
    while True:
        begin = time.perf_counter()
        for _ in range(CALLS_PER_ROUND):
            executable(*leaves)
        now = time.perf_counter()
        best = min(best, (now - begin) / CALLS_PER_ROUND)
        if now >= end:
            return float(best)
