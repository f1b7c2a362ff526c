"""Scripts of 2017 to 2020, with the objects of that time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlapy import xla_client

F32 = xla_client.Shape.array_shape(np.dtype(np.float32), (2, 3))


def test_a_computation_compiles_itself() -> None:
    c = xla_client.ComputationBuilder("double")
    x = c.ParameterWithShape(F32, name=None)
    assert c.GetShape(x).dimensions() == (2, 3)
    c.ConvertElementType(c.Add(x, x), xla_client.PrimitiveType.S32)
    computation = c.Build()
    assert computation.GetReturnValueShape() == xla_client.Shape.array_shape(np.dtype(np.int32), (2, 3))
    assert "s32[2,3]" in computation.GetHloText()
    executable = computation.Compile()
    (doubled,) = executable.Execute([np.full((2, 3), 1.5, np.float32)])
    assert (np.asarray(doubled) == 3).all()
    assert executable.DeviceOrdinals() == [0]


def test_backends_take_the_computation_too() -> None:
    c = xla_client.ComputationBuilder("sum")
    add = xla_client.ComputationBuilder("add")
    add.Add(add.ParameterFromNumpy(np.float32(0)), add.ParameterFromNumpy(np.float32(0)))
    c.Reduce(c.ParameterWithShape(F32), c.ConstantF32Scalar(0), add.Build(), [0, 1])
    backend = xla_client.get_local_backend()
    executable = backend.compile(c.Build())
    (total,) = xla_client.execute_with_python_values(executable, [np.ones((2, 3), np.float32)], backend)
    assert total == 6


def test_objects_of_this_package_are_taken_everywhere() -> None:
    c = xla_client.ComputationBuilder("objects")
    x = c.ParameterWithShape(F32)
    assert c.GetShape(c.BroadcastedIota(xla_client.PrimitiveType.S32, (4,), 0)).dimensions() == (4,)
    assert c.GetShape(c.CustomCall(b"f", (x,), F32, (F32,))).dimensions() == (2, 3)
    assert c.GetShape(c.Infeed(F32)).dimensions() == (2, 3)
    padding = xla_client.make_padding_config([(1, 1, 0), (0, 0, 0)])
    assert c.GetShape(c.Pad(x, c.ConstantF32Scalar(0), padding)).dimensions() == (4, 3)
    seven = c.ConstantS32Scalar(7)
    assert np.asarray(c.BuildConstantSubGraph(seven).Compile().Execute()[0]) == 7


@pytest.mark.parametrize(
    "arguments",
    [
        lambda choose, x, f: {"predicate": choose, "true_operand": x, "true_computation": f, "false_operand": x,
                              "false_computation": f},
        lambda choose, x, f: {"branch_index": choose, "branch_computations": [f, f], "branch_operands": [x, x]},
    ],
    ids=["two-way", "by index"],
)  # fmt: skip
def test_conditional_takes_the_old_names(arguments: Callable[..., dict[str, Any]]) -> None:
    inner = xla_client.XlaBuilder("negate")
    xla_client.ops.Neg(xla_client.ops.Parameter(inner, 0, F32))
    builder = xla_client.XlaBuilder("choose")
    is_index = "branch_index" in arguments(None, None, None)
    choose = xla_client.ops.Constant(builder, np.int32(1) if is_index else np.bool_(True))
    x = xla_client.ops.Parameter(builder, 0, F32)
    chosen = xla_client.ops.Conditional(**arguments(choose, x, inner.build()))
    assert builder.get_shape(chosen) == F32
