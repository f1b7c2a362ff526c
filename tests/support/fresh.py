"""Scripts in an interpreter of their own, for what cannot be seen, or survived, within the process of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def printed_by(script: str, environment: Mapping[str, str] | None = None, *, seconds: float = 60) -> str:
    """The standard output of a script, which must end well and leave its error stream empty.

    `environment` is added to that of the tests; after `seconds` the script is killed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'runtime'}", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()
