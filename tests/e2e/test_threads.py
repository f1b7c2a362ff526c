"""Whole programs on several threads: the same bits for any number, and a pool that nobody notices while it idles."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.fresh import printed_by
from tests.support.values import assert_same

Array = np.ndarray[Any, Any]

REGIONS = """\
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
maximum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT m = f32[] maximum(x, y) }
wide_add { x = f64[] parameter(0) y = f64[] parameter(1) ROOT s = f64[] add(x, y) }
narrow_add { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT s = bf16[] add(x, y) }
larger {
  x = f32[] parameter(0) i = s32[] parameter(1) y = f32[] parameter(2) j = s32[] parameter(3)
  c = pred[] compare(x, y), direction=GE
  z = f32[] select(c, x, y) k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(z, k)
}
again { s = (s32[], f32[160,160]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[160,160]) parameter(0) i = s32[] get-tuple-element(s), index=0
  x = f32[160,160] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one)
  d = f32[160,160] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[160,160] tanh(d) ROOT r = (s32[], f32[160,160]) tuple(j, t) }
"""

PROGRAMS = {
    "elementwise": """
  x = f32[700,1100] parameter(0)
  t = f32[700,1100] tanh(x)
  ROOT y = f32[700,1100] multiply(t, x)""",
    "sum_of_all": """
  x = f32[700,1100] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add""",
    "sum_of_rows": """
  x = f32[900,801] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[900] reduce(x, zero), dimensions={1}, to_apply=add""",
    "sum_of_columns": """
  x = f32[2100,401] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[401] reduce(x, zero), dimensions={0}, to_apply=add""",
    "sum_of_many_columns": """
  x = f32[150,9001] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[9001] reduce(x, zero), dimensions={0}, to_apply=add""",
    "few_long_rows": """
  x = f32[3,400001] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[3] reduce(x, zero), dimensions={1}, to_apply=add""",
    "sum_of_f64": """
  x = f64[500,1100] parameter(0)
  zero = f64[] constant(0)
  ROOT s = f64[] reduce(x, zero), dimensions={0,1}, to_apply=wide_add""",
    "sum_of_bf16_columns": """
  x = bf16[1500,501] parameter(0)
  zero = bf16[] constant(0)
  ROOT s = bf16[501] reduce(x, zero), dimensions={0}, to_apply=narrow_add""",
    "largest_and_where": """
  x = f32[7,100003] parameter(0)
  i = s32[7,100003] iota(), iota_dimension=1
  lowest = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT m = (f32[7], s32[7]) reduce(x, i, lowest, zero), dimensions={1}, to_apply=larger""",
    "loop_of_dots": """
  x = f32[160,160] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[160,160]) tuple(zero, x)
  end = (s32[], f32[160,160]) while(start), condition=again, body=step
  ROOT y = f32[160,160] get-tuple-element(end), index=1""",
    "softmax": """
  x = f32[640,1024] parameter(0)
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[640] reduce(x, lowest), dimensions={1}, to_apply=maximum
  tops = f32[640,1024] broadcast(top), dimensions={0}
  shifted = f32[640,1024] subtract(x, tops)
  e = f32[640,1024] exponential(shifted)
  s = f32[640] reduce(e, zero), dimensions={1}, to_apply=add
  sums = f32[640,1024] broadcast(s), dimensions={0}
  ROOT y = f32[640,1024] divide(e, sums)""",
    "dot": """
  x = f32[257,391] parameter(0)
  y = f32[391,503] parameter(1)
  ROOT z = f32[257,503] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "long_dot": """
  x = f32[40,20011] parameter(0)
  y = f32[20011,24] parameter(1)
  ROOT z = f32[40,24] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "matrix_vector": """
  x = f32[1500,1301] parameter(0)
  y = f32[1301] parameter(1)
  ROOT z = f32[1500] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "batched_dot": """
  x = f32[9,70,130] parameter(0)
  y = f32[9,130,90] parameter(1)
  ROOT z = f32[9,70,90] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}""",
    "transposed": """
  x = f32[900,1100] parameter(0)
  ROOT y = f32[1100,900] transpose(x), dimensions={1,0}""",
}


def module_of(body: str) -> xlapy.HloModule:
    return xlapy.hlo.parse(f"HloModule m\n{REGIONS}\nENTRY main {{{body}\n}}\n")


