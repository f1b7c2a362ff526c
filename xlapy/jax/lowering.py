"""From a traced JAX function to an executable, with everything that cannot run refused before it does."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax

from xlapy.api import compile as compile_program
from xlapy.api import load
from xlapy.executable import Executable
from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.graph import HloModule
from xlapy.hlo.specialize import is_dynamic_call
from xlapy.jax.callbacks import NONE, Effects, effects_of
from xlapy.options import CompileOptions
from xlapy.stablehlo.attributes import ALIASING_OUTPUT, BUFFER_DONOR
from xlapy.support.errors import ExecutionError, UnsupportedError
from xlapy_runtime import lapack
from xlapy_runtime.built_in_calls import BUILT_IN
from xlapy_runtime.custom_calls import TARGETS, find_target

PLATFORM = "cpu"
"""Whose lowering rules JAX applies, whatever its default is."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A function lowered for one signature: `text` is StableHLO with a parameter per leaf of the arguments.

    The avals are JAX's types of the leaves, in the order of the parameters and results; `out_tree` nests the results.
    Functions that are called in order make tokens of `effects` the first parameters and results. `donated` are the
    parameters, by number, whose memory JAX has found a result for.
    """

    text: str
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    out_tree: Any
    effects: Effects = NONE
    donated: tuple[int, ...] = ()

    def as_text(self) -> str:
        """The StableHLO, as JAX spells asking for it."""
        return self.text

    def __repr__(self) -> str:
        given, made = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"<Lowered ({given}) -> ({made}), {len(self.text):,} characters of StableHLO>"

    def compile(self, options: CompileOptions | None = None) -> Executable:
        """The program as an executable of flat arrays; a token is None."""
        return compile_text(self.text, options or CompileOptions(), self.effects)


class _Lowering(threading.local):
    """How many functions the thread is lowering, one within the other."""

    depth = 0


_LOWERING = _Lowering()


def is_lowering() -> bool:
    """Whether this thread is tracing a function for xlapy: another one that it calls becomes part of it."""
    return _LOWERING.depth > 0


@contextmanager
def _lowering() -> Iterator[None]:
    _LOWERING.depth += 1
    try:
        yield
    finally:
        _LOWERING.depth -= 1


def lower(jitted: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Lowered:
    """Traces what `jax.jit(..., keep_unused=True)` returned, and lowers it. Errors of the function pass through."""
    with _lowering():
        traced = jitted.trace(*arguments, **keywords)
        lowered = traced.lower(lowering_platforms=(PLATFORM,))
    effects = effects_of(traced, lowered)
    module = lowered.compiler_ir("stablehlo")
    check_grid(module.operation.attributes["mhlo.num_partitions"].value)
    return Lowered(
        lowered.as_text(),
        tuple(jax.tree_util.tree_leaves(lowered.in_avals)),
        tuple(traced.jaxpr.out_avals),
        lowered.out_tree,
        effects,
        _donated(module),
    )


def _donated(module: Any) -> tuple[int, ...]:
    """The parameters of @main that say that they are donated."""
    (main,) = (function for function in module.body.operations if function.attributes["sym_name"].value == "main")
    if "arg_attrs" not in main.attributes:
        return ()
    attributes = main.attributes["arg_attrs"]
    return tuple(
        number for number, stated in enumerate(attributes) if ALIASING_OUTPUT in stated or BUFFER_DONOR in stated
    )


def compile_text(text: str, options: CompileOptions, effects: Effects = NONE) -> Executable:
    """Compiles StableHLO text. Only text that calls something outside is read before the cache is asked for it."""
    if options.flush_subnormals is None:
        options = replace(options, flush_subnormals=True)
    if "custom_call" not in text:
        return compile_program(text, options)
    module = load(text)
    callbacks = effects.targets(module)
    if callbacks:
        options = replace(options, custom_calls={**options.custom_calls, **callbacks})
    check_custom_calls(module, options)
    return compile_program(module, options)


def check_grid(num_partitions: int) -> None:
    """Refuses programs that JAX has laid out for several devices."""
    if num_partitions > 1:
        raise UnsupportedError(f"the function is sharded over {num_partitions} devices; xlapy.jax runs on one")


def check_custom_calls(module: HloModule, options: CompileOptions) -> None:
    """Refuses programs with a custom call that nobody provides: at the first run it would be too late to say so."""
    for instruction in module.instructions():
        if instruction.opcode != "custom-call" or is_dynamic_call(instruction):
            continue
        target: str = instruction.attributes["target"]
        if target in lapack.NAMES and target not in options.custom_calls and target not in TARGETS:
            lapack.require()
        version = instruction.attributes["api_version"]
        if not _is_provided(target, options, typed=version is CustomCallApiVersion.TYPED_FFI):
            known = ", ".join(sorted({*options.custom_calls, *TARGETS})) or "none"
            raise UnsupportedError(
                f"the program calls {target!r}, for which there is no custom call target; besides those of JAX there "
                f"are: {known}; give others as CompileOptions(custom_calls=...)"
            )


def _is_provided(target: str, options: CompileOptions, *, typed: bool) -> bool:
    """Whether the runtime will find the target. Symbols of loaded libraries do not count for typed calls: plain C
    functions cannot take those."""
    if typed:
        return any(target in place for place in (options.custom_calls, TARGETS, BUILT_IN))
    try:
        find_target(target, options.custom_calls)
    except ExecutionError:
        return False
    return True
