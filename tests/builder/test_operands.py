"""Operands: Python scalars are weak, numpy values keep their dtype, constants become what they are."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.element_types import ALL, ElementType, element_type_of
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy_runtime.errors import ShapeError


def parameter(element_type: Any, *dims: int) -> XlaOp:
    return XlaBuilder("operands").parameter(0, Shape.array(element_type, dims))


REPRESENTABLE = [
    ("f32", 2),
    ("f32", 0.1),
    ("f32", 2**40),
    ("f32", 2**40 + 1),
    ("f32", float("inf")),
    ("f32", float("nan")),
    ("f32", True),
    ("f16", 65504),
    ("bf16", 1e38),
    ("f8e4m3fn", 448.0),
    ("f8e8m0fnu", 2.0),
    ("s8", -128),
    ("s8", 127.0),
    ("s4", 7),
    ("uint64", 2**64 - 1),
    ("s32", True),
    ("pred", True),
    ("c64", 1),
    ("c64", 0.5),
    ("c64", 1 + 2j),
]


@pytest.mark.parametrize(("element_type", "value"), REPRESENTABLE)
def test_a_python_scalar_takes_the_other_type(element_type: str, value: Any) -> None:
    x = parameter(element_type, 3)
    assert ops.Eq(x, value).instruction.operands[1].shape == x.shape
    assert ops.Eq(value, x).instruction.operands[0].shape == x.shape


NOT_REPRESENTABLE = [
    ("s8", 300),
    ("s8", -129),
    ("s32", 0.5),
    ("s32", float("inf")),
    ("s32", float("nan")),
    ("s32", 2**31),
    ("uint32", -1),
    ("s4", 8),
    ("pred", 1),
    ("pred", 1.0),
    ("f32", 1e39),
    ("f32", 10**400),
    ("f16", 65536),
    ("f8e4m3fn", 1000.0),
    ("f8e4m3fn", float("inf")),
    ("f4e2m1fn", float("nan")),
    ("f8e8m0fnu", -1.0),
    ("f32", 1j),
    ("s32", 1j),
    ("c64", 1e39),
]


@pytest.mark.parametrize(("element_type", "value"), NOT_REPRESENTABLE)
def test_what_the_other_type_cannot_represent_is_an_error(element_type: str, value: Any) -> None:
    with pytest.raises(ShapeError, match="cannot represent the Python scalar") as caught:
        ops.Eq(parameter(element_type, 3), value)
    assert caught.value.rule == "weak-scalar"


@pytest.mark.parametrize(
    ("element_type", "value", "told"),
    [
        ("uint8", 256, "np.int32(...)"),
        ("s32", 2.5, "np.float32(...)"),
        ("s32", 2**31, "np.int64(...)"),
        ("s64", 2**63, "np.uint64(...)"),
        ("f32", 1e300, "np.float64(...)"),
        ("f32", 10**40, "np.float64(...)"),
        ("f32", 1j, "np.complex64(...)"),
        ("c64", 1e300j, "np.complex128(...)"),
        ("f64", 10**400, None),
    ],
)
def test_a_type_that_has_the_value_is_named(element_type: str, value: Any, told: str | None) -> None:
    with pytest.raises(ShapeError, match="cannot represent the Python scalar") as caught:
        ops.Eq(parameter(element_type, 3), value)
    found = re.search(r"such as (.*), and convert", caught.value.message)
    assert (found and found[1]) == told


@pytest.mark.parametrize(
    ("value", "element_type"), [(True, "pred"), (1, "s32"), (1.0, "f32"), (1j, "c64"), (np.float64(1), "f64")]
)
def test_alone_a_python_scalar_has_a_type_of_its_own(value: Any, element_type: str) -> None:
    builder = XlaBuilder("alone")
    assert ops.Constant(builder, value).shape == Shape.scalar(element_type)
    assert ops.ConstantLiteral(builder, value).shape == Shape.scalar(element_type)


def test_alone_an_integer_must_fit_in_s32() -> None:
    with pytest.raises(ShapeError, match="s32 cannot represent"):
        ops.Constant(XlaBuilder("alone"), 2**31)


def test_numpy_values_are_not_weak() -> None:
    x = parameter("f32", 2)
    with pytest.raises(ShapeError, match="different element types"):
        x * np.float64(2)
    with pytest.raises(ShapeError, match="different element types"):
        np.ones(2) + x
    assert (np.float32(2) * x).shape == x.shape
    assert (np.ones(2, np.float32) - x).instruction.opcode == "subtract"


def test_weak_scalars_among_themselves_take_the_widest_kind() -> None:
    p = parameter("pred", 4)
    assert ops.Select(p, 1, 2.5).shape == Shape.array("f32", (4,))
    assert ops.Select(p, 1, True).shape == Shape.array("s32", (4,))


@pytest.mark.parametrize("element_type", ALL, ids=lambda t: t.name)
def test_constants_of_every_type(element_type: ElementType) -> None:
    array = np.array([0, 1], element_type.dtype)
    op = XlaBuilder("constants").constant(array)
    assert op.shape == Shape.array(element_type, (2,))
    assert op.instruction.attributes["literal"] == Literal(array)


def test_a_constant_of_one_value_is_a_broadcast_scalar() -> None:
    op = XlaBuilder("constants").constant(np.full((1000, 1000), -0.0, np.float32))
    assert (op.instruction.opcode, op.shape.dims) == ("broadcast", (1000, 1000))
    assert op.instruction.operands[0].attributes["literal"] == Literal(np.float32(-0.0))


def test_a_constant_does_not_follow_its_array() -> None:
    array = np.array([1.0, 2.0])
    view = array[:]
    view.flags.writeable = False
    first, second = XlaBuilder("a").constant(array), XlaBuilder("b").constant(view)
    array[0] = 5
    for op in (first, second):
        assert op.instruction.attributes["literal"].array[0] == 1


def test_constants_in_any_order_of_bytes_and_elements() -> None:
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    literal = XlaBuilder("constants").constant(array).instruction.attributes["literal"]
    np.testing.assert_array_equal(literal.array, array)
    assert literal.shape == Shape.array("s32", (3, 2))


def test_tuple_constants() -> None:
    builder = XlaBuilder("constants")
    assert str(builder.constant((1, (2.0, np.zeros(2)))).shape) == "(s32[], (f32[], f64[2]))"
    assert str(builder.constant(Literal((np.float32(1), np.int8(2)))).shape) == "(f32[], s8[])"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (np.float32, "f32"),
        ("float32", "f32"),
        ("f32", "f32"),
        (np.dtype("int8"), "s8"),
        ("s8", "s8"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        (ml_dtypes.bfloat16, "bf16"),
        ("u16", "u16"),
        ("pred", "pred"),
        (bool, "pred"),
        ("c64", "c64"),
        (element_type_of("f8e5m2"), "f8e5m2"),
    ],
)
def test_spellings_of_element_types(given: Any, name: str) -> None:
    assert element_type_of(given).name == name
    assert ops.ConvertElementType(parameter("f32", 2), given).shape.type.name == name


@pytest.mark.parametrize("name", ["u2", "u4", "u8"])
def test_a_name_with_two_meanings_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match="to HLO and"):
        element_type_of(name)
