"""Run-time sizes under data movement with static indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlapy.hlo.attributes import PaddingDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.reshape_groups import Group, adapting_dim, reshape_groups
from xlapy.passes.dynamic.padding import RULES, ArraySizes, Extent, Padding


@RULES.register("broadcast")
def broadcast(padding: Padding, instruction: Instruction) -> None:
    """A new dimension is as large as its bound: what it meets later says how much of it counts."""
    operand, targets = instruction.operands[0], instruction.attributes["dimensions"]
    sizes = {targets[dim]: size for dim, size in padding.array_sizes(operand).items()}
    padding.enter_array(instruction, padding.same(instruction), sizes)


@RULES.register("transpose")
def transpose(padding: Padding, instruction: Instruction) -> None:
    operand, permutation = instruction.operands[0], instruction.attributes["permutation"]
    sizes = {place: padding.size(operand, dim) for place, dim in enumerate(permutation)}
    padding.enter_array(instruction, padding.same(instruction), sizes)


@RULES.register("bitcast-convert")
def bitcast_convert(padding: Padding, instruction: Instruction) -> None:
    """A last dimension that comes or goes is static."""
    padding.enter_array(instruction, padding.same(instruction), padding.array_sizes(instruction.operands[0]))


@RULES.register("reshape")
def reshape(padding: Padding, instruction: Instruction) -> None:
    """Run after run of dimensions; in some the elements move together, as padding would lie between them."""
    (operand,) = instruction.operands
    array, before, after = padding.copy(operand), operand.shape, instruction.shape
    sizes: ArraySizes = {}
    if 0 not in before.dims:
        for group in reshape_groups(before, after):
            array = _regrouped(padding, instruction, group, array, sizes)
    is_done = array is not padding.copy(operand) and array.shape.dims == after.dims
    padding.enter_array(instruction, array if is_done else padding.same(instruction, [array]), sizes)


def _regrouped(
    padding: Padding, instruction: Instruction, group: Group, array: Instruction, sizes: ArraySizes
) -> Instruction:
    """`array` with one run of the dimensions of the operand reshaped to those of the result, as one dimension.

    The runs before are reshaped already. Enters what is known of the sizes of the result."""
    (operand,) = instruction.operands
    before = [Extent(operand.shape.dims[dim], padding.size(operand, dim)) for dim in group.before]
    count = padding.product(before)
    target = adapting_dim(group, instruction.shape)
    if count is None or target is None:
        return array
    dims = instruction.shape.dims
    others = math.prod(dims[dim] for dim in group.after if dim != target)
    sizes[target] = _quotient(padding, before, count, others)
    after = [Extent(dims[dim], sizes.get(dim)) for dim in group.after]
    if _is_outermost(before) and _is_outermost(after):
        return array
    done, bound = dims[: group.after[0]], math.prod(extent.bound for extent in before)
    left = operand.shape.dims[group.before[-1] + 1 :]
    array = padding.reshaped(array, (*done, bound, *left))
    return padding.regrouped(array, len(done), before, after)


def _quotient(padding: Padding, before: Sequence[Extent], count: Instruction, divisor: int) -> Instruction:
    """`count`, the number of elements in `before`, by `divisor`: without a detour if only one dimension is bounded."""
    sizes = [extent.size for extent in before if extent.size is not None]
    fixed = math.prod(extent.bound for extent in before if extent.size is None)
    return sizes[0] if len(sizes) == 1 and fixed == divisor else padding.quotient(count, divisor)


def _is_outermost(extents: Sequence[Extent]) -> bool:
    """Everything that exists lies in front: only the first dimension, or the first that is not 1, has a size."""
    places = [place for place, extent in enumerate(extents) if extent.size is not None]
    return all(extent.bound == 1 for extent in extents[: places[-1]]) if len(places) == 1 else not places


@RULES.register("slice")
def slice_(padding: Padding, instruction: Instruction) -> None:
    """A dimension that is taken whole keeps its size; of one that is cut, padding shows as zero."""
    (operand,) = instruction.operands
    whole = instruction.shape
    sizes = padding.array_sizes(operand)
    cut = {dim: size for dim, size in sizes.items() if not whole.is_dynamic_dim(dim)}
    result = padding.same(instruction, [padding.zeroed(padding.copy(operand), cut)])
    padding.enter_array(instruction, result, {dim: size for dim, size in sizes.items() if dim not in cut})


@RULES.register("reverse")
def reverse(padding: Padding, instruction: Instruction) -> None:
    """The padding comes to lie in front, so what follows it is moved to the beginning."""
    operand = instruction.operands[0]
    result = padding.same(instruction)
    zero = padding.zero(result)
    for dim, size in padding.array_sizes(operand).items():
        if dim in instruction.attributes["dimensions"] and size is not None:
            result = _shifted(padding, result, dim, size, zero)
    padding.enter(instruction, result, padding.sizes(operand))


def _shifted(padding: Padding, array: Instruction, dim: int, size: Instruction, zero: Instruction) -> Instruction:
    """The last `size` entries along `dim` first."""
    bound, rank = array.shape.dims[dim], array.shape.rank
    behind = tuple(PaddingDimension(0, bound if place == dim else 0, 0) for place in range(rank))
    extended = padding.add("pad", [array, zero], dimensions=behind)
    return padding.part(extended, dim, padding.add("subtract", [padding.number(bound), size]), bound)


@RULES.register("pad")
def pad(padding: Padding, instruction: Instruction) -> None:
    """What lies beyond the size becomes padding value first, so that the high edge begins right behind the array."""
    operand, value = instruction.operands
    sizes = padding.array_sizes(operand)
    filler = padding.copy(value)
    array = padding.masked(padding.copy(operand), sizes, filler)
    results: ArraySizes = {}
    for dim, size in sizes.items():
        if size is not None:
            results[dim] = _padded_size(padding, size, instruction, dim)
    padding.enter_array(instruction, padding.same(instruction, [array, filler]), results)


def _padded_size(padding: Padding, size: Instruction, instruction: Instruction, dim: int) -> Instruction:
    amount: PaddingDimension = instruction.attributes["dimensions"][dim]
    total = padding.add("add", [size, padding.number(amount.low + amount.high)])
    if amount.interior:
        gaps = padding.add("subtract", [size, padding.number(1)])
        gaps = padding.add("maximum", [gaps, padding.number(0)])
        total = padding.add("add", [total, padding.add("multiply", [gaps, padding.number(amount.interior)])])
    return padding.bounded(total, 0, instruction.shape.dims[dim])


@RULES.register("concatenate")
def concatenate(padding: Padding, instruction: Instruction) -> None:
    """Along a bounded dimension, each part is written where the one before it ends."""
    dim = instruction.attributes["dimension"]
    sizes = padding.least_sizes(*instruction.operands, without=dim)
    if all(padding.size(operand, dim) is None for operand in instruction.operands):
        padding.enter_array(instruction, padding.same(instruction), sizes)
        return
    shape = instruction.shape.static()
    zero = padding.add("broadcast", [padding.zero(padding.copy(instruction.operands[0]))], shape=shape, dimensions=())
    result, end = zero, padding.number(0)
    for operand in instruction.operands:
        starts = [end if place == dim else padding.number(0) for place in range(shape.rank)]
        result = padding.add("dynamic-update-slice", [result, padding.copy(operand), *starts])
        end = padding.add("add", [end, padding.existing(operand, dim)])
    padding.enter_array(instruction, result, {**sizes, dim: end})
