"""The streaming example: its loop beside the reference evaluator, and the whole of it from the command line."""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

import xlapy
from examples.digits import dataset
from examples.streaming import __main__ as job
from examples.streaming import feeding, program
from xlapy.hlo.evaluate import Interpreter

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6


def test_the_loop_does_what_the_evaluator_does() -> None:
    learned_from, _ = dataset.split(dataset.load(), job.SEED)
    computation = program.training_loop()
    weights, losses = job.train(xlapy.compile(computation), learned_from, STEPS)

    interpreter = Interpreter()
    interpreter.infeed().extend(itertools.islice(feeding.shuffled_batches(learned_from, job.SEED), STEPS))
    initial = program.initial_weights(job.SEED)
    expected = interpreter.run(computation.module, np.int32(STEPS), job.RATE, *initial)
    np.testing.assert_allclose(losses, list(interpreter.outfeed()), rtol=1e-5)
    for weight, reference in zip(weights, expected, strict=True):
        np.testing.assert_allclose(weight, reference, rtol=1e-4, atol=1e-6)


def test_the_slopes_are_those_of_the_loss() -> None:
    """A small step along the slopes lowers the loss of the same batch by the square of their length."""
    batch = next(feeding.shuffled_batches(dataset.load(), 1))
    rate = np.float32(1e-3)
    device = xlapy.devices(1)[0]
    for _ in range(2):
        device.transfer_to_infeed(batch)
    before = program.initial_weights(1)
    after = xlapy.compile(program.training_loop())(np.int32(2), rate, *before)
    first, second = (float(device.transfer_from_outfeed(timeout=feeding.WAIT_SECONDS)) for _ in range(2))
    moved = sum(float(np.square(new - old).sum()) for new, old in zip(after, before, strict=True))
    assert first - second == pytest.approx(moved / 2**2 / float(rate), rel=0.05)


def test_the_loop_is_one_while_on_the_device() -> None:
    text = xlapy.compile(program.training_loop()).hlo_text()
    assert text.count(" while(") == text.count(" infeed(") == text.count(" outfeed(") == 1


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "examples.streaming", *arguments]


ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'runtime'}"}


def test_it_runs_from_the_command_line() -> None:
    done = subprocess.run(
        command("--steps", "1500"),
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "held-out accuracy" in done.stdout


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_it_shows_its_progress_on_a_terminal_and_listens_to_interrupts() -> None:
    """The bar moves while the program runs, which is in the middle of its one call when Ctrl-C comes."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        command("--steps", "200000"), cwd=ROOT, env={**ENVIRONMENT, "TERM": "xterm"}, stderr=theirs
    )
    os.close(theirs)
    try:
        shown = set()
        while len(shown) < 3:  # the bar was drawn anew twice
            ready, _, _ = select.select([ours], [], [], feeding.WAIT_SECONDS)
            assert ready, "nothing more is shown"
            drawn = os.read(ours, 4096)
            assert b"streaming" in drawn
            shown.add(drawn)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=feeding.WAIT_SECONDS) == job.INTERRUPTED
    finally:
        process.kill()
        os.close(ours)
