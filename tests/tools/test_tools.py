"""The command line, as a user types it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xlapy.tools.main import main

PROGRAM = """HloModule twice
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "twice.hlo"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("input", "add(x, x)"),
        ("hlo", "add(x, x)"),
        ("llvm", "fadd"),
        ("asm", "xlapy.entry"),
        ("stablehlo", "stablehlo"),
    ],
)
def test_opt_prints_a_stage(program: str, stage: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", program, "--stage", stage]) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "eval"])
def test_run_and_eval_compute_the_same(
    program: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, np.arange(4, dtype=np.float32))
    assert main([command, program, "--inputs", str(inputs), "--compare", "--iterations", "3"]) == 0
    printed = capsys.readouterr().out
    assert "[0. 2. 4. 6.]" in printed and "difference between compiled and evaluated: 0" in printed


def test_random_inputs(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", program, "--seed", "3"]) == 0
    assert "result 0: f32[4]" in capsys.readouterr().out


def test_an_error_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.hlo"
    path.write_text("ENTRY main { ROOT x = f32[4] frobnicate() }")
    assert main(["opt", str(path)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("xlapy: ") and "frobnicate" in printed and "Traceback" not in printed


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "/no/such/file"]) == 1
    assert "/no/such/file" in capsys.readouterr().err


def test_ops_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    printed = capsys.readouterr().out
    assert "concatenate" in printed and "operations are complete" in printed


def test_cache_shows_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path / "cache"))
    main(["run", program])
    assert main(["cache", "--info"]) == 0
    assert "entries=0" not in capsys.readouterr().out.replace(" ", "")
    assert main(["cache", "--clear"]) == 0
