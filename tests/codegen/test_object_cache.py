"""The cache may lose anything, and neither raise nor hand out anything wrong."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest

import xlapy
from xlapy.codegen import object_cache
from xlapy.codegen.object_cache import ObjectCache, cache_directory, code_version
from xlapy.support.version import VERSION
from xlapy_runtime.hand_written import is_linux_on_x86, mix_words
from xlapy_runtime.linking import Room

KIND = "kernels"
MEGA = 1 << 20


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache", MEGA, version=b"1")


def payload_of(key: bytes) -> bytes:
    """What the stress test stores under a key, so that a reader can tell what is right."""
    return key * (1 + 37 * (key[0] % 50))


def only_entry(cache: ObjectCache) -> Path:
    directory = cache.info().directory
    assert directory is not None
    (path,) = (directory / KIND).iterdir()
    return path


def test_what_was_put_is_found_and_nothing_else(cache: ObjectCache) -> None:
    assert cache.get(KIND, b"key") is None
    assert cache.put(KIND, b"key", b"payload")
    assert cache.get(KIND, b"key") == b"payload"
    assert cache.get(KIND, b"other") is None
    assert cache.get("program", b"key") is None
    assert cache.put(KIND, b"key", b"")
    assert cache.get(KIND, b"key") == b""
    info = cache.info()
    assert (info.usable, info.entries, info.hits, info.misses) == (True, 1, 2, 3)


def test_kind_and_key_do_not_run_together(cache: ObjectCache) -> None:
    cache.put("a", b"bc", b"payload")
    assert cache.get("ab", b"c") is None


def test_another_version_finds_nothing(tmp_path: Path) -> None:
    ObjectCache(tmp_path / "cache", version=b"1").put(KIND, b"key", b"payload")
    assert ObjectCache(tmp_path / "cache", version=b"1").get(KIND, b"key") == b"payload"
    assert ObjectCache(tmp_path / "cache", version=b"2").get(KIND, b"key") is None


def test_the_version_names_compiler_and_sources() -> None:
    assert b"LLVM" in code_version()
    assert code_version() is code_version("/some/cache")


@pytest.mark.parametrize(("setting", "looks"), [("", False), ("/some/cache", True)])
def test_sources_are_looked_at_when_they_are_loaded(setting: str, looks: bool) -> None:
    """Not when the first program comes: by then somebody may have edited them. Without a cache nobody asks."""
    script = """
import xlapy.api
from xlapy.codegen import object_cache
print(object_cache._VERSION_OF_CODE != [])"""
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XLAPY_CACHE_DIR": setting}
    command = [sys.executable, "-c", script]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings)
    assert answer.stdout.strip() == str(looks)


def test_the_version_is_that_of_the_package() -> None:
    """Only a checkout has a project file; there, sources are looked at instead."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION == xlapy.__version__


