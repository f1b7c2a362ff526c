"""Kernels that run block of rows by block of rows: the function of a range of blocks that the thread pool calls.

    for block in [begin, end):
        room = A[rows of the block] B                    the first product
        rows kernel, for the rows of the block, in place
        result[rows of the block] = room D               the second product

The kernel in the middle takes whole arrays. It is told that its array begins so far in front of the room that the rows
of the block come to lie there.
"""

from __future__ import annotations

from collections.abc import Mapping

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Value
from xlapy.codegen.kernel_calls import table_of
from xlapy.codegen.kernel_library import KernelLibrary, NativeKernel
from xlapy.codegen.libraries.gemm import kind_on, product_function
from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.matrix_products import is_precise
from xlapy.hlo.row_blocks import BlockProduct, RowBlocks
from xlapy_runtime.records import Record

_TABLE = [("table", PTR), ("begin", I64), ("end", I64)]


def write_row_blocks(
    library: KernelLibrary, fusion: Instruction, blocks: RowBlocks, *, runs_once: bool
) -> tuple[str, set[str]]:
    """Writes the function; its table has the operands of the fusion, its result, and the pool's `parallel`. Its name,
    and the libraries that it calls."""
    kernel = library.kernel(blocks.rows, (blocks.number,), runs_once=runs_once, part=blocks.first.sizes["m"])
    name = library.new_name("row_blocks")
    with KernelBuilder(library.quick_module, name, _TABLE, None, attributes=library.attributes) as k:
        count = len(fusion.operands) + 2
        *arrays, result, parallel = (k.load(k.gep(k.parameters["table"], n, PTR.bytes), PTR) for n in range(count))
        operands = dict(zip(fusion.called[0].parameters, arrays, strict=True))
        emitter = _Emitter(k, library.target, blocks, kernel, operands, result, parallel)
        scratch = acquire_scratch(k, k.const(I64, blocks.block_rows * blocks.row_bytes))
        with k.loop(k.parameters["begin"], k.parameters["end"]) as block:
            emitter.block(scratch.memory, block.index)
        release_scratch(k, scratch)
    products = (blocks.first, blocks.second)
    libraries = {"scratch", *(_function_of(blocks, product, library.target)[0] for product in products)}
    return name, libraries if kernel.call is None else {*libraries, kernel.call.library}


def _function_of(blocks: RowBlocks, product: BlockProduct, target: Target) -> tuple[str, str]:
    """The library and its function for the blocks of a product, the last one of a matrix included."""
    fewest_rows = blocks.first.sizes["m"] - (blocks.blocks_of_matrix - 1) * blocks.block_rows
    sizes = {**product.sizes, "m": fewest_rows}
    kind = kind_on(product.kind, target, sizes, is_precise=is_precise(product.dot), is_part=True)
    return product_function(kind, sizes)


class _Emitter(Record):
    """What the code for one block knows: the arrays of the fusion by its parameters, and what it calls."""

    k: KernelBuilder
    target: Target
    blocks: RowBlocks
    kernel: NativeKernel
    operands: Mapping[Instruction, Value]
    result: Value
    parallel: Value

    def block(self, room: Value, number: Value) -> None:
        k, blocks = self.k, self.blocks
        first, second = blocks.first, blocks.second
        matrix = k.udiv(number, blocks.blocks_of_matrix)
        row = k.mul(k.sub(number, k.mul(matrix, blocks.blocks_of_matrix)), blocks.block_rows)
        rows = k.smin(k.sub(first.sizes["m"], row), blocks.block_rows)
        a = self._left(first, matrix, row)
        self._multiply(first, a, matrix, room, rows, blocks.space.row_length)
        self._run_rows(room, k.add(k.mul(matrix, first.sizes["m"]), row), rows)
        c = self._matrix(self.result, second, matrix, 2)
        c = k.gep(c, k.mul(row, second.sizes["c_row"] * second.dot.shape.type.bytes))
        self._multiply(second, room, matrix, c, rows, second.sizes["c_row"])

    def _matrix(self, array: Value, product: BlockProduct, number: Value, side: int) -> Value:
        """Where a matrix of a product begins, on the left side, on the right one or in the result."""
        k = self.k
        for size, stride in zip(reversed(product.batch), reversed(product.strides[side]), strict=True):
            rest = k.udiv(number, size)
            array = k.gep(array, k.mul(k.sub(number, k.mul(rest, size)), stride))
            number = rest
        return array

    def _left(self, product: BlockProduct, matrix: Value, row: Value) -> Value:
        """The rows of the block in the left side of a product."""
        operand = product.dot.operands[product.left]
        array = self._matrix(self.operands[operand], product, matrix, 0)
        return self.k.gep(array, self.k.mul(row, product.sizes["a_row"] * operand.shape.type.bytes))

    def _multiply(self, product: BlockProduct, a: Value, matrix: Value, c: Value, rows: Value, c_row: int) -> None:
        """Calls the library for one block of one matrix."""
        k = self.k
        right = product.dot.operands[1 - product.left]
        b = self._matrix(self.operands[right], product, matrix, 1)
        table = self._table({**product.sizes, "batches": 1, "c_row": c_row}, rows)
        nothing = k.const(PTR, 0)
        _, function = _function_of(self.blocks, product, self.target)
        k.call(function, [self.parallel, a, b, c, table, nothing, nothing])

    def _table(self, sizes: Mapping[str, int], rows: Value) -> Value:
        """The sizes of a product of so many rows, in memory."""
        k, numbers = self.k, [sizes.get(name, 0) for name in SIZES]
        m = SIZES.index("m")
        if rows.constant is not None:
            numbers[m] = int(rows.constant)
            return k.table(I64, numbers)
        table = k.alloca(I64, len(SIZES))
        k.memcpy(table, k.table(I64, numbers), len(SIZES) * I64.bytes)
        k.store(k.gep(table, m, I64.bytes), rows)
        return table

    def _run_rows(self, room: Value, row: Value, rows: Value) -> None:
        """Calls the kernel in the middle; `row` counts the rows of all matrices."""
        k, blocks = self.k, self.blocks
        begin = k.gep(room, k.mul(row, -blocks.row_bytes))
        operands = [
            begin if number == blocks.number else self.operands[operand]
            for number, operand in enumerate(blocks.rows.operands)
        ]
        together = blocks.space.rows // self.kernel.units
        units = k.udiv(row, together), k.udiv(k.add(row, rows), together)
        call = self.kernel.call
        if call is None:
            k.call(self.kernel.name, [*operands, begin, *units])
            return
        k.module.declare(call.function, None, [PTR, I64, I64])
        nothing = k.const(PTR, 0)
        table = table_of(k, [k.table(I64, call.numbers), nothing, nothing, *operands, begin])
        k.call(call.function, [table, *units])
