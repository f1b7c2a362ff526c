"""Functions whose results have 8 bits: those of bf16, held as f32.

Their errors before they are rounded are a few times 2^-18, of the result, and the error of an f32 function would be
2^-23: rounded, one is within 0.51 ulp, and the other within 0.5. They take between a third and three quarters of the
time.
"""

from __future__ import annotations

import math

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import (
    BRIEF_EXP2,
    BRIEF_EXP2_ABOVE,
    BRIEF_LOG,
    BRIEF_TANH_ABOVE,
    BRIEF_TANH_BELOW,
    LN2_ROUNDED,
)
from xlapy.codegen.math.common import (
    INFINITY,
    at_most,
    clamp,
    from_lowest,
    horner,
    low_vanishing,
    nearest_exponent,
    nearest_low_exponent,
    nearest_power,
    scale,
    scale_low,
    split_exponent,
    squared,
    vanishing,
)
from xlapy.codegen.math.logarithm import with_specials
from xlapy.codegen.math.quotient import near_quotient
from xlapy.codegen.math.special_coefficients import BRIEF_ERF, BRIEF_ERFCX

# Beyond these e^x is an infinity, or zero.
_EXP_RANGE = (-104.0, 89.0)
# Beyond these the logistic function is zero, or one; and the logarithm of what its divisor is divided by.
_LOGISTIC_RANGE = (-96.0, 16.0)
_LOGISTIC_EXPONENT = 24
# Below this it is less than half of the least subnormal of bf16, which f32 would have to round first.
_LOGISTIC_VANISHES = -93.0
# Beyond these tanh and erf are within half an ulp, 2^-9, of 1, and so are the quotient and the polynomial.
_TANH_LIMIT = 3.5
_ERF_LIMIT = 2.2
# Beyond this erfc vanishes; and what is added to x where its polynomial has a quotient for a variable.
_ERFC_LIMIT = 9.75
_ERFC_OFFSET = 1.5


def exp(k: KernelBuilder, x: Value) -> Value:
    """e^x = 2^n 2^r with n + r = x / ln 2: that is below 2^8, and its error 2^-17 at most."""
    if k.has_scalef:
        return _exp_by_fraction(k, x, None)
    lowest, highest = _EXP_RANGE
    x, _ = from_lowest(k, at_most(k, x, highest), lowest, vanishing(x.type, 1 / math.log(2)))
    n = nearest_exponent(k, x, 1 / math.log(2))
    return scale(k, _rest(k, x, n.whole), n)


def exp_of_low(k: KernelBuilder, x: Value) -> Value:
    """The same for x up to 43, without an upper limit."""
    return _times_exp_of_low(k, x, None)


def _times_exp_of_low(k: KernelBuilder, x: Value, factor: Value | None) -> Value:
    """e^x, times `factor`"""
    if k.has_scalef:
        return _exp_by_fraction(k, x, factor)
    x, _ = from_lowest(k, x, _EXP_RANGE[0], low_vanishing(x.type, 1 / math.log(2)))
    n = nearest_low_exponent(k, x, 1 / math.log(2))
    power = _rest(k, x, n.whole)
    return scale_low(k, power if factor is None else k.mul(power, factor), n)


def _exp_by_fraction(k: KernelBuilder, x: Value, factor: Value | None) -> Value:
    """The same, by instructions that take numbers of any size, for the n below x / ln 2."""
    y, (_, kept) = k.mul(x, 1 / math.log(2)), from_lowest(k, x, _EXP_RANGE[0], 0.0)
    power = horner(k, k.fraction(y), BRIEF_EXP2_ABOVE)
    return k.scalef(power if factor is None else k.mul(power, factor), y, kept)


def _rest(k: KernelBuilder, x: Value, n: Value) -> Value:
    """2^(x / ln 2 - n)"""
    return horner(k, k.muladd(x, 1 / math.log(2), k.neg(n)), BRIEF_EXP2)


def logistic(k: KernelBuilder, x: Value) -> Value:
    """1 / (1 + e^-x), of which the sum is made so much smaller that it is finite while its inverse counts."""
    if k.has_scalef:
        return _logistic_by_fraction(k, x)
    x = clamp(k, x, *_LOGISTIC_RANGE)
    y = k.muladd(x, -1 / math.log(2), k.const(x.type, -_LOGISTIC_EXPONENT))
    n, power = nearest_power(k, y, 1.0, 0)
    part = k.mul(power, horner(k, k.sub(y, n), BRIEF_EXP2))
    unit = 2.0**-_LOGISTIC_EXPONENT
    below = k.select(k.compare("lt", x, _LOGISTIC_VANISHES), INFINITY, k.add(part, unit))
    return k.div(unit, below)


def _logistic_by_fraction(k: KernelBuilder, x: Value) -> Value:
    """The same, by instructions that take numbers of any size. Where it vanishes nothing is subnormal on the way."""
    kept = k.not_(k.compare("lt", x, _LOGISTIC_VANISHES))
    reached = at_most(k, x, _LOGISTIC_RANGE[1])
    y = k.muladd(reached, -1 / math.log(2), k.const(x.type, -_LOGISTIC_EXPONENT))
    unit = 2.0**-_LOGISTIC_EXPONENT
    part = k.scalef(horner(k, k.fraction(y), BRIEF_EXP2_ABOVE), y, kept)
    return k.select(kept, near_quotient(k, unit, k.add(part, unit)), 0.0)


def log(k: KernelBuilder, x: Value) -> Value:
    """e ln 2 + f P(f) with x = 2^e (1 + f)"""
    m, e = split_exponent(k, x)
    f = k.sub(m, 1.0)
    return with_specials(k, x, k.muladd(e, LN2_ROUNDED, k.mul(f, horner(k, f, BRIEF_LOG))))


def tanh(k: KernelBuilder, x: Value) -> Value:
    """x P(x^2) / Q(x^2)"""
    x = clamp(k, x, -_TANH_LIMIT, _TANH_LIMIT)
    z = squared(k, x)
    return near_quotient(k, k.mul(x, horner(k, z, BRIEF_TANH_ABOVE)), horner(k, z, BRIEF_TANH_BELOW))


def erf(k: KernelBuilder, x: Value) -> Value:
    """x P(x^2)"""
    x = clamp(k, x, -_ERF_LIMIT, _ERF_LIMIT)
    return k.mul(x, horner(k, squared(k, x), BRIEF_ERF))


def erfc(k: KernelBuilder, x: Value) -> Value:
    """e^(-x^2) P(1 - 3 q) q with q = 1 / (|x| + 3/2), or 2 less that for negative x. Squares of bf16 are exact."""
    magnitude = at_most(k, k.fabs(x), _ERFC_LIMIT)
    q = k.div(1.0, k.add(magnitude, _ERFC_OFFSET))
    t = k.muladd(q, -2 * _ERFC_OFFSET, k.const(x.type, 1.0))
    factor = k.select(k.compare("ge", magnitude, _ERFC_LIMIT), 0.0, k.mul(q, horner(k, t, BRIEF_ERFCX)))
    tail = _times_exp_of_low(k, k.neg(squared(k, magnitude)), factor)
    return k.select(k.compare("lt", x, 0.0), k.sub(2.0, tail), tail)
