"""Laws of compare, select and clamp."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.passes import new
from xlapy.passes.algebra.conditions import extremes, is_float, is_integral, is_pred, is_unsigned
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, z, p, low, high, direction, limit = variables("x y z p low high direction limit")
EQ, NE, GE, LT = ComparisonDirection.EQ, ComparisonDirection.NE, ComparisonDirection.GE, ComparisonDirection.LT
GT, LE = ComparisonDirection.GT, ComparisonDirection.LE
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


LIMITERS = {GT: "maximum", LE: "maximum", LT: "minimum", GE: "minimum"}
"""The op that brings numbers to one side of a limit, by the comparisons with the limit that it does not change."""


@LAWS.law(P.compare(x, P.number(limit), direction=direction))
def compare_what_is_limited(
    root: Instruction, x: Instruction, limit: Any, direction: ComparisonDirection
) -> Value | None:
    """x > c -> max(x, c) > c, where max(x, c) is needed anyway, and x is for nothing else; same for min

    The gradient of a ReLU asks for the sign of what the ReLU has read. What it has made tells as much, and then what it
    has read need not be stored: the ReLU becomes part of the product that makes it.
    """
    if direction not in LIMITERS or root.attributes["type"] is ComparisonType.TOTALORDER:
        return None
    limiters = [user for user in x.users if _limits(user, x, limit, LIMITERS[direction])]
    others = [
        user for user in x.users if user not in limiters and not _is_compared(user, x, limit, LIMITERS[direction])
    ]
    if len(limiters) != 1 or others or x.is_root or x.opcode == "parameter":
        return None
    return new.compare(limiters[0], root.operands[1], direction=direction, type=root.attributes["type"])


def _limits(user: Instruction, x: Instruction, limit: Any, opcode: str) -> bool:
    return user.opcode == opcode and any(
        side is x and number_of(other) == limit for side, other in (user.operands, user.operands[::-1])
    )


def _is_compared(user: Instruction, x: Instruction, limit: Any, opcode: str) -> bool:
    """A comparison with the limit that may as well be one of what is limited."""
    return (
        user.opcode == "compare"
        and user.operands[0] is x
        and number_of(user.operands[1]) == limit
        and LIMITERS.get(user.attributes["direction"]) == opcode
        and user.attributes["type"] is not ComparisonType.TOTALORDER
    )


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
