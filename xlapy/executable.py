"""Executables: compiled programs that are called like functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlapy.compiled import Compiled, CompileStats
from xlapy.native import (
    install_batch_calls,
    install_rendezvous,
    look_function,
    native_wrapper,
    parallel_function,
)
from xlapy.options import CompileOptions
from xlapy.support.errors import ArgumentError
from xlapy.support.late import late
from xlapy_runtime.arguments import counted
from xlapy_runtime.device import Device, devices
from xlapy_runtime.executable import ProgramExecutable, needs_rendezvous
from xlapy_runtime.program import flatten, tree_text
from xlapy_runtime.threads import wanted_threads

if TYPE_CHECKING:
    from xlapy.hlo.graph import HloModule
    from xlapy.report.limits import Limits
    from xlapy.report.profile import Profile

SMALL_PROGRAM_BYTES = 64 * 1024
"""Programs that touch no more keep the GIL: they end before another thread could have got anything done."""


class Executable:
    """A compiled program. `exe(*arrays)` runs it on the first device: numpy arrays in, numpy arrays out.

    One array per parameter (a nested tuple for a tuple parameter); the result is an array, or a nested tuple of arrays.
    Inputs are borrowed, unless the program says that they are donated (see `donations`); results are fresh. Executables
    are immutable and may be called from many threads at once."""

    __slots__ = ("__call__", "_compiled", "_executable", "options")

    __call__: Callable[..., Any]

    def __init__(self, compiled: Compiled, options: CompileOptions) -> None:
        self.options = options
        self._compiled = compiled
        self._executable = _linked(compiled, options)
        self.__call__ = self._executable.function

    @property
    def name(self) -> str:
        """The name of the module."""
        return self._compiled.program.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled are the module and the options: who reads them compiles again, or finds the program in the cache."""
        return late("xlapy.api").compile, (self._source(), self.options)

    def __copy__(self) -> Executable:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Executable:
        return self

    def _source(self) -> HloModule:
        """The module that was compiled."""
        assert self._compiled.source is not None
        return self._compiled.source()

    def run(self, *arguments: Any, device: Any = None, seed: int | None = None, timeout: float | None = None) -> Any:
        """Runs the program once, like a call, with a device, a seed or a timeout of its own."""
        return self._executable.run(*arguments, device=device, seed=seed, timeout=timeout)

    def run_parallel(
        self, arguments: Sequence[Sequence[Any]], *, seed: int | None = None, timeout: float | None = None
    ) -> list[Any]:
        """Runs every process of the grid at once: one list of arguments, and one result, per process, replica-major."""
        return self._executable.run_parallel(arguments, seed=seed, timeout=timeout)

    def run_distributed(
        self, *arguments: Any, communicator: Any = None, seed: int | None = None, timeout: float | None = None
    ) -> Any:
        """Runs one process of the grid here, and the others in the other processes of an MPI communicator of mpi4py:
        by default all that `mpiexec` has started. Each is the process of its rank, gives its arguments, and gets its
        results; if one fails, all raise."""
        return self._executable.run_distributed(*arguments, communicator=communicator, seed=seed, timeout=timeout)

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

    @property
    def donations(self) -> dict[int, int]:
        """The results that live in the memory of arguments, and of which: both as numbers of array leaves.

        Such an argument is changed by the call, and is the result: the same array. Only if it is not the caller's own
        to give (read-only, a view, passed twice ...) does a copy of it take its place."""
        return dict(self._compiled.program.aliases)

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, those results that live in donated arguments, temporaries, constants and code;
        and the peak, all but the code, with the least that any plan of the temporaries would have."""
        program, least = self._compiled.program, self._compiled.stats.live_bytes
        arguments = sum(spec.nbytes for tree in program.parameters for spec in flatten(tree))
        results = [spec.nbytes for spec in flatten(program.result)]
        donated = sum(results[number] for number in program.aliases)
        constants = sum(constant.nbytes for constant in program.constants)
        held = arguments + sum(results) - donated + constants
        return {
            "argument_bytes": arguments,
            "result_bytes": sum(results),
            "donated_bytes": donated,
            "temporary_bytes": program.arena_bytes,
            "temporary_bytes_lower_bound": least,
            "constant_bytes": constants,
            "code_bytes": sum(len(code) for code in program.objects),
            "peak_bytes": held + program.arena_bytes,
            "peak_bytes_lower_bound": held + least,
        }

    def explain(self, limits: Limits | None = None) -> str:
        """What the compiler did: passes and laws, fusions and refusals with their reasons and your lines, kernels with
        what they move and compute and the time that takes at best, memory.

        Compiles the program once more for that. `limits` are the machine's; without them they are measured, which
        takes some seconds once per machine."""
        text: str = _inspection().explanation(self._compiled, self.options, limits)
        return text

    def profile(self, *arguments: Any, calls: int | None = None) -> Profile:
        """Runs the program with a clock around each kernel, so many `calls` or for half a second, and tells the
        shortest times; `print` it. For programs of one process."""
        found: Profile = _inspection().profiled(self._compiled, self.options, _linked, arguments, calls)
        return found

    def html_report(self, limits: Limits | None = None, profile: Profile | None = None) -> str:
        """All that `explain` tells and more, as one HTML page that needs nothing else: the graph before and after, what
        each pass changed, memory over time, the code of each kernel. With a `profile`, measured times too."""
        page: str = _inspection().html_report(self._compiled, self.options, limits, profile)
        return page

    def __repr__(self) -> str:
        program = self._compiled.program
        signature = f"{tree_text(program.parameters)} -> {tree_text(program.result)}"
        return f"<Executable {self.name} {signature}, {counted(self._compiled.stats.kernels, 'kernel')}>"

    def _repr_html_(self) -> str:
        html: str = _inspection().executable_html(repr(self)[1:-1], str(self._compiled.stats), self.hlo_text())
        return html


def _inspection() -> Any:
    """`xlapy.inspection`, which most programs never need: loaded when it is first asked for."""
    return late("xlapy.inspection")


def _linked(compiled: Compiled, options: CompileOptions) -> ProgramExecutable:
    """The program in memory, ready to run."""
    program = compiled.program
    threads = wanted_threads(options.num_threads)
    if program.runtime_calls or program.num_processes > 1:
        install_batch_calls(program)
        if needs_rendezvous(program):
            install_rendezvous()
    return ProgramExecutable(
        program,
        compiled.link(),
        devices=_devices(options),
        timeout=options.timeout,
        seed=options.seed,
        targets=options.custom_calls,
        parallel=functools.partial(parallel_function, threads),
        look=look_function,
        wrapper=native_wrapper(),
        keeps_gil_to=-1 if program.has_loops else SMALL_PROGRAM_BYTES,
    )


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
