"""Operations with sizes as operands whose results have bounds: the sizes need not be known before the program runs.

    %z = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, #stablehlo.bounds<8>>

is an iota of eight elements, of which `set-dimension-size` keeps the first `%n`.
"""

from __future__ import annotations

import math

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import Body, integers
from xlapy.stablehlo.convert.deferred import Use
from xlapy.stablehlo.convert.shapes import stretched
from xlapy.support.errors import UnsupportedError


def has_bounds(shape: Shape) -> bool:
    """Some dimensions are bounded, and none is left open."""
    return bool(shape.dynamic) and not shape.is_unbounded


def element(body: Body, vector: Instruction, position: int) -> Instruction:
    """A scalar of a vector."""
    one = body.add("slice", vector, dimensions=(SliceDimension(position, position + 1, 1),))
    return body.add("reshape", one, shape=Shape.scalar(vector.shape.type))


def _cut(body: Body, whole: Instruction, dim: int, size: Instruction) -> Instruction:
    """The first `size` entries along a dimension, as many as there are at most."""
    bound, element_type = whole.shape.dims[dim], size.shape.type
    if element_type is not S32:
        clamped = [body.constant(0, element_type), size, body.constant(bound, element_type)]
        size = body.add("convert", body.add("clamp", *clamped), shape=Shape.scalar(S32))
    return body.add("set-dimension-size", whole, size, dimension=dim)


def _cut_to(body: Body, whole: Instruction, stated: Shape, sizes: Instruction) -> Instruction:
    """The bounded dimensions of `stated` cut to the sizes in a vector."""
    for dim in range(stated.rank):
        if stated.is_dynamic_dim(dim):
            whole = _cut(body, whole, dim, element(body, sizes, dim))
    return whole


def bounded_iota(use: Use, dimension: int) -> Instruction:
    whole = use.body.add("iota", shape=use.result.static(), dimension=dimension)
    return _cut_to(use.body, whole, use.result, use.operands[0])


def bounded_broadcast(use: Use) -> Instruction:
    operand, sizes = use.operands
    targets = integers(use.operation, "broadcast_dimensions")
    kept = {target for dim, target in enumerate(targets) if operand.shape.is_dynamic_dim(dim)}
    stated = use.result
    result = stated.with_dims(stated.dims, [dim in kept for dim in range(stated.rank)])
    return _cut_to(use.body, stretched(use.body, operand, result, targets), stated, sizes)


def bounded_reshape(use: Use) -> Instruction:
    """One bounded dimension takes the elements that there are; a first one may have room for more."""
    operand, sizes = use.operands
    body, stated = use.body, use.result
    if operand.shape.size == stated.size and sum(stated.dynamic) == 1:
        return body.add("reshape", operand, shape=stated)
    only_first = stated.dynamic == (True, *[False] * (stated.rank - 1))
    if not only_first or not operand.shape.is_static or operand.shape.size > stated.size:
        raise UnsupportedError(f"{use.operation.name}: where the elements of {stated} lie depends on sizes at run time")
    row = body.add("reshape", operand, shape=operand.shape.with_dims((operand.shape.size,)))
    zero = body.constant(0, row.shape.type)
    filled = body.add("pad", row, zero, dimensions=(PaddingDimension(0, stated.size - row.shape.size, 0),))
    return _cut_to(body, body.add("reshape", filled, shape=stated.static()), stated, sizes)


def bounded_slice(use: Use) -> Instruction:
    """A slice as large as the bounds, of the operand with so much behind it that the slice fits at any start."""
    operand, start, limit, _ = use.operands
    body, stated = use.body, use.result
    strides = use.sizes(3)
    spans = [(size - 1) * stride + 1 if size else 0 for size, stride in zip(stated.dims, strides, strict=True)]
    behind = tuple(PaddingDimension(0, span, 0) for span in spans)
    longer = body.add("pad", operand, body.constant(0, operand.shape.type), dimensions=behind)
    starts = [element(body, start, dim) for dim in range(stated.rank)]
    taken = body.add("dynamic-slice", longer, *starts, slice_sizes=tuple(spans))
    if any(stride != 1 for stride in strides):
        ranges = tuple(SliceDimension(0, span, stride) for span, stride in zip(spans, strides, strict=True))
        taken = body.add("slice", taken, dimensions=ranges)
    return _cut_to(body, taken, stated, _counts(body, start, limit, strides))


def _counts(body: Body, start: Instruction, limit: Instruction, strides: tuple[int, ...]) -> Instruction:
    """How many places there are from start to limit, in steps of the strides; none if the limit comes first."""
    distance = body.add("subtract", limit, start)
    if math.prod(strides) == 1:
        return distance
    shape = distance.shape
    last, steps = (
        body.add("constant", literal=Literal([stride - less for stride in strides], shape)) for less in (1, 0)
    )
    return body.add("divide", body.add("add", distance, last), steps)
