"""Sliding windows: ReduceWindow and SelectAndScatter, and how windows meet the edges, which convolutions share."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from xlapy.builder.arguments import Integers, as_flags, as_ints, as_rows, described
from xlapy.builder.builder import ComputationLike
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, Operands, as_handle, as_op, as_ops, builder_of, listed
from xlapy.builder.regions import computation_of, fold_computation_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.attributes import Window, WindowDimension
from xlapy.hlo.element_types import PRED
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ArgumentError, ShapeError, UnsupportedError


class Padding(enum.Enum):
    """How a window meets the edges."""

    SAME = "SAME"  # as many positions as elements, strides apart
    VALID = "VALID"  # no padding: the window stops where it no longer fits
    kSame = "SAME"  # noqa: PIE796 - an alias, as in C++
    kValid = "VALID"  # noqa: PIE796


PaddingLike = Any
"""A `Padding` or its name in any spelling ("same", "kSame", PaddingType.SAME), or a (low, high) pair per dimension."""

_KINDS = {"SAME": Padding.SAME, "VALID": Padding.VALID, "KSAME": Padding.SAME, "KVALID": Padding.VALID}


# -- reduce-window and select-and-scatter --------------------------------------------------------------------------


@op_function("reduce-window")
def ReduceWindow(
    operands: Operands,
    init_values: Operands,
    computation: ComputationLike,
    window_dimensions: Integers,
    window_strides: Integers | None = None,
    padding: PaddingLike = Padding.VALID,
    base_dilations: Integers | None = None,
    window_dilations: Integers | None = None,
) -> XlaOp:
    """Folds the elements of a sliding window with `computation`, at each of its positions.

    Operands and initial values are lists, or one of each. Padding and the holes of `base_dilations` hold the initial
    value, which takes part."""
    inits = listed(init_values)
    if not listed(operands):
        raise ShapeError("ReduceWindow.B1", "nothing to reduce")
    builder = builder_of(operands)
    arrays = as_ops(builder, listed(operands))
    if len(inits) != len(arrays):
        raise ShapeError("ReduceWindow.B1", f"{len(inits)} initial values are given for {len(arrays)} operands")
    shapes = [require_array(array) for array in arrays]
    sizes = as_ints(window_dimensions, "window_dimensions")
    window = window_over(
        "ReduceWindow.B2", shapes[0].dims, sizes, window_strides, padding, base_dilations, window_dilations
    )
    elements = [shape.type for shape in shapes]
    starts = [as_op(builder, init, like) for init, like in zip(inits, elements, strict=True)]
    called = fold_computation_of(builder, computation, elements, "reduction")
    return builder.record("reduce-window", [*arrays, *starts], called=[called], window=window)


@op_function()
def ReduceWindowWithGeneralPadding(
    operands: Operands,
    init_values: Operands,
    computation: ComputationLike,
    window_dimensions: Integers,
    window_strides: Integers,
    base_dilations: Integers,
    window_dilations: Integers,
    padding: PaddingLike,
) -> XlaOp:
    """ReduceWindow, with dilations and a (low, high) pair of padding for each dimension."""
    return ReduceWindow(
        operands, init_values, computation, window_dimensions, window_strides, padding, base_dilations, window_dilations
    )


@op_function("select-and-scatter")
def SelectAndScatter(
    operand: XlaOp,
    select: ComputationLike,
    window_dimensions: Integers,
    window_strides: Integers | None,
    padding: PaddingLike,
    source: Operand,
    init_value: Operand,
    scatter: ComputationLike,
) -> XlaOp:
    """Selects one element at each position of a window over the operand, and scatters the position's source element to
    it: the result begins as `init_value` everywhere, and `scatter` combines what is there with the source element.

    `select` gets two elements, the one with the smaller index first, and says whether it keeps the first."""
    builder = as_handle(operand).builder
    shape = require_array(operand)
    sizes = as_ints(window_dimensions, "window_dimensions")
    window = window_over("SelectAndScatter.window-rank", shape.dims, sizes, window_strides, padding)
    scalar = Shape.scalar(shape.type)
    operands = [operand, *(as_op(builder, value, shape.type) for value in (source, init_value))]
    called = [
        computation_of(builder, select, [scalar, scalar], "selection", Shape.scalar(PRED)),
        computation_of(builder, scatter, [scalar, scalar], "scattering", scalar),
    ]
    return builder.record("select-and-scatter", operands, called=called, window=window)


@op_function()
def SelectAndScatterWithGeneralPadding(
    operand: XlaOp,
    select: ComputationLike,
    window_dimensions: Integers,
    window_strides: Integers,
    padding: PaddingLike,
    source: Operand,
    init_value: Operand,
    scatter: ComputationLike,
) -> XlaOp:
    """SelectAndScatter, with a (low, high) pair of padding for each dimension."""
    return SelectAndScatter(operand, select, window_dimensions, window_strides, padding, source, init_value, scatter)


# -- windows -------------------------------------------------------------------------------------------------------


def window_over(
    rule: str,
    dims: Sequence[int],
    sizes: Sequence[int],
    strides: Integers | None,
    padding: PaddingLike,
    base_dilations: Integers | None = None,
    window_dilations: Integers | None = None,
    reversal: Sequence[bool] | None = None,
) -> Window:
    """The window over `dims`; lists that are None or empty are ones. Raises under `rule` unless each has one
    entry per dimension."""
    rank = len(dims)
    lists = {
        "window_dimensions": tuple(sizes),
        "window_strides": as_ints(strides, "window_strides") or (1,) * rank,
        "base_dilations": as_ints(base_dilations, "base_dilations") or (1,) * rank,
        "window_dilations": as_ints(window_dilations, "window_dilations") or (1,) * rank,
        "window_reversal": as_flags(reversal, "window_reversal") or (False,) * rank,
    }
    for name, values in lists.items():
        if len(values) != rank:
            raise ShapeError(rule, f"{len(values)} {name} are given for {rank} dimensions")
    parts = [
        WindowDimension(size, stride, 0, 0, base, dilation, flag)
        for size, stride, base, dilation, flag in zip(*lists.values(), strict=True)
    ]
    pads = _pairs(rule, padding, dims, parts)
    return Window(
        tuple(
            WindowDimension(part.size, part.stride, low, high, part.base_dilation, part.window_dilation, part.reversal)
            for part, (low, high) in zip(parts, pads, strict=True)
        )
    )


def _pairs(
    rule: str, padding: PaddingLike, dims: Sequence[int], parts: Sequence[WindowDimension]
) -> list[tuple[int, int]]:
    """The padding of each dimension as (low, high)."""
    kind = _padding_kind(padding)
    if kind is Padding.VALID:
        return [(0, 0)] * len(dims)
    if kind is Padding.SAME:
        return [_same(size, part) for size, part in zip(dims, parts, strict=True)]
    pairs = [as_ints(pair, "padding") for pair in as_rows(padding, "padding")]
    if len(pairs) != len(dims) or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(
            rule, f"padding {described(padding)} is not a (low, high) pair for each of {len(dims)} dimensions"
        )
    return [(pair[0], pair[1]) for pair in pairs]


def _padding_kind(padding: PaddingLike) -> Padding | None:
    """The kind that `padding` names; None for pairs."""
    if isinstance(padding, Padding):
        return padding
    name = getattr(padding, "name", padding)
    if not isinstance(name, str):
        return None
    if name.upper() not in _KINDS:
        raise ArgumentError(f"padding is 'SAME', 'VALID' or a (low, high) pair for each dimension, not {name!r}")
    return _KINDS[name.upper()]


def _same(size: int, part: WindowDimension) -> tuple[int, int]:
    """Padding for ceil(size / stride) positions; the odd one out is at the end."""
    if size == UNBOUNDED:
        raise UnsupportedError("SAME padding of a dimension of unknown size; give (low, high) pairs")
    if part.stride <= 0 or part.base_dilation <= 0 or part.window_dilation <= 0:
        return 0, 0  # the rule of the op refuses these
    dilated = (size - 1) * part.base_dilation + 1 if size else 0
    extent = (part.size - 1) * part.window_dilation + 1
    total = max((-(-dilated // part.stride) - 1) * part.stride + extent - dilated, 0)
    return total // 2, total - total // 2
