"""Which folds of windows are those of libraries: over one or two neighbouring dimensions, with what is behind in lanes.

reduce-window(x, init), perhaps divided by a number: by one operation, from what changes nothing
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xlapy.codegen.kernels.window_axes import WindowAxis
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major, sole_operation
from xlapy.hlo.shape import Dims

NEUTRAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}
TYPES = (et.F32, et.F64)
AXES = 2

_NO_WINDOW = WindowDimension(1)


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows over `axes` of `images` arrays, each of as many `channels` as lie side by side. Each result is divided by
    `divisor`."""

    operation: str
    type: ElementType
    source: Instruction
    images: int
    axes: tuple[WindowAxis, WindowAxis]
    channels: int
    divisor: float = 1.0


def sliding_fold(root: Instruction, is_source: Callable[[Instruction], bool]) -> Sliding | None:
    """The windows that `root` folds, of an instruction for which `is_source` holds, if it is such."""
    window, divisor = _divided(root)
    if window.opcode != "reduce-window" or len(window.operands) != 2 or not divisor:
        return None
    source, init = window.operands
    combiner = sole_operation(window.called[0])
    if combiner is None or combiner.opcode not in NEUTRAL or source.shape.type not in TYPES or not is_source(source):
        return None
    if init.opcode != "constant" or not _is_same(init.attributes["literal"].scalar(), NEUTRAL[combiner.opcode]):
        return None
    found = _parts(window.attributes["window"].dimensions, source.shape.dims, window.shape.dims)
    if found is None or not all(map(is_row_major, (root, window, source))):
        return None
    images, axes, channels = found
    return Sliding(combiner.opcode, source.shape.type, source, images, axes, channels, divisor)


def _is_same(number: Any, other: float) -> bool:
    """Equal, and of one sign, if they are zeros."""
    return float(number) == other and math.copysign(1, number) == math.copysign(1, other)


def _divided(root: Instruction) -> tuple[Instruction, float]:
    """What is divided by a number, or multiplied by the reciprocal of a power of two, and that number."""
    if root.opcode not in ("divide", "multiply"):
        return root, 1.0
    value, other = root.operands
    if other.opcode == "broadcast":
        (other,) = other.operands
    if other.opcode != "constant" or not (other.shape.is_scalar or other.attributes["literal"].is_splat):
        return root, 1.0
    number = float(other.attributes["literal"].scalar())
    if root.opcode == "divide":
        return value, number if math.isfinite(number) else 0.0
    mantissa, exponent = math.frexp(number)
    return value, 1 / number if mantissa == 0.5 and abs(exponent) < 64 else 0.0


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
