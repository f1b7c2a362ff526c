"""Direct convolutions with output features side by side in lanes, as `kernels.convolution` plans them.

    direct_TYPE_D_LxV_R             D spatial dimensions, L lanes, V vectors of them, tiles of R results along a loop;
                                    where there are as few features as L, some lanes of a vector may be idle
    direct_TYPE_D_LxV_R.lines       the same, where one loop goes over places of a line and input features
    direct_TYPE_D_LxV_R.groups      the same, where lanes lie across several groups
    direct_TYPE_D_LxV_R.neighbours  the same, where these have as many input features, side by side

The sums of a tile are in registers while the places of the window and the input features run. A unit is a tile, or one
of the results beside tiles, whose windows are partly outside: those stop where elements do. Everything but the size of
a tile is a number of the call, or of a part of it (`direct_parts`); dimensions that a convolution lacks have one
position, and a window of one place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.kernels.convolution import (
    BATCH,
    FEATURE,
    GROUP,
    SPATIAL,
    TILE,
    VECTORS,
    ConvolutionPlan,
    axes_of_convolution,
    plan_convolution,
)
from xlapy.codegen.libraries import FIRST_ARRAY, NUMBERS_PLACE, Library, LibraryCall
from xlapy.codegen.libraries.direct_parts import NO_LINE, Line, Part, parts_of, phases_of
from xlapy.codegen.libraries.sliding_lines import LineFunction, Range, module_of_lines
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import ConvolutionDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.matrix_products import TILED_TYPES, has_tiled_types
from xlapy.hlo.phases import MOST_DIMENSIONS
from xlapy_runtime.records import Record

SOURCE, KERNEL, RESULT = range(FIRST_ARRAY, FIRST_ARRAY + 3)  # in the table of a library call

LANES = range(2, 16 + 1)
"""Those that are used: of one vector, which may have more, or of several that are full."""

WAYS = ("", "lines", "groups", "neighbours")
"""To read the array."""

FEWEST_GROUPS = 4
"""In a vector, whose lanes pick what they see from a vector of the array."""

ROWS_FROM_BASE = 5
"""Results of a tile whose elements of the array are found from one address: the same, one and two steps further on."""

_AXIS = ("size", "dilation", "step", "place", "kernel")
_LINE = ("count", "window", "stride", "low", "result")
_TILE = ("size", "dilation", "window", "stride", "low")


@cache
def _axes(rank: int) -> tuple[str, ...]:
    return tuple(f"axis{n}" for n in range(rank))


def _loops(rank: int) -> tuple[str, ...]:
    """Over lines of tiles, outermost first."""
    return ("batch", "group", "block", *_axes(rank))


@cache
def _numbers(rank: int) -> tuple[str, ...]:
    """By name, in order, for all parts: how many these are; how often loops over groups and blocks of lanes run, and
    bytes from one turn to the next in the arrays; of each spatial dimension the elements, how far apart those are that
    a window sees, bytes from one to the next, and from one place of the window to the next in the array and in the
    kernel; output features over which lanes lie, and those of a group, input features and bytes between them."""
    return (
        *("parts", "group_count", "block_count", "group_source", "group_kernel", "group_result"),
        *("batch_source", "batch_result"),
        *(f"{axis}_{what}" for axis in _axes(rank) for what in _AXIS),
        *("columns", "group_columns", "inputs", "input_source", "input_kernel"),
    )


@cache
def _numbers_of_part(rank: int) -> tuple[str, ...]:
    """The same of each part: its units; where its first place and result are; how often the other loops run, with 1 for
    the one that tiles go along; of each spatial dimension what its windows are, and bytes from one result to the next;
    which loop has the tiles, and what its windows are; how many results are before these, how many tiles there are, how
    many results they cover, how many blocks there are with the results beside them, and bytes from one of them to the
    next in both arrays."""
    axes = _axes(rank)
    return (
        *("units", "kernel_first", "result_first", "batch_count"),
        *(f"{axis}_{what}" for axis in axes for what in _LINE),
        *(f"{axis}_is_tiled" for axis in axes),
        *(f"tile_{what}" for what in _TILE),
        *("edge", "tiles", "covered", "blocks", "tile_source", "tile_result"),
    )


class DirectCall(Record):
    """How a library computes a convolution, in how many units, and what one of these moves, or multiplies where that
    costs more."""

    call: LibraryCall
    units: int
    unit_bytes: int


def call_of_direct(convolution: Instruction, target: Target) -> DirectCall | None:
    """How a library computes a convolution, if one does."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, _, result = shapes = [value.shape for value in (*convolution.operands, convolution)]
    if not has_tiled_types(convolution) or not result.size or not source.size:
        return None
    axes = axes_of_convolution(convolution)
    if len(axes) > MOST_DIMENSIONS or convolution.attributes["batch_group_count"] > 1:
        return None
    phases = list(phases_of(axes))
    crosses_groups = _sees_neighbours(convolution, target)
    plan = plan_convolution(convolution, target, [line.axis for line in phases[0]], crosses_groups=crosses_groups)
    if _has_few_features(plan, target):
        plan = replace(plan, lanes=plan.sizes[FEATURE])
    if not _has_kind(plan):
        return None
    tile, parts = parts_of(plan, phases)
    width = result.type.bytes
    of_source, of_kernel, of_result = ([step * width for step in shape.strides()] for shape in shapes)
    if of_kernel[numbers.kernel_output_feature] != width or of_result[numbers.output_feature] != width:
        return None
    moves = [
        (of_source[s], of_kernel[k], of_result[r])
        for s, k, r in zip(numbers.input_spatial, numbers.kernel_spatial, numbers.output_spatial, strict=True)
    ]
    steps = _Steps(of_source[numbers.input_batch], of_result[numbers.output_batch], tuple(moves or [(0, 0, 0)]))
    shared = {
        "parts": len(parts),
        "group_count": plan.sizes[GROUP],
        "block_count": plan.lane_blocks,
        "group_source": plan.inputs * of_source[numbers.input_feature],
        "group_kernel": plan.features_per_group * width,
        "group_result": plan.features_per_group * width,
        "batch_source": steps.batch_source,
        "batch_result": steps.batch_result,
        "columns": plan.sizes[FEATURE],
        "group_columns": plan.features_per_group,
        "inputs": plan.inputs,
        "input_source": of_source[numbers.input_feature],
        "input_kernel": of_kernel[numbers.kernel_input_feature],
    }
    lines = phases[0] or (NO_LINE,)
    rank = len(lines)
    for name, line, (read, weight, _) in zip(_axes(rank), lines, steps.axes, strict=True):
        part = line.axis.part
        weight *= line.place_step * (-1 if part.reversal else 1)
        of_axis = (line.axis.size, part.window_dilation, read, part.window_dilation * read, weight)
        shared |= {f"{name}_{what}": number for what, number in zip(_AXIS, of_axis, strict=True)}
    values = [shared[name] for name in _numbers(rank)]
    units = 0
    for cut in parts:
        of_part = _values_of_part(cut, plan, tile, steps)
        units += of_part["units"]
        values += [of_part[name] for name in _numbers_of_part(rank)]
    way = "neighbours" if crosses_groups else _way(plan, shared)
    kind = Kind(result.type, rank, plan.lanes, plan.vectors, tile, way)
    call = LibraryCall(kind.name, kind.name, tuple(values))
    return DirectCall(call, units, _unit_bytes(plan, phases, units))


