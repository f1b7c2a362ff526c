"""Literals: every element type, every special value, bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xlapy.hlo.element_types import ALL, COMPLEX, F32, FLOAT, INTEGER, PRED, ElementType
from xlapy.hlo.graph import Computation, HloModule
from xlapy.hlo.literal import Literal
from xlapy.hlo.text import parse, to_text
from xlapy.support.errors import ParseError


def reparsed(literal: Literal) -> Literal:
    computation = Computation("e")
    computation.set_root(computation.add("constant", literal=literal))
    text = to_text(HloModule("m", computation))
    result = parse(text).entry.root.attributes["literal"]
    assert isinstance(result, Literal)
    return result


def constant(shape: str, text: str) -> np.ndarray:
    return parse(f"ENTRY e {{ ROOT c = {shape} constant({text}) }}").entry.root.attributes["literal"].to_value()


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_every_bit_pattern_of_a_type_survives(element_type: ElementType) -> None:
    width = element_type.bits
    if width <= 8:
        bits = np.arange(1 << width, dtype=np.uint8)
    else:
        random = np.random.default_rng(0).integers(0, 256, (400, element_type.bytes), dtype=np.uint8)
        edges = np.array([[0] * element_type.bytes, [255] * element_type.bytes], np.uint8)
        bits = np.concatenate([random, edges]).reshape(-1)
    if element_type is PRED:
        array = bits.astype(np.bool_)
    elif element_type in INTEGER and width < 8:
        array = bits.astype(element_type.dtype)
    else:
        array = bits.view(element_type.dtype)
    assert reparsed(Literal(array)) == Literal(array)


@pytest.mark.parametrize(
    "dims", [(), (3,), (2, 3), (1, 1, 4), (2, 0), (0, 5), (0,), (2, 3, 0), (1, 0, 7, 1), (17, 0, 17, 17)]
)
@pytest.mark.parametrize("element_type", sorted({F32, PRED} | COMPLEX, key=str), ids=str)
def test_every_rank_and_empty_arrays(dims: tuple[int, ...], element_type: ElementType) -> None:
    array = np.arange(np.prod(dims)).reshape(dims).astype(element_type.dtype)
    assert reparsed(Literal(array)) == Literal(array)


def test_tuples_nest() -> None:
    literal = Literal(
        (Literal(np.float32(1)), Literal((Literal(np.array([1, 2])), Literal(()))), Literal(np.array([1j])))
    )
    assert reparsed(literal) == literal


def test_spellings() -> None:
    assert constant("pred[3]", "{true, 0, 1}").tolist() == [True, False, True]
    assert constant("f32[2]", "{ /*i0=0*/ 1., .5e+1 }").tolist() == [1.0, 5.0]
    assert constant("f32[]", "-nan").view(np.uint32) == 0xFFC00000
    assert constant("f32[]", "nan(0x400001)").view(np.uint32) == 0x7FC00001
    assert constant("bf16[]", "-inf") == ml_dtypes.bfloat16(-np.inf)
    assert constant("c64[]", "(nan, -0)").real.view(np.uint32) == 0x7FC00000
    assert constant("s8[2]", "{-128, 127}").tolist() == [-128, 127]
    assert constant("u64[]", "18446744073709551615") == np.uint64(2**64 - 1)


WRONG = [
    ("s8[]", "128", "out of range"),
    ("u8[2]", "{1, -1}", "out of range"),
    ("s64[]", "9" * 30, "out of range"),
    ("f16[]", "1e6", "out of range"),
    ("f8e4m3fn[]", "inf", "out of range"),
    ("f8e4m3fn[]", "1000", "out of range"),
    ("f4e2m1fn[]", "nan", "out of range"),
    ("f32[]", "1e39", "out of range"),
    ("f32[]", "nan(0x800000)", "out of range"),
    ("f32[]", "nan:12", "expected a number"),
    ("f32[]", "1" * 400, "out of range"),
    ("f64[]", "1e400", "out of range"),
    ("f64[2]", "{1 nan, 2}", "not a number"),
    ("s32[]", "1.5", "not an integer"),
    ("s32[]", "1_000", "not an integer"),
    ("f32[]", "1_0", "not a number"),
    ("f32[]", "true", "not a number"),
    ("f32[2]", "{1, infinity}", "not a number"),
    ("pred[]", "2", "not a pred"),
    ("f32[2]", "{1}", "2 elements"),
    ("f32[2]", "{1,2,3}", "2 elements"),
    ("f32[2,2]", "{1,2,3,4}", "4 elements"),
    ("f32[2,2]", "{...}", "elided"),
    ("f32[281474976710656]", "{1}", "elements"),
    ("f32[0]", "{1}", "elements"),
    ("c64[]", "1", "real, imaginary"),
    ("(f32[], s32[])", "(1)", "','"),
    ("(f32[], s32[])", "(1, 2, 3)", "')'"),
    ("(f32[])", "1", "'('"),
    ("token[]", "1", "token"),
]


@pytest.mark.parametrize(("shape", "text", "message"), WRONG)
def test_wrong_literals_are_refused_at_their_place(shape: str, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("(", r"\(").replace(")", r"\)")) as caught:
        constant(shape, text)
    assert "line 1, column" in str(caught.value)
    assert "^" in caught.value.where


def test_the_caret_is_under_the_wrong_element() -> None:
    with pytest.raises(ParseError) as caught:
        parse("ENTRY e {\n  ROOT c = s8[2,2] constant({{1, 2}, {300, 4}})\n}")
    place, line, caret = caught.value.where.split("\n")
    assert place.startswith("line 2")
    assert line[caret.index("^") :].startswith("300")


def test_all_float_types_round_trip_random_values() -> None:
    values = np.random.default_rng(1).normal(size=50)
    for element_type in FLOAT:
        literal = Literal(values.astype(element_type.dtype))
        assert reparsed(literal) == literal


def test_many_special_values_are_read_quickly() -> None:
    values = constant("f32[200000]", "{" + ",".join(["nan", "-nan", "inf", "1.5"] * 50_000) + "}")
    assert np.isnan(values).sum() == 100_000
