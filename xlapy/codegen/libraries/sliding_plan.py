"""Which folds of windows are those of libraries: over one or two neighbouring dimensions, with what is behind in lanes.

reduce-window(f(x), init), perhaps multiplied or divided by a number: by one operation, with f of `sliding_maps`. Sums
begin with zero; extrema may begin with any number, so that the largest of rectified elements is that of the elements
and zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.codegen.libraries.sliding_maps import CHANNELS, ITSELF, MAPS, Leaf, SlidingMap
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major, sole_operation
from xlapy.hlo.shape import Dims

NEUTRAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}
TYPES = (et.F32, et.F64)
AXES = 2
MOST_EXPONENT = 64  # of a power of two whose reciprocal is a float of any type

_NO_WINDOW = WindowDimension(1)


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows over `axes` of `images` arrays, each of as many `channels` as lie side by side. Each result is
    multiplied by `factor`, or divided by `divisor`."""

    operation: str
    type: ElementType
    source: Instruction
    images: int
    axes: tuple[WindowAxis, WindowAxis]
    channels: int
    init: float
    factor: float = 1.0
    divisor: float = 1.0
    is_rectified: bool = False
    """`init` stands for the bound of what is at least zero, too."""

    map: SlidingMap = ITSELF
    numbers: tuple[Instruction, ...] = ()
    """Of channels, which the map takes."""


def sliding_fold(root: Instruction, is_source: Callable[[Instruction], bool]) -> Sliding | None:
    """The windows that `root` folds, of what is made from instructions for which `is_source` holds, if it is such."""
    window, factor, divisor = _scaled(root)
    if window.opcode != "reduce-window" or len(window.operands) != 2:
        return None
    value, init = window.operands
    combiner = sole_operation(window.called[0])
    if combiner is None or combiner.opcode not in NEUTRAL or value.shape.type not in TYPES:
        return None
    start = _start(combiner.opcode, init)
    if start is None:
        return None
    found = _parts(window.attributes["window"].dimensions, value.shape.dims, window.shape.dims)
    if found is None or not all(map(is_row_major, (root, window))):
        return None
    images, axes, channels = found
    element = _rectified(value) if combiner.opcode == "maximum" and all(map(_meets_elements, axes)) else None
    if element is not None:
        start = max(start, 0.0) or 0.0
    made = _made(combiner.opcode, element or value, channels, is_source)
    if made is None:
        return None
    source, numbers, how = made
    parts = images, axes, channels, start, factor, divisor, element is not None
    return Sliding(combiner.opcode, value.shape.type, source, *parts, how, numbers)


def _start(operation: str, init: Instruction) -> float | None:
    """What a fold may begin with: a sum with nothing, so that places outside do not matter."""
    if init.opcode != "constant":
        return None
    number = float(init.attributes["literal"].scalar())
    is_fine = _is_same(number, NEUTRAL[operation]) if operation == "add" else not math.isnan(number)
    return number if is_fine else None


def _meets_elements(axis: WindowAxis) -> bool:
    """Each position of the window has a place that lies on an element."""
    part, size = axis.part, axis.size
    starts = [position * part.stride - part.padding_low for position in range(axis.count)]
    firsts = (start if start >= 0 else start % part.window_dilation for start in starts)
    return all(
        first < size and first - start <= (part.size - 1) * part.window_dilation
        for first, start in zip(firsts, starts, strict=True)
    )


def _rectified(value: Instruction) -> Instruction | None:
    """What `value` is, where that is not below zero."""
    if value.opcode != "maximum":
        return None
    one, other = value.operands
    return one if _is_zero(other) else other if _is_zero(one) else None


def _is_zero(value: Instruction) -> bool:
    """A positive zero, repeated."""
    if value.opcode != "broadcast" or value.operands[0].opcode != "constant":
        return False
    literal = value.operands[0].attributes["literal"]
    return literal.shape.is_scalar and _is_same(literal.scalar(), 0.0)


