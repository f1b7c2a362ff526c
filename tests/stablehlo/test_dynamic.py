"""Programs with `?` dimensions: each call's sizes make a program of their own."""

from __future__ import annotations

import os
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

import xlapy
from tests.stablehlo.structure import opcodes, structure
from tests.support.forks import works_in_a_child
from xlapy import stablehlo
from xlapy.hlo.graph import HloModule
from xlapy.hlo.specialize import specialize_to
from xlapy.specialized import DynamicExecutable
from xlapy.support.errors import ArgumentError, ParseError, ShapeError, UnsupportedError

RANDOM = np.random.default_rng(3)


def array(*dims: int) -> np.ndarray:
    return RANDOM.normal(size=dims).astype(np.float32)


def movement(x, y):
    return (
        jnp.concatenate([x, y], 0), x.reshape(-1), jnp.pad(x, ((1, x.shape[0]), (0, 1))), jnp.arange(x.shape[0]),
        x[1:], x[:, ::2], x[::-1], jnp.take(x, jnp.arange(y.shape[0]) // 2, axis=0), jnp.tile(x, (2, 1)),
        jnp.broadcast_to(x[None], (3, *x.shape)), x.T, jnp.zeros((y.shape[0], 2 * x.shape[0])), jnp.eye(x.shape[0]),
        lax.dynamic_slice(x, (x.shape[0] // 2, 0), (x.shape[0] // 2, 4)), jnp.stack([x, x], 1),
        lax.dynamic_slice_in_dim(x, jnp.int32(x.sum()) % 2, x.shape[0] - 1), x.at[1:].set(0.0), jnp.tril(x @ x.T),
    )  # fmt: skip


def folding(x, y):
    return (
        x.sum(0) / x.shape[0], jnp.mean(y), x @ y.T, jax.nn.softmax(x), jnp.cumsum(x, 0), jnp.sort(x, 0),
        jnp.argmax(y, 0), jnp.where(x > 0, x, 0), jax.vmap(lambda r: r @ r)(x), jnp.linalg.norm(x - x.mean(0)),
        lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), "VALID"), jnp.einsum("ik,jk->ij", x, y),
        lax.top_k(x.T, x.shape[0] - 1), jnp.logaddexp(x, x).std(), jnp.prod(jnp.array(x.shape)),
    )  # fmt: skip


def loops(x, y):
    grown = lax.fori_loop(0, 3, lambda i, c: c + x.shape[0] * i + x.mean(), x)
    carried, rows = lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), y)
    either = lax.cond(x.sum() > 0, lambda: x * x.shape[0], lambda: x - y.shape[0])
    inner = jax.jit(lambda a, n: jnp.broadcast_to(a.sum(), (n,)), static_argnums=1)(x, y.shape[0])
    return grown, carried, rows, either, inner, lax.while_loop(lambda c: c[0, 0] < 100, lambda c: c * 2 + 60, x)


def windows_and_bits(x, y):
    image, kernel = x.reshape(1, 1, -1, 4), jnp.ones((2, 1, 3, 2))
    bits = jax.random.bits(jax.random.key(3, impl="rbg"), (y.shape[0], 3))
    return lax.conv_general_dilated(image, kernel, (2, 1), "SAME"), (bits >> 8).astype(jnp.float32)


PROGRAMS = [movement, folding, loops, windows_and_bits]
_A, _B = export.symbolic_shape("a, b", constraints=["a >= 2", "b >= 2"])


@pytest.fixture(params=PROGRAMS, ids=lambda function: function.__name__)
def exported(request: pytest.FixtureRequest) -> tuple[Any, str]:
    shapes = [jax.ShapeDtypeStruct((size, 4), jnp.float32) for size in (_A, _B)]
    artifact = export.export(jax.jit(request.param))(*shapes)
    return request.param, artifact.mlir_module()


def test_exported_programs_give_the_numbers_of_jax(exported):
    function, text = exported
    executable = xlapy.compile(text)
    for rows, columns in ((5, 2), (3, 6)):
        arguments = (array(rows, 4), array(columns, 4))
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
        for results in (executable(*arguments), xlapy.evaluate(text, *arguments)):
            assert len(results) == len(expected)
            for number, (result, value) in enumerate(zip(results, expected, strict=True)):
                assert result.shape == value.shape
                np.testing.assert_allclose(result, value, rtol=2e-5, atol=2e-5, err_msg=f"result {number}")
    assert executable.specializations == ((5, 2), (3, 6))


