"""Laws of arithmetic. Floats keep -0, NaN and infinities: x + 0 is not x when x is -0, but x + (-0) always is."""

from __future__ import annotations

import math
from typing import Any

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.passes import new
from xlapy.passes.algebra.conditions import extremes, has_negatives, is_float, is_integer, is_integral, is_real
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness

x, y, z, c, d = variables("x y z c d")


@LAWS.law(P.add(x, P.number(0)), when=is_integral)
def add_zero(x: Instruction) -> Value:
    """x + 0 -> x, for integers: -0.0 + 0.0 is 0.0"""
    return x


@LAWS.law(P.add(x, P.number(-0.0)), when=is_float)
def add_negative_zero(x: Instruction) -> Value:
    """x + (-0.0) -> x"""
    return x


@LAWS.law(P.add(x, P.number(0)), when=is_float)
def add_zero_to_positive_zero(x: Instruction) -> Value | None:
    """x + 0.0 -> x, where x is never -0.0: a sum from 0.0, an exponential, an absolute value ..."""
    return x if _is_never_negative_zero(x) else None


def _is_never_negative_zero(value: Instruction) -> bool:
    while value.opcode in ("reshape", "broadcast", "transpose", "slice", "reverse"):
        value = value.operands[0]
    if value.opcode == "reduce" and len(value.operands) == 2:
        init = number_of(value.operands[1])
        starts_at_zero = init is not None and init == 0 and math.copysign(1.0, float(init)) > 0
        return starts_at_zero and _is_sum(value.called[0])
    return value.opcode in ("exponential", "abs", "iota", "cosh", "logistic")


def _is_sum(region: Computation) -> bool:
    """The region adds its two parameters."""
    return region.root.opcode == "add" and set(region.root.operands) == set(region.parameters)


@LAWS.law(P.add(x, P.number(0)), when=is_float, exactness=Exactness.APPROXIMATE)
def add_positive_zero(x: Instruction) -> Value:
    """x + 0.0 -> x, but for the sign of zero"""
    return x


@LAWS.law(P.subtract(x, P.number(0)), when=is_real)
def subtract_zero(x: Instruction) -> Value:
    """x - 0 -> x, also for floats: -0.0 - 0.0 is -0.0"""
    return x


@LAWS.law(P.subtract(x, x), when=is_integer)
def subtract_self(root: Instruction) -> Value:
    """x - x -> 0, for integers: inf - inf is NaN"""
    return new.number(0, like=root)


@LAWS.law(P.add(x, P.negate(y)), when=has_negatives)
def add_negated(x: Instruction, y: Instruction) -> Value:
    """x + (-y) -> x - y"""
    return new.subtract(x, y)


@LAWS.law(P.subtract(x, P.negate(y)), when=has_negatives)
def subtract_negated(x: Instruction, y: Instruction) -> Value:
    """x - (-y) -> x + y"""
    return new.add(x, y)


@LAWS.law(P.negate(P.only(P.subtract(x, y))), when=is_integer)
def negate_difference(x: Instruction, y: Instruction) -> Value:
    """-(x - y) -> y - x, for integers: -(x - x) is -0.0"""
    return new.subtract(y, x)


@LAWS.law(P.negate(P.negate(x)), when=has_negatives)
def negate_twice(x: Instruction) -> Value:
    """-(-x) -> x"""
    return x


@LAWS.law(P.add(P.add(x, c.where(P.any_number)), d.where(P.any_number)), when=is_integer)
def add_constants(x: Instruction, c: Instruction, d: Instruction) -> Value | None:
    """(x + c) + d -> x + (c + d), for constants c and d and integers"""
    return new.add(x, new.add(c, d)) if number_of(x) is None else None


@LAWS.law(P.subtract(P.add(x, c.where(P.any_number)), d.where(P.any_number)), when=is_integer)
def subtract_constant_from_sum(x: Instruction, c: Instruction, d: Instruction) -> Value | None:
    """(x + c) - d -> x + (c - d), for constants c and d and integers"""
    return new.add(x, new.subtract(c, d)) if number_of(x) is None else None


