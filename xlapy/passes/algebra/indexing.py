"""Laws of dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, z, xs, ys, sizes = variables("x y z xs ys sizes")


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


@LAWS.law(P.dynamic_slice(P.dynamic_update_slice(x, y, xs.rest), ys.rest, slice_sizes=sizes))
def dynamic_slice_of_update(
    y: Instruction, xs: tuple[Instruction, ...], ys: tuple[Instruction, ...], sizes: Dims
) -> Value | None:
    """dynamic-slice(dynamic-update-slice(x, y, i), i) -> y, of the same size"""
    return y if xs == ys and sizes == y.shape.dims else None


@LAWS.law(P.dynamic_update_slice(P.dynamic_update_slice(x, y, xs.rest), z, ys.rest))
def dynamic_update_twice(
    x: Instruction, y: Instruction, z: Instruction, xs: tuple[Instruction, ...], ys: tuple[Instruction, ...]
) -> Value | None:
    """dynamic-update-slice(dynamic-update-slice(x, y, i), z, i) -> dynamic-update-slice(x, z, i), of the same size"""
    if xs != ys or y.shape.dims != z.shape.dims:
        return None
    return new.dynamic_update_slice(x, z, *xs)
