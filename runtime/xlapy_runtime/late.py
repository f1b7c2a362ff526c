"""Modules that most processes never need, imported when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from xlapy_runtime.errors import ExecutionError


def late(module: str) -> Any:
    """The module of this name, which is imported now if it was not before.

    For what lies behind a question that is mostly answered without it: a program in the cache needs no compiler. All
    else is imported at the top of a file. Raises ExecutionError while Python shuts down, when nothing is imported."""
    try:
        return importlib.import_module(module)
    except ImportError:
        if sys.meta_path is not None:
            raise
        raise ExecutionError(f"Python is shutting down and imports nothing, and this needs {module}") from None
