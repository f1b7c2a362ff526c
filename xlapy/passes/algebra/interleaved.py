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
    return _in_turns(sums[0], sums[1], dim)


@LAWS.law(P.or_(P.pad(x, s, dimensions=p), P.pad(y, t, dimensions=q)))
def or_interleaved(
    root: Instruction, x: Instruction, s: Instruction, p: Paddings, y: Instruction, t: Instruction, q: Paddings
) -> Value | None:
    """pad(x, false) | pad(y, false), each with room for the other between its elements -> x and y side by side"""
    dim = _interleaved_dim(p, q)
    if dim is None or number_of(s) != 0 or number_of(t) != 0 or not _are_all_elements(root, x, y, dim):
        return None
    return _in_turns(y, x, dim) if p[dim].low else _in_turns(x, y, dim)


@LAWS.law(P.add(x, P.pad(y, P.number(0), dimensions=p)))
def add_several_interleaved(root: Instruction, p: Paddings) -> Value | None:
    """pad(x, 0) + pad(y, 0) + pad(z, 0), where each has its elements in gaps of the others -> x, y and z side by side

    A sum of -0 and 0 is 0."""
    stretched = [dim for dim, part in enumerate(p) if part.interior > 1]
    parts = _parts_of_sum(root, stretched[0], p[stretched[0]].interior + 1) if len(stretched) == 1 else None
    if parts is None:
        return None
    return _side_by_side([new.add(part, new.number(0, like=part)) for part in parts], stretched[0])


def _parts_of_sum(root: Instruction, dim: int, count: int) -> list[Instruction] | None:
    """The arrays that are padded with zeros between their elements and added, in the order in which theirs follow each
    other along a dimension; None if these are not all elements of the sum."""
    if count > MOST_INTERLEAVED:
        return None
    parts: dict[int, Instruction] = {}
    pending = [root]
    while pending:
        term = pending.pop()
        if term.opcode == "add" and (term is root or term.sole_user is not None):
            pending.extend(term.operands)
            continue
        if term.opcode != "pad" or number_of(term.operands[1]) != 0:
            return None
        paddings: Paddings = term.attributes["dimensions"]
        edge = paddings[dim]
        is_plain = all(part == UNPADDED for other, part in enumerate(paddings) if other != dim)
        fills_gaps = edge.interior == edge.low + edge.high == count - 1 and 0 <= edge.low < count
        if not is_plain or not fills_gaps or edge.low in parts or not term.operands[0].shape.size:
            return None
        parts[edge.low] = term.operands[0]
    return [parts[low] for low in range(count)] if len(parts) == count else None


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


def _in_turns(first: Value, second: Value, dim: int) -> Value:
    """The elements of both in turns along a dimension; what is left over of the first comes behind."""
    size = second.shape.dims[dim]
    if first.shape.dims[dim] == size:
        return _side_by_side([first, second], dim)
    pairs = _side_by_side([_part(first, dim, 0, size), second], dim)
    return new.op("concatenate", [pairs, _part(first, dim, size, size + 1)], dimension=dim)


def _side_by_side(parts: Sequence[Value], dim: int) -> Value:
    """Elements of arrays of one shape in turns along a dimension: they are joined along one of their own behind it."""
    dims = parts[0].shape.dims
    apart = [new.reshaped(part, (*dims[: dim + 1], 1, *dims[dim + 1 :])) for part in parts]
    joined = new.op("concatenate", apart, dimension=dim + 1)
    return new.reshaped(joined, (*dims[:dim], len(parts) * dims[dim], *dims[dim + 1 :]))


def _part(whole: Value, dim: int, start: int, limit: int) -> Value:
    taken = [SliceDimension(0, size) for size in whole.shape.dims]
    taken[dim] = SliceDimension(start, limit)
    return new.slice(whole, dimensions=(*taken,))
