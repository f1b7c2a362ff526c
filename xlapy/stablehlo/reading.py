"""The way into the reader: all pretty forms, and the generic one."""

from __future__ import annotations

from xlapy.stablehlo.parser import Parser
from xlapy.stablehlo.pretty import FORMS, plain_form
from xlapy.stablehlo.pretty_shapes import SHAPE_FORMS
from xlapy.stablehlo.tree import Operation

ALL_FORMS = FORMS | SHAPE_FORMS


def parse_tree(text: str) -> tuple[Parser, Operation]:
    """The tree of a whole text: a nameless module around what stands in it. The parser still knows every place."""
    parser = Parser(text, ALL_FORMS, plain_form)
    return parser, parser.program()