@pytest.mark.parametrize("pretty", [False, True])
def test_exported_programs_are_written_and_read(exported, pretty: bool):
    module = stablehlo.parse(exported[1])
    text = stablehlo.to_text(module, pretty=pretty)
    again = stablehlo.parse(text)
    assert structure(again) == structure(module)
    assert stablehlo.to_text(again, pretty=pretty) == text
    with mlir.make_ir_context():
        assert ir.Module.parse(text).operation.verify()


def test_exported_programs_survive_hlo_text(exported):
    module = stablehlo.parse(exported[1])
    text = module.to_text()
    assert "?" in text
    assert xlapy.hlo.parse(text).to_text() == text


HLO = """HloModule scale
double { a = f32[?,4] parameter(0)  ROOT s = f32[?,4] add(a, a) }
ENTRY main {
  x = f32[?,4] parameter(0)
  n = s32[] get-dimension-size(x), dimensions={0}
  f = f32[] convert(n)
  c = f32[?,4] call(x), to_apply=double
  b = f32[?] reshape(c)
  e = f32[?,4] negate(x)
  ROOT r = (f32[?], f32[], f32[?,4]) tuple(b, f, e)
}
"""


def test_hlo_text_is_specialized_too():
    executable = xlapy.compile(HLO)
    x = array(3, 4)
    flat, count, negated = executable(x)
    np.testing.assert_array_equal(flat, (x + x).reshape(-1))
    np.testing.assert_array_equal(negated, -x)
    assert count == 3
    module = specialize_to(xlapy.hlo.parse(HLO), [x])
    assert "?" not in module.to_text()
    assert "n = s32[] constant(3)" in module.to_text()


def test_inspection_says_that_sizes_are_missing():
    executable = xlapy.compile(HLO)
    assert "f32[?,4]" in repr(executable) and "0 sets of sizes" in repr(executable)
    assert "f32[?,4]" in executable.hlo_text()
    for method in ("llvm_ir", "assembly", "cost_analysis", "compile_stats", "memory_analysis"):
        with pytest.raises(UnsupportedError, match="specialize"):
            getattr(executable, method)()
    special = executable.specialize(array(3, 4))
    assert special is executable.specialize(array(3, 4)) and "1 set of sizes" in repr(executable)
    assert "define" in special.llvm_ir()
    assert executable.run(array(3, 4))[1] == 3
    assert executable.run_parallel([[array(5, 4)]])[0][1] == 5
    assert executable.specializations == ((3,), (5,))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_specializes_while_another_thread_of_its_parent_does():
    """It waited for ever for the lock of a thread that it does not have."""
    is_inside, may_end = threading.Event(), threading.Event()

    def compile_module(module: HloModule) -> xlapy.Executable:
        if module.signature.parameters[0].dims == (3, 4):
            is_inside.set()
            may_end.wait()
        return xlapy.compile(module)

    executable = DynamicExecutable(xlapy.hlo.parse(HLO), xlapy.CompileOptions(), compile_module)
    thread = threading.Thread(target=executable.specialize, args=(array(3, 4),))
    thread.start()
    is_inside.wait()
    has_worked = works_in_a_child(lambda: executable(array(2, 4)))
    may_end.set()
    thread.join()
    assert has_worked
    assert executable.specializations == ((3,),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "takes 1 argument, and is given 0"),
        ((np.zeros(4, np.float32),), r"dimensions \[4\]"),
        ((np.zeros((2, 3), np.float32),), "4"),
        ((np.zeros((2, 4), np.int32),), "s32|int32"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        xlapy.compile(HLO)(*arguments)


def test_a_broken_assertion_about_shapes_is_told():
    (size,) = export.symbolic_shape("2*n")
    text = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((size,), jnp.float32)).mlir_module()
    np.testing.assert_array_equal(xlapy.compile(text)(np.zeros(6, np.float32)), np.ones(6))
    with pytest.raises(ShapeError, match="2\\*n"):
        xlapy.compile(text)(np.zeros(7, np.float32))


def test_a_rule_that_only_some_sizes_break_names_the_instruction():
    text = """
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %z = stablehlo.add %x, %y : tensor<?xf32>
      return %z : tensor<?xf32>
    }"""
    executable = xlapy.compile(text)
    assert executable(array(2), array(2)).shape == (2,)
    with pytest.raises(ShapeError, match=r"specialized to \(f32\[2\], f32\[3\]\)"):
        executable(array(2), array(3))


