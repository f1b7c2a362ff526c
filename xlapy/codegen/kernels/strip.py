"""Vector loops over a stretch of positions, and what is left over at its end."""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import KernelBuilder, Value


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
