"""How the rows of a group that is sorted side by side lie in memory, which is how they are read and written."""

from __future__ import annotations

import enum
from collections.abc import Callable

from xlapy.codegen.ir import I64, Operand, Value
from xlapy.codegen.kernels.sort_records import Column
from xlapy.codegen.libraries.sort_problem import Problem, row_bases
from xlapy_runtime.records import Record


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


class Rows(Record):
    """The first elements of the rows in each lane, in operands and in results."""

    problem: Problem
    layout: Layout
    base: Value
    kept_base: Value

    @property
    def block(self) -> int:
        """How many positions to read or write at once."""
        return self.base.type.lanes if self.layout is Layout.BLOCKS else 1

    @property
    def stride(self) -> Operand:
        return 1 if self.layout is Layout.BLOCKS else self.problem["stride"]

    def source(self, pointer: Value, element_bytes: int) -> Column:
        """The rows of an operand."""
        return Column(pointer, element_bytes, self.base, self.stride, self.layout is Layout.NEIGHBOURS)

    def result(self, pointer: Value, element_bytes: int) -> Column:
        return Column(pointer, element_bytes, self.kept_base, self.stride, self.layout is Layout.NEIGHBOURS)


def in_layout(problem: Problem, layout: Value, number: Value, lanes: int, body: Callable[[Rows], None]) -> None:
    """Writes `body` for each layout, of which the one at hand runs, for the `lanes` rows from `number` on."""
    k = problem.k
    along = k.lane_numbers(I64.with_lanes(lanes))
    numbers = k.add(along, number)

    def blocks() -> None:
        base, kept_base = (k.mul(numbers, problem[length]) for length in ("length", "kept"))
        body(Rows(problem, Layout.BLOCKS, base, kept_base))

    def neighbours() -> None:
        base, kept_base = row_bases(problem, number)
        body(Rows(problem, Layout.NEIGHBOURS, k.add(along, base), k.add(along, kept_base)))

    def any_way() -> None:
        base, kept_base = row_bases(problem, numbers)
        body(Rows(problem, Layout.ANY, base, kept_base))

    k.switch(layout, {Layout.BLOCKS: blocks, Layout.NEIGHBOURS: neighbours}, any_way)
