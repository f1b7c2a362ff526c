"""What zeta functions of negative numbers call: the same code for all programs."""

from __future__ import annotations

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.math.zeta import ZETA_LIBRARY, ZETA_OF_NEGATIVE
from xlapy.codegen.target import Target


def emit_zetas(target: Target) -> Module:
    """The library for a target."""
    module = Module.of(target)
    ZETA_OF_NEGATIVE.define(module, attributes=target.function_attributes)
    return module


ZETAS = Library(ZETA_LIBRARY, (ZETA_OF_NEGATIVE.symbol,), emit_zetas)
