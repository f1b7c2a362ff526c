"""From what JAX hands over to an executable: the program in StableHLO, options, and functions that it calls.

Programs come as portable artifacts, StableHLO in MLIR's binary form, which the same jaxlib has just written. It reads
them here, in this process; what comes from elsewhere is `stablehlo.bytecode`'s.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from jax.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir.dialects import stablehlo

from xlapy.executable import Executable
from xlapy.hlo.proto.options import CompileOptionsProto, ExecutableBuildOptionsProto, OptionOverrideProto
from xlapy.jax.callbacks import TARGETS as CALLBACK_TARGETS
from xlapy.jax.callbacks import Effects
from xlapy.jax.lowering import compile_text
from xlapy.options import CompileOptions
from xlapy.pjrt.lowerings import drop_decompositions, symbol_of
from xlapy.pjrt.records import HostCallbacks
from xlapy.support.errors import ArgumentError, ExecutionError, UnsupportedError
from xlapy.support.protobuf import decode
from xlapy_runtime.built_in_calls import BUILT_IN
from xlapy_runtime.custom_calls import TARGETS
from xlapy_runtime.lapack import NAMES


def read_options(data: bytes) -> tuple[ExecutableBuildOptionsProto, CompileOptions]:
    """What JAX says of where the program runs, and how it is to be compiled: what `compiler_options` of `jax.jit` say
    are overrides."""
    options = decode(CompileOptionsProto, data)
    chosen = {entry.key: entry.value for entry in options.env_option_overrides if entry.key.startswith(_OWN)}
    return options.executable_build_options or ExecutableBuildOptionsProto(), _compile_options(chosen)


_OWN = "xlapy_"
_SWITCHES = ("contract", "excess_precision", "fast_math", "flush_subnormals", "verify")
_NUMBERS = ("num_threads", "seed")


def _compile_options(chosen: Mapping[str, OptionOverrideProto | None]) -> CompileOptions:
    """Those of xlapy's options that a switch or a number says. Options of other names are XLA's."""
    given: dict[str, Any] = {}
    for name, value in chosen.items():
        own = name.removeprefix(_OWN)
        if own in _SWITCHES and value is not None and value.bool_field is not None:
            given[own] = value.bool_field
        elif own in _NUMBERS and value is not None and value.int_field is not None:
            given[own] = value.int_field
        else:
            known = ", ".join(_OWN + known for known in (*_SWITCHES, *_NUMBERS))
            raise ArgumentError(f"{name!r} is no option, or has no such value; there are {known}")
    return CompileOptions(**given)


class LateCallbacks(Sequence[Callable[..., Any]]):
    """The Python functions that a program calls by their numbers. JAX tells them with each run."""

    def __init__(self) -> None:
        self._functions: list[Callable[..., Any]] = []

    def read(self, address: int) -> None:
        """Reads FfiLoadedHostCallbacks, the first time. JAX keeps the functions alive as long as the program."""
        if self._functions:
            return
        told = HostCallbacks.from_address(address)
        places = (ctypes.c_void_p * told.count).from_address(told.functions)
        self._functions = [ctypes.cast(place, ctypes.py_object).value for place in places]

    def __getitem__(self, number: Any) -> Any:
        if not self._functions:
            raise ExecutionError("JAX has not said which functions the program calls")
        return self._functions[number]

    def __len__(self) -> int:
        return len(self._functions)

    def __bool__(self) -> bool:
        return True


class _Contexts:
    """MLIR's contexts, of which a thread has one for itself meanwhile. To make one takes as long as to read a program
    of some hundred operations. It remembers all constants of the programs that were read in it, and so does not stay
    for ever."""

    def __init__(self) -> None:
        self._idle: list[tuple[Any, int]] = []

    @contextmanager
    def context(self, byte_count: int) -> Iterator[Any]:
        """A context to read a program of so many bytes in."""
        try:
            context, read = self._idle.pop()
        except IndexError:
            context, read = mlir.make_ir_context(), 0
        with context:
            yield context
        if read + byte_count < _MOST_BYTES_READ:
            self._idle.append((context, read + byte_count))


_MOST_BYTES_READ = 1 << 20
_CONTEXTS = _Contexts()


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program as text, and the kinds of memory that JAX wants its parameters and results in; None for any."""

    text: str
    parameter_kinds: tuple[str | None, ...]
    result_kinds: tuple[str | None, ...]


def read_artifact(code: bytes, form: str) -> ProgramText:
    """What a portable artifact of this jaxlib's says."""
    if form != "mlir":
        raise UnsupportedError(f"xlapy compiles programs of JAX in the form 'mlir', not {form!r}")
    with _CONTEXTS.context(len(code)) as context:
        module = stablehlo.deserialize_portable_artifact(context, code)
        drop_decompositions(module)
        (main,) = (operation for operation in module.body.operations if symbol_of(operation) == "main")
        return ProgramText(str(module), _memory_kinds(main, "arg_attrs"), _memory_kinds(main, "res_attrs"))


def _memory_kinds(main: Any, table: str) -> tuple[str | None, ...]:
    if table not in main.attributes:
        return ()
    return tuple(row[_MEMORY_KIND].value if _MEMORY_KIND in row else None for row in main.attributes[table])


_MEMORY_KIND = "mhlo.memory_kind"


def compile_program(program: ProgramText, callbacks: LateCallbacks, options: CompileOptions) -> Executable:
    """Compiles a program as JAX hands it over."""
    targets = _registered(program.text)
    if targets:
        options = replace(options, custom_calls={**targets, **options.custom_calls})
    return compile_text(program.text, options, Effects(callbacks))


_CALLED = re.compile(r"\bcustom_call @([\w.$-]+)|\bcustom_call @\"([^\"]+)\"")


def _registered(text: str) -> dict[str, Any]:
    """The targets of custom calls that are registered with JAX, and of which xlapy has none of its own."""
    called = {plain or quoted for plain, quoted in _CALLED.findall(text)}
    unknown = called.difference(TARGETS, BUILT_IN, NAMES, CALLBACK_TARGETS)
    if not unknown:
        return {}
    known = xla_client.custom_call_targets("Host")
    return {name: known[name] for name in unknown if name in known}
