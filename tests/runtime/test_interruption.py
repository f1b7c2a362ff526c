"""Ctrl-C, in processes of their own: each script interrupts itself, and KeyboardInterrupt must come within a second."""

import textwrap

import pytest

from tests.support.fresh import printed_by

PRELUDE = """
import os, signal, threading, time, warnings
import numpy as np
from xlapy_runtime.device import devices
from xlapy_runtime.program import RuntimeCall
from tests.runtime.native import Call, SPIN, executable, spec

word = spec(np.int64)

def interrupted(function, *arguments, **keywords):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        function(*arguments, **keywords)
    except KeyboardInterrupt:
        assert time.monotonic() - began < 9  # a fraction of a second where nothing else runs; the waits are longer
        print("interrupted")
"""


def script(body):
    """The words that a script prints."""
    return printed_by(PRELUDE + textwrap.dedent(body), seconds=20).split()


def test_a_native_loop_stops_and_the_executable_stays_usable():
    body = """
    run = executable(SPIN)
    interrupted(run)
    interrupted(run)
    """
    assert script(body) == ["interrupted", "interrupted"]


@pytest.mark.parametrize("kind", ["infeed", "recv"])
def test_a_wait_for_the_host_stops(kind):
    body = """
    calls = [
        RuntimeCall("recv", "recv.1", attributes={"channel_id": 1, "result_tree": word}),
        RuntimeCall("recv-done", "recv-done.1", results=(word,), attributes={"start": 0}),
        RuntimeCall("infeed", "infeed.1", results=(word,)),
    ]
    steps = {"infeed": [Call(2, ("r0",))], "recv": [Call(0), Call(1, ("r0",))]}
    interrupted(executable(steps[KIND], result=word, calls=calls))
    """
    assert script(body.replace("KIND", repr(kind))) == ["interrupted"]


def test_a_signal_that_is_pending_when_native_code_calls_is_not_lost():
    """The loop never polls; the signal waits until the runtime call that follows, and must make that call fail."""
    body = """
    calls = [RuntimeCall("custom-call", "c.1", "", (), (), {"target": "never"})]
    text = '''
      br label %loop
    loop:
      %i = phi i64 [0, %0], [%j, %loop]
      %j = add i64 %i, 1
      %flag = load volatile i64, ptr %context
      %done = icmp eq i64 %j, 800000000
      br i1 %done, label %end, label %loop
    end:
      %f = load ptr, ptr %context
      %status = call i32 %f(ptr %context, i32 0, ptr null)
      ret i32 %status
    '''
    called = []
    run = executable(text, calls=calls, options={"targets": {"never": lambda: called.append(1)}})
    interrupted(run)
    print(len(called))
    """
    assert script(body) == ["interrupted", "0"]


def test_a_python_target_is_interrupted_where_it_is():
    body = """
    calls = [RuntimeCall("custom-call", "c.1", "", (), (), {"target": "sleep"})]
    run = executable([Call(0)], calls=calls, options={"targets": {"sleep": lambda: time.sleep(10)}})
    interrupted(run)
    """
    assert script(body) == ["interrupted"]


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_parallel_run_stops_as_a_whole(replicas):
    body = f"""
    run = executable(SPIN, num_replicas={replicas})
    interrupted(run.run_parallel, [[]] * {replicas})
    print(sum(device.memory_stats()["running"] for device in run.devices))
    """
    assert script(body) == ["interrupted", "0"]


def test_a_parallel_run_stops_when_its_caller_only_waits():
    body = """
    body = f'''
      %where = getelementptr i64, ptr %context, i64 7
      %process = load i64, ptr %where
      %first = icmp eq i64 %process, 0
      br i1 %first, label %end, label %spin
    spin:
      {SPIN.replace("%0]", "%spin]")}
    '''
    interrupted(executable(body.replace("ret i32 2", "ret i32 0"), num_replicas=2).run_parallel, [[], []])
    """
    assert script(body) == ["interrupted"]


def test_a_hanging_callback_in_another_process_does_not_hold_the_interrupt_up():
    body = """
    calls = [RuntimeCall("custom-call", "c.1", "", (word,), (), {"target": "hang"})]
    hang = lambda x: time.sleep(0.05 if int(x) == 0 else 3)
    run = executable(
        [Call(0, ("p0",))], parameters=(word,), calls=calls, num_replicas=2, options={"targets": {"hang": hang}}
    )
    interrupted(run.run_parallel, [[np.int64(0)], [np.int64(1)]])
    """
    assert script(body) == ["interrupted"]


def test_a_host_that_waits_for_a_device_is_interrupted():
    assert script("interrupted(devices(1)[0].transfer_from_outfeed)") == ["interrupted"]


def test_a_forked_child_runs_programs_of_its_own():
    body = """
    one, two = spec(np.int64, 1), spec(np.int64, 2)
    calls = [RuntimeCall("all-gather", "g.1", "", (one,), (two,), {"all_gather_dimension": 0})]
    run = executable([Call(0, ("p0", "r0"))], parameters=(one,), result=two, calls=calls, num_replicas=2)
    values = [[np.array([3])], [np.array([4])]]
    run.run_parallel(values)
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads, by newer Pythons
    child = os.fork()
    if child == 0:
        ok = run.run_parallel(values)[1].tolist() == [3, 4]
        os._exit(0 if ok else 1)
    print(os.waitpid(child, 0)[1])
    """
    assert script(body) == ["0"]
