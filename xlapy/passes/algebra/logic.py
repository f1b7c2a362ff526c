"""Laws of logical and bitwise operations, and of shifts."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, c, direction, type = variables("x y c direction type")


@LAWS.law(P.not_(P.not_(x)))
def not_twice(x: Instruction) -> Value:
    """~~x -> x"""
    return x


@LAWS.law(P.and_(x, x), P.or_(x, x))
def idempotent(x: Instruction) -> Value:
    """x & x -> x; x | x -> x"""
    return x


@LAWS.law(P.xor(x, x))
def xor_self(root: Instruction) -> Value:
    """x ^ x -> 0"""
    return new.number(0, like=root)


@LAWS.law(P.or_(x, P.number(0)), P.xor(x, P.number(0)))
def or_zero(x: Instruction) -> Value:
    """x | 0 -> x; x ^ 0 -> x"""
    return x


@LAWS.law(P.and_(x, P.number(0)))
def and_zero(root: Instruction) -> Value:
    """x & 0 -> 0"""
    return new.number(0, like=root)


@LAWS.law(P.and_(x, P.number(c)))
def and_ones(x: Instruction, c: Any) -> Value | None:
    """x & ~0 -> x"""
    return x if _is_all_ones(x, c) else None


@LAWS.law(P.or_(x, y.where(P.number(c))))
def or_ones(x: Instruction, y: Instruction, c: Any) -> Value | None:
    """x | ~0 -> ~0"""
    return y if _is_all_ones(x, c) else None


def _is_all_ones(x: Instruction, value: Any) -> bool:
    """`value` has every bit set in the element type of `x`."""
    element_type = x.shape.type
    ones = -1 if element_type.is_signed else (1 << element_type.bits) - 1
    return int(value) == ones


@LAWS.law(P.shift_left(x, P.number(0)), P.shift_right_logical(x, P.number(0)), P.shift_right_arithmetic(x, P.number(0)))
def shift_by_zero(x: Instruction) -> Value:
    """x << 0 -> x; x >> 0 -> x"""
    return x


@LAWS.law(P.not_(P.only(P.compare(x, y, direction=direction, type=type))))
def not_of_comparison(
    root: Instruction, x: Instruction, y: Instruction, direction: ComparisonDirection, type: ComparisonType | None
) -> Value | None:
    """!(x < y) -> x >= y, in a total order; for floats only !(x == y) -> x != y, and back: nothing orders NaN"""
    equality = direction in (ComparisonDirection.EQ, ComparisonDirection.NE)
    ordered = not (x.shape.type.is_float or x.shape.type.is_complex) or type is ComparisonType.TOTALORDER
    if not (equality or ordered):
        return None
    return new.compare(x, y, direction=direction.inverted(), type=type)


@LAWS.law(P.and_(x, P.or_(x, y)), P.or_(x, P.and_(x, y)))
def absorb(x: Instruction) -> Value:
    """x & (x | y) -> x; x | (x & y) -> x"""
    return x


@LAWS.law(P.and_(x, P.not_(x)))
def and_with_own_negation(root: Instruction) -> Value:
    """x & ~x -> 0"""
    return new.number(0, like=root)


@LAWS.law(P.xor(P.xor(x, y), y))
def xor_twice(x: Instruction) -> Value:
    """(x ^ y) ^ y -> x"""
    return x


@LAWS.law(
    P.and_(P.and_(x, c.where(P.any_number)), y.where(P.any_number)),
    P.or_(P.or_(x, c.where(P.any_number)), y.where(P.any_number)),
    P.xor(P.xor(x, c.where(P.any_number)), y.where(P.any_number)),
)
def merge_masks(root: Instruction, x: Instruction, c: Instruction, y: Instruction) -> Value | None:
    """(x & c) & d -> x & (c & d), for constants c and d; and so for | and ^"""
    return new.op(root.opcode, [x, new.op(root.opcode, [c, y])]) if number_of(x) is None else None
