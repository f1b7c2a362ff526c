"""The workers of the thread pool, looked at from outside."""

from __future__ import annotations

from xlapy_runtime import threads


def worker_count() -> int:
    """How many workers this process has started so far."""
    pool = threads._POOL.found
    return 0 if pool is None else len(pool.workers)
