"""Inverse functions of complex numbers: each part against mpmath, next to the branch points too; special values."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from tests.codegen.math.test_complex import LANES, apply_complex
from xlapy.codegen.math.complex_inverse import INVERSE

EXACT = {"acos": mp.acos, "acosh": mp.acosh, "asin": mp.asin, "asinh": mp.asinh, "atan": mp.atan, "atanh": mp.atanh}

RANDOM = np.random.default_rng(8)
COUNT = 40


def spread(low: float, high: float) -> np.ndarray:
    """Numbers in all directions, of sizes between two powers of ten."""
    return 10.0 ** RANDOM.uniform(low, high, COUNT) * np.exp(2j * np.pi * RANDOM.uniform(0, 1, COUNT))


NUMBERS = np.concatenate(
    [spread(-1, 1), spread(-30, 30), spread(-5, 5), *(point + spread(-14, -1) for point in (1, -1, 1j, -1j))]
)
UNITS = 16
"""Each part by itself: after two roots, a product and a real function."""

VANISHES = {"atan": "re", "atanh": "im"}
"""Parts that are differences of nearly equal numbers next to a curve: their errors are small against the whole."""


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", EXACT)
def test_errors_of_each_part(name: str, dtype: type) -> None:
    z = NUMBERS.astype(dtype)
    unit, least = float(np.finfo(dtype).eps) / 2, float(np.finfo(dtype).tiny)
    with mp.workprec(400):
        for number, got in zip(z, apply_complex(INVERSE[name], z), strict=True):
            exact = EXACT[name](mp.mpc(complex(number)))
            for part, mine, true in (("re", got.real, exact.real), ("im", got.imag, exact.imag)):
                scale = abs(exact) if VANISHES.get(name) == part else abs(true)
                if scale > least:
                    error = float(abs(mp.mpf(float(mine)) - true) / scale) / unit
                    assert error <= UNITS, f"{name}({number}) = {got}, exactly {complex(exact)}: {error:.1f}"


PARTS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1e300, -1e300, np.inf, -np.inf, np.nan)
NUMPYS = {"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
          "atanh": np.arctanh}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_cuts_and_infinities_are_those_of_numpy(name: str) -> None:
    z = np.array([complex(a, b) for a in PARTS for b in PARTS])
    z = np.concatenate([z, np.zeros(-z.size % LANES)])
    with np.errstate(all="ignore"):
        expected = NUMPYS[name](z)
    got = apply_complex(INVERSE[name], z)
    known = ~np.isnan(z) | np.isinf(z)
    for part in ("real", "imag"):
        mine, theirs = getattr(got, part)[known], getattr(expected, part)[known]
        np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-300)
        is_number = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(mine)[is_number], np.signbit(theirs)[is_number])
