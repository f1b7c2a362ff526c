"""One small workload, from the command line to the data and the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.report import PAGE_BEGIN, PAGE_END, time_text

pytest.importorskip("jax")


def test_a_quick_run_measures_and_compares_both_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "run.json"
    arguments = ["--quick", "--only", "dispatch/add_4", "--engines", "xla,numpy", "--json", str(data)]
    assert main(arguments) == 0

    printed = capsys.readouterr().out
    assert "add_4_elements" in printed
    assert "geometric means" in printed
    (case,) = json.loads(data.read_text())["cases"]
    assert case["status"] == "measured"
    assert case["agrees"]
    assert set(case["seconds"]) == {"xlapy", "xla", "numpy"}
    ratio = case["ratios"]["xla"]
    assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
    assert case["compile_seconds"]["program_cold"] > 0


def test_a_partial_run_leaves_the_page_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{PAGE_BEGIN}\nold\n{PAGE_END}\nafter\n")
    assert main(["--list", "--only", "dispatch"]) == 0
    assert "dispatch/add_4_elements/small" in capsys.readouterr().out
    assert "old" in page.read_text()


def test_an_unknown_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--engines", "xla,abacus"])
    assert "abacus" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.234e-7, "123 ns"), (1.234e-5, "12.3 us"), (0.00123, "1.23 ms"), (2.5, "2.50 s")]
)
def test_times_are_printed_with_three_figures(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
