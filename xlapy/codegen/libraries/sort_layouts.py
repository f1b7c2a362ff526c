"""How the rows of a group that is sorted side by side lie in memory, which is how they are read and written."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xlapy.codegen.ir import I64, Value
from xlapy.codegen.libraries.sort_problem import Problem, base_of, row_bases


class Layout(enum.IntEnum):
    """BLOCKS: the elements of a row are neighbours, and squares of them are transposed in registers; NEIGHBOURS: the
    rows begin next to each other; ANY: each element is fetched for itself."""

    BLOCKS = 0
    NEIGHBOURS = 1
    ANY = 2


def layout_of(stride: int, length: int, lanes: int) -> Layout:
    """The layout of `lanes` rows of `length`."""
    if stride == 1 and length >= lanes:
        return Layout.BLOCKS
    return Layout.NEIGHBOURS if stride % lanes == 0 else Layout.ANY


@dataclass(frozen=True, slots=True)
class Rows:
    """The first elements of the rows in each lane, in operands and in results."""

    layout: Layout
    base: Value
    kept_base: Value


Body = Callable[[Rows], Value | Sequence[Value] | None]


def in_layout(problem: Problem, layout: Value, number: Value, lanes: int, body: Body) -> list[Value]:
    """Writes `body` for each layout, for the `lanes` rows from `number` on; what it gives in the one at hand."""
    k = problem.k
    along = k.lane_numbers(I64.with_lanes(lanes))
    numbers = k.add(along, number)

    def blocks() -> Value | Sequence[Value] | None:
        inner = k.const(numbers.type, 0)
        bases = (base_of(problem, numbers, inner, problem[length]) for length in ("length", "kept"))
        return body(Rows(Layout.BLOCKS, *bases))

    def neighbours() -> Value | Sequence[Value] | None:
        base, kept_base = row_bases(problem, number)
        return body(Rows(Layout.NEIGHBOURS, k.add(along, base), k.add(along, kept_base)))

    def any_way() -> Value | Sequence[Value] | None:
        return body(Rows(Layout.ANY, *row_bases(problem, numbers)))

    return k.switch(layout, {Layout.BLOCKS: blocks, Layout.NEIGHBOURS: neighbours}, any_way)
