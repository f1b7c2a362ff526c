"""Element-wise operations: one row each.

Operands have the same dimensions (the builder has already broadcast); a dimension of the result is bounded-dynamic if it
is so in any operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import (
    ANY,
    BOOLEAN,
    COMPLEX,
    F32,
    F64,
    FLOAT,
    INTEGER,
    NUMERIC,
    PRED,
    SIGNED,
    ElementType,
    complex_type_of,
    describe,
    real_part_type,
)
from xlapy.hlo.ops.checks import require_array
from xlapy.hlo.ops.spec import COMMUTATIVE, ELEMENTWISE, ResultShape, Traits, declare_op, op
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError

Types = frozenset[ElementType]


def common_dims(first: Shape, *others: Shape) -> Shape:
    """`first` with the dynamic flags of all; raises unless all have the same dimensions."""
    merged = first
    for other in others:
        if other.dims != merged.dims and UNBOUNDED not in (*other.dims, *merged.dims):
            raise ShapeError("same-dims", f"{first} and {other} have different dimensions")
        if other.rank != merged.rank:
            raise ShapeError("same-dims", f"{first} and {other} have different ranks")
        if other.dims != merged.dims or other.dynamic != merged.dynamic:
            merged = _merge_dims(merged, other)
    return merged


def _merge_dims(first: Shape, other: Shape) -> Shape:
    dims, dynamic = [], []
    for dim, (size, other_size) in enumerate(zip(first.dims, other.dims, strict=True)):
        if UNBOUNDED not in (size, other_size) and size != other_size:
            raise ShapeError("same-dims", f"{first} and {other} differ in dimension {dim}")
        dims.append(other_size if size == UNBOUNDED else size)
        dynamic.append(first.is_dynamic_dim(dim) or other.is_dynamic_dim(dim))
    return Shape.array(first.type, dims, dynamic)


def require_type(name: str, shape: Shape, allowed: Types) -> None:
    if shape.element_type not in allowed:
        raise ShapeError("element-type", f"{shape} has elements of type {shape.type}; {name} takes {describe(allowed)}")


def unary(
    name: str,
    types: Types,
    reference: Callable[..., Any] | None = None,
    *,
    result: Callable[[ElementType], ElementType] = lambda element_type: element_type,
    title: str = "",
    doc: str = "",
    note: str = "",
    family: str = __name__,
) -> None:
    """Declares an element-wise op of one operand, as a row of the module `family`."""

    def rule(operand: Shape) -> Shape:
        require_array(operand)
        require_type(name, operand, types)
        return operand.with_type(result(operand.type)).with_layout(None)

    rule.__module__ = family
    rule.__doc__ = _documented(doc or name.replace("-", " "), note, _UNARY_CONSTRAINTS)
    declare_op(name, rule, ELEMENTWISE, {}, title, reference, None, {"types": types})


def _documented(what: str, note: str, constraints: str) -> str:
    return "\n\n".join(part for part in (f"Element by element: {what}.", note, constraints) if part)


_UNARY_CONSTRAINTS = """array-operands: the operand is an array.
element-type [C1]: the element type is one that the operation takes."""


def binary(
    name: str,
    types: Types,
    traits: Traits = ELEMENTWISE,
    reference: Callable[..., Any] | None = None,
    *,
    identity: Any = None,
    result: Callable[[ElementType], ElementType] = lambda element_type: element_type,
    title: str = "",
    doc: str = "",
    note: str = "",
    family: str = __name__,
) -> None:
    """Declares an element-wise op of two operands of one element type, as a row of the module `family`."""

    def rule(lhs: Shape, rhs: Shape) -> Shape:
        require_array(lhs, rhs)
        if lhs.element_type is not rhs.element_type:
            raise ShapeError("same-type", f"{lhs} and {rhs} have different element types: convert one of them")
        require_type(name, lhs, types)
        return common_dims(lhs, rhs).with_type(result(lhs.type)).with_layout(None)

    rule.__module__ = family
    rule.__doc__ = _documented(doc or name.replace("-", " "), note, _BINARY_CONSTRAINTS)
    declare_op(name, rule, traits, {}, title, reference, identity, {"types": types})


_BINARY_CONSTRAINTS = """array-operands: the operands are arrays.
same-type [B1 C1]: the operands have the same element type.
element-type [C1]: the element type is one that the operation takes.
same-dims [B2 C1]: the operands have the same dimensions."""

FLOATING = FLOAT | COMPLEX
LOGICAL = INTEGER | BOOLEAN

# fmt: off
#      name                     element types
unary("abs",                    SIGNED | FLOATING,          np.abs, result=real_part_type, doc="absolute value; modulus of a complex number")
unary("acos",                   FLOATING,                   np.arccos, doc="arc cosine")
unary("acosh",                  FLOATING,                   np.arccosh, doc="inverse hyperbolic cosine")
unary("asin",                   FLOATING,                   np.arcsin, doc="arc sine")
unary("asinh",                  FLOATING,                   np.arcsinh, doc="inverse hyperbolic sine")
unary("atan",                   FLOATING,                   np.arctan, doc="arc tangent")
unary("atanh",                  FLOATING,                   np.arctanh, doc="inverse hyperbolic tangent")
unary("cbrt",                   FLOATING,                   None, doc="cube root")
unary("ceil",                   FLOAT,                      np.ceil, doc="round toward +inf")
unary("cosh",                   FLOATING,                   np.cosh, doc="hyperbolic cosine")
unary("cosine",                 FLOATING,                   np.cos, title="Cos", doc="cosine")
unary("count-leading-zeros",    INTEGER,                    None, title="Clz", doc="number of leading zero bits")
unary("erf",                    FLOAT,                      None, doc="error function")
unary("exponential",            FLOATING,                   np.exp, title="Exp", doc="e^x")
unary("exponential-minus-one",  FLOATING,                   None,     title="Expm1", doc="e^x - 1, accurate near zero")
unary("floor",                  FLOAT,                      np.floor, doc="round toward -inf")
unary("imag",                   FLOATING,                   None, result=real_part_type, doc="imaginary part; zero for a real number")
unary("is-finite",              FLOAT,                      np.isfinite, result=lambda t: PRED, doc="neither infinite nor NaN")
unary("log",                    FLOATING,                   np.log, doc="natural logarithm")
unary("log-plus-one",           FLOATING,                   None,     title="Log1p", doc="ln(1 + x), accurate near zero")
unary("logistic",               FLOATING,                   None, doc="1 / (1 + e^-x)")
unary("negate",                 NUMERIC,                    np.negative, title="Neg", doc="-x; unsigned integers wrap")
unary("not",                    LOGICAL,                    np.invert, doc="logical, or bitwise, not")
unary("popcnt",                 INTEGER,                    None, title="PopulationCount", doc="number of set bits")
unary("real",                   FLOATING,                   None, result=real_part_type, doc="real part")
unary("round-nearest-afz",      FLOAT,                      None, title="Round", doc="nearest integer, ties away from zero")
unary("round-nearest-even",     FLOAT,                      np.rint, title="RoundNearestEven", doc="nearest integer, ties to even")
unary("rsqrt",                  FLOATING,                   None, doc="1 / sqrt(x)")
unary("sign",                   SIGNED | FLOATING,          None, doc="sign; keeps -0 and NaN; x / |x| for a complex number")
unary("sine",                   FLOATING,                   np.sin, title="Sin", doc="sine")
unary("sinh",                   FLOATING,                   np.sinh, doc="hyperbolic sine")
unary("sqrt",                   FLOATING,                   np.sqrt, doc="square root")
unary("tan",                    FLOATING,                   np.tan, doc="tangent")
unary("tanh",                   FLOATING,                   np.tanh, doc="hyperbolic tangent")

#      name                     element types  traits        reference        identity of a reduction
binary("add",                   ANY,           COMMUTATIVE,  None,            identity=0, doc="sum; logical or for pred")
binary("and",                   LOGICAL,       COMMUTATIVE,  np.bitwise_and,  identity="ones", doc="logical, or bitwise, and")
binary("atan2",                 FLOATING,      ELEMENTWISE,  None,            doc="angle of the point (rhs, lhs)")
binary("complex",               frozenset({F32, F64}), ELEMENTWISE, None,     result=complex_type_of, doc="complex number of a real and an imaginary part")
binary("divide",                NUMERIC,       ELEMENTWISE,  None,            title="Div", doc="quotient; integers truncate and never trap")
binary("maximum",               ANY,           COMMUTATIVE,  None,            identity="lowest", title="Max", doc="larger of two; NaN wins")
binary("minimum",               ANY,           COMMUTATIVE,  None,            identity="highest", title="Min", doc="smaller of two; NaN wins")
binary("multiply",              ANY,           COMMUTATIVE,  None,            identity=1, title="Mul", doc="product; logical and for pred")
binary("or",                    LOGICAL,       COMMUTATIVE,  np.bitwise_or,   identity=0, doc="logical, or bitwise, or")
binary("power",                 NUMERIC,       ELEMENTWISE,  None,            title="Pow", doc="lhs to the power rhs")
binary("remainder",             INTEGER | FLOAT, ELEMENTWISE, None,           title="Rem", doc="remainder with the sign of the dividend")
binary("shift-left",            INTEGER,       ELEMENTWISE,  None,            doc="shift left; zero beyond the width")
binary("shift-right-arithmetic", INTEGER,      ELEMENTWISE,  None,            doc="shift right, filling with the sign")
binary("shift-right-logical",   INTEGER,       ELEMENTWISE,  None,            doc="shift right, filling with zeros")
binary("subtract",              NUMERIC,       ELEMENTWISE,  None,            title="Sub", doc="difference")
binary("xor",                   LOGICAL,       COMMUTATIVE,  np.bitwise_xor,  identity=0, doc="logical, or bitwise, exclusive or")
# fmt: on


@op("compare", traits=ELEMENTWISE)
def compare(lhs: Shape, rhs: Shape, *, direction: ComparisonDirection, type: ComparisonType | None = None) -> Shape:
    """Compares element by element; the result is pred.

    FLOAT follows IEEE-754 (only NE holds with a NaN); TOTALORDER orders -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
    Complex numbers are ordered by real part, equal ones of these by imaginary part; only NE holds with a NaN in either
    part. Without a type, the element type decides.

    array-operands: the operands are arrays.
    same-type [B1 C1]: the operands have the same element type.
    same-dims [B2 C2]: the operands have the same dimensions.
    comparison-type [C3]: the comparison type suits the element type.
    """
    require_array(lhs, rhs)
    if lhs.element_type is not rhs.element_type:
        raise ShapeError("same-type", f"{lhs} and {rhs} have different element types: convert one of them")
    if type is not None and type not in _comparison_types(lhs.type):
        raise ShapeError("comparison-type", f"{type} does not compare elements of type {lhs.type}")
    return common_dims(lhs, rhs).with_type(PRED).with_layout(None)


def _comparison_types(element_type: ElementType) -> tuple[ComparisonType, ...]:
    if element_type.is_float:
        return (ComparisonType.FLOAT, ComparisonType.TOTALORDER)
    if element_type.is_complex:
        return (ComparisonType.FLOAT,)
    if element_type.is_signed:
        return (ComparisonType.SIGNED,)
    return (ComparisonType.UNSIGNED,)


@op("select", traits=ELEMENTWISE)
def select(pred: Shape, on_true: Shape, on_false: Shape) -> Shape:
    """`on_true` where `pred` holds, else `on_false`.

    array-operands: the operands are arrays.
    pred-type [B2]: `pred` has element type pred.
    pred-dims [B2 C1]: `pred` is a scalar or has the dimensions of the others.
    same-shape [B1 C2]: `on_true` and `on_false` have the same shape.
    """
    require_array(pred, on_true, on_false)
    if pred.element_type is not PRED:
        raise ShapeError("pred-type", f"{pred} selects, but its elements are not pred")
    if on_true.element_type is not on_false.element_type:
        raise ShapeError("same-shape", f"{on_true} and {on_false} have different element types: convert one of them")
    if on_true.dims != on_false.dims and UNBOUNDED not in (*on_true.dims, *on_false.dims):
        raise ShapeError("same-shape", f"{on_true} and {on_false} have different dimensions")
    merged = common_dims(on_true, on_false)
    if pred.rank and pred.dims != merged.dims and UNBOUNDED not in (*pred.dims, *merged.dims):
        raise ShapeError("pred-dims", f"{pred} is neither a scalar nor of the dimensions of {on_true}")
    return (common_dims(merged, pred) if pred.rank else merged).with_layout(None)


@op("clamp", traits=ELEMENTWISE)
def clamp(min: Shape, operand: Shape, max: Shape) -> Shape:
    """min(max(min, operand), max); complex numbers in the order of `maximum` and `minimum`.

    array-operands: the operands are arrays.
    same-type [B1 C3]: all three have the same element type.
    min-dims [B2 C1]: `min` is a scalar or has the dimensions of the operand.
    max-dims [B2 C2]: `max` is a scalar or has the dimensions of the operand.
    """
    require_array(min, operand, max)
    merged = operand
    for slug, bound in (("min-dims", min), ("max-dims", max)):
        if bound.element_type is not operand.element_type:
            raise ShapeError("same-type", f"{bound} bounds {operand}, which has another element type")
        if bound.rank:
            if bound.dims != operand.dims and UNBOUNDED not in (*bound.dims, *operand.dims):
                raise ShapeError(slug, f"{bound} is neither a scalar nor of the dimensions of {operand}")
            merged = common_dims(merged, bound)
    return merged.with_layout(None)


@op("convert", traits=ELEMENTWISE, title="ConvertElementType")
def convert(operand: Shape, *, result: ResultShape) -> Shape:
    """The same values in another element type.

    Float to integer truncates toward zero, saturates, and takes NaN to 0; integers wrap; everything else rounds to
    nearest even. A complex number becomes real by losing its imaginary part.

    array-operands [B2]: operand and result are arrays.
    same-dims [B1 C1]: operand and result have the same dimensions.
    """
    require_array(operand, result)
    if operand.dims != result.dims and UNBOUNDED not in (*operand.dims, *result.dims):
        raise ShapeError("same-dims", f"{operand} cannot become {result}, which has other dimensions")
    return operand.with_type(result.type).with_layout(None)


@op("reduce-precision", traits=ELEMENTWISE)
def reduce_precision(operand: Shape, *, exponent_bits: int, mantissa_bits: int) -> Shape:
    """Rounds to a float format of `exponent_bits` and `mantissa_bits`, and back.

    element-type [B1]: the operand is floating-point.
    exponent-bits [B2 C2]: there is at least one exponent bit.
    mantissa-bits [B3 C3]: the number of mantissa bits is not negative.
    """
    require_array(operand)
    require_type("reduce-precision", operand, FLOAT)
    if exponent_bits < 1:
        raise ShapeError("exponent-bits", f"{exponent_bits} exponent bits cannot tell zero from infinity")
    if mantissa_bits < 0:
        raise ShapeError("mantissa-bits", f"{mantissa_bits} mantissa bits are fewer than none")
    return operand.with_layout(None)


@op("copy", traits=ELEMENTWISE)
def copy(operand: Shape) -> Shape:
    """The same value in memory of its own, perhaps in another layout.

    array-operands: the operand is an array.
    """
    require_array(operand)
    return operand.with_layout(None)
