"""Bessel functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xlapy.codegen.ir import F64, IRType, KernelBuilder, Value
from xlapy.codegen.math.common import horner, two_chains
from xlapy.codegen.math.special_coefficients import BESSEL_I0E_FAR, BESSEL_I0E_NEAR, BESSEL_I1E_FAR, BESSEL_I1E_NEAR

# The Bessel functions change from polynomials in x to polynomials in 1/x here.
_BESSEL_SPLIT = 8.0
_BEYOND_SINGLE = 2.0**130  # more than any f32, and finite


def bessel_i0e(k: KernelBuilder, x: Value) -> Value:
    """e^-|x| times the modified Bessel function of order 0."""
    magnitude = k.fabs(x)
    reached, inverse_root = _inverse_root(k, magnitude)
    near, far = _near(k, reached, BESSEL_I0E_NEAR, x.type), _far(k, inverse_root, BESSEL_I0E_FAR[x.type.kind])
    return _rounded(k, k.select(k.compare("gt", reached, _BESSEL_SPLIT), far, near), x.type)


def bessel_i1e(k: KernelBuilder, x: Value) -> Value:
    """e^-|x| times the modified Bessel function of order 1."""
    magnitude = k.fabs(x)
    reached, inverse_root = _inverse_root(k, magnitude)
    near, far = _near(k, reached, BESSEL_I1E_NEAR, x.type), _far(k, inverse_root, BESSEL_I1E_FAR[x.type.kind])
    result = k.select(k.compare("gt", reached, _BESSEL_SPLIT), far, k.mul(reached, near))
    return k.copysign(_rounded(k, result, x.type), x)


def _inverse_root(k: KernelBuilder, magnitude: Value) -> tuple[Value, Value]:
    """What is not negative in f64, and where it is beyond the split 1 over its root, which is 0 for infinity.

    The root of an f32 has half of its digits when it is one in f64, and gets the others from a step of Newton's."""
    inverse = k.div(1.0, k.sqrt(k.greater(magnitude, _BESSEL_SPLIT)))
    if magnitude.type.kind == "f64":
        return magnitude, inverse
    reached, inverse = k.fpext(magnitude, F64), k.fpext(inverse, F64)
    halved = k.mul(k.lesser(reached, _BEYOND_SINGLE), -0.5)
    step = k.muladd(k.mul(halved, inverse), inverse, k.const(halved.type, 1.5))
    return reached, k.mul(inverse, step)


def _near(k: KernelBuilder, reached: Value, table: Mapping[str, Sequence[float]], type: IRType) -> Value:
    """A polynomial of x/4 - 1. The two halves of it are some times larger than their sum, which f64 has digits for if
    the result is an f32, and no more than that."""
    t = k.muladd(reached, 2 / _BESSEL_SPLIT, k.const(reached.type, -1.0))
    if type.kind == "f32":
        return two_chains(k, t, k.mul(t, t), table[type.kind])
    return horner(k, t, table[type.kind])


def _far(k: KernelBuilder, inverse_root: Value, table: Sequence[float]) -> Value:
    """A polynomial of 16/x - 1 over sqrt(x)."""
    t = k.muladd(k.mul(inverse_root, inverse_root), 2 * _BESSEL_SPLIT, k.const(inverse_root.type, -1.0))
    return k.mul(horner(k, t, table), inverse_root)


def _rounded(k: KernelBuilder, value: Value, type: IRType) -> Value:
    return value if value.type == type else k.fptrunc(value, type)
