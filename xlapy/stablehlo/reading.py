"""The way into the reader: all pretty forms, and the generic one."""

from __future__ import annotations

from contextlib import suppress

from xlapy.stablehlo.lines import NotALineError
from xlapy.stablehlo.parser import Parser
from xlapy.stablehlo.pretty import FORMS, plain_form
from xlapy.stablehlo.pretty_shapes import SHAPE_FORMS
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import XlaError

ALL_FORMS = FORMS | SHAPE_FORMS


def parse_tree(text: str) -> tuple[Parser, Operation]:
    """The tree of a whole text: a nameless module around what stands in it. The parser still knows every place."""
    with suppress(NotALineError, XlaError):
        return parse_lines(text)
    return parse_tokens(text)  # it is the tokens that count, and that errors are about


def parse_lines(text: str) -> tuple[Parser, Operation]:
    """Line by line where lines are operations, which is fast if they say few things.

    Raises NotALineError if they do not. Errors may be in the wrong place, and even wrong."""
    parser = Parser(text, ALL_FORMS, plain_form, by_line=True)
    return parser, parser.program()


def parse_tokens(text: str) -> tuple[Parser, Operation]:
    """Token by token."""
    parser = Parser(text, ALL_FORMS, plain_form)
    return parser, parser.program()
