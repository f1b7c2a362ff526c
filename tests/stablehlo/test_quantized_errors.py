"""Quantized programs that are wrong: each constraint of the specification has its label, and each error its place.

The verifier of StableHLO that jaxlib contains refuses the same programs, but where `KINDER` says that it does not.
"""

from __future__ import annotations

import random
import re

import pytest

from tests.stablehlo.quantized import Quantized, program, refusal
from tests.stablehlo.test_errors import located
from tests.stablehlo.test_quantized import BINARY, CONVOLUTION, DOT, UNARY, comparing, folding
from xlapy import stablehlo
from xlapy.support.errors import InternalError, ParseError, UnsupportedError, XlaError

TYPES = [
    ("i32:f32, 0.1", "quantized_type.C1"),
    ("i64:f64, 0.1", "quantized_type.C1"),
    ("i8<-129:127>:f32, 0.1", "quantized_type.C4"),
    ("u8<0:256>:f32, 0.1", "quantized_type.C4"),
    ("i8<3:3>:f32, 0.1", "quantized_type.C4"),
    ("i8:f32, -0.1", "quantized_type.C6"),
    ("i8:f32, 0.0", "quantized_type.C6"),
    ("i8:f32, 1.0e-50", "quantized_type.C6"),
    ("i8:f32, 1.0e39", "quantized_type.C7"),
    ("i8:f32, 0x7FC00000", "quantized_type.C7"),
    ("i8:f32, 0.1:200", "quantized_type.C8"),
    ("i8<0:100>:f32, 0.1:-3", "quantized_type.C8"),
    ("i8:f32, {0.1, 0.2}", "quantized_type.C11"),
    ("i8:f32:-1, {0.1, 0.2}", "quantized_type.C12"),
    ("i8:f32:1, {0.1, 0.2}", "quantized_tensor.C12"),
    ("i8:f32:0, {0.1, 0.2, 0.3}", "quantized_tensor.C13"),
]


@pytest.mark.parametrize(("type", "label"), TYPES)
def test_constraints_of_types(type: str, label: str) -> None:
    error = located(f"func.func @main(%0: tensor<2x!quant.uniform<{type}>>) {{ return }}")
    assert error.rule == label


MALFORMED = [
    ("!quant.uniform", "not a quantized type"),
    ("!quant.uniform<>", "not a quantized type"),
    ("!quant.uniform<i8>", "not a quantized type"),
    ("!quant.uniform<i8:f32>", "not a quantized type"),
    ("!quant.uniform<i8:f32,>", "expected a scale"),
    ("!quant.uniform<i8:f32, 0.1:>", "expected an integer"),
    ("!quant.uniform<i8:f32, 0.1:1.5>", "expected an integer, found '1.5'"),
    ("!quant.uniform<i8:f32, 0.1:1:2>", "expected an integer"),
    (f"!quant.uniform<i8:f32, 0.1:{'9' * 100}>", "expected an integer"),
    ("!quant.uniform<i8:f32, x>", "expected a scale, like 0.1, found 'x'"),
    ("!quant.uniform<i8:f32, 0x3DCC>", "expected a scale"),
    ("!quant.uniform<i8:f32:0, {}>", "expected a scale"),
    ("!quant.uniform<i8:f32:0, {0.1,}>", "expected a scale"),
    ("!quant.uniform<i8:f32:0, {0.1>", "not a quantized type"),
    ("!quant.uniform<i8<1>:f32, 0.1>", "not a quantized type"),
    ("!quant.uniform<i8<a:b>:f32, 0.1>", "expected an integer, found 'a'"),
    ("!quant.uniform<i7:f32, 0.1>", "'i7' is not a storage type"),
    ("!quant.uniform<i1:f32, 0.1>", "'i1' is not a storage type"),
    ("!quant.uniform<f16:f32, 0.1>", "'f16' is not a storage type"),
    ("!quant.uniform<i8:i32, 0.1>", "'i32' is not an expressed type"),
    ("!quant.uniform<i8:f33, 0.1>", "'f33' is not an expressed type"),
    ("!q", "no element type '!q'"),
]


