"""Modules of LLVM IR: tables of numbers, and functions that are known here."""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from xlapy.codegen.assembler.function import Function
from xlapy.codegen.assembler.not_known import NotKnown, TooManyVectors
from xlapy.codegen.assembler.object_file import object_file
from xlapy.codegen.assembler.x86 import Assembler
from xlapy.codegen.target import Target

_FUNCTION_ALIGNMENT = 16
_TABLE_ALIGNMENT = 64
MOST_REMEMBERED = 64
MOST_REMEMBERED_LINES = 32
"""Functions, and their lines: all programs have some in common, as the one that sets how floats are computed."""


def assembled(ir_text: str, target: Target) -> bytes | None:
    """The object file of a module, if all of it is of the kind that is known here: what LLVM takes for each module is
    more than for a function."""
    if not (target.triple.startswith("x86_64") and "linux" in target.triple):
        return None
    if _is_strange(ir_text):
        return None
    try:
        return _Module(ir_text, _vector_bytes(target)).object()
    except NotKnown:
        return None


def _vector_bytes(target: Target) -> int:
    """The longest registers that vectors are in; 0 where there are none with the instructions that are known here."""
    if target.is_avx512:
        return target.vector_bytes
    return _NARROW_BYTES if target.has("avx2") else 0


class _Module:
    """The tables and functions of a module."""

    def __init__(self, text: str, vector_bytes: int) -> None:
        self._lines = iter(text.splitlines())
        self._vector_bytes = vector_bytes
        self._constants = bytearray()
        self._code = Assembler()
        self._symbols: dict[str, tuple[int, bool]] = {}

    def object(self) -> bytes:
        for line in self._lines:
            if line.startswith("define "):
                self._add_function(line)
            elif line.startswith("@"):
                self._add_table(line)
            elif not line.startswith(("declare ", "!")):
                raise NotKnown(line)
        return object_file(bytes(self._code.code), bytes(self._constants), self._symbols, self._code.places)

    def _add_table(self, line: str) -> None:
        found = _TABLE.match(line)
        if found is None:
            raise NotKnown(line)
        name, numbers = found.groups()
        self._constants += bytes(-len(self._constants) % _TABLE_ALIGNMENT)
        self._symbols[name] = len(self._constants), False
        words = [int(number) for number in numbers.replace("i64 ", "").split(", ")]
        self._constants += struct.pack(f"<{len(words)}q", *words)

    def _add_function(self, head: str) -> None:
        name = head[head.index("@") + 1 : head.index("(")]
        body = list(iter(self._lines.__next__, "}"))
        is_short = len(body) <= MOST_REMEMBERED_LINES
        code = (_remembered if is_short else _assembled)(head, tuple(body), self._vector_bytes)
        self._code.align(_FUNCTION_ALIGNMENT)
        self._symbols[name] = len(self._code.code), True
        self._code.append(code)


def _assembled(head: str, body: tuple[str, ...], vector_bytes: int) -> Assembler:
    """In registers of 32 bytes, if there are enough of them: as small as functions are, wider ones do not make them
    faster, and loads from anywhere in memory meet the ends of cache lines half as often."""
    narrow = min(vector_bytes, _NARROW_BYTES)
    for width in sorted({narrow, vector_bytes}):
        try:
            return Function(head, body, vector_bytes=width).assembled()
        except TooManyVectors:
            continue
    return Function(head, body, vector_bytes=vector_bytes, keeps_numbers=False).assembled()


_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_assembled)

_NARROW_BYTES = 32
_TABLE = re.compile(r"@(table\.\d+) = private unnamed_addr constant \[\d+ x i64\] \[(.*)\], align 64$")
_STRANGE_WORDS = ("fcmp", "itofp", "fpto", " half ", " half,", " bfloat", " i16 ", " i16,")
_STRANGE = (
    re.compile(r" x i\d+> (?!zeroinitializer\n)"),
    re.compile(r"@llvm\.(?![su]m(?:ax|in)|m(?:ax|in)imum|memcpy|readcyclecounter|x86\.sse\.)"),
)
"""What shows at once that there is more in a module than what is known here. One expression with all of it would be
tried at each character; words are found faster, and so is what begins with some."""


def _is_strange(ir_text: str) -> bool:
    return any(word in ir_text for word in _STRANGE_WORDS) or any(found.search(ir_text) for found in _STRANGE)
