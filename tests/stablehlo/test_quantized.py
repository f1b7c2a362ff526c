"""Programs on quantized tensors: their numbers against the formulas in numpy and StableHLO's own interpreter."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.stablehlo.quantized import Array, Quantized, interpreted, program, refusal
from xlapy import stablehlo
from xlapy.hlo.element_types import F32, S8
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import fingerprint
from xlapy.stablehlo.convert.base import CONVERSIONS
from xlapy.stablehlo.convert.quantized import TREATMENTS
from xlapy.stablehlo.quantization import QuantizedType, quantized_shape

A = Quantized((0.1,), (-30,))
B = Quantized((0.25,), (5,))
C = Quantized((0.05,), (3,))
EXACT_ZERO = Quantized((0.5,), (0,))
RNG = np.random.default_rng(7)


def same(found: Any, *expected: Array) -> None:
    results = found if isinstance(found, tuple) else (found,)
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype and result.shape == wanted.shape
        np.testing.assert_array_equal(result, wanted)


def check(text: str, arguments: Sequence[Array], *expected: Array, verified: bool = True) -> None:
    """Evaluator and native code give exactly `expected`; StableHLO's verifier takes the program, unless told not to."""
    module = stablehlo.parse(text)
    same(xlapy.evaluate(module, *arguments), *expected)
    same(xlapy.compile(module)(*arguments), *expected)
    if verified:
        assert refusal(text) == ""


def random_stored(type: Quantized, *dims: int) -> Array:
    low, high = type.low_high
    return type.stored(RNG.integers(low, high + 1, dims))


# -- the worked examples of the specification --------------------------------------------------------------------------

FIRST = Quantized((0.1, 0.5), (-30, -20), axis=0)
SECOND = Quantized((0.1, 0.2), (-20, -30), axis=0)
FLOATS, TENS = np.array([4.0, 15.0], np.float32), np.array([10, 10], np.int8)


@pytest.mark.parametrize(
    ("op", "operand", "result", "given", "expected"),
    [
        ("uniform_dequantize", FIRST.tensor(2), "tensor<2xf32>", TENS, FLOATS),
        ("uniform_quantize", "tensor<2xf32>", FIRST.tensor(2), FLOATS, TENS),
        ("uniform_quantize", FIRST.tensor(2), SECOND.tensor(2), TENS, np.array([20, 45], np.int8)),
    ],
)
def test_worked_examples(op: str, operand: str, result: str, given: Array, expected: Array) -> None:
    text = program([operand], f'"stablehlo.{op}"(%0)', [result])
    check(text, [given], expected)
    if op == "uniform_quantize":
        same(tuple(interpreted(text, given)), expected)


# -- the two formulas, for every kind of type --------------------------------------------------------------------------

KINDS = [
    A,
    Quantized((0.1,), (-30,), bounds=(-127, 127)),
    Quantized((0.37,), (200,), "u8"),
    Quantized((2.0**-20,), (3,), "u8"),
    Quantized((0.3,), (-8,), "i4"),
    Quantized((0.3,), (15,), "u4"),
    Quantized((1.5,), (1,), "i2"),
    Quantized((0.01,), (-32768,), "i16"),
    Quantized((0.01,), (65535,), "u16"),
    Quantized((0.1,), (-128,), "i8", "bf16"),
    Quantized((0.1,), (127,), "i8", "f16"),
    Quantized((0.25,), (15,), "u4", "f8E5M2"),
    Quantized((0.1,), (-2147483648,), "i32", "f64"),
    Quantized((1e-3,), (4294967295,), "u32", "f64"),
    Quantized((0.1, 3.5, 1e-3), (-30, 127, 0), axis=1),
    Quantized((0.1, 3.5, 1e-3), (4, 4, 4), "i4", "bf16", 1, (-7, 7)),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_formulas(kind: Quantized) -> None:
    """Ties, both ends of the range, and what lies far beyond it, as infinite as floats get."""
    type, floats = kind.tensor(40, 3), f"tensor<40x3x{kind.expressed}>"
    stored = random_stored(kind, 40, 3)
    dtype = kind.dequantize(stored).dtype
    scale = kind.spread(kind.scales, (40, 3), np.float64)
    with np.errstate(over="ignore"):
        values = (scale * RNG.integers(-600, 600, (40, 3)) / 2).astype(dtype)
        values[:6, 0] = np.array([np.inf, -np.inf, 1e30, -1e30, np.nan, -0.0]).astype(dtype)
    text = (
        f"func.func @main(%q: {type}, %x: {floats}) -> ({floats}, {type}, {type}) {{\n"
        f"  %0 = stablehlo.uniform_dequantize %q : ({type}) -> {floats}\n"
        f"  %1 = stablehlo.uniform_quantize %x : ({floats}) -> {type}\n"
        f"  %2 = stablehlo.uniform_quantize %0 : ({floats}) -> {type}\n"
        f"  return %0, %1, %2 : {floats}, {type}, {type}\n}}\n"
    )
    with np.errstate(all="ignore"):
        check(text, [stored, values], kind.dequantize(stored), kind.quantize(values), _again(kind, stored))


def _again(kind: Quantized, stored: Array) -> Array:
    return kind.quantize(kind.dequantize(stored))


def test_types_may_be_aliases_and_tensors_dynamic() -> None:
    text = (
        "!q = !quant.uniform<i8:f32, 0.1:-30>\n!t = tensor<?x!q, #stablehlo.bounds<4>>\n"
        "func.func @main(%0: !t) -> !t { %1 = stablehlo.negate %0 : !t\n return %1 : !t }"
    )
    module = stablehlo.parse(text)
    assert str(module.signature) == "(s8[<=4]) -> s8[<=4]"
    stored = A.stored([1, -128, 60])
    same(xlapy.evaluate(module, stored), A.quantize(-A.dequantize(stored)))


# -- dequantize, operate, quantize -------------------------------------------------------------------------------------

UNARY = [
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
    *("logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
]
BINARY = ["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"]


def _many(ops: Sequence[str], operands: Sequence[str], result: str) -> str:
    """One program that applies each operation to all arguments."""
    arguments = ", ".join(f"%a{number}: {type}" for number, type in enumerate(operands))
    names = ", ".join(f"%a{number}" for number in range(len(operands)))
    lines = [f'  %r{n} = "stablehlo.{op}"({names}) : ({", ".join(operands)}) -> {result}' for n, op in enumerate(ops)]
    returned = ", ".join(f"%r{number}" for number in range(len(ops)))
    types = ", ".join([result] * len(ops))
    body = "\n".join(lines)
    return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n  return {returned} : {types}\n}}\n"