@pytest.mark.parametrize(("type", "message"), MALFORMED, ids=[type[:40] for type, _ in MALFORMED])
def test_malformed_types(type: str, message: str) -> None:
    error = located(f"func.func @main(%0: tensor<2x{type}>) {{ return }}")
    assert isinstance(error, ParseError)
    assert message in str(error)
    if type.startswith("!quant.uniform<") and "{0.1>" not in type:
        assert isinstance(located(f"!q = {type}\nfunc.func @main(%0: tensor<2x!q>) {{ return }}"), ParseError)


@pytest.mark.parametrize(
    "type", ["!quant.uniform<i8:f32:{0:1}, {{0.1}, {0.2}}>", "!quant.calibrated<f32<-1.0:1.0>>", "!quant.any<i8:f32>"]
)
def test_other_quantized_types(type: str) -> None:
    assert isinstance(located(f"!q = {type}\nfunc.func @main(%0: tensor<2x!q>) {{ return }}"), UnsupportedError)


# -- constraints of operations -----------------------------------------------------------------------------------------

Q = Quantized((0.1,), (-30,))
P = Quantized((0.2,), (5,))  # differs in scale and zero point
N = Quantized((0.1,), (-30,), bounds=(-127, 127))  # differs in bounds
H = Quantized((0.1,), (-30,), "i8", "f16")  # differs in expressed type
W = Quantized((0.1,), (-30,), "i16")  # differs in storage type
Z = Quantized((0.1,), (0,))
ROWS = Quantized((0.1, 0.2), (1, 2), axis=0)
COLUMNS = ROWS.on(1)
q, p, n, h, w, z = Q.tensor(2, 2), P.tensor(2, 2), N.tensor(2, 2), H.tensor(2, 2), W.tensor(2, 2), Z.tensor(2, 2)
rows, columns = ROWS.tensor(2, 2), COLUMNS.tensor(2, 2)
f, i, bits = "tensor<2x2xf32>", "tensor<2x2xi8>", "tensor<2x2xi1>"
q0, p0, n0, h0, w0 = Q.tensor(), P.tensor(), N.tensor(), H.tensor(), W.tensor()

UNQUANTIZED = ["count_leading_zeros", "imag", "not", "popcnt", "real"]
PRECISION = "{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}"
SOLVE = "{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}"
NORM = "{epsilon = 0.5 : f32, feature_index = 1 : i64}"
LESS = "{comparison_direction = #stablehlo<comparison_direction LT>}"
SLICE = "{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 2>, strides = array<i64: 1, 1>}"
PAD = "{edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}"
GATHER = (
    "{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],"
    " index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false}"
)
SCATTER = (
    "{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],"
    " scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}"
)
GROUPS = "{replica_groups = dense<[[0]]> : tensor<1x1xi64>"
WINDOW = "{window_dimensions = array<i64: 1, 1>, window_strides = array<i64: 1, 1>}"
FOLD_Q, FOLD_H = folding("add", q0), folding("add", h0)
V, VP, VN = Q.tensor(2), P.tensor(2), N.tensor(2)
IMAGE, KERNEL = Z.tensor(1, 4, 2), Z.tensor(3, 2, 2)
INDICES, SCALAR = "tensor<2x1xi32>", "tensor<i32>"


def branches(*types: str) -> str:
    """Regions that return the arguments %0, %1 ..., of these types."""
    regions = [f"{{ stablehlo.return %{number} : {type} }}" for number, type in enumerate(types)]
    return "(" + ", ".join(regions) + ")"


def loop(condition: str, taken: str, returned: str) -> str:
    """Regions of a loop; the body returns its argument, or %1 from outside."""
    end = "%a" if returned == taken else "%1"
    return (
        f"({{ ^bb0(%a: {condition}):\n %c = stablehlo.constant dense<false> : tensor<i1>\n"
        f" stablehlo.return %c : tensor<i1> }}, {{ ^bb0(%a: {taken}):\n stablehlo.return {end} : {returned} }})"
    )


def unlike(region: str, returned: str, result: str) -> str:
    """A folding region that returns another type than it takes."""
    return f"({{ ^bb0(%a: {region}, %b: {region}):\n %c = stablehlo.add %a, %b : ({region}, {region}) -> {region}\n" + (
        f" %d = stablehlo.uniform_quantize %c : ({region}) -> {returned}\n stablehlo.return %d : {result} }})"
    )


