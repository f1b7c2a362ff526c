"""Shapes as the runtime knows them: trees of array and token specs."""

from __future__ import annotations

from xlapy.hlo.shape import Shape
from xlapy_runtime.program import ArraySpec, TokenSpec, Tree


def array_spec(shape: Shape) -> ArraySpec:
    order = () if shape.layout is None or shape.layout.is_row_major else shape.layout.minor_to_major
    return ArraySpec(shape.type.dtype, shape.dims, shape.dynamic, order)


def tree_of(shape: Shape) -> Tree:
    """The runtime's tree for a shape; arrays that a caller sees are row-major."""
    if shape.elements is not None:
        return tuple(tree_of(part) for part in shape.elements)
    return array_spec(shape.without_layout()) if shape.is_array else TokenSpec()


def array_leaves(shape: Shape) -> tuple[ArraySpec, ...]:
    return tuple(array_spec(leaf) for leaf in shape.leaves() if leaf.is_array)
