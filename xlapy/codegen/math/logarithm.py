"""log, log1p and log2.

x = 2^e (1 + f),  sqrt(1/2) < 1 + f < sqrt(2),  s = f / (2 + f)
log(1 + f) = f - f^2/2 + s (f^2/2 + R),  R = log((1 + s) / (1 - s)) / s - 2
"""

from __future__ import annotations

import math

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import LN2, LOG, LOG2_E, LOG2_E_DOUBLE, LOG_TAIL, THIRD_DOUBLE
from xlapy.codegen.math.common import (
    INFINITY,
    NAN,
    format_of,
    horner,
    leading_half,
    quick_two_sum,
    split_exponent,
    two_product,
    two_sum,
)


def _half_square_and_rest(k: KernelBuilder, f: Value) -> tuple[Value, Value]:
    """f^2/2, and what then makes f - f^2/2 into log(1 + f)."""
    half_square = k.mul(k.mul(f, f), 0.5)
    s = k.div(f, k.add(f, 2.0))
    z = k.mul(s, s)
    return half_square, k.mul(s, k.muladd(z, horner(k, z, LOG), half_square))


def _with_specials(k: KernelBuilder, x: Value, result: Value) -> Value:
    """The logarithm where x is positive and finite is `result`."""
    result = k.select(k.compare("lt", x, INFINITY), result, x)
    return k.select(k.compare("gt", x, 0.0), result, k.select(k.compare("eq", x, 0.0), k.const(x.type, -INFINITY), NAN))


def _combined(k: KernelBuilder, e: Value, f: Value, low: Value | None = None) -> Value:
    """e ln 2 + log(1 + f) + low, the small terms first."""
    ln2_high, ln2_low = LN2[f.type.kind]
    half_square, rest = _half_square_and_rest(k, f)
    small = k.muladd(e, ln2_low, rest)
    if low is not None:
        small = k.add(small, low)
    return k.sub(k.mul(e, ln2_high), k.sub(k.sub(half_square, small), f))


def log(k: KernelBuilder, x: Value) -> Value:
    """The natural logarithm."""
    m, e = split_exponent(k, x)
    return _with_specials(k, x, _combined(k, e, k.sub(m, 1.0)))


def log1p(k: KernelBuilder, x: Value) -> Value:
    """log(1 + x), accurate for small x."""
    return log1p_of_sum(k, x, None)


def log1p_of_sum(k: KernelBuilder, x: Value, low: Value | None) -> Value:
    """log(1 + x + low), where `low` holds what x is too short for; what 1 + x loses is added at the end too."""
    total, error = two_sum(k, k.const(x.type, 1.0), x)
    if low is not None:
        error = k.add(error, low)
    m, e = split_exponent(k, total)
    f = k.sub(m, 1.0)
    result = _with_specials(k, total, _combined(k, e, f, k.div(error, total)))
    tiny = 2.0 ** -(format_of(x.type).mantissa + 2)
    return k.select(k.compare("lt", k.fabs(x), tiny), x, result)


def log2(k: KernelBuilder, x: Value) -> Value:
    """The logarithm to base 2, exact for powers of two; the leading halves are multiplied without rounding."""
    scale_high, scale_low = LOG2_E[x.type.kind]
    m, e = split_exponent(k, x)
    f = k.sub(m, 1.0)
    half_square, rest = _half_square_and_rest(k, f)
    high = leading_half(k, k.sub(f, half_square))
    low = k.add(k.sub(k.sub(f, high), half_square), rest)
    value_low = k.add(k.mul(k.add(low, high), scale_low), k.mul(low, scale_high))
    total, error = two_sum(k, e, k.mul(high, scale_high))
    return _with_specials(k, x, k.add(total, k.add(error, value_low)))


def log2_double(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """log2 of a positive finite f64 as a sum of two, to 2^-64 of its value; what pow needs.

    log(1 + f) = 2 s (1 + s^2 (1/3 + s^2 T)); s, s^2 and all but T are pairs."""
    m, e = split_exponent(k, x)
    f = k.sub(m, 1.0)
    below, below_low = quick_two_sum(k, 2.0, f)
    s = k.div(f, below)
    product, product_low = two_product(k, s, below)
    s_low = k.div(k.sub(k.sub(k.sub(f, product), product_low), k.mul(s, below_low)), below)
    z, z_low = two_product(k, s, s)
    z_low = k.add(z_low, k.mul(k.mul(s, s_low), 2.0))
    inner, inner_low = two_product(k, z, horner(k, z, LOG_TAIL))
    c, c_low = quick_two_sum(k, THIRD_DOUBLE[0], inner)
    c_low = k.add(c_low, k.add(inner_low, THIRD_DOUBLE[1]))
    t, t_low = two_product(k, z, c)
    t_low = k.add(t_low, k.add(k.mul(z, c_low), k.mul(z_low, c)))
    t, t_low = quick_two_sum(k, t, t_low)
    st, st_low = two_product(k, s, t)
    st_low = k.add(st_low, k.add(k.mul(s, t_low), k.mul(s_low, t)))
    high, low = quick_two_sum(k, s, st)
    low = k.add(low, k.add(st_low, s_low))
    # Twice this, times log2(e).
    scaled, scaled_low = two_product(k, high, 2 * LOG2_E_DOUBLE[0])
    scaled_low = k.add(scaled_low, k.add(k.mul(high, 2 * LOG2_E_DOUBLE[1]), k.mul(low, 2 * LOG2_E_DOUBLE[0])))
    total, error = two_sum(k, e, scaled)
    return quick_two_sum(k, total, k.add(error, scaled_low))


def log2_for_single(k: KernelBuilder, x: Value) -> Value:
    """log2 of a positive finite f64 to about 2^-45, enough for pow of f32."""
    m, e = split_exponent(k, x)
    f = k.sub(m, 1.0)
    s = k.div(f, k.add(f, 2.0))
    z = k.mul(s, s)
    tail = k.muladd(z, horner(k, z, LOG_TAIL["f32"]), 1 / 3)
    logarithm = k.muladd(k.mul(s, z), tail, s)
    return k.muladd(logarithm, 2 / math.log(2), e)
