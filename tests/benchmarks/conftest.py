"""Engines that tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.measure import QUICK, XLA, Bench
from xlapy.report.limits import Limits, Pair

ANY_LIMITS = Limits(1, 1 << 20, *[Pair(1e9, 1e9)] * 7)


@pytest.fixture(scope="package")
def bench() -> Iterator[Bench]:
    """One with all engines, which are started once: that takes them seconds. What it measures is said by its plan."""
    with Bench([XLA, "numpy"], QUICK, ANY_LIMITS) as bench:
        yield bench
