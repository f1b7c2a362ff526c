"""Sub-computations: built ones, and Python functions recorded with a builder of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.shape import Shape
from xlapy_runtime.errors import ArgumentError, ShapeError

SCALAR = Shape.scalar(np.float32)
VECTOR = Shape.array(np.float32, (4,))


def vector() -> XlaOp:
    return XlaBuilder("outer").parameter(0, VECTOR)


def test_an_op_function_is_a_reduction() -> None:
    total = vector().reduce(0, ops.Add, (0,))
    (called,) = total.instruction.called
    assert (called.name, str(called.signature)) == ("Add", "(f32[], f32[]) -> f32[]")


def test_a_loop_over_one_value() -> None:
    x = vector()
    loop = ops.While(lambda v: ops.ReduceAll(v, 0, ops.Max) < 1, lambda v: v * 2, x)
    assert loop.shape == VECTOR


def test_a_loop_over_a_structure_given_whole() -> None:
    x = vector()

    def condition(state: Any) -> XlaOp:
        i, _ = state
        return i < 3

    def body(state: Any) -> Any:
        i, values = state
        assert isinstance(state, tuple)
        assert isinstance(values, list)
        return i + 1, [values[0] * 2, values[1]]

    loop = ops.While(condition, body, (0, [x, np.ones(2)]))
    assert str(loop.shape) == "(s32[], (f32[4], f64[2]))"
    i, (first, second) = loop
    assert (i.shape.type.name, first.shape, second.shape.dims) == ("s32", VECTOR, (2,))


def test_a_loop_over_a_structure_spread() -> None:
    loop = ops.While(lambda i, v: i < 3, lambda i, v: (i + 1, v), (0, vector()))
    assert str(loop.shape) == "(s32[], f32[4])"


def test_scalars_that_a_body_returns_take_the_type_of_the_state() -> None:
    loop = ops.While(lambda i, v: i < 3, lambda i, v: (7, v), (np.int8(0), vector()))
    assert str(loop.shape) == "(s8[], f32[4])"


def test_a_loop_over_a_tuple_gives_the_functions_the_tuple() -> None:
    x = vector()
    init = ops.Tuple(x.builder, [0, x])
    loop = ops.While(lambda t: t[0] < 3, lambda t: (t[0] + 1, t[1] * 2), init)
    assert loop.shape == init.shape


def test_operands_of_branches_may_be_structures() -> None:
    x = vector()
    result = ops.Conditional(x[0] > 0, (x, 2.0), lambda a, b: a * b, [x], lambda state: state[0])
    assert result.shape == VECTOR


def test_captures_are_refused() -> None:
    x = vector()
    for call in (
        lambda: ops.While(lambda i: i < 3, lambda i: i + x, 0 * x[0]),
        lambda: ops.Map(x.builder, [x], lambda v: v * x[0]),
        lambda: ops.Conditional(x[0] > 0, x, lambda v: x, x, ops.Neg),
        lambda: x.reduce(0, lambda a, b: a + x[0], (0,)),
    ):
        with pytest.raises(ArgumentError, match="pass the value through the operands") as caught:
            call()
        assert "enclosing computation 'outer'" in str(caught.value)
        assert "lambda" in caught.value.where


def test_a_value_of_a_body_is_not_a_value_outside() -> None:
    x = vector()
    leaked: list[XlaOp] = []

    def body(v: XlaOp) -> XlaOp:
        leaked.append(v)
        return v

    ops.Call(x.builder, body, [x])
    with pytest.raises(ArgumentError, match="belongs to the builder 'body'"):
        x + leaked[0]


def test_an_error_in_a_body_names_the_line_in_the_body() -> None:
    def body(v: XlaOp) -> XlaOp:
        return ops.Transpose(v, (1, 0))

    with pytest.raises(ShapeError) as caught:
        ops.Call(vector().builder, body, [np.arange(4.0)])
    assert caught.value.where.endswith("return ops.Transpose(v, (1, 0))")


def test_a_body_that_changes_the_type_of_the_state() -> None:
    with pytest.raises(ShapeError, match=r"\[While\.B1\]"):
        ops.While(lambda v: v[0] < 1, lambda v: v[:2], vector())


def test_nested_functions_record_nested_computations() -> None:
    x = vector()
    outer = x.builder.build(
        ops.Call(x.builder, lambda v: ops.Map(v.builder, [v], lambda s: s * s).reduce(0, ops.Add, (0,)), [x])
    )
    assert [computation.name for computation in outer.module.computations()] == ["mapped", "Add", "called", "outer"]


def test_effects_in_sub_computations_keep_their_callers_alive() -> None:
    x = vector()

    def body(v: XlaOp) -> XlaOp:
        ops.Outfeed(v)
        return v

    ops.Call(x.builder, body, [x])
    computation = x.builder.build(ops.Neg(x)).computation
    assert [instruction.opcode for instruction in computation] == ["parameter", "call", "negate"]


def test_a_map_takes_static_operands_whole() -> None:
    """As a table in which each element is looked up."""
    builder = XlaBuilder("lookup")
    where = ops.Parameter(builder, 0, Shape.array(np.int32, (2, 3)))
    scale = ops.Parameter(builder, 1, Shape.array(np.float32))
    table = ops.Parameter(builder, 2, Shape.array(np.float32, (4,)))

    def found(index: XlaOp, factor: XlaOp, values: XlaOp) -> XlaOp:
        return ops.Reshape(ops.DynamicSlice(values, [index], (1,)), ()) * factor

    computation = builder.build(ops.Map(builder, [where], found, [0, 1], [scale, table]))
    arguments = np.array([[3, 0, 1], [1, 1, 2]], np.int32), np.float32(2), np.array([5, 6, 7, 8], np.float32)
    for run in (xlapy.evaluate, lambda program, *values: xlapy.compile(program)(*values)):
        assert run(computation, *arguments).tolist() == [[16, 10, 12], [12, 12, 14]]


def test_maps_with_static_arrays_are_checked() -> None:
    builder = XlaBuilder("checked")
    x, table = (ops.Parameter(builder, number, Shape.array(np.float32, (size,))) for number, size in enumerate((3, 4)))
    with pytest.raises(ShapeError, match=r"Map\.B1"):
        ops.Map(builder, [x, table], lambda a, b, t: a, None, [table])
    with pytest.raises(ShapeError, match=r"Map\.B2"):
        ops.Map(builder, [x], lambda a, t: t, None, [table])
    with pytest.raises(ShapeError, match=r"Map\.B3"):
        ops.Map(builder, [x], lambda a, t: a, [1], [table])
    assert ops.Map(builder, [x], lambda a, t: a > 0, [0], [table]).shape == Shape.array(np.bool_, (3,))