BROKEN: list[tuple[list[str], str, str, str]] = [
    *[([q], f'"stablehlo.{op}"(%0)', n, f"{op}.C1") for op in UNARY if op != "abs"],
    *[([q, h], f'"stablehlo.{op}"(%0, %1)', q, f"{op}.C1") for op in BINARY],
    *[([q, f], f'"stablehlo.{op}"(%0, %1)', q, f"{op}.C1") for op in BINARY],
    *[([rows, rows], f'"stablehlo.{op}"(%0, %1)', rows, f"{op}.I1") for op in BINARY if op != "add"],
    *[([rows], f'"stablehlo.{op}"(%0)', rows, f"{op}.I1") for op in UNARY],
    *[([q], f'"stablehlo.{op}"(%0)', q, f"{op}.I1") for op in UNQUANTIZED],
    *[([i, q], f'"stablehlo.{op}"(%0, %1)', q, f"{op}.I2") for op in ("and", "or", "xor", "shift_left", "complex")],
    ([q], '"stablehlo.convert"(%0)', f, "convert.I1"),
    ([f], '"stablehlo.convert"(%0)', q, "convert.result"),
    ([q], '"stablehlo.abs"(%0)', n, "abs.C2"),
    ([rows, columns], '"stablehlo.add"(%0, %1)', rows, "add.C1"),
    ([q], f'"stablehlo.reduce_precision"(%0) {PRECISION}', w, "reduce_precision.C1"),
    ([q, q, n], '"stablehlo.clamp"(%0, %1, %2)', q, "clamp.C3"),
    ([q, q, q], '"stablehlo.clamp"(%0, %1, %2)', n, "clamp.C4"),
    ([q, w], f'"stablehlo.compare"(%0, %1) {LESS}', bits, "compare.C1"),
    ([bits, q, n], '"stablehlo.select"(%0, %1, %2)', q, "select.C2"),
    ([rows], '"stablehlo.is_finite"(%0)', bits, "is_finite.I1"),
    ([], '"stablehlo.iota"() {iota_dimension = 0 : i64}', rows, "iota.result"),
    ([q], '"stablehlo.cholesky"(%0) {lower = true}', n, "cholesky.C1"),
    ([q, n], f'"stablehlo.triangular_solve"(%0, %1) {SOLVE}', n, "triangular_solve.C1"),
    ([q, q], f'"stablehlo.triangular_solve"(%0, %1) {SOLVE}', n, "triangular_solve.C4"),
    ([q, V, VN, V, V], f'"stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) {NORM}', q, "batch_norm_inference.C2"),
    ([q, V, V, V, V], f'"stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) {NORM}', n, "batch_norm_inference.C7"),
    # between processes
    ([q], f'"stablehlo.all_gather"(%0) {GROUPS}, all_gather_dim = 0 : i64}}', p, "all_gather.C6"),
    (
        [q],
        f'"stablehlo.all_to_all"(%0) {GROUPS}, split_dimension = 0 : i64, concat_dimension = 0 : i64,'
        " split_count = 1 : i64}",
        p,
        "all_to_all.C9",
    ),
    ([q], f'"stablehlo.all_reduce"(%0) {FOLD_H} {GROUPS}}}', h, "all_reduce.C5"),
    ([q], f'"stablehlo.all_reduce"(%0) {FOLD_Q} {GROUPS}}}', p, "all_reduce.C7"),
    ([q], f'"stablehlo.reduce_scatter"(%0) {FOLD_H} {GROUPS}, scatter_dimension = 0 : i64}}', h, "reduce_scatter.C7"),
    ([q], f'"stablehlo.reduce_scatter"(%0) {FOLD_Q} {GROUPS}, scatter_dimension = 0 : i64}}', p, "reduce_scatter.C9"),
    ([q], f'"stablehlo.collective_broadcast"(%0) {GROUPS}}}', p, "collective_broadcast.C3"),
    (
        [q],
        '"stablehlo.collective_permute"(%0) {source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}',
        p,
        "collective_permute.C5",
    ),
    # data movement
    ([q], '"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0, 1>}', p, "broadcast_in_dim.C1"),
    ([rows], '"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0, 1>}', q, "broadcast_in_dim.C1"),
    (
        [rows],
        '"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0, 1>}',
        columns,
        "broadcast_in_dim.C6",
    ),
    (
        [Quantized((0.1,), (1,), axis=0).tensor(1)],
        '"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0>}',
        ROWS.tensor(2),
        "broadcast_in_dim.C6",
    ),
    ([q, p], '"stablehlo.concatenate"(%0, %1) {dimension = 0 : i64}', Q.tensor(4, 2), "concatenate.C1"),
    ([q, q], '"stablehlo.concatenate"(%0, %1) {dimension = 0 : i64}', P.tensor(4, 2), "concatenate.C5"),
    (
        [q, SCALAR, SCALAR],
        '"stablehlo.dynamic_slice"(%0, %1, %2) {slice_sizes = array<i64: 2, 2>}',
        p,
        "dynamic_slice.C1",
    ),
    ([q, q, SCALAR, SCALAR], '"stablehlo.dynamic_update_slice"(%0, %1, %2, %3)', p, "dynamic_update_slice.C1"),
    ([q, p, SCALAR, SCALAR], '"stablehlo.dynamic_update_slice"(%0, %1, %2, %3)', q, "dynamic_update_slice.C2"),
    ([q, INDICES], f'"stablehlo.gather"(%0, %1) {GATHER}', p, "gather.C14"),
    ([q, p0], f'"stablehlo.pad"(%0, %1) {PAD}', q, "pad.C1"),
    ([q], '"stablehlo.reshape"(%0)', P.tensor(4), "reshape.C1"),
    ([rows], '"stablehlo.reshape"(%0)', Q.tensor(4), "reshape.C1"),
    ([rows], '"stablehlo.reshape"(%0)', COLUMNS.tensor(2, 2), "reshape.C3"),
    ([q], '"stablehlo.reverse"(%0) {dimensions = array<i64: 0>}', p, "reverse.C1"),
    ([q], f'"stablehlo.slice"(%0) {SLICE}', p, "slice.C1"),
    ([rows], f'"stablehlo.slice"(%0) {SLICE}', rows, "slice.I1"),
    ([q], '"stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>}', p, "transpose.C1"),
    ([rows], '"stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>}', rows, "transpose.C4"),
    ([], '"stablehlo.constant"() {value = dense<1> : tensor<2x2xi16>}', q, "constant.C1"),
    ([], f'"stablehlo.constant"() {{value = dense<1> : {p}}}', q, "constant.C1"),
    ([f], '"stablehlo.uniform_quantize"(%0)', Q.tensor(4), "uniform_quantize.C1"),
    ([f], '"stablehlo.uniform_quantize"(%0)', h, "uniform_quantize.C2"),
    ([q], '"stablehlo.uniform_quantize"(%0)', h, "uniform_quantize.C2"),
    ([i], '"stablehlo.uniform_quantize"(%0)', q, "uniform_quantize.I1"),
    ([f], '"stablehlo.uniform_quantize"(%0)', f, "uniform_quantize.result"),
    ([q], '"stablehlo.uniform_dequantize"(%0)', "tensor<4xf32>", "uniform_dequantize.C1"),
    ([q], '"stablehlo.uniform_dequantize"(%0)', "tensor<2x2xf16>", "uniform_dequantize.C2"),
    ([f], '"stablehlo.uniform_dequantize"(%0)', f, "uniform_dequantize.I1"),
    # sums of products
    ([q, f], f'"stablehlo.dot_general"(%0, %1) {DOT}', q, "dot_general.C14"),
    ([q, z], f'"stablehlo.dot_general"(%0, %1) {DOT}', f, "dot_general.C14"),
    ([q, Quantized((0.1,), (0,), "i4").tensor(2, 2)], f'"stablehlo.dot_general"(%0, %1) {DOT}', q, "dot_general.C15"),
    ([q, z], f'"stablehlo.dot_general"(%0, %1) {DOT}', h, "dot_general.C16"),
    (["tensor<2x2xf16>", z], f'"stablehlo.dot_general"(%0, %1) {DOT}', "tensor<2x2xf16>", "dot_general.C16"),
    ([q, q], f'"stablehlo.dot_general"(%0, %1) {DOT}', q, "dot_general.C17"),
    ([rows, z], f'"stablehlo.dot_general"(%0, %1) {DOT}', q, "dot_general.I1"),
    (
        [q, Quantized((0.1, 0.2), (0, 0), axis=0).tensor(2, 2)],
        f'"stablehlo.dot_general"(%0, %1) {DOT}',
        q,
        "dot_general.I2",
    ),
    (
        [IMAGE, "tensor<3x2x2xf32>"],
        f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}',
        Q.tensor(1, 2, 2),
        "convolution.C28",
    ),
    (
        [IMAGE, W.tensor(3, 2, 2)],
        f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}',
        Q.tensor(1, 2, 2),
        "convolution.C29",
    ),
    ([IMAGE, KERNEL], f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}', H.tensor(1, 2, 2), "convolution.C30"),
    ([IMAGE, KERNEL], f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}', ROWS.on(2).tensor(1, 2, 2), "convolution.C31"),
    (
        [IMAGE, ROWS.on(1).tensor(3, 2, 2)],
        f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}',
        Q.tensor(1, 2, 2),
        "convolution.C32",
    ),
    (
        [IMAGE, ROWS.on(2).tensor(3, 2, 2)],
        f'"stablehlo.convolution"(%0, %1) {CONVOLUTION}',
        ROWS.on(1).tensor(1, 2, 2),
        "convolution.C33",
    ),
    # regions
    ([q, p0], f'"stablehlo.reduce"(%0, %1) {FOLD_Q} {{dimensions = array<i64: 0>}}', V, "reduce.C2"),
    ([q, q0], f'"stablehlo.reduce"(%0, %1) {FOLD_H} {{dimensions = array<i64: 0>}}', H.tensor(2), "reduce.C6"),
    (
        [w, w0],
        f'"stablehlo.reduce"(%0, %1) {FOLD_Q} {{dimensions = array<i64: 0>}}',
        V,
        "reduce.C6",
    ),
    (
        [q, q0],
        f'"stablehlo.reduce"(%0, %1) {unlike(q0, p0, p0)} {{dimensions = array<i64: 0>}}',
        VP,
        "reduce.C6",
    ),
    ([f, "tensor<f32>"], f'"stablehlo.reduce"(%0, %1) {FOLD_Q} {{dimensions = array<i64: 0>}}', V, "reduce.C6"),
    ([q, q0], f'"stablehlo.reduce"(%0, %1) {FOLD_Q} {{dimensions = array<i64: 0>}}', VP, "reduce.C8"),
    ([q, p0], f'"stablehlo.reduce_window"(%0, %1) {FOLD_Q} {WINDOW}', q, "reduce_window.C3"),
    ([q, q0], f'"stablehlo.reduce_window"(%0, %1) {FOLD_H} {WINDOW}', h, "reduce_window.C13"),
    ([q, q0], f'"stablehlo.reduce_window"(%0, %1) {FOLD_Q} {WINDOW}', p, "reduce_window.C16"),
    ([q, INDICES, p], f'"stablehlo.scatter"(%0, %1, %2) {FOLD_Q} {SCATTER}', q, "scatter.C6"),
    ([q, INDICES, q], f'"stablehlo.scatter"(%0, %1, %2) {FOLD_H} {SCATTER}', h, "scatter.C15"),
    ([q, INDICES, q], f'"stablehlo.scatter"(%0, %1, %2) {FOLD_Q} {SCATTER}', p, "scatter.C17"),
    *[
        (
            operands,
            f'"stablehlo.select_and_scatter"(%0, %1, %2) ({comparing("GE", select)}, {scatter[1:-1]}) {WINDOW}',
            result,
            f"select_and_scatter.{label}",
        )
        for operands, select, scatter, result, label in (
            ([q, p, q0], q0, FOLD_Q, q, "C1"),
            ([q, q, p0], q0, FOLD_Q, q, "C3"),
            ([q, q, q0], p0, FOLD_Q, q, "C9"),
            ([q, q, q0], q0, FOLD_H, h, "C10"),
            ([q, q, q0], q0, FOLD_Q, p, "C12"),
        )
    ],
    ([q], f'"stablehlo.sort"(%0) ({comparing("LT", q0)}) {{dimension = 0 : i64}}', p, "sort.C2"),
    ([q], f'"stablehlo.sort"(%0) ({comparing("LT", p0)}) {{dimension = 0 : i64}}', q, "sort.C5"),
    ([q, p], f'"stablehlo.map"(%0, %1) {FOLD_Q} {{dimensions = array<i64: 0, 1>}}', q, "map.C4"),
    ([q, q], f'"stablehlo.map"(%0, %1) {FOLD_Q} {{dimensions = array<i64: 0, 1>}}', p, "map.C4"),
    # control flow
    ([q, p], f'"stablehlo.while"(%0) {loop(p, q, q)}', q, "while.C1"),
    ([q, p], f'"stablehlo.while"(%0) {loop(q, p, p)}', q, "while.C2"),
    ([q, p], f'"stablehlo.while"(%0) {loop(q, q, p)}', q, "while.C2"),
    ([q, p], f'"stablehlo.while"(%0) {loop(q, q, q)}', p, "while.C3"),
    ([q, p, "tensor<i1>"], f'"stablehlo.if"(%2) {branches(q, p)}', q, "if.C2"),
    ([q, q, "tensor<i1>"], f'"stablehlo.if"(%2) {branches(q, q)}', p, "if.C3"),
    ([q, p, SCALAR], f'"stablehlo.case"(%2) {branches(q, p)}', q, "case.C3"),
    ([q, q, SCALAR], f'"stablehlo.case"(%2) {branches(q, q)}', p, "case.C4"),
    ([q], '"stablehlo.optimization_barrier"(%0)', p, "optimization_barrier.C1"),
    ([q], '"stablehlo.tuple"(%0)', f"tuple<{p}>", "tuple.C1"),
    ([f"tuple<{q}>"], '"stablehlo.get_tuple_element"(%0) {index = 0 : i32}', p, "get_tuple_element.C2"),
]


