"""Executables: compiled programs that are called like functions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

from xlapy.compiler import Compiled, CompileStats, compile_module, native_wrapper
from xlapy.hlo.graph import HloModule
from xlapy.options import CompileOptions
from xlapy.support.errors import CancelledExecution
from xlapy_runtime import result_memory
from xlapy_runtime.buffers import Words, aligned, pointers
from xlapy_runtime.calling import ArraySpec, CallContext, ContextWord, EntryPoint, bind
from xlapy_runtime.calls import SERIAL_PARALLEL_ADDRESS
from xlapy_runtime.device import devices
from xlapy_runtime.executable import ProgramExecutable
from xlapy_runtime.program import Program, Tree, flatten

import numpy as np

SMALL_PROGRAM_BYTES = 64 * 1024
"""Programs that touch less keep the GIL: they end before another thread could have got anything done."""


class Executable:
    """A compiled program. `exe(*arrays)` runs it on the first device: numpy arrays in, numpy arrays out.

    One array per parameter (a nested tuple for a tuple parameter); the result is an array, or a nested tuple of arrays.
    Inputs are borrowed, results are fresh. Executables are immutable and may be called from many threads at once."""

    __slots__ = ("__call__", "_bound", "_compiled", "_executable", "_fast", "options")

    __call__: Callable[..., Any]

    def __init__(self, compiled: Compiled, options: CompileOptions) -> None:
        self.options = options
        self._compiled = compiled
        linked = compiled.link()
        self._executable = ProgramExecutable(
            compiled.program,
            linked,
            devices=_devices(options),
            timeout=options.timeout,
            seed=options.seed,
            targets=options.custom_calls,
            allocate=result_memory.allocate,
        )
        self._fast = _FastCalls(self._executable, linked.address(compiled.program.entry), linked)
        if _is_simple(compiled.program):
            entry = self._fast.entry_point(_has_loops(compiled.module))
            self._bound = bind(entry, self._fast, native_wrapper())
            self.__call__ = self._bound.function
        else:
            self._bound = None
            self.__call__ = self._executable.run

    @property
    def name(self) -> str:
        return self._compiled.program.name

    def run(self, *arguments: Any, device: Any = None, seed: int | None = None, timeout: float | None = None) -> Any:
        """Runs the program once, like a call, with a device, a seed or a timeout of its own."""
        return self._executable.run(*arguments, device=device, seed=seed, timeout=timeout)

    def run_parallel(self, arguments: Sequence[Sequence[Any]], *, seed: int | None = None, timeout: float | None = None) -> list[Any]:
        """Runs every process of the grid at once: one list of arguments, and one result, per process, replica-major."""
        return self._executable.run_parallel(arguments, seed=seed, timeout=timeout)

    def hlo_text(self) -> str:
        """The module as it was compiled: after all passes."""
        return self._compiled.module.to_text()

    def llvm_ir(self) -> str:
        """The LLVM IR of the entry and all kernels."""
        return self._compiled.program.llvm_ir

    def assembly(self) -> str:
        """The assembly of the entry and all kernels."""
        return self._compiled.assembly()

    def compile_stats(self) -> CompileStats:
        """Kernels, fusions, memory, and the time that compilation took."""
        return self._compiled.stats

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporaries, constants and code."""
        program = self._compiled.program
        return {
            "argument_bytes": sum(spec.nbytes for tree in program.parameters for spec in flatten(tree)),
            "result_bytes": sum(spec.nbytes for spec in flatten(program.result)),
            "temporary_bytes": program.arena_bytes,
            "temporary_bytes_lower_bound": self._compiled.plan.live_bytes,
            "constant_bytes": sum(constant.nbytes for constant in program.constants),
            "code_bytes": sum(len(code) for code in program.objects),
        }

    def __repr__(self) -> str:
        signature = self._compiled.source.signature
        return f"<Executable {self.name} {signature}, {self._compiled.stats.kernels} kernels>"


def compile_to_executable(module: HloModule, options: CompileOptions) -> Executable:
    return Executable(compile_module(module, options), options)


