"""The stages of a transform, and the loops around them.

A stage of radix r reads from one view and writes to another. With m positions and runs of s rows, and u < s, p < m,

    target[u + s (r p + j)] = w^(p j) * sum over n of v^(n j) * source[u + s (p + m n)]

where w = exp(-2 pi i / (r m)) and v = exp(-2 pi i / r).

After stages for all factors of the length, with runs of 1, r1, r1 r2 ..., the results are in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I64, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.butterflies import butterfly, multiply
from xlapy.codegen.kernels.fft_tables import Stage
from xlapy.codegen.kernels.fft_views import Place, Planes, View
from xlapy.codegen.kernels.loop import power_of_two_below, strip
from xlapy.codegen.registers import Pair


@dataclass(frozen=True, slots=True)
class Block:
    """The block at hand: `columns` are counted at run time where lanes run along them, and at least `lanes`."""

    k: KernelBuilder
    type: IRType
    lanes: int
    columns: Value
    lanes_along_rows: bool
    table: Value | None

    def each(self, begin: int, end: int, step: Callable[[Place], None]) -> None:
        """Runs `step` for all rows in [begin, end) of all columns. Elements may be visited twice."""
        k = self.k
        if not self.lanes_along_rows:
            with k.loop(begin, end) as rows:
                self.each_column(rows.index, step)
        elif begin < end:
            lanes = min(self.lanes, power_of_two_below(end - begin))
            self.each_row(k.const(I64, begin), k.const(I64, end), lanes, lambda row, count: step(Place(row, 0, count)))

    def each_row(self, begin: Value, end: Value, lanes: int, step: Callable[[Value, int], None]) -> None:
        """Vectors of rows; the last may overlap the one before."""

        def at(ix: Indexing, row: Value) -> None:
            step(row, ix.lanes)

        strip(self.k, begin, end, lanes, at, overlapping=True)

    def each_column(self, row: Operand, step: Callable[[Place], None]) -> None:
        """Vectors of columns in one row."""

        def at(ix: Indexing, column: Value) -> None:
            step(Place(row, column, ix.lanes))

        strip(self.k, self.k.const(I64, 0), self.columns, self.lanes, at, overlapping=True)

    def numbers(self, real: int, imag: int, index: Operand, lanes: int) -> Pair:
        """Complex numbers of the table, from those that begin at `real` and `imag`: one for each lane."""
        k = self.k
        assert self.table is not None
        type = self.type.with_lanes(lanes)
        offsets = (k.add(index, k.const(I64, begin)) for begin in (real, imag))
        re, im = (k.load(k.gep(self.table, at, self.type.bytes), type, hoistable=True) for at in offsets)
        return Pair(re, im)

    def row_numbers(self, begin: int, count: int, place: Place) -> Pair:
        """The numbers of a table of `count` that belong to the rows at `place`."""
        lanes = place.lanes if self.lanes_along_rows else 1
        return self.splat(self.numbers(begin, begin + count, place.row, lanes), place.lanes)

    def splat(self, value: Pair, lanes: int) -> Pair:
        return Pair(self.k.splat(value.re, lanes), self.k.splat(value.im, lanes))


def emit_stage(block: Block, stage: Stage, source: View, target: View) -> None:
    """One stage, from one view to another that does not overlap it."""
    is_short = block.lanes_along_rows and stage.run < block.lanes
    if is_short and stage.positions > 1 and stage.run & (stage.run - 1) == 0 and isinstance(target, Planes):
        _short_runs(block, stage, source, target)
    elif block.lanes_along_rows:
        _runs_of_rows(block, stage, source, target)
    else:
        _runs_of_columns(block, stage, source, target)


def _runs_of_rows(block: Block, stage: Stage, source: View, target: View) -> None:
    """Lanes are rows of one run."""
    k = block.k
    lanes = min(block.lanes, power_of_two_below(stage.run))
    with k.loop(0, stage.positions) as positions:
        first = k.mul(positions.index, stage.run) if stage.per_element else positions.index
        roots = _roots(block, stage, first, 1)

        def step(run_row: Value, count: int) -> None:
            values = _read(block, stage, source, positions.index, run_row, 0, count)
            _write(block, stage, target, positions.index, run_row, 0, _turned(block, values, roots, count))

        block.each_row(k.const(I64, 0), k.const(I64, stage.run), lanes, step)


def _runs_of_columns(block: Block, stage: Stage, source: View, target: View) -> None:
    """Lanes are columns; all rows of a run have the same roots."""
    k = block.k
    with k.loop(0, stage.positions) as positions:
        roots = _roots(block, stage, positions.index, 1)
        with k.loop(0, stage.run) as runs:

            def step(place: Place) -> None:
                values = _read(block, stage, source, positions.index, runs.index, place.column, place.lanes)
                results = _turned(block, values, roots, place.lanes)
                _write(block, stage, target, positions.index, runs.index, place.column, results)

            block.each_column(0, step)


def _short_runs(block: Block, stage: Stage, source: View, target: Planes) -> None:
    """Runs shorter than a vector: lanes go through the positions, and results are put in order in registers."""
    k = block.k
    count = stage.positions * stage.run
    lanes = min(block.lanes, power_of_two_below(count))

    def butterflies(element: Value, lanes: int) -> list[Pair]:
        places = [Place(k.add(element, i * count), 0, lanes) for i in range(stage.radix)]
        values = [source.load(k, place) for place in places]
        return _turned(block, values, _roots(block, stage, element, lanes), lanes)

    whole = count // lanes * lanes
    with k.loop(0, whole, lanes) as loop:
        results = butterflies(loop.index, lanes)
        reals = interleaved(k, [value.re for value in results], stage.run)
        imags = interleaved(k, [value.im for value in results], stage.run)
        for number, (real, imag) in enumerate(zip(reals, imags, strict=True)):
            row = k.add(k.mul(loop.index, stage.radix), number * lanes)
            target.store(k, Place(row, 0, lanes), Pair(real, imag))
    with k.loop(whole, count) as loop:
        position = k.udiv(loop.index, stage.run)
        row = k.sub(loop.index, k.mul(position, stage.run))
        _write(block, stage, target, position, row, 0, butterflies(loop.index, 1))


def interleaved(k: KernelBuilder, vectors: Sequence[Value], run: int) -> list[Value]:
    """The lanes of all vectors in the order: the first `run` lanes of each in turn, then the next `run` ..."""
    count, lanes = len(vectors), vectors[0].type.lanes
    if lanes == run or count == 1:
        return [*vectors]
    if count % 2 == 0:
        even, odd = (interleaved(k, vectors[start::2], run) for start in (0, 1))
        order = [
            lane + part * lanes
            for begin in range(0, lanes, run)
            for part in (0, 1)
            for lane in range(begin, begin + run)
        ]
        pairs = zip(even, odd, strict=True)
        return [k.shuffle(a, b, order[half : half + lanes]) for a, b in pairs for half in (0, lanes)]
    order = [
        lane + vector * lanes
        for begin in range(0, lanes, run)
        for vector in range(count)
        for lane in range(begin, begin + run)
    ]
    whole = _joined(k, vectors)
    return [k.shuffle(whole, None, order[begin : begin + lanes]) for begin in range(0, count * lanes, lanes)]


def _joined(k: KernelBuilder, vectors: Sequence[Value]) -> Value:
    """All lanes of the vectors, one vector after the other."""
    if len(vectors) == 1:
        return vectors[0]
    half = power_of_two_below(len(vectors) - 1)
    first, second = _joined(k, vectors[:half]), _joined(k, vectors[half:])
    lanes, rest = first.type.lanes, second.type.lanes
    if rest < lanes:
        second = k.shuffle(second, None, [lane if lane < rest else -1 for lane in range(lanes)])
    return k.shuffle(first, second, range(lanes + rest))


def _roots(block: Block, stage: Stage, index: Value, lanes: int) -> list[Pair]:
    """The roots of unity for outputs 1 ... of the butterflies; none in the last stage, where all are 1."""
    if stage.positions == 1:
        return []
    return [
        block.numbers(stage.root(output, 0), stage.root(output, 1), index, lanes) for output in range(1, stage.radix)
    ]


def _turned(block: Block, values: Sequence[Pair], roots: Sequence[Pair], lanes: int) -> list[Pair]:
    """The butterflies of the values, multiplied by the roots."""
    results = butterfly(block.k, values)
    for output, root in enumerate(roots, 1):
        results[output] = multiply(block.k, results[output], block.splat(root, lanes))
    return results


def _read(
    block: Block, stage: Stage, source: View, position: Value, row: Value, column: Operand, lanes: int
) -> list[Pair]:
    k = block.k
    first = k.add(k.mul(position, stage.run), row)
    distance = stage.run * stage.positions
    return [source.load(k, Place(k.add(first, i * distance), column, lanes)) for i in range(stage.radix)]


def _write(
    block: Block, stage: Stage, target: View, position: Value, row: Value, column: Operand, values: Sequence[Pair]
) -> None:
    k = block.k
    first = k.add(k.mul(position, stage.run * stage.radix), row)
    for output, value in enumerate(values):
        lanes = max(value.re.type.lanes, value.im.type.lanes)
        target.store(k, Place(k.add(first, output * stage.run), column, lanes), value)
