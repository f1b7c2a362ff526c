"""Conversions of scalars and vectors, and the lanes of vectors, folding what is constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xlapy.codegen.ir_emitter import Emitter
from xlapy.codegen.ir_types import IRType, Number, Operand, Value, bits_to_float, float_to_bits
from xlapy_runtime.errors import InternalError


def unsigned(number: Number, bits: int) -> int:
    """The number that the bits of a signed one are without a sign."""
    return int(number) & ((1 << bits) - 1)


class Conversions(Emitter):
    """What changes the type of values, or picks lanes of them. Where a method takes a `type`, that gives the kind; the
    lanes are those of the value."""

    def _convert(self, operation: str, a: Value, type: IRType) -> Value:
        type = type.with_lanes(a.type.lanes)
        if type == a.type:
            return a
        return self._pure(type, f"{operation} {a.type.text} {a.text} to {type.text}", a)

    def trunc(self, a: Value, type: IRType) -> Value:
        """The low bits of an integer."""
        if a.constant is not None:
            return self.const(type.with_lanes(a.type.lanes), int(a.constant))
        return self._convert("trunc", a, type)

    def zext(self, a: Value, type: IRType) -> Value:
        if a.constant is not None:
            return self.const(type.with_lanes(a.type.lanes), unsigned(a.constant, a.type.bits))
        return self._convert("zext", a, type)

    def sext(self, a: Value, type: IRType) -> Value:
        if a.constant is not None:
            number = -int(a.constant) if a.type.kind == "i1" else int(a.constant)
            return self.const(type.with_lanes(a.type.lanes), number)
        return self._convert("sext", a, type)

    def fpext(self, a: Value, type: IRType) -> Value:
        if a.constant is not None and not math.isnan(a.constant):
            return self.const(type.with_lanes(a.type.lanes), a.constant)
        return self._convert("fpext", a, type)

    def fptrunc(self, a: Value, type: IRType) -> Value:
        if a.constant is not None and not math.isnan(a.constant):
            return self.const(type.with_lanes(a.type.lanes), a.constant)
        return self._convert("fptrunc", a, type)

    def half_to_float(self, a: Value) -> Value:
        """f32 of f16 bit patterns, in hardware; only where the target has the conversion (`has_f16c`)."""
        lanes = a.type.lanes
        half = "half" if lanes == 1 else f"<{lanes} x half>"
        type = a.type.with_kind("f32")
        bits = self._pure(a.type, f"bitcast {a.type.text} {a.text} to {half}", a)
        return self._pure(type, f"fpext {half} {bits.text} to {type.text}", bits)

    def float_to_half(self, a: Value) -> Value:
        """f16 bit patterns of f32, rounded to nearest even in hardware; only where `has_f16c`."""
        lanes = a.type.lanes
        half = "half" if lanes == 1 else f"<{lanes} x half>"
        type = a.type.with_kind("i16")
        rounded = self._pure(type, f"fptrunc {a.type.text} {a.text} to {half}", a)
        return self._pure(type, f"bitcast {half} {rounded.text} to {type.text}", rounded)

    def sitofp(self, a: Value, type: IRType) -> Value:
        return self._integer_to_float("sitofp", a, type, a.constant)

    def uitofp(self, a: Value, type: IRType) -> Value:
        number = None if a.constant is None else unsigned(a.constant, a.type.bits)
        return self._integer_to_float("uitofp", a, type, number)

    def _integer_to_float(self, operation: str, a: Value, type: IRType, number: Number | None) -> Value:
        if number is not None and abs(number) <= 1 << 53:
            if a.type.kind == "i1" and operation == "sitofp":
                number = -number
            return self.const(type.with_lanes(a.type.lanes), float(number))
        return self._convert(operation, a, type)

    def fptosi(self, a: Value, type: IRType) -> Value:
        """Raw: the value must be in the range of `type` and not a NaN."""
        if a.constant is not None and abs(a.constant) < 2.0 ** (type.bits - 1):
            return self.const(type.with_lanes(a.type.lanes), int(a.constant))
        return self._convert("fptosi", a, type)

    def fptoui(self, a: Value, type: IRType) -> Value:
        if a.constant is not None and 0 <= a.constant < 2.0**type.bits:
            return self.const(type.with_lanes(a.type.lanes), int(a.constant))
        return self._convert("fptoui", a, type)

    def bitcast(self, a: Value, type: IRType) -> Value:
        """The same bits as `type`, which may have other lanes if the total width is the same."""
        if type == a.type:
            return a
        same_lanes = type.lanes == a.type.lanes
        if a.constant is not None and same_lanes and type.is_float != a.type.is_float:
            if type.is_float:
                number: Number = bits_to_float(int(a.constant), type.bits)
            else:
                number = float_to_bits(a.constant, a.type.bits)
            if not math.isnan(number) and not math.isnan(a.constant):
                return self.const(type, number)
        return self._pure(type, f"bitcast {a.type.text} {a.text} to {type.text}", a)

    def to_integer_bits(self, a: Value) -> Value:
        """The encoding of a float."""
        return self.bitcast(a, a.type.integer())

    # Lanes

    def extract(self, a: Value, lane: Operand) -> Value:
        if a.constant is not None:
            return self.const(a.type.element, a.constant)
        if a.type.lanes == 1:
            return a
        index = self._as_index(lane)
        return self._pure(
            a.type.element, f"extractelement {a.type.text} {a.text}, {index.type.text} {index.text}", a, index
        )

    def insert(self, a: Value, element: Operand, lane: Operand) -> Value:
        element = self._value(element, a.type.element)
        if a.type.lanes == 1:
            return element
        index = self._as_index(lane)
        text = (
            f"insertelement {a.type.text} {a.text}, {element.type.text} {element.text}, {index.type.text} {index.text}"
        )
        return self._pure(a.type, text, a, element, index)

    def shuffle(self, a: Value, b: Value | None, lanes: Sequence[int]) -> Value:
        """The lanes `lanes` of `a` followed by `b`; -1 leaves a lane undefined."""
        type = a.type.with_lanes(len(lanes))
        if b is None and a.constant is not None:
            return self.const(type, a.constant)
        if b is None and list(lanes) == list(range(a.type.lanes)):
            return a
        if a.type.lanes == 1:
            raise InternalError(f"a shuffle of the scalar {a.text}")
        mask = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in lanes)
        if len(lanes) == 1:
            whole, lane = (a, lanes[0]) if lanes[0] < a.type.lanes or b is None else (b, lanes[0] - a.type.lanes)
            return self.extract(whole, lane)
        other = "poison" if b is None else b.text
        text = f"shufflevector {a.type.text} {a.text}, {a.type.text} {other}, <{len(lanes)} x i32> <{mask}>"
        return self._pure(type, text, *((a,) if b is None else (a, b)))

    def side_by_side(self, parts: Sequence[Value]) -> Value:
        """The lanes of all parts, of which there are as many as a power of two, of one type."""
        while len(parts) > 1:
            joined = range(2 * parts[0].type.lanes)
            parts = [self.shuffle(a, b, joined) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def horizontal(self, combine: Callable[[Value, Value], Value], value: Value) -> Value:
        """Combines all lanes into a scalar, the upper half with the lower half until one is left."""
        while value.type.lanes > 1:
            lanes = value.type.lanes
            half = lanes // 2
            low = self.shuffle(value, None, range(half))
            high = self.shuffle(value, None, range(half, 2 * half))
            rest = self.extract(value, lanes - 1) if lanes % 2 else None
            value = combine(low, high)
            if rest is not None:
                value = self.insert(value, combine(self.extract(value, 0), rest), 0)
        return value
