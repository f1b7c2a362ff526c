"""Inverse trigonometric and hyperbolic functions of complex numbers, after Kahan: by real functions of their parts.

Accurate to a few units in the last place of each part, but for imaginary parts of atanh that vanish on a curve. Branch
cuts follow the signs of zeros, and infinite parts C99.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math import complex as c
from xlapy.codegen.math import hyperbolic, logarithm, trigonometric
from xlapy.codegen.math.common import INFINITY
from xlapy.codegen.math.complex import Complex

_EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}


def _times_i(k: KernelBuilder, z: Complex) -> Complex:
    return Complex(k.neg(z.im), z.re)


def _over_i(k: KernelBuilder, z: Complex) -> Complex:
    return Complex(z.im, k.neg(z.re))


class _Roots(NamedTuple):
    """`minus`, sqrt(1 - z), and `plus`, sqrt(1 + z), whose imaginary parts have opposite signs: of zeros, too.

    Of numbers so `large` that products of these may overflow, both are halved."""

    minus: Complex
    plus: Complex
    large: Value


def _roots(k: KernelBuilder, z: Complex) -> _Roots:
    large = k.compare("gt", k.greater(k.fabs(z.re), k.fabs(z.im)), c.LARGE[z.re.type.kind])
    scale = k.select(large, k.const(z.re.type, 0.5), 1.0)

    def root(re: Value, im: Value) -> Complex:
        whole = c.sqrt(k, Complex(re, im))
        return Complex(k.mul(whole.re, scale), k.mul(whole.im, scale))

    return _Roots(root(k.sub(1.0, z.re), k.neg(z.im)), root(k.add(z.re, 1.0), z.im), large)


def _asinh_of_product(k: KernelBuilder, product: Value, large: Value) -> Value:
    """asinh of a product of roots, which is a quarter of itself where these are `large`: asinh(4 x) is asinh(x) + log 4
    there."""
    angle = hyperbolic.asinh(k, product)
    return k.select(large, k.add(angle, k.copysign(k.const(product.type, math.log(4)), product)), angle)


def _is_infinite(k: KernelBuilder, z: Complex) -> Value:
    return k.or_(k.compare("eq", k.fabs(z.re), INFINITY), k.compare("eq", k.fabs(z.im), INFINITY))


def _direction(k: KernelBuilder, part: Value) -> Value:
    """A part of an infinite number as that of a point in the same direction: 1 if it is infinite itself, else 0."""
    infinite = k.compare("eq", k.fabs(part), INFINITY)
    return k.select(infinite, k.copysign(k.const(part.type, 1.0), part), k.mul(part, 0.0))


def asin(k: KernelBuilder, z: Complex) -> Complex:
    """atan(re / Re(r s)) + i asinh(Im(r* s)), with r = sqrt(1 - z) and s = sqrt(1 + z): no sum cancels anything."""
    minus, plus, large = _roots(k, z)
    cosine = k.sub(k.mul(minus.re, plus.re), k.mul(minus.im, plus.im))
    height = k.sub(k.mul(minus.re, plus.im), k.mul(minus.im, plus.re))
    infinite = _is_infinite(k, z)
    y = k.select(infinite, _direction(k, z.re), k.select(large, k.mul(z.re, 0.25), z.re))
    x = k.select(infinite, k.fabs(_direction(k, z.im)), cosine)
    im = k.select(infinite, k.copysign(k.const(height.type, INFINITY), z.im), _asinh_of_product(k, height, large))
    return Complex(trigonometric.atan2(k, y, x), im)


def acos(k: KernelBuilder, z: Complex) -> Complex:
    """2 atan(Re r / Re s) + i asinh(Im(s* r)), with r = sqrt(1 - z) and s = sqrt(1 + z)."""
    minus, plus, large = _roots(k, z)
    depth = k.sub(k.mul(plus.re, minus.im), k.mul(plus.im, minus.re))
    infinite = _is_infinite(k, z)
    y = k.select(infinite, k.fabs(_direction(k, z.im)), minus.re)
    x = k.select(infinite, _direction(k, z.re), plus.re)
    angle = trigonometric.atan2(k, y, x)
    endless = k.copysign(k.const(depth.type, INFINITY), k.neg(z.im))
    im = k.select(infinite, endless, _asinh_of_product(k, depth, large))
    return Complex(k.select(infinite, angle, k.mul(angle, 2.0)), im)


def acosh(k: KernelBuilder, z: Complex) -> Complex:
    """i acos(z) or -i acos(z), whichever is on the right."""
    cosine = acos(k, z)
    return Complex(k.fabs(cosine.im), k.copysign(cosine.re, z.im))


def asinh(k: KernelBuilder, z: Complex) -> Complex:
    """asin(i z) / i"""
    return _over_i(k, asin(k, _times_i(k, z)))


def atanh(k: KernelBuilder, z: Complex) -> Complex:
    """log1p(4 re / |1 - z|^2) / 4 + i angle((1 - z*) (1 + z)) / 2 for a positive real part; the function is odd.

    Next to 1 the quotient may overflow, and is its logarithm's business; far out the function is 1 / z beside a quarter
    turn."""
    type = z.re.type
    width, height = k.fabs(z.re), k.fabs(z.im)
    gap = k.sub(1.0, width)
    distance = c.absolute(k, Complex(gap, z.im))
    ratio = k.div(k.div(k.mul(width, 4.0), distance), distance)
    beside = k.mul(k.sub(math.log(2), logarithm.log(k, distance)), 0.5)
    close = k.compare("lt", distance, _EPSILON[type.kind])
    re = k.select(close, beside, k.mul(logarithm.log1p_of_any(k, ratio), 0.25))
    cosine = k.sub(k.mul(gap, k.add(width, 1.0)), k.mul(z.im, z.im))
    im = k.mul(trigonometric.atan2(k, k.mul(z.im, 2.0), cosine), 0.5)

    limit = 1 / _EPSILON[type.kind]
    far = k.or_(k.compare("gt", width, limit), k.compare("gt", height, limit))
    re = k.select(far, _reciprocal_re(k, width, height), re)
    quarter_turn = k.select(k.is_nan(z.im), z.im, k.copysign(k.const(type, math.pi / 2), z.im))
    return Complex(k.copysign(re, z.re), k.select(far, quarter_turn, im))


def _reciprocal_re(k: KernelBuilder, width: Value, height: Value) -> Value:
    """The real part of 1 / (width + i height), where one of them is large; 0 for infinities."""
    infinite = k.or_(k.compare("eq", width, INFINITY), k.compare("eq", height, INFINITY))
    size = k.select(infinite, k.const(width.type, 1.0), k.greater(width, height))
    x, y = k.div(width, size), k.div(height, size)
    return k.select(infinite, 0.0, k.div(k.div(x, k.muladd(x, x, k.mul(y, y))), size))


def atan(k: KernelBuilder, z: Complex) -> Complex:
    """atanh(i z) / i"""
    return _over_i(k, atanh(k, _times_i(k, z)))


def atan2(k: KernelBuilder, y: Complex, x: Complex) -> Complex:
    """-i log((x + i y) / sqrt(x^2 + y^2)), as the StableHLO specification has it."""
    length = c.sqrt(k, c.add(k, c.multiply(k, x, x), c.multiply(k, y, y)))
    return _over_i(k, c.log(k, c.divide(k, c.add(k, x, _times_i(k, y)), length)))


INVERSE: dict[str, Callable[..., Complex]] = {
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atanh": atanh,
    "atan2": atan2,
}
