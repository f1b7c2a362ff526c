"""Python functions that programs call."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.xla_client.running import f32
from xlapy import ExecutionError, xla_client
from xlapy.support.errors import ArgumentError
from xlapy.xla_client import ops

F32 = xla_client.Shape("f32[3]")


def calling(function: Any, client: xla_client.Client) -> tuple[xla_client.XlaComputation, Any]:
    """A program that hands its argument to a function, and doubles what that returns."""
    builder = xla_client.XlaBuilder("calling")
    x = ops.Parameter(builder, 0, F32)
    called, kept = client.emit_python_callback(function, builder, [x], [F32])
    ops.Mul(ops.GetTupleElement(called, 0), ops.Constant(builder, np.float32(2)))
    return builder.build(), kept


def test_a_program_calls_a_function() -> None:
    client = xla_client.make_cpu_client()
    computation, kept = calling(lambda x: (x + 1,), client)
    executable = client.compile(computation)
    executable.keep_alive(kept)
    del kept
    gc.collect()
    (result,) = executable.execute([f32([1, 2, 3])])
    np.testing.assert_array_equal(np.asarray(result), [4, 6, 8])


def test_the_descriptor_is_an_operand_as_in_older_scripts() -> None:
    client = xla_client.make_cpu_client()
    seen = []

    def function(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append((x.copy(), y.copy()))
        return x + y, np.array(int(x.sum()), np.int32)

    results = [F32, xla_client.Shape("s32[]")]
    number, kept = client.get_emit_python_callback_descriptor(function, [F32, F32], results)
    builder = xla_client.XlaBuilder("described")
    x = ops.Parameter(builder, 0, F32)
    ops.CustomCallWithLayout(
        builder,
        b"xla_python_cpu_callback",
        operands=[ops.Constant(builder, np.uint64(number)), x, x],
        shape_with_layout=xla_client.Shape.tuple_shape(results),
        operand_shapes_with_layout=[xla_client.Shape("u64[]"), F32, F32],
        opaque=str(number).encode(),
        api_version=ops.CustomCallApiVersion.API_VERSION_STATUS_RETURNING,
    )
    total, count = client.compile(builder.build()).execute([f32([1, 2, 3])])
    np.testing.assert_array_equal(np.asarray(total), [2, 4, 6])
    assert int(np.asarray(count)) == 6
    assert len(seen) == 1 and kept is not None


def test_functions_of_no_result_run_for_their_effect() -> None:
    client = xla_client.make_cpu_client()
    seen: list[list[float]] = []
    builder = xla_client.XlaBuilder("effect")
    x = ops.Parameter(builder, 0, F32)
    _, kept = client.emit_python_callback(lambda x: seen.append(x.tolist()), builder, [x], [], has_side_effect=True)
    client.compile(builder.build(x)).execute([f32([1, 2, 3])])
    assert seen == [[1, 2, 3]] and kept is not None


def test_a_function_that_nobody_keeps_is_gone() -> None:
    client = xla_client.make_cpu_client()
    computation, kept = calling(lambda x: x, client)
    executable = client.compile(computation)
    del kept
    gc.collect()
    with pytest.raises(ExecutionError, match="keep the second thing"):
        executable.execute([f32([1, 2, 3])])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x, x), "returned 2 arrays, 1 are declared"),
        (lambda x: x.astype(np.float64), r"float64\[3\], declared as f32\[3\]"),
        (lambda x: x[:2], r"float32\[2\], declared as f32\[3\]"),
    ],
)
def test_wrong_functions_are_errors_of_the_run(function: Any, message: str) -> None:
    client = xla_client.make_cpu_client()
    computation, kept = calling(function, client)
    executable = client.compile(computation)
    executable.keep_alive(kept)
    with pytest.raises(ExecutionError, match=message):
        executable.execute([f32([1, 2, 3])])


def test_errors_of_functions_come_out_of_the_run() -> None:
    client = xla_client.make_cpu_client()
    computation, kept = calling(lambda x: 1 // 0, client)
    executable = client.compile(computation)
    executable.keep_alive(kept)
    with pytest.raises(ZeroDivisionError):
        executable.execute([f32([1, 2, 3])])


# -- through channels ----------------------------------------------------------------------------------------------


def exchange(client: xla_client.Client, function: Any, count: int = 1) -> xla_client.LoadedExecutable:
    """A program that sends its argument, `count` times, to the host and returns what it receives."""
    builder = xla_client.XlaBuilder("exchange")
    x = ops.Parameter(builder, 0, F32)
    token = ops.CreateToken(builder)
    sends = [client.create_device_to_host_channel_handle() for _ in range(count)]
    for handle in sends:
        token = ops.SendToHost(x, token, F32, handle)
    receive = client.create_host_to_device_channel_handle()
    ops.GetTupleElement(ops.RecvFromHost(token, F32, receive), 0)
    callback = client.make_python_callback_from_host_send_and_recv(
        function, [F32] * count, [F32], [handle.handle for handle in sends], [receive.handle]
    )
    return client.compile(builder.build(), host_callbacks=[callback])


def test_a_program_exchanges_with_the_host() -> None:
    executable = exchange(xla_client.make_cpu_client(), lambda x, y: x * 10 + y, count=2)
    for start in (0, 1):
        (result,) = executable.execute([f32([start, 2, 3])])
        np.testing.assert_array_equal(np.asarray(result), [11 * start, 22, 33])


def test_wrong_results_for_the_host_channel_are_errors() -> None:
    executable = exchange(xla_client.make_cpu_client(), lambda x: x[:1])
    with pytest.raises(ExecutionError, match=r"float32\[1\], declared as f32\[3\]"):
        executable.execute([f32([1, 2, 3])])


def test_channels_and_shapes_are_counted() -> None:
    client = xla_client.make_cpu_client()
    with pytest.raises(ArgumentError, match="1 operands is given 2 channels"):
        client.make_python_callback_from_host_send_and_recv(lambda x: x, [F32], [F32], [1, 2], [3])
    with pytest.raises(ArgumentError, match="not an int"):
        client.make_python_callback_from_host_send_and_recv(3, [F32], [F32], [1], [3])
