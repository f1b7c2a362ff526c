"""What the machine says about itself and about processes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks.machine import peak_growth

MEGABYTES = 64


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_memory_that_is_given_back_counts() -> None:
    def use() -> None:
        np.ones(MEGABYTES << 20, np.int8)

    for _ in range(2):
        growth = peak_growth(use)
        if growth is None:
            pytest.skip("this system keeps the figures to itself")
        assert (MEGABYTES - 1) << 20 <= growth <= (MEGABYTES + 16) << 20  # counted in batches of pages
    assert (peak_growth(lambda: None) or 0) < MEGABYTES << 18
