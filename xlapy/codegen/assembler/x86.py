"""Instructions of x86-64, and the object file that they are put into."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from xlapy_runtime.elf import Fill


class Register(IntEnum):
    """The registers of 64 bits, by number."""

    RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 = range(16)

    __hash__ = int.__hash__  # that of names takes longer


ARGUMENTS = (Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9)
"""Of a call, in order; others are on the stack."""

KEPT = (Register.RBX, Register.RBP, Register.R12, Register.R13, Register.R14, Register.R15)
"""Those that a function leaves to its caller as they were."""

LOST = (Register.RDI, Register.RSI, Register.R8, Register.R9, Register.R11)
"""Some of those that calls do not keep."""

FLOAT_ARITHMETIC = {"fadd": 0x58, "fmul": 0x59, "fsub": 0x5C, "fdiv": 0x5E}
"""The opcode, on elements of all kinds."""

FLOAT_EXTREMES = {"minimum": 0x5D, "maximum": 0x5F}
"""The same of what finds one of two."""

CONDITIONS = {"eq": 4, "ne": 5, "ult": 2, "uge": 3, "ule": 6, "ugt": 7, "slt": 12, "sge": 13, "sle": 14, "sgt": 15}
"""By LLVM's names. Each even one and the next are opposites."""

ARITHMETIC = {"add": b"\x01", "sub": b"\x29", "and": b"\x21", "or": b"\x09", "xor": b"\x31"}
"""The opcode for a register onto another one."""

SHIFTS = {"shl": 4, "lshr": 5, "ashr": 7}
"""What tells shifts by a number apart."""

FLOAT_SETTINGS = {"ldmxcsr": 2, "stmxcsr": 3}
"""What tells apart how the settings of floats are loaded and stored."""

WORD_BYTES = 8
_UNORDERED = 3  # the comparison that holds for NaN
_BYTE, _HALF_WORD = 1 << 7, 1 << 31
_WIDE_BYTES = 64


class VectorKind(NamedTuple):
    """What an instruction works on: 0 for floats, 1 for doubles, 2 and 3 for one of them; and `SHORT`, `LONG` or `WIDE`
    vectors of 16, 32 or 64 bytes. Wide ones have instructions of their own, which choose by masks."""

    type: int
    size: int

    @property
    def packed(self) -> VectorKind:
        """All of the vector, if this is one element."""
        return VectorKind(self.type & 1, self.size)


SHORT, LONG, WIDE = range(3)
_MASK = 1  # the register of masks that is used


