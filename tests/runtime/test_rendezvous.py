"""The native half of parallel runs: meetings of processes, and the threads that run them."""

from __future__ import annotations

import dataclasses
import random
import re
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.runtime.native import Call, executable, spec
from tests.runtime.test_collectives import ADD, ADD_S64, outcome, program
from xlapy.codegen.jit import emit_assembly, emit_object
from xlapy.codegen.rendezvous import emit_rendezvous
from xlapy.codegen.target import host_target, reference_target
from xlapy_runtime import calls, rendezvous, runs
from xlapy_runtime.entry_threads import EntryThread, EntryThreads
from xlapy_runtime.errors import DeadlineError
from xlapy_runtime.executable import ProgramExecutable
from xlapy_runtime.program import RuntimeCall

SLEEPLESS: list[rendezvous.Native] = []
"""Code that threads may still be in when their test is over."""

LARGE = 300_000
ROUNDS = 5


def chain(size: int, count: int, replicas: int, hook: Any = None) -> ProgramExecutable:
    """One sum over all processes after the other, each of the result of the one before; `hook` sees what comes in."""
    dims = spec(np.float32, size)
    rows, body = [], []
    for number in range(count):
        source, target = f"r{(number + 1) % 2}" if number else "p0", f"r{number % 2}"
        if hook is not None:
            body.append(Call(len(rows), (source,)))
            rows.append(RuntimeCall("custom-call", f"hook.{number}", "", (dims,), (), {"target": "hook"}))
        body.append(Call(len(rows), (source, target)))
        rows.append(RuntimeCall("all-reduce", f"sum.{number}", "", (dims,), (dims,), {"combine": ("add",)}))
    return executable(
        body,
        parameters=(dims,),
        result=(dims, dims),
        calls=rows,
        kernels=ADD,
        num_replicas=replicas,
        options={"targets": {"hook": hook}},
    )


