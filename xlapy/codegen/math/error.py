"""The error function and its relatives."""

from __future__ import annotations

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.coefficients import ERF, LOG_ERFC
from xlapy.codegen.math.common import clamp, horner, power_of_two
from xlapy.codegen.math.exponential import reduced_exp

# Beyond these erf is 1 to the last bit; the middle is where the polynomial for log(erfc) is centered.
_ERF_LIMIT = {"f32": 4.0, "f64": 6.0}
_ERF_MIDDLE = {"f32": 2.5, "f64": 3.875}
# Up to here the odd polynomial; then 1 - erf is small enough to hide the error of its exponent.
_ERF_NEAR = {"f32": 1.0, "f64": 1.75}


def erf(k: KernelBuilder, x: Value) -> Value:
    """x + x P(x^2) up to _ERF_NEAR, then 1 - e^Q(x) with Q for log(erfc)."""
    kind = x.type.kind
    z = k.mul(x, x)
    near = k.muladd(x, horner(k, z, ERF), x)
    magnitude = k.fabs(x)
    t = k.sub(clamp(k, magnitude, _ERF_NEAR[kind], _ERF_LIMIT[kind]), _ERF_MIDDLE[kind])
    part = reduced_exp(k, horner(k, t, LOG_ERFC))
    power = power_of_two(k, part.n, x.type)
    far = k.copysign(k.sub(1.0, k.muladd(part.p, power, power)), x)
    return k.select(k.compare("lt", magnitude, _ERF_NEAR[kind]), near, far)
