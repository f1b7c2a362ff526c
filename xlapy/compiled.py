"""What a compilation gives: a program, and what is known about its making."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xlapy.codegen.target import Target
from xlapy.native import host, library_symbols, link_with_shared
from xlapy.support.late import late
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.program import Program
from xlapy_runtime.records import Record
from xlapy_runtime.wording import counted

if TYPE_CHECKING:
    from xlapy.hlo.graph import HloModule
    from xlapy.passes.pipeline import PipelineReport
    from xlapy_runtime.linking import Room


class CompileStats(Record):
    """What a compilation produced and what it took."""

    instructions: int  # of the module as given
    kernels: int  # distinct ones; equal kernels are shared
    fusions: int
    arena_bytes: int
    live_bytes: int  # no arena could be smaller
    compile_ms: float
    passes_ms: float
    llvm_ms: float
    flops: float
    transcendentals: float
    bytes_accessed: float
    unknown_trip_counts: float
    cached: bool = False  # the whole program came from the cache on disk

    def __str__(self) -> str:
        source = "loaded" if self.cached else "compiled"
        return (
            f"{counted(self.instructions, 'instruction')} in {counted(self.kernels, 'kernel')} "
            f"({counted(self.fusions, 'fusion')}), {self.arena_bytes:,} bytes of temporaries, "
            f"{source} in {self.compile_ms:.1f} ms (passes {self.passes_ms:.1f}, LLVM {self.llvm_ms:.1f})"
        )


class Compiled(Record, eq=False):
    """A compiled program. `make_stats` tells what is known about its making, which hardly anybody asks for. `machine`
    is what it was compiled for, unless that is this machine. `report` is None if it came from the cache. `source` gives
    the module again that it was made of, for a report on it. `shared` is what programs share and this one needs, with
    this one, as it lay beside it in the cache, and where it may run."""

    program: Program
    make_stats: Callable[[], CompileStats]
    machine: Target | None = None
    report: PipelineReport | None = None
    source: Callable[[], HloModule] | None = None
    shared: Room | None = None

    @property
    def stats(self) -> CompileStats:
        """What the compilation produced, and what it took."""
        return self.make_stats()

    def link(self) -> LinkedCode:
        """The code in memory, ready to run."""
        linked = link_with_shared(self.shared)
        if linked is not None:
            return linked
        imports: dict[str, int] = {}
        for name in self.program.libraries:
            imports.update(library_symbols(name, self.machine or host()))
        return link(self.program.objects, imports, [self.program.entry, *self.program.kernels])

    @property
    def target(self) -> Target:
        """What it was compiled for. Of a program from the cache that is this machine, as it is now."""
        return self.machine or host().target

    def assembly(self) -> str:
        """The assembly of the entry and all kernels."""
        assembly_of: Callable[[str, Target], str] = late("xlapy.codegen.program").assembly_of
        target = self.target
        return "\n".join(assembly_of(text, target) for text in self.program.llvm_modules)
