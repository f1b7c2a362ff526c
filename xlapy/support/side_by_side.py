"""Jobs in several threads, for work that Python's lock does not cover, such as LLVM's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def side_by_side(jobs: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """The results of independent jobs, in their order, by up to `threads` threads. The caller is one of them; the
    others end with the last job.

    Raises the error of the first job that has one, when all have ended. Threads that the system does not grant, or
    Python no more as it ends, are done without."""
    if threads < 2 or len(jobs) < 2:
        return [job() for job in jobs]
    results: list[Future[T]] = [Future() for _ in jobs]
    waiting = deque(zip(jobs, results, strict=True))
    helpers: list[Thread] = []
    try:
        with suppress(RuntimeError):
            for _ in range(min(threads, len(jobs)) - 1):
                helper = Thread(target=_work, args=(waiting,))
                helper.start()
                helpers.append(helper)
        _work(waiting)
    finally:
        for helper in helpers:
            helper.join()
    return [result.result() for result in results]


def _work(waiting: deque[tuple[Callable[[], T], Future[T]]]) -> None:
    """Does jobs until none is waiting."""
    while True:
        try:
            job, result = waiting.popleft()
        except IndexError:
            return
        try:
            result.set_result(job())
        except BaseException as error:  # noqa: BLE001  (whatever it is, the caller gets it)
            result.set_exception(error)
