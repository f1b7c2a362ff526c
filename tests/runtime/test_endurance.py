"""Nothing grows: memory, threads and registered runs after many runs, good ones and failing ones."""

import gc
import threading
import time

import numpy as np
import pytest

from tests.runtime.native import Call, executable, spec
from tests.runtime.test_collectives import ADD_S64
from xlapy_runtime import calls
from xlapy_runtime.device import Device
from xlapy_runtime.entry_threads import IDLE_SECONDS
from xlapy_runtime.program import RuntimeCall

pytestmark = pytest.mark.usefixtures("only_new_garbage")

NAP_SECONDS = 0.02
WORD = spec(np.int64)
GROWTH_BYTES = 1 << 20
HANG_SECONDS = 600.0
"""Only what hangs takes so long, even in a process that was stopped for minutes."""


def resident_bytes():
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def growth(action, warm, count):
    """By how much memory grows in `count` runs. A leak shows in all three rounds, what an allocator keeps in one."""
    for _ in range(warm):
        action()
    rounds = []
    for _ in range(3):
        gc.collect()
        before = resident_bytes()
        for _ in range(count):
            action()
        gc.collect()
        rounds.append(resident_bytes() - before)
    return min(rounds)


def everything(target):
    """A program with a bit of everything."""
    rows = [
        RuntimeCall("infeed", "infeed.1", "", (), (WORD,)),
        RuntimeCall("custom-call", "custom-call.1", "", (WORD,), (WORD,), {"target": "target"}),
        RuntimeCall("all-reduce-start", "all-reduce.1", "", (WORD,), (WORD,), {"combine": ("add_s64",)}),
        RuntimeCall("send", "send.1", "", (WORD,), (), {"channel_id": 5, "is_host_transfer": True}),
        RuntimeCall("all-reduce-done", "all-reduce.1", "", (), (), {"start": 2}),
        RuntimeCall("send-done", "send.1", attributes={"start": 3}),
        RuntimeCall("outfeed", "outfeed.1", "", (WORD,)),
    ]
    body = [
        Call(0, ("a0",)),
        Call(1, ("a0", "a8")),
        Call(2, ("a8", "r0")),
        Call(3, ("a0",)),
        Call(4),
        Call(5),
        Call(6, ("r0",)),
    ]
    return executable(
        body,
        result=WORD,
        calls=rows,
        kernels=ADD_S64,
        arena_bytes=16,
        num_replicas=2,
        options={"targets": {"target": target}, "devices": (Device(100), Device(101)), "timeout": HANG_SECONDS},
    )


@pytest.mark.skipif("not __import__('os').path.exists('/proc/self/status')", reason="reads Linux's /proc")
def test_good_runs_leave_nothing_behind():
    run = everything(lambda x: x * 2)

    def action():
        for number, device in enumerate(run.devices):
            device.transfer_to_infeed(np.int64(number + 1))
        assert [int(row) for row in run.run_parallel([[], []])] == [6, 6]
        for number, device in enumerate(run.devices):
            assert device.receive_from_device(5) == number + 1
            assert device.transfer_from_outfeed() == 6

    assert growth(action, 200, 600) < GROWTH_BYTES
    assert run.devices[0].memory_stats()["bytes_in_use"] == 0


@pytest.mark.skipif("not __import__('os').path.exists('/proc/self/status')", reason="reads Linux's /proc")
def test_failing_runs_leave_nothing_behind():
    def fail(x):
        if int(x) == 2:
            raise ValueError("two")
        return x

    run = everything(fail)

    def action():
        for number, device in enumerate(run.devices):
            device.transfer_to_infeed(np.int64(number + 1))
        with pytest.raises(ValueError, match="two"):
            run.run_parallel([[], []])
        for device in run.devices:
            device.reset()

    gc.collect()
    registered = len(calls._running)
    assert growth(action, 200, 400) < GROWTH_BYTES
    assert len(calls._running) == registered


def test_idle_threads_end():
    executable("ret i32 0", num_replicas=4).run_parallel([[]] * 4)
    naps = 0  # counted, not timed: the process may be stopped meanwhile, and the threads' time runs on
    while any(thread.name == "xlapy-entry" for thread in threading.enumerate()):
        assert naps * NAP_SECONDS < 3 * IDLE_SECONDS
        time.sleep(NAP_SECONDS)
        naps += 1
