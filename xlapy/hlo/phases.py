"""Windows over arrays with holes, by phases: positions that see elements under the same places.

Of an array that is dilated by d, each position sees elements under every d-th place of its window only, beginning with
one that every d-th position has in common (for strides and dilated windows, what they share with d counts). A phase is
a window without holes, over the array without holes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xlapy.hlo.attributes import WindowDimension


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
    place_step = holes // math.gcd(holes, part.window_dilation)
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
