"""Laws of convolution."""

from __future__ import annotations

import math
from dataclasses import replace

from xlapy.hlo.attributes import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    PaddingDimension,
    SliceDimension,
    Window,
)
from xlapy.hlo.element_types import F32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import has_features_in_lanes
from xlapy.hlo.matrix_products import (
    LEAST_PRODUCT_FEATURES,
    convolution_product,
    has_tiled_types,
    pointwise_product,
)
from xlapy.hlo.patterns import P, variables
from xlapy.hlo.phases import MOST_PHASES, has_phases_in_library
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.spread_products import spread_product
from xlapy.passes import new
from xlapy.passes.algebra.contractions import widens_bytes
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness

x, y, dims, numbers, window = variables("x y dims numbers window")


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window), exactness=Exactness.FREE)
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


@LAWS.law(P.convolution(x, P.reverse(y, dimensions=dims), dimension_numbers=numbers, window=window))
def reversed_kernel(
    root: Instruction,
    x: Instruction,
    y: Instruction,
    dims: Dims,
    numbers: ConvolutionDimensionNumbers,
    window: Window,
) -> Value | None:
    """convolution(x, reverse(k)) -> convolution(x, k) with a reversed window, where only spatial dimensions are"""
    if not set(dims) <= set(numbers.kernel_spatial):
        return None
    parts = [
        replace(part, reversal=part.reversal != (axis in dims))
        for axis, part in zip(numbers.kernel_spatial, window.dimensions, strict=True)
    ]
    return new.like(root, [x, y], window=Window(tuple(parts)))


MULTIPLICATIONS_PER_WEIGHT = 8
"""A kernel whose elements are used more often is worth a copy in the best order."""


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers))
def kernel_with_features_last(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers
) -> Value | None:
    """convolution(x, k) -> convolution(x, transpose(k)) with output features last, where lanes lie across them

    Vectors of output features are then loaded, not gathered."""
    if not _wants_features_last(root, y, numbers):
        return None
    order = (*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature)
    return new.like(
        root,
        [x, new.transpose(y, permutation=order)],
        dimension_numbers=_with_kernel(numbers, order),
    )


def _wants_features_last(root: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers) -> bool:
    """A copy of the kernel y with output features last is worth it."""
    moved = numbers.kernel_output_feature
    features = y.shape.dims[moved]
    is_last = all(size == 1 for size in y.shape.dims[moved + 1 :])
    if is_last or features == 1 or not y.shape.is_static or not has_features_in_lanes(root):
        return False
    if spread_product(root) is not None:  # packs the kernel itself
        return False
    return root.shape.size >= MULTIPLICATIONS_PER_WEIGHT * features


def _with_kernel(numbers: ConvolutionDimensionNumbers, order: Dims) -> ConvolutionDimensionNumbers:
    """The numbers for a kernel whose dimension i was dimension `order[i]`."""
    return replace(
        numbers,
        kernel_input_feature=order.index(numbers.kernel_input_feature),
        kernel_output_feature=order.index(numbers.kernel_output_feature),
        kernel_spatial=tuple(map(order.index, numbers.kernel_spatial)),
    )


# -- features last -----------------------------------------------------------------------------------------------------

MULTIPLICATIONS_PER_ELEMENT = 64
"""A convolution that multiplies so often for each element of operands and result is worth transposing them all."""

LANES = 32
"""Results that the loop nest of a convolution computes together, where they lie across the last dimension."""


