"""What reaches outside the computation: infeed, outfeed, send, recv, process ids, custom calls."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import CustomCallApiVersion, OutputOperandAlias
from xlapy.hlo.element_types import U32
from xlapy.hlo.ops.spec import PURE, Regions, ResultShape, Trait, Variadic, op
from xlapy.hlo.shape import TOKEN, Shape
from xlapy.support.errors import ShapeError

EFFECT = {Trait.EFFECT, Trait.RUNTIME}


def _require_token(shape: Shape) -> None:
    if not shape.is_token:
        raise ShapeError("token-operand", f"{shape} is not a token")


@op("infeed", traits=EFFECT)
def infeed(token: Shape, *, infeed_config: str = "", result: ResultShape) -> Shape:
    """Reads one item from the device's infeed. The result is (data, token).

    token-operand: the operand is a token.
    result-pair: the result is a pair of data and a token.
    """
    _require_token(token)
    if not result.is_tuple or len(result.parts) != 2 or not result.parts[1].is_token:
        raise ShapeError("result-pair", f"{result} is not a pair of data and a token")
    return result


@op("outfeed", traits=EFFECT)
def outfeed(operand: Shape, token: Shape, *, outfeed_config: str = "", outfeed_shape: Shape | None = None) -> Shape:
    """Writes the operand to the device's outfeed. The result is a token.

    token-operand: the second operand is a token.
    """
    _require_token(token)
    return TOKEN


@op("send", traits=EFFECT)
def send(operand: Shape, token: Shape, *, channel_id: int = 0, is_host_transfer: bool = False) -> Shape:
    """Begins to send the operand on a channel. The result is (operand, u32 context, token), for send-done.

    token-operand: the second operand is a token.
    channel: the channel id is positive.
    """
    _require_token(token)
    _check_channel(channel_id)
    return Shape.tuple([operand, Shape.scalar(U32), TOKEN])


@op("send-done", traits=EFFECT | {Trait.DONE})
def send_done(started: Shape, *, channel_id: int = 0, is_host_transfer: bool = False) -> Shape:
    """Waits for a send. The result is a token.

    started: the operand is the result of send.
    """
    _check_started(started)
    return TOKEN


@op("recv", traits=EFFECT)
def recv(token: Shape, *, channel_id: int = 0, is_host_transfer: bool = False, result: ResultShape) -> Shape:
    """Begins to receive from a channel. The result is (data, u32 context, token), for recv-done.

    token-operand: the operand is a token.
    channel: the channel id is positive.
    """
    _require_token(token)
    _check_channel(channel_id)
    _check_started(result)
    return result


@op("recv-done", traits=EFFECT | {Trait.DONE})
def recv_done(started: Shape, *, channel_id: int = 0, is_host_transfer: bool = False) -> Shape:
    """Waits for a recv. The result is (data, token).

    started: the operand is the result of recv.
    """
    _check_started(started)
    return Shape.tuple([started.parts[0], TOKEN])


def _check_channel(channel_id: int) -> None:
    if channel_id < 1:
        raise ShapeError("channel", f"channel id {channel_id} is not positive")


def _check_started(started: Shape) -> None:
    context = Shape.tuple([started.parts[0], Shape.scalar(U32), TOKEN]) if started.is_tuple and started.parts else None
    if context is None or not started.matches(context):
        raise ShapeError("started", f"{started} is not what a send or recv returns: (data, u32[], token[])")


@op("replica-id", traits=PURE | {Trait.RUNTIME})
def replica_id() -> Shape:
    """The replica that this process is, as u32."""
    return Shape.scalar(U32)


@op("partition-id", traits=PURE | {Trait.RUNTIME})
def partition_id() -> Shape:
    """The partition that this process is, as u32."""
    return Shape.scalar(U32)


@op(
    "custom-call",
    traits=EFFECT,
    hlo_text={"target": "custom_call_target", "has_side_effect": "custom_call_has_side_effect"},
)
def custom_call(
    operands: Variadic,
    *,
    target: str,
    computations: Regions,
    has_side_effect: bool = False,
    api_version: CustomCallApiVersion = CustomCallApiVersion.ORIGINAL,
    operand_layout_constraints: tuple[Shape, ...] | None = None,
    output_to_operand_aliasing: tuple[OutputOperandAlias, ...] = (),
    result: ResultShape,
) -> Shape:
    """Calls an external function by name, which checks itself what it gets.

    With aliasing, a C function finds an operand in the memory of its result, and changes it there.

    alias-exists: an alias names an array of the result and one of an operand.
    alias-once: no array of the result has two aliases.
    alias-type: the two have the same shape.
    layouts-match: where layouts are demanded, there is one for each operand, of its shape.
    """
    _check_demands(operands, operand_layout_constraints)
    check_aliases(operands, result, output_to_operand_aliasing)
    return result.without_layout()


def _check_demands(operands: Sequence[Shape], demands: Sequence[Shape] | None) -> None:
    if demands is None:
        return
    if len(demands) != len(operands):
        raise ShapeError("layouts-match", f"{len(demands)} layouts are demanded of {len(operands)} operands")
    for number, (operand, demand) in enumerate(zip(operands, demands, strict=True)):
        if not operand.agrees(demand):
            raise ShapeError("layouts-match", f"operand {number} is {operand}, but its layout is that of {demand}")


def check_aliases(operands: Sequence[Shape], result: Shape, aliases: Sequence[OutputOperandAlias]) -> None:
    outputs = [alias.output_index for alias in aliases]
    if len(set(outputs)) != len(outputs):
        raise ShapeError("alias-once", f"an output has two aliases: {outputs}")
    for alias in aliases:
        output = result.part_at(alias.output_index)
        operand = operands[alias.operand].part_at(alias.operand_index) if alias.operand < len(operands) else None
        if output is None or operand is None or not output.is_array or not operand.is_array:
            place = f"output {list(alias.output_index)}, operand {alias.operand} at {list(alias.operand_index)}"
            raise ShapeError("alias-exists", f"there are no arrays at {place}")
        if not output.matches(operand):
            raise ShapeError("alias-type", f"output {output} cannot live in operand {operand}")
