"""Floats, alone or side by side, between calls: where they are, and what is done with them.

A value has one register of a vector, or several. They are free again where it is read for the last time, if only its
own block reads it. There is no memory for more of them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from xlapy.codegen.assembler.not_known import NotKnown
from xlapy.codegen.assembler.x86 import Assembler, Register, VectorKind

FLOAT_TYPE = r"<\d+ x float>|<\d+ x double>|float|double"
_REGISTERS = range(4, 16)
_MOST_NUMBERS = 4
_FIRST, _SECOND = 0, 1  # in which constants are
_ONE, _OTHER = 2, 3  # in which what is larger or smaller is looked for
_LONG_BYTES = 32


class VectorType(NamedTuple):
    """How many elements, and what they are."""

    lanes: int
    is_double: bool

    @property
    def bytes(self) -> int:
        return self.lanes * (8 if self.is_double else 4)

    @property
    def registers(self) -> int:
        return max(1, self.bytes // _LONG_BYTES)

    @property
    def kind(self) -> VectorKind:
        if self.lanes == 1:
            return VectorKind(2 + self.is_double, False)
        return VectorKind(int(self.is_double), self.bytes >= _LONG_BYTES)


@cache
def vector_type(text: str) -> VectorType:
    """That of this name; raises NotKnown where it does not fill registers."""
    found = _TYPE.match(text)
    if found is None:
        raise NotKnown(text)
    type = VectorType(int(found[1] or 1), found[2] == "double")
    if type.lanes > 1 and (type.bytes < _LONG_BYTES // 2 or type.bytes & type.bytes - 1):
        raise NotKnown(text)
    return type


class Vectors:
    """The vectors of a function. Lines of its body are given by number."""

    def __init__(self, code: Assembler, last_uses: Mapping[str, int]) -> None:
        self._code = code
        self._free = list(reversed(_REGISTERS))
        self._homes: dict[str, tuple[int, ...]] = {}
        self._last_uses = last_uses
        self._numbers: dict[tuple[str, VectorType], int] = {}
        self.are_used = False

    def keep_numbers(self, body: Sequence[str]) -> None:
        """Puts the numbers that a function computes with, but for many of them, where they stay."""
        for line in body:
            for type, number in _COMPUTED.findall(line)[:1]:
                key = number, vector_type(type)
                if key not in self._numbers and len(self._numbers) < _MOST_NUMBERS:
                    self._numbers[key] = self._constant(number, key[1], self._free.pop())

    def load(self, line: int, name: str, type: VectorType, base: Register, distance: int) -> None:
        for number, goal in enumerate(self._new(line, name, type)):
            self._code.load_vector(goal, base, distance + number * _LONG_BYTES, type.kind)

    def store(self, line: int, value: str, type: VectorType, base: Register, distance: int) -> None:
        for number, source in enumerate(self._registers_of(value, type, _FIRST)):
            self._code.store_vector(source, base, distance + number * _LONG_BYTES, type.kind)
        self._release(line, value)

    def arithmetic(self, line: int, opcode: str, name: str, type: VectorType, one: str, other: str) -> None:
        ones, others = self._registers_of(one, type, _FIRST), self._registers_of(other, type, _SECOND)
        self._release(line, one, other)
        for goal, first, second in zip(self._new(line, name, type), ones, others, strict=True):
            self._code.vector_arithmetic(opcode, goal, first, second, type.kind)

    def extreme(self, line: int, opcode: str, name: str, type: VectorType, one: str, other: str) -> None:
        """Of two values, of which NaNs are the most extreme, and a negative zero less than the other one.

        The processor takes the second one where two are equal, or one is NaN. So that is the one with the sign that is
        wanted, if they differ in that; and the first one, where that is NaN."""
        code, kind = self._code, type.kind
        ones, others = self._registers_of(one, type, _FIRST), self._registers_of(other, type, _SECOND)
        self._release(line, one, other)
        before, behind = (_OTHER, _ONE) if opcode == "maximum" else (_ONE, _OTHER)
        for goal, first, second in zip(self._new(line, name, type), ones, others, strict=True):
            code.choose_elements(_ONE, first, second, first, kind)
            code.choose_elements(_OTHER, second, first, first, kind)
            code.vector_extreme(opcode, goal, before, behind, kind)
            code.find_nans(behind, before, kind)
            code.choose_elements(goal, goal, before, behind, kind)

    def repeat(self, line: int, name: str, type: VectorType, value: str) -> None:
        """The first element of a value, in all places."""
        source = self._homes[value][0] if value in self._homes else self._constant(value, type, _FIRST)
        self._release(line, value)
        for goal in self._new(line, name, type):
            self._code.repeat_element(goal, source, is_double=type.is_double)

    def leave(self) -> None:
        """Makes ready for a call, which keeps none of them."""
        if self._homes:
            raise NotKnown("a float over a call")
        if self.are_used:
            self._code.forget_vectors()

    def _new(self, line: int, name: str, type: VectorType) -> tuple[int, ...]:
        if type.registers > len(self._free):
            raise NotKnown("more vectors than registers")
        self.are_used = True
        self._homes[name] = tuple(self._free.pop() for _ in range(type.registers))
        found = self._homes[name]
        self._release(line, name)
        return found

    def _release(self, line: int, *names: str) -> None:
        """Frees the registers of values that nobody reads behind a line."""
        for name in dict.fromkeys(names):
            if name in self._homes and self._last_uses.get(name, line) == line:
                self._free += reversed(self._homes.pop(name))

    def _registers_of(self, value: str, type: VectorType, scratch: int) -> tuple[int, ...]:
        if value in self._homes:
            return self._homes[value]
        kept = self._numbers.get((value, type))
        return (self._constant(value, type, scratch) if kept is None else kept,) * type.registers

    def _constant(self, value: str, type: VectorType, goal: int) -> int:
        found = _NUMBER.match(value)
        if found is None:
            raise NotKnown(value)
        (number,) = struct.unpack(">d", bytes.fromhex(found[1]))
        (bits,) = struct.unpack(*(("<q", struct.pack("<d", number)) if type.is_double else ("<i", _narrow(number))))
        self.are_used = True
        self._code.number(Register.RAX, bits)
        self._code.vector_of_bits(goal, Register.RAX, is_double=type.is_double)
        if type.lanes > 1:
            self._code.repeat_element(goal, goal, is_double=type.is_double)
        return goal


def _narrow(number: float) -> bytes:
    return struct.pack("<f", number)


_TYPE = re.compile(r"(?:<(\d+) x )?(float|double)>?$")
_COMPUTED = re.compile(rf"(?:fadd|fsub|fmul|fdiv|call) .*?({FLOAT_TYPE}) .*?(splat \(\w+ 0x\w+\)|\b0x\w+)")
_NUMBER = re.compile(r"(?:splat \(\w+ )?0x([0-9A-Fa-f]{16})\)?$")
