"""What newer releases of XLA and JAX write otherwise than those that the tests install: all of it is read."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy import stablehlo
from xlapy.hlo.attributes import ComparisonType
from xlapy.hlo.proto import messages, module_from_bytes, module_to_bytes
from xlapy.hlo.text import parse, structural_equal, to_text
from xlapy.support.protobuf import decode, encode


def compared(kind: str, rest: str) -> str:
    return f"""HloModule m
        ENTRY e {{
          x = {kind}[2] parameter(0)
          y = {kind}[2] parameter(1)
          ROOT r = pred[2] compare(x, y), direction=LT{rest}
        }}"""


@pytest.mark.parametrize(("newer", "older"), [(", order=TOTAL", ", type=TOTALORDER"), (", order=PARTIAL", "")])
def test_the_order_of_a_comparison(newer: str, older: str) -> None:
    module = parse(compared("f32", newer))
    assert structural_equal(module, parse(compared("f32", older)))
    assert "order=" not in to_text(module, long=True)


def test_an_order_that_is_none() -> None:
    with pytest.raises(xlapy.XlaError, match="TOTAL or PARTIAL"):
        parse(compared("f32", ", order=SOME"))


@pytest.mark.parametrize(("kind", "expected"), [("f32", ComparisonType.TOTALORDER), ("s32", None)])
def test_the_order_of_a_serialized_comparison(kind: str, expected: ComparisonType | None) -> None:
    proto = decode(messages.ModuleProto, module_to_bytes(parse(compared(kind, ""))))
    compare = proto.computations[0].instructions[-1]
    compare.comparison_type, compare.comparison_order = "", "TOTAL"
    root = module_from_bytes(encode(proto)).entry.root
    assert root.attributes["type"] is expected


def test_a_topk_that_says_that_it_is_stable() -> None:
    text = """HloModule m
        ENTRY e {
          x = f32[4] parameter(0)
          ROOT t = (f32[2], s32[2]) topk(x), k=2, largest=true, is_stable=true
        }"""
    values, places = xlapy.compile(text)(np.array([1, 3, 3, 2], np.float32))
    assert (values.tolist(), places.tolist()) == ([3, 3], [1, 2])


def test_a_collective_broadcast_that_says_that_its_root_is_the_first() -> None:
    text = """HloModule m
        ENTRY e { x = f32[4] parameter(0) ROOT b = f32[4] collective-broadcast(x), replica_groups={{1,0}} }"""
    plain, stated = parse(text), parse(text.replace("{{1,0}}", "{{1,0}}, has_dynamic_root=false"))
    assert structural_equal(plain, stated)
    with pytest.raises(xlapy.ParseError, match="has_dynamic_root=true is not supported"):
        parse(text.replace("{{1,0}}", "{{1,0}}, has_dynamic_root=true"))


def test_an_accuracy_whose_mode_stands_last() -> None:
    accuracy = "#stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
        %r = stablehlo.exponential %x {{result_accuracy = {accuracy}}} : tensor<4xf32>
        return %r : tensor<4xf32> }}"""
    plain = text.replace(f" {{result_accuracy = {accuracy}}}", "")
    assert structural_equal(stablehlo.parse(text), stablehlo.parse(plain))
