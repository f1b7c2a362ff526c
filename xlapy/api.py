"""What a user calls: `compile` and `evaluate`, for any form that a program comes in."""

from __future__ import annotations

import re
from typing import Any, Protocol

import xlapy.stablehlo
from xlapy.compiler import compile_cached, module_key
from xlapy.executable import Executable
from xlapy.hlo import text as hlo_text
from xlapy.hlo.evaluate import evaluate as evaluate_module
from xlapy.hlo.graph import HloModule
from xlapy.hlo.proto import module_from_bytes
from xlapy.hlo.specialize import has_open_parameters, is_dynamic, specialize, specialize_to
from xlapy.options import CompileOptions
from xlapy.specialized import DynamicExecutable
from xlapy.stablehlo.bytecode import is_bytecode, text_of_bytecode
from xlapy.support.errors import ParseError
from xlapy_runtime.custom_calls import BUILT_IN, TARGETS


class HasModule(Protocol):
    """What stands for a module: a computation that a builder built, or one of another interface."""

    @property
    def module(self) -> HloModule: ...


Source = HasModule | HloModule | str | bytes
"""A program: what a builder built, a module, text in HLO or StableHLO, or the bytes of a serialized module."""

_STABLEHLO = re.compile(r"\s*(?:module\b|func\.func\b|#\w|\"builtin\.module\"|\"func\.func\")")
_COMMENTS = re.compile(r"(?:\s*//[^\n]*\n|\s*/\*.*?\*/)*", re.DOTALL)
_CONTROL_CHARACTERS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_BEGINNING = 256  # bytes of a serialized module, among which is a character that no text has


def load(source: Source) -> HloModule:
    """The module of a program in any form. Text is told apart by how it begins.

    Bytes are text in UTF-8, a serialized HloModuleProto, or MLIR bytecode (a portable artifact, too; needs jaxlib)."""
    if isinstance(source, HloModule):
        return source
    if isinstance(source, bytes):
        return _load_bytes(source)
    if isinstance(source, str):
        return _load_text(source)
    module = getattr(source, "module", None)
    if not isinstance(module, HloModule):
        raise ParseError(f"a {type(source).__name__} is not a program: give a computation, a module, text or bytes")
    return module


def _load_text(source: str) -> HloModule:
    comments = _COMMENTS.match(source)
    rest = source[comments.end() :] if comments else source
    if _STABLEHLO.match(rest) or rest.lstrip().startswith("module"):
        return xlapy.stablehlo.parse(source)
    return hlo_text.parse(source)


def _load_bytes(source: bytes) -> HloModule:
    if is_bytecode(source):
        return xlapy.stablehlo.parse(text_of_bytecode(source))
    if _CONTROL_CHARACTERS.search(source[:_BEGINNING]):
        return module_from_bytes(source)
    try:
        return _load_text(source.decode())
    except UnicodeDecodeError:
        raise ParseError("these bytes are neither text in UTF-8 nor a serialized module") from None


def compile(source: Source, options: CompileOptions | None = None) -> Executable:
    """Compiles a program for this machine and returns it as a callable.

    `source` is a computation, an HloModule, HLO text, StableHLO text (generic or pretty), or bytes as `load` takes
    them. Raises XlaError naming the instruction for a program that breaks a rule, UnsupportedError for what xlapy
    knowingly does not do.

    A program with `?` dimensions becomes a `DynamicExecutable`, which compiles itself for the sizes of each call."""
    chosen = options or CompileOptions()
    if isinstance(source, str) and "?" not in source:
        return Executable(compile_cached(source, lambda: _static(load(source)), chosen), chosen)
    module = load(source)
    if has_open_parameters(module):
        return DynamicExecutable(module, chosen, lambda specialized: _compiled(specialized, chosen))
    return _compiled(_static(module), chosen)


def _compiled(module: HloModule, options: CompileOptions) -> Executable:
    return Executable(compile_cached(module_key(module), lambda: module, options), options)


def _static(module: HloModule) -> HloModule:
    """The module with operations of known sizes only; its parameters say all that there is to know."""
    return specialize(module, module.signature.parameters) if is_dynamic(module) else module


def evaluate(source: Source, *arguments: Any, custom_calls: Any = None) -> Any:
    """The result by the reference evaluator: obviously right, and slow. Arguments and result are as for an
    executable; LAPACK's functions are there for it too."""
    module = load(source)
    if has_open_parameters(module):
        module = specialize_to(module, arguments)
    targets = {**BUILT_IN, **TARGETS, **(custom_calls or {})}
    return evaluate_module(_static(module), *arguments, custom_calls=targets)
