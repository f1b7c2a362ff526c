"""Wrong text: always an XlaError, with line, column and caret, that says what was expected."""

from __future__ import annotations

import random

import pytest

from tests.hlo.text.samples import EVERYTHING
from xlapy.hlo.text import parse
from xlapy.support.errors import ParseError, ShapeError, XlaError

CASES = [
    ("", "expected HloModule"),
    ("HloModule", "the name of the module"),
    ("HloModule m", "expected a computation"),
    ("HloModule m, replica_count=0\nENTRY e { ROOT x = f32[] parameter(0) }", "number of processes"),
    ("ENTRY e { }", "no instructions"),
    ("ENTRY e { x = f32[] parameter(0)", "text ends here"),
    ("ENTRY e { x = f32[] paramter(0) }", "did you mean 'parameter'"),
    ("ENTRY e { x = f33[] parameter(0) }", "no element type 'f33'"),
    ("ENTRY e { x = float32[] parameter(0) }", "no element type 'float32': that is f32"),
    ("ENTRY e { x = bfloat16[2] parameter(0) }", "no element type 'bfloat16': that is bf16"),
    ("ENTRY e { x = f32[2 parameter(0) }", "expected"),
    ("ENTRY e { x = f32[-2] parameter(0) }", "not the size of a dimension"),
    ("ENTRY e { x = f32[9223372036854775807] parameter(0) }", r"more than 2\^48 elements"),
    ("ENTRY e { x = f32[99999999999999999999] parameter(0) }", "dimension 0 of an array has more than 64 bits"),
    ("ENTRY e { x = f32[2]{1} parameter(0) }", "not a permutation"),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] negate(xx) }", "no instruction 'xx'"),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] negate(z) z = f32[] negate(x) }", "before this one"),
    ("ENTRY e { x = f32[] parameter(0) x = f32[] negate(x) }", "defined twice"),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] parameter(0) }", r"second parameter\(0\)"),
    ("ENTRY e { x = f32[] parameter(1) }", r"none is parameter\(0\)"),
    ("ENTRY e { ROOT x = f32[] parameter(0) ROOT y = f32[] negate(x) }", "second ROOT"),
    ("ENTRY e { x = f32[] parameter(0) } ENTRY f { x = f32[] parameter(0) }", "second ENTRY"),
    ("e { x = f32[] parameter(0) } e { x = f32[] parameter(0) }", "defined twice"),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] call(x), to_apply=f }", "no computation 'f'"),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] call(x), to_apply=e }", "calls itself"),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] negate(x), dimension={0} }", "no attribute 'dimension'"),
    ("ENTRY e { x = f32[1] parameter(0) y = f32[1] reverse(x), dimension={0} }", "did you mean 'dimensions'"),
    ("ENTRY e { x = f32[] parameter(0) y = pred[] compare(x, x), direction=lt }", "none of EQ, NE"),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[4] pad(x, x), padding=1 }", "not a padding"),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[] negate(f32[3] x) }", "not f32"),
    ("e (x: f32[2]) -> f32[] { x = f32[] parameter(0) }", "has type"),
    ("ENTRY e { x = f32[] parameter(0) /* open", "never closed"),
    ("ENTRY e { x = f32[] parameter(0), sharding={ ", "never closed"),
    ('ENTRY e { x = f32[] parameter(0), metadata={op_name="x }', "never closed"),
    ("ENTRY e { c = constant(1) }", "shape of a constant"),
    ("ENTRY e { c = f32[] constant(1 }", "never closed"),
    ("ENTRY e { c = f32[2,?] constant({{1}, {2}}) }", "as many elements as its shape says"),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimensions={9223372036854775808} }", "64 bits"),
]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_wrong_text_is_a_located_parse_error(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(text)
    assert caught.value.where.startswith("line ")
    assert caught.value.where.endswith("^")


LAYOUTS = 'custom-call(x), custom_call_target="f", operand_layout_constraints='
SHAPE_CASES = [
    (f"ENTRY e {{\n x = f32[2] parameter(0)\n y = f32[2] {LAYOUTS}{{}} }}", "layouts-match"),
    (f"ENTRY e {{\n x = f32[2] parameter(0)\n y = f32[2] {LAYOUTS}{{f32[3]{{0}}}} }}", "layouts-match"),
    ("ENTRY e {\n x = f32[2] parameter(0)\n y = f32[3] negate(x) }", "result-shape"),
    ("ENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] add(x) }", "operand-count"),
    ("ENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] transpose(x), dimensions={1} }", "permutation"),
    ("ENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] transpose(x) }", "permutation"),
    ("ENTRY e {\n x = f32[2] parameter(0)\n y = iota(), iota_dimension=0 }", "result-shape"),
    ("ENTRY e {\n x = f32[2] parameter(0)\n y = f32[] call(x) }", "regions"),
]


@pytest.mark.parametrize(("text", "rule"), SHAPE_CASES)
def test_a_broken_rule_is_a_located_shape_error(text: str, rule: str) -> None:
    with pytest.raises(ShapeError, match=rule) as caught:
        parse(text)
    assert caught.value.where.startswith("line 3, column 2:")


def test_the_message_in_full() -> None:
    with pytest.raises(ShapeError) as caught:
        parse(
            "ENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[3] parameter(1)\n  ROOT c = f32[2] add(a, b)\n}",
            name="p.hlo",
        )
    assert str(caught.value) == (
        "add(f32[2], f32[3]): f32[2] and f32[3] have different dimensions  [add.same-dims]\n"
        "  p.hlo, line 4, column 3:\n"
        "    ROOT c = f32[2] add(a, b)\n"
        "    ^"
    )


NESTED = {
    "tuple shape": "ENTRY e { x = " + "(" * 10_000 + "f32[]" + ")" * 10_000 + " parameter(0) }",
    "operands": "ENTRY e { x = f32[] parameter(0) y = " + "negate(" * 10_000 + "x" + ")" * 10_000 + " }",
    "literal": "ENTRY e { x = f32[2] constant(" + "{" * 10_000 + "1" + "}" * 10_000 + ") }",
    "tuple literal": "ENTRY e { x = (f32[]) constant(" + "(" * 10_000 + "1" + ")" * 10_000 + ") }",
    "config": "ENTRY e { x = f32[] parameter(0), backend_config=" + "{" * 10_000 + " }",
    "groups": "ENTRY e { x = f32[] parameter(0) y = f32[] all-reduce(x), replica_groups=" + "{" * 10_000 + " }",
    "signature": "ENTRY e " + "(" * 10_000 + " { x = f32[] parameter(0) }",
}


@pytest.mark.parametrize("what", NESTED)
def test_deep_nesting_is_an_error_with_a_place(what: str) -> None:
    with pytest.raises(XlaError) as caught:
        parse(NESTED[what])
    assert "line 1, column" in caught.value.where
    assert len(str(caught.value)) < 1000


def test_balanced_nesting_in_a_kept_attribute_works() -> None:
    config = "{" * 10_000 + "}" * 10_000
    module = parse(f"ENTRY e {{ x = f32[] parameter(0), backend_config={config} }}")
    assert module.entry.root.extra["backend_config"] == config


def test_truncated_text_is_never_another_error() -> None:
    for end in range(0, len(EVERYTHING), 7):
        try:
            parse(EVERYTHING[:end])
        except XlaError as error:
            assert "^" in error.where


def test_damaged_text_is_never_another_error() -> None:
    generator = random.Random(0)
    alphabet = '{}[]()=,:x0-9%"/<>* \n.'
    for _ in range(400):
        text = list(EVERYTHING)
        for _ in range(generator.randint(1, 3)):
            position = generator.randrange(len(text))
            change = generator.random()
            if change < 0.4:
                del text[position : position + generator.randint(1, 8)]
            elif change < 0.8:
                text[position] = generator.choice(alphabet)
            else:
                other = generator.randrange(len(text))
                text[position:position] = text[other : other + 20]
        try:
            parse("".join(text))
        except XlaError as error:
            assert str(error)
