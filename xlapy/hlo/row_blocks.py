"""Two products with a chain over rows between them, as in attention, and how they run block of rows by block of rows.

    scores = dot(queries, keys)    weights = softmax of each row of scores    result = dot(weights, values)

A block is some rows of one matrix of the batch. Its scores, and what the chain makes of them in place, fill a room that
a second-level cache holds, so that the scores of all rows never exist together. Rows are whole: nothing has to be
corrected later, and each kernel does what it would do alone.

Everything here is a fact about shapes and attributes, which passes and codegen share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from xlapy.hlo.attributes import DotDimensionNumbers, FusionKind
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import (
    RowSpace,
    fold_of,
    has_same_places,
    holds_kernels,
    is_read_at_own_index,
    is_row_major,
    keeps_places,
    region_functions,
    row_space,
)
from xlapy.hlo.matrix_products import MatrixProduct, library_product
from xlapy.hlo.shape import Dims
from xlapy.support.records import Record

ROOM_BYTES = 256 * 1024  # of the rows of a block: beside what products read, a second-level cache holds that
LEAST_ROWS = 128  # of a block, even if that takes more room: each block packs the right sides anew
LEAST_BLOCKS = 16  # to share out, as long as blocks have so many rows
TASK_WORK = 1 << 21  # multiplications of a task of the thread pool

_TURNED = {"a_batch": "b_batch", "a_row": "b_column", "a_step": "b_step", "m": "n", "c_row": "c_column"}
"""The numbers that a product has exchanged with that of the transposes."""


class BlockProduct(Record):
    """A dot whose result is a batch of matrices with `sizes` rows, columns and depth, as the library wants them.

    `left` is the number of the operand that is its left side. `batch` are the sizes of the batch dimensions, and
    `strides` the bytes from matrix to matrix along each of them, of the left side, the right one and the result."""

    dot: Instruction
    kind: str
    sizes: Mapping[str, int]
    left: int
    batch: Dims
    strides: tuple[Dims, Dims, Dims]

    @property
    def matrices(self) -> int:
        return math.prod(self.batch)

    @property
    def work_per_row(self) -> int:
        return self.sizes["n"] * self.sizes["k"]


class RowBlocks(Record):
    """The two products, and the chain over `space`, whose operand `number` is the first one; `members` are all three,
    and what gives their results other names, in order."""

    first: BlockProduct
    rows: Instruction
    number: int
    second: BlockProduct
    space: RowSpace
    members: tuple[Instruction, ...]

    @property
    def row_bytes(self) -> int:
        return self.space.row_length * self.rows.shape.type.bytes

    @property
    def block_rows(self) -> int:
        """Rows of a block: the last one of a matrix may have fewer."""
        rows, together = self.first.sizes["m"], self.space.rows_at_once(in_place=True, part=self.first.sizes["m"])
        most = max(min(ROOM_BYTES // self.row_bytes, self.space.rows // LEAST_BLOCKS), LEAST_ROWS)
        even = -(-rows // -(-rows // most))
        return -(-even // together) * together

    @property
    def blocks_of_matrix(self) -> int:
        return -(-self.first.sizes["m"] // self.block_rows)

    @property
    def units(self) -> int:
        return self.first.matrices * self.blocks_of_matrix

    @property
    def grain(self) -> int:
        """Blocks that one task computes."""
        work = self.block_rows * (self.first.work_per_row + self.second.work_per_row)
        return -(-TASK_WORK // work)


def fused_row_blocks(computation: Computation) -> RowBlocks | None:
    """Those of a fused computation that holds kernels."""
    if not holds_kernels(computation):
        return None
    return row_blocks(next(instruction for instruction in computation if instruction.opcode == "fusion"))


def row_blocks(rows: Instruction) -> RowBlocks | None:
    """A chain over rows with the products around it, if the three can run in blocks."""
    space = _row_space_of(rows)
    if space is None:
        return None
    names = _later_names(rows)
    user = names[-1].sole_user
    second = None if user is None else _product_of_rows(user, names[-1], space)
    if second is None:
        return None
    for number, operand in enumerate(rows.operands):
        earlier = _earlier_names(operand)
        first = _product_in_rows(earlier[0], rows, number, space)
        if first is not None and first.sizes["m"] == second.sizes["m"] and first.matrices == second.matrices:
            return RowBlocks(first, rows, number, second, space, (*earlier, *names, second.dot))
    return None


def _later_names(value: Instruction) -> list[Instruction]:
    """The value, and the reshapes that only give it another name, each of which is read by the next one alone."""
    names = [value]
    while (user := names[-1].sole_user) is not None and keeps_places(user):
        names.append(user)
    return names


def _earlier_names(value: Instruction) -> list[Instruction]:
    """The value behind its last reshapes that only rename it, where nobody else reads it, and these."""
    names = [value]
    while keeps_places(names[0]) and names[0].operands[0].sole_user is names[0]:
        names.insert(0, names[0].operands[0])
    return names


def _row_space_of(rows: Instruction) -> RowSpace | None:
    """The rows of a chain that makes one array of whole rows, with code of its own."""
    if rows.opcode != "fusion" or rows.attributes["kind"] is not FusionKind.OUTPUT or not rows.shape.is_array:
        return None
    if fold_steps(rows.called[0]) is not None or region_functions(rows):
        return None
    space = row_space(fold_of(rows.called[0]))
    return space if space is not None and not space.is_columns and space.is_full(rows) else None


def _product_in_rows(dot: Instruction, rows: Instruction, number: int, space: RowSpace) -> BlockProduct | None:
    """The product whose rows the chain takes, and may overwrite, if it is one."""
    if dot.opcode != "dot" or rows.operands[number].sole_user is not rows or not is_row_major(dot):
        return None
    parameter = rows.called[0].parameters[number]
    if rows.operands.count(rows.operands[number]) != 1 or not has_same_places(parameter, rows):
        return None
    if not is_read_at_own_index(parameter, rows=True):
        return None
    product = _block_product(dot, 0)
    return product if product is not None and product.sizes["n"] == space.row_length else None


def _product_of_rows(dot: Instruction, value: Instruction, space: RowSpace) -> BlockProduct | None:
    """The product that multiplies the rows of a chain, called `value`, by something, if it is one."""
    if dot.opcode != "dot" or dot.operands.count(value) != 1 or not is_row_major(value):
        return None
    side, rank = dot.operands.index(value), value.shape.rank
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    batch = (numbers.lhs_batch, numbers.rhs_batch)[side]
    contracting = (numbers.lhs_contracting, numbers.rhs_contracting)[side]
    if batch != tuple(range(len(batch))) or contracting != tuple(range(rank - len(contracting), rank)):
        return None
    product = _block_product(dot, side)
    return product if product is not None and product.sizes["k"] == space.row_length else None


def _has_strips(call: MatrixProduct, dot: Instruction) -> bool:
    """Whether the library takes parts of a matrix for a batch."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    return not numbers.lhs_batch and call.sizes["batches"] > 1


