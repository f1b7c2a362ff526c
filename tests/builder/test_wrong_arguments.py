"""Whatever an op function is given, it records an instruction or raises an XlaError that shows the user's line."""

from __future__ import annotations

import inspect
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder
from xlapy.builder.registry import FUNCTIONS
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import TOKEN, Shape
from xlapy.hlo.text import to_text
from xlapy_runtime.errors import ArgumentError, XlaError

ATTEMPTS = 60  # per function


def candidates(builder: XlaBuilder) -> tuple[list[Any], list[Any]]:
    """Handles, and things of which most are no operand."""
    shapes = (
        Shape.array("f32", (2, 3)),
        Shape.scalar("s32"),
        Shape.scalar("pred"),
        Shape.array("f32", (3,)),
        Shape.array("f32", (2, 3), (True, False)),
    )
    handles = [builder.parameter(number, shape) for number, shape in enumerate(shapes)]
    matrix, scalar = handles[0], handles[1]
    handles += [ops.Tuple(builder, [matrix, scalar]), ops.CreateToken(builder)]
    lists: list[Any] = [[], [0], [1, 0], [0.0], [None], [[0], [0]], [(1, 1)], (((1,), (0,)), ((), ()))]
    lists += [[matrix], (matrix, matrix), [scalar, scalar], [ops.Neg]]
    scalars = [1, -1, True, 1.5, 2**70, float("nan"), 1j, "x", b"abc", None]
    kinds = [np.float32, np.ones(3, np.float32), object(), {}, ops.ChannelHandle(1), builder, *shapes, Shape.tuple([])]
    arrays = [np.array(3), np.array("abc"), np.zeros(0), np.zeros((2, 3)), np.datetime64("2020"), b"\xff"]
    arrays += [10**400, 10**5000, [10**5000]]
    kinds += [TOKEN, ops.ChannelType.DEVICE_TO_HOST, range(3)]
    return handles, [*lists, *scalars, *arrays, *kinds, ops.Add, ops.Neg, lambda x: x]


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_only_our_own_errors(name: str) -> None:
    function = FUNCTIONS[name]
    """Which leave the builder as it was: all attempts are at one."""
    choose = random.Random(name)
    builder = XlaBuilder("wrong")
    handles, others = candidates(builder)
    for _ in range(ATTEMPTS):
        arguments: list[Any] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                arguments += [choose.choice(handles + others) for _ in range(choose.choice([0, 2, 4]))]
            elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                if parameter.default is not parameter.empty and choose.random() < 0.6:
                    break
                likely = [builder] if parameter.name == "builder" else handles
                arguments.append(choose.choice(likely if choose.random() < 0.5 else others))
        try:
            function(*arguments)
        except XlaError as error:
            assert "test_wrong_arguments.py:" in str(error)
    recorded = handles[0].instruction.parent
    recorded.set_root(handles[0].instruction)
    assert to_text(HloModule("recorded", recorded))


@pytest.mark.parametrize("config", [1, None, ["x"], (), np.float32, np.arange(3), object()], ids=lambda x: str(type(x)))
def test_configurations_are_text(config: Any) -> None:
    builder = XlaBuilder("wrong")
    x = ops.Parameter(builder, 0, Shape.array("f32", (2,)))
    with pytest.raises(
        ArgumentError, match=r"^InfeedWithToken: config must be a string, got .*\n.*test_wrong_arguments.py:"
    ):
        ops.Infeed(builder, x.shape, config)
    with pytest.raises(ArgumentError, match=r"^OutfeedWithToken: outfeed_config must be a string, got "):
        ops.Outfeed(x, None, config)
    assert len(x.instruction.parent) == 2  # and the token


def test_reversals_are_truth_values() -> None:
    builder = XlaBuilder("wrong")
    x, kernel = (ops.Parameter(builder, n, Shape.array("f32", (1, 1, 5))) for n in range(2))
    for reversal in (2**70, 1, "x", [None], ["x"], [2**70], [[1]]):
        with pytest.raises(ArgumentError, match="window_reversal must"):
            ops.ConvGeneralDilated(x, kernel, [1], [(0, 0)], window_reversal=reversal)
    for reversal in ([True], (1,), np.array([True]), [np.True_]):
        window = ops.ConvGeneralDilated(x, kernel, [1], [(0, 0)], window_reversal=reversal).instruction
        assert window.attributes["window"].dimensions[0].reversal


def test_only_a_transfer_is_waited_for() -> None:
    builder = XlaBuilder("wrong")
    gathered = ops.AllReduce(
        ops.Parameter(builder, 0, Shape.array("f32", (2,))), ops.Add, channel_id=ops.ChannelHandle(1)
    )
    for wait in (ops.SendDone, ops.RecvDone):
        with pytest.raises(XlaError, match="is not what Send or Recv returned"):
            wait(gathered)


def test_numbers_of_numpy_are_numbers() -> None:
    builder = XlaBuilder("right")
    x = ops.Parameter(builder, 0, Shape.array("f32", (2, 3)))
    scale = ops.Parameter(builder, 1, Shape.array("f32", (3,)))
    normal = ops.BatchNormInference(x, scale, scale, scale, scale, ml_dtypes.bfloat16(0.5), np.array(1))
    assert normal.instruction.attributes["epsilon"] == 0.5
    assert ops.Broadcast(x, np.array(4)).shape == Shape.array("f32", (4, 2, 3))


@pytest.mark.parametrize(
    "record",
    [
        lambda x, number: ops.Broadcast(x, [number]),
        lambda x, number: ops.Transpose(x, [0, number]),
        lambda x, number: ops.Slice(x, [0, 0], [2, 3], [1, number]),
        lambda x, number: x[number],
        lambda x, number: Shape.array("f32", (2, number)),
    ],
)
@pytest.mark.parametrize("number", [10**5000, -(10**5000), 1 << 64], ids=["huge", "negative", "65 bits"])
def test_numbers_of_more_than_64_bits_are_refused(record: Any, number: int) -> None:
    x = ops.Parameter(XlaBuilder("wrong"), 0, Shape.array("f32", (2, 3)))
    with pytest.raises(XlaError, match="64 bits"):
        record(x, number)