@dataclass(slots=True)
class Assembler:
    """Machine code that is being written, with its places that a linker fills in: offset, how, symbol and addend.

    Memory is given by a register and a distance in bytes. Operations have 64 bits, unless they are `narrow`: 32."""

    code: bytearray = field(default_factory=bytearray)
    places: list[tuple[int, Fill, str, int]] = field(default_factory=list)

    def load(self, goal: Register, base: Register, distance: int, *, narrow: bool = False) -> None:
        self._at_memory(b"\x8b", goal, base, distance, narrow=narrow)

    def load_later(self, goal: Register, base: Register) -> int:
        """From a distance that `set_distance` will say; the offset of that place."""
        self.load(goal, base, _HALF_WORD - 1)
        return len(self.code) - 4

    def set_distance(self, place: int, distance: int) -> None:
        struct.pack_into("<i", self.code, place, distance)

    def store(self, source: Register, base: Register, distance: int, *, narrow: bool = False) -> None:
        self._at_memory(b"\x89", source, base, distance, narrow=narrow)

    def address(self, goal: Register, base: Register, distance: int) -> None:
        self._at_memory(b"\x8d", goal, base, distance)

    def move(self, goal: Register, source: Register) -> None:
        if goal != source:
            self._onto(b"\x89", goal, source)

    def move_if(self, condition: int, goal: Register, source: Register) -> None:
        self._onto(bytes([0x0F, 0x40 | condition]), source, goal)

    def number(self, goal: Register, value: int) -> None:
        if not value:
            self._onto(b"\x31", goal, goal, narrow=True)
        elif 0 < value < 2 * _HALF_WORD:
            self.code += _prefix(0, goal, narrow=True) + bytes([0xB8 | goal & 7]) + struct.pack("<I", value)
        elif -_HALF_WORD <= value < 0:
            self.code += _prefix(0, goal) + bytes([0xC7, 0xC0 | goal & 7]) + struct.pack("<i", value)
        else:
            self.code += _prefix(0, goal) + bytes([0xB8 | goal & 7]) + (value % (1 << 64)).to_bytes(8, "little")

    def arithmetic(self, opcode: str, goal: Register, other: Register) -> None:
        """By an op in `ARITHMETIC`, onto the first."""
        self._onto(ARITHMETIC[opcode], goal, other)

    def arithmetic_number(self, opcode: str, goal: Register, number: int) -> None:
        """The same with a number that `is_short`."""
        self._with_number(ARITHMETIC[opcode][0] & 0x38, goal, number)

    def multiply(self, goal: Register, other: Register) -> None:
        self._onto(b"\x0f\xaf", other, goal)

    def multiply_number(self, goal: Register, other: Register, number: int) -> None:
        """Another register and a number that `is_short`."""
        self._onto(b"\x69", other, goal)
        self.code += struct.pack("<i", number)

    def divide(self, divisor: Register) -> None:
        """What is in RAX, without a sign, by another register than RDX; RDX gets the rest."""
        self.number(Register.RDX, 0)
        self.code += _prefix(0, divisor) + bytes([0xF7, 0xF0 | divisor & 7])

    def sum_address(self, goal: Register, base: Register, index: Register, distance: int) -> None:
        """The sum of two registers, of which the second is not that of the stack, and a number."""
        far = 0x48 | (goal >> 3) << 2 | (index >> 3) << 1 | base >> 3
        self.code += bytes([far, 0x8D, 0x84 | (goal & 7) << 3, (index & 7) << 3 | base & 7])
        self.code += struct.pack("<i", distance)

    def shift(self, opcode: str, goal: Register, count: int) -> None:
        """By one of `SHIFTS`."""
        self.code += _prefix(0, goal) + bytes([0xC1, 0xC0 | SHIFTS[opcode] << 3 | goal & 7, count])

    def sign_extend(self, goal: Register, narrow: Register) -> None:
        self._onto(b"\x63", narrow, goal)

    def zero_extend(self, goal: Register, narrow: Register) -> None:
        self._onto(b"\x89", goal, narrow, narrow=True)

    def read_clock(self, goal: Register) -> None:
        """Cycles; RAX and RDX are lost."""
        self.code += b"\x0f\x31"
        self.shift("shl", Register.RDX, 32)
        self.arithmetic("or", Register.RAX, Register.RDX)
        self.move(goal, Register.RAX)

    def float_settings(self, operation: str, base: Register, distance: int) -> None:
        """Stores how floats are computed with, 32 bits, or loads that, by an op in `FLOAT_SETTINGS`."""
        self._at_memory(b"\x0f\xae", Register(FLOAT_SETTINGS[operation]), base, distance, narrow=True)

    def compare(self, one: Register, other: Register, *, narrow: bool) -> None:
        self._onto(b"\x39", one, other, narrow=narrow)

    def compare_number(self, one: Register, number: int, *, narrow: bool) -> None:
        """With a number that `is_short`."""
        self._with_number(0x38, one, number, narrow=narrow)

    def jump(self, condition: int | None = None) -> int:
        """Jumps, always or on a condition, to where `land` will say; the offset of that place."""
        self.code += b"\xe9" if condition is None else bytes([0x0F, 0x80 | condition])
        self.code += bytes(4)
        return len(self.code) - 4

    def land(self, place: int, goal: int) -> None:
        struct.pack_into("<i", self.code, place, goal - place - 4)

    def call(self, symbol: str) -> None:
        self.code += b"\xe8"
        self._place(Fill.CALL, symbol)

    def call_at(self, register: Register) -> None:
        self.code += _prefix(0, register, narrow=True) + bytes([0xFF, 0xD0 | register & 7])

    def function_address(self, goal: Register, symbol: str) -> None:
        """That of a function that may be elsewhere."""
        self._relative(b"\x8b", goal, Fill.LONG_LOAD_OF_SLOT, symbol, 0)

    def data_address(self, goal: Register, symbol: str, distance: int) -> None:
        """So many bytes behind a symbol of the object."""
        self._relative(b"\x8d", goal, Fill.RELATIVE, symbol, distance)

    def load_vector(self, goal: int, base: Register, distance: int, kind: VectorKind) -> None:
        self._vector_at_memory(0x10, goal, base, distance, kind)

    def store_vector(self, source: int, base: Register, distance: int, kind: VectorKind) -> None:
        self._vector_at_memory(0x11, source, base, distance, kind)

    def vector_arithmetic(self, opcode: str, goal: int, one: int, other: int, kind: VectorKind) -> None:
        self._on_vectors(FLOAT_ARITHMETIC[opcode], goal, one, other, kind)

    def move_vector(self, goal: int, source: int, kind: VectorKind) -> None:
        """All of a register."""
        self._on_vectors(0x28, goal, 0, source, kind.packed)

    def vector_xor(self, goal: int, one: int, other: int, kind: VectorKind) -> None:
        """Of the bits of whole vectors."""
        self._on_vectors(0x57, goal, one, other, kind.packed)

    def vector_extreme(self, opcode: str, goal: int, one: int, other: int, kind: VectorKind) -> None:
        """One of `FLOAT_EXTREMES`; the other one where they are equal, or one is NaN."""
        self._on_vectors(FLOAT_EXTREMES[opcode], goal, one, other, kind)

    def mark_signs(self, one: int, kind: VectorKind) -> None:
        """Marks elements whose sign is set, of wide vectors."""
        self.code += _on_wide_vectors(0x39, _MASK, 0, one, kind.type, prefix=2, opcodes=2)

    def mark_nans(self, one: int, kind: VectorKind) -> None:
        """The same of elements that are NaN."""
        self.code += _on_wide_vectors(0xC2, _MASK, one, one, kind.type)
        self.code.append(_UNORDERED)

    def choose_marked(self, goal: int, one: int, other: int, kind: VectorKind) -> None:
        """The other one where elements are marked, of wide vectors."""
        self.code += _on_wide_vectors(0x65, goal, one, other, kind.type, prefix=1, opcodes=2, mask=_MASK)

    def find_nans(self, goal: int, one: int, kind: VectorKind) -> None:
        """Sets the signs of elements that are NaN, of whole vectors."""
        self._on_vectors(0xC2, goal, one, one, kind.packed)
        self.code.append(_UNORDERED)

    def choose_elements(self, goal: int, one: int, other: int, signs: int, kind: VectorKind) -> None:
        """The other one where a sign is set, of whole vectors."""
        opcode = 0x4A + kind.packed.type
        self.code += _on_three_vectors(opcode, goal, one, other, VectorKind(1, kind.size), opcodes=3)
        self.code.append(signs << 4)

    def repeat_element(self, goal: int, source: int, kind: VectorKind) -> None:
        """The first element of one vector, in all places of another one, and those behind it."""
        opcode = 0x18 + kind.type
        if kind.size == WIDE:
            self.code += _on_wide_vectors(opcode, goal, 0, source, kind.type, prefix=1, opcodes=2)
        else:
            self.code += _on_three_vectors(opcode, goal, 0, source, VectorKind(1, LONG), opcodes=2)

    def vector_of_bits(self, goal: int, source: Register, *, is_double: bool) -> None:
        """A number as the first element of a vector, the others zero."""
        self.code += _on_three_vectors(0x6E, goal, 0, source, VectorKind(1, SHORT), is_wide=is_double)

    def forget_vectors(self) -> None:
        """Clears what other code would wait for: the upper halves of all vectors."""
        self.code += b"\xc5\xf8\x77"

    def push(self, register: Register) -> None:
        self.code += _prefix(0, register, narrow=True) + bytes([0x50 | register & 7])

    def pop(self, register: Register) -> None:
        self.code += _prefix(0, register, narrow=True) + bytes([0x58 | register & 7])

    def add_number(self, goal: Register, value: int) -> None:
        self._with_number(0, goal, value)

    def ret(self) -> None:
        self.code += b"\xc3"

    def append(self, other: Assembler) -> None:
        """All that another one has, whose jumps stay within it."""
        begin = len(self.code)
        self.code += other.code
        self.places += [(begin + offset, how, symbol, addend) for offset, how, symbol, addend in other.places]

    def align(self, alignment: int) -> None:
        self.code += b"\xcc" * (-len(self.code) % alignment)

    def _with_number(self, operation: int, goal: Register, number: int, *, narrow: bool = False) -> None:
        self.code += _prefix(0, goal, narrow=narrow) + bytes([0x81, 0xC0 | operation | goal & 7])
        self.code += struct.pack("<i", number)

    def _onto(self, opcode: bytes, goal: Register, other: Register, *, narrow: bool = False) -> None:
        self.code += _on_registers(opcode, goal, other, narrow)

    def _at_memory(
        self, opcode: bytes, register: Register, base: Register, distance: int, *, narrow: bool = False
    ) -> None:
        self.code += _prefix(register, base, narrow=narrow) + opcode + _memory(register, base, distance)

    def _relative(self, opcode: bytes, goal: Register, how: Fill, symbol: str, distance: int) -> None:
        self.code += _prefix(goal, 0) + opcode + bytes([(goal & 7) << 3 | 5])
        self._place(how, symbol, distance)

    def _on_vectors(self, opcode: int, goal: int, one: int, other: int, kind: VectorKind) -> None:
        if kind.size == WIDE:
            self.code += _on_wide_vectors(opcode, goal, one, other, kind.type)
        else:
            self.code += _on_three_vectors(opcode, goal, one, other, kind)

    def _vector_at_memory(self, opcode: int, vector: int, base: Register, distance: int, kind: VectorKind) -> None:
        if kind.size == WIDE:
            self.code += _prefixed_wide(opcode, vector, 0, base, kind.type, prefix=kind.type)
            self.code += _memory(vector, base, distance, unit=_WIDE_BYTES)
        else:
            self.code += _prefixed(opcode, vector, 0, base, kind)
            self.code += _memory(vector, base, distance)

    def _place(self, how: Fill, symbol: str, distance: int = 0) -> None:
        """Four bytes that say how far it is to a symbol, from behind them."""
        self.places.append((len(self.code), how, symbol, distance - 4))
        self.code += bytes(4)


