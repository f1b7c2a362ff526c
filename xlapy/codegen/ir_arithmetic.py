"""Arithmetic on scalars and vectors, folding what is constant.

Floats are strict: no fast-math flag is ever written, and a constant is folded only when Python's result is, bit for
bit, what the machine would compute.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from xlapy.codegen.ir_conversions import Conversions, unsigned
from xlapy.codegen.ir_types import (
    I1,
    I8,
    I16,
    I32,
    I64,
    IRType,
    Number,
    Operand,
    Value,
    round_float,
    wrap_integer,
)
from xlapy_runtime.errors import InternalError


def _truncated_quotient(a: int, b: int) -> int:
    """Division rounding towards zero, as the machine does it."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


_INTEGER_FOLDS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul": lambda a, b, bits: a * b,
    "and": lambda a, b, bits: a & b,
    "or": lambda a, b, bits: a | b,
    "xor": lambda a, b, bits: a ^ b,
    "shl": lambda a, b, bits: a << b,
    "lshr": lambda a, b, bits: unsigned(a, bits) >> b,
    "ashr": lambda a, b, bits: a >> b,
    "sdiv": lambda a, b, bits: _truncated_quotient(a, b),
    "srem": lambda a, b, bits: a - b * _truncated_quotient(a, b),
    "udiv": lambda a, b, bits: unsigned(a, bits) // unsigned(b, bits),
    "urem": lambda a, b, bits: unsigned(a, bits) % unsigned(b, bits),
    "smin": lambda a, b, bits: min(a, b),
    "smax": lambda a, b, bits: max(a, b),
    "umin": lambda a, b, bits: min(unsigned(a, bits), unsigned(b, bits)),
    "umax": lambda a, b, bits: max(unsigned(a, bits), unsigned(b, bits)),
}
_FLOAT_FOLDS: dict[str, Callable[[float, float], float]] = {
    "fadd": lambda a, b: a + b,
    "fsub": lambda a, b: a - b,
    "fmul": lambda a, b: a * b,
    "fdiv": lambda a, b: a / b,
}
_REGISTER_BITS = (128, 256, 512)
"""Of registers for which there are estimates."""
_FROM_THREE_QUARTERS, _NAN_IF_NEGATIVE, _DOWN, _ROUND_AS_USUAL = 3, 8, 1, 4
"""Operands of instructions: from where on significands are, what negative numbers have, where to integers are, and by
what is rounded."""
_SPECIAL = frozenset((-1, 0, 1))
"""Operands that some operation needs no instruction for."""
_SHIFTS = frozenset(("shl", "lshr", "ashr"))
_DIVISIONS = frozenset(("sdiv", "udiv", "srem", "urem"))
_COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor"))
_LOADED = frozenset(("add", "sub", "and", "or", "xor"))
"""Operations that are one instruction, whatever their operands are, so that constants may come from memory."""
_IDENTITY = {
    "add": 0,
    "sub": 0,
    "or": 0,
    "xor": 0,
    "shl": 0,
    "lshr": 0,
    "ashr": 0,
    "and": -1,
    "mul": 1,
    "sdiv": 1,
    "udiv": 1,
}
_ABSORBING = {"mul": 0, "and": 0, "or": -1}

_SIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _is_negative_zero(number: Number) -> bool:
    """Whether a sum with the number is the other one, bit for bit."""
    return number == 0 and math.copysign(1.0, number) < 0


