"""Run-time sizes under data movement with run-time indices."""

from __future__ import annotations

from xlapy.hlo.attributes import ComparisonDirection, GatherDimensionNumbers, PaddingDimension
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Instruction
from xlapy.passes.dynamic.padding import RULES, ArraySizes, Padding
from xlapy.passes.dynamic.regions import updating_by_what_exists


def _start(padding: Padding, start: Instruction, dim: int, array: Instruction, taken: Instruction) -> Instruction:
    """A start index as s32, moved inward until `taken` entries fit what exists of `array`, or to 0."""
    room = padding.add("subtract", [padding.existing(array, dim), taken])
    room = padding.add("maximum", [room, padding.number(0)])
    return padding.add("minimum", [padding.index(padding.copy(start), array.shape.dims[dim]), room])


@RULES.register("dynamic-slice")
def dynamic_slice(padding: Padding, instruction: Instruction) -> None:
    """The slice is moved inward until it fits what exists, not the bound; what is missing then is zero."""
    operand, *starts = instruction.operands
    sizes = padding.array_sizes(operand)
    taken = instruction.attributes["slice_sizes"]
    moved = [_start(padding, start, dim, operand, padding.number(taken[dim])) for dim, start in enumerate(starts)]
    result = padding.same(instruction, [padding.copy(operand), *moved])
    whole = {dim: size for dim, size in sizes.items() if instruction.shape.is_dynamic_dim(dim)}
    result = padding.zeroed(result, {dim: size for dim, size in sizes.items() if dim not in whole})
    padding.enter_array(instruction, result, whole)


@RULES.register("dynamic-update-slice")
def dynamic_update_slice(padding: Padding, instruction: Instruction) -> None:
    """Where the update is bounded, a block as large as the bound is written: the update amid what was there before.

    The block must lie within the bound of the operand, so it may begin before the update does."""
    operand, update, *given = instruction.operands
    sizes = padding.array_sizes(update)
    starts = [_start(padding, start, dim, operand, padding.existing(update, dim)) for dim, start in enumerate(given)]
    array, block = padding.copy(operand), padding.copy(update)
    blocks, shifts = list(starts), {}
    for dim in sizes:
        room = padding.number(array.shape.dims[dim] - block.shape.dims[dim])
        blocks[dim] = padding.add("minimum", [starts[dim], room])
        shifts[dim] = padding.add("subtract", [starts[dim], blocks[dim]])
    if shifts:
        present = padding.add("dynamic-slice", [array, *blocks], slice_sizes=block.shape.dims)
        exists = padding.inside_all(block, sizes)
        assert exists is not None
        for dim, shift in shifts.items():
            block, exists = _moved_back(padding, block, dim, shift), _moved_back(padding, exists, dim, shift)
        block = padding.add("select", [exists, block, present])
    result = padding.same(instruction, [array, block, *blocks])
    padding.enter_array(instruction, result, padding.array_sizes(operand))


def _moved_back(padding: Padding, array: Instruction, dim: int, shift: Instruction) -> Instruction:
    """The array with its entries moved to higher indices along `dim`, zeros (or false) in front."""
    bound = array.shape.dims[dim]
    in_front = tuple(PaddingDimension(bound * (place == dim), 0, 0) for place in range(array.shape.rank))
    extended = padding.add("pad", [array, padding.zero(array)], dimensions=in_front)
    return padding.part(extended, dim, padding.add("subtract", [padding.number(bound), shift]), bound)


@RULES.register("gather")
def gather(padding: Padding, instruction: Instruction) -> None:
    """Slices are moved inward until they fit what exists; what is missing then is zero."""
    operand, indices = instruction.operands
    numbers: GatherDimensionNumbers = instruction.attributes["dimension_numbers"]
    taken = instruction.attributes["slice_sizes"]
    sizes = padding.array_sizes(operand)
    starts = _fitting_starts(padding, instruction) if sizes else padding.copy(indices)
    result = padding.same(instruction, [padding.copy(operand), starts])
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    offsets = dict(zip((d for d in range(operand.shape.rank) if d not in dropped), numbers.offset_dims, strict=True))
    kept: ArraySizes = {}
    for dim, size in sizes.items():
        place = offsets.get(dim)
        if place is not None and instruction.shape.is_dynamic_dim(place):
            kept[place] = size
        elif place is not None:
            result = padding.zeroed(result, {place: size})
        elif dim in numbers.collapsed_slice_dims and taken[dim]:
            result = _unless_empty(padding, result, size)
    padding.enter_array(instruction, result, {**kept, **_batch_sizes(padding, instruction)})


