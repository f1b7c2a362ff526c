"""The worked examples of the operation documents, and what they leave to us."""

# ruff: noqa: E501 (programs and tables are kept on their lines)

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.support.work import assert_linear
from xlapy.hlo.element_types import element_type_named
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse

REGIONS = """
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
addf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
mulf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] multiply(a, b) }
addh { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(a, b) }
maxf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
times2 { a = s32[] parameter(0) ROOT r = s32[] add(a, a) }
square { a = s32[] parameter(0) ROOT r = s32[] multiply(a, a) }
triple { a = s32[] parameter(0) k = s32[] constant(3) ROOT r = s32[] multiply(a, k) }
argmax {
  m = s32[] parameter(0)
  at = s32[] parameter(1)
  v = s32[] parameter(2)
  i = s32[] parameter(3)
  ge = pred[] compare(v, m), direction=GE
  ROOT r = (s32[], s32[]) tuple(select(ge, v, m), select(ge, i, at))
}
"""


def run(body: str, *arguments):
    return evaluate(parse(f"{REGIONS}\nENTRY main {{\n{body}\n}}"), *arguments)


def lists(value):
    return tuple(map(lists, value)) if isinstance(value, tuple) else value.tolist()


V = np.arange(12, dtype=np.int32).reshape(4, 3)
A = np.broadcast_to(np.array([[1, 2, 3], [4, 5, 6]], np.int32), (4, 2, 3))
COLLAPSE = np.array([[[10, 11, 12], [15, 16, 17]], [[20, 21, 22], [25, 26, 27]], [[30, 31, 32], [35, 36, 37]], [[40, 41, 42], [45, 46, 47]]], np.int32)  # fmt: skip

