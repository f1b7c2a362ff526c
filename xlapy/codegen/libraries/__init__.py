"""Shape-generic native code: compiled once per machine, kept in the object cache, linked into every program.

A kernel whose shapes are run-time values (matrix products, the thread pool) is the same code for all programs. It is
worth a second of compile time once, and costs some milliseconds to reload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xlapy.codegen.jit import Optimization, emit_object
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.target import Target

_CACHE_KIND = "library"


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """How an instruction runs whose code is in a library: by a function of ranges of units,

        void function(ptr table, i64 begin, i64 end)

    where the table holds pointers: to `numbers`, to the context of the call if the instruction takes long (else null),
    to scratch memory if it has such (else null), then to operands and results."""

    library: str
    function: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """Native code that does not depend on any program: how to emit it, and the symbols it offers."""

    name: str
    exports: tuple[str, ...]
    emit: Callable[[Target], str]
    """Writes the IR for a target; equal targets get equal text."""

    optimization: Optimization = "none"
    codegen_level: int = 1
    needs: tuple[str, ...] = ()
    """Names of other libraries whose functions it calls."""

    def object_code(self, target: Target, cache: ObjectCache) -> bytes:
        """The library as an object file, from the cache if it is there.

        The IR is not emitted to look it up: the cache's version covers the emitter's sources, the key what they may
        ask of the target. How many cores there are is not for libraries to know.
        """
        caches = f"{target.l1_bytes}|{target.l2_bytes}|{target.l3_bytes}"
        key = f"{self.name}|{self.optimization}|{self.codegen_level}|{target.code_key}|{caches}".encode()
        found = cache.get(_CACHE_KIND, key)
        if found is None:
            found = emit_object(
                self.emit(target), target, optimization=self.optimization, codegen_level=self.codegen_level
            )
            cache.put(_CACHE_KIND, key, found)
        return found
