"""The exported programs: each against the results that XLA computed, and the command without JAX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.programs import running
from examples.programs.__main__ import main
from examples.programs.catalogue import DATA, PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 3 << 20  # of all data files: they are in every checkout


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_that_were_recorded(name: str) -> None:
    report = running.run(PROGRAMS[name], timed_seconds=0)
    assert report.is_good, [agreement for agreement in report.agreements if not agreement.is_good]


def test_what_differs_is_seen() -> None:
    program = PROGRAMS["kmeans"]
    results = list(program.recorded.values())
    assert all(agreement.is_good for agreement in running.compare(program, tuple(results)))
    results[0] = results[0] * np.float32(1.001)
    results[-1] = results[-1] + 1
    assert [agreement.is_good for agreement in running.compare(program, tuple(results))] == [False, True, False]


def test_the_command_shows_each_result_and_lists_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perceptron_training"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("loss", "velocity", "6 arrays", "agrees with XLA's", "us per call"))
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(PROGRAMS)
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "there is no program nothing" in capsys.readouterr().err


def test_jax_is_not_needed() -> None:
    script = (
        "import sys; sys.modules['jax'] = None; from examples.programs.__main__ import main; sys.exit(main(['kmeans']))"
    )
    paths = [str(ROOT), str(ROOT / "runtime")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths}; {script}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_data_is_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_export_of_today_computes_what_was_recorded(name: str) -> None:
    """The sources are those of the files; another version of JAX may lower them otherwise."""
    pytest.importorskip("jax")
    from examples.programs import export

    program = PROGRAMS[name]
    _, results = export.export(program)
    assert list(results) == list(program.recorded)
    assert all(agreement.is_good for agreement in running.compare(program, tuple(results.values())))
