"""Complex functions on pairs of real and imaginary part.

Errors are normwise: small against the absolute value of the result, not against each part. Infinite parts follow C99
where the real functions below carry it through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from xlapy.codegen.ir import F32, F64, IRType, KernelBuilder, Value
from xlapy.codegen.math import exponential, logarithm, power, trigonometric
from xlapy.codegen.math.common import INFINITY, clamp
from xlapy.codegen.math.hyperbolic import cosh as real_cosh
from xlapy.codegen.math.hyperbolic import sinh as real_sinh
from xlapy.codegen.math.rare import RareFunction

# e^x is taken apart as e^(x - step) e^step beyond the limit, because e^x cos(y) may be finite where e^x is not.
_EXP_LIMIT = {"f32": 88.0, "f64": 709.0}
_EXP_STEP = {"f32": 64.0, "f64": 512.0}
# tanh(x + iy) is +-1 to the last bit of its real part beyond.
_TANH_LIMIT = {"f32": 11.0, "f64": 22.0}
# Square roots scale numbers beyond, which may overflow, down, and others up.
LARGE = {"f32": 2.0**100, "f64": 2.0**1000}


class Complex(NamedTuple):
    """A complex value."""

    re: Value
    im: Value


def add(k: KernelBuilder, a: Complex, b: Complex) -> Complex:
    return Complex(k.add(a.re, b.re), k.add(a.im, b.im))


def multiply(k: KernelBuilder, a: Complex, b: Complex) -> Complex:
    """The product, part by part; an infinity times a finite number may give NaNs."""
    re = k.sub(k.mul(a.re, b.re), k.mul(a.im, b.im))
    return Complex(re, k.add(k.mul(a.re, b.im), k.mul(a.im, b.re)))


def divide(k: KernelBuilder, a: Complex, b: Complex) -> Complex:
    """The quotient. An infinite divisor under a finite dividend gives zero, and a zero divisor an infinity, as C99's
    Annex G has it: a library looks into it if some quotient is not finite."""
    quick = _plain_quotient(k, a, b, may_be_by_zero=False)
    is_finite = k.compare("lt", k.add(k.fabs(quick.re), k.fabs(quick.im)), INFINITY)
    re, im = k.if_else(
        k.any_lane(k.not_(is_finite), bits=quick.re.type.bits),
        lambda: ANY_QUOTIENTS[quick.re.type.kind].call(k, *a, *b),
        lambda: quick,
        likely=False,
    )
    return Complex(re, im)


def _plain_quotient(k: KernelBuilder, a: Complex, b: Complex, *, may_be_by_zero: bool = True) -> Complex:
    """By Smith's method: only a quotient of the parts of `b` is squared, so nothing overflows early."""
    steep = k.compare("gt", k.fabs(b.im), k.fabs(b.re))
    large, small = k.select(steep, b.im, b.re), k.select(steep, b.re, b.im)
    ratio = k.div(small, large)
    if may_be_by_zero:
        ratio = k.select(k.compare("eq", large, 0.0), small, ratio)
    below = k.add(large, k.mul(small, ratio))
    # steep: (re r + im, im r - re); else (re + im r, im - re r).
    re = k.select(steep, k.add(k.mul(a.re, ratio), a.im), k.add(a.re, k.mul(a.im, ratio)))
    im = k.select(steep, k.sub(k.mul(a.im, ratio), a.re), k.sub(a.im, k.mul(a.re, ratio)))
    return Complex(k.div(re, below), k.div(im, below))


def any_quotient(k: KernelBuilder, a_re: Value, a_im: Value, b_re: Value, b_im: Value) -> Complex:
    """All quotients; usual ones have the same bits in any company."""
    a, b = Complex(a_re, a_im), Complex(b_re, b_im)
    return _with_special_quotients(k, a, b, _plain_quotient(k, a, b))


