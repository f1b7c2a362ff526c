"""Triangular systems and Cholesky factors of any size, in place, for a batch of matrices with any pitches.

    void linalg_f32_solve(parallel, a, x, sizes)        x: the right sides, then the solutions of a x = b
    void linalg_f32_factor(parallel, a, sizes)          a: a positive definite matrix, then its lower factor

`parallel` is the thread pool's function; `sizes` holds the numbers of `SOLVE_SIZES` and `FACTOR_SIZES`, with pitches in
elements. Both go block by block: what the rows before contribute is one matrix product, and the block itself is
computed in buffers (`kernels.triangular`). Matrix products can only add, so what has to be subtracted is kept with its
sign changed: solutions of earlier blocks, and the factor's adjoint in the triangle that it leaves free. Many solutions
are packed as products read them (`gemm_strips`); others stay negated where they are until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import F32, F64, I64, PTR, IRType, KernelBuilder, Module, Operand, Value
from xlapy.codegen.kernels import triangular
from xlapy.codegen.kernels.linalg import LARGEST_BLOCK, VECTORS
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.kernels.triangular import Buffer, Matrix
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.gemm import LOW_ROWS
from xlapy.codegen.libraries.gemm_problem import SIZES, strip_bytes
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.libraries.gemm_tile import tile_shape
from xlapy.codegen.libraries.gemm_types import GEMM_TYPES
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy.codegen.registers import Element
from xlapy.codegen.target import Target
from xlapy.support.errors import InternalError
from xlapy_runtime import records

SOLVE_SIZES = (
    *("batches", "rows", "columns", "a_batch", "a_row", "a_column", "x_batch", "x_row", "x_column"),
    *("is_upper", "unit_diagonal", "conjugates"),
)
"""`conjugates` solves for the conjugate of x, with the conjugate of b."""

FACTOR_SIZES = ("batches", "rows", "batch", "row", "column")

_GROUPS_PER_TASK = 1  # groups of right sides: a block's substitution for one takes some microseconds

_SOLVE = Record(
    **dict.fromkeys(("a", "x", "strips"), PTR),
    **dict.fromkeys(("rows", "columns", "a_row", "a_column", "x_row", "x_column", "strip_row"), I64),
    **dict.fromkeys(("strip_bytes", "packs", "unit_diagonal"), I64),
)
"""One block: pointers to its first elements in the order of substitution, pitches that may be negative; and whether
solutions are packed, in strips of so many bytes, the first of which has its row there."""

_PANEL = Record(factor=PTR, below=PTR, above=PTR, rows=I64, columns=I64, row=I64, column=I64)
"""The rows below a block that was factored: where they are, and where their adjoint goes."""

_RANGE = [("args", PTR), ("begin", I64), ("end", I64)]


def emit_linalg(type: IRType, parts: int, kind: str, target: Target) -> Module:
    module = Module(has_fma=target.has_fma)
    emitter = _Emitter(module, type, parts, kind, target)
    emitter.solve_groups()
    emitter.solve()
    emitter.panel_groups()
    emitter.factor()
    return module


def _library(kind: str, type: IRType, parts: int) -> Library:
    exports = (f"linalg_{kind}_solve", f"linalg_{kind}_factor")
    needs = ("scratch", f"gemm_{kind}", f"gemm_{kind}_low")
    return Library(f"linalg_{kind}", exports, lambda target: emit_linalg(type, parts, kind, target), needs=needs)


LINALG_LIBRARIES = {
    kind: _library(kind, type, parts)
    for kind, type, parts in (("f32", F32, 1), ("f64", F64, 1), ("c64", F32, 2), ("c128", F64, 2))
}
"""By element type."""


class _Strips(records.Record):
    """Where solutions are packed: strips of all rows, so far apart."""

    memory: Value
    strip_bytes: Value


class _Emitter:
    """Writes the functions of one library."""

    def __init__(self, module: Module, type: IRType, parts: int, kind: str, target: Target) -> None:
        self._module = module
        self._type = type
        self._parts = parts
        self._kind = kind
        self._bytes = type.bytes * parts
        self._lanes = target.lanes(type.bits)
        self._width = VECTORS * self._lanes
        gemm = GEMM_TYPES[kind].on(target)
        self._strip_width = tile_shape(gemm, target).columns // gemm.parts
        if self._width % self._strip_width:
            raise InternalError(f"strips of {self._strip_width} columns do not make up {self._width} of {kind}")
        self._solving_tile = triangular.solving_tile(self._width, self._lanes, parts, target)
        self._factoring_tile = triangular.factoring_tile(self._lanes, parts, target)
        self._attributes = f"nounwind {target.function_attributes}".rstrip()

    def _function(self, name: str, parameters: list[tuple[str, IRType]], linkage: str = "internal") -> KernelBuilder:
        return KernelBuilder(self._module, f"linalg_{self._kind}_{name}", parameters, None, linkage, self._attributes)

    def _matrix(self, pointer: Value, row: Value, column: Value) -> Matrix:
        return Matrix(pointer, self._type, self._parts, row, column)

    def _run_groups(self, k: KernelBuilder, parallel: Value, name: str, args: RecordValue, columns: Value) -> None:
        """Runs a function of ranges over groups of as many columns as are solved together."""
        groups = k.sdiv(k.add(columns, self._width - 1), self._width)
        function = k.function_pointer(f"linalg_{self._kind}_{name}")
        k.call(parallel, [function, args.place, groups, k.const(I64, _GROUPS_PER_TASK)])

    def _product(
        self,
        k: KernelBuilder,
        parallel: Value,
        a: Matrix,
        b: Matrix,
        c: Matrix,
        sizes: Sequence[Value],
        b_strip: Operand = 0,
        function: str = "low",
    ) -> None:
        """c += a b, where c has `sizes[0]` rows and `sizes[1]` columns and `sizes[2]` products are summed."""
        m, n, depth = sizes
        values: dict[str, Operand] = {"batches": 1, "m": m, "n": n, "k": depth, "accumulate": 1, "epilogue_work": 0}
        values |= {"a_batch": 0, "a_row": a.row_pitch, "a_step": a.column_pitch}
        values |= {"b_batch": 0, "b_step": b.row_pitch, "b_column": b.column_pitch, "b_strip": b_strip}
        values |= {"c_batch": 0, "c_row": c.row_pitch, "c_column": c.column_pitch}
        table = k.alloca(I64, len(SIZES))
        for number, name in enumerate(SIZES):
            value = values[name]
            k.store(k.gep(table, number, 8), value if isinstance(value, Value) else k.const(I64, value))
        nothing = k.const(PTR, 0)
        k.call(f"gemm_{self._kind}_{function}", [parallel, a.pointer, b.pointer, c.pointer, table, nothing, nothing])

    def _numbers(self, k: KernelBuilder, names: Sequence[str]) -> dict[str, Value]:
        sizes = k.parameters["sizes"]
        return {name: k.load(k.gep(sizes, number, 8), I64) for number, name in enumerate(names)}

    # -- solving -------------------------------------------------------------------------------------------------------

    def solve_groups(self) -> None:
        """Substitution in one block, for groups [begin, end) of right sides; solutions are packed or left, negated."""
        with self._function("solve_groups", _RANGE) as k:
            args = _SOLVE.at(k, k.parameters["args"])
            a = self._matrix(args["a"], args["a_row"], args["a_column"])
            x = self._matrix(args["x"], args["x_row"], args["x_column"])
            rows, columns = args["rows"], args["columns"]
            unit_diagonal = k.compare("ne", args["unit_diagonal"], 0)
            packs = k.compare("ne", args["packs"], 0)
            buffer = Buffer.new(k, self._type, self._parts, LARGEST_BLOCK, self._width)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as groups:
                first = k.mul(groups.index, self._width)
                count = k.smin(k.sub(columns, first), self._width)
                sides = x.moved(k, 0, first)
                triangular.load_columns(k, sides, rows, count, buffer, self._solving_tile)

                def coefficient(row: Value, column: Value) -> Element:
                    return a.load(k, row, column)

                def negated(element: Element) -> Element:
                    return triangular.negate(k, element)

                def substitute(*, unit_diagonal: bool) -> None:
                    triangular.substitute(k, coefficient, rows, buffer, self._solving_tile, unit_diagonal=unit_diagonal)

                k.if_else(
                    unit_diagonal, partial(substitute, unit_diagonal=True), partial(substitute, unit_diagonal=False)
                )
                with k.if_(packs):
                    triangular.store_columns(k, buffer, rows, count, sides, self._solving_tile)
                    self._pack(k, args, buffer, groups.index)
                with k.if_(k.not_(packs)):
                    triangular.store_columns(k, buffer, rows, count, sides, self._solving_tile, negated)

    def _pack(self, k: KernelBuilder, args: RecordValue, buffer: Buffer, group: Value) -> None:
        """Stores the solutions of a group in strips, negated; the last strips of the last group may be no solutions."""
        strips = self._width // self._strip_width
        width = min(self._strip_width, self._lanes)
        for number in range(strips):
            strip = k.add(k.mul(group, strips), number)
            start = k.gep(args["strips"], k.mul(strip, args["strip_bytes"]))
            packed = self._matrix(start, args["strip_row"], k.const(I64, 1))
            with k.loop(0, args["rows"]) as rows:
                for place in range(0, self._strip_width, width):
                    column = k.const(I64, number * self._strip_width + place)
                    solution = buffer.load(k, rows.index, column, width)
                    packed.store_row(k, rows.index, place, triangular.negate(k, solution))

    def solve(self) -> None:
        parameters = [("parallel", PTR), ("a", PTR), ("x", PTR), ("sizes", PTR)]
        with self._function("solve", parameters, linkage="") as k:
            sizes = self._numbers(k, SOLVE_SIZES)
            is_wide = k.compare("gt", sizes["columns"], LOW_ROWS)
            packs = k.and_(k.compare("eq", sizes["x_column"], 1), is_wide)
            k.if_else(packs, partial(self._solve_packing, k, sizes), partial(self._solve_in_place, k, sizes))

    def _solve_packing(self, k: KernelBuilder, sizes: dict[str, Value]) -> None:
        """Solutions are packed as they are found, so that products, of which each row of a block takes part in several,
        need not gather them from rows that lie far apart (f32 1024 by 1024, one core of a Zen 3: 0.95 of the time)."""
        groups = k.sdiv(k.add(sizes["columns"], self._width - 1), self._width)
        count = k.mul(groups, self._width // self._strip_width)
        bytes = strip_bytes(k, sizes["rows"], self._strip_width * self._bytes)
        scratch = acquire_scratch(k, k.mul(bytes, count))
        self._each_system(k, sizes, _Strips(scratch.memory, bytes))
        release_scratch(k, scratch)

    def _solve_in_place(self, k: KernelBuilder, sizes: dict[str, Value]) -> None:
        self._each_system(k, sizes, None)

    def _each_system(self, k: KernelBuilder, sizes: dict[str, Value], strips: _Strips | None) -> None:
        with k.loop(0, sizes["batches"]) as batches:
            pointers = [
                k.gep(k.parameters[name], k.mul(batches.index, sizes[f"{name}_batch"]), self._bytes)
                for name in ("a", "x")
            ]
            a = self._matrix(pointers[0], sizes["a_row"], sizes["a_column"])
            x = self._matrix(pointers[1], sizes["x_row"], sizes["x_column"])
            conjugates = k.compare("ne", sizes["conjugates"], 0)
            change_signs = partial(self._change_signs, k, x, sizes["rows"], sizes["columns"])
            with k.if_(conjugates):
                change_signs(1.0, -1.0)
            with k.loop(0, sizes["rows"], LARGEST_BLOCK) as blocks:
                self._solve_block(k, a, x, sizes, blocks.index, strips)
                known = k.add(blocks.index, LARGEST_BLOCK)
                with k.if_(k.compare("lt", known, sizes["rows"])):
                    self._add_contributions(k, a, x, sizes, known, strips)
            sign = 1.0 if strips else -1.0
            with k.if_(conjugates):
                change_signs(sign, -sign)
            if not strips:
                with k.if_(k.not_(conjugates)):
                    change_signs(-1.0, -1.0)

    def _add_contributions(
        self, k: KernelBuilder, a: Matrix, x: Matrix, sizes: dict[str, Value], known: Value, strips: _Strips | None
    ) -> None:
        """What the last rows that are known contribute to as many that follow (from the end on, for an upper triangle).

        As many as the largest power of two that divides `known`: so half of all rows meet the other half in one
        product, and so do halves of halves. Each row gets all contributions before its block is solved, in order."""
        is_upper, total = k.compare("ne", sizes["is_upper"], 0), sizes["rows"]
        count = k.and_(known, k.neg(known))
        rows = k.smin(k.sub(total, known), count)
        following = k.select(is_upper, k.sub(k.sub(total, known), rows), known)
        last = k.select(is_upper, k.sub(total, known), k.sub(known, count))
        product = partial(self._product, k, k.parameters["parallel"], a.moved(k, following, last))
        result, extents = x.moved(k, following, 0), (rows, sizes["columns"], count)
        if strips is None:
            product(x.moved(k, last, 0), result, extents)
        else:
            packed = self._matrix(strips.memory, k.const(I64, self._strip_width), k.const(I64, 1))
            distance = k.sdiv(strips.strip_bytes, self._bytes)
            product(packed.moved(k, last, 0), result, extents, distance, "run")

    def _solve_block(
        self, k: KernelBuilder, a: Matrix, x: Matrix, sizes: dict[str, Value], known: Value, strips: _Strips | None
    ) -> None:
        """The block of rows that follows `known` rows (from the end on, for an upper triangle)."""
        parallel, total = k.parameters["parallel"], sizes["rows"]
        is_upper = k.compare("ne", sizes["is_upper"], 0)
        rows = k.smin(k.sub(total, known), LARGEST_BLOCK)
        block = k.select(is_upper, k.sub(k.sub(total, known), rows), known)
        first = k.select(is_upper, k.sub(k.add(block, rows), 1), block)
        direction = k.select(is_upper, k.const(I64, -1), k.const(I64, 1))
        args = _SOLVE.new(k)
        args.set(
            a=a.at(k, first, first),
            x=x.at(k, first, 0),
            rows=rows,
            columns=sizes["columns"],
            a_row=k.mul(a.row_pitch, direction),
            a_column=k.mul(a.column_pitch, direction),
            x_row=k.mul(x.row_pitch, direction),
            x_column=x.column_pitch,
            unit_diagonal=sizes["unit_diagonal"],
            packs=int(strips is not None),
        )
        if strips is not None:
            args.set(
                strips=k.gep(strips.memory, k.mul(first, self._strip_width), self._bytes),
                strip_row=k.mul(direction, self._strip_width),
                strip_bytes=strips.strip_bytes,
            )
        self._run_groups(k, parallel, "solve_groups", args, sizes["columns"])

    def _change_signs(self, k: KernelBuilder, x: Matrix, rows: Value, columns: Value, re: float, im: float) -> None:
        """Multiplies all elements' parts by factors; along the rows or the columns, whichever are neighbours."""
        by_rows = k.compare("eq", x.column_pitch, 1)
        lines, length = k.select(by_rows, rows, columns), k.select(by_rows, columns, rows)
        pitch = k.select(by_rows, x.row_pitch, x.column_pitch)
        factors = [re, im] if self._parts == 2 else [re]
        with k.loop(0, lines) as each:
            line = k.gep(x.pointer, k.mul(each.index, pitch), self._bytes)

            def step(ix: Indexing, position: Value) -> None:
                numbers = factors * ix.lanes
                type = self._type.with_lanes(len(numbers))
                place = k.gep(line, position, self._bytes)
                k.store(place, k.mul(k.load(place, type), k.const_vector(type, numbers)))

            strip(k, k.const(I64, 0), length, self._lanes, step, overlapping=False)

    # -- factors -------------------------------------------------------------------------------------------------------

    def panel_groups(self) -> None:
        """Solves the rows below a factored block, in groups [begin, end) of rows, and stores minus their adjoint."""
        with self._function("panel_groups", _RANGE) as k:
            args = _PANEL.at(k, k.parameters["args"])
            rows, columns = args["rows"], args["columns"]
            factor = Buffer(args["factor"], self._type, self._parts, LARGEST_BLOCK)
            below = self._matrix(args["below"], args["row"], args["column"]).transposed()
            above = self._matrix(args["above"], args["row"], args["column"])
            buffer = Buffer.new(k, self._type, self._parts, LARGEST_BLOCK, self._width)
            with k.loop(k.parameters["begin"], k.parameters["end"]) as groups:
                first = k.mul(groups.index, self._width)
                count = k.smin(k.sub(rows, first), self._width)
                here, there = below.moved(k, 0, first), above.moved(k, 0, first)
                triangular.load_columns(k, here, columns, count, buffer, self._solving_tile)

                def coefficient(row: Value, column: Value) -> Element:
                    return factor.load(k, column, row)

                triangular.substitute(k, coefficient, columns, buffer, self._solving_tile, unit_diagonal=False)
                triangular.store_columns(k, buffer, columns, count, here, self._solving_tile)

                def minus_conjugate(element: Element) -> Element:
                    return triangular.negate(k, triangular.conjugate(k, element))

                triangular.store_columns(k, buffer, columns, count, there, self._solving_tile, minus_conjugate)

    def factor(self) -> None:
        with self._function("factor", [("parallel", PTR), ("a", PTR), ("sizes", PTR)], linkage="") as k:
            sizes = self._numbers(k, FACTOR_SIZES)
            rows = sizes["rows"]
            buffer = Buffer.new(k, self._type, self._parts, LARGEST_BLOCK, LARGEST_BLOCK)
            with k.loop(0, sizes["batches"]) as batches:
                start = k.gep(k.parameters["a"], k.mul(batches.index, sizes["batch"]), self._bytes)
                a = self._matrix(start, sizes["row"], sizes["column"])
                with k.loop(0, rows, LARGEST_BLOCK, carry=[k.const(I64, 0)]) as blocks:
                    blocks.next = [self._factor_block(k, a, rows, blocks.index, buffer, blocks.values[0])]
                triangular.finish_factor(k, a, rows, blocks.results[0])

    def _factor_block(
        self, k: KernelBuilder, a: Matrix, rows: Value, known: Value, buffer: Buffer, failed: Value
    ) -> Value:
        """The block of columns that follows `known` columns; returns the first pivot that failed, or 0."""
        parallel = k.parameters["parallel"]
        left = k.sub(rows, known)
        columns = k.smin(left, LARGEST_BLOCK)
        with k.if_(k.compare("gt", known, 0)):
            operands = a.moved(k, known, 0), a.moved(k, 0, known), a.moved(k, known, known)
            self._product(k, parallel, *operands, (left, columns, known))
        block = a.moved(k, known, known)
        triangular.load_triangle(k, block, columns, buffer, self._factoring_tile)
        failed = triangular.factor_upper(k, buffer, columns, self._factoring_tile, failed, known)
        triangular.store_triangle(k, buffer, columns, block)
        following = k.add(known, columns)
        with k.if_(k.compare("lt", following, rows)):
            args = _PANEL.new(k)
            args.set(
                factor=buffer.pointer,
                below=a.at(k, following, known),
                above=a.at(k, known, following),
                rows=k.sub(rows, following),
                columns=columns,
                row=a.row_pitch,
                column=a.column_pitch,
            )
            self._run_groups(k, parallel, "panel_groups", args, k.sub(rows, following))
        return failed
