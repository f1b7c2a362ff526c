"""Which element each lane of a vector reads or writes.

A vector kernel computes several neighbouring elements at once. An index says, for every dimension, where each lane is:
a `Coordinate` is a scalar start that moves by a constant step per lane, and (rarely) a vector of positions on top of
that. Loads look at the steps: step 1 is a vector load, step 0 a scalar load and a splat, anything else a gather.

An index may also know its row-major number (`linear`), which survives reshapes for free, and a mask of the lanes whose
position exists at all (padding, concatenation).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from xlapy.codegen.ir import I32, I64, IRType, KernelBuilder, Operand, Value
from xlapy.hlo.shape import row_major_strides

MOST_REACH = 1 << 31  # what 32 bits hold as a number that is not negative


class Coordinate(NamedTuple):
    """Position `start + step * lane` in one dimension, plus `vector[lane]` if that is set.

    The vector holds 64 bits in each lane, or, if its numbers are known to lie in [0, reach), 32. `bounds` are known to
    hold the positions of all lanes."""

    start: Value
    step: int = 0
    vector: Value | None = None
    reach: int = 0
    bounds: range | None = None

    @property
    def is_uniform(self) -> bool:
        """All lanes are at the same position."""
        return self.vector is None and self.step == 0

    def lies_in(self, size: int) -> bool:
        """Whether no position can be outside of a dimension of that size."""
        return self.bounds is not None and self.bounds.start >= 0 and self.bounds.stop <= size

    def lies_outside(self, size: int) -> bool:
        """Whether all positions are outside of a dimension of that size."""
        return self.bounds is not None and (self.bounds.stop <= 0 or self.bounds.start >= size)


class Index(NamedTuple):
    """One coordinate per dimension of an array of `dims`; `linear` is the row-major element number, if known.

    At least one of the two is there; `coordinates` of a linear index are computed when somebody asks
    (`Indexing.split`)."""

    dims: tuple[int, ...]
    coordinates: tuple[Coordinate, ...] | None
    linear: Coordinate | None = None
    mask: Value | None = None  # i1, one lane or as many as the kernel has

    def __hash__(self) -> int:
        """What mostly tells indices apart at which one kernel needs an instruction."""
        moving = self.linear or (self.coordinates[-1] if self.coordinates else None)
        return hash(moving.start.text) if moving else 0


SCALAR = Index((), ())
"""Where the only element of a scalar is."""


def _depth(coordinate: Coordinate) -> int:
    """How deep in loops a position is found."""
    depth, vector = coordinate.start.scope.depth, coordinate.vector
    return depth if vector is None else max(depth, vector.scope.depth)


class Indexing:
    """Arithmetic on coordinates, for kernels of `lanes` lanes written with `k`."""

    def __init__(self, k: KernelBuilder, lanes: int) -> None:
        self.k = k
        self.lanes = lanes

    def constant(self, position: int) -> Coordinate:
        return Coordinate(self.k.const(I64, position))

    def scalar(self, value: Value) -> Coordinate:
        return Coordinate(value)

    def along_lanes(self, start: Value) -> Coordinate:
        """start, start + 1, ... one per lane."""
        return Coordinate(start, 1 if self.lanes > 1 else 0)

    def at(self, positions: Value, reach: int = 0) -> Coordinate:
        """Computed positions, one for all lanes or one for each; those of 32 bits lie in [0, reach)."""
        if positions.type.lanes == 1:
            return Coordinate(positions)
        return Coordinate(self.k.const(I64, 0), vector=positions, reach=reach)

    def vector(self, coordinate: Coordinate, number: IRType = I64) -> Value:
        """The positions of all lanes, of which a narrow `number` has the low bits; one lane stays a scalar."""
        k = self.k
        start = coordinate.start if number == I64 else k.trunc(coordinate.start, number)
        if self.lanes == 1:
            return start
        positions = k.splat(start, self.lanes)
        if coordinate.vector is not None:
            positions = k.add(positions, self._of_width(coordinate.vector, number))
        if not coordinate.step:
            return positions
        return k.add(positions, k.mul(k.lane_numbers(number.with_lanes(self.lanes)), coordinate.step))

    def position(self, coordinate: Coordinate, number: IRType = I64) -> Value:
        """The same, with one lane if all are at the same position."""
        if coordinate.is_uniform:
            return coordinate.start if number == I64 else self.k.trunc(coordinate.start, number)
        return self.vector(coordinate, number)

    def _of_width(self, positions: Value, number: IRType) -> Value:
        """The vector of a coordinate as other numbers. Those that become wider are not negative."""
        if positions.type.bits == number.bits:
            return positions
        return (self.k.zext if positions.type.bits < number.bits else self.k.trunc)(positions, number)

    def lies_below(self, coordinate: Coordinate, size: int, reach: int) -> Value:
        """Whether positions, none of which is farther than `reach` from 0, are in [0, size): for all lanes alike, or
        each of them."""
        k = self.k
        if coordinate.is_uniform:
            return k.compare("lt", coordinate.start, size, signed=False)
        if coordinate.vector is not None or reach > MOST_REACH // 2:
            return k.compare("lt", self.vector(coordinate), size, signed=False)
        steps = k.mul(k.lane_numbers(I32.with_lanes(self.lanes)), coordinate.step)
        positions = k.add(k.splat(k.trunc(coordinate.start, I32), self.lanes), steps)
        return k.compare("lt", positions, size, signed=False)

    def _wide(self, coordinate: Coordinate) -> Value:
        """The vector of a coordinate in 64 bits."""
        assert coordinate.vector is not None
        return self._of_width(coordinate.vector, I64)

    def add(self, coordinate: Coordinate, amount: Operand) -> Coordinate:
        """Every lane moved by a scalar amount."""
        if isinstance(amount, int) and amount == 0:
            return coordinate
        bounds = None
        if coordinate.bounds is not None and isinstance(amount, int):
            bounds = range(coordinate.bounds.start + amount, coordinate.bounds.stop + amount)
        return coordinate._replace(start=self.k.add(coordinate.start, amount), bounds=bounds)

    def scale(self, coordinate: Coordinate, factor: int) -> Coordinate:
        if factor == 1:
            return coordinate
        k = self.k
        start, step = k.mul(coordinate.start, factor), coordinate.step * factor
        if coordinate.vector is None:
            return Coordinate(start, step)
        reach = (coordinate.reach - 1) * factor + 1
        if coordinate.reach and 0 < reach <= MOST_REACH:
            return Coordinate(start, step, k.mul(coordinate.vector, factor), reach)
        return Coordinate(start, step, k.mul(self._wide(coordinate), factor))

    def sum(self, one: Coordinate, other: Coordinate) -> Coordinate:
        k = self.k
        start, step = k.add(one.start, other.start), one.step + other.step
        if one.vector is None or other.vector is None:
            moving = one if other.vector is None else other
            return Coordinate(start, step, moving.vector, moving.reach)
        reach = one.reach + other.reach - 1
        if one.reach and other.reach and reach <= MOST_REACH:
            return Coordinate(start, step, k.add(one.vector, other.vector), reach)
        return Coordinate(start, step, k.add(self._wide(one), self._wide(other)))

    def distances(self, coordinate: Coordinate, element_bytes: int) -> Value:
        """How many bytes each lane is behind the start."""
        k = self.k
        steps = [lane * coordinate.step * element_bytes for lane in range(self.lanes)]
        if coordinate.vector is None:
            return k.const_vector(I64.with_lanes(self.lanes), steps)
        reach = coordinate.reach * element_bytes + max(steps)
        is_narrow = coordinate.reach > 0 and coordinate.step >= 0 and reach <= MOST_REACH
        vector = k.mul(coordinate.vector if is_narrow else self._wide(coordinate), element_bytes)
        return k.add(vector, k.const_vector(vector.type, steps)) if coordinate.step else vector

    def divide(self, coordinate: Coordinate, divisor: int, reach: int = 0) -> tuple[Coordinate, Coordinate]:
        """Quotient and remainder of positions that are not negative, and below `reach`, if there is one: where that
        lets vectors have 32 bits, for which there are instructions."""
        if divisor == 1:
            return coordinate, self.constant(0)
        k = self.k
        is_narrow = 0 < reach <= MOST_REACH and not coordinate.is_uniform
        position = self.position(coordinate, I32 if is_narrow else I64)
        quotient = k.udiv(position, divisor)
        rest = k.sub(position, k.mul(quotient, divisor))
        if not is_narrow:
            return self.at(quotient), self.at(rest)
        return self.at(quotient, -(-reach // divisor)), self.at(rest, divisor)

    def linearize(self, coordinates: Sequence[Coordinate], strides: Sequence[int]) -> Coordinate:
        """The sum of position times stride over the dimensions. What is known outside of a loop is added up there."""
        terms = [self.scale(at, stride) for at, stride in zip(coordinates, strides, strict=True) if stride]
        if not terms:
            return self.constant(0)
        if len(terms) == 1:
            return terms[0]._replace(bounds=None)
        terms.sort(key=_depth)
        return functools.reduce(self.sum, terms)

    def split(self, index: Index) -> tuple[Coordinate, ...]:
        """The coordinates of an index, from its linear number if need be."""
        if index.coordinates is not None:
            return index.coordinates
        assert index.linear is not None
        return self.delinearize(index.linear, index.dims)

    def delinearize(self, linear: Coordinate, dims: Sequence[int]) -> tuple[Coordinate, ...]:
        """The coordinates of a row-major element number."""
        coordinates: list[Coordinate] = []
        rest = linear
        for dim in range(len(dims) - 1, 0, -1):
            if dims[dim] == 1:
                coordinates.append(self.constant(0))
                continue
            if math.prod(dims[:dim]) == 1:
                coordinates.append(rest)
                rest = self.constant(0)
                continue
            rest, position = self.divide(rest, dims[dim], math.prod(dims[: dim + 1]))
            coordinates.append(position)
        if dims:
            coordinates.append(rest)
        return (*reversed(coordinates),)

    def number(self, index: Index) -> Coordinate:
        """The row-major element number of an index."""
        if index.linear is not None:
            return index.linear
        assert index.coordinates is not None
        return self.linearize(index.coordinates, row_major_strides(index.dims))

    def reshaped(self, index: Index, dims: tuple[int, ...]) -> Index:
        """The index, in an array of `dims`, of the same row-major element.

        Groups of dimensions that cover the same elements on both sides are mapped one by one, so that coordinates that
        do not take part in the reshape keep their steps. Where lanes are scattered over others, the number of the
        element is kept, too, which moves on with them."""
        if index.coordinates is None:
            return Index(dims, None, index.linear, index.mask)
        coordinates: list[Coordinate] = []
        linear = index.linear
        for source, target in common_groups(index.dims, dims):
            part = [index.coordinates[dim] for dim in source]
            wide = [dim for dim in source if index.dims[dim] != 1]
            kept = [dim for dim in target if dims[dim] != 1]
            if len(wide) == 1 and len(kept) == 1:
                only = index.coordinates[wide[0]]
                coordinates += [only if dim == kept[0] else self.constant(0) for dim in target]
            else:
                number = self.linearize(part, row_major_strides([index.dims[dim] for dim in source]))
                scattered = self.delinearize(number, [dims[dim] for dim in target])
                if linear is None and any(coordinate.vector is not None for coordinate in scattered):
                    linear = self.number(index)
                coordinates += scattered
        return Index(dims, tuple(coordinates), linear, index.mask)

    def masked(self, index: Index, condition: Value) -> Value:
        """The mask of `index`, further limited to `condition`."""
        if index.mask is None:
            return condition
        k = self.k
        one, other = index.mask, condition
        if one.type.lanes != other.type.lanes:
            one, other = k.splat(one, self.lanes), k.splat(other, self.lanes)
        return k.and_(one, other)


def common_groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Splits both dimension lists into the finest runs with equal products, in order.

    [2,3,4] and [6,2,2] give ([0,1], [0]) and ([2], [1,2]). Both have the same number of elements, and none is zero."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        left: list[int] = []
        right: list[int] = []
        products = [1, 1]
        while True:
            if products[0] <= products[1] and i < len(source) and (products[0] < products[1] or not left):
                left.append(i)
                products[0] *= source[i]
                i += 1
            elif j < len(target) and (products[1] < products[0] or not right):
                right.append(j)
                products[1] *= target[j]
                j += 1
            elif i < len(source) and (products[0] < products[1] or (j == len(target) and source[i] == 1)):
                left.append(i)
                products[0] *= source[i]
                i += 1
            elif j < len(target) and i == len(source) and target[j] == 1:
                right.append(j)
                j += 1
            else:
                break
            if products[0] == products[1] and left and right:
                break
        groups.append((left, right))
    return groups
