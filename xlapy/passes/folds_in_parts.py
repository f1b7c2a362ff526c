"""Folds that wait for another fold of the same large array read it once, part by part.

    m = f32[c] reduce(x, lowest), dimensions={0}, to_apply=max
    e = f32[n,c] exponential(x - broadcast(m))
    ROOT s = f32[c] reduce(e, zero), dimensions={0}, to_apply=add

becomes, with x in parts of k elements of each fold,

    q = f32[n/k,k,c] reshape(x)
    t = f32[n/k,c] reduce(q, lowest), dimensions={1}, to_apply=max
    e = f32[n/k,k,c] exponential(q - broadcast(t))
    u = f32[n/k,c] reduce(e, zero), dimensions={1}, to_apply=add
    m = f32[c] reduce(t, lowest), dimensions={0}, to_apply=max
    ROOT s = f32[c] reduce(u * exponential(t - broadcast(m)), zero), dimensions={0}, to_apply=add

A cache holds a part, so that its second fold reads no memory, and what the parts are folded to is small. Two kinds of
folds can be put together so, with errors as small as those of folds of the whole array: sums of exponentials of what is
below a maximum, and sums of squares of distances from a mean, by

    sum((x - c)^2) = sum over parts of sum((x - own mean)^2) + k (own mean - c)^2

Parts depend on the shape alone, and so do the bits of results. Only where no cache holds what a kernel folds at a time:
else one that takes whole rows, or strips of columns, reads it once anyway. What new elements are made of, as those of a
softmax over columns, is read again for these, if functions are quick: else it stays in strips, which keep exponentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any, ClassVar

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.kernel_plan import (
    LEAST_STRIP,
    MOST_REREAD_BYTES,
    MOST_ROW_BYTES,
    WIDEST_STRIP,
    RowSpace,
    is_element_op,
    is_row_major,
    sole_operation,
    three_parts,
)
from xlapy.hlo.literal import Literal
from xlapy.hlo.patterns import P, match, number_of, variables
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes.base import ComputationPass, Record, pinned
from xlapy.passes.fusion.rows import returns_to_elements

LEAST_PART = 16  # elements of a fold, beside which results of parts are few
LONG_STRIP_BYTES = 512 * 1024
"""Of a narrow strip: longer ones lie across pages and meet in few sets of a second-level cache. It is faster then to
read the array twice from end to end, once to fold it and once to make new elements of it. (On one core of an Intel
server, softmaxes and normalizations of columns of 1024 to 4096 f32 take 0.5 to 0.7 of the time, and of 512 0.8. On
one core of a Zen 3, softmaxes of 4096 take 1.6 times as long.)"""
MOST_FOLLOWED = 4  # instructions from a mean to its sum

x, c, d = variables("x c d")
_BELOW = P.exponential(P.subtract(x, c))
_SQUARE = P.multiply(d.where(P.subtract(x, c)), d)
_PORTIONS = (P.divide(x, d.where(P.any_number)), P.multiply(x, d.where(P.any_number)), P.reshape(x))


@dataclass
class FoldsInParts(ComputationPass):
    """`least_bytes` has an array that is worth it: one that is read from memory every time. `repeats_functions` where
    a processor is so quick with these that exponentials of an array had better be found twice than in narrow strips."""

    name: ClassVar[str] = "folds-in-parts"
    ops: ClassVar[Set[str]] = frozenset({"reduce"})

    least_bytes: int = 32 << 20
    repeats_functions: bool = True

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        changed = False
        for outer in computation.post_order():
            found = _found(outer)
            if found is None or fixed & {outer, found.inner}:
                continue
            parts = _parts(found, self.least_bytes, repeats_functions=self.repeats_functions)
            if parts is not None:
                _replace(computation, found, parts)
                reason = (
                    f"{found.inner.name} and it read {found.array.name} in one sweep, {parts.length} elements at a time"
                )
                self.records.append(Record.of(outer, True, reason))
                changed = True
        return changed


@dataclass(frozen=True, slots=True)
class _Folds:
    """A fold of what is made from an array and `center`, which is made from another fold of it, the inner one."""

    outer: Instruction
    inner: Instruction
    array: Instruction
    center: Instruction
    """One number for each fold."""

    is_below: bool
    """Of exponentials of what is below the center; else of squares of distances from it."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """How an array is cut: into groups x count x length x columns, of which count and length are folded."""

    groups: int
    count: int
    length: int
    columns: int


def _found(outer: Instruction) -> _Folds | None:
    """The folds that an instruction is the outer one of."""
    if not _folds_by(outer, "add"):
        return None
    value = outer.operands[0]
    for pattern, is_below in ((_BELOW, True), (_SQUARE, False)):
        bound = match(pattern, value)
        center = None if bound is None else _center(bound["c"], outer)
        if bound is None or center is None:
            continue
        array = bound["x"]
        inner = _maximum_of(center) if is_below else _sum_of(center)
        if inner is not None and inner.operands[0] is array and _folds_alike(inner, outer):
            return _Folds(outer, inner, array, center, is_below)
    return None


def _folds_by(reduce: Instruction, opcode: str) -> bool:
    """The instruction folds floats, as wide in memory as in registers, by one operation."""
    if reduce.opcode != "reduce" or len(reduce.operands) != 2:
        return False
    type, operation = reduce.shape.type, sole_operation(reduce.called[0])
    is_wide = type.is_float and not type.is_narrow_float
    return is_wide and operation is not None and operation.opcode == opcode


def _folds_alike(inner: Instruction, outer: Instruction) -> bool:
    return {*inner.attributes["dimensions"]} == {*outer.attributes["dimensions"]}


def _center(repeated: Instruction, outer: Instruction) -> Instruction | None:
    """What an array has of which all elements of a fold are the same."""
    if repeated.opcode != "broadcast" or not is_row_major(repeated):
        return None
    kept = tuple(dim for dim in range(repeated.shape.rank) if dim not in outer.attributes["dimensions"])
    return repeated.operands[0] if tuple(repeated.attributes["dimensions"]) == kept else None


def _maximum_of(center: Instruction) -> Instruction | None:
    """The maximum that a center is, unless that is not finite, where it may be zero."""
    largest = center if center.opcode != "select" else _guarded(center)
    return largest if largest is not None and _folds_by(largest, "maximum") else None


def _guarded(center: Instruction) -> Instruction | None:
    bound = match(P.select(P.is_finite(x), x, c), center)
    return bound["x"] if bound is not None and number_of(bound["c"]) == 0 else None


def _sum_of(center: Instruction) -> Instruction | None:
    """The sum that a center is a positive part of: as infinite as that, so that where an element is, so is its
    distance."""
    for _ in range(MOST_FOLLOWED):
        if center.opcode == "broadcast" and center.shape.size == center.operands[0].shape.size:
            center = center.operands[0]
            continue
        bound = next(filter(None, (match(pattern, center) for pattern in _PORTIONS)), None)
        if bound is None or ("d" in bound and not number_of(bound["d"]) > 0):
            break
        center = bound["x"]
    return center if _folds_by(center, "add") else None


# -- parts -----------------------------------------------------------------------------------------------------------


def _parts(folds: _Folds, least_bytes: int, *, repeats_functions: bool) -> _Parts | None:
    """How to cut the array; None if one kernel reads it once as it is, or there are no good parts."""
    array, shape = folds.array, folds.array.shape
    if shape.bytes < least_bytes or not shape.is_static or not is_row_major(array) or is_element_op(array):
        return None
    whole = three_parts(shape.dims, folds.outer.attributes["dimensions"])
    if whole is None:
        return None
    groups, length, columns = whole
    width = columns * shape.type.bytes
    if length * width <= MOST_ROW_BYTES:
        return None
    if columns > 1 and not _are_strips(folds, length, columns, repeats_functions=repeats_functions):
        return None
    strip = min(columns, WIDEST_STRIP) * shape.type.bytes
    longest = MOST_REREAD_BYTES // strip if columns > 1 else MOST_ROW_BYTES // (2 * width)
    if length <= longest:
        return None
    part = next((size for size in range(longest, LEAST_PART - 1, -1) if length % size == 0), None)
    return None if part is None else _Parts(groups, length // part, part, columns)


def _are_strips(folds: _Folds, length: int, columns: int, *, repeats_functions: bool) -> bool:
    """A kernel folds all columns side by side, or wide strips of them, in one sweep. Narrow strips of short columns do
    as well where these are made into new ones, which the same kernel then does."""
    if columns < LEAST_STRIP or not RowSpace((length, columns), (0,)).has_whole_strips:
        return False
    is_long = length * WIDEST_STRIP * folds.array.shape.type.bytes >= LONG_STRIP_BYTES
    if columns <= WIDEST_STRIP or (is_long and (repeats_functions or not folds.is_below)):
        return True
    outer = folds.outer
    whole = RowSpace(outer.operands[0].shape.dims, tuple(sorted(outer.attributes["dimensions"])))
    return not returns_to_elements(outer, whole)


def _replace(computation: Computation, folds: _Folds, parts: _Parts) -> None:
    """Puts folds of parts, and folds of these, in the place of both folds."""
    new = _Writer(computation, folds, parts)
    inner, outer = folds.inner, folds.outer
    source = new.add("reshape", [folds.array], shape=folds.array.shape.with_dims(new.dims))
    first = new.folded(source, inner)
    whole = new.folded_again(first, inner)
    center = whole if folds.center is inner else folds.center
    computation.replace(inner, whole)
    wide = new.each_part(center)
    if folds.is_below:
        own = new.add("select", [new.add("is-finite", [first]), first, new.number(0, first.shape)])
        elements = new.add("exponential", [new.add("subtract", [source, new.each_element(own)])])
        # A part of nothing but the least has a sum of zero. If all are such, so is the center, unless the program has
        # zero there, and what is below it is no number, as in the program.
        below = new.add("minimum", [new.add("subtract", [first, wide]), new.number(0, first.shape)])
        scale = new.add("exponential", [below])
        total = new.folded_again(new.add("multiply", [new.folded(elements, outer), scale]), outer)
    else:
        own = new.add("divide", [first, new.number(parts.length, first.shape)])
        elements = new.squared(new.add("subtract", [source, new.each_element(own)]))
        # Sums of finite numbers may be infinite: then so are the distances within the part, and that between them none.
        are_equal = new.add("compare", [own, wide], direction=ComparisonDirection.EQ)
        apart = new.add("select", [are_equal, new.number(0, own.shape), new.add("subtract", [own, wide])])
        between = new.add("multiply", [new.squared(apart), new.number(parts.length, own.shape)])
        total = new.folded_again(new.add("add", [new.folded(elements, outer), between]), outer)
    computation.replace(outer, total)
    computation.remove([outer])
    _remove_unused(computation, [folds.outer.operands[0], inner])


def _remove_unused(computation: Computation, values: Iterable[Instruction]) -> None:
    for value in values:
        if not value.users and not value.is_root and value.opcode != "parameter":
            computation.remove([value])


@dataclass(slots=True)
class _Writer:
    """Adds instructions over the parts of an array."""

    computation: Computation
    folds: _Folds
    parts: _Parts

    @property
    def dims(self) -> Dims:
        """Of the array in parts. Groups and columns are dimensions if there are several."""
        parts = self.parts
        return (*self._groups, parts.count, parts.length, *self._columns)

    @property
    def _groups(self) -> Dims:
        return (self.parts.groups,) if self.parts.groups > 1 else ()

    @property
    def _columns(self) -> Dims:
        return (self.parts.columns,) if self.parts.columns > 1 else ()

    @property
    def _place(self) -> int:
        """The dimension that counts parts, before the one along them."""
        return len(self._groups)

    def add(self, opcode: str, operands: Iterable[Instruction], **attributes: Any) -> Instruction:
        return self.computation.add(opcode, [*operands], metadata=self.folds.outer.metadata, **attributes)

    def number(self, value: float, shape: Shape) -> Instruction:
        scalar = self.computation.add("constant", literal=Literal(value, Shape.scalar(shape.type)))
        return self.add("broadcast", [scalar], shape=shape, dimensions=())

    def squared(self, distance: Instruction) -> Instruction:
        return self.add("multiply", [distance, distance])

    def folded(self, elements: Instruction, like: Instruction) -> Instruction:
        """Each part, folded as the whole is by another instruction."""
        literal = identity_literal(like.called[0])
        assert literal is not None
        identity = self.computation.add("constant", literal=literal)
        return self.add("reduce", [elements, identity], called=like.called, dimensions=(self._place + 1,))

    def folded_again(self, values: Instruction, like: Instruction) -> Instruction:
        """What the parts were folded to, folded to the result of another instruction."""
        dims = (*self._groups, *self._columns)
        shape = like.shape.with_dims(dims)
        operands = [values, like.operands[1]]
        result = self.add("reduce", operands, called=like.called, dimensions=(self._place,), shape=shape)
        return result if dims == like.shape.dims else self.add("reshape", [result], shape=like.shape)

    def each_element(self, value: Instruction) -> Instruction:
        """One number of each part, for each of its elements."""
        kept = tuple(dim for dim in range(len(self.dims)) if dim != self._place + 1)
        return self.add("broadcast", [value], shape=value.shape.with_dims(self.dims), dimensions=kept)

    def each_part(self, center: Instruction) -> Instruction:
        """One number of each fold, for each of its parts."""
        dims = (*self._groups, *self._columns)
        if center.shape.dims != dims:
            center = self.add("reshape", [center], shape=center.shape.with_dims(dims))
        kept = tuple(dim for dim in range(len(dims) + 1) if dim != self._place)
        shape = center.shape.with_dims((*self._groups, self.parts.count, *self._columns))
        return self.add("broadcast", [center], shape=shape, dimensions=kept)
