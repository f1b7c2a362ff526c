"""What `import xlapy` costs: nothing that a program does not need, no threads, no output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIG = ("jax", "jaxlib", "matplotlib", "mpi4py", "networkx", "scipy")

PROBE = """
import os, sys, time
import numpy, ml_dtypes
threads_before = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else None
start = time.perf_counter()
import {package}
milliseconds = 1e3 * (time.perf_counter() - start)
import json, threading
threads_after = len(os.listdir("/proc/self/task")) if threads_before is not None else None
report = dict(milliseconds=milliseconds, modules=sorted(sys.modules), python_threads=threading.active_count(),
              new_threads=threads_after - threads_before if threads_before is not None else 0)
with open(sys.argv[1], "w") as file:
    json.dump(report, file)
"""


@pytest.fixture(params=["xlapy", "xlapy_runtime"])
def package(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def imported(package: str, tmp_path: Path) -> tuple[dict[str, Any], str]:
    """What a fresh interpreter reports after importing the package, and everything it printed."""
    report = tmp_path / "report.json"
    path = os.pathsep.join([str(ROOT), str(ROOT / "runtime")])
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(package=package), str(report)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text()), done.stdout + done.stderr


def test_import_is_light_and_silent(package: str, imported: tuple[dict[str, Any], str]) -> None:
    report, output = imported
    print(f"import {package}: {report['milliseconds']:.0f} ms after numpy and ml_dtypes")
    assert output == ""
    assert report["python_threads"] == 1
    assert report["new_threads"] == 0
    loaded = {name.split(".")[0] for name in report["modules"]}
    assert not loaded & set(BIG)


def test_only_names_are_loaded_at_first(package: str, imported: tuple[dict[str, Any], str]) -> None:
    """Everything else waits until it is asked for: a program from the cache needs little of it."""
    if package == "xlapy":
        ours = {name for name in imported[0]["modules"] if name.split(".")[0] in ("xlapy", "xlapy_runtime")}
        support = {f"xlapy.support.{name}" for name in ("errors", "registry", "text_forms", "version")}
        assert ours == {"xlapy", "xlapy.support", *support, "xlapy_runtime", "xlapy_runtime.errors"}


def test_the_runtime_loads_without_the_compiler(package: str, imported: tuple[dict[str, Any], str]) -> None:
    """A compiled program runs with `xlapy_runtime` alone."""
    if package == "xlapy_runtime":
        assert "xlapy" not in imported[0]["modules"]
