"""Floats as integers in the same order, for the extrema of many: processors find the larger of two integers at once,
but of two floats not as IEEE 754 has it, where a NaN is the result and -0 is less than 0.

Bits of floats that are not negative are in order as they are, and those of others the other way round, below them.
What is added then turns the circle of all integers: for maxima NaNs of both signs are the last, for minima the first.
"""

from __future__ import annotations

from xlapy.codegen.ir import I8, I16, I32, IRType, KernelBuilder, Value
from xlapy.codegen.register_transpose import concatenated
from xlapy.codegen.target import Target
from xlapy_runtime.records import Record

_FRACTION_BITS = {"f32": 23, "f64": 52}
_REGISTER_BITS = 512


def finds_integers_sooner(type: IRType, target: Target) -> bool:
    """Whether a processor compares integers in less time than floats of a type: ARM has instructions for both."""
    return target.is_x86 and (type.bits == I32.bits or target.is_avx512)


def extreme_of_numbers(k: KernelBuilder, one: Value, other: Value, *, is_maximum: bool) -> Value:
    """Of two floats, where -0 is less than 0, by one instruction (`has_range`); less than a register is filled up. Of a
    NaN and a number it is the number, which is not what a maximum is: whoever uses it looks for NaNs in another way."""
    lanes, whole = one.type.lanes, _REGISTER_BITS // one.type.bits
    if lanes == whole:
        return _extreme_of_registers(k, one, other, is_maximum=is_maximum)
    pieces = [
        _extreme_of_registers(
            k, _register_from(k, one, first, whole), _register_from(k, other, first, whole), is_maximum=is_maximum
        )
        for first in range(0, lanes, whole)
    ]
    if lanes == 1:
        return k.extract(pieces[0], 0)
    return k.shuffle(concatenated(k, pieces), None, range(lanes))


def _register_from(k: KernelBuilder, value: Value, first: int, lanes: int) -> Value:
    """A register of the lanes of `value` from one on, anything behind them."""
    if value.type.lanes == 1:
        return k.in_first_lane(value, lanes)
    numbers = range(first, first + lanes)
    return k.shuffle(value, None, [number if number < value.type.lanes else -1 for number in numbers])


def _extreme_of_registers(k: KernelBuilder, one: Value, other: Value, *, is_maximum: bool) -> Value:
    name, mask = {32: ("ps", I16), 64: ("pd", I8)}[one.type.bits]
    rule = k.const(I32, _SIGN_OF_RESULT | int(is_maximum))
    arguments = [one, other, rule, one, k.const(mask, -1), k.const(I32, _USUAL_ROUNDING)]
    return k.call_pure(f"llvm.x86.avx512.mask.range.{name}.512", arguments, one.type)


_SIGN_OF_RESULT, _USUAL_ROUNDING = 4, 4
"""What the instruction is told: to keep the sign of what it finds, and nothing about rounding."""


class FloatOrder(Record):
    """The integers for floats of `type`, of which the largest is searched, or the smallest."""

    k: KernelBuilder
    type: IRType
    is_maximum: bool

    def encode(self, x: Value) -> Value:
        return self.k.add(self._turned(self.k.to_integer_bits(x)), self._origin)

    def decode(self, place: Value) -> Value:
        bits = self._turned(self.k.sub(place, self._origin))
        return self.k.bitcast(bits, self.type.with_lanes(place.type.lanes))

    def extreme(self, one: Value, other: Value) -> Value:
        """Of two encoded floats."""
        return self.k.umax(one, other) if self.is_maximum else self.k.umin(one, other)

    def _turned(self, bits: Value) -> Value:
        """Negative numbers the other way round; twice is nothing."""
        k, highest = self.k, self.type.bits - 1
        return k.xor(bits, k.and_(k.ashr(bits, highest), (1 << highest) - 1))

    @property
    def _origin(self) -> int:
        """What makes the first of all floats in order zero, when it is added."""
        nans = (1 << _FRACTION_BITS[self.type.kind]) - 1  # of each sign
        lowest = -(1 << (self.type.bits - 1))
        return lowest - nans if self.is_maximum else lowest + nans
