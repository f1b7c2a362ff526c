"""Products of a few vectors and a matrix that is computed become folds, in whose kernel the matrix is computed.

    q = s8[4096,4096] parameter(0)
    w = f32[4096,4096] convert(q)
    ROOT y = f32[1,4096] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}

becomes

    b = f32[4096,4096] broadcast(x), dimensions={0}
    p = f32[4096,4096] multiply(b, w)
    r = f32[4096] reduce(p, zero), dimensions={0}, to_apply=add
    ROOT y = f32[1,4096] reshape(r)

Such a product takes as long as memory takes to deliver the matrix. The library of products would read it as an array,
which is written before; the kernel of a fold reads what it is computed from, a quarter of it here, and once. So are
weights that are stored in few bits, when tokens come one at a time. So are matrices that are gathered, as experts are
for a token: they are read where they lie.

In a loop, a matrix that a near cache holds stays one: it may be computed once, in front of the loop.

Products of vectors by matrices of which many lie side by side, element by element, are folds in any case: the lanes of
a fold have one product each, and nothing is put in another order before. So are products of small matrices that lie,
and go, side by side, and, if their elements are narrow, of those that lie so.
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.element_types import F32, ElementType
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import PICKED_BYTES, is_element_op, is_kernel_constant
from xlapy.hlo.literal import Literal
from xlapy.hlo.regions import binary_region
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes import base, new
from xlapy.passes.algebra.conversion import is_lossless
from xlapy.passes.base import Pass, pinned, program_computations, replace_all
from xlapy.passes.fusion.cost import memory_bytes
from xlapy.passes.fusion.plan import PICKING
from xlapy.passes.new import Value
from xlapy.support.records import Record, replaced

NEAR_BYTES = 256 << 10
"""Of a matrix that a second-level cache holds from one step of a loop to the next one."""

SIDE_BY_SIDE = 4  # vectors: as many sums as one kernel folds side by side
MOST_ROWS = 2 * SIDE_BY_SIDE  # of the product
FEW_BITS, FEWER_BITS = 2, 4
"""A matrix is computed again for a second vector where it is read from half of its bytes, or less; for a second kernel,
in caches, where it is read from a quarter."""

CACHED_BYTES = 4 << 20  # of a matrix that is soon written and read: converted from bf16, it takes as long either way
SMALL_PART = 16  # of the bytes of a matrix: what is read beside it, as scales and numbers of experts are
LEAST_ROW_BYTES = 64  # that are gathered from one place
LEAST_BESIDE = 8  # products side by side
MOST_BESIDE = 1 << 12
"""Products of elements for each matrix of those (of f32, 64 of 16 by 16: 0.65 of the time, of bf16 0.28; 64 of 32 by 32
0.9 and 1.13)."""
LEAST_DEPTH = 8
"""How many narrow products each result is the sum of, where the results are put in another order (of bf16, 64
of 16 by 16: 0.36 of the time, of s8 0.3, of 4 by 64 by 4 0.09 and 0.16; 2 or 4 products 1.3 to 1.5; of f32 1.7)."""
MOST_FOLLOWED = 32  # instructions that compute a matrix


@dataclass
class ProductsAsFolds(Pass):
    name: ClassVar[str] = "products-as-folds"
    ops: ClassVar[Set[str]] = frozenset({"dot"})

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            least_bytes = 0 if computation is module.entry else NEAR_BYTES
            changed = self._replace_in(computation, least_bytes) or changed
        return changed

    def _replace_in(self, computation: Computation, least_bytes: int) -> bool:
        dots = [instruction for instruction in computation if instruction.opcode == "dot"]
        fixed = pinned(computation) if dots else set()
        replacements: dict[Instruction, Instruction] = {}
        for dot in dots:
            fold = None if dot in fixed else _as_fold(dot, least_bytes)
            if fold is not None:
                replacements[dot], _ = new.materialize(fold, computation, dot)
                self.records.append(base.Record.of(dot, True, "the fold reads the matrix as it lies, or computes it"))
        replace_all(computation, replacements)
        return computation.remove(replacements)


class _Side(Record):
    """An operand of a dot, and what its dimensions are there."""

    array: Value
    is_left: bool
    batch: Dims
    contracting: Dims
    free: Dims

    @classmethod
    def of(cls, dot: Instruction, number: int) -> _Side:
        array, numbers = dot.operands[number], dot.attributes["dimension_numbers"]
        if number == 0:
            return cls(array, True, numbers.lhs_batch, numbers.lhs_contracting, numbers.lhs_free(array.shape.rank))
        return cls(array, False, numbers.rhs_batch, numbers.rhs_contracting, numbers.rhs_free(array.shape.rank))

    @property
    def rows(self) -> int:
        """Of the product, for each batch, if this side is made of vectors."""
        return math.prod(self.sizes(self.free))

    def sizes(self, dims: Dims) -> Dims:
        return tuple(self.array.shape.dims[dim] for dim in dims)


def _as_fold(dot: Instruction, least_bytes: int) -> Value | None:
    """The same as a fold, if one side is a vector and the other one is better computed than stored; as several, for
    few vectors and a matrix that is computed from half as many bytes."""
    summed = F32 if dot.shape.type.is_narrow_float else dot.shape.type
    is_exact = all(is_lossless(operand.shape.type, summed) for operand in dot.operands)
    if summed.is_complex or not is_exact or not dot.shape.size or not dot.shape.is_static:
        return None
    left, right = (_Side.of(dot, number) for number in (0, 1))
    are_small = left.rows * right.rows * math.prod(left.sizes(left.contracting)) <= MOST_BESIDE
    if min(left.rows, right.rows) > 1 and are_small and _multiply_side_by_side(dot, left, right):
        return _converted(_fold_side_by_side(left, right, summed, dot.shape.type), dot)
    for number in (0, 1):
        vectors, matrix, array = _Side.of(dot, number), _Side.of(dot, 1 - number), dot.operands[1 - number]
        if vectors.rows == 1 and _lie_side_by_side(vectors, matrix):
            return _converted(_fold(vectors, matrix, summed), dot)
        several = [size for size in vectors.sizes(vectors.free) if size > 1]
        if vectors.rows > MOST_ROWS or len(several) > 1 or array.shape.bytes <= least_bytes:
            continue
        if _is_better_computed(array, array.shape.bytes // _share(vectors.rows, array)):
            total = _fold(vectors, matrix, summed) if vectors.rows == 1 else _folds(vectors, matrix, summed)
            return _converted(total, dot)
    return None


def _converted(total: Value, dot: Instruction) -> Value:
    return new.converted(new.reshaped(total, dot.shape.dims), dot.shape.type)


def _lie_side_by_side(vector: _Side, matrix: _Side) -> bool:
    """The last dimension of both counts the same batches."""
    vectors, matrices = _last_dim(vector.array.shape), _last_dim(matrix.array.shape)
    are_same = (vectors, matrices) in [*zip(vector.batch, matrix.batch, strict=True)]
    return are_same and matrix.array.shape.dims[matrices] >= LEAST_BESIDE


def _multiply_side_by_side(dot: Instruction, left: _Side, right: _Side) -> bool:
    """The same, and all that becomes of the results is that they are put side by side, too; or there is so much to
    multiply that they are as soon put in another order, of elements that are narrow, which the library gathers."""
    if not _lie_side_by_side(left, right):
        return False
    is_narrow = (
        left.array.shape.type.bytes <= PICKED_BYTES and left.array.shape.type.bytes == right.array.shape.type.bytes
    )
    return _go_side_by_side(dot, left) or (is_narrow and math.prod(left.sizes(left.contracting)) >= LEAST_DEPTH)


def _go_side_by_side(dot: Instruction, left: _Side) -> bool:
    user = dot.sole_user
    if user is None or user.opcode != "transpose":
        return False
    permutation: Dims = user.attributes["permutation"]
    return permutation[-1] < len(left.batch)


def _last_dim(shape: Shape) -> int:
    return max((dim for dim, size in enumerate(shape.dims) if size > 1), default=-1)


def _share(rows: int, matrix: Instruction) -> int:
    """What part of its bytes a matrix must be read from at the most, to be computed for so many vectors."""
    if rows == 1:
        return 1
    return FEW_BITS if rows <= SIDE_BY_SIDE or matrix.shape.bytes > CACHED_BYTES else FEWER_BITS


def _is_better_computed(matrix: Instruction, most_bytes: int) -> bool:
    """Its elements are computed from others at the same places, for this product alone, from no more than so many
    bytes."""
    if not is_element_op(matrix) or matrix.sole_user is None or is_kernel_constant(matrix):
        return False
    read, seen, pending = 0, {matrix}, [matrix]
    while pending:
        value = pending.pop()
        is_picked = value.opcode in PICKING and not _takes_rows(value)
        if is_picked or len(seen) > MOST_FOLLOWED:
            return False
        for operand in value.operands:
            if operand in seen:
                continue
            seen.add(operand)
            if is_element_op(operand) and operand.opcode != "parameter":
                pending.append(operand)
            else:
                read += min(memory_bytes(operand), value.shape.size * operand.shape.type.bytes)
    return 0 < read <= most_bytes + matrix.shape.bytes // SMALL_PART


def _takes_rows(gather: Instruction) -> bool:
    """Neighbours along the last dimension are so in what it takes them from, all of a row."""
    rows = gather.operands[0].shape
    if gather.opcode != "gather" or not rows.rank:
        return False
    is_whole = gather.attributes["slice_sizes"][-1] == rows.dims[-1]
    is_last = gather.shape.rank - 1 in gather.attributes["dimension_numbers"].offset_dims
    return is_whole and is_last and rows.dims[-1] * rows.type.bytes >= LEAST_ROW_BYTES


def _folds(vectors: _Side, matrix: _Side, summed: ElementType) -> Value:
    """One fold for each vector; some of them become one that reads the matrix once."""
    (dim,) = (dim for dim in vectors.free if vectors.array.shape.dims[dim] > 1)
    whole = [SliceDimension(0, size) for size in vectors.array.shape.dims]
    place = len(vectors.batch) + (0 if vectors.is_left else len(matrix.free))
    rows = []
    for number in range(vectors.rows):
        cut = (*whole[:dim], SliceDimension(number, number + 1), *whole[dim + 1 :])
        row = _fold(replaced(vectors, array=new.slice(vectors.array, dimensions=cut)), matrix, summed)
        rows.append(new.reshaped(row, (*row.shape.dims[:place], 1, *row.shape.dims[place:])))
    return new.concatenate(*rows, dimension=place)


def _fold(vector: _Side, matrix: _Side, summed: ElementType) -> Value:
    """Results for each batch and each free dimension of the matrix."""
    own = (*vector.batch, *vector.contracting)
    place = dict(zip(own, (*matrix.batch, *matrix.contracting), strict=True))
    row = new.reshaped(vector.array, vector.sizes(tuple(sorted(own))))
    turned = sorted(own, key=place.__getitem__)
    row = _in_order(row, [sorted(own).index(dim) for dim in turned])
    wide = new.broadcast(
        new.converted(row, summed),
        shape=matrix.array.shape.without_layout().with_type(summed),
        dimensions=tuple(sorted(place.values())),
    )
    product = new.multiply(wide, new.converted(matrix.array, summed))
    zero = new.op("constant", literal=Literal(summed.dtype.type(0)))
    folded = tuple(sorted(matrix.contracting))
    total = new.op("reduce", [product, zero], called=[binary_region("add", summed)], dimensions=folded)
    kept = [dim for dim in range(matrix.array.shape.rank) if dim not in folded]
    return _in_order(total, [kept.index(dim) for dim in (*matrix.batch, *matrix.free)])


def _fold_side_by_side(left: _Side, right: _Side, summed: ElementType, type: ElementType) -> Value:
    """Results for each batch and the free dimensions of both sides; batches are last where elements are multiplied."""
    sizes = (*left.sizes(left.free), *right.sizes(right.free), *left.sizes(left.contracting), *left.sizes(left.batch))
    shape = Shape.array(summed.dtype, sizes)
    rows, columns, depth = len(left.free), len(right.free), len(left.contracting)
    inner = range(rows + columns, len(sizes))
    wide = [
        _spread(left, summed, shape, [*range(rows), *inner]),
        _spread(right, summed, shape, [*range(rows, rows + columns), *inner]),
    ]
    zero = new.op("constant", literal=Literal(summed.dtype.type(0)))
    folded = tuple(range(rows + columns, rows + columns + depth))
    total = new.op("reduce", [new.multiply(*wide), zero], called=[binary_region("add", summed)], dimensions=folded)
    kept = rows + columns + len(left.batch)
    return _in_order(new.converted(total, type), [*range(rows + columns, kept), *range(rows + columns)])


def _spread(side: _Side, summed: ElementType, shape: Shape, places: list[int]) -> Value:
    """An operand with its free, contracting and batch dimensions, in this order, in these places."""
    own = _in_order(side.array, [*side.free, *side.contracting, *side.batch])
    return new.broadcast(new.converted(own, summed), shape=shape, dimensions=tuple(places))


def _in_order(value: Value, permutation: list[int]) -> Value:
    return value if permutation == sorted(permutation) else new.transpose(value, permutation=tuple(permutation))