def _sees_neighbours(convolution: Instruction, target: Target) -> bool:
    """Lanes across groups of few features see what one vector of the array has, where each picks its own: groups have
    as many input features, which lie side by side, and a vector has at least four of them (32 groups of 4: 0.42 of the
    time of short vectors, with one group in each; of 8 1.2)."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    source, kernel = (operand.shape for operand in convolution.operands)
    features, inputs = kernel.dims[numbers.kernel_output_feature], kernel.dims[numbers.kernel_input_feature]
    groups: int = convolution.attributes["feature_group_count"]
    lanes = target.lanes(convolution.shape.type.bits)
    fills_vectors = inputs > 1 and FEWEST_GROUPS * inputs <= lanes <= features and lanes % inputs == 0
    is_square = groups > 1 and features == groups * inputs
    return target.has_permute and fills_vectors and is_square and source.strides()[numbers.input_feature] == 1


def _has_few_features(plan: ConvolutionPlan, target: Target) -> bool:
    """They do not fill a vector, but more than half of one: that takes less time than two of half the size."""
    features = plan.sizes[FEATURE]
    is_short = features < target.lanes(plan.instruction.shape.type.bits)
    return plan.lane_loop == FEATURE and is_short and features == plan.features_per_group


def _has_kind(plan: ConvolutionPlan) -> bool:
    """There is a function for tiles of this kind."""
    is_suited = plan.lane_loop == FEATURE and plan.lanes in LANES and plan.sheets == 1 and plan.inputs > 0
    if not is_suited or plan.has_features_outside or plan.tile not in _tiles(plan.vectors):
        return False
    return plan.tile_loop is None or not plan.shares_places(plan.tile_loop)  # tiles would have to be inside


def _way(plan: ConvolutionPlan, shared: Mapping[str, int]) -> str:
    if plan.sizes[FEATURE] > plan.features_per_group:
        return "groups"
    last = _axes(max(len(plan.axes), 1))[-1]
    has_lines = all(
        shared[f"{last}_{place}"] == plan.inputs * shared[f"input_{array}"]
        for place, array in (("place", "source"), ("kernel", "kernel"))
    )
    return "lines" if has_lines else ""


class _Steps(Record):
    """Bytes from one image to the next in source and result; of each axis, from one element, place and result to the
    next."""

    batch_source: int
    batch_result: int
    axes: tuple[tuple[int, int, int], ...]


def _values_of_part(part: Part, plan: ConvolutionPlan, tile: int, steps: _Steps) -> dict[str, int]:
    counts, lines = part.outer(), part.lines or (NO_LINE,)
    names = _axes(len(lines))
    tiled = None if part.loop is None or part.loop == BATCH else part.loop - SPATIAL
    values = {
        "kernel_first": 0,
        "result_first": 0,
        "batch_count": counts[BATCH],
        "edge": part.edges[0],
        "tiles": -(-part.covered // tile),
        "covered": part.covered,
        "blocks": part.units(tile),
        "tile_source": steps.batch_source if part.loop == BATCH else 0,
        "tile_result": steps.batch_result if part.loop == BATCH else 0,
    }
    for spatial, (name, line, (read, weight, written)) in enumerate(zip(names, lines, steps.axes, strict=True)):
        window, step = line.axis.part, line.step * written
        of_axis = (counts.get(SPATIAL + spatial, 1), window.size, window.stride, window.padding_low, step)
        values |= {f"{name}_{what}": number for what, number in zip(_LINE, of_axis, strict=True)}
        values[f"{name}_is_tiled"] = int(spatial == tiled)
        place = line.first_place
        values["kernel_first"] += (line.whole - 1 - place if window.reversal else place) * weight
        values["result_first"] += line.first * written
        if spatial == tiled:
            values |= {"tile_source": window.stride * read, "tile_result": step}
    axis = NO_LINE.axis if tiled is None else lines[tiled].axis
    window = axis.part
    of_tile = (axis.size, window.window_dilation, window.size, window.stride, window.padding_low)
    values |= {f"tile_{what}": number for what, number in zip(_TILE, of_tile, strict=True)}
    values["units"] = math.prod(counts.values()) * plan.sizes[GROUP] * plan.lane_blocks * values["blocks"]
    return values


def _unit_bytes(plan: ConvolutionPlan, phases: Sequence[Sequence[Line]], units: int) -> int:
    """Traffic, or the products where they cost more: about one for the time of a byte."""
    convolution = plan.instruction
    result = convolution.shape
    of_features = result.dims[plan.numbers.output_feature] * plan.sizes[BATCH] * plan.inputs
    products = sum(math.prod(line.axis.count * line.axis.part.size for line in lines) for lines in phases)
    traffic = result.bytes + sum(operand.shape.bytes for operand in convolution.operands)
    return max(products * of_features, traffic) // units


def _tiles(vectors: int) -> range:
    """Sizes of tiles of so many vectors along features."""
    return range(1, max(TILE.values()) * VECTORS // vectors + 1)


class Kind(Record):
    """What a function is made for."""

    type: ElementType
    rank: int
    lanes: int
    vectors: int
    tile: int
    way: str  # one of WAYS

    @property
    def name(self) -> str:
        size = f"{self.lanes}x{self.vectors}_{self.tile}"
        return f"direct_{self.type.name}_{self.rank}_{size}{self.way and f'.{self.way}'}"


def emit_direct(kind: Kind, target: Target) -> Module:
    def writer(k: KernelBuilder) -> LineFunction:
        return _Tiles(k, kind)

    return module_of_lines(target, {kind.name: writer})


def direct_library(name: str) -> Library | None:
    """The library of that name, if it is one of these. There are thousands, of which a program calls a few."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    type, *sizes, way = found.groups(default="")
    rank, lanes, vectors, tile = map(int, sizes)
    kind = Kind(et.element_type_named(type), rank, lanes, vectors, tile, way)
    return Library(name, (name,), partial(emit_direct, kind), reduces_strength=False)


