"""Data movement with run-time indices: dynamic slices, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.element_types import INTEGER
from xlapy.hlo.ops.checks import require_array
from xlapy.hlo.ops.elementwise import common_dims
from xlapy.hlo.ops.reductions import check_reduction
from xlapy.hlo.ops.spec import PURE, Variadic, op
from xlapy.hlo.shape import UNBOUNDED, Shape, Signature, shape_of_results
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
        if size < 0 or size > available != UNBOUNDED:
            raise ShapeError("slice-sizes", f"a slice of size {size} does not fit in dimension {dim} of {operand}")


@op("dynamic-slice", traits=PURE, hlo_text={"slice_sizes": "dynamic_slice_sizes"})
def dynamic_slice(operand: Shape, start_indices: Variadic, *, slice_sizes: tuple[int, ...]) -> Shape:
    """The slice of `slice_sizes` that begins at `start_indices`, moved inward until it fits.

    A bounded dimension that is taken whole stays bounded. A slice that is larger than a run-time size begins at 0 and
    is zero beyond the size.

    array-operands: the operand is an array.
    one-start-each [B1 C2]: there is one start index for each dimension.
    start-type [B3 C3]: the start indices are integer scalars of one type.
    sizes-count [B1 C2]: there is one size for each dimension.
    slice-sizes [B2 C4]: 0 <= size <= size of the dimension.
    """
    require_array(operand)
    _check_starts(operand, start_indices)
    if len(slice_sizes) != operand.rank:
        raise ShapeError("sizes-count", f"{len(slice_sizes)} slice sizes are given for {operand}")
    _check_slice(operand, slice_sizes)
    return operand.with_dims(slice_sizes, _kept_whole(operand, slice_sizes))


def _kept_whole(operand: Shape, slice_sizes: Sequence[int]) -> list[bool]:
    """Which dimensions of slices are bounded: those of the operand, where slices take all of them."""
    return [
        operand.is_dynamic_dim(dim) and size == operand.dims[dim] and size != UNBOUNDED
        for dim, size in enumerate(slice_sizes)
    ]


@op("dynamic-update-slice", traits=PURE)
def dynamic_update_slice(operand: Shape, update: Shape, start_indices: Variadic) -> Shape:
    """The operand with `update` written at `start_indices`, moved inward until it fits.

    It is the run-time sizes of both that must fit. Of an update larger than the operand, the end is left out.

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
    _check_slice(operand, [0 if size == UNBOUNDED else size for size in update.dims])
    return operand.without_layout()


def _check_index_vector(indices: Shape, index_vector_dim: int, count: int) -> None:
    """Raises unless `indices` holds vectors of `count` indices along `index_vector_dim`, which may be one past the last."""
    if not indices.is_array or indices.element_type not in INTEGER:
        raise ShapeError("index-type", f"{indices} is not an array of integers")
    if not 0 <= index_vector_dim <= indices.rank:
        raise ShapeError("index-vector-dim", f"index_vector_dim {index_vector_dim} is outside [0, {indices.rank}]")
    length = indices.dims[index_vector_dim] if index_vector_dim < indices.rank else 1
    if length not in (count, UNBOUNDED):
        raise ShapeError("one-dim-per-index", f"{count} dimensions are listed for the {length} indices of {indices}")


def _check_listed(dims: Sequence[int], rank: int, what: str, in_range: str, order: str | None, unique: str) -> None:
    """Raises unless `dims` are different numbers below `rank`, ascending if a rule is given for their `order`."""
    for dim in dims:
        if not 0 <= dim < rank:
            raise ShapeError(in_range, f"{what} {dim} is outside [0, {rank})")
    if len(set(dims)) != len(dims):
        raise ShapeError(unique, f"{what} {list(dims)} repeat one")
    if order is not None and list(dims) != sorted(dims):
        raise ShapeError(order, f"{what} {list(dims)} are not in ascending order")


