"""Every constraint of the specification: a program that breaks it is refused, under its label.

Each row breaks one constraint of one operation. `tests/support/stablehlo_constraints.txt` counts the constraints of
every operation; the last test holds what the tests here and in the neighbouring files break against it. Constraints
that no text can break alone stand in a table of their own.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import xlapy
from tests.stablehlo import test_errors, test_indexing, test_windows
from xlapy import stablehlo
from xlapy.hlo.ops import OPS
from xlapy.support.errors import ShapeError, XlaError

COUNTS = Path(__file__).parent.parent / "support" / "stablehlo_constraints.txt"

X, Y, I = "tensor<2x3xf32>", "tensor<3x2xf32>", "tensor<2x3xi32>"  # noqa: E741
D, Z, V = "tensor<2x3xf64>", "tensor<2x3xcomplex<f32>>", "tensor<2xi32>"
S, N, P, T = "tensor<f32>", "tensor<i32>", "tensor<i1>", "!stablehlo.token"

SUM = "({ ^b(%a: tensor<f32>, %c: tensor<f32>): %e = stablehlo.add %a, %c : tensor<f32> stablehlo.return %e : tensor<f32> })"
LESS = "({ ^b(%a: tensor<f32>, %c: tensor<f32>): %e = stablehlo.compare LT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %e : tensor<i1> })"
HANDLE = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
WINDOW = "window_dimensions = array<i64: 1, 1>"


def groups(text: str, type: str) -> str:
    return f"replica_groups = dense<{text}> : tensor<{type}xi64>"


PAIR = groups("[[0, 1]]", "1x2")


def gather(fields: str, sizes: str = "1, 3", results: str = X) -> str:
    return (
        f'"stablehlo.gather"(%x, %v) {{dimension_numbers = #stablehlo.gather<{fields}>, '
        f"slice_sizes = array<i64: {sizes}>}} : ({X}, {V}) -> {results}"
    )


def scatter(fields: str, update: str = X, name: str = "%x", body: str = SUM) -> str:
    return (
        f'"stablehlo.scatter"(%x, %v, {name}) {body} {{scatter_dimension_numbers = #stablehlo.scatter<{fields}>}} '
        f": ({X}, {V}, {update}) -> {X}"
    )


ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"


def collective(name: str, attributes: str, body: str = "", results: str = X) -> str:
    return f'"stablehlo.{name}"(%x) {body} {{{attributes}}} : ({X}) -> {results}'


F, G = "tensor<3xf32>", "tensor<4xf32>"
SELECT = LESS[1:-1]


def norm(name: str, others: str, types: str, results: str = X) -> str:
    return (
        f'"stablehlo.batch_norm_{name}"(%x, {others}) {{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}} '
        f": ({X}, {types}) -> {results}"
    )


def sort(operands: str, types: str, attributes: str = "dimension = 0", body: str = LESS, results: str = X) -> str:
    return f'"stablehlo.sort"({operands}) {body} {{{attributes}}} : ({types}) -> ({results})'


OF_FLOATS = [
    "cbrt",
    "ceil",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "floor",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "optimization_barrier",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sine",
    "sqrt",
    "tanh",
    "is_finite",
]
OF_INTEGERS = ("count_leading_zeros", "not", "popcnt")
OF_PAIRS = [
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "or",
    "power",
    "remainder",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
]

BROKEN = [
    *((f"{name}.C1", f"stablehlo.{name} %x : ({X}) -> {Y}") for name in OF_FLOATS),
    *((f"{name}.C1", f"stablehlo.{name} %i : ({I}) -> {V}") for name in OF_INTEGERS),
    *((f"{name}.C1", f'"stablehlo.{name}"(%i, %i) : ({I}, {I}) -> {V}') for name in OF_PAIRS),
    *((f"{name}.C1", f'"stablehlo.{name}"(%i, %v) : ({I}, {V}) -> {I}') for name in OF_PAIRS),
    ("constant.C1", f'"stablehlo.constant"() {{value = dense<1> : {V}}} : () -> {I}'),
    ("convert.C1", f"stablehlo.convert %x : ({X}) -> {V}"),
    ("get_dimension_size.C1", f'"stablehlo.get_dimension_size"(%x) {{dimension = 2 : i64}} : ({X}) -> {N}'),
    ("imag.C1", f"stablehlo.imag %z : ({Z}) -> {Y}"),
    ("imag.C2", f"stablehlo.imag %z : ({Z}) -> {D}"),
    ("iota.C1", f'"stablehlo.iota"() {{iota_dimension = 2 : i64}} : () -> {I}'),
    ("real.C1", f"stablehlo.real %x : ({X}) -> {Y}"),
    ("real.C2", f"stablehlo.real %x : ({X}) -> {D}"),
    ("tuple.C1", f'"stablehlo.tuple"(%x) : ({X}) -> tuple<{Y}>'),
    ("abs.C1", f"stablehlo.abs %x : ({X}) -> {Y}"),
    ("abs.C2", f"stablehlo.abs %z : ({Z}) -> {Z}"),
    ("all_gather.C1", collective("all_gather", f"all_gather_dim = 2 : i64, {PAIR}", results="tensor<4x3xf32>")),
    ("all_gather.C2", collective("all_gather", "all_gather_dim = 0 : i64, " + groups("[[0, 0]]", "1x2"),
                                 results="tensor<4x3xf32>")),
    ("all_gather.C5", collective("all_gather", f"all_gather_dim = 0 : i64, {PAIR}, use_global_device_ids",
                                 results="tensor<4x3xf32>")),
    ("all_gather.C6", collective("all_gather", f"all_gather_dim = 0 : i64, {PAIR}", results="tensor<5x3xf32>")),
    ("all_reduce.C1", collective("all_reduce", groups("[[0, 0]]", "1x2"), SUM)),
    ("all_reduce.C4", collective("all_reduce", f"{PAIR}, use_global_device_ids", SUM)),
    ("all_reduce.C5", collective("all_reduce", PAIR, LESS)),
    ("all_reduce.C6", collective("all_reduce", PAIR, SUM, Y)),
    ("all_to_all.C1", collective("all_to_all", f"split_dimension = 2, concat_dimension = 0, split_count = 2, {PAIR}")),
    ("all_to_all.C2", collective("all_to_all", f"split_dimension = 1, concat_dimension = 0, split_count = 2, {PAIR}")),
    ("all_to_all.C3", collective("all_to_all", f"split_dimension = 0, concat_dimension = 2, split_count = 2, {PAIR}")),
    ("all_to_all.C4", collective("all_to_all", f"split_dimension = 0, concat_dimension = 1, split_count = 0, {PAIR}")),
    ("all_to_all.C5", collective("all_to_all", "split_dimension = 0, concat_dimension = 1, split_count = 2, "
                                 + groups("[[0, 0]]", "1x2"))),
    ("all_to_all.C8", collective("all_to_all", f"split_dimension = 0, concat_dimension = 1, split_count = 1, {PAIR}")),
    ("all_to_all.C9", collective("all_to_all", f"split_dimension = 0, concat_dimension = 1, split_count = 2, {PAIR}")),
    ("all_reduce.C7", collective("all_reduce", PAIR, SUM, D)),
    ("batch_norm_grad.C5", norm("grad", "%g, %g, %g, %x", f"{G}, {G}, {G}, {X}", f"({X}, {G}, {G})")),
    ("batch_norm_inference.C3", norm("inference", "%g, %f, %f, %f", f"{G}, {F}, {F}, {F}")),
    ("batch_norm_inference.C4", norm("inference", "%f, %g, %f, %f", f"{F}, {G}, {F}, {F}")),
    ("batch_norm_inference.C5", norm("inference", "%f, %f, %g, %f", f"{F}, {F}, {G}, {F}")),
    ("batch_norm_inference.C6", norm("inference", "%f, %f, %f, %g", f"{F}, {F}, {F}, {G}")),
    ("batch_norm_inference.C7", norm("inference", "%f, %f, %f, %f", f"{F}, {F}, {F}, {F}", Y)),
    ("batch_norm_training.C4", norm("training", "%f, %g", f"{F}, {G}", f"({X}, {F}, {F})")),
    ("batch_norm_training.C5", norm("training", "%f, %f", f"{F}, {F}", f"({X}, {G}, {F})")),
    ("batch_norm_training.C6", norm("training", "%f, %f", f"{F}, {F}", f"({X}, {F}, {G})")),
    ("batch_norm_training.C7", norm("training", "%f, %f", f"{F}, {F}", f"({Y}, {F}, {F})")),
    ("case.C2", f'"stablehlo.case"(%n) ({{ ^b(%a: {X}): stablehlo.return %a : {X} }}) : ({N}) -> {X}'),
    ("complex.C3", f"stablehlo.complex %x, %x : ({X}, {X}) -> tensor<2x3xcomplex<f64>>"),
    ("concatenate.C5", f"stablehlo.concatenate %x, %x, dim = 0 : ({X}, {X}) -> tensor<4x3xf64>"),
    ("if.C1", f'"stablehlo.if"(%p) ({{ ^b(%a: {X}): stablehlo.return %a : {X} }}, {{ stablehlo.return %x : {X} }}) : ({P}) -> {X}'),
    ("infeed.C1", f'"stablehlo.infeed"(%t) : ({T}) -> ()'),
    ("infeed.C2", f'"stablehlo.infeed"(%t) : ({T}) -> ({T}, {T})'),
    ("infeed.C3", f'"stablehlo.infeed"(%t) : ({T}) -> {X}'),
    ("map.C2", f'"stablehlo.map"() {SUM} {{dimensions = array<i64>}} : () -> {X}'),
    ("recv.C1", f'"stablehlo.recv"(%t) {{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>}} : ({T}) -> ({X}, {T})'),
    ("recv.C2", f'"stablehlo.recv"(%t) {{{HANDLE}}} : ({T}) -> ()'),
    ("recv.C3", f'"stablehlo.recv"(%t) {{{HANDLE}}} : ({T}) -> ({T}, {T})'),
    ("recv.C4", f'"stablehlo.recv"(%t) {{{HANDLE}}} : ({T}) -> {X}'),
    ("reduce.C3", f'"stablehlo.reduce"() {SUM} {{dimensions = array<i64>}} : () -> ()'),
    ("reduce.C8", f'"stablehlo.reduce"(%x, %s) {SUM} {{dimensions = array<i64: 0>}} : ({X}, {S}) -> tensor<3xf64>'),
    ("reduce_scatter.C8", collective("reduce_scatter", f"scatter_dimension = 0 : i64, {PAIR}", SUM, X)),
    ("reduce_scatter.C9", collective("reduce_scatter", f"scatter_dimension = 0 : i64, {PAIR}", SUM, "tensor<1x3xf64>")),
    ("reduce_window.C14", f'"stablehlo.reduce_window"(%x, %x, %s, %s) ({{ ^b(%a: {S}, %c: {S}, %e: {S}, %h: {S}): stablehlo.return %a, %c : {S}, {S} }}) {{{WINDOW}}} : ({X}, {X}, {S}, {S}) -> ({X}, {Y})'),
    ("reduce_window.C16", f'"stablehlo.reduce_window"(%x, %s) {SUM} {{{WINDOW}}} : ({X}, {S}) -> {D}'),
    ("rng.C3", f"stablehlo.rng %s, %s, %l, distribution = UNIFORM : ({S}, {S}, tensor<2xi64>) -> {Y}"),
    ("scatter.C5", f'"stablehlo.scatter"(%v) {SUM} {{scatter_dimension_numbers = #stablehlo.scatter<{ROWS}>}} : ({V}) -> ()'),
    ("scatter.C17", scatter(ROWS).removesuffix(X) + D),
    ("select_and_scatter.C12", f'"stablehlo.select_and_scatter"(%x, %x, %s) ({SELECT}, {SUM[1:-1]}) {{{WINDOW}}} : ({X}, {X}, {S}) -> {D}'),
    ("send.C1", f'"stablehlo.send"(%x, %t) {{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>}} : ({X}, {T}) -> {T}'),
    ("convolution.C26", f"stablehlo.convolution(%x, %y) dim_numbers = [b, f]x[i, o]->[b, f], window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({X}, {Y}) -> {S}"),
    ("and.C1", f"stablehlo.and %i, %p : ({I}, {P}) -> {I}"),
    ("atan2.C1", f"stablehlo.atan2 %x, %y : ({X}, {Y}) -> {X}"),
    ("bitcast_convert.C2", f"stablehlo.bitcast_convert %z : ({Z}) -> {D}"),
    ("broadcast_in_dim.C1", f"stablehlo.broadcast_in_dim %x, dims = [0, 1] : ({X}) -> {I}"),
    ("case.C1", f'"stablehlo.case"(%n) : ({N}) -> {X}'),
    ("case.C4", f'"stablehlo.case"(%n) ({{ stablehlo.return %x : {X} }}) : ({N}) -> {Y}'),
    ("cholesky.C1", f"stablehlo.cholesky %q, lower = true : (tensor<2x2xf32>) -> {X}"),
    ("clamp.C2", f"stablehlo.clamp %x, %x, %y : ({X}, {X}, {Y}) -> {X}"),
    ("clamp.C3", f"stablehlo.clamp %n, %x, %s : ({N}, {X}, {S}) -> {X}"),
    ("clamp.C4", f"stablehlo.clamp %s, %x, %s : ({S}, {X}, {S}) -> {Y}"),
    ("collective_broadcast.C1", collective("collective_broadcast", groups("[[0, 0]]", "1x2"))),
    ("collective_broadcast.C3", collective("collective_broadcast", PAIR, results=Y)),
    ("collective_permute.C1", collective("collective_permute", "source_target_pairs = dense<[[0, 1, 0]]> : tensor<1x3xi64>")),
    ("collective_permute.C2", collective("collective_permute", "source_target_pairs = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>")),
    ("collective_permute.C3", collective("collective_permute", "source_target_pairs = dense<[[0, 1], [1, 1]]> : tensor<2x2xi64>")),
    ("collective_permute.C4", collective("collective_permute", "source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>")),
    ("collective_permute.C5", collective("collective_permute", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>", results=Y)),
    ("compare.C1", f"stablehlo.compare LT, %x, %i : ({X}, {I}) -> tensor<2x3xi1>"),
    ("complex.C1", f"stablehlo.complex %x, %y : ({X}, {Y}) -> {Z}"),
    ("complex.C2", f"stablehlo.complex %x, %x : ({X}, {X}) -> tensor<3x2xcomplex<f32>>"),
    ("concatenate.C1", f"stablehlo.concatenate %x, %i, dim = 0 : ({X}, {I}) -> tensor<4x3xf32>"),
    ("concatenate.C3", f"stablehlo.concatenate dim = 0 : () -> {X}"),
    ("dot_general.C1", f"stablehlo.dot_general %x, %y, batching_dims = [0] x [], contracting_dims = [1] x [0] : ({X}, {Y}) -> {X}"),
    ("dot_general.C3", f"stablehlo.dot_general %x, %y, contracting_dims = [1, 1] x [0, 1] : ({X}, {Y}) -> {S}"),
    ("dot_general.C4", f"stablehlo.dot_general %x, %y, contracting_dims = [0, 1] x [0, 0] : ({X}, {Y}) -> {S}"),
    ("dot_general.C5", f"stablehlo.dot_general %x, %y, batching_dims = [2] x [0], contracting_dims = [1] x [1] : ({X}, {Y}) -> {X}"),
    ("dot_general.C6", f"stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : ({X}, {Y}) -> {X}"),
    ("dot_general.C7", f"stablehlo.dot_general %x, %y, batching_dims = [0] x [2], contracting_dims = [1] x [0] : ({X}, {Y}) -> {X}"),
    ("dot_general.C8", f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [2] : ({X}, {Y}) -> {X}"),
    ("dot_general.C9", f"stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [] x [] : ({X}, {Y}) -> {X}"),
    ("dot_general.C11", f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [HIGH] : ({X}, {Y}) -> tensor<2x2xf32>"),
    ("dot_general.C11", f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT, DEFAULT] : ({X}, {Y}) -> tensor<2x2xf32>"),
    ("dot_general.C13", f"stablehlo.dot_general %i, %y, contracting_dims = [1] x [0] : ({I}, {Y}) -> tensor<2x2xf32>"),
    ("dynamic_slice.C1", f"stablehlo.dynamic_slice %x, %n, %n, sizes = [2, 3] : ({X}, {N}, {N}) -> {I}"),
    ("dynamic_slice.C5", f"stablehlo.dynamic_slice %x, %n, %n, sizes = [1, 1] : ({X}, {N}, {N}) -> {X}"),
    ("dynamic_update_slice.C1", f"stablehlo.dynamic_update_slice %x, %x, %n, %n : ({X}, {X}, {N}, {N}) -> {Y}"),
    ("dynamic_update_slice.C3", f"stablehlo.dynamic_update_slice %x, %s, %n, %n : ({X}, {S}, {N}, {N}) -> {X}"),
    ("dynamic_update_slice.C4", f"stablehlo.dynamic_update_slice %x, %x, %n : ({X}, {X}, {N}) -> {X}"),
    ("dynamic_update_slice.C5", f"stablehlo.dynamic_update_slice %x, %x, %n, %s : ({X}, {X}, {N}, {S}) -> {X}"),
    ("gather.C1", gather("offset_dims = [1], start_index_map = [0], index_vector_dim = 1")),
    ("gather.C2", gather("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2")),
    ("gather.C4", gather("offset_dims = [1, 0], start_index_map = [0], index_vector_dim = 1")),
    ("gather.C6", gather("collapsed_slice_dims = [1, 0], start_index_map = [0], index_vector_dim = 1", "1, 1")),
    ("gather.C7", gather("offset_dims = [1], collapsed_slice_dims = [2], start_index_map = [0], index_vector_dim = 1")),
    ("gather.C9", gather("offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0, 0], index_vector_dim = 0")),
    ("gather.C14", gather("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1", results=I)),
    ("get_tuple_element.C1", f"stablehlo.get_tuple_element %u[2] : (tuple<{X}, {S}>) -> {X}"),
    ("get_tuple_element.C2", f"stablehlo.get_tuple_element %u[1] : (tuple<{X}, {S}>) -> {X}"),
    ("if.C3", f'"stablehlo.if"(%p) ({{ stablehlo.return %x : {X} }}, {{ stablehlo.return %x : {X} }}) : ({P}) -> {Y}'),
    ("map.C1", f'"stablehlo.map"(%x, %y) {SUM} {{dimensions = array<i64: 0, 1>}} : ({X}, {Y}) -> {X}'),
    ("reduce.C1", f'"stablehlo.reduce"(%x, %y, %s, %s) ({{ ^b(%a: {S}, %c: {S}, %e: {S}, %f: {S}): stablehlo.return %a, %c : {S}, {S} }}) {{dimensions = array<i64: 0>}} : ({X}, {Y}, {S}, {S}) -> ({S}, {S})'),
    ("reduce.C6", f'"stablehlo.reduce"(%x, %s) {LESS} {{dimensions = array<i64: 0>}} : ({X}, {S}) -> tensor<3xf32>'),
    ("reduce_precision.C1", f"stablehlo.reduce_precision %x, format = e5m10 : ({X}) -> {Y}"),
    ("reduce_precision.C3", f'"stablehlo.reduce_precision"(%x) {{exponent_bits = 5 : i32, mantissa_bits = -1 : i32}} : ({X}) -> {X}'),
    ("reduce_scatter.C1", collective("reduce_scatter", f"scatter_dimension = 1 : i64, {PAIR}", SUM)),
    ("reduce_scatter.C2", collective("reduce_scatter", f"scatter_dimension = 2 : i64, {PAIR}", SUM)),
    ("reduce_scatter.C3", collective("reduce_scatter", "scatter_dimension = 0 : i64, " + groups("[[0, 0]]", "1x2"), SUM)),
    ("reduce_scatter.C6", collective("reduce_scatter", f"scatter_dimension = 0 : i64, {PAIR}, use_global_device_ids", SUM, "tensor<1x3xf32>")),
    ("reduce_scatter.C7", collective("reduce_scatter", f"scatter_dimension = 0 : i64, {PAIR}", LESS, "tensor<1x3xf32>")),
    ("reduce_window.C1", f'"stablehlo.reduce_window"() {SUM} {{{WINDOW}}} : () -> ()'),
    ("reduce_window.C2", f'"stablehlo.reduce_window"(%x, %y, %s, %s) ({{ ^b(%a: {S}, %c: {S}, %e: {S}, %f: {S}): stablehlo.return %a, %c : {S}, {S} }}) {{{WINDOW}}} : ({X}, {Y}, {S}, {S}) -> ({X}, {Y})'),
    ("reshape.C1", f"stablehlo.reshape %x : ({X}) -> {I}"),
    ("reverse.C1", f"stablehlo.reverse %x, dims = [0] : ({X}) -> {Y}"),
    ("rng.C1", f"stablehlo.rng %s, %n, %v, distribution = UNIFORM : ({S}, {N}, {V}) -> {X}"),
    ("rng.C2", f"stablehlo.rng %n, %n, %v, distribution = NORMAL : ({N}, {N}, {V}) -> {I}"),
    ("rng_bit_generator.C1", f"stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<3xui64>, {I})"),
    ("rng_bit_generator.C2", f"stablehlo.rng_bit_generator %x, algorithm = THREE_FRY : ({X}) -> ({X}, {I})"),
    ("scatter.C1", f'"stablehlo.scatter"(%x, %y, %v, %x, %x) ({{ ^b(%a: {S}, %c: {S}, %e: {S}, %f: {S}): stablehlo.return %a, %c : {S}, {S} }}) {{scatter_dimension_numbers = #stablehlo.scatter<{ROWS}>}} : ({X}, {Y}, {V}, {X}, {X}) -> ({X}, {Y})'),
    ("scatter.C2", scatter(ROWS.replace("inserted_window_dims = [0], ", ""))),
    ("scatter.C3", f'"stablehlo.scatter"(%x, %x, %v, %x, %y) ({{ ^b(%a: {S}, %c: {S}, %e: {S}, %f: {S}): stablehlo.return %a, %c : {S}, {S} }}) {{scatter_dimension_numbers = #stablehlo.scatter<{ROWS}>}} : ({X}, {X}, {V}, {X}, {Y}) -> ({X}, {X})'),
    ("scatter.C4", scatter(ROWS, Y, "%y")),
    ("scatter.C6", scatter(ROWS, I, "%i")),
    ("scatter.C7", scatter("update_window_dims = [1, 0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1", "tensor<2x3x4xf32>", "%w")),
    ("scatter.C8", scatter(ROWS.replace("[1], ins", "[2], ins"))),
    ("scatter.C9", scatter("inserted_window_dims = [1, 0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1")),
    ("scatter.C10", scatter(ROWS.replace("inserted_window_dims = [0]", "inserted_window_dims = [2]"))),
    ("scatter.C11", scatter(ROWS.replace("operand_dims = [0]", "operand_dims = [0, 1]"))),
    ("scatter.C12", scatter(ROWS.replace("operand_dims = [0]", "operand_dims = [0, 0]").replace("vector_dim = 1", "vector_dim = 0"))),
    ("scatter.C13", scatter(ROWS.replace("operand_dims = [0]", "operand_dims = [2]"))),
    ("scatter.C14", scatter(ROWS.replace("vector_dim = 1", "vector_dim = 2"))),
    ("scatter.C15", scatter(ROWS, body=LESS)),
    ("scatter.C16", scatter(ROWS).removesuffix(X) + Y),
    ("select.C1", f"stablehlo.select %b, %x, %x : (tensor<2xi1>, {X}, {X}) -> {X}"),
    ("slice.C1", f"stablehlo.slice %x [0:2, 0:3] : ({X}) -> {I}"),
    ("sort.C1", f'"stablehlo.sort"() {LESS} {{dimension = 0}} : () -> ()'),
    ("sort.C2", sort("%x", X, results=Y)),
    ("sort.C3", sort("%x, %y", f"{X}, {Y}", body=LESS, results=f"{X}, {Y}")),
    ("sort.C4", sort("%x", X, "dimension = 2")),
    ("sort.C5", sort("%x", X, body=SUM)),
    ("transpose.C1", f"stablehlo.transpose %x, dims = [0, 1] : ({X}) -> {I}"),
    ("triangular_solve.C4", f'"stablehlo.triangular_solve"(%q, %x) {test_errors.SOLVE} : (tensor<2x2xf32>, {X}) -> {Y}'),
    ("while.C3", f'"stablehlo.while"(%x) ({{ ^b(%a: {X}): stablehlo.return %p : {P} }}, {{ ^b(%a: {X}): stablehlo.return %a : {X} }}) : ({X}) -> {Y}'),
]  # fmt: skip
"""One broken program for each label."""


def program(line: str) -> str:
    arguments = (
        f"%x: {X}, %y: {Y}, %i: {I}, %d: {D}, %z: {Z}, %v: {V}, %s: {S}, %n: {N}, %p: {P}, %t: {T}, "
        f"%b: tensor<2xi1>, %f: tensor<3xf32>, %g: tensor<4xf32>, %q: tensor<2x2xf32>, %k: tensor<2xui64>, %w: tensor<2x3x4xf32>, %u: tuple<{X}, {S}>"
    )
    results = line.rpartition("->")[2].strip()
    count = 0 if results == "()" else results.count("tensor<") + results.count(T) if results.startswith("(") else 1
    head = ", ".join(f"%r{number}" for number in range(count))
    return (
        "module attributes {mhlo.num_replicas = 2 : i32} {\n"
        f"func.func @main({arguments}) {{ %l = stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n  {head}{' = ' if head else ''}{line}\n  return\n}}\n}}"
    )


@pytest.mark.parametrize(("label", "line"), BROKEN, ids=[label for label, _ in BROKEN])
def test_broken_constraint(label: str, line: str) -> None:
    with pytest.raises(XlaError) as caught:
        stablehlo.parse(program(line))
    assert "line 3, column 3" in str(caught.value)
    assert isinstance(caught.value, ShapeError) and caught.value.rule == label, str(caught.value)


GRIDS = [
    ("all_gather.C3", collective("all_gather", f"all_gather_dim = 0 : i64, {PAIR}", results="tensor<4x3xf32>"), 3),
    ("all_gather.C4", collective("all_gather", f"all_gather_dim = 0 : i64, {PAIR}", results="tensor<4x3xf32>"), 1),
    ("all_reduce.C2", collective("all_reduce", PAIR, SUM), 4),
    ("all_reduce.C3", collective("all_reduce", groups("[[0, 2]]", "1x2"), SUM), 2),
    ("all_to_all.C6", collective("all_to_all", f"split_dimension = 0, concat_dimension = 0, split_count = 2, {PAIR}"), 3),
    ("all_to_all.C7", collective("all_to_all", f"split_dimension = 0, concat_dimension = 0, split_count = 2, {PAIR}"), 1),
    ("collective_broadcast.C2", collective("collective_broadcast", PAIR), 1),
    ("collective_permute.C4", collective("collective_permute", "source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>"), 2),
    ("reduce_scatter.C4", collective("reduce_scatter", f"scatter_dimension = 0 : i64, {PAIR}", SUM, "tensor<1x3xf32>"), 3),
    ("reduce_scatter.C5", collective("reduce_scatter", f"scatter_dimension = 0 : i64, {PAIR}", SUM, "tensor<1x3xf32>"), 1),
]  # fmt: skip
"""Programs that do not fit a grid of so many replicas, which is an option of compilation."""


@pytest.mark.parametrize(("label", "line", "replicas"), GRIDS, ids=[label for label, *_ in GRIDS])
def test_groups_that_do_not_fit_the_grid_are_refused(label: str, line: str, replicas: int) -> None:
    text = program(line).replace("mhlo.num_replicas = 2", f"mhlo.num_replicas = {replicas}")
    with pytest.raises(ShapeError) as caught:
        xlapy.compile(text)
    opcode = caught.value.rule.partition(".")[0]
    assert OPS[opcode].label(caught.value.rule, "C") == label
    assert f"{replicas} replicas of 1 partitions" in str(caught.value)


def test_groups_of_partitions_are_counted_in_partitions() -> None:
    text = program(
        collective("all_to_all", f"split_dimension = 0, concat_dimension = 0, split_count = 2, {PAIR}, {HANDLE}")
    )
    with pytest.raises(ShapeError, match="1 partitions"):
        xlapy.compile(text)
    options = xlapy.CompileOptions(num_partitions=2)
    assert xlapy.compile(text, options) is not None


_QUANTIZED = "it is about quantized types only"
NOT_ALONE = {
    "broadcast_in_dim.C6": _QUANTIZED,
    "reshape.C3": _QUANTIZED,
    "transpose.C4": _QUANTIZED,
}
"""Constraints that programs without quantized types cannot break: test_quantized_errors does."""


@cache
def specified() -> frozenset[str]:
    labels = []
    for line in COUNTS.read_text().splitlines():
        if not line.startswith("#"):
            name, count = line.split()
            labels += [f"{name}.C{number}" for number in range(1, int(count) + 1)]
    return frozenset(labels)


def broken_elsewhere() -> set[str]:
    labels = {case[1] for case in test_errors.BROKEN} | {label for _, label in test_indexing.BROKEN_GATHERS}
    labels |= {label for label, _ in test_windows.BROKEN_BATCH_NORMS}
    for operation, rows in (
        ("convolution", test_windows.BROKEN_CONVOLUTIONS),
        ("reduce_window", test_windows.BROKEN_REDUCE_WINDOWS),
        ("select_and_scatter", test_windows.BROKEN_SELECTIONS),
    ):
        labels |= {f"{operation}.{label}" for label, _ in rows}
    return labels


def test_every_constraint_is_broken_by_some_test() -> None:
    tested = {label for label, _ in BROKEN} | {label for label, *_ in GRIDS} | broken_elsewhere()
    assert not specified() - tested - NOT_ALONE.keys()
    assert not NOT_ALONE.keys() - specified() | NOT_ALONE.keys() & tested