@LAWS.law(P.multiply(x, P.number(1)), when=is_real)
def multiply_one(x: Instruction) -> Value:
    """x * 1 -> x"""
    return x


@LAWS.law(P.multiply(x, P.number(0)), when=is_integral)
def multiply_zero(root: Instruction) -> Value:
    """x * 0 -> 0, for integers: NaN * 0.0 is NaN, -1.0 * 0.0 is -0.0"""
    return new.number(0, like=root)


@LAWS.law(P.multiply(x, P.number(-1)), when=lambda root: is_float(root) or root.shape.type.is_signed)
def multiply_minus_one(x: Instruction) -> Value:
    """x * -1 -> -x"""
    return new.negate(x)


@LAWS.law(P.divide(x, P.number(1)), when=is_real)
def divide_by_one(x: Instruction) -> Value:
    """x / 1 -> x"""
    return x


@LAWS.law(P.divide(x, P.number(c)), when=is_float)
def divide_by_power_of_two(root: Instruction, x: Instruction, c: Any) -> Value | None:
    """x / 2^k -> x * 2^-k, where 2^-k is a normal number: both round the same exact quotient"""
    inverse = _exact_inverse(float(c))
    if inverse is None or float(root.shape.type.dtype.type(inverse)) != inverse:
        return None
    return new.multiply(x, new.number(inverse, like=root))


def _exact_inverse(value: float) -> float | None:
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5 or not 2.0**-126 < abs(value) < 2.0**126:
        return None
    return 1.0 / value


@LAWS.law(P.divide(x, P.number(c)), when=is_float, exactness=Exactness.APPROXIMATE)
def divide_by_constant(root: Instruction, x: Instruction, c: Any) -> Value | None:
    """x / c -> x * (1 / c)"""
    value = float(c)
    return new.multiply(x, new.number(1.0 / value, like=root)) if value and math.isfinite(1.0 / value) else None


@LAWS.law(P.remainder(x, P.number(1)), when=is_integer)
def remainder_of_one(root: Instruction) -> Value:
    """x % 1 -> 0, for integers"""
    return new.number(0, like=root)


@LAWS.law(P.maximum(x, x), P.minimum(x, x))
def extremum_of_same(x: Instruction) -> Value:
    """max(x, x) -> x; min(x, x) -> x"""
    return x


@LAWS.law(P.maximum(x, P.number(c)))
def maximum_with_lowest(x: Instruction, c: Any) -> Value | None:
    """max(x, lowest) -> x, where nothing is below: -inf, or the smallest integer"""
    return x if c == extremes(x.shape.type)[0] else None


@LAWS.law(P.minimum(x, P.number(c)))
def minimum_with_highest(x: Instruction, c: Any) -> Value | None:
    """min(x, highest) -> x, where nothing is above: inf, or the largest integer"""
    return x if c == extremes(x.shape.type)[1] else None


@LAWS.law(P.abs(P.negate(x)), when=has_negatives)
def abs_of_negated(x: Instruction) -> Value:
    """|-x| -> |x|"""
    return new.abs(x)


@LAWS.law(P.abs(y.where(P.abs(x))), when=is_real)
def abs_of_abs(y: Instruction) -> Value:
    """||x|| -> |x|"""
    return y


@LAWS.law(
    P.floor(y.where(P.floor(x))), P.ceil(y.where(P.ceil(x))), P.floor(y.where(P.ceil(x))), P.ceil(y.where(P.floor(x)))
)
def round_twice(y: Instruction) -> Value:
    """floor(floor(x)) -> floor(x), and with ceil in either place"""
    return y


@LAWS.law(P.real(P.complex(x, y)))
def real_of_complex(x: Instruction) -> Value:
    """real(complex(x, y)) -> x"""
    return x


@LAWS.law(P.imag(P.complex(x, y)))
def imag_of_complex(y: Instruction) -> Value:
    """imag(complex(x, y)) -> y"""
    return y


