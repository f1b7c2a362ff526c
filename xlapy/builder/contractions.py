"""Sums of products: Dot and DotGeneral."""

from __future__ import annotations

from typing import Any

from xlapy.builder.arguments import as_ints, described
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_ops, builder_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.attributes import DotDimensionNumbers, Precision
from xlapy.hlo.element_types import ElementType, element_type_of
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ArgumentError, ShapeError


@op_function()
def Dot(lhs: Operand, rhs: Operand, precision_config: Any = None, preferred_element_type: Any = None) -> XlaOp:
    """The product of vectors and matrices: contracts the last dimension of `lhs` with the first of `rhs`."""
    builder = builder_of(lhs, rhs)
    left, right = as_ops(builder, (lhs, rhs))
    for shape in (require_array(left), require_array(right)):
        if shape.rank not in (1, 2):
            raise ShapeError("Dot.B2", f"{shape} is neither a vector nor a matrix; DotGeneral takes any rank")
    if left.shape.type is not right.shape.type:
        raise ShapeError("Dot.B2", f"{left.shape} and {right.shape} have different element types")
    sizes = (left.shape.dims[-1], right.shape.dims[0])
    if sizes[0] != sizes[1] and UNBOUNDED not in sizes:
        raise ShapeError("Dot.B1", f"the last dimension of {left.shape} and the first of {right.shape} differ in size")
    numbers = DotDimensionNumbers(lhs_contracting=(left.shape.rank - 1,), rhs_contracting=(0,))
    return DotGeneral(left, right, numbers, precision_config, preferred_element_type)


@op_function("dot")
def DotGeneral(
    lhs: Operand,
    rhs: Operand,
    dimension_numbers: Any,
    precision_config: Any = None,
    preferred_element_type: Any = None,
) -> XlaOp:
    """Sums of products over contracting dimensions, for each index of the batch dimensions.

    `dimension_numbers` is a DotDimensionNumbers, a proto with the same fields, or ((lhs contracting, rhs contracting),
    (lhs batch, rhs batch)). The elements are those of the operands, the wider of two types, unless
    `preferred_element_type` says otherwise."""
    builder = builder_of(lhs, rhs)
    left, right = as_ops(builder, (lhs, rhs))
    types = (require_array(left).type, require_array(right).type)
    wanted = _wider(*types) if preferred_element_type is None else element_type_of(preferred_element_type)
    return builder.record(
        "dot",
        [left, right],
        shape=Shape.scalar(wanted),
        dimension_numbers=_dimension_numbers(dimension_numbers),
        operand_precision=as_precision(precision_config),
    )


def _wider(left: ElementType, right: ElementType) -> ElementType:
    return right if right.bits > left.bits else left


def _dimension_numbers(given: Any) -> DotDimensionNumbers:
    if isinstance(given, DotDimensionNumbers):
        return given
    if hasattr(given, "lhs_contracting_dimensions"):
        fields = (
            given.lhs_contracting_dimensions,
            given.rhs_contracting_dimensions,
            given.lhs_batch_dimensions,
            given.rhs_batch_dimensions,
        )
        return DotDimensionNumbers(*(as_ints(field, "dimension numbers") for field in fields))
    try:
        (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = given
    except (TypeError, ValueError):
        raise ArgumentError(
            "dimension_numbers are a DotDimensionNumbers, or ((lhs contracting, rhs contracting), "
            f"(lhs batch, rhs batch)), not {described(given)}"
        ) from None
    lists = (lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
    return DotDimensionNumbers(*(as_ints(numbers, "dimension numbers") for numbers in lists))


def as_precision(config: Any) -> tuple[Precision, ...]:
    """The precision of each operand, from a PrecisionConfig proto, a list, or one for both; None is the default."""
    given = getattr(config, "operand_precision", config)
    if given is None:
        return ()
    listed = list(given) if isinstance(given, (list, tuple)) else [given, given]
    try:
        return tuple(Precision(getattr(one, "name", str(one)).lower()) for one in listed)
    except ValueError:
        raise ArgumentError(f"a precision is 'default', 'high' or 'highest', not {described(config)}") from None
