"""Vector loops over a stretch of positions, and what is left over at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xlapy.codegen.arrays import Array, Placement
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.registers import memory_type

LEAST_VECTORS = 8  # of a strip that does not begin where vectors do, but is worth to be stored past the caches
EDGE_AHEAD = 8192
"""Bytes, about, from what is stored to the end of a strip that is fetched meanwhile; or to that of the same strip."""


def strip(
    k: KernelBuilder,
    begin: Value,
    end: Value,
    lanes: int,
    step: Callable[[Indexing, Value], None],
    *,
    overlapping: bool,
    fits: bool = False,
) -> None:
    """Runs `step` over [begin, end), `lanes` positions at a time.

    With `overlapping`, the last vector ends exactly at `end` and may repeat positions, even ones before `begin` (so
    `end` must be at least `lanes`: see `Kernel.least_units`); otherwise what does not fill a vector runs one by one.
    `fits` says that nothing is left over, if the length does not tell. What fills one vector needs no loop: what does
    not change from row to row is then found outside of the rows."""
    vector, scalar = Indexing(k, lanes), Indexing(k, 1)
    if lanes == 1:
        with k.loop(begin, end) as loop:
            step(scalar, loop.index)
        return
    length = k.sub(end, begin)
    if length.constant == lanes:
        step(vector, begin)
        return
    fits = fits or (length.constant is not None and not int(length.constant) % lanes)
    if overlapping or fits:
        last = k.sub(end, lanes)
        with k.loop(begin, end, lanes) as loop:
            step(vector, loop.index if fits else k.smin(loop.index, last))
        return
    whole = k.add(begin, k.and_(length, -lanes))
    with k.loop(begin, whole, lanes) as loop:
        step(vector, loop.index)
    with k.loop(whole, end) as loop:
        step(scalar, loop.index)


def past_caches(
    k: KernelBuilder,
    outputs: Sequence[Array],
    multiple: int = CACHE_LINE,
    *,
    apart: Value | None = None,
    unless: Value | None = None,
) -> list[Array]:
    """The outputs, whose vectors bypass the caches if the first ones begin at a `multiple` of bytes, and so do others,
    so many bytes `apart`; not `unless` that is so."""
    places = k.const(I64, 0) if apart is None else apart
    for output in outputs:
        places = k.or_(places, k.address(output.pointer))
    is_off = k.compare("ne", k.and_(places, multiple - 1), 0)
    if unless is not None:
        is_off = k.or_(is_off, unless)
    return [replace(output, placement=Placement(is_off)) for output in outputs]


@contextmanager
def stored_past_caches(k: KernelBuilder, outputs: Sequence[Array], *, streams: bool) -> Iterator[Sequence[Array]]:
    """The outputs for what is written inside: if it `streams`, past the caches, and in order behind."""
    yield past_caches(k, outputs) if streams else outputs
    if streams:
        k.fence()


@dataclass(frozen=True, slots=True)
class PastCaches:
    """Where the vectors of a result begin that are stored past the caches, if strips begin anywhere.

    Two strips that meet inside of a vector each store their own part of its lines, and such lines must be in a cache.
    All stores behind one that is waited for wait as well, so these lines are fetched before."""

    k: KernelBuilder
    output: Array
    lanes: int
    origin: Value  # elements from such a place to the first one of the result
    is_askew: Value  # elements lie across such places

    @staticmethod
    def of(k: KernelBuilder, output: Array, lanes: int) -> PastCaches:
        width = memory_type(output.shape.type).bytes
        address = k.address(output.pointer)
        is_askew = k.compare("ne", k.and_(address, width - 1), 0)
        return PastCaches(k, output, lanes, k.and_(k.udiv(address, width), lanes - 1), is_askew)

    def strip(
        self,
        start: Value,
        begin: Value,
        end: Value,
        step: Callable[[Indexing, Value, Placement | None], None],
        *,
        pitch: int,
    ) -> None:
        """Runs `step` over [begin, end) with overlapping vectors. Position 0 is element number `start` of the result.

        The first vector begins at `begin`, and the last one ends at `end`. `step` is told how they lie. The strip that
        comes next is taken to lie `pitch` elements behind this one."""
        k = self.k
        later = EDGE_AHEAD // (pitch * memory_type(self.output.shape.type).bytes) * pitch
        self._fetch_edge(k.add(k.add(start, end), later))
        phase = self._phase(k.add(start, begin))
        last = k.sub(end, self.lanes)
        with k.loop(k.sub(begin, phase), end, self.lanes) as loop:
            position = k.smin(k.smax(loop.index, begin), last)
            is_off = k.or_(self.is_askew, k.compare("ne", position, loop.index))
            step(Indexing(k, self.lanes), position, Placement(is_off, k.sub(loop.index, position)))

    def _phase(self, number: Value) -> Value:
        """How many lanes in front of an element its vector begins."""
        return self.k.and_(self.k.add(self.origin, number), self.lanes - 1)

    def _fetch_edge(self, number: Value) -> None:
        """Fetches the vector of an element, unless it is the first one there: then nobody stores a part of it."""
        k, width = self.k, memory_type(self.output.shape.type).bytes
        phase = self._phase(number)
        with k.if_(k.compare("ne", phase, 0)):
            place = k.gep(self.output.pointer, k.sub(number, phase), width)
            k.prefetch(place, self.lanes * width, for_writing=True)
