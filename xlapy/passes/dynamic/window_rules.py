"""Run-time sizes under sliding windows."""

from __future__ import annotations

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, Window, WindowDimension
from xlapy.hlo.graph import Instruction
from xlapy.passes.dynamic.padding import RULES, Padding, Path
from xlapy.support.errors import UnsupportedError


@RULES.register("reduce-window")
def reduce_window(padding: Padding, instruction: Instruction) -> None:
    """Beyond the sizes the inputs become the initial value, as in the window's own padding, which follows there."""
    count = len(instruction.operands) // 2
    inputs, inits = instruction.operands[:count], instruction.operands[count:]
    window: Window = instruction.attributes["window"]
    sizes: dict[int, Instruction | None] = {}
    for array in inputs:
        sizes = {**padding.array_sizes(array), **sizes}
    arrays = [
        padding.masked(padding.copy(array), sizes, padding.copy(init))
        for array, init in zip(inputs, inits, strict=True)
    ]
    result = padding.same(instruction, [*arrays, *(padding.copy(init) for init in inits)])
    paths: list[Path] = [(index,) for index in range(count)] if count > 1 else [()]
    found = {
        (path, dim): _positions(padding, size, window.dimensions[dim], _result_bound(instruction, dim))
        for path in paths
        for dim, size in sizes.items()
        if size is not None
    }
    padding.enter(instruction, result, found)


def _result_bound(instruction: Instruction, dim: int) -> int:
    """The static size of a dimension of the (first) result."""
    return next(instruction.shape.leaves()).dims[dim]


def _positions(padding: Padding, size: Instruction, part: WindowDimension, bound: int) -> Instruction:
    """How many positions the window takes over a dimension of a run-time size: see `WindowDimension.positions`."""
    dilated = padding.add("subtract", [size, padding.number(1)])
    dilated = padding.add("multiply", [dilated, padding.number(part.base_dilation)])
    dilated = padding.add("maximum", [padding.add("add", [dilated, padding.number(1)]), padding.number(0)])
    extent = (part.size - 1) * part.window_dilation + 1
    room = padding.add("add", [dilated, padding.number(part.padding_low + part.padding_high - extent + part.stride)])
    room = padding.add("maximum", [room, padding.number(0)])
    return padding.bounded(padding.add("divide", [room, padding.number(part.stride)]), 0, bound)


@RULES.register("convolution")
def convolution(padding: Padding, instruction: Instruction) -> None:
    """Beyond the sizes the inputs become zero, as in the window's own padding, which follows there."""
    lhs, rhs = instruction.operands
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dimension_numbers"]
    window: Window = instruction.attributes["window"]
    grouped = instruction.attributes["feature_group_count"] * instruction.attributes["batch_group_count"] > 1
    fixed = {numbers.input_feature, numbers.input_batch} if grouped else set()
    if fixed & set(padding.array_sizes(lhs)) or (grouped and padding.is_dynamic(rhs)):
        raise UnsupportedError(f"{instruction.name} groups a dimension of dynamic size")
    if set(padding.array_sizes(rhs)) & set(numbers.kernel_spatial):
        raise UnsupportedError(f"{instruction.name} has a window of dynamic size")
    features = padding.size(lhs, numbers.input_feature) or padding.size(rhs, numbers.kernel_input_feature)
    spatial = {dim: padding.size(lhs, dim) for dim in numbers.input_spatial}
    left, right = padding.copy(lhs), padding.copy(rhs)
    left = padding.masked(left, {**spatial, numbers.input_feature: features}, padding.zero(left))
    right = padding.masked(right, {numbers.kernel_input_feature: features}, padding.zero(right))
    results = {
        numbers.output_batch: padding.size(lhs, numbers.input_batch),
        numbers.output_feature: padding.size(rhs, numbers.kernel_output_feature),
    }
    for part, dim, target in zip(window.dimensions, numbers.input_spatial, numbers.output_spatial, strict=True):
        size = spatial[dim]
        if size is not None:
            results[target] = _positions(padding, size, part, _result_bound(instruction, target))
    padding.enter_array(instruction, padding.same(instruction, [left, right]), results)
