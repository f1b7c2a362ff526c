"""Where the user is, for error messages and for the metadata of instructions: the innermost frame that is neither in
xlapy, nor in numpy, which may stand in between, nor in a framework that asked to be passed over."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType

import numpy as np

from xlapy.support.errors import XlaError
from xlapy.support.paths import seen_from_here


def user_frame() -> FrameType | None:
    """The innermost frame that is the user's, or None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_places.passed_over):
        frame = frame.f_back
    return frame


def pass_over(folder: str) -> None:
    """Makes the code below a folder no user: errors and instructions name the line that called it.

    For frameworks, which call it when they are imported: `pass_over(os.path.dirname(__file__))`."""
    prefix = os.path.join(os.fspath(folder), "")
    if prefix not in _places.passed_over:
        _places.passed_over += (prefix,)


def user_line() -> str:
    """`model.py:41: y = ops.Add(x, h)`, the user's line as an error shows it; empty if there is none."""
    frame = user_frame()
    if frame is None:
        return ""
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line, frame.f_globals).strip()
    return f"{printable(seen_from_here(path))}:{line}" + (f": {source}" if source else "")


def printable(path: str) -> str:
    """The path, with question marks for those bytes of it that are no text."""
    return path if path.isascii() else path.encode("utf-8", "replace").decode()


class _Places:
    """Folders whose code is no user's, as frames spell them, so that the comparison needs no normalized paths. More
    come when frameworks are imported."""

    passed_over: tuple[str, ...] = (
        os.path.dirname(os.path.dirname(user_frame.__code__.co_filename)) + os.sep,
        os.path.dirname(XlaError.__init__.__code__.co_filename) + os.sep,  # the runtime
        os.path.join(os.path.dirname(np.__file__), ""),
    )


_places = _Places()
