"""Instructions of x86-64, and the object file that they are put into."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum

from xlapy_runtime.elf import Fill


class Register(IntEnum):
    """The registers of 64 bits, by number."""

    RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 = range(16)


ARGUMENTS = (Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9)
"""Of a call, in order; others are on the stack."""

KEPT = (Register.RBX, Register.RBP, Register.R12, Register.R13, Register.R14, Register.R15)
"""Those that a function leaves to its caller as they were."""

CONDITIONS = {"eq": 4, "ne": 5, "ult": 2, "uge": 3, "ule": 6, "ugt": 7, "slt": 12, "sge": 13, "sle": 14, "sgt": 15}
"""By LLVM's names. Each even one and the next are opposites."""

ARITHMETIC = {"add": b"\x01", "sub": b"\x29", "and": b"\x21", "or": b"\x09", "xor": b"\x31"}
"""The opcode for a register onto another one."""

SHIFTS = {"shl": 4, "lshr": 5, "ashr": 7}
"""What tells shifts by a number apart."""

WORD_BYTES = 8
_BYTE, _HALF_WORD = 1 << 7, 1 << 31


@dataclass(slots=True)
class Assembler:
    """Machine code that is being written, with its places that a linker fills in: offset, how, symbol and addend.

    Memory is given by a register and a distance in bytes. Operations have 64 bits, unless they are `narrow`: 32."""

    code: bytearray = field(default_factory=bytearray)
    places: list[tuple[int, Fill, str, int]] = field(default_factory=list)

    def load(self, goal: Register, base: Register, distance: int, *, narrow: bool = False) -> None:
        self._at_memory(b"\x8b", goal, base, distance, narrow=narrow)

    def store(self, source: Register, base: Register, distance: int, *, narrow: bool = False) -> None:
        self._at_memory(b"\x89", source, base, distance, narrow=narrow)

    def address(self, goal: Register, base: Register, distance: int) -> None:
        self._at_memory(b"\x8d", goal, base, distance)

    def move(self, goal: Register, source: Register) -> None:
        if goal != source:
            self._onto(b"\x89", goal, source)

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

    def multiply(self, goal: Register, other: Register) -> None:
        self._onto(b"\x0f\xaf", other, goal)

    def divide(self, by: Register, *, signed: bool) -> None:
        """What is in RAX, into it; RDX is lost."""
        self.code += b"\x48\x99" if signed else b"\x31\xd2"
        self.code += _prefix(0, by) + bytes([0xF7, (0xF8 if signed else 0xF0) | by & 7])

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

    def compare(self, one: Register, other: Register, *, narrow: bool) -> None:
        self._onto(b"\x39", one, other, narrow=narrow)

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

    def push(self, register: Register) -> None:
        self.code += _prefix(0, register, narrow=True) + bytes([0x50 | register & 7])

    def pop(self, register: Register) -> None:
        self.code += _prefix(0, register, narrow=True) + bytes([0x58 | register & 7])

    def add_number(self, goal: Register, value: int) -> None:
        self.code += _prefix(0, goal) + bytes([0x81, 0xC0 | goal & 7]) + struct.pack("<i", value)

    def ret(self) -> None:
        self.code += b"\xc3"

    def append(self, other: Assembler) -> None:
        """All that another one has, whose jumps stay within it."""
        begin = len(self.code)
        self.code += other.code
        self.places += [(begin + offset, how, symbol, addend) for offset, how, symbol, addend in other.places]

    def align(self, alignment: int) -> None:
        self.code += b"\xcc" * (-len(self.code) % alignment)

    def _onto(self, opcode: bytes, goal: Register, other: Register, *, narrow: bool = False) -> None:
        self.code += _prefix(other, goal, narrow=narrow) + opcode + bytes([0xC0 | (other & 7) << 3 | goal & 7])

    def _at_memory(
        self, opcode: bytes, register: Register, base: Register, distance: int, *, narrow: bool = False
    ) -> None:
        is_near = -_BYTE <= distance < _BYTE
        mode = (0x40 if is_near else 0x80) | (register & 7) << 3 | base & 7
        self.code += _prefix(register, base, narrow=narrow) + opcode + bytes([mode])
        if base & 7 == Register.RSP:
            self.code += b"\x24"
        self.code += struct.pack("<b" if is_near else "<i", distance)

    def _relative(self, opcode: bytes, goal: Register, how: Fill, symbol: str, distance: int) -> None:
        self.code += _prefix(goal, 0) + opcode + bytes([(goal & 7) << 3 | 5])
        self._place(how, symbol, distance)

    def _place(self, how: Fill, symbol: str, distance: int = 0) -> None:
        """Four bytes that say how far it is to a symbol, from behind them."""
        self.places.append((len(self.code), how, symbol, distance - 4))
        self.code += bytes(4)


def _prefix(register: int, base: int, *, narrow: bool = False) -> bytes:
    """What says that operations have 64 bits, and that registers have large numbers; nothing if neither is so."""
    prefix = 0x40 | (0 if narrow else 8) | (register >> 3) << 2 | base >> 3
    return bytes([prefix]) if prefix != 0x40 else b""