@pytest.mark.parametrize(("ops", "types"), [(UNARY, [A]), (BINARY, [A, B])], ids=["unary", "binary"])
def test_element_wise(ops: Sequence[str], types: list[Quantized]) -> None:
    """quantize(op(dequantize(...))), the operation itself being that on floats, and native where native code runs."""
    stored = [types[0].every(), *(type.every()[::-1].copy() for type in types[1:])]
    text = _many(ops, [type.tensor(256) for type in types], C.tensor(256))
    floats = stablehlo.parse(_many(ops, ["tensor<256xf32>"] * len(types), "tensor<256xf32>"))
    dequantized = [type.dequantize(values) for type, values in zip(types, stored, strict=True)]
    module = stablehlo.parse(text)
    same(xlapy.evaluate(module, *stored), *map(C.quantize, xlapy.evaluate(floats, *dequantized)))
    same(xlapy.compile(module)(*stored), *map(C.quantize, xlapy.compile(floats)(*dequantized)))
    assert refusal(text) == ""


@pytest.mark.parametrize("op", ["abs", "ceil", "negate", "sign", "tanh", "add", "subtract", "maximum", "atan2"])
def test_against_the_interpreter_of_stablehlo(op: str) -> None:
    types = [A] if op in UNARY else [A, B]
    text = _many([op], [type.tensor(256) for type in types], C.tensor(256))
    stored = [types[0].every(), *(type.every()[::-1].copy() for type in types[1:])]
    same(xlapy.evaluate(stablehlo.parse(text), *stored), *interpreted(text, *stored))


def test_add_per_axis() -> None:
    one, two = Quantized((0.1, 0.2), (1, -2), axis=0), Quantized((0.3, 0.2), (4, 0), axis=0)
    x, y = random_stored(one, 2, 9), random_stored(two, 2, 9)
    line = '"stablehlo.add"(%0, %1)'
    text = program([one.tensor(2, 9), two.tensor(2, 9)], line, [two.tensor(2, 9)])
    check(text, [x, y], two.quantize(one.dequantize(x) + two.dequantize(y)))


