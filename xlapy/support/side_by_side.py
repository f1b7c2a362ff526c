"""Jobs in several threads, for work that Python's lock does not cover, such as LLVM's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def side_by_side(jobs: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """The results of independent jobs, in their order, by up to `threads` threads, which end with the last job.

    Raises the error of the first job that has one, when all have ended."""
    if threads < 2 or len(jobs) < 2:
        return [job() for job in jobs]
    with ThreadPoolExecutor(min(threads, len(jobs))) as pool:
        results = [pool.submit(job) for job in jobs]
    return [result.result() for result in results]