def _check_batching(
    operand: Shape,
    indices: Shape,
    operand_batching: Sequence[int],
    indices_batching: Sequence[int],
    index_vector_dim: int,
    others: Sequence[int],
) -> None:
    """Raises unless batching dimensions of operand and indices are pairs of equal size and have no other role."""
    slug = "batching-dims"
    _check_listed(operand_batching, operand.rank, "operand batching dimensions", slug, slug, slug)
    _check_listed(indices_batching, indices.rank, "batching dimensions of the indices", slug, None, slug)
    if set(operand_batching) & set(others):
        raise ShapeError(slug, f"operand batching dimensions {list(operand_batching)} have another role too")
    if index_vector_dim in indices_batching:
        raise ShapeError(slug, f"dimension {index_vector_dim} of the indices holds the index vectors, it is no batch")
    if len(operand_batching) != len(indices_batching):
        raise ShapeError(slug, f"{len(operand_batching)} dimensions are paired with {len(indices_batching)}")
    for ours, theirs in zip(operand_batching, indices_batching, strict=True):
        sizes = (operand.dims[ours], indices.dims[theirs])
        if sizes[0] != sizes[1] and UNBOUNDED not in sizes:
            raise ShapeError(slug, f"batching dimension {ours} of {operand} and {theirs} of {indices} differ in size")


def _without(sizes: Sequence[int], *dims: int) -> list[int]:
    return [size for dim, size in enumerate(sizes) if dim not in dims]


@op("gather", traits=PURE)
def gather(
    operand: Shape,
    start_indices: Shape,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool = False,
) -> Shape:
    """Slices of the operand, each at the start that a vector of `start_indices` says, moved inward until it fits.

    Bounded dimensions: as for dynamic-slice, and the result has as many slices as there are index vectors.

    array-operands: the operand is an array.
    index-type [I2]: the start indices are integers.
    index-vector-dim [B3 C2]: 0 <= index_vector_dim <= rank of the indices, where the rank itself adds a dimension of 1.
    one-dim-per-index [C3]: start_index_map has one entry for each index of a vector.
    start-index-map-unique [C9]: start_index_map lists no dimension twice.
    start-index-map-in-range [C10]: start_index_map lists dimensions of the operand.
    collapsed-in-range [C7]: collapsed_slice_dims are dimensions of the operand.
    collapsed-ascending [C6]: collapsed_slice_dims are unique and ascending.
    batching-dims: batching dimensions of operand and indices are pairs of equal size that have no other role.
    rank-adds-up [B1 C1]: every operand dimension is an offset dimension, collapsed, or batching.
    sizes-count [B2 C11]: there is one slice size for each operand dimension.
    slice-sizes [C12]: 0 <= slice size <= size of the dimension.
    collapsed-size [B4 C8]: the slice size of a collapsed (or batching) dimension is at most 1.
    offset-ascending [C4]: offset_dims are unique and ascending.
    offset-in-range [C5]: offset_dims are dimensions of the result.
    """
    numbers = dimension_numbers
    require_array(operand)
    _check_lookup(operand, start_indices, numbers)
    batching = numbers.operand_batching_dims
    dropped = (*numbers.collapsed_slice_dims, *batching)
    _check_slice_sizes(operand, slice_sizes, dropped)
    vectors = _without(range(start_indices.rank), numbers.index_vector_dim)
    batch = [start_indices.dims[dim] for dim in vectors]
    whole = _kept_whole(operand, slice_sizes)
    window = iter([(slice_sizes[dim], whole[dim]) for dim in range(operand.rank) if dim not in dropped])
    rank = len(batch) + len(numbers.offset_dims)
    _check_listed(
        numbers.offset_dims, rank, "offset dimensions", "offset-in-range", "offset-ascending", "offset-ascending"
    )
    partners = dict(zip(numbers.start_indices_batching_dims, batching, strict=True))
    rest = iter([_batch_size(operand, start_indices, dim, partners.get(dim)) for dim in vectors])
    dims = [next(window) if dim in numbers.offset_dims else next(rest) for dim in range(rank)]
    return operand.with_dims([size for size, _ in dims], [dynamic for _, dynamic in dims]).without_layout()


