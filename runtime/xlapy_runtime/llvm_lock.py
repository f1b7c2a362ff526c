"""LLVM and forks: a child must not inherit a lock whose holder stays behind in the parent.

llvmlite locks all of LLVM for each call. So a fork waits for the call that another thread is in, and holds the lock
meanwhile; whoever loads LLVM imports this module.
"""

from __future__ import annotations

import os

from llvmlite.binding import ffi

from xlapy_runtime.late import interruption_of, others_import, wait_for_imports

_LOCK = ffi.lib._lock._lock


def _hold() -> None:
    """Takes the lock while nobody imports: what is imported may need LLVM to come to an end. Where imports have begun
    while others had the lock, they are waited for once more."""
    interruptions = [interruption_of(wait_for_imports), _take()]
    if others_import():
        _LOCK.release()
        interruptions += [interruption_of(wait_for_imports), _take()]
    for interruption in filter(None, interruptions):
        raise interruption


def _take() -> BaseException | None:
    """Takes the lock, whatever signal handlers raise meanwhile; that is returned."""
    interruption, is_nested = None, _LOCK._is_owned()
    while True:
        interruption = interruption_of(_LOCK.acquire) or interruption
        if is_nested or _LOCK._is_owned():
            return interruption


if hasattr(os, "register_at_fork"):
    # It is released by C alone: a signal handler that raises, as for Ctrl-C, would end a function of Python before.
    os.register_at_fork(before=_hold, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
