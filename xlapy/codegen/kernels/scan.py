"""Cumulative scans: a reduce-window whose window reaches from each element to the first (or last) of its dimension.

    reduce-window(x, init), window={size=n pad=n-1_0}         r[0] = init + x[0], r[i] = r[i-1] + x[i]

Each result continues the one before it, instead of folding its window anew. That is right if the initial values that
padding holds change nothing, which the kernel finds out at run time: init + init = init. If not, it folds windows.

Lanes lie across the rows, where another dimension is the fastest. Along the fastest dimension a vector is scanned in
itself in log2(lanes) steps, if the computation is one associative op; any other runs element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.reduce import identity_element
from xlapy.codegen.kernels.reduce_window import ReduceWindowPlan, WindowFold
from xlapy.codegen.kernels.window_axes import both, carried_loop
from xlapy.codegen.registers import Element, from_parts, parts_of, splat
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy_runtime.records import Record

SHORTEST = 8  # elements; shorter windows are folded anew


class ScanPlan(Record):
    """`windows` says how the windows would be folded; the scan runs along `dim`, from its end if `is_reversed`."""

    windows: ReduceWindowPlan
    dim: int
    is_reversed: bool
    units: int
    bytes_per_unit: int

    @property
    def is_along_lanes(self) -> bool:
        """The scanned dimension is the fastest."""
        return self.windows.inner == self.dim

    @property
    def count(self) -> int:
        return self.windows.axes[self.dim].count


def plan_scan(windows: ReduceWindowPlan) -> ScanPlan | None:
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
    units = rows
    if windows.inner != dim and windows.inner >= 0:
        units = rows // windows.axes[windows.inner].count * windows.blocks
    total = sum(operand.shape.bytes for operand in instruction.operands) + instruction.shape.bytes
    is_reversed = axis.part.padding_high > 0
    return ScanPlan(windows, dim, is_reversed, units, total // max(units, 1))


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
    fold = WindowFold(k, windows, arrays)
    neutral = _changes_nothing(k, fold)
    scalar = Indexing(k, 1)
    ix = scalar if plan.is_along_lanes else Indexing(k, windows.lanes)
    blocks = 1 if plan.is_along_lanes else windows.blocks
    outer = [dim for dim in windows.outer if dim != plan.dim]
    with k.loop(begin, end) as units:
        row, block = scalar.divide(Coordinate(units.index), blocks)
        places = scalar.delinearize(row, [windows.axes[dim].count for dim in outer])
        positions = dict(zip(outer, places, strict=True))
        if not plan.is_along_lanes:
            last = windows.axes[windows.inner].count - windows.lanes
            positions[windows.inner] = ix.along_lanes(k.smin(k.mul(block.start, windows.lanes), last))

        def scanned() -> None:
            if plan.is_along_lanes and windows.lanes > 1:
                _scan_vectors(k, plan, fold, outputs, positions)
            else:
                _scan_elements(k, plan, fold, outputs, ix, positions)

        def folded() -> None:
            with k.loop(0, plan.count) as loop:
                here = {**positions, plan.dim: Coordinate(loop.index)}
                fold.store(ix, outputs, here, fold.results(ix, here))

        k.if_else(neutral, scanned, folded)


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
    positions: dict[int, Coordinate],
) -> None:
    """One element after the other; the lanes are rows."""

    def step(number: Value, running: Sequence[Element]) -> list[Element]:
        place = k.sub(plan.count - 1, number) if plan.is_reversed else number
        here = {**positions, plan.dim: Coordinate(place)}
        results = _in_order(plan, fold, running, _load(fold, ix, here), ix.lanes)
        fold.store(ix, outputs, here, results)
        return results

    initial = [splat(k, init, ix.lanes) for init in fold.inits]
    carried_loop(k, k.const(I64, 0), k.const(I64, plan.count), initial, step)


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