def test_operations_with_parts_that_are_not_quantized() -> None:
    x, y = A.every(), B.every()[::-1].copy()
    a, b = A.dequantize(x), B.dequantize(y)
    qa, qb, qc, bits = A.tensor(256), B.tensor(256), C.tensor(256), "tensor<256xi1>"
    pred = RNG.random(256) < 0.5
    selected = program([bits, qa, qb], '"stablehlo.select"(%0, %1, %2)', [qc])
    check(selected, [pred, x, y], C.quantize(np.where(pred, a, b)), verified=False)  # the verifier wants equal scales
    less = "{comparison_direction = #stablehlo<comparison_direction LT>}"
    check(program([qa, qb], f'"stablehlo.compare"(%0, %1) {less}', [bits]), [x, y], a < b)
    check(program([qa], '"stablehlo.is_finite"(%0)', [bits]), [x], np.ones(256, np.bool_))
    low, high = A.stored(-100), B.stored(20)
    clamped = program([A.tensor(), qa, B.tensor()], '"stablehlo.clamp"(%0, %1, %2)', [qc])
    bounds = A.dequantize(low), B.dequantize(high)
    check(clamped, [low, x, high], C.quantize(np.minimum(np.maximum(a, bounds[0]), bounds[1])))
    counted = np.broadcast_to(np.arange(200, dtype=np.float32), (2, 200))
    check(program([], '"stablehlo.iota"() {iota_dimension = 1 : i64}', [A.tensor(2, 200)]), [], A.quantize(counted))
    rounding = "{exponent_bits = 5 : i32, mantissa_bits = 2 : i32}"
    floats = xlapy.evaluate(
        stablehlo.parse(
            program(["tensor<256xf32>"], f'"stablehlo.reduce_precision"(%0) {rounding}', ["tensor<256xf32>"])
        ),
        a,
    )
    check(program([qa], f'"stablehlo.reduce_precision"(%0) {rounding}', [qc]), [x], C.quantize(floats))


def test_batch_normalization() -> None:
    """Three results are quantized each to its own type."""
    x = random_stored(A, 4, 3)
    vectors = [random_stored(B, 3), random_stored(C, 3)]
    attributes = "{epsilon = 0.5 : f32, feature_index = 1 : i64}"
    operands = [A.tensor(4, 3), B.tensor(3), C.tensor(3)]
    line = f'"stablehlo.batch_norm_training"(%0, %1, %2) {attributes}'
    floats = program(
        ["tensor<4x3xf32>", "tensor<3xf32>", "tensor<3xf32>"],
        line,
        ["tensor<4x3xf32>", "tensor<3xf32>", "tensor<3xf32>"],
    )
    dequantized = [type.dequantize(value) for type, value in zip((A, B, C), (x, *vectors), strict=True)]
    out, mean, variance = xlapy.evaluate(stablehlo.parse(floats), *dequantized)
    text = program(operands, line, [C.tensor(4, 3), A.tensor(3), B.tensor(3)])
    found = xlapy.evaluate(stablehlo.parse(text), x, *vectors)
    same(found, C.quantize(out), A.quantize(mean), B.quantize(variance))
    assert refusal(text) == ""
    for op, operands, results in (
        (
            "batch_norm_inference",
            [A.tensor(4, 3), B.tensor(3), C.tensor(3), A.tensor(3), B.tensor(3)],
            [C.tensor(4, 3)],
        ),
        (
            "batch_norm_grad",
            [A.tensor(4, 3), B.tensor(3), C.tensor(3), A.tensor(3), C.tensor(4, 3)],
            [A.tensor(4, 3), B.tensor(3), C.tensor(3)],
        ),
    ):
        text = program(operands, f'"stablehlo.{op}"(%0, %1, %2, %3, %4) {attributes}', results)
        assert refusal(text) == ""
        assert str(stablehlo.parse(text).signature.parameters[0]) == "s8[4,3]"


def test_linear_algebra() -> None:
    matrix = EXACT_ZERO.quantize(np.array([[4, 2], [2, 5]], np.float32))
    pair = EXACT_ZERO.tensor(2, 2)
    text = program([pair], '"stablehlo.cholesky"(%0) {lower = true}', [pair])
    found = xlapy.evaluate(stablehlo.parse(text), matrix)
    np.testing.assert_array_equal(np.tril(found), EXACT_ZERO.quantize(np.array([[2, 0], [1, 2]], np.float32)))
    assert refusal(text) == ""
    solving = (
        "{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}"
    )
    lower = EXACT_ZERO.quantize(np.array([[1, 0, 0], [2, 4, 0], [3, 5, 6]], np.float32))
    right = EXACT_ZERO.quantize(np.array([[2, 0, 0], [4, 8, 0], [6, 10, 12]], np.float32))
    square = EXACT_ZERO.tensor(3, 3)
    text = program([square, square], f'"stablehlo.triangular_solve"(%0, %1) {solving}', [square])
    expected = EXACT_ZERO.quantize(2 * np.eye(3, dtype=np.float32))
    check(text, [lower, right], expected, verified=False)  # which the specification has, and the verifier has not


# -- sums of products --------------------------------------------------------------------------------------------------

DOT = (
    "{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>,"
    " precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}"
)
CONVOLUTION = (
    "{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, window_strides = array<i64: 1>,"
    " padding = dense<0> : tensor<1x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}"
)
EIGHTH = Quantized((0.125,), (0,))
QUARTER = Quantized((0.25,), (-30,))
AXES = Quantized((0.125, 0.5, 0.0625), (0, 0, 0), axis=1)


