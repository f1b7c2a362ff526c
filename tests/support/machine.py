"""A machine with round numbers, for what is told of programs: to measure this one takes seconds."""

from __future__ import annotations

from xlapy.report.limits import Limits, Pair

LIMITS = Limits(
    cores=2,
    cache_bytes=1 << 20,
    f32=Pair(50e9, 100e9),
    f64=Pair(25e9, 50e9),
    read=Pair(10e9, 20e9),
    copy=Pair(8e9, 16e9),
    triad=Pair(9e9, 18e9),
)