def _with_special_quotients(k: KernelBuilder, x: Complex, y: Complex, quotient: Complex) -> Complex:
    def is_infinite(value: Value) -> Value:
        return k.compare("eq", k.fabs(value), INFINITY)

    def is_finite(value: Value) -> Value:
        return k.compare("lt", k.fabs(value), INFINITY)

    undefined = k.and_(k.is_nan(quotient.re), k.is_nan(quotient.im))
    zero_divisor = k.and_(k.compare("eq", y.re, 0.0), k.compare("eq", y.im, 0.0))
    known = k.not_(k.and_(k.is_nan(x.re), k.is_nan(x.im)))
    by_zero = k.and_(zero_divisor, known)
    signed_infinity = k.copysign(k.const(y.re.type, INFINITY), y.re)
    re = k.select(by_zero, k.mul(signed_infinity, x.re), quotient.re)
    im = k.select(by_zero, k.mul(signed_infinity, x.im), quotient.im)

    def unit(value: Value) -> Value:
        return k.copysign(k.select(is_infinite(value), 1.0, k.const(value.type, 0.0)), value)

    large = k.and_(k.or_(is_infinite(x.re), is_infinite(x.im)), k.and_(is_finite(y.re), is_finite(y.im)))
    a, b = unit(x.re), unit(x.im)
    large = k.and_(k.and_(undefined, large), k.not_(by_zero))
    re = k.select(large, k.mul(k.add(k.mul(a, y.re), k.mul(b, y.im)), INFINITY), re)
    im = k.select(large, k.mul(k.sub(k.mul(b, y.re), k.mul(a, y.im)), INFINITY), im)
    small = k.and_(k.or_(is_infinite(y.re), is_infinite(y.im)), k.and_(is_finite(x.re), is_finite(x.im)))
    c, d = unit(y.re), unit(y.im)
    small = k.and_(undefined, small)
    re = k.select(small, k.mul(k.add(k.mul(x.re, c), k.mul(x.im, d)), 0.0), re)
    im = k.select(small, k.mul(k.sub(k.mul(x.im, c), k.mul(x.re, d)), 0.0), im)
    return Complex(re, im)


def _any_quotient_of(type: IRType) -> RareFunction:
    symbol = f"xlapy.math.any_quotient.{type.kind}"
    return RareFunction(symbol, "quotients", any_quotient, (type,) * 4, (type,) * 2)


ANY_QUOTIENTS = {type.kind: _any_quotient_of(type) for type in (F32, F64)}


def absolute(k: KernelBuilder, z: Complex) -> Value:
    """|z|, infinite if either part is."""
    width, height = k.fabs(z.re), k.fabs(z.im)
    large, small = k.greater(width, height), k.lesser(width, height)
    ratio = k.div(small, k.select(k.compare("eq", large, 0.0), 1.0, large))
    ratio = k.select(k.compare("eq", small, large), k.const(large.type, 1.0), ratio)
    result = k.mul(large, k.sqrt(k.muladd(ratio, ratio, k.const(large.type, 1.0))))
    infinite = k.or_(k.compare("eq", width, INFINITY), k.compare("eq", height, INFINITY))
    result = k.select(k.unordered(width, height), math.nan, result)
    return k.select(infinite, INFINITY, result)


def argument(k: KernelBuilder, z: Complex) -> Value:
    """The angle of z."""
    return trigonometric.atan2(k, z.im, z.re)


def exp(k: KernelBuilder, z: Complex) -> Complex:
    """e^re (cos(im) + i sin(im))"""
    kind = z.re.type.kind
    large = k.compare("gt", z.re, _EXP_LIMIT[kind])
    size = exponential.exp(k, k.select(large, k.sub(z.re, _EXP_STEP[kind]), z.re))
    rest = k.select(large, k.const(z.re.type, math.exp(_EXP_STEP[kind])), 1.0)
    # e^-infinity is a zero even where the angle has no sine; elsewhere the zero takes its sign from it.
    vanishing = k.and_(k.compare("eq", z.re, -INFINITY), k.not_(k.compare("lt", k.fabs(z.im), INFINITY)))
    zero = k.const(z.re.type, 0.0)
    cosine = k.select(vanishing, zero, k.mul(k.mul(size, trigonometric.cos(k, z.im)), rest))
    sine = k.select(vanishing, zero, k.mul(k.mul(size, trigonometric.sin(k, z.im)), rest))
    # A real number stays one, even an infinite one.
    return Complex(cosine, k.select(k.compare("eq", z.im, 0.0), z.im, sine))


def expm1(k: KernelBuilder, z: Complex) -> Complex:
    """e^z - 1: expm1(re) cos(im) - 2 sin(im / 2)^2, e^re sin(im)"""
    half = trigonometric.sin(k, k.mul(z.im, 0.5))
    product = k.mul(exponential.expm1(k, z.re), trigonometric.cos(k, z.im))
    near = k.sub(product, k.mul(k.mul(half, half), 2.0))
    whole = exp(k, z)
    # At -infinity the angle does not matter, even if it has no cosine.
    far = k.or_(k.compare("gt", z.re, 1.0), k.compare("eq", z.re, -INFINITY))
    return Complex(k.select(far, k.sub(whole.re, 1.0), near), whole.im)


