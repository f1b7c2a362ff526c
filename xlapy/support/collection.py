"""Pausing Python's cyclic garbage collector while a graph is built.

A graph is one large cycle, so nothing of it can be freed while it grows; collections that run all the same look at all
of it again and again, and take longer than the building.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Builders:
    """How many pauses there are, in all threads, and whether the collector ran before the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._ran = False

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                self._ran = gc.isenabled()
                gc.disable()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._ran:
                gc.enable()


_BUILDERS = _Builders()


@contextmanager
def paused_collection() -> Iterator[None]:
    """No collection until the last of these, of any thread, has ended. It stays off where the user had it off."""
    _BUILDERS.enter()
    try:
        yield
    finally:
        _BUILDERS.leave()
