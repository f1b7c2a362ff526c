"""Locks that are held for long, and forks: a child finds them open, whoever held them in the parent."""

from __future__ import annotations

import os
import threading


class ProcessLock:
    """A lock for each process that has the object."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def own(self) -> threading.Lock:
        """The lock of this process."""
        return self._locks.setdefault(os.getpid(), threading.Lock())
