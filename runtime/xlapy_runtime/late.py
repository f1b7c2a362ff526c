"""Modules that most processes never need, imported when they are first asked for."""

from __future__ import annotations

import importlib
from typing import Any


def late(module: str) -> Any:
    """The module of this name, which is imported now if it was not before.

    For what lies behind a question that is mostly answered without it: a program in the cache needs no compiler. All
    else is imported at the top of a file."""
    return importlib.import_module(module)
