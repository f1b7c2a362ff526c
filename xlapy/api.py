"""What a user calls: `compile` and `evaluate`, for any form that a program comes in."""

from __future__ import annotations

import re
from typing import Any

import xlapy.stablehlo
from xlapy.builder import XlaComputation
from xlapy.compiler import compile_cached, module_key
from xlapy.executable import Executable
from xlapy.hlo import text as hlo_text
from xlapy.hlo.evaluate import evaluate as evaluate_module
from xlapy.hlo.graph import HloModule
from xlapy.options import CompileOptions
from xlapy.support.errors import ParseError
from xlapy_runtime.custom_calls import BUILT_IN, TARGETS

Source = XlaComputation | HloModule | str
"""A program: what a builder built, a module, or text in HLO or StableHLO."""

_STABLEHLO = re.compile(r"\s*(?:module\b|func\.func\b|#\w|\"builtin\.module\"|\"func\.func\")")
_COMMENTS = re.compile(r"(?:\s*//[^\n]*\n|\s*/\*.*?\*/)*", re.DOTALL)


def load(source: Source) -> HloModule:
    """The module of a program in any form. Text is told apart by how it begins."""
    if isinstance(source, HloModule):
        return source
    if isinstance(source, XlaComputation):
        return source.module
    if not isinstance(source, str):
        raise ParseError(f"a {type(source).__name__} is not a program: give a computation, a module, or text")
    comments = _COMMENTS.match(source)
    rest = source[comments.end() :] if comments else source
    if _STABLEHLO.match(rest) or rest.lstrip().startswith("module"):
        return xlapy.stablehlo.parse(source)
    return hlo_text.parse(source)


def compile(source: Source, options: CompileOptions | None = None) -> Executable:
    """Compiles a program for this machine and returns it as a callable.

    `source` is an XlaComputation, an HloModule, HLO text or StableHLO text (generic or pretty). Raises XlaError naming
    the instruction for a program that breaks a rule, UnsupportedError for what xlapy knowingly does not do."""
    chosen = options or CompileOptions()
    if isinstance(source, str):
        return Executable(compile_cached(source, lambda: load(source), chosen), chosen)
    module = load(source)
    return Executable(compile_cached(module_key(module), lambda: module, chosen), chosen)


def evaluate(source: Source, *arguments: Any, custom_calls: Any = None) -> Any:
    """The result by the reference evaluator: obviously right, and slow. Arguments and result are as for an
    executable; LAPACK's functions are there for it too."""
    targets = {**BUILT_IN, **TARGETS, **(custom_calls or {})}
    return evaluate_module(load(source), *arguments, custom_calls=targets)
