"""One of every awkward kind, end to end: tokens, channels, collectives, dynamic sizes, custom calls, interruption."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.fresh import printed_by
from tests.support.values import assert_same
from xlapy import ops
from xlapy.ops import ChannelHandle

Array = np.ndarray[Any, Any]

VECTOR = xlapy.Shape.array(np.float32, (4,))
SCALAR = xlapy.Shape.scalar(np.float32)
SECONDS = 10.0


@pytest.fixture
def device() -> Iterator[xlapy.Device]:
    """A device with empty queues, before and behind the test."""
    (first,) = xlapy.devices(1)
    first.reset()
    yield first
    assert first.memory_stats()["bytes_queued"] == 0, "the test left something in a queue"
    first.reset()


def vector(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


# -- infeed and outfeed ----------------------------------------------------------------------------------------------


def test_infeed_to_outfeed(device: xlapy.Device) -> None:
    b = xlapy.XlaBuilder("feed")
    token = ops.CreateToken(b)
    data, token = ops.InfeedWithToken(token, VECTOR)
    token = ops.OutfeedWithToken(data * 2, token)
    exe = xlapy.compile(b.build(ops.Tuple(b, [data + 1])))
    for start in range(3):
        device.transfer_to_infeed(vector(start, 1, 2, 3), SECONDS)
        (result,) = exe()
        assert_same(result, vector(start + 1, 2, 3, 4))
        assert_same(device.transfer_from_outfeed(timeout=SECONDS), vector(2 * start, 2, 4, 6))


def test_tuples_through_the_feeds(device: xlapy.Device) -> None:
    b = xlapy.XlaBuilder("feed")
    pair = ops.Infeed(b, xlapy.Shape.tuple([VECTOR, xlapy.Shape.scalar(np.int32)]))
    first, count = pair
    ops.Outfeed(ops.Tuple(b, [count + 1, first]))
    exe = xlapy.compile(b.build(first * ops.ConvertElementType(count, np.float32)))
    device.transfer_to_infeed((vector(1, 2, 3, 4), np.int32(3)), SECONDS)
    assert_same(exe(), vector(3, 6, 9, 12))
    assert_same(device.transfer_from_outfeed(timeout=SECONDS), (np.array(4, np.int32), vector(1, 2, 3, 4)))


FEED_LOOP = """\
HloModule feed_loop
body {
  state = (s32[], f32[4], token[]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  total = f32[4] get-tuple-element(state), index=1
  before = token[] get-tuple-element(state), index=2
  fed = (f32[4], token[]) infeed(before)
  data = f32[4] get-tuple-element(fed), index=0
  after = token[] get-tuple-element(fed), index=1
  sum = f32[4] add(total, data)
  sent = token[] outfeed(sum, after), outfeed_shape=f32[4]{0}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT out = (s32[], f32[4], token[]) tuple(next, sum, sent)
}
condition {
  state = (s32[], f32[4], token[]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(5)
  ROOT less = pred[] compare(i, limit), direction=LT
}
ENTRY main {
  start = f32[4] parameter(0)
  zero = s32[] constant(0)
  token = token[] after-all()
  init = (s32[], f32[4], token[]) tuple(zero, start, token)
  loop = (s32[], f32[4], token[]) while(init), condition=condition, body=body
  ROOT total = f32[4] get-tuple-element(loop), index=1
}
"""


def test_feeds_inside_a_loop(device: xlapy.Device) -> None:
    """The host feeds while the program runs, and sees every partial sum in order."""
    exe = xlapy.compile(FEED_LOOP)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(exe, vector(0, 0, 0, 100))
        for step in range(1, 6):
            device.transfer_to_infeed(vector(step, 1, 0, 0), SECONDS)
            assert_same(device.transfer_from_outfeed(timeout=SECONDS), vector(step * (step + 1) / 2, step, 0, 100))
        assert_same(running.result(SECONDS), vector(15, 5, 0, 100))


def test_an_infeed_of_another_shape_fails_and_the_executable_stays_usable(device: xlapy.Device) -> None:
    b = xlapy.XlaBuilder("feed")
    exe = xlapy.compile(b.build(ops.Infeed(b, VECTOR)))
    device.transfer_to_infeed(np.zeros(5, np.float32), SECONDS)
    with pytest.raises(xlapy.ShapeError, match=r"infeed"):
        exe()
    device.reset()
    device.transfer_to_infeed(vector(1, 2, 3, 4), SECONDS)
    assert_same(exe(), vector(1, 2, 3, 4))


def test_a_wait_that_takes_too_long_ends(device: xlapy.Device) -> None:
    b = xlapy.XlaBuilder("feed")
    exe = xlapy.compile(b.build(ops.Infeed(b, VECTOR)), xlapy.CompileOptions(timeout=0.05))
    with pytest.raises(xlapy.DeadlineError):
        exe()
    device.transfer_to_infeed(vector(1, 2, 3, 4), SECONDS)
    assert_same(exe(), vector(1, 2, 3, 4))


# -- send and recv ---------------------------------------------------------------------------------------------------


def sender(channel: int) -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("sender")
    x = ops.Parameter(b, 0, VECTOR)
    ops.Send(x * 2, ChannelHandle(channel))
    return b.build(x + 1)


def receiver(channel: int) -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("receiver")
    return b.build(ops.Recv(b, VECTOR, ChannelHandle(channel)) + 10)


@pytest.mark.parametrize("first", ["sender", "receiver"])
def test_send_and_recv_between_two_computations(first: str) -> None:
    """In two threads, whichever starts first."""
    x = vector(1, 2, 3, 4)
    runs = {
        "sender": (xlapy.compile(sender(77)), (x,), x + 1),
        "receiver": (xlapy.compile(receiver(77)), (), x * 2 + 10),
    }
    order = sorted(runs, key=lambda name: name != first)
    with ThreadPoolExecutor(2) as pool:
        futures = {}
        for name in order:
            exe, arguments, _ = runs[name]
            futures[name] = pool.submit(exe, *arguments)
            time.sleep(0.02)
        for name in order:
            assert_same(futures[name].result(SECONDS), runs[name][2])


def test_host_transfers(device: xlapy.Device) -> None:
    b = xlapy.XlaBuilder("host")
    token = ops.CreateToken(b)
    data, token = ops.RecvFromHost(token, VECTOR, ChannelHandle(5))
    token = ops.SendToHost(data + 1, token, VECTOR, ChannelHandle(6))
    exe = xlapy.compile(b.build(data))
    device.send_to_device(5, vector(1, 2, 3, 4), SECONDS)
    assert_same(exe(), vector(1, 2, 3, 4))
    assert_same(device.receive_from_device(6, timeout=SECONDS), vector(2, 3, 4, 5))


# -- collectives -----------------------------------------------------------------------------------------------------

VARIADIC = """\
HloModule variadic, replica_count=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[2,3] parameter(1)
  started = (f32[4], f32[2,3]) all-reduce-start(x, y), to_apply=add
  meanwhile = f32[4] negate(x)
  done = (f32[4], f32[2,3]) all-reduce-done(started)
  sum = f32[4] get-tuple-element(done), index=0
  other = f32[2,3] get-tuple-element(done), index=1
  total = f32[4] add(sum, meanwhile)
  ROOT all = (f32[4], f32[2,3]) tuple(total, other)
}
"""


def built_all_reduce() -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("variadic")
    x = ops.Parameter(b, 0, VECTOR)
    y = ops.Parameter(b, 1, xlapy.Shape.array(np.float32, (2, 3)))
    started = ops.AllReduceStart([x, y], ops.Add)
    total, other = ops.AllReduceDone(started)
    return b.build(ops.Tuple(b, [total - x, other]))


@pytest.mark.parametrize("form", ["text", "builder"])
def test_a_variadic_all_reduce_on_two_devices(form: str) -> None:
    program = VARIADIC if form == "text" else built_all_reduce()
    exe = xlapy.compile(program, xlapy.CompileOptions(num_replicas=2))
    xs = [vector(1, 2, 3, 4), vector(10, 20, 30, 40)]
    ys = [np.ones((2, 3), np.float32), np.full((2, 3), 5, np.float32)]
    for _ in range(3):
        results = exe.run_parallel([[xs[0], ys[0]], [xs[1], ys[1]]], timeout=SECONDS)
        for replica in range(2):
            assert_same(results[replica], (xs[1 - replica], np.full((2, 3), 6, np.float32)))


def groups() -> xlapy.XlaComputation:
    """The maximum over two groups of two replicas; which process this is; something that waits for a token."""
    b = xlapy.XlaBuilder("groups")
    x = ops.Parameter(b, 0, VECTOR)
    largest = ops.AllReduce(x, ops.Max, [[0, 2], [1, 3]])
    waited = ops.AddDependency(largest, ops.CreateToken(b))
    return b.build(ops.Tuple(b, [waited, ops.ReplicaId(b), ops.PartitionId(b)]))


def test_groups_and_ids() -> None:
    exe = xlapy.compile(groups(), xlapy.CompileOptions(num_replicas=4))
    arguments = [[vector(replica, -replica, 0, 1)] for replica in range(4)]
    for replica, (value, number, partition) in enumerate(exe.run_parallel(arguments, timeout=SECONDS)):
        low, high = replica % 2, replica % 2 + 2
        assert_same(value, vector(high, -low, 0, 1))
        assert (number, partition) == (replica, 0)


def test_an_all_reduce_inside_a_loop() -> None:
    b = xlapy.XlaBuilder("loop")
    x = ops.Parameter(b, 0, VECTOR)
    _, y = ops.While(lambda i, v: i < 3, lambda i, v: (i + 1, ops.AllReduce(v, ops.Add)), (0, x))
    exe = xlapy.compile(b.build(y), xlapy.CompileOptions(num_replicas=2))
    results = exe.run_parallel([[vector(1, 2, 3, 4)], [vector(0, 0, 0, 1)]], timeout=SECONDS)
    for result in results:
        assert_same(result, vector(1, 2, 3, 5) * 4)


def test_one_replica_that_fails_stops_the_other() -> None:
    b = xlapy.XlaBuilder("failing")
    x = ops.Parameter(b, 0, VECTOR)
    checked = ops.CustomCall(b, "check", [x], VECTOR)

    def check(value: Array) -> Array:
        if value[0] < 0:
            raise ValueError("negative")
        return value

    options = xlapy.CompileOptions(num_replicas=2, custom_calls={"check": check})
    exe = xlapy.compile(b.build(ops.AllReduce(checked, ops.Add)), options)
    with pytest.raises((ValueError, xlapy.ExecutionError), match="negative"):
        exe.run_parallel([[vector(1, 2, 3, 4)], [vector(-1, 2, 3, 4)]], timeout=SECONDS)
    results = exe.run_parallel([[vector(1, 2, 3, 4)], [vector(1, 2, 3, 4)]], timeout=SECONDS)
    assert_same(results[1], vector(2, 4, 6, 8))


# -- dynamic sizes ---------------------------------------------------------------------------------------------------


def test_a_sum_over_a_dynamic_size() -> None:
    b = xlapy.XlaBuilder("dynamic")
    x = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (10,)))
    n = ops.Parameter(b, 1, xlapy.Shape.scalar(np.int32))
    part = ops.SetDimensionSize(x, n, 0)
    total = ops.ReduceAll(part * 2, 0, ops.Add)
    exe = xlapy.compile(b.build(ops.Tuple(b, [total, ops.GetDimensionSize(part, 0), ops.ReduceAll(part, 1, ops.Mul)])))
    x_value = np.arange(1, 11, dtype=np.float32)
    for size in range(11):
        prefix = x_value[:size]
        total_value, size_value, product = exe(x_value, np.int32(size))
        assert (total_value, size_value) == (2 * prefix.sum(), size)
        assert product == prefix.prod()


def test_bounded_entry_parameters_and_results() -> None:
    """The caller passes as much as there is, and gets as much back."""
    text = """HloModule bounded
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    ENTRY main {
      x = f32[<=5,3] parameter(0)
      y = f32[<=5,3] negate(x)
      zero = f32[] constant(0)
      s = f32[3] reduce(x, zero), dimensions={0}, to_apply=add
      ROOT t = (f32[<=5,3], f32[3]) tuple(y, s)
    }"""
    exe = xlapy.compile(text)
    for size in range(6):
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
        assert_same(exe(x), (-x, x.sum(0)))
        assert_same(exe(x), xlapy.evaluate(text, x))
    for dims in [(6, 3), (5, 4), (3,)]:
        with pytest.raises(xlapy.ArgumentError, match="parameter 0"):
            exe(np.zeros(dims, np.float32))


# -- custom calls ----------------------------------------------------------------------------------------------------


def custom(target: str, **options: Any) -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("custom")
    x = ops.Parameter(b, 0, VECTOR)
    return b.build(ops.CustomCall(b, target, [x + 1], VECTOR, **options) * 2)


def test_a_custom_call_in_python() -> None:
    options = xlapy.CompileOptions(custom_calls={"sorted": lambda x: np.sort(x)[::-1]})
    exe = xlapy.compile(custom("sorted"), options)
    assert_same(exe(vector(3, 1, 4, 1)), vector(10, 8, 4, 4))


def explode(x: Array) -> Array:
    if x[0] > 100:
        raise KeyError("too large")
    return x


def test_a_custom_call_that_raises() -> None:
    """The exception arrives as it is, with the frames of the target; the executable stays usable."""
    exe = xlapy.compile(custom("explode"), xlapy.CompileOptions(custom_calls={"explode": explode}))
    for _ in range(3):
        with pytest.raises(KeyError, match="too large") as caught:
            exe(vector(100, 0, 0, 0))
        assert "explode" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert_same(exe(vector(1, 0, 0, 0)), vector(4, 2, 2, 2))


def test_a_custom_call_inside_a_loop() -> None:
    seen: list[int] = []
    b = xlapy.XlaBuilder("loop")
    shape = xlapy.Shape.scalar(np.int32)
    n = ops.Parameter(b, 0, shape)

    def body(i: xlapy.XlaOp, total: xlapy.XlaOp) -> Any:
        return i + 1, total + ops.CustomCall(i.builder, "note", [i], shape, has_side_effect=True)

    def note(i: Array) -> Array:
        seen.append(int(i))
        return i * i

    _, total = ops.While(lambda i, total: i < 5, body, (0, n))
    exe = xlapy.compile(b.build(total), xlapy.CompileOptions(custom_calls={"note": note}))
    assert exe(np.int32(100)) == 130
    assert seen == [0, 1, 2, 3, 4]


def test_a_custom_call_without_a_target() -> None:
    with pytest.raises(xlapy.XlaError, match="nowhere"):
        xlapy.compile(custom("nowhere"))(vector(1, 2, 3, 4))


def test_a_custom_call_that_returns_the_wrong_shape() -> None:
    exe = xlapy.compile(custom("short"), xlapy.CompileOptions(custom_calls={"short": lambda x: x[:2]}))
    with pytest.raises(xlapy.ShapeError, match="short"):
        exe(vector(1, 2, 3, 4))


# -- threads, cancellation, Ctrl-C -----------------------------------------------------------------------------------


def test_many_threads_call_one_executable() -> None:
    b = xlapy.XlaBuilder("threads")
    x = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (1000,)))
    _, y = ops.While(lambda i, v: i < 50, lambda i, v: (i + 1, v * 0.5 + 1), (0, x))
    exe = xlapy.compile(b.build(y))
    expected = {number: xlapy.evaluate(b.build(y), np.full(1000, number, np.float32)) for number in range(4)}

    def call(number: int) -> None:
        for _ in range(20):
            assert_same(exe(np.full(1000, number, np.float32)), expected[number])

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(call, number) for number in range(4)]:
            future.result(60)


def endless() -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("endless")
    return b.build(spinning(ops.Parameter(b, 0, SCALAR)))


def spinning(x: xlapy.XlaOp) -> xlapy.XlaOp:
    """A loop that does not end, unless `x` is large."""
    return ops.While(lambda v: v < 1e9, lambda v: v * 0.5, x)


def test_a_replica_in_an_endless_loop_is_cancelled_when_another_fails() -> None:
    b = xlapy.XlaBuilder("half")
    x = ops.Parameter(b, 0, SCALAR)
    chosen = ops.Conditional(x > 0, x, spinning, x, raising)
    exe = xlapy.compile(b.build(chosen), xlapy.CompileOptions(num_replicas=2, custom_calls={"fail": fail}))
    with pytest.raises(ArithmeticError, match="on purpose"):
        exe.run_parallel([[np.float32(1)], [np.float32(-1)]])


def raising(x: xlapy.XlaOp) -> xlapy.XlaOp:
    return ops.CustomCall(x.builder, "fail", [x], SCALAR)


def fail(x: Array) -> Array:
    raise ArithmeticError("on purpose")


def test_ctrl_c_ends_a_loop() -> None:
    """KeyboardInterrupt within a second of spinning, whatever else the machine does; and the executable runs again."""
    script = """
    import os, signal, threading, time
    import numpy as np
    import xlapy
    from tests.e2e.test_awkward_kinds import endless
    exe = xlapy.compile(endless())
    for _ in range(2):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.process_time()
        try:
            exe(np.float32(1))
        except KeyboardInterrupt:
            assert time.process_time() - began < 1.1
            print("interrupted")
    print(int(exe(np.float32(2e9))))
    """
    assert printed_by(script).split() == ["interrupted", "interrupted", "2000000000"]


def test_a_call_from_another_thread_does_not_block_this_one() -> None:
    """A long call releases the GIL."""
    b = xlapy.XlaBuilder("long")
    x = ops.Parameter(b, 0, SCALAR)
    _, y = ops.While(lambda i, v: i < 50_000_000, lambda i, v: (i + 1, v * 0.999 + 1), (0, x))
    exe = xlapy.compile(b.build(y))
    thread = threading.Thread(target=exe, args=(np.float32(1),))
    thread.start()
    turns = 0
    while thread.is_alive() and turns < 5:
        time.sleep(0.001)
        turns += 1
    thread.join(60)
    assert turns > 2
