"""Laws of dot."""

from __future__ import annotations

from dataclasses import replace

from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, z, p, numbers = variables("x y z p numbers")


@LAWS.law(P.dot(P.transpose(x, permutation=p), y, dimension_numbers=numbers))
def dot_of_transposed_left(
    root: Instruction, x: Instruction, y: Instruction, p: Dims, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(transpose(x), y) -> dot(x, y) over other dimensions, where the free ones keep their order"""
    free = [p[dim] for dim in numbers.lhs_free(len(p))]
    if free != sorted(free):
        return None
    batch, contracting = _through(p, numbers.lhs_batch), _through(p, numbers.lhs_contracting)
    return new.like(root, [x, y], dimension_numbers=replace(numbers, lhs_batch=batch, lhs_contracting=contracting))


@LAWS.law(P.dot(x, P.transpose(y, permutation=p), dimension_numbers=numbers))
def dot_of_transposed_right(
    root: Instruction, x: Instruction, y: Instruction, p: Dims, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, transpose(y)) -> dot(x, y) over other dimensions, where the free ones keep their order"""
    free = [p[dim] for dim in numbers.rhs_free(len(p))]
    if free != sorted(free):
        return None
    batch, contracting = _through(p, numbers.rhs_batch), _through(p, numbers.rhs_contracting)
    return new.like(root, [x, y], dimension_numbers=replace(numbers, rhs_batch=batch, rhs_contracting=contracting))


@LAWS.law(P.transpose(y.where(P.only(P.dot(x, z, dimension_numbers=numbers))), permutation=p))
def transpose_of_dot(
    x: Instruction, y: Instruction, z: Instruction, p: Dims, numbers: DotDimensionNumbers
) -> Value | None:
    """transpose(dot(x, z)) -> dot(z, x), where the free dimensions of the two sides change places"""
    batch = len(numbers.lhs_batch)
    left, right = numbers.lhs_free(x.shape.rank), numbers.rhs_free(z.shape.rank)
    first_right = batch + len(left)
    exchanged = (*range(batch), *range(first_right, first_right + len(right)), *range(batch, first_right))
    if p != exchanged:
        return None
    swapped = DotDimensionNumbers(
        numbers.rhs_contracting, numbers.lhs_contracting, numbers.rhs_batch, numbers.lhs_batch
    )
    precision = y.attributes["operand_precision"][::-1]
    shape = y.shape.select_dims(exchanged)
    return new.dot(
        z, x, shape=shape, dimension_numbers=swapped, operand_precision=precision, algorithm=y.attributes["algorithm"]
    )


def _through(permutation: Dims, dims: Dims) -> Dims:
    return tuple(permutation[dim] for dim in dims)
