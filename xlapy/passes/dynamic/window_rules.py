"""Run-time sizes under sliding windows."""

from __future__ import annotations

import math

from xlapy.hlo.attributes import (
    NO_WINDOW_DIMENSION,
    ConvolutionDimensionNumbers,
    ScatterDimensionNumbers,
    Window,
    WindowDimension,
)
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.passes.dynamic.padding import RULES, ArraySizes, Extent, Padding
from xlapy.passes.dynamic.regions import FALSE, TRUE, selecting_what_exists


@RULES.register("reduce-window")
def reduce_window(padding: Padding, instruction: Instruction) -> None:
    """Beyond the sizes the inputs become the initial value, as in the window's own padding, which follows there.

    Not along dimensions in which each element has a window of its own."""
    inputs, inits = instruction.grouped_operands()
    window: Window = instruction.attributes["window"]
    sizes = padding.least_sizes(*inputs)
    shared = {dim: size for dim, size in sizes.items() if window.dimensions[dim] != NO_WINDOW_DIMENSION}
    arrays = [
        padding.masked(padding.copy(array), shared, padding.copy(init))
        for array, init in zip(inputs, inits, strict=True)
    ]
    result = padding.same(instruction, [*arrays, *(padding.copy(init) for init in inits)])
    found: ArraySizes = {
        dim: _positions(padding, size, window.dimensions[dim], _result_bound(instruction, dim))
        for dim, size in sizes.items()
        if size is not None
    }
    padding.enter_alike(instruction, result, found)


def _result_bound(instruction: Instruction, dim: int) -> int:
    """The static size of a dimension of the (first) result."""
    return instruction.shape.leaves()[0].dims[dim]


def _positions(padding: Padding, size: Instruction, part: WindowDimension, bound: int) -> Instruction:
    """How many positions the window takes over a dimension of a run-time size: see `WindowDimension.positions`."""
    dilated = padding.add("subtract", [size, padding.number(1)])
    dilated = padding.add("multiply", [dilated, padding.number(part.base_dilation)])
    dilated = padding.add("maximum", [padding.add("add", [dilated, padding.number(1)]), padding.number(0)])
    extent = 0 if part.size == 0 else (part.size - 1) * part.window_dilation + 1
    room = padding.add("add", [dilated, padding.number(part.padding_low + part.padding_high - extent + part.stride)])
    room = padding.add("maximum", [room, padding.number(0)])
    return padding.bounded(padding.add("divide", [room, padding.number(part.stride)]), 0, bound)


@RULES.register("select-and-scatter")
def select_and_scatter(padding: Padding, instruction: Instruction) -> None:
    """Where windows reach over run-time sizes: the places that they select, then a scatter to these."""
    operand, source, init = instruction.operands
    if _are_apart(padding, instruction) or not operand.shape.size or not source.shape.size:
        result = padding.same(instruction)
    else:
        places = _selected_places(padding, instruction)
        initial = padding.add(
            "broadcast", [padding.copy(init)], shape=operand.shape.with_dims((operand.shape.size,)), dimensions=()
        )
        count = math.prod(source.shape.dims)
        result = padding.add(
            "scatter",
            [initial, padding.reshaped(places, (count,)), padding.reshaped(padding.copy(source), (count,))],
            called=[instruction.called[1]],
            metadata=instruction.metadata,
            dimension_numbers=ScatterDimensionNumbers((), (0,), (0,), 1),
        )
        result = padding.reshaped(result, operand.shape.dims)
    padding.enter_array(instruction, result, padding.array_sizes(operand))


def _are_apart(padding: Padding, instruction: Instruction) -> bool:
    """Along bounded dimensions each position of the window is an index of its own, with one source element."""
    operand, source, _ = instruction.operands
    window: Window = instruction.attributes["window"]
    return all(
        window.dimensions[dim] == NO_WINDOW_DIMENSION and padding.size(operand, dim) is padding.size(source, dim)
        for dim in (*padding.array_sizes(operand), *padding.array_sizes(source))
    )


def _selected_places(padding: Padding, instruction: Instruction) -> Instruction:
    """For each source element, the row-major place of the element that its window selects.

    The number of elements where it selects none, or where there is no such source element."""
    operand, source, _ = instruction.operands
    array, elements = padding.copy(operand), padding.copy(source)
    count = array.shape.size
    numbers = padding.add("iota", shape=Shape.array(S32, (count,)), dimension=0)
    exists = padding.inside_all(array, padding.array_sizes(operand))
    if exists is None:
        exists = padding.spread(padding.add("constant", literal=TRUE), array)
    false = padding.add("constant", literal=FALSE)
    selected = padding.add(
        "reduce-window",
        [array, padding.reshaped(numbers, array.shape.dims), exists, padding.zero(array), padding.number(0), false],
        called=[selecting_what_exists(instruction.called[0], Shape.scalar(S32))],
        window=instruction.attributes["window"],
    )
    place, counts = (padding.add("get-tuple-element", [selected], index=index) for index in (1, 2))
    given = padding.inside_all(elements, padding.array_sizes(source))
    if given is not None:
        counts = padding.add("and", [counts, given])
    return padding.add("select", [counts, place, padding.spread(padding.number(count), place)])