def log(k: KernelBuilder, z: Complex) -> Complex:
    """log|z| + i angle(z), with log|z| = log(large part) + log1p((small / large)^2) / 2"""
    width, height = k.fabs(z.re), k.fabs(z.im)
    large, small = k.greater(width, height), k.lesser(width, height)
    safe = k.and_(k.compare("gt", large, 0.0), k.compare("lt", large, INFINITY))
    ratio = k.select(safe, k.div(small, k.select(safe, large, 1.0)), 0.0)
    size = k.add(logarithm.log(k, large), k.mul(logarithm.log1p_of_any(k, k.mul(ratio, ratio)), 0.5))
    infinite = k.or_(k.compare("eq", width, INFINITY), k.compare("eq", height, INFINITY))
    size = k.select(k.unordered(width, height), math.nan, size)
    return Complex(k.select(infinite, INFINITY, size), argument(k, z))


def log1p(k: KernelBuilder, z: Complex) -> Complex:
    """log(1 + z), through log1p(re (2 + re) + im^2) / 2 where z is small."""
    moved = Complex(k.add(z.re, 1.0), z.im)
    far = log(k, moved)
    square = k.muladd(z.im, z.im, k.mul(z.re, k.add(z.re, 2.0)))
    small = k.and_(k.compare("lt", k.fabs(z.re), 0.5), k.compare("lt", k.fabs(z.im), 0.5))
    near = k.mul(logarithm.log1p_of_any(k, k.select(small, square, 0.0)), 0.5)
    return Complex(k.select(small, near, far.re), far.im)


def sqrt(k: KernelBuilder, z: Complex) -> Complex:
    """The square root with positive real part: t = sqrt((|re| + |z|) / 2) and im / 2 t, or the other way round."""
    kind = z.re.type.kind
    large = k.compare("gt", k.greater(k.fabs(z.re), k.fabs(z.im)), LARGE[kind])
    # Powers of four, whose roots are exact.
    factor, root = (
        k.select(large, k.const(z.re.type, 0.25), 2.0**60),
        k.select(large, k.const(z.re.type, 2.0), 2.0**-30),
    )
    tiny = k.compare("lt", k.greater(k.fabs(z.re), k.fabs(z.im)), 2.0**-60)
    factor = k.select(k.or_(large, tiny), factor, 1.0)
    root = k.select(k.or_(large, tiny), root, 1.0)
    re, im = k.mul(z.re, factor), k.mul(z.im, factor)
    size = absolute(k, Complex(re, im))
    main = k.sqrt(k.mul(k.add(k.fabs(re), size), 0.5))
    zero = k.compare("eq", main, 0.0)
    other = k.div(k.mul(k.fabs(im), 0.5), k.select(zero, 1.0, main))
    other = k.select(k.compare("eq", k.fabs(re), INFINITY), k.select(k.is_nan(im), im, 0.0), other)
    right = k.compare("ge", re, 0.0)
    infinite = k.compare("eq", k.fabs(im), INFINITY)
    result_re = k.mul(k.select(right, main, other), root)
    result_im = k.mul(k.select(right, other, main), root)
    unknown = k.is_nan(re)
    result_re, result_im = k.select(unknown, re, result_re), k.select(unknown, re, result_im)
    return Complex(k.select(infinite, INFINITY, result_re), k.copysign(k.select(infinite, INFINITY, result_im), z.im))


def rsqrt(k: KernelBuilder, z: Complex) -> Complex:
    """1 / sqrt(z); a zero for an infinite root, even next to a NaN."""
    root = sqrt(k, z)
    inverse = _plain_quotient(k, _one(k, z), root)
    infinite = k.or_(k.compare("eq", k.fabs(root.re), INFINITY), k.compare("eq", k.fabs(root.im), INFINITY))
    zero = k.const(z.re.type, 0.0)
    re, im = k.copysign(zero, root.re), k.copysign(zero, k.neg(root.im))
    return Complex(k.select(infinite, re, inverse.re), k.select(infinite, im, inverse.im))


def cbrt(k: KernelBuilder, z: Complex) -> Complex:
    """The cube root with the smallest angle; real for a positive real number."""
    size = power.cbrt(k, absolute(k, z))
    angle = k.mul(argument(k, z), 1.0 / 3.0)
    return Complex(k.mul(size, trigonometric.cos(k, angle)), k.mul(size, trigonometric.sin(k, angle)))


