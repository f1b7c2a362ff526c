"""Data movement with static indices: broadcast, reshape, transpose, slice, pad, concatenate, reverse."""

from __future__ import annotations

import math

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.ops.checks import check_dimension, check_dimensions, require_array
from xlapy.hlo.ops.spec import INDEX_MAP, ResultShape, Variadic, op
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError


@op("broadcast", traits=INDEX_MAP, title="BroadcastInDim")
def broadcast(operand: Shape, *, dimensions: tuple[int, ...], result: ResultShape) -> Shape:
    """Replicates along new dimensions: dimension i of the operand becomes dimension `dimensions[i]` of the result.

    No dimension is stretched: one of size 1 that must grow is dropped by a reshape first.

    array-operands [C1]: operand and result are arrays of one element type.
    dimensions-count [B2 C2]: there is one entry for each dimension of the operand.
    dimensions-in-range [B2 C3]: the entries are dimensions of the result.
    dimensions-unique [B2 C4]: no entry occurs twice.
    same-size [B1 C5]: a dimension of the operand has the size of the one it becomes.
    bounded-result: a bounded dimension of the operand becomes a bounded one.
    """
    require_array(operand, result)
    if operand.element_type is not result.element_type:
        raise ShapeError("array-operands", f"{operand} and {result} have different element types")
    if len(dimensions) != operand.rank:
        raise ShapeError("dimensions-count", f"{len(dimensions)} dimensions are given for {operand}")
    check_dimensions(result, dimensions)
    for dim, target in enumerate(dimensions):
        sizes = (operand.dims[dim], result.dims[target])
        if sizes[0] != sizes[1] and UNBOUNDED not in sizes:
            raise ShapeError(
                "same-size",
                f"dimension {dim} of {operand} becomes dimension {target} of {result}, but {sizes[0]} is not {sizes[1]}",
            )
        if operand.is_dynamic_dim(dim) and UNBOUNDED not in sizes and not result.is_dynamic_dim(target):
            raise ShapeError(
                "bounded-result", f"dimension {dim} of {operand} is bounded, but dimension {target} of {result} is not"
            )
    return result.without_layout()


@op("reshape", traits=INDEX_MAP)
def reshape(operand: Shape, *, result: ResultShape) -> Shape:
    """The elements in row-major order, under other dimensions.

    Bounded dimensions: each smallest run of neighbouring dimensions with as many elements before as after is a reshape
    of its own. The first bounded dimension of the result in such a run takes what the others, at their bounds, leave
    of the elements that exist; what does not fill it is dropped.

    array-operands [C1]: operand and result are arrays of one element type.
    same-size [B2 C2]: operand and result have the same number of elements.
    bounded-result: if a dimension of the operand is bounded, so is one of the result.
    """
    require_array(operand, result)
    if operand.element_type is not result.element_type:
        raise ShapeError("array-operands", f"{operand} and {result} have different element types")
    unbounded = operand.is_unbounded or result.is_unbounded
    if not unbounded and math.prod(operand.dims) != math.prod(result.dims):
        raise ShapeError("same-size", f"{operand} has {operand.size} elements, {result} has {result.size}")
    if not unbounded and not operand.is_static and result.is_static:
        raise ShapeError("bounded-result", f"{operand} may have fewer elements than {result}, which is not bounded")
    return result.without_layout()


@op("transpose", traits=INDEX_MAP, hlo_text={"permutation": "dimensions"})
def transpose(operand: Shape, *, permutation: tuple[int, ...]) -> Shape:
    """Dimension i of the result is dimension `permutation[i]` of the operand.

    array-operands: the operand is an array.
    permutation [B1 C2]: `permutation` lists every dimension of the operand once.
    """
    require_array(operand)
    if sorted(permutation) != list(range(operand.rank)):
        raise ShapeError(
            "permutation", f"{list(permutation)} is not a permutation of the {operand.rank} dimensions of {operand}"
        )
    return operand.select_dims(permutation)


@op("reverse", traits=INDEX_MAP, title="Rev")
def reverse(operand: Shape, *, dimensions: tuple[int, ...]) -> Shape:
    """Element i of each listed dimension of size n becomes element n-1-i.

    array-operands: the operand is an array.
    dimensions-unique [B1 C2]: no dimension is listed twice.
    dimensions-in-range [B1 C3]: the dimensions are dimensions of the operand.
    """
    require_array(operand)
    check_dimensions(operand, dimensions)
    return operand.without_layout()


