"""What tells this processor, as this process sees it, from others; without LLVM, which takes longer to say.

Two things together. The processor is asked itself, in a few bytes of machine code, for its model and for the extensions
that this process may use: emulators answer for the processor that they play. All else is the same from one start of the
operating system to the next, which has a name of its own.
"""

from __future__ import annotations

import ctypes
import struct

from xlapy.codegen.hand_written import ask_processor, ask_system, is_linux_on_x86
from xlapy_runtime.small_files import first_bytes

_BOOT = "/proc/sys/kernel/random/boot_id"

_MODEL, _EXTENSIONS = 1, 7  # leaves of cpuid
_SYSTEM_ANSWERS = 1 << 27  # of the third word of the model


_FourWords = ctypes.c_uint32 * 4


def processor_identity() -> bytes | None:
    """Equal only for processes that may run each other's code; None where only LLVM can tell."""
    if not is_linux_on_x86():
        return None
    boot = first_bytes(_BOOT)
    return boot + struct.pack("<12I", *_answers()) if boot else None


def _answers() -> list[int]:
    """What the processor says of itself, without what differs from core to core."""
    ask = ask_processor()
    answer = _FourWords()
    words: list[int] = []
    for leaf, part in ((_MODEL, 0), (_EXTENSIONS, 0), (_EXTENSIONS, 1)):
        ask(leaf, part, ctypes.addressof(answer))
        words += answer
    model, extensions = words[:4], words[4:]
    saved = ask_system()() if model[2] & _SYSTEM_ANSWERS else 0
    return [model[0], *model[2:], *extensions, saved]  # the word that is left out numbers the core