def tanh(k: KernelBuilder, z: Complex) -> Complex:
    """With t = tan(im), s = sinh(re), b = 1 + t^2: (b s cosh(re) + i t) / (1 + b s^2), after Kahan."""
    kind = z.re.type.kind
    limit = _TANH_LIMIT[kind]
    near_re = clamp(k, z.re, -limit, limit)
    t = trigonometric.tan(k, z.im)
    s = real_sinh(k, near_re)
    b = k.muladd(t, t, k.const(t.type, 1.0))
    bs = k.mul(b, s)
    below = k.muladd(bs, s, k.const(t.type, 1.0))
    near = Complex(k.div(k.mul(bs, real_cosh(k, near_re)), below), k.div(t, below))
    far = k.compare("gt", k.fabs(z.re), limit)
    decay = exponential.exp(k, k.mul(k.fabs(z.re), -2.0))
    rest = k.mul(k.mul(trigonometric.sin(k, z.im), trigonometric.cos(k, z.im)), k.mul(decay, 4.0))
    # At infinity the angle does not matter; elsewhere one without a sine makes both parts NaN.
    has_angle, endless = k.compare("lt", k.fabs(z.im), INFINITY), k.compare("eq", k.fabs(z.re), INFINITY)
    rest = k.select(k.and_(endless, k.not_(has_angle)), 0.0, rest)
    one = k.select(k.or_(has_angle, endless), k.copysign(1.0, z.re), math.nan)
    result_im = k.select(k.compare("eq", z.im, 0.0), z.im, k.select(far, rest, near.im))
    return Complex(k.select(far, one, near.re), result_im)


def sinh(k: KernelBuilder, z: Complex) -> Complex:
    """sinh(re) cos(im) + i cosh(re) sin(im)"""
    x, rest = _taken_apart(k, z.re)
    re = k.mul(k.mul(real_sinh(k, x), trigonometric.cos(k, z.im)), rest)
    im = k.mul(k.mul(real_cosh(k, x), trigonometric.sin(k, z.im)), rest)
    # A zero stays one where the angle has no cosine, and a real number stays one, even an infinite one.
    has_cosine = k.compare("lt", k.fabs(z.im), INFINITY)
    stays = k.and_(k.compare("eq", z.re, 0.0), k.not_(has_cosine))
    return Complex(k.select(stays, z.re, re), k.select(k.compare("eq", z.im, 0.0), z.im, im))


def cosh(k: KernelBuilder, z: Complex) -> Complex:
    """cosh(re) cos(im) + i sinh(re) sin(im)"""
    x, rest = _taken_apart(k, z.re)
    # A real number stays one, even an infinite one, and a zero where the angle has no sine.
    has_sine = k.compare("lt", k.fabs(z.im), INFINITY)
    stays = k.and_(k.compare("eq", z.re, 0.0), k.not_(has_sine))
    vanishing = k.or_(k.compare("eq", z.im, 0.0), stays)
    im = k.mul(k.mul(real_sinh(k, x), trigonometric.sin(k, z.im)), rest)
    real = k.mul(k.copysign(1.0, z.re), k.copysign(0.0, z.im))
    re = k.mul(k.mul(real_cosh(k, x), trigonometric.cos(k, z.im)), rest)
    return Complex(re, k.select(vanishing, real, im))


