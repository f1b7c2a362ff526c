"""Executables: compiled programs that are called like functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlapy.compiler import Compiled, CompileStats, install_batch_calls, native_wrapper, parallel_function
from xlapy.options import CompileOptions
from xlapy.support.errors import ArgumentError
from xlapy_runtime.device import Device, devices
from xlapy_runtime.executable import ProgramExecutable
from xlapy_runtime.program import Program, flatten, tree_text

SMALL_PROGRAM_BYTES = 64 * 1024
"""Programs that touch less keep the GIL: they end before another thread could have got anything done."""


class Executable:
    """A compiled program. `exe(*arrays)` runs it on the first device: numpy arrays in, numpy arrays out.

    One array per parameter (a nested tuple for a tuple parameter); the result is an array, or a nested tuple of arrays.
    Inputs are borrowed, results are fresh. Executables are immutable and may be called from many threads at once."""

    __slots__ = ("__call__", "_compiled", "_executable", "options")

    __call__: Callable[..., Any]

    def __init__(self, compiled: Compiled, options: CompileOptions) -> None:
        self.options = options
        self._compiled = compiled
        install_batch_calls(compiled.program)
        self._executable = ProgramExecutable(
            compiled.program,
            compiled.link(),
            devices=_devices(options),
            timeout=options.timeout,
            seed=options.seed,
            targets=options.custom_calls,
            parallel=parallel_function(options.num_threads),
            wrapper=native_wrapper(),
            release_gil=compiled.program.has_loops or _touched_bytes(compiled.program) > SMALL_PROGRAM_BYTES,
        )
        self.__call__ = self._executable.function

    @property
    def name(self) -> str:
        return self._compiled.program.name

    def run(self, *arguments: Any, device: Any = None, seed: int | None = None, timeout: float | None = None) -> Any:
        """Runs the program once, like a call, with a device, a seed or a timeout of its own."""
        return self._executable.run(*arguments, device=device, seed=seed, timeout=timeout)

    def run_parallel(
        self, arguments: Sequence[Sequence[Any]], *, seed: int | None = None, timeout: float | None = None
    ) -> list[Any]:
        """Runs every process of the grid at once: one list of arguments, and one result, per process, replica-major."""
        return self._executable.run_parallel(arguments, seed=seed, timeout=timeout)

    def hlo_text(self) -> str:
        """The module as it was compiled: after all passes. Many constants are elided, and then it does not parse."""
        return self._compiled.program.hlo_text

    def llvm_ir(self) -> str:
        """The LLVM IR of the entry and all kernels."""
        return "\n".join(self._compiled.program.llvm_modules)

    def assembly(self) -> str:
        """The assembly of the entry and all kernels."""
        return self._compiled.assembly()

    def cost_analysis(self) -> dict[str, float]:
        """Operations and bytes of one run, counted on the optimized module; see `hlo.cost`."""
        stats = self._compiled.stats
        return {
            "flops": stats.flops,
            "transcendentals": stats.transcendentals,
            "bytes accessed": stats.bytes_accessed,
            "unknown trip counts": stats.unknown_trip_counts,
        }

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
            "temporary_bytes_lower_bound": self._compiled.stats.live_bytes,
            "constant_bytes": sum(constant.nbytes for constant in program.constants),
            "code_bytes": sum(len(code) for code in program.objects),
        }

    def __repr__(self) -> str:
        program = self._compiled.program
        signature = f"{tree_text(program.parameters)} -> {tree_text(program.result)}"
        return f"<Executable {self.name} {signature}, {self._compiled.stats.kernels} kernels>"


def _devices(options: CompileOptions) -> list[Device] | None:
    assignment = options.device_assignment
    if assignment is None:
        return None
    if any(number < 0 for number in assignment) or len(set(assignment)) < len(assignment):
        raise ArgumentError(
            f"device_assignment is {list(assignment)}: it lists one device, from 0 on, for each process"
        )
    available = devices(max(assignment, default=0) + 1)
    return [available[number] for number in assignment]


def _touched_bytes(program: Program) -> int:
    """Bytes of everything that a call reads or writes, at most once each."""
    return program.arena_bytes + sum(spec.nbytes for spec in flatten((program.parameters, program.result)))
