"""Compiled code on disk, so that a second process finds what the first one made.

An entry is a file named by the hash of its key; a key is whatever bytes the caller says the payload depends on, and
the versions of xlapy and LLVM always count too. The cache may lose anything at any time and nobody may notice more
than a wait: an unwritable home, a full disk, a flipped byte, a writer killed half way or sixteen at once mean a miss,
never an exception.

Payloads become machine code, so nothing is read from a directory that other users may write to, and no entry is
believed unless its checksum covers its kind, its key and what is read of it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import llvmlite
from llvmlite.utils import get_library_name

import xlapy_runtime
from xlapy.codegen.sources import state_of_sources
from xlapy.support.version import VERSION
from xlapy_runtime.digests import blake2b
from xlapy_runtime.hand_written import is_linux_on_x86, mix_words
from xlapy_runtime.late import late
from xlapy_runtime.records import Record

if TYPE_CHECKING:
    from pathlib import Path

    from xlapy_runtime.linking import Room

DEFAULT_LIMIT_BYTES = 1 << 30

_NO_VERSION = b"any version, with paths from one folder"
"""Of what is remembered about the sources, from which the version follows."""

_MIXES_WORDS = is_linux_on_x86()
_MAGIC = b"xlapy entry 9\n" + (b"w\0" if _MIXES_WORDS else b"\0\0")
_WORD = struct.Struct("<Q")
_DIGEST_BYTES = 32
_KEY_LENGTHS = struct.Struct("<QQQ")
_FACTS = struct.Struct(f"<{len(_MAGIC)}sQQ{_DIGEST_BYTES}s")
_HEAD_BYTES = _FACTS.size + _DIGEST_BYTES
"""An entry is: magic, which says how checksums are made | lengths of payload and supplement | checksum of the
supplement | checksum of all this and of the payload | payload | supplement."""

_TEMPORARY_PREFIX = ".writing-"
_TEMPORARY_LIFETIME_SECONDS = 3600
"""A temporary file older than this has lost its writer."""

_NOTED_SECONDS = 3600
"""What was used within this time is not noted once more."""

_SCAN_FRACTION = 16
"""The directory is measured again after this part of the limit was written: bounds both the cost and the overshoot."""

_KEPT_FRACTION = 0.75
"""How full eviction leaves the cache, so that the next entry does not evict again."""


class CacheInfo(Record):
    """What `ObjectCache.info()` reports. `usable` is false for a directory that is absent, disabled or not private."""

    directory: Path | None
    usable: bool
    entries: int
    total_bytes: int
    limit_bytes: int
    hits: int
    misses: int


def cache_directory(setting: str | None, cache_home: str | None = None) -> str | None:
    """Where the cache lives: `setting` if given (XLAPY_CACHE_DIR), else below `cache_home` (XDG_CACHE_HOME).

    None, meaning no cache, for the settings "off" and "", and where there is no home directory, or none to work in that
    the setting is relative to.
    """
    if setting is not None:
        if setting.startswith("/"):  # as it mostly does, and nothing else needs a look
            return os.path.normpath(setting)
        return None if setting.strip().lower() in ("", "off") else _absolute(os.path.expanduser(setting))
    if cache_home and os.path.isabs(cache_home):
        return os.path.join(cache_home, "xlapy")
    home = os.path.expanduser("~")
    return None if home == "~" else os.path.join(home, ".cache", "xlapy")


def _absolute(path: str) -> str | None:
    try:
        return os.path.abspath(path)
    except OSError:  # the working directory was removed
        return None


def code_version(directory: str | None = None) -> bytes:
    """The versions of everything that turns a program into code, as they were when a process first asked.

    In a checkout the version number does not move with the sources, so there their sizes and times count; where they
    are is remembered in the cache in the directory."""
    if not _VERSION_OF_CODE:
        _VERSION_OF_CODE.append(_code_version(directory))
    return _VERSION_OF_CODE[0]


_VERSION_OF_CODE: list[bytes] = []


def _code_version(directory: str | None) -> bytes:
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packages = (ours, os.path.dirname(os.path.abspath(xlapy_runtime.__file__)))
    in_checkout = os.path.exists(os.path.join(os.path.dirname(packages[0]), "pyproject.toml"))
    ours_now = state_of_sources(packages, ObjectCache(directory, version=_NO_VERSION)) if in_checkout else VERSION
    return f"{ours_now}; {compiler_version()}".encode()


def compiler_version() -> str:
    """What makes the code: another LLVM makes other code of the same IR. It is part of llvmlite's own library, whose
    size and time are known without loading it."""
    library = os.path.join(os.path.dirname(os.path.abspath(llvmlite.__file__)), "binding", get_library_name())
    try:
        status = os.stat(library)
    except OSError:
        return f"llvmlite {llvmlite.__version__}, LLVM {late('llvmlite.binding').llvm_version_info}"
    return f"llvmlite {llvmlite.__version__}, LLVM of {status.st_size} bytes from {status.st_mtime_ns}"


class ObjectCache:
    """Entries by kind and key in one private directory; the least recently used go when it grows past its limit.

    May be used from any number of threads and processes at once. `directory=None` is a cache that is always empty.
    """

    def __init__(
        self, directory: str | Path | None, limit_bytes: int = DEFAULT_LIMIT_BYTES, *, version: bytes | None = None
    ) -> None:
        self._directory = None if directory is None else os.fspath(directory)
        self._limit_bytes = limit_bytes
        self._version = version
        # Many processes write a little each: where one starts in its share is chance, so that together they scan as
        # often as one that writes it all, and hardly any pays for it.
        self._written_since_scan = time.perf_counter_ns() % 256 / 256 * limit_bytes / _SCAN_FRACTION
        self._hits = 0
        self._misses = 0

    @property
    def is_on(self) -> bool:
        """Whether it keeps anything."""
        return self._directory is not None

    def get(self, kind: str, key: bytes) -> bytes | None:
        """The payload that was put under this kind and key, or None."""
        return self._counted(self._read(kind, key, _payload))

    def get_with_supplement(self, kind: str, key: bytes, room: Callable[[int], Room | None]) -> bytes | None:
        """The payload; or None. The supplement that was put beside it is read into the memory that `room` has for its
        size; where it has none, or there is no supplement, that is not read."""
        return self._counted(self._read(kind, key, partial(_payload_and_supplement, room=room)))

    def _counted(self, found: Found | None) -> Found | None:
        if found is None:
            self._misses += 1
        else:
            self._hits += 1
        return found

    def put(self, kind: str, key: bytes, payload: bytes, supplement: bytes = b"") -> bool:
        """Stores the payload, replacing an earlier one. Says whether it is stored. The `supplement` is what only some
        readers want along with it."""
        size = len(payload) + len(supplement)
        if self._directory is None or size > self._limit_bytes:
            return False
        digest = self._digest(kind, key)
        path = self._path(kind, digest)
        stored = _make_private(self._directory) and _make_private(os.path.dirname(path))
        stored = stored and _write_atomically(path, (_head(digest, payload, supplement), payload, supplement))
        if stored:
            self._keep_within_limit(size)
        return stored

    def info(self) -> CacheInfo:
        files = list(self._files())
        return CacheInfo(
            directory=None if self._directory is None else late("pathlib").Path(self._directory),
            usable=self._directory is not None and _is_private(self._directory),
            entries=len(files),
            total_bytes=sum(status.st_size for _, status in files),
            limit_bytes=self._limit_bytes,
            hits=self._hits,
            misses=self._misses,
        )

    def clear(self) -> None:
        """Removes every entry; files in the directory that are not the cache's stay."""
        for path, _ in list(self._files(with_temporaries=True)):
            _remove(path)

    def _path(self, kind: str, digest: bytes) -> str:
        assert self._directory is not None
        return os.path.join(self._directory, kind, digest.hex())

    def _digest(self, kind: str, key: bytes) -> bytes:
        version = self._version if self._version is not None else code_version(self._directory)
        name = kind.encode()
        lengths = _KEY_LENGTHS.pack(len(name), len(version), len(key))
        return blake2b(b"".join((lengths, name, version, key)), digest_size=_DIGEST_BYTES).digest()

    def _read(self, kind: str, key: bytes, part: _Part[Found]) -> Found | None:
        """A part of an entry. One that is damaged is removed."""
        if self._directory is None or not _is_private(self._directory):
            return None
        digest = self._digest(kind, key)
        path = self._path(kind, digest)
        try:
            return _part_of_file(path, part, digest)
        except OSError:
            return None
        except ValueError:
            _remove(path)
            return None

    def _keep_within_limit(self, written: int) -> None:
        """Evicts if the directory may have outgrown its limit; mostly only counts what was written."""
        self._written_since_scan += written
        if self._written_since_scan * _SCAN_FRACTION < self._limit_bytes:
            return
        self._written_since_scan = 0
        self._remove_abandoned()
        self._evict()

    def _evict(self) -> None:
        files = sorted(self._files(), key=lambda file: file[1].st_mtime_ns)
        total = sum(status.st_size for _, status in files)
        if total <= self._limit_bytes:
            return
        for path, status in files[:-1]:
            _remove(path)
            total -= status.st_size
            if total <= self._limit_bytes * _KEPT_FRACTION:
                return

    def _remove_abandoned(self) -> None:
        deadline = time.time() - _TEMPORARY_LIFETIME_SECONDS
        for path, status in list(self._files(with_temporaries=True)):
            if os.path.basename(path).startswith(_TEMPORARY_PREFIX) and status.st_mtime < deadline:
                _remove(path)

    def _files(self, with_temporaries: bool = False) -> Iterator[tuple[str, os.stat_result]]:
        """The cache's own files, as far as they can be seen; others come and go meanwhile."""
        if self._directory is None or not _is_private(self._directory):
            return
        for kind in _listing(self._directory):
            for path in _listing(kind):
                name = os.path.basename(path)
                if _is_entry_name(name) or (with_temporaries and name.startswith(_TEMPORARY_PREFIX)):
                    with contextlib.suppress(OSError):
                        yield path, os.lstat(path)


