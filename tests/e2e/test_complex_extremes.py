"""Complex functions of zeros, infinities, NaNs and the largest numbers: native code beside the evaluator."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import xlapy

INF, NAN = np.inf, np.nan
EXACT = ("abs", "divide", "log", "log-plus-one", "multiply", "rsqrt", "sign", "sqrt")
"""Functions whose every NaN and sign of zero is the evaluator's."""

CHOICE = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "cosine", "exponential", "exponential-minus-one",
          "logistic", "power", "sine", "sinh", "tan", "tanh")  # fmt: skip
"""Functions that may have a NaN where the evaluator has another part of the same infinity or NaN, and the other way
round: C99 leaves much of that open."""

PRECISE = {np.complex64: 3e-5, np.complex128: 1e-13}
"""Of the size of a result: some hundred roundings, since e^x has x times as many as its argument, which is up to 88 for
f32. What is asked is which infinity, zero or number comes out; `docs/accuracy.md` has how exact it is."""


def applied(name: str, *operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The results of native code and of the evaluator."""
    size, kind = operands[0].size, {8: ("c64", "f32"), 16: ("c128", "f64")}[operands[0].itemsize]
    result = kind[name == "abs"]
    parameters = [f"p{i} = {kind[0]}[{size}] parameter({i})" for i in range(len(operands))]
    used = ", ".join(f"p{i}" for i in range(len(operands)))
    lines = "\n".join([*parameters, f"ROOT r = {result}[{size}] {name}({used})"])
    module = xlapy.hlo.parse(f"ENTRY e {{\n{lines}\n}}")
    return np.asarray(xlapy.compile(module)(*operands)), np.asarray(xlapy.evaluate(module, *operands))


def edges(dtype: Any, sizes: tuple[float, ...]) -> np.ndarray:
    """All complex numbers with parts of these sizes, positive and negative, or NaN."""
    parts = np.array([*sizes, *(-size for size in sizes), NAN], np.empty(0, dtype).real.dtype)
    return np.array([complex(re, im) for re, im in product(parts, parts)], dtype)


def operands_of(name: str, dtype: Any) -> list[np.ndarray]:
    largest = float(np.finfo(dtype).max)
    if name not in ("divide", "multiply", "power"):
        return [edges(dtype, (0.0, 1e-3, 0.5, 1.0, 7.25, largest / 4, largest, INF))]
    few = edges(dtype, (0.0, 1.0, 7.25, largest, INF))
    return [np.repeat(few, few.size), np.tile(few, few.size)]


@pytest.mark.parametrize("dtype", PRECISE)
@pytest.mark.parametrize("name", EXACT)
def test_the_classes_are_those_of_the_evaluator(name: str, dtype: Any) -> None:
    native, evaluated = applied(name, *operands_of(name, dtype))
    for part in ("real", "imag"):
        mine, theirs = getattr(native, part), getattr(evaluated, part)
        np.testing.assert_allclose(mine, theirs, rtol=PRECISE[dtype], atol=np.finfo(dtype).tiny)
        zeros = theirs == 0
        np.testing.assert_array_equal(np.signbit(mine[zeros]), np.signbit(theirs[zeros]))


@pytest.mark.parametrize("dtype", PRECISE)
@pytest.mark.parametrize("name", CHOICE)
def test_numbers_are_those_of_the_evaluator(name: str, dtype: Any) -> None:
    operands = operands_of(name, dtype)
    if name == "power":  # whose absolute value is a number
        keep = np.isfinite(np.abs(operands[0])) | np.isinf(operands[0])
        operands = [operand[keep] for operand in operands]
    native, evaluated = applied(name, *operands)
    whole = np.isfinite(native) & np.isfinite(evaluated)
    size = np.abs(evaluated[whole])
    assert np.all(np.abs(native[whole] - evaluated[whole]) <= PRECISE[dtype] * size + np.finfo(dtype).tiny)
    named = ~np.isnan(operands[0].real) & ~np.isnan(operands[0].imag) & ~np.isinf(operands[0])
    np.testing.assert_array_equal(np.isnan(native[named]), np.isnan(evaluated[named]))
    np.testing.assert_array_equal(np.isinf(native[named]), np.isinf(evaluated[named]))


SPECIAL = [
    # name, operands, result
    ("rsqrt", (complex(-7.25, -INF),), complex(0.0, 0.0)),
    ("rsqrt", (complex(INF, NAN),), complex(0.0, -0.0)),
    ("divide", (1 + 2j, complex(-INF, INF)), complex(0.0, -0.0)),
    ("divide", (complex(INF, INF), 2j), complex(INF, -INF)),
    ("power", (complex(INF, 0.0), 7.25 + 0j), complex(INF, 0.0)),
    ("power", (1 + 0j, complex(NAN, INF)), 1 + 0j),
    ("power", (complex(-0.0, -0.0), 1j), complex(NAN, NAN)),
    ("power", (0j, -2 + 0j), complex(NAN, NAN)),
    ("tanh", (complex(100.0, INF),), complex(NAN, NAN)),
    ("tanh", (complex(-INF, NAN),), complex(-1.0, 0.0)),
    ("exponential-minus-one", (complex(-INF, INF),), complex(-1.0, 0.0)),
    ("sinh", (complex(0.0, INF),), complex(0.0, NAN)),
]


@pytest.mark.parametrize(("name", "operands", "expected"), SPECIAL)
@pytest.mark.parametrize("dtype", PRECISE)
def test_special_values(name: str, operands: tuple[complex, ...], expected: complex, dtype: Any) -> None:
    native, _ = applied(name, *(np.full(3, operand, dtype) for operand in operands))
    np.testing.assert_array_equal(native.real, expected.real)
    np.testing.assert_array_equal(native.imag, expected.imag)


def test_powers_of_whose_factors_one_alone_is_too_large_or_too_small() -> None:
    """e^(re w log|z|) or e^(-im w arg z): their product is neither."""
    native, evaluated = applied("power", *np.array([[1e10j, 1e-10j, -1e10 + 1j], [35 + 300j, 40 - 300j, 32 + 60j]]))
    expected = [  # of 100 digits
        1.258084654427515e145 + 1.8117246641105865e145j,
        -3.723902907870138e-196 + 2.5859255524732215e-196j,
        1.0042961416094669e238 - 9.35058216235006e237j,
    ]
    for got in (native, evaluated):  # angles and logarithms of up to 1000 are rounded before e^ix is taken of them
        assert np.all(np.abs(got - expected) <= 1e-11 * np.abs(expected))


def test_a_product_is_that_of_its_parts() -> None:
    """No product of two is rounded only together with the sum, as it is where these are contracted: XLA and numpy, on
    processors that can, have an infinity for the real part."""
    native, evaluated = applied("multiply", *(np.array([z], np.complex64) for z in (3e38 + 3e38j, 7 + 7j)))
    for got in (native, evaluated):
        assert np.isnan(got.real[0])
        assert got.imag[0] == INF


@pytest.mark.parametrize(("dtype", "z"), [(np.complex64, 100 + 1e-35j), (np.complex128, 720 + 1e-300j)])
def test_hyperbolic_functions_overflow_only_where_their_products_do(dtype: Any, z: complex) -> None:
    native, _ = applied("sinh", np.array([z], dtype))
    exact = np.sinh(np.clongdouble(z.real)) * np.clongdouble(z.imag)
    np.testing.assert_allclose(native.imag, np.array([exact.real], np.float64), rtol=1e-6)  # 16 roundings of f32