def _taken_apart(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """A smaller number, and the factor by which its hyperbolic functions are less than those of x: not 1 only where
    these may overflow, and their products with small numbers need not."""
    large = k.compare("gt", k.fabs(x), _EXP_LIMIT[x.type.kind])
    step = _EXP_STEP[x.type.kind]
    smaller = k.select(large, k.sub(x, k.copysign(k.const(x.type, step), x)), x)
    return smaller, k.select(large, k.const(x.type, math.exp(step)), 1.0)


def _turned(k: KernelBuilder, z: Complex) -> Complex:
    """i z"""
    return Complex(k.neg(z.im), z.re)


def _turned_back(k: KernelBuilder, z: Complex) -> Complex:
    """z / i"""
    return Complex(z.im, k.neg(z.re))


def sin(k: KernelBuilder, z: Complex) -> Complex:
    """sinh(i z) / i"""
    return _turned_back(k, sinh(k, _turned(k, z)))


def cos(k: KernelBuilder, z: Complex) -> Complex:
    """cosh(i z)"""
    return cosh(k, _turned(k, z))


def tan(k: KernelBuilder, z: Complex) -> Complex:
    """tanh(i z) / i"""
    return _turned_back(k, tanh(k, _turned(k, z)))


def logistic(k: KernelBuilder, z: Complex) -> Complex:
    """(1 + tanh(z / 2)) / 2 on the right, e^z / (1 + e^z) on the left."""
    half = tanh(k, Complex(k.mul(z.re, 0.5), k.mul(z.im, 0.5)))
    right = Complex(k.muladd(half.re, 0.5, k.const(z.re.type, 0.5)), k.mul(half.im, 0.5))
    grown = exp(k, Complex(k.select(k.compare("lt", z.re, 0.0), z.re, 0.0), z.im))
    left = _plain_quotient(k, grown, Complex(k.add(grown.re, 1.0), grown.im))
    negative = k.compare("lt", z.re, 0.0)
    return Complex(k.select(negative, left.re, right.re), k.select(negative, left.im, right.im))


def complex_power(k: KernelBuilder, z: Complex, w: Complex) -> Complex:
    """e^(w log z) in polar form. Anything to the power 0 is 1, and 1 to any power; 0^w is 0 for a positive real part of
    w, and else has no value."""
    size, angle = absolute(k, z), argument(k, z)
    at_zero = k.compare("eq", size, 0.0)
    log_size = logarithm.log(k, k.select(at_zero, 1.0, size))
    shrinking = _vanishing_product(k, w.im, angle)
    scale = k.mul(power.power(k, size, w.re), exponential.exp(k, k.neg(shrinking)))
    is_within = k.and_(k.compare("gt", scale, 0.0), k.compare("lt", scale, INFINITY))
    together = exponential.exp(k, k.sub(_vanishing_product(k, w.re, log_size), shrinking))
    scale = k.select(is_within, scale, together)  # one factor alone may be too large or too small
    turn = k.add(_vanishing_product(k, w.re, angle), _vanishing_product(k, w.im, log_size))
    re, im = k.mul(scale, trigonometric.cos(k, turn)), k.mul(scale, trigonometric.sin(k, turn))
    im = k.select(k.compare("eq", turn, 0.0), turn, im)  # also where the scale is infinite

    # A size of 0 needs no direction.
    lost = k.and_(k.compare("eq", scale, 0.0), k.not_(k.compare("lt", k.fabs(turn), INFINITY)))
    vanishes = k.or_(lost, k.and_(at_zero, k.compare("gt", w.re, 0.0)))
    unknown = k.and_(at_zero, k.not_(k.compare("gt", w.re, 0.0)))
    re, im = (k.select(unknown, math.nan, k.select(vanishes, 0.0, part)) for part in (re, im))
    nothing = k.and_(k.compare("eq", w.re, 0.0), k.compare("eq", w.im, 0.0))
    return Complex(k.select(nothing, 1.0, re), k.select(nothing, 0.0, im))


def _vanishing_product(k: KernelBuilder, x: Value, y: Value) -> Value:
    """x y, but 0 if either is 0 and the other one infinite or NaN."""
    zero = k.or_(k.compare("eq", x, 0.0), k.compare("eq", y, 0.0))
    return k.select(zero, 0.0, k.mul(x, y))


def sign(k: KernelBuilder, z: Complex) -> Complex:
    """z / |z|, and 0 for 0."""
    size = absolute(k, z)
    zero = k.compare("eq", size, 0.0)
    safe = k.select(zero, 1.0, size)
    return Complex(k.select(zero, z.re, k.div(z.re, safe)), k.select(zero, z.im, k.div(z.im, safe)))


def _one(k: KernelBuilder, z: Complex) -> Complex:
    return Complex(k.const(z.re.type, 1.0), k.const(z.re.type, 0.0))


ComplexFunction = Callable[..., Complex]

COMPLEX_MATH: Mapping[str, ComplexFunction] = MappingProxyType(
    {
        "cbrt": cbrt,
        "cos": cos,
        "cosh": cosh,
        "divide": divide,
        "exp": exp,
        "expm1": expm1,
        "log": log,
        "log1p": log1p,
        "logistic": logistic,
        "multiply": multiply,
        "power": complex_power,
        "rsqrt": rsqrt,
        "sign": sign,
        "sin": sin,
        "sinh": sinh,
        "sqrt": sqrt,
        "tan": tan,
        "tanh": tanh,
    }
)