def _listing(directory: str) -> list[str]:
    try:
        return [os.path.join(directory, name) for name in os.listdir(directory)]
    except OSError:
        return []


def _head(digest: bytes, payload: bytes, supplement: bytes) -> bytes:
    """What an entry begins with; `digest` is that of its kind and key."""
    of_supplement = _checksum(digest + _SUPPLEMENT, supplement)
    facts = _FACTS.pack(_MAGIC, len(payload), len(supplement), of_supplement)
    return facts + _checksum(digest + facts, payload)


_SUPPLEMENT = b"supplement"


def _checksum(facts: bytes, content: bytes | memoryview, address: int | None = None) -> bytes:
    """A digest of facts, and of what belongs to them: of all its words as one number, where machine code makes that.
    It is to notice damage. Whoever may write to the directory need not look for contents of the same number."""
    digest = blake2b(facts, digest_size=_DIGEST_BYTES)
    if _MIXES_WORDS:
        count = len(content) // _WORD.size
        digest.update(_WORD.pack(mix_words()(content if address is None else address, count)))
        content = content[count * _WORD.size :]
    digest.update(content)
    return digest.digest()


def _part_of_file(path: str, part: _Part[Found], digest: bytes) -> Found:
    """What `part` finds in a file that is an entry; else raises OSError, or ValueError for a damaged one. That it was
    used is noted, unless it lately was."""
    descriptor = os.open(path, _READING)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("no entry, but a pipe, a device or a directory")
        head = os.read(descriptor, _HEAD_BYTES)
        if len(head) < _HEAD_BYTES or not head.startswith(_MAGIC):
            raise ValueError("not an entry of this format")
        lengths = _FACTS.unpack_from(head)[1:3]
        if _HEAD_BYTES + sum(lengths) != status.st_size:
            raise ValueError("an entry cut short")
        found = part(descriptor, head, digest)
    finally:
        os.close(descriptor)
    if status.st_mtime < time.time() - _NOTED_SECONDS:
        with contextlib.suppress(OSError):
            os.utime(path)
    return found


