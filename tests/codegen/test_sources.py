"""What state the sources of a checkout are in: every change counts, however they are looked at."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import xlapy
from tests.test_imports import MAY_IMPORT
from xlapy.codegen import sources
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.sources import FRONT_ENDS, look, state_of_sources

LONG_AGO = 10**18


@pytest.fixture(params=["quickly", "anywhere"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As this machine looks at files, and as all machines can."""
    if request.param == "anywhere":
        monkeypatch.setattr(sys, "platform", "elsewhere")


@pytest.fixture
def notes(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache", version=b"1")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one file, and one of two files in it, that nobody has touched for long."""
    package = tmp_path / "package"
    inner = package / "inner"
    inner.mkdir(parents=True)
    for path in (package / "one.py", inner / "two.py", inner / "three.py"):
        path.write_text("x = 1\n")
    settle(package)
    return package


def settle(package: Path) -> None:
    """Makes the folders look as if they had not changed for long."""
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        os.utime(folder, ns=(LONG_AGO, LONG_AGO))


def edit(package: Path) -> None:
    """In place: the folder does not notice."""
    (package / "inner" / "two.py").write_text("x = 12\n")


def edit_at_the_same_size(package: Path) -> None:
    (package / "inner" / "two.py").write_text("x = 2\n")


def change_size_alone(package: Path) -> None:
    before = (package / "one.py").stat().st_mtime_ns
    (package / "one.py").write_text("x = 111\n")
    os.utime(package / "one.py", ns=(before, before))


def touch(package: Path) -> None:
    os.utime(package / "inner" / "two.py", ns=(5, 5))


def add(package: Path) -> None:
    (package / "inner" / "four.py").touch()


def remove(package: Path) -> None:
    (package / "inner" / "two.py").unlink()


def rename(package: Path) -> None:
    (package / "inner" / "two.py").rename(package / "inner" / "deux.py")


def replace(package: Path) -> None:
    """As editors do that write a new file first."""
    (package / "new").write_text("x = 123\n")
    (package / "new").replace(package / "one.py")


def add_a_package(package: Path) -> None:
    (package / "inner" / "deeper").mkdir()
    (package / "inner" / "deeper" / "five.py").touch()


def remove_a_package(package: Path) -> None:
    (package / "inner").rename(package.parent / "gone")


CHANGES = [
    edit,
    edit_at_the_same_size,
    change_size_alone,
    touch,
    add,
    remove,
    rename,
    replace,
    add_a_package,
    remove_a_package,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
@pytest.mark.parametrize("is_remembered", [False, True])
def test_every_change_counts(
    is_remembered: bool, change: Callable[[Path], None], package: Path, notes: ObjectCache
) -> None:
    used = notes if is_remembered else ObjectCache(None)
    packages = (str(package),)
    before = state_of_sources(packages, used)
    assert state_of_sources(packages, used) == before == state_of_sources(packages, ObjectCache(None))
    assert used.info().entries == is_remembered
    change(package)
    after = state_of_sources(packages, used)
    assert after != before
    assert state_of_sources(packages, used) == after == state_of_sources(packages, ObjectCache(None))


def test_what_just_changed_is_listed_again(package: Path, notes: ObjectCache) -> None:
    """A file may come within the same step of the clock as the one before, and then the folder looks the same."""
    now = time.time_ns()
    os.utime(package / "inner", ns=(now, now))
    before = state_of_sources((str(package),), notes)
    (package / "inner" / "four.py").touch()
    os.utime(package / "inner", ns=(now, now))
    assert state_of_sources((str(package),), notes) != before
    assert not notes.info().entries


def test_what_is_remembered_is_used(package: Path, notes: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of_sources((str(package),), notes)
    monkeypatch.setattr(sources, "_listed", None)
    assert state_of_sources((str(package),), notes) == before


@pytest.mark.parametrize("form", [b"", b"sources 2", bytes(40), b"\xff" * 64, (1 << 40).to_bytes(8, "little") * 4])
def test_what_is_remembered_in_another_form_is_listed_again(package: Path, notes: ObjectCache, form: bytes) -> None:
    """Sources of another time may have written it."""
    state = state_of_sources((str(package),), notes)
    assert notes.put("sources", os.fsencode(package), form)
    assert state_of_sources((str(package),), notes) == state


def test_what_cannot_change_code_does_not_count(package: Path, notes: ObjectCache) -> None:
    """Compiled modules, other files, and front ends, whose programs are keys of their own."""
    before = state_of_sources((str(package),), notes)
    for name in ("__pycache__/one.py", "LICENSE", "notes.txt", "jax/lowering.py", "builder/op.py"):
        path = package / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert state_of_sources((str(package),), notes) == before
    (package / "inner" / "jax").mkdir()
    (package / "inner" / "jax" / "two.py").touch()
    assert state_of_sources((str(package),), notes) != before


def test_links_that_lead_nowhere_are_only_names(package: Path, notes: ObjectCache) -> None:
    """Some editors mark the files that they have open with such links."""
    before = state_of_sources((str(package),), notes)
    (package / ".#one.py").symlink_to("somebody@somewhere")
    assert state_of_sources((str(package),), notes) != before


def test_front_ends_are_packages_that_nothing_of_the_compiler_imports() -> None:
    """The platform of JAX does, which stands in front of the compiler, too, but has native code of its own to keep."""
    package = Path(xlapy.__file__).parent
    for name in FRONT_ENDS:
        assert (package / name / "__init__.py").exists()
        allowed = [importer for importer, targets in MAY_IMPORT.items() if f"xlapy.{name}" in targets]
        assert set(allowed) <= {"top", "xlapy.report", "xlapy.pjrt", *(f"xlapy.{other}" for other in FRONT_ENDS)}


def test_both_ways_to_look_see_the_same(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = package / "old.py"
    old.touch()
    os.utime(old, ns=(-(10**18) - 7, -(10**18) - 7))  # before 1970
    paths = [
        str(package),
        str(package / "one.py"),
        "/nowhere/at all",
        "nor here",
        str(old),
        str(package / "inner"),
        "é" * 300,
        "package/one.py",
    ]
    content = "".join(f"{path}\0" for path in paths).encode()
    rows = look(str(tmp_path), content, len(paths))
    monkeypatch.setattr(sys, "platform", "elsewhere")
    assert rows == look(str(tmp_path), content, len(paths))
    assert look(str(tmp_path), b"", 0) == b""
