"""Laws of padded arrays that fill each other's gaps: their elements are side by side.

So an associative scan puts the halves of each level together, and the gradient of what takes every second element and
the others is made. A loop over such sums would ask for each element of each pad whether it is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, p, q, s, t = variables("x y p q s t")
Paddings = tuple[PaddingDimension, ...]

UNPADDED = PaddingDimension()
MOST_INTERLEAVED = 4


@LAWS.law(P.add(P.pad(x, s, dimensions=p), P.pad(y, t, dimensions=q)))
def add_interleaved(
    root: Instruction, x: Instruction, s: Instruction, p: Paddings, y: Instruction, t: Instruction, q: Paddings
) -> Value | None:
    """pad(x, s) + pad(y, t), each with room for the other between its elements -> x + t and y + s side by side"""
    dim = _interleaved_dim(p, q)
    if dim is None or not _are_all_elements(root, x, y, dim):
        return None
    sums = [new.add(part, new.repeated(number, part.shape.dims)) for part, number in ((x, t), (y, s))]
    if p[dim].low:
        sums.reverse()
    return in_turns(sums, dim)


@LAWS.law(P.or_(P.pad(x, s, dimensions=p), P.pad(y, t, dimensions=q)))
def or_interleaved(
    root: Instruction, x: Instruction, s: Instruction, p: Paddings, y: Instruction, t: Instruction, q: Paddings
) -> Value | None:
    """pad(x, false) | pad(y, false), each with room for the other between its elements -> x and y side by side"""
    dim = _interleaved_dim(p, q)
    if dim is None or number_of(s) != 0 or number_of(t) != 0 or not _are_all_elements(root, x, y, dim):
        return None
    return in_turns([y, x] if p[dim].low else [x, y], dim)


def _interleaved_dim(p: Paddings, q: Paddings) -> int | None:
    """The dimension, if it is the only one that is padded, in which there is room for just one element between two, and
    one array begins with an element and the other one behind it."""
    padded = [dim for dim, parts in enumerate(zip(p, q, strict=True)) if parts != (UNPADDED, UNPADDED)]
    if len(padded) != 1:
        return None
    one, other = p[padded[0]], q[padded[0]]
    fits = {one.low, other.low} == {0, 1} and {one.high, other.high} <= {0, 1} and one.interior == other.interior == 1
    return padded[0] if fits else None


def _are_all_elements(root: Instruction, x: Instruction, y: Instruction, dim: int) -> bool:
    """Where one is empty, edges may be all there is."""
    return x.shape.dims[dim] + y.shape.dims[dim] == root.shape.dims[dim]


def in_turns(parts: Sequence[Value], dim: int) -> Value:
    """The elements of arrays in turns along a dimension; what is left over of the first ones comes behind."""
    size = parts[-1].shape.dims[dim]
    rounds = _side_by_side([_part(part, dim, 0, size) for part in parts], dim)
    rest = [_part(part, dim, size, size + 1) for part in parts if part.shape.dims[dim] > size]
    return new.op("concatenate", [rounds, *rest], dimension=dim) if rest else rounds


def _side_by_side(parts: Sequence[Value], dim: int) -> Value:
    """Elements of arrays of one shape in turns along a dimension: they are joined along one of their own behind it."""
    dims = parts[0].shape.dims
    apart = [new.reshaped(part, (*dims[: dim + 1], 1, *dims[dim + 1 :])) for part in parts]
    joined = new.op("concatenate", apart, dimension=dim + 1)
    return new.reshaped(joined, (*dims[:dim], len(parts) * dims[dim], *dims[dim + 1 :]))


def _part(whole: Value, dim: int, start: int, limit: int) -> Value:
    if (start, limit) == (0, whole.shape.dims[dim]):
        return whole
    taken = [SliceDimension(0, size) for size in whole.shape.dims]
    taken[dim] = SliceDimension(start, limit)
    return new.slice(whole, dimensions=(*taken,))