_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Nobody waits for a writer of what is a pipe and no entry."""


def _payload(descriptor: int, head: bytes, digest: bytes) -> bytes:
    _, length, *_ = _FACTS.unpack_from(head)
    return _checked_payload(os.read(descriptor, length), head, digest)


def _checked_payload(payload: bytes, head: bytes, digest: bytes) -> bytes:
    if _checksum(digest + head[: _FACTS.size], payload) != head[_FACTS.size :]:
        raise ValueError("a damaged payload")
    return payload


def _payload_and_supplement(descriptor: int, head: bytes, digest: bytes, room: Callable[[int], Room | None]) -> bytes:
    _, length, more, checksum = _FACTS.unpack_from(head)
    payload = _checked_payload(os.read(descriptor, length), head, digest)
    found = room(more) if more else None
    if found is not None:
        _read_into(descriptor, found.content)
        if _checksum(digest + _SUPPLEMENT, found.content, found.address) != checksum:
            raise ValueError("a damaged supplement")
    return payload


_READS_INTO_MEMORY = hasattr(os, "readv")


def _read_into(descriptor: int, memory: memoryview) -> None:
    """Fills the memory from a file that is long enough."""
    if _READS_INTO_MEMORY:
        os.readv(descriptor, [memory])
    else:
        memory[:] = os.read(descriptor, len(memory))


Found = TypeVar("Found")
_Part: TypeAlias = Callable[[int, bytes, bytes], Found]
"""Reads a part of an entry: of the file, behind its head; with the digest of kind and key."""


def _is_entry_name(name: str) -> bool:
    return len(name) == 2 * _DIGEST_BYTES and set(name) <= set("0123456789abcdef")


def _is_private(directory: str) -> bool:
    """Whether it is a directory that belongs to this user, and that nobody else can write to."""
    try:
        status = os.stat(directory)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _make_private(directory: str) -> bool:
    """Makes the directory where it is missing. One that others could write to is not adopted."""
    if _is_private(directory):
        return True
    try:
        os.makedirs(os.path.dirname(directory), exist_ok=True)
        os.mkdir(directory, mode=0o700)
    except FileExistsError:
        pass
    except OSError:
        return False
    return _is_private(directory)


def _write_atomically(path: str, parts: Sequence[bytes]) -> bool:
    """Readers see the whole entry or none. Not synced: after a power cut the checksum tells."""
    temporary = os.path.join(os.path.dirname(path), f"{_TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as file:
            file.writelines(parts)
        os.replace(temporary, path)
    except OSError:
        _remove(temporary)
        return False
    return True


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
