"""Code without loops that loads, stores, calls and branches: from LLVM IR, as emitters write it, to an object file.

    %v6 = getelementptr i8, ptr %table, i64 8
    store ptr %v2, ptr %v6, align 8
    call void @kernel.0(ptr %table, i64 0, i64 16)

Each value has a register that calls keep, or, if there are too many, a word in the frame; what is a known distance from
another one has neither. Anything else than that in a module, and LLVM takes all of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from xlapy.codegen.assembler.object_file import object_file
from xlapy.codegen.assembler.x86 import ARGUMENTS, ARITHMETIC, CONDITIONS, KEPT, WORD_BYTES, Assembler, Register
from xlapy.codegen.target import Target

MOST_FRAME = 1 << 16  # bytes
_FUNCTION_ALIGNMENT = 16
_FRAME_ALIGNMENT = 16
_TABLE_ALIGNMENT = 64
_FIRST, _SECOND = Register.RAX, Register.R10  # what operations work in; no arguments are in either


class _NotKnown(Exception):
    """There is something in the code that is LLVM's."""


def assembled(ir_text: str, target: Target) -> bytes | None:
    """The object file of a module, if it is of the kind that is known here."""
    if not (target.triple.startswith("x86_64") and "linux" in target.triple):
        return None
    try:
        return _Module(ir_text).object()
    except _NotKnown:
        return None


class _Home(NamedTuple):
    """Where a value is: at a distance from a register, or from a word in memory that is as far from it."""

    base: Register
    word: int | None  # the distance of that word, if there is one
    distance: int


class _Module:
    """The tables and functions of a module."""

    def __init__(self, text: str) -> None:
        self._lines = iter(text.splitlines())
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
                raise _NotKnown(line)
        return object_file(bytes(self._code.code), bytes(self._constants), self._symbols, self._code.places)

    def _add_table(self, line: str) -> None:
        found = _TABLE.match(line)
        if found is None:
            raise _NotKnown(line)
        name, numbers = found.groups()
        self._constants += bytes(-len(self._constants) % _TABLE_ALIGNMENT)
        self._symbols[name] = len(self._constants), False
        for number in numbers.split(", "):
            self._constants += struct.pack("<q", int(number.removeprefix("i64 ")))

    def _add_function(self, head: str) -> None:
        found = _HEAD.match(head)
        if found is None:
            raise _NotKnown(head)
        name, parameters = found.groups()
        body = list(iter(self._lines.__next__, "}"))
        function = _Function(_PARAMETER.findall(parameters), body)
        code = function.assembled()
        self._code.align(_FUNCTION_ALIGNMENT)
        self._symbols[name] = len(self._code.code), True
        self._code.append(code)