def test_dot_general() -> None:
    """Scales are powers of two, so that sums are exact in any order."""
    x, y = random_stored(QUARTER, 4, 8), random_stored(EIGHTH, 8, 3)
    line = f'"stablehlo.dot_general"(%0, %1) {DOT}'
    products = QUARTER.dequantize(x) @ EIGHTH.dequantize(y)
    wide = Quantized((7.0,), (3,))
    check(
        program([QUARTER.tensor(4, 8), EIGHTH.tensor(8, 3)], line, [wide.tensor(4, 3)]), [x, y], wide.quantize(products)
    )
    hybrid = program(["tensor<4x8xf32>", EIGHTH.tensor(8, 3)], line, ["tensor<4x3xf32>"])
    check(hybrid, [QUARTER.dequantize(x), y], products)
    per_axis = program([QUARTER.tensor(4, 8), AXES.tensor(8, 3)], line, [wide.tensor(4, 3)])
    check(per_axis, [x, y], wide.quantize(QUARTER.dequantize(x) @ AXES.dequantize(y)))


def _convolved(image: Array, kernel: Array) -> Array:
    steps = image.shape[1] - kernel.shape[0] + 1
    windows = [image[:, start : start + kernel.shape[0]] for start in range(steps)]
    return np.stack([np.einsum("nkc,kco->no", window, kernel) for window in windows], 1).astype(np.float32)


def test_convolution() -> None:
    kernel = Quantized((0.125, 0.5), (0, 7), axis=2)
    result = Quantized((7.0, 3.0), (3, -4), axis=2)
    x, k = random_stored(QUARTER, 2, 6, 3), random_stored(kernel, 3, 3, 2)
    line = f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}'
    sums = _convolved(QUARTER.dequantize(x), kernel.dequantize(k))
    text = program([QUARTER.tensor(2, 6, 3), kernel.tensor(3, 3, 2)], line, [result.tensor(2, 4, 2)])
    check(text, [x, k], result.quantize(sums))
    hybrid = program(["tensor<2x6x3xf32>", kernel.tensor(3, 3, 2)], line, ["tensor<2x4x2xf32>"])
    check(hybrid, [QUARTER.dequantize(x), k], sums)


# -- data movement -----------------------------------------------------------------------------------------------------


def test_data_movement() -> None:
    x = random_stored(A, 2, 3)
    q = A.tensor
    cases = [
        ([q(2, 3)], '"stablehlo.reshape"(%0)', q(6), [x], x.reshape(6)),
        ([q(2, 3)], '"stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>}', q(3, 2), [x], x.T),
        ([q(2, 3)], '"stablehlo.reverse"(%0) {dimensions = array<i64: 1>}', q(2, 3), [x], x[:, ::-1]),
        (
            [q(2, 3)],
            '"stablehlo.slice"(%0) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 3>,'
            " strides = array<i64: 1, 1>}",
            q(2, 2),
            [x],
            x[:, 1:],
        ),
        (
            [q(2, 3)] * 2,
            '"stablehlo.concatenate"(%0, %1) {dimension = 0 : i64}',
            q(4, 3),
            [x, x],
            np.concatenate([x, x]),
        ),
        (
            [q(2, 3), q()],
            '"stablehlo.pad"(%0, %1) {edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, 0>,'
            " interior_padding = array<i64: 0, 0>}",
            q(3, 3),
            [x, A.stored(9)],
            np.pad(x, ((1, 0), (0, 0)), constant_values=9),
        ),
        (
            [q(2, 3), "tensor<i32>", "tensor<i32>"],
            '"stablehlo.dynamic_slice"(%0, %1, %2) {slice_sizes = array<i64: 1, 2>}',
            q(1, 2),
            [x, np.int32(1), np.int32(1)],
            x[1:2, 1:3],
        ),
        (
            [q(2, 3), q(1, 1), "tensor<i32>", "tensor<i32>"],
            '"stablehlo.dynamic_update_slice"(%0, %1, %2, %3)',
            q(2, 3),
            [x, x[:1, :1], np.int32(0), np.int32(1)],
            np.array([[x[0, 0], x[0, 0], x[0, 2]], x[1]], np.int8),
        ),
        (
            [q(2, 3), "tensor<2x1xi32>"],
            '"stablehlo.gather"(%0, %1) {dimension_numbers = #stablehlo.gather<offset_dims = [1],'
            " collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,"
            " slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}",
            q(2, 3),
            [x, np.array([[1], [0]], np.int32)],
            x[[1, 0]],
        ),
        (
            [q(2, 3)],
            '"stablehlo.get_dimension_size"(%0) {dimension = 1 : i64}',
            "tensor<i32>",
            [x],
            np.array(3, np.int32),
        ),
        ([q(2, 3)], '"stablehlo.bitcast_convert"(%0)', "tensor<2x3xui8>", [x], x.view(np.uint8)),
        ([q(2, 3)], '"stablehlo.optimization_barrier"(%0)', q(2, 3), [x], x),
    ]
    for operands, line, result, arguments, expected in cases:
        check(program(operands, line, [result]), [np.asarray(argument) for argument in arguments], np.asarray(expected))


