"""What the limits say about a program, and what a probe says about the machine."""

from __future__ import annotations

from contextlib import closing

import pytest

from xlapy.report.limits import Bound, Limits, Pair, Probe

LIMITS = Limits(
    cores=2,
    cache_bytes=1000,
    f32=Pair(50.0, 100.0),
    f64=Pair(25.0, 50.0),
    read=Pair(10.0, 20.0),
    copy=Pair(8.0, 16.0),
    triad=Pair(9.0, 18.0),
)


def shortest(operations: float, read: int, written: int, *, double: bool = False) -> float:
    bound = LIMITS.bound(operations, read, written, double=double)
    assert bound is not None
    return LIMITS.seconds(bound)


def test_arithmetic_limits_what_fits_into_the_cache() -> None:
    assert shortest(200.0, 500, 400) == pytest.approx(2.0)
    assert shortest(200.0, 500, 400, double=True) == pytest.approx(4.0)


def test_bytes_limit_what_does_not_fit_by_the_bandwidth_that_is_like_it() -> None:
    assert shortest(0.0, 4000, 4) == pytest.approx(4004 / 20)
    assert shortest(0.0, 2000, 2000) == pytest.approx(4000 / 16)
    assert shortest(0.0, 4000, 2000) == pytest.approx(6000 / 18)


def test_the_stricter_limit_counts() -> None:
    assert shortest(1e6, 2000, 2000) == pytest.approx(1e4)


def test_nothing_limits_what_only_moves_a_few_bytes() -> None:
    assert LIMITS.bound(0.0, 500, 400, double=False) is None


def test_a_probe_takes_longer_for_more() -> None:
    with closing(Probe(1)) as probe:
        for limit in ("f32", "copy"):
            little, much = (probe.seconds(Bound(limit, amount), 0.01) for amount in (1e6, 1e9))
            assert 0 < little < much
