"""`explain`: what it says about programs whose story is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import xlapy
from tests.report.programs import LOOP, SOFTMAX, chain
from tests.support.machine import LIMITS
from xlapy import inspection, ops
from xlapy.codegen.target import host_target
from xlapy.compiled import Compiled
from xlapy.executable import Executable
from xlapy.report.limits import Limits


def explained(text: str, **options: object) -> str:
    return xlapy.compile(text, xlapy.CompileOptions(**options)).explain(LIMITS)  # type: ignore[arg-type]


def test_a_fusion_has_its_instructions_its_reason_and_lines() -> None:
    text = explained(SOFTMAX)
    assert "Before fusion: 9 kernels to run, 537.0 KB to read and write; now 2 kernels, 152.0 KB" in text
    assert "laws: negate-twice" in text
    assert "multiply, reduce, broadcast, subtract, exponential, reduce, broadcast, divide" in text
    assert "each row is read once and stays in a cache: 99,328 bytes need not be stored" in text
    assert "model.py:12: subtract, exponential" in text


def test_kernels_have_bytes_operations_and_what_limits_them() -> None:
    rows = [line.split() for line in explained(SOFTMAX).splitlines()]
    assert ["d", "dot", "1", "48.0", "KB", "8.0", "KB", "524", "k", "-", "5.24", "us", "arithmetic"] in rows
    huge = "ENTRY e { x = f32[4096,4096] parameter(0)  ROOT y = f32[4096,4096] negate(x) }"
    assert "memory" in explained(huge) and "cache" not in explained(huge).partition("Kernels")[2]
    assert "cache" in explained("ENTRY e { x = f32[64] parameter(0)  ROOT y = f32[64] reverse(x), dimensions={0} }")


DENSE = """ENTRY e {
  x = f32[128,128] parameter(0)
  w = f32[128,128] parameter(1)
  b = f32[128] parameter(2)
  d = f32[128,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={source_file="a.py" source_line=3}
  c = f32[128,128] broadcast(b), dimensions={1}
  s = f32[128,128] add(d, c)
  ROOT t = f32[128,128] tanh(s)
}"""


def test_a_product_and_what_is_behind_it_are_one_kernel() -> None:
    text = explained(DENSE)
    assert "now 1 kernel, 192.5 KB" in text
    assert "65,536 bytes are finished while they are in a cache" in text
    rows = [line.split() for line in text.splitlines()]
    flops = ["4.21", "M", "16.4", "k"]  # of the product and the sums; functions
    assert ["d.fusion", "fusion", "1", "128.5", "KB", "64.0", "KB", *flops, "45.38", "us", "arithmetic"] in rows
    exe = xlapy.compile(DENSE)
    page = exe.html_report(LIMITS)
    assert re.search("gemm_(amx_)?f32_run", page) and ".epilogue" in page
    arguments = [np.ones(dims, np.float32) for dims in ((128, 128), (128, 128), (128,))]
    assert [kernel.opcode for kernel in exe.profile(*arguments, calls=1).kernels] == ["fusion"]


def test_a_product_that_stays_alone_says_why() -> None:
    text = explained(DENSE.replace("c = f32[128,128] broadcast(b), dimensions={1}", "c = f32[128,128] exponential(x)"))
    assert re.search(r"d: \S+ reads whole rows of arrays as large as the product.*\(a.py:3\)", text)


def test_refusals_say_why_and_where() -> None:
    text = explained(
        """ENTRY e {
          x = f32[64,64] parameter(0)
          y = f32[64,64] exponential(x), metadata={source_file="a.py" source_line=3}
          d = f32[64,64] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          n = f32[64,64] negate(y)
          ROOT r = f32[64,64] add(d, n)
        }"""
    )
    assert re.search(r"Not fused\n  y: d \(dot\) reads it from memory  \(a.py:3\)", text)


def test_kernels_that_store_together_are_listed() -> None:
    text = explained(
        """ENTRY e {
          x = f32[1024] parameter(0)
          a = f32[1024] exponential(x)
          b = f32[1024] sine(x)
          ROOT t = (f32[1024], f32[1024]) tuple(a, b)
        }"""
    )
    assert re.search(r"stored by one kernel together:\n    [ab] with [ab]: both read x\n", text)
    assert "2 results in one kernel" in text


def test_loops_count_each_trip() -> None:
    text = explained(LOOP)
    assert "1 kernel, 10 runs of them in one call" in text
    assert re.search(r"t +tanh +10 ", text)
    unknown = explained(LOOP.replace("n = s32[] constant(10)", "n = s32[] negate(i)"))
    assert re.search(r"t +tanh +1\? ", unknown) and "loops of unknown length counted once" in unknown


def test_long_lists_end_with_a_count() -> None:
    text = explained(chain(60))
    assert "59 kernels" in text and "... and 19 more" in text and "v59 " not in text


def test_memory_is_held_against_the_least() -> None:
    assert "Memory: 32.0 KB of temporaries in 1 block; 32.0 KB are needed at once" in explained(SOFTMAX)
    assert "Memory: no temporaries" in explained("ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }")
    memory = xlapy.compile(SOFTMAX).memory_analysis()
    sizes = 4 * (2 * 64 * 128 + 128 * 32 + 64 * 32)
    assert memory["peak_bytes"] - memory["temporary_bytes"] == sizes + memory["constant_bytes"]
    assert memory["peak_bytes_lower_bound"] <= memory["peak_bytes"]


def test_one_thread_is_held_against_one_core() -> None:
    assert "one core: 50 GFLOP/s" in explained(SOFTMAX, num_threads=1)
    assert "2 cores: 100 GFLOP/s" in explained(SOFTMAX, num_threads=2)


def test_programs_from_the_cache_are_explained_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path / "cache"))
    first, second = xlapy.compile(SOFTMAX), xlapy.compile(SOFTMAX)
    assert second.compile_stats().cached
    without_times = [re.sub(r"[\d.]+ (ns|us|ms|s)\b", "", exe.explain(LIMITS)) for exe in (first, second)]
    assert [line.split() for line in without_times[0].splitlines()] == [
        line.split() for line in without_times[1].splitlines()
    ]


def test_a_recorded_program_names_the_lines_of_its_recording() -> None:
    b = xlapy.XlaBuilder("recorded")
    x = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (64,)), "x")
    text = xlapy.compile(b.build(ops.Exp(x * x))).explain(LIMITS)
    assert re.search(r"test_explain\.py:\d+: ", text)


def test_a_module_that_was_changed_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")  # what comes from there is printed when somebody asks for it
    module = xlapy.hlo.parse("ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }")
    exe = xlapy.compile(module)
    assert "1 kernel" in exe.explain(LIMITS)
    module.entry.set_root(module.entry.add("exponential", [module.entry.root]))
    with pytest.raises(xlapy.UnsupportedError, match="does not compile as it did"):
        exe.explain(LIMITS)


def test_code_without_its_module_is_not_explained() -> None:
    options = xlapy.CompileOptions()
    whole = xlapy.compile("ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }")._compiled
    exe = Executable(Compiled(whole.program, whole.make_stats, whole.target), options)
    with pytest.raises(xlapy.UnsupportedError, match="module is not at hand"):
        exe.explain(LIMITS)


def test_open_sizes_are_explained_once_they_are_known() -> None:
    exe = xlapy.compile("ENTRY e { x = f32[?] parameter(0)  ROOT y = f32[?] negate(x) }")
    for method in ("explain", "html_report"):
        with pytest.raises(xlapy.UnsupportedError, match="specialize"):
            getattr(exe, method)(LIMITS)
    assert exe.profile(np.ones(5, np.float32), calls=1).kernels[0].opcode == "negate"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """For how many cores limits are measured, on a machine with four and with nothing in the cache: none really are."""
    cores: list[int] = []

    def measure(count: int) -> Limits:
        cores.append(count)
        return replace(LIMITS, cores=count)

    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(inspection, "host_target", lambda: replace(host_target(), cores=4))
    monkeypatch.setattr(inspection.limits, "measure", measure)
    inspection._limits_of.cache_clear()
    yield cores
    inspection._limits_of.cache_clear()


def test_limits_are_measured_once_and_kept(measured: list[int]) -> None:
    for _ in range(2):
        inspection._limits_of.cache_clear()
        assert inspection.machine_limits() == replace(LIMITS, cores=4)
    assert measured == [4]


def test_limits_are_those_of_the_threads_that_a_program_may_use(measured: list[int]) -> None:
    text = "ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }"
    said = {}
    for threads in (1, 3, 4, 64, None):
        told = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads)).explain()
        said[threads] = re.findall(r"\((\w+ cores?): ", told)
    assert said == {1: ["one core"], 3: ["3 cores"], 4: ["4 cores"], 64: ["4 cores"], None: ["4 cores"]}
    assert sorted(measured) == [3, 4]