def _devices(options: CompileOptions) -> Any:
    if options.device_assignment is None:
        return None
    available = devices(max(options.device_assignment) + 1)
    return [available[number] for number in options.device_assignment]


def _is_simple(program: Program) -> bool:
    """Nothing but native code takes part in a call: no runtime, no other process, no dynamic sizes."""
    leaves = [spec for tree in (*program.parameters, program.result) for spec in flatten(tree)]
    return (
        not program.runtime_calls
        and program.num_processes == 1
        and not program.aliases
        and not any(spec.dynamic_dims for spec in leaves)
        and not any(isinstance(tree, tuple) for tree in program.parameters)
    )


def _has_loops(module: HloModule) -> bool:
    return any(instruction.opcode == "while" for instruction in module.instructions())


class _FastCalls:
    """What the call wrapper needs from its program: contexts, and a way out for calls that are not plain."""

    def __init__(self, executable: ProgramExecutable, address: int, code: object) -> None:
        self._executable = executable
        self._address = address
        self._code = code
        self._constants: Words = pointers(executable.program.constants)

    def entry_point(self, has_loops: bool) -> EntryPoint:
        program = self._executable.program
        parameters = tuple(ArraySpec(spec.dims, spec.dtype) for tree in program.parameters for spec in flatten(tree))
        results = tuple(ArraySpec(spec.dims, spec.dtype) for spec in flatten(program.result))
        touched = program.arena_bytes + sum(spec.byte_count for spec in (*parameters, *results))
        nested = isinstance(program.result, tuple) and any(not _is_array(part) for part in program.result)
        return EntryPoint(
            self._address,
            parameters,
            results,
            gives_tuple=isinstance(program.result, tuple),
            release_gil=has_loops or touched > SMALL_PROGRAM_BYTES,
            restructure=_restructurer(program.result) if nested else None,
            code=self._code,
        )

    def general(self, *arguments: Any) -> Any:
        return self._executable.run(*arguments)

    def failed(self, context_address: int, status: int) -> Any:
        error = _SIGNALLED.pop(context_address, None)
        raise error or CancelledExecution(f"{self._executable.program.name} was stopped")

    def new_context(self) -> CallContext:
        program = self._executable.program
        arena = np.empty(program.arena_bytes + 64, np.uint8)
        flag = ctypes.c_int32(0)
        words = {
            ContextWord.ARENA: aligned(arena.ctypes.data),
            ContextWord.CONSTANTS: ctypes.addressof(self._constants),
            ContextWord.CANCELLED: ctypes.addressof(flag),
            ContextWord.POLL: _POLL_ADDRESS,
            ContextWord.PARALLEL: SERIAL_PARALLEL_ADDRESS,
        }
        entry = self.entry_point(False)
        return CallContext(entry, words, keep=(arena, flag, self._constants, self._code))


def _is_array(tree: Tree) -> bool:
    return hasattr(tree, "dtype")


def _restructurer(tree: Tree) -> Callable[[tuple[Any, ...]], Any]:
    """Turns a flat tuple of leaves into the nested tuple that `tree` is; a token becomes None."""

    def build(part: Tree, leaves: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(build(inner, leaves) for inner in part)
        return next(leaves) if _is_array(part) else None

    return lambda leaves: build(tree, iter(leaves))


_SIGNALLED: dict[int, BaseException] = {}
"""What a signal handler raised while native code ran, by the address of the call's context."""


def _poll(context: int) -> int:
    """Lets Python's signal handlers run, on the main thread; non-zero stops the program."""
    if threading.current_thread() is not threading.main_thread():
        return 0
    try:
        ctypes.pythonapi.PyErr_CheckSignals()
    except BaseException as error:  # noqa: BLE001 - raised again when native code has returned
        _SIGNALLED[context] = error
        return 1
    return 0


_native_poll = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(_poll)
_POLL_ADDRESS = ctypes.cast(_native_poll, ctypes.c_void_p).value or 0
