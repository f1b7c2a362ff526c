"""Columns of arrays in memory that several sweeps fold: strips of them as wide as a second-level cache holds.

    for strip of many columns:
        for eight rows: for vector of the strip: m[vector] += x[row, vector] + ... + x[row + 7, vector]
        for eight rows: for vector of the strip: s[vector] += square(x[row, vector] - m[vector]) + ...

The first sweep reads long pieces of rows from memory (see `wide_blocks`), all others find them in the cache. Results
have one value per column: those with one per element are for narrow strips (`columns`), and so is what later sweeps
keep. Elementary functions of elements are, too: they take longer than memory, and eight of them long to compile.

Two sweeps that can be merged are one (`merged_folds`), functions or not, and no cache needs to hold a strip then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import SCALAR, Coordinate, Index, Indexing
from xlapy.codegen.ir import I64, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.columns import ColumnExtent, ColumnPlan, bytes_to_next, fetching_next, strip_of
from xlapy.codegen.kernels.fetching import fetched_below
from xlapy.codegen.kernels.folding import only
from xlapy.codegen.kernels.loop import power_of_two_below
from xlapy.codegen.kernels.merged_folds import MergedFolds, merged_folds
from xlapy.codegen.kernels.tasks import LEAST_LONG_TASKS
from xlapy.codegen.kernels.wide_blocks import (
    LEAST_PIECE_BYTES,
    MOST_BYTES,
    STREAMS,
    BlockValues,
    Vector,
    VectorFold,
    WideFold,
    is_in_memory,
)
from xlapy.codegen.registers import Element, memory_type, register_type, rounded, splat
from xlapy.codegen.target import Target
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

STRIPS_IN_CACHE = 4  # that have room in a second-level cache: one that is folded, one that is fetched, and others' data


class WideColumnPlan(Record):
    """The sweeps of a plan, down strips of so many vectors, so many rows at a time."""

    narrow: ColumnPlan
    vectors: int
    rows: int
    bytes_per_unit: int
    merged: MergedFolds | None = None  # of one sweep, instead of two
    asks_ahead: bool = True  # what will be read in one sweep is fetched

    @property
    def width(self) -> int:
        return self.narrow.lanes * self.vectors

    @property
    def strips(self) -> int:
        """How many lie side by side."""
        return self.narrow.space.dims[-1] // self.width

    @property
    def units_per_row(self) -> int:
        """That tasks have at the least: all strips that lie side by side, where many of these lie one below the other.
        The first strip of a task is the only one that nobody fetches before it is read."""
        return self.strips if self.units >= self.strips * LEAST_LONG_TASKS else 1

    @property
    def units(self) -> int:
        return self.narrow.space.rows // self.width


def plan_wide_columns(plan: ColumnPlan, operand_bytes: int, target: Target) -> WideColumnPlan | None:
    """How to take columns by wide strips; None if narrow ones are better."""
    space = plan.space
    is_folded_once = sum(space.dims[dim] > 1 for dim in space.folded) == 1
    widest = widest_plan(plan, target) if is_folded_once and is_in_memory(operand_bytes, target) else None
    if widest is None:
        return None
    types = [memory_type(operand.shape.type) for operand in plan.readers]
    row_bytes = space.dims[-1] * max(type.bytes for type in types)
    strip = plan.lanes * space.row_length * sum(type.bytes for type in types)
    most = widest.vectors
    if widest.merged is None:
        most = min(most, target.l2_bytes // (STRIPS_IN_CACHE * strip))
    whole, left = divmod(space.dims[-1], plan.lanes)
    vectors = 0 if left else next((count for count in range(most, 0, -1) if whole % count == 0), 0)
    if vectors < whole and vectors * row_bytes < whole * LEAST_PIECE_BYTES:
        return None
    return replace(widest, vectors=vectors, bytes_per_unit=plan.bytes_per_unit * vectors // plan.vectors)


def widest_plan(plan: ColumnPlan, target: Target) -> WideColumnPlan | None:
    """The sweeps of a plan down the widest strips there are, if those may be wide."""
    is_read = len(plan.sweeps) > 1 and not (plan.full_roots or plan.kept) and 0 < len(plan.readers) <= STREAMS
    merged = merged_folds(plan.space, plan.sweeps)
    if not is_read or (merged is None and _has_functions(plan)):
        return None
    values = plan.lanes * sum(register_type(reduce.shape.type).bytes for sweep in plan.sweeps for reduce in sweep)
    rows = power_of_two_below(STREAMS // len(plan.readers))
    return WideColumnPlan(plan, MOST_BYTES // values, rows, 0, merged, target.asks_ahead)


def _has_functions(plan: ColumnPlan) -> bool:
    """Whether elementary functions of elements are folded."""
    goals = [reduce.operands[0] for sweep in plan.sweeps for reduce in sweep]
    inside = between(goals, lambda i: i.opcode in ("parameter", "reduce"))
    return any(value.opcode in TRANSCENDENTAL and plan.space.is_full(value) for value in inside)


def emit_wide_columns(
    k: KernelBuilder,
    plan: WideColumnPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    extent: ColumnExtent | None = None,
) -> None:
    """Writes the kernel over strips [begin, end). With an `extent`, that is what counts, and not the sizes of the plan,
    whose strips are the widest then. What a strip reads is fetched while the one before it is folded for the second
    time, and else by the processor: it is slower where the first sweep asks for the rows to come (variances on a Zen 5,
    one core: 27 GB/s without, 24 with 1 KB of each row ahead, 22 with the rows below, too)."""
    arrays = {instruction: replace(array, ahead=0) for instruction, array in arrays.items()}
    kind = _WideStrip if plan.merged is None else _MergedStrip
    values = [BlockValues(k, starts, plan.narrow.lanes, plan.vectors) for starts in kind.starts(k, plan, arrays)]
    with k.loop(begin, end) as units:
        strip = kind(k, plan, arrays, values, units.index, end, extent)
        for number in range(len(values)):
            strip.fold(number)
        strip.store(outputs)


class _WideStrip:
    """One strip: where it is, and what its columns have been folded to."""

    def __init__(
        self,
        k: KernelBuilder,
        plan: WideColumnPlan,
        arrays: Mapping[Instruction, Array],
        values: Sequence[BlockValues],
        unit: Value,
        end: Value,
        extent: ColumnExtent | None,
    ) -> None:
        self.k = k
        self.plan = plan.narrow
        self.merged = plan.merged
        self.asks_ahead = plan.asks_ahead
        self.arrays = arrays
        self.values = values
        self.ix = Indexing(k, plan.narrow.lanes)
        self.vectors = plan.vectors
        self.count = k.const(I64, plan.vectors)
        self.rows = plan.rows
        self.length: Operand = plan.narrow.space.dims[self._folded]
        strips: Operand = plan.strips
        if extent is not None:
            assert extent.vectors is not None
            self.count, self.length, strips = extent.vectors, extent.length, extent.strips
        scalar, space = Indexing(k, 1), plan.narrow.space
        outside, strip = strip_of(k, unit, strips)
        outer = [dim for dim in space.kept if dim != len(space.dims) - 1]
        self.outer = dict(zip(outer, scalar.delinearize(outside, [space.dims[dim] for dim in outer]), strict=True))
        width = k.mul(self.count, self.ix.lanes)
        self.first = k.mul(strip.start, width)
        # Nothing where none is left of a task: another core may have the next strip, and so much that is read twice
        # makes memory slower for all.
        has_next = k.compare("gt", k.sub(end, unit), 1)
        found = bytes_to_next(k, plan.narrow, strip, strips, width, extent)
        self.to_next = {operand: k.select(has_next, to_next, 0) for operand, to_next in found.items()}
        self.columns = k.const(I64, space.dims[-1]) if extent is None else extent.columns

    @staticmethod
    def starts(k: KernelBuilder, plan: WideColumnPlan, arrays: Mapping[Instruction, Array]) -> list[list[Element]]:
        """What the values of each sweep begin with."""
        graph = ElementGraph(Indexing(k, 1), arrays)

        def of_sweep(sweep: Sequence[Instruction]) -> list[Element]:
            inits = graph.values([(reduce.operands[1], SCALAR) for reduce in sweep])
            folds = [plan.narrow.lane_fold(k, reduce) for reduce in sweep]
            return [fold.start([init])[0] for fold, init in zip(folds, inits, strict=True)]

        return [of_sweep(sweep) for sweep in plan.narrow.sweeps]

    @property
    def _folded(self) -> int:
        """The dimension that is folded."""
        return next(dim for dim in self.plan.space.folded if self.plan.space.dims[dim] > 1)

    def fold(self, number: int) -> None:
        """Folds down the columns what the reduces of a sweep fold."""
        k, reduces, values = self.k, self.plan.sweeps[number], self.values[number]
        wanted = [reduce.operands[0] for reduce in reduces]
        folds = [self.plan.lane_fold(k, reduce) for reduce in reduces]
        arrays = fetching_next(self.plan, self.arrays, self.to_next, number)

        def fold(begin: Value, rows: int) -> VectorFold:
            places = [Coordinate(k.add(begin, below)) for below in range(rows)]

            def of_vector(vector: Vector, state: Sequence[Element]) -> Sequence[Element]:
                graph = ElementGraph(self.ix, arrays, self._per_column(vector.number, number, wanted))
                for place in places:
                    index = self._index(vector.number, {self._folded: place})
                    elements = graph.values([(value, index) for value in wanted])
                    state = [
                        splat(k, folded, self.ix.lanes)
                        for each, old, element in zip(folds, state, elements, strict=True)
                        for folded in each.step([old], [element])
                    ]
                return state

            return of_vector

        values.begin(self.count)
        WideFold(values, self.count, self.rows, fold, weight=self.vectors).emit(k, self.length)

    def store(self, outputs: Sequence[Array]) -> None:
        with self.k.loop(0, self.count) as vectors:
            known = self._per_column(vectors.index, len(self.plan.sweeps), self.plan.roots)
            place = self._place(vectors.index)
            graph = ElementGraph(self.ix, self.arrays, known)
            places = [self.ix.reshaped(place, root.shape.dims) for root in self.plan.roots]
            results = graph.values([*zip(self.plan.roots, places, strict=True)])
            for output, index, result in zip(outputs, places, results, strict=True):
                output.store(self.ix, index, result)

    def _per_column(self, vector: Value, sweep: int, wanted: Sequence[Instruction]) -> dict[Instruction, Element]:
        """What `wanted` take of which a column has one value: results of the sweeps before one, and what is made from
        them."""
        return self._made(vector, self._folded_before(vector, sweep), wanted)

    def _folded_before(self, vector: Value, sweep: int) -> dict[Instruction, Element]:
        """Results of the sweeps before one."""
        return {
            reduce: rounded(self.k, self.plan.lane_fold(self.k, reduce).finish([state])[0], reduce.shape.type)
            for reduces, values in zip(self.plan.sweeps[:sweep], self.values, strict=False)
            for reduce, state in zip(reduces, values.load(vector), strict=True)
        }

    def _made(
        self, vector: Value, known: Mapping[Instruction, Element], wanted: Sequence[Instruction]
    ) -> dict[Instruction, Element]:
        """What is known of a column, and what `wanted` take that is made from that."""
        made = [
            value
            for value in between(wanted, lambda i: i in known or i.opcode == "parameter")
            if value in self.plan.folded and self.plan.space.is_per_row(value) and value not in known
        ]
        place, graph = self._place(vector), ElementGraph(self.ix, self.arrays, known)
        elements = graph.values([(value, self.ix.reshaped(place, value.shape.dims)) for value in made])
        return {**known, **dict(zip(made, elements, strict=True))}

    def _column(self, vector: Value) -> Coordinate:
        return self.ix.along_lanes(self.k.add(self.first, self.k.mul(vector, self.ix.lanes)))

    def _place(self, vector: Value) -> Index:
        """Of the columns of a vector among all columns."""
        space = self.plan.space
        places = {**self.outer, len(space.dims) - 1: self._column(vector)}
        return Index(space.kept_dims, tuple(places[dim] for dim in space.kept))

    def _index(self, vector: Value, down: Mapping[int, Coordinate]) -> Index:
        """Of a row of a vector of columns among all elements."""
        dims, top = self.plan.space.dims, Coordinate(self.k.const(I64, 0))
        folded = {**dict.fromkeys(self.plan.space.folded, top), **down}
        places = {**self.outer, **folded, len(dims) - 1: self._column(vector)}
        return Index(dims, tuple(places[dim] for dim in range(len(dims))))


class _MergedStrip(_WideStrip):
    """A strip of which both folds are found in one sweep."""

    @property
    def _merged(self) -> MergedFolds:
        assert self.merged is not None
        return self.merged

    @staticmethod
    def starts(k: KernelBuilder, plan: WideColumnPlan, arrays: Mapping[Instruction, Array]) -> list[list[Element]]:
        assert plan.merged is not None
        return [[*plan.merged.merging(k).start()]]

    def fold(self, number: int) -> None:
        """Folds some rows at a time in registers, while as many below them are fetched, where the processor had better
        be asked: those of a Zen 3, 16 KB apart, have no room in its first-level cache beside these (variances of
        4096x4096 f32 take 5.0 ms on one core with that, 3.5 without)."""
        k, (values,) = self.k, self.values
        array, merging = self._merged.array, self._merged.merging(k)

        def fold(begin: Value, rows: int) -> VectorFold:
            places = [Coordinate(k.add(begin, below)) for below in range(rows)]
            merge = merging.merged(begin, rows)
            arrays = self._fetching(begin, rows) if self.asks_ahead else self.arrays

            def of_vector(vector: Vector, state: Sequence[Element]) -> Sequence[Element]:
                graph = ElementGraph(self.ix, arrays, {})
                indices = [self._index(vector.number, {self._folded: place}) for place in places]
                elements = graph.values([(array, index) for index in indices])
                first, second = map(only, state)
                return merge(first, second, [only(splat(k, element, self.ix.lanes)) for element in elements])

            return of_vector

        values.begin(self.count)
        WideFold(values, self.count, self.rows, fold, weight=self.vectors).emit(k, self.length)

    def _fetching(self, begin: Value, rows: int) -> dict[Instruction, Array]:
        """The arrays, of which the rows below some rows are fetched, or the first ones of the next strip."""
        k, fetched = self.k, dict(self.arrays)
        is_last = k.compare("ge", k.add(begin, rows), self.length)
        for operand, to_next in self.to_next.items():
            row_bytes = k.mul(self.columns, memory_type(operand.shape.type).bytes)
            following = k.select(is_last, k.sub(to_next, k.mul(begin, row_bytes)), k.mul(row_bytes, rows))
            fetched[operand] = fetched_below(self.arrays[operand], following)
        return fetched

    def _folded_before(self, vector: Value, sweep: int) -> dict[Instruction, Element]:
        """Both results: the second one is found when the center is known that the program has."""
        merged, merging = self._merged, self._merged.merging(self.k)
        first, second = (only(value) for value in self.values[0].load(vector))
        known = {merged.first: self._with_init(merged.first, merging.first(first, second))}
        center = self._center(vector, self._made(vector, known, [merged.second.operands[0]]))
        total = merging.second(first, second, center, self.length)
        return {**known, merged.second: self._with_init(merged.second, total)}

    def _center(self, vector: Value, known: Mapping[Instruction, Element]) -> Value:
        graph, center = ElementGraph(self.ix, self.arrays, known), self._merged.center
        index = self.ix.reshaped(self._place(vector), center.shape.dims)
        return only(splat(self.k, graph.values([(center, index)])[0], self.ix.lanes))

    def _with_init(self, reduce: Instruction, folded: Value) -> Element:
        """Folded as well: what the reduce begins with."""
        k, fold = self.k, self.plan.lane_fold(self.k, reduce)
        (init,) = ElementGraph(Indexing(k, 1), self.arrays).values([(reduce.operands[1], SCALAR)])
        (state,) = fold.step([splat(k, fold.start([init])[0], self.ix.lanes)], [folded])
        return rounded(k, fold.finish([state])[0], reduce.shape.type)
