"""Complex functions on pairs of real and imaginary part.

Errors are normwise: small against the absolute value of the result, not against each part. Infinite parts follow C99
where the real functions below carry it through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math import exponential, logarithm, power, trigonometric
from xlapy.codegen.math.common import INFINITY, clamp
from xlapy.codegen.math.hyperbolic import cosh as real_cosh
from xlapy.codegen.math.hyperbolic import sinh as real_sinh

# e^x is taken apart as e^(x - step) e^step beyond the limit, because e^x cos(y) may be finite where e^x is not.
_EXP_LIMIT = {"f32": 88.0, "f64": 709.0}
_EXP_STEP = {"f32": 64.0, "f64": 512.0}
# tanh(x + iy) is +-1 to the last bit of its real part beyond.
_TANH_LIMIT = {"f32": 11.0, "f64": 22.0}
# Square roots scale numbers beyond, which may overflow, down, and others up.
_LARGE = {"f32": 2.0**100, "f64": 2.0**1000}


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
    """The quotient by Smith's method: only a quotient of the parts of `b` is squared, so nothing overflows early."""
    steep = k.compare("gt", k.fabs(b.im), k.fabs(b.re))
    large, small = k.select(steep, b.im, b.re), k.select(steep, b.re, b.im)
    ratio = k.select(k.compare("eq", small, 0.0), small, k.div(small, large))
    below = k.add(large, k.mul(small, ratio))
    # steep: (re r + im, im r - re); else (re + im r, im - re r).
    re = k.select(steep, k.add(k.mul(a.re, ratio), a.im), k.add(a.re, k.mul(a.im, ratio)))
    im = k.select(steep, k.sub(k.mul(a.im, ratio), a.re), k.sub(a.im, k.mul(a.re, ratio)))
    return Complex(k.div(re, below), k.div(im, below))


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
    return Complex(k.select(k.compare("gt", z.re, 1.0), k.sub(whole.re, 1.0), near), whole.im)


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
    large = k.compare("gt", k.greater(k.fabs(z.re), k.fabs(z.im)), _LARGE[kind])
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
    """1 / sqrt(z)"""
    return divide(k, _one(k, z), sqrt(k, z))


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
    unturned = k.compare("eq", k.fabs(z.im), INFINITY)
    rest = k.select(k.and_(unturned, k.compare("eq", decay, 0.0)), 0.0, rest)
    result_im = k.select(k.compare("eq", z.im, 0.0), z.im, k.select(far, rest, near.im))
    return Complex(k.select(far, k.copysign(1.0, z.re), near.re), result_im)


def sinh(k: KernelBuilder, z: Complex) -> Complex:
    """sinh(re) cos(im) + i cosh(re) sin(im)"""
    return Complex(
        k.mul(real_sinh(k, z.re), trigonometric.cos(k, z.im)),
        k.select(k.compare("eq", z.im, 0.0), z.im, k.mul(real_cosh(k, z.re), trigonometric.sin(k, z.im))),
    )


def cosh(k: KernelBuilder, z: Complex) -> Complex:
    """cosh(re) cos(im) + i sinh(re) sin(im)"""
    vanishing = k.or_(k.compare("eq", z.im, 0.0), k.compare("eq", z.re, 0.0))
    im = k.mul(real_sinh(k, z.re), trigonometric.sin(k, z.im))
    real = k.mul(k.copysign(1.0, z.re), k.copysign(0.0, z.im))
    return Complex(k.mul(real_cosh(k, z.re), trigonometric.cos(k, z.im)), k.select(vanishing, real, im))


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
    left = divide(k, grown, Complex(k.add(grown.re, 1.0), grown.im))
    negative = k.compare("lt", z.re, 0.0)
    return Complex(k.select(negative, left.re, right.re), k.select(negative, left.im, right.im))


def complex_power(k: KernelBuilder, z: Complex, w: Complex) -> Complex:
    """e^(w log z) in polar form; 0^w is 0 for a positive real part of w, and anything to the power 0 is 1."""
    size, angle = absolute(k, z), argument(k, z)
    decay = k.select(k.compare("eq", w.im, 0.0), 1.0, exponential.exp(k, k.neg(k.mul(w.im, angle))))
    scale = k.mul(power.power(k, size, w.re), decay)
    log_size = logarithm.log(k, k.select(k.compare("eq", size, 0.0), 1.0, size))
    turn = k.add(k.mul(w.re, angle), k.mul(w.im, log_size))
    re, im = k.mul(scale, trigonometric.cos(k, turn)), k.mul(scale, trigonometric.sin(k, turn))
    vanishing = k.and_(k.compare("eq", size, 0.0), k.compare("gt", w.re, 0.0))
    re, im = k.select(vanishing, 0.0, re), k.select(vanishing, 0.0, im)
    nothing = k.and_(k.compare("eq", w.re, 0.0), k.compare("eq", w.im, 0.0))
    return Complex(k.select(nothing, 1.0, re), k.select(nothing, 0.0, im))


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
