"""What type checkers and editors know of the methods that handles and builders get at run time.

`make types` reads this file: it checks each `assert_type`, and that each `type: ignore` has something to ignore. The
tests run the same lines, so that what is typed also works.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import assert_type

import numpy as np
import pytest

import xlapy
from xlapy import Shape, XlaBuilder, XlaComputation, XlaOp, ops
from xlapy.builder.methods import methods
from xlapy.support.errors import ArgumentError, ShapeError
from xlapy.tools.main import main
from xlapy.tools.method_types import CLASSES, stub

STUB = Path(xlapy.__file__).parent / "builder" / "method_types.pyi"
VECTOR = Shape.array(np.float32, (6,))


def add(x: XlaOp, y: XlaOp) -> XlaOp:
    return x + y


def test_methods_of_handles_have_types() -> None:
    builder = XlaBuilder("typed")
    x = assert_type(builder.parameter(0, VECTOR), XlaOp)
    matrix = assert_type(x.reshape((2, 3)), XlaOp)
    assert_type(matrix.transpose(permutation=(1, 0)).astype(np.float64), XlaOp)
    assert_type(x.add(1.0).max(0.0).tanh(), XlaOp)
    assert_type(x.reduce(0.0, add, (0,)), XlaOp)
    assert_type(x.sort(dimension=0), XlaOp)
    assert_type(matrix.qr(full_matrices=False), tuple[XlaOp, XlaOp])
    assert_type(x.reduce_precision(exponent_bits=5, mantissa_bits=2), XlaOp)


def test_methods_of_builders_have_types() -> None:
    builder = XlaBuilder("typed")
    one = assert_type(builder.constant(1.0), XlaOp)
    x = assert_type(builder.iota(VECTOR, 0), XlaOp)
    assert_type(builder.concat_in_dim([x, x], 0), XlaOp)
    assert_type(builder.concatenate([x, x], dimension=0), XlaOp)
    assert_type(builder.reduce([x], [one], add, (0,)), XlaOp)
    assert_type(builder.map([x], ops.Neg), XlaOp)
    assert_type(builder.sort([x], is_stable=True), XlaOp)
    assert_type(builder.make_tuple([x, one]), XlaOp)
    assert_type(builder.build(x), XlaComputation)


def test_what_is_no_method_is_an_error_of_types_too() -> None:
    builder = XlaBuilder("typed")
    x = builder.parameter(0, VECTOR)
    with pytest.raises(AttributeError):
        x.reshap((2, 3))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        builder.tanh(x)  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        x.tanh(1)  # type: ignore[call-arg]
    with pytest.raises((ArgumentError, ShapeError)):
        x.reshape(2.5)  # type: ignore[arg-type]


def test_operands_are_handles_scalars_and_arrays() -> None:
    """For type checkers as at run time: what is refused there needs no program to be seen here."""
    builder = XlaBuilder("typed")
    x = builder.parameter(0, VECTOR)
    for made in (
        x + 1,
        x + 1.5,
        x + np.ones(6, np.float32),
        x + np.float32(2),
        x.reduce(np.float32(0), add, [0]),
        builder.reduce([x, np.ones(6, np.int32)], [0, 0], lambda a, b, c, d: (a + c, b + d), (0,))[0],
        x.select_and_scatter(ops.Ge, (2,), (2,), "valid", np.ones(3, np.float32), 0, add),
    ):
        assert_type(made, XlaOp)
    refused: list[Callable[[], XlaOp]] = [
        lambda: x + "1",  # type: ignore[operator]
        lambda: x.max([1.0, 2.0]),  # type: ignore[arg-type]
        lambda: ops.Add(x, None),  # type: ignore[arg-type]
        lambda: x.clamp("low", 1.0),  # type: ignore[arg-type]
        lambda: ops.Select(x > 0, x, print),  # type: ignore[arg-type]
    ]
    for record in refused:
        with pytest.raises(ArgumentError):
            record()


def test_both_forms_of_reduce_and_sort_have_types() -> None:
    builder = XlaBuilder("typed")
    x = builder.parameter(0, VECTOR)
    assert_type(ops.Reduce(builder, [x], [0.0], add, (0,)), XlaOp)
    assert_type(ops.Reduce(x, 0.0, add, (0,)), XlaOp)
    assert_type(ops.Sort(builder, [x, x], None, 0), XlaOp)
    assert_type(ops.Sort(x, x, dimension=0), XlaOp)
    with pytest.raises(ArgumentError):
        ops.Reduce(builder, [x], [0.0], add)  # type: ignore[call-overload]


def test_methods_of_two_forms_show_the_parameters_of_theirs() -> None:
    names: dict[Callable[..., object], str] = {
        XlaOp.reduce: "operand init_value computation dimensions_to_reduce",
        XlaBuilder.reduce: "builder operands init_values computation dimensions_to_reduce",
        XlaOp.sort: "keys values comparator dimension is_stable",
        XlaBuilder.sort: "builder operands comparator dimension is_stable",
    }
    assert {method: " ".join(inspect.signature(method).parameters) for method in names} == names


# -- the file ------------------------------------------------------------------------------------------------------


def test_the_stub_is_up_to_date() -> None:
    assert STUB.read_text() == stub(), "run: xlapy ops --stub > xlapy/builder/method_types.pyi"


def test_the_command_prints_the_stub(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--stub"]) == 0
    assert capsys.readouterr().out == stub()


def test_every_method_is_in_the_stub_with_its_parameters() -> None:
    classes = {node.name: node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef)}
    for owner, name, function in methods():
        if vars(owner)[name] is not function:
            continue
        [written] = [
            node for node in classes[CLASSES[owner]].body if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        arguments = written.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        variadic = {argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None}
        expected = list(inspect.signature(function).parameters)[1:]
        assert names == ["self", *(parameter for parameter in expected if parameter not in variadic)]
        assert variadic <= set(expected)


def test_the_stub_costs_nothing_at_run_time() -> None:
    assert XlaOp.__mro__ == (XlaOp, object)
    assert XlaBuilder.__mro__ == (XlaBuilder, object)
