"""The computation that the padder writes: static arrays, and beside them the run-time sizes of their dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from xlapy.hlo.attributes import ComparisonDirection, GatherDimensionNumbers
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.support.records import Record
from xlapy.support.registry import Registry

Path: TypeAlias = tuple[int, ...]
Place: TypeAlias = tuple[Path, int]
Sizes: TypeAlias = dict[Place, Instruction]
"""The s32 size of a bounded dimension, by path of the leaf in the value and dimension. Others have a static size."""

ArraySizes: TypeAlias = dict[int, Instruction | None]
"""Sizes by dimension; None where the dimension is static."""

Copies: TypeAlias = Mapping[tuple[Computation, Shape], Computation]
"""The static copies of called computations, by original and shape of the result that callers want."""


class Extent(Record):
    """The bound of a dimension, and its run-time size where that may be another."""

    bound: int
    size: Instruction | None = None


def leaf_paths(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """The arrays of a shape with their paths, depth first."""
    if shape.elements is not None:
        for index, element in enumerate(shape.parts):
            yield from leaf_paths(element, (*path, index))
    elif shape.is_array:
        yield path, shape


def bounded_places(shape: Shape) -> list[tuple[Place, int]]:
    """Where a shape has bounded dimensions, in the order of its leaves, with their bounds."""
    return [
        ((path, dim), leaf.dims[dim])
        for path, leaf in leaf_paths(shape)
        for dim in range(leaf.rank)
        if leaf.is_dynamic_dim(dim)
    ]


class Padding:
    """A static copy of one computation in the making. Rules call its methods to add what they need."""

    def __init__(self, name: str, called: Copies | None = None) -> None:
        self.computation = Computation(name)
        self.copies: dict[Instruction, Instruction] = {}
        self._anchors: dict[Instruction, Instruction] = {}
        self._sizes: dict[Instruction, Sizes] = {}
        self._constants: dict[int, Instruction] = {}
        self._called = called or {}
        self._copied = {computation for computation, _ in self._called}

    # -- what is known ------------------------------------------------------------------------------------------------

    def copy(self, instruction: Instruction) -> Instruction:
        """The static value of an instruction of the original."""
        return self.copies[instruction]

    def anchor(self, instruction: Instruction) -> Instruction:
        """What does the work of an instruction of the original: control edges hold it."""
        return self._anchors.get(instruction, self.copies[instruction])

    def sizes(self, instruction: Instruction) -> Sizes:
        """The run-time sizes of an instruction of the original."""
        return self._sizes.get(instruction, {})

    def size(self, instruction: Instruction, dim: int) -> Instruction | None:
        """The run-time size of dimension `dim` of an array, if it is bounded."""
        return self.sizes(instruction).get(((), dim))

    def array_sizes(self, instruction: Instruction) -> ArraySizes:
        """The sizes of an array of the original, by dimension."""
        return {dim: size for (_, dim), size in self.sizes(instruction).items()}

    def existing(self, instruction: Instruction, dim: int) -> Instruction:
        """How much of a dimension exists: its run-time size, or its static one as a constant."""
        return self.size(instruction, dim) or self.number(instruction.shape.dims[dim])

    def is_dynamic(self, instruction: Instruction) -> bool:
        return bool(self.sizes(instruction))

    def callee(self, computation: Computation, wanted: Shape | None = None) -> Computation:
        """The static copy of a called computation that returns what stands for a value of shape `wanted`."""
        return self._called.get((computation, wanted or computation.root.shape), computation)

    def calls_copies(self, instruction: Instruction) -> bool:
        """Whether some computation that it calls has static copies."""
        return any(computation in self._copied for computation in instruction.called)

    def enter(
        self,
        instruction: Instruction,
        copy: Instruction,
        sizes: Sizes | None = None,
        *,
        anchor: Instruction | None = None,
    ) -> None:
        self.copies[instruction] = copy
        if sizes:
            self._sizes[instruction] = sizes
        if anchor is not None:
            self._anchors[instruction] = anchor

    def enter_array(self, instruction: Instruction, copy: Instruction, sizes: ArraySizes) -> None:
        """Like `enter`, with sizes by dimension; None where the dimension is static."""
        self.enter(instruction, copy, {((), dim): size for dim, size in sizes.items() if size is not None})

    def enter_alike(self, instruction: Instruction, copy: Instruction, sizes: ArraySizes) -> None:
        """Like `enter_array`, for a result that is an array or a tuple of arrays, which all have these sizes."""
        found = {
            (path, dim): size
            for path, _ in leaf_paths(instruction.shape)
            for dim, size in sizes.items()
            if size is not None
        }
        self.enter(instruction, copy, found)

    # -- sizes --------------------------------------------------------------------------------------------------------

    def number(self, value: int) -> Instruction:
        if value not in self._constants:
            self._constants[value] = self.add("constant", literal=Literal(np.int32(value)))
        return self._constants[value]

    def bounded(self, size: Instruction, low: int, high: int) -> Instruction:
        """The s32 `size`, moved into [low, high]: what a program claims must never lead outside an array."""
        return self.add("clamp", [self.number(low), size, self.number(high)])

    def least(self, *sizes: Instruction | None) -> Instruction | None:
        """The smallest of the run-time sizes of dimensions that should be equal; None if all are static."""
        known = [size for size in dict.fromkeys(sizes) if size is not None]
        result = known[0] if known else None
        for size in known[1:]:
            result = self.add("minimum", [result, size]) if result is not None else size
        return result

    def least_sizes(self, *arrays: Instruction, without: int | None = None) -> ArraySizes:
        """The sizes of arrays of the original that go together: in a right program they agree."""
        dims = dict.fromkeys(dim for array in arrays for dim in self.array_sizes(array) if dim != without)
        return {dim: self.least(*(self.size(array, dim) for array in arrays)) for dim in dims}

    def index(self, value: Instruction, bound: int) -> Instruction:
        """Integers of any type as s32, moved into [0, bound]."""
        if value.shape.type is S32:
            return self.add("clamp", [self.number(0), value, self.number(bound)])
        kind = value.shape.type
        top = min(bound, kind.integer_range[1])
        low, high = (self.add("constant", literal=Literal(limit, Shape.scalar(kind))) for limit in (0, top))
        inside = self.add("clamp", [low, value, high])
        return self.add("convert", [inside], shape=value.shape.with_type(S32))

    def quotient(self, size: Instruction, divisor: int) -> Instruction:
        return size if divisor == 1 else self.add("divide", [size, self.number(divisor)])

    def product(self, extents: Sequence[Extent]) -> Instruction | None:
        """The number of elements that exist; None if that is known."""
        sizes = [extent.size for extent in extents if extent.size is not None]
        if not sizes:
            return None
        fixed = math.prod(extent.bound for extent in extents if extent.size is None)
        result = sizes[0]
        for factor in [*sizes[1:], *([self.number(fixed)] if fixed != 1 else [])]:
            result = self.add("multiply", [result, factor])
        return result

    # -- what is added ------------------------------------------------------------------------------------------------

    def add(self, opcode: str, operands: Sequence[Instruction] = (), **arguments: Any) -> Instruction:
        return self.computation.add(opcode, operands, **arguments)

    def same(self, instruction: Instruction, operands: Sequence[Instruction] | None = None) -> Instruction:
        """The static copy of an instruction, on the copies of its operands."""
        used = [self.copies[operand] for operand in instruction.operands] if operands is None else operands
        return self.computation.add_copy(instruction, used, instruction.shape.static())

    def zero(self, like: Instruction) -> Instruction:
        return self.add("constant", literal=Literal(0, Shape.scalar(like.shape.type)))

    def spread(self, scalar: Instruction, like: Instruction) -> Instruction:
        return self.add("broadcast", [scalar], shape=scalar.shape.with_dims(like.shape.dims), dimensions=())

    def reshaped(self, array: Instruction, dims: Sequence[int]) -> Instruction:
        if tuple(dims) == array.shape.dims:
            return array
        return self.add("reshape", [array], shape=array.shape.with_dims(dims))

    def counted(self, array: Instruction, dim: int) -> Instruction:
        """s32 of the dimensions of `array`: the index along `dim`."""
        return self.add("iota", shape=Shape.array(S32, array.shape.dims), dimension=dim)

    def inside(self, array: Instruction, dim: int, size: Instruction) -> Instruction:
        """pred of the dimensions of `array`: the index along `dim` is below `size`."""
        index = self.counted(array, dim)
        return self.add("compare", [index, self.spread(size, index)], direction=ComparisonDirection.LT)

    def inside_all(self, array: Instruction, sizes: ArraySizes) -> Instruction | None:
        """pred of the dimensions of `array`: the element exists. None if all do."""
        result: Instruction | None = None
        for dim, size in sizes.items():
            if size is not None:
                inside = self.inside(array, dim, size)
                result = inside if result is None else self.add("and", [result, inside])
        return result

    def masked(self, array: Instruction, sizes: ArraySizes, filler: Instruction) -> Instruction:
        """`array` with `filler`, a scalar, at every index beyond a size."""
        for dim, size in sizes.items():
            if size is not None:
                inside = self.inside(array, dim, size)
                array = self.add("select", [inside, array, self.spread(filler, array)])
        return array

    def zeroed(self, array: Instruction, sizes: ArraySizes) -> Instruction:
        """`array` with zeros at every index beyond a size."""
        return self.masked(array, sizes, self.zero(array)) if any(sizes.values()) else array

    def part(self, array: Instruction, dim: int, start: Instruction, size: int) -> Instruction:
        """`size` entries along `dim`, from `start` on."""
        starts = [start if place == dim else self.number(0) for place in range(array.shape.rank)]
        dims = [size if place == dim else bound for place, bound in enumerate(array.shape.dims)]
        return self.add("dynamic-slice", [array, *starts], slice_sizes=tuple(dims))

    def regrouped(self, array: Instruction, dim: int, before: Sequence[Extent], after: Sequence[Extent]) -> Instruction:
        """`array`, whose dimension `dim` is the row-major index of `before`, with the existing elements in the same
        order under `after`: both have as many elements at their bounds."""
        dims = [extent.bound for extent in after]
        counters = [self.add("iota", shape=Shape.array(S32, dims), dimension=place) for place in range(len(dims))]
        rank = self._horner(counters, [self._extent(extent, counters[0]) for extent in after])
        source = counters[:0]
        for extent in reversed(before[1:]):
            size = self._extent(extent, rank, least=1)
            source.insert(0, self.add("remainder", [rank, size]))
            rank = self.add("divide", [rank, size])
        bounds = [self.spread(self.number(extent.bound), rank) for extent in before]
        places = self._horner([rank, *source], bounds)
        places = self.reshaped(places, (array.shape.dims[dim],))
        numbers = GatherDimensionNumbers(
            offset_dims=tuple(place for place in range(array.shape.rank) if place != dim),
            collapsed_slice_dims=(dim,),
            start_index_map=(dim,),
            index_vector_dim=1,
        )
        taken = tuple(1 if place == dim else size for place, size in enumerate(array.shape.dims))
        return self.add("gather", [array, places], dimension_numbers=numbers, slice_sizes=taken)

    def _extent(self, extent: Extent, like: Instruction, least: int = 0) -> Instruction:
        if extent.size is None:
            return self.spread(self.number(extent.bound), like)
        size = self.add("maximum", [extent.size, self.number(least)]) if least else extent.size
        return self.spread(size, like)

    def _horner(self, digits: Sequence[Instruction], sizes: Sequence[Instruction]) -> Instruction:
        """The number with these digits, the first the highest, where each counts up to its size."""
        number = digits[0]
        for digit, size in zip(digits[1:], sizes[1:], strict=True):
            number = self.add("add", [self.add("multiply", [number, size]), digit])
        return number


Rule: TypeAlias = Callable[[Padding, Instruction], None]

RULES: Registry[Rule] = Registry("dynamic padding", OPS)
"""What an op does when an operand, or its result, has a bounded dimension: enters the static copy and its sizes."""
