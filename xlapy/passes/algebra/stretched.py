"""Laws of sums of arrays that are padded with zeros between their elements.

The gradient of what takes every second element of an array here and the others there is such a sum, of as many terms as
there are places where elements are taken. What has its elements in the same places is added without gaps.

    pad(x, 0), padding=0_12 + pad(y, 0), padding=2_0_1 + pad(z, 0), padding=1_1_1      13, 25 and 25 elements
    concatenate(x, y) and z side by side, and the last of y

A sum in which a 0 takes part is never -0, whichever of its terms the 0 is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import PaddingDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.shape import Shape
from xlapy.passes import new
from xlapy.passes.algebra.interleaved import MOST_INTERLEAVED, UNPADDED, in_turns
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS
from xlapy.support.records import Record

x, y, z, p, q = variables("x y z p q")
Paddings = tuple[PaddingDimension, ...]

MOST_TERMS = 32


@LAWS.law(P.add(x, P.pad(y, P.number(0), dimensions=p)))
def add_stretched(root: Instruction) -> Value | None:
    """pad(x, 0) + pad(y, 0) + pad(z, 0), where some have elements in gaps of the others -> what has the same places is
    added without gaps, and such sums lie side by side"""
    user = root.sole_user
    if user is not None and user.opcode == "add" and _Sum.of(user) is not None:
        return None  # which takes all terms at once
    total = _Sum.of(root)
    return total.apart() if total is not None else None


@LAWS.law(P.add(P.add(x, P.pad(y, P.number(0), dimensions=p)), P.pad(z, P.number(0), dimensions=q)))
def add_stretched_first(
    root: Instruction, x: Instruction, y: Instruction, p: Paddings, z: Instruction, q: Paddings
) -> Value | None:
    """(x + pad(y, 0)) + pad(z, 0) -> x + (pad(y, 0) + pad(z, 0)), where each has its elements in gaps of the other"""
    if any(operand.opcode == "add" and operand.sole_user is None for operand in root.operands):
        return None
    dim = _stretched_dim([p, q])
    if dim is None:
        return None
    first, second = p[dim], q[dim]
    period = first.interior + 1
    if first.interior != second.interior or (first.low - second.low) % period == 0:
        return None
    zero = new.filled(0, Shape.scalar(root.shape.type))
    return new.add(x, new.add(new.pad(y, zero, dimensions=p), new.pad(z, zero, dimensions=q)))


class _Run(Record):
    """Neighbours without gaps, from the one at `start`. `owes_zero` if each of them still lacks a term that is 0."""

    start: int
    value: Value
    dim: int
    owes_zero: bool = False

    @property
    def end(self) -> int:
        return self.start + self.value.shape.dims[self.dim]

    def __add__(self, other: _Run) -> _Run:
        if self.end == other.start or other.end == self.start:
            parts = sorted((self, other), key=lambda run: run.start)
            joined = new.op("concatenate", [part.value for part in parts], dimension=self.dim)
            return _Run(parts[0].start, joined, self.dim, True)
        start, end = min(self.start, other.start), max(self.end, other.end)
        total = new.add(self.within(start, end), other.within(start, end))
        return _Run(start, total, self.dim, self.owes_zero or other.owes_zero)

    def within(self, start: int, end: int) -> Value:
        """It among zeros."""
        return _padded(self.value, self.dim, PaddingDimension(self.start - start, end - self.end))


class _Sum(Record):
    """A sum of arrays with `period - 1` zeros between their elements along `dim`."""

    root: Instruction
    dim: int
    period: int

    @classmethod
    def of(cls, root: Instruction) -> _Sum | None:
        """None if it is a sum of others, too."""
        terms = _terms(root)
        paddings = [term.attributes["dimensions"] for term in terms]
        dim = _stretched_dim(paddings) if len(terms) > 1 else None
        if dim is None:
            return None
        period = max(padding[dim].interior for padding in paddings) + 1
        fits = all(
            padding[dim].interior == period - 1 or term.operands[0].shape.dims[dim] == 1
            for term, padding in zip(terms, paddings, strict=True)
        )
        if not fits or not 1 < period <= min(MOST_INTERLEAVED, root.shape.dims[dim]) or not _has_elements(terms):
            return None
        return cls(root, dim, period)

    def apart(self) -> Value:
        """What is in the same places is added, and the sums are put side by side."""
        runs = [self.run_of(self.root, turn) for turn in range(self.period)]
        known = [(turn, run) for turn, run in enumerate(runs) if run is not None]
        size = self.root.shape.dims[self.dim]
        if len(known) == 1:
            [(first, only)] = known
            low = first + only.start * self.period
            last = first + (only.end - 1) * self.period
            total = _with_zero(only.value) if only.owes_zero else only.value
            return _padded(total, self.dim, PaddingDimension(low, size - 1 - last, self.period - 1))
        parts: list[Value] = []
        for turn, run in enumerate(runs):
            count = len(range(turn, size, self.period))
            zeros = new.filled(0, self.root.shape.with_dim(self.dim, count))
            parts.append(_with_zero(run.within(0, count)) if run is not None else zeros)
        return in_turns(parts, self.dim)

    def run_of(self, value: Instruction, turn: int) -> _Run | None:
        """What of a sum is in every `period`-th place, from one of the first; None if only zeros are."""
        if value.opcode == "pad":
            low = value.attributes["dimensions"][self.dim].low
            return _Run(low // self.period, value.operands[0], self.dim) if low % self.period == turn else None
        runs = [run for operand in value.operands if (run := self.run_of(operand, turn)) is not None]
        return runs[0] + runs[1] if len(runs) == 2 else runs[0] if runs else None


def _terms(root: Instruction) -> list[Instruction]:
    """Arrays padded with zeros of which an instruction is the sum; none if others are among them."""
    terms: list[Instruction] = []
    pending = [root]
    while pending:
        value = pending.pop()
        if value.opcode == "add" and (value is root or value.sole_user is not None):
            pending.extend(value.operands)
        elif value.opcode == "pad" and _is_zero(value.operands[1]) and len(terms) < MOST_TERMS:
            terms.append(value)
        else:
            return []
    return terms


def _is_zero(value: Instruction) -> bool:
    number = number_of(value)
    return number is not None and number == 0 and (np.iscomplexobj(number) or not np.signbit(number))


def _stretched_dim(paddings: Sequence[Paddings]) -> int | None:
    """The only dimension that is padded, if it is so between elements, and nothing is cut off."""
    dims = {dim for padding in paddings for dim, part in enumerate(padding) if part != UNPADDED}
    if len(dims) != 1:
        return None
    dim = dims.pop()
    parts = [padding[dim] for padding in paddings]
    is_stretched = any(part.interior for part in parts) and all(part.low >= 0 and part.high >= 0 for part in parts)
    return dim if is_stretched else None


def _has_elements(terms: Sequence[Instruction]) -> bool:
    return all(term.operands[0].shape.size for term in terms)


def _with_zero(value: Value) -> Value:
    return new.add(value, new.number(0, like=value))


def _padded(value: Value, dim: int, part: PaddingDimension) -> Value:
    """The value among zeros along a dimension; the value itself if there are none."""
    if part == UNPADDED:
        return value
    zero = new.filled(0, Shape.scalar(value.shape.type))
    paddings = [UNPADDED] * value.shape.rank
    paddings[dim] = part
    return new.pad(value, zero, dimensions=(*paddings,))