_NAME = re.compile(
    rf"direct_({'|'.join(type.name for type in TILED_TYPES)})_(\d)_(\d+)x(\d)_(\d+)(?:\.({'|'.join(WAYS[1:])}))?"
)


class _Tiles(LineFunction):
    """Writes one function."""

    def __init__(self, k: KernelBuilder, kind: Kind) -> None:
        super().__init__(k, ())
        self._axes = _axes(kind.rank)
        self._loops = _loops(kind.rank)
        self._kind = kind
        self._vector = register_type(kind.type).with_lanes(1 << (kind.lanes - 1).bit_length())
        self._vector_bytes = kind.lanes * kind.type.bytes
        self._groups: list[Value] = []
        self._neighbour = I32 if kind.type.bits == I32.bits else I64
        moves = (f"{axis}_{what}" for axis in self._axes for what in ("place", "kernel"))
        self._inner = {"inputs", "input_source", "input_kernel", "tile_source", "tile_result", *moves}
        names = _numbers(kind.rank)
        table = k.load(k.gep(k.parameters["table"], NUMBERS_PLACE, PTR.bytes), PTR, hoistable=True)
        self._shared = {name: k.gep(table, place, I64.bytes) for place, name in enumerate(names)}
        self._parts = k.gep(table, len(names), I64.bytes)
        self._part: Mapping[str, Value] = {}
        self._source, self._kernel, self._result = (
            k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)
            for place in (SOURCE, KERNEL, RESULT)
        )

    def __getitem__(self, name: str) -> Value:
        """A number of all parts, or of the one that is written. What loops inside of tiles need is loaded once, the
        rest where it is used: there are more than registers."""
        places = self._part if name in self._part else self._shared
        is_inner = name in self._inner
        return self._k.load(places[name], I64, invariant=not is_inner, hoistable=is_inner)

    def emit(self) -> None:
        k, names = self._k, _numbers_of_part(self._kind.rank)
        first = [self._parts, k.parameters["begin"], k.parameters["end"]]
        with k.loop(0, self["parts"], carry=first, runs=True) as parts:
            numbers, begin, end = parts.values
            self._part = {name: k.gep(numbers, place, I64.bytes) for place, name in enumerate(names)}
            units = self["units"]
            own = k.smax(begin, 0), k.smin(end, units)
            with k.if_(k.compare("lt", *own)):
                self._lines(*own)
            parts.next = [k.gep(numbers, len(names), I64.bytes), k.sub(begin, units), k.sub(end, units)]

    def _lines(self, begin: Value, end: Value) -> None:
        """Units are blocks along the tiled loop; a line has all of these at one position of the other loops."""
        k, blocks = self._k, self["blocks"]
        first = k.udiv(begin, blocks)
        nothing = k.const(I64, 0)
        places = k.if_else(
            k.compare("eq", begin, 0), lambda: [nothing] * len(self._loops), lambda: self._position(first)
        )
        with k.loop(first, k.udiv(k.add(end, k.sub(blocks, 1)), blocks), carry=places, runs=True) as lines:
            unit = k.mul(lines.index, blocks)
            own = k.smax(k.sub(begin, unit), 0), k.smin(k.sub(end, unit), blocks)
            self._line(dict(zip(self._loops, lines.values, strict=True)), own)
            lines.next = self._next(lines.values)

    def _position(self, number: Value) -> list[Value]:
        """Where all loops are in a line."""
        k = self._k
        places: list[Value] = []
        for loop in reversed(self._loops[1:]):
            count = self[f"{loop}_count"]
            above = k.udiv(number, count)
            places.append(k.sub(number, k.mul(above, count)))
            number = above
        return [number, *reversed(places)]

    def _next(self, places: Sequence[Value]) -> list[Value]:
        """Where all loops are in the line behind."""
        k = self._k
        following: list[Value] = []
        step: Operand = 1
        for loop, place in zip(reversed(self._loops[1:]), reversed(places[1:]), strict=True):
            moved = k.add(place, step)
            is_end = k.compare("eq", moved, self[f"{loop}_count"])
            following.append(k.select(is_end, 0, moved))
            step = k.select(is_end, k.const(I64, 1), 0)
        return [k.add(places[0], step), *reversed(following)]

    def _line(self, places: Mapping[str, Value], blocks: Range) -> None:
        k = self._k
        lanes = self._kind.vectors * self._kind.lanes
        column = k.smin(k.mul(places["block"], lanes), k.sub(self["columns"], lanes))
        features = k.mul(column, self._kind.type.bytes)
        source = self._moved(self._source, places, "source", ("batch", "group"))
        kernel = self._moved(k.gep(k.gep(self._kernel, self["kernel_first"]), features), places, "kernel", ("group",))
        result = k.gep(k.gep(self._result, self["result_first"]), features)
        result = self._moved(result, places, "result", ("batch", "group", *self._axes))
        if self._kind.way == "neighbours":
            source = k.gep(source, features)
            self._first = self._first_neighbours()
        if self._kind.way == "groups":
            self._groups = [
                self._group_of_lanes(k.add(column, n * self._kind.lanes)) for n in range(self._kind.vectors)
            ]
        inside = []
        for axis in self._axes:
            start, own = self._places_mostly_dense(axis, places[axis])
            source = k.gep(source, k.mul(start, self[f"{axis}_step"]))
            inside.append(own)
        with k.loop(*blocks) as block:
            beside = k.sub(block.index, self["edge"])

            def tile() -> None:
                row = k.add(
                    k.smin(k.mul(beside, self._kind.tile), k.sub(self["covered"], self._kind.tile)), self["edge"]
                )
                self._block(
                    source, kernel, result, row, self._along_tile((k.const(I64, 0), self["tile_window"]), inside)
                )

            def single() -> None:
                behind = k.add(block.index, k.sub(self["covered"], self["tiles"]))
                row = k.select(k.compare("lt", beside, 0), block.index, behind)
                own = self._along_tile(self._places_mostly_dense("tile", row)[1], inside)
                self._block(source, kernel, result, row, own, is_single=True)

            k.if_else(k.compare("lt", beside, self["tiles"], signed=False), tile, single)

    def _group_of_lanes(self, column: Value) -> Value:
        """Bytes to the first input feature of each lane, of a vector that begins at a column."""
        k, lanes = self._k, self._kind.lanes
        columns = k.add(k.splat(column, lanes), k.lane_numbers(I64.with_lanes(lanes)))
        return k.mul(k.udiv(columns, k.splat(self["group_columns"], lanes)), k.splat(self["group_source"], lanes))

    def _moved(self, pointer: Value, places: Mapping[str, Value], array: str, loops: Sequence[str]) -> Value:
        """The pointer at these places of some loops."""
        for loop in loops:
            pointer = self._k.gep(pointer, self._k.mul(places[loop], self[f"{loop}_{array}"]))
        return pointer

    def _along_tile(self, own: Range, others: Sequence[Range]) -> list[Range]:
        """What is inside along each axis, with `own` for the tiled one."""
        k = self._k
        conditions = [k.compare("ne", self[f"{axis}_is_tiled"], 0) for axis in self._axes]
        return [
            (k.select(condition, own[0], other[0]), k.select(condition, own[1], other[1]))
            for condition, other in zip(conditions, others, strict=True)
        ]

    def _block(
        self,
        source: Value,
        kernel: Value,
        result: Value,
        row: Value,
        inside: Sequence[Range],
        *,
        is_single: bool = False,
    ) -> None:
        """The results of a tile from a row on, or a single one."""
        k = self._k
        rows = 1 if is_single else self._kind.tile
        source = k.gep(source, k.mul(row, self["tile_source"]))
        nothing = [k.const(self._vector, 0)] * (rows * self._kind.vectors)
        sums = iter(self._over_places(source, kernel, inside, nothing))
        for place in self._in_a_row(k.gep(result, k.mul(row, self["tile_result"])), self["tile_result"], rows):
            for vector in range(self._kind.vectors):
                self._store(k.gep(place, vector * self._vector_bytes), next(sums))

    def _over_places(self, source: Value, kernel: Value, inside: Sequence[Range], sums: Sequence[Value]) -> list[Value]:
        """Loops over the places of the window that are inside, one dimension in the other."""
        k = self._k
        axis = self._axes[-len(inside)]
        begin, end = inside[0]

        def at(place: Value) -> tuple[Value, Value]:
            return (
                k.gep(source, k.mul(place, self[f"{axis}_place"])),
                k.gep(kernel, k.mul(place, self[f"{axis}_kernel"])),
            )

        if len(inside) == 1 and self._kind.way == "lines":
            return self._over_features(*at(begin), k.mul(k.sub(end, begin), self["inputs"]), sums)
        with k.loop(begin, end, carry=sums) as loop:
            if len(inside) == 1:
                loop.next = self._over_features(*at(loop.index), self["inputs"], loop.values, runs=True)
            else:
                loop.next = self._over_places(*at(loop.index), inside[1:], loop.values)
        return loop.results

    def _over_features(
        self, source: Value, kernel: Value, inputs: Value, sums: Sequence[Value], *, runs: bool = False
    ) -> list[Value]:
        """Adds the products at one place of the window, or at all of a line."""
        k, step = self._k, self["tile_source"]
        rows = len(sums) // self._kind.vectors
        steps = [k.mul(step, number) for number in range(ROWS_FROM_BASE)]
        bases = self._in_a_row(source, k.mul(step, ROWS_FROM_BASE), -(-rows // ROWS_FROM_BASE))
        with k.loop(0, inputs, carry=[kernel, *bases, *sums], runs=runs) as loop:
            weights_at, *at = loop.values[: 1 + len(bases)]
            weights = [self._weights(k.gep(weights_at, n * self._vector_bytes)) for n in range(self._kind.vectors)]
            totals = iter(loop.values[1 + len(bases) :])
            following = [k.gep(weights_at, self["input_kernel"])]
            picked = None
            if self._kind.way == "neighbours":
                picked = k.add(self._first, k.splat(self._as_neighbour(loop.index), self._kind.lanes))
                following += at
            else:
                following += [k.gep(base, self["input_source"]) for base in at]
            for row in range(rows):
                place = k.gep(at[row // ROWS_FROM_BASE], steps[row % ROWS_FROM_BASE])
                following += [
                    k.muladd(element, weight, next(totals))
                    for element, weight in zip(self._elements(place, picked), weights, strict=True)
                ]
            loop.next = following
        return loop.results[1 + len(bases) :]

    def _weights(self, place: Value) -> Value:
        """A vector of the kernel, of which no more is read than there is."""
        k, used = self._k, self._kind.lanes
        if used == self._vector.lanes:
            return k.load(place, self._vector)
        return k.masked_load(place, self._vector, k.first_lanes(k.const(I64, used), self._vector.lanes))

    def _store(self, place: Value, sums: Value) -> None:
        """A vector of results. Of one with idle lanes the first half and the last ones that are used, as many: a masked
        store takes some 20 cycles where masks are not registers of their own."""
        k, used, half = self._k, self._kind.lanes, self._vector.lanes // 2
        if used == self._vector.lanes:
            k.store(place, sums)
            return
        for first in (0, used - half):
            part = k.shuffle(sums, None, range(first, first + half))
            k.store(k.gep(place, first * self._kind.type.bytes), part)

    def _first_neighbours(self) -> Value:
        """Which of the neighbours of each lane is the first input feature of its group."""
        k, numbers = self._k, self._neighbour.with_lanes(self._kind.lanes)
        inputs = k.splat(self._as_neighbour(self["inputs"]), numbers.lanes)
        return k.mul(k.udiv(k.lane_numbers(numbers), inputs), inputs)

    def _as_neighbour(self, number: Value) -> Value:
        return number if self._neighbour is I64 else self._k.trunc(number, self._neighbour)

    def _elements(self, place: Value, picked: Value | None) -> list[Value]:
        """What each of the vectors is multiplied by: of neighbours, those that are picked."""
        k, kind = self._k, self._kind
        if picked is not None:
            vectors = (k.load(k.gep(place, n * self._vector_bytes), self._vector) for n in range(kind.vectors))
            return [k.picked_from([vector], picked) for vector in vectors]
        if kind.way == "groups":
            return [k.gather(place, group, register_type(kind.type), element_bytes=1) for group in self._groups]
        return [k.splat(k.load(place, register_type(kind.type)), self._vector.lanes)] * kind.vectors
