"""Data movement with run-time indices: DynamicSlice and DynamicUpdateSlice."""

from __future__ import annotations

from typing import Any

from xlapy.builder.arguments import Integers, as_ints
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op, as_ops, builder_of
from xlapy.builder.registry import op_function
from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


@op_function("dynamic-slice")
def DynamicSlice(operand: Operand, start_indices: Any, slice_sizes: Integers) -> XlaOp:
    """The slice of `slice_sizes` at `start_indices`, moved inward until it fits.

    The starts are a list of scalars, one for each dimension, or one vector of them."""
    builder = builder_of(operand, start_indices)
    source = as_op(builder, operand)
    starts = _starts(builder, source, start_indices, "DynamicSlice.B1")
    sizes = as_ints(slice_sizes, "slice_sizes")
    return builder.record("dynamic-slice", [source, *starts], slice_sizes=sizes)


@op_function("dynamic-update-slice")
def DynamicUpdateSlice(operand: Operand, update: Operand, start_indices: Any) -> XlaOp:
    """The operand with `update` written at `start_indices`, moved inward until it fits."""
    builder = builder_of(operand, update, start_indices)
    source = as_op(builder, operand)
    written = as_op(builder, update, source.shape.element_type)
    starts = _starts(builder, source, start_indices, "dynamic-update-slice.one-start-each")
    return builder.record("dynamic-update-slice", [source, written, *starts])


def _starts(builder: XlaBuilder, operand: XlaOp, start_indices: Any, rule: str) -> list[XlaOp]:
    """The start of each dimension as a scalar; those of a vector are sliced out of it."""
    if isinstance(start_indices, (list, tuple)):
        return as_ops(builder, start_indices)
    vector = as_op(builder, start_indices)
    shape = vector.shape
    if shape.rank != 1 or not shape.is_array or shape.dims[0] != operand.shape.rank:
        raise ShapeError(
            rule, f"start indices {shape} must be a vector with one entry for each dimension of {operand.shape}"
        )
    scalars = []
    for dim in range(operand.shape.rank):
        part = builder.record("slice", [vector], dimensions=(SliceDimension(dim, dim + 1),))
        scalars.append(builder.record("reshape", [part], shape=Shape.scalar(shape.type)))
    return scalars
