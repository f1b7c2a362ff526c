"""Loads object code into this process.

Code must not be unloaded while it may run. Whoever hands an address to someone else keeps the `LinkedCode` alive for
as long; at the end of the process nothing is unloaded at all, because a worker thread may still be inside.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import llvmlite.binding as llvm

from xlapy_runtime.errors import InternalError

_LIBRARIES_PER_LINKER = 64
"""A linker keeps some 10 KB of each library even after unloading it, until it goes itself; making one costs as much
time as linking two libraries. So each serves a few, and goes with the last of them."""


class LinkedCode:
    """Machine code in memory. Unloaded when this object goes."""

    __slots__ = ("__weakref__", "_addresses")

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self._addresses = dict(addresses)

    def address(self, symbol: str) -> int:
        """Where the exported `symbol` is."""
        try:
            return self._addresses[symbol]
        except KeyError:
            raise InternalError(f"{symbol} was not exported; exported: {', '.join(self._addresses)}") from None


def link(objects: Sequence[bytes], imports: Mapping[str, int], exports: Sequence[str]) -> LinkedCode:
    """Links object files with each other, with `imports` (name to address), and with this process's own symbols.

    The objects must be position-independent code for this machine. An unknown or repeated symbol is an InternalError;
    LLVM writes its name to the standard error stream.
    """
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
    linked = LinkedCode({name: tracker[name] for name in exports})
    weakref.finalize(linked, _unload, tracker, linker).atexit = False
    return linked


Installed = TypeVar("Installed")


class InstalledOnce(Generic[Installed]):
    """Native code of which a process needs one copy, made of the first object code that comes: `found`."""

    def __init__(self, what: str, make: Callable[[bytes], Installed]) -> None:
        self._what = what
        self._make = make
        self._lock = threading.Lock()
        self.found: Installed | None = None

    def install(self, object_code: bytes) -> None:
        """Makes it. Whoever comes second changes nothing."""
        with self._lock:
            if self.found is None:
                self.found = self._make(object_code)

    def get(self) -> Installed:
        """What was made; there must be one."""
        if self.found is None:
            raise InternalError(f"{self._what} is not installed")
        return self.found


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
