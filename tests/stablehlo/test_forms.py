"""Spellings: types, constants, attributes and locations, in each of their forms."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.stablehlo.structure import opcodes, structure
from xlapy import stablehlo
from xlapy.hlo.element_types import ALL
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import TOKEN, UNBOUNDED, Shape
from xlapy.hlo.text.backend_config import mlir_string
from xlapy.stablehlo.attributes import string_text
from xlapy.stablehlo.constants import dense_literal, dense_text
from xlapy.stablehlo.types import tensor_type, type_text
from xlapy.support.errors import ParseError


def returned_constant(body: str, type: str) -> np.ndarray:
    text = f"func.func @main() -> {type} {{ %0 = stablehlo.constant {body} : {type} return %0 : {type} }}"
    return evaluate(stablehlo.parse(text))


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_every_element_type_has_a_spelling(element_type) -> None:
    shape = Shape.array(element_type, (2, 0, 3))
    assert tensor_type(type_text(shape)) == shape


def test_types() -> None:
    assert tensor_type("tensor<si32>") == Shape.scalar(np.int32)
    assert tensor_type("tensor< 2 x 3 x complex<f32> >") == Shape.array(np.complex64, (2, 3))
    bounded = tensor_type("tensor<?x4x?xf32, #stablehlo.bounds<5, ?, ?>>")
    assert bounded == Shape.array(np.float32, (5, 4, UNBOUNDED), (True, False, True))
    assert tensor_type(type_text(bounded)) == bounded
    assert tensor_type("tensor<?xf32, #mhlo.type_extensions<bounds = [7]>>") == Shape.array(np.float32, (7,), (True,))
    nested = Shape.tuple([TOKEN, Shape.tuple([bounded]), Shape.tuple([])])
    module = stablehlo.parse(f"func.func @main(%x: {type_text(nested)}) {{ return }}")
    assert module.signature.parameters == (nested,)


@pytest.mark.parametrize(
    ("body", "type", "expected"),
    [
        ("dense<[[1, -2], [3, 4]]>", "tensor<2x2xi32>", np.array([[1, -2], [3, 4]], np.int32)),
        ("dense<7>", "tensor<2x3xui8>", np.full((2, 3), 7, np.uint8)),
        ("dense<[true, false]>", "tensor<2xi1>", np.array([True, False])),
        ("dense<[18446744073709551615, 0]>", "tensor<2xui64>", np.array([2**64 - 1, 0], np.uint64)),
        ("dense<-9223372036854775808>", "tensor<i64>", np.array(-(2**63))),
        ("dense<0xFF>", "tensor<i8>", np.array(-1, np.int8)),
        ("dense<[1.0, -2.5e+1, 0x7F800000, 3]>", "tensor<4xf32>", np.array([1, -25, np.inf, 3], np.float32)),
        (
            "dense<[(1.0, -2.0), (0x7FF0000000000000, 0.5)]>",
            "tensor<2xcomplex<f64>>",
            np.array([1 - 2j, np.inf + 0.5j]),
        ),
        ("dense<(1.0, 2.0)>", "tensor<2xcomplex<f32>>", np.array([1 + 2j] * 2, np.complex64)),
        ('dense<"0x0000803F000000C0">', "tensor<2xf32>", np.array([1, -2], np.float32)),
        ('dense<"0x0000803F">', "tensor<3xf32>", np.ones(3, np.float32)),
        ('dense<"0x0D">', "tensor<4xi1>", np.array([True, False, True, True])),
        ('dense<"0x01000100">', "tensor<4xi1>", np.array([True, False, True, False])),
        ("dense<>", "tensor<0x2xf32>", np.zeros((0, 2), np.float32)),
        ("dense<[[], []]>", "tensor<2x0xf32>", np.zeros((2, 0), np.float32)),
        ("dense<[0x7FC0, 0.5]>", "tensor<2xbf16>", np.array([np.nan, 0.5], ml_dtypes.bfloat16)),
        ("dense<[-8, 7]>", "tensor<2xi4>", np.array([-8, 7], ml_dtypes.int4)),
        ("dense<[0.5, 0x7F]>", "tensor<2xf8E4M3FN>", np.array([0.5, np.nan], ml_dtypes.float8_e4m3fn)),
    ],
)
def test_constants(body: str, type: str, expected: np.ndarray) -> None:
    result = returned_constant(body, type)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert Literal(result) == Literal(expected)


@pytest.mark.parametrize("size", [1, 5, 300])
@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_constants_are_written_to_the_bit(element_type, size: int) -> None:
    random = np.random.default_rng(size)
    if element_type.is_complex or element_type.is_float:
        values = random.normal(size=(size, 2)) * 3
        values[0, 0] = np.inf
        array = values.astype(np.float32).astype(element_type.dtype)
    else:
        array = random.integers(0, 2, size=(size, 2)).astype(element_type.dtype)
    literal = Literal(array)
    assert dense_literal(dense_text(literal), literal.shape) == literal


def test_resources_stand_behind_the_module() -> None:
    text = """
    module {
      func.func @main() -> tensor<2xf32> {
        %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
        return %0 : tensor<2xf32>
      }
    }
    {-# dialect_resources: { builtin: { blob: "0x040000000000803F000000C0" } } #-}
    """
    assert evaluate(stablehlo.parse(text)).tolist() == [1, -2]
    with pytest.raises(ParseError, match="left out when the text was printed"):
        stablehlo.parse(text.replace("<blob>", "<__elided__>"))


def test_what_does_not_matter_is_skipped() -> None:
    module = stablehlo.parse("""
    // a comment
    #map = affine_map<(d0, d1) -> (d0 + d1)>
    !alias = tensor<2xf32>
    module @"odd name" attributes {
      sdy.unknown = #sdy.thing<@mesh, [{}, {"x"}]>, f = affine_map<(d0) -> (d0)>, g = #map
    } {
      sdy.mesh @mesh = <["x"=2, "y"=4]>
      func.func @main(%x: !alias {jax.buffer_donor = true, tf.aliasing_output = 0 : i32} loc(unknown)) ->
          (tensor<2xf32> {jax.result_info = "a"}) attributes {x.y = dense<1> : tensor<2xi64>, unit} {
        %0 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<2xf32> // behind
        %1 = stablehlo.add %0, %x {mhlo.frontend_attributes = {a = "b"}, mhlo.sharding = "{}"} : tensor<2xf32>
          loc(fused<{x}>["f.py":1:2, callsite("g" at "h.py":3:4)])
        func.return %1 : tensor<2xf32> loc(#later)
      } loc(#later)
    }
    #later = loc("f.py":1:2 to 3:4)
    """)
    assert module.name == "odd name"
    assert opcodes(module) == ["parameter", "add"]
    assert module.entry.root.metadata.location() == "f.py:1"


def test_names_may_be_used_again_in_other_regions() -> None:
    module = stablehlo.parse("""
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %r = "stablehlo.if"(%p) ({
        %a = stablehlo.add %x, %x : tensor<f32>
        stablehlo.return %a : tensor<f32>
      }, {
        %a = stablehlo.multiply %x, %x : tensor<f32>
        stablehlo.return %a : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %r : tensor<f32>
    }""")
    assert evaluate(module, np.True_, np.float32(3)) == 6
    assert evaluate(module, np.False_, np.float32(3)) == 9


def test_captures_travel_through_nested_regions() -> None:
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %y = stablehlo.add %x, %x : tensor<f32>
      %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %w = "stablehlo.if"(%p) ({
          %a = stablehlo.add %v, %y : tensor<f32>
          stablehlo.return %a : tensor<f32>
        }, {
          stablehlo.return %v : tensor<f32>
        }) : (tensor<i1>) -> tensor<f32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %w : tensor<i32>, tensor<f32>
      }
      return %0#1 : tensor<f32>
    }"""
    module = stablehlo.parse(text)
    (loop,) = (i for i in module.entry.post_order() if i.opcode == "while")
    assert [str(part) for part in loop.shape.parts] == ["s32[]", "f32[]", "s32[]", "pred[]", "f32[]"]
    assert evaluate(module, np.True_, np.float32(1), np.int32(3)) == 7
    assert evaluate(module, np.False_, np.float32(1), np.int32(3)) == 1
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)


def test_reduce_may_fold_in_a_wider_type() -> None:
    module = stablehlo.parse("""
    func.func @main(%x: tensor<3xbf16>, %z: tensor<bf16>) -> tensor<f32> {
      %0 = "stablehlo.reduce"(%x, %z) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
      }) {dimensions = array<i64: 0>} : (tensor<3xbf16>, tensor<bf16>) -> tensor<f32>
      return %0 : tensor<f32>
    }""")
    ones = np.array([256, 1, 1], ml_dtypes.bfloat16)
    assert evaluate(module, ones, ml_dtypes.bfloat16(0)) == 258


@pytest.mark.parametrize("text", ["", "plain", 'quo"te', "back\\slash", "line\nbreak", "tab\t", "é漢", "\x00\x7f"])
def test_strings_are_written_and_read(text: str) -> None:
    assert mlir_string(string_text(text)) == text
    module = stablehlo.parse(
        f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n"
        f"  %0 = stablehlo.negate %x : tensor<f32> loc({string_text(text)})\n  return %0 : tensor<f32>\n}}"
    )
    assert module.entry.root.metadata.op_name == text
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)


@pytest.mark.parametrize("location", ['"f.py":', '"f.py":' + "9" * 5000, "#none", "", "#a", "fused<1>[]"])
def test_odd_locations_say_nothing(location: str) -> None:
    text = "#a = loc(#b)\n#b = loc(#a)\nfunc.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
    text += f"  %0 = stablehlo.negate %x : tensor<f32> loc({location})\n  return %0 : tensor<f32>\n}}"
    assert stablehlo.parse(text).entry.root.metadata.location() == ""


def test_a_structured_attribute_may_have_no_fields() -> None:
    text = """func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
      %0 = "stablehlo.dot_general"(%x, %y) <{dot_dimension_numbers = #stablehlo.dot<>}>
        : (tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }"""
    x, y = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
    np.testing.assert_array_equal(evaluate(stablehlo.parse(text), x, y), np.outer(x, y))
