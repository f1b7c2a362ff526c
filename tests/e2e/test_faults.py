"""Faults in runs of several processes: who failed is named, everybody unwinds, and everything stays usable."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy import ops

Array = np.ndarray[Any, Any]
VECTOR = xlapy.Shape.array(np.float32, (4,))
SECONDS = 30.0
SHORT = 0.1
ARGUMENTS = [[np.full(4, number, np.float32)] for number in range(4)]
TOTAL = [6.0] * 4
CULPRIT = 2


def recorded(function: Callable[[Any], Any]) -> xlapy.XlaComputation:
    builder = xlapy.XlaBuilder("faulty")
    return builder.build(function(builder.parameter(0, VECTOR)))


def checked_sum(x: Any) -> Any:
    """Asks "check" about the operand, then sums over four processes."""
    return ops.AllReduce(ops.CustomCall(x.builder, "check", [x], VECTOR), ops.Add)


class Fault:
    """A target that does something to the culprit's operand, once."""

    def __init__(self, fault: Callable[[Array], Any]) -> None:
        self.fault: Callable[[Array], Any] | None = fault

    def __call__(self, x: Array) -> Any:
        if x[0] == CULPRIT and self.fault is not None:
            fault, self.fault = self.fault, None
            return fault(x)
        return x


def executable(target: Callable[..., Any], timeout: float = SECONDS) -> xlapy.Executable:
    options = xlapy.CompileOptions(num_replicas=4, timeout=timeout, custom_calls={"check": target})
    return xlapy.compile(recorded(checked_sum), options)


def assert_usable(run: xlapy.Executable) -> None:
    for result in run.run_parallel(ARGUMENTS, timeout=SECONDS):
        assert result.tolist() == TOTAL
    assert all(device.memory_stats()["running"] == 0 for device in xlapy.devices(4))


def raises(_: Array) -> Array:
    raise LookupError("out of luck")


