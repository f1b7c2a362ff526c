"""Column kernels: reduces down the columns of an array, and what is computed from them for the same columns.

    for strip of neighbouring columns:
        for i: m[:] = max(m[:], x[i, strip])       one sweep down the strip for all reduces that need no other one,
        for i: s[:] += e[i] = exp(x[i, strip] - m) keeping what a later sweep needs,
        for i: result[i, strip] = e[i] / s         and one for the results

Lanes lie across columns, and fold them in the order of the elements, as the reduce kernel does. What is dear to
compute is kept, each value from the sweep that makes it to the last one that reads it: then its place is free for what
that one makes.

A few arrays that are joined to make columns, as the directions of a lattice are, have code of their own; and strips
where nothing else is joined or padded have their own code for all of it, which asks no lane where it is.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import SCALAR, Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I8, I64, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.fetching import fetched_by_rows
from xlapy.codegen.kernels.lane_folds import LaneFold, is_found_in_order, lane_fold
from xlapy.codegen.kernels.loop import is_streamed, power_of_two_below, widest_lanes, work_per_element
from xlapy.codegen.kernels.padded_rows import Interior, interior_of, is_within, joined_dims
from xlapy.codegen.kernels.strip import past_caches
from xlapy.codegen.kernels.sweeps import Uses, is_parameter, readers_of_sweeps, uses_of_sweeps
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES
from xlapy.codegen.registers import Element, flatten, memory_type, rounded, splat, unflatten
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import MOST_REREAD_BYTES, WIDEST_STRIP, RowSpace, fusion_roots, row_space
from xlapy.support.errors import InternalError
from xlapy_runtime.records import Record

MOST_WORK = 1024  # operations in the code of one sweep, which has a part for each vector
MOST_WORK_IN_CACHE = 256
"""The same where memory is not waited for: LLVM takes a third of the time (logarithms of sums of exponentials)."""

MOST_PARTS_DOWN = 32
"""Elements of a column that have code of their own: lattices have 9, 19 or 27 directions."""

MEMORY_BYTES = 32 << 20
LEAST_KEPT_BYTES = 1 << 20  # that strips may have of what is kept: about a second-level cache
MOST_KEPT_BYTES = 1 << 21  # the same, where the last cache has room for those of several cores
STRIPS_IN_LAST_CACHE = 16
TASKS_PER_CORE = 2
"""Where strips are kept. Each task has memory of its own for them, which lies in a cache from its second strip on: with
16 tasks rather than four, a softmax of 4096 columns of 4096 f32 takes 7.9 ms on one core of a Zen 5, not 7.3, and 5.1
on two, not 4.4."""

FEW_STRIPS = 8  # that there should be at the least where threads share them
MOST_STACK_BYTES = 64 * 1024  # of what is kept; more is memory of the program
ALIGNMENT = 64


class Kept(Record):
    """A value of which a strip is kept, from the sweep that makes it to the last one that reads it."""

    value: Instruction
    made: int
    slot: int


class ColumnPlan(Record):
    """The sweeps down a strip of columns: the reduces of each, and what it leaves for later ones. The last sweep has no
    reduce, but the results that are whole arrays."""

    space: RowSpace
    sweeps: tuple[tuple[Instruction, ...], ...]
    folded: frozenset[Instruction]  # all that is made from a reduce
    roots: tuple[Instruction, ...]
    kept: tuple[Kept, ...]
    slot_bytes: tuple[int, ...]  # of an element
    lanes: int
    vectors: int
    bytes_per_unit: int
    streaming: bool  # whole results are too large to stay in cache until somebody reads them
    readers: dict[Instruction, tuple[int, ...]]  # the sweeps that read each operand that is a whole array
    in_order: frozenset[Instruction]  # the reduces that find extrema of floats among integers
    joined: tuple[tuple[int, ...], ...]  # of each sweep: the folded dimensions whose elements have code of their own
    interior: Interior  # where nothing is asked of what is joined or padded in other dimensions

    @property
    def width(self) -> int:
        """Columns in a strip."""
        return self.lanes * self.vectors

    @property
    def strips(self) -> int:
        """How many lie side by side; the last one may overlap the one before it."""
        return -(-self.space.dims[-1] // self.width)

    @property
    def units(self) -> int:
        return self.space.rows // self.space.dims[-1] * self.strips

    @property
    def scratch_bytes(self) -> int:
        return sum(self.slot_bytes) * self.space.row_length * self.width

    @property
    def fits_stack(self) -> bool:
        return self.scratch_bytes <= MOST_STACK_BYTES

    @property
    def is_short(self) -> bool:
        """A near cache holds what a strip has of an operand, beside what the next one has."""
        widest = max((memory_type(operand.shape.type).bytes for operand in self.readers), default=0)
        return self.space.row_length * self.width * widest <= MOST_REREAD_BYTES

    def lane_fold(self, k: KernelBuilder, reduce: Instruction) -> LaneFold:
        """How lanes fold by a reduce."""
        return lane_fold(k, reduce.called[0], in_order=reduce in self.in_order)

    @property
    def full_roots(self) -> list[Instruction]:
        return [root for root in self.roots if self.space.is_full(root)]


# -- planning --------------------------------------------------------------------------------------------------------


def plan_columns(computation: Computation, operand_bytes: int, target: Target) -> ColumnPlan:
    """How to run a fused computation of row kind over columns."""
    roots = fusion_roots(computation)
    reduces = [instruction for instruction in computation.post_order() if instruction.opcode == "reduce"]
    space = row_space(reduces[0])
    if space is None:
        raise InternalError(f"{reduces[0]} folds no columns")
    levels = _levels(computation)
    sweeps = tuple(tuple(r for r in reduces if levels[r] == n) for n in range(1, max(levels.values()) + 1))
    full = [root for root in roots if space.is_full(root)]
    total = operand_bytes + sum(root.shape.bytes for root in roots)
    kept, slots = _kept_values(space, sweeps, full)
    members = [i for i in between(roots, is_parameter) if i.shape.is_array]
    lanes = min(widest_lanes(members, target, 1), power_of_two_below(space.dims[-1]))
    strips = FEW_STRIPS if total >= PARALLEL_BYTES else 1
    most_kept = max(LEAST_KEPT_BYTES, min(MOST_KEPT_BYTES, target.l3_bytes // STRIPS_IN_LAST_CACHE))
    widest = most_kept // max(1, sum(slots) * space.row_length)
    most_work = MOST_WORK if total >= MEMORY_BYTES else MOST_WORK_IN_CACHE
    vectors = _vectors(space, lanes, widest, strips, most_work // work_per_element(members))
    unit_bytes = total * lanes * vectors // space.rows
    streaming = space.has_whole_strips and bool(full) and is_streamed(full, lanes, target)
    folded = frozenset(i for i, level in levels.items() if level)
    goals = _goals(sweeps, full)
    made = [[own.value for own in kept if own.made == sweep] for sweep in range(len(goals))]
    readers = readers_of_sweeps(space, goals, made)
    in_order = frozenset(reduce for reduce in reduces if is_found_in_order(reduce, target))
    joined = tuple(
        _joined_down(space, [*own, *left], _sources(space, folded, made[:sweep]), most_work=MOST_WORK // vectors)
        for sweep, (own, left) in enumerate(zip(goals, made, strict=True))
    )
    interior = interior_of([goal for own in goals for goal in own], is_parameter, lanes * vectors)
    return ColumnPlan(
        space,
        sweeps,
        folded,
        roots,
        kept,
        slots,
        lanes,
        vectors,
        unit_bytes,
        streaming,
        readers,
        in_order,
        joined,
        {dim: inside for dim, inside in interior.items() if dim in space.kept},
    )


def _sources(
    space: RowSpace, folded: Collection[Instruction], made: Sequence[Sequence[Instruction]]
) -> Callable[[Instruction], bool]:
    """What a sweep begins with: operands, what has been `made` before, and what is known of columns."""
    left = {value for values in made for value in values}
    return lambda i: i.opcode == "parameter" or i in left or (i in folded and not space.is_full(i))


def _joined_down(
    space: RowSpace, goals: Sequence[Instruction], is_source: Callable[[Instruction], bool], most_work: int
) -> tuple[int, ...]:
    """The folded dimensions of a few elements, along which what a sweep computes is joined, if the code for each of the
    elements is not too much: who is in which operand is known there."""
    joined = joined_dims(goals, is_source).intersection(space.folded)
    parts = math.prod(space.dims[dim] for dim in joined)
    if not joined or parts > MOST_PARTS_DOWN:
        return ()
    order = between(goals, is_source)
    joins = [i for i in order if i.opcode == "concatenate" and i.attributes["dimension"] in joined and space.is_full(i)]
    behind = between([operand for join in joins for operand in join.operands], is_source)
    work = parts * (len(order) - len(behind)) + len(behind)
    return tuple(sorted(joined)) if work <= most_work else ()


def _vectors(space: RowSpace, lanes: int, widest: int, strips: int, most: int) -> int:
    """How many vectors make a strip: as many as a cache holds, which has room for `widest` columns, if enough strips
    are left, but `most` at the most. Wide strips are read much faster: memory, and what fetches ahead, are made for
    whole rows."""
    vectors, widest = 1, min(space.dims[-1], WIDEST_STRIP, widest, space.rows // strips)
    while 2 * vectors <= most and 2 * vectors * lanes <= widest:
        vectors *= 2
    return vectors


def _levels(computation: Computation) -> dict[Instruction, int]:
    """How many reduces lead to each instruction, one behind another."""
    levels: dict[Instruction, int] = {}
    for instruction in computation.post_order():
        before = max((levels[operand] for operand in instruction.operands), default=0)
        levels[instruction] = before + (instruction.opcode == "reduce")
    return levels


def _kept_values(
    space: RowSpace, sweeps: Sequence[Sequence[Instruction]], full: Sequence[Instruction]
) -> tuple[tuple[Kept, ...], tuple[int, ...]]:
    """What is dear to compute in one sweep and needed in a later one, and the bytes of an element of each slot for
    such."""
    goals = _goals(sweeps, full)
    uses = uses_of_sweeps(space, goals)
    moved = space.read_moved(between([goal for some in goals for goal in some], is_parameter))
    return _in_slots(sorted(uses.last, key=lambda value: uses.first[value]), uses, moved)


def _goals(sweeps: Sequence[Sequence[Instruction]], full: Sequence[Instruction]) -> list[Sequence[Instruction]]:
    """What each sweep computes, the one for whole results included."""
    return [*([reduce.operands[0] for reduce in sweep] for sweep in sweeps), full]


def _in_slots(
    values: Sequence[Instruction], uses: Uses, moved: Collection[Instruction]
) -> tuple[tuple[Kept, ...], tuple[int, ...]]:
    """Values in slots, each free again for what the last sweep that reads it makes; behind that, if it is `moved`: read
    at other places than that which is written."""
    slots: list[int] = []
    free_from: list[int] = []
    kept = []
    for value in values:
        size = memory_type(value.shape.type).bytes
        fitting = [n for n, own in enumerate(slots) if own == size and free_from[n] <= uses.first[value]]
        if not fitting:
            fitting = [len(slots)]
            slots.append(size)
            free_from.append(0)
        kept.append(Kept(value, uses.first[value], fitting[0]))
        free_from[fitting[0]] = uses.last[value] + (value in moved)
    return tuple(kept), tuple(slots)


@dataclass(frozen=True, slots=True)
class ColumnExtent:
    """How many elements a column has, how many columns and strips lie side by side, whether results go past the caches,
    and, of wide strips, how many vectors make one: for kernels that find out when they run, whose arrays have one
    dimension before the folded one. If it `fetches_next`, narrow strips bring along what the next one reads."""

    length: Value
    columns: Value
    strips: Value
    streams: Value | None = None
    vectors: Value | None = None
    fetches_next: bool = False


# -- code ------------------------------------------------------------------------------------------------------------


def emit_columns(
    k: KernelBuilder,
    plan: ColumnPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
    extent: ColumnExtent | None = None,
) -> None:
    """Writes the kernel over strips [begin, end). With an `extent`, that is what counts, and not the sizes of the plan;
    what is kept, and what is fetched ahead, is then for the caller to place."""
    scalar = Indexing(k, 1)
    has_own_room = extent is None and plan.fits_stack
    room = k.alloca(I8, plan.scratch_bytes, align=ALIGNMENT) if has_own_room else k.parameters["scratch"]
    inits = {
        reduce: ElementGraph(scalar, arrays).values([(reduce.operands[1], SCALAR)])[0]
        for sweep in plan.sweeps
        for reduce in sweep
    }
    if extent is None:
        arrays = fetched_by_rows(arrays, plan.space.dims, plan.space.folded[-1], plan.width)

    def run(strip: _Strip) -> None:
        for number in range(len(plan.sweeps)):
            strip.fold(number, inits)
        # What is stored may take the place of an operand, so all that reads one comes first.
        per_column = strip.results_per_column()
        strip.store_full(outputs)
        strip.store_per_column(outputs, per_column)

    with k.loop(begin, end) as units:
        strip = _Strip(k, plan, arrays, room, units.index, extent)
        k.if_else(strip.is_inside(), lambda: run(strip.inside()), lambda: run(strip))


@dataclass(frozen=True, slots=True)
class StripScratch(Array):
    """A strip of an array, in one piece."""

    space: RowSpace | None = None
    first: Value | None = None  # of its columns
    width: int = 0

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        assert self.space is not None and self.first is not None
        coordinates = ix.split(index)
        down = ix.constant(0)
        for dim in self.space.folded:
            down = ix.sum(ix.scale(down, self.space.dims[dim]), coordinates[dim])
        column = ix.add(coordinates[-1], ix.k.sub(ix.k.const(self.first.type, 0), self.first))
        return ix.sum(ix.scale(down, self.width), column)


def strip_of(k: KernelBuilder, unit: Value, strips: Operand) -> tuple[Coordinate, Coordinate]:
    """Which columns of strips lie before a unit, and which of their strips it is, of so many."""
    if isinstance(strips, int):
        return Indexing(k, 1).divide(Coordinate(unit), strips)
    outside = k.udiv(unit, strips)
    return Coordinate(outside), Coordinate(k.sub(unit, k.mul(outside, strips)))


def bytes_to_next(
    k: KernelBuilder, plan: ColumnPlan, strip: Coordinate, strips: Operand, width: Operand, extent: ColumnExtent | None
) -> dict[Instruction, Value]:
    """From what one of so many strips, `width` columns wide, has of an operand that sweeps find in a cache, once one of
    them has read it, to what the next one has: it lies beside it, or, behind the last one, in the next rows."""
    length, columns = k.const(I64, plan.space.row_length), k.const(I64, plan.space.dims[-1])
    if extent is not None:
        length, columns = extent.length, extent.columns
    strips, width = (k.const(I64, size) if isinstance(size, int) else size for size in (strips, width))
    below, found = k.mul(k.sub(length, 1), columns), {}
    is_last = k.compare("eq", strip.start, k.sub(strips, 1))
    for operand, sweeps in plan.readers.items():
        if len(sweeps) > 1:
            element_bytes = memory_type(operand.shape.type).bytes
            to_below = k.select(is_last, k.mul(below, element_bytes), 0)
            found[operand] = k.add(to_below, k.mul(width, element_bytes))
    return found


def fetching_next(
    plan: ColumnPlan, arrays: Mapping[Instruction, Array], to_next: Mapping[Instruction, Value], sweep: int
) -> dict[Instruction, Array]:
    """The arrays as a sweep reads them. What several sweeps read is fetched for the next strip in the second one, which
    would wait for nothing."""
    fetched = dict(arrays)
    for operand, bytes in to_next.items():
        following = bytes if sweep == plan.readers[operand][1] else None
        fetched[operand] = replace(arrays[operand], ahead=0, following=following)
    return fetched


class _Strip:
    """One strip: where it is, what is kept of it, and what its columns have been folded to."""

    def __init__(
        self,
        k: KernelBuilder,
        plan: ColumnPlan,
        arrays: Mapping[Instruction, Array],
        room: Value,
        unit: Value,
        extent: ColumnExtent | None = None,
    ) -> None:
        self.k = k
        self.plan = plan
        self.arrays = arrays
        self.extent = extent
        self.ix = Indexing(k, plan.lanes)
        dims, scalar = plan.space.dims, Indexing(k, 1)
        outside, strip = strip_of(k, unit, plan.strips if extent is None else extent.strips)
        columns = k.const(I64, dims[-1]) if extent is None else extent.columns
        first = k.smin(k.mul(strip.start, plan.width), k.sub(columns, plan.width))
        outer = [dim for dim in plan.space.kept if dim != len(dims) - 1]
        self.outer = dict(zip(outer, scalar.delinearize(outside, [dims[dim] for dim in outer]), strict=True))
        self.columns = [self.ix.along_lanes(k.add(first, number * plan.lanes)) for number in range(plan.vectors)]
        self.scratch = self._kept_in(room, first)
        self.to_next = self._bytes_to_next(strip)
        self.known: list[dict[Instruction, Element]] = [{} for _ in self.columns]

    def is_inside(self) -> Value:
        """Whether all columns are where nothing is asked of what is joined or padded."""
        k, last = self.k, len(self.plan.space.dims) - 1
        found = k.const(I1, int(bool(self.plan.interior)))
        for dim, positions in self.plan.interior.items():
            is_in = (
                is_within(k, self.columns[0], range(positions.start, positions.stop - self.plan.width + 1))
                if dim == last
                else is_within(k, self.outer[dim], positions)
            )
            found = k.and_(found, is_in)
        return found

    def inside(self) -> _Strip:
        """The same strip, which is known to be inside."""
        bounds, last = self.plan.interior, len(self.plan.space.dims) - 1
        found = copy.copy(self)
        found.outer = {dim: at._replace(bounds=bounds.get(dim)) for dim, at in self.outer.items()}
        found.columns = [at._replace(bounds=bounds.get(last)) for at in self.columns]
        found.known = [{} for _ in self.columns]
        return found

    def _bytes_to_next(self, strip: Coordinate) -> dict[Instruction, Value]:
        """To what the next strip reads, where that finds it in a cache: in a near one, or, of sizes that are not known
        here, in the last one."""
        if self.extent is not None and not self.extent.fetches_next:
            return {}
        if self.extent is not None:
            reread = [operand for operand, sweeps in self.plan.readers.items() if len(sweeps) > 1]
            widths = [self.plan.width * memory_type(operand.shape.type).bytes for operand in reread]
            return {operand: self.k.const(I64, width) for operand, width in zip(reread, widths, strict=True)}
        if not self.plan.is_short:
            return {}
        return bytes_to_next(self.k, self.plan, strip, self.plan.strips, self.plan.width, None)

    def _kept_in(self, room: Value, first: Value) -> dict[Instruction, Array]:
        k, plan = self.k, self.plan
        length = k.const(I64, plan.space.row_length) if self.extent is None else self.extent.length
        starts = [sum(plan.slot_bytes[:number]) * plan.width for number in range(len(plan.slot_bytes))]
        return {
            kept.value: StripScratch(
                k.gep(room, k.mul(length, starts[kept.slot])),
                kept.value.shape,
                f"slot.{kept.slot}",
                read_only=False,
                space=plan.space,
                first=first,
                width=plan.width,
            )
            for kept in plan.kept
        }

    # -- sweeps

    def fold(self, number: int, inits: Mapping[Instruction, Element]) -> None:
        """Folds down the columns what the reduces of a sweep fold; keeps what later sweeps need of it."""
        k, plan = self.k, self.plan
        reduces = plan.sweeps[number]
        made = [kept.value for kept in plan.kept if kept.made == number]
        wanted = [*(reduce.operands[0] for reduce in reduces), *made]
        self._find_per_column(wanted)
        folds = [plan.lane_fold(k, reduce) for reduce in reduces]
        starts = [fold.start([inits[reduce]])[0] for reduce, fold in zip(reduces, folds, strict=True)]
        initial = [splat(k, start, plan.lanes) for _ in self.columns for start in starts]

        def body(down: Mapping[int, Coordinate], running: Sequence[Element]) -> list[Element]:
            following: list[Element] = []
            for place, column in enumerate(self.columns):
                index = self._index(down, column)
                values = self._graph(number, place).values([(value, index) for value in wanted])
                for value, element in zip(made, values[len(reduces) :], strict=True):
                    self.scratch[value].store(self.ix, index, element)
                before = running[place * len(reduces) : (place + 1) * len(reduces)]
                for fold, old, element in zip(folds, before, values, strict=False):
                    following += [splat(k, one, plan.lanes) for one in fold.step([old], [element])]
            return following

        results = self._down(initial, body, plan.joined[number])
        for place, known in enumerate(self.known):
            own = results[place * len(reduces) : (place + 1) * len(reduces)]
            for reduce, fold, state in zip(reduces, folds, own, strict=True):
                known[reduce] = rounded(k, fold.finish([state])[0], reduce.shape.type)

    def store_full(self, outputs: Sequence[Array]) -> None:
        """The last sweep: the results that have a value per element."""
        if not self.plan.full_roots:
            return
        self._find_per_column(self.plan.full_roots)
        if not self.plan.streaming:
            self._store_down(outputs)
            return
        k = self.k
        streams = None if self.extent is None else self.extent.streams
        is_off = None if streams is None else k.compare("eq", streams, 0)
        placed = iter(past_caches(k, [output for _, output in self._results(outputs, full=True)], unless=is_off))
        is_full = map(self.plan.space.is_full, self.plan.roots)
        self._store_down([next(placed) if whole else own for whole, own in zip(is_full, outputs, strict=True)])
        k.fence()

    def _store_down(self, outputs: Sequence[Array]) -> None:
        roots = self.plan.full_roots

        def body(folded: Mapping[int, Coordinate], running: Sequence[Element]) -> list[Element]:
            for place, column in enumerate(self.columns):
                index = self._index(folded, column)
                values = self._graph(len(self.plan.sweeps), place).values([(root, index) for root in roots])
                for (_, output), value in zip(self._results(outputs, full=True), values, strict=True):
                    output.store(self.ix, index, value)
            return []

        self._down([], body, self.plan.joined[-1])

    def _down(
        self,
        initial: Sequence[Element],
        body: Callable[[Mapping[int, Coordinate], Sequence[Element]], list[Element]],
        joined: Collection[int],
    ) -> list[Element]:
        """Loops over the folded dimensions, outermost first, that carry elements through `body`; the elements of those
        that are `joined` come one by one."""
        space = self.plan.space

        def nest(dims: Sequence[int], folded: Mapping[int, Coordinate], values: Sequence[Element]) -> list[Element]:
            if not dims:
                return body(folded, values)
            if dims[0] in joined:
                for number in range(space.dims[dims[0]]):
                    at = Coordinate(self.k.const(I64, number), bounds=range(number, number + 1))
                    values = nest(dims[1:], {**folded, dims[0]: at}, values)
                return list(values)
            size = space.dims[dims[0]] if self.extent is None else self.extent.length
            with self.k.loop(0, size, carry=flatten(values)) as loop:
                inner = {**folded, dims[0]: Coordinate(loop.index)}
                loop.next = flatten(nest(dims[1:], inner, unflatten(loop.values, initial)))
            return unflatten(loop.results, initial)

        start = {dim: Coordinate(self.k.const(I64, 0)) for dim in space.folded}
        return nest([dim for dim in space.folded if space.dims[dim] > 1], start, initial)

    def _index(self, folded: Mapping[int, Coordinate], column: Coordinate) -> Index:
        dims = self.plan.space.dims
        places = {**self.outer, **folded, len(dims) - 1: column}
        return Index(dims, tuple(places[dim] for dim in range(len(dims))))

    def _graph(self, sweep: int, place: int) -> ElementGraph:
        """What the elements of one vector of columns are made of in a sweep."""
        kept = {kept.value: self.scratch[kept.value] for kept in self.plan.kept if kept.made < sweep}
        return ElementGraph(
            self.ix, {**fetching_next(self.plan, self.arrays, self.to_next, sweep), **kept}, self.known[place]
        )

    # -- values per column

    def _find_per_column(self, wanted: Sequence[Instruction]) -> None:
        """Computes, once for all elements of a column, what `wanted` take from it."""
        space, known = self.plan.space, self.known[0]
        needed = [
            instruction
            for instruction in between(wanted, lambda i: i in known or i.opcode == "parameter")
            if instruction in self.plan.folded and space.is_per_row(instruction) and instruction not in known
        ]
        for place, values in enumerate(self._per_column(needed)):
            self.known[place].update(zip(needed, values, strict=True))

    def _per_column(self, instructions: Sequence[Instruction]) -> list[list[Element]]:
        """Their values in each vector of columns."""
        kept = self.plan.space.kept
        found = []
        for column, known in zip(self.columns, self.known, strict=True):
            places = {**self.outer, len(self.plan.space.dims) - 1: column}
            index = Index(self.plan.space.kept_dims, tuple(places[dim] for dim in kept))
            graph = ElementGraph(self.ix, self.arrays, known)
            found.append(graph.values([(i, self.ix.reshaped(index, i.shape.dims)) for i in instructions]))
        return found

    def results_per_column(self) -> list[list[Element]]:
        return self._per_column([root for root in self.plan.roots if not self.plan.space.is_full(root)])

    def store_per_column(self, outputs: Sequence[Array], values: Sequence[Sequence[Element]]) -> None:
        kept = self.plan.space.kept
        for column, own in zip(self.columns, values, strict=True):
            places = {**self.outer, len(self.plan.space.dims) - 1: column}
            index = Index(self.plan.space.kept_dims, tuple(places[dim] for dim in kept))
            for (root, output), value in zip(self._results(outputs, full=False), own, strict=True):
                output.store(self.ix, self.ix.reshaped(index, root.shape.dims), value)

    def _results(self, outputs: Sequence[Array], *, full: bool) -> Iterator[tuple[Instruction, Array]]:
        for root, output in zip(self.plan.roots, outputs, strict=True):
            if self.plan.space.is_full(root) == full:
                yield root, output