def wrong(operands: list[str], line: str, result: str) -> str:
    """A program of the operation on the operands that it names; the others are captured by its regions."""
    named = re.findall(r"%(\d)", re.match(r'"[^"]*"\(([^)]*)\)', line)[1])  # type: ignore[index]
    text = program(operands, line, [result])
    return text.replace(
        f" : ({', '.join(operands)}) -> ({result})\n",
        f" : ({', '.join(operands[int(n)] for n in named)}) -> ({result})\n",
    )


@pytest.mark.parametrize(
    ("operands", "line", "result", "label"), BROKEN, ids=[f"{label}-{n}" for n, (*_, label) in enumerate(BROKEN)]
)
def test_constraints(operands: list[str], line: str, result: str, label: str) -> None:
    text = wrong(operands, line, result)
    assert located(text).rule == label


def test_several_results_of_batch_normalization() -> None:
    for op, operands, results, label in (
        ("training", [q, V, VN], [q, V, V], "C2"),
        ("training", [q, V, V], [n, V, V], "C7"),
        ("training", [q, V, V], [q, VN, V], "C2"),
        ("grad", [q, V, V, V, n], [q, V, V], "C2"),
        ("grad", [q, V, V, V, q], [q, VN, V], "C2"),
    ):
        names = ", ".join(f"%{number}" for number in range(len(operands)))
        text = program(operands, f'"stablehlo.batch_norm_{op}"({names}) {NORM}', results)
        assert located(text).rule == f"batch_norm_{op}.{label}"


