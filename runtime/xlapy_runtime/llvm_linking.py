"""LLVM's linker, for object code that `images` does not know: other machines, other kinds of files.

It is an engine of its own and a large library, and is loaded when it is first needed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import llvmlite.binding as llvm

import xlapy_runtime.llvm_lock  # noqa: F401
from xlapy_runtime.errors import InternalError

_LIBRARIES_PER_LINKER = 64
"""A linker keeps some 10 KB of each library even after unloading it, until it goes itself; making one costs as much
time as linking two libraries. So each serves a few, and goes with the last of them."""


def link(
    objects: Sequence[bytes], imports: Mapping[str, int], exports: Sequence[str]
) -> tuple[Mapping[str, int], Callable[[], None]]:
    """Does what `linking.link` says; the addresses of what was exported, and what unloads the code."""
    library = llvm.JITLibraryBuilder()
    for code in objects:
        library.add_object_img(code)
    library.add_current_process()
    for name, address in imports.items():
        library.import_symbol(name, address)
    for name in exports:
        library.export_symbol(name)
    linker, library_name = _linkers.next()
    try:
        tracker = library.link(linker, library_name)
    except RuntimeError as error:
        raise InternalError(f"cannot link object code: {error}") from None
    return {name: tracker[name] for name in exports}, functools.partial(_unload, tracker, linker)


def _unload(tracker: llvm.orcjit.ResourceTracker, linker: llvm.LLJIT) -> None:
    """Frees the code; taking the linker along keeps that alive until its last library is gone."""
    tracker.close()
    del linker


class _Linkers:
    """Hands out the linker for the next library, a new one every now and then.

    Without a lock, which a fork could leave locked: of two threads that both make a linker, one linker serves less.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._current: llvm.LLJIT | None = None

    def next(self) -> tuple[llvm.LLJIT, str]:
        """A linker, and a library name that it has not seen."""
        number, linker = next(self._numbers), self._current
        if linker is None or number % _LIBRARIES_PER_LINKER == 0:
            linker = self._current = _new_linker()
        return linker, f"xlapy.{number}"


def _new_linker() -> llvm.LLJIT:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler(use_jit_link=True)


_linkers = _Linkers()
