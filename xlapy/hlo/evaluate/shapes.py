"""Data movement with static indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.evaluate.base import evaluator, instruction_evaluator
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.graph import Instruction
from xlapy.hlo.reshape_groups import reshape_groups, run_time_dims
from xlapy.hlo.shape import Shape


@evaluator("broadcast")
def broadcast(operand: Array, *, dimensions: tuple[int, ...], result: Shape) -> Array:
    sizes = [*result.dims]
    for size, target in zip(operand.shape, dimensions, strict=True):
        sizes[target] = size
    in_order = operand.transpose(np.argsort(dimensions)) if dimensions else operand
    aligned = in_order.reshape([sizes[dim] if dim in dimensions else 1 for dim in range(result.rank)])
    return np.broadcast_to(aligned, sizes)


@instruction_evaluator("reshape")
def reshape(instruction: Instruction, operands: list[Array]) -> Array:
    """Run after run of dimensions: see `reshape_groups`. What does not fill a run is dropped."""
    (operand,) = operands
    before, after = instruction.operands[0].shape, instruction.shape
    if before.is_static or 0 in before.dims or not operand.size:
        return operand.reshape(run_time_dims(operand.shape, before, after))
    dims = run_time_dims(operand.shape, before, after)
    first = 0
    for group in reshape_groups(before, after):
        taken = operand.shape[first : first + len(group.before)]
        rest = operand.shape[first + len(group.before) :]
        sizes = [dims[dim] for dim in group.after]
        run = operand.reshape([*operand.shape[:first], math.prod(taken), *rest])
        run = run[(slice(None),) * first + (slice(math.prod(sizes)),)]
        operand = run.reshape([*run.shape[:first], *sizes, *rest])
        first += len(sizes)
    return operand


def grown(operand: Array, sizes: Sequence[int]) -> Array:
    """The array with at least these sizes: what it gains is zero."""
    missing = [(0, max(size - own, 0)) for size, own in zip(sizes, operand.shape, strict=True)]
    return np.pad(operand, missing) if any(count for _, count in missing) else operand


@evaluator("transpose")
def transpose(operand: Array, *, permutation: tuple[int, ...]) -> Array:
    return operand.transpose(permutation)


@evaluator("reverse")
def reverse(operand: Array, *, dimensions: tuple[int, ...]) -> Array:
    return np.flip(operand, dimensions)


@evaluator("slice")
def slice_(operand: Array, *, dimensions: tuple[SliceDimension, ...], result: Shape) -> Array:
    needed = [0 if result.is_dynamic_dim(dim) else part.limit for dim, part in enumerate(dimensions)]
    operand = grown(operand, needed)
    return operand[tuple(slice(part.start, part.limit, part.stride) for part in dimensions)]


@evaluator("pad")
def pad(operand: Array, padding_value: Array, *, dimensions: tuple[PaddingDimension, ...]) -> Array:
    """Spreads the operand for the interior padding, then adds edges, then cuts where they are negative."""
    spread_dims = [n + max(n - 1, 0) * p.interior for n, p in zip(operand.shape, dimensions, strict=True)]
    spread = _filled(
        [n + max(p.low, 0) + max(p.high, 0) for n, p in zip(spread_dims, dimensions, strict=True)], padding_value
    )
    inside = (
        slice(max(p.low, 0), max(p.low, 0) + n, p.interior + 1) for n, p in zip(spread_dims, dimensions, strict=True)
    )
    spread[tuple(inside)] = operand
    return spread[
        tuple(slice(max(-p.low, 0), n - max(-p.high, 0)) for n, p in zip(spread.shape, dimensions, strict=True))
    ]


def _filled(dims: Sequence[int], value: Array) -> Array:
    """An array of one value: before edges are cut, or as a window sees it, it may be larger than the arrays that have
    shapes."""
    try:
        return np.full(dims, value)
    except ValueError as error:  # numpy says so of more bytes than can be counted
        raise MemoryError(str(error)) from None


@evaluator("concatenate")
def concatenate(inputs: Sequence[Array], *, dimension: int) -> Array:
    """Other dimensions, which should be equal, are cut to the smallest of their run-time sizes."""
    common = [slice(min(sizes)) for sizes in zip(*(array.shape for array in inputs), strict=True)]
    common[dimension] = slice(None)
    return np.concatenate([array[tuple(common)] for array in inputs], axis=dimension)
