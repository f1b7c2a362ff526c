import threading
import time

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.runtime.native import F32_4, Call, executable, spec
from xlapy_runtime.channels import HOST, Stream, item_of
from xlapy_runtime.device import Device
from xlapy_runtime.errors import ArgumentError, DeadlineError, ExecutionError, ShapeError
from xlapy_runtime.program import RuntimeCall

SHORT = 0.05
X = np.arange(4, dtype=np.float32)


def infeed_program(*results, **fields):
    call = RuntimeCall("infeed", "infeed.1", "model.py:3", results=results)
    body = [Call(0, tuple(f"r{index}" for index in range(len(results))))]
    return executable(body, result=tuple(results), calls=[call], **fields)


def outfeed_program(*operands, **attributes):
    call = RuntimeCall("outfeed", "outfeed.1", operands=operands, attributes=attributes)
    return executable(
        [Call(0, tuple(f"p{index}" for index in range(len(operands))))], parameters=operands, calls=[call]
    )


def start(target, *arguments, **keywords):
    """A thread, and the list that its outcome will be in."""
    outcome = []

    def work():
        try:
            outcome.append(target(*arguments, **keywords))
        except Exception as error:  # noqa: BLE001 - the outcome
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, outcome


def test_items_arrive_in_order_and_as_they_were_when_sent():
    device, run = Device(0), infeed_program(F32_4)
    mine = X.copy()
    device.transfer_to_infeed(mine)
    mine += 100
    device.transfer_to_infeed(X + 1)
    assert [run.run(device=device)[0].tolist() for _ in range(2)] == [X.tolist(), (X + 1).tolist()]


def test_nested_tuples_of_any_element_types_pass_both_streams():
    bf16, pred = spec(ml_dtypes.bfloat16, 2), spec(np.bool_)
    device = Device(0)
    tree = (bf16, (pred, F32_4))
    value = (np.array([1.5, 2.5], ml_dtypes.bfloat16), (np.array(True), X))
    device.transfer_to_infeed(value)
    arrived = infeed_program(bf16, pred, F32_4).run(device=device)
    outfeed_program(bf16, pred, F32_4, operand_tree=tree).run(*arrived, device=device)
    first, (second, third) = device.transfer_from_outfeed(expected=tree)
    np.testing.assert_array_equal(first, value[0])
    assert second
    np.testing.assert_array_equal(third, X)


def test_an_empty_infeed_reads_nothing():
    device = Device(0)
    device.transfer_to_infeed(X)
    infeed_program().run(device=device)
    assert len(device.infeed) == 1


def test_a_program_waits_for_its_host():
    device, run = Device(0), infeed_program(F32_4)
    thread, outcome = start(run.run, device=device)
    time.sleep(0.02)
    device.transfer_to_infeed(X)
    thread.join()
    np.testing.assert_array_equal(outcome[0][0], X)


@pytest.mark.parametrize("timeout", [float("nan"), -1, -1e-9, "1", True, 2j])
def test_a_timeout_that_is_no_time_is_refused(timeout):
    device = Device(3)
    waits = [
        lambda: device.transfer_to_infeed(X, timeout=timeout),
        lambda: device.transfer_from_outfeed(timeout=timeout),
        lambda: device.send_to_device(1, X, timeout=timeout),
        lambda: device.receive_from_device(1, timeout=timeout),
        lambda: infeed_program(F32_4).run(device=device, timeout=timeout),
        lambda: infeed_program(F32_4, options={"timeout": timeout}),
        lambda: executable([]).run(timeout=timeout),
        lambda: executable([]).run_parallel([[]], timeout=timeout),
    ]
    for wait in waits:
        with pytest.raises(ArgumentError, match=r"timeout is .*; it must be seconds, 0 or more, or None"):
            wait()
    assert len(device.infeed) == 0
    assert device.memory_stats()["running"] == 0