def test_directory_is_private(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    directory = cache.info().directory
    assert directory is not None
    assert directory.stat().st_mode & 0o777 == 0o700
    assert only_entry(cache).stat().st_mode & 0o777 == 0o600


def test_a_directory_that_others_may_write_to_is_not_believed(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    directory = cache.info().directory
    assert directory is not None
    directory.chmod(0o777)
    assert cache.get(KIND, b"key") is None
    assert not cache.put(KIND, b"other", b"payload")
    assert not cache.info().usable


def test_every_flipped_or_missing_byte_is_a_miss(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    path = only_entry(cache)
    good = path.read_bytes()
    damaged = [good[:length] for length in range(len(good))] + [good + b"x"]
    damaged += [good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :] for at in range(len(good))]
    for content in damaged:
        path.write_bytes(content)
        assert cache.get(KIND, b"key") is None
        assert not path.exists()
    assert cache.put(KIND, b"key", b"payload")
    assert cache.get(KIND, b"key") == b"payload"


@pytest.mark.parametrize("what", ["pipe", "pipe of a writer", "socket", "device", "folder", "dangling", "loop"])
def test_what_is_no_file_is_a_miss_at_once(what: str, cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KIND, b"key", b"payload")
    path = only_entry(cache)
    path.unlink()
    with contextlib.ExitStack() as stack:
        if "pipe" in what:
            os.mkfifo(path)
        if what == "pipe of a writer":
            stack.enter_context(open(os.open(path, os.O_RDWR), "wb"))
        elif what == "socket":
            monkeypatch.chdir(path.parent)  # the names of sockets are short
            stack.enter_context(socket.socket(socket.AF_UNIX)).bind(path.name)
        elif what == "folder":
            path.mkdir()
        elif "pipe" not in what:
            path.symlink_to({"device": "/dev/zero", "dangling": path.parent / "absent", "loop": path}[what])
        assert cache.get(KIND, b"key") is None
        assert cache.put(KIND, b"key", b"payload") == (what != "folder")
        assert (cache.get(KIND, b"key") == b"payload") == (what != "folder")


def test_clear_removes_links_to_nothing(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    path = only_entry(cache)
    path.unlink()
    path.symlink_to(path)
    cache.clear()
    assert not path.is_symlink()


@pytest.mark.skipif(not is_linux_on_x86(), reason="runs machine code of x86-64")
@pytest.mark.parametrize("length", [0, 7, 8, 16, 24, 32, 40, 64, 1000, 1027])
def test_words_are_mixed_in_four_numbers_which_become_one(length: int) -> None:
    content = random.Random(length).randbytes(length)
    words = [word for (word,) in struct.iter_unpack("<Q", content[: length // 8 * 8])]
    rows = len(words) // 4
    first, *others = (_mixed(0, words[place : 4 * rows : 4]) for place in range(4))
    expected = _mixed(_mixed(first, [0]), [*others, *words[4 * rows :]])
    assert mix_words()(content, length // 8) == expected


def _mixed(number: int, words: Iterable[int]) -> int:
    for word in words:
        product = (number ^ word) * 0x9E3779B97F4A7C15 % 2**64
        number = (product << 29 | product >> 35) % 2**64
    return number


def test_every_change_of_a_long_payload_is_a_miss(cache: ObjectCache) -> None:
    """A flipped bit, two words that changed places, and bits that flipped in several words."""
    payload = random.Random(1).randbytes(4003)
    cache.put(KIND, b"key", payload)
    path = only_entry(cache)
    good = path.read_bytes()
    begin = len(good) - len(payload)
    damaged = [flipped(good, [at]) for at in range(8 * begin, 8 * len(good), 37)]
    damaged.append(good[:begin] + good[begin + 8 : begin + 16] + good[begin : begin + 8] + good[begin + 16 :])
    damaged += [flipped(good, [8 * (begin + 8 * word) + bit for word in (3, 4, 90)]) for bit in range(64)]
    for content in damaged:
        path.write_bytes(content)
        assert cache.get(KIND, b"key") is None
        assert not path.exists()


def flipped(content: bytes, bits: Sequence[int]) -> bytes:
    changed = bytearray(content)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_machine_without_the_machine_code_makes_other_checksums(
    cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "_MIXES_WORDS", not object_cache._MIXES_WORDS and is_linux_on_x86())
    cache.put(KIND, b"key", b"payload" * 10, b"supplement" * 10)
    assert with_supplement(cache) == (b"payload" * 10, b"supplement" * 10)


def test_a_damaged_supplement_is_a_miss_and_spares_who_reads_the_payload(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload", b"the supplement")
    path = only_entry(cache)
    good = path.read_bytes()
    for at in range(good.index(b"the supplement"), len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        assert cache.get(KIND, b"key") == b"payload"
        assert with_supplement(cache) is None
        assert not path.exists()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        assert with_supplement(cache) is None


def test_an_entry_under_another_name_is_a_miss(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    path = only_entry(cache)
    content = path.read_bytes()
    path.unlink()
    cache.put(KIND, b"other", b"payload")
    only_entry(cache).write_bytes(content)
    assert cache.get(KIND, b"other") is None


def test_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", 10_500, version=b"1")
    for number in range(9):
        cache.put(KIND, bytes([number]), bytes(1000))
        os.utime(cache._path(KIND, cache._digest(KIND, bytes([number]))), (number, number))
    assert cache.get(KIND, bytes([0])) is not None
    cache.put(KIND, b"last", bytes(1500))
    kept = [number for number in range(9) if cache.get(KIND, bytes([number])) is not None]
    assert kept == [0, 5, 6, 7, 8]
    assert cache.get(KIND, b"last") is not None
    assert cache.info().total_bytes <= 10_500


@pytest.mark.parametrize(("age", "is_noted"), [(60, False), (2 * 3600, True)])
def test_that_an_entry_was_used_is_noted_now_and_then(age: int, is_noted: bool, cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    then = int(time.time()) - age
    os.utime(only_entry(cache), (then, then))
    assert cache.get(KIND, b"key") == b"payload"
    assert (only_entry(cache).stat().st_mtime > then) == is_noted


def test_what_exceeds_the_limit_alone_is_not_stored(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", 100, version=b"1")
    assert not cache.put(KIND, b"key", bytes(101))


def test_clear_spares_files_of_others(cache: ObjectCache) -> None:
    cache.put(KIND, b"key", b"payload")
    stranger = only_entry(cache).with_name("notes.txt")
    stranger.write_text("mine")
    cache.clear()
    assert cache.info().entries == 0
    assert stranger.read_text() == "mine"


def test_abandoned_temporary_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / "cache" / KIND).mkdir(parents=True, mode=0o700)
    (tmp_path / "cache").chmod(0o700)
    old, young = (tmp_path / "cache" / KIND / f".writing-1-{name}" for name in ("old", "young"))
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    small = ObjectCache(tmp_path / "cache", limit_bytes=1000, version=b"1")
    assert small.put(KIND, b"key", bytes(100))  # more than the share after which the folder is looked through
    assert (old.exists(), young.exists()) == (False, True)


def test_settings_choose_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_directory("off") is None
    assert cache_directory("") is None
    assert cache_directory(str(tmp_path)) == str(tmp_path)
    assert cache_directory(None, "/caches") == "/caches/xlapy"
    assert cache_directory(None, "relative") == "/home/someone/.cache/xlapy"
    assert cache_directory(None) == "/home/someone/.cache/xlapy"


def test_a_relative_directory_without_one_to_work_in_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cache_directory("below") == str(tmp_path / "below")
    tmp_path.rmdir()
    assert cache_directory("below") is None


def test_no_directory_is_an_empty_cache() -> None:
    cache = ObjectCache(None)
    assert not cache.put(KIND, b"key", b"payload")
    assert cache.get(KIND, b"key") is None
    cache.clear()
    assert not cache.info().usable


def test_a_directory_that_cannot_be_made_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    for directory in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere/cache")):
        cache = ObjectCache(directory, version=b"1")
        assert not cache.put(KIND, b"key", b"payload")
        assert cache.get(KIND, b"key") is None
        cache.clear()
        assert cache.info().entries == 0


@pytest.mark.parametrize("where", ["directory", KIND])
def test_an_unwritable_directory_is_a_miss(tmp_path: Path, where: str) -> None:
    """In a child that gives up root's right to write anywhere."""
    cache = ObjectCache(tmp_path / "cache", version=b"1")
    cache.put(KIND, b"key", b"payload")
    locked = tmp_path / "cache" if where == "directory" else tmp_path / "cache" / KIND
    name = "other" if where == "directory" else KIND

    def child() -> bool:
        if os.geteuid() == 0:
            for path in (tmp_path, *tmp_path.rglob("*")):
                os.chown(path, 1, 1)
            for path in tmp_path.parents:
                if Path(tempfile.gettempdir()) in path.parents:  # pytest's own folders, which are private to root
                    path.chmod(0o755)
            os.setgid(1)
            os.setuid(1)
        locked.chmod(0o500)
        return not cache.put(name, b"second", b"payload") and cache.get(KIND, b"key") == b"payload"

    try:
        assert succeeds_in_child(child)
    finally:
        locked.chmod(0o700)


def test_a_full_disk_is_no_store_and_leaves_nothing(cache: ObjectCache) -> None:
    def child() -> bool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        return not cache.put(KIND, b"key", bytes(5000)) and cache.put(KIND, b"small", b"payload")

    assert succeeds_in_child(child)
    assert cache.get(KIND, b"small") == b"payload"
    assert only_entry(cache)


def test_many_writers_some_killed_never_show_a_wrong_payload(tmp_path: Path) -> None:
    """Eight writers with a limit that keeps evicting; one is killed and replaced every few milliseconds."""
    directory = tmp_path / "cache"
    context = multiprocessing.get_context("fork")

    def write() -> None:
        writer = ObjectCache(directory, 20_000, version=b"1")
        chance = random.Random(os.getpid())
        while True:
            key = bytes([chance.randrange(30)])
            found = writer.get(KIND, key)
            assert found is None or found == payload_of(key)
            writer.put(KIND, key, payload_of(key))

    writers = [context.Process(target=write) for _ in range(8)]
    for writer in writers:
        writer.start()
    reader = ObjectCache(directory, 20_000, version=b"1")
    found = 0
    deadline = time.monotonic() + 1.0
    try:
        while time.monotonic() < deadline:
            victim = random.randrange(8)
            writers[victim].kill()
            writers[victim].join()
            assert writers[victim].exitcode == -signal.SIGKILL
            writers[victim] = context.Process(target=write)
            writers[victim].start()
            for number in range(30):
                payload = reader.get(KIND, bytes([number]))
                assert payload is None or payload == payload_of(bytes([number]))
                found += payload is not None
    finally:
        for writer in writers:
            writer.kill()
            writer.join()
    assert found
    assert reader.put(KIND, b"\x01", payload_of(b"\x01"))


def succeeds_in_child(action: object) -> bool:
    """Runs the action in a forked child, whose privileges and limits die with it."""
    assert callable(action)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if action() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_supplement_is_read_with_the_payload_or_not_at_all(cache: ObjectCache) -> None:
    assert with_supplement(cache) is None
    assert cache.put(KIND, b"key", b"payload", b"the supplement")
    assert with_supplement(cache) == (b"payload", b"the supplement")
    assert cache.get_with_supplement(KIND, b"key", lambda size: None) == b"payload"
    assert cache.get(KIND, b"key") == b"payload"
    assert cache.put(KIND, b"key", b"payload")
    assert with_supplement(cache) == (b"payload", b"")


def with_supplement(cache: ObjectCache, kind: str = KIND, key: bytes = b"key") -> tuple[bytes, bytes] | None:
    """The payload, and the supplement, if there is one."""
    rooms: list[Room] = []

    def room(size: int) -> Room:
        rooms.append(Room(size))
        return rooms[0]

    payload = cache.get_with_supplement(kind, key, room)
    return None if payload is None else (payload, b"".join(bytes(room.content) for room in rooms))


@pytest.mark.parametrize("part", [b"payload", b"the supplement"])
def test_damage_is_noticed_by_those_who_read_the_part(part: bytes, cache: ObjectCache) -> None:
    readers: tuple[tuple[Callable[[str, bytes], object], bytes], ...] = (
        (cache.get, b"payload"),
        (partial(with_supplement, cache), b"payload, the supplement"),
    )
    for read, parts_of_it in readers:
        cache.put(KIND, b"key", b"payload", b"the supplement")
        path = only_entry(cache)
        path.write_bytes(path.read_bytes().replace(part, part[:-1] + b"!"))
        assert (read(KIND, b"key") is None) == (part in parts_of_it)
