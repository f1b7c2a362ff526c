"""What tells this processor, as this process sees it, from others; without LLVM, which takes longer to say.

Two things together. The processor is asked itself, in a few bytes of machine code, for its model and for the extensions
that this process may use: emulators answer for the processor that they play. All else is the same from one start of the
operating system to the next, which has a name of its own.

Programs that are kept outlive a start of the system. For these counts what the C library has asked the processor when
the process began, which is more, and costs no more than to read it: where nobody runs between the processor and the
system, an answer takes 0.1 us, and in a virtual machine 4.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from xlapy_runtime.hand_written import ask_processor, is_linux_on_x86
from xlapy_runtime.linking import symbol_address
from xlapy_runtime.matrix_unit import uses_matrix_unit
from xlapy_runtime.small_files import first_bytes

_BOOT = "/proc/sys/kernel/random/boot_id"

_MODEL, _EXTENSIONS = 1, 7  # leaves of cpuid
_QUESTIONS = ((_MODEL, 0), (_EXTENSIONS, 0), (_EXTENSIONS, 1))
_ROW_WORDS = 4
_NUMBER_OF_CORE = 1
"""The word in the row of the model that differs from core to core."""

_Words = ctypes.c_uint32 * (_ROW_WORDS * len(_QUESTIONS) + 1)


def processor_identity() -> bytes | None:
    """Equal only for processes that may run each other's code; None where only LLVM can tell."""
    if not is_linux_on_x86():
        return None
    boot = first_bytes(_BOOT)
    return boot + bytes(_answers()) + bytes([uses_matrix_unit()]) if boot else None


def _answers() -> ctypes.Array[ctypes.c_uint32]:
    """What the processor says of itself: a row for each question, then the registers that the system saves."""
    words = _Words()
    for row, question in enumerate(_QUESTIONS):
        words[row * _ROW_WORDS], words[row * _ROW_WORDS + 1] = question
    ask_processor()(words, len(_QUESTIONS))
    words[_NUMBER_OF_CORE] = 0
    return words


_LEAVES = 9
_LEAF_BYTES = 32
"""What glibc knows of a leaf of `cpuid`: the answer, and which of it is in use. The first leaf is the model."""

_OF_CORE = slice(4, 8)
"""The word in the first leaf that differs from core to core."""

_CACHES = (188, 191, 194)
"""What glibc calls the sizes of the caches of data: first, second and third level."""

_LEAF = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)


@functools.cache
def known_processor() -> str | None:
    """Equal only for processors, as a process sees them, that may run each other's code and have caches of the same
    sizes. None where nobody but LLVM can tell: without glibc, or with one from before 2021."""
    leaf_at = _leaf_function() if is_linux_on_x86() else None
    if leaf_at is None:
        return None
    first, last = leaf_at(0), leaf_at(_LEAVES - 1)
    if last - first != (_LEAVES - 1) * _LEAF_BYTES:
        return None
    leaves = ctypes.string_at(first, _LEAVES * _LEAF_BYTES)
    caches = [os.sysconf(name) for name in _CACHES]
    return f"{leaves[: _OF_CORE.start].hex()} {leaves[_OF_CORE.stop :].hex()} {caches} {uses_matrix_unit()}"


def _leaf_function() -> Any:
    """`const struct cpuid_feature *__x86_get_cpuid_feature_leaf(unsigned leaf)`, which glibc has since 2.33."""
    try:
        return _LEAF(symbol_address("__x86_get_cpuid_feature_leaf"))
    except ValueError:
        return None
