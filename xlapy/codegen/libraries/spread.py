"""Convolutions with few features of the result, over arrays with holes: products of lines, spread over the result.

    void spread_f32_run(parallel, array, kernel, result, sizes)

`parallel` is the thread pool's function; `sizes` holds the numbers of `SPREAD_SIZES`, with strides in elements, as
`hlo.spread_products` describes them. The places of the window are packed side by side once. A unit of work is a block
of lines of the result: it multiplies the lines of the array that reach it, each with those places only that lie in the
block, adds the products to a room for its lines, and copies these to the result. Each element is summed up line by
line, in the same order whatever the blocks and threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.codegen.ir import F32, F64, I32, I64, PTR, IRType, KernelBuilder, Module, Operand, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.gemm_problem import SIZES, ceil_div
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy.codegen.target import Target

SPREAD_SIZES = (
    *("images", "inputs", "features", "blocks", "block_lines", "room_positions", "room_first"),
    *("array_lines", "array_positions", "array_image", "array_line", "array_position", "array_input"),
    *("kernel_lines", "kernel_positions", "kernel_start", "kernel_line", "kernel_position"),
    *("kernel_input", "kernel_feature"),
    *("result_lines", "result_positions", "result_image", "result_line", "result_position", "result_feature"),
    *("line_step", "line_shift", "position_step", "position_shift"),
)
"""What a caller passes: `line_step`, `line_shift` and the like say where products go; a block has `block_lines` lines
of the result, and its room lines of `room_positions`, of which number `room_first` is the first of the result."""

_PROBLEM = Record(parallel=PTR, array=PTR, packed=PTR, result=PTR, sizes=PTR)
_RUN = [("parallel", PTR), ("array", PTR), ("kernel", PTR), ("result", PTR), ("sizes", PTR)]
_RANGE = [("problem", PTR), ("begin", I64), ("end", I64)]
_SPREAD = [("products", PTR), ("pitch", I64), ("room", PTR), ("step", I64), ("run", I64), ("positions", I64)]


def emit_spread(kind: str, type: IRType, target: Target) -> Module:
    module = Module.of(target)
    emitter = _Emitter(module, kind, type, target)
    emitter.spread()
    emitter.blocks()
    emitter.run()
    return module


def _library(kind: str, type: IRType) -> Library:
    return Library(
        f"spread_{kind}",
        (f"spread_{kind}_run",),
        lambda target: emit_spread(kind, type, target),
        needs=("scratch", f"gemm_{kind}_low"),
    )


SPREAD_LIBRARIES = {
    kind: _library(kind, type) for kind, type in (("f32", F32), ("f64", F64), ("s32", I32), ("s64", I64))
}
"""By element type."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines of one image of the result that a task makes, and the memory it works in."""

    problem: RecordValue
    image: Value
    first: Value
    lines: Value
    room: Value
    products: Value


