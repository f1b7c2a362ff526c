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

x, y, p, numbers = variables("x y p numbers")


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


def _through(permutation: Dims, dims: Dims) -> Dims:
    return tuple(permutation[dim] for dim in dims)
