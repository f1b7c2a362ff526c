"""Special functions, from their definitions: series, continued fractions and Newton's method, in f64.

Python's `math` has erfc and lgamma; the rest is computed until its terms no longer matter, with no thought of speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from xlapy.hlo.evaluate.base import align, elementwise, evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type

NEGLIGIBLE = 2.0**-56
"""A term smaller than this part of its sum adds nothing."""

MAX_TERMS = 200_000

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
"""B(2), B(4) ... B(20)"""

ASYMPTOTIC = 16.0
"""Sums over Bernoulli numbers hold from here on."""

Number = TypeVar("Number", float, complex)


def scalar(function: Callable[..., float]) -> Callable[..., Array]:
    """A function of Python floats for arrays. NaN operands give NaN; poles and overflows are the function's affair."""

    def each(*operands: float) -> float:
        return math.nan if any(map(math.isnan, operands)) else function(*operands)

    vectorized = np.vectorize(each, otypes=[np.float64])

    def apply(*arrays: Array) -> Array:
        wide = [array.astype(np.float64) for array in arrays]
        return np.asarray(vectorized(*wide)).astype(arrays[0].dtype)

    return apply


# -- error function ------------------------------------------------------------------------------------------------


def erfc(x: float) -> float:
    return math.erfc(x)


def erf_inv(x: float) -> float:
    """Newton's method with Halley's correction. Near the ends it solves for 1 - |x|, which is exact."""
    size = abs(x)
    if size >= 1:
        return math.copysign(math.inf, x) if size == 1 else math.nan
    if size < SMALL_ERF:
        return x * math.sqrt(math.pi) / 2
    y = _rough_erf_inv(size)
    for _ in range(4):
        error = math.erf(y) - size if size < 0.5 else (1 - size) - math.erfc(y)
        step = error / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        y -= step / (1 + y * step)
    return math.copysign(y, x)


SMALL_ERF = 1e-9
"""Below it erf(x) is 2 x / sqrt(pi)."""


def _rough_erf_inv(x: float) -> float:
    """Good to a few thousandths: the inverse of erf(x)^2 ~ 1 - e^(-x^2 (4/pi + a x^2) / (1 + a x^2))."""
    a = 0.147
    logarithm = math.log1p(-x * x)
    middle = 2 / (math.pi * a) + logarithm / 2
    return math.sqrt(math.sqrt(middle * middle - logarithm / a) - middle)


# -- gamma function ------------------------------------------------------------------------------------------------


def lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and _is_whole(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def _is_whole(x: float) -> bool:
    return math.isinf(x) or x == math.floor(x)


_LARGE = 1e10
"""Beside the logarithm of more, the rest of the expansion is lost."""


def digamma(x: float) -> float:
    """Reflected to positive numbers, moved up by digamma(x) = digamma(x + 1) - 1/x, and there by its expansion."""
    if x <= 0:
        if _is_whole(x):
            return math.nan
        beyond = x - round(x)  # exact, and all that a tangent of period pi needs to know
        return digamma(1 - x) - math.pi / math.tan(math.pi * beyond)
    if math.isinf(x):
        return x
    total = 0.0
    while x < ASYMPTOTIC:
        total -= 1 / x
        x += 1
    tail = sum(number / (2 * k * x ** (2 * k)) for k, number in enumerate(BERNOULLI, start=1)) if x < _LARGE else 0.0
    return total + math.log(x) - 1 / (2 * x) - tail


def zeta(s: float, q: float) -> float:
    """By the Euler-Maclaurin formula; for negative q by the terms that lie on either side of zero."""
    if s <= 1:
        return math.inf if s == 1 else math.nan
    if q == math.inf:
        return 0.0
    integral = _is_whole(s)
    if q <= 0:
        if _is_whole(q):
            return math.inf if q == 0 or (integral and s % 2 == 0) else math.nan
        if not integral or math.isinf(s):
            return math.nan
        return _zeta_across_zero(s, q)
    if math.isinf(s):
        return 1.0 if q == 1 else (0.0 if q > 1 else math.inf)
    return _zeta_of_positive(s, q)


def _zeta_across_zero(s: float, q: float) -> float:
    """(q + i)^s changes its sign with that of q + i where s is odd. The first one above 0 may be all but 1."""
    fraction = q - math.floor(q)
    sign = 1.0 if s % 2 == 0 else -1.0
    below = _zeta_of_positive(s, math.ceil(q) - q) - _zeta_of_positive(s, 1 - q)
    return _zeta_of_positive(s, fraction) + sign * below


def _zeta_of_positive(s: float, q: float) -> float:
    total = 0.0
    start = ASYMPTOTIC + s
    while q < start:
        term = _power(q, -s)
        total += term
        if math.isinf(term) or term <= total * NEGLIGIBLE:
            return total
        q += 1
    last = _power(q, -s)
    total += last * (q / (s - 1) + 0.5)
    factor = last * s / q
    for k, number in enumerate(BERNOULLI, start=1):
        total += number / math.factorial(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (q * q)
    return total


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def polygamma(n: float, x: float) -> float:
    """(-1)^(n + 1) n! zeta(n + 1, x), NaN where n! is infinite and the other factor 0"""
    if n < 0 or not _is_whole(n) or math.isinf(n):
        return math.nan
    if n == 0:
        return digamma(x)
    try:
        factorial = math.exp(math.lgamma(n + 1))
    except OverflowError:
        factorial = math.inf
    size = factorial * zeta(n + 1, x)
    return size if n % 2 else -size


# -- incomplete gamma functions ------------------------------------------------------------------------------------


def igamma(a: float, x: float) -> float:
    """P(a, x)"""
    if not _is_in_domain(a, x):
        return math.nan
    if x in (0, math.inf):
        return 0.0 if x == 0 else 1.0
    return _lower_series(a, x) if x <= a + 1 else 1 - _upper_fraction(a, x)


def igammac(a: float, x: float) -> float:
    """Q(a, x)"""
    if not _is_in_domain(a, x):
        return math.nan
    if x in (0, math.inf):
        return 1.0 if x == 0 else 0.0
    return 1 - _lower_series(a, x) if x <= a + 1 else _upper_fraction(a, x)


def _is_in_domain(a: float, x: float) -> bool:
    return 0 < a < math.inf and x >= 0


def _gamma_density(a: float, x: float) -> float:
    """x^a e^-x / gamma(a); where a is large through x / a, so that large terms do not cancel."""
    if a <= ASYMPTOTIC:
        return math.exp(a * math.log(x) - x - math.lgamma(a))
    away = (x - a) / a
    logarithm = math.log1p(away) if away > -0.5 else math.log(x) - math.log(a)
    rest = sum(b / (2 * k * (2 * k - 1) * a ** (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))
    return math.sqrt(a / (2 * math.pi)) * math.exp(a * (logarithm - away) - rest)


def _lower_series(a: float, x: float) -> float:
    """x^a e^-x / gamma(a + 1) (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...)"""
    term = total = 1 / a
    for n in range(1, MAX_TERMS):
        term *= x / (a + n)
        total += term
        if term <= total * NEGLIGIBLE:
            break
    return _gamma_density(a, x) * total


def _upper_fraction(a: float, x: float) -> float:
    return _gamma_density(a, x) / _fraction(a, x)


def _fraction(a: Number, x: float) -> Number:
    """x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...), by which x^a e^-x / gamma(a) is divided."""
    return continued_fraction(x + 1 - a, lambda n: (n * (a - n), x + 2 * n + 1 - a))


def continued_fraction(first: Number, part: Callable[[int], tuple[Number, Number]]) -> Number:
    """first + a1 / (b1 + a2 / (b2 + ...)) with (a, b) of `part(n)`, by Lentz's method. Complex numbers whose imaginary
    parts are tiny carry a derivative along, which has to settle, too."""
    tiny = 1e-300
    value = c = first or tiny
    d: Number = 0.0
    for n in range(1, MAX_TERMS):
        numerator, denominator = part(n)
        d = 1 / ((denominator + numerator * d) or tiny)
        c = (denominator + numerator / c) or tiny
        change = c * d
        value *= change
        is_steady = abs(change.imag * value.real) <= 4 * NEGLIGIBLE * abs(value.imag)
        if is_steady and abs(change - 1) <= 4 * NEGLIGIBLE:
            break
    return value


TINY_STEP = 1e-150
"""f(a + i h) is f(a) + i h f'(a) for an h whose square is nothing beside 1."""


def _slope_over_density(a: float, x: float) -> float:
    """dP/da divided by x^a e^-x / gamma(a): of the series term by term, or of Q = that / fraction, whichever has no
    terms of both signs."""
    growth = math.log(x) - digamma(a + 1)
    if x > a + 1:
        fraction = _fraction(complex(a, TINY_STEP), x)
        return (fraction.imag / TINY_STEP / fraction.real - growth - 1 / a) / fraction.real
    weight = 1 / a
    total = weight * growth
    for n in range(1, MAX_TERMS):
        growth -= 1 / (a + n)
        weight *= x / (a + n)
        term = weight * growth
        total += term
        if abs(term) <= abs(total) * NEGLIGIBLE:
            break
    return total


def igamma_grad_a(a: float, x: float) -> float:
    """dP/da"""
    if not _is_in_domain(a, x):
        return math.nan
    return 0.0 if x in (0, math.inf) else _gamma_density(a, x) * _slope_over_density(a, x)


def random_gamma_grad(a: float, x: float) -> float:
    """-(dP/da) / (dP/dx), from both of which the density is left out: far out it is none."""
    if not _is_in_domain(a, x) or math.isinf(x):
        return math.nan
    return 0.0 if x == 0 else -x * _slope_over_density(a, x)


# -- beta function -------------------------------------------------------------------------------------------------


def regularized_incomplete_beta(a: float, b: float, x: float) -> float:
    """By the continued fraction of whichever of I_x(a, b) and 1 - I_(1-x)(b, a) converges fast."""
    if not (a > 0 and b > 0 and 0 <= x <= 1) or math.isinf(a) or math.isinf(b):
        return math.nan
    if x in (0, 1):
        return x
    if x < (a + 1) / (a + b + 2):
        return _beta_fraction(a, b, x)
    return 1 - _beta_fraction(b, a, 1 - x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """x^a (1-x)^b / (a B(a, b)) / (1 + d1 / (1 + d2 / (1 + ...)))"""

    def part(n: int) -> tuple[float, float]:
        m = n // 2
        if n % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0

    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) / a / continued_fraction(1.0, part)


# -- Bessel functions ----------------------------------------------------------------------------------------------


def bessel_i0e(x: float) -> float:
    return _scaled_bessel(0, abs(x))


def bessel_i1e(x: float) -> float:
    return math.copysign(_scaled_bessel(1, abs(x)), x)


BESSEL_SPLIT = 40.0
"""From here on the asymptotic expansion is exact; before, the power series needs few terms."""


def _scaled_bessel(order: int, x: float) -> float:
    """e^-x I_order(x)"""
    if math.isinf(x):
        return 0.0
    if x < BESSEL_SPLIT:
        term = total = (x / 2) ** order
        for n in range(1, MAX_TERMS):
            term *= (x / 2) ** 2 / (n * (n + order))
            total += term
            if term <= total * NEGLIGIBLE:
                break
        return total * math.exp(-x)
    term = total = 1.0
    for n in range(1, 30):
        term *= -(4 * order * order - (2 * n - 1) ** 2) / (n * 8 * x)
        total += term
    return total / math.sqrt(2 * math.pi * x)


# -- the rows of the table --------------------------------------------------------------------------------------------


FUNCTIONS: dict[str, Callable[..., float]] = {
    "bessel-i0e": bessel_i0e,
    "bessel-i1e": bessel_i1e,
    "digamma": digamma,
    "erf-inv": erf_inv,
    "erfc": erfc,
    "igamma": igamma,
    "igamma-grad-a": igamma_grad_a,
    "igammac": igammac,
    "lgamma": lgamma,
    "polygamma": polygamma,
    "random-gamma-grad": random_gamma_grad,
    "regularized-incomplete-beta": regularized_incomplete_beta,
    "zeta": zeta,
}
"""By op."""

for _name, _function in FUNCTIONS.items():
    elementwise(_name)(scalar(_function))


@evaluator("next-after")
def next_after(start: Array, end: Array) -> Array:
    """In the type of the operands: the neighbour of a narrow float is far from that of the f32 that holds it."""
    start, end = align(start, end)
    with np.errstate(all="ignore"):
        step = np.nextafter if start.dtype.itemsize > 1 else _next_of_few
        return np.where(start == end, end, step(start, end))  # with the sign of `end`, if both are zero


def _next_of_few(start: Array, end: Array) -> Array:
    """In a type of a byte or less, by a list of all its numbers: some of them have no zero, or only one."""
    numbers = np.arange(256, dtype=np.uint8)[: 1 << element_type(start).bits].view(start.dtype).astype(np.float64)
    ordered = np.unique(numbers[~np.isnan(numbers)])  # has one zero
    x, y = start.astype(np.float64), end.astype(np.float64)
    place = np.searchsorted(ordered, x) + np.where(x < y, 1, -1)
    moved = ordered[np.clip(place, 0, ordered.size - 1)]
    moved = np.where(moved == 0, np.copysign(moved, x), moved)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, moved).astype(start.dtype)
