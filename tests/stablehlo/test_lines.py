"""Lines that are read by analogy with earlier ones mean what their tokens mean."""

from __future__ import annotations

import pytest

from tests.stablehlo.structure import structure
from xlapy import stablehlo
from xlapy.hlo.graph import HloModule
from xlapy.stablehlo.convert import convert_program
from xlapy.stablehlo.lines import NotALineError, split_line
from xlapy.stablehlo.reading import parse_lines, parse_tokens
from xlapy.support.errors import ParseError, XlaError

F, FOLD = "tensor<4xf32>", "across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
TWO = f"({F}, {F}) -> ({F}, {F})"


def program(*lines: str, before: str = "", result: str = "%2") -> str:
    body = "\n".join(f"    {line}" for line in lines)
    head = f"func.func @main(%x: {F}, %y: {F}, %n: tensor<4xi32>) -> {F} {{"
    return f"{before}\n{head}\n{body}\n    return {result} : {F}\n}}\n"


def by_tokens(text: str) -> HloModule:
    return convert_program(*parse_tokens(text))


SAME = {
    "the same on other values": program(
        f"%0 = stablehlo.add %x, %y : {F}", f"%1 = stablehlo.add %0, %0 : {F}", f"%2 = stablehlo.add %1, %y : {F}"
    ),
    "locations of many kinds": program(
        f'%0 = stablehlo.add %x, %y : {F} loc("a"("f.py":1:2))',
        f"%1 = stablehlo.add %0, %y : {F} loc(#loc3)",
        f'%2 = stablehlo.add %1, %y : {F} loc(callsite("f.py":1:2 at "g.py":3:4))',
        before='#loc3 = loc("h.py":5:6)',
    ),
    "no location after one with": program(
        f'%0 = stablehlo.add %x, %y : {F} loc("f.py":1:2)', f"%2 = stablehlo.add %x, %0 : {F}"
    ),
    "strings that look like values": program(
        f'%0 = stablehlo.custom_call @a(%x) {{backend_config = "%x"}} : ({F}) -> {F}',
        f'%1 = stablehlo.custom_call @a(%0) {{backend_config = "%y"}} : ({F}) -> {F}',
        f'%2 = stablehlo.custom_call @a(%1) {{backend_config = "%y loc("}} : ({F}) -> {F}',
    ),
    "operations of several results": program(
        f'%0:2 = "stablehlo.optimization_barrier"(%x, %y) : {TWO}',
        f'%1:2 = "stablehlo.optimization_barrier"(%0#1, %0#0) : {TWO}',
        f"%2 = stablehlo.subtract %1#0, %1#1 : {F}",
    ),
    "an operation that goes on in the next line": program(
        f"%0 = stablehlo.add %x, %y : {F}", "%2 = stablehlo.add %0,", f"  %y : {F}"
    ),
    "a constant in two lines": program(
        "%0 = stablehlo.constant dense<1", f"  > : {F}", f"%2 = stablehlo.add %0, %0 : {F}"
    ),
    "a type in two lines": program("%0 = stablehlo.negate %x : tensor<4x", "f32>", f"%2 = stablehlo.add %0, %0 : {F}"),
    "a location in a line of its own": program(
        f"%2 = stablehlo.add %x, %y : {F}", '  loc("f.py":1:2)', f"%3 = stablehlo.add %x, %y : {F}"
    ),
    "regions in one line": program(
        "%c = stablehlo.constant dense<0.0> : tensor<f32>",
        '%0 = "stablehlo.reduce"(%x, %c) ({ ^b(%p: tensor<f32>, %q: tensor<f32>): '
        "%r = stablehlo.add %p, %q : tensor<f32> stablehlo.return %r : tensor<f32> }) "
        "{dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
        f"%2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> {F}",
    ),
    "the same fold twice": program(
        "%c = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add {FOLD}",
        f"%1 = stablehlo.reduce(%y init: %c) applies stablehlo.add {FOLD}",
        "%3 = stablehlo.add %0, %1 : tensor<f32>",
        f"%2 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> {F}",
    ),
    "a sign without a name": program(
        f'%0 = stablehlo.custom_call @a(%x) {{backend_config = "% %y"}} : ({F}) -> {F}',
        f'%2 = stablehlo.custom_call @a(%0) {{backend_config = "%y %"}} : ({F}) -> {F}',
    ),
    "comments behind operations": program(
        f"%0 = stablehlo.add %x, %y : {F} // %x, %y", f"%2 = stablehlo.add %0, %y : {F} // %0"
    ),
    "sizes that are constants, which is more than types say": program(
        "%a = stablehlo.constant dense<[2, 2]> : tensor<2xi64>",
        "%b = stablehlo.constant dense<[4, 1]> : tensor<2xi64>",
        "%0 = stablehlo.dynamic_reshape %x, %a : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
        "%1 = stablehlo.dynamic_reshape %x, %b : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
        "%3 = stablehlo.negate %0 : tensor<?x?xf32>", "%4 = stablehlo.negate %1 : tensor<?x?xf32>",
        f"%5 = stablehlo.reshape %3 : (tensor<?x?xf32>) -> {F}",
        f"%6 = stablehlo.reshape %4 : (tensor<?x?xf32>) -> {F}",
        f"%2 = stablehlo.add %5, %6 : {F}",
    ),
}  # fmt: skip


