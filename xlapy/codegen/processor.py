"""What tells this processor, as this process sees it, from others; without LLVM, which takes longer to say.

Two things together. The processor is asked itself, in a few bytes of machine code, for its model and for the extensions
that this process may use: emulators answer for the processor that they play. All else is the same from one start of the
operating system to the next, which has a name of its own.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from xlapy_runtime.images import Image, Layout
from xlapy_runtime.linking import load

_BOOT = "/proc/sys/kernel/random/boot_id"
_MOST_BYTES = 64

_ASK, _ASK_SYSTEM = "ask_processor", "ask_system"

_ASK_CODE = bytes.fromhex(
    "53"  #         push rbx
    "89f8"  #       mov eax, edi       the leaf
    "89f1"  #       mov ecx, esi       its part
    "4989d0"  #     mov r8, rdx        where the answer goes
    "0fa2"  #       cpuid
    "418900"  #     mov [r8], eax
    "41895804"  #   mov [r8 + 4], ebx
    "41894808"  #   mov [r8 + 8], ecx
    "4189500c"  #   mov [r8 + 12], edx
    "5b"  #         pop rbx
    "c3"  #         ret
)
_ASK_SYSTEM_CODE = bytes.fromhex(
    "31c9"  #       xor ecx, ecx
    "0f01d0"  #     xgetbv             which registers the system saves, so that they may be used
    "c3"  #         ret
)
_ASKING = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
_ASKING_SYSTEM = ctypes.CFUNCTYPE(ctypes.c_uint32)
_LAYOUT = Layout(
    data_bytes=0,
    data_space=0,
    code_bytes=len(_ASK_CODE) + len(_ASK_SYSTEM_CODE),
    exports={_ASK: 0, _ASK_SYSTEM: len(_ASK_CODE)},
    imports={},
    addresses=(),
)

_MODEL, _EXTENSIONS = 1, 7  # leaves of cpuid
_SYSTEM_ANSWERS = 1 << 27  # of the third word of the model


def processor_identity() -> bytes | None:
    """Equal only for processes that may run each other's code; None where only LLVM can tell."""
    if not is_linux_on_x86():
        return None
    try:
        with open(_BOOT, "rb", buffering=0) as file:
            boot = file.read(_MOST_BYTES)
    except OSError:
        return None
    return boot + struct.pack("<12I", *_answers()) if boot else None


def is_linux_on_x86() -> bool:
    """Whether the machine code that is written here by hand can run."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and struct.calcsize("P") == 8


def _answers() -> list[int]:
    """What the processor says of itself, without what differs from core to core."""
    code = load(Image(_LAYOUT, b"", _ASK_CODE + _ASK_SYSTEM_CODE), {}, [_ASK, _ASK_SYSTEM])
    ask = _ASKING(code.address(_ASK))
    answer = (ctypes.c_uint32 * 4)()
    words: list[int] = []
    for leaf, part in ((_MODEL, 0), (_EXTENSIONS, 0), (_EXTENSIONS, 1)):
        ask(leaf, part, ctypes.addressof(answer))
        words += answer
    model, extensions = words[:4], words[4:]
    system = _ASKING_SYSTEM(code.address(_ASK_SYSTEM))
    saved = system() if model[2] & _SYSTEM_ANSWERS else 0
    return [model[0], *model[2:], *extensions, saved]  # the word that is left out numbers the core
