"""What reaches outside the computation: infeed, outfeed, send, recv, process ids.

Functions without a token operand (Infeed, Outfeed, Send, Recv ...) happen in the order in which they were recorded: the
builder threads a token through them and orders them against control flow that contains such functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xlapy.builder.arguments import as_int, as_shape, as_text, described
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_op, builder_of
from xlapy.builder.registry import op_function
from xlapy.hlo.attributes import Named
from xlapy.hlo.element_types import U32
from xlapy.hlo.shape import TOKEN, Shape
from xlapy.support.errors import ArgumentError, ShapeError


class ChannelType(Named):
    """Who is at the ends of a channel, the sender first."""

    DEVICE_TO_DEVICE = "DEVICE_TO_DEVICE"
    DEVICE_TO_HOST = "DEVICE_TO_HOST"
    HOST_TO_DEVICE = "HOST_TO_DEVICE"


@dataclass(frozen=True, slots=True)
class ChannelHandle:
    """A channel between computations, or one with the host; `handle` is its number. Without a type it serves any op."""

    handle: int
    type: ChannelType | None = None


def channel_number(handle: Any, wanted: ChannelType = ChannelType.DEVICE_TO_DEVICE) -> int:
    """The number of a channel, from a handle or the number itself; a handle must not be of another type."""
    if not hasattr(handle, "handle"):
        return as_int(handle, "a channel")
    kind = getattr(handle, "type", None)
    if isinstance(kind, ChannelType) and kind is not wanted:
        raise ShapeError("channel-type", f"the channel is {kind.value}, but {wanted.value} is needed")
    return as_int(handle.handle, "a channel")


# -- infeed and outfeed --------------------------------------------------------------------------------------------


@op_function("infeed")
def InfeedWithToken(token: XlaOp, shape: Shape, config: str = "") -> XlaOp:
    """Reads one item of `shape` from the device's infeed, after `token`. The result is (data, token)."""
    builder = as_handle(token).builder
    result = Shape.tuple([_infeed_shape(shape), TOKEN])
    return builder.record("infeed", [token], shape=result, infeed_config=as_text(config, "config"))


@op_function()
def Infeed(builder: XlaBuilder, shape: Shape, config: str = "") -> XlaOp:
    """Reads one item of `shape` from the device's infeed. An empty tuple reads nothing."""
    if _infeed_shape(shape).is_tuple and not shape.parts:
        return builder.record("tuple")
    pair = InfeedWithToken(builder.hidden_token(), shape, config)
    return _in_order(builder, pair, data=0, token=1)


def _infeed_shape(shape: Shape) -> Shape:
    wanted = as_shape(shape, "the shape of an infeed")
    if wanted.is_tuple and any(part.is_tuple for part in wanted.parts):
        raise ShapeError("Infeed.B1", f"{wanted} is a nested tuple")
    return wanted


@op_function("outfeed")
def OutfeedWithToken(
    operand: Operand, token: XlaOp, shape_with_layout: Shape | None = None, outfeed_config: str = ""
) -> XlaOp:
    """Writes the operand to the device's outfeed, after `token`. The result is a token."""
    builder = builder_of(token, operand)
    value = as_op(builder, operand)
    check_stated(value, shape_with_layout)
    return builder.record(
        "outfeed",
        [value, as_op(builder, token)],
        outfeed_config=as_text(outfeed_config, "outfeed_config"),
        outfeed_shape=shape_with_layout if shape_with_layout is not None else value.shape,
    )


@op_function()
def Outfeed(operand: XlaOp, shape_with_layout: Shape | None = None, outfeed_config: str = "") -> XlaOp:
    """Writes the operand to the device's outfeed. The result is an empty tuple."""
    builder = as_handle(operand).builder
    token = OutfeedWithToken(operand, builder.hidden_token(), shape_with_layout, outfeed_config)
    builder.order_effect(token.instruction)
    builder.set_hidden_token(token)
    return builder.record("tuple")


def check_stated(operand: XlaOp, shape: Shape | None) -> None:
    if shape is not None and not operand.shape.matches(as_shape(shape, "shape_with_layout")):
        raise ShapeError("shape-with-layout", f"the operand is {operand.shape}, but {shape} is stated")


def _in_order(builder: XlaBuilder, result: XlaOp, *, data: int, token: int) -> XlaOp:
    """The data of an effect, which from now on comes before the next one."""
    builder.order_effect(result.instruction)
    builder.set_hidden_token(builder.record("get-tuple-element", [result], index=token))
    return builder.record("get-tuple-element", [result], index=data)


# -- send and recv -------------------------------------------------------------------------------------------------


@op_function()
def SendWithToken(operand: Operand, token: XlaOp, handle: Any) -> XlaOp:
    """Sends the operand on a channel, after `token`, and waits until it is sent. The result is a token."""
    builder = builder_of(token, operand)
    return _send_and_wait(builder, as_op(builder, operand), as_op(builder, token), handle, host=False)


