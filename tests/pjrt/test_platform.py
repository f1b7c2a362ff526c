"""JAX programs on the platform. Each file `on_platform_*.py` is a list of tests for one process, which uses xlapy for
all that JAX does in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jaxlib.version
import pytest

pytestmark = pytest.mark.skipif(jaxlib.version.__version_info__ < (0, 10), reason="needs jaxlib 0.10")

FILES = sorted(path.name for path in Path(__file__).parent.glob("on_platform_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_programs_run_on_the_platform(name: str) -> None:
    path = Path(__file__).parent / name
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(path)]
    around = {**os.environ, "JAX_PLATFORMS": "xlapy"}
    done = subprocess.run(command, capture_output=True, text=True, env=around, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
