"""Shapes as the runtime knows them: trees of array and token specs."""

from __future__ import annotations

from xlapy.hlo.shape import Shape
from xlapy_runtime.program import ArraySpec, TokenSpec, Tree


def array_spec(shape: Shape) -> ArraySpec:
    return ArraySpec(shape.type.dtype, shape.dims, shape.dynamic)


def tree_of(shape: Shape) -> Tree:
    """The runtime's tree for a shape; layouts do not matter there."""
    if shape.elements is not None:
        return tuple(tree_of(part) for part in shape.elements)
    return array_spec(shape) if shape.is_array else TokenSpec()


def array_leaves(shape: Shape) -> tuple[ArraySpec, ...]:
    return tuple(array_spec(leaf) for leaf in shape.leaves() if leaf.is_array)
