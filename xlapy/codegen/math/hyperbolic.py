"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import math

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import LN2, LN2_ROUNDED, LOG, SINH, TANH, TANH_PIECES
from xlapy.codegen.math.common import (
    INFINITY,
    NAN,
    at_least,
    at_most,
    clamp,
    format_of,
    horner,
    nearest_power,
    quick_two_sum,
    scale,
    squared,
    two_product,
    two_sum,
    with_sign_of,
)
from xlapy.codegen.math.exponential import reduced_exp
from xlapy.codegen.math.logarithm import log1p_of_any, log_of_sum
from xlapy.codegen.math.quotient import inner_quotient

# tanh is a polynomial up to twice this, which is a bit less than half the logarithm of 2.
_MIDDLE_OF_TANH = 0.173
# Beyond these tanh is 1 to the last bit.
_TANH_LIMIT = {"f32": 10.0, "f64": 20.0}
# Of |x| + 1 behind the leading one, which with its exponent number a piece of tanh.
_PIECE_BITS = 2
# Beyond these sinh and cosh are infinities.
_SINH_LIMIT = {"f32": 90.0, "f64": 711.0}
# From here on x^2 + 1 is x^2, and squares would soon overflow.
_LARGE = {"f32": 2.0**30, "f64": 2.0**60}
# Below these asinh is its argument, to the last bit.
_ASINH_START = {"f32": 2.0**-13, "f64": 2.0**-28}
# Of what acosh takes the root of; less is none.
_LEAST_ROOT = 2.0**-60
# atanh is a polynomial up to here, where the one for logarithms ends.
_SMALL_ATANH = 0.17


def tanh(k: KernelBuilder, x: Value) -> Value:
    """(T + t) / (1 + T t) with t = tanh(r) and T = tanh(n log(2) / 2) = (2^n - 1) / (2^n + 1), where |x| is the sum.

    With a = (2^n + 1) / 2 and b = (2^n - 1) / 2 this is (b + a t) / (a + b t), or just t where n is 0. The dividend is
    1 - t less than the divisor, and taken from that as it was rounded, of which 1 is subtracted exactly: so the
    quotient hardly has its rounding error. For n = 1 that is so only if r is not below 0, and n is rounded such that
    it is not. Of all f32 the largest error is 1.86 ulp; 2.3 with b (1 + t) + 1 for the divisor."""
    if k.module.has_permute and x.type.kind == "f32":
        return _tanh_by_pieces(k, x)
    limit = _TANH_LIMIT[x.type.kind]
    magnitude = k.fabs(x)
    reached = at_most(k, magnitude, limit)
    n, half_power = nearest_power(k, k.sub(reached, _MIDDLE_OF_TANH), 2 / math.log(2), -1)
    # With fma one part will do: what it lacks counts n times, but the larger n is, the less does r matter.
    r = reached
    for part in (LN2_ROUNDED,) if k.has_fma else LN2[x.type.kind]:
        r = k.muladd(n, -part / 2, r)
    square = squared(k, r)
    t = k.muladd(r, k.mul(square, horner(k, square, TANH)), r)
    divisor = k.muladd(k.sub(half_power, 0.5), t, k.add(half_power, 0.5))
    return with_sign_of(k, inner_quotient(k, k.add(k.sub(divisor, 1.0), t), divisor), x)


def _tanh_by_pieces(k: KernelBuilder, x: Value) -> Value:
    """A polynomial of what |x| is above the number where its piece begins, which the first bits of |x| + 1 tell.
    Nothing is divided; of all f32 the largest error is 1.2 ulp."""
    magnitude = at_most(k, k.fabs(x), _TANH_LIMIT["f32"])
    bits = k.to_integer_bits(k.add(magnitude, 1.0))
    piece_start = format_of(x.type).mantissa - _PIECE_BITS
    begin = k.sub(k.bitcast(k.and_(bits, -1 << piece_start), x.type), 1.0)
    above, piece = k.sub(magnitude, begin), k.lshr(bits, piece_start)
    result, *others = (k.lookup(x.type, numbers, piece) for numbers in reversed(TANH_PIECES))
    for coefficient in others:
        result = k.muladd(result, above, coefficient)
    return with_sign_of(k, result, x)


