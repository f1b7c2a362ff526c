"""Programs with a clock around each kernel."""

from __future__ import annotations

import json

import numpy as np
import pytest

import xlapy
from tests.report.programs import LOOP, SOFTMAX
from tests.support.machine import LIMITS
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import REFERENCE_MACHINES, reference_target
from xlapy.compiler import lower
from xlapy.hlo.text import parse
from xlapy.passes.pipeline import Watch
from xlapy.support.timing import Timings


def test_every_kernel_has_its_runs_and_its_time() -> None:
    random = np.random.default_rng(0)
    arguments = [random.random(shape, np.float32) for shape in ((64, 128), (64, 128), (128, 32))]
    profile = xlapy.compile(SOFTMAX).profile(*arguments, calls=5)
    assert profile.calls == 5
    assert {kernel.opcode: kernel.runs for kernel in profile.kernels} == {"fusion": 1, "dot": 1}
    assert all(kernel.seconds > 0 for kernel in profile.kernels)
    assert profile.in_kernels > 0
    printed = str(profile)
    assert "softmax: " in printed and "fastest of 5 calls" in printed and "%" in printed


def test_kernels_in_loops_count_each_run() -> None:
    profile = xlapy.compile(LOOP).profile(np.ones(256, np.float32), calls=2)
    assert [(kernel.computation, kernel.name, kernel.runs) for kernel in profile.kernels] == [("body", "t", 10)]


def test_a_trace_shows_one_call() -> None:
    profile = xlapy.compile(LOOP).profile(np.ones(256, np.float32), calls=2)
    (kernel,) = profile.kernels
    assert kernel.began == 0 and kernel.ended >= kernel.seconds / 2 > 0
    process, event = json.loads(profile.to_perfetto())["traceEvents"]
    assert process["args"]["name"] == "counted"
    assert (event["name"], event["ph"], event["ts"], event["args"]["runs"]) == ("t", "X", 0, 10)
    random = np.random.default_rng(0)
    arguments = [random.random(shape, np.float32) for shape in ((64, 128), (64, 128), (128, 32))]
    first, second = xlapy.compile(SOFTMAX).profile(*arguments, calls=2).kernels
    assert first.began == 0 < first.ended <= second.began < second.ended


def test_branches_count_the_runs_of_the_last_call() -> None:
    exe = xlapy.compile(
        """one { x = f32[64] parameter(0)  ROOT y = f32[64] negate(x) }
        other { x = f32[64] parameter(0)  ROOT y = f32[64] sine(x) }
        ENTRY e {
          p = pred[] parameter(0)
          x = f32[64] parameter(1)
          ROOT r = f32[64] conditional(p, x, x), true_computation=one, false_computation=other
        }"""
    )
    profile = exe.profile(np.bool_(True), np.ones(64, np.float32), calls=1)
    assert {kernel.opcode: kernel.runs for kernel in profile.kernels} == {"negate": 1, "sine": 0}


def test_calls_of_the_runtime_and_of_libraries_are_steps() -> None:
    exe = xlapy.compile(
        """ENTRY e {
          x = f32[128,128] parameter(0)
          c = f32[128,128] cholesky(x), lower=true
          y = f32[128,128] dot(c, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}
          t = token[] after-all()
          o = token[] outfeed(y, t)
          ROOT z = f32[128,128] negate(y)
        }"""
    )
    profile = exe.profile(np.eye(128, dtype=np.float32), calls=1)
    assert {kernel.opcode for kernel in profile.kernels} >= {"dot", "outfeed", "negate"}
    while True:
        try:
            xlapy.devices(1)[0].transfer_from_outfeed(timeout=0.01)
        except xlapy.XlaError:
            break


def test_programs_of_several_processes_have_none() -> None:
    exe = xlapy.compile(
        """sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] all-reduce(x), to_apply=sum }""",
        xlapy.CompileOptions(num_replicas=2),
    )
    with pytest.raises(xlapy.UnsupportedError, match="2 processes"):
        exe.profile(np.ones(4, np.float32))


def test_a_program_without_kernels() -> None:
    exe = xlapy.compile("ENTRY e { x = f32[] parameter(0)  ROOT y = f32[] sine(x) }")
    assert exe.profile(np.float32(1), calls=1).kernels == ()
    assert "Kernels: none" in exe.explain(LIMITS)
    with pytest.raises(xlapy.ArgumentError, match="at least one call"):
        exe.profile(np.float32(1), calls=0)


def test_a_profile_leaves_the_executable_alone() -> None:
    exe = xlapy.compile("ENTRY e { x = f32[64] parameter(0)  ROOT y = f32[64] negate(x) }")
    before = exe.llvm_ir()
    exe.profile(np.ones(64, np.float32), calls=1)
    assert exe.llvm_ir() == before and "readcyclecounter" not in before


@pytest.mark.parametrize("machine", sorted(REFERENCE_MACHINES))
def test_every_machine_has_a_clock(machine: str) -> None:
    target = reference_target(machine)
    lowered = lower(parse(LOOP), xlapy.CompileOptions(), target, Watch(), Timings(), counting=True)
    assert lowered.emitted.counters == len(lowered.plan.constants)
    assert lowered.emitted.loops.count("llvm.readcyclecounter()") >= 2
    assert emit_object(lowered.emitted.loops, target)