class _Function:
    """One function: where its values are, and what is still to be filled in of its jumps."""

    def __init__(self, parameters: list[str], body: list[str]) -> None:
        self._code = Assembler()
        self._body = body
        self._homes: dict[str, _Home] = {}
        self._comparisons: dict[str, tuple[int, str, str, str]] = {}
        self._free = list(reversed(KEPT))
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        self._next = ""  # the line behind the one that is read, if it is a label
        most = max((line.count(", ") + 1 for line in body if "call " in line), default=0)
        self._frame = WORD_BYTES * max(0, most - len(ARGUMENTS))
        if len(parameters) > len(ARGUMENTS):
            raise _NotKnown("parameters on the stack")
        for parameter, register in zip(parameters, ARGUMENTS, strict=False):
            goal = self._goal()
            self._code.move(goal, register)
            self._keep(parameter, goal)

    def assembled(self) -> Assembler:
        for line, following in zip(self._body, [*self._body[1:], ""], strict=True):
            self._next = following
            if line.startswith("  "):
                self._instruction(line)
            else:
                self._labels[line.removesuffix(":")] = len(self._code.code)
        self._labels[_END] = len(self._code.code)
        for place, label in self._jumps:
            self._code.land(place, self._labels[label])
        return self._with_frame()

    def _with_frame(self) -> Assembler:
        """All of it: what calls keep is saved, and the frame begins where calls want it to."""
        whole, used = Assembler(), KEPT[: len(KEPT) - len(self._free)]
        saved = WORD_BYTES * (1 + len(used))  # with the address to return to
        frame = self._frame + -(self._frame + saved) % _FRAME_ALIGNMENT
        for register in used:
            whole.push(register)
        whole.add_number(Register.RSP, -frame)
        whole.append(self._code)
        whole.add_number(Register.RSP, frame)
        for register in reversed(used):
            whole.pop(register)
        whole.ret()
        return whole

    def _instruction(self, line: str) -> None:
        found = _INSTRUCTION.match(line)
        handler = None if found is None else _HANDLERS.get(found[2])
        parsed = None if found is None or handler is None else handler[0].match(found[3])
        if found is None or handler is None or parsed is None:
            raise _NotKnown(line)
        handler[1](self, found[2], found[1] or "", *parsed.groups())

    # -- values

    def _goal(self) -> Register:
        """Where a value that is made now is to be put first."""
        return self._free[-1] if self._free else _FIRST

    def _keep(self, name: str, register: Register) -> None:
        """Notes the value that was put where `_goal` said."""
        if self._free:
            self._homes[name] = _Home(self._free.pop(), None, 0)
            return
        place = self._room(WORD_BYTES, WORD_BYTES)
        self._code.store(register, Register.RSP, place)
        self._homes[name] = _Home(Register.RSP, place, 0)

    def _room(self, size: int, alignment: int) -> int:
        """Memory in the frame: its distance from the stack pointer."""
        place = self._frame + -self._frame % alignment
        self._frame = place + size
        if self._frame > MOST_FRAME:
            raise _NotKnown("a large frame")
        return place

    def _fetch(self, operand: str, goal: Register) -> None:
        """Puts an operand into a register."""
        if operand.startswith("%"):
            base, distance = self._address(operand, goal)
            if distance:
                self._code.address(goal, base, distance)
            else:
                self._code.move(goal, base)
        elif operand.startswith("@table."):
            self._code.data_address(goal, operand[1:], 0)
        elif operand.startswith("@"):
            self._code.function_address(goal, operand[1:])
        elif operand == "null":
            self._code.number(goal, 0)
        elif _NUMBER.match(operand):
            self._code.number(goal, int(operand))
        else:
            raise _NotKnown(operand)

    def _address(self, operand: str, scratch: Register) -> tuple[Register, int]:
        """A register, `scratch` if there is no other, and how far an operand is from it."""
        home = self._homes.get(operand)
        if home is None:
            if operand.startswith("%"):
                raise _NotKnown(operand)
            self._fetch(operand, scratch)
            return scratch, 0
        if home.word is None:
            return home.base, home.distance
        self._code.load(scratch, home.base, home.word)
        return scratch, home.distance

    # -- instructions

    def _alloca(self, _opcode: str, name: str, type: str, count: str | None, alignment: str) -> None:
        if int(alignment) > _FRAME_ALIGNMENT:
            raise _NotKnown("an aligned frame")
        place = self._room(_BYTES[type] * int(count or 1), int(alignment))
        self._homes[name] = _Home(Register.RSP, None, place)

    def _gep(self, _opcode: str, name: str, pointer: str, index: str) -> None:
        home = self._homes.get(pointer)
        if home is not None and not index.startswith("%"):
            distance = home.distance + int(index)
            if not -_FAR < distance < _FAR:
                raise _NotKnown("a large distance")
            self._homes[name] = home._replace(distance=distance)
            return
        self._arithmetic("add", name, pointer, index)

    def _load(self, _opcode: str, name: str, type: str, pointer: str) -> None:
        base, distance = self._address(pointer, _SECOND)
        goal = self._goal()
        self._code.load(goal, base, distance, narrow=type == "i32")
        self._keep(name, goal)

    def _store(self, _opcode: str, _name: str, type: str, value: str, pointer: str) -> None:
        home, source = self._homes.get(value), _FIRST
        if home is not None and home.word is None and not home.distance:
            source = home.base
        else:
            self._fetch(value, source)
        base, distance = self._address(pointer, _SECOND)
        self._code.store(source, base, distance, narrow=type == "i32")

    def _call(self, _opcode: str, name: str, type: str, function: str, arguments: str) -> None:
        given = [argument.split(" ") for argument in filter(None, arguments.split(", "))]
        if function.startswith("@llvm.") or any(len(words) != 2 or words[0] not in _BYTES for words in given):
            raise _NotKnown(function)
        for number, (_, operand) in enumerate(given[len(ARGUMENTS) :]):
            self._fetch(operand, _FIRST)
            self._code.store(_FIRST, Register.RSP, number * WORD_BYTES)
        for (_, operand), register in zip(given, ARGUMENTS, strict=False):
            self._fetch(operand, register)
        if function.startswith("@"):
            self._code.call(function[1:])
        else:
            self._fetch(function, _FIRST)
            self._code.call_at(_FIRST)
        if type != "void":
            goal = self._goal()
            self._code.move(goal, _FIRST)
            self._keep(name, goal)

    def _arithmetic(self, opcode: str, name: str, one: str, other: str) -> None:
        self._fetch(one, _FIRST)
        self._fetch(other, _SECOND)
        if opcode == "mul":
            self._code.multiply(_FIRST, _SECOND)
        else:
            self._code.arithmetic(opcode, _FIRST, _SECOND)
        goal = self._goal()
        self._code.move(goal, _FIRST)
        self._keep(name, goal)

    def _compare(self, _opcode: str, name: str, predicate: str, type: str, one: str, other: str) -> None:
        self._comparisons[name] = CONDITIONS[predicate], type, one, other

    def _branch(self, _opcode: str, _name: str, condition: str | None, first: str, second: str | None) -> None:
        if condition is None or second is None:
            self._jump(first)
            return
        if condition not in self._comparisons:
            raise _NotKnown(condition)
        holds, type, one, other = self._comparisons[condition]
        self._fetch(one, _FIRST)
        self._fetch(other, _SECOND)
        self._code.compare(_FIRST, _SECOND, narrow=type == "i32")
        self._jumps.append((self._code.jump(holds ^ 1), second))
        self._jump(first)

    def _jump(self, label: str) -> None:
        if self._next != f"{label}:":
            self._jumps.append((self._code.jump(), label))

    def _return(self, _opcode: str, _name: str, type: str, value: str | None) -> None:
        if value is not None:
            self._fetch(value, _FIRST)
        if self._next:
            self._jumps.append((self._code.jump(), _END))


