"""The matrix unit of a processor (AMX of Intel's): whether this process may use it.

Its registers are 8 KB for each thread, which Linux keeps only for processes that have asked once, before they use them.
The answer holds for all threads, those of children that are forked included.
"""

from __future__ import annotations

import ctypes
import functools

from xlapy_runtime.hand_written import is_linux_on_x86
from xlapy_runtime.linking import symbol_address

_ARCH_PRCTL = 158  # the number of the system call
_REQUEST_PERMISSION, _TILE_REGISTERS = 0x1023, 18

_SYSCALL = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_long)


@functools.cache
def uses_matrix_unit() -> bool:
    """Whether there is one that this process may use. The first call asks the system for it, which takes a microsecond,
    and says no where there is none."""
    if not is_linux_on_x86():
        return False
    system = _SYSCALL(symbol_address("syscall"))
    return bool(system(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_REGISTERS) == 0)
