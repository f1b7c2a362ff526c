"""What a custom call's `backend_config` says: a string of bytes, or named values in JSON or in MLIR's spelling.

"scale\\n"                                   b"scale\\n"
{"scale":2,"axes":[0,1]}                     {"scale": 2, "axes": (0, 1)}
{scale = 2.0 : f32, axes = array<i64: 0, 1>} {"scale": 2.0, "axes": (0, 1)}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.text.lexer import Lexer
from xlapy.support.errors import ParseError
from xlapy.support.source import Source
from xlapy.support.wording import excerpt

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
        except UnicodeDecodeError:
            return quoted(content)
        if is_group(text):
            return text
    return quoted(content)


def is_group(text: str) -> bool:
    """The text is one group in braces, such as JSON, and not a string that only begins like one."""
    if not text.startswith("{"):
        return False
    lexer = Lexer(Source(text))
    try:
        return lexer.balanced() == text and lexer.at_end
    except ParseError:
        return False


def custom_call_config(text: str, version: CustomCallApiVersion) -> bytes | dict[str, Any]:
    """What a target of that version gets: bytes, or, under the typed one, values by name."""
    if version is not CustomCallApiVersion.TYPED_FFI:
        return config_bytes(text)
    config = read_backend_config(text)
    if not isinstance(config, bytes):
        return config
    try:
        return read_backend_config(config.decode() or "{}")
    except UnicodeDecodeError:
        raise ParseError(f"backend_config {excerpt(text)}: a typed custom call takes named values, not bytes") from None


def read_backend_config(text: str) -> bytes | dict[str, Any]:
    """Bytes, or values by name. Numbers lose their types, as they have none in Python."""
    if not text:
        return b""
    if text.startswith('"'):
        return unquoted(text)
    try:
        value = json.loads(text)
    except RecursionError:
        raise ParseError("backend_config has values nested too deeply") from None
    except ValueError:
        value = _Reader(text).whole()
    if not isinstance(value, dict):
        raise ParseError(f"backend_config is neither a string nor a dictionary: {excerpt(text)}")
    return dict(_frozen(value))


_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<string>"(?:[^"\\]++|\\.)*+")
    | array<\s*(?P<element>[\w]++)\s*:?(?P<array>[^<>]*+)>
    | (?P<number>[-+]?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?))
    | (?P<word>[@\#!]?[A-Za-z_][\w.$]*+(?:<[^<>]*+>)?)
    | (?P<mark>[\[\]{}=:,])
    )""",
    re.VERBOSE,
)
_HEXADECIMAL = re.compile(rb"\\([0-9a-fA-F]{2}|.)", re.DOTALL)
_MOST_NESTED = 100
_WORDS: dict[str, Any] = {"true": True, "false": False, "unit": True}


def _frozen(value: Any) -> Any:
    """Lists become tuples, which is also what programs are cached with."""
    if isinstance(value, dict):
        return {name: _frozen(inner) for name, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


Attribute = tuple[str, str, Any]
"""A value with its type: its kind ("scalar", "array", "string", "dictionary"), the name of its element type in HLO
where it has one, and what it is. Entries of a dictionary are attributes again."""


def typed_config(text: str) -> dict[str, Attribute]:
    """The named values of a configuration with their types, which C functions ask for.

    JSON has no types: its integers are s64, its other numbers f64."""
    content = config_bytes(text).decode("utf-8", "surrogateescape")
    if not content:
        return {}
    try:
        value = _typed_json(json.loads(content))
    except ValueError:
        value = _TypedReader(content).whole()
    if value[0] != "dictionary":
        raise ParseError(f"backend_config is no dictionary: {excerpt(text)}")
    return dict(value[2])


def _typed_json(value: Any) -> Attribute:
    if isinstance(value, dict):
        return "dictionary", "", {name: _typed_json(inner) for name, inner in value.items()}
    if isinstance(value, str):
        return "string", "", value
    if isinstance(value, list):
        return "array", _untyped(value), tuple(value)
    return "scalar", _untyped([value]), value


def _untyped(values: Sequence[Any]) -> str:
    """The element type of values that do not say it."""
    for kind, name in ((bool, "pred"), (int, "s64"), (int | float, "f64")):
        if all(isinstance(value, kind) for value in values):
            return name
    raise ParseError(f"backend_config has a list of values that are not all numbers: {excerpt(str(values))}")


_INTEGER = re.compile(r"([su]?)i([0-9]+)")
_TENSOR = re.compile(r"(?:tensor|vector)<(?:[0-9]+x)*([^<>]+)>")


def _element_type(name: str) -> str:
    """HLO's name of a type of MLIR: `ui8`, `f32`, `tensor<3xi1>`."""
    tensor = _TENSOR.fullmatch(name)
    name = tensor[1] if tensor else name
    integer = _INTEGER.fullmatch(name)
    if name in ("i1", "index"):
        return {"i1": "pred", "index": "s64"}[name]
    return f"{integer[1] or 's'}{integer[2]}" if integer else name.lower()


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
        return ParseError(f"backend_config {excerpt(self._text)}: expected {expected}, found {excerpt(rest)!r}")

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
        kind, stated = "scalar", ""
        if match["mark"] is not None:
            self._depth += 1
            if self._depth > _MOST_NESTED or match["mark"] not in "[{":
                self._position = start
                raise self._error("a value")
            kind = "list" if match["mark"] == "[" else "dictionary"
            value = self._list() if match["mark"] == "[" else self._entries()
            self._depth -= 1
        elif match["string"] is not None:
            kind, value = "string", mlir_string(match["string"])
        elif match["array"] is not None:
            kind, stated = "array", match["element"]
            value = [_number(item) for item in match["array"].split(",") if item.strip()]
        elif match["number"] is not None:
            value = _number(match["number"])
        else:
            value = _WORDS.get(match["word"], match["word"])
            if match["word"].startswith("dense<"):
                kind, value = "array", _Reader(match["word"][6:-1] or "[]").whole()
        if self._accept(":"):
            stated = self._next("a type")[0].strip()
        return self._made(kind, stated, value)

    def _made(self, kind: str, stated: str, value: Any) -> Any:
        """A value of the type that is stated, if one is."""
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
            key = name["word"] or (mlir_string(name["string"]) if name["string"] else "")
            if not key:
                raise self._error("the name of an entry")
            entries[key] = self._value() if self._accept("=") else self._made("scalar", "", True)
        return entries


class _TypedReader(_Reader):
    """The same, with their types."""

    def _made(self, kind: str, stated: str, value: Any) -> Attribute:
        if kind == "list":
            value = [item for _, _, item in value]
        if kind in ("string", "dictionary"):
            return kind, "", value
        if kind == "scalar" and not isinstance(value, (bool, int, float)):
            raise ParseError(f"backend_config has a value that C functions cannot get: {value}")
        numbers = tuple(_flat(value))
        element_type = _element_type(stated) if stated else _untyped(numbers)
        return ("scalar", element_type, value) if kind == "scalar" else ("array", element_type, numbers)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _number(text: str) -> Any:
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return int(text, 0) if text.lstrip("+-").isdecimal() or "x" in text else float(text)
    except ValueError:
        raise ParseError(f"backend_config: {excerpt(text)!r} is not a number") from None


def mlir_string(literal: str) -> str:
    """The text that a string literal of MLIR spells: characters that do not print by their two hexadecimal digits."""
    if "\\" not in literal:
        return literal[1:-1]
    data = _HEXADECIMAL.sub(_character_of, literal[1:-1].encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _character_of(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 16)]) if len(code) == 2 else _ESCAPED.get(code, code)
