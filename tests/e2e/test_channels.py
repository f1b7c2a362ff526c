"""Send and recv in compiled programs: all kinds of channels, overlap with compute, two programs that both run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.hlo.evaluate import Interpreter
from xlapy.ops import ChannelHandle, ChannelType
from xlapy.passes.scheduling import schedule

Array = np.ndarray[Any, Any]
SECONDS = 30.0
MATRIX = xlapy.Shape.array(np.float32, (16, 16))
VECTOR = xlapy.Shape.array(np.float32, (4,))
X = np.arange(4, dtype=np.float32)
BETWEEN, UP, DOWN = ChannelType.DEVICE_TO_DEVICE, ChannelType.DEVICE_TO_HOST, ChannelType.HOST_TO_DEVICE


@pytest.fixture
def device() -> Iterator[xlapy.Device]:
    device = xlapy.devices(1)[0]
    yield device
    for channel in range(100, 110):
        device.set_send_callback(channel, None)
        device.set_recv_callback(channel, None)
    device.reset()


def compiled(function: Callable[..., Any], *shapes: xlapy.Shape, **options: Any) -> xlapy.Executable:
    builder = xlapy.XlaBuilder("talking")
    parameters = [builder.parameter(number, shape) for number, shape in enumerate(shapes)]
    return xlapy.compile(builder.build(function(builder, *parameters)), xlapy.CompileOptions(**options))


def test_two_programs_answer_each_other_round_by_round() -> None:
    """Each is one loop on its device: what one sends decides what the other sends next."""

    def talker(channel_out: int, channel_in: int, *, begins: bool) -> Callable[..., Any]:
        def body(state: Any) -> Any:
            number, value, token = state[0], state[1], state[2]
            if begins:
                token = ops.SendWithToken(value * 2, token, ChannelHandle(channel_out, BETWEEN))
            value, token = ops.RecvWithToken(token, VECTOR, ChannelHandle(channel_in, BETWEEN))
            if not begins:
                token = ops.SendWithToken(value + 1, token, ChannelHandle(channel_out, BETWEEN))
            return value.builder.tuple([number + 1, value, token])

        def function(builder: Any, x: Any) -> Any:
            state = builder.tuple([builder.constant(np.int32(0)), x, ops.CreateToken(builder)])
            return ops.While(lambda state: state[0] < 10, body, state)[1]

        return function

    first = compiled(talker(900, 901, begins=True), VECTOR, timeout=SECONDS)
    second = compiled(talker(901, 900, begins=False), VECTOR, timeout=SECONDS)
    one, other = xlapy.devices(2)
    with ThreadPoolExecutor(2) as pool:
        theirs = pool.submit(second.run, X, device=other)
        mine = pool.submit(first.run, X, device=one)
        value = X
        for _ in range(10):
            heard = value * 2
            value = heard + 1
        assert mine.result(SECONDS).tolist() == value.tolist()
        assert theirs.result(SECONDS).tolist() == heard.tolist()


def test_compute_runs_between_start_and_done() -> None:
    """The order of the schedule: begin to receive and to send, compute, then wait."""

    def function(builder: Any, x: Any) -> Any:
        receiving = ops.Recv(builder, MATRIX, 902)
        sending = ops.Send(x, 902)
        product = x @ x
        ops.SendDone(sending)
        return product + ops.RecvDone(receiving)

    builder = xlapy.XlaBuilder("overlap")
    module = builder.build(function(builder, builder.parameter(0, MATRIX))).module
    order = [instruction.opcode for instruction in schedule(module)[module.entry]]
    assert max(order.index("recv"), order.index("send")) < order.index("dot")
    assert order.index("dot") < min(order.index("recv-done"), order.index("send-done"))
    x = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    result = xlapy.compile(module, xlapy.CompileOptions(timeout=SECONDS))(x)
    np.testing.assert_allclose(result, Interpreter().run(module, x), rtol=1e-5, atol=1e-5)


def echo(builder: Any, x: Any) -> Any:
    """Sends to the host and receives from it."""
    token = ops.SendToHost(x, ops.CreateToken(builder), VECTOR, ChannelHandle(100, UP))
    value, _ = ops.RecvFromHost(token, VECTOR, ChannelHandle(101, DOWN))
    return value


def test_queues_of_the_host(device: xlapy.Device) -> None:
    run = compiled(echo, VECTOR, timeout=SECONDS)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run, X)
        heard = device.receive_from_device(100, timeout=SECONDS)
        device.send_to_device(101, heard * 3, timeout=SECONDS)
        assert future.result(SECONDS).tolist() == (X * 3).tolist()


def test_callbacks_of_the_host_on_both_ends(device: xlapy.Device) -> None:
    heard: list[Array] = []
    device.set_send_callback(100, heard.append)
    device.set_recv_callback(101, lambda: heard[-1] + len(heard))
    run = compiled(echo, VECTOR, timeout=SECONDS)
    assert [run(X + number).tolist() for number in range(3)] == [(X + 2 * n + 1).tolist() for n in range(3)]


def test_text_of_stablehlo_with_its_types_of_channels(device: xlapy.Device) -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %t = stablehlo.create_token : !stablehlo.token
      %t1 = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 100, type = 2>,
        is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
      %t2 = "stablehlo.send"(%x, %t1) {channel_handle = #stablehlo.channel_handle<handle = 903, type = 1>}
        : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
      %y, %t3 = "stablehlo.recv"(%t2) {channel_handle = #stablehlo.channel_handle<handle = 903, type = 1>}
        : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
      %z, %t4 = "stablehlo.recv"(%t3) {channel_handle = #stablehlo.channel_handle<handle = 101, type = 3>,
        is_host_transfer = true} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
      %sum = stablehlo.add %y, %z : tensor<4xf32>
      return %sum : tensor<4xf32>
    }"""
    device.set_recv_callback(101, lambda: X * 10)
    assert xlapy.compile(text, xlapy.CompileOptions(timeout=SECONDS))(X).tolist() == (X * 11).tolist()
    assert device.receive_from_device(100, timeout=SECONDS).tolist() == X.tolist()


