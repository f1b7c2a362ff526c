"""Libraries of what functions of elements call when they need it, which is rare: the same code for all programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.math.complex import ANY_QUOTIENTS
from xlapy.codegen.math.logarithm import ANY_LOGARITHMS
from xlapy.codegen.math.power import ANY_POWERS
from xlapy.codegen.math.rare import RareFunction
from xlapy.codegen.math.trigonometric import ANY_SINES
from xlapy.codegen.math.trigonometric_reduction import LARGE_ANGLES, SINGLE_ANGLES, define_reduce_large
from xlapy.codegen.math.zeta import ZETA_OF_NEGATIVE
from xlapy.codegen.target import Target

Definitions = Mapping[str, Callable[[Module], None]]


def _emit(functions: tuple[RareFunction, ...], others: Definitions, target: Target) -> Module:
    module = Module.of(target)
    for define in others.values():
        define(module)
    for function in functions:
        function.define(module, attributes=target.function_attributes)
    return module


def _library(*functions: RareFunction, others: Definitions | None = None) -> Library:
    """The library that these functions say they are in. `others`, by their symbols, are called by some of them."""
    others = others or {}
    exports = (*others, *(function.symbol for function in functions))
    return Library(functions[0].library, exports, partial(_emit, functions, others))


ANGLES = _library(SINGLE_ANGLES, *ANY_SINES.values(), others={LARGE_ANGLES: define_reduce_large})
"""For sines and cosines of large angles."""

LOGARITHMS = _library(*ANY_LOGARITHMS.values())
"""For numbers that are not positive, normal and finite."""

POWERS = _library(*ANY_POWERS.values())
"""For bases that are not positive, normal and finite, and results near the limits of their type."""

QUOTIENTS = _library(*ANY_QUOTIENTS.values())
"""For quotients of complex numbers that are not finite."""

ZETAS = _library(ZETA_OF_NEGATIVE)
"""For zeta functions of negative numbers."""

RARE_LIBRARIES = {library.name: library for library in (ANGLES, LOGARITHMS, POWERS, QUOTIENTS, ZETAS)}
