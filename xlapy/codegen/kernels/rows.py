"""Row kernels: reduces over the rows of an array, and what is computed from them for the same rows.

    for row in [begin, end):
        m = max(x[row])                         one sweep over the row per reduce,
        s = sum(e[:] = exp(x[row] - m))         keeping what a later sweep needs and is dear to compute,
        result[row] = e[:] / s                  and one for the results

A row is in the nearest cache from the second sweep on, so memory is read once. Each reduce folds its row as the reduce
kernel does, in the same order. The end of a fold is a chain of operations that wait for each other; so that there is
something to do meanwhile, short rows are taken in blocks, each sweep going over all rows of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import SCALAR, Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.loop import is_streamed, widest_lanes
from xlapy.codegen.kernels.reduce import ReducePlan, fold_along, plan_reduce
from xlapy.codegen.kernels.strip import past_caches, strip
from xlapy.codegen.kernels.sweeps import readers_of_sweeps, sources_of_sweeps, uses_of_sweeps
from xlapy.codegen.kernels.wide_blocks import PAGE_BYTES
from xlapy.codegen.registers import Element, memory_type, rounded, splat
from xlapy.codegen.target import Target
from xlapy.hlo.column_folds import ColumnFold, column_folds
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import LEAST_ROWS, MOST_ROW_BYTES, RowSpace, fusion_roots, row_space
from xlapy.hlo.shape import Shape
from xlapy.support.errors import InternalError
from xlapy_runtime.records import Record


class RowPlan(Record):
    """The sweeps over a row: one for each reduce, then one for the results that are whole arrays.

    `kept[n]` are the values that sweep n computes and later ones read from scratch, `sources[n]` what it begins with,
    scratch and the results of earlier sweeps among it, `readers` the sweeps that read each operand that is a whole
    array, `busy` those that compute elementary functions of elements. `beforehand[n]` are values per row that sweep n
    makes its elements from, of those that need no reduce, or take a function: a division or a function, which may have
    a branch, would otherwise be done for each vector, as it must not move to where it might not be wanted."""

    space: RowSpace
    reduces: tuple[ReducePlan, ...]
    roots: tuple[Instruction, ...]
    columns: tuple[ColumnFold, ...]
    kept: tuple[tuple[Instruction, ...], ...]
    sources: tuple[frozenset[Instruction], ...]
    readers: dict[Instruction, tuple[int, ...]]
    busy: frozenset[int]
    beforehand: tuple[tuple[Instruction, ...], ...]
    lanes: int  # of the last sweep
    block: int  # rows that are taken together
    together: int  # of these, in the last sweep, side by side
    unit_rows: int  # in a unit of work: a block, or a part of which columns are folded
    bytes_per_unit: int
    streaming: bool  # whole results are too large to stay in cache until somebody reads them

    @property
    def units(self) -> int:
        return -(-self.space.rows // self.unit_rows)

    def fetching_sweep(self, operand: Instruction) -> int:
        """Of several sweeps that read rows of an operand, the one that fetches the next rows: not the first, but one
        that has much to compute, if there is one."""
        _, *later = self.readers[operand]
        return next((sweep for sweep in later if sweep in self.busy), later[0])

    @property
    def hosting_sweep(self) -> int:
        """The fold beside which another block is finished: one that has much to compute, if there is one."""
        folds = range(len(self.reduces))
        return max((sweep for sweep in folds if sweep in self.busy), default=folds[-1])

    def is_per_row(self, root: Instruction) -> bool:
        """A result has one value for each row."""
        return not self.space.is_full(root) and all(root is not fold.reduce for fold in self.columns)


@dataclass(frozen=True, slots=True)
class Extent:
    """How many rows there are, how long they are, and how many are taken together: constants, unless a kernel finds out
    when it runs. There is room for the most rows that may be taken together, and for their elements. The last sweep
    goes over `together` of them side by side, which share what is read of arrays that are repeated for all rows.
    `fits` says that nothing is left over of a row, as vectors are taken.

    With `delays`, the last sweep over a block is part of a fold of the next block: what divides, or waits for memory,
    does so beside what computes. The rows then have one dimension, and what folds them is asked for some elements twice
    unless all `fits`. What is kept of a block for which there is no room lies in `scratch` memory, if that is given."""

    rows: Value
    length: Value
    block: Value
    most_rows: int
    most_elements: int
    streams: Value  # whether results go past the caches
    together: int = 1
    fits: bool = False
    delays: bool = False
    scratch: Value | None = None

    @classmethod
    def of(cls, k: KernelBuilder, plan: RowPlan) -> Extent:
        space, block = plan.space, plan.block
        rows, length, together = (k.const(I64, size) for size in (space.rows, space.row_length, block))
        return cls(rows, length, together, block, block * space.row_length, k.const(I1, plan.streaming), plan.together)


@dataclass(frozen=True, slots=True)
class RowScratch(Array):
    """One row of an array, wherever in the array it is."""

    kept: int = 0  # dimensions that count rows

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        return ix.linearize(ix.split(index)[self.kept :], self.shape.strides()[self.kept :])


def bytes_to_other_half(size: int) -> int:
    """From what is kept of a block of so many bytes to what is kept of the next: half a page and some whole ones, since
    a load waits for a store to the same place of any page."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES // 2


