"""LLVM and forks: a child must not inherit a lock whose holder stays behind in the parent.

llvmlite locks all of LLVM for each call. So a fork waits for the call that another thread is in, and holds the lock
meanwhile; whoever loads LLVM imports this module.
"""

from __future__ import annotations

import os

from llvmlite.binding import ffi

_LOCK = ffi.lib._lock

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.__enter__, after_in_parent=_LOCK.__exit__, after_in_child=_LOCK.__exit__)