class Arithmetic(Conversions):
    """Operations on values. Operands are values or numbers; a scalar that meets a vector is splatted."""

    # Binary operations

    def _integer(self, operation: str, a: Operand, b: Operand) -> Value:
        return self._integers(operation, *self._pair(a, b))

    def _integers(self, operation: str, a: Value, b: Value) -> Value:
        """The same for operands of one type. Kernels work out places of elements again and again, mostly to what is
        there already."""
        if not self.joins_offsets:
            return self._new_integers(operation, a, b)
        key = (operation, a.type.text, a.text, b.text)
        made = self._made.get(key)
        if made is not None and self._is_open(made.scope):
            return made
        made = self._made[key] = self._new_integers(operation, a, b)
        return made

    def _new_integers(self, operation: str, a: Value, b: Value) -> Value:
        if a.type.is_float:
            raise InternalError(f"{operation} needs integers, not {a.type.text}")
        if a.constant is not None and b.constant is None and operation in _COMMUTATIVE:
            a, b = b, a
        if b.constant is not None:
            folded = self._fold_integer(operation, a, b)
            if folded is not None:
                return folded
            if operation in _LOADED:
                b = self._operand(b)
        elif operation in _DIVISIONS:
            return self._pinned(a.type, f"{operation} {a.type.text} {a.text}, {b.text}", a, b)
        elif a.text == b.text and operation in ("sub", "xor"):
            return self.const(a.type, 0)
        if self.joins_offsets and a.type is I64 and operation in ("add", "mul"):
            joined = self._joined(operation, a, b)
            if joined is not None:
                return joined
            if self.hoists_addresses:
                return self._term(operation, a, b)
        return self._shared(a.type, f"{operation} {a.type.text} {a.text}, {b.text}", self._scope.barrier, (a, b))

    def _joined(self, operation: str, a: Value, b: Value) -> Value | None:
        """The sum or product with what is constant in it added last; None if nothing is."""
        base, offset = self._offsets.get(a.text, (a, 0))
        if b.constant is not None:
            factor = int(b.constant)
            if operation == "add":
                return self._with_offset(base, offset + factor)
            return self._with_offset(self.mul(base, factor), offset * factor) if offset else None
        other, more = self._offsets.get(b.text, (b, 0))
        if operation == "mul" or not (offset or more):
            return None
        return self._with_offset(self.add(base, other), offset + more)

    def _with_offset(self, base: Value, offset: int) -> Value:
        """`base + offset`, remembered as such."""
        amount = self.const(I64, offset)
        if amount.constant == 0:
            return base
        moved = self._pure(I64, f"add i64 {base.text}, {amount.text}", base)
        self._offsets[moved.text] = (base, int(amount.constant or 0))
        return moved

    def _term(self, operation: str, a: Value, b: Value) -> Value:
        """A sum or product, of which it is remembered what it is made of."""
        if operation == "mul" and b.constant is not None:
            inner, factor, by = self._terms.get(a.text, ("", a, b))
            if inner == "mul":
                return self.mul(factor, int(b.constant) * int(by.constant or 0))
        found = self._shared(a.type, f"{operation} {a.type.text} {a.text}, {b.text}", self._scope.barrier, (a, b))
        if operation == "add" or b.constant is not None:
            self._terms[found.text] = (operation, a, b)
        return found

    def remainder(self, value: Value, divisor: int) -> int | None:
        """What is left of an index divided by a constant, if that is known of what the index is made of."""
        base, offset = self._offsets.get(value.text, (value, 0))
        if base.constant is not None:
            return (int(base.constant) + offset) % divisor
        operation, a, b = self._terms.get(base.text, ("", base, base))
        if operation == "mul":
            return None if int(b.constant or 0) % divisor else offset % divisor
        one, other = (self.remainder(part, divisor) if operation == "add" else None for part in (a, b))
        return None if one is None or other is None else (one + other + offset) % divisor

    def _split(self, value: Value) -> tuple[Value | None, Value]:
        """An index as the sum of what does not change in the innermost loop that it changes in, if there is anything
        to be had, and the rest: the first belongs in front of that loop, with the pointer that is moved by it."""
        if self._scope.barrier >= value.scope.depth:
            return None, value  # nothing moves out of here
        if value.text not in self._parts:
            self._parts[value.text] = self._parts_of(value)
        return self._parts[value.text] or (None, value)

    def _parts_of(self, value: Value) -> tuple[Value, Value] | None:
        """The same for what has not been taken apart yet; None if it stays as it is."""
        base, distance = self._offsets.get(value.text, (value, 0))
        if distance:
            front, rest = self._split(base)
            return None if self._stays_whole(value, base) or front is None else (front, self.add(rest, distance))
        if value.text not in self._terms:
            return None
        operation, a, b = self._terms[value.text]
        before, inside = zip(*(self._split_at(term, value.scope.depth) for term in (a, b)), strict=True)
        if self._stays_whole(value, a, b):
            return None
        if operation == "mul":
            outer, inner = (None if part is None else self.mul(part, b) for part in (before[0], inside[0]))
        else:
            outer, inner = self._sum(*before), self._sum(*inside)
        return None if outer is None or inner is None else (outer, inner)

    def _split_at(self, term: Value, depth: int) -> tuple[Value | None, Value | None]:
        """The parts of a term of what changes in a loop at this depth."""
        return self._split(term) if term.scope.depth == depth else (term, None)

    def _stays_whole(self, value: Value, *terms: Value) -> bool:
        """Whether an index stays as written: something in it that changes where it changes is opaque."""
        depth = value.scope.depth
        if any(term.text in self._whole and term.scope.depth == depth for term in terms):
            self._whole.add(value.text)
        return value.text in self._whole

    def _sum(self, part: Value | None, other: Value | None) -> Value | None:
        if part is None or other is None:
            return part or other
        return self.add(part, other)

    def _fold_integer(self, operation: str, a: Value, b: Value) -> Value | None:
        """The result if it needs no instruction; `b` is constant."""
        bits = a.type.bits
        right = int(b.constant or 0)
        if operation in _SHIFTS and not 0 <= right < bits:
            raise InternalError(f"{operation} of {a.type.text} by {right}")
        if operation in _DIVISIONS and right == 0:
            raise InternalError(f"{operation} of {a.type.text} by zero")
        if a.constant is not None:
            if operation in _DIVISIONS and right == -1 and a.constant == -1 << (bits - 1):
                return None
            return self.const(a.type, wrap_integer(_INTEGER_FOLDS[operation](int(a.constant), right, bits), bits))
        if bits > 1 and right not in _SPECIAL:
            return None
        if operation in _IDENTITY and right == wrap_integer(_IDENTITY[operation], bits):
            return a
        if operation in _ABSORBING and right == wrap_integer(_ABSORBING[operation], bits):
            return b
        return None

    def _float(self, operation: str, a: Value, b: Value) -> Value:
        if a.constant is not None and b.constant is not None and not (operation == "fdiv" and b.constant == 0):
            # Rounding a double result to float equals rounding once, for these four operations.
            result = round_float(_FLOAT_FOLDS[operation](a.constant, b.constant), a.type.bits)
            if not math.isnan(result):
                return self.const(a.type, result)
        if operation == "fadd" and b.constant is not None and _is_negative_zero(b.constant):
            return a
        if operation == "fadd" and a.constant is not None and _is_negative_zero(a.constant):
            return b
        a, b = self._beside(a, b), self._beside(b, a)
        return self._pure(a.type, f"{operation} {a.type.text} {a.text}, {b.text}", a, b)

    def opaque(self, value: Value) -> Value:
        """The same integer, of which LLVM knows no more where it comes from: what is made of it stays as written."""
        text = f'call {value.type.text} asm "", "=r,0"({value.type.text} {value.text})'
        found = self._pure(value.type, text, value)
        self._whole.add(found.text)
        return found

    def add(self, a: Operand, b: Operand) -> Value:
        a, b = self._pair(a, b)
        return self._float("fadd", a, b) if a.type.is_float else self._integers("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        a, b = self._pair(a, b)
        return self._float("fsub", a, b) if a.type.is_float else self._integers("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        a, b = self._pair(a, b)
        return self._float("fmul", a, b) if a.type.is_float else self._integers("mul", a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        """Float division."""
        a, b = self._pair(a, b)
        return self._float("fdiv", a, b)

    def sdiv(self, a: Operand, b: Operand) -> Value:
        """Raw: the caller keeps zero divisors and the overflowing quotient away."""
        return self._integer("sdiv", a, b)

    def udiv(self, a: Operand, b: Operand) -> Value:
        return self._integer("udiv", a, b)

    def srem(self, a: Operand, b: Operand) -> Value:
        return self._integer("srem", a, b)

    def urem(self, a: Operand, b: Operand) -> Value:
        return self._integer("urem", a, b)

    def and_(self, a: Operand, b: Operand) -> Value:
        return self._integer("and", a, b)

    def or_(self, a: Operand, b: Operand) -> Value:
        return self._integer("or", a, b)

    def xor(self, a: Operand, b: Operand) -> Value:
        return self._integer("xor", a, b)

    def not_(self, a: Value) -> Value:
        return self._integer("xor", a, -1)

    def shl(self, a: Operand, b: Operand) -> Value:
        """Raw, like all shifts: the amount is less than the width."""
        return self._integer("shl", a, b)

    def lshr(self, a: Operand, b: Operand) -> Value:
        return self._integer("lshr", a, b)

    def ashr(self, a: Operand, b: Operand) -> Value:
        return self._integer("ashr", a, b)

    def neg(self, a: Value) -> Value:
        if not a.type.is_float:
            return self._integer("sub", self.const(a.type, 0), a)
        if a.constant is not None and not math.isnan(a.constant):
            return self.const(a.type, -a.constant)
        return self._pure(a.type, f"fneg {a.type.text} {a.text}", a)

    def _integer_extremum(self, name: str, a: Operand, b: Operand) -> Value:
        a, b = self._pair(a, b)
        if a.constant is not None and b.constant is not None:
            return self.const(a.type, _INTEGER_FOLDS[name](int(a.constant), int(b.constant), a.type.bits))
        return a if a.text == b.text else self._intrinsic(name, a.type, a, b)

    def smin(self, a: Operand, b: Operand) -> Value:
        return self._integer_extremum("smin", a, b)

    def smax(self, a: Operand, b: Operand) -> Value:
        return self._integer_extremum("smax", a, b)

    def umin(self, a: Operand, b: Operand) -> Value:
        return self._integer_extremum("umin", a, b)

    def umax(self, a: Operand, b: Operand) -> Value:
        return self._integer_extremum("umax", a, b)

    # Comparison and choice

    def compare(self, predicate: str, a: Operand, b: Operand, *, signed: bool = True) -> Value:
        """Lanes of bits. Floats compare ordered, except that `ne` holds when either is a NaN."""
        a, b = self._pair(a, b)
        type = a.type.with_kind("i1")
        if a.constant is not None and b.constant is not None:
            left, right = a.constant, b.constant
            if not signed and not a.type.is_float:
                left, right = unsigned(left, a.type.bits), unsigned(right, b.type.bits)
            return self.const(type, int(_COMPARISONS[predicate](left, right)))
        if a.type.is_float:
            return self._pure(type, f"fcmp {_FLOAT_PREDICATES[predicate]} {a.type.text} {a.text}, {b.text}", a, b)
        names = _SIGNED_PREDICATES if signed else _UNSIGNED_PREDICATES
        return self._pure(type, f"icmp {names[predicate]} {a.type.text} {a.text}, {b.text}", a, b)

    def unordered(self, a: Operand, b: Operand) -> Value:
        """Whether either float is a NaN."""
        a, b = self._pair(a, b)
        type = a.type.with_kind("i1")
        if a.constant is not None and b.constant is not None:
            return self.const(type, int(math.isnan(a.constant) or math.isnan(b.constant)))
        return self._pure(type, f"fcmp uno {a.type.text} {a.text}, {b.text}", a, b)

    def is_nan(self, a: Value) -> Value:
        return self.unordered(a, a)

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        """`a` where `condition` holds, else `b`; a scalar condition chooses whole vectors."""
        a, b = self._pair(a, b)
        if condition.type.lanes > a.type.lanes:
            a, b = self.splat(a, condition.type.lanes), self.splat(b, condition.type.lanes)
        if condition.constant is not None:
            return a if condition.constant else b
        if a.text == b.text or self._filled.get(a.text) == (condition.text, b.text):
            return a
        if a.type.element == I1 and condition.type.lanes > 1 and not self.has_masks:
            # LLVM would select among bytes, which it packs masks for that are as wide as what was compared.
            return self.or_(self.and_(condition, a), self.and_(self.not_(condition), b))
        text = f"select {condition.type.text} {condition.text}, {a.type.text} {a.text}, {b.type.text} {b.text}"
        return self._pure(a.type, text, condition, a, b)

    def sum_of_lanes(self, value: Value) -> Value:
        """Of integers. Eight of 32 bits are folded to four first: LLVM aborts over such a sum of products with zeros
        and ones where there are masks, as it makes eight bytes of them, which no register of its choice holds."""
        if value.type.lanes == 1:
            return value
        if (value.type.lanes, value.type.bits) == (8, 32):
            value = self.add(*(self.shuffle(value, None, range(first, first + 4)) for first in (0, 4)))
        symbol = f"llvm.vector.reduce.add.{value.type.suffix}"
        self.module.declare(symbol, value.type.element, [value.type])
        return self._pure(
            value.type.element, f"call {value.type.element.text} @{symbol}({value.type.text} {value.text})", value
        )

    def any_lane(self, *masks: Value, bits: int = 0) -> Value:
        """Whether a bit is set in any lane of any mask, as a scalar. `bits` are those of what was compared, if they are
        known: where masks have no registers of their own they are as wide, and LLVM would pack those of several vectors
        before it looks at them."""
        if bits and not self.has_masks:
            integer = IRType(f"i{bits}")
            masks = tuple(self.sext(mask, integer) for mask in masks)
        mask = functools.reduce(self.or_, masks)
        type = mask.type.element
        if mask.type.lanes == 1 or mask.constant is not None:
            found = self.extract(mask, 0)
        else:
            symbol = f"llvm.vector.reduce.or.{mask.type.suffix}"
            self.module.declare(symbol, type, [mask.type])
            found = self._pure(type, f"call {type.text} @{symbol}({mask.type.text} {mask.text})", mask)
        return found if type == I1 else self.compare("ne", found, 0)

    def any_below(self, x: Value, bound: float) -> Value:
        """Whether a lane is less than `bound`, as a scalar: the least ones of all registers are compared. A NaN may
        count as one that is."""
        lanes = math.gcd(x.type.lanes, _REGISTER_BITS[-1] // x.type.bits)
        parts = [self._register_of(x, first, lanes) for first in range(0, x.type.lanes, lanes)] if lanes > 1 else [x]
        least = functools.reduce(lambda least, part: self.lesser(part, least), parts)  # a NaN is none, or stays
        return self.any_lane(self.not_(self.compare("ge", least, bound)), bits=x.type.bits)

    def lesser(self, a: Operand, b: Operand) -> Value:
        """`a < b ? a : b`, one instruction on x86: `b` if either is a NaN or both are zeros."""
        a, b = self._pair(a, b)
        return self.select(self.compare("lt", a, b), a, b)

    def greater(self, a: Operand, b: Operand) -> Value:
        """`a > b ? a : b`: `b` if either is a NaN or both are zeros."""
        a, b = self._pair(a, b)
        return self.select(self.compare("gt", a, b), a, b)

    def minimum(self, a: Operand, b: Operand) -> Value:
        """The lesser as IEEE 754 has it since 2019: a NaN if either is one, and -0 is less than +0. Beside a number
        that is known, other than zero, it is one instruction on x86, and five else."""
        a, b = map(self._spelled_out, self._pair(a, b))
        return self._intrinsic("minimum", a.type, a, b)

    def maximum(self, a: Operand, b: Operand) -> Value:
        a, b = map(self._spelled_out, self._pair(a, b))
        return self._intrinsic("maximum", a.type, a, b)

    # Float functions that are one instruction, or nearly

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c rounded once, on every target: one call of libm per lane where `has_fma` is false."""
        a, b = self._pair(a, b)
        b, c = self._pair(b, c)
        a, c = self._value(a, b.type), self._value(c, b.type)
        a, b, c = self._beside(a, b, c), self._beside(b, a, c), self._beside(c, a, b)
        return self._intrinsic("fma", a.type, b, a, c)

    def muladd(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c the quick way: fused if the target can, else rounded twice."""
        return self.fma(a, b, c) if self.has_fma else self.add(self.mul(a, b), c)

    def sqrt(self, a: Value) -> Value:
        if a.constant is not None and a.constant >= 0:
            return self.const(a.type, round_float(math.sqrt(a.constant), a.type.bits))
        return self._intrinsic("sqrt", a.type, a)

    def fabs(self, a: Value) -> Value:
        if self.is_quick and a.type.lanes > 1:
            return self.bitcast(self._without_sign(a), a.type)
        return self._intrinsic("fabs", a.type, a)

    def floor(self, a: Value) -> Value:
        return self._intrinsic("floor", a.type, a)

    def ceil(self, a: Value) -> Value:
        return self._intrinsic("ceil", a.type, a)

    def truncate(self, a: Value) -> Value:
        """Rounds a float to an integral value, towards zero (`trunc` is the integer conversion)."""
        return self._intrinsic("trunc", a.type, a)

    def roundeven(self, a: Value) -> Value:
        return self._intrinsic("roundeven", a.type, a)

    def scalef(self, x: Value, n: Value, kept: Value | None = None) -> Value:
        """x * 2^floor(n), rounded once; only where the target has an instruction for it (`has_scalef`). Zero but in the
        lanes that are `kept`, if these are given, which takes no instruction more."""

        def operands(part: Value, exponent: Value, *kept: Value) -> Sequence[Value]:
            masked = self._unmasked(part)
            return part, exponent, masked[0], self.bitcast(kept[0], masked[1].type) if kept else masked[1], masked[2]

        values = (x, n) if kept is None else (x, n, kept)
        return self._of_registers("mask.scalef", values, operands, _REGISTER_BITS[-1])

    def inverse_estimate(self, x: Value) -> Value:
        """1 / x with an error below 2^-14 of it, and what that is for zeros and infinities; only where the target
        `has_estimates`."""
        return self._estimate("rcp14", x)

    def inverse_root_estimate(self, x: Value) -> Value:
        """The same of 1 / sqrt(x)."""
        return self._estimate("rsqrt14", x)

    def _estimate(self, name: str, x: Value) -> Value:
        """What an instruction finds for each register of 16, 32 or 64 bytes."""
        wanted = x.type.lanes * x.type.bits
        size = next((size for size in _REGISTER_BITS if size >= wanted), _REGISTER_BITS[-1])
        return self._of_registers(name, (x,), lambda part: (part, *self._unmasked(part)[:2]), size)

    def significand(self, x: Value) -> Value:
        """x / 2^n for the n that makes it at least 3/4 and less than 3/2: 1 of zeros and of infinity, NaN of what is
        negative. Only where the target `has_permute`."""
        return self._told("mask.getmant", x, _FROM_THREE_QUARTERS | _NAN_IF_NEGATIVE)

    def exponent(self, x: Value) -> Value:
        """The logarithm of |x| to base 2, rounded down: an infinity of zeros and infinities. Only where the target
        `has_permute`."""
        operands = self._unmasked
        return self._of_registers("mask.getexp", (x,), lambda part: (part, *operands(part)), _REGISTER_BITS[-1])

    def fraction(self, x: Value) -> Value:
        """x - floor(x), and 0 of infinities; only where the target `has_permute`."""
        return self._told("mask.reduce", x, _DOWN)

    def pair_products(self, total: Value, a: Value, b: Value) -> Value:
        """`total` and the products of both halves of each number, which have signs: of registers filled with integers
        of 32 bits, where the module `has_pair_products`."""
        symbol, type = f"llvm.x86.avx512.vpdpwssd.{_REGISTER_BITS[-1]}", I32.with_lanes(_REGISTER_BITS[-1] // I32.bits)
        self.module.declare(symbol, type, [type, type, type])
        parts = []
        for first in range(0, total.type.lanes, type.lanes):
            given = [self._register_of(value, first, type.lanes) for value in (total, a, b)]
            text = ", ".join(f"{type.text} {operand.text}" for operand in given)
            parts.append(self._pure(type, f"call {type.text} @{symbol}({text})", *given))
        return self.side_by_side(parts)

    def _told(self, name: str, x: Value, how: int) -> Value:
        """What an instruction for whole registers that is told something gives."""
        told = self.const(I32, how)
        return self._of_registers(name, (x,), lambda part: (part, told, *self._unmasked(part)), _REGISTER_BITS[-1])

    def _unmasked(self, part: Value) -> tuple[Value, Value, Value]:
        """What instructions for registers take for lanes that are left out, which are not, and how to round."""
        mask = I16 if part.type.lanes == 16 else I8
        return self.const(part.type, 0.0), self.const(mask, -1), self.const(I32, _ROUND_AS_USUAL)

    def _of_registers(
        self, name: str, values: Sequence[Value], operands: Callable[..., Sequence[Value]], size: int
    ) -> Value:
        """What an instruction of AVX-512, with the operands that are made of parts of `values`, gives for each register
        of `size` bits."""
        lanes, bits = values[0].type.lanes, values[0].type.bits
        type = values[0].type.with_lanes(size // bits)
        symbol = f"llvm.x86.avx512.{name}.{'ps' if bits == 32 else 'pd'}.{size}"
        parts = []
        for first in range(0, lanes, type.lanes):
            given = operands(*(self._register_of(value, first, type.lanes) for value in values))
            self.module.declare(symbol, type, [operand.type for operand in given])
            text = ", ".join(f"{operand.type.text} {operand.text}" for operand in given)
            parts.append(self._pure(type, f"call {type.text} @{symbol}({text})", *given))
        if lanes == 1:
            return self.extract(parts[0], 0)
        parts += [parts[0]] * (-len(parts) % (1 << (len(parts) - 1).bit_length()))
        return self.shuffle(self.side_by_side(parts), None, range(lanes))

    def _register_of(self, x: Value, first: int, lanes: int) -> Value:
        """So many lanes of `x` from one on, anything behind them."""
        if x.type.lanes == 1:
            return self.in_first_lane(x, lanes)
        numbers = range(first, first + lanes)
        return self.shuffle(x, None, [number if number < x.type.lanes else -1 for number in numbers])

    def copysign(self, magnitude: Operand, sign: Operand) -> Value:
        magnitude, sign = self._pair(magnitude, sign)
        if self.is_quick and magnitude.type.lanes > 1:
            bits = self.to_integer_bits(sign)
            signs = self.and_(bits, -1 << (bits.type.bits - 1))
            return self.bitcast(self.or_(self._without_sign(magnitude), signs), magnitude.type)
        return self._intrinsic("copysign", magnitude.type, magnitude, sign)

    def _without_sign(self, a: Value) -> Value:
        """The encoding of a magnitude. LLVM would make the mask anew for each."""
        bits = self.to_integer_bits(a)
        return self.and_(bits, (1 << (bits.type.bits - 1)) - 1)

    # Bits

    def ctlz(self, a: Value) -> Value:
        """Leading zero bits; all of them for zero."""
        return self._intrinsic("ctlz", a.type, a, self.const(I1, 0))

    def ctpop(self, a: Value) -> Value:
        if a.constant is not None:
            return self.const(a.type, unsigned(a.constant, a.type.bits).bit_count())
        return self._intrinsic("ctpop", a.type, a)
