"""Two checkouts of xlapy beside each other, which are one here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import checkouts
from benchmarks.workload import cases

ROOT = str(Path(__file__).parents[2])
CASE = "elementwise/add_one/small"


@pytest.fixture(scope="module")
def programs() -> Any:
    """The case as `checkouts` lowers it, in a process of its own: once for all tests."""
    pytest.importorskip("jax")
    from benchmarks.workloads import all_workloads

    return checkouts._lowered(cases(all_workloads(), only=CASE))


@pytest.fixture
def lowered_once(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkouts, "_lowered", lambda chosen: programs)


@pytest.mark.usefixtures("lowered_once")
@pytest.mark.parametrize("what", [[], ["--compile"]])
def test_a_line_for_each_case(what: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert checkouts.main([ROOT, ROOT, "--only", CASE, "--pairs", "1", *what]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["case", "old", "new", "old/new"]
    assert line.split()[0] == CASE


def test_no_such_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert checkouts.main([ROOT, ROOT, "--only", "nothing-like-it"]) == 2
    assert "no workload fits" in capsys.readouterr().err


@pytest.mark.usefixtures("lowered_once")
def test_what_a_checkout_raises_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "xlapy").mkdir()
    (tmp_path / "xlapy" / "__init__.py").write_text("def compile(text):\n    raise ValueError('too old')\n")
    assert checkouts.main([str(tmp_path), ROOT, "--only", CASE]) == 0
    assert "ValueError: too old" in capsys.readouterr().out
