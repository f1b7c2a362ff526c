"""What quotients of complex numbers call that are not finite: the same code for all programs."""

from __future__ import annotations

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.math.complex import ANY_QUOTIENTS, QUOTIENTS_LIBRARY
from xlapy.codegen.target import Target


def emit_quotients(target: Target) -> Module:
    """The library for a target."""
    module = Module.of(target)
    for function in ANY_QUOTIENTS.values():
        function.define(module, attributes=target.function_attributes)
    return module


QUOTIENTS = Library(QUOTIENTS_LIBRARY, tuple(function.symbol for function in ANY_QUOTIENTS.values()), emit_quotients)
