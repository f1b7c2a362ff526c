"""Where in the user's program something was made, if that is recorded: the old interface's Traceback."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """One call: where it stands."""

    file_name: str
    function_name: str
    function_start_line: int
    line_num: int

    def __str__(self) -> str:
        return f"{self.file_name}:{self.line_num} ({self.function_name})"


class Traceback:
    """The calls that led somewhere, innermost first. `Traceback.enabled` says whether they are recorded."""

    enabled = False

    __slots__ = ("frames",)

    def __init__(self, frames: tuple[Frame, ...]) -> None:
        self.frames = frames

    @staticmethod
    def get_traceback() -> Traceback | None:
        """The calls that led to the caller; None while tracebacks are not recorded."""
        return Traceback(tuple(_frames(sys._getframe(1)))) if Traceback.enabled else None

    def __str__(self) -> str:
        return "\n".join(map(str, self.frames))


def _frames(frame: types.FrameType | None) -> Iterator[Frame]:
    while frame is not None:
        code = frame.f_code
        yield Frame(code.co_filename, code.co_name, code.co_firstlineno, frame.f_lineno)
        frame = frame.f_back


@contextmanager
def tracebacks(enabled: bool = True) -> Iterator[None]:
    """Records tracebacks of executables and buffers, or does not. Errors name the user's line in any case."""
    before = Traceback.enabled
    Traceback.enabled = enabled
    try:
        yield
    finally:
        Traceback.enabled = before
