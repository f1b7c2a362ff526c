"""Laws of pad and concatenate: pieces that were one array, and edges that nobody sees."""

from __future__ import annotations

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, z, p, q, s, xs, d = variables("x y z p q s xs d")
Paddings = tuple[PaddingDimension, ...]
Slices = tuple[SliceDimension, ...]


@LAWS.law(P.slice(P.pad(x, y, dimensions=p), dimensions=s))
def slice_of_pad(x: Instruction, p: Paddings, s: Slices) -> Value | None:
    """slice(pad(x)) -> slice(x), where it lies within x"""
    inner = []
    for padding, taken, size in zip(p, s, x.shape.dims, strict=True):
        start, limit = taken.start - padding.low, taken.limit - padding.low
        if padding.interior or start < 0 or limit > size:
            return None
        inner.append(SliceDimension(start, limit, taken.stride))
    return new.slice(x, dimensions=(*inner,))


@LAWS.law(P.slice(P.pad(x, y, dimensions=p), dimensions=s))
def slice_of_padding(root: Instruction, x: Instruction, y: Instruction, p: Paddings, s: Slices) -> Value | None:
    """slice(pad(x, y)) -> broadcast(y), where it lies beside x"""
    for padding, taken, size in zip(p, s, x.shape.dims, strict=True):
        end = padding.low + size + max(size - 1, 0) * padding.interior
        if taken.limit <= padding.low or taken.start >= end:
            return new.broadcast(y, shape=root.shape, dimensions=())
    return None


@LAWS.law(P.pad(P.pad(x, y, dimensions=p), z, dimensions=q))
def merge_pads(x: Instruction, y: Instruction, z: Instruction, p: Paddings, q: Paddings) -> Value | None:
    """pad(pad(x, y), y) -> pad(x, y), where nothing is cut off between"""
    number = number_of(y)
    same = y is z or (number is not None and _same_number(number, number_of(z)))
    if not same or any(inner.low < 0 or inner.high < 0 for inner in p) or any(outer.interior for outer in q):
        return None
    if any(outer.low < 0 or outer.high < 0 for outer in q):
        return None
    sums = [PaddingDimension(a.low + b.low, a.high + b.high, a.interior) for a, b in zip(p, q, strict=True)]
    return new.pad(x, y, dimensions=(*sums,))


@LAWS.law(P.pad(x, y, dimensions=p))
def pad_of_same_number(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """pad(broadcast(y), y) -> broadcast(y), for a number y"""
    number = number_of(y)
    same = number is not None and _same_number(number, number_of(x))
    return new.broadcast(y, shape=root.shape, dimensions=()) if same and not root.shape.is_scalar else None


@LAWS.law(P.concatenate(xs.rest, dimension=d))
def concatenate_of_same_number(root: Instruction, xs: tuple[Instruction, ...]) -> Value | None:
    """concatenate(broadcast(y), broadcast(y)) -> broadcast(y), for a number y"""
    number = number_of(xs[0])
    if number is None or len(xs) == 1 or not all(_same_number(number, number_of(part)) for part in xs):
        return None
    return new.number(number, like=root)


def _same_number(number: object, other: object) -> bool:
    """Equal to the bit: signs of zero count, and no NaN is taken for another."""
    return other is not None and repr(number) == repr(other) and number == other


@LAWS.law(P.concatenate(xs.rest, dimension=d))
def concatenate_of_neighbours(xs: tuple[Instruction, ...], d: int) -> Value | None:
    """concatenate(x[a:b], x[b:c]) -> x[a:c]"""
    parts: list[Value] = [xs[0]]
    for part in xs[1:]:
        joined = _joined(parts[-1], part, d)
        parts[-1:] = [joined] if joined is not None else [parts[-1], part]
    if len(parts) == len(xs):
        return None
    return parts[0] if len(parts) == 1 else new.op("concatenate", parts, dimension=d)


def _joined(first: Value, second: Instruction, dimension: int) -> Value | None:
    """Two slices of the same array, the second where the first ends, as one."""
    if first.spec.name != "slice" or second.opcode != "slice" or first.operands[0] is not second.operands[0]:
        return None
    begin, end = first.attributes["dimensions"], second.attributes["dimensions"]
    others = [(a, b) for dim, (a, b) in enumerate(zip(begin, end, strict=True)) if dim != dimension]
    one, two = begin[dimension], end[dimension]
    if any(a != b for a, b in others) or one.limit != two.start or one.stride != 1 or two.stride != 1:
        return None
    whole = SliceDimension(one.start, two.limit)
    return new.slice(first.operands[0], dimensions=(*begin[:dimension], whole, *begin[dimension + 1 :]))
