"""What tells this processor, as this process sees it, from others; without LLVM, which takes longer to say.

Two things together. The processor is asked itself, in a few bytes of machine code, for its model and for the extensions
that this process may use: emulators answer for the processor that they play. All else is the same from one start of the
operating system to the next, which has a name of its own.
"""

from __future__ import annotations

import ctypes

from xlapy_runtime.hand_written import ask_processor, is_linux_on_x86
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
    return boot + bytes(_answers()) if boot else None


def _answers() -> ctypes.Array[ctypes.c_uint32]:
    """What the processor says of itself: a row for each question, then the registers that the system saves."""
    words = _Words()
    for row, question in enumerate(_QUESTIONS):
        words[row * _ROW_WORDS], words[row * _ROW_WORDS + 1] = question
    ask_processor()(words, len(_QUESTIONS))
    words[_NUMBER_OF_CORE] = 0
    return words
