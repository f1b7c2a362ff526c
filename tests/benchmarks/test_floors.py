"""The table of reference figures: that its cases exist, how verdicts are made, and one figure measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pytest

from benchmarks.floors import (
    FIGURES,
    NOISE,
    PROBES,
    Figure,
    Finding,
    Measure,
    _in_new_process,
    main,
    seconds_to_make_the_matrix_library,
)
from benchmarks.measure import Bench, Plan
from tests.support.machine import measure_little

pytest.importorskip("jax")


def test_a_matrix_unit_may_exceed_the_limit_of_multiply_adds() -> None:
    finding = Finding(Figure("matrix products", "name", Measure.LIMIT, 0.9), 0.9, 1.4, may_exceed=True)
    assert finding.reached
    assert finding.line.endswith("yes")


def test_every_figure_is_of_a_case_that_there_is() -> None:
    from benchmarks.workloads import find

    for figure in FIGURES:
        assert figure.cores in ("one", "all")
        assert figure.value > 0
        if figure.measure not in PROBES:
            family, name, size = figure.name.split("/")
            workload = find(family, name)
            assert size in workload.sizes, figure
            assert figure.measure is not Measure.LIMIT or workload.operations or workload.moves_memory, figure


@pytest.mark.parametrize(
    ("measure", "ours", "reached"),
    [
        (Measure.XLA, 2.0, True),
        (Measure.XLA, 2.0 * (1 - NOISE / 2), True),
        (Measure.XLA, 1.5, False),
        (Measure.CALL, 1.5, True),
        (Measure.CALL, 2.5, False),
        (Measure.CALL, None, False),
    ],
)
def test_more_is_better_of_ratios_and_less_of_times(measure: Measure, ours: float | None, reached: bool) -> None:
    finding = Finding(Figure("section", "name", measure, 2.0), 2.0, ours)
    assert finding.reached is reached
    assert finding.line.endswith("yes" if reached else "no")


def test_more_than_the_limit_is_no_verdict() -> None:
    figure = Figure("section", "name", Measure.LIMIT, 0.9)
    assert Finding(figure, 0.9, 0.95).reached
    finding = Finding(figure, 0.9, 1.4)
    assert not finding.reached
    assert "busy" in finding.line


@pytest.mark.parametrize(("share", "possible"), [(0.9, False), (0.7, True), (None, True)])
def test_what_would_be_faster_than_the_machine_is_told_apart(share: float | None, possible: bool) -> None:
    """1.2 times as fast as XLA, and 1.5 times is asked: at 0.9 of the limit there is no such time left."""
    finding = Finding(Figure("section", "name", Measure.XLA, 1.5), 1.5, 1.2, share_of_limit=share)
    assert not finding.reached
    assert finding.is_possible is possible
    assert finding.line.endswith("no") is possible
    assert ("impossible" in finding.line) is not possible


def test_what_is_measured_beside_cases_has_a_process_of_its_own() -> None:
    core = max(os.sched_getaffinity(0))
    assert _in_new_process(partial(os.sched_getaffinity, 0), core) == {core}
    assert _in_new_process(os.getpid, None) != os.getpid()


def test_a_quick_run_prints_figures_and_verdicts(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limits are measured twice, here with little, and so in this process. The engines run already."""

    def running(opponents: Sequence[str], plan: Plan, *_: object) -> AbstractContextManager[Bench]:
        monkeypatch.setattr(bench, "opponents", opponents)
        monkeypatch.setattr(bench, "_plan", plan)
        return nullcontext(bench)

    monkeypatch.setattr("benchmarks.floors.Bench", running)
    measure_little(monkeypatch)
    monkeypatch.setattr("benchmarks.floors._in_new_process", lambda task, core: task())
    main(["--quick", "--only", "add_4_elements"])
    header, finding, summary = capsys.readouterr().out.splitlines()
    assert header.split()[-3:] == ["figure", "ours", "reached"]
    assert finding.split()[-1] in ("yes", "no")
    assert "of 1 figures are reached" in summary


def test_the_matrix_library_is_made_and_timed() -> None:
    assert seconds_to_make_the_matrix_library() > 0