def _unless_empty(padding: Padding, array: Instruction, size: Instruction | None) -> Instruction:
    """`array`, or zeros if `size` is 0."""
    if size is None:
        return array
    exists = padding.add("convert", [padding.bounded(size, 0, 1)], shape=size.shape.with_type(PRED))
    return padding.add("select", [padding.spread(exists, array), array, padding.spread(padding.zero(array), array)])


def _fitting_starts(padding: Padding, instruction: Instruction) -> Instruction:
    """The start indices of a gather as s32, those along bounded dimensions moved inward."""
    operand, indices = instruction.operands
    numbers: GatherDimensionNumbers = instruction.attributes["dimension_numbers"]
    given = padding.copy(indices)
    starts = padding.index(given, max(operand.shape.dims, default=0))
    for place, dim in enumerate(numbers.start_index_map):
        size = padding.size(operand, dim)
        if size is None:
            continue
        taken = instruction.attributes["slice_sizes"][dim]
        room = padding.add("subtract", [size, padding.number(taken)])
        room = padding.add("maximum", [room, padding.number(0)])
        moved = padding.add("minimum", [starts, padding.spread(room, starts)])
        if numbers.index_vector_dim == given.shape.rank:
            starts = moved
        else:
            component = padding.counted(starts, numbers.index_vector_dim)
            is_it = padding.add(
                "compare",
                [component, padding.spread(padding.number(place), component)],
                direction=ComparisonDirection.EQ,
            )
            starts = padding.add("select", [is_it, moved, starts])
    return starts


def _batch_sizes(padding: Padding, instruction: Instruction) -> ArraySizes:
    """The sizes of the dimensions of the result that count index vectors."""
    operand, indices = instruction.operands
    numbers: GatherDimensionNumbers = instruction.attributes["dimension_numbers"]
    partners = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    vectors = [dim for dim in range(indices.shape.rank) if dim != numbers.index_vector_dim]
    places = [place for place in range(instruction.shape.rank) if place not in numbers.offset_dims]
    sizes: ArraySizes = {}
    for dim, place in zip(vectors, places, strict=True):
        theirs = padding.size(operand, partners[dim]) if dim in partners else None
        sizes[place] = padding.least(padding.size(indices, dim), theirs)
    return sizes


@RULES.register("scatter")
def scatter(padding: Padding, instruction: Instruction) -> None:
    """Elements of updates that do not exist change nothing; padding of the inputs may change."""
    inputs, indices, updates = instruction.grouped_operands()
    sizes = padding.least_sizes(*inputs)
    gone = _update_sizes(padding, instruction)
    arrays, written = [padding.copy(array) for array in inputs], [padding.copy(update) for update in updates]
    exists = padding.inside_all(written[0], gone)
    if exists is None:
        result = padding.same(instruction, [*arrays, padding.copy(indices), *written])
    else:
        companion = padding.spread(padding.zero(exists), arrays[0])
        region = updating_by_what_exists(instruction.called[0])
        everything = padding.add(
            "scatter",
            [*arrays, companion, padding.copy(indices), *written, exists],
            called=[region],
            metadata=instruction.metadata,
            dimension_numbers=instruction.attributes["dimension_numbers"],
        )
        result = first_results(padding, everything, len(inputs))
    padding.enter_alike(instruction, result, sizes)


def _update_sizes(padding: Padding, instruction: Instruction) -> ArraySizes:
    """How much of the updates is written: as much as all of them have, and as there are index vectors."""
    _, indices, updates = instruction.grouped_operands()
    numbers = instruction.attributes["dimension_numbers"]
    sizes = padding.least_sizes(*updates)
    vectors = [dim for dim in range(indices.shape.rank) if dim != numbers.index_vector_dim]
    places = [place for place in range(updates[0].shape.rank) if place not in numbers.update_window_dims]
    for dim, place in zip(vectors, places, strict=True):
        sizes[place] = padding.least(sizes.get(place), padding.size(indices, dim))
    return sizes


def first_results(padding: Padding, everything: Instruction, count: int) -> Instruction:
    """The first `count` elements of a tuple, as a tuple unless it is one."""
    parts = padding.computation.unpacked(everything, count)
    return parts[0] if count == 1 else padding.add("tuple", parts)