def test_sizes_that_depend_on_values_are_refused():
    text = """
    func.func @main(%x: tensor<4xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
      %z = stablehlo.dynamic_reshape %x, %n : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %z : tensor<?xf32>
    }"""
    stablehlo.parse(text)
    with pytest.raises(UnsupportedError, match="depends on the values of arguments"):
        xlapy.compile(text)


def test_a_size_that_nothing_tells_is_refused():
    with pytest.raises(UnsupportedError, match="nothing tells the sizes"):
        xlapy.evaluate("ENTRY m { x = f32[] parameter(0) p = f32[?] parameter(1) ROOT b = f32[?] broadcast(x), "
                       "dimensions={} }", np.float32(1), array(3))  # fmt: skip


def test_loops_must_keep_their_shapes():
    text = """
    func.func @main(%x: tensor<?xf32>, %p: tensor<i1>) -> tensor<?xf32> {
      %r = stablehlo.while(%s = %x) : tensor<?xf32> cond {
        stablehlo.return %p : tensor<i1>
      } do {
        %t = stablehlo.concatenate %s, %s, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        stablehlo.return %t : tensor<?xf32>
      }
      return %r : tensor<?xf32>
    }"""
    with pytest.raises(ShapeError, match="the loop makes"):
        xlapy.compile(text)(array(3), np.True_)


def test_bounds_stay_bounds():
    text = """
    func.func @main(%x: tensor<?x?xf32, #stablehlo.bounds<5, ?>>) -> tensor<?xf32, #stablehlo.bounds<5>> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<?x?xf32, #stablehlo.bounds<5, ?>>, tensor<f32>) -> tensor<?xf32, #stablehlo.bounds<5>>
      return %s : tensor<?xf32, #stablehlo.bounds<5>>
    }"""
    executable = xlapy.compile(text)
    for rows, columns in ((2, 3), (5, 3), (3, 2)):
        x = array(rows, columns)
        np.testing.assert_allclose(executable(x), x.sum(1), rtol=1e-5)
        np.testing.assert_allclose(xlapy.evaluate(text, x), x.sum(1), rtol=1e-5)
    assert executable.specializations == ((3,), (2,))  # rows are no reason to compile


SIZES = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<1x4xf32>) -> (tensor<?x4xf32>, tensor<?xf32>, tensor<3xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %s = shape.shape_of %x : tensor<?x4xf32> -> tensor<2xindex>
  %t = shape.shape_of %y : tensor<1x4xf32> -> tensor<2xindex>
  %w = shape.cstr_broadcastable %s, %t : tensor<2xindex>, tensor<2xindex>
  %r = shape.assuming %w -> (tensor<?x4xf32>) {
    %b = shape.broadcast %s, %t : tensor<2xindex>, tensor<2xindex> -> tensor<2xindex>
    %yb = stablehlo.dynamic_broadcast_in_dim %y, %b, dims = [0, 1] : (tensor<1x4xf32>, tensor<2xindex>) -> tensor<?x4xf32>
    %z = stablehlo.add %x, %yb : tensor<?x4xf32>
    shape.assuming_yield %z : tensor<?x4xf32>
  }
  %n = shape.num_elements %s : tensor<2xindex> -> index
  %i = arith.index_cast %n : index to i32
  %f = tensor.from_elements %i : tensor<1xi32>
  %v = stablehlo.dynamic_reshape %r, %f : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
  %e = tensor.extract %s[%c1] : tensor<2xindex>
  %q = "arith.muli"(%e, %d) : (index, index) -> index
  %p = arith.cmpi slt, %q, %c1 : index
  %o = arith.select %p, %q, %c0 : index
  %k = shape.get_extent %s, %c1 : tensor<2xindex>, index -> index
  %g = tensor.from_elements %q, %o, %k : tensor<3xindex>
  return %r, %v, %g : tensor<?x4xf32>, tensor<?xf32>, tensor<3xindex>
}
"""  # noqa: E501


def test_arithmetic_on_sizes():
    x, y = array(3, 4), array(1, 4)
    for results in (xlapy.compile(SIZES)(x, y), xlapy.evaluate(SIZES, x, y)):
        np.testing.assert_array_equal(results[0], x + y)
        np.testing.assert_array_equal(results[1], (x + y).reshape(-1))
        assert results[2].tolist() == [12, 0, 4]


def test_constant_sizes_need_no_call():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<2x2xf32> {
      %n = stablehlo.constant dense<1> : tensor<2xi32>
      %m = stablehlo.add %n, %n : tensor<2xi32>
      %a = stablehlo.dynamic_reshape %x, %m : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x?xf32>
      %c = stablehlo.constant dense<2> : tensor<2xi32>
      %b = stablehlo.dynamic_reshape %x, %c : (tensor<4xf32>, tensor<2xi32>) -> tensor<2x2xf32>
      %d = stablehlo.add %a, %b : (tensor<?x?xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %d : tensor<2x2xf32>
    }"""
    assert opcodes(stablehlo.parse(text)).count("reshape") == 1
    x = array(4)
    np.testing.assert_array_equal(xlapy.compile(text)(x), 2 * x.reshape(2, 2))