def plan_rows(
    computation: Computation, operand_bytes: int, target: Target, *, in_place: bool, part: int = 0
) -> RowPlan:
    """How to run a fused computation of row kind. `in_place`: some output is also an operand; `part`: rows for which
    the kernel is called at a time, if not all."""
    roots = fusion_roots(computation)
    first, *others = (instruction for instruction in computation.post_order() if instruction.opcode == "reduce")
    space = row_space(first)
    if space is None:
        raise InternalError(f"{first} folds no rows")
    columns = tuple(column_folds(computation))
    of_columns = {fold.reduce for fold in columns}
    reduces = [first, *(reduce for reduce in others if reduce not in of_columns)]
    full = [root for root in roots if space.is_full(root)]
    last_sweep = [*full, *(fold.value for fold in columns)]
    block, together = _rows_taken(space, columns, part, in_place=in_place)
    sweeps = [[reduce.operands[0]] for reduce in reduces] + [last_sweep]
    uses = uses_of_sweeps(space, sweeps, MOST_ROW_BYTES // block)
    kept = tuple(tuple(uses.made_in(sweep)) for sweep in range(len(sweeps)))
    known = frozenset([*computation.parameters, *reduces, *(value for values in kept for value in values)])
    plans = tuple(
        plan_reduce(reduce, (reduce,), (known.difference({reduce}, *kept[sweep:])).__contains__, 0, target)
        for sweep, reduce in enumerate(reduces)
    )
    last = space.dims[-1]
    inside = between(last_sweep, (known - {*full}).__contains__)
    lanes = min(widest_lanes(inside, target), 1 << (last.bit_length() - 1))
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    streaming = not (in_place or part) and bool(full) and is_streamed(full, lanes, target)
    unit_rows = columns[0].part_rows if columns else block
    readers = readers_of_sweeps(space, sweeps, kept)
    busy = frozenset(sweep for sweep, goals in enumerate(sweeps) if _has_functions(space, goals, kept[:sweep]))
    per_row = [root for root in roots if not (root in of_columns or space.is_full(root))]
    sources = [frozenset(found) for found in sources_of_sweeps([*sweeps[:-1], [*last_sweep, *per_row]], kept)]
    beforehand = tuple(_made_beforehand(space, goals, found) for goals, found in zip(sweeps, sources, strict=True))
    return RowPlan(
        space,
        plans,
        roots,
        columns,
        kept,
        tuple(sources),
        readers,
        busy,
        beforehand,
        lanes,
        block,
        together,
        unit_rows,
        total * unit_rows // space.rows,
        streaming,
    )


def _rows_taken(space: RowSpace, columns: Sequence[ColumnFold], part: int, *, in_place: bool) -> tuple[int, int]:
    """How many rows make a block, and how many of these the last sweep takes side by side. Where it folds columns, each
    is read and written once for all of those."""
    if not columns:
        return space.rows_at_once(in_place=in_place, part=part), 1
    rows = columns[0].part_rows
    block = space.rows_at_once(in_place=in_place, part=rows)
    if block == 1 and rows % LEAST_ROWS == 0:
        block = LEAST_ROWS
    return block, LEAST_ROWS if block % LEAST_ROWS == 0 else 1


def _has_functions(space: RowSpace, goals: Sequence[Instruction], kept: Sequence[Sequence[Instruction]]) -> bool:
    """Whether a sweep computes elementary functions of elements, with what earlier ones have kept."""
    known = {value for values in kept for value in values}
    inside = between(goals, lambda i: i in known or i.opcode in ("parameter", "reduce"))
    return any(value.opcode in TRANSCENDENTAL and space.is_full(value) for value in inside if value not in known)


def _made_beforehand(
    space: RowSpace, goals: Sequence[Instruction], sources: frozenset[Instruction]
) -> tuple[Instruction, ...]:
    """The values per row that elements are made from, unless they are sources. One that is read in the order of places
    in a row, too, as arrays of as many rows as places may be, has no one value for a row."""
    inside = between(goals, sources.__contains__)
    elsewhere = space.read_elsewhere(inside)
    repeated = (i.operands[0] for i in inside if i.opcode == "broadcast" and space.is_full(i) and space.continues(i))
    values = dict.fromkeys(value for value in repeated if value not in elsewhere and value not in sources)
    return tuple(value for value in values if _must_not_wait(value, sources))


def _must_not_wait(value: Instruction, sources: frozenset[Instruction]) -> bool:
    """What makes a value per row does not move out of loops by itself."""
    inside = between([value], sources.__contains__)
    needs_no_reduce = all(i.opcode != "reduce" for i in inside)
    return needs_no_reduce or any(i.opcode in TRANSCENDENTAL for i in inside if i not in sources)


def emit_rows(
    k: KernelBuilder,
    plan: RowPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    *,
    in_place: bool,
    extent: Extent | None = None,
) -> None:
    """Writes the kernel over blocks of rows [begin, end). `in_place`: some output is also an operand. With an `extent`,
    that is what counts, and not the sizes of the plan, whose rows then have one dimension."""
    extent = extent or Extent.of(k, plan)
    block = _Block(k, plan, extent, arrays)
    whole = _past_caches(k, plan, extent, outputs) if plan.streaming else outputs
    results = _Results(outputs, whole, overlapping=not (in_place or plan.columns))
    if plan.columns:
        blocks = plan.unit_rows // plan.block
        with k.loop(begin, end) as parts:
            _begin_columns(block, outputs, parts.index)
            _over_blocks(block, results, k.mul(parts.index, blocks), k.mul(k.add(parts.index, 1), blocks))
    else:
        (_over_blocks_with_delay if extent.delays else _over_blocks)(block, results, begin, end)
    if plan.streaming:
        k.fence()


def _begin_columns(block: _Block, outputs: Sequence[Array], part: Value) -> None:
    """Gives the columns of a part what their folds begin with."""
    k, plan = block.k, block.plan
    length, graph = plan.space.row_length, ElementGraph(Indexing(k, 1), block.arrays)
    begin = k.mul(part, length)
    for fold, output in _results_of_columns(plan, outputs):
        (identity,) = graph.values([(fold.reduce.operands[1], SCALAR)])
        store = partial(_store_at, output, identity)
        strip(k, begin, k.add(begin, length), plan.lanes, store, overlapping=True, fits=not length % plan.lanes)


def _store_at(output: Array, element: Element, ix: Indexing, position: Value) -> None:
    """Stores the same element for all lanes, from the one with a number on."""
    output.store(ix, Index(output.shape.dims, None, ix.along_lanes(position)), splat(ix.k, element, ix.lanes))


def _results_of_columns(plan: RowPlan, outputs: Sequence[Array]) -> list[tuple[ColumnFold, Array]]:
    """The folds of columns, and where their results are."""
    places = dict(zip(plan.roots, outputs, strict=True))
    return [(fold, places[fold.reduce]) for fold in plan.columns]


class _Results(Record):
    """The outputs: as one value per row is stored to them, and as whole arrays are; in vectors of which the last one of
    a row may repeat elements of the one before, if they are `overlapping`."""

    outputs: Sequence[Array]
    whole: Sequence[Array]
    overlapping: bool


def _over_blocks(block: _Block, results: _Results, begin: Value, end: Value) -> None:
    """All sweeps over each of some blocks of rows."""
    k, extent = block.k, block.extent
    inits = block.inits()
    with k.loop(begin, end) as units:
        first = block.first_row(units.index)
        for sweep, init in enumerate(inits):
            with k.loop(0, extent.block) as rows:
                block.row(first, rows.index, sweep).reduce(init)
        _last_sweep(block, results, first)


def _over_blocks_with_delay(block: _Block, results: _Results, begin: Value, end: Value) -> None:
    """The same, with the last sweep over each block beside the fold of the next one that computes most."""
    k, extent, inits, host = block.k, block.extent, block.inits(), block.plan.hosting_sweep
    with k.loop(begin, end) as units:
        unit = units.index
        first, before = block.first_row(unit), block.first_row(k.sub(unit, 1))
        half, other = k.and_(unit, 1), k.xor(k.and_(unit, 1), 1)
        for sweep, init in enumerate(inits):
            with k.loop(0, extent.block) as rows:
                slot = rows.index
                fold = partial(block.row(first, slot, sweep, half).reduce, init)
                if sweep != host:
                    fold()
                    continue
                late_row = partial(block.row, before, slot, len(inits), other)
                beside = partial(_fold_beside, fold, late_row, results)
                k.if_else(k.compare("eq", unit, begin), fold, beside, likely=False)
    with k.if_(k.compare("lt", begin, end)):
        unit = k.sub(end, 1)
        _last_sweep(block, results, block.first_row(unit), k.and_(unit, 1))


def _fold_beside(fold: Callable[..., None], late_row: Callable[[], _Row], results: _Results) -> None:
    """Folds a row, and stores the results of a late one meanwhile."""
    row = late_row()
    values = row.values_per_row()
    fold(_LateRow(row, results.whole))
    row.store_per_row(results.outputs, values)


def _last_sweep(block: _Block, results: _Results, first: Value, half: Value | None = None) -> None:
    """Stores the results of a block."""
    k, extent, sweep = block.k, block.extent, len(block.plan.reduces)
    with k.loop(0, extent.block, extent.together) as rows:
        slots = [k.add(rows.index, number) for number in range(extent.together)]
        group = [block.row(first, slot, sweep, half) for slot in slots]
        # What is stored may take the place of an operand, so all that reads one comes first.
        values = [row.values_per_row() for row in group]
        store_full(group, results.whole, overlapping=results.overlapping)
        for row, own in zip(group, values, strict=True):
            row.store_per_row(results.outputs, own)


def _past_caches(k: KernelBuilder, plan: RowPlan, extent: Extent, outputs: Sequence[Array]) -> list[Array]:
    """The outputs, those of whole arrays stored past the caches if all vectors of all rows lie so that this may be."""
    is_off = k.xor(extent.streams, 1)
    lanes = max(plan.lanes, plan.reduces[plan.hosting_sweep].lanes if extent.delays else 1)
    placed = []
    for root, output in zip(plan.roots, outputs, strict=True):
        if plan.space.is_full(root):
            width = memory_type(root.shape.type).bytes
            row_bytes = k.mul(extent.length, width)
            (output,) = past_caches(k, [output], lanes * width, apart=row_bytes, unless=is_off)
        placed.append(output)
    return placed


class _Block:
    """Room for what the rows of a block keep from one sweep to the next: one row of each kept value, and the results
    of the reduces. Where the last sweep comes late, there are two halves of it, for blocks in turns."""

    def __init__(self, k: KernelBuilder, plan: RowPlan, extent: Extent, arrays: Mapping[Instruction, Array]) -> None:
        self.k = k
        self.plan = plan
        self.extent = extent
        self.arrays = arrays
        self.values = {reduce.reduce: self._room(reduce.reduce, extent.most_rows) for reduce in plan.reduces}
        kept = [value for values in plan.kept for value in values]
        self.kept = {value: self._room(value, extent.most_elements) for value in kept}
        if extent.scratch is not None:
            self._keep_in_scratch(extent.scratch)

    def _room(self, instruction: Instruction, elements: int) -> Value:
        type, size = memory_type(instruction.shape.type), elements * instruction.shape.type.bytes
        if self.extent.delays:
            size += bytes_to_other_half(size)
        return self.k.alloca(type, size // type.bytes, align=64)

    def _keep_in_scratch(self, scratch: Value) -> None:
        """Takes memory that is told where rows are longer than there is room for."""
        k, extent = self.k, self.extent
        elements = k.mul(extent.block, extent.length)
        is_long = k.compare("gt", elements, extent.most_elements)
        for value, room in self.kept.items():
            self.kept[value] = k.select(is_long, scratch, room)
            scratch = k.gep(scratch, self._bytes_to_other_half(value, elements), 2)

    def _bytes_to_other_half(self, value: Instruction, elements: Value) -> Value:
        """The same as `bytes_to_other_half`, of so many elements."""
        k = self.k
        pages = k.and_(k.add(k.mul(elements, value.shape.type.bytes), PAGE_BYTES - 1), -PAGE_BYTES)
        return k.add(pages, PAGE_BYTES // 2)

    def inits(self) -> list[Element]:
        """What the reduces begin with."""
        graph = ElementGraph(Indexing(self.k, 1), self.arrays)
        return [graph.values([(reduce.reduce.operands[1], SCALAR)])[0] for reduce in self.plan.reduces]

    def first_row(self, unit: Value) -> Value:
        """Of a unit. The last ones overlap those before them."""
        k, extent = self.k, self.extent
        return k.smin(k.mul(unit, extent.block), k.sub(extent.rows, extent.block))

    def row(self, first: Value, slot: Value, sweep: int, half: Value | None = None) -> _Row:
        """Row `first + slot`, as sweep number `sweep` finds it."""
        k, plan, most_rows = self.k, self.plan, self.extent.most_rows
        sources = plan.sources[sweep]
        stored = {value: self._scratch(value, slot, half) for value in self.kept if value in sources}
        results = {
            reduce: Array(
                self._in_half(room, reduce, k.const(I64, most_rows), half),
                Shape.array(reduce.shape.element_type, (most_rows,)),
                f"value.{reduce.name}",
                False,
            )
            for reduce, room in self.values.items()
        }
        scalar = Indexing(k, 1)
        place = Index((most_rows,), (Coordinate(slot),))
        known = {reduce: result.load(scalar, place) for reduce, result in results.items() if reduce in sources}
        scratch = {value: self._scratch(value, slot, half) for value in plan.kept[sweep]}
        arrays = {**self._fetched(sweep), **stored}
        number = k.add(first, slot)
        beforehand = plan.beforehand[sweep]
        made = ElementGraph(scalar, arrays, known).values([(i, _place_in(i, scalar, number)) for i in beforehand])
        known.update(zip(beforehand, made, strict=True))
        return _Row(k, plan, self.extent, sweep, arrays, scratch, results, known, place, number)

    def _in_half(self, room: Value, value: Instruction, elements: Value, half: Value | None) -> Value:
        """Where a half of the room for so many elements begins."""
        k = self.k
        return room if half is None else k.gep(room, k.mul(half, self._bytes_to_other_half(value, elements)))

    def _scratch(self, value: Instruction, slot: Value, half: Value | None) -> Array:
        """Where a row of a block keeps a value."""
        k, extent = self.k, self.extent
        room = self._in_half(self.kept[value], value, k.mul(extent.block, extent.length), half)
        pointer = k.gep(room, k.mul(slot, extent.length), memory_type(value.shape.type).bytes)
        return RowScratch(pointer, value.shape, f"row.{value.name}", read_only=False, kept=len(self.plan.space.kept))

    def _fetched(self, sweep: int) -> dict[Instruction, Array]:
        """The operands. Of rows that several sweeps read, which are in a cache from the first one on, those of the next
        block are fetched by a later one, which waits for nothing else."""
        k, fetched = self.k, dict(self.arrays)
        for instruction, sweeps in self.plan.readers.items():
            array = self.arrays[instruction]
            if array.ahead and len(sweeps) > 1:
                row_bytes = k.mul(self.extent.length, memory_type(array.shape.type).bytes)
                following = (
                    k.mul(row_bytes, self.extent.block) if sweep == self.plan.fetching_sweep(instruction) else None
                )
                fetched[instruction] = replace(array, ahead=0, following=following)
        return fetched


class _Row(Record):
    """One row in one sweep: the arrays that can be read, and the values per row that are known."""

    k: KernelBuilder
    plan: RowPlan
    extent: Extent
    sweep: int
    arrays: Mapping[Instruction, Array]
    scratch: Mapping[Instruction, Array]
    results: Mapping[Instruction, Array]
    scalars: Mapping[Instruction, Element]
    place: Index  # in the block
    number: Value

    def reduce(self, init: Element, late: _LateRow | None = None) -> None:
        """Folds the row, and keeps what later sweeps need of what this one computes; stores the results of a `late` row
        meanwhile."""
        plan = self.plan.reduces[self.sweep]
        length = self.extent.length
        size = length if length.constant is None else None
        element = partial(self._element, late=late)
        result = fold_along(self.k, plan, self.positions(), init, element, size, fits=self.extent.fits)
        value = rounded(self.k, result, plan.reduce.shape.type)
        self.results[plan.reduce].store(Indexing(self.k, 1), self.place, value)

    def _element(self, ix: Indexing, index: Index, *, late: _LateRow | None) -> Element:
        """The element that is folded; what is kept of it goes to scratch. What a late row reads comes before that: the
        processor takes a store to the same place of any page for one of what is read behind it."""
        kept = self.plan.kept[self.sweep]
        operand = self.plan.reduces[self.sweep].reduce.operands[0]
        graph = ElementGraph(ix, self.arrays, self.scalars)
        value, *others = graph.values([(instruction, index) for instruction in (operand, *kept)])
        stores = [] if late is None else late.stores(ix, index)
        for instruction, other in zip(kept, others, strict=True):
            self.scratch[instruction].store(ix, index, other)
        for store in stores:
            store()
        return value

    def elements(self, ix: Indexing, requests: Sequence[tuple[Instruction, Index]]) -> list[Element]:
        return ElementGraph(ix, self.arrays, self.scalars).values(requests)

    def values_per_row(self) -> list[Element]:
        """The results that have one value for the row."""
        graph = ElementGraph(Indexing(self.k, 1), self.arrays, self.scalars)
        roots = [root for root in self.plan.roots if self.plan.is_per_row(root)]
        return graph.values([(root, _place_in(root, graph.ix, self.number)) for root in roots])

    def store_per_row(self, outputs: Sequence[Array], values: Sequence[Element]) -> None:
        scalar = Indexing(self.k, 1)
        placed = zip(self.plan.roots, outputs, strict=True)
        own = [(root, output) for root, output in placed if self.plan.is_per_row(root)]
        for (root, output), value in zip(own, values, strict=True):
            output.store(scalar, _place_in(root, scalar, self.number), value)

    @property
    def part(self) -> Value:
        """The part that the row is in."""
        return self.k.udiv(self.number, self.plan.unit_rows)

    def positions(self) -> dict[int, Coordinate]:
        """Where the row is in the dimensions that count rows."""
        dims = self.plan.space.kept_dims
        return dict(enumerate(Indexing(self.k, 1).delinearize(Coordinate(self.number), dims)))


class _LateRow(Record):
    """A row whose results are stored while another one is folded."""

    row: _Row
    outputs: Sequence[Array]

    def stores(self, ix: Indexing, index: Index) -> list[Callable[[], None]]:
        """Computes the results at the same place of this row, and answers what stores them."""
        row, along = self.row, ix.split(index)[-1]
        place = Index(index.dims, (Coordinate(row.number), along), mask=index.mask)
        placed = zip(row.plan.roots, self.outputs, strict=True)
        full = [(root, output) for root, output in placed if row.plan.space.is_full(root)]
        values = row.elements(ix, [(root, place) for root, _ in full])
        return [partial(output.store, ix, place, value) for (_, output), value in zip(full, values, strict=True)]


def _place_in(values: Instruction, scalar: Indexing, row: Value) -> Index:
    """Where the value of a row is in an array that has one for each."""
    dims = values.shape.dims
    return Index(dims, scalar.delinearize(Coordinate(row), dims))


def store_full(rows: Sequence[_Row], outputs: Sequence[Array], *, overlapping: bool) -> None:
    """The last sweep, over some rows side by side: the results that have a value per element, or are folds of such."""
    k, plan = rows[0].k, rows[0].plan
    dims, kept = plan.space.dims, len(plan.space.kept)
    starts = [[*row.positions().values()] for row in rows]
    full = [(root, output) for root, output in zip(plan.roots, outputs, strict=True) if plan.space.is_full(root)]
    columns = _results_of_columns(plan, outputs)
    wanted = [*(root for root, _ in full), *(fold.value for fold, _ in columns)]

    def nest(inner: tuple[Coordinate, ...]) -> None:
        dim = kept + len(inner)
        if dim < len(dims) - 1:
            with k.loop(0, dims[dim]) as loop:
                nest((*inner, Coordinate(loop.index)))
            return

        def step(ix: Indexing, position: Value) -> None:
            last = ix.along_lanes(position)
            indices = [Index(dims, (*start, *inner, last)) for start in starts]
            made = [
                row.elements(ix, [(value, index) for value in wanted]) for row, index in zip(rows, indices, strict=True)
            ]
            for index, values in zip(indices, made, strict=True):
                for (_, output), value in zip(full, values, strict=False):
                    output.store(ix, index, value)
            for number, (fold, output) in enumerate(columns, len(full)):
                place = (Coordinate(rows[0].part), *inner, last)
                _add_to_column(ix, fold, output, place, [values[number] for values in made])

        _over_row(k, rows[0].extent, plan, step, overlapping=overlapping)

    if wanted:
        nest(())


def _add_to_column(
    ix: Indexing, fold: ColumnFold, output: Array, place: tuple[Coordinate, ...], values: Sequence[Element]
) -> None:
    """Folds elements of each lane, one of each row, onto the running value of its column."""
    index = Index(output.shape.dims, place)
    combiner = fold.reduce.called[0].root
    folded = output.load(ix, index)
    for value in values:
        folded = emit_element(ix.k, combiner, [folded, value], unrounded=True)
    output.store(ix, index, rounded(ix.k, folded, fold.reduce.shape.type))


def _over_row(
    k: KernelBuilder, extent: Extent, plan: RowPlan, step: Callable[[Indexing, Value], None], *, overlapping: bool
) -> None:
    """Runs `step` over the last dimension; if its size is not known, over whole vectors, and over a last one where they
    leave something over."""
    begin, lanes, length, fits = k.const(I64, 0), plan.lanes, extent.length, extent.fits
    if length.constant is not None or fits or not overlapping:
        size = length if length.constant is None else k.const(I64, plan.space.dims[-1])
        strip(k, begin, size, lanes, step, overlapping=overlapping, fits=fits)
        return
    whole = k.and_(length, -lanes)
    strip(k, begin, whole, lanes, step, overlapping=True, fits=True)
    with k.if_(k.compare("lt", whole, length)):
        step(Indexing(k, lanes), k.sub(length, lanes))
