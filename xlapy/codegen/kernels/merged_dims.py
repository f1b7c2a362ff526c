"""Element-wise programs over fewer dimensions: those that nothing tells apart are one.

    f32[16,64,64,3] multiply(x, broadcast(f32[16] v))        is computed as        f32[16,12288] multiply(...)

A loop runs along the fastest dimension of its result. Where that is short, as the colours of images are, most lanes
of vectors would be idle, and rows would end all the time. So dimensions are merged with the next slower ones as long
as every instruction has either all of them, side by side, or none. Memory stays as it is: the same elements lie at the
same places, under another shape.

Instructions get axes: for each of their dimensions the one of the result that it goes along, or one of their own. What
an op does along an axis keeps this axis apart from others (numbers, reversed order), or from slower ones (cutting,
padding, joining, places that are found out when it runs).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlapy.codegen.arrays import Array
from xlapy.hlo.attributes import GatherDimensionNumbers, PaddingDimension, SliceDimension
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.reshape_groups import pairs_of_wide
from xlapy.hlo.shape import Shape
from xlapy.support.registry import Registry
from xlapy_runtime.records import Record

SHORT_ROW = 64  # elements, below which it is worth looking for longer rows
MOST_PLACES = 1 << 31  # of elements that numbers of 32 bits tell apart
GROWTH = 2  # how many times as long rows must become

MOST_NEEDS = 512  # instructions with axes: each way through reshapes brings axes of its own

NOWHERE = -1  # begins what is whole: at the only place there is

Axes = tuple[int, ...]
"""What the dimensions of an instruction go along."""

Need = tuple[Instruction, Axes]


class MergedDims(Record):
    """The same program over merged dimensions: its roots, and its inputs, each with the instruction that it stands
    for (which several may do)."""

    roots: tuple[Instruction, ...]
    inputs: tuple[tuple[Instruction, Instruction], ...]

    def bound(self, arrays: Mapping[Instruction, Array]) -> dict[Instruction, Array]:
        """The arrays of the inputs, seen over merged dimensions."""
        return {own: replace(arrays[source], shape=own.shape) for own, source in self.inputs}

    def outputs(self, outputs: Sequence[Array]) -> list[Array]:
        """The arrays of the results, seen so."""
        return [replace(output, shape=root.shape) for root, output in zip(self.roots, outputs, strict=True)]


def merged_dims(
    roots: Sequence[Instruction], is_input: Callable[[Instruction], bool], *, folded: int = 0
) -> MergedDims | None:
    """The program that computes `roots`, of equal dimensions, over as few as possible; None where rows are long enough,
    or become hardly longer. The dimensions from `folded` on are kept apart from those before."""
    dims = roots[0].shape.dims
    if len(dims) < 2 or not roots[0].shape.size or dims[-1] >= SHORT_ROW:
        return None
    program = _Program(is_input, len(dims))
    program.leading.add(folded)
    if not all(program.need(root, tuple(range(len(dims)))) for root in roots) or not program.follow():
        return None
    groups = program.groups(dims)
    row = math.prod(dims[axis] for axis in groups[-1])
    if row < GROWTH * dims[-1]:
        return None
    return program.rebuilt(roots, groups)


class _Program:
    """What computes the roots: each instruction with the axes that it is needed along."""

    def __init__(self, is_input: Callable[[Instruction], bool], rank: int) -> None:
        self.is_input = is_input
        self.fresh: Iterator[int] = itertools.count(rank)
        self.needs: dict[Need, tuple[Need, ...]] = {}
        self.pending: list[Need] = []
        self.apart: set[int] = set()
        self.leading: set[int] = set()

    def need(self, instruction: Instruction, axes: Axes) -> bool:
        """Notes a need, unless the instruction cannot be seen over other dimensions."""
        if not is_row_major(instruction) or not instruction.shape.is_static:
            return False
        if (instruction, axes) not in self.needs:
            self.needs[instruction, axes] = ()
            self.pending.append((instruction, axes))
        return True

    def follow(self) -> bool:
        """Finds everything that is needed; False if there is an op that keeps its dimensions, or too much."""
        while self.pending:
            instruction, axes = self.pending.pop()
            if self.is_input(instruction) or _is_view(instruction, self.is_input):
                continue
            handler = AXES.get(instruction.opcode)
            if handler is None and Trait.ELEMENTWISE in instruction.spec.traits and not instruction.called:
                handler = _elementwise
            operands = handler(self, instruction, axes) if handler is not None else None
            if operands is None:
                return False
            needed = tuple(zip(instruction.operands, operands, strict=True))
            if not all(self.need(*operand) for operand in needed):
                return False
            self.needs[instruction, axes] = needed
            if len(self.needs) > MOST_NEEDS:
                return False
        return True

    def groups(self, dims: Sequence[int]) -> list[Axes]:
        """The axes of the result, those together that are one; slowest first."""
        found: list[Axes] = []
        for axis in reversed(range(len(dims))):
            wider = (axis, *found[0]) if found else (axis,)
            if found and self._are_one(wider):
                found[0] = wider
            else:
                found.insert(0, (axis,))
        return found

    def _are_one(self, group: Axes) -> bool:
        """Everything that is needed has all of these axes, side by side, or none."""
        if not (self.apart.isdisjoint(group) and self.leading.isdisjoint(group[1:])):
            return False
        for _, axes in self.needs:
            present = [place for place, axis in enumerate(axes) if axis in group]
            if present and tuple(axes[present[0] : present[-1] + 1]) != group:
                return False
        return True

    def rebuilt(self, roots: Sequence[Instruction], groups: Sequence[Axes]) -> MergedDims:
        """The program over groups of axes."""
        first = {group[0] for group in groups}
        merged = {axis for group in groups for axis in group} - first
        computation = Computation("merged")
        copies: dict[Need, Instruction] = {}
        inputs: list[tuple[Instruction, Instruction]] = []
        attributes: Mapping[str, Any]
        for need in self._operands_first([(root, tuple(range(root.shape.rank))) for root in roots]):
            instruction, axes = need
            view = _View(axes, merged)
            shape = Shape.array(instruction.shape.element_type, view.merged(instruction.shape.dims))
            if self.is_input(instruction) or _is_view(instruction, self.is_input):
                attributes = OPS["parameter"].complete_attributes({"number": len(inputs)})
                copy = computation.add_unchecked(OPS["parameter"], shape, (), dict(attributes))
                inputs.append((copy, instruction if self.is_input(instruction) else instruction.operands[0]))
            else:
                operands = self.needs[need]
                views = [_View(axes, merged) for _, axes in operands]
                change = ATTRIBUTES.get(instruction.opcode)
                attributes = change(instruction, view, views) if change is not None else instruction.attributes
                made = [copies[operand] for operand in operands]
                if instruction.opcode == "gather":
                    made[1] = _scaled_starts(computation, instruction, made[1], *views)
                copy = computation.add_unchecked(instruction.spec, shape, made, dict(attributes))
            copies[need] = copy
        return MergedDims(tuple(copies[root, tuple(range(root.shape.rank))] for root in roots), tuple(inputs))

    def _operands_first(self, roots: Sequence[Need]) -> list[Need]:
        order: dict[Need, None] = {}
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            need, has_operands = stack.pop()
            if has_operands:
                order[need] = None
            elif need not in order:
                stack.append((need, True))
                stack += [(operand, False) for operand in reversed(self.needs[need]) if operand not in order]
        return [*order]


class _View(Record):
    """How the dimensions of an instruction are merged: those along `inner` axes join the one before."""

    axes: Axes
    inner: set[int]

    def merged(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes of its dimensions, multiplied where they are merged."""
        return tuple(math.prod(sizes[dim] for dim in part) for part in self.parts())

    def parts(self) -> list[list[int]]:
        """Its dimensions, those together that are one."""
        found: list[list[int]] = []
        for dim, axis in enumerate(self.axes):
            if axis in self.inner:
                found[-1].append(dim)
            else:
                found.append([dim])
        return found

    def leaders(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """Of each merged dimension the slowest one, and how many elements the others have."""
        return [(part[0], math.prod(sizes[dim] for dim in part[1:])) for part in self.parts()]

    def place(self, dim: int) -> int:
        """Which dimension one is part of."""
        return next(place for place, part in enumerate(self.parts()) if dim in part)

    def places(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Which dimensions several are part of, each once."""
        return tuple(dict.fromkeys(map(self.place, dims)))


def _is_view(instruction: Instruction, is_input: Callable[[Instruction], bool]) -> bool:
    """The instruction is an input under other dimensions."""
    if instruction.opcode not in ("reshape", "bitcast"):
        return False
    (source,) = instruction.operands
    is_same_type = source.shape.type is instruction.shape.type
    return is_input(source) and is_same_type and is_row_major(source) and is_row_major(instruction)


# -- what ops need, and keep apart -------------------------------------------------------------------------------------

Handler = Callable[[_Program, Instruction, Axes], list[Axes] | None]
AXES: Registry[Handler] = Registry("axes of operands", OPS)
"""The axes of the operands of an instruction with some axes; None where its dimensions cannot be merged."""

Change = Callable[[Instruction, _View, list[_View]], Mapping[str, Any]]
ATTRIBUTES: Registry[Change] = Registry("attributes over merged dimensions", OPS)


def _elementwise(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    return [axes if operand.shape.rank else () for operand in instruction.operands]


@AXES.register("constant")
def _constant(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes] | None:
    literal = instruction.attributes["literal"]
    return [] if not instruction.shape.rank or literal.is_splat else None


@AXES.register("iota")
def _iota(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    program.apart.add(axes[instruction.attributes["dimension"]])
    return []


@ATTRIBUTES.register("iota")
def _of_iota(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    return {**instruction.attributes, "dimension": view.place(instruction.attributes["dimension"])}


@AXES.register("broadcast")
def _broadcast(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    return [tuple(axes[dim] for dim in instruction.attributes["dimensions"])]


@ATTRIBUTES.register("broadcast")
def _of_broadcast(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    return {**instruction.attributes, "dimensions": view.places(instruction.attributes["dimensions"])}


@AXES.register("reshape")
def _reshape(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes] | None:
    """Dimensions of one element come and go."""
    (source,) = instruction.operands
    pairs = pairs_of_wide(source.shape.dims, instruction.shape.dims)
    if pairs is None:
        return None
    known = {before: axes[after] for before, after in pairs}
    return [tuple(known[dim] if dim in known else next(program.fresh) for dim in range(source.shape.rank))]


@AXES.register("slice")
def _slice(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    (source,) = instruction.operands
    for axis, size, part in zip(axes, source.shape.dims, instruction.attributes["dimensions"], strict=True):
        if part != SliceDimension(0, size):
            (program.leading if part.stride == 1 else program.apart).add(axis)
    return [axes]


@ATTRIBUTES.register("slice")
def _of_slice(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    return _times_merged(instruction, view, "start", "limit")


@AXES.register("pad")
def _pad(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    for axis, padding in zip(axes, instruction.attributes["dimensions"], strict=True):
        if padding != PaddingDimension():
            (program.apart if padding.interior else program.leading).add(axis)
    return [axes, ()]


@ATTRIBUTES.register("pad")
def _of_pad(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    return _times_merged(instruction, view, "low", "high")


def _times_merged(instruction: Instruction, view: _View, *counts: str) -> Mapping[str, Any]:
    """What is said of its dimensions, with these numbers of elements times those of what is merged with each."""
    parts = instruction.attributes["dimensions"]
    merged = (
        replace(parts[first], **{count: getattr(parts[first], count) * size for count in counts})
        for first, size in view.leaders(instruction.shape.dims)
    )
    return {**instruction.attributes, "dimensions": tuple(merged)}


@AXES.register("concatenate")
def _concatenate(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    program.leading.add(axes[instruction.attributes["dimension"]])
    return [axes] * len(instruction.operands)


@ATTRIBUTES.register("concatenate")
def _of_concatenate(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    return {**instruction.attributes, "dimension": view.place(instruction.attributes["dimension"])}


@AXES.register("reverse")
def _reverse(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes]:
    program.apart.update(axes[dim] for dim in instruction.attributes["dimensions"])
    return [axes]


@ATTRIBUTES.register("reverse")
def _of_reverse(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    return {**instruction.attributes, "dimensions": view.places(instruction.attributes["dimensions"])}


@AXES.register("gather")
def _gather(program: _Program, instruction: Instruction, axes: Axes) -> list[Axes] | None:
    """Slices along an axis go along it; where they begin is another."""
    numbers: GatherDimensionNumbers = instruction.attributes["dimension_numbers"]
    sizes, (source, indices) = instruction.attributes["slice_sizes"], instruction.operands
    of_indices = [axis for dim, axis in enumerate(axes) if dim not in numbers.offset_dims]
    if numbers.index_vector_dim < indices.shape.rank:
        of_indices.insert(numbers.index_vector_dim, next(program.fresh))
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    offsets = iter(axes[dim] for dim in numbers.offset_dims)
    of_source = []
    for dim, size in enumerate(sizes):
        if dim in batching:
            axis = of_indices[batching[dim]]
        else:
            axis = next(program.fresh) if dim in numbers.collapsed_slice_dims else next(offsets)
            if size != source.shape.dims[dim]:
                program.leading.add(axis)
        of_source.append(axis)
    can_scale = indices.shape.type.bits >= 32 and source.shape.size <= MOST_PLACES
    if not can_scale:
        program.apart.update(program.leading.intersection(of_source))
    return [tuple(of_source), tuple(of_indices)]


@ATTRIBUTES.register("gather")
def _of_gather(instruction: Instruction, view: _View, operands: list[_View]) -> Mapping[str, Any]:
    numbers: GatherDimensionNumbers = instruction.attributes["dimension_numbers"]
    source, indices = operands
    sizes, dims = instruction.attributes["slice_sizes"], instruction.operands[0].shape.dims
    is_inside = numbers.index_vector_dim < len(indices.axes)
    merged = GatherDimensionNumbers(
        view.places(numbers.offset_dims),
        source.places(numbers.collapsed_slice_dims),
        tuple(source.place(dim) if sizes[dim] < dims[dim] else NOWHERE for dim in numbers.start_index_map),
        indices.place(numbers.index_vector_dim) if is_inside else len(indices.parts()),
        source.places(numbers.operand_batching_dims),
        indices.places(numbers.start_indices_batching_dims),
    )
    return {**instruction.attributes, "dimension_numbers": merged, "slice_sizes": source.merged(sizes)}


def _scaled_starts(
    computation: Computation, gather: Instruction, starts: Instruction, source: _View, indices: _View
) -> Instruction:
    """The places where slices begin, along merged dimensions: inside of the dimension that they were given for, times
    the elements of those that have been merged with it."""
    numbers: GatherDimensionNumbers = gather.attributes["dimension_numbers"]
    dims, sizes = gather.operands[0].shape.dims, gather.attributes["slice_sizes"]
    leaders = {dim: merged for dim, merged in source.leaders(dims) if sizes[dim] < dims[dim]}
    scales = [leaders.get(dim, 1) for dim in numbers.start_index_map]
    if all(scale == 1 for scale in scales):
        return starts

    def per_component(values: Sequence[int]) -> Instruction:
        array = np.array(values, starts.shape.type.dtype)
        if numbers.index_vector_dim >= len(indices.axes):
            constant = computation.add("constant", literal=Literal(array[0]))
            return computation.add("broadcast", [constant], shape=starts.shape, dimensions=())
        constant = computation.add("constant", literal=Literal(array))
        place = indices.place(numbers.index_vector_dim)
        return computation.add("broadcast", [constant], shape=starts.shape, dimensions=(place,))

    last = [dims[dim] - sizes[dim] for dim in numbers.start_index_map]
    inside = computation.add("maximum", [starts, per_component([0] * len(last))])
    inside = computation.add("minimum", [inside, per_component(last)])
    return computation.add("multiply", [inside, per_component(scales)])
