"""Parts of arrays that a loop goes through step by step: slices of one index, the dimension itself dropped."""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import number_of
from xlapy.hlo.progressions import Progression
from xlapy.hlo.shape import Dims


@dataclass(frozen=True, slots=True)
class Part:
    """One slice of `whole` along `dim`, the dimension itself dropped."""

    whole: Instruction
    slice: Instruction
    dim: int

    @property
    def index(self) -> Instruction:
        """Which one, where that is inside of the array."""
        return self.slice.operands[1 + self.dim]

    @property
    def count(self) -> int:
        """How many there are."""
        return self.whole.shape.dims[self.dim]


def part_of(value: Instruction) -> Part | None:
    """What `value` is a part of, if it is one."""
    if value.opcode != "reshape" or value.operands[0].opcode != "dynamic-slice":
        return None
    (cut,) = value.operands
    whole, *indices = cut.operands
    sizes, taken = whole.shape.dims, cut.shape.dims
    dims = [dim for dim, (size, part) in enumerate(zip(sizes, taken, strict=True)) if part != size]
    if len(dims) != 1 or taken[dims[0]] != 1 or value.shape.dims != _without(taken, dims[0]):
        return None
    if any(number_of(index) != 0 for dim, index in enumerate(indices) if dim != dims[0]):
        return None
    return Part(whole, cut, dims[0])


def _without(dims: Dims, dim: int) -> Dims:
    return dims[:dim] + dims[dim + 1 :]


def goes_through(index: Progression | None, trips: int, count: int) -> bool:
    """Whether an index takes one part after the other, forwards or backwards, and never leaves the `count` of them."""
    if index is None or abs(index.step) != 1:
        return False
    last = index.first + (trips - 1) * index.step
    return min(index.first, last) >= 0 and max(index.first, last) < count
