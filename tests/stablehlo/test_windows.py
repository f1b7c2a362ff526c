"""Windows, convolution and batch normalization in StableHLO: every constraint under its label, and both forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from tests.stablehlo.structure import structure
from xlapy import stablehlo
from xlapy.hlo.attributes import ConvolutionDimensionNumbers, Precision, Window, WindowDimension
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.types import type_text
from xlapy_runtime.errors import ParseError, ShapeError


def program(name: str, operands: list[str], result: str, attributes: dict[str, str], regions: str = "") -> str:
    """One operation in the generic form, on parameters of the types `operands`."""
    inputs = ", ".join(f"%{number}: {type}" for number, type in enumerate(operands))
    names = ", ".join(f"%{number}" for number in range(len(operands)))
    listed = ", ".join(f"{key} = {value}" for key, value in attributes.items() if value)
    regions = f" ({regions})" if regions else ""
    return (
        f"func.func @main({inputs}) -> {result} {{\n"
        f'  %r = "stablehlo.{name}"({names}){regions} {{{listed}}} : ({", ".join(operands)}) -> {result}\n'
        f"  return %r : {result}\n}}\n"
    )


def table(*rows: tuple[int, int]) -> str:
    return f"dense<[{', '.join(map(str, map(list, rows)))}]> : tensor<{len(rows)}x2xi64>"


def tensor(*dims: int, kind: str = "f32") -> str:
    return type_text(Shape.array(kind, dims))


# -- convolution -------------------------------------------------------------------------------------------------------

CONVOLUTION: dict[str, Any] = {
    "lhs": tensor(4, 9, 9, 6),
    "rhs": tensor(3, 3, 3, 4),
    "result": tensor(4, 5, 9, 4),
    "window_strides": "array<i64: 2, 1>",
    "padding": table((1, 1), (1, 1)),
    "lhs_dilation": "array<i64: 1, 1>",
    "rhs_dilation": "array<i64: 1, 1>",
    "window_reversal": "array<i1: false, true>",
    "dimension_numbers": "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
    "feature_group_count": "2 : i64",
    "batch_group_count": "1 : i64",
    "precision_config": "[#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]",
}


def convolution(**changes: str) -> str:
    parts = CONVOLUTION | changes
    operands = [parts.pop("lhs"), parts.pop("rhs")]
    return program("convolution", operands, parts.pop("result"), parts)


def numbers(lhs: str, rhs: str, result: str) -> dict[str, str]:
    return {"dimension_numbers": f"#stablehlo.conv<[{lhs}]x[{rhs}]->[{result}]>"}


BROKEN_CONVOLUTIONS: list[tuple[str, dict[str, str]]] = [
    ("C1", {"rhs": tensor(3, 3, 3)}),
    ("C2", {"window_strides": "array<i64: 2>"}),
    ("C3", {"window_strides": "array<i64: 2, 0>"}),
    ("C4", {"padding": table((1, 1))}),
    ("C5", {"lhs_dilation": "array<i64: 1, 1, 1>"}),
    ("C6", {"lhs_dilation": "array<i64: 0, 1>"}),
    ("C7", {"rhs_dilation": "array<i64: 1>"}),
    ("C8", {"rhs_dilation": "array<i64: 1, -1>"}),
    ("C9", {"window_reversal": "array<i1: false>"}),
    ("C10", {"feature_group_count": "", "batch_group_count": "3 : i64", "rhs": tensor(3, 3, 6, 3)}),
    ("C11", {"feature_group_count": "4 : i64"}),
    ("C12", numbers("b, 0, f", "0, 1, i, o", "b, 0, 1, f")),
    ("C13", numbers("b, 0, 0, f", "0, 1, i, o", "b, 0, 1, f")),
    ("C14", {"rhs": tensor(3, 3, 6, 4)}),
    ("C15", {"feature_group_count": "", "batch_group_count": "2 : i64", "rhs": tensor(3, 3, 6, 3)}),
    ("C16", {"rhs": tensor(3, 3, 3, 5), "result": tensor(4, 5, 9, 5)}),
    ("C17", numbers("b, 0, 1, f", "0, i, o", "b, 0, 1, f")),
    ("C18", numbers("b, 0, 1, f", "0, 2, i, o", "b, 0, 1, f")),
    ("C19", numbers("b, 0, 1, f", "0, 1, i, o", "b, 0, f")),
    ("C20", numbers("b, 0, 1, f", "0, 1, i, o", "b, f, 1, f")),
    ("C21", {"feature_group_count": "0 : i64"}),
    ("C22", {"batch_group_count": "-1 : i64"}),
    ("C23", {"batch_group_count": "2 : i64"}),
    ("C24", {"precision_config": "[#stablehlo<precision HIGH>]"}),
    ("C25", {"result": tensor(4, 9, 9, 4)}),
    ("C27", {"rhs": tensor(3, 3, 3, 4, kind="s32")}),
]


@pytest.mark.parametrize(("label", "changes"), BROKEN_CONVOLUTIONS, ids=[label for label, _ in BROKEN_CONVOLUTIONS])
def test_a_broken_convolution_is_named(label: str, changes: dict[str, str]) -> None:
    with pytest.raises(ShapeError) as caught:
        stablehlo.parse(convolution(**changes))
    assert f"[convolution.{label}]" in str(caught.value)
    assert "line 2, column 3" in str(caught.value)


def test_convolution_is_read_whole() -> None:
    module = stablehlo.parse(convolution())
    root = module.entry.root
    assert root.attributes == {
        "window": Window((WindowDimension(3, 2, 1, 1), WindowDimension(3, 1, 1, 1, reversal=True))),
        "dimension_numbers": ConvolutionDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2)),
        "feature_group_count": 2,
        "batch_group_count": 1,
        "operand_precision": (Precision.DEFAULT, Precision.HIGHEST),
    }
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)


PRETTY = """
func.func @main(%0: tensor<4x9x9x6xf32>, %1: tensor<3x3x3x4xf32>) -> tensor<4x5x9x4xf32> {
  %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[1, 1], [1, 1]], reverse = [false, true]}
    {feature_group_count = 2 : i64, batch_group_count = 1 : i64,
     precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}
    : (tensor<4x9x9x6xf32>, tensor<3x3x3x4xf32>) -> tensor<4x5x9x4xf32>
  return %2 : tensor<4x5x9x4xf32>
}
"""


def test_the_pretty_form_is_the_same_program() -> None:
    assert structure(stablehlo.parse(PRETTY)) == structure(stablehlo.parse(convolution()))


def test_what_is_absent_is_one_or_zero() -> None:
    plain = stablehlo.parse(
        program(
            "convolution",
            [tensor(1, 5, 2), tensor(3, 2, 4)],
            tensor(1, 3, 4),
            numbers("b, 0, f", "0, i, o", "b, 0, f") | {"feature_group_count": "1", "batch_group_count": "1"},
        )
    )
    assert plain.entry.root.attributes["window"] == Window((WindowDimension(3),))
    assert plain.entry.root.attributes["operand_precision"] == ()


# -- reduce_window and select_and_scatter ------------------------------------------------------------------------------

SUM = (
    "{ ^b(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %a, %b : tensor<f32>\n"
    "stablehlo.return %c : tensor<f32> }"
)
AT_LEAST = (
    "{ ^b(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) ->"
    " tensor<i1>\nstablehlo.return %c : tensor<i1> }"
)

REDUCE_WINDOW: dict[str, Any] = {
    "input": tensor(4, 6),
    "init": tensor(),
    "result": tensor(2, 5),
    "body": SUM,
    "window_dimensions": "array<i64: 2, 2>",
    "window_strides": "array<i64: 2, 1>",
    "base_dilations": "array<i64: 1, 1>",
    "window_dilations": "array<i64: 1, 2>",
    "padding": table((0, 0), (0, 1)),
}


def reduce_window(**changes: str) -> str:
    parts = REDUCE_WINDOW | changes
    operands = [parts.pop("input"), parts.pop("init")]
    return program("reduce_window", operands, parts.pop("result"), parts, regions=parts.pop("body"))


BROKEN_REDUCE_WINDOWS: list[tuple[str, dict[str, str]]] = [
    ("C3", {"init": tensor(kind="s32")}),
    ("C4", {"window_dimensions": "array<i64: 2>", "padding": table((0, 0))}),
    ("C5", {"window_dimensions": "array<i64: 0, 2>"}),
    ("C6", {"window_strides": "array<i64: 2>"}),
    ("C7", {"window_strides": "array<i64: 2, 0>"}),
    ("C8", {"base_dilations": "array<i64: 1>"}),
    ("C9", {"base_dilations": "array<i64: 1, 0>"}),
    ("C10", {"window_dilations": "array<i64: 1>"}),
    ("C11", {"window_dilations": "array<i64: 1, 0>"}),
    ("C12", {"padding": table((0, 0), (0, 0), (0, 0))}),
    ("C13", {"body": AT_LEAST}),
    ("C15", {"result": tensor(2, 6)}),
]


@pytest.mark.parametrize(("label", "changes"), BROKEN_REDUCE_WINDOWS, ids=[label for label, _ in BROKEN_REDUCE_WINDOWS])
def test_a_broken_reduce_window_is_named(label: str, changes: dict[str, str]) -> None:
    absent = {"window_strides": "", "base_dilations": "", "window_dilations": ""} if label == "C4" else {}
    with pytest.raises(ShapeError) as caught:
        stablehlo.parse(reduce_window(**absent, **changes))
    assert f"[reduce_window.{label}]" in str(caught.value)


def test_reduce_window_may_fold_in_a_wider_type() -> None:
    wide = SUM.replace("f32", "f64")
    module = stablehlo.parse(reduce_window(body=wide, result=tensor(2, 5, kind="f64")))
    assert str(module.entry.root.shape) == "f64[2,5]"
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)


SELECT_AND_SCATTER: dict[str, Any] = {
    "operand": tensor(4, 6),
    "source": tensor(2, 6),
    "init": tensor(),
    "result": tensor(4, 6),
    "select": AT_LEAST,
    "scatter": SUM,
    "window_dimensions": "array<i64: 3, 1>",
    "window_strides": "array<i64: 2, 1>",
    "padding": table((0, 1), (0, 0)),
}


def select_and_scatter(**changes: str) -> str:
    parts = SELECT_AND_SCATTER | changes
    operands = [parts.pop("operand"), parts.pop("source"), parts.pop("init")]
    regions = f"{parts.pop('select')}, {parts.pop('scatter')}"
    return program("select_and_scatter", operands, parts.pop("result"), parts, regions)


BROKEN_SELECTIONS: list[tuple[str, dict[str, str]]] = [
    ("C1", {"source": tensor(2, 6, kind="f64")}),
    ("C2", {"source": tensor(3, 6)}),
    ("C3", {"init": tensor(kind="s32")}),
    ("C4", {"window_dimensions": "array<i64: 3>", "window_strides": "", "padding": ""}),
    ("C5", {"window_dimensions": "array<i64: 3, 0>"}),
    ("C6", {"window_strides": "array<i64: 3>"}),
    ("C7", {"window_strides": "array<i64: 0, 1>"}),
    ("C8", {"padding": table((0, 1))}),
    ("C9", {"select": SUM}),
    ("C10", {"scatter": AT_LEAST}),
    ("C11", {"result": tensor(4, 5)}),
]


@pytest.mark.parametrize(("label", "changes"), BROKEN_SELECTIONS, ids=[label for label, _ in BROKEN_SELECTIONS])
def test_a_broken_select_and_scatter_is_named(label: str, changes: dict[str, str]) -> None:
    with pytest.raises(ShapeError) as caught:
        stablehlo.parse(select_and_scatter(**changes))
    assert f"[select_and_scatter.{label}]" in str(caught.value)


def test_select_and_scatter_may_combine_in_a_wider_type() -> None:
    wide = SUM.replace("f32", "f64")
    module = stablehlo.parse(select_and_scatter(scatter=wide, result=tensor(4, 6, kind="f64")))
    assert str(module.entry.root.shape) == "f64[4,6]"
    operand = np.arange(24, dtype=np.float32).reshape(4, 6)
    source = np.full((2, 6), 0.1, np.float32)
    arguments = (operand, source, np.zeros((), np.float32))
    wanted = np.zeros((4, 6))
    wanted[2] = wanted[3] = np.float64(np.float32(0.1))
    for result in (evaluate(module, *arguments), xlapy.compile(module)(*arguments)):
        np.testing.assert_array_equal(result, wanted)
    again = stablehlo.parse(stablehlo.to_text(module))
    np.testing.assert_array_equal(evaluate(again, *arguments), wanted)


@pytest.mark.parametrize("text", [reduce_window(), select_and_scatter()], ids=["reduce_window", "select_and_scatter"])
def test_windows_are_written_as_they_were(text: str) -> None:
    module = stablehlo.parse(text)
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)


# -- batch normalization -----------------------------------------------------------------------------------------------


def batch_norm(name: str, operand: str, others: list[str], feature: int = 1) -> str:
    return program(name, [operand, *others], operand, {"epsilon": "1.0e-3 : f32", "feature_index": f"{feature} : i64"})


VECTOR = tensor(6)
BROKEN_BATCH_NORMS = [
    ("batch_norm_inference.C1", batch_norm("batch_norm_inference", tensor(4, 6), [VECTOR] * 4, 2)),
    ("batch_norm_inference.C2", batch_norm("batch_norm_inference", tensor(4, 6), [tensor(6, kind="f64")] * 4)),
    ("batch_norm_inference.C3", batch_norm("batch_norm_inference", tensor(4, 6), [tensor(4)] * 4)),
    ("batch_norm_training.C1", batch_norm("batch_norm_training", tensor(4, 6), [VECTOR] * 2, -1)),
    ("batch_norm_training.C2", batch_norm("batch_norm_training", tensor(4, 6), [tensor(6, kind="f64")] * 2)),
    ("batch_norm_training.C3", batch_norm("batch_norm_training", tensor(4, 6), [tensor(6, 1), VECTOR])),
    ("batch_norm_grad.C1", batch_norm("batch_norm_grad", tensor(4, 6), [*[VECTOR] * 3, tensor(4, 6)], 2)),
    ("batch_norm_grad.C2", batch_norm("batch_norm_grad", tensor(4, 6), [*[VECTOR] * 3, tensor(4, 6, kind="f64")])),
    ("batch_norm_grad.C3", batch_norm("batch_norm_grad", tensor(4, 6), [*[VECTOR] * 3, tensor(6, 4)])),
    ("batch_norm_grad.C4", batch_norm("batch_norm_grad", tensor(4, 6), [VECTOR, VECTOR, tensor(7), tensor(4, 6)])),
]


@pytest.mark.parametrize(("label", "text"), BROKEN_BATCH_NORMS, ids=[label for label, _ in BROKEN_BATCH_NORMS])
def test_a_broken_batch_norm_is_named(label: str, text: str) -> None:
    with pytest.raises(ShapeError) as caught:
        stablehlo.parse(text)
    assert f"[{label}]" in str(caught.value)


def test_batch_norm_is_written_as_it_was() -> None:
    module = stablehlo.parse(batch_norm("batch_norm_inference", tensor(4, 6), [VECTOR] * 4))
    assert module.entry.root.attributes == {"epsilon": 1e-3, "feature_index": 1}
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)


# -- malformed attributes ----------------------------------------------------------------------------------------------

MALFORMED = [
    (convolution(dimension_numbers=""), "dimension_numbers"),
    (convolution(dimension_numbers="[b, 0, 1, f]"), "dimension_numbers"),
    (convolution(dimension_numbers="#stablehlo.conv<[b, x, f]x[0, i, o]->[b, 0, f]>"), "spatial dimension"),
    (convolution(padding="array<i64: 1, 2, 3>"), "table of integers"),
    (reduce_window(window_dimensions=""), "window_dimensions"),
    (reduce_window(padding='"none"'), "table of integers"),
    (PRETTY.replace("stride =", "strides ="), "a window has no 'strides'"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED, ids=[str(number) for number in range(len(MALFORMED))])
def test_malformed_attributes(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        stablehlo.parse(text)