def test_data_movement_per_axis() -> None:
    rows = Quantized((0.1, 0.2), (3, 4), axis=0)
    x = random_stored(rows, 2, 3)
    columns, inner = rows.on(1), rows.on(1)
    repeated = Quantized((0.1,) * 3, (3,) * 3, axis=0)
    one = Quantized((0.1,), (3,), axis=0)
    wider = '"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 1, 2>}'
    single = '"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0>}'
    cases = [
        (
            [rows.tensor(2, 3)],
            '"stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>}',
            columns.tensor(3, 2),
            x,
            x.T,
        ),
        ([rows.tensor(2, 3)], '"stablehlo.reshape"(%0)', inner.tensor(1, 2, 3), x, x[None]),
        ([rows.tensor(2, 3)], wider, rows.on(1).tensor(4, 2, 3), x, np.broadcast_to(x, (4, 2, 3))),
        ([one.tensor(1)], single, repeated.tensor(3), x[0, :1], np.repeat(x[0, :1], 3)),
        ([rows.tensor(2, 3)], '"stablehlo.bitcast_convert"(%0)', "tensor<2x3xi8>", x, x),
    ]
    for operands, line, result, argument, expected in cases:
        check(program(operands, line, [result]), [argument], np.ascontiguousarray(expected))


CONSTANTS = [
    f'%0 = "stablehlo.constant"() {{value = dense<[1, -128]> : tensor<2xi8>}} : () -> {A.tensor(2)}',
    f'%0 = "stablehlo.constant"() <{{value = dense<[1, -128]> : tensor<2xi8>}}> : () -> {A.tensor(2)}',
    f"%0 = stablehlo.constant() <{{value = dense<[1, -128]> : tensor<2xi8>}}> : () -> {A.tensor(2)}",
    f"%0 = stablehlo.constant dense<[1, -128]> : {A.tensor(2)}",
    f'%0 = "stablehlo.constant"() {{value = dense<[1, -128]> : {A.tensor(2)}}} : () -> {A.tensor(2)}',
]


@pytest.mark.parametrize("line", CONSTANTS)
def test_constants_are_given_in_storage(line: str) -> None:
    """The specification gives them the quantized type, MLIR that of the storage."""
    text = f"func.func @main() -> {A.tensor(2)} {{ {line}\n return %0 : {A.tensor(2)} }}"
    check(text, [], np.array([1, -128], np.int8), verified=f": {A.tensor(2)}}}" not in line and "()" in line)


# -- regions -----------------------------------------------------------------------------------------------------------


def folding(op: str, type: str) -> str:
    return (
        f"({{ ^bb0(%a: {type}, %b: {type}):\n  %c = stablehlo.{op} %a, %b : {type}\n  stablehlo.return %c : {type} }})"
    )


def _sum(values: Sequence[int], start: int, type: Quantized) -> int:
    """Folds stored integers as the region does: dequantize, add, quantize."""
    total = type.stored(start)
    for value in values:
        total = type.quantize(type.dequantize(total) + type.dequantize(type.stored(value)))
    return int(total)


HALF = Quantized((0.5,), (10,))
WIDE = Quantized((0.25,), (-7,), "i16")


def _promoted(values: Array, type: Quantized, wide: Quantized) -> Array:
    return wide.quantize(type.dequantize(values))


def test_reduce() -> None:
    x, start = HALF.stored(RNG.integers(0, 20, (3, 5))), HALF.stored(12)
    for element in (HALF, WIDE):  # the region may fold a wider type
        starts = _promoted(start, HALF, element)
        rows = _promoted(x, HALF, element)
        expected = element.stored([_sum(row, int(starts), element) for row in rows.tolist()])
        line = f'"stablehlo.reduce"(%0, %1) {folding("add", element.tensor())} {{dimensions = array<i64: 1>}}'
        check(program([HALF.tensor(3, 5), HALF.tensor()], line, [element.tensor(3)]), [x, start], expected)
    pretty = (
        f"func.func @main(%0: {HALF.tensor(3, 5)}, %1: {HALF.tensor()}) -> {HALF.tensor(3)} {{\n"
        f"  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.maximum across dimensions = [1] :"
        f" ({HALF.tensor(3, 5)}, {HALF.tensor()}) -> {HALF.tensor(3)}\n  return %2 : {HALF.tensor(3)} }}"
    )
    check(pretty, [x, start], np.maximum(x.max(1), start))


