"""Where the places of a window lie: shared by all kernels that slide one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.registers import Element, flatten, unflatten
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.attributes import WindowDimension
from xlapy_runtime.records import Record


class WindowAxis(Record):
    """One dimension over which a window slides."""

    part: WindowDimension
    size: int  # of the array
    count: int  # positions of the window

    @property
    def is_trivial(self) -> bool:
        """Position and element are one."""
        part = self.part
        return (part.size, part.stride, part.padding_low, part.base_dilation) == (1, 1, 0, 1)

    @property
    def is_cumulative(self) -> bool:
        """Each window has all elements up to one, or all from one on: it continues its neighbour."""
        size = self.part.size
        ways = (WindowDimension(size, padding_low=size - 1), WindowDimension(size, padding_high=size - 1))
        return self.part in ways and 1 < self.size <= size

    @property
    def is_always_inside(self) -> bool:
        """Every place of every position lies on an element."""
        return self.part.base_dilation == 1 and self.part.padding_low <= 0 and self.last_place < self.size

    @property
    def last_place(self) -> int:
        """Behind the first element: the last place of the last position, which may lie far outside."""
        part = self.part
        return (self.count - 1) * part.stride + (part.size - 1) * part.window_dilation - part.padding_low

    def locate(self, ix: Indexing, position: Coordinate, offset: Value) -> tuple[Coordinate, Value | None]:
        """The element under place `offset` of the window at `position`, and where there is one (None: everywhere).

        The condition has one lane if it is the same for all."""
        k, part = ix.k, self.part
        moved = k.add(k.mul(offset, part.window_dilation), -part.padding_low)
        place = ix.add(ix.scale(position, part.stride), moved)
        if self.is_always_inside:
            return place, None
        if part.base_dilation == 1:
            return place, k.compare("lt", one_or_all(ix, place), self.size, signed=False)
        positive = ix.at(k.smax(one_or_all(ix, place), 0))
        element, rest = ix.divide(positive, part.base_dilation)
        inside = k.and_(k.compare("ge", one_or_all(ix, place), 0), k.compare("eq", one_or_all(ix, rest), 0))
        return element, k.and_(inside, k.compare("lt", one_or_all(ix, element), self.size))

    def places_inside(self, k: KernelBuilder, position: Value) -> tuple[Value, Value]:
        """The range of places that lie on elements at a position, where the array is not dilated."""
        part = self.part
        if self.is_always_inside:
            return k.const(I64, 0), k.const(I64, part.size)
        start = k.sub(k.mul(position, part.stride), part.padding_low)  # the element under place 0
        dilation = part.window_dilation
        begin = k.udiv(k.smax(k.sub(dilation - 1, start), 0), dilation)
        end = k.udiv(k.smax(k.sub(self.size + dilation - 1, start), 0), dilation)
        return begin, k.smin(end, part.size)


def shared_rows(axis: WindowAxis) -> int:
    """Positions of the window before some that see elements which it sees as well."""
    return (axis.part.size - 1) // axis.part.stride


def one_or_all(ix: Indexing, coordinate: Coordinate) -> Value:
    """The position of the lanes: one if it is the same for all."""
    if coordinate.is_uniform:
        return coordinate.start
    return ix.vector(coordinate)


def both(k: KernelBuilder, one: Value | None, other: Value | None) -> Value | None:
    """The conjunction of two conditions, of one lane or of many; None holds everywhere."""
    if one is None or other is None:
        return other if one is None else one
    lanes = max(one.type.lanes, other.type.lanes)
    return k.and_(k.splat(one, lanes), k.splat(other, lanes))


# -- carrying elements through loops and branches ----------------------------------------------------------------------


def carried_loop(
    k: KernelBuilder,
    begin: Value,
    end: Value,
    elements: Sequence[Element],
    body: Callable[[Value, Sequence[Element]], Sequence[Element]],
) -> list[Element]:
    """A loop that carries elements; one that runs once is none.

    LLVM is not told that what `body` gets counts: the many addresses that are made of it are as good as they can be,
    and to look for better ones took longer than everything else."""
    if begin.constant is not None and end.constant is not None and int(end.constant) == int(begin.constant) + 1:
        return list(body(begin, elements))
    with listening_loop(k, begin, end, carry=flatten(elements)) as loop:
        loop.next = flatten(body(k.opaque(loop.index), unflatten(loop.values, elements)))
    return unflatten(loop.results, elements)


def carried_choice(
    k: KernelBuilder,
    condition: Value | None,
    elements: Sequence[Element],
    then: Callable[[], Sequence[Element]],
    otherwise: Callable[[], Sequence[Element]],
) -> list[Element]:
    """Elements from one of two branches, of the kinds of `elements`; None always holds."""
    if condition is None:
        return list(then())
    merged = k.if_else(condition, lambda: flatten(then()), lambda: flatten(otherwise()))
    return unflatten(merged, elements)
