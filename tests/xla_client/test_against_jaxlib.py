"""The same script, run through jaxlib 0.4.38's xla_client and through this one.

Slow, and needs that release: XLAPY_OLD_JAXLIB names a Python that has it; else an environment is made for it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xlapy import xla_client

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("script.py")
RELEASE = "0.4.38"
TIMEOUT = 600
RELATIVE, ABSOLUTE = 2e-5, 2e-5

Reports = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with the old release."""
    given = os.environ.get("XLAPY_OLD_JAXLIB")
    if given:
        return given
    folder = tmp_path_factory.mktemp("old") / "environment"
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    packages = [f"jaxlib=={RELEASE}", f"jax=={RELEASE}"]
    done = subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=False, timeout=TIMEOUT)
    if done.returncode:
        pytest.skip(f"jaxlib {RELEASE} cannot be installed here")
    return python


@pytest.fixture(scope="module")
def old_results(old_python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    return ran(old_python, "jaxlib.xla_client", tmp_path_factory.mktemp("jaxlib"))


@pytest.fixture(scope="module")
def our_results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    return ran(sys.executable, "xlapy.xla_client", tmp_path_factory.mktemp("xlapy"))


def ran(python: str, module: str, folder: Path) -> tuple[Path, Reports]:
    """What the script wrote, run by that Python on that module."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}" if module.startswith("xlapy") else ""}
    subprocess.run([python, str(SCRIPT), module, str(folder)], env=environment, check=True, timeout=TIMEOUT)
    return folder, json.loads((folder / "report.json").read_text())


def assert_equal(mine: list[np.ndarray], theirs: list[np.ndarray], name: str) -> None:
    for own, other in zip(map(plain, mine), theirs, strict=True):
        assert own.dtype == other.dtype, name
        np.testing.assert_allclose(own, other, rtol=RELATIVE, atol=ABSOLUTE, err_msg=name)


def plain(array: np.ndarray) -> np.ndarray:
    """As the script saves it: types that numpy's files do not know are widened."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def saved(folder: Path, name: str) -> list[np.ndarray]:
    with np.load(folder / f"{name}.npz") as arrays:
        return [arrays[name] for name in arrays.files]


def without_layouts(shape: str) -> str:
    """A transpose has another layout in XLA's builder, where it is free; here all shapes are row-major."""
    return re.sub(r"\{[\d,]*\}", "", shape)


def test_programs_agree(old_results: tuple[Path, Reports], our_results: tuple[Path, Reports]) -> None:
    (old_folder, old), (our_folder, ours) = old_results, our_results
    assert old.keys() == ours.keys() and len(ours) > 120
    for name, report in ours.items():
        assert "error" not in report, f"{name}: {report['error']}"
        assert "error" not in old[name], f"{name}: {old[name]['error']}"
        assert without_layouts(report["shape"]) == without_layouts(old[name]["shape"]), name
        number = str(report["number"])
        assert_equal(saved(our_folder, number), saved(old_folder, number), name)


def test_we_read_what_the_old_release_serialized(old_results: tuple[Path, Reports]) -> None:
    """Its protocol buffers are programs that compute the same here."""
    folder, reports = old_results
    client = xla_client.make_cpu_client()
    for name, report in reports.items():
        computation = xla_client.XlaComputation((folder / f"{report['number']}.pb").read_bytes())
        result = computation.program_shape().result_shape()
        assert without_layouts(repr(result)) == without_layouts(report["shape"]), name
        arguments = saved(folder, f"{report['number']}.arguments")
        results = [np.asarray(part) for part in client.compile(computation).execute(arguments)]
        assert_equal(results, saved(folder, str(report["number"])), name)


READER = """
import json, pathlib, sys
from jaxlib import xla_client as xc
folder = pathlib.Path(sys.argv[1])
shapes = {}
for file in folder.glob("*.pb"):
    try:
        computation = xc.XlaComputation(file.read_bytes())
        assert xc._xla.mlir.xla_computation_to_mlir_module(computation)
    except xc.XlaRuntimeError as error:
        if "Unknown opcode" not in str(error):
            raise
        continue
    shapes[file.stem] = repr(computation.program_shape().result_shape())
print(json.dumps(shapes))
"""


def test_the_old_release_reads_what_we_serialized(old_python: str, our_results: tuple[Path, Reports]) -> None:
    """XLA takes our protocol buffers for programs, and turns them into MLIR, which looks at every attribute.

    It has no ops for special functions, which its builder takes apart."""
    folder, reports = our_results
    done = subprocess.run(
        [old_python, "-c", READER, str(folder)], check=True, capture_output=True, text=True, timeout=TIMEOUT
    )
    shapes = json.loads(done.stdout.splitlines()[-1])
    assert len(shapes) > 100
    for name, report in reports.items():
        if str(report["number"]) not in shapes:
            continue
        assert without_layouts(shapes[str(report["number"])]) == without_layouts(report["shape"]), name