# -- faults ----------------------------------------------------------------------------------------------------------


def refuse(*_: Any) -> Array:
    raise LookupError("the host is busy")


def test_a_callback_that_raises_ends_the_run_and_no_other(device: xlapy.Device) -> None:
    run = compiled(echo, VECTOR, timeout=SECONDS)
    device.set_recv_callback(101, lambda: X)
    for set_callback, channel, working in (
        (device.set_send_callback, 100, lambda _: None),
        (device.set_recv_callback, 101, lambda: X),
    ):
        device.set_send_callback(100, lambda _: None)
        set_callback(channel, refuse)
        with pytest.raises(LookupError, match="the host is busy") as caught:
            run(X)
        assert "test_channels.py" in "".join(caught.value.__notes__)
        set_callback(channel, working)
        assert run(X).tolist() == X.tolist()


def test_a_callback_that_gives_another_shape_is_an_error_that_names_both(device: xlapy.Device) -> None:
    device.set_send_callback(100, lambda _: None)
    device.set_recv_callback(101, lambda: X[:3])
    with pytest.raises(
        xlapy.ShapeError, match=r"recv expects f32\[4\], the host's callback returned f32\[3\]"
    ) as caught:
        compiled(echo, VECTOR)(X)
    assert "test_channels.py" in str(caught.value)


def test_a_host_that_never_answers_is_named_with_the_time(device: xlapy.Device) -> None:
    run = compiled(echo, VECTOR, timeout=0.05)
    with pytest.raises(xlapy.DeadlineError, match=r"device 0, host-to-device channel 101 within 0\.05 s") as caught:
        run(X)
    assert "test_channels.py" in str(caught.value)
    device.reset()
    device.send_to_device(101, X * 2)
    assert run(X).tolist() == (X * 2).tolist()


def test_a_partner_that_never_comes_is_an_error_on_both_sides() -> None:
    def send(builder: Any, x: Any) -> Any:
        ops.Send(x, ChannelHandle(904))
        return x

    def recv(builder: Any) -> Any:
        return ops.Recv(builder, VECTOR, ChannelHandle(905))

    with pytest.raises(xlapy.DeadlineError, match=r"channel 905 within 0\.05 s"):
        compiled(recv, timeout=0.05)()
    compiled(send, VECTOR, timeout=0.05)(X)  # there is room for some messages that nobody has received yet
    with pytest.raises(xlapy.DeadlineError, match="channel 904 is full"):
        for _ in range(64):
            compiled(send, VECTOR, timeout=0.05)(X)


def test_other_python_threads_run_while_a_program_waits(device: xlapy.Device) -> None:
    """A recv holds no GIL: this thread counts while another one waits in native code."""
    run = compiled(echo, VECTOR, timeout=SECONDS)
    device.set_send_callback(100, lambda _: None)
    waiting = threading.Thread(target=run, args=(X,))
    waiting.start()
    counted = 0
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        counted += 1
    assert waiting.is_alive() and counted > 1
    device.send_to_device(101, X)
    waiting.join(SECONDS)
    assert not waiting.is_alive()