def is_short(number: int) -> bool:
    """Whether instructions have it in them."""
    return -_HALF_WORD <= number < _HALF_WORD


@lru_cache(maxsize=1 << 10)
def _on_registers(opcode: bytes, goal: int, other: int, narrow: bool) -> bytes:
    return _prefix(other, goal, narrow=narrow) + opcode + bytes([0xC0 | (other & 7) << 3 | goal & 7])


@lru_cache(maxsize=1 << 12)
def _on_three_vectors(
    opcode: int, goal: int, one: int, other: int, kind: VectorKind, *, opcodes: int = 1, is_wide: bool = False
) -> bytes:
    operands = bytes([0xC0 | (goal & 7) << 3 | other & 7])
    return _prefixed(opcode, goal, one, other, kind, opcodes=opcodes, is_wide=is_wide) + operands


@lru_cache(maxsize=1 << 10)
def _prefixed(
    opcode: int, goal: int, one: int, other: int, kind: VectorKind, *, opcodes: int = 1, is_wide: bool = False
) -> bytes:
    """An opcode behind what says on how much it works, and which registers have large numbers."""
    far = (~goal >> 3 & 1) << 7 | 1 << 6 | (~other >> 3 & 1) << 5 | opcodes
    return bytes([0xC4, far, is_wide << 7 | (~one & 15) << 3 | kind.size << 2 | kind.type, opcode])


