"""Programs in the spelling of 2017 to 2020."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import xlapy
from xlapy.builder.computation_builder import ComputationBuilder


def test_axpy() -> None:
    c = ComputationBuilder("axpy")
    x = c.ParameterFromNumpy(np.ones(4, np.float32))
    y = c.ParameterFromNumpy(np.ones(4, np.float32), "y")
    computation = c.Build(c.Add(c.Mul(x, c.ConstantF32Scalar(2)), y))
    one = np.ones(4, np.float32)
    assert (xlapy.compile(computation)(one, one) == 3).all()


def test_clamp_takes_the_operand_first_or_names() -> None:
    c = ComputationBuilder("clamp")
    x = c.ParameterFromNumpy(np.zeros(3, np.int32))
    low, high = c.ConstantS32Scalar(0), c.ConstantS32Scalar(6)
    both = c.Tuple(c.Clamp(x, low, high), c.Clamp(max=high, operand=x, min=low))
    for clamped in xlapy.compile(c.Build(both))(np.array([-1, 5, 9], np.int32)):
        assert clamped.tolist() == [0, 5, 6]
    with pytest.raises(xlapy.ArgumentError, match="operand, min, max"):
        c.Clamp(x, low)


def test_reduce_map_call_and_while() -> None:
    add = ComputationBuilder("add")
    added = add.Build(add.Add(add.ParameterFromNumpy(np.float32(0)), add.ParameterFromNumpy(np.float32(0))))
    double = ComputationBuilder("double")
    p = double.ParameterFromNumpy(np.float32(0))
    doubled = double.Build(double.Add(p, p))
    below = ComputationBuilder("below")
    tested = below.Build(below.Lt(below.ParameterFromNumpy(np.float32(0)), below.ConstantF32Scalar(100)))
    c = ComputationBuilder("all")
    x = c.ParameterFromNumpy(np.ones((2, 3), np.float32))
    total = c.Reduce(x, c.ConstantF32Scalar(0), added, [0, 1])
    result = c.Tuple(c.Map([x], doubled, [0, 1]), c.Call(doubled, [total]), c.While(tested, doubled, total), c.Trans(x))
    mapped, called, looped, turned = xlapy.compile(c.Build(result))(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert mapped.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert called == 30 and looped == 120
    assert turned.shape == (3, 2)


def test_the_rest_comes_from_the_op_functions() -> None:
    c = ComputationBuilder("rest")
    x = c.BroadcastedIota("int32", (2, 4), 1)
    joined = c.Concatenate([c.SliceInDim(x, 1, 3, 1, 1), c.Rev(x, [1])], 1)
    assert c.GetShape(joined).dims == (2, 6)
    assert xlapy.compile(c.Build(joined))()[0].tolist() == [1, 2, 3, 2, 1, 0]
    with pytest.raises(AttributeError, match="Frobnicate"):
        _ = c.Frobnicate


def test_forms_that_changed_later() -> None:
    c = ComputationBuilder("forms")
    x = c.ParameterFromNumpy(np.ones((2, 3), np.float32))
    zero, one = c.ConstantF32Scalar(0), c.ConstantF32Scalar(1)
    shapes = {
        c.Reshape(x, None, (3, 2)): (3, 2),
        c.Sort(x, 0): (2, 3),
        c.RngUniform(zero, one, (4, 5)): (4, 5),
        c.RngNormal(zero, one, dims=[2]): (2,),
        c.RngUniform(zero, one, xlapy.Shape.array(np.float32, (7,))): (7,),
        c.AllToAll(x, 0, 1, [[0, 1]]): (1, 6),
        c.AllToAll(x, 0, 1): (2, 3),
        c.CustomCall(b"f", [x], xlapy.Shape.array(np.float32, (9,)), [c.GetShape(x)], b"opaque"): (9,),
        c.CustomCall("f", [x], xlapy.Shape.array(np.float32, (9,))): (9,),
    }
    assert [op.shape.dims for op in shapes] == list(shapes.values())
    assert c.GetShape(c.Sort(x, x, 1)).parts[1].dims == (2, 3)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("conjugated", [False, True])
def test_triangular_solve_transposes_and_conjugates(transposed: bool, conjugated: bool) -> None:
    matrix = np.array([[2, 0], [1 + 1j, 3j]], np.complex64)
    c = ComputationBuilder("solve")
    a, b = c.ParameterFromNumpy(matrix), c.ParameterFromNumpy(np.ones((2, 1), np.complex64))
    c.TriangularSolve(a, b, True, True, transposed, conjugated)
    applied = matrix.T if transposed else matrix
    applied = applied.conj() if conjugated else applied
    wanted = np.linalg.solve(applied, np.ones((2, 1)))
    np.testing.assert_allclose(xlapy.compile(c.Build())(matrix, np.ones((2, 1), np.complex64)), wanted, rtol=1e-6)


def test_constants_metadata_and_parts() -> None:
    c = ComputationBuilder("parts")
    c.SetOpMetadata(SimpleNamespace(op_type="t", op_name="n", source_file="", source_line=0))
    x = c.ParameterFromNumpy(np.float32(0))
    c.ClearOpMetadata()
    three = c.Add(c.ConstantF32Scalar(1), c.ConstantF32Scalar(2))
    assert x.instruction.metadata.op_name == "n" and three.instruction.metadata.op_name == ""
    assert c.IsConstant(three) and not c.IsConstant(c.Add(x, three))
    c.Outfeed(x)
    assert xlapy.compile(c.BuildConstantSubGraph(three))() == 3
    with pytest.raises(xlapy.ArgumentError, match="not constant"):
        c.BuildConstantSubGraph(x)
