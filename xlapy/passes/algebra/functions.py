"""Laws of powers, exponentials and roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.algebra.conditions import is_float, is_narrow_float, is_wide_float
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness

x, y, c = variables("x y c")

LEAST_EXPONENT = -60
"""From which on e^x is no subnormal; below, one and it are one."""


@LAWS.law(P.power(x, P.number(1)), when=is_float)
def power_one(x: Instruction) -> Value:
    """x ^ 1 -> x"""
    return x


@LAWS.law(P.power(x, P.number(0)), when=is_float)
def power_zero(root: Instruction) -> Value:
    """x ^ 0 -> 1, also for NaN"""
    return new.number(1, like=root)


@LAWS.law(P.power(x, P.number(2)), when=is_float, exactness=Exactness.FREE)
def power_two(x: Instruction) -> Value:
    """x ^ 2 -> x * x, which is rounded correctly"""
    return new.multiply(x, x)


@LAWS.law(P.power(x, P.number(c)), when=is_float, exactness=Exactness.FREE)
def power_of_small_integer(root: Instruction, x: Instruction, c: Any) -> Value | None:
    """x ^ 3 -> x * x * x; x ^ 4 -> (x * x) * (x * x); x ^ -1 -> 1 / x: within the error bound of power

    Narrow floats would be rounded after each product."""
    if c == -1:
        return new.divide(new.number(1, like=root), x)
    if root.shape.type.is_narrow_float or c not in (3, 4):
        return None
    square = new.multiply(x, x)
    return new.multiply(square, x if c == 3 else square)


@LAWS.law(P.power(x, P.number(0.5)), when=is_float, exactness=Exactness.APPROXIMATE)
def power_one_half(x: Instruction) -> Value:
    """x ^ 0.5 -> sqrt(x), but for -inf"""
    return new.sqrt(x)


@LAWS.law(P.power(x, P.number(1.5)), when=is_wide_float, exactness=Exactness.FREE)
def power_three_halves(root: Instruction, x: Instruction) -> Value:
    """x ^ 1.5 -> x * sqrt(x), within the error bound of power; infinity for -inf

    Narrow floats would be rounded twice."""
    is_lowest = new.compare(x, new.number(-np.inf, like=x), direction=ComparisonDirection.EQ)
    return new.select(is_lowest, new.number(np.inf, like=root), new.multiply(x, new.sqrt(x)))


@LAWS.law(
    P.divide(P.number(1), P.only(P.add(P.number(1), P.only(P.exponential(P.only(P.negate(x))))))),
    when=is_narrow_float,
    exactness=Exactness.FREE,
)
def logistic_of_narrow(x: Instruction) -> Value:
    """1 / (1 + exp(-x)) -> logistic(x), for narrow floats: rounded once instead of three times

    Of others the function is no quicker, since it errs less."""
    return new.logistic(x)


@LAWS.law(P.add(P.number(1), P.only(P.tanh(x))), when=is_wide_float, exactness=Exactness.FREE)
def one_and_tanh(root: Instruction, x: Instruction) -> Value:
    """1 + tanh(x) -> 2 / (1 + exp(-2 x)), within 2.5 ulp, where for negative x the sum has no right digit soon

    Infinities and NaN stay what they are. Narrow floats would be rounded more often. Powers that are nothing beside the
    one are kept from being subnormal, which some processors take long for."""
    exponent = new.multiply(new.number(-2, like=x), x)
    least = new.number(LEAST_EXPONENT, like=x)
    above = new.exponential(new.maximum(least, exponent))
    return new.divide(new.number(2, like=root), new.add(new.number(1, like=root), above))


_ERF_BESIDE_ONE = P.add(P.number(1), P.only(P.erf(x)))


@LAWS.law(
    P.select(
        c,
        P.only(_ERF_BESIDE_ONE),
        P.only(
            P.select(
                P.compare(x, P.number(0), direction=ComparisonDirection.GT),
                P.only(P.subtract(P.number(2), y.where(P.erfc(P.abs(x))))),
                y,
            )
        ),
    ),
    exactness=Exactness.FREE,
)
def normal_distribution(root: Instruction, x: Instruction) -> Value | None:
    """1 + erf(x) near zero, 2 - erfc(|x|) or erfc(|x|) elsewhere -> erfc(-x), wherever one meets the other

    All of them are the same function, each without loss of digits only where it is chosen; erfc has them everywhere.
    Narrow floats would be rounded less often."""
    return None if root.shape.type.is_narrow_float else new.erfc(new.negate(x))


@LAWS.law(P.log(P.exponential(x)), when=is_float, exactness=Exactness.APPROXIMATE)
def log_of_exponential(x: Instruction) -> Value:
    """log(exp(x)) -> x, but where exp overflows or vanishes"""
    return x


@LAWS.law(P.multiply(P.exponential(x), P.exponential(y)), when=is_float, exactness=Exactness.APPROXIMATE)
def product_of_exponentials(x: Instruction, y: Instruction) -> Value:
    """exp(x) * exp(y) -> exp(x + y)"""
    return new.exponential(new.add(x, y))


@LAWS.law(P.divide(x, P.only(P.exponential(y))), when=is_float, exactness=Exactness.APPROXIMATE)
def divide_by_exponential(x: Instruction, y: Instruction) -> Value:
    """x / exp(y) -> x * exp(-y)"""
    return new.multiply(x, new.exponential(new.negate(y)))


@LAWS.law(P.divide(x, P.only(P.sqrt(y))), when=is_float, exactness=Exactness.APPROXIMATE)
def divide_by_root(x: Instruction, y: Instruction) -> Value:
    """x / sqrt(y) -> x * rsqrt(y)"""
    return new.multiply(x, new.rsqrt(y))


@LAWS.law(
    *(P.exponential(P.number(0)), P.cosine(P.number(0)), P.sine(P.number(0)), P.tanh(P.number(0))),
    *(P.log(P.number(1)), P.log_plus_one(P.number(0)), P.exponential_minus_one(P.number(0)), P.logistic(P.number(0))),
    when=is_float,
)
def function_at_known_place(root: Instruction) -> Value:
    """exp(0) -> 1, and so for cos, sin, tanh, log, logistic ... where they are exact"""
    return new.number(_VALUES[root.opcode], like=root)


_VALUES = {
    **dict.fromkeys(("sine", "tanh", "log", "log-plus-one", "exponential-minus-one"), 0.0),
    **dict.fromkeys(("exponential", "cosine"), 1.0),
    "logistic": 0.5,
}


@LAWS.law(P.abs(y.where(P.exponential(x))), P.abs(y.where(P.logistic(x))), when=is_float)
def abs_of_positive(y: Instruction) -> Value:
    """|exp(x)| -> exp(x), and so for logistic"""
    return y


@LAWS.law(P.abs(y.where(P.multiply(x, x))), when=is_float)
def abs_of_square(y: Instruction) -> Value:
    """|x * x| -> x * x"""
    return y
