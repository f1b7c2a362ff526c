"""Random programs of gathers, scatters, sorts, windows, convolutions, choices, chains of folds, scans and layouts: the
bits of the evaluator, in memory that is fresh and that was used before, nothing beside their results, and nothing
written to their arguments or read behind them.

A program that ever differed is kept as a case in `test_found.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import Scope
from tests.e2e.random_structures import LARGE, SMALL, random_composition
from tests.support.guarded_memory import fenced_results, read_only
from tests.support.values import assert_same
from xlapy.hlo.verifier import verify

SEEDS_PER_TEST = 20
THREADS = (1, 2, 3, 8)


def check(seed: int, steps: int, scope: Scope = SMALL) -> None:
    """By another number of threads for each seed."""
    program = random_composition(seed, steps, scope)
    verify(program.module)
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(program.module, *program.arguments)
    options = xlapy.CompileOptions(verify=seed % 4 == 0, num_threads=THREADS[seed % len(THREADS)])
    run = xlapy.compile(program.module, options)
    for call in range(2):
        assert_same(run(*program.arguments), expected, f"seed {seed}, {steps} steps, call {call}")
    guarded = [read_only(argument) for argument in program.arguments]
    with fenced_results():
        assert_same(run.run(*guarded, seed=0), expected, f"seed {seed}, {steps} steps, between fences")


@pytest.mark.parametrize("first", range(0, 20, SEEDS_PER_TEST))
def test_small_arrays(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, steps=20)


def test_large_arrays() -> None:
    for seed in range(10):
        check(seed, steps=12, scope=LARGE)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 104_000, SEEDS_PER_TEST))
def test_many_small_arrays(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200_000, 201_000, SEEDS_PER_TEST))
def test_many_large_arrays(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, steps=20, scope=LARGE)
