"""Functions that reach xlapy whole.

jaxlib writes programs as StableHLO, in which some functions of CHLO's are composites of their name, and others are only
what they are made of: a complementary error function becomes a hundred operations, each time. xlapy has an operation
for each of these. So on this platform, which shares its name with JAX's own for processors, JAX lowers them to
composites too, with what they are made of beside the program, once for each type. For others that changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, func, stablehlo

from xlapy.pjrt.client import PLATFORM_NAME
from xlapy.stablehlo.convert import CONVERSIONS

_lax, _special = (sys.modules.get(f"jax._src.lax.{name}") for name in ("lax", "special"))
"""Two of JAX's modules, which `import jax` has loaded, if there are such."""

_chlo: Any = chlo
_func: Any = func
_stablehlo: Any = stablehlo

FUNCTIONS = ("bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "polygamma", "zeta")
_PREFIX = "chlo."
_VERSION = 1


def register() -> None:
    """Registers the lowering of those functions that this JAX lowers as the versions do that are known here."""
    lower = getattr(_lax, "_nary_lower_hlo", None)
    for name in FUNCTIONS:
        primitive = getattr(_special, f"{name}_p", None)
        if lower is not None and primitive is not None:
            mlir.register_lowering(primitive, _rule(name, lower), platform=PLATFORM_NAME)


def _rule(name: str, lower: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's rule with another builder of the operation."""

    def lower_whole(context: Any, *operands: Any, **options: Any) -> Any:
        return lower(partial(_build, name, context.module_context.module), context, *operands, **options)

    return lower_whole


def _build(name: str, module: Any, *operands: Any, **options: Any) -> Any:
    """The composite, or the operation itself where it is one of open sizes, or has options."""
    operation = getattr(_chlo, name)
    types = [operand.type for operand in operands]
    if options or not all(ir.RankedTensorType(type).has_static_shape for type in types):
        return operation(*operands, **options)
    symbol = f"{_PREFIX}{name}.{'.'.join(_words(type) for type in types)}"
    if symbol not in ir.SymbolTable(module.operation):
        _add_decomposition(operation, symbol, types, module)
    return _stablehlo.CompositeOp(
        types[:1],
        operands,
        name=ir.StringAttr.get(_PREFIX + name),
        decomposition=ir.FlatSymbolRefAttr.get(symbol),
        version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _VERSION),
    ).result


def _words(type: Any) -> str:
    return re.sub(r"\W+", "_", str(type))


def _add_decomposition(operation: Callable[..., Any], symbol: str, types: list[Any], module: Any) -> None:
    """Adds the function that holds the operation by itself."""
    with ir.Location.unknown():
        with ir.InsertionPoint.at_block_begin(module.body):
            made = _func.FuncOp(symbol, ir.FunctionType.get(types, types[:1]))
        made.attributes["sym_visibility"] = ir.StringAttr.get("private")
        block = made.add_entry_block()
        with ir.InsertionPoint(block):
            _func.ReturnOp([operation(*block.arguments)])


def drop_decompositions(module: Any) -> None:
    """Removes the functions that say what composites are made of that xlapy takes as a whole: nobody looks at them."""
    for operation in list(module.body.operations):
        symbol = symbol_of(operation)
        if symbol.startswith(_PREFIX) and ".".join(symbol.split(".")[:2]) in CONVERSIONS:
            operation.erase()


def symbol_of(operation: Any) -> str:
    """The name of a function; empty for what has none."""
    return str(operation.attributes["sym_name"].value) if "sym_name" in operation.attributes else ""
