"""Sorting by any comparator: what is searched for is what merging step by step finds."""

from __future__ import annotations

import numpy as np
import pytest

from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse

COMPARATORS = {
    "less": "ROOT l = pred[] compare(a, b), direction=LT",
    "greater or equal": "ROOT l = pred[] compare(a, b), direction=GE",  # of equals both are first
    "different": "ROOT l = pred[] compare(a, b), direction=NE",
    "always": "ROOT l = pred[] constant(true)",
    "never": "ROOT l = pred[] constant(false)",
    "in circles": """t = s32[] constant(3) d = s32[] subtract(i, j) r = s32[] remainder(d, t)
        one = s32[] constant(1) ROOT l = pred[] compare(r, one), direction=EQ""",
}


def program(body: str, length: int, *, is_called: bool) -> str:
    """A sort of two arrays. What is called is not applied to arrays, but asked about one pair of elements at a time."""
    parameters = "a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)"
    called = (
        f"inner {{ {parameters} {body} }} outer {{ {parameters} ROOT c = pred[] call(a, b, i, j), to_apply=inner }}"
    )
    return f"""{called}
        ENTRY main {{
          x = f32[3,{length}] parameter(0)
          y = s32[3,{length}] parameter(1)
          ROOT s = (f32[3,{length}], s32[3,{length}]) sort(x, y), dimensions={{1}}, is_stable=true,
            to_apply={"outer" if is_called else "inner"}
        }}"""


@pytest.mark.parametrize("has_nan", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 17, 40])
@pytest.mark.parametrize("comparator", COMPARATORS)
def test_results_are_those_of_merging_step_by_step(comparator: str, length: int, has_nan: bool) -> None:
    random = np.random.default_rng(length)
    x = random.integers(-5, 6, (3, length)).astype(np.float32)
    x[random.random(x.shape) < 0.2 * has_nan] = np.nan
    y = random.permutation(3 * length).reshape(3, length).astype(np.int32)
    fast, slow = (
        evaluate(parse(program(COMPARATORS[comparator], length, is_called=is_called)), x, y)
        for is_called in (False, True)
    )
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.array_equal(np.sort(fast[1], axis=1), np.sort(y, axis=1))
