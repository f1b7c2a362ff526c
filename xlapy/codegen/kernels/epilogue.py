"""Epilogues: what stands behind a matrix product, element by element, computed where a block of it has just been made.

    void epilogue(ptr pointers, ptr block, i64 batch, i64 row, i64 rows, i64 column, i64 columns, ptr values, i64 pitch)

`pointers` lists operands and results of the fusion. The product is in the memory of one of the results, where it is
replaced, or in a buffer: at `values`, row by row, `pitch` bytes apart. Everything is row-major, so that the address of
a block tells which elements these are: rows of neighbours, or a single one where those of the block touch.

No element may be computed twice. So what does not fill a vector at the end of a row is read and written by a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph, between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Value
from xlapy.codegen.kernels.effort import LEAST_PARTS, is_small_behind
from xlapy.codegen.kernels.loop import (
    FUNCTION_WORK,
    VECTORS_PER_STEP,
    plan_loop,
    widest_lanes,
)
from xlapy.codegen.kernels.row_order import inner_dim, rows_and_columns
from xlapy.codegen.target import Target
from xlapy.hlo.cost import arithmetic_cost
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import fused_product, fusion_roots, product_leaf
from xlapy.hlo.matrix_products import library_product
from xlapy.hlo.shape import Shape
from xlapy.support.errors import InternalError
from xlapy_runtime.records import Record

EPILOGUE_PARAMETERS = [("pointers", PTR), ("block", PTR)] + [
    (name, I64) for name in ("batch", "row", "rows", "column", "columns")
]
EPILOGUE_PARAMETERS += [("values", PTR), ("pitch", I64)]
MOVES_PER_ELEMENT = 4  # operations that take as long as loads and stores of an element
MOST_LANES_OF_COLUMN = 16  # of a product with a single column: so many elements of it are finished together


class EpiloguePlan(Record):
    """What an epilogue computes, and how blocks are walked."""

    product: Instruction
    roots: tuple[Instruction, ...]
    leaf: int  # of the results: where the product is
    shape: Shape  # of the results
    columns: int  # of the matrices that the library computes
    row_stride: int  # elements from a row of such a matrix to the next one
    is_linear: bool  # everything is read at the element's own number, or is the same everywhere
    lanes: int
    is_quick: bool
    is_light: bool  # LLVM should not try hard
    has_masks: bool  # part of a vector costs no more than a whole one, so that there need not be code for both
    hides_masks: bool  # it costs too little to notice if all is loaded by masks, and stored without if possible
    work: int  # multiplications of the product that an element takes as long as

    @property
    def has_columns(self) -> bool:
        """The elements of a column are at the same position of rows of the results."""
        return self.is_linear or self.row_stride % rows_and_columns(self.shape)[1] == 0 or self.columns == 1

    @property
    def stays_in_line(self) -> bool:
        """Rows of the matrices are those of the results: no row of a block is in two of these."""
        return self.columns == self.row_stride == rows_and_columns(self.shape)[1] > 1


class _Rows(Record):
    """Rows of a block: the number of the first element, and where the values of the product are."""

    first: Value
    rows: Value
    values: Value


def plan_epilogue(
    fusion: Instruction, target: Target, *, runs_once: bool, whole: Callable[[], float] = lambda: 0
) -> EpiloguePlan:
    """How to compute what a fusion has behind its matrix product. `whole` counts the work of what runs once, as this
    does."""
    computation = fusion.called[0]
    product, roots = fused_product(fusion), fusion_roots(computation)
    call = library_product(product) if product is not None else None
    leaf = product_leaf(computation, product) if product is not None else None
    if product is None or call is None or leaf is None:
        raise InternalError(f"{fusion} holds no product of the library")
    inputs = frozenset({*computation.parameters, product})
    loop = plan_loop(roots, inputs.__contains__, 0, target, runs_once=runs_once)
    members = between(roots, inputs.__contains__)
    columns, is_column = call.sizes["n"], call.sizes["n"] == 1
    run = rows_and_columns(loop.shape)[1] if not loop.is_linear else call.sizes["m" if is_column else "n"]
    lanes = widest_lanes(members, target, 1 if loop.is_quick else VECTORS_PER_STEP)
    lanes //= 2 if product.shape.type.is_complex else 1  # half as many columns are finished together
    lanes = min(lanes, _power_of_two_above(run), MOST_LANES_OF_COLUMN if is_column else lanes)
    work = _work(members, product)
    return EpiloguePlan(
        product,
        roots,
        leaf,
        loop.shape,
        columns,
        call.sizes["c_row"],
        loop.is_linear,
        max(lanes, 1),
        loop.is_quick,
        not loop.is_quick and is_small_behind(fusion, product, work, call.sizes["k"], whole),
        target.is_avx512,
        FUNCTION_WORK <= work <= call.sizes["k"] / LEAST_PARTS and _masks_in_registers(members, target),
        work,
    )


def _work(members: Sequence[Instruction], product: Instruction) -> int:
    """Operations on one element, with those that fetch and store it."""
    costs = [arithmetic_cost(member) for member in members if member is not product]
    operations = sum(cost.flops + cost.transcendentals * FUNCTION_WORK for cost in costs)
    return MOVES_PER_ELEMENT + int(operations) // max(product.shape.size, 1)


def _masks_in_registers(members: Sequence[Instruction], target: Target) -> bool:
    """Whether there are instructions that load and store elements of 32 and 64 bits by masks, and no others are in
    memory. The stores are slow."""
    has_instructions = target.has("avx2") and not target.is_avx512
    return has_instructions and all(leaf.type.bytes >= 4 for member in members for leaf in member.shape.leaves())


def _power_of_two_above(size: int) -> int:
    """The smallest power of two that is at least `size`."""
    return 1 << (max(size, 1) - 1).bit_length()


def emit_epilogue(
    k: KernelBuilder, plan: EpiloguePlan, operands: Mapping[Instruction, Array], outputs: Sequence[Array]
) -> None:
    """Writes the loops over the block at hand; the parameters are `EPILOGUE_PARAMETERS`."""
    rows, columns, pitch = (k.parameters[name] for name in ("rows", "columns", "pitch"))
    block = _Block(k, plan, operands, outputs)
    if plan.columns == 1 or (plan.is_linear and plan.columns == plan.row_stride):
        row_bytes = plan.columns * plan.product.shape.type.bytes
        touches = k.and_(k.compare("eq", columns, plan.columns), k.compare("eq", pitch, row_bytes))
        rows, columns = k.select(touches, 1, rows), k.select(touches, k.mul(rows, plan.columns), columns)
    if plan.has_columns:
        block.emit(k.const(I64, 0), rows, columns)
    else:
        with k.loop(0, rows) as row:
            block.emit(row.index, k.const(I64, 1), columns)


class _Block:
    """Rows of neighbouring elements of the results.

    Rows are the inner loop: what depends on the column alone, as a bias does, stays in registers."""

    def __init__(
        self, k: KernelBuilder, plan: EpiloguePlan, operands: Mapping[Instruction, Array], outputs: Sequence[Array]
    ) -> None:
        self._k = k
        self._plan = plan
        self._operands = operands
        self._outputs = outputs
        self._inner = inner_dim(plan.shape)
        self._inner_size = rows_and_columns(plan.shape)[1]
        distance = k.sub(k.address(k.parameters["block"]), k.address(outputs[plan.leaf].pointer))
        self._first = k.udiv(distance, plan.product.shape.type.bytes)  # the number of the block's first element

    def emit(self, row: Value, rows: Value, columns: Value) -> None:
        """Rows from number `row` on, all columns, or part by part as rows of the results end, where positions in these
        matter. What follows counts columns as elements of row `row`."""
        k, inner = self._k, self._inner_size
        first = k.add(self._first, k.mul(row, self._plan.row_stride))
        end = k.add(first, columns)
        values = k.gep(k.parameters["values"], k.mul(row, k.parameters["pitch"]))
        here = _Rows(first, rows, values)
        if self._plan.is_linear:
            self._vectors(here, first, end, None)
            return
        if self._plan.stays_in_line:
            self._vectors(here, first, end, k.udiv(first, inner))
            return
        with k.loop(k.udiv(first, inner), k.add(k.udiv(k.sub(end, 1), inner), 1)) as line:
            start = k.mul(line.index, inner)
            self._vectors(here, k.smax(first, start), k.smin(end, k.add(start, inner)), line.index)

    def _vectors(self, here: _Rows, begin: Value, end: Value, line: Value | None) -> None:
        """Whole vectors of columns, and the rest by a mask; all in row `line` of the results, if that matters."""
        k, lanes = self._k, self._plan.lanes
        if (self._plan.has_masks or self._plan.hides_masks) and lanes > 1:
            with k.loop(begin, end, lanes) as vector:
                count = k.smin(k.sub(end, vector.index), lanes)
                whole = k.compare("eq", count, lanes) if self._plan.hides_masks else None
                self._down(here, vector.index, line, k.first_lanes(count, lanes), whole)
            return
        whole = k.add(begin, k.and_(k.sub(end, begin), -lanes))
        with k.loop(begin, whole, lanes) as vector:
            self._down(here, vector.index, line, None)
        if lanes > 1:
            with k.if_(k.compare("lt", whole, end)):
                self._down(here, whole, line, k.first_lanes(k.sub(end, whole), lanes))

    def _down(
        self, here: _Rows, column: Value, line: Value | None, mask: Value | None, whole: Value | None = None
    ) -> None:
        """A vector of columns, row by row. If it is known whether it is `whole`, it is stored without the mask then."""
        k, plan = self._k, self._plan
        ix = Indexing(k, plan.lanes)
        source = ix.along_lanes(k.sub(column, here.first))
        position = None if line is None else ix.along_lanes(k.sub(column, k.mul(line, self._inner_size)))
        with k.loop(0, here.rows) as row:
            number = k.add(column, k.mul(row.index, plan.row_stride))
            place = k.gep(here.values, k.mul(row.index, k.parameters["pitch"]))
            product = Array(place, plan.product.shape, read_only=False)
            value = product.load(ix, Index(plan.product.shape.dims, None, source, mask))
            coordinates = None
            if line is not None and position is not None:
                lines = k.mul(row.index, plan.row_stride // self._inner_size)
                coordinates = self._coordinates(k.add(line, lines), position)
            index = Index(plan.shape.dims, coordinates, ix.along_lanes(number), mask)
            graph = ElementGraph(ix, self._operands, {plan.product: value})
            elements = graph.values([(root, index) for root in plan.roots])

            def store(at: Index) -> list[Value]:
                for target, element in zip(self._outputs, elements, strict=True):
                    target.store(ix, at, element)
                return []

            if whole is None:
                store(index)
            else:
                k.if_else(whole, lambda: store(index._replace(mask=None)), lambda: store(index), likely=True)

    def _coordinates(self, line: Value, position: Coordinate) -> tuple[Coordinate, ...]:
        """Where the lanes are: at `position` of row `line` of the results."""
        dims, inner = self._plan.shape.dims, self._inner
        outer = Indexing(self._k, 1).delinearize(Coordinate(line), (*dims[:inner], *dims[inner + 1 :]))
        return (*outer[:inner], position, *outer[inner:])
