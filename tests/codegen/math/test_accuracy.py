"""Largest errors of the vector math, with and without fma, against mpmath and numpy's wider types."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from tests.support.accuracy import apply, check, errors, exact_values, sample, worst
from tests.support.accuracy_cases import CASES
from tests.support.irlab import HAS_FMA

KINDS = ("f32", "f64")
FMA = sorted({False, HAS_FMA})
PRECISE_COUNT = 150
QUICK_COUNT = {"f32": 560_000, "f64": 56_000}
"""Of each stratum: at least a million numbers of f32 in all, a hundred thousand of f64, even in a half-open domain."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_against_many_digits(name: str, kind: str) -> None:
    case = CASES[name]
    inputs = sample(case, kind, PRECISE_COUNT)
    exact = exact_values(case.exact, *inputs)
    for has_fma in FMA:
        check(case, kind, inputs, exact, apply(name, *inputs, has_fma=has_fma))


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in sorted(CASES.items()) for kind in KINDS if case.wider(kind)]
)
def test_against_a_wider_type(name: str, kind: str) -> None:
    case = CASES[name]
    reference = case.wider(kind)
    assert reference is not None
    inputs = sample(case, kind, QUICK_COUNT[kind], seed=1)
    assert inputs[0].size >= (1_000_000 if kind == "f32" else 100_000)
    wider = np.float64 if kind == "f32" else np.longdouble
    with np.errstate(all="ignore"):
        exact = reference(*(array.astype(wider) for array in inputs))
    for has_fma in FMA:
        check(case, kind, inputs, exact, apply(name, *inputs, has_fma=has_fma))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case.wider("f32") and case.arity == 1))
def test_every_single_float(name: str) -> None:
    """All 2^32 inputs of f32 but the zeros, in pieces."""
    case = CASES[name]
    reference = case.wider("f32")
    assert reference is not None
    piece = 1 << 22
    for start in range(0, 1 << 32, piece):
        x = np.arange(start, start + piece, dtype=np.uint32).view(np.float32)
        x = x[(x >= case.low) & (x <= case.high) & (x != 0)]
        if x.size:
            with np.errstate(all="ignore"):
                check(case, "f32", [x], reference(x.astype(np.float64)), apply(name, x))


def test_subnormals_are_kept() -> None:
    """Results and arguments below the normal range, where scaling in two steps and exponents get delicate."""
    x = np.linspace(-745.1, -708.0, 5000)
    exact = np.exp(x.astype(np.longdouble))
    assert errors(apply("exp", x), exact).max() <= 2
    tiny = (np.arange(1, 5000) * 5e-324).astype(np.float64)
    assert errors(apply("log", tiny), np.log(tiny.astype(np.longdouble))).max() <= 2
    assert errors(apply("cbrt", tiny), np.cbrt(tiny.astype(np.longdouble))).max() <= 2
    for name in ("sin", "tan", "tanh", "expm1", "log1p", "asin", "asinh", "atan", "atanh", "sinh"):
        np.testing.assert_array_equal(apply(name, tiny), tiny, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_angles_next_to_multiples_of_a_quarter_turn(kind: str) -> None:
    """Where the reduction cancels most."""
    dtype = np.float32 if kind == "f32" else np.float64
    turns = np.concatenate([np.arange(1.0, 3000), 10.0 ** np.linspace(4, 30, 3000)])
    x = (np.rint(turns) * (np.pi / 2)).astype(dtype)
    for name, function in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
        exact = exact_values(CASES[name].exact, x[::20])
        error, where = worst(apply(name, x)[::20], exact, [x[::20]])
        assert error <= 2, f"{name} {where}"
        assert errors(apply(name, x), function(x.astype(np.longdouble))).max() <= 2
    hardest = np.array([6381956970095103.0 * 2.0**797, -6381956970095103.0 * 2.0**797])
    if kind == "f64":
        assert errors(apply("cos", hardest), exact_values(CASES["cos"].exact, hardest)).max() <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_angles_next_to_every_quarter_turn_that_is_reduced_in_steps(kind: str) -> None:
    """The nearest float, and its neighbours; in f64 they are within 1e-16 of some multiples."""
    dtype, wider = (np.float32, np.float64) if kind == "f32" else (np.float64, np.longdouble)
    half_pi = np.longdouble(math.pi / 2) + np.longdouble(6.123233995736766e-17)
    nearest = (np.arange(1, 2**20 * 2 // 3) * half_pi).astype(dtype)
    for x in (np.nextafter(nearest, dtype(0)), nearest, np.nextafter(nearest, dtype(np.inf))):
        for name, function in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
            exact = function(x.astype(wider))
            for has_fma in FMA:
                error, where = worst(apply(name, x, has_fma=has_fma), exact, [x])
                assert error <= 1.5, f"{name} {where}, {has_fma=}"


@pytest.mark.parametrize("kind", KINDS)
def test_angles_that_are_reduced_by_products(kind: str) -> None:
    """The nearest numbers to multiples of a quarter turn, and the ends of the range; in the company of any others."""
    dtype = np.float32 if kind == "f32" else np.float64
    random = np.random.default_rng(3)
    turns = np.unique((2.0 ** random.uniform(19.5, 42, 800)).astype(np.int64))
    with mp.workprec(160):
        nearest = np.array([float(int(turn) * mp.pi / 2) for turn in turns])
    ends = np.array([2.0**20, 2.0**42])
    x = np.concatenate([nearest, np.nextafter(ends, 0), ends, random.uniform(2.0**20, 2.0**42, 200)]).astype(dtype)
    x = np.concatenate([x, -x])
    others = np.where(np.arange(2 * x.size) % 2, np.repeat(x, 2), dtype(1e30))
    for name in ("sin", "cos", "tan"):
        exact = exact_values(CASES[name].exact, x)
        for has_fma in FMA:
            found = apply(name, x, has_fma=has_fma)
            error, where = worst(found, exact, [x])
            assert error <= 2, f"{name} {where}, {has_fma=}"
            np.testing.assert_array_equal(apply(name, others, has_fma=has_fma)[1::2], found)
            alone = [apply(name, np.array([angle, *[0.5] * 15], dtype), has_fma=has_fma)[0] for angle in x[::40]]
            np.testing.assert_array_equal(alone, found[::40])
