"""Reading HLO text token by token: a cursor over the text, moved by compiled expressions.

The cursor always stands on the first character of a token: each token swallows the space and comments behind it.
Nothing here recurses, so that hostile nesting costs time only.
"""

from __future__ import annotations

import re
from typing import NoReturn

from xlapy.support.errors import ParseError
from xlapy.support.source import Source
from xlapy.support.wording import excerpt

# Not one possessive group: Python 3.11.2 lets such a group end in the middle of an open comment.
SPACE = r"[ \t\r\n\f\v]*+(?:(?://[^\n]*+|/\*(?s:.*?)\*/)[ \t\r\n\f\v]*+)*"
NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+"


def token(pattern: str) -> re.Pattern[str]:
    """An expression whose group 1 is the token; it also takes the space behind."""
    return re.compile(f"({pattern}){SPACE}")


_SPACE = re.compile(SPACE)
_NAME = token(NAME)
_REFERENCE = re.compile(f"%?({NAME}){SPACE}")
_INTEGER = token(r"[+-]?[0-9]++")
_NUMBER = token(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|[+-]?inf|[+-]?nan")
_STRING = token(r'"(?:[^"\\]++|\\(?s:.))*+"')
_WORD = token(r'[^\s,{}\[\]()"=]++')
_KEY = re.compile(f"([A-Za-z_][A-Za-z0-9_\\-]*+){SPACE}={SPACE}")
_BRACKET_OR_STRING = re.compile(r'[{}\[\]()]|"(?:[^"\\]++|\\(?s:.))*+"')
_PLAIN = re.compile(r'[^\s,{}\[\]()"]++')
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_ESCAPE = re.compile(r"\\([0-7]{3}|x[0-9a-fA-F]{2}|(?s:.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_MOST_DIGITS = 20  # with a sign, of an integer of 64 bits


class Lexer:
    """A cursor over HLO text. Every `expect`-like method raises a located ParseError that says what was wanted."""

    __slots__ = ("position", "source", "text")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.position = 0
        self.skip()

    # -- errors ----------------------------------------------------------------------------------------------------

    def error(self, message: str, offset: int | None = None) -> ParseError:
        return self.source.error(message, self.position if offset is None else offset)

    def expected(self, what: str) -> NoReturn:
        """Raises the error that `what` is not what stands here."""
        text, position = self.text, self.position
        if position >= len(text):
            raise self.error(f"expected {what}, but the text ends here")
        if text.startswith("/*", position):
            raise self.error("this comment is never closed")
        match = _PLAIN.match(text, position)
        found = excerpt(match[0]) if match else text[position]
        raise self.error(f"expected {what}, found {found!r}")

    # -- symbols ---------------------------------------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def at(self, symbol: str) -> bool:
        return self.text.startswith(symbol, self.position)

    def accept(self, symbol: str) -> bool:
        """Takes `symbol` if it stands here; says whether it did."""
        if not self.text.startswith(symbol, self.position):
            return False
        self.position += len(symbol)
        self.skip()
        return True

    def expect(self, symbol: str, context: str = "") -> None:
        if not self.accept(symbol):
            self.expected(f"{symbol!r}{context}")

    # -- tokens ----------------------------------------------------------------------------------------------------

    def take(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """Matches an expression here and moves behind it."""
        match = expression.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def _token(self, expression: re.Pattern[str], what: str) -> str:
        match = expression.match(self.text, self.position)
        if match is None:
            self.expected(what)
        self.position = match.end()
        return match[1]

    def name(self, what: str = "a name") -> str:
        return self._token(_NAME, what)

    def reference(self, what: str = "a name") -> str:
        """A name, with or without `%`."""
        return self._token(_REFERENCE, what)

    def integer(self, what: str = "an integer") -> int:
        start = self.position
        digits = self._token(_INTEGER, what)
        if len(digits) > _MOST_DIGITS or not -(1 << 63) <= int(digits) < 1 << 63:
            raise self.error(f"{digits[:_MOST_DIGITS]} does not fit in 64 bits", start)
        return int(digits)

    def number(self, what: str = "a number") -> float:
        return float(self._token(_NUMBER, what))

    def word(self, what: str = "a word") -> str:
        """Anything up to a space, a comma, a bracket, a quote or `=`."""
        return self._token(_WORD, what)

    def string(self, what: str = "a quoted string") -> str:
        """The content of a quoted string, escapes resolved."""
        if self.at('"') and not _STRING.match(self.text, self.position):
            raise self.error("this string is never closed")
        return unescape(self._token(_STRING, what)[1:-1])

    def key(self) -> str:
        """`key=`"""
        return self._token(_KEY, "an attribute (name=value)")

    def verbatim(self) -> str:
        """A value of any kind as its text: brackets are balanced, strings are kept whole."""
        start = self.position
        text = self.text
        position = start
        while position < len(text):
            if text[position] in _CLOSING or text[position] == '"':
                position = self._behind_balanced(position)
                continue
            match = _PLAIN.match(text, position)
            if match is None:
                break
            position = match.end()
        if position == start:
            self.expected("a value")
        self.position = position
        self.skip()
        return text[start:position]

    def balanced(self) -> str:
        """The text of a bracketed group, from its opening bracket to its closing one."""
        start = self.position
        end = self._behind_balanced(start)
        self.position = end
        self.skip()
        return self.text[start:end]

    def _behind_balanced(self, start: int) -> int:
        expected: list[str] = []
        for match in _BRACKET_OR_STRING.finditer(self.text, start):
            symbol = match[0]
            if symbol in _CLOSING:
                expected.append(_CLOSING[symbol])
            elif symbol[0] != '"':
                if not expected or expected.pop() != symbol:
                    raise self.error(f"{symbol!r} closes nothing", match.start())
            elif match.start() == start:
                return match.end()
            if not expected:
                return match.end()
        kind = "string" if self.text.startswith('"', start) else f"{self.text[start : start + 1]!r}"
        raise self.error(f"this {kind} is never closed", start)


def unescape(text: str) -> str:
    """Resolves the escapes of a C-like string."""
    return _ESCAPE.sub(_unescape_one, text) if "\\" in text else text


def _unescape_one(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3 and code[0] in "01234567":
        return chr(int(code, 8))
    if len(code) == 3:
        return chr(int(code[1:], 16))
    return _ESCAPED.get(code, code)


def quote(text: str) -> str:
    """The inverse of `Lexer.string`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'
