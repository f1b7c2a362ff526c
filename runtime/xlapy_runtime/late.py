"""Modules that most processes never need, imported when they are first asked for.

A fork waits for those that other threads are importing: in the child, a module whose import was begun by a thread that
stayed behind would be locked for ever.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes half a millisecond to import
import importlib
import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from typing import Any

from xlapy_runtime.errors import ExecutionError

_importing: set[int] = set()
"""The threads that are importing a module here."""

_PATIENCE_SECONDS = 10.0
"""For how long a fork waits: an import may itself wait for what the thread that forks holds."""

_NAP_SECONDS = 0.001


def late(module: str) -> Any:
    """The module of this name, which is imported now if it was not before.

    For what lies behind a question that is mostly answered without it: a program in the cache needs no compiler. All
    else is imported at the top of a file. Raises ExecutionError while Python shuts down, when nothing is imported."""
    thread = get_ident()
    if module in sys.modules or thread in _importing:
        return _imported(module)
    _importing.add(thread)
    try:
        with _Uninterrupted():
            return _imported(module)
    finally:
        _importing.discard(thread)


class _Uninterrupted:
    """Ctrl-C counts only when all is done: modules enter in tables what they have, and one whose import was cut short
    would find its own entries there when it is imported again, for the rest of the process."""

    def __enter__(self) -> None:
        self._noted: list[Any] = []
        self._handler: Any = _signal.getsignal(_signal.SIGINT)
        if not callable(self._handler):
            return
        try:
            _signal.signal(_signal.SIGINT, self._note)
        except ValueError:  # Python runs handlers in its main thread alone, where they are set, too
            self._handler = None

    def _note(self, *arguments: Any) -> None:
        self._noted = [*arguments]

    def __exit__(self, *raised: object) -> None:
        if not callable(self._handler):
            return
        if _signal.getsignal(_signal.SIGINT) == self._note:
            _signal.signal(_signal.SIGINT, self._handler)
        if self._noted:
            self._handler(*self._noted)


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        if sys.meta_path is not None:
            raise
        raise ExecutionError(f"Python is shutting down and imports nothing, and this needs {module}") from None


def others_import() -> bool:
    """Whether another thread is importing a module here."""
    return not _importing <= {get_ident()}


def wait_for_imports() -> None:
    """Waits until no other thread imports a module here, or has taken very long to."""
    end = time.monotonic() + _PATIENCE_SECONDS
    interruption = None
    while others_import() and time.monotonic() < end:
        interruption = interruption_of(partial(time.sleep, _NAP_SECONDS)) or interruption
    if interruption is not None:
        raise interruption


def interruption_of(action: Callable[[], object]) -> BaseException | None:
    """What a signal handler has raised during an action, if one has. In what comes before a fork that does not count
    until all is done: Python reports it, and forks all the same."""
    try:
        action()
    except BaseException as raised:  # noqa: BLE001 - it is returned
        return raised
    return None


def _forget_others() -> None:
    """In a child there is one thread."""
    _importing.intersection_update({get_ident()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports, after_in_child=_forget_others)
