"""Ctrl-C in compiled programs, in a process of its own: every program would run for many seconds, or for ever."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pytest

import xlapy
from tests.support.copied_process import CopiedProcess
from xlapy_runtime.calling import ContextWord

TIMEOUT = 240

PRELUDE = """
import os, signal, threading, time
import numpy as np
import xlapy
from xlapy import ops

MATRIX = xlapy.Shape.array(np.float32, (1024, 1024))
ONE = np.eye(1024, dtype=np.float32)
OPTIONS = xlapy.CompileOptions(num_threads=THREADS)

def recorded(function, *shapes):
    builder = xlapy.XlaBuilder("long")
    return builder.build(function(*[builder.parameter(n, shape) for n, shape in enumerate(shapes)]))

def interrupted(function, *arguments, late=9):  # seconds: far more than it takes, far less than the program would
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        function(*arguments)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if time.monotonic() - began > late:
            print("too late")
"""


class Script(Protocol):
    def __call__(self, body: str, threads: int | None = None) -> list[str]:
        """The words that a script prints."""


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    with CopiedProcess() as process:

        def printed(body: str, threads: int | None = None) -> list[str]:
            prelude = PRELUDE.replace("THREADS", str(threads))
            return process.printed_by(prelude + textwrap.dedent(body), seconds=TIMEOUT).split()

        yield printed


def test_a_loop_over_scalars_stops_and_can_be_called_again(script: Script) -> None:
    body = """
    def body(state):
        return state.builder.tuple([state[0] + 1, ops.Sin(state[1]), state[2]])
    def function(x, n):
        return ops.While(lambda s: s[0] < s[2], body, x.builder.tuple([x.builder.constant(np.int64(0)), x, n]))
    run = xlapy.compile(recorded(function, xlapy.Shape.scalar(np.float32), xlapy.Shape.scalar(np.int64)), OPTIONS)
    for _ in range(2):
        interrupted(run, np.float32(1), np.int64(1 << 60))
    print(int(run(np.float32(1), np.int64(3))[0]))
    """
    assert script(body) == ["interrupted", "interrupted", "3"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_over_matrices_stops(script: Script, threads: int) -> None:
    body = """
    def body(state):
        return state.builder.tuple([state[0] + 1, state[1] @ state[1]])
    def function(x):
        return ops.While(lambda s: s[0] < 1 << 30, body, x.builder.tuple([x.builder.constant(np.int32(0)), x]))
    interrupted(xlapy.compile(recorded(function, MATRIX), OPTIONS), ONE)
    """
    assert script(body, threads) == ["interrupted"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_without_loops_stops(script: Script, threads: int) -> None:
    """Between kernels: 500 products of matrices, one behind the other."""
    body = """
    def function(x):
        y = x
        for _ in range(500):
            y = x @ y
        return y
    interrupted(xlapy.compile(recorded(function, MATRIX), OPTIONS), ONE)
    """
    assert script(body, threads) == ["interrupted"]


@pytest.mark.parametrize("threads", [1, 2])
def test_one_kernel_stops_in_the_middle_and_is_whole_the_next_time(script: Script, threads: int) -> None:
    """One product of large matrices: the call that is cut short raises, the next one does all of its work."""
    body = """
    LARGE = xlapy.Shape.array(np.float32, (6144, 6144))
    run = xlapy.compile(recorded(lambda x: x @ x, LARGE), OPTIONS)
    interrupted(run, np.zeros((6144, 6144), np.float32))
    small = xlapy.compile(recorded(lambda x: x @ x, MATRIX), OPTIONS)
    print(np.array_equal(small(2 * ONE), 4 * ONE))
    """
    assert script(body, threads) == ["interrupted", "True"]


def test_a_handler_that_raises_nothing_stops_nothing(script: Script) -> None:
    body = """
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    def function(x):
        y = x
        for _ in range(10):
            y = x @ y
        return y
    run = xlapy.compile(recorded(function, MATRIX), OPTIONS)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    while not seen:
        result = run(ONE)
    print(np.array_equal(result, ONE))
    """
    assert script(body) == ["True"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_sort_of_one_array_stops(script: Script, threads: int) -> None:
    """One unit of one kernel, of some 90,000,000 comparisons that take half a minute. The array is small: what a system
    takes to find memory says nothing."""
    body = """
    side = lambda v: "".join(f"{v}{n + 1} = f32[] tan({v}{n})  " for n in range(8))
    text = f'''HloModule m
      less {{ a0 = f32[] parameter(0)  b0 = f32[] parameter(1)  {side("a")} {side("b")}
        ROOT c = pred[] compare(a8, b8), direction=LT }}
      ENTRY e {{ x = f32[4000000] parameter(0)
        ROOT s = f32[4000000] sort(x), dimensions={{0}}, to_apply=less }}'''
    run = xlapy.compile(text, OPTIONS)
    x = np.arange(4000000, dtype=np.float32)
    interrupted(run, x)
    interrupted(run, x)
    """
    assert script(body, threads) == ["interrupted", "interrupted"]


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_that_run_together_stop(script: Script, threads: int) -> None:
    """In the middle of one joint run of some twenty tasks, by processor time: it would take 20 seconds. The next one
    does all of its work."""
    body = """
    N, COUNT = 200000, 4
    members = "".join(
        f"p{n} = f32[{N}] parameter({n})  s{n} = f32[{N}] add(p{n}, a)  g{n} = f32[{N}] igamma(a, s{n})  "
        for n in range(COUNT)
    )
    shapes, results = ", ".join([f"f32[{N}]"] * COUNT), ", ".join(f"g{n}" for n in range(COUNT))
    text = f'''HloModule m
      ENTRY e {{ c = f32[] parameter({COUNT})  a = f32[{N}] broadcast(c), dimensions={{}}  {members}
        ROOT t = ({shapes}) tuple({results}) }}'''
    run = xlapy.compile(text, OPTIONS)
    print("@kernel.joint" in run.llvm_ir())
    arrays = [np.zeros(N, np.float32)] * COUNT
    began = time.process_time()
    interrupted(run, *arrays, np.float32(1e6))
    print(time.process_time() - began < 8)
    print(all(np.allclose(result, 1 - np.exp(-1)) for result in run(*arrays, np.float32(1))))
    """
    assert script(body, threads) == ["True", "interrupted", "True", "True"]


def test_calls_of_lapack_stop(script: Script) -> None:
    """In the middle of a batch, of which Python hears only at the first call."""
    body = """
    run = xlapy.compile('''
        HloModule m
        ENTRY e { x = f32[1000,64,64] parameter(0)
          y = (f32[1000,64,64]{1,2,0}, f32[1000,64]{1,0}, s32[1000]{0}) custom-call(x),
            custom_call_target="lapack_ssyevd_ffi", api_version=API_VERSION_TYPED_FFI,
            operand_layout_constraints={f32[1000,64,64]{1,2,0}}, backend_config={mode = 86 : ui8, uplo = 76 : ui8}
          ROOT v = f32[1000,64]{1,0} get-tuple-element(y), index=1 }''', OPTIONS)
    matrix = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    matrices = np.ascontiguousarray(np.broadcast_to(matrix, (1000, 64, 64)))
    began = time.monotonic()
    run(matrices)
    whole = time.monotonic() - began
    for _ in range(2):
        interrupted(run, matrices, late=0.8 * whole)
    """
    assert script(body) == ["interrupted", "interrupted"]


def test_long_kernels_of_one_unit_listen() -> None:
    add = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
    less = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }"
    subtract = add.replace("add", "subtract")  # in no other order, so by one unit
    sort = "ENTRY e { x = f32[SIZE] parameter(0)  ROOT s = f32[SIZE] sort(x), dimensions={0}, to_apply=less }"
    programs = {
        "sort": less.replace("compare(a, b)", "compare(t, b)").replace("ROOT", "t = f32[] abs(a)  ROOT") + sort,
        "scatter": f"""{add}
          ENTRY e {{ x = f32[100] parameter(0)  i = s32[SIZE,1] parameter(1)  u = f32[SIZE] parameter(2)
            ROOT s = f32[100] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
              scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add }}""",
        "scan": f"""{add}
          ENTRY e {{ x = f32[SIZE] parameter(0)  z = f32[] constant(0)
            ROOT s = f32[SIZE] reduce-window(x, z), window={{size=SIZE pad=REST_0}}, to_apply=add }}""",
        "reduce": f"""{subtract}
          ENTRY e {{ x = f32[SIZE] parameter(0)  z = f32[] constant(0)
            ROOT s = f32[] reduce(x, z), dimensions={{0}}, to_apply=subtract }}""",
        "nested reduce": f"""{subtract}
          ENTRY e {{ x = f32[SIZE,3,2] parameter(0)  z = f32[] constant(0)
            ROOT s = f32[3] reduce(x, z), dimensions={{0,2}}, to_apply=subtract }}""",
    }
    calls = {  # of libraries, which listen where they are given the context
        "sort": less + sort,
        "topk": "ENTRY e { x = f32[SIZE] parameter(0)  ROOT t = (f32[8], s32[8]) topk(x), k=8, largest=true }",
    }
    for name, text in calls.items():
        for size, listens in [(1 << 10, False), (1 << 20, True)]:
            run = xlapy.compile("HloModule m " + text.replace("SIZE", str(size)))
            assert ("store ptr %context" in run.llvm_ir()) is listens, name
    for name, text in programs.items():
        for size, listens in [(1 << 10, False), (1 << 20, True)]:
            run = xlapy.compile("HloModule m " + text.replace("SIZE", str(size)).replace("REST", str(size - 1)))
            assert ("@kernel.look(" in run.llvm_ir()) is listens, name


def test_factors_of_a_large_matrix_listen(script: Script) -> None:
    for found in (
        "(f32[SIZE,SIZE], s32[SIZE], s32[SIZE]) lu",
        "(f32[SIZE,SIZE], f32[SIZE]) qr-decomposition",
        "(f32[SIZE,SIZE], f32[SIZE]) eigh",
        "(f32[SIZE,SIZE], f32[SIZE], f32[SIZE,SIZE]) svd",
    ):
        text = f"HloModule m ENTRY e {{ x = f32[SIZE,SIZE] parameter(0)  ROOT f = {found}(x) }}"
        for size, listens in [(32, False), (1024, True)]:
            run = xlapy.compile(text.replace("SIZE", str(size)))
            assert ("@kernel.look(" in run.llvm_ir()) is listens
    body = """
    def function(x):
        return ops.LU(x)[0]
    run = xlapy.compile(recorded(function, xlapy.Shape.array(np.float32, (4096, 4096))), OPTIONS)
    interrupted(run, np.random.default_rng(0).standard_normal((4096, 4096), np.float32), late=2)
    """
    assert script(body) == ["interrupted"]


def test_a_context_belongs_to_a_thread_only_while_a_kernel_listens() -> None:
    """The next run in it may be another thread's, which signals do not concern."""
    text = """HloModule m
      fold { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] subtract(a, b) }
      ENTRY e { x = f32[SIZE] parameter(0)  z = f32[] constant(0)
        r = f32[] reduce(x, z), dimensions={0}, to_apply=fold
        ROOT c = f32[] custom-call(r), custom_call_target="same", custom_call_has_side_effect=true }"""
    owners = []
    pools = []

    def same(x: np.ndarray) -> np.ndarray:
        owners.extend(context.words[ContextWord.OWNER] for pool in pools for context in pool.contexts)
        return x

    run = xlapy.compile(text.replace("SIZE", str(1 << 20)), xlapy.CompileOptions(custom_calls={"same": same}))
    assert "pthread_self" in run.llvm_ir()
    executable = run._executable
    memory = executable._runs.make_memory()
    pools.append(memory)
    executable._runs.memories.give_back(memory)
    run(np.zeros(1 << 20, np.float32))
    assert owners == [0]


