"""StableHLO text, generic or pretty, to `HloModule` and back."""

from __future__ import annotations

from xlapy.hlo.graph import HloModule, no_module
from xlapy.hlo.text import fingerprint
from xlapy.stablehlo.convert import convert_program
from xlapy.stablehlo.reading import parse_tree
from xlapy.stablehlo.tree import dissolve
from xlapy.stablehlo.write import Writer
from xlapy.support.collection import paused_collection
from xlapy.support.errors import ParseError


def parse(text: str) -> HloModule:
    """The module that StableHLO text describes; `main`, or the only public function, is its entry.

    Raises ParseError, ShapeError or UnsupportedError, each with line, column and a caret. A function of several results
    returns a tuple."""
    with paused_collection():
        try:
            parser, top = parse_tree(text)
        except ParseError as error:
            if str(text).lstrip().startswith("HloModule "):
                error.message += "; if this is HLO text, xlapy.hlo.parse reads it"
            raise
        module = convert_program(parser, top)
        dissolve(top)
        return module


def to_text(module: HloModule, *, pretty: bool = False) -> str:
    """StableHLO text of a module, in the generic or the pretty form. Layouts have no spelling there, and fusions are
    written out.

    A module that was read from text with quantized types gives back that text, as long as nobody has changed it: the
    graph holds only the arithmetic on storage, and that is what is written once it was changed.

    Raises UnsupportedError for what StableHLO cannot say."""
    if not isinstance(module, HloModule):
        raise no_module(module, "written as text")
    source = module.source
    if source is not None and source.fingerprint == fingerprint(module):
        return source.text
    return Writer(pretty=pretty).module(module)


__all__ = ["parse", "to_text"]
