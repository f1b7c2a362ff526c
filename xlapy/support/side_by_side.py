"""Jobs in several threads, for work that Python's lock does not cover, such as LLVM's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from xlapy.support.late import late

T = TypeVar("T")


def side_by_side(jobs: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """The results of independent jobs, in their order, by up to `threads` threads, which end with the last job.

    Raises the error of the first job that has one, when all have ended. Functions of `atexit` run when Python begins no
    more threads: then this thread does all."""
    if threads < 2 or len(jobs) < 2 or not threading.main_thread().is_alive():
        return [job() for job in jobs]
    with late("concurrent.futures").ThreadPoolExecutor(min(threads, len(jobs))) as pool:
        results = [pool.submit(job) for job in jobs]
    return [result.result() for result in results]
