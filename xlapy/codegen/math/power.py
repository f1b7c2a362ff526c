"""pow, cbrt, sqrt and rsqrt."""

from __future__ import annotations

import math

from xlapy.codegen.ir import F32, F64, IRType, KernelBuilder, Value
from xlapy.codegen.math.coefficients import CBRT, INVERSE_ROOT
from xlapy.codegen.math.common import (
    INFINITY,
    NAN,
    clamp,
    format_of,
    horner,
    is_integral,
    power_of_two,
    round_to_integer,
    sign_bit,
    split_exponent,
    split_normal,
    two_product,
)
from xlapy.codegen.math.exponential import exp_of_pair
from xlapy.codegen.math.logarithm import is_unusual, log_pair
from xlapy.codegen.math.rare import RareFunction

_CBRT_2 = 2.0 ** (1.0 / 3.0)
# e to the power of plus or minus this is a normal number.
_MODERATE = {"f32": 86.0, "f64": 707.0}
# e to the power of this is an infinity, and to minus this a zero, whatever is added that rounding took away.
_EXTREME = {"f32": 120.0, "f64": 800.0}


def sqrt(k: KernelBuilder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return k.sqrt(x)


def rsqrt(k: KernelBuilder, x: Value) -> Value:
    """1 / sqrt(x). An estimate y times the first terms of 1 / sqrt(1 - e) with e = 1 - x y^2, where there are such; of
    zeros and infinities it is right, and e a NaN."""
    if not k.has_estimates:
        return k.div(1.0, k.sqrt(x))
    estimate = k.inverse_root_estimate(x)
    missing = k.fma(k.neg(k.mul(x, estimate)), estimate, 1.0)
    share = k.mul(missing, horner(k, missing, INVERSE_ROOT))
    return k.select(k.is_nan(missing), estimate, k.fma(estimate, share, estimate))


def cbrt(k: KernelBuilder, x: Value) -> Value:
    """The cube root: a polynomial for its mantissa, then one step of Halley's iteration."""
    magnitude = k.fabs(x)
    m, e = split_exponent(k, magnitude)
    third, number = round_to_integer(k, k.mul(e, 1.0 / 3.0))
    rest = k.sub(e, k.mul(third, 3.0))
    below, above = k.compare("lt", rest, 0.0), k.compare("gt", rest, 0.0)
    m = k.mul(m, k.select(below, 0.5, k.select(above, 2.0, k.const(x.type, 1.0))))
    factor = k.select(below, 1.0 / _CBRT_2, k.select(above, _CBRT_2, k.const(x.type, 1.0)))
    start = k.mul(horner(k, split_exponent(k, magnitude)[0], CBRT), factor)
    cube = k.mul(k.mul(start, start), start)
    step = k.div(k.sub(cube, m), k.add(k.add(cube, cube), m))
    root = k.mul(k.sub(start, k.mul(start, step)), power_of_two(k, number, x.type))
    ordinary = k.and_(k.compare("gt", magnitude, 0.0), k.compare("lt", magnitude, INFINITY))
    return k.select(ordinary, k.copysign(root, x), x)


def power(k: KernelBuilder, x: Value, y: Value) -> Value:
    """x^y as IEEE 754 defines pow; a library has it if some lane's base or power is unusual."""
    product, error = _product_of_pair(k, *log_pair(k, k.fabs(x)), y)
    quick = exp_of_pair(k, product, error, moderate=True)
    is_far = k.not_(k.compare("lt", k.fabs(product), _MODERATE[x.type.kind]))
    (result,) = k.if_else(
        k.any_lane(is_unusual(k, x), is_far, bits=x.type.bits),
        lambda: ANY_POWERS[x.type.kind].call(k, x, y, quick),
        lambda: quick,
        likely=False,
    )
    return result


def _product_of_pair(k: KernelBuilder, high: Value, low: Value, y: Value) -> tuple[Value, Value]:
    """(high + low) * y, as a sum of two of which the first is the product with `high`."""
    product, error = two_product(k, high, y)
    return product, k.muladd(low, y, error)


def _any_power(k: KernelBuilder, x: Value, y: Value, quick: Value) -> list[Value]:
    """All powers, given those of usual ones of |x|. Where the bases are unusual for their signs only, as numbers are in
    a matrix of their powers, nothing but signs differs."""
    magnitude = k.fabs(x)
    _, exponent, _ = split_normal(k, magnitude)
    reach = k.mul(k.add(k.fabs(exponent), 0.5), k.fabs(y))
    is_near = k.compare("lt", reach, _MODERATE[x.type.kind] / math.log(2))
    return k.if_else(
        k.any_lane(is_unusual(k, magnitude), k.not_(is_near), bits=x.type.bits),
        lambda: _unusual_power(k, x, y),
        lambda: _with_sign_of_power(k, quick, x, y),
    )


def _with_sign_of_power(k: KernelBuilder, power: Value, x: Value, y: Value) -> Value:
    """What |x|^y makes x^y: for negative x, unless that is infinite, there is none but for integers y."""
    integral = is_integral(k, y)
    odd = k.and_(integral, k.not_(is_integral(k, k.mul(y, 0.5))))
    power = k.select(k.and_(odd, sign_bit(k, x)), k.neg(power), power)
    no_power = k.and_(k.and_(k.compare("lt", x, 0.0), k.compare("gt", x, -INFINITY)), k.not_(integral))
    return k.select(no_power, NAN, power)


def _unusual_power(k: KernelBuilder, x: Value, y: Value) -> Value:
    """The power with all special cases, of overflow and underflow, and of subnormal numbers; usual ones have the same
    bits in any company."""
    form = format_of(x.type)
    magnitude = k.fabs(x)
    ordinary = k.and_(k.compare("gt", magnitude, 0.0), k.compare("lt", magnitude, INFINITY))
    base = k.select(ordinary, magnitude, 1.0)
    small = k.compare("lt", base, form.lowest_normal)
    base = k.select(small, k.mul(base, 2.0 ** (form.mantissa + 1)), base)
    high, low = log_pair(k, base, k.select(small, k.const(x.type, -(form.mantissa + 1.0)), 0.0))
    product, error = _product_of_pair(k, high, low, y)
    # Beyond all limits nothing is left to correct; the product may be infinite, and the error a NaN.
    extreme = _EXTREME[x.type.kind]
    error = k.select(k.compare("lt", k.fabs(product), extreme), error, 0.0)
    result = exp_of_pair(k, clamp(k, product, -extreme, extreme), error)
    one = k.const(x.type, 1.0)

    # Zeros and infinities, as base or as exponent: growing to infinity or shrinking to zero.
    limiting = k.or_(k.not_(ordinary), k.compare("eq", k.fabs(y), INFINITY))
    grows = k.xor(k.compare("gt", magnitude, 1.0), k.compare("lt", y, 0.0))
    limit = k.select(grows, k.const(x.type, INFINITY), 0.0)
    result = k.select(limiting, k.select(k.compare("eq", magnitude, 1.0), one, limit), result)
    result = k.select(k.unordered(x, y), NAN, _with_sign_of_power(k, result, x, y))
    return k.select(k.or_(k.compare("eq", y, 0.0), k.compare("eq", x, 1.0)), one, result)


def _any_power_of(type: IRType) -> RareFunction:
    return RareFunction(f"xlapy.math.any_power.{type.kind}", "powers", _any_power, (type,) * 3, (type,))


ANY_POWERS = {type.kind: _any_power_of(type) for type in (F32, F64)}
