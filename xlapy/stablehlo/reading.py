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
    with suppress(NotALineError, XlaError):  # it is the tokens that count, and that errors are about
        return _read(text, by_line=True)
    return _read(text, by_line=False)


def _read(text: str, *, by_line: bool) -> tuple[Parser, Operation]:
    parser = Parser(text, ALL_FORMS, plain_form, by_line=by_line)
    return parser, parser.program()
