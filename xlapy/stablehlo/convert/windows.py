"""Sliding windows: reduce_window, select_and_scatter and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, ConvolutionSide, Window, WindowDimension
from xlapy.hlo.dim_labels import LETTERS, side_of
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import Body, attribute, converts, integers
from xlapy.stablehlo.convert.contractions import precisions
from xlapy.stablehlo.convert.reductions import promoted, promoted_operand
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError, ShapeError


@converts("stablehlo.reduce_window")
def reduce_window(body: Body, operation: Operation) -> Instruction:
    (computation,) = body.called
    operands = promoted(body, body.operands(operation), computation)
    sizes = integers(operation, "window_dimensions")
    window = _window(operation, sizes, ("C6", "C8", "C10", "C12"), "base_dilations", "window_dilations")
    return body.add("reduce-window", *operands, called=[computation], window=window)


@converts("stablehlo.select_and_scatter")
def select_and_scatter(body: Body, operation: Operation) -> Instruction:
    operands = body.operands(operation)
    sizes = integers(operation, "window_dimensions", (1,) * operands[0].shape.rank)
    window = _window(operation, sizes, ("C6", "C6", "C6", "C8"), "", "")
    select, scatter = body.called
    wide = [promoted_operand(body, operand, scatter.signature.result) for operand in operands]
    if wide[0] is not operands[0]:
        select = on_wider_elements(select, wide[0].shape)
    return body.add("select-and-scatter", *wide, called=[select, scatter], window=window)


def on_wider_elements(select: Computation, operand: Shape) -> Computation:
    """The selection for elements of the type that `scatter` combines: they are converted back, which loses nothing."""
    wider = Computation(f"{select.name}_{operand.type.name}")
    arguments = []
    for number, parameter in enumerate(select.parameters):
        element = wider.add("parameter", number=number, shape=Shape.scalar(operand.type))
        arguments.append(wider.add("convert", [element], shape=parameter.shape))
    wider.set_root(wider.add("call", arguments, called=[select]))
    return wider


@converts("stablehlo.convolution")
def convolution(body: Body, operation: Operation) -> Instruction:
    return convolved(body, operation, body.operands(operation))


def convolved(body: Body, operation: Operation, operands: Sequence[Instruction]) -> Instruction:
    """The convolution that the attributes of an operation describe."""
    numbers = _numbers(operation)
    inputs, kernel = (operand.shape for operand in operands)
    if inputs.rank != kernel.rank:
        raise ShapeError("convolution.C1", f"{inputs} and {kernel} have different ranks")
    if len(numbers.kernel_spatial) != kernel.rank - 2:
        raise ShapeError("convolution.C17", f"{len(numbers.kernel_spatial)} dimensions of {kernel} are spatial")
    sizes = [kernel.dims[dim] for dim in numbers.kernel_spatial]
    return body.add(
        "convolution",
        *operands,
        shape=operation.result_types[0],
        window=_window(operation, sizes, ("C2", "C5", "C7", "C4"), "lhs_dilation", "rhs_dilation"),
        dimension_numbers=numbers,
        feature_group_count=attribute(operation, "feature_group_count", int, 1),
        batch_group_count=attribute(operation, "batch_group_count", int, 1),
        operand_precision=precisions(operation),
    )


def _window(
    operation: Operation, sizes: Sequence[int], labels: Sequence[str], base_dilation: str, window_dilation: str
) -> Window:
    """The window of an operation; `labels` are those of wrong numbers of strides, of either dilations, of paddings."""
    rank = len(sizes)

    def each(name: str, label: str) -> tuple[int, ...]:
        values = integers(operation, name, (1,) * rank) if name else (1,) * rank
        if len(values) != rank:
            raise _miscounted(operation, label, f"{len(values)} {name}", rank)
        return values

    strides = each("window_strides", labels[0])
    base_dilations, window_dilations = each(base_dilation, labels[1]), each(window_dilation, labels[2])
    padding = _padding(operation, rank, labels[3])
    reversal = integers(operation, "window_reversal", (0,) * rank)
    if len(reversal) != rank:
        raise _miscounted(operation, "C9", f"{len(reversal)} window_reversal", rank)
    return Window(
        tuple(
            WindowDimension(size, stride, low, high, base, dilation, bool(flag))
            for size, stride, (low, high), base, dilation, flag in zip(
                sizes, strides, padding, base_dilations, window_dilations, reversal, strict=True
            )
        )
    )


def _miscounted(operation: Operation, label: str, given: str, rank: int) -> ShapeError:
    return ShapeError(f"{operation.mnemonic}.{label}", f"{given} are given for a window of rank {rank}")


def _padding(operation: Operation, rank: int, label: str) -> tuple[tuple[int, int], ...]:
    """Low and high padding of each dimension: a constant of rank 2 or nested lists; none where absent."""
    value: Any = operation.attributes.get("padding", ((0, 0),) * rank)
    rows = value.array.tolist() if isinstance(value, Literal) and value.array.dtype.kind in "iu" else value
    try:
        table = np.array(rows, np.int64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        raise ParseError(f"{operation.name} needs the attribute `padding` to be a table of integers") from None
    if len(table) != rank:
        raise _miscounted(operation, label, f"{len(table)} paddings", rank)
    return tuple((int(low), int(high)) for low, high in table)


# -- dimension numbers -------------------------------------------------------------------------------------------------


def _numbers(operation: Operation) -> ConvolutionDimensionNumbers:
    written: Any = operation.attributes.get("dimension_numbers")
    if not isinstance(written, tuple) or len(written) != 3:
        raise ParseError(
            f"{operation.name} needs the attribute `dimension_numbers`, like "
            "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
        )
    rules = ("C13", "C18", "C20")
    return ConvolutionDimensionNumbers.of_sides(*map(_side, written, LETTERS, rules))


def _side(labels: Sequence[str], letters: str, rule: str) -> ConvolutionSide:
    try:
        return side_of(labels, letters)
    except ValueError as error:
        raise ShapeError(f"convolution.{rule}", f"[{', '.join(labels)}] {error}") from None
