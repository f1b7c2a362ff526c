"""Every chunk runs once, whoever asks, from wherever; and a pool without work costs nothing."""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from pathlib import Path

import pytest

from tests.support.fresh import printed_by
from tests.support.shared_cache import shared_cache
from xlapy.codegen.jit import emit_assembly, emit_object
from xlapy.codegen.pool import POOL, emit_pool
from xlapy.codegen.target import host_target, reference_target
from xlapy_runtime import threads
from xlapy_runtime.errors import ArgumentError
from xlapy_runtime.linking import LinkedCode, link

IDLE_SECONDS = 2.0
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

KERNELS = """
define void @mark(ptr %marks, i64 %begin, i64 %end) {
entry:
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %p = getelementptr i64, ptr %marks, i64 %i
  %old = load i64, ptr %p
  %size = sub i64 %end, %begin
  %new = add i64 %old, %size
  store i64 %new, ptr %p
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
; args: parallel, marks: each element of the outer range runs an inner range of 10 over its own part of the marks
define void @nested(ptr %args, i64 %begin, i64 %end) {
  %parallel = load ptr, ptr %args
  %q = getelementptr ptr, ptr %args, i64 1
  %marks = load ptr, ptr %q
  %first = mul i64 %begin, 10
  %part = getelementptr i64, ptr %marks, i64 %first
  call void %parallel(ptr @mark, ptr %part, i64 10, i64 3)
  ret void
}
"""


@functools.cache
def kernels() -> LinkedCode:
    threads.install(POOL.objects(host_target(), shared_cache()))
    return link([emit_object(KERNELS, host_target())], {}, ["mark", "nested"])


def marks_of(count: int, grain: int, num_threads: int | None) -> list[int]:
    """How large a chunk each element of the range was in, summed over the calls that saw it."""
    marks = (ctypes.c_int64 * max(1, count))()
    PARALLEL(threads.parallel_address(num_threads))(kernels().address("mark"), ctypes.addressof(marks), count, grain)
    return list(marks)[: max(0, count)]


def expected_marks(count: int, grain: int) -> list[int]:
    return [min(grain, count - index // grain * grain) for index in range(count)]


@pytest.fixture(autouse=True)
def _installed() -> None:
    kernels()


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8, threads.MAX_THREADS, 1000, None])
@pytest.mark.parametrize(
    ("count", "grain"), [(0, 1), (-5, 2), (1, 1), (7, 7), (7, 8), (16, 1), (33, 2), (1000, 1), (1001, 10)]
)
def test_every_chunk_runs_once(count: int, grain: int, num_threads: int | None) -> None:
    for _ in range(20):
        assert marks_of(count, grain, num_threads) == expected_marks(count, grain)
        assert marks_of(count, -grain, num_threads) == expected_marks(count, grain)


def test_more_chunks_than_the_job_word_can_count() -> None:
    count = (1 << 21) + 5
    assert marks_of(count, 1, 2) == [1] * count


