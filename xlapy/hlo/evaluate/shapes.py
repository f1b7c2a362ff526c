"""Data movement with static indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.shape import Shape


@evaluator("broadcast")
def broadcast(operand: Array, *, dimensions: tuple[int, ...], result: Shape) -> Array:
    sizes = [*result.dims]
    for size, target in zip(operand.shape, dimensions, strict=True):
        sizes[target] = size
    in_order = operand.transpose(np.argsort(dimensions)) if dimensions else operand
    aligned = in_order.reshape([sizes[dim] if dim in dimensions else 1 for dim in range(result.rank)])
    return np.broadcast_to(aligned, sizes)


@evaluator("reshape")
def reshape(operand: Array, *, result: Shape) -> Array:
    return operand.reshape(run_time_dims(operand.size, result))


def run_time_dims(size: int, shape: Shape) -> list[int]:
    """The dimensions of an array of `shape` that has `size` elements at run time.

    One bounded dimension takes what the others leave; more than one must fill their bounds, or the first gives way."""
    dims = [*shape.dims]
    bounded = [dim for dim in range(shape.rank) if shape.is_dynamic_dim(dim)]
    if bounded and math.prod(dims) != size:
        others = math.prod(dims[dim] for dim in range(shape.rank) if dim != bounded[0])
        dims[bounded[0]] = size // others if others else 0
    return dims


@evaluator("transpose")
def transpose(operand: Array, *, permutation: tuple[int, ...]) -> Array:
    return operand.transpose(permutation)


@evaluator("reverse")
def reverse(operand: Array, *, dimensions: tuple[int, ...]) -> Array:
    return np.flip(operand, dimensions)


@evaluator("slice")
def slice_(operand: Array, *, dimensions: tuple[SliceDimension, ...]) -> Array:
    return operand[tuple(slice(part.start, part.limit, part.stride) for part in dimensions)]


@evaluator("pad")
def pad(operand: Array, padding_value: Array, *, dimensions: tuple[PaddingDimension, ...]) -> Array:
    """Spreads the operand for the interior padding, then adds edges, then cuts where they are negative."""
    spread_dims = [n + max(n - 1, 0) * p.interior for n, p in zip(operand.shape, dimensions, strict=True)]
    spread = np.full(
        [n + max(p.low, 0) + max(p.high, 0) for n, p in zip(spread_dims, dimensions, strict=True)], padding_value
    )
    inside = (
        slice(max(p.low, 0), max(p.low, 0) + n, p.interior + 1) for n, p in zip(spread_dims, dimensions, strict=True)
    )
    spread[tuple(inside)] = operand
    return spread[
        tuple(slice(max(-p.low, 0), n - max(-p.high, 0)) for n, p in zip(spread.shape, dimensions, strict=True))
    ]


@evaluator("concatenate")
def concatenate(inputs: Sequence[Array], *, dimension: int) -> Array:
    return np.concatenate(inputs, axis=dimension)
