"""Laws of dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, xs, sizes = variables("x y xs sizes")


@LAWS.law(P.dynamic_slice(x, xs.rest))
def dynamic_slice_everything(root: Instruction, x: Instruction) -> Value | None:
    """dynamic-slice(x) of all of x -> x: the start is moved to 0"""
    return x if x.shape.dims == root.shape.dims else None


@LAWS.law(P.dynamic_slice(x, xs.rest, slice_sizes=sizes))
def dynamic_slice_at_constants(x: Instruction, xs: tuple[Instruction, ...], sizes: Dims) -> Value | None:
    """dynamic-slice(x, constants) -> slice(x)"""
    starts = _clamped_starts(x, xs, sizes)
    if starts is None:
        return None
    return new.slice(x, dimensions=tuple(SliceDimension(at, at + size) for at, size in zip(starts, sizes, strict=True)))


@LAWS.law(P.dynamic_update_slice(x, y, xs.rest))
def dynamic_update_everything(x: Instruction, y: Instruction) -> Value | None:
    """dynamic-update-slice(x, y) of all of x -> y; of nothing -> x"""
    if x.shape.dims == y.shape.dims:
        return y
    return x if not y.shape.size else None


def _clamped_starts(operand: Instruction, starts: tuple[Instruction, ...], sizes: Dims) -> list[int] | None:
    """The start indices, moved inward until the slice fits, if they are constants."""
    numbers = [number_of(start) for start in starts]
    if any(number is None for number in numbers):
        return None
    rooms = [available - size for available, size in zip(operand.shape.dims, sizes, strict=True)]
    return [min(max(int(number), 0), room) for number, room in zip(numbers, rooms, strict=True)]
