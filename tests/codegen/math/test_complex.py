"""Complex functions: normwise errors, and infinities where numpy follows C99."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tests.support.irlab import HAS_FMA, Compiled
from xlapy.codegen.ir import I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.math.complex import COMPLEX_MATH, Complex, absolute, any_quotient

LANES = 4


def apply_complex(function: Callable[..., Complex], *arrays: np.ndarray) -> np.ndarray:
    """`function` of complex arrays of one dtype whose size LANES divides."""
    kind = "f32" if arrays[0].dtype == np.complex64 else "f64"
    type = IRType(kind, LANES)
    real = arrays[0].real.dtype
    names = [f"{part}{i}" for i in range(len(arrays) + 1) for part in ("re", "im")]
    module = Module(has_fma=HAS_FMA)
    with (
        KernelBuilder(module, "f", [*((name, PTR) for name in names), ("n", I64)], None) as k,
        k.loop(0, k.parameters["n"], LANES) as loop,
    ):

        def place(name: str) -> Value:
            return k.gep(k.parameters[name], loop.index, type.bytes)

        values = [Complex(k.load(place(f"re{i}"), type), k.load(place(f"im{i}"), type)) for i in range(len(arrays))]
        result = function(k, *values)
        k.store(place(names[-2]), result.re)
        k.store(place(names[-1]), result.im)
    parts = [np.ascontiguousarray(part) for array in arrays for part in (array.real, array.imag)]
    out = np.zeros(arrays[0].size, arrays[0].dtype)
    re, im = np.zeros(out.size, real), np.zeros(out.size, real)
    Compiled(module.text()).call("f", *parts, re, im, out.size)
    out.real, out.imag = re, im
    return out


RANDOM = np.random.default_rng(5)
COUNT = 80
NUMBERS = np.concatenate(
    [
        RANDOM.normal(0, 1, COUNT) + 1j * RANDOM.normal(0, 1, COUNT),
        10.0 ** RANDOM.uniform(-3, 2, COUNT) * np.exp(2j * np.pi * RANDOM.uniform(0, 1, COUNT)),
        1 + 10.0 ** RANDOM.uniform(-12, -1, COUNT) * np.exp(6j * RANDOM.uniform(0, 1, COUNT)),
    ]
)
EXPONENTS = RANDOM.normal(0, 1, NUMBERS.size) + 1j * RANDOM.normal(0, 1, NUMBERS.size)
# name: exact function, and the bound in units of half an ulp of 1 times the absolute value
EXACT: dict[str, tuple[Callable[..., Any], float]] = {
    "cbrt": (mp.cbrt, 8),
    "cos": (mp.cos, 8),
    "cosh": (mp.cosh, 8),
    "divide": (lambda a, b: a / b, 8),
    "exp": (mp.exp, 8),
    "expm1": (lambda z: mp.exp(z) - 1, 8),
    "log": (mp.log, 8),
    "log1p": (lambda z: mp.log(1 + z), 8),
    "logistic": (lambda z: 1 / (1 + mp.exp(-z)), 8),
    "multiply": (lambda a, b: a * b, 4),
    "power": (mp.power, 64),
    "rsqrt": (lambda z: 1 / mp.sqrt(z), 8),
    "sign": (lambda z: z / abs(z), 6),
    "sin": (mp.sin, 8),
    "sinh": (mp.sinh, 8),
    "sqrt": (mp.sqrt, 6),
    "tan": (mp.tan, 12),
    "tanh": (mp.tanh, 12),
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", sorted(COMPLEX_MATH))
def test_normwise_errors(name: str, dtype: type) -> None:
    function, bound = EXACT[name]
    arity = 2 if name in ("divide", "multiply", "power") else 1
    inputs = [NUMBERS.astype(dtype), EXPONENTS.astype(dtype)][:arity]
    got = apply_complex(COMPLEX_MATH[name], *inputs)
    unit = float(np.finfo(dtype).eps) / 2
    largest = float(np.finfo(dtype).max)
    smallest = float(np.finfo(dtype).tiny)
    with mp.workprec(200):
        for *arguments, result in zip(*inputs, got, strict=True):
            exact = function(*(mp.mpc(complex(a)) for a in arguments))
            if smallest < abs(exact) < largest / 2:
                error = float(abs(mp.mpc(complex(result)) - exact) / abs(exact)) / unit
                assert error <= bound, f"{name}{arguments} = {result}, exactly {complex(exact)}: {error:.1f}"


PARTS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh"])
def test_special_values_follow_numpy(name: str) -> None:
    z = np.array([complex(a, b) for a in PARTS for b in PARTS])
    z = np.concatenate([z, np.zeros(-z.size % LANES)])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
    got = apply_complex(COMPLEX_MATH[name], z)
    for number, mine, theirs in zip(z, got, expected, strict=True):
        for part, other in ((mine.real, theirs.real), (mine.imag, theirs.imag)):
            # Where C99 leaves a part unspecified, or NaN beside an infinity, a NaN is as good.
            if not (np.isnan(number.real) or np.isnan(number.imag)) and not (np.isnan(part) or np.isnan(other)):
                assert part == other or abs(part - other) <= 1e-14 * abs(other), (number, mine, theirs)
                assert np.signbit(part) == np.signbit(other) or np.isinf(number.imag), (number, mine, theirs)


def test_absolute_value_does_not_overflow() -> None:
    z = np.array([3e300 + 4e300j, 3e-320 + 4e-320j, 0, complex(np.inf, np.nan)])
    got = apply_complex(lambda k, value: Complex(absolute(k, value), value.im), z).real
    np.testing.assert_allclose(got, np.abs(z), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_quotients_of_all_edges_are_the_same_beside_others_and_alone(dtype: type) -> None:
    """Zeros, infinities, NaNs and what overflows, by C99's rules, which only what is not finite is looked at for."""
    info = np.finfo(dtype)
    sizes = [0.0, info.tiny, 1.0, 3.0, info.max, np.inf]
    parts = np.array([*sizes, *(-size for size in sizes), np.nan])
    edges = (parts[:, None] + np.zeros(parts.size)).ravel().astype(dtype)
    edges.imag = np.tile(parts, parts.size)
    above, below = (np.resize(grid.ravel(), 28564 // LANES * LANES) for grid in np.meshgrid(edges, edges))
    every = apply_complex(lambda k, a, b: any_quotient(k, *a, *b), above, below)
    beside = apply_complex(COMPLEX_MATH["divide"], above, below)
    np.testing.assert_array_equal(beside.view(info.dtype), every.view(info.dtype))
    by_zero = (below == 0) & np.isfinite(above) & (above != 0)
    assert np.isinf(beside[by_zero]).all()
    by_infinity = np.isinf(below) & ~np.isnan(below) & (np.abs(above) < 10)
    assert not beside[by_infinity].any()
