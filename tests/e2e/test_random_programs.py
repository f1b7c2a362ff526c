"""Random programs give the same bits by the evaluator and as native code.

A program that ever differed is kept as a case in `test_found.py`. To look at the program of a seed, print
`random_program(seed, steps).module.to_text()`.
"""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from tests.support.values import assert_same
from xlapy.hlo.verifier import verify

SEEDS_PER_TEST = 20


def check(seed: int, steps: int) -> None:
    program = random_program(seed, steps)
    verify(program.module)
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(program.module, *program.arguments)
    options = xlapy.CompileOptions(verify=seed % 4 == 0)
    got = xlapy.compile(program.module, options)(*program.arguments)
    assert_same(got, expected, f"seed {seed}, {steps} steps")


@pytest.mark.parametrize("first", range(0, 40, SEEDS_PER_TEST))
def test_small_programs(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, steps=15)


@pytest.mark.parametrize("first", range(0, 10, 5))
def test_large_programs(first: int) -> None:
    for seed in range(first, first + 5):
        check(seed, steps=60)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, SEEDS_PER_TEST))
def test_many_programs(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, steps=30)