def _is_one_matrix(call: MatrixProduct, dot: Instruction) -> bool:
    """For each position of the batch, all rows and columns are one product."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    return call.sizes["m"] * call.sizes["n"] == math.prod(dot.shape.dims[len(numbers.lhs_batch) :])


def _block_product(dot: Instruction, left: int) -> BlockProduct | None:
    call = library_product(dot)
    if call is None or _has_strips(call, dot) or not _is_one_matrix(call, dot):
        return None
    sizes = dict(call.sizes)
    if left == 1:
        for one, other in _TURNED.items():
            sizes[one], sizes[other] = sizes[other], sizes[one]
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    batches = [numbers.lhs_batch, numbers.rhs_batch]
    operands = [dot.operands[left], dot.operands[1 - left]]
    strides = [
        tuple(operand.shape.strides()[dim] * operand.shape.type.bytes for dim in dims)
        for operand, dims in zip(operands, (batches[left], batches[1 - left]), strict=True)
    ]
    of_result = tuple(stride * dot.shape.type.bytes for stride in dot.shape.strides()[: len(batches[0])])
    sizes_of_batch = dot.shape.dims[: len(batches[0])]
    return BlockProduct(dot, call.kind, sizes, left, sizes_of_batch, (strides[0], strides[1], of_result))
