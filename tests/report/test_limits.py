"""What the limits say about a program."""

from __future__ import annotations

import pytest

from xlapy.report.limits import Limits, Pair

LIMITS = Limits(
    cores=2,
    cache_bytes=1000,
    f32=Pair(50.0, 100.0),
    f64=Pair(25.0, 50.0),
    read=Pair(10.0, 20.0),
    copy=Pair(8.0, 16.0),
    triad=Pair(9.0, 18.0),
)


def test_arithmetic_limits_what_fits_into_the_cache() -> None:
    assert LIMITS.shortest(200.0, 500, 400, double=False) == pytest.approx(2.0)
    assert LIMITS.shortest(200.0, 500, 400, double=True) == pytest.approx(4.0)


def test_bytes_limit_what_does_not_fit_by_the_bandwidth_that_is_like_it() -> None:
    assert LIMITS.shortest(0.0, 4000, 4, double=False) == pytest.approx(4004 / 20)
    assert LIMITS.shortest(0.0, 2000, 2000, double=False) == pytest.approx(4000 / 16)
    assert LIMITS.shortest(0.0, 4000, 2000, double=False) == pytest.approx(6000 / 18)


def test_the_stricter_limit_counts() -> None:
    assert LIMITS.shortest(1e6, 2000, 2000, double=False) == pytest.approx(1e4)
