"""What tells processors apart, and what is remembered of this one."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xlapy.codegen import processor, target
from xlapy.codegen.object_cache import _HEAD_BYTES, ObjectCache
from xlapy.codegen.processor import processor_identity
from xlapy.codegen.target import host_target, leave_code, remembered_host
from xlapy_runtime.hand_written import is_linux_on_x86

IDENTITY = b"this processor"


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache", version=b"1")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor with an identity, also where this one has none."""
    monkeypatch.setattr(target, "processor_identity", lambda: IDENTITY)


def refuse_to_ask() -> None:
    raise AssertionError("LLVM was asked")


def test_the_identity_is_the_same_in_every_process_and_on_every_core() -> None:
    if processor_identity() is None:
        pytest.skip("nobody but LLVM can tell")
    script = "from xlapy.codegen.processor import processor_identity as of; print(of().hex())"
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answers = {processor_identity()}
    for core in sorted(os.sched_getaffinity(0))[:2]:
        text = f"import os; os.sched_setaffinity(0, {{{core}}}); {script}"
        answer = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=surroundings
        )
        answers.add(bytes.fromhex(answer.stdout.strip()))
    assert len(answers) == 1


def test_the_processor_says_what_the_system_says() -> None:
    """Its words are those of `cpuid`: bit 26 of the edx of the model is SSE2, which all of them have."""
    if processor_identity() is None:
        pytest.skip("nobody but LLVM can tell")
    words = processor._answers()
    assert len(words) == 13
    assert words[3] >> 26 & 1
    flags = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    assert bool(words[5] >> 5 & 1) == ("avx2" in flags)


@pytest.mark.parametrize("change", ["system", "machine"])
def test_hand_written_code_runs_on_one_kind_of_machine(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "system":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        monkeypatch.setattr(os, "uname", lambda: type("Names", (), {"machine": "aarch64"}))
    assert not is_linux_on_x86.__wrapped__()


@pytest.mark.parametrize("identity", [processor_identity, processor.known_processor])
def test_a_matrix_unit_that_is_not_lent_makes_another_machine(
    identity: Callable[[], bytes | str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if identity() is None:
        pytest.skip("nobody but LLVM can tell")
    found = []
    for is_lent in (False, True):
        monkeypatch.setattr(processor, "uses_matrix_unit", lambda is_lent=is_lent: is_lent)
        found.append(getattr(identity, "__wrapped__", identity)())
    assert found[0] != found[1]


@pytest.mark.parametrize("change", ["system", "boot"])
def test_elsewhere_nobody_can_tell(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "system":
        monkeypatch.setattr(processor, "is_linux_on_x86", lambda: False)
    else:
        monkeypatch.setattr(processor, "_BOOT", "/nowhere/boot_id")
    assert processor_identity() is None


@pytest.mark.usefixtures("known")
def test_a_machine_is_described_once(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = remembered_host(cache)
    assert first.target == host_target() and first.code == b""
    monkeypatch.setattr(target, "host_target", refuse_to_ask)
    again = remembered_host(cache)
    assert again.target == first.target and again.code == first.code
    assert (again.code_key, again.library_key) == (first.target.code_key, first.target.library_key)


@pytest.mark.usefixtures("known")
def test_cores_are_not_remembered(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = remembered_host(cache)
    monkeypatch.setattr(target, "usable_cores", lambda: 77)
    assert remembered_host(cache).target == dataclasses.replace(first.target, cores=77)


@pytest.mark.usefixtures("known")
def test_code_that_one_process_leaves_is_there_for_the_next(
    cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = remembered_host(cache)
    leave_code(cache, first, b"{any}\n\0code\n")
    assert remembered_host(cache).target == first.target
    assert remembered_host(cache).code == b"{any}\n\0code\n"
    monkeypatch.setattr(target, "layout_identity", lambda: "another numpy")
    assert remembered_host(cache).code == b""


@pytest.mark.parametrize("change", ["processor", "version"])
def test_another_machine_is_described_anew(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "processor_identity", lambda: IDENTITY)
    remembered_host(ObjectCache(tmp_path / "cache", version=b"1"))
    if change == "processor":
        monkeypatch.setattr(target, "processor_identity", lambda: IDENTITY + b"!")
    monkeypatch.setattr(target, "host_target", refuse_to_ask)
    with pytest.raises(AssertionError, match="LLVM was asked"):
        remembered_host(ObjectCache(tmp_path / "cache", version=b"2" if change == "version" else b"1"))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("comes", [False, True])
def test_who_sees_the_sizes_of_caches_tells_those_who_do_not(
    comes: bool, cache: ObjectCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "_CACHE_TABLE", "/nowhere" if comes else str(tmp_path))
    first = remembered_host(cache)
    monkeypatch.setattr(target, "_CACHE_TABLE", str(tmp_path) if comes else "/nowhere")
    described = [first.target]
    monkeypatch.setattr(target, "host_target", described.pop)
    assert remembered_host(cache).target == first.target
    assert bool(described) != comes


def test_without_an_identity_llvm_is_asked(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "processor_identity", lambda: None)
    found = remembered_host(cache)
    assert found.target == host_target() and found.code is None
    leave_code(cache, found, b"code")
    assert cache.info().entries == 0


@pytest.mark.usefixtures("known")
def test_what_is_remembered_is_plain_data(cache: ObjectCache) -> None:
    remembered = remembered_host(cache).target
    (path,) = [path for path in (cache.info().directory or Path()).rglob("*") if path.is_file()]
    *_, facts, _ = json.loads(path.read_bytes()[_HEAD_BYTES:])
    assert facts["features"] == remembered.features and "cores" not in facts


def test_the_known_processor_is_the_same_in_every_process_and_on_every_core() -> None:
    if processor.known_processor() is None:
        pytest.skip("nobody but LLVM can tell")
    script = "from xlapy.codegen.processor import known_processor as of; print(of())"
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for core in sorted(os.sched_getaffinity(0))[:2]:
        text = f"import os; os.sched_setaffinity(0, {{{core}}}); {script}"
        answer = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=surroundings
        )
        assert answer.stdout.strip() == processor.known_processor()


@pytest.mark.parametrize("change", ["system", "library", "shape"])
def test_a_processor_is_known_by_one_kind_of_library(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "system":
        monkeypatch.setattr(processor, "is_linux_on_x86", lambda: False)
    elif change == "library":
        monkeypatch.setattr(processor, "_leaf_function", lambda: None)
    else:
        monkeypatch.setattr(processor, "_leaf_function", lambda: lambda leaf: leaf * 48)
    monkeypatch.setattr(processor, "is_linux_on_x86", lambda: change != "system")
    assert processor.known_processor.__wrapped__() is None
