"""Random programs of arrays that look alike give the same bits by the evaluator and as native code."""

from __future__ import annotations

import pytest

import xlapy
from tests.e2e.random_squares import Squares
from tests.support.values import assert_same

SEEDS_PER_TEST = 30
FOUND = (123, 275, 494)
"""Programs that had other results: values of columns were taken for values of rows."""


def check(seed: int) -> None:
    squares = Squares(seed)
    module = squares.program()
    expected = xlapy.evaluate(module, *squares.arguments)
    assert_same(xlapy.compile(module)(*squares.arguments), expected, f"seed {seed}")


@pytest.mark.parametrize("first", range(0, 60, SEEDS_PER_TEST))
def test_programs(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_found(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 10000, SEEDS_PER_TEST))
def test_many_programs(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed)