@pytest.mark.parametrize("size", [4, LARGE])
@pytest.mark.parametrize("replicas", [2, 5])
def test_collectives_never_enter_python(size: int, replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = chain(size, ROUNDS, replicas)
    seen: list[str] = []
    running = calls.running

    def noted(context: int) -> calls.RunningCall:
        caller = sys._getframe(1).f_code.co_name
        if caller != "_poll":  # who waits long for the others, as on a busy machine, looks for signals meanwhile
            seen.append(caller)
        return running(context)

    monkeypatch.setattr(calls, "running", noted)
    results = outcome(run, [np.full(size, 1 + process, np.float32) for process in range(replicas)])
    total = sum(range(1, replicas + 1)) * replicas ** (ROUNDS - 1)
    assert all(set(row[(ROUNDS - 1) % 2]) == {total} for row in results)
    assert seen == []


def test_a_run_that_cannot_begin_everywhere_has_begun_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    run, enter = chain(4, 1, 3), calls.enter

    def full(call: calls.RunningCall) -> int:
        if call.process == 2:
            raise MemoryError
        return enter(call)

    monkeypatch.setattr(calls, "enter", full)
    operands = [np.ones(4, np.float32)] * 3
    with pytest.raises(MemoryError):
        outcome(run, operands)
    assert all(device.memory_stats()["running"] == 0 for device in run.devices)
    monkeypatch.undo()
    assert all(set(row[0]) == {3.0} for row in outcome(run, operands))


@pytest.mark.parametrize("size", [4, LARGE])
def test_runs_that_fail_anywhere_leave_everything_usable(size: int) -> None:
    replicas, failing = 4, [(0, 0)]
    marks = [float(1 + process) for process in range(replicas)]
    passed: dict[int, int] = {}
    lock = threading.Lock()

    def hook(x: np.ndarray) -> None:
        with lock:
            thread = threading.get_ident()
            passed[thread] = passed.get(thread, -1) + 1
            process = marks.index(x[0]) if not passed[thread] else names[thread]
            names[thread] = process
        if (process, passed[thread]) == failing[0]:
            raise LookupError(f"process {process}")

    run = chain(size, ROUNDS, replicas, hook)
    arguments = [np.full(size, mark, np.float32) for mark in marks]
    chosen = random.Random(size)
    for _ in range(25):
        names: dict[int, int] = {}
        passed.clear()
        failing[0] = chosen.randrange(replicas), chosen.randrange(ROUNDS)
        with pytest.raises(LookupError, match=f"process {failing[0][0]}"):
            outcome(run, arguments)
        passed.clear()
        failing[0] = (-1, -1)
        results = outcome(run, arguments)
        assert all(set(row[(ROUNDS - 1) % 2]) == {sum(marks) * replicas ** (ROUNDS - 1)} for row in results)
    assert all(device.memory_stats()["running"] == 0 for device in run.devices)


def test_arguments_and_results_count_as_memory_in_use() -> None:
    word = spec(np.int64, 1000)
    seen: list[int] = []
    rows = [RuntimeCall("custom-call", "look.1", "", (word,), (), {"target": "look"})]
    run = executable(
        [Call(0, ("p0",))],
        parameters=(word,),
        result=(word, word),
        calls=rows,
        arena_bytes=100,
        options={"targets": {"look": lambda x: seen.append(run.devices[0].memory_stats()["bytes_in_use"])}},
    )
    before = run.devices[0].memory_stats()["bytes_in_use"]
    run(np.zeros(1000, np.int64))
    assert seen[0] - before == 100 + 3 * word.nbytes
    assert run.devices[0].memory_stats()["bytes_in_use"] == before


@pytest.mark.parametrize(
    ("name", "futex"), [("sse2", r"\$202, %e"), ("avx2", r"\$202, %e"), ("avx512", r"\$202, %e"), ("neon", r"w0, #98")]
)
def test_other_machines_get_one_too(name: str, futex: str) -> None:
    """All that the runtime calls is there, and threads sleep by the system call that has this number there."""
    target = reference_target(name)
    text = emit_assembly(emit_rendezvous(target).text(), target)
    assert all(re.search(rf"^{symbol}:", text, re.MULTILINE) for symbol in rendezvous.SYMBOLS)
    assert re.search(futex, text) and "syscall" in text


@pytest.mark.parametrize("size", [4, LARGE])
def test_it_works_where_there_is_no_futex(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on systems other than Linux: whoever waits looks again and again."""
    target = dataclasses.replace(host_target(), triple=host_target().triple.replace("linux", "unknown"))
    text = emit_rendezvous(target).text()
    assert "syscall" not in text
    SLEEPLESS.append(rendezvous.Native([emit_object(text, host_target())]))
    monkeypatch.setattr(rendezvous.NATIVE, "found", SLEEPLESS[-1])
    monkeypatch.setattr(runs, "ENTRY_THREADS", EntryThreads())
    run = chain(size, ROUNDS, 3)
    for _ in range(3):
        results = outcome(run, [np.full(size, 1, np.float32)] * 3)
        assert all(set(row[(ROUNDS - 1) % 2]) == {3.0**ROUNDS} for row in results)
    word = spec(np.int64)
    hang = threading.Event()
    slow = executable(
        [Call(0, ("p0",)), Call(1, ("p0", "r0"))],
        parameters=(word,),
        result=word,
        calls=[
            RuntimeCall("custom-call", "hang.1", "", (word,), (), {"target": "hang"}),
            RuntimeCall("all-reduce", "sum.1", "", (word,), (word,), {"combine": ("add_s64",)}),
        ],
        kernels=ADD_S64,
        num_replicas=2,
        options={"targets": {"hang": lambda x: hang.wait(5) and None if int(x) else None}},
    )
    with pytest.raises(DeadlineError, match="for device 1"):
        try:
            outcome(slow, [np.int64(0), np.int64(1)], timeout=0.05)
        finally:
            hang.set()


def test_nobody_touches_a_run_that_may_be_over() -> None:
    """Whoever waits for its end may have freed it as soon as no process is unfinished."""
    text = emit_rendezvous(host_target()).text().partition("@has_ended(")[2].partition("\n}")[0]
    before, _, after = text.partition("atomicrmw sub ")
    assert before and after
    assert not any(access in after for access in ("atomicrmw", "load", "store", "cmpxchg"))


def test_a_run_that_was_stopped_waits_for_threads_that_still_have_to_tell_their_end() -> None:
    """Their slots are free already, so they cannot be left alone; and they will write into the memory of the run."""
    executable = chain(4, 1, 3)
    run = executable._runs.begin(executable.devices, seed=0, is_seeded=True, timeout=None)
    records = run._memory.records
    assert records is not None
    records.run.unfinished = 2
    threads: list[Any] = [
        SimpleNamespace(abandon=lambda clean_up, is_busy=is_busy: is_busy) for is_busy in (True, False)
    ]
    processes: list[Any] = [SimpleNamespace(has_ended=True) for _ in threads]
    run._cancellation.cancel(ValueError("stop"))
    late = threading.Timer(0.05, setattr, (records.run, "unfinished", 1))
    late.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "ENTRY_THREADS", EntryThreads())
        run._let_go(processes, threads, records)
    assert records.run.unfinished == 1
    assert [process.has_ended for process in processes] == [False, True]
    late.join()


def test_a_signal_just_before_a_run_leaves_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> int:
        raise KeyboardInterrupt

    run = chain(4, 1, 3)
    arguments = [np.full(4, 1, np.float32)] * 3
    outcome(run, arguments)
    with monkeypatch.context() as patch:
        patch.setattr(rendezvous.NATIVE.get(), "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            outcome(run, arguments)
    assert all(device.memory_stats()["running"] == 0 for device in run.devices)
    assert [row[0].tolist() for row in outcome(run, arguments)] == [[3.0] * 4] * 3


def test_a_system_without_threads_to_give_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run = chain(4, 1, 3)
    arguments = [np.full(4, 1, np.float32)] * 3
    with monkeypatch.context() as patch:
        patch.setattr(runs, "ENTRY_THREADS", EntryThreads())
        patch.setattr(EntryThread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            outcome(run, arguments)
    assert all(device.memory_stats()["running"] == 0 for device in run.devices)
    assert [row[0].tolist() for row in outcome(run, arguments)] == [[3.0] * 4] * 3


def test_groups_of_several_sizes_and_types_take_turns() -> None:
    """What one meeting leaves behind does not show in the next."""
    byte = spec(np.int8, 3)
    run = program("all-reduce", (byte,), (byte,), replicas=5, kernels=ADD.replace("float", "i8").replace("fadd", "add"),
                  combine=("add",), replica_groups=((4,), (0, 3), (2, 1)))  # fmt: skip
    for shift in range(20):
        values = [np.full(3, process + shift, np.int8) for process in range(5)]
        sums = [int(row[0]) - 2 * shift for row in outcome(run, values)]
        assert sums == [3, 3, 3, 3, 4 - shift]
