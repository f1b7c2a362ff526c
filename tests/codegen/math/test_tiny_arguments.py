"""Functions of numbers that are tiny, but normal, have no subnormal numbers on the way to their results, which take
processors a hundred cycles or more each: nobody would see what is squared and added to 1."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable

import numpy as np
import pytest

import xlapy
from tests.support.accuracy import VECTOR_LANES, apply, compiled, filled_up
from tests.support.irlab import HAS_FMA
from xlapy.codegen.ir import Value
from xlapy.codegen.math import BF16_MATH, MATH
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse

SAME = ("asin", "asinh", "atan", "atanh", "erf", "erf_inv", "expm1", "log1p", "sin", "sinh", "tan", "tanh")
"""Functions that are a multiple of their argument, if it is tiny."""

CONSTANT = {"acos": np.pi / 2, "cos": 1, "cosh": 1, "erfc": 1, "exp": 1, "exp2": 1, "logistic": 0.5}
FACTORS = {"erf": 2 / np.sqrt(np.pi), "erf_inv": np.sqrt(np.pi) / 2}
OF_BF16 = ("erf", "erfc", "exp", "logistic", "tanh")
FE_UNDERFLOW = 0x10
DTYPES = (np.float32, np.float64)


def tiny_numbers(dtype: type) -> np.ndarray:
    """Of both signs, from some of the least normal ones to those whose squares count."""
    least = {np.float32: -36, np.float64: -305}[dtype]
    sizes = 10.0 ** np.random.default_rng(0).uniform(least, -9, 4096)
    return np.concatenate([sizes, -sizes]).astype(dtype)


def large_numbers(dtype: type) -> np.ndarray:
    return np.linspace(10.5, 1e4, 4096).astype(dtype) if dtype == np.float32 else np.linspace(28.5, 1e4, 4096)


def subnormal_logarithms(dtype: type) -> np.ndarray:
    """Numbers whose exponentials are subnormal, or just less than half of the least of these."""
    lowest, highest = {np.float32: (-104.0, -87.34), np.float64: (-745.5, -708.4)}[dtype]
    return np.linspace(lowest, highest, 4096).astype(dtype)


def underflows(function: Callable[..., Value], x: np.ndarray) -> bool:
    """Whether some operation of the function had a result that is too small to be normal, and was rounded."""
    kind = "f32" if x.dtype == np.float32 else "f64"
    padded = filled_up(x, VECTOR_LANES[kind])
    result = np.empty_like(padded)
    machine = compiled(function, 1, kind, VECTOR_LANES[kind], True)
    machine.call("f", padded, result, result.size)
    library = ctypes.CDLL(None)
    library.feclearexcept(FE_UNDERFLOW)
    machine.call("f", padded, result, result.size)
    return bool(library.fetestexcept(FE_UNDERFLOW))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*SAME, *CONSTANT])
def test_results(name: str, dtype: type) -> None:
    x = tiny_numbers(dtype)
    exact = x.astype(np.longdouble) * FACTORS.get(name, 1) if name in SAME else np.full(x.shape, CONSTANT[name])
    for has_fma in sorted({False, HAS_FMA}):
        found = apply(name, x, has_fma=has_fma)
        np.testing.assert_allclose(found, exact, rtol=max(2e-9, 2 * np.finfo(dtype).eps))
        if name in SAME:
            zeros = apply(name, np.array([0.0, -0.0], dtype), has_fma=has_fma)
            np.testing.assert_array_equal(np.signbit(zeros), [False, True])


@pytest.mark.skipif(not HAS_FMA or platform.machine() != "x86_64", reason="flags are those of x86; squares need fma")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*SAME, *CONSTANT])
def test_nothing_underflows(name: str, dtype: type) -> None:
    assert not underflows(MATH[name], tiny_numbers(dtype))


@pytest.mark.skipif(not HAS_FMA or platform.machine() != "x86_64", reason="flags are those of x86")
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_vanishes_does_not_underflow(dtype: type) -> None:
    x = large_numbers(dtype)
    assert not underflows(MATH["erfc"], x)
    assert (apply("erfc", x) == 0).all() and (apply("erfc", -x) == 2).all()
    assert underflows(MATH["erfc"], np.array([9.5 if dtype == np.float32 else 26.8], dtype))  # a subnormal result


@pytest.mark.skipif(not HAS_FMA or platform.machine() != "x86_64", reason="flags are those of x86; squares need fma")
@pytest.mark.parametrize("name", OF_BF16)
def test_nothing_underflows_in_bf16(name: str) -> None:
    """But for exponentials below -104 that are scaled by two powers, until these are zero."""
    has_steps = name == "exp" and not host_target().has_scalef
    tiny, large = tiny_numbers(np.float32), np.linspace(178 if has_steps else 110, 1e4, 4096).astype(np.float32)
    for x in (tiny, large, -large, np.full(64, np.inf, np.float32), np.full(64, -np.inf, np.float32)):
        assert not underflows(BF16_MATH[name], x)


@pytest.mark.skipif(not host_target().has_scalef, reason="only where an instruction multiplies by powers of two")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp_of_low"])
def test_subnormal_exponentials_are_not_scaled(name: str, dtype: type) -> None:
    """That takes an Intel core a hundred cycles: they are rounded as integers."""
    assert not underflows(MATH[name], subnormal_logarithms(dtype))
    assert not underflows(MATH[name], -10 * subnormal_logarithms(dtype) ** 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp_of_low"])
def test_exponentials_do_not_depend_on_other_lanes(name: str, dtype: type) -> None:
    """Vectors of what is subnormal, vanishes, is usual or no number, and of all of that in any order."""
    special = np.array([np.nan, -np.inf, -1e30, -800.0, -0.0], dtype)
    kinds = [subnormal_logarithms(dtype), np.resize(special, 512), np.linspace(-80, 0, 512).astype(dtype)]
    x = np.concatenate(kinds)
    apart = np.concatenate([apply(name, kind) for kind in kinds])
    least = np.finfo(dtype).smallest_subnormal
    np.testing.assert_allclose(apart, np.exp(x.astype(np.longdouble)), rtol=1e-6, atol=least)
    random = np.random.default_rng(0)
    for _ in range(20):
        order = random.permutation(len(x))
        np.testing.assert_array_equal(apply(name, x[order]), apart[order])


@pytest.mark.parametrize("name", OF_BF16)
def test_results_of_bf16(name: str) -> None:
    opcode = {"exp": "exponential"}.get(name, name)
    module = parse(f"HloModule m\nENTRY e {{\n x = bf16[8192] parameter(0)\n ROOT r = bf16[8192] {opcode}(x)\n}}")
    x = tiny_numbers(np.float32).astype(xlapy.Shape.scalar("bf16").type.dtype)
    found = xlapy.compile(module)(x).astype(np.float64)
    exact = x.astype(np.float64) * FACTORS.get(name, 1) if name in SAME else CONSTANT[name]
    np.testing.assert_allclose(found, np.broadcast_to(exact, found.shape), rtol=2.0**-8)