def test_a_second_value_of_one_name_is_an_error() -> None:
    text = program(
        f"%0 = stablehlo.negate %x : {F}", f"%0 = stablehlo.negate %0 : {F}", f"%2 = stablehlo.negate %0 : {F}"
    )
    for parse in (stablehlo.parse, by_tokens):
        with pytest.raises(ParseError, match=r"%0 is the name of an earlier value, too\n *line 4"):
            parse(text)


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_lines_and_tokens_are_one_program(text: str) -> None:
    assert structure(stablehlo.parse(text)) == structure(by_tokens(text))


def test_what_an_alias_means_may_change_between_modules() -> None:
    text = "#a = 1 : i64\n" + program(
        f"%2 = stablehlo.custom_call @f(%x) {{backend_config = #a}} : ({F}) -> {F}", before="#b = 2 : i64"
    )
    assert structure(stablehlo.parse(text)) == structure(by_tokens(text))


@pytest.mark.parametrize(
    "line",
    [
        f"%2 = stablehlo.add %0, %n : {F}",
        f"%2 = stablehlo.add %0, %z : {F}",
        f"%2 = stablehlo.add %0 : {F}",
        f"%2 = stablehlo.add %0, % : {F}",
        f"%2 = stablehlo.add %0, %y : {F} loc(#loc",
        f"%2 = stablehlo.add %0, %y : {F} loc(#loc) x",
        f"%2:2 = stablehlo.add %0, %y : {F}",
        "%2 = stablehlo.subtract %0, %y : tensor<5xf32>",
    ],
)
def test_errors_are_those_of_the_tokens(line: str) -> None:
    text = program(f"%0 = stablehlo.add %x, %y : {F}", line)
    with pytest.raises(XlaError) as caught:
        stablehlo.parse(text)
    with pytest.raises(XlaError) as expected:
        by_tokens(text)
    assert str(caught.value) == str(expected.value)


def test_a_line_is_only_a_guess() -> None:
    with pytest.raises((NotALineError, XlaError)):
        parse_lines(SAME["a type in two lines"])


def test_what_a_line_says_and_about_what() -> None:
    assert split_line("%3 = stablehlo.add %1#0, %2 : tensor<4xf32> loc(#loc7)") == (
        "\n = stablehlo.add \n, \n : tensor<4xf32>",
        ["%3", "%1#0", "%2"],
        "#loc7)",
    )
    assert split_line("%3 = stablehlo.replica_id : tensor<ui32>") == (
        "\n = stablehlo.replica_id : tensor<ui32>",
        ["%3"],
        "",
    )


def test_lines_that_say_many_things_are_read_by_their_tokens() -> None:
    lines = [
        f"%{number} = stablehlo.slice %x [0:2, {number}:{number + 1}] : (tensor<2x9999xf32>) -> tensor<2x1xf32>"
        for number in range(1200)
    ]
    body = "\n".join(lines)
    text = f"func.func @main(%x: tensor<2x9999xf32>) -> tensor<2x1xf32> {{\n{body}\nreturn %0 : tensor<2x1xf32>\n}}\n"
    with pytest.raises(NotALineError):
        parse_lines(text)
    assert structure(stablehlo.parse(text)) == structure(by_tokens(text))
