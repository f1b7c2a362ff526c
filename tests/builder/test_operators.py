"""What `XlaOp` does in Python expressions, and what it refuses with an explanation."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy_runtime.errors import ArgumentError, ShapeError, XlaError


def parameters(element_type: str, *shapes: tuple[int, ...]) -> list[XlaOp]:
    builder = XlaBuilder("operators")
    return [builder.parameter(n, Shape.array(element_type, dims)) for n, dims in enumerate(shapes)]


@pytest.mark.parametrize(
    ("function", "opcode"),
    [
        (operator.add, "add"),
        (operator.sub, "subtract"),
        (operator.mul, "multiply"),
        (operator.truediv, "divide"),
        (operator.pow, "power"),
        (operator.and_, "and"),
        (operator.or_, "or"),
        (operator.xor, "xor"),
        (operator.lshift, "shift-left"),
        (operator.rshift, "shift-right-arithmetic"),
        (operator.lt, "compare"),
        (operator.le, "compare"),
        (operator.gt, "compare"),
        (operator.ge, "compare"),
        (operator.eq, "compare"),
        (operator.ne, "compare"),
        (operator.floordiv, "select"),
        (operator.mod, "select"),
    ],
)
def test_operators_of_two_operands(function: Callable[[Any, Any], XlaOp], opcode: str) -> None:
    x, y = parameters("s32", (3,), (3,))
    for lhs, rhs in ((x, y), (x, 2), (2, x), (x, np.arange(3, dtype=np.int32)), (np.arange(3, dtype=np.int32), x)):
        result = function(lhs, rhs)
        assert result.instruction.opcode == opcode
        assert result.shape.dims == (3,)


def test_operators_of_one_operand() -> None:
    (x,) = parameters("s32", (3,))
    assert [(-x).instruction.opcode, abs(x).instruction.opcode, (~x).instruction.opcode] == ["negate", "abs", "not"]
    assert +x is x


def test_comparisons_keep_their_direction() -> None:
    x, y = parameters("f32", (3,), (3,))
    found = [
        str(op.instruction.attributes["direction"]) for op in (x < y, x <= y, x > y, x >= y, x == y, x != y, x > 1)
    ]
    assert found == ["LT", "LE", "GT", "GE", "EQ", "NE", "GT"]


def test_unsigned_shift_fills_with_zeros() -> None:
    (x,) = parameters("u32", (3,))
    assert (x >> 1).instruction.opcode == "shift-right-logical"
    assert (x // 2).instruction.opcode == "divide"
    assert (x % 2).instruction.opcode == "remainder"


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        ((3,), (3,), ()),
        ((2, 3), (3,), (2,)),
        ((3,), (3, 4), (4,)),
        ((2, 3), (3, 4), (2, 4)),
        ((5, 2, 3), (5, 3, 4), (5, 2, 4)),
        ((5, 6, 2, 3), (5, 6, 3, 4), (5, 6, 2, 4)),
    ],
)
def test_matrix_multiplication(lhs: tuple[int, ...], rhs: tuple[int, ...], result: tuple[int, ...]) -> None:
    x, y = parameters("f32", lhs, rhs)
    assert (x @ y).shape.dims == result


def test_matrix_multiplication_by_an_array() -> None:
    (x,) = parameters("f32", (2, 3))
    assert (x @ np.ones((3, 4), np.float32)).shape.dims == (2, 4)
    assert (np.ones((4, 2), np.float32) @ x).shape.dims == (4, 3)


INDICES = [
    np.s_[0],
    np.s_[-1],
    np.s_[1, 2],
    np.s_[1, 2, 3],
    np.s_[:],
    np.s_[1:],
    np.s_[:, 1:2],
    np.s_[..., 0],
    np.s_[0, ...],
    np.s_[..., 1:3, 0],
    np.s_[::2, ::-1],
    np.s_[::-2],
    np.s_[3:1:-1],
    np.s_[1:1],
    np.s_[3:1],
    np.s_[1:3:-1],
    np.s_[100:],
    np.s_[None],
    np.s_[:, None, 0],
    np.s_[..., None],
    np.s_[()],
    np.s_[...],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_has_the_shape_of_numpy(index: Any) -> None:
    (x,) = parameters("f32", (4, 3, 5))
    assert x[index].shape.dims == np.zeros((4, 3, 5))[index].shape


@pytest.mark.parametrize("index", [np.s_[4], np.s_[-5], np.s_[0, 0, 0, 0], np.s_[..., ...]], ids=str)
def test_indexing_out_of_range(index: Any) -> None:
    (x,) = parameters("f32", (4, 3, 5))
    with pytest.raises(ShapeError, match=r"\[index\]"):
        x[index]


def test_whole_indexing_records_nothing() -> None:
    (x,) = parameters("f32", (4, 3))
    assert x[:, :] is x


def test_dimensions_of_open_size_are_taken_whole() -> None:
    x = ops.Parameter(XlaBuilder("open"), 0, Shape.array(np.float32, (UNBOUNDED, 3)))
    assert x[...] is x and x[:, 0:3] is x
    assert str(x[None].shape) == "f32[1,?,3]"
    assert str(ops.Collapse(x, (0, 1)).shape) == "f32[?]"
    for index in (np.s_[0], np.s_[-1], np.s_[1:], np.s_[:, 0]):
        with pytest.raises(ShapeError, match=r"the size of dimension 0 of f32\[\?,3\] is not known while recording"):
            x[index]


def test_tuples_unpack() -> None:
    x, y = parameters("f32", (2,), (3,))
    pair = ops.Tuple(x.builder, [x, y])
    first, second = pair
    assert (first.shape, second.shape) == (x.shape, y.shape)
    assert len(pair) == 2
    assert pair[-1].shape == y.shape
    with pytest.raises(ShapeError, match=r"\[GetTupleElement\.B1\]"):
        pair[2]


@pytest.mark.parametrize(
    ("misuse", "hint"),
    [
        (bool, "ops.Select"),
        (lambda x: x and x, "ops.Conditional"),
        (lambda x: 0 < x < 1, "ops.While"),
        (lambda x: x in [None], "ops.Select"),
        (list, "ops.While"),
        (len, "shape.dims"),
        (float, "compile"),
        (int, "compile"),
        (range, "compile"),
        (np.asarray, "compile"),
        (lambda x: x[x], "ops.DynamicSlice"),
        (lambda x: f"{x:.3f}", "compile"),
        (lambda x: operator.setitem(x, 0, 1), "ops.DynamicUpdateSlice"),
        (np.sign, "x.sign()"),
        (lambda x: np.maximum(x, 0), "ops.Max"),
        (np.add.reduce, "numpy.add"),
        (lambda x: np.add(x, x, out=np.zeros(())), "numpy.add"),
    ],
)
def test_misuse_is_explained(misuse: Callable[[XlaOp], Any], hint: str) -> None:
    (x,) = parameters("s32", ())
    if hint == "ops.DynamicSlice":
        x = ops.Broadcast(x, (3,))
    with pytest.raises(ArgumentError, match=re.escape(hint)) as caught:
        misuse(x)
    assert isinstance(caught.value, (XlaError, TypeError))
    assert "test_operators.py:" in str(caught.value)


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (slice(None, None, 0), "step cannot be zero"),
        (slice("a", None), "slice indices must be integers"),
        (slice(0.5), "slice indices must be integers"),
        (True, "mask"),
        (np.False_, "mask"),
        ((slice(None), True), "mask"),
    ],
    ids=str,
)
def test_what_is_no_index(index: Any, reason: str) -> None:
    (x,) = parameters("f32", (2, 3))
    with pytest.raises(ArgumentError, match=reason) as caught:
        x[index]
    assert "test_operators.py:" in str(caught.value)


def test_handles_are_keys() -> None:
    x, y = parameters("f32", (2,), (2,))
    assert {x: 1, y: 2}[y] == 2


def test_repr_says_what_it_is() -> None:
    (x,) = parameters("f32", (2,))
    assert repr(x * x) == "<XlaOp multiply: f32[2] = multiply(parameter, parameter)>"
