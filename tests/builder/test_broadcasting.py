"""Broadcasting: every rule, worked example and illegal case of the specification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.shape import Shape
from xlapy_runtime.errors import ShapeError


def operands(*shapes: Sequence[int]) -> list[XlaOp]:
    builder = XlaBuilder("broadcasting")
    return [builder.parameter(n, Shape.array(np.float32, dims)) for n, dims in enumerate(shapes)]


M, N, P, Q = 2, 3, 4, 5

LEGAL = [
    # rule or example, lhs, rhs, broadcast_dimensions, result
    ("R1", (), (2, 3), (), (2, 3)),
    ("R1", (2, 3), (), (), (2, 3)),
    ("R2", (), (), (), ()),
    ("BC.E6", (2, 3, 4), (3, 4), (1, 2), (2, 3, 4)),
    ("BC.E7", (M,), (M, N, P, Q), (0,), (M, N, P, Q)),
    ("BC.E7", (N,), (M, N, P, Q), (1,), (M, N, P, Q)),
    ("BC.E7", (P,), (M, N, P, Q), (2,), (M, N, P, Q)),
    ("BC.E7", (Q,), (M, N, P, Q), (3,), (M, N, P, Q)),
    ("BC.E8", (P, Q), (M, N, P, Q), (2, 3), (M, N, P, Q)),
    ("BC.E8", (N, P), (M, N, P, Q), (1, 2), (M, N, P, Q)),
    ("BC.E8", (M, Q), (M, N, P, Q), (0, 3), (M, N, P, Q)),
    ("BC.E9", (2, 1), (2, 3), (), (2, 3)),
    ("BC.E10", (1, 2, 5), (7, 2, 5), (), (7, 2, 5)),
    ("BC.E11", (7, 2, 5), (7, 1, 5), (), (7, 2, 5)),
    ("BC.E12", (2, 1), (1, 3), (), (2, 3)),
    ("BC.E13", (4,), (1, 2), (0,), (4, 2)),
    ("BC.E14", (1, 2), (4, 3, 1), (1, 2), (4, 3, 2)),
    ("R8", (3,), (1, 3), (1,), (1, 3)),
    ("R9", (2, 3), (3,), (1,), (2, 3)),
    ("R12", (0, 3), (1, 3), (), (0, 3)),
    ("R12", (1,), (0,), (), (0,)),
    ("R14", (1,), (4, 1), (1,), (4, 1)),
    ("R19", (2, 3), (2, 1), (0, 1), (2, 3)),
    ("R20", (), (2, 3), (), (2, 3)),
]


@pytest.mark.parametrize(("rule", "lhs", "rhs", "dimensions", "result"), LEGAL)
def test_legal(
    rule: str, lhs: Sequence[int], rhs: Sequence[int], dimensions: Sequence[int], result: Sequence[int]
) -> None:
    left, right = operands(lhs, rhs)
    assert ops.Add(left, right, dimensions).shape == Shape.array(np.float32, result)
    assert ops.Lt(left, right, dimensions).shape == Shape.array(np.bool_, result)
    if dimensions:
        assert ops.Sub(right, left, broadcast_dimensions=dimensions).shape.dims == tuple(result)


ILLEGAL = [
    # case, lhs, rhs, broadcast_dimensions, rule
    ("BC.X1", (2, 3), (3,), (), "R3"),
    ("BC.X2", (7, 2, 5), (7, 2, 6), (), "R10"),
    ("BC.X3", (P, N), (M, N, P, Q), (2, 1), "R6"),
    ("BC.X4", (P, N), (M, N, P, Q), (1, 2, 3), "R4"),
    ("BC.X5", (2, 3), (3,), (0,), "R7"),
    ("BC.X6", (2, 3), (3,), (2,), "R5"),
    ("BC.X7", (2, 3), (3,), (0, 1), "R4"),
    ("BC.X8", (2, 3, 4), (3, 4), (1, 1), "R6"),
    ("negative", (2, 3), (3,), (-1,), "R5"),
    ("0 against 2", (0, 3), (2, 3), (), "R10"),
    ("0 against 2, promoted", (0,), (2, 3), (0,), "R7"),
    ("not the identity", (2, 2), (2, 2), (1, 0), "R19"),
    ("a scalar", (), (2, 3), (0,), "R20"),
    ("two scalars", (), (), (0,), "R20"),
]


@pytest.mark.parametrize(("case", "lhs", "rhs", "dimensions", "rule"), ILLEGAL)
def test_illegal(case: str, lhs: Sequence[int], rhs: Sequence[int], dimensions: Sequence[int], rule: str) -> None:
    left, right = operands(lhs, rhs)
    for first, second in ((left, right), (right, left)):
        with pytest.raises(ShapeError) as caught:
            ops.Add(first, second, dimensions)
        assert caught.value.rule == f"Broadcasting.{rule}"
        with pytest.raises(ShapeError, match=rf"\[Broadcasting\.{rule}\]"):
            ops.Eq(first, second, dimensions)


def test_the_error_of_a_missing_promotion_suggests_dimensions() -> None:
    left, right = operands((3, 5), (5,))
    with pytest.raises(ShapeError, match=r"for example \[1\]"):
        ops.Add(left, right)


def test_a_stretched_dimension_is_dropped_first() -> None:
    left, right = operands((4, 3, 1), (1, 2))
    total = ops.Add(left, right, (1, 2)).instruction
    for side, dropped, dimensions in ((0, (4, 3), (0, 1)), (1, (2,), (2,))):
        broadcast = total.operands[side]
        assert (broadcast.opcode, broadcast.attributes["dimensions"]) == ("broadcast", dimensions)
        assert (broadcast.operands[0].opcode, broadcast.operands[0].shape.dims) == ("reshape", dropped)


def test_the_two_steps_of_a_composition() -> None:
    """The vector of BC.E13 is promoted to [4,2], the matrix expanded along dimension 0."""
    vector, matrix = operands((4,), (1, 2))
    total = ops.Add(vector, matrix, (0,)).instruction
    assert [operand.shape.dims for operand in total.operands] == [(4, 2), (4, 2)]
    assert total.operands[0].operands[0] is vector.instruction
    assert total.operands[0].attributes["dimensions"] == (0,)


def test_equal_shapes_are_left_alone() -> None:
    left, right = operands((2, 3), (2, 3))
    total = ops.Add(left, right)
    assert total.instruction.operands == (left.instruction, right.instruction)


def test_a_bounded_dimension_stays_bounded() -> None:
    builder = XlaBuilder("bounded")
    vector = builder.parameter(0, Shape.array(np.float32, (3,), dynamic=(True,)))
    matrix = builder.parameter(1, Shape.array(np.float32, (2, 3)))
    assert str(ops.Add(vector, matrix, (1,)).shape) == "f32[2,<=3]"
    assert str(ops.Mul(vector, 2).shape) == "f32[<=3]"


def test_none_means_no_dimensions() -> None:
    left, right = operands((2, 3), (2, 3))
    assert ops.Add(left, right, None).shape.dims == (2, 3)


def test_clamp_and_select_do_not_broadcast() -> None:
    """R17: only the forms of their own are accepted."""
    matrix, row = operands((2, 3), (1, 3))
    with pytest.raises(ShapeError, match=r"\[Clamp\.B2\]"):
        ops.Clamp(row, matrix, 1.0)
    with pytest.raises(ShapeError, match=r"\[Select\.B1\]"):
        ops.Select(matrix > 0, matrix, row)


def test_broadcast_in_dim_places_dimensions() -> None:
    """R22: the explicit form."""
    (vector,) = operands((3,))
    assert ops.BroadcastInDim(vector, (3, 2), (0,)).shape.dims == (3, 2)
    assert ops.BroadcastInDim(vector, (2, 3, 4), (1,)).instruction.attributes["dimensions"] == (1,)
    assert ops.Broadcast(vector, (2, 4)).shape.dims == (2, 4, 3)
