"""Sums of products: dot."""

from __future__ import annotations

from xlapy.hlo.attributes import DotDimensionNumbers, Precision
from xlapy.hlo.ops.spec import PURE, ResultShape, op
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError


@op("dot", traits=PURE, title="DotGeneral")
def dot(
    lhs: Shape,
    rhs: Shape,
    *,
    dimension_numbers: DotDimensionNumbers,
    operand_precision: tuple[Precision, ...] = (),
    algorithm: str = "",
    result: ResultShape,
) -> Shape:
    """Sums of products over the contracting dimensions, for each index of the batch dimensions.

    The result has the batch dimensions, the free dimensions of `lhs`, then those of `rhs`. Its element type is that of the
    stated result (`preferred_element_type`).

    array-operands: the operands are arrays.
    same-type [C13]: the operands have the same element type, unless both are integers or both are floats.
    batch-count [B2 C1]: both sides batch over equally many dimensions.
    contracting-count [B1 C2]: both sides contract equally many dimensions.
    dimensions-unique [B3 C3 C4]: no dimension occurs twice on one side.
    dimensions-in-range [B3 C5 C6 C7 C8]: all dimensions are dimensions of their operand.
    batch-sizes [B2 C9]: batch dimensions agree in size.
    contracting-sizes [B1 C10]: contracting dimensions agree in size.
    """
    for shape in (lhs, rhs, result):
        if not shape.is_array:
            raise ShapeError("array-operands", f"{shape} is not an array")
    if lhs.type.kind != rhs.type.kind and not (lhs.type.is_integer and rhs.type.is_integer):
        raise ShapeError("same-type", f"{lhs} and {rhs} have elements of different kinds")
    numbers = dimension_numbers
    if len(numbers.lhs_batch) != len(numbers.rhs_batch):
        raise ShapeError("batch-count", f"batch dimensions {numbers.lhs_batch} and {numbers.rhs_batch} do not pair up")
    if len(numbers.lhs_contracting) != len(numbers.rhs_contracting):
        raise ShapeError(
            "contracting-count",
            f"contracting dimensions {numbers.lhs_contracting} and {numbers.rhs_contracting} do not pair up",
        )
    for shape, dims in (
        (lhs, numbers.lhs_batch + numbers.lhs_contracting),
        (rhs, numbers.rhs_batch + numbers.rhs_contracting),
    ):
        for dim in dims:
            if not 0 <= dim < shape.rank:
                raise ShapeError("dimensions-in-range", f"dimension {dim} is outside {shape}")
        if len(set(dims)) != len(dims):
            raise ShapeError("dimensions-unique", f"dimensions {list(dims)} of {shape} repeat one")
    _check_sizes("batch-sizes", lhs, rhs, numbers.lhs_batch, numbers.rhs_batch)
    _check_sizes("contracting-sizes", lhs, rhs, numbers.lhs_contracting, numbers.rhs_contracting)
    order = [(lhs, dim) for dim in (*numbers.lhs_batch, *numbers.lhs_free(lhs.rank))]
    order += [(rhs, dim) for dim in numbers.rhs_free(rhs.rank)]
    sizes = [shape.dims[dim] for shape, dim in order]
    return Shape.array(result.type, sizes, [shape.is_dynamic_dim(dim) for shape, dim in order])


def _check_sizes(slug: str, lhs: Shape, rhs: Shape, lhs_dims: tuple[int, ...], rhs_dims: tuple[int, ...]) -> None:
    for lhs_dim, rhs_dim in zip(lhs_dims, rhs_dims, strict=True):
        sizes = (lhs.dims[lhs_dim], rhs.dims[rhs_dim])
        if sizes[0] != sizes[1] and UNBOUNDED not in sizes:
            raise ShapeError(slug, f"dimension {lhs_dim} of {lhs} and dimension {rhs_dim} of {rhs} differ in size")
