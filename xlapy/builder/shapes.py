"""Data movement with static indices: broadcast, reshape, transpose, slice, pad, concatenate, reverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from xlapy.builder.arguments import Integers, as_int, as_ints, as_rows
from xlapy.builder.broadcasting import expand
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_op, as_ops, builder_of
from xlapy.builder.registry import op_function
from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.reshape_groups import reshaped_flags
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ArgumentError, ShapeError


def require_array(operand: XlaOp) -> Shape:
    """The shape of the operand; raises unless it is the handle of an array."""
    shape = as_handle(operand).shape
    if not shape.is_array:
        raise ShapeError("array-operands", f"{shape} is not an array")
    return shape


# -- broadcast -----------------------------------------------------------------------------------------------------


@op_function("broadcast")
def Broadcast(operand: XlaOp, sizes: Integers) -> XlaOp:
    """The operand replicated along new dimensions of `sizes`, which come first."""
    shape, builder = require_array(operand), operand.builder
    new = as_ints(sizes, "sizes")
    if any(size < 0 for size in new):
        raise ShapeError("Broadcast.B1", f"a size of {list(new)} is negative")
    dynamic = (*[False] * len(new), *shape.dynamic) if shape.dynamic else ()
    result = Shape.array(shape.type, (*new, *shape.dims), dynamic)
    return builder.record("broadcast", [operand], shape=result, dimensions=tuple(range(len(new), result.rank)))


@op_function()
def BroadcastInDim(operand: XlaOp, shape: Integers, broadcast_dimensions: Integers = ()) -> XlaOp:
    """The operand in an array of dimensions `shape`: dimension i becomes `broadcast_dimensions[i]`, of the same size
    unless it is 1, and everything is replicated along the others."""
    source = require_array(operand)
    sizes, dimensions = as_ints(shape, "shape"), as_ints(broadcast_dimensions, "broadcast_dimensions")
    if len(dimensions) != source.rank:
        raise ShapeError("BroadcastInDim.B2", f"{len(dimensions)} broadcast_dimensions are given for {source}")
    if any(not 0 <= dim < len(sizes) for dim in dimensions):
        raise ShapeError("BroadcastInDim.B2", f"{list(dimensions)} are not all dimensions of {list(sizes)}")
    if any(first >= second for first, second in pairwise(dimensions)):
        raise ShapeError("BroadcastInDim.B2", f"broadcast_dimensions {list(dimensions)} are not strictly increasing")
    for target, size in enumerate(sizes):
        if size < 0 and not (target in dimensions and source.dims[dimensions.index(target)] == size):
            raise ShapeError("BroadcastInDim.B1", f"size {size} of dimension {target} is negative")
    for dim, target in enumerate(dimensions):
        if source.dims[dim] not in (1, sizes[target]):
            raise ShapeError(
                "BroadcastInDim.B1",
                f"dimension {dim} of {source} is neither 1 nor {sizes[target]}, the size of dimension {target} of "
                f"{list(sizes)}",
            )
    return expand(operand, sizes, dimensions)


# -- other dimensions for the same elements ------------------------------------------------------------------------


@op_function("reshape")
def Reshape(operand: XlaOp, dimensions: Integers | None = None, new_sizes: Integers | None = None) -> XlaOp:
    """The elements in row-major order under new sizes: `Reshape(x, new_sizes)`.

    `Reshape(x, dimensions, new_sizes)` reads them in the order that a transpose by `dimensions` would give, which may
    be None for the order that they have."""
    shape, builder = require_array(operand), operand.builder
    if dimensions is None and new_sizes is None:
        raise ArgumentError(f"no sizes are given; Reshape(x, ()) makes a scalar of one element of {shape}")
    if new_sizes is not None:
        order = tuple(range(shape.rank)) if dimensions is None else as_ints(dimensions, "dimensions")
        if sorted(order) != list(range(shape.rank)):
            raise ShapeError(
                "Reshape.B1",
                f"{list(order)} is not a permutation of the dimensions of {shape}; sizes alone are one list, as in "
                "Reshape(x, (2, 3))",
            )
        if list(order) != sorted(order):
            operand = builder.record("transpose", [operand], permutation=order)
    sizes = as_ints(dimensions if new_sizes is None else new_sizes, "new_sizes")
    if min(sizes, default=0) < 0 and UNBOUNDED not in shape.dims:
        raise ShapeError("Reshape.B2", f"a size of {list(sizes)} is negative; sizes are not found out")
    return _reshaped(builder, operand, sizes)


def _reshaped(builder: XlaBuilder, operand: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Bounded dimensions stay bounded: of those that are merged and split, the outermost that results."""
    shape = operand.shape
    result = Shape.array(shape.type, sizes, reshaped_flags(shape, sizes))
    return builder.record("reshape", [operand], shape=result)


