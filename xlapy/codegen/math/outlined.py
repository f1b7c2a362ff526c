"""Functions that kernels call instead of each having a copy: compiled once per machine, part of each program.

A hyperbolic tangent is 40 instructions, over which LLVM takes half a millisecond even where it does not try hard, and
there may be many in a program. Called, it is one: a quick kernel is no slower for it, as what is called is compiled in
full. For other kernels a call of four vectors is two or three cycles, in which the constants are fetched once more: an
exponential then takes a twelfth longer, and what is long, about the same, or less, as it has all registers to itself.
The distance on a sphere, of two sines, two cosines and an arc tangent, compiles in half the time, and a sine in two
thirds. Programs have the object code in themselves, so that starting one finds nothing else to load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from xlapy.codegen.ir import IRType, KernelBuilder, Module, Value
from xlapy.codegen.jit import emit_object
from xlapy.codegen.math import BF16_MATH, MATH, MathFunction
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.stored_code import StoredCode, find_code, keep_code
from xlapy.codegen.target import Target
from xlapy_runtime.records import Record

SHORT = frozenset({"sqrt", "rsqrt"})
"""Functions that are few instructions wherever they are: the second, two or ten."""

LONG: Mapping[str, str] = MappingProxyType(
    {
        "atan2": "atan2",
        "cosine": "cos",
        "erf": "erf",
        "log": "log",
        "power": "power",
        "sine": "sin",
        "tan": "tan",
        "tanh": "tanh",
    }
)
"""Functions that take long enough for a call not to matter: ops, and what computes them."""

_LONG_FUNCTIONS = frozenset(LONG.values())
_CALLED_SCALARS = _LONG_FUNCTIONS - {"log"}
"""Those of single numbers that take less time if they are called, and so are compiled in full, than if they are part of
code on which LLVM does not work: sines a sixth less, powers a tenth, tangents a thirtieth, logarithms a tenth more."""


class OutlinedFunction(Record):
    """A function by its name in `MATH` (in `BF16_MATH`, if its results are `brief`), for operands of one type."""

    name: str
    type: IRType
    operands: int
    brief: bool = False

    @property
    def symbol(self) -> str:
        return f"math.{'brief.' if self.brief else ''}{self.name}.{self.type.suffix}"

    def emit(self, target: Target) -> Module:
        """The function, in a module of its own."""
        module = Module.of_program(target)
        parameters = [(f"x{number}", self.type) for number in range(self.operands)]
        attributes = f"nounwind {target.function_attributes}".rstrip()
        with KernelBuilder(module, self.symbol, parameters, self.type, attributes=attributes) as k:
            k.ret(_functions(self.brief)[self.name](k, *k.parameters.values()))
        return module


def math_function(k: KernelBuilder, name: str, operands: Sequence[Value], *, brief: bool = False) -> Value:
    """The value of a function in `MATH` (in `BF16_MATH`, if it may be `brief`): what computes it, or a call of that."""
    called = k.module.outlined
    is_called = k.is_quick or k.runs_rarely or (k.calls_functions and name in _LONG_FUNCTIONS)
    is_called = is_called or (k.calls_scalars and name in _CALLED_SCALARS and operands[0].type.lanes == 1)
    is_short = name == "sqrt" or (name in SHORT and not k.has_estimates)
    if not is_called or called is None or is_short or all(operand.constant is not None for operand in operands):
        return _functions(brief)[name](k, *operands)
    type = operands[0].type
    function = OutlinedFunction(name, type, len(operands), brief and BF16_MATH[name] is not MATH[name])
    called[function.symbol] = function
    return k.call_pure(function.symbol, operands, type)


def _functions(brief: bool) -> Mapping[str, MathFunction]:
    return BF16_MATH if brief else MATH


@cache
def outlined_code(function: OutlinedFunction, target: Target, cache: ObjectCache) -> StoredCode:
    """The object file of a function, from the cache if it is there; else it is made, and kept."""
    found = find_code(function.symbol, target, cache)
    if found is None:
        module = function.emit(target)
        code = emit_object(module.text(), target)
        found = StoredCode([code], (function.symbol,), tuple(sorted(module.libraries or ())))
        keep_code(function.symbol, target, cache, found)
    return found
