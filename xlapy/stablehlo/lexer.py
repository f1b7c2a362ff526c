"""Cuts StableHLO text into tokens with one regular expression.

Tokens are plain strings, because a list of strings is the fastest thing to make and to look at. What is frequent or
large is one token: a whole tensor type, a whole `dense<...>` constant, `%3#1`; and, if the reader wants it, a whole
line that seems to be one operation. Where a token stands in the text is found out only when an error asks for it, by
cutting the text once more.

Every alternative is linear in the text: repetitions are possessive, and none of them can run over its own beginning.
So is the space in front of a token: there is none behind the last one, and whoever skips some finds a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlapy.support.errors import ParseError
from xlapy.support.source import Source

END = ""
"""The token behind the last one."""

LOOKAHEAD = 4
"""How many tokens a reader looks at without asking where the text ends."""

_LINE = r"""
      %[\w.$-]++(?:\:\d++)?\ =\ (?=[A-Za-z"])
      (?![^\n]{1000})[^\n(]*+(?:\((?!\{)[^\n(]*+)*+                            # short, and no region begins
      (?<=[>)}\w])(?=\n\s*+(?!(?:attributes|cond|loc|reducer)\b)[%}"\w])      # the next line begins another
    | """
"""`%3 = "name"...` to the end of a line that looks complete, as most operations are."""

_TOKEN = r"""
      %[\w.$-]++(?:\#\d++)?                                                     # value, result of several
    | tensor<[^<>]*+(?:<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>[^<>]*+)*+>               # complex, quantized, bounds nest
    | (?:dense|dense_resource|array)<(?:"[^"]*+"|[^"<>]*+)>
    | [A-Za-z_][\w.$]*+                                                         # word
    | ->
    | [-+]?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?)       # number
    | "(?:[^"\\\n]++|\\.)*+"?                                                   # string, perhaps not closed
    | @(?:[\w.$-]++|"(?:[^"\\\n]++|\\.)*+"?)                                    # symbol
    | \{-\# | \#-\}                                                             # around the resources
    | [\#!^][\w.$-]++                                                           # attribute, type or block name
    | //[^\n]*+                                                                 # comment
    | \S
    """

HEX_OPENING, HEX_CLOSING = 'dense<"0x', '">'
"""Around the elements of a constant as hexadecimal digits."""

LONG_DIGITS = 4096
"""Hexadecimal digits of a constant that are found by their ends: the expression looks at each, 2.5 ns long."""

_TOKENS = re.compile(rf"\s*+({_TOKEN})", re.VERBOSE)
_LINES = re.compile(rf"\s*+({_LINE}{_TOKEN})", re.VERBOSE)


def cut(text: str, expression: re.Pattern[str] = _TOKENS) -> list[str]:
    """The tokens of a text, comments left out, with `END` behind them, often enough for any look ahead."""
    texts: list[str] = []
    end = 0
    for start, stop in _long_constants(text):
        texts += _tokens_between(text[end:start], expression)
        texts.append(text[start:stop])
        end = stop
    texts += _tokens_between(text[end:] if end else text, expression)
    texts += [END] * LOOKAHEAD
    return texts


def _tokens_between(text: str, expression: re.Pattern[str]) -> list[str]:
    texts: list[str] = expression.findall(text.rstrip())
    return [token for token in texts if not token.startswith("//")] if "//" in text else texts


def _long_constants(text: str) -> Iterator[tuple[int, int]]:
    """Where tokens `dense<"0x...">` begin and end of so many digits. One in a line with a comment is left alone: it may
    be part of that."""
    stop = 0
    while len(text) - stop > LONG_DIGITS and (start := text.find(HEX_OPENING, stop)) >= 0:
        stop = text.find('"', start + len(HEX_OPENING)) + len(HEX_CLOSING)
        if stop < len(HEX_CLOSING):
            return
        is_whole = stop - start > LONG_DIGITS and text.endswith(HEX_CLOSING, start, stop)
        if is_whole and text.find("//", text.rfind("\n", 0, start) + 1, start) < 0:
            yield start, stop


class Tokens:
    """The tokens of a text. `by_line` makes one token of each line that seems to be one operation."""

    def __init__(self, source: Source, *, by_line: bool = False) -> None:
        self.source = source
        self._expression = _LINES if by_line else _TOKENS
        self.texts = cut(source.text, self._expression)

    def offset(self, index: int) -> int:
        """Where token `index` begins in the text."""
        counted = -1
        text = self.source.text.rstrip()
        for match in self._expression.finditer(text):
            counted += not match[1].startswith("//")
            if counted == index:
                return match.start(1)
        return len(text)

    def where(self, index: int) -> str:
        """Line, column and caret of token `index`."""
        return self.source.where(self.offset(index))

    def error(self, message: str, index: int) -> ParseError:
        """A ParseError at token `index`."""
        return self.source.error(message, self.offset(index))
