"""Cumulative scans of one long row, block by block: threads take blocks in order, and none waits for another.

    for block of vectors:
        if nobody has found what comes before it:
            a[block] = what its elements come to, for others as well, and now they are in a cache
            from the last block on of which somebody knows what comes before it: b[next] = b[this] + a[this]
        scan it from b[block] on, and leave b[next]

A thread that is alone always knows what comes before its next block, and reads memory once. Others that come to a block
while the one before it is scanned know what that comes to, or find out themselves. What is known of a block is always
made in one way, whoever makes it, so results do not depend on threads.

Sums of floats are in two parts (`kernels.split_sums`), between blocks, too. Products of floats are not for blocks: they
might overflow where those of all elements in order do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Indexing
from xlapy.codegen.ir import I8, I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.folding import only
from xlapy.codegen.kernels.reduce_window import WindowFold
from xlapy.codegen.kernels.scan import LaneScan, ScanPlan, changes_nothing, lane_scan, load_elements, scanned_vector
from xlapy.codegen.kernels.split_sums import STEPS, nothing_since, taken_over
from xlapy.codegen.kernels.strip import stored_past_caches
from xlapy.codegen.registers import register_type, splat
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy_runtime.records import Record

BLOCK_BYTES = 128 * 1024
"""Of a block: a second-level cache holds it, and what is known of it is nothing beside it."""

LEAST_BLOCKS = 16
PLACE_BYTES = 64  # of what is known of a block, a line of the cache
STATE_BYTES = 16  # of two numbers at most

IN_ANY_ORDER = frozenset({"and", "maximum", "minimum", "or", "xor"})


class BlockScanPlan(Record):
    """A scan along lanes, in blocks of so many vectors."""

    scan: ScanPlan
    vectors: int

    @property
    def units(self) -> int:
        return -(-self.scan.count // (self.vectors * self.scan.windows.lanes))

    @property
    def bytes_per_unit(self) -> int:
        return self.scan.bytes_per_unit // self.units

    @property
    def shared_bytes(self) -> int:
        """Of what is known of the blocks, nothing at the start."""
        return PLACE_BYTES * (self.units + 1)


def plan_blocks(scan: ScanPlan, arrays: Sequence[Instruction]) -> BlockScanPlan | None:
    """How to scan a row of one of the `arrays` in blocks, if it is long, and the only one: several are shared out. What
    is made from arrays might be made in other ways where it is only folded."""
    windows = scan.windows
    operation = sole_operation(windows.computation)
    if operation is None or not scan.is_along_lanes or windows.lanes == 1 or scan.units > 1:
        return None
    type = operation.shape.type
    is_exact = operation.opcode in IN_ANY_ORDER or (type.is_integer and operation.opcode in ("add", "multiply"))
    if type.is_complex or register_type(type).bits < I8.bits or not (is_exact or scan.is_split):
        return None
    if windows.instruction.operands[0] not in arrays:
        return None
    groups = BLOCK_BYTES // (windows.operand.type.bytes * windows.lanes * STEPS)
    plan = BlockScanPlan(scan, groups * STEPS)
    return plan if groups and plan.units >= LEAST_BLOCKS else None


def emit_block_scan(
    k: KernelBuilder,
    plan: BlockScanPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """Writes blocks [begin, end)."""
    with stored_past_caches(k, outputs, streams=plan.scan.streaming) as placed:
        blocks = _Blocks(k, plan, WindowFold(k, plan.scan.windows, arrays), placed)
        neutral = changes_nothing(k, blocks.fold)
        with k.loop(begin, end) as units:
            k.if_else(neutral, lambda: blocks.scan(units.index), lambda: blocks.fold_windows(units.index))


class _Known(Record):
    """A number, or two, that some thread found out of a block, and whether it has."""

    k: KernelBuilder
    place: Value
    model: Sequence[Value]

    def is_there(self) -> Value:
        return self.k.compare("ne", self.k.atomic_load(self.k.gep(self.place, STATE_BYTES), I32), 0)

    def load(self) -> list[Value]:
        k = self.k
        return [k.atomic_load(self._of(number), value.type, "monotonic") for number, value in enumerate(self.model)]

    def leave(self, state: Sequence[Value]) -> None:
        for number, value in enumerate(state):
            self.k.atomic_store(self._of(number), value, "monotonic")
        self.k.atomic_store(self.k.gep(self.place, STATE_BYTES), self.k.const(I32, 1))

    def _of(self, number: int) -> Value:
        return self.k.gep(self.place, number, STATE_BYTES // 2)


class _Blocks:
    """States are what elements come to: two parts of a sum of floats, or a number."""

    def __init__(self, k: KernelBuilder, plan: BlockScanPlan, fold: WindowFold, outputs: Sequence[Array]) -> None:
        self.fold = fold
        self._k = k
        self._plan = plan
        self._scan = plan.scan
        self._outputs = outputs
        self._lanes = plan.scan.windows.lanes
        self._whole = plan.scan.count // self._lanes  # vectors
        self._lane: LaneScan = lane_scan(k, plan.scan, fold)
        self._init = self._with_rest(only(self._lane.encode(fold.inits[0])))
        self._nothing = self._with_rest(only(self._lane.identity))
        self._shared = k.parameters["shared"]

    def _with_rest(self, value: Value) -> list[Value]:
        return [value, only(nothing_since(self._k, value))] if self._scan.is_split else [value]

    # -- what is known

    def _sum_of(self, block: Value) -> _Known:
        """What the elements of a block come to."""
        return _Known(self._k, self._k.gep(self._shared, block, PLACE_BYTES), self._init)

    def _before(self, block: Value) -> _Known:
        """What all those before a block come to."""
        place = self._k.gep(self._shared, block, PLACE_BYTES)
        return _Known(self._k, self._k.gep(place, PLACE_BYTES // 2), self._init)

    def _found_before(self, block: Value) -> list[Value]:
        """What all elements before a block come to. Its own sum is left first, for others, and those of blocks of which
        nobody has left it are found here."""
        k = self._k

        def is_unknown(values: list[Value]) -> Value:
            is_later = k.compare("gt", values[0], 0)
            (found,) = k.if_else(is_later, lambda: [k.not_(self._before(values[0]).is_there())], lambda: [is_later])
            return found

        (first,) = k.while_loop(is_unknown, lambda values: [k.sub(values[0], 1)], [block])
        start = k.if_else(k.compare("gt", first, 0), self._before(first).load, lambda: self._init)
        with k.loop(first, k.add(block, 1), carry=start) as turns:
            is_own = k.compare("eq", turns.index, first)
            other = k.select(is_own, block, k.sub(turns.index, 1))
            known = self._sum_of(other)
            sum = k.if_else(known.is_there(), known.load, lambda: self._summed(other))
            known.leave(sum)
            merged = self._merged(turns.values, sum)
            turns.next = [k.select(is_own, old, new) for old, new in zip(turns.values, merged, strict=True)]
        return turns.results

    def _merged(self, state: Sequence[Value], sum: Sequence[Value]) -> list[Value]:
        """What elements come to, and some behind them."""
        k = self._k
        if not self._scan.is_split:
            return [only(self._lane.combine(state[0], sum[0], state[0].type.lanes))]
        total, lost = taken_over(k, state[0], sum[0])
        return [only(total), k.add(k.add(state[1], sum[1]), only(lost))]

    # -- blocks

    def _vectors(self, block: Value) -> tuple[Value, Value]:
        first = self._k.mul(block, self._plan.vectors)
        return first, self._k.smin(self._k.add(first, self._plan.vectors), self._whole)

    def _element(self, number: Value) -> Value:
        ix = Indexing(self._k, self._lanes)
        (element,) = load_elements(self.fold, ix, self._place(ix, number))
        return only(self._lane.encode(element))

    def _place(self, ix: Indexing, number: Value) -> dict[int, Coordinate]:
        """Where the vector, or the element, of a number in the order of the scan is."""
        k, scan = self._k, self._scan
        first = k.mul(number, ix.lanes)
        start = k.sub(scan.count - ix.lanes, first) if scan.is_reversed else first
        top = Coordinate(k.const(I64, 0))
        return {**dict.fromkeys(range(len(scan.windows.axes)), top), scan.dim: ix.along_lanes(start)}

    def _summed(self, block: Value) -> list[Value]:
        """What the vectors of a block come to."""

        def step(number: Value, state: list[Value]) -> list[Value]:
            return [*state[:-1], self._added(state[-1], self._element(number))]

        return self._of_lanes(self._through(block, self._splat(self._nothing), step))

    def _added(self, sum: Value, element: Value) -> Value:
        return only(self._lane.combine(sum, element, self._lanes))

    def _splat(self, state: Sequence[Value]) -> list[Value]:
        return [only(splat(self._k, value, self._lanes)) for value in state]

    def _of_lanes(self, state: Sequence[Value]) -> list[Value]:
        """What all lanes come to: one half of them merged with the other one, and so on."""
        k, lanes, halves = self._k, self._lanes, [*state]
        while lanes > 1:
            lanes //= 2
            low, high = ([k.shuffle(value, None, order) for value in halves] for order in _halves(lanes))
            halves = self._merged(low, high)
        return [k.extract(value, 0) if value.type.lanes > 1 else value for value in halves]

    def _through(
        self, block: Value, carry: Sequence[Value], step: Callable[[Value, list[Value]], list[Value]]
    ) -> list[Value]:
        """Goes through the vectors of a block with some states. Of sums in two parts, the first ones take over the
        second ones now and then."""
        k, (first, end) = self._k, self._vectors(block)
        with listening_loop(k, first, end, STEPS, carry, weight=STEPS) as groups:
            last = k.smin(k.add(groups.index, STEPS), end)
            with k.loop(groups.index, last, carry=groups.values) as steps:
                steps.next = step(k.opaque(steps.index), steps.values)
            groups.next = self._taken_over(steps.results)
        return groups.results

    def _taken_over(self, states: Sequence[Value]) -> list[Value]:
        if not self._scan.is_split:
            return [*states]
        pairs = zip(states[::2], states[1::2], strict=True)
        return [only(part) for pair in pairs for part in taken_over(self._k, *pair)]

    def scan(self, block: Value) -> None:
        k, size = self._k, len(self._init)
        is_last = k.compare("eq", block, self._plan.units - 1)
        before = self._before(block)

        def find() -> list[Value]:
            found = self._found_before(block)
            before.leave(found)
            return found

        start = k.if_else(k.or_(k.compare("eq", block, 0), before.is_there()), lambda: self._known(block), find)
        vector = Indexing(k, self._lanes)
        end = 0 if self._scan.is_reversed else self._lanes - 1

        def step(number: Value, states: list[Value]) -> list[Value]:
            state, sum = states[:size], states[size:]
            element = self._element(number)
            own = scanned_vector(k, self._scan, self._lane, element)
            grown = only(self._lane.combine(state[-1], own, self._lanes))
            self._store(vector, number, [*state[:-1], grown])
            total = k.shuffle(only(own), None, [end] * self._lanes)
            running = only(self._lane.combine(state[-1], total, self._lanes))
            return [*state[:-1], running, *sum[:-1], self._added(sum[-1], element)]

        states = self._through(block, [*self._splat(start), *self._splat(self._nothing)], step)
        with k.if_(k.not_(is_last)):
            sum = self._of_lanes(states[size:])
            self._sum_of(block).leave(sum)
            self._before(k.add(block, 1)).leave(self._merged(start, sum))
        if self._whole * self._lanes < self._scan.count:
            with k.if_(is_last):
                self._scan_rest([k.extract(value, 0) for value in states[:size]])

    def _known(self, block: Value) -> list[Value]:
        k = self._k
        return k.if_else(k.compare("eq", block, 0), lambda: self._init, self._before(block).load)

    def _scan_rest(self, state: list[Value]) -> None:
        """Elements that fill no vector."""
        k, scalar = self._k, Indexing(self._k, 1)
        with k.loop(self._whole * self._lanes, self._scan.count, carry=state) as loop:
            (element,) = load_elements(self.fold, scalar, self._place(scalar, loop.index))
            element = only(self._lane.encode(element))
            grown = only(self._lane.combine(loop.values[-1], element, 1))
            self._store(scalar, loop.index, [*loop.values[:-1], grown])
            loop.next = [*loop.values[:-1], grown]

    def _store(self, ix: Indexing, number: Value, state: Sequence[Value]) -> None:
        result = state[0] if len(state) == 1 else only(self._lane.combine(state[0], state[1], ix.lanes))
        self.fold.store(ix, self._outputs, self._place(ix, number), [self._lane.decode(result)])

    def fold_windows(self, block: Value) -> None:
        """Where the initial value changes something, each window is folded by itself."""
        k, scalar = self._k, Indexing(self._k, 1)
        size = self._plan.vectors * self._lanes
        first = k.mul(block, size)
        with k.loop(first, k.smin(k.add(first, size), self._scan.count)) as loop:
            here = {**self._place(scalar, k.const(I64, 0)), self._scan.dim: Coordinate(loop.index)}
            self.fold.store(scalar, self._outputs, here, self.fold.results(scalar, here))


def _halves(lanes: int) -> tuple[range, range]:
    """The first so many lanes, and as many behind them."""
    return range(lanes), range(lanes, 2 * lanes)
