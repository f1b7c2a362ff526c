"""What users may pass for windows and paddings."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy_runtime.errors import ArgumentError, ShapeError, UnsupportedError


def parameters(*shapes: tuple[int, ...]) -> list[XlaOp]:
    builder = XlaBuilder("windows")
    return [builder.parameter(number, Shape.array(np.float32, dims)) for number, dims in enumerate(shapes)]


class PaddingType(enum.Enum):
    VALID = 1
    SAME = 2


@pytest.mark.parametrize("padding", ["SAME", "same", "kSame", ops.Padding.SAME, ops.Padding.kSame, PaddingType.SAME])
def test_spellings_of_same(padding: Any) -> None:
    (x,) = parameters((6,))
    pooled = ops.ReduceWindow(x, 0, ops.Add, [3], [2], padding)
    assert pooled.shape.dims == (3,)
    assert "pad=0_1" in x.builder.build(pooled).as_hlo_text()


@pytest.mark.parametrize("padding", ["VALID", "kValid", ops.Padding.kValid, PaddingType.VALID, [(0, 0)], ((0, 0),)])
def test_spellings_of_valid(padding: Any) -> None:
    (x,) = parameters((6,))
    assert ops.ReduceWindow(x, 0, ops.Add, [3], [2], padding).shape.dims == (2,)


@pytest.mark.parametrize("padding", ["full", 3, [1], [(0, "x")], PaddingType])
def test_paddings_that_are_none(padding: Any) -> None:
    (x,) = parameters((6,))
    with pytest.raises((ArgumentError, ShapeError)):
        ops.ReduceWindow(x, 0, ops.Add, [3], [2], padding)


def test_same_padding_needs_a_size() -> None:
    builder = XlaBuilder("unknown")
    x = builder.parameter(0, Shape.array(np.float32, (UNBOUNDED,)))
    with pytest.raises(UnsupportedError, match="unknown size"):
        ops.ReduceWindow(x, 0, ops.Add, [3], [2], "SAME")
    assert ops.ReduceWindow(x, 0, ops.Add, [3], [2]).shape.dims == (UNBOUNDED,)


def test_scalars_take_the_type_of_the_operand() -> None:
    builder = XlaBuilder("weak")
    x = builder.parameter(0, Shape.array("bf16", (4,)))
    assert str(ops.ReduceWindow(x, 0, ops.Add, [2]).shape) == "bf16[3]"
    scattered = ops.SelectAndScatter(x, ops.Ge, [2], [2], "VALID", np.ones(2, x.shape.type.dtype), 0, ops.Add)
    assert str(scattered.shape) == "bf16[4]"
