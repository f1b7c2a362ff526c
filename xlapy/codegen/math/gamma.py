"""lgamma, digamma, and the incomplete gamma functions with their derivatives.

f32 goes through f64: these are long sums whose terms cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from xlapy.codegen.ir import KernelBuilder, Operand, Value
from xlapy.codegen.math.coefficients import COS, HALF_PI, SIN
from xlapy.codegen.math.common import INFINITY, NAN, horner, through_double
from xlapy.codegen.math.exponential import exp
from xlapy.codegen.math.logarithm import log, log1p_of_any
from xlapy.codegen.math.special_coefficients import DIGAMMA, STIRLING

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# Asymptotic series are used from here on; smaller arguments are moved up by this much.
_ASYMPTOTIC = 8
_STEPS_LIMIT = 20000.0


def sin_cos_pi(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """sin(pi r) and cos(pi r), where r = x - round(x) is at most 1/2; for f64."""
    r = k.sub(x, k.roundeven(x))
    magnitude = k.fabs(r)
    steep = k.compare("gt", magnitude, 0.25)
    angle = k.mul(k.select(steep, k.sub(0.5, magnitude), magnitude), 2 * HALF_PI[0])
    z = k.mul(angle, angle)
    sine = k.muladd(k.mul(angle, z), horner(k, z, SIN["f64"]), angle)
    cosine = k.add(k.muladd(k.mul(z, z), horner(k, z, COS["f64"]), k.mul(z, -0.5)), 1.0)
    return k.copysign(k.select(steep, cosine, sine), r), k.select(steep, sine, cosine)


class _Shifted(NamedTuple):
    """y = x or x + 8, the product x (x + 1) ... (x + 7) of the steps, or 1, and its derivative, or 0."""

    y: Value
    product: Value
    derivative: Value


def _shifted(k: KernelBuilder, x: Value) -> _Shifted:
    """For positive x: moved to where asymptotic series hold."""
    low = k.compare("lt", x, float(_ASYMPTOTIC))
    product, derivative = x, k.const(x.type, 1.0)
    for step in range(1, _ASYMPTOTIC):
        factor = k.add(x, float(step))
        derivative = k.muladd(derivative, factor, product)
        product = k.mul(product, factor)
    return _Shifted(
        k.select(low, k.add(x, float(_ASYMPTOTIC)), x),
        k.select(low, product, 1.0),
        k.select(low, derivative, 0.0),
    )


def _stirling_rest(k: KernelBuilder, y: Value) -> Value:
    """log(gamma(y)) - (y - 1/2) log(y) + y - log(2 pi) / 2, for y from 8 on."""
    inverse = k.div(1.0, y)
    return k.mul(horner(k, k.mul(inverse, inverse), STIRLING), inverse)


def _log_gamma_positive(k: KernelBuilder, x: Value) -> Value:
    def moved() -> list[Value]:
        shifted = _shifted(k, x)
        return [shifted.y, log(k, shifted.product)]

    is_low = k.any_lane(k.compare("lt", x, float(_ASYMPTOTIC)))
    y, log_of_steps = k.if_else(is_low, moved, lambda: [x, k.const(x.type, 0.0)])
    rest = k.add(_stirling_rest(k, y), k.sub(_HALF_LOG_TWO_PI, log_of_steps))
    result = k.add(k.mul(k.sub(y, 0.5), k.sub(log(k, y), 1.0)), k.sub(rest, 0.5))
    return k.select(k.compare("eq", x, INFINITY), k.const(x.type, INFINITY), result)


def _if_reflected(k: KernelBuilder, x: Value, positive: Value, of_others: Callable[[Value], Value]) -> Value:
    """What `of_others` makes of the value at 1 - x, for all lanes, where x is below 1/2: often there are none."""
    reflected = k.compare("lt", x, 0.5)
    (result,) = k.if_else(
        k.any_lane(reflected), lambda: [k.select(reflected, of_others(positive), positive)], lambda: [positive]
    )
    return result


def _from_one_half(k: KernelBuilder, x: Value) -> Value:
    """x, or 1 - x where x is below 1/2."""
    return k.select(k.compare("lt", x, 0.5), k.sub(1.0, x), x)


def _is_pole(k: KernelBuilder, x: Value) -> Value:
    """Of zero and below, and whole, as all of the largest negative numbers are."""
    return k.and_(k.compare("le", x, 0.0), k.compare("eq", k.truncate(x), x))


@through_double
def lgamma(k: KernelBuilder, x: Value) -> Value:
    """log(|gamma(x)|); infinite at 0, -1, -2, ... and at both infinities."""

    def reflection(positive: Value) -> Value:
        sine, _ = sin_cos_pi(k, x)
        result = k.sub(k.sub(math.log(math.pi), log(k, k.fabs(sine))), positive)
        return k.select(_is_pole(k, x), k.const(x.type, INFINITY), result)

    return _if_reflected(k, x, _log_gamma_positive(k, _from_one_half(k, x)), reflection)


@through_double
def digamma(k: KernelBuilder, x: Value) -> Value:
    """The derivative of log(gamma(x)); a NaN at 0, -1, -2, ..."""

    def reflection(positive: Value) -> Value:
        sine, cosine = sin_cos_pi(k, x)
        result = k.sub(positive, k.div(k.mul(cosine, math.pi), sine))
        return k.select(_is_pole(k, x), NAN, result)

    shifted = _shifted(k, _from_one_half(k, x))
    inverse = k.div(1.0, shifted.y)
    square = k.mul(inverse, inverse)
    series = k.muladd(square, horner(k, square, DIGAMMA), k.mul(inverse, 0.5))
    positive = k.sub(k.sub(log(k, shifted.y), series), k.div(shifted.derivative, shifted.product))
    return _if_reflected(k, x, positive, reflection)


# Incomplete gamma functions


def _prefix(k: KernelBuilder, a: Value, x: Value) -> Value:
    """x^a e^-x / gamma(a); through x/a where a is large, so that large terms do not cancel."""
    small = exp(k, k.sub(k.sub(k.mul(a, log(k, x)), x), _log_gamma_positive(k, a)))
    ratio = k.div(k.sub(x, a), a)
    logarithm = k.select(k.compare("lt", ratio, -0.5), log(k, k.div(x, a)), log1p_of_any(k, ratio))
    exponent = k.sub(k.mul(a, k.sub(logarithm, ratio)), _stirling_rest(k, k.greater(a, float(_ASYMPTOTIC))))
    large = k.mul(k.sqrt(k.mul(a, 1 / (2 * math.pi))), exp(k, exponent))
    return k.select(k.compare("gt", a, float(_ASYMPTOTIC)), large, small)


def iterate(
    k: KernelBuilder,
    active: Value,
    step: Callable[[Sequence[Value]], tuple[Value, Sequence[Value]]],
    start: Sequence[Value],
) -> Sequence[Value]:
    """Repeats `step` until every lane says that it has converged; finished lanes no longer change."""
    counter = k.const(start[0].type, 0.0)
    running = k.select(active, k.const(start[0].type, 1.0), 0.0)

    def unfinished(values: list[Value]) -> Value:
        return k.any_lane(k.compare("gt", values[0], 0.0))

    def body(values: list[Value]) -> list[Value]:
        running, counter, *state = values
        counter = k.add(counter, 1.0)
        more, following = step([counter, *state])
        moving = k.compare("gt", running, 0.0)
        again = k.and_(k.and_(moving, more), k.compare("lt", counter, _STEPS_LIMIT))
        kept = [k.select(moving, new, old) for new, old in zip(following, state, strict=True)]
        return [k.select(again, k.const(counter.type, 1.0), 0.0), counter, *kept]

    return k.while_loop(unfinished, body, [running, counter, *start])[2:]


EPSILON = 2.0**-54


def _series(k: KernelBuilder, a: Value, x: Value, active: Value) -> tuple[Value, Value]:
    """S = 1 + x/(a+1) + x^2/((a+1)(a+2)) + ... and dS/da; P = x^a e^-x / gamma(a + 1) * S."""

    def step(values: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        n, term, term_slope, total, slope = values
        below = k.add(a, n)
        ratio = k.div(x, below)
        term_slope = k.sub(k.mul(term_slope, ratio), k.div(k.mul(term, ratio), below))
        term = k.mul(term, ratio)
        total, slope = k.add(total, term), k.add(slope, term_slope)
        small = k.and_(
            k.compare("le", term, k.mul(total, EPSILON)),
            k.compare("le", k.fabs(term_slope), k.mul(k.fabs(slope), EPSILON)),
        )
        return k.not_(small), [term, term_slope, total, slope]

    one, zero = k.const(a.type, 1.0), k.const(a.type, 0.0)
    _, _, total, slope = iterate(k, active, step, [one, zero, one, zero])
    return total, slope


def _fraction(k: KernelBuilder, a: Value, x: Value, active: Value) -> tuple[Value, Value]:
    """F and d log(F)/da of Q = x^a e^-x / gamma(a) / F, by Lentz's method for

    F = x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))"""

    def step(values: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        n, c, c_slope, d, d_slope, total, log_slope = values
        numerator = k.mul(n, k.sub(a, n))
        constant = k.add(k.sub(x, a), k.add(k.mul(n, 2.0), 1.0))
        below = k.muladd(numerator, d, constant)
        below_slope = k.sub(k.add(k.mul(n, d), k.mul(numerator, d_slope)), 1.0)
        d = k.div(1.0, below)
        d_slope = k.neg(k.mul(k.mul(d, d), below_slope))
        inverse = k.div(1.0, c)
        c_slope = k.sub(k.mul(k.sub(n, k.mul(k.mul(numerator, inverse), c_slope)), inverse), 1.0)
        c = k.muladd(numerator, inverse, constant)
        change = k.mul(c, d)
        slope_change = k.add(k.div(c_slope, c), k.div(d_slope, d))
        log_slope = k.add(log_slope, slope_change)
        near_one = k.compare("le", k.fabs(k.sub(change, 1.0)), 4 * EPSILON)
        steady = k.compare("le", k.fabs(slope_change), k.mul(k.fabs(log_slope), 4 * EPSILON))
        return k.not_(k.and_(near_one, steady)), [c, c_slope, d, d_slope, k.mul(total, change), log_slope]

    start = k.add(k.sub(x, a), 1.0)
    zero = k.const(a.type, 0.0)
    first_slope = k.div(-1.0, start)
    values = iterate(k, active, step, [start, k.const(a.type, -1.0), zero, zero, start, first_slope])
    return values[4], values[5]


class _Parts(NamedTuple):
    """What all incomplete gamma functions are made of, with the domain made safe for the loops."""

    a: Value
    x: Value
    valid: Value
    by_series: Value
    prefix: Value
    total: Value
    total_slope: Value
    fraction: Value
    fraction_log_slope: Value


def _parts(k: KernelBuilder, a: Value, x: Value) -> _Parts:
    valid = k.and_(
        k.and_(k.compare("gt", a, 0.0), k.compare("lt", a, INFINITY)),
        k.and_(k.compare("gt", x, 0.0), k.compare("lt", x, INFINITY)),
    )
    a, x = k.select(valid, a, 1.0), k.select(valid, x, 1.0)
    by_series = k.or_(k.compare("le", x, 1.0), k.compare("le", x, k.add(a, 1.0)))
    total, slope = _series(k, a, k.select(by_series, x, 1.0), by_series)
    by_fraction = k.not_(by_series)
    safe_x = k.select(by_series, k.add(a, 2.0), x)
    fraction, log_slope = _fraction(k, a, safe_x, by_fraction)
    return _Parts(a, x, valid, by_series, _prefix(k, a, x), total, slope, fraction, log_slope)


def _with_limits(
    k: KernelBuilder, a: Value, x: Value, valid: Value, result: Value, limits: tuple[Operand, Operand]
) -> Value:
    """`limits` at x = 0 and x = infinity, NaN outside of a > 0, x >= 0."""
    at_zero, at_infinity = (k.const(a.type, float(v)) if isinstance(v, int | float) else v for v in limits)
    positive = k.and_(k.compare("gt", a, 0.0), k.compare("lt", a, INFINITY))
    edge = k.select(k.compare("eq", x, 0.0), at_zero, NAN)
    edge = k.select(k.compare("eq", x, INFINITY), at_infinity, edge)
    return k.select(valid, result, k.select(positive, edge, NAN))


def _either(k: KernelBuilder, p: _Parts) -> Value:
    """P where the series was used and Q where the fraction was."""
    return k.mul(p.prefix, k.select(p.by_series, k.div(p.total, p.a), k.div(1.0, p.fraction)))


@through_double
def igamma(k: KernelBuilder, a: Value, x: Value) -> Value:
    """P(a, x), the regularized lower incomplete gamma function."""
    p = _parts(k, a, x)
    value = _either(k, p)
    return _with_limits(k, a, x, p.valid, k.select(p.by_series, value, k.sub(1.0, value)), (0.0, 1.0))


@through_double
def igammac(k: KernelBuilder, a: Value, x: Value) -> Value:
    """Q(a, x) = 1 - P(a, x)"""
    p = _parts(k, a, x)
    value = _either(k, p)
    return _with_limits(k, a, x, p.valid, k.select(p.by_series, k.sub(1.0, value), value), (1.0, 0.0))


def _slope_over_prefix(k: KernelBuilder, p: _Parts) -> Value:
    """dP/da divided by x^a e^-x / gamma(a)."""
    growth = k.sub(log(k, p.x), digamma(k, k.add(p.a, 1.0)))  # digamma(a) itself is mostly -1/a where a is small
    of_series = k.div(k.add(k.mul(p.total, growth), p.total_slope), p.a)
    growth_of_rest = k.add(growth, k.div(1.0, p.a))
    of_fraction = k.neg(k.div(k.sub(growth_of_rest, p.fraction_log_slope), p.fraction))
    return k.select(p.by_series, of_series, of_fraction)


@through_double
def igamma_grad_a(k: KernelBuilder, a: Value, x: Value) -> Value:
    """dP(a, x)/da"""
    p = _parts(k, a, x)
    return _with_limits(k, a, x, p.valid, k.mul(p.prefix, _slope_over_prefix(k, p)), (0.0, 0.0))


@through_double
def random_gamma_grad(k: KernelBuilder, a: Value, x: Value) -> Value:
    """dx/da of a sample x of the gamma distribution: -(dP/da) / (dP/dx)."""
    p = _parts(k, a, x)
    return _with_limits(k, a, x, p.valid, k.neg(k.mul(p.x, _slope_over_prefix(k, p))), (0.0, NAN))
