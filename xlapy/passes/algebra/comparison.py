"""Laws of compare, select and clamp."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.algebra.conditions import extremes, is_float, is_integral, is_pred, is_unsigned
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, z, p, low, high, direction = variables("x y z p low high direction")
EQ, NE, GE, LT = ComparisonDirection.EQ, ComparisonDirection.NE, ComparisonDirection.GE, ComparisonDirection.LT
GT = ComparisonDirection.GT
REFLEXIVE = (ComparisonDirection.EQ, ComparisonDirection.LE, ComparisonDirection.GE)


@LAWS.law(P.compare(x, x, direction=direction), when=is_integral)
def compare_self(root: Instruction, direction: ComparisonDirection) -> Value:
    """x <= x -> true; x < x -> false; not for floats, where NaN differs from itself"""
    return new.number(direction in REFLEXIVE, like=root)


@LAWS.law(
    P.compare(x, x, direction=ComparisonDirection.LT), P.compare(x, x, direction=ComparisonDirection.GT), when=is_float
)
def float_below_itself(root: Instruction) -> Value:
    """x < x -> false; x > x -> false, also for NaN"""
    return new.number(False, like=root)


@LAWS.law(P.compare(x, P.number(0), direction=NE), P.compare(x, P.number(1), direction=EQ), when=is_pred)
def compare_pred_with_false(x: Instruction) -> Value:
    """p != false -> p; p == true -> p"""
    return x


@LAWS.law(P.compare(x, P.number(0), direction=EQ), P.compare(x, P.number(1), direction=NE), when=is_pred)
def compare_pred_negated(x: Instruction) -> Value:
    """p == false -> !p; p != true -> !p"""
    return new.not_(x)


@LAWS.law(P.compare(x, P.number(0), direction=LT), P.compare(x, P.number(0), direction=GE), when=is_unsigned)
def unsigned_below_zero(root: Instruction) -> Value:
    """u < 0 -> false; u >= 0 -> true, for unsigned integers"""
    return new.number(root.attributes["direction"] is GE, like=root)


@LAWS.law(P.select(p, x, x))
def select_same(x: Instruction) -> Value:
    """select(p, x, x) -> x"""
    return x


@LAWS.law(P.select(P.number(1), x, y))
def select_true(x: Instruction) -> Value:
    """select(true, x, y) -> x"""
    return x


@LAWS.law(P.select(P.number(0), x, y))
def select_false(y: Instruction) -> Value:
    """select(false, x, y) -> y"""
    return y


@LAWS.law(P.select(P.not_(p), x, y))
def select_not(p: Instruction, x: Instruction, y: Instruction) -> Value:
    """select(!p, x, y) -> select(p, y, x)"""
    return new.select(p, y, x)


@LAWS.law(P.select(p, P.number(1), P.number(0)))
def select_itself(root: Instruction, p: Instruction) -> Value | None:
    """select(p, true, false) -> p"""
    return p if p.shape.matches(root.shape) else None


@LAWS.law(P.select(p, P.number(0), P.number(1)))
def select_negation(root: Instruction, p: Instruction) -> Value | None:
    """select(p, false, true) -> !p"""
    return new.not_(p) if p.shape.matches(root.shape) else None


@LAWS.law(P.select(p, P.select(p, x, y), z))
def select_of_taken(p: Instruction, x: Instruction, z: Instruction) -> Value:
    """select(p, select(p, x, y), z) -> select(p, x, z)"""
    return new.select(p, x, z)


@LAWS.law(P.select(p, x, P.select(p, y, z)))
def select_of_refused(p: Instruction, x: Instruction, z: Instruction) -> Value:
    """select(p, x, select(p, y, z)) -> select(p, x, z)"""
    return new.select(p, x, z)


@LAWS.law(P.clamp(x, y.where(P.clamp(x, p, z)), z))
def clamp_twice(y: Instruction) -> Value:
    """clamp(low, clamp(low, x, high), high) -> clamp(low, x, high)"""
    return y


@LAWS.law(
    *(P.compare(P.convert(p), P.number(0), direction=direction) for direction in (NE, GT)),
    P.compare(P.convert(p), P.number(1), direction=EQ),
)
def compare_of_converted_pred(p: Instruction) -> Value | None:
    """convert(p) != 0 -> p, for a pred p; convert(p) == 1 -> p"""
    return p if p.shape.type is PRED else None


@LAWS.law(P.select(p, P.number(1), P.number(0)), when=is_pred)
def select_one_or_zero(root: Instruction, p: Instruction) -> Value | None:
    """select(p, 1, 0) -> convert(p)"""
    same = p.shape.dims == root.shape.dims and not root.shape.type.is_complex
    return new.convert(p, shape=root.shape) if same and root.shape.type is not PRED else None


@LAWS.law(P.clamp(P.number(low), x, P.number(high)))
def clamp_to_everything(x: Instruction, low: Any, high: Any) -> Value | None:
    """clamp(lowest, x, highest) -> x"""
    return x if (low, high) == extremes(x.shape.type) else None