def test_set_dimension_size_makes_a_bound():
    text = """
    func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<f32> {
      %b = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      return %s : tensor<f32>
    }"""
    x = array(6)
    np.testing.assert_allclose(xlapy.compile(text)(x, np.int32(4)), x[:4].sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = stablehlo.dynamic_reshape %x, %c : (tensor<?xf32>, tensor<2xi32>) -> tensor<?xf32>", "2 sizes"),
        ("%r = stablehlo.dynamic_iota %c, dim = 2 : (tensor<2xi32>) -> tensor<?x?xf32>", "iota.C1"),
        ("%r = stablehlo.dynamic_pad %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>", "takes 5 operands"),
        ("%r = arith.constant x : index", "expected a number"),
        ("%r = tensor.dim %x, %x : tensor<?xi32>", "stated as"),
    ],
)
def test_wrong_dynamic_programs_are_located(line, message):
    text = (
        "func.func @main(%x: tensor<?xf32>) -> () {\n  %c = stablehlo.constant dense<2> : tensor<2xi32>\n"
        f"  {line}\n  return\n}}"
    )
    with pytest.raises((ShapeError, ParseError), match=message) as caught:
        stablehlo.parse(text)
    assert "line 3" in str(caught.value)


def test_the_oldest_specializations_are_dropped(monkeypatch):
    monkeypatch.setattr("xlapy.specialized.MOST_SPECIALIZATIONS", 2)
    executable = xlapy.compile("HloModule m\nENTRY e { x = f32[?] parameter(0) ROOT y = f32[?] add(x, x) }")
    for size in (3, 4, 5, 3):
        np.testing.assert_array_equal(executable(np.ones(size, np.float32)), np.full(size, 2, np.float32))
    assert executable.specializations == ((5,), (3,))


def test_a_constant_takes_the_open_sizes_of_what_it_is_combined_with():
    text = """
    func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3xi1>, tensor<?x3xf32>, tensor<?x3xf32>) {
      %0 = chlo.is_inf %x : tensor<?x3xf32> -> tensor<?x3xi1>
      %1 = "chlo.constant_like"(%x) {value = 3.0 : f32} : (tensor<?x3xf32>) -> tensor<?x3xf32>
      %2 = stablehlo.add %1, %x : tensor<?x3xf32>
      return %0, %1, %2 : tensor<?x3xi1>, tensor<?x3xf32>, tensor<?x3xf32>
    }"""
    x = np.array([[1, -np.inf, np.nan]] * 4, np.float32)
    for results in (xlapy.compile(text)(x), xlapy.evaluate(text, x)):
        for result, expected in zip(results, (np.isinf(x), np.full_like(x, 3), x + 3), strict=True):
            np.testing.assert_array_equal(result, expected)


def bounded(*bounds: int | None, kind: str = "f32") -> str:
    """A type with bounds: `tensor<?x2xf32, #stablehlo.bounds<4, ?>>` of 4, and of None at a static 2."""
    sizes = "x".join("?" if bound else "2" for bound in bounds)
    return f"tensor<{sizes}x{kind}, #stablehlo.bounds<{', '.join(str(bound or '?') for bound in bounds)}>>"


def sized(name: str, operands: dict[str, str], result: str, attributes: str = "", constants: str = "") -> str:
    arguments = ", ".join(f"%{operand}: {type}" for operand, type in operands.items() if not operand.startswith("c"))
    names, types = ", ".join(f"%{operand}" for operand in operands), ", ".join(operands.values())
    return (
        f"func.func @main({arguments}) -> {result} {{\n{constants}"
        f'  %r = "stablehlo.{name}"({names}) {{{attributes}}} : ({types}) -> {result}\n  return %r : {result}\n}}\n'
    )