def test_calls_and_returns_state_the_very_types() -> None:
    call = f"func.func private @f(%0: {q}) -> {q} {{ return %0 : {q} }}\nfunc.func @main(%0: {p}) -> {p} {{\n"
    call += f" %1 = call @f(%0) : ({p}) -> {p}\n return %1 : {p} }}"
    assert "is used as" in str(located(call))
    assert "stated as" in str(located(f"func.func @main(%0: {q}) -> {p} {{ return %0 : {q} }}"))
    assert "but the value is" in str(located(f"func.func @main(%0: {q}) -> {p} {{ return %0 : {p} }}"))
    assert isinstance(located(program([q, q], '"chlo.broadcast_add"(%0, %1)', [q])), UnsupportedError)


def test_the_verifier_of_stablehlo_agrees() -> None:
    """What we refuse, it refuses too, but for what it does not look at or allows beyond the specification."""
    kinder = {label for operands, line, result, label in BROKEN if not refusal(wrong(operands, line, result))}
    assert kinder <= KINDER, sorted(kinder - KINDER)


KINDER = {
    *(
        "all_reduce.C7",
        "case.C3",
        "case.C4",
        "collective_broadcast.C3",
        "get_tuple_element.C2",
        "if.C2",
        "if.C3",
        "map.C4",
        "reduce.C2",
        "reduce.C8",
    ),
    *("reduce_window.C3", "reduce_window.C16", "scatter.C6", "scatter.C17", "select_and_scatter.C3"),
    *("select_and_scatter.C12", "sort.C2", "while.C1", "while.C2", "while.C3"),
}
"""Where the verifier compares a region with what is around it, scales and zero points may differ."""