def test_six_threads_calling_at_once_all_get_their_chunks() -> None:
    wrong: list[int] = []

    def call() -> None:
        wrong.extend(size for size in range(1, 300) if marks_of(size, 3, 4) != expected_marks(size, 3))

    callers = [threading.Thread(target=call) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_range_within_a_range_runs_inline() -> None:
    outer = 200
    marks = (ctypes.c_int64 * (10 * outer))()
    parallel = threads.parallel_address(3)
    args = (ctypes.c_void_p * 2)(parallel, ctypes.addressof(marks))
    PARALLEL(parallel)(kernels().address("nested"), ctypes.addressof(args), outer, 1)
    assert list(marks) == expected_marks(10, 3) * outer


def test_an_idle_pool_uses_no_time() -> None:
    """What is required is stated in time, so this is the one test that measures some: of this process alone, which
    other load does not lengthen."""
    marks_of(1000, 1, 4)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(IDLE_SECONDS)
    assert time.process_time() - before < 0.01 * IDLE_SECONDS


def test_the_pool_wakes_up_again() -> None:
    for _ in range(5):
        time.sleep(0.01)
        assert marks_of(100, 1, 3) == [1] * 100


def test_thousands_of_ranges_in_a_row() -> None:
    """Workers are still awake for one, asleep for the next: no call is lost in between."""
    for number in range(3000):
        assert marks_of(8, 1, 2) == [1] * 8
        if number % 100 == 0:
            time.sleep(0.001)


def run_script(script: str) -> str:
    """What a fresh interpreter prints; anything on its standard error is a failure."""
    prelude = (
        "import ctypes, os, sys, threading, time\n"
        "from tests.runtime.test_threads import expected_marks, kernels, marks_of\n"
        "from tests.support.workers import worker_count\n"
        "from xlapy_runtime import threads\n"
        "kernels()\n"
    )
    return printed_by(prelude + script, {"PYTHONWARNINGS": "ignore::DeprecationWarning"})


def test_threads_start_with_the_first_range_that_is_shared() -> None:
    script = """
def native():
    return len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 1 + worker_count()
before = native()
threads.parallel_address(4)
marks_of(100, 1, 1)
marks_of(100, 100, 4)
alone = native() - before, worker_count()
marks_of(100, 1, 2)
two = worker_count()
marks_of(100, 1, 4)
print(*alone, two, worker_count())
"""
    assert run_script(script) == "0 0 1 3"


def test_a_forked_child_has_a_pool_of_its_own() -> None:
    script = """
assert marks_of(100, 1, 3) == [1] * 100
child = os.fork()
if not child:
    empty = worker_count() == 0
    right = all(marks_of(100, 1, 3) == [1] * 100 for _ in range(50))
    os._exit(0 if empty and right and worker_count() == 2 else 1)
_, status = os.waitpid(child, 0)
assert marks_of(100, 1, 3) == [1] * 100
print(os.waitstatus_to_exitcode(status))
"""
    assert run_script(script) == "0"


@pytest.mark.skipif(threads.usable_cores() < 2, reason="there is one core for all")
def test_workers_leave_the_core_of_who_wakes_them_alone() -> None:
    """They shared it, for milliseconds, while the other core of the machine was idle. What somebody else tells a worker
    is left as it is."""
    script = """
cores = os.sched_getaffinity(0)
def call_after_a_rest():
    time.sleep(0.05)
    assert marks_of(100, 1, 2) == [1] * 100
for _ in range(5):
    call_after_a_rest()
worker = threads._POOL.get()._state.numbers[0]
left = os.sched_getaffinity(worker)
assert left < cores and len(left) == len(cores) - 1, left
os.sched_setaffinity(0, left)  # so that the next caller is elsewhere
call_after_a_rest()
others = os.sched_getaffinity(worker)
assert others < cores and others != left, others
os.sched_setaffinity(worker, left)
os.sched_setaffinity(0, cores)
for _ in range(5):
    call_after_a_rest()
print(os.sched_getaffinity(worker) == left)
"""
    assert run_script(script) == "True"


def test_the_interpreter_ends_while_a_daemon_thread_is_in_a_range() -> None:
    script = """
def forever():
    while True:
        marks_of(1000, 1, 3)
threading.Thread(target=forever, daemon=True).start()
marks_of(1000, 1, 3)
print("end")
"""
    assert run_script(script) == "end"


def test_the_environment_sets_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLAPY_NUM_THREADS", raising=False)
    assert threads.thread_limit() == threads.usable_cores()
    monkeypatch.setenv("XLAPY_NUM_THREADS", "3")
    assert threads.thread_limit() == 3
    monkeypatch.setenv("XLAPY_NUM_THREADS", "1")
    assert threads.parallel_address() == threads.parallel_address(1)
    for wrong in ("0", "-1", "two"):
        monkeypatch.setenv("XLAPY_NUM_THREADS", wrong)
        with pytest.raises(ArgumentError, match="XLAPY_NUM_THREADS"):
            threads.thread_limit()


def test_no_thread_at_all_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        threads.parallel_address(0)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_the_control_group_counts(tmp_path: Path, files: dict[str, str], quota: int | None) -> None:
    for name, contents in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(contents + "\n")
    assert threads.usable_cores(tmp_path) == (quota or threads.usable_cores(tmp_path / "absent"))


@pytest.mark.parametrize("name", ["sse2", "avx2", "avx512", "neon"])
def test_other_machines_get_a_pool_too(name: str) -> None:
    assembly = emit_assembly(emit_pool(reference_target(name)).text(), reference_target(name))
    assert ("yield" if name == "neon" else "pause") in assembly
    assert "syscall" in assembly
