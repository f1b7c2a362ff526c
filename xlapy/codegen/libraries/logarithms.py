"""What logarithms call if a number is not positive, normal and finite: the same code for all programs."""

from __future__ import annotations

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.math.logarithm import ANY_LOGARITHMS, LOGARITHMS_LIBRARY
from xlapy.codegen.target import Target


def emit_logarithms(target: Target) -> Module:
    """The library for a target."""
    module = Module.of(target)
    for function in ANY_LOGARITHMS.values():
        function.define(module, attributes=target.function_attributes)
    return module


LOGARITHMS = Library(
    LOGARITHMS_LIBRARY, tuple(function.symbol for function in ANY_LOGARITHMS.values()), emit_logarithms
)