@op_function()
def SendToHost(operand: Operand, token: XlaOp, shape_with_layout: Shape | None, handle: Any) -> XlaOp:
    """Sends the operand to the host, after `token`. The result is a token."""
    builder = builder_of(token, operand)
    value = as_op(builder, operand)
    check_stated(value, shape_with_layout)
    return _send_and_wait(builder, value, as_op(builder, token), handle, host=True)


def _send_and_wait(builder: XlaBuilder, operand: XlaOp, token: XlaOp, handle: Any, *, host: bool) -> XlaOp:
    kind = ChannelType.DEVICE_TO_HOST if host else ChannelType.DEVICE_TO_DEVICE
    attributes: dict[str, Any] = {"channel_id": channel_number(handle, kind), "is_host_transfer": host}
    return builder.record("send-done", [builder.record("send", [operand, token], **attributes)], **attributes)


@op_function("send")
def Send(operand: XlaOp, channel: Any) -> XlaOp:
    """Sends the operand on a channel.

    With a ChannelHandle it also waits, and the result is an empty tuple. With a channel id, an int, it only begins: the
    result is a context for SendDone."""
    builder = as_handle(operand).builder
    started = builder.record("send", [operand, builder.hidden_token()], channel_id=channel_number(channel))
    builder.order_effect(started.instruction)
    if not hasattr(channel, "handle"):
        return started
    SendDone(started)
    return builder.record("tuple")


@op_function("send-done")
def SendDone(context: XlaOp) -> XlaOp:
    """Waits for a Send that was given a channel id. The result is a token."""
    builder = as_handle(context).builder
    token = builder.record("send-done", [context], **_channel_of(context))
    builder.order_effect(token.instruction)
    builder.set_hidden_token(token)
    return token


@op_function()
def RecvWithToken(token: XlaOp, shape: Shape, handle: Any) -> XlaOp:
    """Receives data of `shape` from a channel, after `token`. The result is (data, token)."""
    return _receive(as_handle(token).builder, token, shape, handle, host=False)


@op_function()
def RecvFromHost(token: XlaOp, shape: Shape, handle: Any) -> XlaOp:
    """Receives data of `shape` from the host, after `token`. The result is (data, token)."""
    return _receive(as_handle(token).builder, token, shape, handle, host=True)


def _receive(builder: XlaBuilder, token: XlaOp, shape: Shape, handle: Any, *, host: bool) -> XlaOp:
    kind = ChannelType.HOST_TO_DEVICE if host else ChannelType.DEVICE_TO_DEVICE
    attributes: dict[str, Any] = {"channel_id": channel_number(handle, kind), "is_host_transfer": host}
    started = builder.record("recv", [token], shape=_context(shape), **attributes)
    return builder.record("recv-done", [started], **attributes)


@op_function("recv")
def Recv(builder: XlaBuilder, shape: Shape, channel: Any) -> XlaOp:
    """Receives data of `shape` from a channel.

    With a ChannelHandle it waits and the result is the data. With a channel id, an int, it only begins: the result is a
    context for RecvDone."""
    started = builder.record(
        "recv", [builder.hidden_token()], shape=_context(shape), channel_id=channel_number(channel)
    )
    builder.order_effect(started.instruction)
    return RecvDone(started) if hasattr(channel, "handle") else started


@op_function("recv-done")
def RecvDone(context: XlaOp) -> XlaOp:
    """Waits for a Recv that was given a channel id. The result is the data."""
    builder = as_handle(context).builder
    pair = builder.record("recv-done", [context], **_channel_of(context))
    return _in_order(builder, pair, data=0, token=1)


def _context(shape: Shape) -> Shape:
    return Shape.tuple([as_shape(shape, "the shape to receive"), Shape.scalar(U32), TOKEN])


def _channel_of(context: XlaOp) -> dict[str, Any]:
    """The channel of the send or recv that returned `context`."""
    attributes = context.instruction.attributes
    if not attributes.keys() >= _OF_A_CHANNEL:
        raise ArgumentError(f"{described(context)} is not what Send or Recv returned")
    return {name: attributes[name] for name in _OF_A_CHANNEL}


_OF_A_CHANNEL = frozenset({"channel_id", "is_host_transfer"})
"""The attributes that what begins and what waits for a transfer have in common."""


# -- processes ---------------------------------------------------------------------------------------------------------


@op_function("replica-id")
def ReplicaId(builder: XlaBuilder) -> XlaOp:
    """The replica that this process is, as u32."""
    return builder.record("replica-id")


@op_function("partition-id")
def PartitionId(builder: XlaBuilder) -> XlaOp:
    """The partition that this process is, as u32."""
    return builder.record("partition-id")
