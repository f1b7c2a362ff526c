"""Broadcasting of binary operations: rank promotion by `broadcast_dimensions`, then expansion of dimensions of size 1.

    f32[4,3,1] + f32[1,2], broadcast_dimensions=(1, 2)      becomes

    dropped  = f32[4,3] reshape(lhs)
    lhs2     = f32[4,3,2] broadcast(dropped), dimensions={0,1}
    dropped2 = f32[2] reshape(rhs)
    rhs2     = f32[4,3,2] broadcast(dropped2), dimensions={2}
    sum      = f32[4,3,2] add(lhs2, rhs2)

A rank is never promoted without being told how, and the errors name the rules of the specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xlapy.builder.op import XlaOp
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError

Dims = tuple[int, ...]


def broadcast_operands(lhs: XlaOp, rhs: XlaOp, dimensions: Dims) -> tuple[XlaOp, XlaOp]:
    """Both operands with the dimensions that their element-wise combination has."""
    left, right = lhs.shape, rhs.shape
    if left.dims == right.dims and not dimensions:
        return lhs, rhs
    low, high = (left, right) if left.rank <= right.rank else (right, left)
    promotion = promoted_dimensions(low, high, dimensions)
    sizes = expanded_sizes(low, high, promotion)
    lhs_dims, rhs_dims = (promotion, range(right.rank)) if low is left else (range(left.rank), promotion)
    return expand(lhs, sizes, tuple(lhs_dims)), expand(rhs, sizes, tuple(rhs_dims))


def promoted_dimensions(low: Shape, high: Shape, dimensions: Dims) -> Dims:
    """The dimension of `high` that each dimension of `low` is matched with."""
    if not low.rank:
        if dimensions:
            raise ShapeError("Broadcasting.R20", f"a scalar has no dimensions to map, but {list(dimensions)} are given")
        return ()
    if low.rank == high.rank:
        if dimensions not in ((), tuple(range(low.rank))):
            raise ShapeError(
                "Broadcasting.R19",
                f"{low} and {high} have the same rank: broadcast_dimensions may only be {list(range(low.rank))}, "
                f"not {list(dimensions)}",
            )
        return tuple(range(low.rank))
    if not dimensions:
        raise ShapeError(
            "Broadcasting.R3",
            f"{low} and {high} have different ranks: say in broadcast_dimensions to which dimensions of {high} those "
            f"of {low} belong{_suggestion(low, high)}",
        )
    if len(dimensions) != low.rank:
        raise ShapeError(
            "Broadcasting.R4",
            f"broadcast_dimensions {list(dimensions)} must have one entry for each dimension of {low}",
        )
    for dim in dimensions:
        if not 0 <= dim < high.rank:
            raise ShapeError("Broadcasting.R5", f"{dim} in broadcast_dimensions is not a dimension of {high}")
    if any(first >= second for first, second in pairwise(dimensions)):
        raise ShapeError("Broadcasting.R6", f"broadcast_dimensions {list(dimensions)} are not strictly increasing")
    return dimensions


def _suggestion(low: Shape, high: Shape) -> str:
    """The first increasing mapping under which the sizes are equal, if there is one."""
    found: list[int] = []
    for dim, size in enumerate(high.dims):
        if len(found) < low.rank and low.dims[len(found)] == size:
            found.append(dim)
    return f", for example {found}" if len(found) == low.rank else ""


def expanded_sizes(low: Shape, high: Shape, promotion: Dims) -> Dims:
    """The sizes of the result: those of `high`, or of `low` where `high` has size 1."""
    rule = "Broadcasting.R10" if low.rank == high.rank else "Broadcasting.R7"
    sizes = list(high.dims)
    for dim, target in enumerate(promotion):
        mine, other = low.dims[dim], high.dims[target]
        if mine == other or mine == 1 or UNBOUNDED in (mine, other):
            continue
        if other != 1:
            raise ShapeError(
                rule,
                f"dimension {dim} of {low} has size {mine}, dimension {target} of {high} has size {other}: "
                "they must be equal, or one of them 1",
            )
        sizes[target] = mine
    return tuple(sizes)


def expand(op: XlaOp, sizes: Sequence[int], dimensions: Dims) -> XlaOp:
    """The operand with dimensions `sizes`; its dimension i becomes `dimensions[i]`, those of size 1 are replicated.

    `dimensions` are distinct; they need not be increasing."""
    shape = op.shape
    kept = [dim for dim, target in enumerate(dimensions) if shape.dims[dim] == sizes[target] or shape.dims[dim] != 1]
    if shape.rank == len(sizes) and len(kept) == shape.rank and dimensions == tuple(range(shape.rank)):
        return op
    builder = op.builder
    if len(kept) < shape.rank:
        op = builder.record("reshape", [op], shape=shape.select_dims(kept))
    targets = tuple(dimensions[dim] for dim in kept)
    flags = [False] * len(sizes)
    for dim, target in zip(kept, targets, strict=True):
        flags[target] = shape.is_dynamic_dim(dim)
    return builder.record("broadcast", [op], shape=Shape.array(shape.type, sizes, flags), dimensions=targets)
