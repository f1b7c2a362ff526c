"""LLVM's strength reduction of loops, which looks for better sums of what addresses are made of.

Kernels of programs go without: their addresses are pointers that are moved in front of each loop by what does not
change in it, and by one index in it (`Memory.gep`), of which nothing better comes out. What is left to find saves less
than the search takes, a fifth of LLVM's time for a kernel. Libraries, which are made once per machine, keep it.

LLVM knows one switch for the whole process. It is on whenever nothing of ours is emitted, for the sake of others that
use LLVM, and emissions that want it otherwise than those that are under way wait for these.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

import llvmlite.binding as llvm

_PATIENCE_SECONDS = 0.0005  # between looks at what others do: emissions take milliseconds


class _Emission:
    """One that is under way. It is forgotten with the call that it belongs to, however that ends."""

    __slots__ = ("__weakref__",)


class _Switch:
    """Where LLVM's switch stands, and for whom."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: WeakSet[_Emission] = WeakSet()
        self._is_on = True

    def begin(self, emission: _Emission, *, on: bool) -> bool:
        """Whether the emission can begin; if not, others are under way that want the switch otherwise."""
        with self._lock:
            if on != self._is_on:
                if self._under_way:
                    return False
                self._turn(on=on)
            self._under_way.add(emission)
            return True

    def end(self, emission: _Emission) -> None:
        with self._lock:
            self._under_way.discard(emission)
            if not self._under_way and not self._is_on:
                self._turn(on=True)

    def _turn(self, *, on: bool) -> None:
        llvm.set_option("xlapy", f"-disable-lsr={str(not on).lower()}")
        self._is_on = on

    def forget_others(self) -> None:
        """In a child process, nothing goes on that was under way in others' threads."""
        self._lock = threading.Lock()
        self._under_way = WeakSet()


_SWITCH = _Switch()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SWITCH.forget_others)


@contextmanager
def strength_reduction(*, on: bool) -> Iterator[None]:
    """LLVM reduces the strength of what is emitted inside, or does not."""
    emission = _Emission()
    try:
        while not _SWITCH.begin(emission, on=on):
            time.sleep(_PATIENCE_SECONDS)
        yield
    finally:
        _SWITCH.end(emission)
