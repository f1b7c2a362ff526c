"""The configuration of a custom call, as HLO text spells it: bytes in quotes, JSON, or MLIR's dictionaries.

backend_config="raw \\377 bytes"     backend_config={"axis": 1}     backend_config={axis = 1 : i64, name = "x"}
"""

from __future__ import annotations

import json
import re
from typing import Any

from xlapy.hlo.text.lexer import Lexer
from xlapy.support.errors import ParseError
from xlapy.support.source import Source

MAX_NESTING = 100

_ESCAPE = re.compile(rb"\\([0-7]{3}|x[0-9a-fA-F]{2}|(?s:.))")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_LETTERS = {ord(plain): letter for plain, letter in (('"', '"'), ("\\", "\\"), ("\n", "n"), ("\t", "t"), ("\r", "r"))}
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+)")
_TYPE = re.compile(r":\s*[A-Za-z][\w<>x]*\s*")
_ARRAY = re.compile(r"array<\s*[A-Za-z]\w*\s*:?\s*")


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


def quoted(content: bytes) -> str:
    """Bytes in quotes: printable ASCII as it is, ends of lines and tabs by letters, everything else by its number."""
    return '"' + "".join(map(_character, content)) + '"'


def _character(byte: int) -> str:
    if byte in _LETTERS:
        return "\\" + _LETTERS[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def config_bytes(text: str) -> bytes:
    """The content of a configuration: what quotes enclose, or a group in braces as it is written."""
    content = text.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescaped, content[1:-1]) if text.startswith('"') else content


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if len(code) == 3 and code[:1] in b"01234567":
        return bytes((int(code, 8) & 0xFF,))
    if len(code) == 3:
        return bytes((int(code[1:], 16),))
    return _ESCAPED.get(code, code)


def config_entries(text: str) -> dict[str, Any] | None:
    """The entries of a dictionary, in JSON or as MLIR writes it; None if the configuration is none of these."""
    content = config_bytes(text).decode(errors="replace")
    if not content.startswith("{"):
        return None
    try:
        entries = json.loads(content)
        return entries if isinstance(entries, dict) else None
    except (ValueError, RecursionError):
        pass
    lexer = Lexer(Source(content))
    try:
        entries = _dictionary(lexer, 0)
        return entries if lexer.at_end else None
    except ParseError:
        return None


def _dictionary(lexer: Lexer, depth: int) -> dict[str, Any]:
    entries = {}
    lexer.expect("{")
    while not lexer.accept("}"):
        name = lexer.string() if lexer.at('"') else lexer.word()
        entries[name] = _value(lexer, depth + 1) if lexer.accept("=") else True
        lexer.accept(",")
    return entries


def _value(lexer: Lexer, depth: int) -> Any:
    if depth > MAX_NESTING:
        raise lexer.error(f"values are nested more than {MAX_NESTING} deep")
    if lexer.at("{"):
        return _dictionary(lexer, depth)
    if lexer.at('"'):
        return lexer.string()
    if lexer.take(_ARRAY) is not None:
        return _elements(lexer, ">", depth)
    if lexer.accept("["):
        return _elements(lexer, "]", depth)
    number = lexer.take(_NUMBER)
    if number is None:
        word = lexer.word("a value")
        if word not in ("true", "false"):
            raise lexer.error(f"{word[:40]!r} is no value")
        return word == "true"
    lexer.skip()
    lexer.take(_TYPE)
    return float(number[0]) if any(letter in ".eE" for letter in number[0]) else int(number[0])


def _elements(lexer: Lexer, end: str, depth: int) -> list[Any]:
    elements = []
    while not lexer.accept(end):
        elements.append(_value(lexer, depth + 1))
        lexer.accept(",")
    return elements


__all__ = ["config_bytes", "config_entries", "config_text", "quoted"]
