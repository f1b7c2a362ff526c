"""Sliding windows: reduce-window and select-and-scatter."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import NO_WINDOW, Window
from xlapy.hlo.element_types import PRED
from xlapy.hlo.ops.elementwise import common_dims
from xlapy.hlo.ops.reductions import check_init_values, check_inputs, check_reduction
from xlapy.hlo.ops.spec import PURE, Variadic, op
from xlapy.hlo.shape import UNBOUNDED, Shape, Signature, shape_of_results
from xlapy.support.errors import ShapeError


def window_positions(sizes: Sequence[int], window: Window) -> list[int]:
    """How many positions the window takes along each dimension; unknown where the size is."""
    return [
        UNBOUNDED if size == UNBOUNDED else dimension.positions(size)
        for size, dimension in zip(sizes, window.dimensions, strict=True)
    ]


def check_window(window: Window, rank: int, what: str) -> None:
    """Raises unless the window has `rank` dimensions, with positive sizes, strides and dilations."""
    if len(window.dimensions) != rank:
        raise ShapeError("window-rank", f"the window has {len(window.dimensions)} dimensions, but {what} {rank}")
    for dim, part in enumerate(window.dimensions):
        if part.size <= 0:
            raise ShapeError("window-sizes-positive", f"the window has size {part.size} in dimension {dim}")
    check_window_steps(window)


def check_window_steps(window: Window) -> None:
    """Raises unless all strides and dilations are positive."""
    for dim, part in enumerate(window.dimensions):
        if part.stride <= 0:
            raise ShapeError("strides-positive", f"the window moves by {part.stride} in dimension {dim}")
        if part.base_dilation <= 0:
            raise ShapeError("base-dilations-positive", f"dimension {dim} is dilated by {part.base_dilation}")
        if part.window_dilation <= 0:
            raise ShapeError(
                "window-dilations-positive", f"dimension {dim} of the window is dilated by {part.window_dilation}"
            )


@op("reduce-window", traits=PURE, hlo_text={"computation": "to_apply"}, title="ReduceWindow")
def reduce_window(
    inputs: Variadic, init_values: Variadic, *, computation: Signature, window: Window = NO_WINDOW
) -> Shape:
    """Folds the elements of a window, at each of its positions, with `computation`, starting from the initial values.

    Padding and the holes of dilations of the inputs hold the initial values, which take part. Several inputs are folded
    together, as in reduce. The order of folding is free, but fixed.

    some-inputs [B1 C1]: there is at least one input.
    array-operands: the inputs are arrays.
    same-dims [B1 C2]: the inputs have the same dimensions.
    init-types [C3]: each initial value is a scalar of its input's element type.
    window-rank [B2 C4 C6 C8 C10 C12]: the window has an entry for each dimension of the inputs.
    window-sizes-positive [B2 C5]: 0 < size of the window.
    strides-positive [B2 C7]: 0 < stride.
    base-dilations-positive [B2 C9]: 0 < dilation of the inputs.
    window-dilations-positive [B2 C11]: 0 < dilation of the window.
    no-reversal: the window is not reversed.
    computation-type [C13]: the computation has type (T.., T..) -> T.. for element types T.
    """
    check_inputs(inputs)
    check_init_values(inputs, init_values)
    merged = common_dims(*inputs)
    check_window(window, merged.rank, f"{merged} has")
    _check_not_reversed(window)
    check_reduction(inputs, computation)
    dims = window_positions(merged.dims, window)
    results = [Shape.array(shape.type, dims, merged.dynamic) for shape in inputs]
    return shape_of_results(results)


def _check_not_reversed(window: Window) -> None:
    if any(part.reversal for part in window.dimensions):
        raise ShapeError("no-reversal", "the window is reversed, which means nothing here")


@op("select-and-scatter", traits=PURE, title="SelectAndScatter")
def select_and_scatter(
    operand: Shape,
    source: Shape,
    init_value: Shape,
    *,
    select: Signature,
    scatter: Signature,
    window: Window = NO_WINDOW,
) -> Shape:
    """At each position of a window over `operand`, selects one element, and combines the source element of the
    position into the result there.

    The selected element is what is left when `select` decides between the elements of the window in order of their
    indices: true keeps the earlier one. Padding is never selected. The result begins as `init_value` everywhere;
    `scatter` gets its present value and the source element, in the order of the positions.

    array-operands: operand and source are arrays.
    same-type [C1]: operand and source have the same element type.
    source-dims [B1 C2]: the source has an element for each position of the window.
    init-type [C3]: the initial value is a scalar of the element type.
    window-rank [C4 C6 C8]: the window has an entry for each dimension of the operand.
    window-sizes-positive [C5]: 0 < size of the window.
    strides-positive [C7]: 0 < stride.
    no-dilation: neither operand nor window is dilated.
    no-reversal: the window is not reversed.
    select-type [C9]: select has type (T, T) -> pred for the element type T.
    scatter-type [C10]: scatter has type (T, T) -> T for the element type T.
    """
    if not operand.is_array or not source.is_array:
        raise ShapeError("array-operands", f"{operand} and {source} are not both arrays")
    if operand.element_type is not source.element_type:
        raise ShapeError("same-type", f"{operand} and {source} have different element types")
    if not init_value.is_scalar or init_value.element_type is not operand.element_type:
        raise ShapeError("init-type", f"initial value {init_value} is not a scalar of the element type of {operand}")
    check_window(window, operand.rank, f"{operand} has")
    _check_not_reversed(window)
    if any(part.base_dilation != 1 or part.window_dilation != 1 for part in window.dimensions):
        raise ShapeError("no-dilation", "the window is dilated")
    dims = tuple(window_positions(operand.dims, window))
    known = [UNBOUNDED not in sizes for sizes in zip(dims, source.dims, strict=False)]
    if source.rank != operand.rank or any(k and a != b for k, a, b in zip(known, dims, source.dims, strict=True)):
        raise ShapeError("source-dims", f"the window takes {list(dims)} positions, but the source is {source}")
    scalar = Shape.scalar(operand.type)
    if not select.matches(Signature((scalar, scalar), Shape.scalar(PRED))):
        raise ShapeError("select-type", f"a computation of type {select} does not select elements of {operand}")
    if not scatter.matches(Signature((scalar, scalar), scalar)):
        raise ShapeError("scatter-type", f"a computation of type {scatter} does not combine elements of {operand}")
    return operand.without_layout()
