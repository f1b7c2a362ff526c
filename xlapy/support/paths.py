"""Paths as messages show them."""

from __future__ import annotations

import os


def seen_from_here(path: str) -> str:
    """The path as seen from the working directory, where it lies below that.

    There may be none: somebody else may have removed it."""
    try:
        here = os.getcwd()
    except OSError:
        return path
    return path.removeprefix(here + os.sep)
