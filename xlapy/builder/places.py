"""Where the user is: the innermost frame outside xlapy, for error messages and for the metadata of instructions."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType


def user_frame() -> FrameType | None:
    """The innermost frame that is not in xlapy's own code, or None if all are."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """`model.py:41: y = ops.Add(x, h)`, the user's line as an error shows it; empty if there is none."""
    frame = user_frame()
    if frame is None:
        return ""
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line, frame.f_globals).strip()
    return f"{printable(_shortened(path))}:{line}" + (f": {source}" if source else "")


def printable(path: str) -> str:
    """The path, with question marks for those bytes of it that are no text."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


def _shortened(path: str) -> str:
    """The path as seen from the working directory, where it lies below that."""
    return path.removeprefix(os.getcwd() + os.sep)


# What the frames of this package say of themselves, so that the comparison needs no normalized paths.
_PACKAGE = os.path.dirname(os.path.dirname(user_frame.__code__.co_filename)) + os.sep
