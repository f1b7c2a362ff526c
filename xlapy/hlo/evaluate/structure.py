"""Tuples, constants, tokens, run-time sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlapy.hlo.evaluate.base import TOKEN, Value, evaluator
from xlapy.hlo.evaluate.numerics import Array, convert
from xlapy.hlo.evaluate.shapes import grown
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import InternalError


@evaluator("parameter")
def parameter(*, number: int, result: Shape) -> Value:
    raise InternalError(f"parameter {number} of shape {result} has no argument")


@evaluator("constant")
def constant(*, literal: Literal) -> Value:
    return literal.to_value()


@evaluator("iota")
def iota(*, dimension: int, result: Shape) -> Array:
    counts = convert(np.arange(result.dims[dimension], dtype=np.int64), result.type)
    return np.broadcast_to(counts.reshape([-1 if dim == dimension else 1 for dim in range(result.rank)]), result.dims)


@evaluator("tuple")
def tuple_(elements: Sequence[Value]) -> Value:
    return tuple(elements)


@evaluator("get-tuple-element")
def get_tuple_element(operand: Value, *, index: int) -> Value:
    return operand[index]


@evaluator("after-all")
def after_all(tokens: Sequence[Value]) -> Value:
    return TOKEN


@evaluator("add-dependency")
def add_dependency(operand: Value, token: Value) -> Value:
    return operand


@evaluator("opt-barrier")
def opt_barrier(operand: Value) -> Value:
    return operand


@evaluator("get-dimension-size")
def get_dimension_size(operand: Array, *, dimension: int) -> Array:
    return np.asarray(np.int32(operand.shape[dimension]))


@evaluator("set-dimension-size")
def set_dimension_size(operand: Array, size: Array, *, dimension: int, result: Shape) -> Array:
    """Cuts, unless the result is stated as static; what an already shorter array gains is zero."""
    bound = result.dims[dimension]
    wanted = max(int(size), 0) if bound == UNBOUNDED else min(max(int(size), 0), bound)
    if not result.is_dynamic_dim(dimension):
        wanted = bound
    sizes = [wanted if dim == dimension else own for dim, own in enumerate(operand.shape)]
    return grown(operand, sizes).take(range(wanted), axis=dimension)