@lru_cache(maxsize=1 << 12)
def _on_wide_vectors(
    opcode: int,
    goal: int,
    one: int,
    other: int,
    is_double: int,
    *,
    prefix: int | None = None,
    opcodes: int = 1,
    mask: int = 0,
) -> bytes:
    operands = bytes([0xC0 | (goal & 7) << 3 | other & 7])
    found = is_double if prefix is None else prefix
    return _prefixed_wide(opcode, goal, one, other, is_double, prefix=found, opcodes=opcodes, mask=mask) + operands


def _prefixed_wide(
    opcode: int, goal: int, one: int, other: int, is_double: int, *, prefix: int, opcodes: int = 1, mask: int = 0
) -> bytes:
    """The same for wide vectors, of which the first 16 registers are used."""
    far = (~goal >> 3 & 1) << 7 | 1 << 6 | (~other >> 3 & 1) << 5 | 1 << 4 | opcodes
    return bytes([0x62, far, is_double << 7 | (~one & 15) << 3 | 1 << 2 | prefix, WIDE << 5 | 1 << 3 | mask, opcode])


@lru_cache(maxsize=1 << 12)
def _memory(register: int, base: int, distance: int, unit: int = 1) -> bytes:
    """What says that one operand is at a distance from a register; short ones are given in such units."""
    is_near = not distance % unit and -_BYTE <= distance // unit < _BYTE
    mode = bytes([(0x40 if is_near else 0x80) | (register & 7) << 3 | base & 7])
    place = b"\x24" if base & 7 == Register.RSP else b""
    return mode + place + (struct.pack("<b", distance // unit) if is_near else struct.pack("<i", distance))


@lru_cache(maxsize=1 << 9)
def _prefix(register: int, base: int, *, narrow: bool = False) -> bytes:
    """What says that operations have 64 bits, and that registers have large numbers; nothing if neither is so."""
    prefix = 0x40 | (0 if narrow else 8) | (register >> 3) << 2 | base >> 3
    return bytes([prefix]) if prefix != 0x40 else b""