def _check_lookup(operand: Shape, start_indices: Shape, numbers: GatherDimensionNumbers) -> None:
    """Raises unless indices and slices together have the dimensions of the operand."""
    starts, collapsed, batching = numbers.start_index_map, numbers.collapsed_slice_dims, numbers.operand_batching_dims
    _check_index_vector(start_indices, numbers.index_vector_dim, len(starts))
    in_range, unique = "start-index-map-in-range", "start-index-map-unique"
    _check_listed(starts, operand.rank, "dimensions of start_index_map", in_range, None, unique)
    ascending = "collapsed-ascending"
    _check_listed(collapsed, operand.rank, "collapsed dimensions", "collapsed-in-range", ascending, ascending)
    others = (*collapsed, *starts)
    indices_batching = numbers.start_indices_batching_dims
    _check_batching(operand, start_indices, batching, indices_batching, numbers.index_vector_dim, others)
    offsets, dropped = len(numbers.offset_dims), len(collapsed) + len(batching)
    if operand.rank != offsets + dropped:
        message = f"{offsets} offset dimensions and {dropped} dropped ones do not make up {operand}"
        raise ShapeError("rank-adds-up", message)


def _batch_size(operand: Shape, indices: Shape, dim: int, partner: int | None) -> tuple[int, bool]:
    """A batch dimension of the result, and whether it is bounded: it is if it is in the operand or in the indices."""
    size = indices.dims[dim]
    in_operand = partner is not None and operand.is_dynamic_dim(partner) and operand.dims[partner] != UNBOUNDED
    return size, indices.is_dynamic_dim(dim) or in_operand


def _check_slice_sizes(operand: Shape, slice_sizes: Sequence[int], dropped: Sequence[int]) -> None:
    if len(slice_sizes) != operand.rank:
        raise ShapeError("sizes-count", f"{len(slice_sizes)} slice sizes are given for {operand}")
    _check_slice(operand, slice_sizes)
    for dim in dropped:
        if slice_sizes[dim] > 1:
            raise ShapeError("collapsed-size", f"dimension {dim} is dropped, but its slice size is {slice_sizes[dim]}")