def test_reduce_window_and_map() -> None:
    x, start = HALF.stored(RNG.integers(0, 20, 6)), HALF.stored(10)
    attributes = "{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}"
    line = f'"stablehlo.reduce_window"(%0, %1) {folding("add", HALF.tensor())} {attributes}'
    expected = HALF.stored([_sum(pair, 10, HALF) for pair in x.reshape(3, 2).tolist()])
    check(program([HALF.tensor(6), HALF.tensor()], line, [HALF.tensor(3)]), [x, start], expected)
    line = f'"stablehlo.map"(%0, %1) {folding("add", HALF.tensor())} {{dimensions = array<i64: 0>}}'
    doubled = HALF.quantize(2 * HALF.dequantize(x))
    check(program([HALF.tensor(6)] * 2, line, [HALF.tensor(6)]), [x, x], doubled)


@pytest.mark.parametrize("element", [HALF, WIDE], ids=["same", "wider"])
def test_scatter(element: Quantized) -> None:
    x, updates = HALF.stored(RNG.integers(0, 20, 5)), HALF.stored([13, 8])
    line = (
        f'"stablehlo.scatter"(%0, %1, %2) {folding("add", element.tensor())} {{scatter_dimension_numbers ='
        " #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,"
        " indices_are_sorted = false, unique_indices = false}"
    )
    expected = _promoted(x, HALF, element)
    for place, update in zip((3, 1), _promoted(updates, HALF, element).tolist(), strict=True):
        expected[place] = _sum([update], int(expected[place]), element)
    text = program([HALF.tensor(5), "tensor<2x1xi32>", HALF.tensor(2)], line, [element.tensor(5)])
    check(text, [x, np.array([[3], [1]], np.int32), updates], expected)


def comparing(direction: str, type: str, more: str = "") -> str:
    return (
        f"{{ ^bb0(%a: {type}, %b: {type}{more}):\n"
        f"  %c = stablehlo.compare {direction}, %a, %b : ({type}, {type}) -> tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1> }"
    )


def test_sort() -> None:
    x, y = random_stored(A, 40), random_stored(B, 40)
    region = comparing("LT", A.tensor(), f", %d: {B.tensor()}, %e: {B.tensor()}")
    line = f'"stablehlo.sort"(%0, %1) ({region}) {{dimension = 0 : i64, is_stable = true}}'
    order = np.argsort(x, kind="stable")
    types = [A.tensor(40), B.tensor(40)]
    check(program(types, line, types), [x, y], x[order], y[order])


@pytest.mark.parametrize("element", [HALF, WIDE, Quantized((0.5,), (3,), "u8")], ids=["same", "wider", "other"])
def test_select_and_scatter(element: Quantized) -> None:
    x, source, start = HALF.stored([1, 9, 4, 7]), HALF.stored([12, 15]), HALF.stored(10)
    regions = f"({comparing('GE', HALF.tensor())}, {folding('add', element.tensor())[1:-1]})"
    attributes = "{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}"
    line = f'"stablehlo.select_and_scatter"(%0, %1, %2) {regions} {attributes}'
    starts, values = _promoted(start, HALF, element), _promoted(source, HALF, element)
    expected = np.repeat(starts, 4)
    expected[1], expected[3] = (_sum([value], int(starts), element) for value in values.tolist())
    text = program([HALF.tensor(4), HALF.tensor(2), HALF.tensor()], line, [element.tensor(4)])
    check(text, [x, source, start], expected)


TRIPLE = HALF.tensor(3)
CONTROL_FLOW = f"""
func.func private @twice(%0: {TRIPLE}) -> {TRIPLE} {{
  %1 = stablehlo.add %0, %0 : {TRIPLE}
  return %1 : {TRIPLE}
}}
func.func @main(%x: {TRIPLE}, %n: tensor<i32>) -> ({TRIPLE}, {TRIPLE}, tensor<i32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %unit = stablehlo.constant dense<1> : tensor<i32>
  %ones = stablehlo.constant() {{value = dense<12> : tensor<3xi8>}} : () -> {TRIPLE}
  %w:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, {TRIPLE}
   cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %unit : tensor<i32>
    %t = stablehlo.add %s, %ones : {TRIPLE}
    stablehlo.return %j, %t : tensor<i32>, {TRIPLE}
  }}
  %p = stablehlo.compare GT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = "stablehlo.if"(%p) ({{
    stablehlo.return %w#1 : {TRIPLE}
  }}, {{
    %d = func.call @twice(%x) : ({TRIPLE}) -> {TRIPLE}
    stablehlo.return %d : {TRIPLE}
  }}) : (tensor<i1>) -> {TRIPLE}
  %k = "stablehlo.case"(%n) ({{
    stablehlo.return %x : {TRIPLE}
  }}, {{
    stablehlo.return %r : {TRIPLE}
  }}) : (tensor<i32>) -> {TRIPLE}
  %u = stablehlo.tuple %k, %n : tuple<{TRIPLE}, tensor<i32>>
  %v = stablehlo.get_tuple_element %u[0] : (tuple<{TRIPLE}, tensor<i32>>) -> {TRIPLE}
  return %r, %v, %w#0 : {TRIPLE}, {TRIPLE}, tensor<i32>
}}
"""


