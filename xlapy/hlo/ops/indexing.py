"""Data movement with run-time indices: dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.element_types import INTEGER
from xlapy.hlo.ops.spec import PURE, Variadic, op
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


def _check_starts(operand: Shape, start_indices: Variadic) -> None:
    if len(start_indices) != operand.rank:
        raise ShapeError("one-start-each", f"{len(start_indices)} start indices are given for {operand}")
    for start in start_indices:
        if not start.is_scalar or start.element_type not in INTEGER:
            raise ShapeError("start-type", f"start index {start} is not an integer scalar")
        if start.element_type is not start_indices[0].element_type:
            raise ShapeError("start-type", f"start indices {start_indices[0]} and {start} have different types")


def _check_slice(operand: Shape, sizes: Sequence[int]) -> None:
    for dim, (size, available) in enumerate(zip(sizes, operand.dims, strict=True)):
        if not 0 <= size <= available:
            raise ShapeError("slice-sizes", f"a slice of size {size} does not fit in dimension {dim} of {operand}")


@op("dynamic-slice", traits=PURE, hlo_text={"slice_sizes": "dynamic_slice_sizes"})
def dynamic_slice(operand: Shape, start_indices: Variadic, *, slice_sizes: tuple[int, ...]) -> Shape:
    """The slice of `slice_sizes` that begins at `start_indices`, moved inward until it fits.

    array-operands: the operand is an array.
    one-start-each [B1 C2]: there is one start index for each dimension.
    start-type [B3 C3]: the start indices are integer scalars of one type.
    sizes-count [B1 C2]: there is one size for each dimension.
    slice-sizes [B2 C4]: 0 <= size <= size of the dimension.
    """
    if not operand.is_array:
        raise ShapeError("array-operands", f"{operand} is not an array")
    _check_starts(operand, start_indices)
    if len(slice_sizes) != operand.rank:
        raise ShapeError("sizes-count", f"{len(slice_sizes)} slice sizes are given for {operand}")
    _check_slice(operand, slice_sizes)
    return operand.with_dims(slice_sizes)


@op("dynamic-update-slice", traits=PURE)
def dynamic_update_slice(operand: Shape, update: Shape, start_indices: Variadic) -> Shape:
    """The operand with `update` written at `start_indices`, moved inward until it fits.

    array-operands: operand and update are arrays.
    same-type [B1 C2]: operand and update have the same element type.
    same-rank [B1 C3]: operand and update have the same rank.
    one-start-each [C4]: there is one start index for each dimension.
    start-type [C5]: the start indices are integer scalars of one type.
    slice-sizes [B2 C6]: the update fits in the operand.
    """
    if not operand.is_array or not update.is_array:
        raise ShapeError("array-operands", f"{operand} and {update} are not both arrays")
    if operand.element_type is not update.element_type:
        raise ShapeError("same-type", f"{operand} and {update} have different element types")
    if operand.rank != update.rank:
        raise ShapeError("same-rank", f"{update} updates {operand}, which has another rank")
    _check_starts(operand, start_indices)
    _check_slice(operand, update.dims)
    return operand.without_layout()
