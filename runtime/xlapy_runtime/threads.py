"""The thread pool: who works in it, how many, from when until when. The work itself is handed out by native code.

Compiled programs call `parallel(kernel, args, count, grain)`, native code that splits a range into chunks and shares
them out among the calling thread and the pool's workers. A worker is a Python daemon thread that enters native code
once, without the GIL, and stays there. None is started before the first range that is worth sharing, and none is ever
waited for: a caller waits for chunks, so that a worker that is late, missing or lost in a fork costs speed, not an
answer.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import functools
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from xlapy_runtime.calls import INTERRUPTED_ADDRESS, LOOK_FOR_SIGNALS_ADDRESS
from xlapy_runtime.errors import ArgumentError
from xlapy_runtime.images import Code
from xlapy_runtime.linking import InstalledOnce, LinkedCode, link
from xlapy_runtime.small_files import first_bytes

MAX_THREADS = 128
"""The most threads that work on one range, the caller included."""

POOL_SYMBOLS = ("parallel_entries", "pool_look_behind", "pool_reset", "pool_state", "pool_wake", "pool_worker")
"""What the pool's object code exports; `parallel_entries` is a table of MAX_THREADS functions, one for each cap."""

MOST_PLACED = 8
"""So many workers at most are told which core to leave to the caller. With more there are more cores to find an idle
one among, and it would take longer to tell them all."""

CORE_WORDS = 16
"""Of 64 bits, for 1024 cores: what the C library takes."""

_LINE = 64
_SPINS = 2000
"""Looks at the job word before a worker goes to sleep: 20 to 70 microseconds, the time of a few calls to the kernel
of the operating system that sleeping and waking would cost."""

_STOP_SECONDS = 1.0
_CGROUP_ROOT = "/sys/fs/cgroup"