@op_function()
def Collapse(operand: XlaOp, dimensions: Integers) -> XlaOp:
    """Consecutive dimensions made into one."""
    shape, builder = require_array(operand), operand.builder
    dims = as_ints(dimensions, "dimensions")
    if any(not 0 <= dim < shape.rank for dim in dims):
        raise ShapeError("Collapse.B2", f"{list(dims)} are not all dimensions of {shape}")
    if dims != tuple(range(dims[0], dims[0] + len(dims)) if dims else ()):
        raise ShapeError("Collapse.B1", f"dimensions {list(dims)} are not ascending and consecutive")
    if len(dims) < 2:
        return operand
    merging = [shape.dims[dim] for dim in dims]
    merged = UNBOUNDED if UNBOUNDED in merging else math.prod(merging)
    sizes = (*shape.dims[: dims[0]], merged, *shape.dims[dims[-1] + 1 :])
    return _reshaped(builder, operand, sizes)


@op_function("transpose")
def Transpose(operand: XlaOp, permutation: Integers | None = None) -> XlaOp:
    """Dimension i of the result is dimension `permutation[i]` of the operand; without one, the dimensions reversed."""
    builder = as_handle(operand).builder
    order = tuple(reversed(range(operand.shape.rank))) if permutation is None else as_ints(permutation, "permutation")
    return builder.record("transpose", [operand], permutation=order)


@op_function("reverse", aliases=("Reverse",))
def Rev(operand: XlaOp, dimensions: Integers) -> XlaOp:
    """The operand with the order along `dimensions` reversed."""
    builder = as_handle(operand).builder
    return builder.record("reverse", [operand], dimensions=as_ints(dimensions, "dimensions"))


Reverse = Rev


# -- parts and joins -----------------------------------------------------------------------------------------------


@op_function("slice")
def Slice(operand: XlaOp, start_indices: Integers, limit_indices: Integers, strides: Integers | None = None) -> XlaOp:
    """Of each dimension the elements start, start + stride ... below limit."""
    builder = as_handle(operand).builder
    starts, limits = as_ints(start_indices, "start_indices"), as_ints(limit_indices, "limit_indices")
    steps = as_ints(strides, "strides") if strides is not None else (1,) * len(starts)
    if not len(starts) == len(limits) == len(steps):
        raise ShapeError(
            "Slice.B1", f"{len(starts)} starts, {len(limits)} limits and {len(steps)} strides do not go together"
        )
    ranges = tuple(map(SliceDimension, starts, limits, steps))
    return builder.record("slice", [operand], dimensions=ranges)


@op_function()
def SliceInDim(operand: XlaOp, start_index: int, limit_index: int, stride: int, dimno: int) -> XlaOp:
    """Slice along one dimension, whole in the others."""
    shape = require_array(operand)
    dim = as_int(dimno, "dimno")
    if not 0 <= dim < shape.rank:
        raise ShapeError("SliceInDim.dimension", f"dimension {dim} is outside {shape}")
    ranges = [SliceDimension(0, size) for size in shape.dims]
    ranges[dim] = SliceDimension(
        as_int(start_index, "start_index"), as_int(limit_index, "limit_index"), as_int(stride, "stride")
    )
    return operand.builder.record("slice", [operand], dimensions=tuple(ranges))


@op_function("pad")
def Pad(operand: XlaOp, padding_value: Operand, padding_config: Any) -> XlaOp:
    """Puts padding between neighbours and at the edges (negative: removes).

    `padding_config` lists (low, high, interior) or (low, high) for each dimension, or is a PaddingConfig proto."""
    builder = builder_of(operand, padding_value)
    source = as_op(builder, operand)
    value = as_op(builder, padding_value, source.shape.element_type)
    dimensions = as_rows(getattr(padding_config, "dimensions", padding_config), "padding_config")
    return builder.record("pad", [source, value], dimensions=tuple(map(_padding, dimensions)))


def _padding(config: Any) -> PaddingDimension:
    if isinstance(config, PaddingDimension):
        return config
    if hasattr(config, "edge_padding_low"):
        return PaddingDimension(config.edge_padding_low, config.edge_padding_high, config.interior_padding)
    edges = as_ints(config, "the padding of a dimension")
    if len(edges) not in (2, 3):
        raise ShapeError("Pad.B1", f"the padding of a dimension is (low, high, interior), not {list(edges)}")
    return PaddingDimension(*edges)


@op_function("concatenate")
def ConcatInDim(builder: XlaBuilder, operands: Sequence[Operand], dimension: int) -> XlaOp:
    """The operands joined along `dimension`, in order."""
    return builder.record("concatenate", as_ops(builder, operands), dimension=as_int(dimension, "dimension"))


@op_function(aliases=("Concat",))
def Concatenate(operands: Sequence[Operand], dimension: int) -> XlaOp:
    """ConcatInDim, with the builder of the operands."""
    if isinstance(operands, (list, tuple)) and not operands:
        raise ShapeError("Concatenate.B1", "nothing to concatenate")
    builder = builder_of(operands)
    return builder.record("concatenate", as_ops(builder, operands), dimension=as_int(dimension, "dimension"))


Concat = Concatenate
