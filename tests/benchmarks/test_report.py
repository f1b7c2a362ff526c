"""What a run looks like in the table and on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.compare import Agreement
from benchmarks.machine import Load
from benchmarks.measure import Compilation, Memory, Outcome, Plan
from benchmarks.report import PAGE_BEGIN, PAGE_END, Run, columns, is_behind, line, summary, write_page
from benchmarks.statistics import Interval
from benchmarks.workload import Case, Workload
from xlapy.report.limits import Limits, Pair

RATE = Pair(1e9, 2e9)
QUIET = Load(at=0.0, busy=0.0, stolen=0.0, average=0.1)


def _case(name: str) -> Case:
    return Case(Workload("family", name, lambda x: x, lambda *_: [], {"small": 1}), "small")


def _measured(name: str, ratio: Interval) -> Outcome:
    return Outcome(
        _case(name),
        seconds={"xlapy": 1e-6, "xla": ratio.median * 1e-6},
        ratios={"xla": ratio},
        compilation=Compilation(program_cold=0.01, xla=0.04),
        agreement=Agreement(0.1, 0.0),
    )


def _run(*outcomes: Outcome) -> Run:
    machine = {"processor": "a processor", "usable_cores": 2, "caches": {"L1": "32K"}, "system": "Linux"}
    machine |= {"python": "3.11", "packages": {"numpy": "2"}}
    limits = Limits(2, 1 << 20, *[RATE] * 7)
    return Run(machine, Plan(), False, ["xla"], {}, limits, QUIET, QUIET, 0.0, outcomes)


def test_a_case_is_behind_only_where_its_whole_interval_is() -> None:
    assert is_behind(_measured("slow", Interval(0.9, 0.85, 0.96)))
    assert not is_behind(_measured("unsure", Interval(0.9, 0.7, 1.1)))
    assert not is_behind(Outcome(_case("unknown"), status="not yet"))


def test_the_summary_names_what_is_behind_and_what_is_missing() -> None:
    fast, slow = _measured("fast", Interval(4.0, 3.9, 4.1)), _measured("slow", Interval(0.25, 0.2, 0.3))
    text = "\n".join(summary(_run(fast, slow, Outcome(_case("sort"), status="not yet", message="no sort"))))
    assert "1 of 3: family/slow/small" in text
    assert "1 of 3: family/sort/small" in text
    assert "1.00x     4.00x" in text


def test_the_summary_names_slow_starts_and_hunger_for_memory() -> None:
    lean, hungry = _measured("lean", Interval(2.0, 1.9, 2.1)), _measured("hungry", Interval(2.0, 1.9, 2.1))
    lean.compilation = Compilation(program_cold=0.01, nothing_cached=0.08, all_cached=0.002, xla=0.04)
    hungry.compilation = Compilation(program_cold=0.01, nothing_cached=0.02, all_cached=0.02, xla=0.04)
    lean.memory = Memory({"xlapy": 5_000_000, "xla": 4_500_000}, {"xlapy": 4_000_000})
    hungry.memory = Memory({"xlapy": 9_000_000, "xla": 4_500_000})
    text = "\n".join(summary(_run(lean, hungry)))
    assert "compile  uncached    cached" in text
    assert "4.00x     1.00x     6.32x" in text
    assert "of XLA's compilation: 2 of 2: family/lean/small, family/hungry/small" not in text
    assert "of XLA's compilation: 1 of 2: family/hungry/small" in text
    assert "or more): 1 of 2: family/hungry/small" in text
    (line,) = (line for line in text.splitlines() if line.startswith("  family/lean"))
    assert line.split()[1:] == ["5.00", "MB", "4.50", "MB", "4.00", "MB", "-"]


def test_no_memory_is_shown_where_none_was_measured() -> None:
    assert "memory of a call" not in "\n".join(summary(_run(_measured("fast", Interval(4.0, 3.9, 4.1)))))


def test_nothing_is_said_of_new_processes_where_there_were_none() -> None:
    run = _run(_measured("fast", Interval(4.0, 3.9, 4.1)))
    warm = replace(run, plan=replace(run.plan, fresh_processes=False))
    for name in ("more memory than XLA", "started from the cache"):
        assert name in "\n".join(summary(run))
        assert name not in "\n".join(summary(warm))


def test_the_summary_names_what_is_behind_other_opponents() -> None:
    outcome = _measured("fast", Interval(4.0, 3.9, 4.1))
    outcome.ratios["numpy"] = Interval(0.5, 0.4, 0.6)
    run = replace(_run(outcome), opponents=["xla", "numpy"])
    assert "behind numpy: 1 of 1: family/fast/small" in summary(run)


def test_a_row_says_why_there_are_no_numbers() -> None:
    row = line(
        Outcome(_case("sort"), status="not yet", message="no sort\nmore"), columns(["xla"], fresh_processes=True)
    )
    assert row.startswith("sort")
    assert row.endswith("not yet: no sort")


def test_results_that_differ_are_marked() -> None:
    wrong = _measured("wrong", Interval(2.0, 1.9, 2.1))
    wrong.agreement = Agreement(worst=50.0, beyond=0.5)
    assert "DIFFERS from XLA: 50.0% of results" in line(wrong, columns(["xla"], fresh_processes=False))


def test_the_page_keeps_what_stands_around_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{PAGE_BEGIN}\nold numbers\n{PAGE_END}\nafter\n")
    for _ in range(2):
        write_page(page, _run(_measured("fast", Interval(4.0, 3.9, 4.1))))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n")
    assert "old numbers" not in text
    assert text.count("a processor") == 1


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing to replace")
    with pytest.raises(ValueError, match="markers"):
        write_page(page, _run())
