"""Parameters, constants, iota, tuples, tokens, barriers, dynamic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy.builder.arguments import as_flag, as_int, as_list, as_rows, described
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_op, as_ops, builder_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.element_types import S32, element_type_of
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError


@op_function("parameter")
def Parameter(
    builder: XlaBuilder,
    parameter_number: int,
    shape: Shape,
    name: str = "",
    replicated_at_leaf_buffers: Sequence[bool] = (),
) -> XlaOp:
    """Input `parameter_number` of the computation."""
    return builder.parameter(parameter_number, shape, name, replicated_at_leaf_buffers)


@op_function("constant")
def Constant(builder: XlaBuilder, literal: Any) -> XlaOp:
    """A constant: a numpy array or scalar in its own dtype, a tuple of such, or a Python scalar.

    bool gives pred, int s32, float f32 and complex c64. An array of one repeated value is a broadcast scalar."""
    return as_op(builder, literal)


@op_function()
def ConstantLiteral(builder: XlaBuilder, literal: Any) -> XlaOp:
    """Constant, under its other name."""
    return as_op(builder, literal)


@op_function("iota")
def Iota(builder: XlaBuilder, shape: Any, iota_dimension: int | None = None, *, size: int | None = None) -> XlaOp:
    """0, 1, 2 ... along a dimension: `Iota(builder, shape, iota_dimension)`, or `Iota(builder, element_type, size)`."""
    if isinstance(shape, Shape):
        if iota_dimension is None:
            raise ArgumentError("Iota(builder, shape, iota_dimension) needs the dimension along which to count")
        return builder.record("iota", shape=shape, dimension=as_int(iota_dimension, "iota_dimension"))
    if isinstance(shape, (list, tuple)):
        raise ArgumentError(f"it takes a Shape, or an element type and a size; {described(shape)} has no element type")
    stated = iota_dimension if size is None else size
    if stated is None:
        raise ArgumentError("Iota(builder, element_type, size) needs the size, Iota(builder, shape, dimension) a Shape")
    length = as_int(stated, "the size")
    if length < 0:
        raise ShapeError("Iota.size", f"the size is {length}, which is negative")
    return builder.record("iota", shape=Shape.array(element_type_of(shape), (length,)), dimension=0)


@op_function("tuple")
def Tuple(builder: XlaBuilder, elements: Sequence[Operand]) -> XlaOp:
    """A tuple of the elements, which may be tuples and tokens too."""
    return builder.record("tuple", [as_op(builder, element) for element in as_list(elements, "the elements")])


@op_function("get-tuple-element")
def GetTupleElement(tuple_data: XlaOp, index: int) -> XlaOp:
    """Element `index` of a tuple."""
    builder = as_handle(tuple_data).builder
    return builder.record("get-tuple-element", [tuple_data], index=as_int(index, "index"))


@op_function()
def CreateToken(builder: XlaBuilder) -> XlaOp:
    """A fresh token."""
    return builder.record("after-all")


@op_function("after-all")
def AfterAll(builder: XlaBuilder, tokens: Sequence[XlaOp]) -> XlaOp:
    """A token that waits for all of `tokens`."""
    operands = as_ops(builder, tokens)
    if not operands:
        raise ShapeError("AfterAll.some-tokens", "there is no token to wait for; CreateToken makes a fresh one")
    return builder.record("after-all", operands)


@op_function("add-dependency")
def AddDependency(operand: XlaOp, token: XlaOp) -> XlaOp:
    """The operand, available only after `token`."""
    builder = builder_of(operand, token)
    return builder.record("add-dependency", [as_op(builder, operand), as_op(builder, token)])


@op_function("opt-barrier")
def OptimizationBarrier(operand: XlaOp) -> XlaOp:
    """The operand; no pass moves computation across it."""
    return as_handle(operand).builder.record("opt-barrier", [operand])


@op_function("get-dimension-size")
def GetDimensionSize(operand: XlaOp, dimension: int) -> XlaOp:
    """The run-time size of a dimension, as s32."""
    builder = as_handle(operand).builder
    return builder.record("get-dimension-size", [operand], dimension=as_int(dimension, "dimension"))


@op_function("set-dimension-size")
def SetDimensionSize(operand: XlaOp, val: Operand, dimension: int) -> XlaOp:
    """The operand, of which only the first `val` entries along `dimension` exist at run time."""
    builder = builder_of(operand, val)
    operands = [as_op(builder, operand), as_op(builder, val, S32)]
    return builder.record("set-dimension-size", operands, dimension=as_int(dimension, "dimension"))


@op_function()
def RemoveDynamicDimension(operand: XlaOp, dimension: int) -> XlaOp:
    """The operand with the static size that is the bound of a dynamic dimension: zeros stand behind its elements."""
    handle = as_handle(operand)
    builder, shape = handle.builder, handle.shape
    dim = as_int(dimension, "dimension")
    if not shape.is_array or not 0 <= dim < shape.rank:
        raise ShapeError("RemoveDynamicDimension.dimension", f"dimension {dim} is outside {shape}")
    if not shape.is_dynamic_dim(dim):
        return operand
    bound = as_op(builder, np.int32(shape.dims[dim]))
    static = shape.with_dim(dim, shape.dims[dim], dynamic=False)
    return builder.record("set-dimension-size", [operand, bound], shape=static, dimension=dim)


@op_function()
def DynamicReshape(
    operand: XlaOp, dim_sizes: Sequence[Operand], new_size_bounds: Sequence[int], dims_are_dynamic: Sequence[bool]
) -> XlaOp:
    """Reshape to sizes that are scalars s32 of the program, one per dimension and at most the bounds.

    The sizes must be those that the elements have room in; of a dynamic operand they follow from its own."""
    handle = as_handle(operand)
    builder, shape = handle.builder, require_array(handle)
    bounds = [as_int(size, "a bound") for size in as_rows(new_size_bounds, "new_size_bounds")]
    flags = [as_flag(flag, "a flag of dims_are_dynamic") for flag in as_rows(dims_are_dynamic, "dims_are_dynamic")]
    sizes = [as_op(builder, size, S32) for size in as_list(dim_sizes, "dim_sizes")]
    if any(bound < 0 for bound in bounds):
        raise ShapeError("DynamicReshape.bounds", f"a bound of {bounds} is negative")
    if not len(bounds) == len(flags) == len(sizes):
        raise ShapeError(
            "DynamicReshape.counts", f"{len(sizes)} sizes, {len(bounds)} bounds and {len(flags)} flags are given"
        )
    if not shape.is_static:
        return builder.record("reshape", [operand], shape=Shape.array(shape.type, bounds, flags))
    result = builder.record("reshape", [operand], shape=Shape.array(shape.type, bounds))
    for dimension, (size, is_dynamic) in enumerate(zip(sizes, flags, strict=True)):
        if is_dynamic:
            result = SetDimensionSize(result, size, dimension)
    return result
