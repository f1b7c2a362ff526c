"""What a user calls: `compile` and `evaluate`, for any form that a program comes in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeAlias

from xlapy.executable import Executable
from xlapy.options import USUAL_OPTIONS, CompileOptions
from xlapy.program_cache import compile_cached, module_key
from xlapy.support.errors import ArgumentError, ParseError
from xlapy.support.late import late
from xlapy_runtime.executable import CallableProgram

if TYPE_CHECKING:
    from xlapy.hlo.graph import HloModule


class HasModule(Protocol):
    """What stands for a module: a computation that a builder built, or one of another interface."""

    @property
    def module(self) -> HloModule: ...


Source: TypeAlias = "HasModule | HloModule | str | bytes | bytearray | memoryview"
"""A program: what a builder built, a module, text in HLO or StableHLO, or the bytes of a serialized module."""

_STABLEHLO = re.compile(r"\s*(?:module\b|func\.func\b|#\w|\"builtin\.module\"|\"func\.func\")")
_NO_PROGRAM = re.compile(r"(?!//|/\*)[^\n(){}=]+")  # one line without any brackets
_FILE_ENDINGS = (".hlo", ".mlir", ".mlirbc", ".pb", ".txt")
_COMMENTS = re.compile(r"(?:\s*//[^\n]*\n|\s*/\*.*?\*/)*", re.DOTALL)
_BYTE_ORDER_MARK = "\ufeff"
"""What some editors put in front of text."""

_CONTROL_CHARACTERS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_BEGINNING = 256  # bytes of a serialized module, among which is a character that no text has


def load(source: Source) -> HloModule:
    """The module of a program in any form. Text is told apart by how it begins.

    Bytes are text in UTF-8, a serialized HloModuleProto, or MLIR bytecode (a portable artifact, too; needs jaxlib)."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _load_bytes(bytes(source))
    if isinstance(source, str):
        return _load_text(source)
    kind: type[HloModule] = late("xlapy.hlo.graph").HloModule
    module = source if isinstance(source, kind) else getattr(source, "module", None)
    if not isinstance(module, kind):
        raise ParseError(
            f"{type(source).__name__} is not a program: give a computation, a module, text or bytes{_hint(source)}"
        )
    return module


def _hint(source: object) -> str:
    """How to make a program of what is none, if that can be told."""
    if isinstance(source, CallableProgram):
        return "; it is compiled already: call it, as in program(*arrays)"
    if hasattr(source, "mlir_module_serialized"):
        return "; xlapy.jax.compile_exported makes a function of it, and what its mlir_module() returns is a program"
    if hasattr(source, "builder"):
        return "; its builder makes one: builder.build(it)"
    if type(source).__module__.startswith("jaxlib.mlir"):
        return "; str(it) is its text"
    if hasattr(source, "lower"):
        return "; xlapy.jax.jit stands in for jax.jit, and lower(...).as_text() is a program"
    if callable(source) and not hasattr(source, "as_text"):
        return "; a function is recorded with an XlaBuilder, or traced by xlapy.jax.jit"
    name = next((name for name in _METHODS_THAT_GIVE_PROGRAMS if hasattr(source, name)), "")
    return f"; what its {name}() returns may be one" if name else ""


_METHODS_THAT_GIVE_PROGRAMS = ("build", "as_text", "mlir_module", "as_hlo_text", "read_bytes", "read", "tobytes")
"""Of builders, JAX's lowered and exported functions, jaxlib's computations, paths, files, and arrays of bytes."""


def _load_text(source: str) -> HloModule:
    if _NO_PROGRAM.fullmatch(source) and ("/" in source or source.endswith(_FILE_ENDINGS)):
        raise ParseError(
            f"a program is its text, not the name of a file: Path({source!r}).read_bytes() is what is in it"
        )
    source = source.removeprefix(_BYTE_ORDER_MARK)
    if not source or source.isspace():
        raise ParseError("this program is empty: there is no text in it")
    comments = _COMMENTS.match(source)
    rest = source[comments.end() :] if comments else source
    if _STABLEHLO.match(rest) or rest.lstrip().startswith("module"):
        return _module_of_stablehlo(source)
    module: HloModule = late("xlapy.hlo.text").parse(source)
    return module


def _module_of_stablehlo(text: str) -> HloModule:
    module: HloModule = late("xlapy.stablehlo").parse(text)
    return module


def _load_bytes(source: bytes) -> HloModule:
    if late("xlapy.stablehlo.bytecode").is_bytecode(source):
        return _module_of_stablehlo(late("xlapy.stablehlo.bytecode").text_of_bytecode(source))
    if late("xlapy_runtime.saved_file").is_saved(source):
        raise ParseError("this is a saved program, which is compiled already: xlapy_runtime.load(path) gives it")
    if _CONTROL_CHARACTERS.search(source[:_BEGINNING]):
        return _module_of_message(source)
    try:
        return _load_text(source.decode())
    except UnicodeDecodeError:
        raise ParseError("these bytes are neither text in UTF-8 nor a serialized module") from None


