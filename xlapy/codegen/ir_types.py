"""Types, values and constants of the LLVM IR that codegen writes as text.

A `Value` is what an emitter passes around: a type and the text that names it. Constants are known as Python numbers,
so that the builder can fold them, and every value knows the scope that defined it, so that it can be hoisted.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from xlapy_runtime.errors import InternalError

_NAMES = {
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "f32": "float",
    "f64": "double",
    "ptr": "ptr",
}
_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f32": 32, "f64": 64, "ptr": 64}

Number = int | float


@dataclass(frozen=True, slots=True)
class IRType:
    """An element kind and a number of lanes; one lane means a scalar.

    f16 and bf16 have no kind of their own: they are stored as i16 and converted to f32 before anything is computed.
    """

    kind: str
    lanes: int = 1
    text: str = field(init=False, repr=False, compare=False)
    bits: int = field(init=False, repr=False, compare=False)
    is_float: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in _NAMES or self.lanes < 1:
            raise InternalError(f"no IR type has kind {self.kind!r} and {self.lanes} lanes")
        name = _NAMES[self.kind]
        object.__setattr__(self, "text", name if self.lanes == 1 else f"<{self.lanes} x {name}>")
        object.__setattr__(self, "bits", _BITS[self.kind])
        object.__setattr__(self, "is_float", self.kind in ("f32", "f64"))

    @property
    def element(self) -> IRType:
        """The scalar type of one lane."""
        return self.with_lanes(1)

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return max(1, self.bits // 8)

    @property
    def suffix(self) -> str:
        """How intrinsics spell the type: `v8f32`, `i64`, `p0`."""
        kind = "p0" if self.kind == "ptr" else self.kind
        return kind if self.lanes == 1 else f"v{self.lanes}{kind}"

    def with_lanes(self, lanes: int) -> IRType:
        return self if lanes == self.lanes else _interned(self.kind, lanes)

    def with_kind(self, kind: str) -> IRType:
        return self if kind == self.kind else _interned(kind, self.lanes)

    def integer(self) -> IRType:
        """The integer type of the same width, lane by lane."""
        return self.with_kind(f"i{self.bits}")


@cache
def _interned(kind: str, lanes: int) -> IRType:
    """One object per type, so that operands are mostly compared by identity."""
    return IRType(kind, lanes)


I1 = _interned("i1", 1)
I8 = _interned("i8", 1)
I16 = _interned("i16", 1)
I32 = _interned("i32", 1)
I64 = _interned("i64", 1)
F32 = _interned("f32", 1)
F64 = _interned("f64", 1)
PTR = _interned("ptr", 1)


class Scope:
    """A stretch of structured code: a function body, a loop body or one arm of a branch.

    `lines` is where the next instruction of this scope goes. While a nested loop is open, that is the loop's preheader.
    `multiples` are the index of a counted loop, by 1, and multiples of it that grow with it; `runs` is how often its
    body runs, if that is known.
    """

    __slots__ = ("barrier", "depth", "lines", "multiples", "runs", "shared")

    def __init__(self, depth: int, barrier: int, lines: list[str]) -> None:
        self.depth = depth
        self.barrier = barrier
        self.lines = lines
        self.multiples: dict[int, Value] = {}
        self.runs: int | None = None
        self.shared: dict[str, Value] = {}


class Range(Flag):
    """What a value is known to be, if it is a number."""

    ANY = 0
    NEVER_NEGATIVE = auto()
    NEVER_POSITIVE = auto()
    AT_MOST_ONE = auto()
    NEVER_TINY = auto()
    """Zero, or far from subnormal."""
    NEVER_FAR_BELOW = auto()
    """Not so far below zero that a power with it as exponent is subnormal."""
    BYTE = auto()
    """An integer of 8 bits."""


class Value(NamedTuple):
    """An SSA value or a literal; `constant` is the number when it is a known scalar or a splat of one."""

    type: IRType
    text: str
    constant: Number | None
    scope: Scope

    def __hash__(self) -> int:
        """The name tells values apart."""
        return hash(self.text)


Operand = Value | int | float


def wrap_integer(number: int, bits: int) -> int:
    """`number` modulo 2**bits as the signed value that codegen keeps; a bit is 0 or 1."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if bits > 1 and number >> (bits - 1) else number


def round_float(number: float, bits: int) -> float:
    """The float of `bits` bits nearest to `number`; beyond the largest it is an infinity."""
    if bits == 64:
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


QUIET_NAN_BITS = {32: 0x7FC00000, 64: 0x7FF8000000000000}
"""Of the positive one, by the bits of a float. What is added in the low bits stays a NaN."""


def float_to_bits(number: float, bits: int) -> int:
    """The IEEE encoding as a signed integer."""
    return int(struct.unpack("<i" if bits == 32 else "<q", struct.pack("<f" if bits == 32 else "<d", number))[0])


def bits_to_float(number: int, bits: int) -> float:
    """The inverse of `float_to_bits`, for a signed integer."""
    return float(struct.unpack("<f" if bits == 32 else "<d", struct.pack("<i" if bits == 32 else "<q", number))[0])


def scalar_literal(kind: str, number: Number) -> str:
    """LLVM's spelling of one constant element; floats are exact (hexadecimal doubles, whatever their type)."""
    if kind == "ptr":
        return "null"
    if kind == "i1":
        return "true" if number else "false"
    if kind in ("f32", "f64"):
        return f"0x{float_to_bits(number, 64) & 0xFFFFFFFFFFFFFFFF:016X}"
    return str(number)


def scalar_literals(type: IRType, numbers: Sequence[Number]) -> Iterable[str]:
    """LLVM's spelling of constant elements, each as the type holds it. Most are words of tables for libraries, which
    hold integers as they are, unless one is too long."""
    are_integers = type.kind == "i64" and {*map(_class_of, numbers)} == {int}
    if are_integers and min(numbers) >= -_HALF_OF_WORDS and max(numbers) < _HALF_OF_WORDS:
        return map(str, numbers)
    return (scalar_literal(type.kind, canonical(type, number)) for number in numbers)


_class_of = attrgetter("__class__")
_HALF_OF_WORDS = 1 << 63


def literal(type: IRType, number: Number) -> str:
    """A scalar constant, or a splat of it when `type` is a vector; `number` is already in the range of the type."""
    text = scalar_literal(type.kind, number)
    if type.lanes == 1:
        return text
    return "zeroinitializer" if text in ("0", "false", "null") else f"splat ({_NAMES[type.kind]} {text})"


def vector_literal(type: IRType, numbers: Sequence[Number]) -> str:
    """A constant vector, lane by lane."""
    name = _NAMES[type.kind]
    return "<" + ", ".join(f"{name} {scalar_literal(type.kind, number)}" for number in numbers) + ">"


def canonical(type: IRType, number: Number) -> Number:
    """`number` as an element of `type` holds it: wrapped if an integer, rounded once if a float."""
    if type.is_float:
        return round_float(float(number), type.bits)
    if isinstance(number, float):
        raise InternalError(f"{number} is not an integer constant of type {type.text}")
    return wrap_integer(int(number), type.bits)
