"""What sines and cosines of large angles call: the same code for all programs, which hardly ever run it."""

from __future__ import annotations

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.math.trigonometric import ANY_SINES
from xlapy.codegen.math.trigonometric_reduction import (
    ANGLES_LIBRARY,
    LARGE_ANGLES,
    SINGLE_ANGLES,
    define_reduce_large,
)
from xlapy.codegen.target import Target


def emit_angles(target: Target) -> Module:
    """The library for a target."""
    module = Module.of(target)
    define_reduce_large(module)
    for function in _FUNCTIONS:
        function.define(module, attributes=target.function_attributes)
    return module


_FUNCTIONS = (SINGLE_ANGLES, *ANY_SINES.values())
ANGLES = Library(ANGLES_LIBRARY, (LARGE_ANGLES, *(function.symbol for function in _FUNCTIONS)), emit_angles)