@LAWS.law(P.complex(P.real(x), P.imag(x)))
def complex_of_parts(x: Instruction) -> Value | None:
    """complex(real(z), imag(z)) -> z"""
    return x if x.shape.type.is_complex else None


@LAWS.law(P.real(x), when=is_real)
def real_of_real(x: Instruction) -> Value:
    """real(x) -> x, for a real number"""
    return x


@LAWS.law(P.imag(x), when=is_real)
def imag_of_real(root: Instruction) -> Value:
    """imag(x) -> 0, for a real number"""
    return new.number(0, like=root)


@LAWS.law(
    P.multiply(P.negate(x), P.negate(y)),
    P.divide(P.negate(x), P.negate(y)),
    when=lambda root: is_float(root) and has_negatives(root),
)
def product_of_negated(root: Instruction, x: Instruction, y: Instruction) -> Value:
    """(-x) * (-y) -> x * y; (-x) / (-y) -> x / y"""
    return new.op(root.opcode, [x, y])


@LAWS.law(P.multiply(P.only(P.negate(x)), x), when=lambda root: is_float(root) and has_negatives(root))
def negated_times_itself(x: Instruction) -> Value:
    """(-x) * x -> -(x * x), which is known not to be positive"""
    return new.negate(new.multiply(x, x))


@LAWS.law(
    P.negate(P.only(P.multiply(x, c.where(P.any_number)))),
    P.multiply(P.negate(x), c.where(P.any_number)),
    when=is_real,
)
def negated_times_number(x: Instruction, c: Instruction) -> Value | None:
    """-(x * c) -> x * -c; (-x) * c -> x * -c, for constants c"""
    return new.multiply(x, new.negate(c)) if number_of(x) is None else None


@LAWS.law(P.multiply(P.multiply(x, c.where(P.any_number)), d.where(P.any_number)), when=is_integer)
def multiply_constants(x: Instruction, c: Instruction, d: Instruction) -> Value | None:
    """(x * c) * d -> x * (c * d), for constants c and d and integers"""
    return new.multiply(x, new.multiply(c, d)) if number_of(x) is None else None


@LAWS.law(
    P.add(P.add(x, c.where(P.any_number)), d.where(P.any_number)),
    P.multiply(P.multiply(x, c.where(P.any_number)), d.where(P.any_number)),
    when=is_float,
    exactness=Exactness.APPROXIMATE,
)
def merge_float_constants(root: Instruction, x: Instruction, c: Instruction, d: Instruction) -> Value | None:
    """(x + c) + d -> x + (c + d); (x * c) * d -> x * (c * d), for constants c and d"""
    return new.op(root.opcode, [x, new.op(root.opcode, [c, d])]) if number_of(x) is None else None


@LAWS.law(P.multiply(P.sqrt(x), P.sqrt(x)), when=is_float, exactness=Exactness.APPROXIMATE)
def square_of_root(x: Instruction) -> Value:
    """sqrt(x) * sqrt(x) -> x, but for negative numbers"""
    return x


@LAWS.law(P.subtract(x, x), when=is_float, exactness=Exactness.APPROXIMATE)
def subtract_float_self(root: Instruction) -> Value:
    """x - x -> 0, but for infinities and NaN"""
    return new.number(0, like=root)


@LAWS.law(P.multiply(x, P.number(0)), when=is_float, exactness=Exactness.APPROXIMATE)
def multiply_float_zero(root: Instruction) -> Value:
    """x * 0 -> 0, but for infinities, NaN and signs of zero"""
    return new.number(0, like=root)


@LAWS.law(P.add(P.multiply(x, y), P.multiply(x, z)), when=is_integer)
def factor_out(x: Instruction, y: Instruction, z: Instruction) -> Value | None:
    """x * y + x * z -> x * (y + z), for integers and numbers y and z"""
    return new.multiply(x, new.add(y, z)) if number_of(y) is not None and number_of(z) is not None else None