@op("scatter", traits=PURE, hlo_text={"update_computation": "to_apply"})
def scatter(
    inputs: Variadic,
    scatter_indices: Shape,
    updates: Variadic,
    *,
    update_computation: Signature,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Shape:
    """The inputs, with windows of `updates` combined into them where vectors of `scatter_indices` say.

    The computation takes the present elements, then the updates. An element of a window that lies outside is skipped.
    Updates are applied in the row-major order of the indices.

    some-inputs [B1 C5]: there is at least one input.
    array-operands: inputs and updates are arrays.
    same-dims [B1 C1]: the inputs have the same dimensions.
    same-update-dims [B1 C3]: the updates have the same dimensions.
    same-types [C6]: each update has the element type of its input.
    index-type [I2]: the scatter indices are integers.
    index-vector-dim [B9 C14]: 0 <= index_vector_dim <= rank of the indices, where the rank itself adds a dimension of 1.
    one-dim-per-index [B8 C11]: scatter_dims_to_operand_dims has one entry for each index of a vector.
    scatter-dims-unique [C12]: scatter_dims_to_operand_dims lists no dimension twice.
    scatter-dims-in-range [B8 C13]: scatter_dims_to_operand_dims lists dimensions of the inputs.
    inserted-ascending [B6 C9]: inserted_window_dims are unique and ascending.
    inserted-in-range [B6 C10]: inserted_window_dims are dimensions of the inputs.
    batching-dims: batching dimensions of inputs and indices are pairs of equal size that have no other role.
    rank-adds-up [B7 C2]: every input dimension is a window dimension, inserted, or batching.
    update-rank [B2 C4]: the updates have the window dimensions and those of the indices without the index vectors.
    window-ascending [B5 C7]: update_window_dims are unique and ascending.
    window-in-range [B5 C8]: update_window_dims are dimensions of the updates.
    window-fits [B3 C4]: windows are no larger than the inputs.
    scatter-sizes [B4 C4]: the other dimensions of the updates are those of the indices.
    computation-type [C15]: the computation has type (T.., T..) -> T.. for element types T.
    """
    _check_scattered(inputs, updates)
    _check_targets(inputs[0], scatter_indices, dimension_numbers)
    _check_updates(inputs[0], scatter_indices, updates[0], dimension_numbers)
    check_reduction(inputs, update_computation)
    merged = common_dims(*inputs)
    results = [merged.with_type(shape.type).without_layout() for shape in inputs]
    return shape_of_results(results)


def _check_targets(operand: Shape, scatter_indices: Shape, numbers: ScatterDimensionNumbers) -> None:
    """Raises unless indices and windows together have the dimensions of the operand."""
    targets, inserted = numbers.scatter_dims_to_operand_dims, numbers.inserted_window_dims
    _check_index_vector(scatter_indices, numbers.index_vector_dim, len(targets))
    in_range, unique = "scatter-dims-in-range", "scatter-dims-unique"
    _check_listed(targets, operand.rank, "dimensions of scatter_dims_to_operand_dims", in_range, None, unique)
    ascending = "inserted-ascending"
    _check_listed(inserted, operand.rank, "inserted dimensions", "inserted-in-range", ascending, ascending)
    batching, others = numbers.input_batching_dims, (*inserted, *targets)
    indices_batching = numbers.scatter_indices_batching_dims
    _check_batching(operand, scatter_indices, batching, indices_batching, numbers.index_vector_dim, others)
    windows, dropped = len(numbers.update_window_dims), len(inserted) + len(batching)
    if operand.rank != windows + dropped:
        message = f"{windows} window dimensions and {dropped} dropped ones do not make up {operand}"
        raise ShapeError("rank-adds-up", message)


def _check_scattered(inputs: Variadic, updates: Variadic) -> None:
    if not inputs:
        raise ShapeError("some-inputs", "nothing to scatter into")
    require_array(*inputs, *updates)
    for shape in inputs:
        if not shape.has_dims_of(inputs[0]):
            raise ShapeError("same-dims", f"the inputs {inputs[0]} and {shape} have different dimensions")
    for shape in updates:
        if not shape.has_dims_of(updates[0]):
            raise ShapeError("same-update-dims", f"the updates {updates[0]} and {shape} have different dimensions")
    for operand, update in zip(inputs, updates, strict=True):
        if operand.type is not update.type:
            raise ShapeError("same-types", f"{update} cannot update {operand}: their element types differ")


def _check_updates(operand: Shape, indices: Shape, update: Shape, numbers: ScatterDimensionNumbers) -> None:
    """Raises unless the updates have a window for each index vector."""
    dropped = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    windows = numbers.update_window_dims
    batch = _without(indices.dims, numbers.index_vector_dim)
    if update.rank != len(windows) + len(batch):
        raise ShapeError(
            "update-rank", f"updates {update} should have {len(windows)} window and {len(batch)} other dimensions"
        )
    slug = "window-ascending"
    _check_listed(windows, update.rank, "window dimensions", "window-in-range", slug, slug)
    for dim, limit in zip(windows, _without(operand.dims, *dropped), strict=True):
        if update.dims[dim] > limit != UNBOUNDED:
            raise ShapeError("window-fits", f"the window in dimension {dim} of {update} is larger than {operand}")
    for size, wanted in zip(_without(update.dims, *windows), batch, strict=True):
        if size != wanted and UNBOUNDED not in (size, wanted):
            raise ShapeError("scatter-sizes", f"updates {update} do not have the dimensions of the indices {indices}")
