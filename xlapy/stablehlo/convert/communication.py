"""What reaches outside: infeed, outfeed, send, recv, process ids. Custom calls have a file of their own."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.element_types import U32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import TOKEN, Shape, shape_of_results
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ShapeError

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""Types of a channel handle."""


@converts("stablehlo.infeed")
def infeed(body: Body, operation: Operation) -> Instruction:
    data = shape_of_results(_all_but_token(operation))
    config = attribute(operation, "infeed_config", str, "")
    received = body.add("infeed", *body.operands(operation), shape=Shape.tuple([data, TOKEN]), infeed_config=config)
    return _flattened(body, received, len(operation.result_types))


@converts("stablehlo.outfeed")
def outfeed(body: Body, operation: Operation) -> Instruction:
    *data, token = body.operands(operation)
    return body.add("outfeed", body.pack(data), token, outfeed_config=attribute(operation, "outfeed_config", str, ""))


@converts("stablehlo.send")
def send(body: Body, operation: Operation) -> Instruction:
    *data, token = body.operands(operation)
    channel = _channel(operation)
    started = body.add("send", body.pack(data), token, **channel)
    return body.add("send-done", started, **channel)


@converts("stablehlo.recv")
def recv(body: Body, operation: Operation) -> Instruction:
    channel = _channel(operation)
    data = shape_of_results(_all_but_token(operation))
    shape = Shape.tuple([data, Shape.scalar(U32), TOKEN])
    started = body.add("recv", *body.operands(operation), shape=shape, **channel)
    return _flattened(body, body.add("recv-done", started, **channel), len(operation.result_types))


def _all_but_token(operation: Operation) -> tuple[Shape, ...]:
    """The types of what is received. Raises unless they are arrays, with a token behind them."""
    results = operation.result_types
    some, arrays, token = _RECEIVING[operation.mnemonic]
    if not results:
        raise ShapeError(f"{operation.mnemonic}.{some}", "there is no result, not even a token")
    if not results[-1].is_token:
        raise ShapeError(f"{operation.mnemonic}.{token}", "the last result is not a token")
    if any(not (shape.is_array or shape.is_tuple) for shape in results[:-1]):
        raise ShapeError(f"{operation.mnemonic}.{arrays}", "a result before the last is not an array")
    return results[:-1]


_RECEIVING = {"infeed": ("C1", "C2", "C3"), "recv": ("C2", "C3", "C4")}
"""Labels: there are results, arrays, and at last a token."""


def _flattened(body: Body, received: Instruction, count: int) -> Instruction:
    """(data, token), where the data of several results is a tuple, as one flat tuple of all results."""
    if count == 2:
        return received
    data = body.add("get-tuple-element", received, index=0)
    parts = [body.add("get-tuple-element", data, index=index) for index in range(count - 1)]
    token = body.add("get-tuple-element", received, index=1)
    return body.pack([*parts, token])


def _channel(operation: Operation) -> dict[str, Any]:
    handle = fields(operation, "channel_handle")
    is_host = attribute(operation, "is_host_transfer", bool, False)
    wanted = _HOST_TYPES[operation.mnemonic] if is_host else DEVICE_TO_DEVICE
    kind = attribute(handle, "type", int, wanted)
    if kind not in (0, wanted):  # 0 leaves it open
        raise ShapeError(
            f"{operation.mnemonic}.C1",
            f"the channel has type {kind}; with is_host_transfer = {is_host}, it is {wanted}",
        )
    return {"channel_id": attribute(handle, "handle", int), "is_host_transfer": is_host}


_HOST_TYPES = {"send": DEVICE_TO_HOST, "recv": HOST_TO_DEVICE}


@converts("stablehlo.replica_id")
def replica_id(body: Body, operation: Operation) -> Instruction:
    return body.add("replica-id")


@converts("stablehlo.partition_id")
def partition_id(body: Body, operation: Operation) -> Instruction:
    return body.add("partition-id")
