"""Functions of two arguments that have a published relative error instead of one in ulp, against scipy and mpmath."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.special

from tests.support.accuracy import apply
from xlapy.hlo.evaluate import special

RANDOM = np.random.default_rng(11)
SHAPES = 10.0 ** RANDOM.uniform(-3, 4, 3000)
ARGUMENTS = SHAPES * np.exp(RANDOM.normal(0, 1, 3000) * np.minimum(2, 3 / np.sqrt(SHAPES)))


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest relative error of results that are not about to vanish."""
    significant = np.abs(expected) > 1e-280
    return float(np.max(np.abs(got - expected)[significant] / np.abs(expected)[significant]))


@pytest.mark.parametrize(
    ("name", "reference"), [("igamma", scipy.special.gammainc), ("igammac", scipy.special.gammaincc)]
)
def test_incomplete_gamma(name: str, reference: np.ufunc) -> None:
    expected = reference(SHAPES, ARGUMENTS)
    got = apply(name, SHAPES, ARGUMENTS)
    assert np.max(np.abs(got - expected)) < 2e-13
    assert relative(got, expected) < 1e-10
    single = apply(name, SHAPES.astype(np.float32), ARGUMENTS.astype(np.float32))
    assert np.max(np.abs(single - reference(SHAPES.astype(np.float32), ARGUMENTS.astype(np.float32)))) < 1e-6


def _slope(a: float, x: float) -> mp.mpf:
    """dP/da, by a symmetric difference in many digits."""
    a, x, step = mp.mpf(a), mp.mpf(x), mp.mpf(a) * mp.mpf(2) ** -50
    above, below = (mp.gammainc(b, 0, x, regularized=True) for b in (a + step, a - step))
    return (above - below) / (2 * step)


def test_derivatives_of_the_incomplete_gamma_function() -> None:
    a, x = SHAPES[:80], ARGUMENTS[:80]
    with mp.workprec(200):
        slopes = [_slope(*pair) for pair in zip(a, x, strict=True)]
        density = [mp.mpf(v) ** (u - 1) * mp.exp(-v) / mp.gamma(u) for u, v in zip(a, x, strict=True)]
        samples = np.array([float(-s / d) for s, d in zip(slopes, density, strict=True)])
        expected = np.array([float(s) for s in slopes])
    assert relative(apply("igamma_grad_a", a, x), expected) < 1e-11
    assert relative(apply("random_gamma_grad", a, x), samples) < 1e-11


FAR_OUT = np.array(
    [
        (1e-12, 0.9, -0.2601839393264913, 575954303976.1864, 0.9999999999997398),
        (1e-09, 1.5, -0.10001958267336562, 672385005.0697559, 0.9999999998999805),
        (0.001, 700.0, -1.4266790230882356e-307, 1005.6948482153811, 1.0),
        (2.5, 600.0, -1.6730702583938616e-256, 5.709691520338854, 1.0),
        (10.0, 1e-20, -1.3338694457933092e-205, 4.840345444894763e-20, 2.7557319223985875e-207),
        (40.0, 0.001, -1.2989998092576906e-167, 0.0002652335503050877, 1.22442229823491e-168),
        (40.0, 800.0, -9.451991741719277e-281, 3.1636209311472117, 1.0),
        (300.0, 30.0, -1.0713157935645655e-184, 0.25596382556601494, 4.6485608914435285e-185),
    ]
)
"""a, x, dP/da, -(dP/da) / (dP/dx) and P by mpmath in 2600 bits: x is nothing beside a there, or a beside x, or a is so
small that digamma(a) says little but -1/a."""


def test_incomplete_gamma_functions_far_out() -> None:
    a, x, *expected = FAR_OUT.T
    for name, exact in zip(("igamma_grad_a", "random_gamma_grad", "igamma"), expected, strict=True):
        reference = np.vectorize(special.FUNCTIONS[name.replace("_", "-")])
        for got in (apply(name, a, x), reference(a, x)):
            np.testing.assert_allclose(got, exact, rtol=1e-12, err_msg=name)


def test_zeta() -> None:
    s, q = 1 + 10.0 ** RANDOM.uniform(-2, 1.5, 200), 10.0 ** RANDOM.uniform(-2, 3, 200)
    with mp.workprec(250):
        expected = np.array([float(mp.zeta(mp.mpf(u), mp.mpf(v))) for u, v in zip(s, q, strict=True)])
    assert relative(apply("zeta", s, q), expected) < 1e-13


def test_zeta_of_negative_numbers_is_the_sum_to_the_right() -> None:
    q = -(10.0 ** RANDOM.uniform(-1, 2, 100))
    s = np.floor(RANDOM.uniform(2, 8, 100))
    whole = -np.floor(q)
    expected = np.array(
        [
            sum((a + i) ** -b for i in range(int(n))) + scipy.special.zeta(b, a + n)
            for a, b, n in zip(q, s, whole, strict=True)
        ]
    )
    assert np.max(np.abs(apply("zeta", s, q) - expected) / np.maximum(1, np.abs(expected))) < 1e-12


def test_polygamma() -> None:
    n, x = np.floor(RANDOM.uniform(0, 10, 500)), 10.0 ** RANDOM.uniform(-2, 3, 500)
    expected = np.array([float(scipy.special.polygamma(int(u), v)) for u, v in zip(n, x, strict=True)])
    assert np.max(np.abs(apply("polygamma", n, x) - expected) / np.maximum(1, np.abs(expected))) < 1e-12


def _single_errors(name: str, arguments: list[np.ndarray], expected: list[mp.mpf]) -> np.ndarray:
    """In ulp of an f32."""
    got = apply(name, *arguments)
    nearest = np.array([float(value) for value in expected])
    return np.asarray(np.abs(got - nearest) / np.spacing(np.abs(nearest).astype(np.float32)))


def test_zeta_of_single_floats_is_all_but_correctly_rounded() -> None:
    """Sums of fewer terms, of powers with fewer digits, for s and q of all sizes; and of negative q in full."""
    s = (1 + 10.0 ** RANDOM.uniform(-2, 2.2, 400)).astype(np.float32)
    q = (10.0 ** RANDOM.uniform(-0.3, 3, 400)).astype(np.float32)
    with mp.workprec(250):
        expected = [mp.zeta(mp.mpf(float(u)), mp.mpf(float(v))) for u, v in zip(s, q, strict=True)]
    normal = np.array([value > 1e-37 for value in expected])
    assert np.max(_single_errors("zeta", [s, q], expected)[normal]) < 0.6
    s, q = np.full(40, 3, np.float32), -np.arange(0.5, 40).astype(np.float32)
    with mp.workprec(250):
        expected = [mp.zeta(3, mp.mpf(0.5)) - sum((mp.mpf(i) + 0.5) ** -3 for i in range(n + 1)) for n in range(40)]
    got, full = apply("zeta", s, q), apply("zeta", s.astype(np.float64), q.astype(np.float64))
    np.testing.assert_array_equal(got, full.astype(np.float32))
    assert np.max(np.abs(full - np.array([float(value) for value in expected]))) < 1e-12


def test_polygamma_of_single_floats_is_all_but_correctly_rounded() -> None:
    n = np.floor(RANDOM.uniform(1, 8, 300)).astype(np.float32)
    x = (10.0 ** RANDOM.uniform(-2, 3, 300)).astype(np.float32)
    with mp.workprec(250):
        expected = [mp.psi(int(u), mp.mpf(float(v))) for u, v in zip(n, x, strict=True)]
    normal = np.array([abs(value) > 1e-37 for value in expected])
    assert np.max(_single_errors("polygamma", [n, x], expected)[normal]) < 0.6
