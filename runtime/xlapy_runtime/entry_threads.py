"""Threads that run the processes of a parallel run, kept for the next one.

A thread is taken from the idle ones or started, runs one task, and goes back; one that stays idle for a while ends.
There are no threads before the first parallel run, and none of these after a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

IDLE_SECONDS = 1.0
"""Long enough to bridge the runs of a loop, short enough that no thread outlives its use noticeably."""

Task = Callable[[], None]


class EntryThreads:
    """A stack of idle threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_EntryThread] = []

    def run(self, task: Task) -> None:
        """Starts `task`, which must not raise, on a thread of its own."""
        with self._lock:
            thread = self._idle.pop() if self._idle else None
        if thread is None:
            thread = _EntryThread(self)
            thread.give(task)
            thread.start()
        else:
            thread.give(task)

    def put(self, thread: _EntryThread) -> None:
        with self._lock:
            self._idle.append(thread)

    def retire(self, thread: _EntryThread) -> bool:
        """Takes an idle thread off the stack; False if it has just been given a task."""
        with self._lock:
            if thread not in self._idle:
                return False
            self._idle.remove(thread)
            return True

    def forget(self) -> None:
        """Starts over in a child process, which has none of its parent's threads."""
        self._lock = threading.Lock()
        self._idle = []


class _EntryThread(threading.Thread):
    def __init__(self, owner: EntryThreads) -> None:
        super().__init__(name="xlapy-entry", daemon=True)
        self._owner = owner
        self._task: Task | None = None
        self._given = threading.Semaphore(0)

    def give(self, task: Task) -> None:
        self._task = task
        self._given.release()

    def run(self) -> None:
        while self._given.acquire(timeout=IDLE_SECONDS) or not self._owner.retire(self):
            task, self._task = self._task, None
            if task is not None:
                task()
                del task
                self._owner.put(self)


ENTRY_THREADS = EntryThreads()

os.register_at_fork(after_in_child=ENTRY_THREADS.forget)