FAULTS: dict[str, tuple[Callable[[Array], Any], type[BaseException], str]] = {
    "raises": (raises, LookupError, "out of luck"),
    "another shape": (lambda x: x[:3], xlapy.ShapeError, r"declared as f32\[4\], f32\[3\] was returned"),
    "another type": (lambda x: x.astype(np.int32), xlapy.ShapeError, r"s32\[4\] was returned"),
    "nothing": (lambda x: None, xlapy.ShapeError, "0 arrays were returned"),
    "interrupted": (lambda x: (_ for _ in ()).throw(KeyboardInterrupt("stop")), KeyboardInterrupt, "stop"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_process_ends_the_run_of_all(fault: str) -> None:
    action, error, message = FAULTS[fault]
    run = executable(Fault(action))
    with pytest.raises(error, match=message) as caught:
        run.run_parallel(ARGUMENTS)
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert f"device {CULPRIT}" in text and "test_faults.py" in text
    assert_usable(run)


def test_a_process_that_hangs_is_named_with_its_device_and_the_time() -> None:
    released = threading.Event()
    run = executable(Fault(lambda x: (released.wait(SECONDS), x)[1]), SHORT)
    with pytest.raises(xlapy.DeadlineError) as caught:
        run.run_parallel(ARGUMENTS)
    released.set()
    assert f"waited {SHORT} s for device {CULPRIT} (replica {CULPRIT}, partition 0)" in str(caught.value)
    assert "all-reduce" in str(caught.value) and "test_faults.py" in str(caught.value)
    deadline = time.monotonic() + SECONDS
    while any(device.memory_stats()["running"] for device in xlapy.devices(4)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert_usable(run)


def test_a_process_that_never_takes_part_is_named_at_once() -> None:
    """One branch of a conditional sums, the other does not: the run is a deadlock, whatever the timeout."""

    def function(x: Any) -> Any:
        takes_part = x[0] < CULPRIT
        return ops.Conditional(takes_part, x, lambda v: ops.AllReduce(v, ops.Add), x, lambda v: v)

    run = xlapy.compile(recorded(function), xlapy.CompileOptions(num_replicas=4, timeout=SECONDS))
    with pytest.raises(xlapy.ExecutionError, match="finished without taking part") as caught:
        run.run_parallel(ARGUMENTS)
    assert "test_faults.py" in str(caught.value)
    same = [[np.zeros(4, np.float32)]] * 4
    assert all(result.tolist() == [0.0] * 4 for result in run.run_parallel(same))


def test_ranks_that_meet_in_different_orders_are_a_deadlock() -> None:
    def function(x: Any) -> Any:
        first = lambda v: ops.AllReduce(ops.AllReduce(v, ops.Add, channel_id=1), ops.Max, channel_id=2)  # noqa: E731
        second = lambda v: ops.AllReduce(ops.AllReduce(v, ops.Max, channel_id=2), ops.Add, channel_id=1)  # noqa: E731
        return ops.Conditional(x[0] < CULPRIT, x, first, x, second)

    run = xlapy.compile(recorded(function), xlapy.CompileOptions(num_replicas=4, timeout=SECONDS))
    with pytest.raises(xlapy.ExecutionError, match="deadlock"):
        run.run_parallel(ARGUMENTS)


def test_device_assignments_are_checked_and_followed() -> None:
    computation = recorded(lambda x: x + ops.ConvertElementType(ops.ReplicaId(x.builder), np.float32))
    for assignment in ([0], [1, 1], [-1, 0]):
        with pytest.raises(xlapy.ArgumentError):
            xlapy.compile(computation, xlapy.CompileOptions(num_replicas=2, device_assignment=assignment))
    run = xlapy.compile(computation, xlapy.CompileOptions(num_replicas=2, device_assignment=[5, 3]))
    devices = xlapy.devices(6)
    before = [device.memory_stats()["runs"] for device in devices]
    assert [result[0] for result in run.run_parallel(ARGUMENTS[:2])] == [0.0, 2.0]
    after = [device.memory_stats()["runs"] for device in devices]
    assert [new - old for old, new in zip(before, after, strict=True)] == [0, 0, 0, 1, 0, 1]


# -- endurance -------------------------------------------------------------------------------------------------------


def test_sixteen_threads_share_one_executable() -> None:
    run = xlapy.compile(recorded(lambda x: ops.CustomCall(x.builder, "add", [x * 2], VECTOR)),
                        xlapy.CompileOptions(custom_calls={"add": lambda x: x + 1}))  # fmt: skip
    grid = executable(lambda x: x)

    def work(seed: int) -> bool:
        for number in range(50):
            x = np.full(4, seed + number, np.float32)
            if run(x).tolist() != (2 * x + 1).tolist():
                return False
        rows = [[np.full(4, seed, np.float32)]] * 4
        return all(result.tolist() == [4.0 * seed] * 4 for result in grid.run_parallel(rows))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_of_fork_runs_on_several_devices_too() -> None:
    """Also if it was forked while another thread held a queue."""
    run = executable(lambda x: x)
    assert_usable(run)
    device = xlapy.devices(1)[0]
    with device.infeed._changed, device._lock:
        child = os.fork()
    if child == 0:
        status = 1
        try:
            device.transfer_to_infeed(np.zeros(4, np.float32))
            status = int([row.tolist() for row in run.run_parallel(ARGUMENTS)] != [TOTAL] * 4)
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert_usable(run)


def resident_bytes() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def streamed(x: Any) -> Any:
    ops.Outfeed(ops.Infeed(x.builder, VECTOR) + x)
    return x * 2


def repeated() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is run again and again: a plain call, a custom call, streams, collectives."""
    x = np.ones(4, np.float32)
    device = xlapy.devices(1)[0]
    plain, streaming = (xlapy.compile(recorded(function)) for function in (lambda v: v + 1, streamed))
    calling = xlapy.compile(recorded(lambda v: ops.CustomCall(v.builder, "f", [v], VECTOR)),
                            xlapy.CompileOptions(custom_calls={"f": lambda v: v}))  # fmt: skip
    summing = xlapy.compile(recorded(lambda v: ops.AllReduce(v, ops.Add)), xlapy.CompileOptions(num_replicas=2))

    def stream() -> None:
        device.transfer_to_infeed(x)
        streaming(x)
        device.transfer_from_outfeed()

    yield "plain", lambda: plain(x)
    yield "custom call", lambda: calling(x)
    yield "streams", stream
    yield "collective", lambda: summing.run_parallel([[x], [x]])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["plain", "custom call", "streams", "collective"])
def test_memory_and_threads_stay_the_same_from_run_1000_to_run_100000(what: str) -> None:
    run = dict(repeated())[what]
    for _ in range(1000):
        run()
    gc.collect()
    memory, threads = resident_bytes(), threading.active_count()
    for _ in range(99_000):
        run()
    gc.collect()
    assert resident_bytes() - memory < 1 << 20
    assert threading.active_count() <= threads
