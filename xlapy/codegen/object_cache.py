"""Compiled code on disk, so that a second process finds what the first one made.

An entry is a file named by the hash of its key; a key is whatever bytes the caller says the payload depends on, and
the versions of xlapy and LLVM always count too. The cache may lose anything at any time and nobody may notice more
than a wait: an unwritable home, a full disk, a flipped byte, a writer killed half way or sixteen at once mean a miss,
never an exception.

Payloads become machine code, so nothing is read from a directory that other users may write to, and no entry is
believed unless its checksum covers its kind, its key and its payload.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import random
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import xlapy_runtime
from xlapy.codegen.jit import compiler_version
from xlapy.support.version import VERSION

DEFAULT_LIMIT_BYTES = 1 << 30

_MAGIC = b"xlapy entry 1\n\0\0"
_DIGEST_BYTES = 32
_TEMPORARY_PREFIX = ".writing-"
_TEMPORARY_LIFETIME_SECONDS = 3600
"""A temporary file older than this has lost its writer."""

_SCAN_FRACTION = 16
"""The directory is measured again after this part of the limit was written: bounds both the cost and the overshoot."""

_KEPT_FRACTION = 0.75
"""How full eviction leaves the cache, so that the next entry does not evict again."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What `ObjectCache.info()` reports. `usable` is false for a directory that is absent, disabled or not private."""

    directory: Path | None
    usable: bool
    entries: int
    total_bytes: int
    limit_bytes: int
    hits: int
    misses: int


def cache_directory(setting: str | None, cache_home: str | None = None) -> Path | None:
    """Where the cache lives: `setting` if given (XLAPY_CACHE_DIR), else below `cache_home` (XDG_CACHE_HOME).

    None, meaning no cache, for the settings "off" and "", and where there is no home directory.
    """
    if setting is not None:
        return None if setting.strip().lower() in ("", "off") else Path(setting).expanduser().absolute()
    if cache_home and os.path.isabs(cache_home):
        return Path(cache_home) / "xlapy"
    try:
        return Path.home() / ".cache" / "xlapy"
    except RuntimeError:
        return None


@functools.cache
def code_version() -> bytes:
    """The versions of everything that turns a program into code.

    In a checkout the version number does not move with the sources, so there their sizes and times count. (Reading
    them all would take longer than all else that a program from the cache needs.)"""
    packages = (Path(__file__).parents[1], Path(xlapy_runtime.__file__).parent)
    in_checkout = (packages[0].parent / "pyproject.toml").exists()
    return f"{_state_of_sources(packages) if in_checkout else VERSION}; {compiler_version()}".encode()


def _state_of_sources(packages: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for package in packages:
        for name, status in sorted(_sources(os.fspath(package))):
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Python files below a folder. A walk by `scandir` takes a tenth of the time that one by `Path` takes."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat()


class ObjectCache:
    """Entries by kind and key in one private directory; the least recently used go when it grows past its limit.

    May be used from any number of threads and processes at once. `directory=None` is a cache that is always empty.
    """

    def __init__(
        self, directory: Path | None, limit_bytes: int = DEFAULT_LIMIT_BYTES, *, version: bytes | None = None
    ) -> None:
        self._directory = directory
        self._limit_bytes = limit_bytes
        self._version = version
        # Many processes write a little each: where one starts in its share is chance, so that together they scan as
        # often as one that writes it all, and hardly any pays for it.
        self._written_since_scan = random.random() * limit_bytes / _SCAN_FRACTION
        self._hits = 0
        self._misses = 0

    def get(self, kind: str, key: bytes) -> bytes | None:
        """The payload that was put under this kind and key, or None."""
        payload = self._read(kind, key)
        if payload is None:
            self._misses += 1
        else:
            self._hits += 1
        return payload

    def put(self, kind: str, key: bytes, payload: bytes) -> bool:
        """Stores the payload, replacing an earlier one. Says whether it is stored."""
        if self._directory is None or len(payload) > self._limit_bytes:
            return False
        path = self._path(kind, key)
        stored = _make_private(self._directory) and _make_private(path.parent)
        stored = stored and _write_atomically(path, self._checksum(kind, key, payload), payload)
        if stored:
            self._keep_within_limit(len(payload))
        return stored

    def info(self) -> CacheInfo:
        files = list(self._files())
        return CacheInfo(
            directory=self._directory,
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

    def _path(self, kind: str, key: bytes) -> Path:
        assert self._directory is not None
        return self._directory / kind / self._digest(kind, key).hexdigest()

    def _digest(self, kind: str, key: bytes) -> hashlib._Hash:
        version = self._version if self._version is not None else code_version()
        digest = hashlib.sha256()
        for part in (kind.encode(), version, key):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest

    def _checksum(self, kind: str, key: bytes, payload: bytes) -> bytes:
        digest = self._digest(kind, key)
        digest.update(payload)
        return digest.digest()

    def _read(self, kind: str, key: bytes) -> bytes | None:
        if self._directory is None or not _is_private(self._directory):
            return None
        path = self._path(kind, key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        header, payload = content[: len(_MAGIC) + _DIGEST_BYTES], content[len(_MAGIC) + _DIGEST_BYTES :]
        if header != _MAGIC + self._checksum(kind, key, payload):
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return payload

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
            if path.name.startswith(_TEMPORARY_PREFIX) and status.st_mtime < deadline:
                _remove(path)

    def _files(self, with_temporaries: bool = False) -> Iterator[tuple[Path, os.stat_result]]:
        """The cache's own files, as far as they can be seen; others come and go meanwhile."""
        if self._directory is None or not _is_private(self._directory):
            return
        for kind in _listing(self._directory):
            for path in _listing(kind):
                if _is_entry_name(path.name) or (with_temporaries and path.name.startswith(_TEMPORARY_PREFIX)):
                    with contextlib.suppress(OSError):
                        yield path, path.stat()


def _listing(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _is_entry_name(name: str) -> bool:
    return len(name) == 2 * _DIGEST_BYTES and set(name) <= set("0123456789abcdef")


def _is_private(directory: Path) -> bool:
    """Whether it is a directory that belongs to this user, and that nobody else can write to."""
    try:
        status = directory.stat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _make_private(directory: Path) -> bool:
    """Makes the directory where it is missing. One that others could write to is not adopted."""
    if _is_private(directory):
        return True
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    return _is_private(directory)


def _write_atomically(path: Path, checksum: bytes, payload: bytes) -> bool:
    """Readers see the whole entry or none. Not synced: after a power cut the checksum tells."""
    temporary = path.with_name(f"{_TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as file:
            file.write(_MAGIC + checksum)
            file.write(payload)
        os.replace(temporary, path)
    except OSError:
        _remove(temporary)
        return False
    return True


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
