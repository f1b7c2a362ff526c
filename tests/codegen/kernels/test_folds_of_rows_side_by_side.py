"""Folds along the same rows that one kernel has side by side, each by its own op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy

REGIONS = """
add { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] add(a, b) }
maximum { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] maximum(a, b) }
minimum { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] minimum(a, b) }
"""
OPS = ("add", "maximum", "add", "minimum", "add", "maximum", "add")


def folds(type: str, dims: tuple[int, ...], count: int, init: str) -> str:
    """Sums and extrema of an array times different numbers, all of which begin with `init`."""
    whole, rows = ",".join(map(str, dims)), ",".join(map(str, dims[:-1]))
    lines = []
    for number, op in zip(range(count), OPS, strict=False):
        lines += [
            f"c{number} = T[] constant({number + 2})  b{number} = T[{whole}] broadcast(c{number}), dimensions={{}}",
            f"m{number} = T[{whole}] multiply(x, b{number})",
            f"r{number} = T[{rows}] reduce(m{number}, i), dimensions={{{len(dims) - 1}}}, to_apply={op}",
        ]
    shapes, names = ", ".join([f"T[{rows}]"] * count), ", ".join(f"r{number}" for number in range(count))
    body = "\n".join(lines)
    text = f"{REGIONS} ENTRY e {{ x = T[{whole}] parameter(0)  i = T[] constant({init}) {body}\n"
    return (text + f"ROOT t = ({shapes}) tuple({names}) }}").replace("T[", f"{type}[")


@pytest.mark.parametrize("count", [2, 3, 4, 7])
@pytest.mark.parametrize("dims", [(5, 16), (4, 40), (7, 257), (3, 2, 1000), (2, 9)])
@pytest.mark.parametrize(("type", "dtype"), [("f32", np.float32), ("f64", np.float64), ("s16", np.int16)])
def test_folds_of_rows(type: str, dtype: Any, dims: tuple[int, ...], count: int) -> None:
    text = folds(type, dims, count, "3")
    x = np.random.default_rng(0).integers(-9, 9, dims).astype(dtype)
    executable = xlapy.compile(text)
    assert executable.hlo_text().count(" fusion(") == -(-count // 4)
    for found, wanted in zip(executable(x), xlapy.evaluate(text, x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_marks_of_extrema_stay_with_their_folds() -> None:
    x = np.random.default_rng(0).standard_normal((6, 100)).astype(np.float32)
    x[0, 50], x[1], x[2, ::2], x[3, 99] = np.nan, -0.0, -np.inf, np.inf
    text = folds("f32", (6, 100), 4, "-0")
    for found, wanted in zip(xlapy.compile(text)(x), xlapy.evaluate(text, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))
