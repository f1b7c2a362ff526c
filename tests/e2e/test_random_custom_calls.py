"""Random programs that call targets of Python and of C: they get, and give, the same bits as by the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.random_custom_calls import random_calls
from tests.support.values import assert_same
from xlapy.hlo.verifier import verify

SEEDS_PER_TEST = 15
THREADS = (1, 2, 3, 8)


def check(seed: int, steps: int) -> None:
    """Twice, since memory that was used before is not what fresh memory is."""
    program, targets = random_calls(seed, steps)
    verify(program.module)
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(program.module, *program.arguments, custom_calls=targets.evaluated)
    options = xlapy.CompileOptions(
        verify=seed % 4 == 0, num_threads=THREADS[seed % len(THREADS)], custom_calls=targets.called
    )
    run = xlapy.compile(program.module, options)
    for call in range(2):
        assert_same(run(*program.arguments), expected, f"seed {seed}, {steps} steps, call {call}")


@pytest.mark.parametrize("first", range(0, 15, SEEDS_PER_TEST))
def test_some(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, 15)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(500_000, 501_500, SEEDS_PER_TEST))
def test_many(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, 20)
