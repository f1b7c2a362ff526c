"""Orders of dimensions in memory.

An order lists the dimensions of an array from the slowest to the fastest: (0, 2, 3, 1) is what an image of batch,
feature, row and column has where its features lie side by side. A value *in an order* is the row-major array whose
dimension i is dimension `order[i]` of the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xlapy.hlo.shape import Dims, Shape

Order = tuple[int, ...]
T = TypeVar("T")


def is_movable(shape: Shape) -> bool:
    """An array whose dimensions can be in several orders."""
    return shape.is_array and shape.rank > 1 and shape.is_static and shape.size > 0


def row_major(rank: int) -> Order:
    return tuple(range(rank))


def is_row_major(order: Order) -> bool:
    return order == row_major(len(order))


def taken(values: Sequence[T], places: Sequence[int]) -> tuple[T, ...]:
    """The values at `places`: of what belongs to dimensions, that which belongs to those of an order."""
    return tuple(values[place] for place in places)


def inverse(order: Order) -> Order:
    """The place of each dimension in an order."""
    places = [0] * len(order)
    for place, dim in enumerate(order):
        places[dim] = place
    return tuple(places)


def wide(order: Sequence[int], dims: Dims) -> Order:
    """The dimensions of an order that have more than one element: the others have no say in where elements lie."""
    return tuple(dim for dim in order if dims[dim] != 1)


def same_memory(one: Order, other: Order, dims: Dims) -> bool:
    """Both orders put every element at the same place."""
    return one == other or wide(one, dims) == wide(other, dims)


def without(order: Order, dropped: Sequence[int]) -> Order:
    """The order of what is left of an array without some of its dimensions."""
    kept = [dim for dim in order if dim not in dropped]
    place = {dim: number for number, dim in enumerate(sorted(kept))}
    return tuple(place[dim] for dim in kept)


def fastest(order: Order, dims: Dims) -> int:
    """The dimension whose neighbours are neighbours in memory; -1 for a scalar."""
    return next((dim for dim in reversed(order) if dims[dim] != 1), order[-1] if order else -1)


def neighbours(run: Sequence[int], order: Order, dims: Dims) -> bool:
    """The dimensions of `run` follow each other in an order, as listed: they can be walked with one stride."""
    places = [wide(order, dims).index(dim) for dim in run if dims[dim] != 1]
    return all(place == places[0] + number for number, place in enumerate(places))


def order_of(shape: Shape) -> Order:
    """The order that the layout of a shape states."""
    return shape.minor_to_major[::-1]
