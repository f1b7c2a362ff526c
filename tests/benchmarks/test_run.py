"""One small workload, from the command line to the data and the page."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.__main__ import INTERRUPTED, main
from benchmarks.machine import Disturbance, has_running_thread
from benchmarks.measure import QUICK, Bench, Outcome, Plan, Progress, run_all
from benchmarks.report import PAGE_BEGIN, PAGE_END, time_text
from benchmarks.workload import Case
from benchmarks.workloads import find
from tests.benchmarks.conftest import ANY_LIMITS
from tests.support.machine import measured_little

pytest.importorskip("jax")


def test_a_quick_run_measures_and_compares_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("xlapy.report.limits.measure", measured_little)
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


def test_a_quick_run_leaves_the_largest_sizes_out_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    choice = ["--list", "--quick", "--only", "elementwise/add/"]
    names = {}
    for more in ([], ["--largest"]):
        assert main([*choice, *more]) == 0
        names[bool(more)] = capsys.readouterr().out.split()
    assert [name for name in names[True] if name not in names[False]] == ["elementwise/add/memory"]


def test_the_machine_takes_turns_where_its_limits_hold(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_plan", replace(QUICK, pairs=2))
    monkeypatch.setattr(bench, "opponents", [])
    product, small = (
        bench.run(Case(find(family, name), size))
        for family, name, size in (("dot", "f32", "64"), ("movement", "transpose", "small"))
    )
    assert product.share_of_limit is not None
    assert 0 < product.share_of_limit.low <= product.share_of_limit.median <= product.share_of_limit.high
    assert list(product.seconds) == ["xlapy"]
    assert small.share_of_limit is None


def test_new_processes_compile_with_nothing_and_with_everything_cached(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "_plan", replace(QUICK, pairs=1, fresh_processes=True))
    monkeypatch.setattr(bench, "opponents", [])
    compilation = bench.run(Case(find("dispatch", "add_4_elements"), "small")).compilation
    assert compilation.nothing_cached is not None
    assert compilation.all_cached is not None
    assert 0 < compilation.all_cached < compilation.nothing_cached


def test_a_worker_rests_once_its_threads_sleep() -> None:
    """A thread that spins is seen at once; clocks of other processes move some milliseconds apart only."""
    spinning = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    sleeping = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE
    )
    try:
        for process in (spinning, sleeping):
            assert process.stdout is not None
            process.stdout.readline()
        time.sleep(0.1)
        assert has_running_thread(spinning.pid) is not False
        assert not has_running_thread(sleeping.pid)
    finally:
        for process in (spinning, sleeping):
            process.kill()
            process.communicate()


def test_a_partial_run_leaves_the_page_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{PAGE_BEGIN}\nold\n{PAGE_END}\nafter\n")
    assert main(["--list", "--only", "dispatch"]) == 0
    assert "dispatch/add_4_elements/small" in capsys.readouterr().out
    assert "old" in page.read_text()


class IdleBench:
    """A bench that measures nothing and starts no engines: that takes each a second or two."""

    def __init__(self, opponents: Sequence[str], *_: object) -> None:
        self.opponents, self.unavailable = list(opponents), dict[str, str]()

    def __enter__(self) -> IdleBench:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, case: Case) -> Outcome:
        return Outcome(case, seconds={"xlapy": 1e-6})


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured."""
    monkeypatch.setattr("benchmarks.__main__.Bench", IdleBench)
    monkeypatch.setattr("benchmarks.__main__.run_all", lambda *_: iter(()))
    monkeypatch.setattr("benchmarks.__main__._limits_in_new_process", lambda core: ANY_LIMITS)


def _small_run(file: Path, *more: str) -> int:
    return main(["--quick", "--family", "dispatch", "--engines", "", "--json", str(file), *more])


@pytest.mark.usefixtures("idle")
def test_what_was_measured_before_an_interruption_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(bench: IdleBench, cases: Sequence[Case], progress: Progress) -> Iterator[Outcome]:
        yield next(run_all(bench, cases, progress))
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.__main__.run_all", interrupted)
    data = tmp_path / "run.json"
    assert _small_run(data) == INTERRUPTED
    printed, errors = capsys.readouterr()
    assert "geometric means" in printed
    assert "interrupted: 1 of " in errors
    assert len(json.loads(data.read_text())["cases"]) == 1


@pytest.mark.usefixtures("idle")
def test_a_run_goes_on_where_an_earlier_one_was_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def measured(_bench: IdleBench, cases: Sequence[Case], _progress: Progress) -> Iterator[Outcome]:
        for case in cases:
            asked.append(case.name)
            busy = Disturbance(0.0 if "add_4" in case.name else 0.9, 0.0)
            yield Outcome(case, seconds={"xlapy": 1e-6 * len(asked)}, disturbance=busy)

    monkeypatch.setattr("benchmarks.__main__.run_all", measured)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert _small_run(first) == 0
    everything, asked[:] = [*asked], []
    assert _small_run(second, "--earlier", str(first)) == 0
    assert asked and asked == [name for name in everything if "add_4" not in name]
    assert f"{len(everything) - len(asked)} of {len(everything)} cases were measured by" in capsys.readouterr().out
    assert [case["name"] for case in json.loads(second.read_text())["cases"]] == everything


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plan": {"pairs": 1}}, "another run: its plan was"),
        ({"machine": {}}, "another run: its machine was"),
        ({"cases": [{}]}, "not the data of a run"),
    ],
)
def test_another_run_is_not_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], message: str
) -> None:
    file = tmp_path / "run.json"
    _small_run(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert _small_run(tmp_path / "next.json", "--earlier", str(file)) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("idle")
def test_a_warm_run_takes_all_samples_in_the_processes_at_hand(tmp_path: Path) -> None:
    data = tmp_path / "run.json"
    main(["--warm", "--family", "dispatch", "--engines", "", "--json", str(data)])
    plan = json.loads(data.read_text())["plan"]
    assert not plan.pop("fresh_processes")
    assert plan.items() <= asdict(Plan()).items()


def test_an_unknown_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--engines", "xla,abacus"])
    assert "abacus" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.234e-7, "123 ns"), (1.234e-5, "12.3 us"), (0.00123, "1.23 ms"), (2.5, "2.50 s")]
)
def test_times_are_printed_with_three_figures(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
