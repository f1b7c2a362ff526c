"""Reduce kernels: folding dimensions of element functions of the operands.

Three ways, by what varies fastest in memory:

- along lanes: the last dimension is folded by one commutative, associative op for each of the operands, or its largest
  or smallest element is found with its place. Several vector accumulators run along it and are combined at the end of
  each fold, in a fixed order.
- across lanes: each lane folds a result of its own, in index order; any computation will do. If the last dimension is
  kept, lanes read neighbours, else they gather.
- one by one: everything else, in index order.

The order never depends on how the work is split among threads, since one fold is never split.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TypeVar

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.choosing import Choosing
from xlapy.codegen.kernels.fetching import fetched_beside, fetched_by_rows
from xlapy.codegen.kernels.fold_results import store_results, stored_results
from xlapy.codegen.kernels.folding import folding
from xlapy.codegen.kernels.lane_folds import is_found_in_order, lane_fold
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP, power_of_two_below, vectors_of_masks, widest_lanes
from xlapy.codegen.kernels.padded_rows import joined_dims
from xlapy.codegen.kernels.wide_blocks import (
    PAGE_BYTES,
    STREAMS,
    BlockValues,
    Vector,
    VectorFold,
    WideFold,
    first_column,
    is_in_memory,
    vectors_of_block,
)
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import (
    Element,
    flatten,
    from_parts,
    register_type,
    select,
    splat,
    unflatten,
)
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.hlo.choices import LEAST_CHOSEN, Choice, choice_of
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import MOST_JOINED, MOST_WORK_PER_ROW, sole_operations
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

ACCUMULATORS = 4  # vectors that are folded side by side, to hide the latency of the op; functions hide it themselves
FETCHED_ACCUMULATORS = 2  # along memory: processors fetch ahead for few loads in a loop much better than for many
WIDE_ACCUMULATORS = (16, 8)  # across lanes, if registers hold them: memory streams long pieces of rows better
"""Extrema take the second number: they compute as long as memory takes, and more code takes longer to compile."""

WIDE_BLOCKS = 8  # that there must be at the least for wider ones to pay, so that threads have something to share
LONG_COLUMN = 32  # elements, behind which calls of functions take no time
NARROW_BYTES = 2  # of an element: of few columns, as registers hold them, a row has less than what is fetched at a time
LIGHT_INSTRUCTIONS = 4  # in the kernel, the operands included: more would not leave registers for wide blocks

LONG_CHOICE = 16
"""Steps of so many vectors of keys in a row, beside which it does not count what it takes to choose among all of them:
on one core of an Intel server, rows of 300 f32 take 0.76 of the time with two vectors, and of 1600 0.96."""

FEW_ACCUMULATORS = 2  # where each has places beside it, if registers are few or rows short, or where it hardly matters

MOST_BESIDE = 4  # elements of a last dimension, of each of which there is a vector

LEAST_FOLDED_BESIDE = 16  # elements for which it pays that results are stored one by one

LEAST_GATHERED = 8  # results for which it pays to gather a lane of each, rather than to fold them one by one


class ReducePlan(Record):
    """How a reduce runs: its dimensions sorted out, the strategy, the lanes, the units of work."""

    reduce: Instruction
    roots: tuple[Instruction, ...]  # what is stored: the reduce itself, or what is made from each of its results
    kept: tuple[int, ...]
    folded: tuple[int, ...]
    combiners: tuple[Instruction, ...]  # the ops of the computation, one for each operand, when folding along lanes
    across: bool  # lanes lie across the last kept dimension
    lanes: int
    vectors: int  # that are folded side by side; of neighbouring results, if across
    units: int
    bytes_per_unit: int
    choice: Choice | None = None  # what the computation chooses, when doing that along lanes
    in_order: bool = False  # across lanes, extrema of floats are found among integers
    asks_ahead: bool = True  # what will be read is fetched
    rows: int = 1  # across lanes, that are folded at a time onto values in a cache: see `wide_blocks`
    joined: tuple[int, ...] = ()  # short dimensions of what is joined there: each position has code of its own
    beside: int = -1  # the last dimension, if it is that short; then lanes lie across the one before it

    @property
    def along(self) -> int:
        """The dimension that lanes lie across, if they do."""
        return next(dim for dim in reversed(self.kept) if self.input_shape.dims[dim] > 1 and dim != self.beside)

    @property
    def input_shape(self) -> Shape:
        return self.reduce.operands[0].shape

    @property
    def computation(self) -> Computation:
        return self.reduce.called[0]

    @property
    def fold_size(self) -> int:
        """Elements that are folded into one result."""
        return math.prod(self.input_shape.dims[dim] for dim in self.folded)


def plan_reduce(
    reduce: Instruction,
    roots: Sequence[Instruction],
    inputs: Callable[[Instruction], bool],
    operand_bytes: int,
    target: Target,
) -> ReducePlan:
    """How to compute `roots`, which are `reduce` or made from it, from instructions for which `inputs` holds."""
    shape = reduce.operands[0].shape
    folded = tuple(sorted(reduce.attributes["dimensions"]))
    kept = tuple(dim for dim in range(shape.rank) if dim not in folded)
    members = between(reduce.operands, inputs)
    made = between(roots, lambda i: i is reduce or inputs(i))
    last = next((dim for dim in reversed(range(shape.rank)) if shape.dims[dim] > 1), shape.rank - 1)
    combiners = sole_operations(reduce.called[0])
    choice = choice_of(reduce) if last in folded and shape.dims[last] >= LEAST_CHOSEN else None
    per_step = VECTORS_PER_STEP if choice is not None else vectors_of_masks(reduce.called[0], target)
    along = choice is not None or (bool(combiners) and last in folded)
    if along and len(combiners) > ACCUMULATORS:
        per_step = 1
    lanes = widest_lanes([*members, *made], target, per_step)
    wide = [dim for dim in kept if shape.dims[dim] > 1]
    across = bool(wide) and not along and (last in kept or shape.dims[wide[-1]] >= LEAST_GATHERED)
    beside = wide.pop() if across and last in kept and _is_beside(shape.dims, wide, folded, lanes) else -1
    size = shape.dims[wide[-1] if across else last] if shape.rank else 1
    lanes = min(lanes, 1 << (size.bit_length() - 1)) if size and (across or along) else 1
    units = math.prod(shape.dims[dim] for dim in kept)
    in_order = across and is_found_in_order(reduce, target)
    widths = WIDE_ACCUMULATORS[in_order:] if len(combiners) == 1 and last in kept else ()
    vectors = (
        1
        if beside >= 0
        else _vectors_of_choice(size, lanes, target)
        if choice is not None
        else _vectors(size, lanes, members, target, wide=widths, groups=units // max(size, 1))
        if across
        else _vectors_along(members, len(combiners), is_fetched=operand_bytes > target.l2_bytes)
    )
    if across and (narrow := _narrow_arrays(members, shape.size)):
        line = 1 if operand_bytes <= target.l2_bytes else CACHE_LINE // (lanes * narrow[0].shape.type.bytes)
        vectors = min(vectors, max(1, line, vectors // len(reduce.grouped_operands()[0])))
    row_bytes = size * shape.type.bytes if across and last in kept and beside < 0 else 0
    rows = _rows_of_memory(reduce, members, row_bytes, operand_bytes, target)
    if rows > 1:
        vectors = _vectors_of_memory(reduce, size, lanes, units // size)
    if across:
        neighbours = size * (shape.dims[beside] if beside >= 0 else 1)
        units = units // max(neighbours, 1) * _blocks(size, lanes * vectors)
    unit_bytes = (operand_bytes + reduce.shape.bytes) // max(units, 1)
    return ReducePlan(
        reduce=reduce,
        roots=tuple(roots),
        kept=kept,
        folded=folded,
        combiners=combiners if along and choice is None else (),
        across=across,
        lanes=lanes,
        vectors=vectors,
        units=units,
        bytes_per_unit=unit_bytes,
        choice=choice,
        in_order=in_order,
        asks_ahead=target.asks_ahead or (across and rows == 1),
        rows=rows,
        joined=_short_joins(reduce, folded, inputs) if len(members) <= MOST_WORK_PER_ROW else (),
        beside=beside,
    )


def _is_beside(dims: Sequence[int], wide: Sequence[int], folded: Sequence[int], lanes: int) -> bool:
    """Whether the last dimension has so few elements, as those of points in space, that lanes better lie across the one
    before it: what is the same for all of the few is computed once, and they fill no vector."""
    *_, before, last = (0, *wide) if len(wide) > 1 else (0, 0, 0)
    is_next = 0 <= before < last and all(dims[dim] == 1 for dim in range(before + 1, last))
    is_long = math.prod(dims[dim] for dim in folded) >= LEAST_FOLDED_BESIDE
    return is_next and is_long and dims[last] <= MOST_BESIDE < lanes <= dims[before]


def _short_joins(reduce: Instruction, folded: Sequence[int], inputs: Callable[[Instruction], bool]) -> tuple[int, ...]:
    """The folded dimensions of a few elements, along which what is folded is joined: which operand an element is in is
    known then, and need not be asked."""
    short = [dim for dim in folded if 1 < reduce.operands[0].shape.dims[dim] <= MOST_JOINED]
    joined = joined_dims(reduce.grouped_operands()[0], inputs) if short else ()
    return tuple(dim for dim in short if dim in joined)


def _rows_of_memory(
    reduce: Instruction, members: Collection[Instruction], row_bytes: int, operand_bytes: int, target: Target
) -> int:
    """How many rows of arrays in memory to read side by side; 1 where it is better to hold few columns in registers,
    as of short rows, which lie one behind the other anyway, or for functions, which take longer than memory."""
    dims, region = reduce.operands[0].shape.dims, reduce.called[0]
    work = [*members, *region]
    most = power_of_two_below(MOST_WORK_PER_ROW * STREAMS // len(work))
    is_light = len(work) <= MOST_WORK_PER_ROW * len(reduce.grouped_operands()[0])
    is_light = is_light and not any(i.opcode in TRANSCENDENTAL or i.called for i in work)
    values = [leaf.type for leaf in reduce.shape.leaves()]
    is_plain = not any(type.is_complex or register_type(type).bits < I32.bits for type in values)
    read = _whole_arrays(members, math.prod(dims))
    is_far = (
        operand_bytes > target.l2_bytes
        if _narrow_arrays(members, math.prod(dims))
        else is_in_memory(operand_bytes, target)
    )
    if not (is_light and is_plain and row_bytes >= PAGE_BYTES and is_far):
        return 1
    rows = min(power_of_two_below(STREAMS // max(1, min(len(read), STREAMS))), most)
    inner = max((dim for dim in reduce.attributes["dimensions"] if dims[dim] > 1), default=-1)
    return rows if inner >= 0 and dims[inner] >= rows else 1


def _whole_arrays(members: Collection[Instruction], size: int) -> list[Instruction]:
    return [member for member in members if member.opcode == "parameter" and member.shape.size >= size]


def _narrow_arrays(members: Collection[Instruction], size: int) -> list[Instruction]:
    """Those whose rows are read in short pieces, as memory has little of a vector."""
    return [array for array in _whole_arrays(members, size) if array.shape.type.bytes <= NARROW_BYTES]


def _vectors_of_memory(reduce: Instruction, size: int, lanes: int, groups: int) -> int:
    """How many vectors of results make a wide block."""
    values = sum(register_type(leaf.type).bytes for leaf in reduce.shape.leaves())
    return vectors_of_block(size, lanes, groups, reduce.operands[0].shape.type.bytes, values)


def bytes_of_arrays(operands: Iterable[Instruction]) -> int:
    """What folds read in all: numbers beside arrays do not count. By that it is decided how rows are folded, which
    kernels and libraries do in the same order."""
    return sum(operand.shape.bytes for operand in operands if not operand.shape.is_scalar)


def _vectors_along(members: Collection[Instruction], folds: int, *, is_fetched: bool) -> int:
    """How many vectors to fold side by side along a row, of each of so many folds, which hide latencies themselves."""
    if any(member.opcode in TRANSCENDENTAL for member in members):
        return 1
    return max(1, (FETCHED_ACCUMULATORS if is_fetched else ACCUMULATORS) // max(folds, 1))


def _vectors(
    size: int,
    lanes: int,
    members: Collection[Instruction],
    target: Target,
    *,
    wide: Sequence[int],
    groups: int,
) -> int:
    """How many vectors of results to fold side by side; one of the `wide` numbers, where registers allow. Short rows
    are folded whole, if there are groups of them to share out: memory is not made for every second piece."""
    if groups >= WIDE_BLOCKS and size < lanes * ACCUMULATORS and size % lanes == 0:
        return size // lanes
    return vectors_across(size, lanes, target, wide if len(members) <= LIGHT_INSTRUCTIONS else ())


def _vectors_of_choice(size: int, lanes: int, target: Target) -> int:
    """How many vectors of keys to fold side by side, each with two of places."""
    fits = target.vector_registers >= ACCUMULATORS * VECTORS_PER_STEP * 3
    return ACCUMULATORS if fits and size >= LONG_CHOICE * ACCUMULATORS * lanes else FEW_ACCUMULATORS


def vectors_across(size: int, lanes: int, target: Target, wide: Sequence[int] = WIDE_ACCUMULATORS) -> int:
    """How many vectors of results to fold together: as wide as registers allow and blocks are left to share out."""
    fitting = (vectors for vectors in wide if vectors * VECTORS_PER_STEP <= target.vector_registers)
    few = ACCUMULATORS if size >= lanes * ACCUMULATORS else 1
    return next((vectors for vectors in fitting if size >= WIDE_BLOCKS * vectors * lanes), few)


def narrowed(plan: ReducePlan) -> ReducePlan | None:
    """The same folds in the same order, with fewer of them side by side: much less code, which takes up to 1.7 times as
    long. None if there is nothing to leave out, or if whole rows are read one behind the other, as they lie."""
    if not plan.across or plan.rows > 1 or plan.vectors <= FEW_ACCUMULATORS:
        return None
    size = plan.input_shape.dims[plan.along]
    wide, narrow = (_blocks(size, plan.lanes * vectors) for vectors in (plan.vectors, FEW_ACCUMULATORS))
    if wide == 1:
        return None
    units, total = plan.units // wide * narrow, plan.units * plan.bytes_per_unit
    return replace(plan, vectors=FEW_ACCUMULATORS, units=units, bytes_per_unit=total // max(units, 1))


def _blocks(size: int, width: int) -> int:
    return -(-size // width)


def emit_reduce(
    k: KernelBuilder,
    plan: ReducePlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """Writes the kernel over units [begin, end): results, or blocks of results when folding across lanes."""
    scalar = Indexing(k, 1)
    if not plan.asks_ahead:
        arrays = {instruction: replace(array, ahead=0) for instruction, array in arrays.items()}
    inits = ElementGraph(scalar, arrays).values([(init, Index((), ())) for init in _init_values(plan)])
    with k.loop(begin, end) as units:
        if plan.rows > 1:
            _across_memory(k, plan, arrays, outputs, inits, units.index)
        elif plan.across:
            _across(k, plan, arrays, outputs, inits, units.index)
        else:
            positions = scalar.delinearize(Coordinate(units.index), [plan.input_shape.dims[dim] for dim in plan.kept])
            place = dict(zip(plan.kept, positions, strict=True))
            if plan.combiners:
                results = folds_along(k, plan, place, inits, _reading_all(plan, arrays))
            elif plan.choice is not None:
                results = _choose_along(k, plan, plan.choice, arrays, place, inits)
            else:
                results = _one_by_one(k, plan, arrays, place, inits)
            index = _result_index(plan, place)
            store_results(scalar, plan.reduce, plan.roots, arrays, outputs, index, results)


def _reading_all(
    plan: ReducePlan, arrays: Mapping[Instruction, Array]
) -> Callable[[Indexing, Index], Sequence[Element]]:
    """The elements of all inputs."""
    return lambda ix, index: ElementGraph(ix, arrays).values([(operand, index) for operand in _inputs(plan)])


def _reading(
    plan: ReducePlan, arrays: Mapping[Instruction, Array], number: int = 0
) -> Callable[[Indexing, Index], Element]:
    """The elements of one of the inputs."""
    return lambda ix, index: ElementGraph(ix, arrays).values([(_inputs(plan)[number], index)])[0]


def _init_values(plan: ReducePlan) -> Sequence[Instruction]:
    init_values: Sequence[Instruction] = plan.reduce.grouped_operands()[1]
    return init_values


def _inputs(plan: ReducePlan) -> Sequence[Instruction]:
    inputs: Sequence[Instruction] = plan.reduce.grouped_operands()[0]
    return inputs


def _result_index(plan: ReducePlan, positions: Mapping[int, Coordinate]) -> Index:
    return Index(tuple(plan.input_shape.dims[dim] for dim in plan.kept), tuple(positions[dim] for dim in plan.kept))


def _block_of(k: KernelBuilder, plan: ReducePlan, unit: Value) -> tuple[int, Value, dict[int, Coordinate]]:
    """The dimension along which results lie side by side, the number of a unit's block along it, and where the unit is
    in the other dimensions that are kept."""
    dims, scalar = plan.input_shape.dims, Indexing(k, 1)
    row, block = scalar.divide(Coordinate(unit), _blocks(dims[plan.along], plan.lanes * plan.vectors))
    outer = [dim for dim in plan.kept if dim not in (plan.along, plan.beside)]
    places = dict(zip(outer, scalar.delinearize(row, [dims[dim] for dim in outer]), strict=True))
    return plan.along, block.start, places


def _across(
    k: KernelBuilder,
    plan: ReducePlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    inits: Sequence[Element],
    unit: Value,
) -> None:
    """One block of neighbouring results: each lane folds one of them; several vectors side by side share the loop."""
    last, block, positions = _block_of(k, plan, unit)
    width, vector = plan.lanes * plan.vectors, Indexing(k, plan.lanes)
    start = k.smin(k.mul(block, width), plan.input_shape.dims[last] - width)
    neighbours = [{last: vector.along_lanes(k.add(start, number * plan.lanes))} for number in range(plan.vectors)]
    few = plan.input_shape.dims[plan.beside] if plan.beside >= 0 else 0
    columns = [
        {**column, plan.beside: vector.constant(number)} for column in neighbours for number in range(few)
    ] or neighbours
    inner = next((dim for dim in reversed(plan.folded) if plan.input_shape.dims[dim] > 1), None)
    if inner is not None and plan.beside < 0:
        arrays = fetched_by_rows(arrays, plan.input_shape.dims, inner, width)
    combine = lane_fold(k, plan.computation, in_order=plan.in_order)
    initial = [splat(k, init, plan.lanes) for _ in columns for init in combine.start(inits)]

    def body(folded: Mapping[int, Coordinate], running: Sequence[Element]) -> list[Element]:
        graph = ElementGraph(vector, arrays)
        following: list[Element] = []
        count = len(inits)
        for number, column in enumerate(columns):
            index = _input_index(plan, {**positions, **folded, **column})
            elements = graph.values([(operand, index) for operand in _inputs(plan)])
            following += combine.step(running[number * count : (number + 1) * count], elements)
        return [splat(k, element, plan.lanes) for element in following]

    results = _fold(k, plan, plan.folded, initial, body)
    for number, column in enumerate(columns):
        index = _result_index(plan, {**positions, **column})
        own = combine.finish(results[number * len(inits) : (number + 1) * len(inits)])
        with k.rarely(is_rare=plan.fold_size >= LONG_COLUMN):
            store_results(vector, plan.reduce, plan.roots, arrays, outputs, index, own)


def _across_memory(
    k: KernelBuilder,
    plan: ReducePlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    inits: Sequence[Element],
    unit: Value,
) -> None:
    """One wide block of neighbouring results, several rows at a time."""
    dims, vector = plan.input_shape.dims, Indexing(k, plan.lanes)
    last, block, positions = _block_of(k, plan, unit)
    first = first_column(k, block, plan.lanes * plan.vectors, k.const(I64, dims[last]))
    count = k.const(I64, plan.vectors)
    combine = lane_fold(k, plan.computation, in_order=plan.in_order)
    values = BlockValues(k, combine.start(inits), plan.lanes, plan.vectors)
    *around, inner = [dim for dim in plan.folded if dims[dim] > 1]
    if plan.asks_ahead:
        arrays = fetched_beside(k, arrays, dims, inner, plan.rows)

    def lanes_from(column: Value) -> Coordinate:
        return vector.along_lanes(k.add(first, column))

    def body(folded: Mapping[int, Coordinate], _: Sequence[Element]) -> list[Element]:
        def fold(begin: Value, rows: int) -> VectorFold:
            places = [{**positions, **folded, inner: Coordinate(k.add(begin, below))} for below in range(rows)]

            def of_vector(own: Vector, state: Sequence[Element]) -> Sequence[Element]:
                graph = ElementGraph(vector, arrays)
                for place in places:
                    index = _input_index(plan, {**place, last: lanes_from(own.column)})
                    elements = graph.values([(operand, index) for operand in _inputs(plan)])
                    state = [splat(k, element, plan.lanes) for element in combine.step(state, elements)]
                return state

            return of_vector

        WideFold(values, count, plan.rows, fold, weight=plan.vectors).emit(k, dims[inner])
        return []

    values.begin(count)
    _fold(k, plan, (*around, *(dim for dim in plan.folded if dims[dim] == 1)), [], body, weight=dims[inner])
    with k.loop(0, count) as vectors:
        own = combine.finish(values.load(vectors.index))
        index = _result_index(plan, {**positions, last: lanes_from(k.mul(vectors.index, plan.lanes))})
        with k.rarely(is_rare=plan.fold_size >= LONG_COLUMN):
            store_results(vector, plan.reduce, plan.roots, arrays, outputs, index, own)


def _one_by_one(
    k: KernelBuilder,
    plan: ReducePlan,
    arrays: Mapping[Instruction, Array],
    positions: Mapping[int, Coordinate],
    inits: Sequence[Element],
) -> list[Element]:
    def body(folded: Mapping[int, Coordinate], running: Sequence[Element]) -> list[Element]:
        index = _input_index(plan, {**positions, **folded})
        elements = ElementGraph(Indexing(k, 1), arrays).values([(operand, index) for operand in _inputs(plan)])
        return emit_region(k, plan.computation, [*running, *elements], unrounded=True)

    return _fold(k, plan, plan.folded, inits, body)


def fold_along(
    k: KernelBuilder,
    plan: ReducePlan,
    positions: Mapping[int, Coordinate],
    init: Element,
    element: Callable[[Indexing, Index], Element],
    size: Value | None = None,
    *,
    fits: bool = False,
) -> Element:
    """Folds the last dimension by vectors with one op. `positions` says where in the kept dimensions; `element` gives
    what is folded, and is asked for some elements twice. `size` is that of the dimension, if the plan does not know it;
    `fits` says that nothing is left over of that."""
    return folds_along(k, plan, positions, [init], lambda *place: [element(*place)], size, fits=fits)[0]


def folds_along(
    k: KernelBuilder,
    plan: ReducePlan,
    positions: Mapping[int, Coordinate],
    inits: Sequence[Element],
    elements: Callable[[Indexing, Index], Sequence[Element]],
    size: Value | None = None,
    *,
    fits: bool = False,
) -> list[Element]:
    """The same with some ops side by side, each of which folds an element of its own at a place."""
    folds = [folding(k, combiner, identity_element(k, combiner)) for combiner in plan.combiners]
    beside = [len(fold.start(1, 1)) - 1 for fold in folds]  # what is carried with the running values

    def start(count: int, lanes: int) -> list[Element]:
        return [value for fold in folds for value in fold.start(count, lanes)]

    def own(state: Sequence[Element]) -> list[Sequence[Element]]:
        """What a state has of each fold."""
        count = (len(state) - sum(beside)) // len(folds)
        ends = list(accumulate(count + more for more in beside))
        return [state[begin:end] for begin, end in pairwise([0, *ends])]

    def step(state: Sequence[Element], elements: Sequence[Sequence[Element]], _: Value) -> list[Element]:
        parts = zip(folds, own(state), zip(*elements, strict=True), strict=True)
        return [value for fold, part, folded in parts for value in fold.step(part, folded)]

    state = _run_along(k, plan, start, step, positions, elements, size, fits=fits)
    alone = len(start(1, 1))
    parts = zip(folds, inits, own(state[:-alone]), own(state[-alone:]), strict=True)
    return [fold.finish(init, part, rest) for fold, init, part, rest in parts]


def _choose_along(
    k: KernelBuilder,
    plan: ReducePlan,
    choice: Choice,
    arrays: Mapping[Instruction, Array],
    positions: Mapping[int, Coordinate],
    inits: Sequence[Element],
) -> list[Element]:
    """Finds the places of what is chosen along the last dimension, and reads all inputs there."""
    last = _last_folded(plan)
    results = stored_results(plan.reduce, plan.roots)
    fold = Choosing(k, choice, _inputs(plan)[choice.key].shape.type, results)
    element = _reading(plan, arrays, choice.key)
    places = fold.places(_run_along(k, plan, fold.start, fold.step, positions, element, overlapping=True))
    row = {**dict.fromkeys(plan.folded, Coordinate(k.const(I64, 0))), **positions}
    indices = [_input_index(plan, {**row, last: Coordinate(places[tie])}) for tie in choice.ties]
    chosen = ElementGraph(Indexing(k, 1), arrays).values([*zip(_inputs(plan), indices, strict=True)])
    return emit_region(k, plan.computation, [*inits, *chosen], unrounded=True)


def _last_folded(plan: ReducePlan) -> int:
    return max((dim for dim in plan.folded if plan.input_shape.dims[dim] > 1), default=plan.folded[-1])


_Folded = TypeVar("_Folded")
"""What is folded at one place: an element, or one for each of some folds."""


def _run_along(
    k: KernelBuilder,
    plan: ReducePlan,
    start: Callable[[int, int], list[Element]],
    step: Callable[[Sequence[Element], Sequence[_Folded], Value], list[Element]],
    positions: Mapping[int, Coordinate],
    element: Callable[[Indexing, Index], _Folded],
    size: Value | None = None,
    *,
    overlapping: bool = False,
    fits: bool = False,
) -> list[Element]:
    """Runs along the last dimension: what whole vectors leave over, blocks of several vectors, then single vectors; or
    single elements, of what fills no vector. Each step is told where they begin. The state of the vectors, and behind
    it that of single elements.

    With `overlapping`, there are no single elements, and a last vector repeats some."""
    last = _last_folded(plan)
    known_size, lanes = plan.input_shape.dims[last], plan.lanes
    accumulators = max(1, min(plan.vectors, known_size // lanes))
    block = lanes * accumulators
    end = known_size if size is None else size
    blocks_end, vectors_end = (end if fits else _whole(k, end, step) for step in (block, lanes))

    def elements(ix: Indexing, folded: Mapping[int, Coordinate], position: Value) -> _Folded:
        return element(ix, _input_index(plan, {**positions, **folded, last: ix.along_lanes(position)}))

    beginning = start(accumulators, lanes)
    alone = [] if overlapping else start(1, 1)

    def body(folded: Mapping[int, Coordinate], running: Sequence[Element]) -> list[Element]:
        vector, scalar = Indexing(k, lanes), Indexing(k, 1)
        state, rest = list(running[: len(beginning)]), list(running[len(beginning) :])

        def vectors(count: int) -> Callable[[Sequence[Element], Value], list[Element]]:
            return lambda state, position: step(
                state, [elements(vector, folded, k.add(position, number * lanes)) for number in range(count)], position
            )

        if not (overlapping or fits or lanes == 1):
            state = with_last_vector(k, end, lanes, state, vectors(1))
        state = _carry(k, 0, blocks_end, block, state, vectors(accumulators))
        state = _carry(k, blocks_end, vectors_end, lanes, state, vectors(1))
        if overlapping:
            is_left_over = known_size % lanes != 0
            return vectors(1)(state, k.const(I64, known_size - lanes)) if is_left_over else state

        def one_element(state: Sequence[Element], position: Value) -> list[Element]:
            return step(state, [elements(scalar, folded, position)], position)

        singles = vectors_end if fits or lanes == 1 else end_of_vectors(k, end, lanes)
        return [*state, *_carry(k, singles, end, 1, rest, one_element)]

    outer = tuple(dim for dim in plan.folded if dim != last)
    return _fold(k, plan, outer, [*beginning, *alone], body, weight=max(1, known_size // block))


def with_last_vector(
    k: KernelBuilder,
    size: int | Value,
    lanes: int,
    state: list[Element],
    step: Callable[[Sequence[Element], Value], list[Element]],
) -> list[Element]:
    """A state with what whole vectors leave over of a row, if one fits in: the last lanes of a vector that ends with
    the row. That comes first: so the sums are the same whether the whole vectors of a short row are added to one value,
    or to one each. (Lanes of the state are chosen, and not of what is folded, which may be a product that is added
    without being rounded.)"""

    def of_last(begin: Value, left: Value) -> list[Element]:
        mask = _last_lanes(k, lanes, left)
        return [select(k, mask, new, old) for new, old in zip(step(state, begin), state, strict=True)]

    if isinstance(size, int):
        left = size % lanes if size >= lanes else 0
        return of_last(k.const(I64, size - lanes), k.const(I64, left)) if left else state
    left_over = k.and_(size, lanes - 1)
    has_some = k.and_(k.compare("ne", left_over, 0), k.compare("ge", size, lanes))
    values = k.if_else(has_some, lambda: flatten(of_last(k.sub(size, lanes), left_over)), lambda: flatten(state))
    return unflatten(values, state)


def end_of_vectors(k: KernelBuilder, size: int | Value, lanes: int) -> int | Value:
    """How many elements of a row are in vectors, if the last one may begin with elements of the one before it."""
    if isinstance(size, int):
        return size if size >= lanes else 0
    return k.select(k.compare("ge", size, lanes), size, 0)


def _last_lanes(k: KernelBuilder, lanes: int, count: Value) -> Value:
    """A mask of so many lanes."""
    if count.constant is not None:
        first = lanes - int(count.constant)
        return k.const_vector(I1.with_lanes(lanes), [int(lane >= first) for lane in range(lanes)])
    before = k.trunc(k.sub(lanes, count), I32)
    return k.compare("ge", k.lane_numbers(I32.with_lanes(lanes)), k.splat(before, lanes))


def _whole(k: KernelBuilder, size: int | Value, step: int) -> int | Value:
    """What whole steps cover of a size; if that is a value, the step is a power of two."""
    return size // step * step if isinstance(size, int) else k.and_(size, -step)


def _carry(
    k: KernelBuilder,
    begin: int | Value,
    end: int | Value,
    step: int,
    values: list[Element],
    body: Callable[[Sequence[Element], Value], list[Element]],
) -> list[Element]:
    """A counted loop that carries elements; a loop that is known to run once or never is not one."""
    if begin is end:
        return values
    if isinstance(begin, int) and isinstance(end, int):
        if begin >= end:
            return values
        if begin + step >= end:
            return body(values, k.const(I64, begin))
    with listening_loop(k, begin, end, step, carry=flatten(values)) as loop:
        loop.next = flatten(body(unflatten(loop.values, values), loop.index))
    return unflatten(loop.results, values)


def _fold(
    k: KernelBuilder,
    plan: ReducePlan,
    dims: Sequence[int],
    initial: Sequence[Element],
    body: Callable[[Mapping[int, Coordinate], Sequence[Element]], list[Element]],
    *,
    weight: int = 1,
) -> list[Element]:
    """Nested loops over `dims`, outermost first, carrying elements through `body`, which loops `weight` times."""
    sizes = {dim: plan.input_shape.dims[dim] for dim in dims}
    if not all(sizes.values()):
        return list(initial)

    def nest(dims: Sequence[int], folded: Mapping[int, Coordinate], values: Sequence[Element]) -> list[Element]:
        if not dims:
            return body(folded, values)
        if dims[0] in plan.joined:
            for number in range(sizes[dims[0]]):
                at = Coordinate(k.const(I64, number), bounds=range(number, number + 1))
                values = nest(dims[1:], {**folded, dims[0]: at}, values)
            return list(values)
        inside = weight * math.prod(sizes[dim] for dim in dims[1:])
        with listening_loop(k, 0, sizes[dims[0]], carry=flatten(values), weight=inside) as loop:
            inner = {**folded, dims[0]: Coordinate(loop.index)}
            loop.next = flatten(nest(dims[1:], inner, unflatten(loop.values, initial)))
        return unflatten(loop.results, initial)

    start = {dim: Coordinate(k.const(I64, 0)) for dim in dims}
    return nest([dim for dim in dims if sizes[dim] > 1], start, initial)


def _input_index(plan: ReducePlan, positions: Mapping[int, Coordinate]) -> Index:
    dims = plan.input_shape.dims
    if len(dims) == 1:
        return Index(dims, None, positions[0])  # a number of the elements, however they are reshaped
    return Index(dims, tuple(positions[dim] for dim in range(len(dims))))


def identity_element(k: KernelBuilder, combiner: Instruction) -> Element:
    """The element that changes nothing: -0 for a float sum (0 would turn -0 into 0), the lowest for a maximum ..."""
    element_type: ElementType = combiner.shape.type
    identity = combiner.spec.identity
    type = register_type(element_type)
    if element_type.is_complex:
        zero = k.const(type, -0.0)
        return from_parts([zero, zero] if combiner.opcode == "add" else [k.const(type, 1.0), k.const(type, 0.0)])
    if type.is_float:
        numbers = {"lowest": -math.inf, "highest": math.inf, 0: -0.0, 1: 1.0}
        return k.const(type, numbers[identity])
    if element_type.kind == "pred":
        return k.const(type, {"lowest": 0, "highest": 1, "ones": 1, 0: 0, 1: 1}[identity])
    low, high = element_type.integer_range
    return k.const(type, {"lowest": low, "highest": high, "ones": -1, 0: 0, 1: 1}[identity])