@pytest.mark.parametrize("place", [0, 99999])
def test_a_region_that_never_ends_stops_on_any_thread(script: Script, place: int) -> None:
    """One of 100,000 elements keeps one thread busy for ever; the others have nothing left to do."""
    body = """
    text = '''HloModule m
      again { s = f32[] parameter(0)  z = f32[] constant(7)  ROOT p = pred[] compare(s, z), direction=NE }
      same { s = f32[] parameter(0)  ROOT n = f32[] negate(s) }
      r { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT w = f32[] while(y), condition=again, body=same }
      ENTRY e { x = f32[100000] parameter(0)  ROOT y = f32[100000] map(x, x), dimensions={0}, to_apply=r }'''
    run = xlapy.compile(text, OPTIONS)
    x = np.full(100000, 7, np.float32)
    for _ in range(2):
        x[PLACE] = 1
        interrupted(run, x)
        x[PLACE] = 7
        print(np.array_equal(run(x), x))
    """
    assert script(body.replace("PLACE", str(place)), 2) == ["interrupted", "True"] * 2


def test_a_reduce_in_fixed_order_stops(script: Script) -> None:
    """One unit, which computes what it folds and reads no memory."""
    body = """
    text = '''HloModule m
      fold { a = f32[] parameter(0)  b = f32[] parameter(1)  s = f32[] tan(a)  t = f32[] tan(s)  u = f32[] tan(t)
        ROOT d = f32[] subtract(u, b) }
      ENTRY e { i = s32[2000000000] iota(), iota_dimension=0  x = f32[2000000000] convert(i)  z = f32[] parameter(0)
        ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=fold }'''
    run = xlapy.compile(text, OPTIONS)
    for _ in range(2):
        interrupted(run, np.float32(0))
    """
    assert script(body, 1) == ["interrupted"] * 2