@pytest.mark.parametrize("timeout", [1e10, 10**400, float("inf"), np.float32(1e30)], ids=["long", "int", "inf", "f32"])
def test_a_timeout_may_be_as_long_as_anyone_likes(timeout):
    device = Device(3)
    thread, outcome = start(infeed_program(F32_4, options={"timeout": 0.0}).run, device=device, timeout=timeout)
    time.sleep(SHORT)
    device.transfer_to_infeed(X, timeout=timeout)
    thread.join()
    np.testing.assert_array_equal(outcome[0][0], X)


def test_waits_end_after_their_timeout():
    device = Device(3)
    with pytest.raises(DeadlineError, match=r"infeed\.1 on device 3: nothing arrived at the infeed of device 3 within"):
        infeed_program(F32_4).run(device=device, timeout=SHORT)
    with pytest.raises(DeadlineError, match="outfeed of device 3"):
        device.transfer_from_outfeed(timeout=SHORT)
    device.transfer_to_infeed(X)
    assert infeed_program(F32_4).run(device=device)[0][1] == 1


def test_a_full_stream_holds_its_producers_back():
    stream = Stream("the stream", capacity=2)
    for _ in range(2):
        stream.put(item_of(X), HOST, SHORT)
    with pytest.raises(DeadlineError, match="stayed full"):
        stream.put(item_of(X), HOST, SHORT)
    thread, _ = start(stream.put, item_of(X + 1), HOST, None)
    assert len(stream) == 2
    stream.get(None, HOST, SHORT, keep_mismatch=True)
    thread.join()
    assert len(stream) == 2


def test_many_producers_lose_nothing():
    device, run = Device(0), infeed_program(spec(np.int64))
    threads = [
        start(lambda base=base: [device.transfer_to_infeed(np.int64(base + k)) for k in range(100)])[0]
        for base in range(0, 400, 100)
    ]
    got = [int(run.run(device=device)[0]) for _ in range(400)]
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(400))
    assert [k for k in got if k < 100] == list(range(100))


def test_a_queued_item_of_the_wrong_shape_fails_the_program_and_is_dropped():
    device, run = Device(0), infeed_program(F32_4)
    device.transfer_to_infeed(X[:3])
    device.transfer_to_infeed(X)
    with pytest.raises(ShapeError, match=r"f32\[4\] was expected, f32\[3\] was sent") as caught:
        run.run(device=device)
    assert "model.py:3" in str(caught.value)
    np.testing.assert_array_equal(run.run(device=device)[0], X)


def test_a_wrong_shape_fails_both_sides_if_the_program_is_waiting():
    device, run = Device(0), infeed_program(F32_4)
    thread, outcome = start(run.run, device=device)
    time.sleep(0.02)
    with pytest.raises(ShapeError, match=r"f32\[4\] was expected, s32\[\] was sent"):
        device.transfer_to_infeed(np.int32(1))
    thread.join()
    assert isinstance(outcome[0], ShapeError)
    assert len(device.infeed) == 0


def test_an_outfeed_read_as_the_wrong_shape_stays():
    device = Device(0)
    outfeed_program(F32_4).run(X, device=device)
    with pytest.raises(ShapeError, match=r"s32\[\] was expected, f32\[4\] was sent"):
        device.transfer_from_outfeed(expected=spec(np.int32))
    np.testing.assert_array_equal(device.transfer_from_outfeed(expected=F32_4), X)


@pytest.mark.parametrize(
    "expected",
    [F32_4, X, xlapy.Shape.array(np.float32, (4,)), [F32_4], xlapy.Shape.tuple([xlapy.Shape.array(np.float32, (4,))])],
    ids=["spec", "array", "shape", "list", "shape of a tuple"],
)
def test_what_is_expected_may_be_a_shape_or_like_an_array(expected):
    device = Device(0)
    outfeed_program(F32_4).run(X, device=device)
    np.testing.assert_array_equal(device.transfer_from_outfeed(expected), X)


@pytest.mark.parametrize("expected", ["f32[4]", 4])
def test_what_is_expected_must_say_so(expected):
    device = Device(0)
    outfeed_program(F32_4).run(X, device=device)
    with pytest.raises(ArgumentError, match="does not say what is expected"):
        device.transfer_from_outfeed(expected)
    with pytest.raises(ArgumentError, match="does not say what is expected"):
        device.receive_from_device(1, expected)