COUNTS = [
    ([q, q], '"stablehlo.uniform_dequantize"(%0, %1)', f, "takes 1 operand, but has 2"),
    ([q], f'"stablehlo.dot_general"(%0) {DOT}', q, "takes 2 operands, but has 1"),
    ([q], '"stablehlo.select_and_scatter"(%0)', q, "takes 3 operands, but has 1"),
    ([q, q0], '"stablehlo.reduce"(%0, %1) {dimensions = array<i64: 0>}', V, "has 1 region, not 0"),
    (
        [q, q, q0, q0],
        f'"stablehlo.reduce"(%0, %1, %2, %3) {FOLD_Q} {{dimensions = array<i64: 0>}}',
        V,
        "operands are given",
    ),
    ([q, INDICES, q, q], f'"stablehlo.scatter"(%0, %1, %2, %3) {FOLD_Q} {SCATTER}', q, "operands are given"),
    ([q, q], '"stablehlo.convolution"(%0, %1)', q, "dimension_numbers"),
    ([q, SCALAR], '"stablehlo.case"(%1)', q, "case"),
    ([q, V, V], f'"stablehlo.batch_norm_training"(%0, %1, %2) {NORM}', q, "batch_norm_training"),
    (["tensor<2x2xf32>"] * 2, '"stablehlo.reshape"(%0, %1)', f, "takes 1 operand, but has 2"),
    ([q, Q.tensor(3, 2)], '"stablehlo.add"(%0, %1)', q, "add.C1"),
    (
        [Quantized((0.1, 0.2), (1, 2), axis=0).tensor(2)] * 2,
        '"stablehlo.add"(%0, %1)',
        Quantized((0.1, 0.2, 0.3), (1, 2, 3), axis=0).tensor(3),
        "add.C1",
    ),
]


@pytest.mark.parametrize(("operands", "line", "result", "message"), COUNTS, ids=[line for _, line, _, _ in COUNTS])
def test_wrong_numbers_of_parts(operands: list[str], line: str, result: str, message: str) -> None:
    assert message in str(located(wrong(operands, line, result)))


def test_mutated_types() -> None:
    """A quantized program with a few characters changed is read, or refused with a place."""
    generator = random.Random(3)
    text = program([ROWS.tensor(2), N.tensor(2)], '"stablehlo.add"(%0, %1)', [Q.tensor(2)])
    spots = [place for match in re.finditer(r"!quant\.uniform<[^%]*?>>", text) for place in range(*match.span())]
    for _ in range(500):
        changed = list(text)
        for _ in range(generator.choice((1, 1, 2, 4))):
            spot = generator.choice(spots)
            changed[spot] = generator.choice(["", changed[spot] * 2, *"<>{},:!-+x0.9eai", "99999999999999999999"])
        try:
            stablehlo.parse("".join(changed))
        except XlaError as error:
            assert not isinstance(error, InternalError), "".join(changed)
            assert str(error).rstrip().endswith("^"), str(error)