def test_many_calls_of_a_region_stop(script: Script) -> None:
    """A computation with arrays in it, without loops: it ends soon, but is called for each of many elements."""
    body = """
    text = '''HloModule m
      add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
      r { x = f32[] parameter(0)  y = f32[] parameter(1)  z = f32[] constant(0)
        many = f32[3000] iota(), iota_dimension=0  row = f32[3000] broadcast(y), dimensions={}
        both = f32[3000] power(many, row)  t = f32[] reduce(both, z), dimensions={0}, to_apply=add
        ROOT s = f32[] add(x, t) }
      ENTRY e { x = f32[4000000] parameter(0)  z = f32[] constant(0)
        ROOT y = f32[] reduce(x, z), dimensions={0}, to_apply=r }'''
    run = xlapy.compile(text, OPTIONS)
    interrupted(run, np.ones(4000000, np.float32))
    """
    assert script(body, 1) == ["interrupted"]


def test_other_threads_are_not_stopped(script: Script) -> None:
    """Ctrl-C ends the program of the main thread; a loop in a region that runs in another thread goes on to its end."""
    body = """
    text = '''HloModule m
      more { s = (s64[], s64[]) parameter(0)  n = s64[] get-tuple-element(s), index=0  z = s64[] constant(0)
        ROOT c = pred[] compare(n, z), direction=GT }
      step { s = (s64[], s64[]) parameter(0)  n = s64[] get-tuple-element(s), index=0
        t = s64[] get-tuple-element(s), index=1  one = s64[] constant(1)  m = s64[] subtract(n, one)
        u = s64[] add(t, one)  ROOT r = (s64[], s64[]) tuple(m, u) }
      count { a = s64[] parameter(0)  b = s64[] parameter(1)  z = s64[] constant(0)  s = (s64[], s64[]) tuple(b, z)
        w = (s64[], s64[]) while(s), condition=more, body=step  ROOT r = s64[] get-tuple-element(w), index=1 }
      ENTRY e { x = s64[8] parameter(0)  ROOT y = s64[8] map(x, x), dimensions={0}, to_apply=count }'''
    run = xlapy.compile(text, OPTIONS)
    results = []
    many = np.full(8, 15000000)  # far more than a tenth of a second
    other = threading.Thread(target=lambda: results.append(run(many)))
    other.start()
    interrupted(run, np.full(8, 1 << 60))
    other.join()
    print(np.array_equal(results[0], many))
    """
    assert script(body, 2) == ["interrupted", "True"]
