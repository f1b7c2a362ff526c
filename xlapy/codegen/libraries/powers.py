"""What powers call whose base or result is no normal number: the same code for all programs."""

from __future__ import annotations

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.math.power import ANY_POWERS, POWERS_LIBRARY
from xlapy.codegen.target import Target


def emit_powers(target: Target) -> Module:
    """The library for a target."""
    module = Module.of(target)
    for function in ANY_POWERS.values():
        function.define(module, attributes=target.function_attributes)
    return module


POWERS = Library(POWERS_LIBRARY, tuple(function.symbol for function in ANY_POWERS.values()), emit_powers)
