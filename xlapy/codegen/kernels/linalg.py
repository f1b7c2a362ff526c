"""Kernels of cholesky and triangular-solve for matrices up to one block. Larger ones are the library's.

Many matrices of a few rows are computed side by side, one in each lane, without loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels import triangular
from xlapy.codegen.kernels.lane_matrices import LaneMatrices
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.kernels.triangular import Buffer, Matrix, Tile, factoring_tile, solving_tile
from xlapy.codegen.registers import Element, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import Transpose
from xlapy.hlo.graph import Instruction
from xlapy_runtime.records import Record

LARGEST_BLOCK = 64
"""Rows of a matrix that a kernel factors or solves by itself."""

MOST_UNROLLED_ROWS = 8
MOST_UNROLLED_COLUMNS = 8
VECTORS = 4  # right sides are solved so many vectors at a time, which hides the latency of multiply-adds


class TrianglePlan(Record):
    """How an instruction with triangular matrices of `rows` rows runs."""

    type: IRType
    parts: int
    rows: int
    columns: int  # right sides of each matrix
    batch: int
    lanes: int  # of one vector
    width: int  # right sides that are solved together
    across: bool  # one matrix in each lane
    units: int  # with one matrix in each lane, vectors of them if they are all full
    streaming: bool  # results bypass the caches
    tile: Tile  # of rows that are factored, or solved, together
    bytes_per_unit: int

    @property
    def least_units(self) -> int:
        """Of a task: a vector, where units are the matrices that lanes take."""
        return self.lanes if self.across and self.batch % self.lanes else 1


def is_large(instruction: Instruction) -> bool:
    """Whether the matrices are more than a block: work for the library."""
    return instruction.operands[0].shape.dims[-1] > LARGEST_BLOCK


def plan_triangle(instruction: Instruction, target: Target) -> TrianglePlan:
    a = instruction.operands[0].shape
    rows = a.dims[-1]
    batch = math.prod(a.dims[:-2])
    columns = instruction.shape.size // max(batch * rows, 1) if len(instruction.operands) > 1 else 1
    type = register_type(a.type)
    lanes = target.lanes(type.bits)
    across = rows <= MOST_UNROLLED_ROWS and columns <= MOST_UNROLLED_COLUMNS and batch >= lanes
    width = min(VECTORS * lanes, 1 << max(columns - 1, 0).bit_length())
    if across:
        units = batch if batch % lanes else batch // lanes
    else:
        units = batch * -(-columns // width)
    solves = len(instruction.operands) > 1
    work = rows * rows * (columns if solves else rows) * batch
    bytes_per_unit = (instruction.shape.bytes + a.bytes + work * type.bytes // lanes) // max(units, 1)
    parts = 2 if a.type.is_complex else 1
    streaming = across and is_streamed([instruction], lanes, target)
    tile = solving_tile(width, lanes, parts, target) if solves else factoring_tile(lanes, parts, target)
    return TrianglePlan(type, parts, rows, columns, batch, lanes, width, across, units, streaming, tile, bytes_per_unit)


# -- cholesky ----------------------------------------------------------------------------------------------------------


def emit_cholesky(
    k: KernelBuilder,
    cholesky: Instruction,
    plan: TrianglePlan,
    a: Array,
    output: Array,
    begin: Value,
    end: Value,
    numbers: Sequence[Value],
    *,
    in_place: bool,
) -> None:
    """Writes the factors of matrices [begin, end), which `factor_numbers` describe if they come one by one."""
    lower = cholesky.attributes["lower"]
    if plan.across:
        past_caches = plan.streaming and not in_place

        def factor(lanes: int, first: Value) -> None:
            _small_cholesky(k, lanes, first, plan, a, output, lower, past_caches)

        _across_batch(k, plan, begin, end, factor, in_place)
        return
    rows, *pitches = numbers
    width = -(-plan.rows // plan.tile.lanes) * plan.tile.lanes
    buffer = Buffer.new(k, plan.type, plan.parts, plan.rows, width)
    size = k.mul(rows, rows)
    with k.loop(begin, end) as loop:
        start = k.mul(loop.index, size)
        source, target = (_matrix(k, plan, array.pointer, start, pitches) for array in (a, output))
        triangular.load_triangle(k, source, rows, buffer, plan.tile)
        failed = triangular.factor_upper(k, buffer, rows, plan.tile, k.const(I64, 0))
        triangular.store_triangle(k, buffer, rows, target)
        triangular.finish_factor(k, target, rows, failed)


def factor_numbers(cholesky: Instruction) -> tuple[int, ...]:
    """What tells matrices from others that are factored one by one: rows, and the pitches of rows and columns."""
    rows = cholesky.shape.dims[-1]
    return (rows, rows, 1) if cholesky.attributes["lower"] else (rows, 1, rows)


def _matrix(k: KernelBuilder, plan: TrianglePlan, pointer: Value, start: Value, pitches: Sequence[Value]) -> Matrix:
    """The matrix that begins at element `start`."""
    place = k.gep(pointer, start, plan.parts * plan.type.bytes)
    return Matrix(place, plan.type, plan.parts, *pitches)


def _across_batch(
    k: KernelBuilder,
    plan: TrianglePlan,
    begin: Value,
    end: Value,
    step: Callable[[int, Value], None],
    in_place: bool,
) -> None:
    """Calls `step` with the number of lanes, and that of the matrix in the first one."""
    if plan.batch % plan.lanes:
        strip(k, begin, end, plan.lanes, lambda ix, first: step(ix.lanes, first), overlapping=not in_place)
    else:
        with k.loop(begin, end) as loop:
            step(plan.lanes, k.mul(loop.index, plan.lanes))
    if plan.streaming and not in_place:
        k.fence()


def _small_cholesky(
    k: KernelBuilder,
    lanes: int,
    first: Value,
    plan: TrianglePlan,
    a: Array,
    output: Array,
    lower: bool,
    past_caches: bool,
) -> None:
    """Complex conjugates take no part: the upper triangle is that of the conjugate matrix, and so is its factor."""
    size = range(plan.rows)
    matrices = LaneMatrices.new(k, plan.type.with_lanes(lanes), plan.parts, plan.rows**2)

    def place(row: int, column: int) -> int:
        return row * plan.rows + column if lower else column * plan.rows + row

    matrices.read(k, _matrix_place(k, plan, a, first, plan.rows))
    triangle = [[matrices.load(k, place(row, column)) for column in range(row + 1)] for row in size]
    factor = triangular.small_factor(k, triangle)
    nothing = triangular.zero(k, plan.type, plan.parts, lanes)
    for row in size:
        for column in size:
            matrices.store(k, place(row, column), factor[row][column] if column <= row else nothing)
    matrices.write(k, _matrix_place(k, plan, output, first, plan.rows), past_caches=past_caches)


def _matrix_place(k: KernelBuilder, plan: TrianglePlan, array: Array, number: Value, columns: int) -> Value:
    """Where a matrix of an array begins."""
    return k.gep(array.pointer, k.mul(number, plan.rows * columns), plan.parts * plan.type.bytes)


# -- triangular-solve --------------------------------------------------------------------------------------------------


class System(Record):
    """A triangular-solve as systems op(a) x = b: how the matrices of both are walked, in elements."""

    a_row: int
    a_column: int
    x_row: int
    x_column: int
    is_upper: bool
    unit_diagonal: bool
    conjugates: bool  # b and x: instead of `a`


def system_of(solve: Instruction) -> System:
    """x op(a) = b becomes op(a)T xT = bT."""
    attributes = solve.attributes
    rows, columns = solve.operands[0].shape.dims[-1], solve.shape.dims[-1]
    left: bool = attributes["left_side"]
    transpose: Transpose = attributes["transpose_a"]
    is_transposed = (transpose is not Transpose.NO_TRANSPOSE) == left
    a_pitches = (1, rows) if is_transposed else (rows, 1)
    x_pitches = (columns, 1) if left else (1, columns)
    is_upper = attributes["lower"] == is_transposed
    conjugates = transpose is Transpose.ADJOINT and solve.shape.type.is_complex
    return System(*a_pitches, *x_pitches, is_upper, attributes["unit_diagonal"], conjugates)


def system_numbers(solve: Instruction) -> tuple[int, ...]:
    """What tells systems from others that are solved one by one: rows and right sides, then for both matrices where
    the first element is and how far apart rows and columns are, seen as a lower triangle."""
    system = system_of(solve)
    rows = solve.operands[0].shape.dims[-1]
    columns = solve.shape.dims[-2] * solve.shape.dims[-1] // rows
    a, x = (system.a_row, system.a_column), (system.x_row, system.x_column)
    if not system.is_upper:
        return rows, columns, 0, *a, 0, *x
    last = rows - 1
    return rows, columns, last * (a[0] + a[1]), -a[0], -a[1], last * x[0], -x[0], x[1]


def emit_triangular_solve(
    k: KernelBuilder,
    solve: Instruction,
    plan: TrianglePlan,
    a: Array,
    b: Array,
    output: Array,
    begin: Value,
    end: Value,
    numbers: Sequence[Value],
    *,
    in_place: bool,
) -> None:
    """Solves units [begin, end): groups of right sides, matrix after matrix, which `system_numbers` describe; or
    matrices, if they go across lanes."""
    system = system_of(solve)
    if plan.across:
        past_caches = plan.streaming and not in_place

        def solve_few(lanes: int, first: Value) -> None:
            _small_solve(k, lanes, first, plan, system, (a, b, output), past_caches)

        _across_batch(k, plan, begin, end, solve_few, in_place)
        return
    rows, columns, a_start, *others = numbers
    a_pitches, x_start, x_pitches = others[:2], others[2], others[3:]
    groups = k.udiv(k.add(columns, plan.width - 1), plan.width)
    a_size, x_size = k.mul(rows, rows), k.mul(rows, columns)
    buffer = Buffer.new(k, plan.type, plan.parts, plan.rows, plan.width)
    change = (lambda element: triangular.conjugate(k, element)) if system.conjugates else None
    with k.loop(begin, end) as units:
        number = k.udiv(units.index, groups)
        column = k.mul(k.sub(units.index, k.mul(number, groups)), plan.width)
        count = k.smin(k.sub(columns, column), plan.width)
        matrix = _matrix(k, plan, a.pointer, k.add(k.mul(number, a_size), a_start), a_pitches)
        start = k.add(k.mul(number, x_size), x_start)
        source, target = (
            _matrix(k, plan, array.pointer, start, x_pitches).moved(k, 0, column) for array in (b, output)
        )
        triangular.load_columns(k, source, rows, count, buffer, plan.tile, change)

        def coefficient(row: Value, column: Value, matrix: Matrix = matrix) -> Element:
            return matrix.load(k, row, column)

        triangular.substitute(k, coefficient, rows, buffer, plan.tile, unit_diagonal=system.unit_diagonal)
        triangular.store_columns(k, buffer, rows, count, target, plan.tile, change)


def _small_solve(
    k: KernelBuilder,
    lanes: int,
    first: Value,
    plan: TrianglePlan,
    system: System,
    arrays: Sequence[Array],
    past_caches: bool,
) -> None:
    a, b, output = arrays
    type = plan.type.with_lanes(lanes)
    triangles = LaneMatrices.new(k, type, plan.parts, plan.rows**2)
    sides = LaneMatrices.new(k, type, plan.parts, plan.rows * plan.columns)
    triangles.read(k, _matrix_place(k, plan, a, first, plan.rows))
    sides.read(k, _matrix_place(k, plan, b, first, plan.columns))
    order = [*range(plan.rows)][:: -1 if system.is_upper else 1]
    triangle = {
        (row, column): triangles.load(k, order[row] * system.a_row + order[column] * system.a_column)
        for row in range(plan.rows)
        for column in range(row + 1 - system.unit_diagonal)
    }
    with k.loop(0, plan.columns) as columns:
        start = k.mul(columns.index, system.x_column)
        places = [k.add(start, order[row] * system.x_row) for row in range(plan.rows)]
        right_side = [sides.load(k, place) for place in places]
        if system.conjugates:
            right_side = [triangular.conjugate(k, element) for element in right_side]
        solution = triangular.small_substitute(k, triangle, right_side, unit_diagonal=system.unit_diagonal)
        for place, element in zip(places, solution, strict=True):
            sides.store(k, place, triangular.conjugate(k, element) if system.conjugates else element)
    sides.write(k, _matrix_place(k, plan, output, first, plan.columns), past_caches=past_caches)