def _module_of_message(source: bytes) -> HloModule:
    try:
        module: HloModule = late("xlapy.hlo.proto").module_from_bytes(source)
    except ParseError:
        other = next((what for beginning, what in _OTHER_FILES.items() if source.startswith(beginning)), None)
        if other is not None:
            raise ParseError(f"this is no program: it is {other}") from None
        if _MLIR_BYTECODE not in source:
            raise
        raise ParseError(
            "these bytes seem to be what an Exported of jax.export has serialized: xlapy.jax.compile_exported(them) "
            "makes a function of them, and jax.export.deserialize(them).mlir_module() is a program"
        ) from None
    return module


_OTHER_FILES = {
    b"\x93NUMPY": "an array that numpy has saved",
    b"PK\x03\x04": "a zip archive, as of arrays that numpy has saved",
    b"\x1f\x8b": "compressed by gzip",
    b"\x7fELF": "machine code",
    b"\xff\xfe": "text in UTF-16, where programs are in UTF-8",
    b"\xfe\xff": "text in UTF-16, where programs are in UTF-8",
}
"""What files that are given by mistake begin with, and what they are."""

_MLIR_BYTECODE = b"ML\xefR"
"""What a program begins with among the parts of an artifact."""


def compile(source: Source, options: CompileOptions | None = None, **unknown: Never) -> Executable:
    """Compiles a program for this machine and returns it as a callable.

    `source` is a computation, an HloModule, HLO text, StableHLO text (generic or pretty), or bytes as `load` takes
    them. Raises XlaError naming the instruction for a program that breaks a rule, UnsupportedError for what xlapy
    knowingly does not do.

    A program with `?` dimensions becomes a `DynamicExecutable`, which compiles itself for the sizes of each call."""
    chosen = USUAL_OPTIONS if options is None else options
    if unknown or not isinstance(chosen, CompileOptions):
        raise ArgumentError(_wrong_options(chosen, unknown))
    if isinstance(source, str) and "?" not in source:
        return Executable(compile_cached(source, lambda: _static(load(source)), chosen, is_own=True), chosen)
    module = load(source)
    if late("xlapy.hlo.specialize").has_open_parameters(module):
        dynamic: Executable = late("xlapy.specialized").DynamicExecutable(
            module, chosen, lambda specialized: _compiled(specialized, chosen)
        )
        return dynamic
    return _compiled(_static(module), chosen)


def _wrong_options(options: object, unknown: Mapping[str, Any]) -> str:
    """What `compile` says of arguments that it does not take."""
    if unknown:
        wrong = next(iter(unknown))
        return f"compile() has no argument {wrong!r}{_hint_for_keyword(wrong)}"
    hint = ""
    if isinstance(options, Mapping):
        hint = "; xlapy.CompileOptions(name=value, ...) makes them of names and values"
    elif options is CompileOptions:
        hint = "; xlapy.CompileOptions() makes the usual ones"
    return f"options are CompileOptions, not {options!r}{hint}"


def _hint_for_keyword(name: str) -> str:
    if name in CompileOptions.__match_args__:
        return f"; it is an option: xlapy.compile(program, xlapy.CompileOptions({name}=...))"
    names = late("xlapy.support.other_names")
    hint: str = names.hint_for(names.OPTIONS, name)
    return hint or "; how to compile is said by options=xlapy.CompileOptions(...)"


def _compiled(module: HloModule, options: CompileOptions) -> Executable:
    return Executable(compile_cached(module_key(module), lambda: module, options), options)


def _static(module: HloModule) -> HloModule:
    """The module with operations of known sizes only; its parameters say all that there is to know."""
    specializing = late("xlapy.hlo.specialize")
    if not specializing.is_dynamic(module):
        return module
    known: HloModule = specializing.specialize(module, module.signature.parameters)
    return known


def evaluate(source: Source, *arguments: Any, custom_calls: Any = None) -> Any:
    """The result by the reference evaluator: obviously right, and slow. Arguments and result are as for an
    executable; LAPACK's functions are there for it too."""
    if not isinstance(custom_calls, Mapping | None):
        raise ArgumentError(f"custom_calls gives targets by their names, which {custom_calls!r} does not")
    module, specializing = load(source), late("xlapy.hlo.specialize")
    if specializing.has_open_parameters(module):
        module = specializing.specialize_to(module, arguments)
    built_in, registered = late("xlapy_runtime.built_in_calls").BUILT_IN, late("xlapy_runtime.custom_calls").TARGETS
    targets = {**built_in, **registered, **(custom_calls or {})}
    return late("xlapy.hlo.evaluate").evaluate(_static(module), *arguments, custom_calls=targets)
