"""Zeros with their signs, infinities, NaNs and the edges of domains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.accuracy import apply
from tests.support.irlab import HAS_FMA
from xlapy.codegen.math import MATH

INF, NAN = math.inf, math.nan
PI = math.pi

# name: argument(s) -> result
UNARY: dict[str, list[tuple[float, float]]] = {
    "acos": [(1.0, 0.0), (-1.0, PI), (2.0, NAN), (-2.0, NAN), (INF, NAN)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-3.0, NAN), (-INF, NAN)],
    "asin": [(-0.0, -0.0), (1.0, PI / 2), (-1.0, -PI / 2), (1.5, NAN), (INF, NAN)],
    "asinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "atan": [(-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2)],
    "atanh": [(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (-INF, NAN)],
    "bessel_i0e": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "bessel_i1e": [(0.0, 0.0), (INF, 0.0), (-INF, -0.0)],
    "cbrt": [(-0.0, -0.0), (INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(-0.0, 1.0), (INF, INF), (-INF, INF)],
    "digamma": [(0.0, NAN), (-1.0, NAN), (INF, INF)],
    "erf": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "erf_inv": [(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN)],
    "erfc": [(0.0, 1.0), (INF, 0.0), (-INF, 2.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e5, INF), (-1e5, 0.0)],
    "exp2": [(0.0, 1.0), (10.0, 1024.0), (INF, INF), (-INF, 0.0)],
    "expm1": [(-0.0, -0.0), (INF, INF), (-INF, -1.0), (-1e5, -1.0)],
    "lgamma": [(1.0, 0.0), (0.0, INF), (-1.0, INF), (INF, INF), (-INF, INF)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log1p": [(-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.125, -3.0), (0.0, -INF), (INF, INF), (-1.0, NAN)],
    "logistic": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0)],
    "round_nearest_afz": [(-0.0, -0.0), (0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (-2.4, -2.0), (INF, INF), (1e30, 1e30)],
    "round_nearest_even": [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (INF, INF)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (4.0, 0.5), (-1.0, NAN)],
    "sign": [(0.0, 0.0), (-0.0, -0.0), (5.0, 1.0), (-5.0, -1.0), (INF, 1.0), (-INF, -1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "sinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "sqrt": [(-0.0, -0.0), (INF, INF), (-1.0, NAN)],
    "tan": [(-0.0, -0.0), (INF, NAN)],
    "tanh": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "floor": [(-0.5, -1.0), (-0.0, -0.0), (INF, INF)],
    "ceil": [(-0.5, -0.0), (0.5, 1.0), (-INF, -INF)],
}
BINARY = {
    "atan2": [
        (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, -1.0, PI), (-0.0, -1.0, -PI), (0.0, 0.0, 0.0), (0.0, -0.0, PI),
        (-0.0, -0.0, -PI), (1.0, 0.0, PI / 2), (-1.0, 0.0, -PI / 2), (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4),
        (-INF, INF, -PI / 4), (1.0, INF, 0.0), (1.0, -INF, PI), (-1.0, -INF, -PI), (INF, 1.0, PI / 2), (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
    ],
    "power": [
        (2.0, 10.0, 1024.0), (0.0, 0.0, 1.0), (NAN, 0.0, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 1.0, NAN),
        (2.0, NAN, NAN), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, 0.5, NAN), (0.0, 2.0, 0.0), (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0), (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF), (2.0, INF, INF), (0.5, INF, 0.0),
        (2.0, -INF, 0.0), (0.5, -INF, INF), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (INF, 2.0, INF), (INF, -1.0, 0.0),
        (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, -3.0, -0.0), (-INF, 0.5, INF), (-1.0, 1e30, 1.0), (2.0, 1e30, INF),
        (2.0, -1e30, 0.0), (0.0, INF, 0.0), (0.0, -INF, INF), (4.0, 0.5, 2.0), (-1.0, -1.0, -1.0),
    ],
    "remainder": [
        (5.0, 3.0, 2.0), (-5.0, 3.0, -2.0), (5.0, -3.0, 2.0), (6.0, 3.0, 0.0), (-6.0, 3.0, -0.0), (1.0, 0.0, NAN),
        (INF, 1.0, NAN), (1.0, INF, 1.0), (-0.0, 2.0, -0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN), (0.0, 0.0, NAN),
    ],
    "igamma": [
        (1.0, 0.0, 0.0), (1.0, INF, 1.0), (0.0, 1.0, NAN), (-1.0, 1.0, NAN), (1.0, -1.0, NAN), (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
    ],
    "igammac": [(1.0, 0.0, 1.0), (1.0, INF, 0.0), (2.0, -1.0, NAN)],
    "zeta": [
        (1.0, 1.0, INF), (0.5, 1.0, NAN), (2.0, 0.0, INF), (2.0, -3.0, INF), (3.0, -3.0, NAN), (2.5, -0.5, NAN),
        (2.0, INF, 0.0), (2.0, 1.0, PI**2 / 6), (NAN, 1.0, NAN),
    ],
    "polygamma": [
        (1.0, 1.0, PI**2 / 6), (0.5, 1.0, NAN), (-1.0, 1.0, NAN), (0.0, 1.0, -0.5772156649015329), (1e4, 0.5, -INF),
        (1e4, 2.0, NAN), (10001.0, 1.0, INF), (1e4, -0.5, NAN), (INF, 0.5, NAN), (INF, 2.0, NAN),
    ],
}  # fmt: skip
DTYPES = (np.float32, np.float64)


def assert_same(got: np.ndarray, expected: np.ndarray, message: str, ulps: int = 4) -> None:
    """Equal to a rounding, and zeros of the same sign."""
    np.testing.assert_allclose(got, expected, rtol=ulps * np.finfo(got.dtype).eps, err_msg=message)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]), err_msg=message)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(UNARY))
def test_one_argument(name: str, dtype: type) -> None:
    rows = [*UNARY[name], (NAN, NAN)]
    got = apply(name, np.array([x for x, _ in rows], dtype))
    expected = np.array([y for _, y in rows], dtype)
    loose = name in ("lgamma", "digamma")
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-14) if loose else assert_same(got, expected, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(BINARY))
def test_two_arguments(name: str, dtype: type) -> None:
    columns = np.array(BINARY[name], dtype).T
    got = apply(name, columns[0].copy(), columns[1].copy())
    ulps = 16 if name == "polygamma" else 4
    assert_same(got, columns[2], name, ulps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_all_edges_with_all_edges(dtype: type) -> None:
    """Exponents too, whose product with a logarithm is beyond the largest float, and subnormal bases."""
    info = np.finfo(dtype)
    sizes = [0, info.smallest_subnormal, info.tiny, 0.5, 1 - info.eps, 1, 1 + info.eps, 1.5, 2, 3, 2**31, info.max, INF]
    edges = np.array([*sizes, *(-size for size in sizes), NAN], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    for has_fma in sorted({False, HAS_FMA}):
        assert_same(apply("power", x, y, has_fma=has_fma), expected, f"fma: {has_fma}", ulps=2)


@pytest.mark.parametrize("lanes", [1, 4, 8, 24])
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_negative_bases_have_the_bits_of_those_of_positive_ones(dtype: type, lanes: int) -> None:
    """Alone with others like them, and beside a base or a power that is unusual in other ways."""
    generator = np.random.default_rng(lanes)
    x = (generator.standard_normal(960) * 10.0 ** generator.integers(-3, 3, 960)).astype(dtype)
    y = (generator.integers(-7, 8, 960) / generator.choice([1, 1, 1, 2], 960)).astype(dtype)
    magnitudes = apply("power", np.abs(x), y, lanes=lanes)
    integral, odd = y == np.trunc(y), np.abs(y) % 2 == 1
    expected = np.where(x < 0, np.where(odd, -magnitudes, np.where(integral, magnitudes, NAN)), magnitudes)
    np.testing.assert_array_equal(apply("power", x, y, lanes=lanes), expected)
    for base, exponent in ((0.0, 2.0), (INF, 1.0), (np.finfo(dtype).tiny / 4, 1.0), (10.0, 1e4), (-2.0, -INF)):
        x[::lanes], y[::lanes] = base, exponent
        if lanes > 1:
            others = np.arange(x.size) % lanes > 0
            got = apply("power", x, y, lanes=lanes)
            np.testing.assert_array_equal(got[others], expected[others], f"beside {base}^{exponent}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_next_after(dtype: type) -> None:
    x = np.array([0.0, -0.0, 1.0, 1.0, -1.0, INF, -INF, 1.0, NAN, 1.0, np.finfo(dtype).max, 0.0, -0.0], dtype)
    y = np.array([1.0, -1.0, 2.0, 0.0, 5.0, 0.0, 0.0, 1.0, 1.0, NAN, INF, -0.0, 0.0], dtype)
    got = apply("next_after", x, y)
    expected = np.nextafter(x, y)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[:-4]), np.signbit(expected[:-4]))


def test_remainders_of_any_size_are_exact() -> None:
    random = np.random.default_rng(0)
    x = random.integers(-(2**63), 2**63 - 1, 4000).view(np.float64)
    y = random.integers(-(2**63), 2**63 - 1, 4000).view(np.float64)
    small = np.array([5e-324, 1.5e-320, 2.2250738585072014e-308, 1e-300])
    x, y = np.concatenate([x, np.full(4, 1.7e308)]), np.concatenate([y, small])
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(apply("remainder", x, y), expected)


@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_remainders_of_known_powers_of_two_are_exact(kind: str, dtype: type[np.floating[Any]]) -> None:
    least = np.finfo(dtype).smallest_subnormal
    special = [0, 0.5, 1, 1.5, 2, 3, 4, 7, 1e6 + 0.5, 2**25 - 1, np.finfo(dtype).max, least, 3 * least, INF, NAN]
    random = np.random.default_rng(7).standard_normal(200) * 10.0 ** np.random.default_rng(8).integers(-9, 30, 200)
    x = np.concatenate([special, np.negative(special), random]).astype(dtype)
    powers = [1.0, 2.0, 8.0, 2.0**60, 2.0**61, 0.5]
    lines = [f"c{n} = {kind}[] constant({value!r})" for n, value in enumerate(powers)]
    shape = f"{kind}[{len(x)}]"
    lines += [f"b{n} = {shape} broadcast(c{n}), dimensions={{}} r{n} = {shape} remainder(x, b{n})" for n in range(6)]
    results = ", ".join(f"r{n}" for n in range(6))
    kinds = ", ".join([shape] * 6)
    text = f"ENTRY e {{ x = {shape} parameter(0) {' '.join(lines)} ROOT t = ({kinds}) tuple({results}) }}"
    with np.errstate(all="ignore"):
        for got, power in zip(xlapy.compile(text)(x), powers, strict=True):
            expected = np.fmod(x, dtype(power))
            np.testing.assert_array_equal(got, expected)
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(MATH))
def test_a_scalar_gives_the_bits_of_a_vector(name: str, dtype: type) -> None:
    random = np.random.default_rng(3)
    binary = (*BINARY, "next_after", "igamma_grad_a", "random_gamma_grad")
    arity = 3 if name == "regularized_incomplete_beta" else 2 if name in binary else 1
    bases = random.standard_normal((arity, 40)) * 10.0 ** random.uniform(-3, 3, (arity, 40))
    arguments = [np.abs(row).astype(dtype) if arity > 1 else row.astype(dtype) for row in bases]
    integer = np.int32 if dtype is np.float32 else np.int64
    wide = apply(name, *arguments)
    for lanes in (1, 2):
        got = apply(name, *arguments, lanes=lanes)
        same = (got.view(integer) == wide.view(integer)) | (np.isnan(got) & np.isnan(wide))
        assert same.all(), f"{name}: {lanes} lanes differ"