def test_what_is_no_array_is_refused():
    with pytest.raises(ArgumentError, match="dict"):
        Device(0).transfer_to_infeed({"x": X})


def test_reset_empties_the_queues():
    device = Device(0)
    device.transfer_to_infeed(X)
    assert device.memory_stats()["bytes_queued"] == 16
    device.reset()
    assert device.memory_stats()["bytes_queued"] == 0


def sender(operand=F32_4, **attributes):
    attributes = {"channel_id": 7, **attributes}
    calls = [
        RuntimeCall("send", "send.1", operands=(operand,), attributes=attributes),
        RuntimeCall("send-done", "send-done.1", attributes={"start": 0}),
    ]
    return executable([Call(0, ("p0",)), Call(1)], parameters=(operand,), calls=calls)


def receiver(result=F32_4, **attributes):
    attributes = {"channel_id": 7, "result_tree": result, **attributes}
    calls = [
        RuntimeCall("recv", "recv.1", attributes=attributes),
        RuntimeCall("recv-done", "recv-done.1", results=(result,), attributes={"start": 0}),
    ]
    return executable([Call(0), Call(1, ("r0",))], result=result, calls=calls)


def test_two_programs_talk_while_both_run():
    ping_pong = [
        RuntimeCall("send", "send", operands=(F32_4,), attributes={"channel_id": 1}),
        RuntimeCall("send-done", "send-done", attributes={"start": 0}),
        RuntimeCall("recv", "recv", attributes={"channel_id": 2, "result_tree": F32_4}),
        RuntimeCall("recv-done", "recv-done", results=(F32_4,), attributes={"start": 2}),
    ]
    pong = [
        RuntimeCall("recv", "recv", attributes={"channel_id": 1, "result_tree": F32_4}),
        RuntimeCall("recv-done", "recv-done", results=(F32_4,), attributes={"start": 0}),
        RuntimeCall("send", "send", operands=(F32_4,), attributes={"channel_id": 2}),
        RuntimeCall("send-done", "send-done", attributes={"start": 2}),
    ]
    first = executable(
        [Call(2), Call(0, ("p0",)), Call(1), Call(3, ("r0",))], parameters=(F32_4,), result=F32_4, calls=ping_pong
    )
    second = executable([Call(0), Call(1, ("r0",)), Call(2, ("r0",)), Call(3)], result=F32_4, calls=pong)
    for _ in range(20):
        thread, outcome = start(second)
        np.testing.assert_array_equal(first(X), X)
        thread.join()
        np.testing.assert_array_equal(outcome[0], X)


def test_host_transfers_go_both_ways():
    device = Device(0)
    sender(is_host_transfer=True).run(X, device=device)
    np.testing.assert_array_equal(device.receive_from_device(7), X)
    device.send_to_device(7, X + 1)
    np.testing.assert_array_equal(receiver(is_host_transfer=True).run(device=device), X + 1)


def test_host_callbacks_serve_both_ends():
    device, seen = Device(0), []
    device.set_send_callback(7, seen.append)
    device.set_recv_callback(7, lambda: X * 2)
    sender(is_host_transfer=True).run(X, device=device)
    np.testing.assert_array_equal(seen[0], X)
    np.testing.assert_array_equal(receiver(is_host_transfer=True).run(device=device), X * 2)
    device.set_recv_callback(7, lambda: X[:1])
    with pytest.raises(ShapeError, match=r"recv expects f32\[4\], the host's callback returned f32\[1\]"):
        receiver(is_host_transfer=True).run(device=device)
    device.set_recv_callback(7, None)
    with pytest.raises(ArgumentError, match="not callable"):
        device.set_send_callback(7, 3)


def test_a_recv_that_times_out_leaves_the_channel_in_order():
    device, run = Device(0), receiver(is_host_transfer=True)
    with pytest.raises(DeadlineError, match="nothing was sent"):
        run.run(device=device, timeout=SHORT)
    device.send_to_device(7, X)
    np.testing.assert_array_equal(run.run(device=device, timeout=SHORT), X)


