"""Cuts StableHLO text into tokens with one regular expression.

Tokens are plain strings, because a list of strings is the fastest thing to make and to look at. What is frequent or
large is one token: a whole tensor type, a whole `dense<...>` constant, `%3#1`. Where a token stands in the text is
found out only when an error asks for it, by cutting the text once more.

Every alternative is linear in the text: repetitions are possessive, and none of them can run over its own beginning.
"""

from __future__ import annotations

import re

from xlapy.support.errors import ParseError
from xlapy.support.source import Source

END = ""
"""The token behind the last one."""

LOOKAHEAD = 4
"""How many tokens a reader looks at without asking where the text ends."""

_TOKEN = re.compile(
    r"""
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
    """,
    re.VERBOSE,
)


class Tokens:
    """The tokens of a text, comments left out, with `END` behind them, often enough for any look ahead."""

    def __init__(self, source: Source) -> None:
        self.source = source
        texts: list[str] = _TOKEN.findall(source.text)
        if "//" in source.text:
            texts = [text for text in texts if not text.startswith("//")]
        texts += [END] * LOOKAHEAD
        self.texts = texts

    def offset(self, index: int) -> int:
        """Where token `index` begins in the text."""
        counted = -1
        for match in _TOKEN.finditer(self.source.text):
            counted += not match[0].startswith("//")
            if counted == index:
                return match.start()
        return len(self.source.text.rstrip())

    def where(self, index: int) -> str:
        """Line, column and caret of token `index`."""
        return self.source.where(self.offset(index))

    def error(self, message: str, index: int) -> ParseError:
        """A ParseError at token `index`."""
        return self.source.error(message, self.offset(index))
