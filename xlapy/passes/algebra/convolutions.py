"""Laws of convolution."""

from __future__ import annotations

from dataclasses import replace

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers, SliceDimension, Window
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import has_features_in_lanes
from xlapy.hlo.patterns import P, variables
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, numbers, window = variables("x y numbers window")


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window))
def convolution_as_dot(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value | None:
    """convolution(x, k) -> dot(x, k), where the window is one element, or as large as x, in each spatial dimension

    Not where the result would have to be transposed."""
    groups = root.attributes["feature_group_count"] * root.attributes["batch_group_count"]
    if groups != 1 or not (root.shape.size and x.shape.is_static and y.shape.is_static):
        return None
    covered = _covered(x.shape, numbers, window)
    if covered is None:
        return None
    contracted = [(numbers.input_feature, numbers.kernel_input_feature)]
    contracted += [(numbers.input_spatial[spatial], numbers.kernel_spatial[spatial]) for spatial in covered]
    left, right = zip(*sorted(contracted), strict=True)
    sliced = _sliced(x, numbers, window, covered)
    places = {numbers.output_batch: numbers.input_batch}
    places |= dict(zip(numbers.output_spatial, numbers.input_spatial, strict=True))
    order = [dim for dim in range(root.shape.rank) if root.shape.dims[dim] != 1]
    from_left = [places[dim] for dim in order if dim != numbers.output_feature]
    if from_left != sorted(from_left):
        return None
    precision = root.attributes["operand_precision"]
    kind = Shape.scalar(root.shape.type)
    feature = order.index(numbers.output_feature) if numbers.output_feature in order else len(order) - 1
    if feature == len(order) - 1 or not order:
        pairs = DotDimensionNumbers(left, right)
        product = new.dot(sliced, y, shape=kind, dimension_numbers=pairs, operand_precision=precision)
    elif feature == 0:
        pairs = DotDimensionNumbers(right, left)
        product = new.dot(y, sliced, shape=kind, dimension_numbers=pairs, operand_precision=precision[::-1])
    else:
        return None
    return new.reshaped(product, root.shape.dims)


def _covered(shape: Shape, numbers: ConvolutionDimensionNumbers, window: Window) -> list[int] | None:
    """The spatial dimensions that the window covers whole; None if it has several positions in another, and size."""
    covered = []
    for spatial, (dim, part) in enumerate(zip(numbers.input_spatial, window.dimensions, strict=True)):
        if part.padding_low or part.padding_high or part.base_dilation != 1:
            return None
        if part.size == shape.dims[dim] and part.size > 1 and part.window_dilation == 1 and not part.reversal:
            covered.append(spatial)
        elif part.size != 1:
            return None
    return covered


def _sliced(x: Instruction, numbers: ConvolutionDimensionNumbers, window: Window, covered: list[int]) -> Value:
    """Every stride-th element of the dimensions that are not covered."""
    parts = [SliceDimension(0, size) for size in x.shape.dims]
    for spatial, (dim, part) in enumerate(zip(numbers.input_spatial, window.dimensions, strict=True)):
        if spatial not in covered:
            parts[dim] = SliceDimension(0, x.shape.dims[dim], part.stride)
    if all(part.stride == 1 for part in parts):
        return x
    return new.slice(x, dimensions=tuple(parts))


MULTIPLICATIONS_PER_WEIGHT = 8
"""A kernel whose elements are used more often is worth a copy in the best order."""


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers))
def kernel_with_features_last(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers
) -> Value | None:
    """convolution(x, k) -> convolution(x, transpose(k)) with output features last, where lanes lie across them

    Vectors of output features are then loaded, not gathered."""
    moved = numbers.kernel_output_feature
    features = y.shape.dims[moved]
    is_last = all(size == 1 for size in y.shape.dims[moved + 1 :])
    if is_last or features == 1 or not y.shape.is_static or not has_features_in_lanes(root):
        return None
    if root.shape.size < MULTIPLICATIONS_PER_WEIGHT * features:
        return None
    order = (*(dim for dim in range(y.shape.rank) if dim != moved), moved)
    return new.like(
        root,
        [x, new.transpose(y, permutation=order)],
        dimension_numbers=_with_kernel(numbers, order),
    )


def _with_kernel(numbers: ConvolutionDimensionNumbers, order: Dims) -> ConvolutionDimensionNumbers:
    """The numbers for a kernel whose dimension i was dimension `order[i]`."""
    return replace(
        numbers,
        kernel_input_feature=order.index(numbers.kernel_input_feature),
        kernel_output_feature=order.index(numbers.kernel_output_feature),
        kernel_spatial=tuple(map(order.index, numbers.kernel_spatial)),
    )