class _Emitter:
    """Writes the functions of one library."""

    def __init__(self, module: Module, kind: str, type: IRType, target: Target) -> None:
        self._module = module
        self._kind = kind
        self._type = type
        self._lanes = target.lanes(type.bits)
        self._attributes = f"nounwind {target.function_attributes}".rstrip()

    def _function(self, name: str, parameters: list[tuple[str, IRType]], linkage: str = "internal") -> KernelBuilder:
        return KernelBuilder(self._module, f"spread_{self._kind}_{name}", parameters, None, linkage, self._attributes)

    def _at(self, k: KernelBuilder, array: Value, index: Operand) -> Value:
        return k.gep(array, index, self._type.bytes)

    # The call

    def run(self) -> None:
        with self._function("run", _RUN, linkage="") as k:
            given = k.parameters
            sizes = _Sizes(k, given["sizes"])
            scratch = acquire_scratch(k, k.mul(k.mul(sizes["inputs"], sizes.columns), self._type.bytes))
            self._pack(k, sizes, given["kernel"], scratch.memory)
            problem = _PROBLEM.new(k)
            problem.set(**{name: given[name] for name in ("parallel", "array", "result", "sizes")})
            problem["packed"] = scratch.memory
            units = k.mul(sizes["images"], sizes["blocks"])
            function = k.function_pointer(f"spread_{self._kind}_blocks")
            k.call(given["parallel"], [function, problem.place, units, k.const(I64, 1)])
            release_scratch(k, scratch)

    def _pack(self, k: KernelBuilder, sizes: _Sizes, kernel: Value, packed: Value) -> None:
        """For each input all places and features of the window, neighbours of the result side by side."""
        source = self._at(k, kernel, sizes["kernel_start"])
        goal = packed
        dims = ("inputs", "kernel_lines", "kernel_positions", "features")
        steps = ("kernel_input", "kernel_line", "kernel_position", "kernel_feature")
        self._copy(k, [(sizes[dim], sizes[step]) for dim, step in zip(dims, steps, strict=True)], source, goal)

    def _copy(self, k: KernelBuilder, levels: list[tuple[Value, Value]], source: Value, goal: Value) -> Value:
        """Copies elements of several dimensions, outermost first, side by side; where the next one goes."""
        if not levels:
            k.store(goal, k.load(source, self._type))
            return self._at(k, goal, 1)
        (count, step), *inner = levels
        with k.loop(0, count, carry=[goal]) as loop:
            loop.next = [self._copy(k, inner, self._at(k, source, k.mul(loop.index, step)), loop.values[0])]
        return loop.results[0]

    # Blocks of lines

    def blocks(self) -> None:
        """A range of blocks."""
        with self._function("blocks", _RANGE) as k:
            problem = _PROBLEM.at(k, k.parameters["problem"])
            sizes = _Sizes(k, problem["sizes"])
            room_elements = k.mul(sizes["block_lines"], sizes.room_line)
            products_elements = k.mul(sizes["array_positions"], sizes.columns)
            scratch = acquire_scratch(k, k.mul(k.add(room_elements, products_elements), self._type.bytes))
            with k.loop(k.parameters["begin"], k.parameters["end"]) as unit:
                image = k.udiv(unit.index, sizes["blocks"])
                first = k.mul(k.sub(unit.index, k.mul(image, sizes["blocks"])), sizes["block_lines"])
                lines = k.smin(k.sub(sizes["result_lines"], first), sizes["block_lines"])
                products = self._at(k, scratch.memory, room_elements)
                self._block(k, sizes, _Block(problem, image, first, lines, scratch.memory, products))
            release_scratch(k, scratch)

    def _block(self, k: KernelBuilder, sizes: _Sizes, block: _Block) -> None:
        k.memset(block.room, 0, k.mul(k.mul(block.lines, sizes.room_line), self._type.bytes))
        step, places = sizes["line_step"], sizes["kernel_lines"]
        # Line r reaches lines step * r + shift, ... + places - 1 of the block: the first and the last to reach any.
        shift = k.sub(sizes["line_shift"], block.first)
        first = ceil_div(k, k.smax(k.sub(1, k.add(shift, places)), 0), step)
        last = k.sdiv(k.smax(k.add(k.sub(k.sub(block.lines, 1), shift), step), 0), step)
        with k.loop(first, k.smin(last, sizes["array_lines"])) as loop:
            below = k.add(k.mul(step, loop.index), shift)
            begin = k.smax(k.sub(0, below), 0)
            end = k.smin(places, k.sub(block.lines, below))
            with k.if_(k.compare("lt", begin, end)):  # steps may be longer than the window
                self._line(k, sizes, block, loop.index, (begin, end), below)
        self._finish(k, sizes, block)

    def _line(
        self, k: KernelBuilder, sizes: _Sizes, block: _Block, line: Value, places: tuple[Value, Value], below: Value
    ) -> None:
        """Products of one line of the array with a range of lines of the window, and where they go: place p to line
        `below` + p of the block."""
        run = k.mul(sizes["kernel_positions"], sizes["features"])
        begin, end = places
        columns = k.mul(k.sub(end, begin), run)
        source = k.add(k.mul(block.image, sizes["array_image"]), k.mul(line, sizes["array_line"]))
        window = self._at(k, block.problem["packed"], k.mul(begin, run))
        self._multiply(k, sizes, self._at(k, block.problem["array"], source), window, block.products, columns, block)
        start = k.mul(k.add(sizes["position_shift"], sizes["room_first"]), sizes["features"])
        step = k.mul(sizes["position_step"], sizes["features"])
        with k.loop(begin, end, carry=[block.products]) as place:
            room_line = k.mul(k.add(below, place.index), sizes.room_line)
            goal = self._at(k, block.room, k.add(room_line, start))
            arguments = [place.values[0], columns, goal, step, run, sizes["array_positions"]]
            k.call(f"spread_{self._kind}_add", arguments)
            place.next = [self._at(k, place.values[0], run)]

    def _multiply(
        self, k: KernelBuilder, sizes: _Sizes, a: Value, b: Value, c: Value, columns: Value, block: _Block
    ) -> None:
        known: dict[str, Operand] = {
            "batches": 1,
            "m": sizes["array_positions"],
            "n": columns,
            "k": sizes["inputs"],
            "a_row": sizes["array_position"],
            "a_step": sizes["array_input"],
            "b_step": sizes.columns,
            "b_column": 1,
            "c_row": columns,
            "c_column": 1,
        }
        table = k.alloca(I64, len(SIZES))
        for number, name in enumerate(SIZES):
            value = known.get(name, 0)
            k.store(k.gep(table, number, I64.bytes), value if isinstance(value, Value) else k.const(I64, value))
        nothing = k.const(PTR, 0)
        k.call(f"gemm_{self._kind}_low", [block.problem["parallel"], a, b, c, table, nothing, nothing])

    def _finish(self, k: KernelBuilder, sizes: _Sizes, block: _Block) -> None:
        """Copies the lines of the room to the result: whole ones if they lie there alike."""
        features, positions = sizes["features"], sizes["result_positions"]
        is_alike = k.and_(
            k.compare("eq", sizes["result_feature"], 1), k.compare("eq", sizes["result_position"], features)
        )
        image = self._at(k, block.problem["result"], k.mul(block.image, sizes["result_image"]))
        with k.loop(0, block.lines) as line:
            place = k.add(k.mul(line.index, sizes.room_line), k.mul(sizes["room_first"], features))
            source = self._at(k, block.room, place)
            goal = self._at(k, image, k.mul(k.add(block.first, line.index), sizes["result_line"]))

            def copy_whole(source: Value = source, goal: Value = goal) -> None:
                k.memcpy(goal, source, k.mul(k.mul(positions, features), self._type.bytes))

            def copy_each(source: Value = source, goal: Value = goal) -> None:
                with k.loop(0, features) as feature:
                    column = self._at(k, goal, k.mul(feature.index, sizes["result_feature"]))
                    with k.loop(0, positions) as position:
                        element = k.add(k.mul(position.index, features), feature.index)
                        there = self._at(k, column, k.mul(position.index, sizes["result_position"]))
                        k.store(there, k.load(self._at(k, source, element), self._type))

            k.if_else(is_alike, copy_whole, copy_each)

    # Adding runs to the room

    def spread(self) -> None:
        """Adds a run of products for each position: `pitch` elements apart here, `step` in the room.

        Runs overlap there. Those of neighbours are not added one behind the other: what was just written would be read
        in other pieces, and waited for."""
        with self._function("add", _SPREAD) as k:
            run, lanes = k.parameters["run"], self._lanes
            whole = k.and_(run, -lanes)
            with k.loop(0, whole, lanes) as start:
                self._add_part(k, start.index, None)
            with k.if_(k.compare("lt", whole, run)):
                left = k.splat(k.trunc(k.sub(run, whole), I32), lanes)
                self._add_part(k, whole, k.compare("lt", k.lane_numbers(I32.with_lanes(lanes)), left))

    def _add_part(self, k: KernelBuilder, start: Value, mask: Value | None) -> None:
        """A vector of each run, or what `mask` selects of it."""
        given, type = k.parameters, self._type.with_lanes(self._lanes)
        apart = ceil_div(k, k.const(I64, self._lanes), given["step"])
        with k.loop(0, apart) as turn, k.loop(turn.index, given["positions"], apart) as position:
            goal = self._at(k, given["room"], k.add(k.mul(position.index, given["step"]), start))
            source = self._at(k, given["products"], k.add(k.mul(position.index, given["pitch"]), start))
            if mask is None:
                k.store(goal, k.add(k.load(goal, type), k.load(source, type)))
            else:
                k.masked_store(goal, k.add(k.masked_load(goal, type, mask), k.masked_load(source, type, mask)), mask)


class _Sizes:
    """The numbers of a call, read when they are needed."""

    def __init__(self, k: KernelBuilder, table: Value) -> None:
        self._k = k
        self._values = {
            name: k.load(k.gep(table, number, I64.bytes), I64, invariant=True)
            for number, name in enumerate(SPREAD_SIZES)
        }

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    @property
    def columns(self) -> Value:
        """Places and features of the window."""
        k = self._k
        return k.mul(k.mul(self["kernel_lines"], self["kernel_positions"]), self["features"])

    @property
    def room_line(self) -> Value:
        """Elements of a line of the room."""
        return self._k.mul(self["room_positions"], self["features"])
