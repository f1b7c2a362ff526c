"""Programs need little of a thread's stack: an overflow would end the process."""

from __future__ import annotations

import subprocess
import sys

from tests.jax.small_stacks import PROGRAMS


def test_programs_run_in_threads_with_small_stacks() -> None:
    ran = subprocess.run([sys.executable, "-m", "tests.jax.small_stacks"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.splitlines()) == (0, [*PROGRAMS]), ran.stderr