def test_a_full_channel_holds_its_sender_back():
    device, run = Device(0), sender(is_host_transfer=True)
    capacity = device.to_host[(7,)].capacity
    for number in range(capacity):
        run.run(X + number, device=device, timeout=SHORT)
    with pytest.raises(DeadlineError, match=f"full \\({capacity} messages\\)"):
        run.run(X, device=device, timeout=SHORT)
    assert [device.receive_from_device(7)[0] for _ in range(capacity)] == list(range(capacity))
    assert device.memory_stats()["bytes_queued"] == 0


def test_a_message_of_the_wrong_shape_is_an_error_that_names_both():
    device = Device(0)
    device.send_to_device(7, X[:2])
    with pytest.raises(ShapeError, match=r"recv expects f32\[4\], send sent f32\[2\]"):
        receiver(is_host_transfer=True).run(device=device)


def test_a_failed_run_takes_its_messages_back():
    calls = [
        RuntimeCall("send", "send.1", operands=(F32_4,), attributes={"channel_id": 77}),
        RuntimeCall("infeed", "infeed.1", results=(F32_4,)),
    ]
    run = executable([Call(0, ("p0",)), Call(1, ("r0",))], parameters=(F32_4,), result=F32_4, calls=calls)
    with pytest.raises(DeadlineError):
        run.run(X, device=Device(0), timeout=SHORT)
    with pytest.raises(DeadlineError):
        receiver(channel_id=77).run(timeout=SHORT)


def test_pairs_say_which_process_talks_to_which():
    pairs = {"channel_id": 78, "source_target_pairs": ((0, 1), (1, 0)), "group_mode": "cross_replica"}
    calls = [
        RuntimeCall("send", "send.1", operands=(F32_4,), attributes=pairs),
        RuntimeCall("recv", "recv.1", attributes={**pairs, "result_tree": F32_4}),
        RuntimeCall("send-done", "send-done.1", attributes={"start": 0}),
        RuntimeCall("recv-done", "recv-done.1", results=(F32_4,), attributes={"start": 1}),
    ]
    body = [Call(0, ("p0",)), Call(1), Call(2), Call(3, ("r0",))]
    run = executable(body, parameters=(F32_4,), result=F32_4, calls=calls, num_replicas=2)
    first, second = run.run_parallel([[X], [X + 10]])
    np.testing.assert_array_equal(first, X + 10)
    np.testing.assert_array_equal(second, X)


def ends_once_reset(device, waits):
    """The error of what waits on the device when that is reset."""
    thread, outcome = start(waits)
    while not outcome:
        device.reset()
        time.sleep(SHORT / 10)
    thread.join()
    return outcome[0]


def test_a_reset_ends_programs_and_hosts_that_wait():
    device, run = Device(0), infeed_program(F32_4)
    waits = {
        "the infeed of device 0": lambda: run.run(device=device, timeout=30),
        "the outfeed of device 0": lambda: device.transfer_from_outfeed(timeout=30),
        "device 0, device-to-host channel 7": lambda: device.receive_from_device(7, timeout=30),
    }
    for name, wait in waits.items():
        error = ends_once_reset(device, wait)
        assert isinstance(error, ExecutionError)
        assert not isinstance(error, DeadlineError)
        assert f"{name} was reset while something waited" in str(error)
    device.transfer_to_infeed(X)
    assert run.run(device=device)[0].tolist() == X.tolist()


def test_who_only_looks_at_a_device_makes_no_queues():
    device = Device(3)
    assert repr(device) == "Device(id=3, running=0, infeed=0/64, outfeed=0/64)"
    assert device.memory_stats()["bytes_queued"] == 0
    device.reset()
    assert device._queues is None
    device.transfer_to_infeed(X)
    assert repr(device) == "Device(id=3, running=0, infeed=1/64, outfeed=0/64)"
    assert device.memory_stats()["bytes_queued"] == 16
