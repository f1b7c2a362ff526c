"""What decompositions are made of: batches of matrices [batch, rows, columns], their rows, columns and elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlapy.builder.builder import XlaBuilder
from xlapy.builder.control_flow import While
from xlapy.builder.elementwise import Conj, ConvertElementType, Or, Real, Select, Square
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op, builder_of, record_literal
from xlapy.builder.reductions import Reduce
from xlapy.builder.shapes import BroadcastInDim, Pad, Reshape, Transpose, require_array
from xlapy.builder.structure import Iota
from xlapy.hlo.attributes import PaddingDimension
from xlapy.hlo.element_types import S32
from xlapy.hlo.ops.linalg import INEXACT
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


def in_matrices(operand: Operand) -> tuple[XlaOp, tuple[int, ...]]:
    """The operand as [batch, rows, columns], and what the batch dimensions were."""
    builder = builder_of(operand)
    a = as_op(builder, operand)
    shape = require_array(a)
    if shape.element_type not in INEXACT:
        raise ShapeError("element-type", f"{shape} is not an array of floats or complex numbers")
    if shape.rank < 2:
        raise ShapeError("rank", f"{shape} is not a matrix, nor a batch of them")
    if shape.is_unbounded:
        raise ShapeError("known-sizes", f"the sizes of {shape} are not all known while the steps are recorded")
    batch = shape.dims[:-2]
    return Reshape(a, (math.prod(batch), *shape.dims[-2:])), batch


def unbatched(array: XlaOp, batch: tuple[int, ...]) -> XlaOp:
    return Reshape(array, (*batch, *array.shape.dims[1:]))


def repeated(steps: int, step: Callable[..., Any], state: Sequence[XlaOp]) -> list[XlaOp]:
    """Runs `step(number, *state)` for numbers below `steps`; returns the last state."""
    if not steps:  # there may be no column for a step to look at
        return [*state]
    zero = record_literal(state[0].builder, np.int32(0))

    def body(values: Sequence[XlaOp]) -> tuple[XlaOp, ...]:
        number, *rest = values
        return number + 1, *step(number, *rest)

    _, *last = While(lambda values: values[0] < steps, body, (zero, *state))
    return last


def row_numbers(a: XlaOp) -> XlaOp:
    return Iota(a.builder, Shape.array(S32, a.shape.dims), 1)


def column_numbers(a: XlaOp) -> XlaOp:
    return Iota(a.builder, Shape.array(S32, a.shape.dims), 2)


def diagonal_of(a: XlaOp) -> XlaOp:
    size = min(a.shape.dims[1:])
    a = resized(a, size, size)
    return summed(Select(row_numbers(a) == column_numbers(a), a, zeros_like(a)), 2)


def resized(a: XlaOp, rows: int, columns: int) -> XlaOp:
    """The matrix cut to a size, or filled up with zeros."""
    _, old_rows, old_columns = a.shape.dims
    if (rows, columns) == (old_rows, old_columns):
        return a
    config = [PaddingDimension(), PaddingDimension(0, rows - old_rows), PaddingDimension(0, columns - old_columns)]
    return Pad(a, scalar_like(a, 0), config)


def hermitian(a: XlaOp, lower: bool) -> XlaOp:
    """The matrix of which one triangle is given."""
    row, column = row_numbers(a), column_numbers(a)
    is_given = row > column if lower else row < column
    diagonal = as_type_of(real_parts(a), a)
    return Select(is_given, a, Select(row == column, diagonal, adjoint(a)))


def adjoint(a: XlaOp) -> XlaOp:
    transposed = Transpose(a, (0, 2, 1))
    return Conj(transposed) if a.shape.type.is_complex else transposed


def unit_like(a: XlaOp) -> XlaOp:
    return unit_of(a, a.shape.dims)


def unit_of(a: XlaOp, dims: tuple[int, ...]) -> XlaOp:
    """Unit matrices of other dimensions, with the elements of `a`."""
    shape = Shape.array(S32, dims)
    is_diagonal = Iota(a.builder, shape, 1) == Iota(a.builder, shape, 2)
    return ConvertElementType(is_diagonal, a.shape.type)


# -- elements ----------------------------------------------------------------------------------------------------------


def filled(builder: XlaBuilder, value: Any, element_type: Any, dims: tuple[int, ...]) -> XlaOp:
    return BroadcastInDim(record_literal(builder, np.array(value, element_type.dtype)), dims, ())


def filled_like(a: XlaOp, value: Any) -> XlaOp:
    return filled(a.builder, value, a.shape.type, a.shape.dims)


def zeros_like(a: XlaOp) -> XlaOp:
    return filled_like(a, 0)


def ones_like(a: XlaOp) -> XlaOp:
    return filled_like(a, 1)


def scalar_like(a: XlaOp, value: Any) -> XlaOp:
    return record_literal(a.builder, np.array(value, a.shape.type.dtype))


def spread(values: XlaOp, like: XlaOp, *dims: int) -> XlaOp:
    """The values along `dims` of an array like another."""
    return BroadcastInDim(values, like.shape.dims, dims)


def spread_rows(values: XlaOp, size: int) -> XlaOp:
    """Each value `size` times in a new last dimension."""
    return BroadcastInDim(values, (*values.shape.dims, size), tuple(range(values.shape.rank)))


def folded(a: XlaOp, dim: int, computation: Callable[[XlaOp, XlaOp], XlaOp], start: Any) -> XlaOp:
    return Reduce(a, scalar_like(a, start), computation, (dim,))


def summed(a: XlaOp, *dims: int) -> XlaOp:
    return Reduce(a, scalar_like(a, 0), lambda x, y: x + y, dims)


def is_any(a: XlaOp) -> XlaOp:
    return Reduce(a, scalar_like(a, False), Or, tuple(range(a.shape.rank)))


def squared(a: XlaOp) -> XlaOp:
    """The squared magnitude of each element."""
    return Square(a.real()) + Square(a.imag()) if a.shape.type.is_complex else Square(a)


def real_parts(a: XlaOp) -> XlaOp:
    return Real(a) if a.shape.type.is_complex else a


def as_type_of(real: XlaOp, like: XlaOp) -> XlaOp:
    """Real numbers as elements of another array's type."""
    return ConvertElementType(real, like.shape.type) if like.shape.type.is_complex else real
