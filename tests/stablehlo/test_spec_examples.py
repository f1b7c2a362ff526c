"""The worked examples of the StableHLO specification, for the operations that we have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from xlapy import stablehlo
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.types import type_text

Array = np.ndarray[Any, Any]

F32, F64, I32, I64, BOOL = np.float32, np.float64, np.int32, np.int64, np.bool_


def array(values: Any, dtype: Any) -> Array:
    return np.array(values, dtype)


@dataclass(frozen=True)
class Example:
    """One operation applied to arrays: its results must be `results`, floats within the digits that are printed."""

    op: str
    operands: list[Array]
    results: list[Array]
    attributes: str = ""
    regions: str = ""

    def text(self) -> str:
        inputs = ", ".join(f"%{n}: {type_text(Shape.of(value))}" for n, value in enumerate(self.operands))
        names = ", ".join(f"%{n}" for n in range(len(self.operands)))
        in_types = ", ".join(type_text(Shape.of(value)) for value in self.operands)
        out_types = ", ".join(type_text(Shape.of(value)) for value in self.results)
        out_names = ", ".join(f"%r{n}" for n in range(len(self.results)))
        regions = f" ({self.regions})" if self.regions else ""
        return (
            f"func.func @main({inputs}) -> ({out_types}) {{\n"
            f'  {out_names} = "stablehlo.{self.op}"({names}){regions} {{{self.attributes}}}'
            f" : ({in_types}) -> ({out_types})\n"
            f'  "func.return"({out_names}) : ({out_types}) -> ()\n'
            "}\n"
        )


def unary(op: str, operand: Any, result: Any, dtype: Any, result_dtype: Any = None) -> Example:
    return Example(op, [array(operand, dtype)], [array(result, result_dtype or dtype)])


def binary(op: str, lhs: Any, rhs: Any, result: Any, dtype: Any) -> Example:
    return Example(op, [array(lhs, dtype), array(rhs, dtype)], [array(result, dtype)])


def folding(op: str, dtype: str) -> str:
    """A region that applies a binary operation to two scalars, in the pretty form."""
    return (
        f"{{ ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):\n"
        f"  %c = stablehlo.{op} %a, %b : tensor<{dtype}>\n  stablehlo.return %c : tensor<{dtype}>\n }}"
    )


def branch(*values: str) -> str:
    """A region that returns constants."""
    lines = [f"%c{n} = stablehlo.constant {value}" for n, value in enumerate(values)]
    names = ", ".join(f"%c{n}" for n in range(len(values)))
    types = ", ".join(value.partition(" : ")[2] for value in values)
    return "{\n" + "\n".join(lines) + f"\nstablehlo.return {names} : {types}\n}}"


CELLS = array([[[1, 2], [3, 4]], [[3, 4], [1, 2]]], F64)
ONES, MEANS = np.ones(2), array([2, 3], F64)
SCORES = array([[[0, 0], [2, 2]], [[2, 2], [0, 0]]], F64)
IMAGE = array([[1, 2, 5, 6], [3, 4, 7, 8], [10, 11, 14, 15], [12, 13, 16, 17]], I32).reshape(1, 4, 4, 1)
SELECTING = """{ ^bb0(%a: tensor<i64>, %b: tensor<i64>):
  %c = stablehlo.compare GE, %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}"""
F, T = False, True
PRINTED = 3e-6
"""The specification prints few digits, and some examples for f64 were worked out in f32."""

A, B = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
TWO_BY_SIX = [[0, 1, 2, 3, 4, 5]]
HALF_PI = math.pi / 2

EXAMPLES = [
    unary("abs", [-2, 0, 2], [2, 0, 2], I32),
    binary("add", A, B, [[6, 8], [10, 12]], I32),
    binary("and", A, B, [[1, 2], [3, 0]], I32),
    binary("atan2", [0, 1, -1], [0, 0, 0], [0, HALF_PI, -HALF_PI], F64),
    Example("batch_norm_grad", [CELLS, ONES, MEANS, ONES, np.full((2, 2, 2), 0.1)],
            [np.zeros((2, 2, 2)), np.zeros(2), np.full(2, 0.4)], "epsilon = 0.0 : f32, feature_index = 2 : i64"),
    Example("batch_norm_inference", [CELLS, ONES, ONES, MEANS, ONES], [SCORES],
            "epsilon = 0.0 : f32, feature_index = 2 : i64"),
    Example("batch_norm_training", [CELLS, ONES, ONES], [SCORES, MEANS, ONES],
            "epsilon = 0.0 : f32, feature_index = 2 : i64"),
    Example("convolution", [IMAGE, np.ones((3, 3, 1, 1), I32)], [array([[10, 26], [46, 62]], I32).reshape(1, 2, 2, 1)],
            "window_strides = array<i64: 4, 4>, padding = dense<0> : tensor<2x2xi64>, "
            "lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 1, 1>, "
            "window_reversal = array<i1: false, false>, "
            "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
            "feature_group_count = 1 : i64, batch_group_count = 1 : i64, "
            "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"),
    Example("reduce_window", [array([[1, 2], [3, 4], [5, 6]], I64), array(0, I64)], [array([[0, 0], [3, 4]], I64)],
            "window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 4, 1>, "
            "base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 3, 1>, "
            "padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>", folding("add", "i64")),
    Example("select_and_scatter", [array([[1, 5], [2, 5], [3, 6], [4, 4]], I64), array([[5, 6], [7, 8]], I64),
                                   array(0, I64)], [array([[0, 0], [0, 0], [5, 14], [7, 0]], I64)],
            "window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 1>, "
            "padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>", f"{SELECTING}, {folding('add', 'i64')}"),
    Example("broadcast_in_dim", [array([[1, 2, 3]], I32)], [array([[[1, 1], [2, 2], [3, 3]]] * 2, I32)],
            "broadcast_dimensions = array<i64: 2, 1>"),
    Example("case", [array(-1, I32)], [array([1, 1], I64), array([1, 1], I64)], regions=", ".join(
        branch(f"dense<{n}> : tensor<2xi64>", f"dense<{n}> : tensor<2xi64>") for n in (0, 1))),
    unary("cbrt", [0, 1, 8, 27], [0, 1, 2, 3], F64),
    unary("ceil", [-0.8166, -0.2530, 0.2530, 0.8166, 2.0], [-0.0, -0.0, 1, 1, 2], F32),
    Example("clamp", [array([5, 10, 15], I32), array([3, 13, 23], I32), array([10, 15, 20], I32)],
            [array([5, 13, 20], I32)]),
    Example("compare", [array([1.0, 3.0], F32), array([1.1, 2.9], F32)], [array([T, F], BOOL)],
            "comparison_direction = #stablehlo<comparison_direction LT>, "
            "compare_type = #stablehlo<comparison_type FLOAT>"),
    Example("complex", [array([1, 3], F64), array([2, 4], F64)], [array([1 + 2j, 3 + 4j], np.complex128)]),
    Example("concatenate", [array([[1, 2], [3, 4], [5, 6]], I64), array([[7, 8]], I64)],
            [array([[1, 2], [3, 4], [5, 6], [7, 8]], I64)], "dimension = 0 : i64"),
    Example("constant", [], [array([[0, 1], [2, 3]], F32)],
            "value = dense<[[0.0, 1.0], [2.0, 3.0]]> : tensor<2x2xf32>"),
    unary("convert", [-1, 0, 1], [-1, 0, 1], I64, np.complex128),
    unary("cosine", [[0, HALF_PI], [math.pi, 3 * HALF_PI]], [[1, 0], [-1, 0]], F32),
    unary("count_leading_zeros", [[0, 1], [128, -1]], [[64, 63], [56, 0]], I64),
    binary("divide", [17.1, -17.1, 17.1, -17.1], [3, 3, -3, -3], [5.7, -5.7, -5.7, 5.7], F32),
    Example("dot_general", [array([A, B], I64), array([[[1, 0], [0, 1]]] * 2, I64)], [array([A, B], I64)],
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
            "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, "
            "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"),
    Example("dynamic_slice", [array([[0, 0, 1, 1]] * 2 + [[0] * 4] * 2, I32), array(-1, I64), array(3, I64)],
            [array([[1, 1], [1, 1]], I32)], "slice_sizes = array<i64: 2, 2>"),
    Example("dynamic_update_slice", [array([[1, 1, 0, 0]] * 2 + [[1] * 4] * 2, I32), array([[1, 1], [1, 1]], I32),
                                     array(-1, I64), array(3, I64)], [array([[1] * 4] * 4, I32)]),
    unary("exponential", [[0, 1], [2, 3]], [[1, 2.7182818284590451], [7.3890560989306504, 20.085536923187668]], F64),
    unary("exponential_minus_one", [0, 1], [0, 1.71828187], F64),
    unary("floor", [-0.8166, -0.2530, 0.2530, 0.8166, 2.0], [-1, -1, 0, 0, 2], F32),
    Example("get_dimension_size", [array([[1, 2, 3], [4, 5, 6]], I64)], [array(3, I32)], "dimension = 1 : i64"),
    Example("if", [array(T, BOOL)], [array(10, I32)],
            regions=f"{branch('dense<10> : tensor<i32>')}, {branch('dense<11> : tensor<i32>')}"),
    unary("imag", [1 + 2j, 3 + 4j], [2, 4], np.complex64, F32),
    Example("iota", [], [array([[row] * 5 for row in range(4)], I32)], "iota_dimension = 0 : i64"),
    Example("iota", [], [array([range(5)] * 4, I32)], "iota_dimension = 1 : i64"),
    unary("is_finite", [-np.inf, np.inf, np.nan, -10.0, -0.0, 0.0, 10.0], [F, F, F, T, T, T, T], F64, BOOL),
    unary("log", [[1, 2], [3, 4]], [[0, 0.69314718055994529], [1.0986122886681098, 1.3862943611198906]], F64),
    unary("log_plus_one", [0, -0.999, 7, 6.38905621, 15], [0, -6.90776825, 2.07944155, 2.0, 2.77258873], F64),
    unary("logistic", [[0, 1], [2, 3]], [[0.5, 0.73105858], [0.88079708, 0.95257413]], F64),
    Example("map", [array([[0, 1], [2, 3]], I64), array([[4, 5], [6, 7]], I64)], [array([[0, 5], [12, 21]], I64)],
            "dimensions = array<i64: 0, 1>", folding("multiply", "i64")),
    binary("maximum", [[1, 2], [7, 8]], [[5, 6], [3, 4]], [[5, 6], [7, 8]], I32),
    binary("minimum", [[1, 2], [7, 8]], [[5, 6], [3, 4]], [[1, 2], [3, 4]], I32),
    binary("multiply", A, B, [[5, 12], [21, 32]], I32),
    unary("negate", [0, -2], [0, 2], I32),
    unary("negate", complex(2.5, 0.0), complex(-2.5, -0.0), np.complex64),
    unary("not", A, [[-2, -3], [-4, -5]], I32),
    unary("not", [T, F], [F, T], BOOL),
    Example("optimization_barrier", [array(0, F32), array(1, F32)], [array(0, F32), array(1, F32)]),
    binary("or", A, B, [[5, 6], [7, 12]], I32),
    binary("or", [[F, F], [T, T]], [[F, T], [F, T]], [[F, T], [T, T]], BOOL),
    Example("pad", [array([[1, 2, 3], [4, 5, 6]], I32), array(0, I32)], [array([
        [0, 1, 0, 0, 2, 0, 0, 3, 0], [0] * 9, [0, 4, 0, 0, 5, 0, 0, 6, 0], [0] * 9, [0] * 9], I32)],
        "edge_padding_low = array<i64: 0, 1>, edge_padding_high = array<i64: 2, 1>, "
        "interior_padding = array<i64: 1, 2>"),
    unary("popcnt", [0, 1, 2, 127], [0, 1, 1, 7], I64),
    binary("power", [-2, -0.0, -36, 5, 3, 10000], [2, 2, 1.1, 2, -1, 10], [4, 0, np.nan, 25, 1 / 3, np.inf], F32),
    unary("real", [1 + 2j, 3 + 4j], [1, 3], np.complex64, F32),
    Example("reduce", [array(TWO_BY_SIX, I64), array(0, I64)], [array([15], I64)], "dimensions = array<i64: 1>",
            folding("add", "i64")),
    Example("reduce_precision", [array([np.inf, np.nan, 5e-324, 0.0, 65519.0, 65520.0], F64)],
            [array([np.inf, np.nan, 0.0, 0.0, 65504.0, np.inf], F64)],
            "exponent_bits = 5 : i32, mantissa_bits = 10 : i32"),
    binary("remainder", [17, -17, 17, -17], [3, 3, -3, -3], [2, -2, 2, -2], I64),
    unary("reshape", [[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]], I32),
    Example("reverse", [array([[1, 2], [3, 4], [5, 6]], I32)], [array([[2, 1], [4, 3], [6, 5]], I32)],
            "dimensions = array<i64: 1>"),
    unary("round_nearest_afz", [-2.5, 0.4, 0.5, 0.6, 2.5], [-3, 0, 1, 1, 3], F64),
    unary("round_nearest_even", [-2.5, 0.4, 0.5, 0.6, 2.5], [-2, 0, 0, 1, 2], F64),
    unary("rsqrt", [[1, 4], [9, 25]], [[1, 0.5], [0.33333334, 0.2]], F32),
    Example("select", [array([[F, T], [T, F]], BOOL), array(A, I32), array(B, I32)], [array([[5, 2], [3, 8]], I32)]),
    binary("shift_left", [-1, 0, 1], [1, 2, 3], [-2, 0, 8], I64),
    binary("shift_right_arithmetic", [-1, 0, 8], [1, 2, 3], [-1, 0, 1], I64),
    binary("shift_right_logical", [-1, 0, 8], [1, 2, 3], [9223372036854775807, 0, 1], I64),
    unary("sign", [np.nan, -1, -0.0, 0.0, 1], [np.nan, -1, -0.0, 0.0, 1], F64),
    unary("sine", [[0, HALF_PI], [math.pi, 3 * HALF_PI]], [[0, 1], [0, -1]], F32),
    Example(
        "cholesky",
        [array([[1, 2, 3], [2, 20, 26], [3, 26, 70]], F32)],
        [array([[1, 0, 0], [2, 4, 0], [3, 5, 6]], F32)],
        "lower = true",
    ),
    Example(
        "triangular_solve",
        [array([[1, 0, 0], [2, 4, 0], [3, 5, 6]], F32), array([[2, 0, 0], [4, 8, 0], [6, 10, 12]], F32)],
        [array([[2, 0, 0], [0, 2, 0], [0, 0, 2]], F32)],
        "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>",
    ),
    Example(
        "fft",
        [array([1, 0, 0, 0], np.complex64)],
        [array([1, 1, 1, 1], np.complex64)],
        "fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>",
    ),
    Example("slice", [array([[0] * 4, [0, 0, 1, 1], [0, 0, 1, 1]], I64)], [array([[1, 1], [1, 1]], I64)],
            "start_indices = array<i64: 1, 2>, limit_indices = array<i64: 3, 4>, strides = array<i64: 1, 1>"),
    unary("sqrt", [[0, 1], [4, 9]], [[0, 1], [2, 3]], F32),
    binary("subtract", [[6, 8], [10, 12]], B, A, F32),
    unary("tanh", [-1, 0, 1], [-0.76159416, 0, 0.76159416], F32),
    Example("transpose", [array(np.arange(1, 13).reshape(2, 3, 2), I32)],
            [array([[[1, 7], [3, 9], [5, 11]], [[2, 8], [4, 10], [6, 12]]], I32)],
            "permutation = array<i64: 2, 1, 0>"),
    binary("xor", A, B, [[4, 4], [4, 12]], I32),
    binary("xor", [[F, F], [T, T]], [[F, T], [F, T]], [[F, T], [T, F]], BOOL),
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.op)
def test_worked_example(example: Example) -> None:
    module = stablehlo.parse(example.text())
    for source in (module, stablehlo.parse(stablehlo.to_text(module))):
        results = evaluate(source, *example.operands)
        results = results if isinstance(results, tuple) else (results,)
        for result, expected in zip(results, example.results, strict=True):
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, rtol=PRINTED, atol=PRINTED)
            if result.dtype.kind == "f":
                zeros = expected == 0
                exact = example.op not in ("sine", "cosine", "power")
                assert not exact or (np.signbit(result[zeros]) == np.signbit(expected[zeros])).all()


def test_bits_are_read_in_little_endian_order() -> None:
    text = """func.func @main(%x: tensor<f64>) -> tensor<4xf16> {
      %0 = "stablehlo.bitcast_convert"(%x) : (tensor<f64>) -> tensor<4xf16>
      func.return %0 : tensor<4xf16>
    }"""
    x = np.array(0x0123456789ABCDEF, np.uint64).view(np.float64)
    bits = evaluate(stablehlo.parse(text), x).view(np.uint16)
    assert bits.tolist() == [0xCDEF, 0x89AB, 0x4567, 0x0123]


def test_first_program_of_the_specification() -> None:
    text = """
    func.func @main(
      %image: tensor<28x28xf32>,
      %weights: tensor<784x10xf32>,
      %bias: tensor<1x10xf32>
    ) -> tensor<1x10xf32> {
      %0 = "stablehlo.reshape"(%image) : (tensor<28x28xf32>) -> tensor<1x784xf32>
      %1 = "stablehlo.dot"(%0, %weights) : (tensor<1x784xf32>, tensor<784x10xf32>) -> tensor<1x10xf32>
      %2 = "stablehlo.add"(%1, %bias) : (tensor<1x10xf32>, tensor<1x10xf32>) -> tensor<1x10xf32>
      %3 = "stablehlo.constant"() { value = dense<0.0> : tensor<1x10xf32> } : () -> tensor<1x10xf32>
      %4 = "stablehlo.maximum"(%2, %3) : (tensor<1x10xf32>, tensor<1x10xf32>) -> tensor<1x10xf32>
      "func.return"(%4): (tensor<1x10xf32>) -> ()
    }"""
    random = np.random.default_rng(0)
    image, weights, bias = (random.normal(size=s).astype(F32) for s in ((28, 28), (784, 10), (1, 10)))
    result = evaluate(stablehlo.parse(text), image, weights, bias)
    np.testing.assert_allclose(result, np.maximum(image.reshape(1, 784) @ weights + bias, 0), rtol=1e-4, atol=1e-4)


def test_while_runs_nine_times() -> None:
    text = """
    func.func @main(%init_i: tensor<i64>, %init_sum: tensor<i64>, %one: tensor<i64>, %ten: tensor<i64>)
        -> (tensor<i64>, tensor<i64>) {
      %results0, %results1 = "stablehlo.while"(%init_i, %init_sum) ({
        ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
          %cond = "stablehlo.compare"(%arg0, %ten) {
            comparison_direction = #stablehlo<comparison_direction LT>
          } : (tensor<i64>, tensor<i64>) -> tensor<i1>
          stablehlo.return %cond : tensor<i1>
        }, {
        ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
          %new_sum = stablehlo.add %arg1, %one : tensor<i64>
          %new_i = stablehlo.add %arg0, %one : tensor<i64>
          stablehlo.return %new_i, %new_sum : tensor<i64>, tensor<i64>
      }) : (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
      return %results0, %results1 : tensor<i64>, tensor<i64>
    }"""
    module = stablehlo.parse(text)
    results = evaluate(module, *(np.array(v, np.int64) for v in (1, 0, 1, 10)))
    assert [int(value) for value in results] == [10, 9]
    (loop,) = (i for i in module.entry.post_order() if i.opcode == "while")
    assert len(loop.shape.parts) == 4  # the two captured values travel behind the two of the loop


def test_tuples() -> None:
    text = """
    func.func @main(%a: tensor<2xf32>, %b: tensor<i32>) -> tensor<2xf32> {
      %0 = "stablehlo.tuple"(%a, %b) : (tensor<2xf32>, tensor<i32>) -> tuple<tensor<2xf32>, tensor<i32>>
      %1 = stablehlo.tuple %0, %b : tuple<tuple<tensor<2xf32>, tensor<i32>>, tensor<i32>>
      %2 = stablehlo.get_tuple_element %1[0]
        : (tuple<tuple<tensor<2xf32>, tensor<i32>>, tensor<i32>>) -> tuple<tensor<2xf32>, tensor<i32>>
      %3 = "stablehlo.get_tuple_element"(%2) {index = 0 : i32}
        : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<2xf32>
      return %3 : tensor<2xf32>
    }"""
    result = evaluate(stablehlo.parse(text), np.array([1.0, 2.0], F32), np.array(3, I32))
    assert result.tolist() == [1.0, 2.0]