@RULES.register("convolution")
def convolution(padding: Padding, instruction: Instruction) -> None:
    """Beyond the sizes the inputs become zero, as in the window's own padding, which follows there.

    Groups are laid out for the bound: each gets its share of what exists, and zeros behind it."""
    lhs, rhs = instruction.operands
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dimension_numbers"]
    feature_groups: int = instruction.attributes["feature_group_count"]
    batch_groups: int = instruction.attributes["batch_group_count"]
    groups = feature_groups * batch_groups
    left = _left_in_groups(padding, instruction)
    right, outputs = padding.copy(rhs), padding.size(rhs, numbers.kernel_output_feature)
    zeros = {dim: padding.size(rhs, dim) for dim in numbers.kernel_spatial}
    zeros[numbers.kernel_input_feature] = _features(padding, instruction)
    right = _spread_groups(padding, padding.zeroed(right, zeros), numbers.kernel_output_feature, outputs, groups)
    result = padding.same(instruction, [left, right])
    batch = padding.size(lhs, numbers.input_batch)
    results: ArraySizes = {
        numbers.output_batch: padding.quotient(batch, batch_groups) if batch is not None else None,
    }
    if outputs is not None:
        result, results[numbers.output_feature] = _joined_groups(
            padding, result, numbers.output_feature, outputs, groups
        )
    window: Window = instruction.attributes["window"]
    for part, dim, target in zip(window.dimensions, numbers.input_spatial, numbers.output_spatial, strict=True):
        size = padding.size(lhs, dim)
        if size is not None:
            results[target] = _positions(padding, size, part, _result_bound(instruction, target))
    padding.enter_array(instruction, result, results)


def _features(padding: Padding, convolution: Instruction) -> Instruction | None:
    """How many input features a group has: as many as both operands provide."""
    lhs, rhs = convolution.operands
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    features = padding.size(lhs, numbers.input_feature)
    if features is not None:
        features = padding.quotient(features, convolution.attributes["feature_group_count"])
    return padding.least(features, padding.size(rhs, numbers.kernel_input_feature))


def _left_in_groups(padding: Padding, convolution: Instruction) -> Instruction:
    """The left side with its groups spread, and zeros for what does not exist."""
    (lhs, _), attributes = convolution.operands, convolution.attributes
    numbers: ConvolutionDimensionNumbers = attributes["dimension_numbers"]
    feature, batch = numbers.input_feature, numbers.input_batch
    groups: int = attributes["feature_group_count"]
    left = padding.zeroed(padding.copy(lhs), {dim: padding.size(lhs, dim) for dim in numbers.input_spatial})
    left = _spread_groups(padding, left, feature, padding.size(lhs, feature), groups)
    dims = left.shape.dims
    split = (*dims[:feature], groups, dims[feature] // groups, *dims[feature + 1 :])
    if (features := _features(padding, convolution)) is not None:
        left = padding.zeroed(padding.reshaped(left, split), {feature + 1: features})
        left = padding.reshaped(left, dims)
    return _spread_groups(padding, left, batch, padding.size(lhs, batch), attributes["batch_group_count"])


def _spread_groups(
    padding: Padding, array: Instruction, dim: int, size: Instruction | None, groups: int
) -> Instruction:
    """`array` with each group of what exists along `dim` where it would be if the bound were full."""
    bound = array.shape.dims[dim]
    if size is None or groups == 1 or not bound:
        return array
    return padding.regrouped(array, dim, [Extent(bound, size)], _in_groups(padding, bound, size, groups))


def _joined_groups(
    padding: Padding, array: Instruction, dim: int, size: Instruction, groups: int
) -> tuple[Instruction, Instruction]:
    """The opposite of `_spread_groups`, for groups of the same size; and the size of all that are joined."""
    bound = array.shape.dims[dim]
    if groups == 1 or not bound:
        return array, size
    parts = _in_groups(padding, bound, size, groups)
    joined = padding.product(parts)
    assert joined is not None
    return padding.regrouped(array, dim, parts, [Extent(bound, joined)]), joined


def _in_groups(padding: Padding, bound: int, size: Instruction, groups: int) -> list[Extent]:
    return [Extent(groups), Extent(bound // groups, padding.quotient(size, groups))]
