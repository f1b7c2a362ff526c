"""Modules of LLVM IR, of which the functions that are known here are assembled, and the others are left to LLVM."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from xlapy.codegen.assembler.function import Function, NotKnown
from xlapy.codegen.assembler.object_file import object_file
from xlapy.codegen.assembler.x86 import Assembler
from xlapy.codegen.target import Target

_FUNCTION_ALIGNMENT = 16
_TABLE_ALIGNMENT = 64


class Assembled(NamedTuple):
    """An object file of the functions that are known, if there are any, and a module of the others."""

    code: bytes | None
    rest: str | None


def assembled(ir_text: str, target: Target) -> Assembled:
    """The code of a module, as far as it is of the kind that is known here."""
    if not (target.triple.startswith("x86_64") and "linux" in target.triple):
        return Assembled(None, ir_text)
    parts = _parts(ir_text.splitlines())
    if parts.is_whole:
        return Assembled(None, ir_text)
    known, others = Assembler(), list[_FunctionText]()
    symbols: dict[str, tuple[int, bool]] = {}
    for function in parts.functions:
        try:
            code = Function(function.head, function.body, parts.numbers).assembled()
        except NotKnown:
            others.append(function)
        else:
            known.align(_FUNCTION_ALIGNMENT)
            symbols[function.name] = len(known.code), True
            known.append(code)
    rest = parts.rest(others) if others else None
    return Assembled(_object(known, symbols, parts.numbers), rest) if symbols else Assembled(None, ir_text)


class _FunctionText(NamedTuple):
    """A function as it is written; `body` is without the brace at its end."""

    name: str
    head: str
    body: Sequence[str]

    @property
    def references(self) -> set[str]:
        return {name for line in (self.head, *self.body) for name in _REFERENCE.findall(line)}

    @property
    def declaration(self) -> str:
        head = self.head[: self.head.index(") ") + 1]
        return _PARAMETER.sub("", head).replace("define", "declare", 1)


class _Parts(NamedTuple):
    """What a module consists of, by names; of tables of numbers also these. One `is_whole` if something in it is none
    of that, or belongs to it alone."""

    functions: Sequence[_FunctionText]
    tables: dict[str, str]
    numbers: dict[str, Sequence[int]]
    declarations: dict[str, str]
    metadata: Sequence[str]
    is_whole: bool

    def rest(self, functions: Sequence[_FunctionText]) -> str:
        """A module of some of the functions, with what they refer to."""
        names = {function.name for function in functions}
        wanted = set[str]().union(*(function.references for function in functions))
        lines = [line for name, line in self.tables.items() if name in wanted]
        lines += [line for name, line in self.declarations.items() if name in wanted and name not in names]
        lines += [
            function.declaration
            for function in self.functions
            if function.name in wanted - names - self.declarations.keys()
        ]
        for function in functions:
            lines += [function.head, *function.body, "}"]
        return "\n".join([*lines, *self.metadata]) + "\n"


def _parts(lines: Iterable[str]) -> _Parts:
    functions = list[_FunctionText]()
    tables, numbers, declarations = dict[str, str](), dict[str, Sequence[int]](), dict[str, str]()
    metadata, is_whole = list[str](), False
    following = iter(lines)
    for line in following:
        if found := _HEAD.match(line):
            functions.append(_FunctionText(found[1], line, _body(following)))
        elif found := _TABLE.match(line):
            tables[found[1]] = line
            if found[2] is not None:
                numbers[found[1]] = [int(number.removeprefix("i64 ")) for number in found[2].split(", ")]
        elif found := _DECLARATION.match(line):
            declarations[found[1]] = line
        elif line.startswith("!"):
            metadata.append(line)
        else:
            is_whole = is_whole or bool(line)
    return _Parts(functions, tables, numbers, declarations, metadata, is_whole)


def _body(lines: Iterator[str]) -> list[str]:
    return list(iter(lines.__next__, "}"))


def _object(code: Assembler, symbols: dict[str, tuple[int, bool]], tables: dict[str, Sequence[int]]) -> bytes:
    """The object file of functions, with those of the tables that they read."""
    constants, read = bytearray(), {symbol for _, _, symbol, _ in code.places}
    for name, numbers in tables.items():
        if name in read:
            constants += bytes(-len(constants) % _TABLE_ALIGNMENT)
            symbols[name] = len(constants), False
            constants += struct.pack(f"<{len(numbers)}q", *numbers)
    return object_file(bytes(code.code), bytes(constants), symbols, code.places)


_TABLE = re.compile(r"@(table\.\d+) = private unnamed_addr constant (?:\[\d+ x i64\] \[(.*)\]|.*), align 64$")
_HEAD = re.compile(r"define (?!internal )[^@]*@([\w.]+)\(.*\{$")
_DECLARATION = re.compile(r"declare [^@]*@([\w.]+)\(")
_REFERENCE = re.compile(r"@([\w.]+)")
_PARAMETER = re.compile(r" %[\w.]+")