CASES = [
    ("broadcast into a matrix", "x = f32[] constant(2) ROOT r = f32[2,3] broadcast(x), dimensions={}", (), [[2.0] * 3] * 2),
    ("BC.E5", "x = s32[3] parameter(0) ROOT r = s32[3,3] broadcast(x), dimensions={0}", (np.int32([7, 8, 9]),), [[7] * 3, [8] * 3, [9] * 3]),
    ("BC.E4", "x = s32[3] parameter(0) ROOT r = s32[3,3] broadcast(x), dimensions={1}", (np.int32([7, 8, 9]),), [[7, 8, 9]] * 3),
    ("broadcast in another order", "x = s32[2,3] parameter(0) ROOT r = s32[3,2] broadcast(x), dimensions={1,0}", (np.int32([[1, 2, 3], [4, 5, 6]]),), [[1, 4], [2, 5], [3, 6]]),
    ("clamp", "x = s32[3] constant({-1,5,9}) ROOT r = s32[3] clamp(s32[] constant(0), x, s32[] constant(6))", (), [0, 5, 6]),
    ("concatenate E1", "a = s32[2] constant({2,3}) b = s32[2] constant({4,5}) ROOT r = s32[4] concatenate(a, b), dimensions={0}", (), [2, 3, 4, 5]),
    ("concatenate E2", "a = s32[3,2] constant({{1,2},{3,4},{5,6}}) b = s32[1,2] constant({{7,8}}) ROOT r = s32[4,2] concatenate(a, b), dimensions={0}", (), [[1, 2], [3, 4], [5, 6], [7, 8]]),
    ("convert", "x = s32[3] constant({0,1,2}) ROOT r = f32[3] convert(x)", (), [0.0, 1.0, 2.0]),
    ("dot-general E1", "a = s32[2,3] constant({{1,2,3},{4,5,6}}) b = s32[2,3] constant({{1,1,1},{2,2,2}}) ROOT r = s32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}", (), [[6, 12], [15, 30]]),
    ("dot-general E2", "a = s32[2,2,2] constant({{{1,2},{3,4}},{{5,6},{7,8}}}) b = s32[2,2,2] constant({{{1,0},{0,1}},{{1,0},{0,1}}}) ROOT r = s32[2,2,2] dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}", (), [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
    ("dot without contraction", "a = s32[2] constant({1,2}) b = s32[2] constant({3,4}) ROOT r = s32[2,2] dot(a, b)", (), [[3, 4], [6, 8]]),
    ("dot widens", "a = s8[2] constant({100,100}) ROOT r = s32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}", (), 20000),
    ("dynamic-slice E1", "x = s32[5] constant({0,1,2,3,4}) s = s32[] constant(2) ROOT r = s32[2] dynamic-slice(x, s), dynamic_slice_sizes={2}", (), [2, 3]),
    ("dynamic-slice E2", "x = s32[4,3] parameter(0) a = s32[] constant(2) b = s32[] constant(1) ROOT r = s32[2,2] dynamic-slice(x, a, b), dynamic_slice_sizes={2,2}", (V,), [[7, 8], [10, 11]]),
    ("dynamic-slice above", "x = s32[5] constant({0,1,2,3,4}) s = u32[] constant(4294967295) ROOT r = s32[2] dynamic-slice(x, s), dynamic_slice_sizes={2}", (), [3, 4]),
    ("dynamic-slice below", "x = s32[5] constant({0,1,2,3,4}) s = s64[] constant(-9223372036854775808) ROOT r = s32[2] dynamic-slice(x, s), dynamic_slice_sizes={2}", (), [0, 1]),
    ("dynamic-update-slice E1", "x = s32[5] constant({0,1,2,3,4}) u = s32[2] constant({5,6}) s = s32[] constant(2) ROOT r = s32[5] dynamic-update-slice(x, u, s)", (), [0, 1, 5, 6, 4]),
    ("dynamic-update-slice E2", "x = s32[4,3] parameter(0) u = s32[3,2] constant({{12,13},{14,15},{16,17}}) s = s32[] constant(1) ROOT r = s32[4,3] dynamic-update-slice(x, u, s, s)", (V,), [[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]]),
    ("iota rows", "ROOT r = s32[2,3] iota(), iota_dimension=0", (), [[0] * 3, [1] * 3]),
    ("iota columns", "ROOT r = f32[2,3] iota(), iota_dimension=1", (), [[0.0, 1.0, 2.0]] * 2),
    ("iota wraps", "ROOT r = s8[3,130] iota(), iota_dimension=1", (), [[*range(128), -128, -127]] * 3),
    ("map", "x = s32[4] constant({1,2,3,4}) ROOT r = s32[4] map(x), dimensions={0}, to_apply=times2", (), [2, 4, 6, 8]),
    ("pad StableHLO E1", "x = s32[2,3] constant({{1,2,3},{4,5,6}}) z = s32[] constant(0) ROOT r = s32[5,9] pad(x, z), padding=0_2_1x1_1_2", (), [[0, 1, 0, 0, 2, 0, 0, 3, 0], [0] * 9, [0, 4, 0, 0, 5, 0, 0, 6, 0], [0] * 9, [0] * 9]),
    ("pad that only removes", "x = s32[5] constant({0,1,2,3,4}) z = s32[] constant(9) ROOT r = s32[2] pad(x, z), padding=-1_-2", (), [1, 2]),
    ("pad of nothing", "x = s32[0] constant({}) z = s32[] constant(9) ROOT r = s32[3] pad(x, z), padding=1_2_5", (), [9, 9, 9]),
    ("pad that removes interior padding", "x = s32[2] constant({1,2}) z = s32[] constant(9) ROOT r = s32[2] pad(x, z), padding=-1_-1_2", (), [9, 9]),
    ("reduce E2", "x = s32[4,2,3] parameter(0) z = s32[] constant(0) ROOT r = s32[2,3] reduce(x, z), dimensions={0}, to_apply=add", (A,), [[4, 8, 12], [16, 20, 24]]),
    ("reduce E3", "x = s32[4,2,3] parameter(0) z = s32[] constant(0) ROOT r = s32[4,2] reduce(x, z), dimensions={2}, to_apply=add", (A,), [[6, 15]] * 4),
    ("reduce E4", "x = s32[4,2,3] parameter(0) z = s32[] constant(0) ROOT r = s32[3] reduce(x, z), dimensions={1,0}, to_apply=add", (A,), [20, 28, 36]),
    ("reduce E5", "x = s32[4,2,3] parameter(0) z = s32[] constant(0) ROOT r = s32[] reduce(x, z), dimensions={0,1,2}, to_apply=add", (A,), 84),
    ("reduce of nothing", "x = s32[0,2] constant({}) z = s32[] constant(7) ROOT r = s32[2] reduce(x, z), dimensions={0}, to_apply=add", (), [7, 7]),
    ("reduce without dimensions", "x = s32[2] constant({1,2}) z = s32[] constant(7) ROOT r = s32[2] reduce(x, z), dimensions={}, to_apply=add", (), [8, 9]),
    ("reduce E7: the last maximum", "v = s32[5] constant({3,9,1,9,2}) i = s32[5] iota(), iota_dimension=0 a = s32[] constant(-100) b = s32[] constant(-1) ROOT r = (s32[], s32[]) reduce(v, i, a, b), dimensions={0}, to_apply=argmax", (), (9, 3)),
    ("reduce maximum of zeros", "x = f32[3] constant({-0,0,-0}) z = f32[] constant(-inf) ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=maxf", (), 0.0),
    ("reshape", "x = s32[4,2,3] parameter(0) ROOT r = s32[8,3] reshape(x)", (COLLAPSE,), COLLAPSE.reshape(8, 3).tolist()),
    ("reshape to a scalar", "x = f32[1,1] constant({{5}}) ROOT r = f32[] reshape(x)", (), 5.0),
    ("reverse", "x = s32[2,2] constant({{1,2},{3,4}}) ROOT r = s32[2,2] reverse(x), dimensions={1}", (), [[2, 1], [4, 3]]),
    ("select", "p = pred[4] constant({1,0,0,1}) a = s32[4] constant({1,2,3,4}) b = s32[4] constant({100,200,300,400}) ROOT r = s32[4] select(p, a, b)", (), [1, 200, 300, 4]),
    ("slice E2", "x = s32[4,3] parameter(0) ROOT r = s32[2,2] slice(x), slice={[2:4],[1:3]}", (V,), [[7, 8], [10, 11]]),
    ("slice with a stride", "x = s32[4,3] parameter(0) ROOT r = s32[2,2] slice(x), slice={[0:4:2],[0:3:2]}", (V,), [[0, 2], [6, 8]]),
    ("transpose", "x = s32[4,3] parameter(0) ROOT r = s32[3,4] transpose(x), dimensions={1,0}", (V,), V.T.tolist()),
    ("tuple", "a = f32[2] constant({0,1}) b = s32[] constant(5) t = (f32[2], s32[]) tuple(a, b) ROOT r = s32[] get-tuple-element(t), index=1", (), 5),
    ("empty tuple", "ROOT r = () tuple()", (), ()),
    ("and of integers, or of predicates", "a = s32[] constant(12) b = s32[] constant(10) ROOT r = s32[] and(a, b)", (), 8),
    ("clamp with bounds per element", "a = s32[3] constant({5,10,15}) x = s32[3] constant({3,13,23}) b = s32[3] constant({10,15,20}) ROOT r = s32[3] clamp(a, x, b)", (), [5, 13, 20]),
    ("transpose StableHLO E1", "x = s32[2,3,2] constant({{{1,2},{3,4},{5,6}},{{7,8},{9,10},{11,12}}}) ROOT r = s32[2,3,2] transpose(x), dimensions={2,1,0}", (), [[[1, 7], [3, 9], [5, 11]], [[2, 8], [4, 10], [6, 12]]]),
    ("reverse StableHLO E1", "x = s32[3,2] constant({{1,2},{3,4},{5,6}}) ROOT r = s32[3,2] reverse(x), dimensions={1}", (), [[2, 1], [4, 3], [6, 5]]),
    ("reduce StableHLO E1", "x = s32[1,6] constant({{0,1,2,3,4,5}}) z = s32[] constant(0) ROOT r = s32[1] reduce(x, z), dimensions={1}, to_apply=add", (), [15]),
    ("shift-left StableHLO E1", "x = s64[3] constant({-1,0,1}) n = s64[3] constant({1,2,3}) ROOT r = s64[3] shift-left(x, n)", (), [-2, 0, 8]),
    ("shift-right-logical StableHLO E1", "x = s64[3] constant({-1,0,8}) n = s64[3] constant({1,2,3}) ROOT r = s64[3] shift-right-logical(x, n)", (), [9223372036854775807, 0, 1]),
    ("compare StableHLO E1", "x = f32[2] constant({1,3}) y = f32[2] constant({1.1,2.9}) ROOT r = pred[2] compare(x, y), direction=LT, type=FLOAT", (), [True, False]),
    ("is-finite StableHLO E1", "x = f64[7] constant({-inf,inf,nan,-10,-0,0,10}) ROOT r = pred[7] is-finite(x)", (), [False] * 3 + [True] * 4),
    ("maximum StableHLO E1", "x = s32[2,2] constant({{1,2},{7,8}}) y = s32[2,2] constant({{5,6},{3,4}}) ROOT r = s32[2,2] maximum(x, y)", (), [[5, 6], [7, 8]]),
    ("divide StableHLO E1", "x = f32[2] constant({17,-17}) y = f32[2] constant({4,4}) ROOT r = f32[2] divide(x, y)", (), [4.25, -4.25]),
    ("power StableHLO E1", "x = f64[4] constant({-2,-0,5,10000}) y = f64[4] constant({2,2,2,10}) ROOT r = f64[4] power(x, y)", (), [4.0, 0.0, 25.0, 1e40]),
    ("or of predicates", "x = pred[2] constant({0,1}) y = pred[2] constant({0,0}) ROOT r = pred[2] add(x, y)", (), [False, True]),
    ("remainder", "a = s32[4] constant({17,-17,17,-17}) b = s32[4] constant({3,3,-3,-3}) ROOT r = s32[4] remainder(a, b)", (), [2, -2, 2, -2]),
]  # fmt: skip


@pytest.mark.parametrize(("title", "body", "arguments", "expected"), CASES, ids=[case[0] for case in CASES])
def test_example(title: str, body: str, arguments: tuple, expected) -> None:
    assert lists(run(body, *arguments)) == expected


@pytest.mark.parametrize(("selector", "expected"), [(0, 10), (1, 25), (2, 15), (3, 15), (-1, 15), (-(2**31), 15)])
def test_conditional_by_index_falls_back_on_the_last_branch(selector: int, expected: int) -> None:
    body = """i = s32[] parameter(0)
      x = s32[] constant(5)
      ROOT r = s32[] conditional(i, x, x, x), branch_computations={times2, square, triple}"""
    assert run(body, np.int32(selector)) == expected


@pytest.mark.parametrize(("selector", "expected"), [(True, 10), (False, 25)])
def test_conditional_by_predicate(selector: bool, expected: int) -> None:
    body = """p = pred[] parameter(0)
      x = s32[] constant(5)
      ROOT r = s32[] conditional(p, x, x), true_computation=times2, false_computation=square"""
    assert run(body, selector) == expected


WHILE = """
body {
  s = (s32[], f32[10]) parameter(0)
  k = f32[] constant(0.5)
  ROOT t = (s32[], f32[10]) tuple(
    add(get-tuple-element(s), index=0, s32[] constant(1)),
    add(get-tuple-element(s), index=1, f32[10] broadcast(k), dimensions={}))
}
condition { s = (s32[], f32[10]) parameter(0) ROOT c = pred[] compare(get-tuple-element(s), index=0, s32[] constant(1000)), direction=LT }
ENTRY main {
  z = f32[] constant(0)
  ROOT w = (s32[], f32[10]) while((s32[], f32[10]) tuple(s32[] constant(0), f32[10] broadcast(z), dimensions={})), condition=condition, body=body
}"""


def test_while() -> None:
    count, vector = evaluate(parse(WHILE))
    assert (count, vector.tolist()) == (1000, [500.0] * 10)


@pytest.mark.parametrize(("size", "expected"), [(5, (15, 120, 5)), (6, (21, 720, 6)), (0, (0, 1, 0)), (-3, (0, 1, 0))])
def test_set_dimension_size_with_reductions(size: int, expected: tuple) -> None:
    body = """v = f32[10] parameter(0)
      n = s32[] parameter(1)
      b = f32[<=10] set-dimension-size(v, n), dimensions={0}
      s = f32[] reduce(b, f32[] constant(0)), dimensions={0}, to_apply=addf
      p = f32[] reduce(b, f32[] constant(1)), dimensions={0}, to_apply=mulf
      d = s32[] get-dimension-size(b), dimensions={0}
      ROOT r = (f32[], f32[], s32[]) tuple(s, p, d)"""
    assert lists(run(body, np.arange(1, 11, dtype=np.float32), np.int32(size))) == expected


def test_bounded_values_flow_through_data_movement() -> None:
    body = """v = f32[<=4,2] parameter(0)
      one = f32[] constant(1)
      e = f32[4,2] broadcast(one), dimensions={}
      s = f32[<=4,2] add(v, e)
      t = f32[2,<=4] transpose(s), dimensions={1,0}
      f = f32[<=8] reshape(s)
      c = f32[<=8,2] concatenate(s, v), dimensions={0}
      ROOT r = (f32[2,<=4], f32[<=8], f32[<=8,2]) tuple(t, f, c)"""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    transposed, flat, joined = run(body, x)
    np.testing.assert_array_equal(transposed, (x + 1).T)
    np.testing.assert_array_equal(flat, (x + 1).reshape(-1))
    np.testing.assert_array_equal(joined, np.concatenate([x + 1, x]))


def test_sums_of_narrow_floats_accumulate_in_f32_and_in_order() -> None:
    x = np.full(1000, 1.0, ml_dtypes.bfloat16)
    body = (
        "x = bf16[1000] parameter(0) z = bf16[] constant(0) ROOT r = bf16[] reduce(x, z), dimensions={0}, to_apply=addh"
    )
    assert run(body, x) == 1000
    y = np.random.default_rng(0).normal(size=999).astype(np.float32)
    body = "x = f32[999] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=addf"
    total = np.float32(0)
    for value in y:
        total += value
    assert run(body, y) == total


@pytest.mark.parametrize("element_type", ["s32", "f32", "bf16"])
def test_of_a_window_that_is_mostly_padding_the_rest_counts(element_type: str) -> None:
    text = f"""sum {{
      a = {element_type}[] parameter(0)
      b = {element_type}[] parameter(1)
      ROOT r = {element_type}[] add(a, b)
    }}
    ENTRY e {{
      x = {element_type}[4] parameter(0)
      z = {element_type}[] constant(0)
      ROOT r = {element_type}[4] reduce-window(x, z), window={{size=1000000000 pad=999999999_0}}, to_apply=sum
    }}"""
    x = np.array([1, 2, 3, 4], element_type_named(element_type).dtype)
    assert evaluate(parse(text), x).tolist() == [1, 3, 6, 10]


@pytest.mark.parametrize(("init", "expected"), [(1, [7, 8]), (-1, [-5, -2])])
def test_padding_of_a_window_is_folded_as_often_as_it_is_there(init: int, expected: list[int]) -> None:
    text = f"""sum {{
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT r = s32[] add(a, b)
    }}
    ENTRY e {{
      x = s32[2] parameter(0)
      z = s32[] constant({init})
      ROOT r = s32[2] reduce-window(x, z), window={{size=6 pad=5_0}}, to_apply=sum
    }}"""
    assert evaluate(parse(text), np.int32([1, 2])).tolist() == expected


def test_dot_of_narrow_floats_accumulates_in_f32() -> None:
    x = np.full(1000, 1.0, ml_dtypes.bfloat16)
    body = "x = bf16[1000] parameter(0) ROOT r = bf16[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    assert run(body, x) == 1000


def test_map_and_reduce_with_control_flow_in_the_region() -> None:
    text = """
    double { a = s32[] parameter(0) ROOT r = s32[] add(a, a) }
    f { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, s32[] call(b), to_apply=double) }
    ENTRY main {
      x = s32[2,3] parameter(0)
      z = s32[] constant(1)
      m = s32[2,3] map(x, x), dimensions={0,1}, to_apply=f
      r = s32[2] reduce(x, z), dimensions={1}, to_apply=f
      ROOT t = (s32[2,3], s32[2]) tuple(m, r)
    }"""
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    mapped, reduced = evaluate(parse(text), x)
    np.testing.assert_array_equal(mapped, 3 * x)
    np.testing.assert_array_equal(reduced, 1 + 2 * x.sum(axis=1))


def test_long_chains_and_deep_calls_do_not_recurse() -> None:
    lines = ["  x0 = s32[] parameter(0)", *(f"  x{i} = s32[] add(x{i - 1}, x0)" for i in range(1, 10_000))]
    assert evaluate(parse("ENTRY e {\n" + "\n".join(lines) + "\n}"), 1) == 10_000
    calls = ["f0 { x = s32[] parameter(0) ROOT r = s32[] add(x, x) }"]
    calls += [f"f{i} {{ x = s32[] parameter(0) ROOT r = s32[] call(x), to_apply=f{i - 1} }}" for i in range(1, 3000)]
    assert evaluate(parse("\n".join(calls)), 4) == 8


@pytest.mark.parametrize("innermost", ["add(x, x)", 'custom-call(x), custom_call_target="double"'])
def test_deep_calls_take_as_long_as_they_are_many(innermost: str) -> None:
    """Whether one has effects, and so has to be asked again, is known of what it calls."""

    def evaluated(depth: int) -> Callable[[], None]:
        calls = [f"f0 {{ x = s32[] parameter(0) ROOT r = s32[] {innermost} }}"]
        calls += [
            f"f{i} {{ x = s32[] parameter(0) ROOT r = s32[] call(x), to_apply=f{i - 1} }}" for i in range(1, depth)
        ]
        module = parse("\n".join(calls))
        return lambda: np.testing.assert_equal(evaluate(module, 4, custom_calls={"double": lambda x: 2 * x}), 8)

    assert_linear(evaluated, 100)


def test_results_are_fresh_and_writeable() -> None:
    x = np.arange(3, dtype=np.float32)
    same, constant = evaluate(
        parse("ENTRY e { x = f32[3] parameter(0) c = f32[2] constant({1,2}) ROOT t = tuple(x, c) }"), x
    )
    same[0] = constant[0] = 7
    assert x[0] == 0
