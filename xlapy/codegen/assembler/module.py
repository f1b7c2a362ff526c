"""Modules of LLVM IR: tables of numbers, and functions that are known here."""

from __future__ import annotations

import re
import struct

from xlapy.codegen.assembler.function import Function
from xlapy.codegen.assembler.not_known import NotKnown
from xlapy.codegen.assembler.object_file import object_file
from xlapy.codegen.assembler.x86 import Assembler
from xlapy.codegen.target import Target

_FUNCTION_ALIGNMENT = 16
_TABLE_ALIGNMENT = 64


def assembled(ir_text: str, target: Target) -> bytes | None:
    """The object file of a module, if all of it is of the kind that is known here: what LLVM takes for each module is
    more than for a function."""
    if not (target.triple.startswith("x86_64") and "linux" in target.triple):
        return None
    if _STRANGE.search(ir_text):
        return None
    try:
        return _Module(ir_text, has_vectors="+avx2" in target.features.split(",")).object()
    except NotKnown:
        return None


class _Module:
    """The tables and functions of a module."""

    def __init__(self, text: str, *, has_vectors: bool) -> None:
        self._lines = iter(text.splitlines())
        self._has_vectors = has_vectors
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
        code = Function(head, body, has_vectors=self._has_vectors).assembled()
        self._code.align(_FUNCTION_ALIGNMENT)
        self._symbols[name] = len(self._code.code), True
        self._code.append(code)


_TABLE = re.compile(r"@(table\.\d+) = private unnamed_addr constant \[\d+ x i64\] \[(.*)\], align 64$")
_STRANGE = re.compile(
    r" x i\d+> (?!zeroinitializer\n)| (?:half|bfloat|i16)[ ,]|fcmp|itofp|fpto"
    r"|@llvm\.(?![su]m(?:ax|in)|m(?:ax|in)imum|memcpy|readcyclecounter)"
)
"""What shows at once that there is more in a module than what is known here."""
