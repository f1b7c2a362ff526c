"""The memory of large results, from the outside: a program that is called again finds its pages in place."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import numpy as np
import pytest

import xlapy

CALLS = 5
ELEMENTS = 1 << 24
MODULE = f"""\
HloModule add_one
ENTRY main {{
  x = f32[{ELEMENTS}] parameter(0)
  one = f32[] constant(1)
  ones = f32[{ELEMENTS}] broadcast(one), dimensions={{}}
  ROOT y = f32[{ELEMENTS}] add(x, ones)
}}
"""


@pytest.fixture
def add_one() -> Iterator[xlapy.Executable]:
    """y = x + 1 on 64 MB; the pool is empty before and behind the test."""
    xlapy.trim()
    yield xlapy.compile(MODULE)
    xlapy.trim()


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_results_that_are_dropped_are_used_again(add_one: xlapy.Executable) -> None:
    x = np.arange(ELEMENTS, dtype=np.float32)
    add_one(x)
    before, faults = xlapy.memory_statistics(), page_faults()
    for _ in range(CALLS):
        add_one(x)
    after = xlapy.memory_statistics()
    assert (after.recycled - before.recycled, after.fresh - before.fresh) == (CALLS, 0)
    assert page_faults() - faults < ELEMENTS * 4 // 4096 // 10, "each call would touch 16384 fresh pages"
    np.testing.assert_array_equal(add_one(x), x + 1)


def test_results_that_are_held_stay_as_they_are(add_one: xlapy.Executable) -> None:
    x = np.zeros(ELEMENTS, np.float32)
    held = [add_one(x + number) for number in range(3)]
    assert [(array == number + 1).all() for number, array in enumerate(held)] == [True] * 3


def test_trim_returns_what_waits(add_one: xlapy.Executable) -> None:
    add_one(np.zeros(ELEMENTS, np.float32))
    assert xlapy.memory_statistics().idle_bytes >= 4 * ELEMENTS
    xlapy.trim()
    assert xlapy.memory_statistics().idle_bytes == 0
