"""What is looked for under a name that it has elsewhere: the error says what to write here."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.builder.other_names import FUNCTIONS_ELSEWHERE
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ParseError


def matrix() -> XlaOp:
    return XlaBuilder("names").parameter(0, Shape.array(np.float32, (2, 3)))


@pytest.mark.parametrize("name", FUNCTIONS_ELSEWHERE)
def test_functions_that_are_named_exist(name: str) -> None:
    assert not hasattr(ops, name)
    assert [found for found in re.findall(r"ops\.(\w+)", FUNCTIONS_ELSEWHERE[name]) if found not in ops.__all__] == []


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        (ops, "MatMul", "ops.Dot"),
        (ops, "where", "ops.Select"),
        (matrix(), "T", "x.transpose()"),
        (matrix(), "dtype", "x.shape.type.dtype"),
        (matrix(), "sum", "ops.Reduce"),
        (matrix(), "rng_bit_generator", "ops.RngBitGenerator"),
        (matrix(), "iota", "ops.Iota"),
        (ops, "zeros_like", "ops.Broadcast"),
        (ops, "ReduceSum", "ops.Reduce(x, 0, ops.Add, dimensions)"),
        (xlapy, "device_put", "numpy arrays are what programs take"),
        (XlaBuilder("b"), "Add", "ops.Add is a function"),
        (XlaBuilder("b"), "add", "x.add"),
        (xlapy, "jit", "xlapy.jax.jit"),
        (xlapy, "GatherDimensionNumbers", "xlapy.ops.GatherDimensionNumbers"),
        (xlapy, "tools", "import xlapy.tools"),
    ],
)
def test_other_names_are_explained(owner: object, name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(xlapy), name, raising=False)  # another test may have imported it
    with pytest.raises(AttributeError, match=rf"'{name}': .*{re.escape(meant)}") as caught:
        getattr(owner, name)
    assert (caught.value.name, caught.value.obj) == (name, owner)  # Python adds names that are near


@pytest.mark.parametrize("owner", [ops, matrix(), XlaBuilder("b"), xlapy])
def test_names_that_nobody_has_are_only_missing(owner: object) -> None:
    with pytest.raises(AttributeError, match=r"'frobnicate'$"):
        owner.frobnicate  # type: ignore[attr-defined]  # noqa: B018 - looking it up is the test


def test_a_value_handed_to_an_executable_is_refused_at_the_users_line() -> None:
    value = matrix()
    executable = xlapy.compile(value.builder.build(value * 2))
    with pytest.raises(ArgumentError, match="has no value while the graph is recorded") as caught:
        executable(value)
    assert "test_other_names.py" in caught.value.where


@pytest.mark.parametrize(
    ("source", "hint"),
    [(matrix(), r"builder\.build\(it\)"), (len, "recorded with an XlaBuilder, or traced by xlapy.jax.jit")],
)
def test_what_is_no_program_says_how_to_make_one(source: object, hint: str) -> None:
    with pytest.raises(ParseError, match=hint):
        xlapy.compile(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("compute", "told"),
    [
        (np.sum, r"numpy\.add\.reduce cannot be recorded: ops\.Reduce\("),
        (np.mean, "numpy computes at once: what is recorded are operators and xlapy.ops"),
        (lambda x: np.reshape(x, (3, 2)), "numpy computes at once"),
        (np.tanh, r"numpy\.tanh cannot be recorded: that is x\.tanh\(\)"),
        (np.maximum.reduce, r"numpy\.maximum\.reduce cannot be recorded: ops\.Reduce\("),
    ],
)
def test_functions_of_numpy_are_refused_at_the_users_line(compute: Callable[[XlaOp], object], told: str) -> None:
    value = matrix()
    with pytest.raises(ArgumentError, match=told) as caught:
        compute(value)
    assert "test_other_names.py" in caught.value.where


@pytest.mark.parametrize("size", [None, "?", "n"])
def test_sizes_that_are_not_known_are_written_as_numbers(size: object) -> None:
    with pytest.raises(xlapy.ShapeError, match=r"list of integers, not .*; -1 is a size that is not known"):
        Shape.array(np.float32, (size, 4))  # type: ignore[arg-type]
    assert str(Shape.array(np.float32, (-1, 4))) == "f32[?,4]"


@pytest.mark.parametrize("use", [lambda shape: shape[0], list, lambda shape: 3 in shape])
def test_shapes_are_no_lists(use: Callable[[Shape], object]) -> None:
    with pytest.raises(ArgumentError, match=r"f32\[2,3\] is no list: shape\.dims has the sizes of an array"):
        use(matrix().shape)


def test_each_parser_knows_the_text_of_the_other() -> None:
    value = matrix()
    module = xlapy.load(value.builder.build(value * 2))
    with pytest.raises(ParseError, match=r"xlapy\.stablehlo\.parse reads it"):
        xlapy.hlo.parse(xlapy.stablehlo.to_text(module))
    with pytest.raises(ParseError, match=r"xlapy\.hlo\.parse reads it"):
        xlapy.stablehlo.parse(module.to_text())


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (lambda b, x: ops.Reduce(b, [x], [0], ops.Add), "dimensions to fold are missing; ops.ReduceAll"),
        (lambda b, x: x.reduce(0, ops.Add), "dimensions to fold are missing; x.reduce_all"),
        (lambda b, x: ops.Iota(b, np.int32), r"Iota\(builder, element_type, size\) needs the size"),
        (lambda b, x: x.reshape(3, 2), r"as in Reshape\(x, \(2, 3\)\)"),
        (lambda b, x: x[x.astype(np.int32)], "ops.Gather for arrays of indices"),
        (lambda b, x: x[x > 0], "ops.Select chooses"),
        (lambda b, x: x[ops.Constant(b, np.int32(1))], "ops.DynamicSlice"),
        (lambda b, x: ops.Abs(x > 0), "abs takes signed integer or float or complex"),
        (lambda b, x: ops.Eigh(x), "are 2 and 3; they must be equal"),
        (lambda b, x: ops.Call(b, lambda: x, [x]), "does not take 1 argument$"),
        (
            lambda b, x: ops.While(lambda i, v: i < 3, lambda i, v: (i, v), ops.Tuple(b, [np.int32(0), x])),
            r"called with one argument, the tuple \(s32\[\], f32\[2,3\]\)",
        ),
    ],
)
def test_errors_say_what_to_write(record: object, told: str) -> None:
    value = matrix()
    with pytest.raises(xlapy.XlaError) as caught:
        record(value.builder, value)  # type: ignore[operator]
    headline = str(caught.value).partition("\n")[0]
    assert re.search(told, headline), headline
    assert "test_other_names.py" in caught.value.where


def test_the_evaluator_says_how_to_convert() -> None:
    value = matrix()
    with pytest.raises(ArgumentError, match=r"must be f32\[2,3\], not float64\[2, 3\]; .astype\('float32'\) converts"):
        xlapy.evaluate(value.builder.build(value * 2), np.ones((2, 3)))


def test_dimension_numbers_are_beside_the_functions_that_take_them() -> None:
    builder = XlaBuilder("rows")
    table = builder.parameter(0, Shape.array(np.float32, (5, 2)))
    rows = builder.parameter(1, Shape.array(np.int32, (3,)))
    numbers = ops.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1
    )
    program = builder.build(ops.Gather(table, rows, numbers, (1, 2)))
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    picked = np.array([4, 0, 2], np.int32)
    np.testing.assert_array_equal(xlapy.compile(program)(values, picked), values[picked])
