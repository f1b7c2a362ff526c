"""What a custom call carries along for its target: a string, or a dictionary of plain values.

    "opaque text"                                              bytes
    {"name": "x", "sizes": [1, 2]}                             JSON
    {name = "x", sizes = array<i64: 1, 2>, on = true}          typed attributes, whose types are forgotten

Passes leave it alone as text; these are its readers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from xlapy.support.errors import ParseError

Entries: TypeAlias = Mapping[str, Any]
Item = TypeVar("Item")

DEEPEST = 64
"""Levels of nesting that are read."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<number>[-+]?(?:0x[0-9A-Fa-f]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan)(?![\w.]))
    | (?P<sizes>\d\w*)
    | (?P<word>[A-Za-z_][\w.$-]*)
    | (?P<sign>[][{}<>,=:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t"}
_WORDS = {"true": True, "false": False, "unit": True}
_TYPE = re.compile(r"(?:index|i\d+|si\d+|ui\d+|f\d+\w*|bf16)\Z")


def configuration(text: str) -> bytes | Entries:
    """The bytes of a string, or the entries of a dictionary; nothing at all is no bytes.

    Raises ParseError for what is neither."""
    if not text:
        return b""
    if text.startswith('"'):
        return unescaped(text).encode("utf-8", "surrogateescape")
    try:
        entries = json.loads(text)
    except json.JSONDecodeError:
        entries = _Reader(text).whole()
    except RecursionError:
        raise ParseError("a backend_config is nested too deeply") from None
    if not isinstance(entries, dict):
        raise ParseError(f"a backend_config is a string or a dictionary, not {text[:40]}")
    return {name: _plain(value) for name, value in entries.items()}


def unescaped(literal: str) -> str:
    """The text that a quoted literal spells; `\\22` is the byte of that hexadecimal number."""
    body = literal[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_character, body).decode("utf-8", "surrogateescape")


def _character(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 16)]) if len(code) == 2 else _ESCAPED.get(code, code)


def _plain(value: Any) -> Any:
    """Lists as tuples, as the runtime's plain data has them."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, list) else value


class _Reader:
    """Reads typed attributes, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None or found.lastgroup is None:
                raise self._error()
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            position = found.end()
        self._next = 0
        self._depth = 0

    def whole(self) -> Any:
        value = self._value()
        if self._next != len(self._tokens):
            raise self._error()
        return value

    def _error(self) -> ParseError:
        return ParseError(f"cannot read the backend_config {self._text[:80]}")

    def _take(self) -> tuple[str, str]:
        if self._next == len(self._tokens):
            raise self._error()
        self._next += 1
        return self._tokens[self._next - 1]

    def _accept(self, sign: str) -> bool:
        found = self._next < len(self._tokens) and self._tokens[self._next] == ("sign", sign)
        self._next += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error()

    def _value(self) -> Any:
        """A value, without the type behind it."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise ParseError("a backend_config is nested too deeply")
        kind, text = self._take()
        value = _KINDS[kind](self, text)
        if self._accept(":"):
            self._skip_type()
        self._depth -= 1
        return value

    def _number(self, text: str) -> int | float:
        try:
            return int(text, 0)
        except ValueError:
            return float(text)

    def _word(self, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if text == "array":
            return self._array()
        if text == "dense":
            self._expect("<")
            value = () if self._accept(">") else self._value()
            return value if value == () else self._closed(value)
        if _TYPE.match(text):
            return text
        raise self._error()

    def _closed(self, value: Item) -> Item:
        self._expect(">")
        return value

    def _array(self) -> tuple[Any, ...]:
        """`array<i64: 1, 2>`"""
        self._expect("<")
        self._take()
        return tuple(self._listed(">", self._value)) if self._accept(":") else self._closed(())

    def _refused(self, text: str) -> Any:
        raise self._error()

    def _sign(self, text: str) -> Any:
        if text == "[":
            return tuple(self._listed("]", self._value))
        if text == "{":
            return dict(self._listed("}", self._entry))
        raise self._error()

    def _entry(self) -> tuple[str, Any]:
        kind, text = self._take()
        if kind not in ("word", "string"):
            raise self._error()
        name = unescaped(text) if kind == "string" else text
        return name, self._value() if self._accept("=") else True

    def _listed(self, closing: str, item: Callable[[], Item]) -> list[Item]:
        found: list[Item] = []
        while not self._accept(closing):
            if found:
                self._expect(",")
            found.append(item())
        return found

    def _skip_type(self) -> None:
        """`i64`, `complex<f32>`, `tensor<2x3xf32>`"""
        self._take()
        if self._accept("<"):
            depth = 1
            while depth:
                _, text = self._take()
                depth += {"<": 1, ">": -1}.get(text, 0)


_KINDS: Mapping[str, Callable[[_Reader, str], Any]] = {
    "string": lambda _, text: unescaped(text),
    "number": _Reader._number,
    "word": _Reader._word,
    "sizes": _Reader._refused,
    "sign": _Reader._sign,
}
