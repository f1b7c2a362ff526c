"""A machine with round numbers, for what is told of programs: to measure this one takes seconds."""

from __future__ import annotations

import pytest

from xlapy.report.limits import Limits, Pair, measure

LIMITS = Limits(
    cores=2,
    cache_bytes=1 << 20,
    f32=Pair(50e9, 100e9),
    f64=Pair(25e9, 50e9),
    read=Pair(10e9, 20e9),
    copy=Pair(8e9, 16e9),
    triad=Pair(9e9, 18e9),
)


def measure_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `measure` run the same kernels as ever, few times and in little memory: what it finds means nothing then."""
    for name, value in {"REPETITIONS": 2, "ROUND_SECONDS": 1e-4, "_MEMORY_CEILING_BYTES": 1 << 20}.items():
        monkeypatch.setattr(f"xlapy.report.limits.{name}", value)


def measured_little() -> Limits:
    """What `measure` finds then: for a process of its own, where nobody patches anything."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        measure_little(monkeypatch)
        return measure()
