"""The `backend_config` of custom calls: a string, JSON, or a dictionary as MLIR writes it, `{uplo = 76 : ui8}`."""

from __future__ import annotations

import json
import re
from typing import Any

from xlapy.support.errors import ParseError

_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<string>"(?:[^"\\]++|\\.)*+")
    | array<\s*[\w]++\s*:?(?P<array>[^<>]*+)>
    | (?P<number>[-+]?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?))
    | (?P<word>[@\#!]?[A-Za-z_][\w.$]*+(?:<[^<>]*+>)?)
    | (?P<mark>[\[\]{}=:,])
    )""",
    re.VERBOSE,
)
_DEPTH = 50
_WORDS: dict[str, Any] = {"true": True, "false": False, "unit": True}


def read_config(text: str) -> bytes | dict[str, Any]:
    """A string's bytes, or the entries of a dictionary. Raises ParseError for what is neither."""
    if not text:
        return b""
    try:
        value = json.loads(text)
    except ValueError:
        value = _Reader(text).whole()
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if not isinstance(value, dict):
        raise ParseError(f"backend_config is neither a string nor a dictionary: {text[:60]}")
    return value


class _Reader:
    """MLIR's attributes, without their types."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def whole(self) -> Any:
        value = self._value()
        if self._text[self._position :].strip():
            raise self._error("the end")
        return value

    def _error(self, expected: str) -> ParseError:
        rest = self._text[self._position :].strip()
        return ParseError(f"backend_config: expected {expected}, found {rest[:30]!r}")

    def _next(self, expected: str) -> re.Match[str]:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise self._error(expected)
        self._position = match.end()
        return match

    def _accept(self, mark: str) -> bool:
        match = _TOKEN.match(self._text, self._position)
        if match is None or match["mark"] != mark:
            return False
        self._position = match.end()
        return True

    def _value(self) -> Any:
        start = self._position
        match = self._next("a value")
        value: Any
        if match["mark"] is not None:
            self._depth += 1
            if self._depth > _DEPTH or match["mark"] not in "[{":
                self._position = start
                raise self._error("a value")
            value = self._list() if match["mark"] == "[" else self._entries()
            self._depth -= 1
        elif match["string"] is not None:
            value = _unquoted(match["string"])
        elif match["array"] is not None:
            value = [_number(item) for item in match["array"].split(",") if item.strip()]
        elif match["number"] is not None:
            value = _number(match["number"])
        else:
            value = _WORDS.get(match["word"], match["word"])
        if self._accept(":"):
            self._next("a type")
        return value

    def _list(self) -> list[Any]:
        items: list[Any] = []
        while not self._accept("]"):
            if items and not self._accept(","):
                raise self._error("`,` or `]`")
            items.append(self._value())
        return items

    def _entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while not self._accept("}"):
            if entries and not self._accept(","):
                raise self._error("`,` or `}`")
            name = self._next("the name of an entry")
            key = name["word"] or (_unquoted(name["string"]) if name["string"] else "")
            if not key:
                raise self._error("the name of an entry")
            entries[key] = self._value() if self._accept("=") else True
        return entries


def _number(text: str) -> Any:
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return int(text, 0) if text.lstrip("+-").isdecimal() or "x" in text else float(text)
    except ValueError:
        raise ParseError(f"backend_config: {text[:30]!r} is not a number") from None


_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


def _unquoted(literal: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if len(match[1]) == 2 else match[1], literal[1:-1])
