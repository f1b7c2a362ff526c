"""Inverse trigonometric and hyperbolic functions of complex numbers, by logarithms and roots.

Accurate to a few units in the last place of |result| away from the branch points (0 for the odd ones, +-1, +-i); close
to those the error is absolute. Branch cuts follow the signs of the logarithm and the root.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xlapy.codegen.ir import KernelBuilder
from xlapy.codegen.math import complex as c
from xlapy.codegen.math.complex import Complex


def _plus(k: KernelBuilder, z: Complex, number: float) -> Complex:
    return Complex(k.add(z.re, number), z.im)


def _scaled(k: KernelBuilder, z: Complex, number: float) -> Complex:
    return Complex(k.mul(z.re, number), k.mul(z.im, number))


def _negated(k: KernelBuilder, z: Complex) -> Complex:
    return Complex(k.neg(z.re), k.neg(z.im))


def _times_i(k: KernelBuilder, z: Complex) -> Complex:
    return Complex(k.neg(z.im), z.re)


def _over_i(k: KernelBuilder, z: Complex) -> Complex:
    return Complex(z.im, k.neg(z.re))


def asinh(k: KernelBuilder, z: Complex) -> Complex:
    """log(z + sqrt(z^2 + 1)) of the z with a positive real part: the function is odd, and there the sum cancels
    nothing."""
    negative = k.compare("lt", z.re, 0.0)
    mirrored = _negated(k, z)
    w = Complex(k.select(negative, mirrored.re, z.re), k.select(negative, mirrored.im, z.im))
    root = c.multiply(k, c.sqrt(k, _plus(k, _times_i(k, w), 1.0)), c.sqrt(k, _plus(k, _over_i(k, w), 1.0)))
    result = c.log(k, c.add(k, w, root))
    back = _negated(k, result)
    return Complex(k.select(negative, back.re, result.re), k.select(negative, back.im, result.im))


def acosh(k: KernelBuilder, z: Complex) -> Complex:
    """log(z + sqrt(z + 1) sqrt(z - 1))"""
    root = c.multiply(k, c.sqrt(k, _plus(k, z, 1.0)), c.sqrt(k, _plus(k, z, -1.0)))
    return c.log(k, c.add(k, z, root))


def atanh(k: KernelBuilder, z: Complex) -> Complex:
    """(log(1 + z) - log(1 - z)) / 2"""
    difference = c.add(k, c.log1p(k, z), _negated(k, c.log1p(k, _negated(k, z))))
    return _scaled(k, difference, 0.5)


def asin(k: KernelBuilder, z: Complex) -> Complex:
    return _over_i(k, asinh(k, _times_i(k, z)))


def acos(k: KernelBuilder, z: Complex) -> Complex:
    sine = asin(k, z)
    return Complex(k.sub(math.pi / 2, sine.re), k.neg(sine.im))


def atan(k: KernelBuilder, z: Complex) -> Complex:
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
