"""Data movement with run-time indices: DynamicSlice, DynamicUpdateSlice, Gather, Scatter."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from xlapy.builder.arguments import Integers, as_flag, as_int, as_ints, described
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, Operands, as_op, as_ops, builder_of, listed
from xlapy.builder.regions import fold_computation_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers, SliceDimension
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError

Numbers = TypeVar("Numbers", GatherDimensionNumbers, ScatterDimensionNumbers)


@op_function("dynamic-slice")
def DynamicSlice(operand: Operand, start_indices: Operands, slice_sizes: Integers) -> XlaOp:
    """The slice of `slice_sizes` at `start_indices`, moved inward until it fits.

    The starts are a list of scalars, one for each dimension, or one vector of them."""
    builder = builder_of(operand, start_indices)
    source = as_op(builder, operand)
    starts = _starts(builder, source, start_indices, "DynamicSlice.B1")
    sizes = as_ints(slice_sizes, "slice_sizes")
    return builder.record("dynamic-slice", [source, *starts], slice_sizes=sizes)


@op_function("dynamic-update-slice")
def DynamicUpdateSlice(operand: Operand, update: Operand, start_indices: Operands) -> XlaOp:
    """The operand with `update` written at `start_indices`, moved inward until it fits."""
    builder = builder_of(operand, update, start_indices)
    source = as_op(builder, operand)
    written = as_op(builder, update, source.shape.element_type)
    starts = _starts(builder, source, start_indices, "dynamic-update-slice.one-start-each")
    return builder.record("dynamic-update-slice", [source, written, *starts])


def _starts(builder: XlaBuilder, operand: XlaOp, start_indices: Operands, rule: str) -> list[XlaOp]:
    """The start of each dimension as a scalar; those of a vector are sliced out of it."""
    if isinstance(start_indices, (list, tuple)):
        return as_ops(builder, start_indices)
    (vector,) = as_ops(builder, listed(start_indices))
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


@op_function("gather")
def Gather(
    a: Operand,
    start_indices: Operand,
    dimension_numbers: Any,
    slice_sizes: Integers,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> XlaOp:
    """Slices of `a`, each at the start that a vector of `start_indices` says, moved inward until it fits.

    `dimension_numbers` is a GatherDimensionNumbers, or anything with its fields. That indices are sorted or unique is
    the caller's promise; the result does not depend on it."""
    builder = builder_of(a, start_indices)
    operands = [as_op(builder, a), as_op(builder, start_indices)]
    return builder.record(
        "gather",
        operands,
        dimension_numbers=_dimension_numbers(dimension_numbers, GatherDimensionNumbers),
        slice_sizes=as_ints(slice_sizes, "slice_sizes"),
        indices_are_sorted=as_flag(indices_are_sorted, "indices_are_sorted"),
    )


@op_function("scatter")
def Scatter(
    input: Operands,
    scatter_indices: Operand,
    updates: Operands,
    update_computation: ComputationLike,
    dimension_numbers: Any,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> XlaOp:
    """The input (or several), with windows of `updates` combined into it where vectors of `scatter_indices` say.

    The computation gets the present elements, then the updates. Window elements that lie outside are skipped.
    `dimension_numbers` is a ScatterDimensionNumbers, or anything with its fields."""
    builder = builder_of(input, scatter_indices, updates)
    arrays = as_ops(builder, listed(input))
    if not arrays:
        raise ShapeError("Scatter.B1", "nothing to scatter into")
    written = listed(updates)
    if len(written) != len(arrays):
        raise ShapeError("Scatter.B1", f"{len(written)} updates are given for {len(arrays)} inputs")
    elements = [require_array(array).type for array in arrays]
    windows = [as_op(builder, update, like) for update, like in zip(written, elements, strict=True)]
    called = fold_computation_of(builder, update_computation, elements, "update")
    return builder.record(
        "scatter",
        [*arrays, as_op(builder, scatter_indices), *windows],
        called=[called],
        dimension_numbers=_dimension_numbers(dimension_numbers, ScatterDimensionNumbers),
        indices_are_sorted=as_flag(indices_are_sorted, "indices_are_sorted"),
        unique_indices=as_flag(unique_indices, "unique_indices"),
    )


def _dimension_numbers(given: Any, kind: type[Numbers]) -> Numbers:
    """Dimension numbers from anything with the fields of `kind`; batching dimensions may be missing."""
    if isinstance(given, kind):
        return given
    numbers: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        value = getattr(given, field.name, () if field.name.endswith("batching_dims") else None)
        if value is None:
            raise ArgumentError(f"dimension_numbers need {field.name}; {described(given)} has none")
        is_single = field.name == "index_vector_dim"
        numbers[field.name] = as_int(value, field.name) if is_single else as_ints(value, field.name)
    return kind(**numbers)
