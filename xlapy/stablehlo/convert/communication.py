"""What reaches outside: infeed, outfeed, send, recv, process ids. Custom calls have a file of their own."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.element_types import U32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import TOKEN, Shape
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""Types of a channel handle."""


@converts("stablehlo.infeed")
def infeed(body: Body, operation: Operation) -> Instruction:
    data = packed_shape(_all_but_token(operation))
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
    data = packed_shape(_all_but_token(operation))
    shape = Shape.tuple([data, Shape.scalar(U32), TOKEN])
    started = body.add("recv", *body.operands(operation), shape=shape, **channel)
    return _flattened(body, body.add("recv-done", started, **channel), len(operation.result_types))


def _all_but_token(operation: Operation) -> tuple[Shape, ...]:
    results = operation.result_types
    if not results or not results[-1].is_token:
        raise ParseError(f"the last result of {operation.name} must be a token")
    return results[:-1]


def packed_shape(shapes: tuple[Shape, ...]) -> Shape:
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


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
    return {
        "channel_id": attribute(handle, "handle", int),
        "is_host_transfer": attribute(operation, "is_host_transfer", bool, False),
    }


@converts("stablehlo.replica_id")
def replica_id(body: Body, operation: Operation) -> Instruction:
    return body.add("replica-id")


@converts("stablehlo.partition_id")
def partition_id(body: Body, operation: Operation) -> Instruction:
    return body.add("partition-id")
