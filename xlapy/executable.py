"""Executables: compiled programs that are called like functions."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from xlapy.compiled import Compiled, CompileStats
from xlapy.native import (
    install_planned_calls,
    install_rendezvous,
    look_function,
    native_wrapper,
    parallel_function,
)
from xlapy.options import CompileOptions, own_options
from xlapy.support.late import late
from xlapy_runtime.device import assigned_devices
from xlapy_runtime.executable import CallableProgram, ProgramExecutable, keeps_gil_to, needs_rendezvous
from xlapy_runtime.program import flatten, tree_text
from xlapy_runtime.threads import wanted_threads
from xlapy_runtime.wording import counted, kind_of

if TYPE_CHECKING:
    from xlapy.hlo.graph import HloModule
    from xlapy.report.limits import Limits
    from xlapy.report.profile import Profile


class Executable(CallableProgram):
    """A compiled program. `exe(*arrays)` runs it on the first device: numpy arrays in, numpy arrays out.

    One array per parameter (a nested tuple for a tuple parameter); the result is an array, or a nested tuple of arrays.
    Inputs are borrowed, unless the program says that they are donated (see `donations`); results are fresh. Executables
    are immutable and may be called from many threads at once."""

    __slots__ = ("_compiled", "_options")

    def __init__(self, compiled: Compiled, options: CompileOptions) -> None:
        self._options = options
        self._compiled = compiled
        super().__init__(_linked(compiled, options))

    @property
    def options(self) -> CompileOptions:
        """What it was compiled with."""
        self._options = own_options(self._options)
        return self._options

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program as one file, which `xlapy_runtime.load(path)` runs without the compiler, and without
        compiling: on this machine, and on others with the processor's instructions that this one has.

        The file holds all that the program needs but its custom call targets, which are functions of this process."""
        late("xlapy.saving").save(self._compiled, self.options, os.fspath(path))

    def hlo_text(self) -> str:
        """The module as it was compiled: after all passes. Many constants are elided, and then it does not parse."""
        return self._compiled.program.hlo_text

    def llvm_ir(self) -> str:
        """The LLVM IR of the entry and all kernels."""
        return "\n".join(self._compiled.program.llvm_modules)

    def assembly(self) -> str:
        """The assembly of the entry and all kernels, as LLVM makes it; an entry that only calls may be other code, that
        does the same."""
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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            names = late("xlapy.support.other_names")
            hint = names.hint_for(names.EXECUTABLE, name)
            raise AttributeError(f"{kind_of(self)} has no {name!r}{hint}", name=name, obj=self)

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
        install_planned_calls(program)
        if needs_rendezvous(program):
            install_rendezvous()
    return ProgramExecutable(
        program,
        compiled.link(),
        devices=assigned_devices(options.device_assignment),
        timeout=options.timeout,
        seed=options.seed,
        targets=options.custom_calls,
        parallel=functools.partial(parallel_function, threads),
        look=look_function,
        wrapper=native_wrapper(),
        keeps_gil_to=keeps_gil_to(program),
    )
