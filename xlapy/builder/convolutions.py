"""The convolutions: of arrays and kernels in the usual order of dimensions, and of those in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from xlapy.builder.arguments import Integers, as_int, as_ints, described
from xlapy.builder.contractions import as_precision
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_ops, builder_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.builder.windows import Padding, PaddingLike, window_over
from xlapy.hlo.attributes import ConvolutionDimensionNumbers
from xlapy.hlo.element_types import element_type_of
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError


@op_function()
def Conv(
    lhs: Operand,
    rhs: Operand,
    window_strides: Integers | None = None,
    padding: PaddingLike = Padding.VALID,
    lhs_dilation: Integers | None = None,
    rhs_dilation: Integers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Any = None,
    preferred_element_type: Any = None,
) -> XlaOp:
    """The convolution of (batch, features, spatial ...) with the kernel (output features, input features, spatial ...):
    (batch, output features, spatial ...). The kernel is not flipped."""
    return ConvGeneralDilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        None,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


@op_function()
def ConvWithGeneralPadding(
    lhs: Operand,
    rhs: Operand,
    window_strides: Integers,
    padding: PaddingLike,
    lhs_dilation: Integers | None = None,
    rhs_dilation: Integers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Any = None,
    preferred_element_type: Any = None,
) -> XlaOp:
    """Conv, with a (low, high) pair of padding for each spatial dimension; negative padding removes elements."""
    return Conv(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


@op_function(aliases=("ConvWithGeneralDimensions",))
def ConvGeneral(
    lhs: Operand,
    rhs: Operand,
    window_strides: Integers | None,
    padding: PaddingLike,
    dimension_numbers: Any,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Any = None,
    preferred_element_type: Any = None,
) -> XlaOp:
    """The convolution of arrays whose dimensions are in any order, without dilation."""
    return ConvGeneralDilated(
        lhs,
        rhs,
        window_strides,
        padding,
        None,
        None,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision_config,
        preferred_element_type,
    )


ConvWithGeneralDimensions = ConvGeneral


@op_function("convolution")
def ConvGeneralDilated(
    lhs: Operand,
    rhs: Operand,
    window_strides: Integers | None,
    padding: PaddingLike,
    lhs_dilation: Integers | None = None,
    rhs_dilation: Integers | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: Any = None,
    preferred_element_type: Any = None,
    window_reversal: Sequence[bool] | None = None,
) -> XlaOp:
    """The convolution of arrays whose dimensions are in any order, with dilations.

    `dimension_numbers` is a ConvolutionDimensionNumbers, a proto with fields such as `input_batch_dimension`, labels
    such as ("NHWC", "HWIO", "NHWC"), or None for the order of Conv."""
    builder = builder_of(lhs, rhs)
    left, right = as_ops(builder, (lhs, rhs))
    inputs, kernel = require_array(left), require_array(right)
    _check_sides(inputs, kernel, types_may_differ=preferred_element_type is not None)
    numbers = convolution_dimension_numbers(dimension_numbers, inputs.rank - 2)
    window = window_over(
        "ConvWithGeneralPadding.B2",
        *_spatial_sizes(inputs, kernel, numbers),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
    )
    wanted = inputs.type if preferred_element_type is None else element_type_of(preferred_element_type)
    return builder.record(
        "convolution",
        [left, right],
        shape=Shape.scalar(wanted),
        window=window,
        dimension_numbers=numbers,
        feature_group_count=as_int(feature_group_count, "feature_group_count"),
        batch_group_count=as_int(batch_group_count, "batch_group_count"),
        operand_precision=as_precision(precision_config),
    )


def _check_sides(inputs: Shape, kernel: Shape, *, types_may_differ: bool) -> None:
    rule = "ConvWithGeneralPadding.B1"
    if inputs.rank != kernel.rank or inputs.rank < 2:
        raise ShapeError(rule, f"{inputs} and {kernel} do not have the same rank, of 2 or more")
    if inputs.type is not kernel.type and not types_may_differ:
        raise ShapeError(rule, f"{inputs} and {kernel} have different element types")


def _spatial_sizes(inputs: Shape, kernel: Shape, numbers: ConvolutionDimensionNumbers) -> tuple[list[int], list[int]]:
    """The sizes of the spatial dimensions of the input and of the kernel, which slides along them."""
    spatial = [*numbers.input_spatial, *numbers.kernel_spatial]
    if any(not 0 <= dim < inputs.rank for dim in spatial):
        raise ShapeError("convolution.input-dimensions", f"spatial dimensions {spatial} are not all those of {inputs}")
    return [inputs.dims[dim] for dim in numbers.input_spatial], [kernel.dims[dim] for dim in numbers.kernel_spatial]


def convolution_dimension_numbers(given: Any, spatial_rank: int) -> ConvolutionDimensionNumbers:
    """Dimension numbers from whatever users have: see `ConvGeneralDilated`."""
    if given is None:
        order = tuple(range(2, spatial_rank + 2))
        return ConvolutionDimensionNumbers(0, 1, order, 1, 0, order, 0, 1, order)
    if isinstance(given, ConvolutionDimensionNumbers):
        return given
    if hasattr(given, "input_batch_dimension"):
        return ConvolutionDimensionNumbers(
            *(_proto_field(given, field.name) for field in fields(ConvolutionDimensionNumbers))
        )
    if isinstance(given, (list, tuple)) and len(given) == 3 and all(isinstance(part, str) for part in given):
        return _from_labels(*given)
    raise ArgumentError(
        "dimension_numbers are a ConvolutionDimensionNumbers or labels such as ('NHWC', 'HWIO', 'NHWC'), not "
        + described(given)
    )


def _proto_field(proto: Any, name: str) -> Any:
    """A field of a proto, whose names are longer: input_spatial_dimensions, input_batch_dimension."""
    if name.endswith("_spatial"):
        return as_ints(getattr(proto, f"{name}_dimensions"), "dimension numbers")
    return as_int(getattr(proto, f"{name}_dimension"), "dimension numbers")


def _from_labels(lhs: str, rhs: str, out: str) -> ConvolutionDimensionNumbers:
    """Numbers from labels: N, C in arrays, I, O in kernels; any other letters are spatial, in the kernel's order."""
    spatial = [letter for letter in rhs if letter not in "IO"]
    sides = []
    for labels, letters in ((lhs, "NC"), (rhs, "IO"), (out, "NC")):
        wanted = [*letters, *spatial]
        if sorted(labels) != sorted(wanted):
            raise ArgumentError(f"{labels!r} does not have each of {', '.join(wanted)} once")
        first, second, *places = map(labels.index, wanted)
        sides.append((first, second, tuple(places)))
    return ConvolutionDimensionNumbers.of_sides(*sides)
