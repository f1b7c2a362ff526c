"""StableHLO text, generic or pretty, to `HloModule` and back."""

from __future__ import annotations

from xlapy.hlo.graph import HloModule
from xlapy.stablehlo.convert import convert_program
from xlapy.stablehlo.pretty import parse_tree


def parse(text: str) -> HloModule:
    """The module that StableHLO text describes; `main`, or the only public function, is its entry.

    Raises ParseError, ShapeError or UnsupportedError, each with line, column and a caret. A function of several results
    returns a tuple."""
    return convert_program(*parse_tree(text))


__all__ = ["parse"]
