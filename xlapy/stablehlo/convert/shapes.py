"""Data movement: broadcasts, reshape, transpose, slices, pad, concatenate, reverse, iota, and sizes of dimensions."""

from __future__ import annotations

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import Body, attribute, converts, integers
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ShapeError


@converts("stablehlo.broadcast_in_dim")
def broadcast_in_dim(body: Body, operation: Operation) -> Instruction:
    (operand,) = body.operands(operation)
    return stretched(body, operand, operation.result_types[0], integers(operation, "broadcast_dimensions"))


def stretched(body: Body, operand: Instruction, result: Shape, dimensions: tuple[int, ...]) -> Instruction:
    """HLO's broadcast stretches no dimension: those of size 1 that must grow are dropped by a reshape first."""
    shape = operand.shape
    in_range = all(0 <= dim < result.rank for dim in dimensions)
    if len(dimensions) == shape.rank and in_range and len(set(dimensions)) == len(dimensions):
        kept = [d for d, target in enumerate(dimensions) if shape.dims[d] != 1 or result.dims[target] == 1]
        if len(kept) != shape.rank:
            operand = body.add("reshape", operand, shape=shape.select_dims(kept))
            dimensions = tuple(dimensions[d] for d in kept)
    return body.add("broadcast", operand, shape=result, dimensions=dimensions)


@converts("stablehlo.broadcast")
def broadcast(body: Body, operation: Operation) -> Instruction:
    """New dimensions before those of the operand."""
    (operand,) = body.operands(operation)
    sizes = integers(operation, "broadcast_sizes")
    shape = operand.shape
    result = shape.with_dims((*sizes, *shape.dims), (*[False] * len(sizes), *(shape.dynamic or [False] * shape.rank)))
    return body.add("broadcast", operand, shape=result, dimensions=tuple(range(len(sizes), result.rank)))


@converts("stablehlo.reshape")
def reshape(body: Body, operation: Operation) -> Instruction:
    return body.add("reshape", *body.operands(operation), shape=operation.result_types[0])


@converts("stablehlo.bitcast_convert")
def bitcast_convert(body: Body, operation: Operation) -> Instruction:
    return body.add("bitcast-convert", *body.operands(operation), shape=operation.result_types[0])


@converts("stablehlo.transpose")
def transpose(body: Body, operation: Operation) -> Instruction:
    return body.add("transpose", *body.operands(operation), permutation=integers(operation, "permutation"))


@converts("stablehlo.reverse")
def reverse(body: Body, operation: Operation) -> Instruction:
    return body.add("reverse", *body.operands(operation), dimensions=integers(operation, "dimensions"))


@converts("stablehlo.slice")
def slice_(body: Body, operation: Operation) -> Instruction:
    starts = integers(operation, "start_indices")
    limits = integers(operation, "limit_indices")
    strides = integers(operation, "strides", (1,) * len(starts))
    if not len(starts) == len(limits) == len(strides):
        raise ShapeError("slice.one-each", "start_indices, limit_indices and strides differ in length")
    ranges = tuple(SliceDimension(*part) for part in zip(starts, limits, strides, strict=True))
    return body.add("slice", *body.operands(operation), dimensions=ranges)


@converts("stablehlo.pad")
def pad(body: Body, operation: Operation) -> Instruction:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (integers(operation, name) for name in names)
    if not len(low) == len(high) == len(interior):
        raise ShapeError("pad.one-each", f"{', '.join(names)} differ in length")
    dimensions = tuple(PaddingDimension(*part) for part in zip(low, high, interior, strict=True))
    return body.add("pad", *body.operands(operation), dimensions=dimensions)


@converts("stablehlo.concatenate")
def concatenate(body: Body, operation: Operation) -> Instruction:
    return body.add("concatenate", *body.operands(operation), dimension=attribute(operation, "dimension", int))


@converts("stablehlo.iota")
def iota(body: Body, operation: Operation) -> Instruction:
    dimension = attribute(operation, "iota_dimension", int)
    return body.add("iota", shape=operation.result_types[0], dimension=dimension)


@converts("stablehlo.dynamic_slice")
def dynamic_slice(body: Body, operation: Operation) -> Instruction:
    return body.add("dynamic-slice", *body.operands(operation), slice_sizes=integers(operation, "slice_sizes"))


@converts("stablehlo.dynamic_update_slice")
def dynamic_update_slice(body: Body, operation: Operation) -> Instruction:
    return body.add("dynamic-update-slice", *body.operands(operation))


@converts("stablehlo.get_dimension_size")
def get_dimension_size(body: Body, operation: Operation) -> Instruction:
    return body.add("get-dimension-size", *body.operands(operation), dimension=attribute(operation, "dimension", int))


@converts("stablehlo.set_dimension_size")
def set_dimension_size(body: Body, operation: Operation) -> Instruction:
    return body.add(
        "set-dimension-size",
        *body.operands(operation),
        shape=operation.result_types[0],
        dimension=attribute(operation, "dimension", int),
    )