_FAR = 1 << 30
_END = "the end"
_BYTES = {"ptr": 8, "i64": 8, "i32": 4}
_TYPE = "(ptr|i64|i32)"

_TABLE = re.compile(r"@(table\.\d+) = private unnamed_addr constant \[\d+ x i64\] \[(.*)\], align 64$")
_HEAD = re.compile(r"define (?:void|ptr|i64|i32) @([\w.]+)\(((?:(?:ptr|i64|i32) %[\w.]+(?:, )?)*)\)[^({]*\{$")
_PARAMETER = re.compile(r"%[\w.]+")
_NUMBER = re.compile(r"-?\d+$")
_INSTRUCTION = re.compile(r"  (?:(%[\w.]+) = )?(\w+) (.*)$")

_Handler = Callable[..., None]
_HANDLERS: dict[str, tuple[re.Pattern[str], _Handler]] = {
    "alloca": (re.compile(f"{_TYPE}(?:, i64 (\\d+))?, align (\\d+)$"), _Function._alloca),
    "getelementptr": (re.compile(r"i8, ptr (\S+), i64 (\S+)$"), _Function._gep),
    "load": (re.compile(f"(?:volatile )?{_TYPE}, ptr ([^ ,]+)"), _Function._load),
    "store": (re.compile(f"(?:volatile )?{_TYPE} (\\S+), ptr ([^ ,]+)"), _Function._store),
    "call": (re.compile(r"(void|ptr|i64|i32) ([@%][\w.]+)\((.*)\)$"), _Function._call),
    "icmp": (re.compile(f"({'|'.join(CONDITIONS)}) {_TYPE} (\\S+), (\\S+)$"), _Function._compare),
    "br": (re.compile(r"(?:i1 (\S+), )?label %([\w.]+)(?:, label %([\w.]+))?"), _Function._branch),
    **dict.fromkeys((*ARITHMETIC, "mul"), (re.compile(r"(?:nsw |nuw )*i64 (\S+), (\S+)$"), _Function._arithmetic)),
    "ret": (re.compile(f"(?:void|{_TYPE} (\\S+))$"), _Function._return),
}
"""By opcodes: how the rest of a line is taken apart, and who writes it."""
