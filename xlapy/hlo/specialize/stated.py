"""Results whose shapes the text states: what their `?` are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.hlo.specialize.base import Copy, refuse_undetermined


def _like_operand(copy: Copy, instruction: Instruction, operand: Shape) -> Shape:
    """The dimensions of the operand, in another element type."""
    return operand.without_layout().with_type(instruction.shape.type)


def _like_leading(copy: Copy, instruction: Instruction, operand: Shape) -> Shape:
    """Sizes that a `?` takes from the operand; a last dimension that is cut or joined must be static."""
    shape = instruction.shape
    dims = list(shape.dims)
    for dim, size in enumerate(operand.dims[: len(dims)]):
        if dims[dim] == UNBOUNDED:
            dims[dim] = size
    return _with_sizes(shape, dims)


def _of_broadcast(copy: Copy, instruction: Instruction, operand: Shape) -> Shape:
    """Sizes that the operand has; those of new dimensions are those of the arrays that it is combined with."""
    dims = list(instruction.shape.dims)
    for size, target in zip(operand.dims, instruction.attributes["dimensions"], strict=True):
        if dims[target] == UNBOUNDED:
            dims[target] = size
    for like in _combined_with(copy, instruction) if UNBOUNDED in dims else ():
        dims = [size if known == UNBOUNDED else known for known, size in zip(dims, like.dims, strict=True)]
    if UNBOUNDED in dims:
        refuse_undetermined(instruction)
    return _with_sizes(instruction.shape, dims)


def _combined_with(copy: Copy, instruction: Instruction) -> Iterator[Shape]:
    """The shapes of what users take element by element together with an instruction, as far as they are copied."""
    for user in instruction.users:
        if Trait.ELEMENTWISE in user.spec.traits:
            others = (copy.copies[operand].shape for operand in user.operands if operand in copy.copies)
            yield from (shape for shape in others if shape.rank == instruction.shape.rank)


def _of_reshape(copy: Copy, instruction: Instruction, operand: Shape) -> Shape:
    """One `?` that is left, from the number of elements."""
    dims = list(instruction.shape.dims)
    others = math.prod(size for size in dims if size != UNBOUNDED)
    if dims.count(UNBOUNDED) != 1 or not others or operand.size % others:
        refuse_undetermined(instruction)
    dims[dims.index(UNBOUNDED)] = operand.size // others
    return _with_sizes(instruction.shape, dims)


def _with_sizes(shape: Shape, dims: Sequence[int]) -> Shape:
    """The shape with all sizes known: what was bounded stays so."""
    dynamic = [shape.is_dynamic_dim(dim) and shape.dims[dim] != UNBOUNDED for dim in range(shape.rank)]
    return shape.with_dims(dims, dynamic)


STATED: Mapping[str, Callable[[Copy, Instruction, Shape], Shape]] = {
    "convert": _like_operand,
    "bitcast-convert": _like_leading,
    "broadcast": _of_broadcast,
    "reshape": _of_reshape,
}
"""Results that the text states, and whose `?` follow from the operand. Other rules look at element types only."""

assert set(STATED) <= set(OPS)
