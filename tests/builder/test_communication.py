"""Effects: tokens, the order of operations without tokens, channels, collectives."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import TOKEN, Shape

SCALAR = Shape.scalar(np.float32)
VECTOR = Shape.array(np.float32, (4,))


def started() -> tuple[XlaBuilder, XlaOp]:
    builder = XlaBuilder("effects")
    return builder, builder.parameter(0, VECTOR)


def order_of_effects(builder: XlaBuilder, root: XlaOp) -> list[str]:
    """The effects of what is built, each of which must run behind the one before."""
    effects = [instruction for instruction in builder.build(root).computation if instruction.has_effect]
    for before, after in itertools.pairwise(effects):
        assert depends_on(after, before)
    return [effect.opcode for effect in effects]


def depends_on(instruction: Instruction, other: Instruction) -> bool:
    pending = [instruction]
    while pending:
        current = pending.pop()
        if current is other:
            return True
        pending += [*current.operands, *current.control_predecessors]
    return False


def test_infeed_and_outfeed_with_tokens() -> None:
    builder, x = started()
    token = ops.CreateToken(builder)
    data, token = ops.InfeedWithToken(token, VECTOR, "config")
    assert (data.shape, token.shape) == (VECTOR, TOKEN)
    assert ops.OutfeedWithToken(x + data, token, VECTOR, "config").shape is TOKEN


def test_without_tokens_the_order_is_that_of_recording() -> None:
    builder, x = started()
    first = ops.Infeed(builder, VECTOR)
    assert ops.Outfeed(x + first).shape == Shape.tuple([])
    second = builder.infeed(SCALAR)
    assert ops.Send(x, ops.ChannelHandle(1)).shape == Shape.tuple([])
    received = ops.Recv(builder, VECTOR, ops.ChannelHandle(2))
    assert (first.shape, second.shape, received.shape) == (VECTOR, SCALAR, VECTOR)
    found = order_of_effects(builder, x)
    assert found == ["infeed", "outfeed", "infeed", "send", "send-done", "recv", "recv-done"]


def test_the_order_reaches_around_control_flow() -> None:
    builder, x = started()

    def body(v: XlaOp) -> XlaOp:
        return v + ops.Infeed(v.builder, VECTOR)

    ops.Outfeed(x)
    ops.While(lambda v: v[0] < 1, body, x)
    ops.While(lambda v: v[0] < 1, lambda v: v + 1, x)
    ops.While(lambda v: v[0] < 1, body, x)
    ops.Infeed(builder, VECTOR)
    assert order_of_effects(builder, x) == ["outfeed", "while", "while", "infeed"]


def test_an_empty_infeed_reads_nothing() -> None:
    builder, x = started()
    assert ops.Infeed(builder, Shape.tuple([])).shape == Shape.tuple([])
    assert not order_of_effects(builder, x)


def test_send_and_recv_with_tokens() -> None:
    builder, x = started()
    handle = SimpleNamespace(handle=3, type=1)
    token = ops.SendWithToken(x, ops.CreateToken(builder), handle)
    received = ops.RecvWithToken(token, VECTOR, ops.ChannelHandle(4))
    data, token = received
    assert (data.shape, token.shape) == (VECTOR, TOKEN)
    token = ops.SendToHost(data, token, VECTOR, 5)
    host = ops.RecvFromHost(token, SCALAR, 6)
    assert host.shape == Shape.tuple([SCALAR, TOKEN])
    assert host.instruction.attributes == {"channel_id": 6, "is_host_transfer": True}
    assert received.instruction.attributes == {"channel_id": 4, "is_host_transfer": False}


def test_send_and_recv_in_two_steps() -> None:
    """A channel id begins a transfer; the context is for the done op."""
    builder, x = started()
    sent, arriving = ops.Send(x, 1), ops.Recv(builder, VECTOR, 2)
    assert str(sent.shape) == "(f32[4], u32[], token[])"
    assert ops.SendDone(sent).shape is TOKEN
    assert ops.RecvDone(arriving).shape == VECTOR
    assert order_of_effects(builder, x) == ["send", "recv", "send-done", "recv-done"]


def test_all_reduce_of_an_array_a_tuple_and_a_list() -> None:
    builder, x = started()
    y = ops.Neg(x)
    assert ops.AllReduce(x, ops.Add).shape == VECTOR
    assert ops.AllReduce(ops.Tuple(builder, [x, y]), ops.Add).shape == Shape.tuple([VECTOR, VECTOR])
    assert ops.AllReduce([x, y], ops.Max, [[0, 1]]).shape == Shape.tuple([VECTOR, VECTOR])
    assert ops.AllReduce(ops.Tuple(builder, [x]), ops.Add).shape == Shape.tuple([VECTOR])
    started_op = ops.AllReduceStart([x, y], ops.Add, channel_id=1, use_global_device_ids=True)
    assert ops.AllReduceDone(started_op).shape == Shape.tuple([VECTOR, VECTOR])


def test_replica_groups_in_their_spellings() -> None:
    _, x = started()
    expected = ((0, 2), (1, 3))
    for groups in ([[0, 2], [1, 3]], [SimpleNamespace(replica_ids=[0, 2]), SimpleNamespace(replica_ids=[1, 3])]):
        assert ops.AllReduce(x, ops.Add, groups).instruction.attributes["replica_groups"].groups == expected
    assert ops.AllReduce(x, ops.Add).instruction.attributes["replica_groups"].groups == ()


def test_cross_replica_sum_takes_the_group_of_each_replica() -> None:
    """CrossReplicaSum.E3."""
    _, x = started()
    summed = ops.CrossReplicaSum(x, [0, 1, 2, 3, 0, 1, 2, 3])
    assert summed.instruction.attributes["replica_groups"].groups == ((0, 4), (1, 5), (2, 6), (3, 7))
    for rows in ([[0, 1]], np.array([[0, 1]])):
        assert ops.CrossReplicaSum(x, rows).instruction.attributes["replica_groups"].groups == ((0, 1),)


def test_process_ids() -> None:
    builder, _ = started()
    assert ops.ReplicaId(builder).shape == builder.partition_id().shape == Shape.scalar("uint32")


def test_a_dynamic_size_is_marked() -> None:
    _, x = started()
    assert str(ops.SetDimensionSize(x, 2, 0).shape) == "f32[<=4]"
    assert ops.GetDimensionSize(x, 0).shape == Shape.scalar("s32")
