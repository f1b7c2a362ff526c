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

from xlapy.codegen.assembler.not_known import NotKnown, TooManyVectors
from xlapy.codegen.assembler.x86 import LONG, SHORT, WIDE, Assembler, Register, VectorKind

FLOAT_TYPE = r"<\d+ x float>|<\d+ x double>|float|double"
_REGISTERS = range(4, 16)
_MOST_NUMBERS = 4
_FIRST, _SECOND = 0, 1  # in which constants are
_ONE, _OTHER = 2, 3  # in which what is larger or smaller is looked for
_SCRATCH = (_FIRST, _SECOND, _ONE, _OTHER)  # in which functions find what they are given, and the first their result
_SHORT_BYTES = 16
_SIZES = {16: SHORT, 32: LONG, 64: WIDE}
_NEGATIVE_ZERO = f"0x{1 << 63:x}"


class VectorType(NamedTuple):
    """How many elements, and what they are."""

    lanes: int
    is_double: bool
    registers: int
    register_bytes: int  # of each that are used
    kind: VectorKind


@cache
def vector_type(text: str, longest: int) -> VectorType:
    """That of this name, where registers have so many bytes; raises NotKnown where it does not fill them."""
    found = _TYPE.match(text)
    if found is None:
        raise NotKnown(text)
    lanes, is_double = int(found[1] or 1), found[2] == "double"
    size = lanes * (8 if is_double else 4)
    if lanes == 1:
        return VectorType(1, is_double, 1, size, VectorKind(2 + is_double, SHORT))
    if size < _SHORT_BYTES or size & size - 1:
        raise NotKnown(text)
    register_bytes = min(size, longest)
    kind = VectorKind(int(is_double), _SIZES[register_bytes])
    return VectorType(lanes, is_double, size // register_bytes, register_bytes, kind)


class Vectors:
    """The vectors of a function. Lines of its body are given by number."""

    def __init__(self, code: Assembler, last_uses: Mapping[str, int], register_bytes: int) -> None:
        self._code = code
        self._register_bytes = register_bytes
        self._free = list(reversed(_REGISTERS))
        self._homes: dict[str, tuple[int, ...]] = {}
        self._last_uses = last_uses
        self._numbers: dict[tuple[str, VectorType], int] = {}
        self.are_used = False

    def type(self, text: str) -> VectorType:
        return vector_type(text, self._register_bytes)

    def keep_numbers(self, body: Sequence[str]) -> None:
        """Puts the numbers that a function computes with, but for many of them, where they stay."""
        for line in body:
            for type, number in _COMPUTED.findall(line)[:1]:
                key = number, self.type(type)
                if key not in self._numbers and len(self._numbers) < _MOST_NUMBERS:
                    self._numbers[key] = self._constant(number, key[1], self._free.pop())

    def load(self, line: int, name: str, type: VectorType, base: Register, distance: int) -> None:
        for number, goal in enumerate(self._new(line, name, type)):
            self._code.load_vector(goal, base, distance + number * type.register_bytes, type.kind)

    def store(self, line: int, value: str, type: VectorType, base: Register, distance: int) -> None:
        for number, source in enumerate(self._registers_of(value, type, _FIRST)):
            self._code.store_vector(source, base, distance + number * type.register_bytes, type.kind)
        self._release(line, value)

    def arithmetic(self, line: int, opcode: str, name: str, type: VectorType, one: str, other: str) -> None:
        ones, others = self._registers_of(one, type, _FIRST), self._registers_of(other, type, _SECOND)
        self._release(line, one, other)
        for goal, first, second in zip(self._new(line, name, type), ones, others, strict=True):
            self._code.vector_arithmetic(opcode, goal, first, second, type.kind)

    def negate(self, line: int, name: str, type: VectorType, value: str) -> None:
        sign, sources = self._constant(_NEGATIVE_ZERO, type, _SECOND), self._registers_of(value, type, _FIRST)
        self._release(line, value)
        for goal, source in zip(self._new(line, name, type), sources, strict=True):
            self._code.vector_xor(goal, source, sign, type.kind)

    def extreme(self, line: int, opcode: str, name: str, type: VectorType, one: str, other: str) -> None:
        """Of two values, of which NaNs are the most extreme, and a negative zero less than the other one. If the first
        one is a number other than zero, that is what the processor finds."""
        ones, others = self._registers_of(one, type, _FIRST), self._registers_of(other, type, _SECOND)
        self._release(line, one, other)
        orders_itself = _is_ordered(one) or _is_ordered(other)
        if _is_ordered(other):
            ones, others = others, ones
        for goal, first, second in zip(self._new(line, name, type), ones, others, strict=True):
            if orders_itself:
                self._code.vector_extreme(opcode, goal, first, second, type.kind)
            else:
                self._code.code += _extreme(opcode, goal, first, second, type.kind)

    def repeat(self, line: int, name: str, type: VectorType, value: str) -> None:
        """The first element of a value, in all places."""
        source = self._homes[value][0] if value in self._homes else self._constant(value, type, _FIRST)
        self._release(line, value)
        for goal in self._new(line, name, type):
            self._code.repeat_element(goal, source, type.kind.packed)

    def call(
        self, line: int, name: str, type: VectorType, function: str, given: Sequence[tuple[str, VectorType]]
    ) -> None:
        """The result of a function of floats, which are in the first registers and, as it keeps none of them, in no
        others. Which ones those of several registers are in depends on how long the function thinks that they are."""
        if len(given) > len(_SCRATCH) or any(each.registers > 1 for each in (type, *(kind for _, kind in given))):
            raise TooManyVectors("a function of long vectors")
        for goal, (value, kind) in zip(_SCRATCH, given, strict=False):
            (source,) = self._registers_of(value, kind, goal)
            if source != goal:
                self._code.move_vector(goal, source, kind.kind)
        self._release(line, *(value for value, _ in given))
        if self._homes:
            raise NotKnown("a float over a call")
        self._code.call(function)
        (goal,) = self._new(line, name, type)
        self._code.move_vector(goal, _FIRST, type.kind)

    def leave(self) -> None:
        """Makes ready for a call, which keeps none of them."""
        if self._homes:
            raise NotKnown("a float over a call")
        if self.are_used:
            self._code.forget_vectors()

    def _new(self, line: int, name: str, type: VectorType) -> tuple[int, ...]:
        if type.registers > len(self._free):
            raise TooManyVectors("more vectors than registers")
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
        number = _number(found[1])
        (bits,) = struct.unpack(*(("<q", struct.pack("<d", number)) if type.is_double else ("<i", _narrow(number))))
        self.are_used = True
        self._code.number(Register.RAX, bits)
        self._code.vector_of_bits(goal, Register.RAX, is_double=type.is_double)
        if type.lanes > 1:
            self._code.repeat_element(goal, goal, type.kind)
        return goal


@cache
def _extreme(opcode: str, goal: int, first: int, second: int, kind: VectorKind) -> bytes:
    """Code for one register of a value.

    The processor takes the second one where two are equal, or one is NaN. So that is the one with the sign that is
    wanted, if they differ in that; and the first one, where that is NaN."""
    code = Assembler()
    before, behind = (_OTHER, _ONE) if opcode == "maximum" else (_ONE, _OTHER)
    if kind.size == WIDE:
        code.mark_signs(first, kind)
        code.choose_marked(_ONE, first, second, kind)
        code.choose_marked(_OTHER, second, first, kind)
        code.vector_extreme(opcode, goal, before, behind, kind)
        code.mark_nans(before, kind)
        code.choose_marked(goal, goal, before, kind)
        return bytes(code.code)
    code.choose_elements(_ONE, first, second, first, kind)
    code.choose_elements(_OTHER, second, first, first, kind)
    code.vector_extreme(opcode, goal, before, behind, kind)
    code.find_nans(behind, before, kind)
    code.choose_elements(goal, goal, before, behind, kind)
    return bytes(code.code)


def _is_ordered(value: str) -> bool:
    """Whether it is a number that has one place among all others."""
    found = _NUMBER.match(value)
    return found is not None and abs(_number(found[1])) > 0


def _number(digits: str) -> float:
    (number,) = struct.unpack(">d", bytes.fromhex(digits))
    return float(number)


def _narrow(number: float) -> bytes:
    return struct.pack("<f", number)


_TYPE = re.compile(r"(?:<(\d+) x )?(float|double)>?$")
_COMPUTED = re.compile(rf"(?:fadd|fsub|fmul|fdiv|call) .*?({FLOAT_TYPE}) .*?(splat \(\w+ 0x\w+\)|\b0x\w+)")
_NUMBER = re.compile(r"(?:splat \(\w+ )?0x([0-9A-Fa-f]{16})\)?$")
