"""Bessel functions, the Hurwitz zeta function and polygamma."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import (
    BESSEL_I0E_FAR,
    BESSEL_I0E_NEAR,
    BESSEL_I1E_FAR,
    BESSEL_I1E_NEAR,
    EULER_MACLAURIN,
)
from xlapy.codegen.math.common import INFINITY, NAN, horner, is_integral, through_double
from xlapy.codegen.math.exponential import exp
from xlapy.codegen.math.gamma import digamma, lgamma
from xlapy.codegen.math.power import power

# The Bessel functions change from polynomials in x to polynomials in 1/x here.
_BESSEL_SPLIT = 8.0
# Sums of powers go on to this plus s before the Euler-Maclaurin formula takes over, if their terms matter that long.
_ZETA_START = 10.0
_NEGLIGIBLE = 2.0**-58


def _far(k: KernelBuilder, magnitude: Value, table: Sequence[float]) -> Value:
    """A polynomial of 16/x - 1 over sqrt(x)."""
    safe = k.greater(magnitude, _BESSEL_SPLIT)
    return k.div(horner(k, k.sub(k.div(2 * _BESSEL_SPLIT, safe), 1.0), table), k.sqrt(safe))


@through_double
def bessel_i0e(k: KernelBuilder, x: Value) -> Value:
    """e^-|x| times the modified Bessel function of order 0."""
    magnitude = k.fabs(x)
    near = horner(k, k.sub(k.mul(magnitude, 2 / _BESSEL_SPLIT), 1.0), BESSEL_I0E_NEAR)
    result = k.select(k.compare("le", magnitude, _BESSEL_SPLIT), near, _far(k, magnitude, BESSEL_I0E_FAR))
    return k.select(k.is_nan(x), x, result)


@through_double
def bessel_i1e(k: KernelBuilder, x: Value) -> Value:
    """e^-|x| times the modified Bessel function of order 1."""
    magnitude = k.fabs(x)
    near = k.mul(magnitude, horner(k, k.sub(k.mul(magnitude, 2 / _BESSEL_SPLIT), 1.0), BESSEL_I1E_NEAR))
    result = k.select(k.compare("le", magnitude, _BESSEL_SPLIT), near, _far(k, magnitude, BESSEL_I1E_FAR))
    return k.select(k.is_nan(x), x, k.copysign(result, x))


def _zeta_from(k: KernelBuilder, s: Value, q: Value) -> Value:
    """zeta(s, q) for s > 1 and q > 0: single powers first, then the Euler-Maclaurin formula for the rest."""
    start = k.add(s, _ZETA_START)

    def unfinished(values: list[Value]) -> Value:
        return k.any_lane(k.compare("gt", values[2], 0.0))

    def step(values: list[Value]) -> list[Value]:
        total, base, running = values
        low = k.and_(k.compare("gt", running, 0.0), k.compare("lt", base, start))
        term = power(k, base, k.neg(s))
        following = k.select(low, k.add(total, term), total)
        more = k.and_(low, k.compare("gt", term, k.mul(total, _NEGLIGIBLE)))
        return [following, k.select(low, k.add(base, 1.0), base), k.select(more, k.const(s.type, 1.0), 0.0)]

    total, w, _ = k.while_loop(unfinished, step, [k.const(s.type, 0.0), q, k.const(s.type, 1.0)])
    last = power(k, w, k.neg(s))
    total = k.add(total, k.mul(last, k.add(k.div(w, k.sub(s, 1.0)), 0.5)))
    inverse = k.div(1.0, w)
    # s (s + 1) ... (s + 2 i - 2) w^(-s - 2 i + 1), step by step.
    factor = k.mul(k.mul(last, s), inverse)
    for i, coefficient in enumerate(EULER_MACLAURIN):
        total = k.muladd(factor, coefficient, total)
        rising = k.mul(k.mul(k.add(s, 2.0 * i + 1), inverse), k.mul(k.add(s, 2.0 * i + 2), inverse))
        factor = k.mul(factor, rising)
    # Far beyond, every term but the first is lost, and so may be the products.
    return k.select(k.compare("eq", last, 0.0), k.select(k.compare("lt", q, w), total, 0.0), total)


@through_double
def zeta(k: KernelBuilder, s: Value, q: Value) -> Value:
    """The sum of (q + i)^-s over i = 0, 1, 2, ...

    For negative q, with f = q - floor(q): zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q))."""
    valid = k.and_(k.compare("gt", s, 1.0), k.compare("lt", k.fabs(q), INFINITY))
    whole = k.floor(q)
    fraction = k.sub(q, whole)
    integral_q = k.compare("eq", whole, q)
    negative = k.and_(valid, k.compare("lt", q, 0.0))
    safe_s = k.select(valid, s, 2.0)
    start = k.select(negative, k.select(integral_q, 0.5, fraction), k.select(k.compare("gt", q, 0.0), q, 1.0))
    first = _zeta_from(k, safe_s, k.select(valid, start, 1.0))

    def reflected() -> Value:
        mirrored = k.select(negative, k.select(integral_q, 0.5, k.sub(1.0, fraction)), 1.0)
        near = _zeta_from(k, safe_s, mirrored)
        far = _zeta_from(k, safe_s, k.select(negative, k.sub(1.0, q), 1.0))
        difference = k.sub(near, far)
        odd = k.not_(is_integral(k, k.mul(safe_s, 0.5)))
        return k.select(negative, k.add(first, k.select(odd, k.neg(difference), difference)), first)

    (result,) = k.if_else(k.any_lane(negative), reflected, lambda: first)
    integral_s = is_integral(k, s)
    result = k.select(k.and_(negative, k.not_(integral_s)), NAN, result)
    even = k.and_(integral_s, is_integral(k, k.mul(s, 0.5)))
    pole = k.and_(k.compare("le", q, 0.0), integral_q)
    at_pole = k.select(k.or_(even, k.compare("eq", q, 0.0)), k.const(s.type, INFINITY), NAN)
    result = k.select(pole, at_pole, result)
    result = k.select(k.compare("eq", q, INFINITY), 0.0, result)
    result = k.select(k.compare("eq", s, INFINITY), _zeta_at_infinity(k, q), result)
    result = k.select(k.compare("lt", s, 1.0), NAN, result)
    result = k.select(k.compare("eq", s, 1.0), k.const(s.type, INFINITY), result)
    return k.select(k.unordered(s, q), NAN, result)


def _zeta_at_infinity(k: KernelBuilder, q: Value) -> Value:
    """The limit for growing s: q^-s."""
    beyond = k.select(k.compare("gt", q, 1.0), 0.0, k.const(q.type, INFINITY))
    limit = k.select(k.compare("eq", q, 1.0), 1.0, beyond)
    return k.select(k.compare("ge", q, 0.0), limit, NAN)


@through_double
def polygamma(k: KernelBuilder, n: Value, x: Value) -> Value:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x)."""
    zeroth = k.compare("eq", n, 0.0)
    order = k.select(zeroth, 1.0, n)
    size = k.mul(exp(k, lgamma(k, k.add(order, 1.0))), zeta(k, k.add(order, 1.0), x))
    even = is_integral(k, k.mul(order, 0.5))
    result = k.select(zeroth, digamma(k, x), k.select(even, k.neg(size), size))
    defined = k.and_(is_integral(k, n), k.compare("ge", n, 0.0))
    return k.select(defined, result, NAN)
