"""Places in text: line, column, and the line itself with a caret under the fault."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from xlapy.support.errors import ParseError

LINE_WIDTH = 100  # longer lines are shown in part, around the caret


class Source:
    """A text that is being read. Lines and columns count from 1."""

    __slots__ = ("name", "text")

    def __init__(self, text: str, name: str = "") -> None:
        if not isinstance(text, str):
            raise ParseError(f"a program is read from text, a str, not from {type(text).__name__}")
        self.text = text
        self.name = name

    def line_and_column(self, offset: int) -> tuple[int, int]:
        start = self.text.rfind("\n", 0, offset) + 1
        return self.text.count("\n", 0, start) + 1, offset - start + 1

    def where(self, offset: int) -> str:
        """`line 3, column 7:`, then that line of the text, then a caret below the place."""
        offset = min(max(offset, 0), len(self.text))
        line, column = self.line_and_column(offset)
        start = offset - column + 1
        end = self.text.find("\n", start)
        shown = self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")
        caret = column - 1
        if len(shown) > LINE_WIDTH:
            cut = max(0, caret - LINE_WIDTH // 2)
            prefix = "..." if cut else ""
            suffix = "..." if cut + LINE_WIDTH < len(shown) else ""
            shown = prefix + shown[cut : cut + LINE_WIDTH] + suffix
            caret += len(prefix) - cut
        margin = "".join("\t" if character == "\t" else " " for character in shown[:caret]).ljust(caret)
        place = f"{self.name}, line {line}" if self.name else f"line {line}"
        return f"{place}, column {column}:\n{shown}\n{margin}^"

    def error(self, message: str, offset: int) -> ParseError:
        """A ParseError that points at `offset`."""
        error = ParseError(message)
        error.add_context(where=self.where(offset))
        return error


_NEAR, _NEAR_OF_THREE = 0.7, 0.66
"""How much of two words must be alike. Of three letters one may be wrong, or two have changed places."""

_LOOKED_AT = 80
"""Characters of a wrong word, which may be any text: to compare two takes the product of their lengths."""


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean 'a' or 'b'?` for the known names that are near `wrong`, or the empty string."""
    cutoff = _NEAR if len(wrong) > 3 else _NEAR_OF_THREE
    near = difflib.get_close_matches(wrong[:_LOOKED_AT], list(known), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