@op("slice", traits=INDEX_MAP, hlo_text={"dimensions": "slice"})
def slice_(operand: Shape, *, dimensions: tuple[SliceDimension, ...]) -> Shape:
    """Of each dimension the elements start, start + stride ... below limit.

    A bounded dimension that is taken whole stays bounded. A part of one is zero where it lies beyond the run-time size.

    array-operands: the operand is an array.
    one-each [B1 C2]: there is one range for each dimension.
    start [B2 C3]: the start is not negative.
    limit [B3 C3]: the limit is neither below the start nor beyond the size.
    stride [B4 C4]: the stride is positive.
    """
    require_array(operand)
    if len(dimensions) != operand.rank:
        raise ShapeError("one-each", f"{len(dimensions)} ranges are given for {operand}")
    sizes = []
    for dim, (part, size) in enumerate(zip(dimensions, operand.dims, strict=True)):
        if part.stride < 1:
            raise ShapeError("stride", f"stride {part.stride} of dimension {dim} is not positive")
        if part.start < 0:
            raise ShapeError("start", f"start {part.start} of dimension {dim} is negative")
        if part.limit < part.start or (part.limit > size and size != UNBOUNDED):
            raise ShapeError("limit", f"[{part.start}, {part.limit}) is not a range of dimension {dim} of {operand}")
        sizes.append(-(-(part.limit - part.start) // part.stride))
    dynamic = [operand.is_dynamic_dim(dim) and sizes[dim] == operand.dims[dim] for dim in range(operand.rank)]
    return operand.with_dims(sizes, dynamic)


@op("pad", traits=INDEX_MAP, hlo_text={"dimensions": "padding"})
def pad(operand: Shape, padding_value: Shape, *, dimensions: tuple[PaddingDimension, ...]) -> Shape:
    """Puts `interior` padding elements between neighbours, then `low` before and `high` behind (negative: removes).

    array-operands: the operand is an array.
    scalar-value [B3 C1]: the padding value is a scalar of the operand's element type.
    one-each [B1 C2]: there is one padding for each dimension.
    interior [B2 C3]: interior padding is not negative.
    result-size [B4 C4]: no dimension of the result is negative.
    """
    require_array(operand)
    if not padding_value.is_scalar or padding_value.element_type is not operand.element_type:
        raise ShapeError("scalar-value", f"padding value {padding_value} is not a scalar of type {operand.type}")
    if len(dimensions) != operand.rank:
        raise ShapeError("one-each", f"{len(dimensions)} paddings are given for {operand}")
    sizes = []
    for dim, (padding, size) in enumerate(zip(dimensions, operand.dims, strict=True)):
        if padding.interior < 0:
            raise ShapeError("interior", f"interior padding {padding.interior} of dimension {dim} is negative")
        padded = padding.low + padding.high + size + max(size - 1, 0) * padding.interior
        if size != UNBOUNDED and padded < 0:
            raise ShapeError("result-size", f"dimension {dim} of {operand} would get size {padded}")
        sizes.append(UNBOUNDED if size == UNBOUNDED else padded)
    return operand.with_dims(sizes, operand.dynamic)


@op("concatenate", traits=INDEX_MAP, hlo_text={"dimension": "dimensions={}"})
def concatenate(inputs: Variadic, *, dimension: int) -> Shape:
    """Joins `inputs` along `dimension`, in order.

    array-operands: the inputs are arrays.
    some-inputs [B1 C3]: there is at least one input.
    not-scalars [B4 C4]: the inputs have dimensions.
    dimension-in-range [C4]: `dimension` is a dimension of the inputs.
    same-type [B2 C1]: the inputs agree in element type.
    same-rank [B2 C2]: the inputs agree in rank.
    same-other-dims [B3 C2]: the inputs agree in every other dimension.
    """
    if not inputs:
        raise ShapeError("some-inputs", "nothing to concatenate")
    first = inputs[0]
    require_array(first)
    if not first.rank:
        raise ShapeError("not-scalars", f"{first} has no dimension to concatenate along")
    check_dimension(first, dimension)
    for other in inputs[1:]:
        require_array(other)
        if other.element_type is not first.element_type:
            raise ShapeError("same-type", f"{other} and {first} have different element types")
        if other.rank != first.rank:
            raise ShapeError("same-rank", f"{other} and {first} have different ranks")
        if other.dims != first.dims and not other.without(dimension).has_dims_of(first.without(dimension)):
            raise ShapeError("same-other-dims", f"{other} and {first} differ outside dimension {dimension}")
    sizes = [shape.dims[dimension] for shape in inputs]
    dims = [max(shape.dims[dim] for shape in inputs) for dim in range(first.rank)]  # a known size is above UNBOUNDED
    dims[dimension] = UNBOUNDED if UNBOUNDED in sizes else sum(sizes)
    dynamic = [any(shape.is_dynamic_dim(dim) for shape in inputs) for dim in range(first.rank)]
    return first.with_dims(dims, dynamic)
