"""Folding and mapping with a scalar computation: Reduce, ReduceAll, Map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import overload

import numpy as np

from xlapy.builder.arguments import Integers, as_ints, as_list
from xlapy.builder.broadcasting import expand
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.control_flow import While
from xlapy.builder.indexing import DynamicSlice, DynamicUpdateSlice
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, Operands, as_handle, as_op, as_ops, listed
from xlapy.builder.regions import computation_of, fold_computation_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import Reshape, require_array
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError, UnsupportedError


def _reduced(
    operand: XlaOp,
    init_value: Operand,
    computation: ComputationLike,
    dimensions_to_reduce: Integers | None = None,
) -> XlaOp:
    """Folds dimensions with `computation`, from `init_value`.

    A function gets the running value, then the element, as scalars, and returns the new running value."""
    if dimensions_to_reduce is None:
        raise ArgumentError("the dimensions to fold are missing; x.reduce_all(init_value, computation) folds all")
    dimensions = as_ints(dimensions_to_reduce, "dimensions")
    return _reduce(as_handle(operand).builder, [operand], [init_value], computation, dimensions)


@overload
def Reduce(
    builder: XlaBuilder,
    operands: Operands,
    init_values: Operands,
    computation: ComputationLike,
    dimensions_to_reduce: Integers,
) -> XlaOp: ...
@overload
def Reduce(
    operand: XlaOp, init_value: Operand, computation: ComputationLike, dimensions_to_reduce: Integers
) -> XlaOp: ...
@op_function("reduce", of_value=_reduced)
def Reduce(
    builder: XlaBuilder,
    operands: Operands,
    init_values: Operands,
    computation: ComputationLike,
    dimensions_to_reduce: Integers | None = None,
) -> XlaOp:
    """Folds dimensions with `computation`, from initial values: `Reduce(builder, operands, init_values, computation,
    dimensions)`, or `Reduce(operand, init_value, computation, dimensions)` for one operand.

    A function gets the running values, then the elements, as scalars, and returns the new running values."""
    if dimensions_to_reduce is None:
        raise ArgumentError(
            "the dimensions to fold are missing; ops.ReduceAll(operand, init_value, computation) folds all"
        )
    arrays = [operands] if isinstance(operands, XlaOp) else as_list(operands, "the operands")
    dimensions = as_ints(dimensions_to_reduce, "dimensions")
    return _reduce(builder, arrays, listed(init_values), computation, dimensions)


@op_function()
def ReduceAll(operand: XlaOp, init_value: Operand, computation: ComputationLike) -> XlaOp:
    """Folds all dimensions into a scalar."""
    builder = as_handle(operand).builder
    return _reduce(builder, [operand], [init_value], computation, tuple(range(require_array(operand).rank)))


def _reduce(
    builder: XlaBuilder,
    operands: Sequence[Operand],
    init_values: Sequence[Operand],
    computation: ComputationLike,
    dimensions: tuple[int, ...],
) -> XlaOp:
    arrays = as_ops(builder, operands)
    if not arrays:
        raise ShapeError("Reduce.B1", "nothing to reduce")
    if len(init_values) != len(arrays):
        raise ShapeError("Reduce.B3", f"{len(init_values)} initial values are given for {len(arrays)} operands")
    elements = [require_array(array).type for array in arrays]
    inits = [as_op(builder, init, like) for init, like in zip(init_values, elements, strict=True)]
    called = fold_computation_of(builder, computation, elements, "reduction")
    return builder.record("reduce", [*arrays, *inits], called=[called], dimensions=dimensions)


@op_function("map")
def Map(
    builder: XlaBuilder,
    operands: Sequence[Operand],
    computation: ComputationLike,
    dimensions: Integers | None = None,
    static_operands: Sequence[XlaOp] = (),
) -> XlaOp:
    """Applies a scalar computation at every index; `dimensions`, if given, are all dimensions in order.

    Static operands are further arguments, whole and the same at every index. A computation that takes arrays runs in a
    loop over the indices."""
    arrays = as_ops(builder, operands)
    if not arrays:
        raise ShapeError("Map.some-inputs", "nothing to map over")
    sizes = require_array(arrays[0]).dims
    static = [as_op(builder, operand) for operand in as_list(static_operands, "static_operands")]
    if not all(operand.shape.is_scalar for operand in static):
        return _looped(builder, arrays, computation, dimensions, static)
    arrays += [expand(operand, sizes, ()) for operand in static]
    scalars = [Shape.scalar(require_array(array).type) for array in arrays]
    dims = tuple(range(len(sizes))) if dimensions is None else as_ints(dimensions, "dimensions")
    called = computation_of(builder, computation, scalars, "mapped")
    return builder.record("map", arrays, called=[called], dimensions=dims)


def _looped(
    builder: XlaBuilder,
    arrays: Sequence[XlaOp],
    computation: ComputationLike,
    dimensions: Integers | None,
    static: Sequence[XlaOp],
) -> XlaOp:
    """The map as a loop over the elements, one after the other in row-major order."""
    shape = require_array(arrays[0])
    if any(array.shape.dims != shape.dims for array in arrays):
        raise ShapeError("Map.B1", f"the operands {', '.join(str(array.shape) for array in arrays)} differ in size")
    if not shape.is_static:
        raise UnsupportedError(f"a map over {shape} with static operands that are arrays")
    if dimensions is not None and as_ints(dimensions, "dimensions") != tuple(range(shape.rank)):
        raise ShapeError("Map.B3", f"dimensions {list(dimensions)} are not all dimensions of {shape} in order")
    parameters = [*(Shape.scalar(array.shape.type) for array in arrays), *(operand.shape for operand in static)]
    called = computation_of(builder, computation, parameters, "mapped")
    if not called.root.shape.is_scalar or [p.shape for p in called.parameters] != parameters:
        raise ShapeError("Map.B2", f"a computation of type {called.signature} does not map over these elements")
    count = math.prod(shape.dims)
    lines = [Reshape(array, (count,)) for array in arrays]
    made = expand(as_op(builder, np.zeros((), called.root.shape.type.dtype)), (count,), ())

    def body(state: tuple[XlaOp, ...]) -> tuple[XlaOp, ...]:
        place, done, *rest = state
        elements = [Reshape(DynamicSlice(line, [place], (1,)), ()) for line in rest[: len(lines)]]
        value = place.builder.record("call", [*elements, *rest[len(lines) :]], called=[called])
        return place + 1, DynamicUpdateSlice(done, Reshape(value, (1,)), [place]), *rest

    looped = While(lambda state: state[0] < count, body, (np.int64(0), made, *lines, *static))
    return Reshape(looped[1], shape.dims)
