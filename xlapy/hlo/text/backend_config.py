"""What a custom call's `backend_config` says: a string of bytes, or named values in JSON or in MLIR's spelling.

"scale\\n"                                   b"scale\\n"
{"scale":2,"axes":[0,1]}                     {"scale": 2, "axes": (0, 1)}
{scale = 2.0 : f32, axes = array<i64: 0, 1>} {"scale": 2.0, "axes": (0, 1)}
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.text.lexer import Lexer
from xlapy.support.errors import ParseError
from xlapy.support.source import Source

_ESCAPE = re.compile(rb"\\([0-7]{3}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_ESCAPES = {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r", ord('"'): '\\"', ord("\\"): "\\\\"}


def quoted(config: bytes | str) -> str:
    """The string literal of HLO text that spells these bytes."""
    data = config if isinstance(config, bytes) else config.encode("utf-8", "surrogateescape")
    return '"' + "".join(_ESCAPES.get(byte) or _character(byte) for byte in data) + '"'


def _character(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def unquoted(literal: str) -> bytes:
    """The bytes that a string literal of HLO text spells."""
    return _ESCAPE.sub(_unescaped, literal[1:-1].encode("utf-8", "surrogateescape"))


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if len(code) == 3 and code[:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    if len(code) == 3:
        return bytes([int(code[1:], 16)])
    return _ESCAPED.get(code, code)


def config_bytes(text: str) -> bytes:
    """The content of a configuration: what quotes enclose, or a group in braces as it is written."""
    return unquoted(text) if text.startswith('"') else text.encode("utf-8", "surrogateescape")


def config_text(content: bytes) -> str:
    """The bytes as HLO text: a group in braces, such as JSON, as it is, anything else in quotes."""
    if content.startswith(b"{"):
        try:
            text = content.decode()
            lexer = Lexer(Source(text))
            if lexer.balanced() == text and lexer.at_end:
                return text
        except (ParseError, UnicodeDecodeError):
            pass  # bytes that only begin like a group
    return quoted(content)


def custom_call_config(text: str, version: CustomCallApiVersion) -> bytes | dict[str, Any]:
    """What a target of that version gets: bytes, or, under the typed one, values by name."""
    if version is not CustomCallApiVersion.TYPED_FFI:
        return config_bytes(text)
    config = read_backend_config(text)
    return read_backend_config(config.decode() or "{}") if isinstance(config, bytes) else config


def read_backend_config(text: str) -> bytes | dict[str, Any]:
    """Bytes, or values by name. Numbers lose their types, as they have none in Python."""
    if not text:
        return b""
    if text.startswith('"'):
        return unquoted(text)
    try:
        return dict(_frozen(json.loads(text)))
    except RecursionError:
        raise ParseError("backend_config is nested too deeply") from None
    except ValueError:
        return _Dictionary(text).read()


_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|[@!\w.$-]+|[{}\[\]=,:<>])')
_HEXADECIMAL = re.compile(rb"\\([0-9a-fA-F]{2}|.)", re.DOTALL)
_MOST_NESTED = 100
_WORDS = {"true": True, "false": False, "unit": True}


def _frozen(value: Any) -> Any:
    """Lists become tuples, which is also what programs are cached with."""
    if isinstance(value, dict):
        return {name: _frozen(inner) for name, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class _Dictionary:
    """Reads `{name = value, ...}`, where values are strings, numbers with or without a type, words, lists or such."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._position = 0
        self._depth = 0

    def read(self) -> dict[str, Any]:
        values = self._values()
        if self._next:
            raise self._error("nothing more")
        return values

    @property
    def _next(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1] if self._position <= len(self._tokens) else ""

    def _accept(self, symbol: str) -> bool:
        found = self._next == symbol
        self._position += found
        return found

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            raise self._error(f"{symbol!r}")

    def _error(self, wanted: str) -> ParseError:
        return ParseError(f"backend_config {self._text}: expected {wanted}, found {self._next or 'its end'!r}")

    def _values(self) -> dict[str, Any]:
        values = {}
        self._expect("{")
        while not self._accept("}"):
            name = self._take()
            values[_string(name) if name.startswith('"') else name] = self._value() if self._accept("=") else True
            if self._next != "}":
                self._expect(",")
        return values

    def _value(self) -> Any:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise ParseError(f"backend_config has values nested more than {_MOST_NESTED} deep")
        value = self._value_of_any_kind()
        self._depth -= 1
        return value

    def _value_of_any_kind(self) -> Any:
        if self._next == "{":
            return self._values()
        if self._accept("["):
            return self._list("]")
        if self._next == "array":
            self._position += 3  # array<type
            if self._accept(":"):
                return self._list(">")
            self._expect(">")
            return ()
        value = self._scalar()
        if self._accept(":"):
            self._take()
        return value

    def _list(self, end: str) -> tuple[Any, ...]:
        values = []
        while not self._accept(end):
            values.append(self._value())
            if self._next != end:
                self._expect(",")
        return tuple(values)

    def _scalar(self) -> Any:
        token = self._next
        if token.startswith('"'):
            return _string(self._take())
        if token in _WORDS:
            return _WORDS[self._take()]
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                value = kind(token)
                self._position += 1
                return value
        raise self._error("a string, a number, a list or a dictionary")


def _string(literal: str) -> str:
    """MLIR spells other characters than printable ones by their two hexadecimal digits."""
    data = _HEXADECIMAL.sub(_character_of, literal[1:-1].encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _character_of(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 16)]) if len(code) == 2 else _ESCAPED.get(code, code)
