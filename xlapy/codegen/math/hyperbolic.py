"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import TANH
from xlapy.codegen.math.common import clamp, horner, power_of_two
from xlapy.codegen.math.exponential import reduced_exp

_SMALL_TANH = 0.6
# Beyond these tanh is 1 to the last bit.
_TANH_LIMIT = {"f32": 10.0, "f64": 20.0}


def tanh(k: KernelBuilder, x: Value) -> Value:
    """x + x^3 P(x^2) for small x, else 1 - 2 / (e^2x + 1)."""
    z = k.mul(x, x)
    near = k.muladd(k.mul(x, z), horner(k, z, TANH), x)
    magnitude = k.fabs(x)
    limit = _TANH_LIMIT[x.type.kind]
    part = reduced_exp(k, k.mul(clamp(k, magnitude, 0.0, limit), 2.0))
    power = power_of_two(k, part.n, x.type)
    grown = k.add(k.muladd(part.p, power, power), 1.0)
    far = k.copysign(k.sub(1.0, k.div(2.0, grown)), x)
    return k.select(k.compare("lt", magnitude, _SMALL_TANH), near, far)