def test_control_flow() -> None:
    one = HALF.stored([11, 12, 13])
    for count in (0, 2):
        last = one + 2 * count if count else HALF.quantize(2 * HALF.dequantize(one))
        arguments = [one, np.array(count, np.int32)]
        check(CONTROL_FLOW, arguments, last, last if count else one, np.array(count, np.int32))


# -- between processes -------------------------------------------------------------------------------------------------

PAIR = "{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


def _on_two(text: str) -> Any:
    module = stablehlo.parse("module attributes {mhlo.num_replicas = 2 : i32} {\n" + text + "\n}")
    return xlapy.compile(module, xlapy.CompileOptions(num_replicas=2))


def test_collectives() -> None:
    q = HALF.tensor(2)
    x, y = HALF.stored([11, -5]), HALF.stored([20, 30])
    zeros = HALF.quantize(np.zeros(2, np.float32))
    cases = [
        (
            f'"stablehlo.all_gather"(%0) {PAIR}, all_gather_dim = 0 : i64}}',
            HALF.tensor(4),
            [np.concatenate([x, y])] * 2,
        ),
        (
            f'"stablehlo.all_to_all"(%0) {PAIR}, split_dimension = 0 : i64, concat_dimension = 0 : i64,'
            " split_count = 2 : i64}",
            q,
            [np.array([x[0], y[0]]), np.array([x[1], y[1]])],
        ),
        (
            '"stablehlo.collective_permute"(%0) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}',
            q,
            [zeros, x],
        ),
        ('"stablehlo.collective_broadcast"(%0) {replica_groups = dense<[[1]]> : tensor<1x1xi64>}', q, [zeros, y]),
        (
            f'"stablehlo.all_reduce"(%0) {folding("add", q.replace("2x", ""))} {PAIR}}}',
            q,
            [HALF.quantize(HALF.dequantize(x) + HALF.dequantize(y))] * 2,
        ),
        (
            f'"stablehlo.all_reduce"(%0) {folding("add", WIDE.tensor())} {PAIR}}}',
            WIDE.tensor(2),
            [_wide_sum(x, y)] * 2,
        ),
        (
            f'"stablehlo.reduce_scatter"(%0) {folding("add", HALF.tensor())} {PAIR}, scatter_dimension = 0 : i64}}',
            HALF.tensor(1),
            [HALF.quantize(HALF.dequantize(x) + HALF.dequantize(y))[place : place + 1] for place in (0, 1)],
        ),
    ]
    for line, result, expected in cases:
        text = program([q], line, [result])
        assert refusal(text) == ""
        for found, wanted in zip(_on_two(text).run_parallel([[x], [y]]), expected, strict=True):
            same(found, wanted)


def _wide_sum(x: Array, y: Array) -> Array:
    one, other = (WIDE.dequantize(_promoted(values, HALF, WIDE)) for values in (x, y))
    return WIDE.quantize(one + other)


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_quantized_tensors_may_have_open_sizes() -> None:
    open_type = f"tensor<?x3x{A}>"
    text = program([open_type, open_type], '"stablehlo.add"(%0, %1)', [open_type])
    module = stablehlo.parse(text)
    assert stablehlo.to_text(module) == text
    executable = xlapy.compile(module)
    for rows in (2, 5):
        x, y = random_stored(A, rows, 3), random_stored(A, rows, 3)
        expected = A.quantize(A.dequantize(x) + A.dequantize(y))
        same(executable(x, y), expected)
        same(xlapy.evaluate(module, x, y), expected)


def _sizes(*numbers: int) -> str:
    return f"stablehlo.constant dense<{[*numbers]}> : tensor<{len(numbers)}xi64>"


