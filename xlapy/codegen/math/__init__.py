"""Vector math: elementary and special functions as branch-free IR, for any number of lanes, in f32 and f64.

Each function takes the builder and values of one type and returns a value of that type. docs/accuracy.md has the
largest error of each. Lanes do not influence each other: a scalar gives the same bits as a lane of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xlapy.codegen.ir import Value
from xlapy.codegen.math import (
    bessel,
    beta,
    brief,
    error,
    exponential,
    gamma,
    hyperbolic,
    logarithm,
    power,
    rounding,
    trigonometric,
    zeta,
)

MathFunction = Callable[..., Value]

MATH: Mapping[str, MathFunction] = MappingProxyType(
    {
        "acos": trigonometric.acos,
        "acosh": hyperbolic.acosh,
        "asin": trigonometric.asin,
        "asinh": hyperbolic.asinh,
        "atan": trigonometric.atan,
        "atan2": trigonometric.atan2,
        "atanh": hyperbolic.atanh,
        "bessel_i0e": bessel.bessel_i0e,
        "bessel_i1e": bessel.bessel_i1e,
        "cbrt": power.cbrt,
        "ceil": rounding.ceil,
        "cos": trigonometric.cos,
        "cosh": hyperbolic.cosh,
        "digamma": gamma.digamma,
        "erf": error.erf,
        "erf_inv": error.erf_inv,
        "erfc": error.erfc,
        "exp": exponential.exp,
        "exp_of_high": exponential.exp_of_high,
        "exp_of_low": exponential.exp_of_low,
        "exp2": exponential.exp2,
        "expm1": exponential.expm1,
        "floor": rounding.floor,
        "igamma": gamma.igamma,
        "igamma_grad_a": gamma.igamma_grad_a,
        "igammac": gamma.igammac,
        "lgamma": gamma.lgamma,
        "log": logarithm.log,
        "log1p": logarithm.log1p,
        "log1p_of_fraction": logarithm.log1p_of_fraction,
        "log2": logarithm.log2,
        "logistic": exponential.logistic,
        "next_after": rounding.next_after,
        "polygamma": zeta.polygamma,
        "power": power.power,
        "random_gamma_grad": gamma.random_gamma_grad,
        "regularized_incomplete_beta": beta.regularized_incomplete_beta,
        "remainder": rounding.remainder,
        "round_nearest_afz": rounding.round_nearest_afz,
        "round_nearest_even": rounding.round_nearest_even,
        "rsqrt": power.rsqrt,
        "sign": rounding.sign,
        "sin": trigonometric.sin,
        "sinh": hyperbolic.sinh,
        "sqrt": power.sqrt,
        "tan": trigonometric.tan,
        "tanh": hyperbolic.tanh,
        "zeta": zeta.zeta,
    }
)

BF16_MATH: Mapping[str, MathFunction] = MappingProxyType(
    {
        **MATH,
        "erf": brief.erf,
        "erfc": brief.erfc,
        "exp": brief.exp,
        "exp_of_high": brief.exp,
        "exp_of_low": brief.exp_of_low,
        "log": brief.log,
        "logistic": brief.logistic,
        "tanh": brief.tanh,
    }
)
"""The same for arguments and results of bf16, held as f32."""
