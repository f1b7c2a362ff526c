"""Pausing Python's cyclic garbage collector while a graph is built.

A graph is one large cycle, so nothing of it can be freed while it grows; collections that run all the same look at all
of it again and again, and take longer than the building.
"""

from __future__ import annotations

import gc
import os
import threading
from _thread import get_ident
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class _Builders:
    """How many pauses each thread has, and whether the collector ran before the first of all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses: Counter[int] = Counter()
        self._ran = False

    def enter(self) -> None:
        with self._lock:
            is_first = not self._pauses
            self._pauses[get_ident()] += 1
            if is_first:
                self._ran = gc.isenabled()
                gc.disable()

    def leave(self) -> None:
        with self._lock:
            self._pauses[get_ident()] -= 1
            self._forget({thread for thread, count in self._pauses.items() if not count})

    def begin_in_child(self) -> None:
        """In a forked child, where nobody ends the pauses of the parent's other threads."""
        self._lock = threading.Lock()
        self._forget({*self._pauses} - {get_ident()})

    def _forget(self, threads: set[int]) -> None:
        """Drops threads that have no pauses. The collector runs first: a fork may come in between."""
        if threads and self._pauses.keys() <= threads and self._ran:
            gc.enable()
        for thread in threads:
            del self._pauses[thread]


_BUILDERS = _Builders()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BUILDERS.begin_in_child)


@contextmanager
def paused_collection() -> Iterator[None]:
    """No collection until the last of these, of any thread, has ended. It stays off where the user had it off."""
    _BUILDERS.enter()
    try:
        yield
    finally:
        _BUILDERS.leave()
