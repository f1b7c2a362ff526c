"""What reaches outside the computation: infeed, outfeed, send, recv, collectives, process ids, custom calls."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import CustomCallApiVersion, OutputOperandAlias, ReplicaGroups
from xlapy.hlo.element_types import U32
from xlapy.hlo.ops.reductions import check_reduction
from xlapy.hlo.ops.spec import PURE, Regions, ResultShape, Trait, Variadic, op
from xlapy.hlo.shape import TOKEN, Shape, Signature
from xlapy.support.errors import ShapeError

EFFECT = Trait.EFFECT | Trait.RUNTIME
ALL_PROCESSES = ReplicaGroups()


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


@op("send-done", traits=EFFECT | Trait.DONE)
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


@op("recv-done", traits=EFFECT | Trait.DONE)
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


@op("replica-id", traits=PURE | Trait.RUNTIME)
def replica_id() -> Shape:
    """The replica that this process is, as u32."""
    return Shape.scalar(U32)


@op("partition-id", traits=PURE | Trait.RUNTIME)
def partition_id() -> Shape:
    """The partition that this process is, as u32."""
    return Shape.scalar(U32)


def _operand_shape(operands: Sequence[Shape]) -> Shape:
    return operands[0] if len(operands) == 1 else Shape.tuple([*operands])


@op(
    "all-reduce",
    traits=EFFECT | Trait.COLLECTIVE | Trait.ASYNC,
    hlo_text={"computation": "to_apply"},
)
def all_reduce(
    operands: Variadic,
    *,
    computation: Signature,
    replica_groups: ReplicaGroups = ALL_PROCESSES,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    constrain_layout: bool = False,
) -> Shape:
    """Reduces each operand over the processes of a group, element by element.

    some-operands [B3]: there is at least one operand.
    array-operands: the operands are arrays.
    unique-ids [B1 C1]: no process is in two groups.
    global-ids [C4]: global device ids need a channel.
    computation-type [C5]: the computation has type (T, T) -> T for each element type T.
    """
    if not operands:
        raise ShapeError("some-operands", "nothing to reduce")
    for shape in operands:
        if not shape.is_array:
            raise ShapeError("array-operands", f"{shape} is not an array")
        check_reduction((shape.with_dims(()),), computation)
    check_groups(replica_groups)
    if use_global_device_ids and not channel_id:
        raise ShapeError("global-ids", "use_global_device_ids needs a channel_id")
    return _operand_shape([shape.without_layout() for shape in operands])


def check_groups(replica_groups: ReplicaGroups) -> None:
    """Raises unless every process id is in one group at most and none is negative (-1 fills up short groups)."""
    ids = [process for group in replica_groups.groups for process in group if process != -1]
    if len(set(ids)) != len(ids) or any(process < 0 for process in ids):
        raise ShapeError("unique-ids", f"replica groups {replica_groups.groups} list a process twice or a negative one")


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
    """Calls an external function by name. The op has no rules of its own: the target checks what it gets."""
    return result.without_layout()
