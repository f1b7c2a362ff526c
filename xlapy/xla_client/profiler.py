"""The names of `xla_client.profiler`. xlapy writes no traces: XLAPY_TIME_PASSES and `compile_stats` tell of time."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from xlapy.support.errors import UnsupportedError


class TraceMe:
    """A named stretch of time, as a context manager. `duration` has its seconds; nobody else is told."""

    def __init__(self, name: str, **metadata: Any) -> None:
        self.name = name
        self.metadata = metadata
        self.duration = 0.0
        self._started = 0.0

    @staticmethod
    def is_enabled() -> bool:
        return False

    def set_metadata(self, **metadata: Any) -> None:
        self.metadata.update(metadata)

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.duration = time.perf_counter() - self._started


class ProfilerSession:
    def __init__(self, *options: Any) -> None:
        raise UnsupportedError("xlapy records no traces of the profiler; time calls, or use a profiler of Python")


def start_server(port: int) -> Any:
    raise UnsupportedError("xlapy has no profiler that others could connect to")
