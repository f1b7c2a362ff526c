"""Folding dimensions: reduce and map.

Elements are folded in the order of their indices, so that results do not depend on how the work was cut. A region that
is one sum or product of narrow floats is accumulated in f32 and rounded at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import numpy as np

from xlapy.hlo.evaluate.base import EVALUATORS, Run, Value, align, evaluator, run
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow, widen
from xlapy.hlo.evaluate.regions import array_function, binary_operation
from xlapy.hlo.graph import Computation, Instruction

Steps = Generator[Run, Value, Any]


@evaluator("reduce")
def reduce(
    inputs: Sequence[Array], init_values: Sequence[Array], *, computation: Computation, dimensions: tuple[int, ...]
) -> Steps:
    rows = [_folded_first(array, dimensions) for array in align(*inputs)]
    operation = binary_operation(computation)
    if operation is not None and len(rows) == 1:
        return fold_by_one(operation, rows[0], init_values[0])
    results = yield from fold(rows, init_values, computation)
    return results if len(results) > 1 else results[0]


def _folded_first(array: Array, dimensions: Sequence[int]) -> Array:
    """The array with the listed dimensions merged, in order, into a new first one."""
    listed = sorted(dimensions)
    kept = [dim for dim in range(array.ndim) if dim not in dimensions]
    count = math.prod(array.shape[dim] for dim in listed)
    return array.transpose([*listed, *kept]).reshape([count, *(array.shape[dim] for dim in kept)])


def fold_by_one(operation: Instruction, rows: Array, init: Array) -> Array:
    """Folds the first dimension by one commutative operation: exact ones by halves, sums of floats in order."""
    rows = np.concatenate([np.broadcast_to(init, (1, *rows.shape[1:])), rows])
    target = element_type(rows)
    if target.is_float or target.is_complex:
        ordered = {"add": np.add, "multiply": np.multiply}.get(operation.opcode)
        if ordered is not None:
            with np.errstate(all="ignore"):
                return narrow(ordered.accumulate(widen(rows), axis=0)[-1], target)
    while len(rows) > 1:
        half = len(rows) // 2
        combined = EVALUATORS[operation.opcode](operation, [rows[:half], rows[half : 2 * half]])
        rows = np.concatenate([combined, rows[2 * half :]])
    return np.asarray(rows[0])


def fold(rows: Sequence[Array], init_values: Sequence[Array], computation: Computation) -> Steps:
    """Folds the first dimension of several arrays together, element after element."""
    running = tuple(np.broadcast_to(init, row.shape[1:]) for row, init in zip(rows, init_values, strict=True))
    combine = applying(computation)
    for elements in zip(*rows, strict=True):
        running = yield from combine((*running, *elements))
    return running


Applied: TypeAlias = Generator[Run, Value, tuple[Array, ...]]


def applying(computation: Computation) -> Callable[[Sequence[Array]], Applied]:
    """A scalar computation, made ready to be applied at every index of arrays: one array for each of its results."""
    at_once = array_function(computation)
    shape = computation.root.shape
    parts = shape.parts if shape.is_tuple else (shape,)

    def apply(arguments: Sequence[Array]) -> Applied:
        if at_once is not None:
            return at_once(arguments)
        results = tuple(np.empty(arguments[0].shape, part.type.dtype) for part in parts)
        for index in np.ndindex(arguments[0].shape):
            values = yield from run(computation, *(np.asarray(argument[index]) for argument in arguments))
            for result, value in zip(results, values if shape.is_tuple else (values,), strict=True):
                result[index] = value
        return results

    return apply


@evaluator("map")
def map_(operands: Sequence[Array], *, computation: Computation, dimensions: tuple[int, ...]) -> Steps:
    (result,) = yield from applying(computation)(align(*operands))
    return result