class PoolState(ctypes.Structure):
    """The memory that callers and workers share. Fields that different threads write lie on lines of their own.

    word: the job, in one piece: number (16 bits), seats left for workers (8), claims less those that workers have taken
    (20), claims that the caller has taken (20).
    completed: claims of the job that are done.
    kernel ... callers: the job at large; written before the word, read by whoever has a claim. The first claims, so
    many, are the caller's as long as there are others.
    skip: not 0 once the rest of the job need not be done, because the caller was interrupted.
    looked: the clock when the main thread last looked for signals.
    busy: 1 while a caller owns the pool; floats: how that computes with them, and so all who work for it.
    generation: the number of wake-ups so far, which sleepers wait on; sleepers: how many may be asleep.
    stopping: 1 when workers should leave.
    wanted: how many workers were asked for; start: the function that asks for more.
    poll: the function that runs Python's signal handlers; main_thread: the only thread that may call it; interrupted:
    the address of a word that is not 0 from when a handler has raised until the program has noticed.
    allowed: the cores that workers may use, as bits; placed: those of them that they were last told to use; numbers:
    who they are to the operating system, 0 until they run, or less for who is told no more; shunned: one more than the
    core that they leave to the caller, or 0; num_placed: how many are told.
    mutex, condition: for sleeping where there is no futex.
    """

    _fields_: ClassVar[list[Any]] = [
        ("word", ctypes.c_uint64),
        ("_0", ctypes.c_char * (_LINE - 8)),
        ("completed", ctypes.c_int64),
        ("_1", ctypes.c_char * (_LINE - 8)),
        ("kernel", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("grain", ctypes.c_int64),
        ("chunks", ctypes.c_int64),
        ("chunks_per_claim", ctypes.c_int64),
        ("claims", ctypes.c_int64),
        ("callers", ctypes.c_int64),
        ("skip", ctypes.c_int64),
        ("looked", ctypes.c_int64),
        ("busy", ctypes.c_int32),
        ("floats", ctypes.c_int32),
        ("_3", ctypes.c_char * (_LINE - 8)),
        ("generation", ctypes.c_int32),
        ("_4", ctypes.c_char * (_LINE - 4)),
        ("sleepers", ctypes.c_int32),
        ("_5", ctypes.c_char * (_LINE - 4)),
        ("stopping", ctypes.c_int32),
        ("wanted", ctypes.c_int32),
        ("start", ctypes.c_void_p),
        ("poll", ctypes.c_void_p),
        ("main_thread", ctypes.c_int64),
        ("interrupted", ctypes.c_void_p),
        ("_6", ctypes.c_char * (_LINE - 40)),
        ("allowed", ctypes.c_uint64 * CORE_WORDS),
        ("placed", ctypes.c_uint64 * CORE_WORDS),
        ("numbers", ctypes.c_int32 * MOST_PLACED),
        ("shunned", ctypes.c_int32),
        ("num_placed", ctypes.c_int32),
        ("_7", ctypes.c_char * (_LINE - 4 * MOST_PLACED % _LINE - 8)),
        ("mutex", ctypes.c_char * 128),
        ("condition", ctypes.c_char * 128),
    ]


def install(objects: Sequence[Code]) -> None:
    """Gives the process its pool. Whoever comes second changes nothing: one pool serves all programs."""
    _POOL.install(objects)


def parallel_address(num_threads: int | None = None) -> int:
    """The address of `void parallel(void (*kernel)(void *args, int64 begin, int64 end), void *args, int64 count,
    int64 grain)` that keeps at most `num_threads` threads busy, the calling one included; None means `thread_limit()`.

    It calls `kernel` once for each chunk of `grain` elements of [0, count), in any order and at the same time, and
    returns when all are done. The chunks do not depend on the number of threads. Called from inside a kernel, or while
    another thread uses the pool, it runs all chunks itself.

    Python's main thread looks for signals between chunks, now and then. If a handler raises, the remaining chunks are
    skipped; the error waits for the program's next poll.
    """
    pool = _POOL.get()
    return pool.entry(min(wanted_threads(num_threads) or usable_cores(), MAX_THREADS))


def look_address() -> int:
    """The address of `int32 look(void *context)`, which programs call behind what may take long: it returns the status
    that they are to end with, or 0. Now and then it lets Python look at its signals."""
    return _POOL.get().look


def wanted_threads(num_threads: int | None) -> int | None:
    """How many threads somebody asks for: `num_threads`, or else the environment. None is as many as there are
    cores."""
    if num_threads is None:
        return _limit_by_setting()
    if num_threads < 1:
        raise ArgumentError(f"num_threads is {num_threads}; at least one thread is needed")
    return num_threads


def thread_limit() -> int:
    """How many threads a program uses unless told: XLAPY_NUM_THREADS, or else every core this process may use."""
    return _limit_by_setting() or usable_cores()


def _limit_by_setting() -> int | None:
    """What the environment says, if it says anything."""
    table = getattr(os.environ, "_data", None)
    if os.name == "posix" and type(table) is dict and _SETTING not in table:
        return None  # `os.environ` would raise and catch an error to say so
    setting = os.environ.get("XLAPY_NUM_THREADS", "").strip()
    if not setting:
        return None
    if not setting.isdecimal() or int(setting) < 1:
        raise ArgumentError(f"XLAPY_NUM_THREADS is {setting!r}; it must be a positive number")
    return min(int(setting), MAX_THREADS)


_SETTING = os.fsencode("XLAPY_NUM_THREADS")


def usable_cores(cgroup_root: str = _CGROUP_ROOT) -> int:
    """Cores that this process may keep busy: the affinity mask, cut down to the quota of the control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota(cgroup_root)
    return max(1, allowed if quota is None else min(allowed, round(quota + 0.25)))


@functools.cache
def _cgroup_quota(root: str) -> float | None:
    """CPU seconds per second that the control group grants, or None without a limit. Both versions are read, once:
    every compilation asks, and pools and plans are made for the machine as it was at first."""
    quota, _, period = _read_text(f"{root}/cpu.max").partition(" ")
    if not quota:
        quota = _read_text(f"{root}/cpu/cpu.cfs_quota_us")
        period = _read_text(f"{root}/cpu/cpu.cfs_period_us") if quota.isdecimal() else ""
    if quota.isdecimal() and period.isdecimal() and int(period) > 0:
        return int(quota) / int(period)
    return None


def _read_text(path: str) -> str:
    return first_bytes(path).decode("ascii", "replace").strip()


_ACTION = ctypes.CFUNCTYPE(None)
_WAKING = ctypes.CFUNCTYPE(None, ctypes.c_int32)
_WORKING = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class _Pool:
    """The pool of this process: its native code, its memory, and the workers started so far."""

    def __init__(self, objects: Sequence[Code]) -> None:
        self._code: LinkedCode = link(objects, {}, POOL_SYMBOLS)
        self._state = PoolState.from_address(self._code.address("pool_state"))
        self._entries = (ctypes.c_void_p * MAX_THREADS).from_address(self._code.address("parallel_entries"))
        self.look = self._code.address("pool_look_behind")
        self._reset = _ACTION(self._code.address("pool_reset"))
        self._wake = _WAKING(self._code.address("pool_wake"))
        self._work = _WORKING(self._code.address("pool_worker"))
        self._start = _WORKING(self._start_workers)
        self.workers: list[_Worker] = []
        self._begin()
        atexit.register(self._stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def entry(self, cap: int) -> int:
        address = self._entries[cap - 1]
        assert address is not None
        return address

    def _begin(self) -> None:
        """An idle pool without workers: at first, and in a forked child, where the parent's workers are not."""
        self._reset()
        self.workers = []
        self._state.start = ctypes.cast(self._start, ctypes.c_void_p).value
        self._state.poll = LOOK_FOR_SIGNALS_ADDRESS
        self._state.interrupted = INTERRUPTED_ADDRESS
        self._state.main_thread = threading.main_thread().ident or 0

    def _start_workers(self, needed: int) -> None:
        """Called by native code, by the owner of the pool, when a range could use more workers than there are.

        Where the system grants no more threads, what there is has to do.
        """
        self._state.wanted = max(needed, self._state.wanted)
        with contextlib.suppress(RuntimeError):
            while len(self.workers) < needed:
                self.workers.append(_Worker(self._work, self._state.numbers, len(self.workers)))
        self._share_out_cores()

    def _share_out_cores(self) -> None:
        """Lets native code tell all workers which core to leave to the caller, if each can have another one. If there
        are too many of them by now, those that were told before keep to what they were told."""
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
        can_place = len(self.workers) < min(len(cores), MOST_PLACED + 1) and max(cores) < 64 * CORE_WORDS
        self._state.num_placed = len(self.workers) if can_place else 0
        for core in cores if can_place else ():
            self._state.allowed[core // 64] |= 1 << core % 64

    def _stop(self) -> None:
        """Lets the workers leave native code while the interpreter is still there to take them back."""
        self._state.wanted = MAX_THREADS
        self._state.stopping = 1
        self._wake(MAX_THREADS)
        deadline = time.monotonic() + _STOP_SECONDS
        for worker in self.workers:
            worker.done.acquire(timeout=max(0.0, deadline - time.monotonic()))


class _Worker:
    """One thread in native code.

    Bare `_thread` because `threading.Thread.start` waits for the new thread to take the GIL, and the first parallel
    run should not.
    """

    __slots__ = ("done",)

    def __init__(self, work: Any, numbers: Any, index: int) -> None:
        """The thread writes its number at the system to that index of `numbers`, if there is one."""
        self.done = _thread.allocate_lock()
        self.done.acquire()
        _thread.start_new_thread(self._run, (work, numbers, index))

    def _run(self, work: Any, numbers: Any, index: int) -> None:
        if index < len(numbers):
            numbers[index] = _thread.get_native_id()
        try:
            work(_SPINS)
        finally:
            self.done.release()


_POOL: InstalledOnce[_Pool] = InstalledOnce("the thread pool's native code", _Pool)