SIX, ONE_SIZE, TWO_SIZES = np.arange(6, dtype=np.float32), "tensor<1xi32>", "tensor<2xi64>"
STEP = f"  %c = stablehlo.constant dense<2> : {ONE_SIZE}\n"
SLICE = {"x": "tensor<6xf32>", "s": ONE_SIZE, "l": ONE_SIZE, "c": ONE_SIZE}
AT_RUN_TIME = [
    *(
        (sized("dynamic_iota", {"n": ONE_SIZE}, bounded(8, kind="i32"), "iota_dimension = 0 : i64"), [[size]],
         np.arange(min(max(size, 0), 8), dtype=np.int32))
        for size in (0, 3, 8, 11, -1)
    ),
    *(
        (sized("dynamic_broadcast_in_dim", {"x": "tensor<2xf32>", "n": TWO_SIZES}, bounded(4, None),
               "broadcast_dimensions = array<i64: 1>"), [SIX[:2], np.array([rows, 2])], np.tile(SIX[:2], (rows, 1)))
        for rows in (0, 3)
    ),
    *(
        (sized("real_dynamic_slice", SLICE, bounded(6), constants=STEP), [SIX, [start], [limit]], SIX[start:limit:2])
        for start, limit in ((0, 6), (1, 6), (5, 6), (3, 2))
    ),
    (sized("dynamic_reshape", {"x": bounded(4, None), "n": ONE_SIZE}, bounded(8)), [SIX.reshape(3, 2), [6]], SIX),
    (sized("dynamic_reshape", {"x": "tensor<6xf32>", "n": TWO_SIZES}, bounded(5, None)), [SIX, np.array([3, 2])],
     SIX.reshape(3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "arguments", "expected"), AT_RUN_TIME)
def test_results_with_bounds_have_sizes_at_run_time(text, arguments, expected):
    arguments = [np.array(argument, np.int32) if isinstance(argument, list) else argument for argument in arguments]
    module = stablehlo.parse(text)
    written = stablehlo.parse(stablehlo.to_text(module))
    for result in (
        xlapy.compile(module)(*arguments), xlapy.evaluate(module, *arguments), xlapy.evaluate(written, *arguments)
    ):  # fmt: skip
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sized("dynamic_reshape", {"x": "tensor<6xf32>", "n": TWO_SIZES}, bounded(5, 3)), "depends on sizes at run"),
        (sized("dynamic_reshape", {"x": "tensor<6xf32>", "n": TWO_SIZES}, bounded(None, 4)), "depends on sizes at run"),
        (sized("dynamic_pad", {"x": "tensor<6xf32>", "v": "tensor<f32>", "l": ONE_SIZE, "h": ONE_SIZE, "i": ONE_SIZE},
               bounded(9)), "depends on the values of arguments"),
    ],
)  # fmt: skip
def test_bounds_that_do_not_say_enough_are_refused(text, message):
    with pytest.raises(UnsupportedError, match=message):
        xlapy.compile(text)


def test_each_dimension_needs_a_size():
    text = sized("dynamic_iota", {"n": TWO_SIZES}, bounded(8, kind="i32"), "iota_dimension = 0 : i64")
    with pytest.raises(ShapeError, match=r"dynamic_iota.C1"):
        stablehlo.parse(text)


@pytest.mark.parametrize("rows", [1, 4])
def test_an_update_may_have_an_open_size(rows):
    """It must fit, which can be told when its size is known."""
    text = """func.func @main(%x: tensor<4x3xf32>, %u: tensor<?x3xf32>, %i: tensor<i32>) -> tensor<4x3xf32> {
      %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
        : (tensor<4x3xf32>, tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      return %0 : tensor<4x3xf32> }"""
    x, update, start = array(4, 3), array(rows, 3), np.int32(2)
    expected = x.copy()
    place = min(2, 4 - rows)
    expected[place : place + rows] = update
    executable = xlapy.compile(text)
    np.testing.assert_array_equal(executable(x, update, start), expected)
    np.testing.assert_array_equal(xlapy.evaluate(text, x, update, start), expected)
    with pytest.raises(ShapeError, match="a slice of size 5 does not fit in dimension 0"):
        executable(x, array(5, 3), start)


def test_the_id_of_a_replica_is_no_number_known_beforehand():
    """It was looked up while sizes are filled in, where no process runs."""
    text = """func.func @main(%x: tensor<?xui32>) -> (tensor<?xui32>, tensor<ui32>) {
      %0 = stablehlo.replica_id : tensor<ui32>
      return %x, %0 : tensor<?xui32>, tensor<ui32> }"""
    x = np.arange(3, dtype=np.uint32)
    for result in (xlapy.compile(text)(x), xlapy.evaluate(text, x)):
        np.testing.assert_array_equal(result[0], x)
        assert result[1] == 0
