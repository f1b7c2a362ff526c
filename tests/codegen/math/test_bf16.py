"""Functions of bf16, for each of its numbers: within 0.51 ulp, and special values as they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import xlapy
from tests.support.accuracy import apply
from tests.support.irlab import HAS_FMA
from xlapy import ops
from xlapy.codegen.math import BF16_MATH, MATH

BF16 = np.dtype(ml_dtypes.bfloat16)
CODES = np.arange(1 << 16, dtype=np.uint16).view(BF16)
BOUND = 0.51
FRACTION_BITS, LOWEST_EXPONENT = 7, -126

FUNCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "acos": ("Acos", np.arccos),
    "acosh": ("Acosh", np.arccosh),
    "asin": ("Asin", np.arcsin),
    "asinh": ("Asinh", np.arcsinh),
    "atan": ("Atan", np.arctan),
    "atanh": ("Atanh", np.arctanh),
    "cbrt": ("Cbrt", np.cbrt),
    "cos": ("Cos", np.cos),
    "cosh": ("Cosh", np.cosh),
    "erf": ("Erf", scipy.special.erf),
    "erfc": ("Erfc", scipy.special.erfc),
    "exp": ("Exp", np.exp),
    "expm1": ("Expm1", np.expm1),
    "log": ("Log", np.log),
    "log1p": ("Log1p", np.log1p),
    "logistic": ("Logistic", lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": ("Rsqrt", lambda x: 1 / np.sqrt(x)),
    "sin": ("Sin", np.sin),
    "sinh": ("Sinh", np.sinh),
    "sqrt": ("Sqrt", np.sqrt),
    "tan": ("Tan", np.tan),
    "tanh": ("Tanh", np.tanh),
}
BRIEF = sorted(name for name, function in BF16_MATH.items() if function is not MATH[name] and name in FUNCTIONS)


def exact_values(function: Callable[[Any], Any]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(function(CODES.astype(np.float64)))


def check(got: np.ndarray, exact: np.ndarray) -> None:
    """Asserts that what is finite is within the bound, and all else, and every sign, the same as of `exact`."""
    with np.errstate(all="ignore"):
        got = got.astype(np.float64)
        expected = exact.astype(BF16).astype(np.float64)
        exponent = np.maximum(np.frexp(expected)[1] - 1, LOWEST_EXPONENT)
        error = np.abs(got - exact) / np.ldexp(1.0, exponent - FRACTION_BITS)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), ~number)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])
    special = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(got[special], expected[special])
    assert error[~special].max() <= BOUND, CODES[~special][error[~special].argmax()]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_code(name: str) -> None:
    builder_name, function = FUNCTIONS[name]
    b = xlapy.XlaBuilder(name)
    x = ops.Parameter(b, 0, xlapy.Shape.array(BF16, CODES.shape))
    got = xlapy.compile(b.build(getattr(ops, builder_name)(x)))(CODES)
    check(np.asarray(got), exact_values(function))


def test_logistic_written_out() -> None:
    b = xlapy.XlaBuilder("written_out")
    x = ops.Parameter(b, 0, xlapy.Shape.array(BF16, CODES.shape))
    one = ops.Constant(b, BF16.type(1))
    got = xlapy.compile(b.build(ops.Div(one, ops.Add(one, ops.Exp(ops.Neg(x))))))(CODES)
    check(np.asarray(got), exact_values(FUNCTIONS["logistic"][1]))


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
@pytest.mark.parametrize("name", BRIEF)
def test_brief_functions_with_and_without_fma(name: str, has_fma: bool) -> None:
    got = apply(BF16_MATH[name], CODES.astype(np.float32), has_fma=has_fma)
    with np.errstate(over="ignore"):
        check(got.astype(BF16), exact_values(FUNCTIONS[name][1]))
