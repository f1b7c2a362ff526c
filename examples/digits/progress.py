"""A progress bar: tqdm's where it is installed, a plain one otherwise, and only on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, Self

BAR_WIDTH = 40


class Progress(Protocol):
    """Use as a context manager; `update` says that `steps` more are done."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...

    def update(self, steps: int = 1, /) -> object: ...


def progress_bar(total: int, title: str) -> Progress:
    try:
        from tqdm import tqdm
    except ImportError:
        return PlainBar(total, title)
    bar: Progress = tqdm(total=total, desc=title, disable=None, leave=False)
    return bar


class PlainBar:
    """`title [####....]  37%`, redrawn in place when the percentage changes."""

    def __init__(self, total: int, title: str) -> None:
        self._total = total
        self._title = title
        self._done = 0
        self._shown = -1
        self._active = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._active:
            print(file=sys.stderr)

    def update(self, steps: int = 1, /) -> None:
        self._done += steps
        percent = 100 * self._done // self._total
        if self._active and percent != self._shown:
            self._shown = percent
            bar = "#" * (BAR_WIDTH * percent // 100)
            print(f"\r{self._title} [{bar:.<{BAR_WIDTH}}] {percent:3d}%", end="", file=sys.stderr, flush=True)
