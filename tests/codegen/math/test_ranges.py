"""Functions that are less work where the graph tells of the range of their arguments."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.accuracy import apply, errors
from tests.support.irlab import HAS_FMA
from xlapy.codegen.math import MATH

SIZE = 4096
DTYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


def text_of(argument: str, type: str) -> str:
    """log1p of what `argument` makes of `x`, whose size is one for which functions are written out."""
    lines = ["x = T[] parameter(0)", argument, "ROOT l = T[] log-plus-one(z)"]
    return "HloModule m\nENTRY e {\n" + "\n".join(lines).replace("T[]", f"{type}[{SIZE}]") + "\n}"


OF_FRACTIONS = {
    "e^-|x|": "a = T[] abs(x)\nn = T[] negate(a)\nz = T[] exponential(n)",
    "logistic": "z = T[] logistic(x)",
}
OF_OTHERS = {
    "e^x": "z = T[] exponential(x)",
    "e^-x": "n = T[] negate(x)\nz = T[] exponential(n)",
    "e^|x|": "a = T[] abs(x)\nz = T[] exponential(a)",
    "x": "z = T[] copy(x)",
}


@pytest.mark.parametrize("has_fma", sorted({False, HAS_FMA}))
def test_logarithms_of_sums_with_fractions(has_fma: bool) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.random(1 << 20), 10.0 ** random.uniform(-45, 0, 1 << 17), [0.0, 1.0]]).astype(np.float32)
    got = apply(MATH["log1p_of_fraction"], x, has_fma=has_fma)
    assert errors(got, np.log1p(x.astype(np.float64))).max() <= 2
    assert np.isnan(apply(MATH["log1p_of_fraction"], np.full(8, np.nan, np.float32), has_fma=has_fma)).all()


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("argument", [*OF_FRACTIONS, *OF_OTHERS])
def test_logarithms_of_what_functions_give(argument: str, type: str) -> None:
    text = text_of((OF_FRACTIONS | OF_OTHERS)[argument], type)
    x = np.linspace(-30, 30, SIZE).astype(DTYPES[type])
    x[:6] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-5]
    unit = float(ml_dtypes.finfo(DTYPES[type]).eps)
    got, expected = (np.asarray(result, np.float64) for result in (xlapy.compile(text)(x), xlapy.evaluate(text, x)))
    np.testing.assert_allclose(got, expected, rtol=4 * unit, atol=1e-30)


@pytest.mark.parametrize("argument", [*OF_FRACTIONS, *OF_OTHERS])
def test_nothing_is_divided_where_the_sum_is_at_most_two(argument: str) -> None:
    code = xlapy.compile(text_of((OF_FRACTIONS | OF_OTHERS)[argument], "f32")).llvm_ir()
    divisions = code.count(" fdiv ") - (argument == "logistic")
    assert (divisions == 0) == (argument in OF_FRACTIONS)
