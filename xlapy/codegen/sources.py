"""What state our own sources are in: in a checkout, where no version number moves with them, each process looks at all.

They are hundreds, and to find them in their folders and look at each from Python would take longer than everything else
that a program from the cache needs. So where they are is remembered, with the times of the folders, which change when a
file comes or goes. All folders and files are looked at each time, on Linux in one native loop. Contents are not read:
an edit moves the time of a file.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from typing import Protocol

from xlapy.codegen.processor import is_linux_on_x86
from xlapy_runtime.images import Image, Layout
from xlapy_runtime.linking import load

try:  # as `hashlib` has it, which first loads OpenSSL for others
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

FRONT_ENDS = ("builder", "jax", "tools", "xla_client")
"""What stands in front of the compiler only makes programs, and those are keys of their own."""

_KIND = "sources"
_ROW = struct.Struct("=qq")
"""What is known of a file: its size, and its time in nanoseconds. Where there is none, both are -1."""

_ABSENT = b"\xff" * _ROW.size
_COUNT = struct.Struct("=qq")
"""How many folders, and how many files."""

_SETTLED_NANOSECONDS = 2_000_000_000
"""The times of some file systems have steps of two seconds. What changes again within one step shows no difference."""


class Notes(Protocol):
    """Where paths are remembered."""

    def get(self, kind: str, key: bytes) -> bytes | None: ...

    def put(self, kind: str, key: bytes, payload: bytes) -> bool: ...


def state_of_sources(packages: tuple[str, ...], notes: Notes) -> str:
    """A digest of the names, sizes and times of all Python files in these packages, without those of front ends."""
    key = os.fsencode("\0".join(packages))
    remembered = notes.get(_KIND, key)
    found = None if remembered is None else _state_if_complete(remembered)
    if found is not None:
        return found
    folders, files = _listed(packages)
    paths = os.fsencode("\0".join([*folders, *files, ""]))
    rows = b"".join(folders.values())
    if max(_ROW.unpack(row)[1] for row in folders.values()) < time.time_ns() - _SETTLED_NANOSECONDS:
        notes.put(_KIND, key, b"".join((_COUNT.pack(len(folders), len(files)), rows, paths)))
    return _digest(paths, look(paths, len(folders) + len(files))[len(rows) :])


def _state_if_complete(remembered: bytes) -> str | None:
    """The state of the files whose paths are remembered, if no folder has changed since. What is remembered by sources
    of another time may have another form: nobody looks where it only seems to say."""
    if len(remembered) < _COUNT.size:
        return None
    folders, files = _COUNT.unpack_from(remembered)
    begin = _COUNT.size + folders * _ROW.size
    rows, paths = remembered[_COUNT.size : begin], remembered[begin:]
    if min(folders, files) < 0 or paths.count(0) != folders + files:
        return None
    seen = look(paths, folders + files)
    return _digest(paths, seen[len(rows) :]) if seen.startswith(rows) else None


def _digest(paths: bytes, rows: bytes) -> str:
    digest = blake2b(paths)
    digest.update(rows)
    return digest.hexdigest()


def _listed(packages: tuple[str, ...]) -> tuple[dict[str, bytes], list[str]]:
    """The folders of these packages, each with its row from before it was listed, and the Python files in them."""
    folders: dict[str, bytes] = {}
    files: list[str] = []
    for package in packages:
        _list(package, FRONT_ENDS, folders, files)
    return folders, sorted(files)


def _list(folder: str, skipped: tuple[str, ...], folders: dict[str, bytes], files: list[str]) -> None:
    """Notes a folder, its Python files and what is below it. What else has a dot in its name is no package."""
    folders[folder] = _row(folder)
    for name in sorted(os.listdir(folder)):
        path = f"{folder}/{name}"
        if name.endswith(".py"):
            files.append(path)
        elif "." not in name and name != "__pycache__" and name not in skipped and os.path.isdir(path):
            _list(path, (), folders, files)


def look(paths: bytes, count: int) -> bytes:
    """The rows of so many paths, of which each ends with a zero byte."""
    if is_linux_on_x86():
        return _look_natively(paths, count)
    return b"".join(map(_row, os.fsdecode(paths).split("\0")[:count]))


def _row(path: str) -> bytes:
    try:
        status = os.stat(path)
    except OSError:
        return _ABSENT
    return _ROW.pack(status.st_size, status.st_mtime_ns)


def _look_natively(paths: bytes, count: int) -> bytes:
    rows = bytearray(_ABSENT * count)
    code = load(Image(_LAYOUT, b"", _LOOK_CODE), {}, [_LOOK])
    place = ctypes.addressof(ctypes.c_char.from_buffer(rows)) if rows else None
    _LOOKING(code.address(_LOOK))(paths, count, place)
    return bytes(rows)


_LOOK = "look"
_LOOKING = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
_LOOK_CODE = bytes.fromhex(
    "53"  #                push rbx
    "55"  #                push rbp
    "4154"  #              push r12
    "4881ec90000000"  #    sub rsp, 144           room for what the system knows of a file
    "4889fd"  #            mov rbp, rdi           the paths
    "4989f4"  #            mov r12, rsi           how many are left
    "4889d3"  #            mov rbx, rdx           the rows
    # next:
    "49ffcc"  #            dec r12
    "7842"  #              js done
    "bf9cffffff"  #        mov edi, -100          relative to where the process is
    "4889ee"  #            mov rsi, rbp
    "4889e2"  #            mov rdx, rsp
    "4531d2"  #            xor r10d, r10d
    "b806010000"  #        mov eax, 262           newfstatat
    "0f05"  #              syscall
    "85c0"  #              test eax, eax
    "751a"  #              jnz after              the row stays as it is
    "488b442430"  #        mov rax, [rsp + 48]    st_size
    "488903"  #            mov [rbx], rax
    "4869442458"  #        imul rax, [rsp + 88],  st_mtime
    "00ca9a3b"  #                     1000000000
    "4803442460"  #        add rax, [rsp + 96]    st_mtime_nsec
    "48894308"  #          mov [rbx + 8], rax
    # after:
    "4883c310"  #          add rbx, 16
    # skip:
    "48ffc5"  #            inc rbp
    "807dff00"  #          cmp byte ptr [rbp - 1], 0
    "75f7"  #              jne skip
    "ebb9"  #              jmp next
    # done:
    "4881c490000000"  #    add rsp, 144
    "415c"  #              pop r12
    "5d"  #                pop rbp
    "5b"  #                pop rbx
    "c3"  #                ret
)
_LAYOUT = Layout(data_bytes=0, data_space=0, code_bytes=len(_LOOK_CODE), exports={_LOOK: 0}, imports={}, addresses=())
