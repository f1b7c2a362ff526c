"""Cumulative scans: a reduce-window whose window reaches from each element to the first (or last) of its dimension.

    reduce-window(x, init), window={size=n pad=n-1_0}         r[0] = init + x[0], r[i] = r[i-1] + x[i]

Each result continues the one before it, instead of folding its window anew. That is right if the initial values that
padding holds change nothing, which the kernel finds out at run time: init + init = init. If not, it folds windows.

Lanes lie across the rows, where another dimension is the fastest, in strips of several vectors: memory is made for long
pieces of what lies side by side. Along the fastest dimension a vector is scanned in itself in log2(lanes) steps, if the
computation is one associative op; any other runs element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array, Placement
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.fetching import fetched_by_rows
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.kernels.reduce import identity_element
from xlapy.codegen.kernels.reduce_window import ReduceWindowPlan, WindowFold
from xlapy.codegen.kernels.window_axes import both, carried_loop
from xlapy.codegen.registers import Element, from_parts, memory_type, parts_of, register_type, splat
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy_runtime.records import Record

SHORTEST = 8  # elements; shorter windows are folded anew
WIDEST_STRIP = 16  # native vectors of all results, which are carried in registers
FEW_STRIPS = 8  # that there should be at the least, so that threads have something to share


class ScanPlan(Record):
    """`windows` says how the windows would be folded; the scan runs along `dim`, from its end if `is_reversed`."""

    windows: ReduceWindowPlan
    dim: int
    is_reversed: bool
    vectors: int  # of a strip; 1 along lanes
    streaming: bool  # results are too large to stay in cache until somebody reads them
    units: int
    bytes_per_unit: int

    @property
    def strips(self) -> int:
        """How many lie side by side; the last one may overlap the one before it."""
        return 1 if self.is_along_lanes else -(-self.windows.blocks // self.vectors)

    @property
    def is_along_lanes(self) -> bool:
        """The scanned dimension is the fastest."""
        return self.windows.inner == self.dim

    @property
    def count(self) -> int:
        return self.windows.axes[self.dim].count


def plan_scan(windows: ReduceWindowPlan, target: Target) -> ScanPlan | None:
    """How a reduce-window runs as a scan, or None if its window is another."""
    instruction = windows.instruction
    wide = [dim for dim, axis in enumerate(windows.axes) if not axis.is_trivial or axis.size != axis.count]
    if len(wide) != 1:
        return None
    dim = wide[0]
    axis = windows.axes[dim]
    if not axis.is_cumulative or axis.size < SHORTEST:
        return None
    if windows.inner == dim and sole_operation(windows.computation) is None:
        windows = replace(windows, lanes=1)
    rows = math.prod(windows.result.dims) // axis.count
    is_across = windows.inner not in (dim, -1)
    vectors = _vectors(windows, rows, target) if is_across else 1
    units = rows // windows.axes[windows.inner].count * -(-windows.blocks // vectors) if is_across else rows
    total = sum(operand.shape.bytes for operand in instruction.operands) + instruction.shape.bytes
    streaming = is_streamed(windows.roots, windows.lanes, target)
    is_reversed = axis.part.padding_high > 0
    return ScanPlan(windows, dim, is_reversed, vectors, streaming, units, total // max(units, 1))


def _vectors(windows: ReduceWindowPlan, rows: int, target: Target) -> int:
    """How many vectors make a strip: as many as registers carry, if enough strips are left."""
    bits = sum(register_type(leaf.type).bits for leaf in windows.instruction.shape.leaves())
    native = -(-bits * windows.lanes // (8 * target.vector_bytes))
    columns, vectors = windows.axes[windows.inner].count, 1
    while (
        2 * vectors * native <= WIDEST_STRIP
        and 2 * vectors * windows.lanes <= columns
        and 2 * vectors * windows.lanes * FEW_STRIPS <= rows
    ):
        vectors *= 2
    return vectors


def emit_scan(
    k: KernelBuilder,
    plan: ScanPlan,
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    begin: Value,
    end: Value,
) -> None:
    """Writes units [begin, end): rows, or vectors of neighbouring rows."""
    windows = plan.windows
    scalar, vector = Indexing(k, 1), Indexing(k, windows.lanes)
    if not plan.is_along_lanes and windows.inner >= 0:
        width = windows.lanes * plan.vectors
        arrays = fetched_by_rows(arrays, windows.operand.dims, plan.dim, width, from_end=plan.is_reversed)
    fold = WindowFold(k, windows, arrays)
    neutral = _changes_nothing(k, fold)
    stored = _past_caches(k, plan, outputs) if plan.streaming else outputs
    outer = [dim for dim in windows.outer if dim != plan.dim]
    with k.loop(begin, end) as units:
        row, strip = scalar.divide(Coordinate(units.index), plan.strips)
        places = scalar.delinearize(row, [windows.axes[dim].count for dim in outer])
        positions = dict(zip(outer, places, strict=True))
        lines = [positions]
        if not plan.is_along_lanes and windows.inner >= 0:
            first = k.mul(strip.start, windows.lanes * plan.vectors)
            first = k.smin(first, windows.axes[windows.inner].count - windows.lanes * plan.vectors)
            starts = [k.add(first, windows.lanes * number) for number in range(plan.vectors)]
            lines = [{**positions, windows.inner: vector.along_lanes(start)} for start in starts]

        def scanned() -> None:
            if plan.is_along_lanes and windows.lanes > 1:
                _scan_vectors(k, plan, fold, stored, positions)
            else:
                _scan_elements(k, plan, fold, stored, scalar if plan.is_along_lanes else vector, lines)

        def folded() -> None:
            ix = scalar if plan.is_along_lanes else vector
            with k.loop(0, plan.count) as loop:
                for line in lines:
                    here = {**line, plan.dim: Coordinate(loop.index)}
                    fold.store(ix, outputs, here, fold.results(ix, here))

        k.if_else(neutral, scanned, folded)
    if plan.streaming:
        k.fence()


def _past_caches(k: KernelBuilder, plan: ScanPlan, outputs: Sequence[Array]) -> list[Array]:
    """The outputs, stored past the caches if all vectors lie so that this may be."""
    windows, is_off = plan.windows, k.const(I1, 0)
    for output in outputs:
        width, count = memory_type(output.shape.type).bytes, windows.axes[windows.inner].count
        ends = k.or_(k.address(output.pointer), count * width)
        is_off = k.or_(is_off, k.compare("ne", k.and_(ends, windows.lanes * width - 1), 0))
    return [replace(output, placement=Placement(is_off)) for output in outputs]


def _changes_nothing(k: KernelBuilder, fold: WindowFold) -> Value:
    """Folding the initial values into themselves leaves them as they are."""
    unchanged: Value | None = None
    for result, init in zip(fold.combine(fold.inits, fold.inits, 1), fold.inits, strict=True):
        for part, before in zip(parts_of(result), parts_of(init), strict=True):
            unchanged = both(k, unchanged, k.compare("eq", part, before))
    return unchanged if unchanged is not None else k.const(I1, 1)


def _load(fold: WindowFold, ix: Indexing, positions: dict[int, Coordinate]) -> list[Element]:
    dims = fold.plan.operand.dims
    index = Index(dims, tuple(positions[dim] for dim in range(len(dims))))
    return [splat(fold.k, element, ix.lanes) for element in fold.elements(ix, index)]


def _in_order(
    plan: ScanPlan, fold: WindowFold, earlier: Sequence[Element], later: Sequence[Element], lanes: int
) -> list[Element]:
    """Combines what was scanned with what comes; in a reversed scan that lies in front of it."""
    return fold.combine(later, earlier, lanes) if plan.is_reversed else fold.combine(earlier, later, lanes)


def _scan_elements(
    k: KernelBuilder,
    plan: ScanPlan,
    fold: WindowFold,
    outputs: Sequence[Array],
    ix: Indexing,
    lines: Sequence[dict[int, Coordinate]],
) -> None:
    """One element of each line after the other; the lanes are rows."""

    def step(number: Value, running: Sequence[Element]) -> list[Element]:
        place = k.sub(plan.count - 1, number) if plan.is_reversed else number
        following: list[Element] = []
        for line, earlier in zip(lines, _batches(running, len(fold.inits)), strict=True):
            here = {**line, plan.dim: Coordinate(place)}
            results = _in_order(plan, fold, earlier, _load(fold, ix, here), ix.lanes)
            fold.store(ix, outputs, here, results)
            following += results
        return following

    initial = [splat(k, init, ix.lanes) for init in fold.inits] * len(lines)
    carried_loop(k, k.const(I64, 0), k.const(I64, plan.count), initial, step)


def _batches(values: Sequence[Element], size: int) -> list[Sequence[Element]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _scan_vectors(
    k: KernelBuilder, plan: ScanPlan, fold: WindowFold, outputs: Sequence[Array], positions: dict[int, Coordinate]
) -> None:
    """Vectors of neighbours, each scanned in itself and then combined with all before it; the rest one by one."""
    lanes = plan.windows.lanes
    vector, scalar = Indexing(k, lanes), Indexing(k, 1)
    whole = plan.count // lanes
    end = 0 if plan.is_reversed else lanes - 1  # the lane that has everything so far

    def place(first: Value, ix: Indexing) -> dict[int, Coordinate]:
        start = k.sub(plan.count - ix.lanes, first) if plan.is_reversed else first
        return {**positions, plan.dim: ix.along_lanes(start)}

    def step(ix: Indexing, scan: Callable[[Element], Element]) -> Callable[[Value, Sequence[Element]], list[Element]]:
        def body(number: Value, running: Sequence[Element]) -> list[Element]:
            here = place(k.mul(number, ix.lanes), ix)
            own = [scan(element) for element in _load(fold, ix, here)]
            carried = [splat(k, element, ix.lanes) for element in running]
            results = _in_order(plan, fold, carried, own, ix.lanes)
            fold.store(ix, outputs, here, results)
            if ix.lanes == 1:
                return results
            return [from_parts([k.extract(part, end) for part in parts_of(result)]) for result in results]

        return body

    inside = step(vector, lambda element: _scanned_vector(k, plan, fold, element))
    running = carried_loop(k, k.const(I64, 0), k.const(I64, whole), list(fold.inits), inside) if whole else fold.inits
    if whole * lanes < plan.count:
        first, last = k.const(I64, whole * lanes), k.const(I64, plan.count)
        carried_loop(k, first, last, running, step(scalar, lambda element: element))


def _scanned_vector(k: KernelBuilder, plan: ScanPlan, fold: WindowFold, element: Element) -> Element:
    """Each lane combined with all lanes before it (behind it, if reversed), by doubling distances."""
    lanes = plan.windows.lanes
    operation = sole_operation(plan.windows.computation)
    assert operation is not None
    identity = splat(k, identity_element(k, operation), lanes)
    distance = 1
    while distance < lanes:
        if plan.is_reversed:
            order = range(distance, lanes + distance)  # lanes from the end on are the identity's
        else:
            order = range(lanes - distance, 2 * lanes - distance)
        pairs = zip(parts_of(element), parts_of(identity), strict=True)
        parts = [
            k.shuffle(part, neutral, order) if plan.is_reversed else k.shuffle(neutral, part, order)
            for part, neutral in pairs
        ]
        (element,) = _in_order(plan, fold, [from_parts(parts)], [element], lanes)
        distance *= 2
    return element