def _made(
    operation: str, value: Instruction, channels: int, is_source: Callable[[Instruction], bool]
) -> tuple[Instruction, tuple[Instruction, ...], SlidingMap] | None:
    """What `value` is made from: an array, and numbers of so many channels; and how."""

    def is_leaf(leaf: Leaf, found: Instruction) -> bool:
        if leaf is Leaf.ELEMENT:
            return is_source(found) and is_row_major(found)
        if leaf is Leaf.ZERO:
            return _is_zero(found)
        return found.opcode == "broadcast" and is_source(found.operands[0]) and _is_one_per_channel(found, channels)

    for each in MAPS[operation]:
        leaves = each.leaves(value, is_leaf)
        if leaves is not None:
            numbers = tuple(leaves[array].operands[0] for array in CHANNELS[: each.arrays])
            return leaves[Leaf.ELEMENT], numbers, each
    return None


def _is_one_per_channel(broadcast: Instruction, channels: int) -> bool:
    """What is repeated is row-major, and its dimensions are the last ones, those of the channels."""
    rank = broadcast.shape.rank
    repeated = broadcast.attributes["dimensions"]
    are_last = repeated == tuple(range(rank - len(repeated), rank))
    return are_last and is_row_major(broadcast.operands[0]) and broadcast.operands[0].shape.size == channels


def _is_same(number: Any, other: float) -> bool:
    """Equal, and of one sign, if they are zeros."""
    return float(number) == other and math.copysign(1, number) == math.copysign(1, other)


def _scaled(root: Instruction) -> tuple[Instruction, float, float]:
    """What is multiplied or divided by a number, if anything is; and a factor and a divisor, of which one is 1.

    A power of two has an exact reciprocal: to divide takes as long as to sum up a dozen elements."""
    if root.opcode not in ("divide", "multiply") or root.shape.type not in TYPES:
        return root, 1.0, 1.0
    value, other = root.operands
    if other.opcode == "broadcast":
        (other,) = other.operands
    if other.opcode != "constant" or not (other.shape.is_scalar or other.attributes["literal"].is_splat):
        return root, 1.0, 1.0
    number = float(other.attributes["literal"].scalar())
    if not math.isfinite(number) or not number:
        return root, 1.0, 1.0
    if root.opcode == "multiply":
        return value, number, 1.0
    mantissa, exponent = math.frexp(number)
    return (value, 1 / number, 1.0) if mantissa == 0.5 and abs(exponent) < MOST_EXPONENT else (value, 1.0, number)


def _parts(
    window: Sequence[WindowDimension], dims: Dims, counts: Dims
) -> tuple[int, tuple[WindowAxis, WindowAxis], int] | None:
    """Images, two dimensions, and channels, if windows have several places, or positions, in these two at most."""
    axes = [WindowAxis(*each) for each in zip(window, dims, counts, strict=True)]
    moving = [dim for dim, axis in enumerate(axes) if not axis.is_trivial or axis.size != axis.count]
    if not moving or moving[-1] - moving[0] >= AXES or math.prod(counts) == 0 or math.prod(dims) == 0:
        return None
    last = moving[-1]
    inner = axes[max(0, last - AXES + 1) : last + 1]
    if any(axis.part.base_dilation > 1 or axis.is_cumulative for axis in inner):
        return None
    outer, second = inner if len(inner) == AXES else (WindowAxis(_NO_WINDOW, 1, 1), inner[0])
    return math.prod(dims[: max(0, last - AXES + 1)]), (outer, second), math.prod(dims[last + 1 :])


def bits_of(number: float, type: ElementType) -> int:
    """A float as a register holds it, as a signed number."""
    formats = ("<f", "<i") if type.bits == 32 else ("<d", "<q")
    (bits,) = struct.unpack(formats[1], struct.pack(formats[0], number))
    return int(bits)
