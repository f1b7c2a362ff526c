"""What state our own sources are in: in a checkout, where no version number moves with them, each process looks at all
when it loads them.

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

from xlapy_runtime.digests import blake2b
from xlapy_runtime.hand_written import is_linux_on_x86, look_at_files

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
    root = os.path.dirname(packages[0])
    key = os.fsencode("\0".join(packages))
    remembered = notes.get(_KIND, key)
    found = None if remembered is None else _state_if_complete(root, remembered)
    if found is not None:
        return found
    folders, files = _listed(packages)
    paths = os.fsencode("\0".join([*(path.removeprefix(f"{root}/") for path in (*folders, *files)), ""]))
    rows = b"".join(folders.values())
    if max(_ROW.unpack(row)[1] for row in folders.values()) < time.time_ns() - _SETTLED_NANOSECONDS:
        notes.put(_KIND, key, b"".join((_COUNT.pack(len(folders), len(files)), rows, paths)))
    return _digest(paths, look(root, paths, len(folders) + len(files))[len(rows) :])


def _state_if_complete(root: str, remembered: bytes) -> str | None:
    """The state of the files whose paths are remembered, if no folder has changed since. What is remembered by sources
    of another time may have another form: nobody looks where it only seems to say."""
    if len(remembered) < _COUNT.size:
        return None
    folders, files = _COUNT.unpack_from(remembered)
    begin = _COUNT.size + folders * _ROW.size
    rows, paths = remembered[_COUNT.size : begin], remembered[begin:]
    if min(folders, files) < 0 or paths.count(0) != folders + files:
        return None
    seen = look(root, paths, folders + files)
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


def look(folder: str, paths: bytes, count: int) -> bytes:
    """The rows of so many paths, of which each ends with a zero byte, and begins in the folder unless with a slash."""
    rows = _look_natively(folder, paths, count) if is_linux_on_x86() else None
    if rows is None:
        return b"".join(_row(os.path.join(folder, path)) for path in os.fsdecode(paths).split("\0")[:count])
    return rows


def _row(path: str) -> bytes:
    try:
        status = os.stat(path)
    except OSError:
        return _ABSENT
    return _ROW.pack(status.st_size, status.st_mtime_ns)


def _look_natively(folder: str, paths: bytes, count: int) -> bytes | None:
    """The same, quickly; None if the folder cannot be opened."""
    try:
        descriptor = os.open(folder, os.O_PATH)
    except OSError:
        return None
    try:
        memory = bytearray(_ABSENT * count + paths + b"\0")
        rows = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        end = count * _ROW.size
        look_at_files()(struct.pack("=4q", descriptor, rows + end, count, rows))
        return bytes(memory[:end])
    finally:
        os.close(descriptor)
