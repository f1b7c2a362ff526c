"""Vector math: elementary and special functions as branch-free IR, for any number of lanes, in f32 and f64.

Each function takes the builder and values of one type and returns a value of that type. docs/accuracy.md has the
largest error of each. Lanes do not influence each other: a scalar gives the same bits as a lane of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xlapy.codegen.ir import Value
from xlapy.codegen.math import error, exponential, hyperbolic, logarithm, power, rounding, trigonometric

MathFunction = Callable[..., Value]

MATH: Mapping[str, MathFunction] = MappingProxyType(
    {
        "atan": trigonometric.atan,
        "atan2": trigonometric.atan2,
        "cbrt": power.cbrt,
        "ceil": rounding.ceil,
        "cos": trigonometric.cos,
        "erf": error.erf,
        "exp": exponential.exp,
        "exp2": exponential.exp2,
        "expm1": exponential.expm1,
        "floor": rounding.floor,
        "log": logarithm.log,
        "log1p": logarithm.log1p,
        "log2": logarithm.log2,
        "logistic": exponential.logistic,
        "next_after": rounding.next_after,
        "power": power.power,
        "remainder": rounding.remainder,
        "round_nearest_afz": rounding.round_nearest_afz,
        "round_nearest_even": rounding.round_nearest_even,
        "rsqrt": power.rsqrt,
        "sign": rounding.sign,
        "sin": trigonometric.sin,
        "sqrt": power.sqrt,
        "tan": trigonometric.tan,
        "tanh": hyperbolic.tanh,
    }
)
