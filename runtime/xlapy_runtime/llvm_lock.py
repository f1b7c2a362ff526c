"""LLVM and forks: a child must not inherit a lock whose holder stays behind in the parent.

llvmlite locks all of LLVM for each call. So a fork waits for the call that another thread is in, and holds the lock
meanwhile; whoever loads LLVM imports this module.
"""

from __future__ import annotations

import os

from llvmlite.binding import ffi

from xlapy_runtime.late import others_import, wait_for_imports

_LOCK = ffi.lib._lock._lock


def _acquire() -> None:
    """Takes the lock while nobody imports: what is imported may need LLVM to come to an end. Where imports have begun
    while others had the lock, they are waited for once more."""
    wait_for_imports()
    _LOCK.acquire()
    if others_import():
        _LOCK.release()
        wait_for_imports()
        _LOCK.acquire()


if hasattr(os, "register_at_fork"):
    # It is released by C alone: a signal handler that raises, as for Ctrl-C, would end a function of Python before.
    os.register_at_fork(before=_acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
