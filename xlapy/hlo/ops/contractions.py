"""Sums of products: dot and convolution."""

from __future__ import annotations

from xlapy.hlo.attributes import NO_WINDOW, ConvolutionDimensionNumbers, DotDimensionNumbers, Precision, Window
from xlapy.hlo.ops.checks import require_array
from xlapy.hlo.ops.spec import PURE, ResultShape, op
from xlapy.hlo.ops.windows import check_window_steps, window_positions
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
    complex-result: the result of complex operands is complex.
    batch-count [B2 C1]: both sides batch over equally many dimensions.
    contracting-count [B1 C2]: both sides contract equally many dimensions.
    lhs-unique [B3 C3]: no dimension of `lhs` occurs twice.
    rhs-unique [B3 C4]: no dimension of `rhs` occurs twice.
    lhs-batch-in-range [B3 C5]: `lhs` has the dimensions that it batches over.
    lhs-contracting-in-range [B3 C6]: `lhs` has the dimensions that it contracts.
    rhs-batch-in-range [B3 C7]: `rhs` has the dimensions that it batches over.
    rhs-contracting-in-range [B3 C8]: `rhs` has the dimensions that it contracts.
    batch-sizes [B2 C9]: batch dimensions agree in size.
    contracting-sizes [B1 C10]: contracting dimensions agree in size.
    precision-count [C11]: a precision is given for both operands, or for none.
    """
    _check_factors(lhs, rhs, result)
    numbers = dimension_numbers
    if len(numbers.lhs_batch) != len(numbers.rhs_batch):
        raise ShapeError("batch-count", f"batch dimensions {numbers.lhs_batch} and {numbers.rhs_batch} do not pair up")
    if len(numbers.lhs_contracting) != len(numbers.rhs_contracting):
        raise ShapeError(
            "contracting-count",
            f"contracting dimensions {numbers.lhs_contracting} and {numbers.rhs_contracting} do not pair up",
        )
    _check_dimensions("lhs", lhs, numbers.lhs_batch, numbers.lhs_contracting)
    _check_dimensions("rhs", rhs, numbers.rhs_batch, numbers.rhs_contracting)
    _check_precisions(operand_precision)
    _check_sizes("batch-sizes", lhs, rhs, numbers.lhs_batch, numbers.rhs_batch)
    _check_sizes("contracting-sizes", lhs, rhs, numbers.lhs_contracting, numbers.rhs_contracting)
    order = [(lhs, dim) for dim in (*numbers.lhs_batch, *numbers.lhs_free(lhs.rank))]
    order += [(rhs, dim) for dim in numbers.rhs_free(rhs.rank)]
    sizes = [shape.dims[dim] for shape, dim in order]
    dynamic = [shape.is_dynamic_dim(dim) for shape, dim in order]
    for place, dim in enumerate(numbers.rhs_batch):
        dynamic[place] = dynamic[place] or (rhs.is_dynamic_dim(dim) and rhs.dims[dim] != UNBOUNDED)
    return Shape.array(result.type, sizes, dynamic)


def _check_factors(lhs: Shape, rhs: Shape, result: Shape) -> None:
    """Raises unless both operands and the result are arrays, and elements of the operands can be multiplied."""
    require_array(lhs, rhs, result)
    if lhs.type.kind != rhs.type.kind and not (lhs.type.is_integer and rhs.type.is_integer):
        raise ShapeError("same-type", f"{lhs} and {rhs} have elements of different kinds")
    if lhs.type.is_complex and not result.type.is_complex:
        raise ShapeError("complex-result", f"products of {lhs} and {rhs} are complex, and {result} is not")


def _check_precisions(precisions: tuple[Precision, ...]) -> None:
    if len(precisions) not in (0, 2):
        raise ShapeError("precision-count", f"{len(precisions)} precisions are given for two operands")


def _check_dimensions(side: str, shape: Shape, batch: tuple[int, ...], contracting: tuple[int, ...]) -> None:
    for role, dims in (("batch", batch), ("contracting", contracting)):
        for dim in dims:
            if not 0 <= dim < shape.rank:
                raise ShapeError(f"{side}-{role}-in-range", f"{role} dimension {dim} is outside {shape}")
    dims = batch + contracting
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{side}-unique", f"dimensions {list(dims)} of {shape} repeat one")


def _check_sizes(slug: str, lhs: Shape, rhs: Shape, lhs_dims: tuple[int, ...], rhs_dims: tuple[int, ...]) -> None:
    for lhs_dim, rhs_dim in zip(lhs_dims, rhs_dims, strict=True):
        sizes = (lhs.dims[lhs_dim], rhs.dims[rhs_dim])
        if sizes[0] != sizes[1] and UNBOUNDED not in sizes:
            raise ShapeError(slug, f"dimension {lhs_dim} of {lhs} and dimension {rhs_dim} of {rhs} differ in size")


@op("convolution", traits=PURE, hlo_text={"dimension_numbers": "dim_labels"}, title="ConvWithGeneralPadding")
def convolution(
    lhs: Shape,
    rhs: Shape,
    *,
    window: Window = NO_WINDOW,
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[Precision, ...] = (),
    result: ResultShape,
) -> Shape:
    """Sums of products of `lhs` under a sliding window with the kernel `rhs`, over the window and the input features.

    The kernel is not flipped, unless the window is reversed. Padding and the holes of dilations contribute nothing.
    Groups of features (or of the batch) of `lhs` meet groups of output features of `rhs`. The element type is that of
    the stated result (`preferred_element_type`).

    Bounded dimensions: features (and the batch, with batch groups) are grouped as many as there are at run time, those
    that do not fill a group are dropped. The window keeps its size: a smaller kernel is continued with zeros.

    array-operands [B1]: the operands are arrays.
    same-type [B1 C27]: the operands have the same element type, unless both are integers or both are floats.
    complex-result: the result of complex operands is complex.
    same-rank [B1 C1]: both operands have rank n + 2, for n spatial dimensions.
    window-rank [B2 C2 C4 C5 C7 C9]: the window has an entry for each spatial dimension.
    window-sizes: the window is as large as the kernel.
    strides-positive [B2 C3]: 0 < stride.
    base-dilations-positive [B2 C6]: 0 < dilation of `lhs`.
    window-dilations-positive [B2 C8]: 0 < dilation of `rhs`.
    input-spatial-count [C12]: `lhs` has n spatial dimensions.
    input-dimensions [C13]: the dimensions of `lhs` are listed once each.
    kernel-spatial-count [C17]: `rhs` has n spatial dimensions.
    kernel-dimensions [C18]: the dimensions of `rhs` are listed once each.
    output-spatial-count [C19]: the result has n spatial dimensions.
    output-dimensions [C20]: the dimensions of the result are listed once each.
    feature-groups-positive [B4 C21]: 0 < feature_group_count.
    batch-groups-positive [B5 C22]: 0 < batch_group_count.
    one-grouping [B6 C23]: one of the group counts is 1.
    batch-groups-divide-batch [B5 C10]: the batch groups divide the batch.
    feature-groups-divide-input [B4 C11]: the feature groups divide the input features.
    kernel-input-features [B3 C14]: the kernel has as many input features as a group of `lhs`.
    batch-groups-divide-output [B5 C15]: the batch groups divide the output features.
    feature-groups-divide-output [B4 C16]: the feature groups divide the output features.
    precision-count [C24]: a precision is given for both operands, or for none.
    """
    _check_factors(lhs, rhs, result)
    numbers = dimension_numbers
    if lhs.rank != rhs.rank or lhs.rank < 2:
        raise ShapeError("same-rank", f"{lhs} and {rhs} do not have the same rank, of 2 or more")
    _check_convolution_dimensions(lhs.rank, numbers)
    _check_convolution_window(rhs, window, numbers)
    _check_groups(lhs, rhs, numbers, feature_group_count, batch_group_count)
    _check_precisions(operand_precision)
    batch = lhs.dims[numbers.input_batch]
    dims, dynamic = [0] * lhs.rank, [False] * lhs.rank
    dims[numbers.output_batch] = batch if batch == UNBOUNDED else batch // batch_group_count
    dynamic[numbers.output_batch] = lhs.is_dynamic_dim(numbers.input_batch)
    dims[numbers.output_feature] = rhs.dims[numbers.kernel_output_feature]
    dynamic[numbers.output_feature] = rhs.is_dynamic_dim(numbers.kernel_output_feature)
    positions = window_positions([lhs.dims[dim] for dim in numbers.input_spatial], window)
    for source, target, size in zip(numbers.input_spatial, numbers.output_spatial, positions, strict=True):
        dims[target], dynamic[target] = size, lhs.is_dynamic_dim(source)
    return Shape.array(result.type, dims, dynamic)


def _check_convolution_dimensions(rank: int, numbers: ConvolutionDimensionNumbers) -> None:
    for side, (first, second, spatial) in zip(("input", "kernel", "output"), numbers.sides(), strict=True):
        if len(spatial) != rank - 2:
            raise ShapeError(f"{side}-spatial-count", f"{len(spatial)} {side} spatial dimensions for arrays of {rank}")
        listed = [first, second, *spatial]
        if sorted(listed) != list(range(rank)):
            raise ShapeError(f"{side}-dimensions", f"the {side} dimensions {listed} are not 0 to {rank - 1}, each once")


def _check_convolution_window(rhs: Shape, window: Window, numbers: ConvolutionDimensionNumbers) -> None:
    sizes = [rhs.dims[dim] for dim in numbers.kernel_spatial]
    if len(window.dimensions) != len(sizes):
        raise ShapeError(
            "window-rank",
            f"the window has {len(window.dimensions)} dimensions, but {rhs} has {len(sizes)} spatial ones",
        )
    for part, size in zip(window.dimensions, sizes, strict=True):
        if size not in (part.size, UNBOUNDED):
            raise ShapeError("window-sizes", f"a window of size {part.size} does not fit the spatial sizes {sizes}")
    check_window_steps(window)


def _check_groups(
    lhs: Shape, rhs: Shape, numbers: ConvolutionDimensionNumbers, feature_groups: int, batch_groups: int
) -> None:
    if feature_groups <= 0:
        raise ShapeError("feature-groups-positive", f"there are {feature_groups} feature groups")
    if batch_groups <= 0:
        raise ShapeError("batch-groups-positive", f"there are {batch_groups} batch groups")
    if feature_groups > 1 and batch_groups > 1:
        raise ShapeError("one-grouping", f"there are {feature_groups} feature groups and {batch_groups} batch groups")
    batch, features = lhs.dims[numbers.input_batch], lhs.dims[numbers.input_feature]
    inputs, outputs = rhs.dims[numbers.kernel_input_feature], rhs.dims[numbers.kernel_output_feature]
    _check_divides("batch-groups-divide-batch", batch_groups, batch, f"the batch of {lhs}")
    _check_divides("feature-groups-divide-input", feature_groups, features, f"the features of {lhs}")
    if UNBOUNDED not in (inputs, features) and inputs * feature_groups != features:
        raise ShapeError(
            "kernel-input-features",
            f"{rhs} has {inputs} input features for {feature_groups} groups of the {features} features of {lhs}",
        )
    _check_divides("batch-groups-divide-output", batch_groups, outputs, f"the output features of {rhs}")
    _check_divides("feature-groups-divide-output", feature_groups, outputs, f"the output features of {rhs}")


def _check_divides(slug: str, groups: int, size: int, what: str) -> None:
    if size != UNBOUNDED and size % groups:
        raise ShapeError(slug, f"{groups} groups do not divide {what}, of size {size}")
