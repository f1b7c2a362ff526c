"""Threads that run the processes of a parallel run, kept for the next one.

A thread is taken from the idle ones or started, and sleeps in native code until it is given a process. One that stays
idle for a while ends. There are no threads before the first parallel run, and none of these after a fork.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence

from xlapy_runtime.native_records import Slot, SlotWord
from xlapy_runtime.rendezvous import NATIVE

IDLE_SECONDS = 1.0
"""Long enough to bridge the runs of a loop, short enough that no thread outlives its use noticeably."""

_IDLE_NANOSECONDS = int(IDLE_SECONDS * 1e9)


class EntryThreads:
    """A stack of idle threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[EntryThread] = []

    def take(self, count: int) -> list[EntryThread]:
        """Threads that wait for a process each."""
        with self._lock:
            kept = max(0, len(self._idle) - count)
            taken = self._idle[kept:]
            del self._idle[kept:]
        try:
            while len(taken) < count:
                taken.append(EntryThread(self))
                taken[-1].start()
        except BaseException:
            self.put([thread for thread in taken if thread.ident is not None])
            raise
        return taken

    def put(self, threads: Sequence[EntryThread]) -> None:
        with self._lock:
            self._idle.extend(threads)

    def retire(self, thread: EntryThread) -> bool:
        """Takes an idle thread off the stack; False if somebody has just taken it."""
        with self._lock:
            if thread not in self._idle:
                return False
            self._idle.remove(thread)
            return True

    def forget(self) -> None:
        """Starts over in a child process, which has none of its parent's threads."""
        self._lock = threading.Lock()
        self._idle = []


class EntryThread(threading.Thread):
    """A thread in native code. `address` is that of its slot."""

    def __init__(self, owner: EntryThreads) -> None:
        super().__init__(name="xlapy-entry", daemon=True)
        self._owner = owner
        self._slot = Slot()
        self._clean_up: Callable[[], None] | None = None
        self.address = ctypes.addressof(self._slot)

    def abandon(self, clean_up: Callable[[], None]) -> bool:
        """Lets a thread whose process does not end alone: it will call `clean_up` itself. False if it has ended."""
        self._clean_up = clean_up
        if NATIVE.get().abandon(self.address):
            return True
        self._clean_up = None
        return False

    def run(self) -> None:
        while NATIVE.get().serve(self.address, _IDLE_NANOSECONDS) or not self._owner.retire(self):
            if self._slot.word == SlotWord.ABANDONED:
                clean_up, self._clean_up = self._clean_up, None
                if clean_up is not None:
                    clean_up()
                    del clean_up
                self._slot.word = SlotWord.IDLE
                self._owner.put([self])


ENTRY_THREADS = EntryThreads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ENTRY_THREADS.forget)