def arguments_of(module: xlapy.HloModule) -> list[Array]:
    random = np.random.default_rng(0)
    return [
        random.normal(size=parameter.shape.dims).astype(parameter.shape.type.dtype)
        for parameter in module.entry.parameters
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_number_of_threads_changes_no_bit(name: str) -> None:
    module = module_of(PROGRAMS[name])
    arguments = arguments_of(module)
    expected = xlapy.compile(module, xlapy.CompileOptions(num_threads=1))(*arguments)
    for num_threads in (2, 3, 8):
        exe = xlapy.compile(module, xlapy.CompileOptions(num_threads=num_threads))
        for _ in range(2):
            assert_same(exe(*arguments), expected, f"{name} on {num_threads} threads")


def run_script(script: str, **environment: str) -> str:
    """What a fresh interpreter prints; anything on its standard error is a failure."""
    prelude = """
import os, threading, time
import numpy as np
import xlapy
from tests.e2e.test_threads import PROGRAMS, arguments_of, module_of
from tests.support.workers import worker_count

def tasks():
    return len(os.listdir("/proc/self/task"))

def program(name):
    module = module_of(PROGRAMS[name])
    return xlapy.compile(module), arguments_of(module)
"""
    surroundings = {"PYTHONWARNINGS": "ignore::DeprecationWarning", "OPENBLAS_NUM_THREADS": "1", **environment}
    return printed_by(prelude + textwrap.dedent(script), surroundings)


@pytest.mark.parametrize(("setting", "workers"), [("1", 0), ("2", 1), ("5", 4)])
def test_the_environment_bounds_the_threads_of_a_program(setting: str, workers: int) -> None:
    """Importing, compiling and running something small start no thread; the first large run starts what it may use."""
    script = """
        before = tasks()
        exe, arguments = program("elementwise")
        small = xlapy.compile("HloModule m ENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] tanh(x) }")
        small(np.ones(8, np.float32))
        alone = tasks() - before
        exe(*arguments)
        print(alone, tasks() - before, worker_count())
    """
    assert run_script(script, XLAPY_NUM_THREADS=setting) == f"0 {workers} {workers}"


def test_threads_are_those_that_were_wanted_when_it_was_compiled() -> None:
    """The pool is put into memory with the first call, and not for programs that are only compiled."""
    script = """
        from xlapy_runtime import threads
        exe, arguments = program("softmax")
        os.environ["XLAPY_NUM_THREADS"] = "0"
        for wrong in (lambda: program("softmax"), lambda: xlapy.compile(module_of(PROGRAMS["softmax"]))):
            try:
                wrong()
            except xlapy.ArgumentError:
                print(threads._POOL.found)
        exe(*arguments)
        print(worker_count())
    """
    assert run_script(script, XLAPY_NUM_THREADS="4").split() == ["None", "None", "3"]


def test_a_program_that_may_use_one_thread_starts_none() -> None:
    script = """
        module = module_of(PROGRAMS["softmax"])
        xlapy.compile(module, xlapy.CompileOptions(num_threads=1))(*arguments_of(module))
        print(worker_count())
    """
    assert run_script(script, XLAPY_NUM_THREADS="4") == "0"


@pytest.mark.skipif("not __import__('os').path.exists('/proc/self/task')", reason="reads Linux's /proc")
def test_workers_sleep_after_a_program() -> None:
    """Once all threads but the one that looks are asleep, none of them wakes up by itself."""
    script = """
        exe, arguments = program("softmax")
        for _ in range(20):
            exe(*arguments)
        assert worker_count() == 3

        def others():
            own, found = threading.get_native_id(), {}
            for task in os.listdir("/proc/self/task"):
                if int(task) != own:
                    fields = dict(line.split(":", 1) for line in open(f"/proc/self/task/{task}/status"))
                    found[task] = fields["State"].split()[0], fields["voluntary_ctxt_switches"].strip()
            return found

        while any(state != "S" for state, _ in others().values()):
            time.sleep(0.01)
        before = others()
        time.sleep(0.5)
        print(len(before) >= 3, others() == before)
    """
    assert run_script(script, XLAPY_NUM_THREADS="4") == "True True"


def test_a_child_of_fork_runs_programs_too() -> None:
    """After the parent used its workers, which the child does not have, and the parent goes on with its own."""
    script = """
        exe, arguments = program("softmax")
        expected = exe(*arguments)
        child = os.fork()
        if not child:
            other, rows = program("sum_of_rows")
            other(*rows)
            same = all((exe(*arguments) == expected).all() for _ in range(5))
            os._exit(0 if same and worker_count() == 2 else 1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), (exe(*arguments) == expected).all(), worker_count())
    """
    assert run_script(script, XLAPY_NUM_THREADS="3") == "0 True 2"
