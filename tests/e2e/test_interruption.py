"""Ctrl-C in compiled programs, in a process of its own: every program would run for many seconds, or for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 240

PRELUDE = """
import os, signal, threading, time
import numpy as np
import xlapy
from xlapy import ops

MATRIX = xlapy.Shape.array(np.float32, (1024, 1024))
ONE = np.eye(1024, dtype=np.float32)
OPTIONS = xlapy.CompileOptions(num_threads=THREADS)

def recorded(function, *shapes):
    builder = xlapy.XlaBuilder("long")
    return builder.build(function(*[builder.parameter(n, shape) for n, shape in enumerate(shapes)]))

def interrupted(function, *arguments):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        function(*arguments)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if time.monotonic() - began > 9:  # far more than it takes, far less than the program would
            print("too late")
"""


def script(body: str, threads: int | None = None) -> list[str]:
    """The words that a script prints."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE.replace("THREADS", str(threads)) + textwrap.dedent(body)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'runtime'}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_loop_over_scalars_stops_and_can_be_called_again() -> None:
    body = """
    def body(state):
        return state.builder.tuple([state[0] + 1, ops.Sin(state[1]), state[2]])
    def function(x, n):
        return ops.While(lambda s: s[0] < s[2], body, x.builder.tuple([x.builder.constant(np.int64(0)), x, n]))
    run = xlapy.compile(recorded(function, xlapy.Shape.scalar(np.float32), xlapy.Shape.scalar(np.int64)), OPTIONS)
    for _ in range(2):
        interrupted(run, np.float32(1), np.int64(1 << 60))
    print(int(run(np.float32(1), np.int64(3))[0]))
    """
    assert script(body) == ["interrupted", "interrupted", "3"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_over_matrices_stops(threads: int) -> None:
    body = """
    def body(state):
        return state.builder.tuple([state[0] + 1, state[1] @ state[1]])
    def function(x):
        return ops.While(lambda s: s[0] < 1 << 30, body, x.builder.tuple([x.builder.constant(np.int32(0)), x]))
    interrupted(xlapy.compile(recorded(function, MATRIX), OPTIONS), ONE)
    """
    assert script(body, threads) == ["interrupted"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_without_loops_stops(threads: int) -> None:
    """Between kernels: 2000 products of matrices, one behind the other."""
    body = """
    def function(x):
        y = x
        for _ in range(2000):
            y = x @ y
        return y
    interrupted(xlapy.compile(recorded(function, MATRIX), OPTIONS), ONE)
    """
    assert script(body, threads) == ["interrupted"]


@pytest.mark.parametrize("threads", [1, 2])
def test_one_kernel_stops_in_the_middle_and_is_whole_the_next_time(threads: int) -> None:
    """One product of large matrices: the call that is cut short raises, the next one does all of its work."""
    body = """
    LARGE = xlapy.Shape.array(np.float32, (6144, 6144))
    run = xlapy.compile(recorded(lambda x: x @ x, LARGE), OPTIONS)
    interrupted(run, np.zeros((6144, 6144), np.float32))
    small = xlapy.compile(recorded(lambda x: x @ x, MATRIX), OPTIONS)
    print(np.array_equal(small(2 * ONE), 4 * ONE))
    """
    assert script(body, threads) == ["interrupted", "True"]


def test_a_handler_that_raises_nothing_stops_nothing() -> None:
    body = """
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    def function(x):
        y = x
        for _ in range(50):
            y = x @ y
        return y
    run = xlapy.compile(recorded(function, MATRIX), OPTIONS)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    while not seen:
        result = run(ONE)
    print(np.array_equal(result, ONE))
    """
    assert script(body) == ["True"]
