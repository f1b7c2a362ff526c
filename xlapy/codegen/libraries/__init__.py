"""Shape-generic native code: compiled once per machine, kept in the object cache, linked into every program.

A kernel whose shapes are run-time values (matrix products, the thread pool) is the same code for all programs. It is
worth a second of compile time once, and costs some milliseconds to reload.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xlapy.codegen.ir import Module
from xlapy.codegen.jit import Optimization, emit_object
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.stored_code import StoredCode, find_code, keep_code
from xlapy.codegen.target import Target
from xlapy.support.side_by_side import side_by_side
from xlapy_runtime.prelinking import prelinked
from xlapy_runtime.records import Record
from xlapy_runtime.threads import thread_limit


class LibraryCall(Record):
    """How an instruction runs whose code is in a library: by a function of ranges of units,

        void function(ptr table, i64 begin, i64 end)

    where the table holds pointers: to `numbers`, to the context of the call if the instruction takes long (else null),
    to scratch memory if it has such (else null), then to operands and results."""

    library: str
    function: str
    numbers: tuple[int, ...]


NUMBERS_PLACE, SCRATCH_PLACE, FIRST_ARRAY = 0, 2, 3
"""In the table of a call, which has the context behind the numbers."""


class Library(Record):
    """Native code that does not depend on any program: how to emit it, and the symbols it offers."""

    name: str
    exports: tuple[str, ...]
    emit: Callable[[Target], Module]
    """Writes the IR for a target; equal targets get equal text."""

    optimization: Optimization = "none"
    codegen_level: int = 1
    reduces_strength: bool = True
    """LLVM looks for better addresses in loops; without, they are as the emitter wrote them."""

    needs: tuple[str, ...] = ()
    """Names of other libraries whose functions it calls."""

    trim: str = ""
    """The one of its functions that gives memory it keeps back to the system, if any."""

    most_parts: int = 1
    """Modules that it may be cut into, for LLVM to work on side by side; with one, it may have data of its own."""

    glue: Callable[[Target], Module] | None = None
    """Writes functions that do nothing but call others: a module of its own, compiled in the fastest way."""

    def objects(self, target: Target, cache: ObjectCache) -> list[bytes]:
        """The library as object files, from the cache if they are there; else they are made, and kept."""
        return list(map(bytes, self.code(target, cache).objects))

    def code(self, target: Target, cache: ObjectCache) -> StoredCode:
        """The library, from the cache if it is there; else it is made, and kept."""
        found = find_code(self.name, target, cache)
        if found is not None:
            return found
        compile_ir = partial(
            emit_object,
            target=target,
            optimization=self.optimization,
            codegen_level=self.codegen_level,
            reduces_strength=self.reduces_strength,
        )
        work = [partial(compile_ir, text) for text in self.emit(target).parts(self.most_parts)]
        if self.glue is not None:
            work.append(partial(emit_object, self.glue(target).text(), target, codegen_level=0))
        made = side_by_side(work, thread_limit())
        code = StoredCode(prelinked(made), self.exports, self.needs, self.trim)
        keep_code(self.name, target, cache, code)
        return code
