"""Windows over arrays with holes, by phases: positions that see elements under the same places.

Of an array that is dilated by d, each position sees elements under every d-th place of its window only, beginning with
one that every d-th position has in common (for strides and dilated windows, what they share with d counts). A phase is
a window without holes, over the array without holes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, WindowDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import has_features_in_lanes
from xlapy.hlo.matrix_products import LEAST_PRODUCT_FEATURES, SMALLEST_CONVOLUTION, has_tiled_types

LONG_WINDOW = 8
"""Places of a window in a line that are worth a loop of their own inside of the one over input features."""

MOST_PHASES = 32
"""Of a call: each has numbers of its own."""

MOST_DIMENSIONS = 3
"""Spatial ones, over which the library slides windows. A convolution without any has one, with one position and a
window of one place."""

MOST_KERNEL_BYTES = 1 << 16
"""Of the places that a phase has. Of larger ones, with enough to multiply, products of matrices are faster, which pack
them (Zen 3, transposed convolutions in steps of 2: with 128 KB 0.65 to 0.9 of the time, with 64 KB 1.0 to 1.05)."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Some positions of a window, evenly spaced, and the places of it under which they may see elements."""

    first: int
    step: int
    count: int
    first_place: int
    place_step: int
    part: WindowDimension
    """What these places are at these positions, over the array without holes: of size 0 if they see no element."""


def phases(part: WindowDimension, size: int, count: int) -> Iterator[Phase]:
    """Those of `count` positions over an array of `size` elements, which has at least one; none is empty."""
    holes = part.base_dilation
    step = holes // math.gcd(holes, part.stride)
    place_step = _apart(part)
    stride, dilation = step * part.stride // holes, place_step * part.window_dilation // holes
    for first in range(min(step, count)):
        start = first * part.stride - part.padding_low
        place = next((n for n in range(place_step) if (start + n * part.window_dilation) % holes == 0), part.size)
        places = max(0, -(-(part.size - place) // place_step))
        low = -(start + place * part.window_dilation) // holes if places else 0
        positions = -(-(count - first) // step)
        extent = (positions - 1) * stride + max(places - 1, 0) * dilation + 1
        seen = WindowDimension(places, stride, low, extent - low - size, 1, dilation, part.reversal)
        yield Phase(first, step, positions, place, place_step, seen)


def has_phases_in_library(convolution: Instruction) -> bool:
    """Over an array with holes; a library makes all of its phases in one call."""
    parts: tuple[WindowDimension, ...] = convolution.attributes["window"].dimensions
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs, result = convolution.operands[0].shape, convolution.operands[1].shape, convolution.shape
    if not has_tiled_types(convolution) or len(parts) > MOST_DIMENSIONS:
        return False
    if convolution.attributes["batch_group_count"] > 1:
        return False
    if all(part.base_dilation == 1 for part in parts) or not (lhs.is_static and lhs.size and rhs.size and result.size):
        return False
    if math.prod(part.base_dilation for part in parts) > MOST_PHASES:
        return False
    are_short = all(part.size < LONG_WINDOW * _apart(part) for part in parts)
    last = all(size == 1 for size in rhs.dims[numbers.kernel_output_feature + 1 :])
    if not (are_short and last and result.dims[numbers.output_feature] > 1 and has_features_in_lanes(convolution)):
        return False
    features, groups = rhs.dims[numbers.kernel_output_feature], convolution.attributes["feature_group_count"]
    depth = rhs.dims[numbers.kernel_input_feature] * math.prod(-(-part.size // _apart(part)) for part in parts)
    phase = result.size // math.prod(part.base_dilation // math.gcd(part.base_dilation, part.stride) for part in parts)
    has_few = features // groups < LEAST_PRODUCT_FEATURES or phase * depth < SMALLEST_CONVOLUTION
    return has_few or depth * features * rhs.type.bytes <= MOST_KERNEL_BYTES


def _apart(part: WindowDimension) -> int:
    """Places of a window from one that may see an element to the next."""
    return part.base_dilation // math.gcd(part.base_dilation, part.window_dilation)
