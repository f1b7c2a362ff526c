"""Scatter kernels: windows of the updates are combined into the result, which holds the operand already.

    for index vector in indices:  for position in window, where it lies inside:  result = region(result, update)

Index vectors are taken in row-major order by one task, so the result is the same every time. The last window dimension
is the vector one; windows are cut to what lies inside before they are walked, so that no element asks for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.loop import leaves_rest
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import register_type
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import ScatterDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy_runtime.records import Record

FAR_AWAY = 1 << 62
"""Indices beyond this are outside of every array; up to it, sums with sizes do not overflow."""


def scatter_lanes(scatter: Instruction, target: Target) -> int:
    """Lanes along the last window dimension."""
    numbers: ScatterDimensionNumbers = scatter.attributes["dimension_numbers"]
    updates = scatter.operands[len(scatter.operands) // 2 + 1 :]
    if not numbers.update_window_dims:
        return 1
    extent = updates[0].shape.dims[numbers.update_window_dims[-1]]
    bits = max(register_type(update.shape.type).bits for update in updates)
    return min(target.lanes(max(32, bits)), 1 << (extent.bit_length() - 1)) if extent else 1


def emit_scatter(
    k: KernelBuilder, scatter: Instruction, lanes: int, arrays: Sequence[Array], outputs: Sequence[Array]
) -> None:
    """Applies all updates. `arrays` are the operands; the first of them are in `outputs` already."""
    count = len(outputs)
    numbers: ScatterDimensionNumbers = scatter.attributes["dimension_numbers"]
    _Scatter(k, numbers, scatter.called[0], lanes, arrays[count], arrays[count + 1 :], outputs).emit()


class _Start(Record):
    """Where windows of `size` begin in one operand dimension, of `available` elements; None is a 0 that is known."""

    position: Value | None
    size: int
    available: int


class _Scatter(Record):
    k: KernelBuilder
    numbers: ScatterDimensionNumbers
    region: Computation
    lanes: int
    indices: Array
    updates: Sequence[Array]
    outputs: Sequence[Array]

    @property
    def update_dims(self) -> tuple[int, ...]:
        return self.updates[0].shape.dims

    def emit(self) -> None:
        """Loops over the index vectors."""
        k, dims = self.k, self.update_dims
        scattered = [dim for dim in range(len(dims)) if dim not in self.numbers.update_window_dims]
        longest = max(scattered, key=dims.__getitem__, default=None)

        def at_vector(positions: list[Value]) -> None:
            starts = self.starts(positions)
            with k.if_(self.is_inside(starts)):
                self.window(starts, dict(zip(scattered, map(Coordinate, positions), strict=True)))

        def level(positions: list[Value]) -> None:
            if len(positions) == len(scattered):
                at_vector(positions)
            elif dims[scattered[len(positions)]] == 1:
                level([*positions, k.const(I64, 0)])
            else:
                dim = scattered[len(positions)]
                with (listening_loop if dim == longest else KernelBuilder.loop)(k, 0, dims[dim]) as loop:
                    level([*positions, loop.index])

        level([])

    def starts(self, positions: Sequence[Value]) -> list[_Start]:
        """Where the window of the index vector at `positions` begins, by operand dimension."""
        numbers = self.numbers
        dropped = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
        sizes = iter(self.update_dims[dim] for dim in numbers.update_window_dims)
        starts = []
        for dim, available in enumerate(self.outputs[0].shape.dims):
            position = None
            if dim in numbers.scatter_dims_to_operand_dims:
                position = self.index(positions, numbers.scatter_dims_to_operand_dims.index(dim))
            elif dim in numbers.input_batching_dims:
                axis = numbers.scatter_indices_batching_dims[numbers.input_batching_dims.index(dim)]
                position = positions[axis - (axis > numbers.index_vector_dim)]
            starts.append(_Start(position, 1 if dim in dropped else next(sizes), available))
        return starts

    def index(self, positions: Sequence[Value], component: int) -> Value:
        """One component of an index vector, as i64 within `FAR_AWAY`."""
        shape = self.indices.shape
        vector = [Coordinate(position) for position in positions]
        vector.insert(self.numbers.index_vector_dim, Coordinate(self.k.const(I64, component)))
        loaded = self.indices.load(Indexing(self.k, 1), Index(shape.dims, tuple(vector[: shape.rank])))
        assert isinstance(loaded, Value)
        return _as_position(self.k, loaded, shape.type)

    def is_inside(self, starts: Sequence[_Start]) -> Value:
        """Whether the window is inside in all dimensions where it has one element only."""
        k = self.k
        inside = k.const(I1, 1)
        for start in starts:
            if start.position is not None and start.size == 1:
                inside = k.and_(inside, k.compare("lt", start.position, start.available, signed=False))
        return inside

    def window(self, starts: Sequence[_Start], batch: Mapping[int, Coordinate]) -> None:
        """Loops over the part of one window that lies inside."""
        k, windows = self.k, self.numbers.update_window_dims
        ranges = [self.range_of(start) for start in self._windowed(starts)]

        def level(positions: list[Value]) -> None:
            if len(positions) + 1 < len(windows):
                with k.loop(*ranges[len(positions)]) as loop:
                    level([*positions, loop.index])
            elif windows:
                begin, end = ranges[-1]

                def combined(ix: Indexing, position: Value) -> Callable[[], None]:
                    return self.combined(ix, starts, batch, [*map(Coordinate, positions), ix.along_lanes(position)])

                self.row(begin, end, combined)
            else:
                self.combined(Indexing(k, 1), starts, batch, [])()

        level([])

    def row(self, begin: Value, end: Value, combined: Callable[[Indexing, Value], Callable[[], None]]) -> None:
        """A row of a window. If its length is known, it ends in a whole vector."""
        k, lanes = self.k, self.lanes
        length = k.sub(end, begin).constant
        rest = int(length) % lanes if length is not None and leaves_rest(int(length), lanes) else 0
        store_last = combined(Indexing(k, lanes), k.sub(end, lanes)) if rest else None
        whole = k.sub(end, rest)
        strip(k, begin, whole, lanes, lambda ix, position: combined(ix, position)(), overlapping=False)
        if store_last is not None:
            store_last()

    def _windowed(self, starts: Sequence[_Start]) -> list[_Start]:
        """The starts of the dimensions that windows span, in order."""
        dropped = (*self.numbers.inserted_window_dims, *self.numbers.input_batching_dims)
        return [start for dim, start in enumerate(starts) if dim not in dropped]

    def range_of(self, start: _Start) -> tuple[Value, Value]:
        """The window positions that lie inside."""
        k = self.k
        if start.position is None or start.size == 1:
            return k.const(I64, 0), k.const(I64, start.size)
        first = k.smax(k.neg(start.position), 0)
        last = k.smin(k.sub(start.available, start.position), start.size)
        return first, k.smax(first, last)

    def combined(
        self, ix: Indexing, starts: Sequence[_Start], batch: Mapping[int, Coordinate], place: Sequence[Coordinate]
    ) -> Callable[[], None]:
        """Combines the lanes at window position `place` of all updates with the results. Returns what stores them."""
        numbers = self.numbers
        source = {**batch, **dict(zip(numbers.update_window_dims, place, strict=True))}
        dropped = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
        offsets = iter(place)
        target = []
        for dim, start in enumerate(starts):
            offset = ix.constant(0) if dim in dropped else next(offsets)
            target.append(offset if start.position is None else ix.add(offset, start.position))
        read = Index(self.update_dims, tuple(source[dim] for dim in range(len(source))))
        written = Index(self.outputs[0].shape.dims, tuple(target))
        present = [output.load(ix, written) for output in self.outputs]
        incoming = [update.load(ix, read) for update in self.updates]
        results = emit_region(self.k, self.region, [*present, *incoming])

        def store() -> None:
            for output, result in zip(self.outputs, results, strict=True):
                output.store(ix, written, result)

        return store


def _as_position(k: KernelBuilder, index: Value, element_type: ElementType) -> Value:
    if not element_type.is_signed:
        wide = k.zext(index, I64)
        return k.umin(wide, FAR_AWAY) if element_type.bits == 64 else wide
    wide = k.sext(index, I64)
    return k.smin(k.smax(wide, -FAR_AWAY), FAR_AWAY) if element_type.bits == 64 else wide
