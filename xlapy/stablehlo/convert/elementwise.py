"""Element-wise operations of StableHLO and CHLO. Most are the op of the table that has their name."""

from __future__ import annotations

import math

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import S8, S16, S32, S64, U8, U16, U32, U64
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS, Trait
from xlapy.stablehlo.convert.base import Body, Converter, attribute, converts, enumerator
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import UnsupportedError

DIRECTIONS = {direction.value: direction for direction in ComparisonDirection}
COMPARISONS = {kind.value: kind for kind in ComparisonType}

CHLO_ONLY = frozenset(
    (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel-i1e", "cosh", "digamma", "erf", "erf-inv", "erfc"),
        *("lgamma", "next-after", "polygamma", "sinh", "zeta"),
    )
)
"""Ops of the table that have a name in CHLO, but none in StableHLO."""

OWN = frozenset(
    (
        *("bessel-i0e", "igamma", "igamma-grad-a", "igammac", "random-gamma-grad"),
        "regularized-incomplete-beta",
    )
)
"""Ops of ours without a name in either: custom calls of `xlapy.NAME` stand for them."""

BOTH = frozenset({"tan"})
"""Ops that have a name in both."""


S_TYPES, U_TYPES = (S8, S16, S32, S64), (U8, U16, U32, U64)


def _same_op(opcode: str) -> Converter:
    def convert(body: Body, operation: Operation) -> Instruction:
        return body.add(opcode, *body.operands(operation))

    return convert


def _register_rows() -> None:
    for name, spec in OPS.items():
        plain = spec.has(Trait.ELEMENTWISE) and not (spec.attributes or spec.takes_result or spec.regions)
        if not plain or name == "copy" or name in OWN:
            continue
        if name in CHLO_ONLY | BOTH:
            converts(f"chlo.{spec.python_name}")(_same_op(name))
        if name not in CHLO_ONLY:
            converts(f"stablehlo.{spec.python_name}")(_same_op(name))


_register_rows()


@converts("stablehlo.compare")
def compare(body: Body, operation: Operation) -> Instruction:
    kind = operation.attributes.get("compare_type", "NOTYPE")
    return body.add(
        "compare",
        *body.operands(operation),
        direction=enumerator(operation, "comparison_direction", DIRECTIONS),
        type=None if kind == "NOTYPE" else enumerator(operation, "compare_type", COMPARISONS),
    )


@converts("stablehlo.convert")
def convert(body: Body, operation: Operation) -> Instruction:
    return body.add("convert", *body.operands(operation), shape=operation.result_types[0])


@converts("stablehlo.reduce_precision")
def reduce_precision(body: Body, operation: Operation) -> Instruction:
    return body.add(
        "reduce-precision",
        *body.operands(operation),
        exponent_bits=attribute(operation, "exponent_bits", int),
        mantissa_bits=attribute(operation, "mantissa_bits", int),
    )


@converts("chlo.square")
def square(body: Body, operation: Operation) -> Instruction:
    """square(x) -> x * x"""
    (operand,) = body.operands(operation)
    return body.add("multiply", operand, operand)


@converts("chlo.mulhi")
def high_product(body: Body, operation: Operation) -> Instruction:
    """mulhi(a, b) -> the upper half of the bits of the product"""
    a, b = body.operands(operation)
    type = a.shape.type
    if not type.is_integer:
        raise UnsupportedError(f"{operation.name} is for integers, and is given {a.shape}")
    family = S_TYPES if type.is_signed else U_TYPES
    wider = next((wide for wide in family if wide.bits >= 2 * type.bits), None)
    if wider is None:
        return _high_product_by_halves(body, a, b)
    wide = [body.add("convert", factor, shape=factor.shape.with_type(wider)) for factor in (a, b)]
    product = body.add("multiply", *wide)
    shift = "shift-right-arithmetic" if type.is_signed else "shift-right-logical"
    high = body.add(shift, product, body.full(type.bits, product.shape))
    return body.add("convert", high, shape=high.shape.with_type(type))


def _high_product_by_halves(body: Body, a: Instruction, b: Instruction) -> Instruction:
    """Long multiplication of numbers of two digits, of which the upper ones have the sign. No sum overflows."""
    half = body.full(a.shape.type.bits // 2, a.shape)
    mask = body.full((1 << a.shape.type.bits // 2) - 1, a.shape)
    shift = "shift-right-arithmetic" if a.shape.type.is_signed else "shift-right-logical"

    def low(x: Instruction) -> Instruction:
        return body.add("and", x, mask)

    def high(x: Instruction) -> Instruction:
        return body.add(shift, x, half)

    def plus_product(x: Instruction, y: Instruction, z: Instruction) -> Instruction:
        return body.add("add", body.add("multiply", x, y), z)

    carried = body.add("shift-right-logical", body.add("multiply", low(a), low(b)), half)
    first = plus_product(high(a), low(b), carried)
    second = plus_product(low(a), high(b), low(first))
    return body.add("add", plus_product(high(a), high(b), high(first)), high(second))


@converts("chlo.conj")
def conjugate(body: Body, operation: Operation) -> Instruction:
    """conj(x) -> complex(real(x), -imag(x))"""
    (operand,) = body.operands(operation)
    return body.add("complex", body.add("real", operand), body.add("negate", body.add("imag", operand)))


@converts("chlo.is_inf")
def is_infinite(body: Body, operation: Operation) -> Instruction:
    """is_inf(x) -> |x| == inf"""
    (operand,) = body.operands(operation)
    return _equals(body, body.add("abs", operand), math.inf)


@converts("chlo.is_pos_inf")
def is_positive_infinity(body: Body, operation: Operation) -> Instruction:
    """is_pos_inf(x) -> x == inf"""
    (operand,) = body.operands(operation)
    return _equals(body, operand, math.inf)


@converts("chlo.is_neg_inf")
def is_negative_infinity(body: Body, operation: Operation) -> Instruction:
    """is_neg_inf(x) -> x == -inf"""
    (operand,) = body.operands(operation)
    return _equals(body, operand, -math.inf)


def _equals(body: Body, operand: Instruction, number: float) -> Instruction:
    return body.add("compare", operand, body.full(number, operand.shape), direction=ComparisonDirection.EQ)
