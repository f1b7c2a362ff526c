"""Long constants in hexadecimal digits are found by their ends, and are the tokens that the expression would cut."""

from __future__ import annotations

import numpy as np
import pytest

from xlapy import stablehlo
from xlapy.stablehlo.lexer import _LINES, _TOKENS, END, LONG_DIGITS, Tokens, cut
from xlapy.support.errors import ParseError
from xlapy.support.source import Source

VALUES = np.arange(LONG_DIGITS, dtype=np.float32)
DIGITS = VALUES.tobytes().hex().upper()
TYPE = f"tensor<{VALUES.size}xf32>"
PROGRAM = f"""module {{
  func.func @main(%arg0: {TYPE}) -> ({TYPE}) {{
    %cst = stablehlo.constant dense<"0x{DIGITS}"> : {TYPE}
    %cst_0 = stablehlo.constant dense<"0x{DIGITS}"> : {TYPE}
    %cst_1 = stablehlo.constant dense<"0x0000803F"> : {TYPE} // short
    %0 = stablehlo.add %arg0, %cst : {TYPE}
    %1 = stablehlo.multiply %0, %cst_0 : {TYPE}
    return %1 : {TYPE}
  }}
}}
"""
TEXTS = {
    "two": PROGRAM,
    "in a comment": f'%0 = a.b // dense<"0x{DIGITS}"> : {TYPE}\n%1 = a.c',
    "behind a comment": f'// dense<"0x00">\n%0 = c.d dense<"0x{DIGITS}"> : {TYPE}\n  ',
    "with a space": f'%0 = c.d dense<"0x{DIGITS}" > : {TYPE}',
    "never closed": f'%0 = c.d dense<"0x{DIGITS} : {TYPE}\n%1 = c.e',
    "at the end": f'%0 = c.d dense<"0x{DIGITS}">',
    "alone": f'dense<"0x{DIGITS}">',
}


@pytest.mark.parametrize("expression", [_TOKENS, _LINES], ids=["tokens", "lines"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_tokens_are_those_of_the_expression(text, expression) -> None:
    expected = [token for token in expression.findall(text.rstrip()) if not token.startswith("//")]
    assert [token for token in cut(text, expression) if token != END] == expected


def test_their_elements_are_read() -> None:
    module = stablehlo.parse(PROGRAM)
    literals = [i.attributes["literal"] for i in module.entry if i.opcode == "constant"]
    assert [np.array_equal(literal.array, VALUES) for literal in literals[:2]] == [True, True]


def test_what_stands_behind_them_has_its_place() -> None:
    tokens = Tokens(Source(PROGRAM), by_line=True)
    assert PROGRAM[tokens.offset(tokens.texts.index("return")) :].startswith("return %1")


@pytest.mark.parametrize("digits", [DIGITS[:-1], DIGITS[:-1] + "g", DIGITS[:-1] + "é"])
def test_wrong_digits_are_told(digits) -> None:
    with pytest.raises(ParseError, match="even number of hexadecimal digits"):
        stablehlo.parse(PROGRAM.replace(DIGITS, digits, 1))


@pytest.mark.parametrize("size", [(1 << 15) - 1, 1 << 15, (1 << 16) + 3])
def test_every_digit_is_read(size) -> None:
    values = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    constant = f'stablehlo.constant dense<"0x{values.tobytes().hex()}"> : tensor<{size}xui8>'
    text = f"func.func @main() -> tensor<{size}xui8> {{\n  %0 = {constant}\n  return %0 : tensor<{size}xui8>\n}}"
    array = stablehlo.parse(text).entry.root.attributes["literal"].array
    assert np.array_equal(array, values) and not array.flags.writeable
