"""How the platform comes into a process, and how a process ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import jaxlib.version
import pytest

import xlapy
import xlapy.pjrt

pytestmark = pytest.mark.skipif(jaxlib.version.__version_info__ < (0, 10), reason="needs jaxlib 0.10")

ROOT = Path(__file__).resolve().parent.parent.parent

REGISTER = "import xlapy.pjrt; xlapy.pjrt.register()\n"


def run(program: str, platforms: str = "xlapy", path: str = "") -> subprocess.CompletedProcess[str]:
    around = {**os.environ, "JAX_PLATFORMS": platforms}
    if path:
        around["PYTHONPATH"] = os.pathsep.join(filter(None, (path, around.get("PYTHONPATH", ""))))
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=around, timeout=120, check=False)


def output(program: str, platforms: str = "xlapy", path: str = "") -> list[str]:
    done = run(program, platforms, path)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout.splitlines()


def test_jax_finds_the_entry_point(tmp_path: Path) -> None:
    """A program that has never heard of xlapy, where something with this entry point is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    points = project["project"]["entry-points"]["jax_plugins"]
    installed = tmp_path / "installed-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[jax_plugins]\n" + "".join(f"{n} = {m}\n" for n, m in points.items()))
    program = "import jax; print(jax.devices()[0].device_kind, jax.jit(lambda x: x + 1)(1))"
    assert output(program, path=str(tmp_path)) == ["xlapy 2"]
    assert output(program, platforms="", path=str(tmp_path)) == ["cpu 2"]


NOT_ASKED = """
import sys, jax
before = set(sys.modules)
import xlapy.pjrt
xlapy.pjrt.initialize()
new = set(sys.modules) - before
print(sorted({name.partition(".")[0] for name in new} & {"llvmlite", "ml_dtypes", "networkx", "xlapy"}))
print([name for name in new if name.startswith("xlapy.pjrt")])
print(jax.devices()[0].device_kind)
"""


@pytest.mark.parametrize("platforms", ["", "cpu"])
def test_who_does_not_ask_for_the_platform_does_not_get_it(platforms: str) -> None:
    assert output(NOT_ASKED, platforms) == ["['xlapy']", "['xlapy.pjrt']", "cpu"]


INITIALIZED = """
import jax, jax.numpy as jnp, numpy as np
import xlapy.pjrt
xlapy.pjrt.initialize(), xlapy.pjrt.register()
ours, theirs = jax.devices()[0], jax.devices("cpu")[0]
print(ours.device_kind, theirs.device_kind)
there = jax.device_put(jnp.arange(3.0), theirs)
back = jax.device_put(there * 2, ours)
print(there.devices() == {theirs}, back.devices() == {ours}, back.tolist())
print(jax.jit(lambda x: x + 1, device=theirs)(1.0), jax.jit(jax.scipy.special.erfc, device=theirs)(0.0))
"""


def test_both_platforms_in_one_process() -> None:
    lines = output(INITIALIZED, "xlapy,cpu")
    assert lines == ["xlapy cpu", "True True [0.0, 2.0, 4.0]", "2.0 1.0"]


END = (
    """
import atexit
atexit.register(lambda: print(float(function(5.0))))
import jax, jax.numpy as jnp, numpy as np
"""
    + REGISTER
    + """
function = jax.jit(lambda x: x * 2)
kept = [function(jnp.arange(10_000.0)), np.asarray(jnp.ones(10_000))]
shared = np.empty(1 << 20, np.float32)
aligned = jax.device_put(shared[-shared.ctypes.data % 64 // 4 :])
called = jax.jit(lambda x: jax.pure_callback(np.sin, x, x))
kept.append(called(jnp.ones(3)))
cycle = [kept]
cycle.append(cycle)

class Last:
    def __del__(self):
        kept.clear()

last = Last()
print("end")
"""
)


def test_processes_end() -> None:
    """With arrays that live until the end and longer, and a last call at exit. (JAX itself ends a process by force in
    which a daemon is in the middle of a call.)"""
    for _ in range(2):
        assert output(END) == ["end", "10.0"]


FORK = (
    """
import os, warnings
warnings.simplefilter("ignore")
import jax, jax.numpy as jnp
"""
    + REGISTER
    + """
function = jax.jit(lambda x: (x * 2).sum())
x = jnp.arange(1000.0)
print(float(function(x)), flush=True)
child = os.fork()
if child == 0:
    print(float(function(x + x)) if False else float(function(x)), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
)


def test_a_child_runs_what_was_compiled() -> None:
    assert output(FORK) == ["999000.0", "999000.0", "0"]


INTERRUPT = (
    """
import os, signal, threading
import jax, jax.numpy as jnp
"""
    + REGISTER
    + """
forever = jax.jit(lambda x: jax.lax.while_loop(lambda x: x >= 0, lambda x: x * 1.0, x)).lower(1.0).compile()
double = jax.jit(lambda x: x * 2)
double(1.0)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    try:
        forever(1.0)
    except jax.errors.JaxRuntimeError:
        print("stopped")
        for _ in range(1000):
            pass
except KeyboardInterrupt:
    print("interrupted")
print(double(2.0))
"""
)


def test_endless_programs_can_be_interrupted() -> None:
    assert output(INTERRUPT)[-2:] == ["interrupted", "4.0"]


def test_an_old_jaxlib_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxlib.version.__version_info__", (0, 6, 2))
    with pytest.raises(xlapy.UnsupportedError, match=r"jaxlib 0\.10 or newer"):
        xlapy.pjrt.register()


def test_other_names_are_unknown_as_before() -> None:
    done = run(REGISTER + "import jax; jax.devices()", "xlapi")
    assert done.returncode == 1 and "Backend 'xlapi' is not in the list of known backends" in done.stderr
