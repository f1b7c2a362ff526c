"""Checks that rules of several families share. Each raises ShapeError under the slug of the constraint that is broken."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


def require_array(*shapes: Shape) -> None:
    """array-operands: all of them are arrays."""
    for shape in shapes:
        if not shape.is_array:
            raise ShapeError("array-operands", f"{shape} is not an array")


def check_dimension(shape: Shape, dimension: int) -> None:
    """dimension-in-range: `dimension` is a dimension of the array."""
    if not 0 <= dimension < shape.rank:
        raise ShapeError("dimension-in-range", f"dimension {dimension} is outside {shape}")


def check_dimensions(shape: Shape, dimensions: Sequence[int]) -> None:
    """dimensions-in-range, dimensions-unique: `dimensions` are dimensions of the array, none listed twice."""
    for dim in dimensions:
        if not 0 <= dim < shape.rank:
            raise ShapeError("dimensions-in-range", f"dimension {dim} is outside {shape}")
    if len(set(dimensions)) != len(dimensions):
        raise ShapeError("dimensions-unique", f"dimensions {list(dimensions)} repeat one")