def _half_exp(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """e^|x| / 2 as a sum of two; halved, so that it overflows only with the result."""
    part = reduced_exp(k, clamp(k, k.fabs(x), 0.0, _SINH_LIMIT[x.type.kind]))
    high, low = quick_two_sum(k, 1.0, part.p)
    n = part.n.less_one(k)
    return scale(k, high, n), scale(k, low, n)


def sinh(k: KernelBuilder, x: Value) -> Value:
    """x + x^3 P(x^2) up to 1, else (e^x - e^-x) / 2."""
    z = squared(k, x)
    near = k.muladd(x, k.mul(z, horner(k, z, SINH)), x)
    high, low = _half_exp(k, x)
    far = k.copysign(k.add(high, k.sub(low, k.div(0.25, high))), x)
    return k.select(k.compare("lt", k.fabs(x), 1.0), near, far)


def cosh(k: KernelBuilder, x: Value) -> Value:
    """(e^x + e^-x) / 2"""
    high, low = _half_exp(k, x)
    return k.add(high, k.add(low, k.div(0.25, high)))


def _log1p_of_two(k: KernelBuilder, large: Value, x: Value, a: Value, b: Value) -> Value:
    """log(1 + a + b) for a >= b >= 0, without rounding the sum, or log(2 x) where `large`."""
    above, above_error = quick_two_sum(k, a, b)
    total, error = two_sum(k, k.const(x.type, 1.0), above)
    error = k.add(error, above_error)
    total, error = k.select(large, x, total), k.select(large, 0.0, error)
    logarithm = k.select(k.compare("lt", total, INFINITY), log_of_sum(k, total, error), total)
    return k.add(logarithm, k.select(large, k.const(x.type, LN2_ROUNDED), 0.0))


def asinh(k: KernelBuilder, x: Value) -> Value:
    """log1p(|x| + x^2 / (1 + sqrt(1 + x^2))) with the sign of x; log(2 |x|) for large x."""
    magnitude = k.fabs(x)
    large = k.compare("gt", magnitude, _LARGE[x.type.kind])
    reached = at_least(k, magnitude, _ASINH_START[x.type.kind])
    square = k.mul(reached, reached)
    rest = k.div(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0))
    result = k.copysign(_log1p_of_two(k, large, reached, reached, rest), x)
    return k.select(k.compare("lt", magnitude, _ASINH_START[x.type.kind]), x, result)


def acosh(k: KernelBuilder, x: Value) -> Value:
    """log1p(t + sqrt(2 t + t^2)) with t = x - 1; log(2 x) for large x. What the root is rounded by counts where it is
    most of the result."""
    large = k.compare("gt", x, _LARGE[x.type.kind])
    t = k.sub(x, 1.0)
    square = k.muladd(t, t, k.mul(t, 2.0))
    root = k.sqrt(square)
    rounded, lost = two_product(k, root, root)
    rest = k.div(k.sub(k.sub(square, rounded), lost), at_least(k, k.mul(root, 2.0), _LEAST_ROOT))
    result = _log1p_of_two(k, large, x, root, k.add(t, rest))
    return k.select(k.compare("lt", x, 1.0), NAN, result)


def atanh(k: KernelBuilder, x: Value) -> Value:
    """Half the logarithm of (1 + x) / (1 - x), which for small x is a polynomial."""
    magnitude = k.fabs(x)
    z = squared(k, x)
    near = k.muladd(x, k.mul(k.mul(z, 0.5), horner(k, z, LOG)), x)
    not_small = at_least(k, magnitude, _SMALL_ATANH)
    quotient = k.div(k.mul(not_small, 2.0), k.sub(1.0, not_small))
    far = k.copysign(k.mul(log1p_of_any(k, quotient), 0.5), x)
    far = k.select(k.compare("gt", magnitude, 1.0), NAN, far)
    return k.select(k.compare("lt", magnitude, _SMALL_ATANH), near, far)
