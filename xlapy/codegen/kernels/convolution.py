"""Direct convolution kernels, for any dimension numbers, dilations and groups.

A tile of the result is accumulated in registers while the places of the window and the input features run:

    lanes     lie across output features (the kernel is read by vectors, the input repeated) or across a spatial
              dimension (the other way round), mostly by which is the fastest dimension of the result
    tile      a few results along another dimension, so that each vector that was loaded is used several times; with all
              of a small batch, if that is the input features of a kernel's gradient

Where features at neighbouring places lie side by side, one loop goes over places of a line and features.

Padding costs nothing inside: loops over the places of a window stop where elements do. Tiles lie where every window is
inside; the results beside them, at the edges, are computed one by one. Where a window has many places and few
positions, as in the gradient of a kernel, no tile would be left: there one has all positions, and the places at which
some of them have no element follow those at which all do. Where lanes cross an edge, a second version of the code adds
products only to the results that have them. Products of floats are fused into the sum; narrow floats accumulate in f32
and round at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I32, I64, KernelBuilder, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.dot import accumulator_type, multiply_add, widened
from xlapy.codegen.kernels.reduce_window import inner_dim, window_axes
from xlapy.codegen.kernels.window_axes import WindowAxis, carried_choice, carried_loop
from xlapy.codegen.registers import Element, Pair, memory_type, register_type, rounded, select, splat
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import ConvolutionDimensionNumbers
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import has_features_in_lanes
from xlapy.hlo.phases import LONG_WINDOW
from xlapy_runtime.records import Record

VECTORS = 2  # along the lanes
TILE = {True: 12, False: 6}
"""Results along the second dimension, by whether there are 32 registers (or 16): they hold the sums of two vectors of
each, what is loaded, and hide the latency of the products. Where features fill only one of each, twice as
many do that with half of the loads. (Along a spatial dimension twice as many took twice as long: the code at edges, for
28 positions.)"""

TILE_WITH_EDGES, BLOCKS_WITH_EDGES = 8, 4
"""Results along the second dimension where masks take registers of their own and instructions beside the products, and
lanes lie across so few blocks of positions that most of them cross an edge: of one vector each (Zen 3, 4 by 28 by 28 of
128 features in 8 groups, features first: 0.3 of the time that 6 of two take)."""

MOST_OF_SHEETS = {True: 24, False: 12}
"""Results in a tile of all positions of a small batch, by the same: so many sums, each of one vector, fit, and what
lies in the lanes is read the fewest times (7 by 7 of 3 to 64 features with a stride of 2: 0.5 of the time)."""

MOST_VECTORS, LEAST_UNITS = 4, 12
"""Along the lanes of gradients of kernels that have so few other results in a tile (those of filters of one channel)
that products would wait for one another; if so many units of work are left then. One less where all do not fit the
registers: a sum in memory takes as long as three (Zen 3, 3 by 3 of 256 to 256 features, 8 images of 14 by 14, features
first: 0.88 of the time)."""

ENOUGH_SUMS = 8
"""Vectors of sums that hide the latency of products. Gradients of kernels have few results to share out: where so many
are in a tile, it has one vector along the lanes."""

PLACES_AHEAD = 8
"""So far ahead a long window is fetched whose places are lines apart (16 of 128 channels, 28 by 28 positions: 320 us
instead of 452; 4 places and 16 are as good, 32 are too many)."""

PART_OF_LINES = 8
"""Of the second-level cache, for the lines of a long window that all tiles of a task see before the next ones. Each
sees vectors of features that lie apart, and fill few of its sets: by itself, all that there is would come from memory
(7 by 7 of 3 to 64 features, 112 by 112 positions: 0.6 of the time, 3 by 3 of 128 in 8 groups, 28 by 28: 0.35)."""

BATCH, GROUP, FEATURE, SPATIAL = 0, 1, 2, 3
"""Loops over results: batch, group, output feature in its group, then the spatial dimensions from SPATIAL on."""

Positions = Mapping[int, Coordinate]


class ConvolutionPlan(Record):
    """A convolution as loops over results. `sizes` are those of the loops, by number.

    Groups are one of the loops, unless lanes lie across several groups: then there is one loop over all features."""

    instruction: Instruction
    numbers: ConvolutionDimensionNumbers
    axes: tuple[WindowAxis, ...]  # by spatial dimension
    sizes: tuple[int, ...]
    lane_loop: int
    tile_loop: int | None
    lanes: int
    vectors: int
    tile: int
    sheets: int  # positions of the batch in a tile: one, or all
    edges: tuple[int, int]  # results along the tile loop before and behind the tiles, which see the edges
    features_per_group: int
    batch_per_group: int  # of the input, if the batch is grouped, else 0
    inputs: int  # features of a group
    masks_factors: bool  # not products, where lanes cross an edge: a mask costs an instruction
    most: int  # results in a tile, if it has one position of the batch
    lines_at_once: int  # of a window, which all tiles see before the next ones: sums are in the result then; 0: all

    @property
    def has_lines(self) -> bool:
        """Input features at neighbouring places of the window are neighbours in both operands, so that one loop goes
        over places along the last spatial dimension and features."""
        numbers, (lhs, rhs) = self.numbers, (operand.shape for operand in self.instruction.operands)
        axis, last = self.axes[-1], len(self.axes) - 1
        if (
            last + SPATIAL == self.lane_loop
            or axis.part.reversal
            or axis.part.window_dilation * axis.part.base_dilation > 1
        ):
            return False
        steps = (
            (lhs.strides()[numbers.input_spatial[last]], lhs.strides()[numbers.input_feature]),
            (rhs.strides()[numbers.kernel_spatial[last]], rhs.strides()[numbers.kernel_input_feature]),
        )
        return all(place == self.inputs * feature for place, feature in steps)

    @property
    def has_features_outside(self) -> bool:
        """The loop over input features is around those over places: there are many of these, and they lie closer, as in
        the gradient of a kernel, where the features are images of a batch."""
        numbers, (lhs, rhs) = self.numbers, (operand.shape.strides() for operand in self.instruction.operands)
        if not self.axes or self.axes[-1].part.size < LONG_WINDOW:
            return False
        place = lhs[numbers.input_spatial[-1]] * self.axes[-1].part.window_dilation + rhs[numbers.kernel_spatial[-1]]
        return lhs[numbers.input_feature] + rhs[numbers.kernel_input_feature] > place

    def shares_places(self, loop: int) -> bool:
        """Windows of a tile along a spatial loop may lie partly outside, and most of their places have an element at
        all of its positions."""
        if loop != self.tile_loop or loop < SPATIAL:
            return False
        axis = self.axes[loop - SPATIAL]
        return not axis.is_always_inside and has_few_positions(axis)

    @property
    def units(self) -> int:
        return math.prod(self.blocked()) if self.instruction.shape.size else 0

    @property
    def bytes_per_unit(self) -> int:
        """Traffic, or the products where they cost more: about one for the time of a byte."""
        result = self.instruction.shape
        products = result.size * math.prod(axis.part.size for axis in self.axes) * self.inputs
        traffic = result.bytes + sum(operand.shape.bytes for operand in self.instruction.operands)
        return max(products, traffic) // max(self.units, 1)

    @property
    def width(self) -> int:
        return self.lanes * self.vectors

    @property
    def lane_blocks(self) -> int:
        return -(-self.sizes[self.lane_loop] // self.width)

    @property
    def inner(self) -> int:
        """Results along the tile loop that tiles cover."""
        return self.sizes[self.tile_loop] - sum(self.edges) if self.tile_loop is not None else 1

    @property
    def tiles(self) -> int:
        return -(-self.inner // self.tile)

    @property
    def tile_blocks(self) -> int:
        """Tiles, and results beside them."""
        return self.tiles + sum(self.edges)

    @property
    def outer(self) -> list[int]:
        """The loops that are neither lanes nor tile, outermost first."""
        inner = (self.lane_loop, self.tile_loop, BATCH if self.sheets > 1 else None)
        return [loop for loop in range(len(self.sizes)) if loop not in inner]

    @property
    def leading(self) -> int:
        """How many of the outer loops are around the blocks of lanes."""
        return sum(loop in (BATCH, GROUP) for loop in self.outer)

    def blocked(self) -> list[int]:
        """The sizes of the loops over units. Blocks of lanes come early: their part of the kernel stays in cache."""
        outer = [self.sizes[loop] for loop in self.outer]
        return [*outer[: self.leading], self.lane_blocks, *outer[self.leading :], self.tile_blocks]


def axes_of_convolution(instruction: Instruction) -> tuple[WindowAxis, ...]:
    """Its spatial dimensions."""
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dimension_numbers"]
    lhs, result = instruction.operands[0].shape, instruction.shape
    return window_axes(
        instruction.attributes["window"],
        [lhs.dims[dim] for dim in numbers.input_spatial],
        [result.dims[dim] for dim in numbers.output_spatial],
    )


def plan_convolution(
    instruction: Instruction,
    target: Target,
    axes: Sequence[WindowAxis] | None = None,
    *,
    crosses_groups: bool = False,
) -> ConvolutionPlan:
    """The plan for all of its positions, or for those that `axes` have. With `crosses_groups`, lanes may lie across
    several groups though these have several features."""
    axes = axes_of_convolution(instruction) if axes is None else axes
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dimension_numbers"]
    rhs, result = instruction.operands[1].shape, instruction.shape
    batch_groups: int = instruction.attributes["batch_group_count"]
    groups = instruction.attributes["feature_group_count"] * batch_groups
    features, batch = result.dims[numbers.output_feature], result.dims[numbers.output_batch]
    native = target.lanes(max(32, register_type(accumulator_type(result.type)).bits))
    lane_loop = FEATURE if has_features_in_lanes(instruction) else _loop_of(numbers, inner_dim(result))
    # To gather what lanes of several groups see takes longer than several short vectors (32 groups of 8: 0.22 of the
    # time with AVX-512; 32 of 4: 0.6, with AVX2 0.42).
    split = lane_loop != FEATURE or groups == 1 or (features > groups and not crosses_groups)
    counts = [axis.count for axis in axes]
    sizes = (batch, groups if split else 1, features // groups if split else features, *counts)
    columns = sizes[lane_loop]
    lanes = min(native, 1 << (columns.bit_length() - 1)) if columns else 1
    may_be_wide = columns >= VECTORS * native
    is_narrow = lane_loop == FEATURE and not may_be_wide
    has_many_registers = target.is_avx512 or not target.is_x86
    most = TILE[has_many_registers] * (VECTORS if is_narrow else 1)
    masks_factors = target.is_x86 and not target.is_avx512
    has_edges = masks_factors and lane_loop >= SPATIAL and _is_mostly_edges(axes[lane_loop - SPATIAL], native)
    if has_edges:
        most = TILE_WITH_EDGES
    edges = [(0, 0)] * SPATIAL + [edges_of(axis) for axis in axes]
    inner = [size - sum(beside) for size, beside in zip(sizes, edges, strict=True)]
    tile_loop = _tile_loop(inner, lane_loop, numbers, most)
    tile = tile_of(inner[tile_loop], most) if tile_loop is not None else 1
    has_few = tile_loop is not None and tile_loop >= SPATIAL and has_few_positions(axes[tile_loop - SPATIAL])
    has_sheets = has_few and lane_loop != BATCH and tile * batch <= MOST_OF_SHEETS[has_many_registers]
    sheets = batch if has_sheets else 1
    plan = ConvolutionPlan(
        instruction,
        numbers,
        tuple(axes),
        sizes,
        lane_loop,
        tile_loop,
        lanes,
        1 if has_edges else _vectors(sizes, lane_loop, target, native, tile * sheets, VECTORS * most if has_few else 0),
        tile,
        sheets,
        edges[tile_loop] if tile_loop is not None else (0, 0),
        features // groups,
        batch if batch_groups > 1 else 0,
        rhs.dims[numbers.kernel_input_feature],
        masks_factors,
        most,
        lines_at_once=0,
    )
    return replace(plan, lines_at_once=_lines_at_once(plan, target))


def _lines_at_once(plan: ConvolutionPlan, target: Target) -> int:
    """Of a long window, of which all tiles see the same: as many as stay in the second-level cache until the last tile
    has seen them, if that does not hold all that they see. Tiles must not overlap, or sums would be added twice."""
    convolution = plan.instruction
    if plan.lane_loop != FEATURE or plan.tile_loop == SPATIAL or not plan.has_features_outside:
        return 0
    outermost, type = plan.axes[0].part, convolution.shape.type
    is_whole = plan.sizes[FEATURE] % plan.width == 0 and plan.inner % plan.tile == 0
    seen = sum(operand.shape.bytes for operand in convolution.operands)
    if not is_whole or outermost.base_dilation > 1 or accumulator_type(type) is not type or seen <= target.l2_bytes:
        return 0
    line = seen // (plan.inputs * outermost.size)
    return min(max(1, target.l2_bytes // PART_OF_LINES // line), outermost.size)


def _is_mostly_edges(axis: WindowAxis, native: int) -> bool:
    """Of the blocks of lanes along an axis most have a window that is partly outside."""
    return not axis.is_always_inside and axis.count <= BLOCKS_WITH_EDGES * VECTORS * native


def _vectors(sizes: Sequence[int], lane_loop: int, target: Target, native: int, results: int, most_sums: int) -> int:
    """How many lie along the lanes, for each of the `results` of a tile: these have few positions of a long window, and
    so many sums at the most, unless that is 0."""
    columns = sizes[lane_loop]
    if columns < VECTORS * native or (most_sums and results >= ENOUGH_SUMS):
        return 1
    tiles = math.prod(sizes) // max(columns * results, 1)
    units = columns // (MOST_VECTORS * native) * tiles
    if MOST_VECTORS * results > most_sums or units < LEAST_UNITS:
        return VECTORS
    # Beside the sums there are vectors of one factor, and an element of the other.
    return MOST_VECTORS if MOST_VECTORS * (results + 1) < target.vector_registers else MOST_VECTORS - 1


def _loop_of(numbers: ConvolutionDimensionNumbers, dim: int) -> int:
    """The loop that runs along a dimension of the result."""
    if dim == numbers.output_batch:
        return BATCH
    return FEATURE if dim == numbers.output_feature else SPATIAL + numbers.output_spatial.index(dim)


def edges_of(axis: WindowAxis) -> tuple[int, int]:
    """Positions at both ends that no tile covers: their windows are not inside; all, over an array with holes."""
    part = axis.part
    if part.base_dilation > 1:
        return axis.count, 0
    if has_few_positions(axis):
        return 0, 0
    extent = (part.size - 1) * part.window_dilation
    first = min(max(0, -(-part.padding_low // part.stride)), axis.count)
    end = (axis.size - 1 + part.padding_low - extent) // part.stride + 1
    return first, axis.count - min(max(first, end), axis.count)


def has_few_positions(axis: WindowAxis) -> bool:
    """Compared with the places of the window, so that most of these have an element at all positions."""
    return axis.part.base_dilation == 1 and axis.part.size >= max(LONG_WINDOW, 2 * axis.count)


def _tile_loop(sizes: Sequence[int], lane_loop: int, numbers: ConvolutionDimensionNumbers, most: int) -> int | None:
    """The loop to tile: one along which what the lanes load is the same, and long enough; of several, the fastest in
    memory."""
    spatial = sorted(range(len(sizes) - SPATIAL), key=lambda s: numbers.output_spatial[s], reverse=True)
    others = [*(SPATIAL + s for s in spatial), BATCH]
    candidates = [loop for loop in ([FEATURE] if lane_loop != FEATURE else []) + others if loop != lane_loop]
    long = next((loop for loop in candidates if 2 * sizes[loop] >= most), None)
    if long is not None:
        return long
    longest = max(candidates, key=lambda loop: sizes[loop])
    return longest if sizes[longest] > 1 else None


def tile_of(size: int, most: int) -> int:
    """The size of tiles that cover `size` with little overlap."""
    return -(-size // -(-size // most))


def emit_convolution(
    k: KernelBuilder, plan: ConvolutionPlan, lhs: Array, rhs: Array, output: Array, begin: Value, end: Value
) -> None:
    """Writes units [begin, end): tiles of results, and single ones beside them."""
    arrays = lhs, rhs, output
    if not plan.lines_at_once:
        _emit_units(k, plan, arrays, begin, end, None)
        return
    lines, count = plan.lines_at_once, plan.axes[0].part.size
    with k.loop(0, plan.inputs) as features, k.loop(0, -(-count // lines)) as turns:
        first = k.mul(turns.index, lines)
        is_first = k.and_(k.compare("eq", features.index, 0), k.compare("eq", turns.index, 0))
        turn = _Turn(features.index, first, k.smin(k.add(first, lines), count), is_first)
        _emit_units(k, plan, arrays, begin, end, turn)


class _Turn(Record):
    """What is summed up before other tiles have their turn: some lines of the window, at one input feature."""

    feature: Value
    first: Value
    last: Value
    is_first: Value


def _emit_units(
    k: KernelBuilder,
    plan: ConvolutionPlan,
    arrays: tuple[Array, Array, Array],
    begin: Value,
    end: Value,
    turn: _Turn | None,
) -> None:
    """What units sum up in one turn, or all of it."""
    lhs, rhs, output = arrays
    scalar, vector = Indexing(k, 1), Indexing(k, plan.lanes)
    with k.loop(begin, end) as units:
        places = scalar.delinearize(Coordinate(k.opaque(units.index)), plan.blocked())
        leading = plan.leading
        outer = dict(zip(plan.outer, [*places[:leading], *places[leading + 1 : -1]], strict=True))
        lane_block, tile_block = places[leading].start, places[-1].start
        first_lane = k.smin(k.mul(lane_block, plan.width), plan.sizes[plan.lane_loop] - plan.width)
        columns = [vector.along_lanes(k.add(first_lane, n * plan.lanes)) for n in range(plan.vectors)]
        row, is_tile = _first_row(k, plan, tile_block)
        if plan.tile_loop is not None:
            outer[plan.tile_loop] = Coordinate(row)
        if plan.sheets > 1:
            outer[BATCH] = Coordinate(k.const(I64, 0))
        lhs, rhs = (replace(array, ahead=0) for array in (lhs, rhs))  # each element is read several times
        feature = None if turn is None else turn.feature
        tile = _Tile(k, plan, lhs, rhs, output, outer, columns, plan.tile, turn, feature)
        single = replace(tile, rows=1)
        inside = _are_lanes_inside(k, plan, first_lane)

        def whole() -> None:
            _choose(k, inside, lambda: tile.compute(is_checked=False), lambda: tile.compute(is_checked=True))

        _choose(k, is_tile, whole, lambda: single.compute(is_checked=inside is not None))


def _choose(k: KernelBuilder, condition: Value | None, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """One of two pieces of code; None always holds."""
    if condition is None:
        then()
    else:
        k.if_else(condition, then, otherwise)


def _first_row(k: KernelBuilder, plan: ConvolutionPlan, block: Value) -> tuple[Value, Value | None]:
    """Where a block lies along the tile loop, and whether it is a tile (None: they all are)."""
    low, high = plan.edges
    if not low and not high:
        return k.smin(k.mul(block, plan.tile), plan.inner - plan.tile), None
    number = k.sub(block, low)
    is_tile = k.compare("lt", number, plan.tiles, signed=False)
    start = k.add(k.smin(k.mul(number, plan.tile), plan.inner - plan.tile), low)
    behind = k.add(block, plan.inner - plan.tiles)
    return k.select(is_tile, start, k.select(k.compare("lt", number, 0), block, behind)), is_tile


def _are_lanes_inside(k: KernelBuilder, plan: ConvolutionPlan, first: Value) -> Value | None:
    """Every place of the window lies on an element for all lanes, the first of which is at `first`; None if it always
    does. Over an array with holes, it never does."""
    if plan.lane_loop < SPATIAL or plan.axes[plan.lane_loop - SPATIAL].is_always_inside:
        return None
    axis = plan.axes[plan.lane_loop - SPATIAL]
    part = axis.part
    if part.base_dilation > 1:
        return k.const(I1, 0)
    start = k.sub(k.mul(first, part.stride), part.padding_low)
    extent = (plan.width - 1) * part.stride + (part.size - 1) * part.window_dilation
    return k.and_(k.compare("ge", start, 0), k.compare("lt", k.add(start, extent), axis.size))


class _Tile(Record):
    """One tile of results: `rows` along the tile loop by sheets by vectors along the lanes.

    `first` is where it begins in all loops but that of the lanes; `feature` is the one of the input that is summed up,
    if the loop over these is outside."""

    k: KernelBuilder
    plan: ConvolutionPlan
    lhs: Array
    rhs: Array
    output: Array
    first: Positions
    columns: Sequence[Coordinate]
    rows: int
    turn: _Turn | None
    feature: Value | None

    def compute(self, *, is_checked: bool) -> None:
        """Sums up and stores. With `is_checked`, lanes may lie where some places have no element."""
        k, plan = self.k, self.plan
        sums = iter(self._summed(self._sums_so_far(), is_checked))
        vector = Indexing(k, plan.lanes)
        for output in self._rows_of_output():
            for cell in self._cells():
                output.store(vector, self._output_index(cell), rounded(k, next(sums), output.shape.type))

    def _sums_so_far(self) -> list[Element]:
        """Those that are in the result, but in the first turn."""
        k, plan = self.k, self.plan
        kind = accumulator_type(plan.instruction.shape.type)
        zero = k.const(register_type(kind), 0)
        nothing = splat(k, Pair(zero, zero) if kind.is_complex else zero, plan.lanes)
        outputs, cells = self._rows_of_output(), self._cells()
        if self.turn is None:
            return [nothing] * (len(outputs) * len(cells))
        vector = Indexing(k, plan.lanes)
        return [
            select(k, self.turn.is_first, nothing, output.load(vector, self._output_index(cell)))
            for output in outputs
            for cell in cells
        ]

    def _summed(self, sums: Sequence[Element], is_checked: bool) -> list[Element]:
        k, plan = self.k, self.plan
        if not plan.has_features_outside or self.turn is not None:
            return self._over_places([], sums, is_checked)

        def body(feature: Value, inner: Sequence[Element]) -> list[Element]:
            return replace(self, feature=feature)._over_places([], inner, is_checked)

        return carried_loop(k, k.const(I64, 0), k.const(I64, plan.inputs), sums, body)

    def _cells(self) -> list[Positions]:
        """The results of the first row, as positions of all loops."""
        return [{**self.first, self.plan.lane_loop: column} for column in self.columns]

    def _along_tile(self, array: Array, dim: int | None, step: int, batch: int | None) -> list[Array]:
        """The array as the rows of the tile see it, and of each row its sheets, each at the indices of the first: it
        moves by `step` along a dimension from row to row, and along the one of the batch (None: not at all)."""
        element = memory_type(array.shape.type).bytes * (2 if array.shape.type.is_complex else 1)
        strides = array.shape.strides()
        row_bytes, sheet_bytes = (0 if d is None else strides[d] * element for d in (dim, batch))
        return [
            replace(array, displacement=row * step * row_bytes + sheet * sheet_bytes)
            for row in range(self.rows)
            for sheet in range(self.plan.sheets)
        ]

    def _rows_of_output(self) -> list[Array]:
        numbers, loop = self.plan.numbers, self.plan.tile_loop
        if loop is None or loop >= SPATIAL:
            dim = None if loop is None else numbers.output_spatial[loop - SPATIAL]
        else:
            dim = {BATCH: numbers.output_batch, FEATURE: numbers.output_feature}[loop]
        return self._along_tile(self.output, dim, 1, numbers.output_batch)

    def _over_places(self, offsets: list[Value], sums: Sequence[Element], is_checked: bool) -> list[Element]:
        """Loops over the places of the window that lie on elements, one spatial dimension inside the other."""
        k, plan = self.k, self.plan
        spatial = len(offsets)
        if spatial == len(plan.axes):
            return self._over_features(offsets, sums, is_checked, k.const(I64, 0), k.const(I64, plan.inputs))
        axis, loop = plan.axes[spatial], SPATIAL + spatial
        if self.rows > 1 and plan.shares_places(loop):
            return self._over_shared_places(offsets, sums, is_checked)
        first, last = k.const(I64, 0), k.const(I64, axis.part.size)
        is_outer = loop != plan.lane_loop and (loop != plan.tile_loop or self.rows == 1)
        if is_outer and axis.part.base_dilation == 1:
            position = self.first[loop].start
            first, last = axis.places_inside(k, position)
        if spatial == 0 and self.turn is not None:
            first, last = k.smax(first, self.turn.first), k.smin(last, self.turn.last)
        if spatial == len(plan.axes) - 1 and plan.has_lines:
            features = (k.mul(place, plan.inputs) for place in (first, last))
            return self._over_features([*offsets, k.const(I64, 0)], sums, is_checked, *features)

        def body(offset: Value, inner: Sequence[Element]) -> list[Element]:
            if not is_outer or axis.part.base_dilation == 1:
                return self._over_places([*offsets, offset], inner, is_checked)
            _, condition = axis.locate(Indexing(k, 1), self.first[loop], offset)
            return carried_choice(
                k,
                condition,
                inner,
                lambda: self._over_places([*offsets, offset], inner, is_checked),
                lambda: inner,
            )

        return carried_loop(k, first, last, sums, body)

    def _over_shared_places(self, offsets: list[Value], sums: Sequence[Element], is_checked: bool) -> list[Element]:
        """Loops over the places along the tile loop: first those that lie on elements for all rows, then those before
        and behind them, which do for some."""
        k, plan, spatial = self.k, self.plan, len(offsets)
        axis = plan.axes[spatial]
        start = self.first[SPATIAL + spatial].start
        first_begin, first_end = axis.places_inside(k, start)
        last_begin, last_end = axis.places_inside(k, k.add(start, self.rows - 1))
        shared = carried_loop(
            k,
            first_begin,
            last_end,
            sums,
            lambda offset, inner: self._over_places([*offsets, offset], inner, is_checked),
        )
        before = k.smax(k.sub(k.smin(first_begin, first_end), last_begin), 0)
        behind = k.smax(first_begin, last_end)
        count = k.add(before, k.smax(k.sub(first_end, behind), 0))

        def body(number: Value, inner: Sequence[Element]) -> list[Element]:
            is_before = k.compare("lt", number, before)
            offset = k.add(number, k.select(is_before, last_begin, k.sub(behind, before)))
            return self._row_by_row([*offsets, offset], inner, is_checked)

        return carried_loop(k, k.const(I64, 0), count, shared, body)

    def _row_by_row(self, offsets: list[Value], sums: Sequence[Element], is_checked: bool) -> list[Element]:
        """Adds what a place of the window along the tile loop, the last of `offsets`, says to those rows for which it
        lies on an element."""
        k, width = self.k, self.plan.sheets * len(self.columns)
        loop = SPATIAL + len(offsets) - 1
        results: list[Element] = []
        for row in range(self.rows):
            position = Coordinate(k.add(self.first[loop].start, row))
            single = replace(self, rows=1, first={**self.first, loop: position})
            _, condition = self.plan.axes[loop - SPATIAL].locate(Indexing(k, 1), position, offsets[-1])
            mine = sums[row * width : (row + 1) * width]
            add = partial(single._over_places, offsets, mine, is_checked)
            results += carried_choice(k, condition, mine, add, partial(list, mine))
        return results

    def _over_features(
        self, offsets: Sequence[Value], sums: Sequence[Element], is_checked: bool, first: Value, last: Value
    ) -> list[Element]:
        """Adds the products at one place of the window, over these input features of a group; those behind the last one
        are at the places behind it (`has_lines`)."""
        k, plan = self.k, self.plan
        kind = accumulator_type(plan.instruction.shape.type)
        cells = self._cells()
        located = [self._locate(cell, offsets) for cell in cells]
        masks = [condition if is_checked else None for _, condition in located]
        rows = list(zip(self._rows_of_lhs(), self._rows_of_rhs(), strict=True))
        if self.feature is not None and plan.lane_loop == FEATURE:
            self._fetch_ahead(cells[0], located[0][0], offsets, self.feature)

        def body(feature: Value, running: Sequence[Element]) -> list[Element]:
            loaded: dict[tuple[Value, int, Index], Element] = {}

            def load(array: Array, index: Index) -> Element:
                key = (array.pointer, array.displacement, index)
                if key not in loaded:
                    element = array.load(Indexing(k, plan.lanes), index)
                    loaded[key] = splat(k, widened(k, element, array.shape.type, kind), plan.lanes)
                return loaded[key]

            totals = iter(running)
            results = []
            for lhs, rhs in rows:
                for cell, (places, _), mask in zip(cells, located, masks, strict=True):
                    left = load(lhs, self._lhs_index(cell, places, feature, mask))
                    right = load(rhs, self._rhs_index(cell, offsets, feature))
                    results.append(self._added(left, right, next(totals), mask))
            return results

        return body(self.feature, sums) if self.feature is not None else carried_loop(k, first, last, sums, body)

    def _added(self, left: Element, right: Element, total: Element, mask: Value | None) -> Element:
        """The sum with a product, in the lanes of the mask. Elsewhere zero times zero adds nothing, and takes no
        register for a sum that may not be used."""
        k, kind = self.k, accumulator_type(self.plan.instruction.shape.type)
        if mask is None:
            return multiply_add(k, left, right, total, kind)
        if self.plan.masks_factors and isinstance(left, Value) and isinstance(right, Value) and kind.is_float:
            left, right = (k.select(mask, factor, k.const(factor.type, 0)) for factor in (left, right))
            return multiply_add(k, left, right, total, kind)
        return select(k, mask, multiply_add(k, left, right, total, kind), total)

    def _fetch_ahead(
        self, cell: Positions, places: Sequence[Coordinate], offsets: Sequence[Value], feature: Value
    ) -> None:
        """What some places further on along a long window will be read, of arrays whose places are lines apart: of many
        channels, those of one group."""
        k, plan, numbers = self.k, self.plan, self.plan.numbers
        ix = Indexing(k, plan.lanes)
        lhs, rhs = (array.shape.strides() for array in (self.lhs, self.rhs))
        apart = lhs[numbers.input_spatial[-1]] * plan.axes[-1].part.window_dilation
        has_neighbours = plan.tile_loop == BATCH and lhs[numbers.input_batch] == 1
        for array, index, step, count in (
            (self.lhs, self._lhs_index(cell, places, feature, None), apart, self.rows if has_neighbours else 1),
            (self.rhs, self._rhs_index(cell, offsets, feature), rhs[numbers.kernel_spatial[-1]], plan.width),
        ):
            width = array.shape.type.bytes
            if step * width > CACHE_LINE:
                array.fetch_ahead(ix, index, count, PLACES_AHEAD * step * width)

    def _rows_of_lhs(self) -> list[Array]:
        plan, numbers = self.plan, self.plan.numbers
        along = partial(self._along_tile, self.lhs, batch=numbers.input_batch)
        if plan.tile_loop is None or plan.tile_loop == FEATURE:
            return along(None, 0)
        if plan.tile_loop == BATCH:
            return along(numbers.input_batch, 1)
        spatial = plan.tile_loop - SPATIAL
        return along(numbers.input_spatial[spatial], plan.axes[spatial].part.stride)

    def _rows_of_rhs(self) -> list[Array]:
        dim = self.plan.numbers.kernel_output_feature if self.plan.tile_loop == FEATURE else None
        return self._along_tile(self.rhs, dim, 1, None)

    def _locate(self, cell: Positions, offsets: Sequence[Value]) -> tuple[list[Coordinate], Value | None]:
        """The input elements under one place of the window, and for which lanes there are any."""
        places: list[Coordinate] = []
        inside: Value | None = None
        vector = Indexing(self.k, self.plan.lanes)
        for spatial, (axis, offset) in enumerate(zip(self.plan.axes, offsets, strict=True)):
            place, condition = axis.locate(vector, cell[SPATIAL + spatial], offset)
            places.append(place)
            if SPATIAL + spatial == self.plan.lane_loop:
                inside = condition if condition is None else self._as_wide_as_sums(axis, place, condition)
        return places, inside

    def _as_wide_as_sums(self, axis: WindowAxis, place: Coordinate, condition: Value) -> Value:
        """The condition that lanes lie on elements, in lanes of 32 bits if sums have these: one of 64 would have to be
        put together in each turn of a loop, for LLVM brings comparisons to where they are used."""
        k, kind = self.k, accumulator_type(self.plan.instruction.shape.type)
        reach = max(axis.size, axis.last_place, axis.part.padding_low, axis.part.stride)
        is_short = axis.part.base_dilation == 1 and reach < 1 << 31
        if not self.plan.masks_factors or kind.bits > 32 or place.vector is not None or not is_short:
            return condition
        numbers = I32.with_lanes(self.plan.lanes)
        places = k.add(k.splat(k.trunc(place.start, I32), numbers.lanes), k.mul(k.lane_numbers(numbers), place.step))
        return k.compare("lt", places, axis.size, signed=False)

    def _group(self, cell: Positions) -> Coordinate:
        """The group of each lane."""
        if self.plan.sizes[GROUP] == 1 and self.plan.features_per_group < self.plan.sizes[FEATURE]:
            return Indexing(self.k, self.plan.lanes).divide(cell[FEATURE], self.plan.features_per_group)[0]
        return cell[GROUP]

    def _lhs_index(self, cell: Positions, places: Sequence[Coordinate], feature: Value, mask: Value | None) -> Index:
        plan, numbers = self.plan, self.plan.numbers
        vector = Indexing(self.k, plan.lanes)
        group = self._group(cell)
        coordinates = [cell[BATCH]] * len(self.lhs.shape.dims)
        if plan.batch_per_group:
            coordinates[numbers.input_batch] = vector.sum(vector.scale(group, plan.batch_per_group), cell[BATCH])
            coordinates[numbers.input_feature] = Coordinate(feature)
        else:
            coordinates[numbers.input_feature] = vector.add(vector.scale(group, plan.inputs), feature)
        for dim, place in zip(numbers.input_spatial, places, strict=True):
            coordinates[dim] = place
        return Index(self.lhs.shape.dims, tuple(coordinates), None, mask)

    def _rhs_index(self, cell: Positions, offsets: Sequence[Value], feature: Value) -> Index:
        plan, numbers, k = self.plan, self.plan.numbers, self.k
        coordinates = [self._output_feature(cell)] * len(self.rhs.shape.dims)
        coordinates[numbers.kernel_input_feature] = Coordinate(feature)
        for dim, axis, offset in zip(numbers.kernel_spatial, plan.axes, offsets, strict=True):
            place = k.sub(axis.part.size - 1, offset) if axis.part.reversal else offset
            coordinates[dim] = Coordinate(place)
        return Index(self.rhs.shape.dims, tuple(coordinates))

    def _output_feature(self, cell: Positions) -> Coordinate:
        vector = Indexing(self.k, self.plan.lanes)
        return vector.sum(vector.scale(cell[GROUP], self.plan.features_per_group), cell[FEATURE])

    def _output_index(self, cell: Positions) -> Index:
        numbers = self.plan.numbers
        coordinates = [cell[BATCH]] * len(self.output.shape.dims)
        coordinates[numbers.output_feature] = self._output_feature(cell)
        for spatial, dim in enumerate(numbers.output_spatial):
            coordinates[dim] = cell[SPATIAL + spatial]
        return Index(self.output.shape.dims, tuple(coordinates))
