"""Programs whose processes are processes of the system: their results beside those of one process, over a real MPI."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "runtime")])
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))

needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="mpi4py or mpiexec is not installed"
)


@needs_mpi
@pytest.mark.parametrize("processes", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_of_the_system_do_as_those_of_one_process_do(processes):
    """Each check of `mpi_checks` runs in all processes and says in the first that it went well."""
    output = run_processes(processes, "-m", "tests.runtime.mpi_checks")
    assert output.splitlines()[-1] == "all checks passed", output


@needs_mpi
def test_the_example_finds_the_same_weights_everywhere():
    output = run_processes(2, "-m", "mpi4py", "-m", "examples.distributed")
    assert output.endswith("the same bits everywhere: True\n")


def run_processes(count: int, *command: str) -> str:
    """What so many processes of Python print together."""
    child = subprocess.run(
        [str(MPIEXEC), "-n", str(count), sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": PATHS, "XLAPY_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout


def test_without_mpi4py_the_error_says_what_to_install():
    program = """
import sys
import numpy as np
import xlapy
sys.modules["mpi4py"] = None
b = xlapy.XlaBuilder("alone")
run = xlapy.compile(b.build(b.parameter(0, xlapy.Shape.array(np.float32, (2,))) + 1.0))
try:
    run.run_distributed(np.ones(2, np.float32))
except xlapy.XlaError as error:
    print(error)
"""
    environment = os.environ | {"PYTHONPATH": PATHS}
    child = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "pip install 'xlapy[mpi]'" in child.stdout