@LAWS.law(P.convolution(P.convert(x), P.convert(y)))
def convolution_of_widened_bytes(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """convolution(convert(x), convert(k)) -> convolution(x, k), where x and k are bytes, which it widens itself"""
    return new.like(root, [x, y]) if widens_bytes(root, x, y) else None


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window), exactness=Exactness.FREE)
def features_last(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value | None:
    """convolution(x, k) -> transpose(convolution(transpose(x), transpose(k))) with batch first and features last

    Such convolutions are matrix products, or have tiles; else those of groups only where the loop nest is slow. What
    sums up long lines, as gradients of kernels do, has the batch beside the features, and what else is summed up first:
    0.5 to 0.8 of the time."""
    rank = root.shape.rank
    if numbers.output_feature == rank - 1 or not _deserves_transposes(root, x, y, numbers, window):
        return None
    first, last = 0, rank - 1
    inner, outer = tuple(range(1, last)), tuple(range(last - 1))
    if _sums_lines(root, y, numbers, window):
        x_order = (numbers.input_feature, *numbers.input_spatial, numbers.input_batch)
        y_order = (numbers.kernel_input_feature, *numbers.kernel_spatial, numbers.kernel_output_feature)
        result_order = (*numbers.output_spatial, numbers.output_batch, numbers.output_feature)
        moved = ConvolutionDimensionNumbers(last, first, inner, first, last, inner, last - 1, last, outer)
    else:
        x_order = (numbers.input_batch, *numbers.input_spatial, numbers.input_feature)
        y_order = (*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature)
        result_order = (numbers.output_batch, *numbers.output_spatial, numbers.output_feature)
        moved = ConvolutionDimensionNumbers(first, last, inner, last - 1, last, outer, first, last, inner)
    product = new.op(
        "convolution",
        [new.transpose(x, permutation=x_order), new.transpose(y, permutation=y_order)],
        shape=Shape.array(root.shape.type, tuple(root.shape.dims[dim] for dim in result_order)),
        **{**root.attributes, "dimension_numbers": moved},
    )
    return new.transpose(product, permutation=tuple(map(result_order.index, range(rank))))


LONG_LINE = 24
MANY_INPUTS = 16
"""Features that are summed up as well as shorter lines are. (Those of narrower types are packed in groups.)"""


def _sums_lines(root: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window) -> bool:
    """The window has more places than the result has positions, and its lines are longer than what is summed up at each
    place, or long enough."""
    positions = math.prod(root.shape.dims[dim] for dim in numbers.output_spatial)
    if not has_tiled_types(root) or math.prod(part.size for part in window.dimensions) <= positions:
        return False
    return window.dimensions[-1].size >= LONG_LINE or y.shape.dims[numbers.kernel_input_feature] < MANY_INPUTS


LEAST_MULTIPLICATIONS_OF_TILES = 16
"""The same where vectors of features are summed up by a library."""

LEAST_LANES = 8
"""So many features fill a vector by themselves."""

MANY_POSITIONS = 64
"""Of an image, by which a kernel is multiplied as it lies: some vectors of each line, and often enough that nobody
waits for the kernel, which each image reads again. (With 49 positions that takes 1.1 to 2 times as long as features
last; from 64 on those take 1.0 to 1.8 times as long.) Where neighbours have features last, the choice of layouts moves
it."""


def _deserves_transposes(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> bool:
    if not (root.shape.size and root.shape.is_static and x.shape.is_static and y.shape.is_static):
        return False
    if root.attributes["batch_group_count"] != 1 or _multiplies_images(root, numbers):
        return False
    groups: int = root.attributes["feature_group_count"]
    features = root.shape.dims[numbers.output_feature] // groups
    inputs = y.shape.dims[numbers.kernel_input_feature]
    products = root.shape.size * y.shape.size // root.shape.dims[numbers.output_feature]
    moved = root.shape.size + x.shape.size
    if _has_tiles(root, features, window) and products >= LEAST_MULTIPLICATIONS_OF_TILES * moved:
        return True
    if not has_features_in_lanes(root):
        moved += y.shape.size  # which is brought into that order anyway if lanes lie across features
    if features < LEAST_PRODUCT_FEATURES or products < MULTIPLICATIONS_PER_ELEMENT * moved:
        return False
    return groups == 1 or (inputs >= LEAST_PRODUCT_FEATURES and _has_awkward_rows(root, window))


def _multiplies_images(root: Instruction, numbers: ConvolutionDimensionNumbers) -> bool:
    """The library multiplies each image by the kernel, with positions in lanes, and nothing has to be moved."""
    positions = math.prod(root.shape.dims[dim] for dim in numbers.output_spatial)
    return positions >= MANY_POSITIONS and pointwise_product(root) is not None


def _has_tiles(root: Instruction, features: int, window: Window) -> bool:
    """With so many features, of a group, last, a library has direct convolutions for it: tiles of features and
    positions, where most lanes are used. (The loop nest takes 1.3 to 2.2 times as long, with vectors along lines, but
    not along those of a single dimension.)"""
    is_filled = 4 * features >= 3 * LEAST_LANES * -(-features // LEAST_LANES)
    is_whole = all(part.base_dilation == 1 for part in window.dimensions)
    return has_tiled_types(root) and is_filled and is_whole and len(window.dimensions) > 1


def _has_awkward_rows(root: Instruction, window: Window) -> bool:
    """Rows of the result are too short for vectors, or their elements are taken from places apart."""
    row = root.shape.dims[-1]
    apart = any(part.stride > 1 or part.base_dilation > 1 for part in window.dimensions)
    return apart or 3 * row < 2 * LANES * -(-row // LANES)


# -- dilated inputs ----------------------------------------------------------------------------------------------------


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window), exactness=Exactness.FREE)
def windows_that_meet_one_element(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value | None:
    """convolution(x, k), x dilated by the size of k -> transpose(dot(x, k)): each element is multiplied by all places

    As in gradients of patches that do not overlap, and in transposed convolutions that set them side by side. (Products
    with the zeros in between are left out: where those are of infinities or NaNs in the kernel, sums were NaN.)"""
    groups = root.attributes["feature_group_count"] * root.attributes["batch_group_count"]
    if groups != 1 or not (root.shape.size and x.shape.is_static and y.shape.is_static):
        return None
    if not _meet_one_element(root, x, numbers, window) or spread_product(root) is not None:
        return None
    if _wants_features_last(root, y, numbers) or has_phases_in_library(root):
        return None
    reversed_dims = tuple(
        axis
        for axis, part in zip(numbers.kernel_spatial, window.dimensions, strict=True)
        if part.size > 1 and not part.reversal
    )
    pairs = DotDimensionNumbers((numbers.input_feature,), (numbers.kernel_input_feature,))
    products = new.dot(
        x,
        new.reverse(y, dimensions=reversed_dims) if reversed_dims else y,
        shape=Shape.scalar(root.shape.type),
        dimension_numbers=pairs,
        operand_precision=root.attributes["operand_precision"],
    )
    from_left = [dim for dim in range(x.shape.rank) if dim != numbers.input_feature]
    from_right = [dim for dim in range(y.shape.rank) if dim != numbers.kernel_input_feature]
    places: dict[int, tuple[int, ...]] = {
        numbers.output_batch: (from_left.index(numbers.input_batch),),
        numbers.output_feature: (len(from_left) + from_right.index(numbers.kernel_output_feature),),
    }
    places |= {
        dim: (from_left.index(element), len(from_left) + from_right.index(place))
        for dim, element, place in zip(
            numbers.output_spatial, numbers.input_spatial, numbers.kernel_spatial, strict=True
        )
    }
    order = tuple(place for dim in range(root.shape.rank) for place in places[dim])
    whole, kept = [*root.shape.dims], [SliceDimension(0, size) for size in root.shape.dims]
    for dim, element, part in zip(numbers.output_spatial, numbers.input_spatial, window.dimensions, strict=True):
        first = part.size - 1 - part.padding_low
        kept[dim] = SliceDimension(first, first + whole[dim])
        whole[dim] = x.shape.dims[element] * part.size
    together = new.reshaped(new.transpose(products, permutation=order), whole)
    return together if tuple(whole) == root.shape.dims else new.slice(together, dimensions=tuple(kept))


def _meet_one_element(root: Instruction, x: Instruction, numbers: ConvolutionDimensionNumbers, window: Window) -> bool:
    """Every position of the window meets one element of x, and no two elements meet it at one position; several do in
    all."""
    for dim, element, part in zip(numbers.output_spatial, numbers.input_spatial, window.dimensions, strict=True):
        first = part.size - 1 - part.padding_low
        is_apart = part.base_dilation == part.size and part.stride == part.window_dilation == 1
        if not is_apart or first < 0 or first + root.shape.dims[dim] > x.shape.dims[element] * part.size:
            return False
    return any(part.size > 1 for part in window.dimensions)


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window), exactness=Exactness.FREE)
def dilated_input_by_features(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value | None:
    """convolution(x, k), x dilated by d -> slice(interleave(convolution(x, k'))), the d positions that see the same
    elements being features of k'

    Where the result has so few features, last in memory, that those of all of them fill a vector, and k has a multiple
    of d places: each element meets the places that it met."""
    spatial = max((s for s, part in enumerate(window.dimensions) if part.base_dilation > 1), default=None)
    if spatial is None or not (root.shape.size and x.shape.is_static and y.shape.is_static):
        return None
    part, line, feature = window.dimensions[spatial], numbers.output_spatial[spatial], numbers.output_feature
    dilation, features = part.base_dilation, root.shape.dims[feature]
    is_plain = part.stride == part.window_dilation == 1 and not part.size % dilation
    groups = root.attributes["feature_group_count"] * root.attributes["batch_group_count"]
    if not is_plain or groups != 1 or feature != root.shape.rank - 1:
        return None
    if dilation * features > FEW_LANES or dilation > MOST_PHASES or spread_product(root) is not None:
        return None
    if features >= LEAST_LANES and has_phases_in_library(root):
        return None
    before = (-1 - part.padding_low) % dilation  # positions in front of the first one that see the same elements
    positions = -(-(before + root.shape.dims[line]) // dilation)
    size, low = part.size // dilation, (part.padding_low + before + 1) // dilation - 1
    high = positions - x.shape.dims[numbers.input_spatial[spatial]] - low + size - 1
    of_line = replace(part, size=size, padding_low=low, padding_high=high, base_dilation=1, reversal=False)
    dims = [*root.shape.dims]
    dims[line], dims[feature] = positions, dilation * features
    together = new.op(
        "convolution",
        [x, _places_as_features(y, numbers, spatial, dilation, is_reversed=part.reversal)],
        shape=Shape.array(root.shape.type, tuple(dims)),
        **{
            **root.attributes,
            "window": Window((*window.dimensions[:spatial], of_line, *window.dimensions[spatial + 1 :])),
        },
    )
    order = [*range(line + 1), feature, *range(line + 1, feature), feature + 1]
    woven = new.transpose(new.reshaped(together, (*dims[:-1], dilation, features)), permutation=tuple(order))
    dims[line], dims[feature] = positions * dilation, features
    kept = [SliceDimension(0, n) for n in dims]
    kept[line] = SliceDimension(before, before + root.shape.dims[line])
    apart = new.reshaped(woven, dims)
    return apart if dims[line] == root.shape.dims[line] else new.slice(apart, dimensions=tuple(kept))


def _places_as_features(
    y: Instruction, numbers: ConvolutionDimensionNumbers, spatial: int, dilation: int, *, is_reversed: bool
) -> Value:
    """A kernel with every `dilation`-th place along a dimension, those in between being features, last ones first."""
    axis, feature = numbers.kernel_spatial[spatial], numbers.kernel_output_feature
    dims = y.shape.dims
    cut = new.reshaped(y, (*dims[:axis], dims[axis] // dilation, dilation, *dims[axis + 1 :]))
    # From the front, the last of these places is that of the first position; a line that is reversed has it in front.
    turned = new.reverse(cut, dimensions=(axis,) if is_reversed else (axis + 1,))
    rest = [dim for dim in range(len(dims) + 1) if dim != axis + 1]
    rest.insert(rest.index(feature + (feature > axis)), axis + 1)
    joined = [*dims]
    joined[axis], joined[feature] = dims[axis] // dilation, dilation * dims[feature]
    return new.reshaped(new.transpose(turned, permutation=tuple(rest)), joined)


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window), exactness=Exactness.FREE)
def dilated_input_by_phases(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value | None:
    """convolution(x, k), x dilated by d -> interleave(convolution(x, every d-th place of k, from 0), ... from d - 1)

    A position sees elements under every d-th place only; the others, zeros, are not multiplied. (Products with zeros
    are left out: where those are of infinities or NaNs in the kernel, their sums were NaN.)"""
    spatial = next((s for s, part in enumerate(window.dimensions) if part.base_dilation > 1), None)
    if spatial is None or not (root.shape.size and x.shape.is_static and y.shape.is_static):
        return None
    if spread_product(root) is not None or _wants_features_last(root, y, numbers) or has_phases_in_library(root):
        return None
    part = window.dimensions[spatial]
    if part.stride != 1 or part.window_dilation != 1 or x.shape.size == 0 or y.shape.size == 0:
        return None
    if math.prod(part.base_dilation for part in window.dimensions) > MOST_PHASES:
        return None
    dilation, dim = part.base_dilation, numbers.output_spatial[spatial]
    positions = -(-root.shape.dims[dim] // dilation)
    phases = [_phase(root, spatial, phase, positions) for phase in range(dilation)]
    dims = root.shape.dims
    apart = [new.reshaped(phase, (*dims[:dim], positions, 1, *dims[dim + 1 :])) for phase in phases]
    woven = new.reshaped(
        new.concatenate(*apart, dimension=dim + 1), (*dims[:dim], positions * dilation, *dims[dim + 1 :])
    )
    if positions * dilation == dims[dim]:
        return woven
    return new.slice(woven, dimensions=tuple(SliceDimension(0, size) for size in dims))


def _phase(convolution: Instruction, spatial: int, phase: int, positions: int) -> Value:
    """Every d-th position from `phase` on, `positions` of them, along one spatial dimension that is dilated by d."""
    (x, y), result = convolution.operands, convolution.shape
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    window: Window = convolution.attributes["window"]
    part, axis = window.dimensions[spatial], numbers.kernel_spatial[spatial]
    dilation = part.base_dilation
    first = (part.padding_low - phase) % dilation  # the first place that lies on elements
    size = -(-(part.size - first) // dilation)
    dims = tuple(positions if dim == numbers.output_spatial[spatial] else n for dim, n in enumerate(result.dims))
    if size <= 0:
        return new.filled(0, Shape.array(result.type, dims))
    low = -((phase + first - part.padding_low) // dilation)
    high = positions - x.shape.dims[numbers.input_spatial[spatial]] - low + size - 1
    thinned = replace(part, size=size, padding_low=low, padding_high=high, base_dilation=1)
    windows = Window((*window.dimensions[:spatial], thinned, *window.dimensions[spatial + 1 :]))
    start = part.size - 1 - first - dilation * (size - 1) if part.reversal else first
    places = [SliceDimension(0, n) for n in y.shape.dims]
    places[axis] = SliceDimension(start, start + dilation * (size - 1) + 1, dilation)
    return new.op(
        "convolution",
        [x, new.slice(y, dimensions=tuple(places))],
        shape=Shape.array(result.type, dims),
        **{**convolution.attributes, "window": windows},
    )


# -- few features ------------------------------------------------------------------------------------------------------

FEW_LANES = 16
"""Products for different places of a line that are computed side by side, in lanes that would be idle else."""

LEAST_INPUTS = 16
LEAST_MULTIPLICATIONS = 1 << 20
"""Below, the sums that follow are not worth it."""


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers, window=window), exactness=Exactness.FREE)
def places_beside_few_features(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value | None:
    """convolution(x, k) -> sum of slices of convolution(x, k'), the places of a line of k being features of k'

    Where the result has so few features that most lanes of vectors would be idle. Each product counts only where it
    did, so that infinities and NaNs meet what they met; sums are made in another order."""
    if not _has_idle_lanes(root, x, y, numbers, window):
        return None
    part, features = window.dimensions[-1], y.shape.dims[numbers.kernel_output_feature]
    products, line = _products_of_places(root, x, y, numbers, window), numbers.output_spatial[-1]
    total: Value | None = None
    for place in range(part.size):
        kept = [SliceDimension(0, size) for size in products.shape.dims]
        first = (part.size - 1 - place if part.reversal else place) * part.window_dilation
        kept[line] = SliceDimension(first, first + root.shape.dims[line])
        kept[numbers.output_feature] = SliceDimension(place * features, (place + 1) * features)
        summand = new.slice(products, dimensions=tuple(kept))
        total = summand if total is None else new.add(total, summand)
    return total


def _products_of_places(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> Value:
    """The convolution with each place of a line of the kernel apart, one behind the other as features, at all positions
    where any of them is. In a single line these are a dot's, which are padded instead of what is multiplied."""
    *outer, part = window.dimensions
    feature, line = numbers.kernel_output_feature, numbers.output_spatial[-1]
    *outside, axis = numbers.kernel_spatial
    apart = new.transpose(y, permutation=(*outside, numbers.kernel_input_feature, axis, feature))
    lines = [
        *(y.shape.dims[dim] for dim in (*outside, numbers.kernel_input_feature)),
        part.size * y.shape.dims[feature],
    ]
    lines.insert(len(outside), 1)
    dims = [*root.shape.dims]
    dims[numbers.output_feature] = lines[-1]
    of_line = replace(part, size=1, window_dilation=1)
    if outer:
        dims[line] += (part.size - 1) * part.window_dilation
    else:
        dims[line] = x.shape.dims[numbers.input_spatial[-1]]
        of_line = replace(of_line, padding_low=0, padding_high=0)
    order = (*numbers.kernel_spatial, numbers.kernel_input_feature, feature)
    changed = {"window": Window((*outer, of_line)), "dimension_numbers": _with_kernel(numbers, order)}
    products: Value = new.op(
        "convolution",
        [x, new.reshaped(apart, lines)],
        shape=Shape.array(root.shape.type, dims),
        **{**root.attributes, **changed},
    )
    if outer:
        return products
    edges = [PaddingDimension()] * root.shape.rank
    edges[line] = PaddingDimension(part.padding_low, part.padding_high)
    zero = new.filled(0, Shape.scalar(root.shape.type))
    return new.pad(products, zero, dimensions=tuple(edges))


def _has_places_in_front(numbers: ConvolutionDimensionNumbers, last: int) -> bool:
    """The kernel has the places of a line, then features of the input, then those of the result."""
    order = numbers.kernel_spatial[-1], numbers.kernel_input_feature, numbers.kernel_output_feature
    return order == (last - 2, last - 1, last)


def _has_idle_lanes(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers, window: Window
) -> bool:
    """Few features come last everywhere, many are summed, and there are several places in a line of the window."""
    if not (window.dimensions and x.shape.is_static and y.shape.is_static):
        return False
    groups = root.attributes["feature_group_count"] * root.attributes["batch_group_count"]
    last = root.shape.rank - 1
    is_suited = (
        groups == 1
        and numbers.output_feature == numbers.input_feature == last
        and (_has_places_in_front(numbers, last) or (last == 2 and spread_product(root) is None))
        and x.shape.type == y.shape.type == root.shape.type
        and root.shape.type.name in ("f32", "f64", "s32", "s64")
    )
    part, features = window.dimensions[-1], y.shape.dims[numbers.kernel_output_feature]
    is_plain = part.stride == 1 and part.base_dilation == 1
    has_room = part.size > 1 and features * part.size <= FEW_LANES
    inputs = y.shape.dims[numbers.kernel_input_feature]
    multiplications = root.shape.size * (y.shape.size // max(features, 1))
    is_worth_it = inputs >= LEAST_INPUTS and multiplications >= LEAST_MULTIPLICATIONS
    return is_suited and is_plain and has_room and is_worth_it


# -- narrow floats -----------------------------------------------------------------------------------------------------

LEAST_MULTIPLICATIONS_OF_WIDE = 8
"""Per element of operands and result, each of which is converted once, and read by a loop nest so often. (Twice as many
where there are groups: a loop nest reads vectors of channels.)"""


@LAWS.law(P.convolution(x, y, dimension_numbers=numbers), exactness=Exactness.FREE)
def convolution_of_narrow_floats(
    root: Instruction, x: Instruction, y: Instruction, numbers: ConvolutionDimensionNumbers
) -> Value | None:
    """convolution(x, k) -> convert(convolution(convert(x), convert(k))) of f32, where narrow floats have no library

    A loop nest would convert each element as often as it is multiplied, and f32 has more libraries: 0.2 to 0.7 of the
    time. Sums are of f32, and rounded once, either way."""
    if not (x.shape.type.is_narrow_float and y.shape.type.is_narrow_float) or not root.shape.type.is_float:
        return None
    if root.shape.type.bits > F32.bits or not all(each.is_static for each in (root.shape, x.shape, y.shape)):
        return None
    elements = root.shape.size + x.shape.size + y.shape.size
    products = root.shape.size * y.shape.size // max(root.shape.dims[numbers.output_feature], 1)
    least = LEAST_MULTIPLICATIONS_OF_WIDE * (1 if root.attributes["feature_group_count"] == 1 else 2)
    if products < least * elements or convolution_product(root) is not None:
        return None
    operands = [new.converted(x, F32), new.converted(y, F32)]
    sums = new.op("convolution", operands, shape=root.shape.with_type(F32), **root.attributes)
    return new.converted(sums, root.shape.type)