MATRIX = random_stored(A, 2, 3)
FILLED = np.full((4, 9), 7, np.int8)
FILLED[0:3:2, 1:6:2] = MATRIX
ONES, ZERO_ONE, ONE_THREE, FOUR = (_sizes(*numbers) for numbers in ((1, 1), (0, 1), (1, 3), (4, 2, 3)))
SEVEN = f"stablehlo.constant() {{value = dense<7> : tensor<i8>}} : () -> tensor<{A}>"
OPEN = f"tensor<?x?x{A}>"
DYNAMIC = [
    ("dynamic_reshape", [_sizes(3, 2)], "", OPEN, MATRIX.reshape(3, 2)),
    ("dynamic_pad", [SEVEN, ZERO_ONE, ONE_THREE, ONES], "", OPEN, FILLED),
    ("real_dynamic_slice", [ZERO_ONE, ONE_THREE, ONES], "", OPEN, MATRIX[:1, 1:3]),
    (
        "dynamic_broadcast_in_dim", [FOUR], " {broadcast_dimensions = array<i64: 1, 2>}",
        f"tensor<?x?x?x{A}>", np.broadcast_to(MATRIX, (4, 2, 3)),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "constants", "attributes", "result", "expected"), DYNAMIC, ids=[row[0] for row in DYNAMIC]
)
def test_data_movement_with_sizes_as_operands(
    name: str, constants: Sequence[str], attributes: str, result: str, expected: Array
) -> None:
    lines = [f"  %c{number} = {constant}\n" for number, constant in enumerate(constants)]
    types = [re.split(" : | -> ", constant)[-1] for constant in constants]
    operands = ", ".join(["%x", *(f"%c{number}" for number in range(len(constants)))])
    text = (
        f"func.func @main(%x: {A.tensor(2, 3)}) -> {result} {{\n{''.join(lines)}"
        f'  %r = "stablehlo.{name}"({operands}){attributes} : ({", ".join([A.tensor(2, 3), *types])}) -> {result}\n'
        f"  return %r : {result}\n}}\n"
    )
    check(text, [MATRIX], expected)


def test_an_iota_of_a_size_that_is_an_operand() -> None:
    text = (
        f"func.func @main() -> tensor<?x{EXACT_ZERO}> {{\n  %n = {_sizes(5)}\n"
        '  %r = "stablehlo.dynamic_iota"(%n) {iota_dimension = 0 : i64} : (tensor<1xi64>)'
        f" -> tensor<?x{EXACT_ZERO}>\n"
        f"  return %r : tensor<?x{EXACT_ZERO}>\n}}\n"
    )
    check(text, [], EXACT_ZERO.quantize(np.arange(5, dtype=np.float32)))


def test_a_convolution_whose_padding_is_an_operand() -> None:
    kernel = Quantized((0.25,), (0,))
    image, window = A.tensor(1, 1, 5), kernel.tensor(1, 1, 3)
    text = (
        f"func.func @main(%x: {image}, %w: {window}) -> {C.tensor(1, 1, 6)} {{\n"
        "  %p = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi64>\n"
        '  %r = "stablehlo.dynamic_conv"(%x, %w, %p) '
        "{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, "
        "feature_group_count = 1 : i64, batch_group_count = 1 : i64} : "
        f"({image}, {window}, tensor<1x2xi64>) -> {C.tensor(1, 1, 6)}\n"
        f"  return %r : {C.tensor(1, 1, 6)}\n}}\n"
    )
    x, w = random_stored(A, 1, 1, 5), random_stored(kernel, 1, 1, 3)
    padded = np.pad(A.dequantize(x), ((0, 0), (0, 0), (1, 2)))[0, 0]
    sums = np.correlate(padded, kernel.dequantize(w)[0, 0], "valid").astype(np.float32)
    check(text, [x, w], C.quantize(sums).reshape(1, 1, 6))


# -- the text, the graph, the table ------------------------------------------------------------------------------------


def test_the_text_of_an_unmodified_module_comes_back() -> None:
    text = "// a comment\n" + program([A.tensor(2)], '"stablehlo.abs"(%0)', [C.tensor(2)])
    module = stablehlo.parse(text)
    assert stablehlo.to_text(module) == text
    assert stablehlo.to_text(module.clone()) == text
    x = A.stored([-100, 60])
    expected = xlapy.evaluate(module, x)
    module.entry.set_root(module.entry.add("abs", [module.entry.root]))
    changed = stablehlo.to_text(module)
    assert "quant" not in changed and changed.count("stablehlo.abs") == 2
    same(xlapy.evaluate(stablehlo.parse(changed), x), np.abs(expected))


def test_compiling_leaves_the_module_as_it_was() -> None:
    text = program([A.tensor(2)], '"stablehlo.abs"(%0)', [C.tensor(2)])
    module = stablehlo.parse(text)
    before = fingerprint(module)
    xlapy.compile(module)
    assert fingerprint(module) == before and stablehlo.to_text(module) == text


def test_a_program_without_quantized_types_keeps_no_text() -> None:
    assert stablehlo.parse(program(["tensor<2xf32>"], '"stablehlo.abs"(%0)', ["tensor<2xf32>"])).source is None


def test_only_known_operations_have_a_treatment() -> None:
    assert [name for name in TREATMENTS if name not in CONVERSIONS] == []


def test_shapes_of_quantized_types_equal_only_their_like() -> None:
    stored = Shape.array(np.int8, (2,))
    shape, same, other = (
        quantized_shape(QuantizedType(S8, -128, 127, F32, None, (scale,), (0,)), stored) for scale in (0.5, 0.5, 0.25)
    )
    assert hash(shape) == hash(same) and shape == same and shape != other and shape != stored and stored != shape
    assert not shape.matches(other) and not shape.matches(stored)
    assert pickle.loads(pickle.dumps(shape)) == shape
