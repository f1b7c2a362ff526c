"""Two checkouts of xlapy beside each other, which are one here."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import checkouts

ROOT = str(Path(__file__).parents[2])


@pytest.mark.parametrize("what", [[], ["--compile"]])
def test_a_line_for_each_case(what: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    assert checkouts.main([ROOT, ROOT, "--only", "elementwise/add_one/small", "--pairs", "1", *what]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["case", "old", "new", "old/new"]
    assert line.split()[0] == "elementwise/add_one/small"


def test_no_such_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert checkouts.main([ROOT, ROOT, "--only", "nothing-like-it"]) == 2
    assert "no workload fits" in capsys.readouterr().err


def test_what_a_checkout_raises_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    (tmp_path / "xlapy").mkdir()
    (tmp_path / "xlapy" / "__init__.py").write_text("def compile(text):\n    raise ValueError('too old')\n")
    assert checkouts.main([str(tmp_path), ROOT, "--only", "elementwise/add_one/small"]) == 0
    assert "ValueError: too old" in capsys.readouterr().out
