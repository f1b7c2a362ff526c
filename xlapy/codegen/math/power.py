"""pow, cbrt, sqrt and rsqrt."""

from __future__ import annotations

from xlapy.codegen.ir import F32, F64, KernelBuilder, Value
from xlapy.codegen.math.coefficients import CBRT
from xlapy.codegen.math.common import (
    INFINITY,
    NAN,
    horner,
    is_integral,
    power_of_two,
    round_to_integer,
    sign_bit,
    split_exponent,
    two_product,
)
from xlapy.codegen.math.exponential import exp2_of_sum
from xlapy.codegen.math.logarithm import log2_double, log2_for_single

_CBRT_2 = 2.0 ** (1.0 / 3.0)
# Powers of two whose exponents are beyond this overflow or vanish.
_LARGEST_EXPONENT = 1100.0


def sqrt(k: KernelBuilder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return k.sqrt(x)


def rsqrt(k: KernelBuilder, x: Value) -> Value:
    """1 / sqrt(x)"""
    return k.div(1.0, k.sqrt(x))


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
    """x^y as IEEE 754 defines pow."""
    magnitude = k.fabs(x)
    ordinary = k.and_(k.compare("gt", magnitude, 0.0), k.compare("lt", magnitude, INFINITY))
    base = k.select(ordinary, magnitude, 1.0)
    result = _single_power(k, base, y) if x.type.kind == "f32" else _double_power(k, base, y)
    one = k.const(x.type, 1.0)

    # Zeros and infinities, as base or as exponent: growing to infinity or shrinking to zero.
    extreme = k.or_(k.not_(ordinary), k.compare("eq", k.fabs(y), INFINITY))
    grows = k.xor(k.compare("gt", magnitude, 1.0), k.compare("lt", y, 0.0))
    limit = k.select(grows, k.const(x.type, INFINITY), 0.0)
    result = k.select(extreme, k.select(k.compare("eq", magnitude, 1.0), one, limit), result)

    integral = is_integral(k, y)
    odd = k.and_(integral, k.not_(is_integral(k, k.mul(y, 0.5))))
    result = k.select(k.and_(odd, sign_bit(k, x)), k.neg(result), result)
    no_power = k.and_(k.and_(k.compare("lt", x, 0.0), k.compare("gt", x, -INFINITY)), k.not_(integral))
    result = k.select(k.or_(no_power, k.unordered(x, y)), NAN, result)
    return k.select(k.or_(k.compare("eq", y, 0.0), k.compare("eq", x, 1.0)), one, result)


def _single_power(k: KernelBuilder, x: Value, y: Value) -> Value:
    """f32 through f64, which has enough digits to need no care."""
    exponent = k.mul(log2_for_single(k, k.fpext(x, F64)), k.fpext(y, F64))
    return k.fptrunc(exp2_of_sum(k, exponent), F32)


def _double_power(k: KernelBuilder, x: Value, y: Value) -> Value:
    high, low = log2_double(k, x)
    product, error = two_product(k, high, y)
    error = k.add(error, k.mul(low, y))
    large = k.compare("ge", k.fabs(product), _LARGEST_EXPONENT)
    return exp2_of_sum(k, product, k.select(large, 0.0, error))
