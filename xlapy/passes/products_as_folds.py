"""Products of a vector and a matrix that is computed become folds, in whose kernel the matrix is computed.

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
weights that are stored in few bits, when tokens come one at a time.

In a loop, a matrix that a near cache holds stays one: it may be computed once, in front of the loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import F32
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import is_element_op, is_kernel_constant
from xlapy.hlo.literal import Literal
from xlapy.hlo.regions import binary_region
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes import new
from xlapy.passes.algebra.conversion import is_lossless
from xlapy.passes.base import Pass, Record, pinned, program_computations, replace_all
from xlapy.passes.fusion.cost import memory_bytes
from xlapy.passes.new import Value

NEAR_BYTES = 256 << 10
"""Of a matrix that a second-level cache holds from one step of a loop to the next one."""

MOST_FOLLOWED = 32  # instructions that compute a matrix

SCATTERED = frozenset({"transpose", "reverse", "gather"})
"""Ops that read what are no neighbours in memory for neighbours of their result."""


@dataclass
class ProductsAsFolds(Pass):
    name: ClassVar[str] = "products-as-folds"

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
                self.records.append(Record.of(dot, True, "the fold computes the matrix that it multiplies by"))
        replace_all(computation, replacements)
        return computation.remove(replacements)


class _Side:
    """An operand of a dot, and what its dimensions are there."""

    def __init__(self, dot: Instruction, number: int) -> None:
        numbers = dot.attributes["dimension_numbers"]
        self.array = dot.operands[number]
        rank = self.array.shape.rank
        self.batch: Dims = (numbers.lhs_batch, numbers.rhs_batch)[number]
        self.contracting: Dims = (numbers.lhs_contracting, numbers.rhs_contracting)[number]
        self.free: Dims = numbers.rhs_free(rank) if number else numbers.lhs_free(rank)

    @property
    def is_vector(self) -> bool:
        """One row of the product, or one for each batch."""
        return math.prod(self.array.shape.dims[dim] for dim in self.free) == 1


def _as_fold(dot: Instruction, least_bytes: int) -> Value | None:
    """The same as a fold, if one side is a vector and the other one is better computed than stored."""
    if dot.shape.type.is_complex or not dot.shape.size or not dot.shape.is_static:
        return None
    for number in (0, 1):
        vector, matrix = _Side(dot, number), _Side(dot, 1 - number)
        if vector.is_vector and matrix.array.shape.bytes > least_bytes and _is_better_computed(matrix.array):
            return _fold(dot, vector, matrix)
    return None


def _is_better_computed(matrix: Instruction) -> bool:
    """Its elements are computed from others at the same places, for this product alone, from no more bytes."""
    if not is_element_op(matrix) or matrix.sole_user is None or is_kernel_constant(matrix):
        return False
    read, seen, pending = 0, {matrix}, [matrix]
    while pending:
        value = pending.pop()
        if value.opcode in SCATTERED or len(seen) > MOST_FOLLOWED:
            return False
        for operand in value.operands:
            if operand in seen:
                continue
            seen.add(operand)
            if is_element_op(operand) and operand.opcode != "parameter":
                pending.append(operand)
            else:
                read += min(memory_bytes(operand), value.shape.size * operand.shape.type.bytes)
    return 0 < read <= matrix.shape.bytes


def _fold(dot: Instruction, vector: _Side, matrix: _Side) -> Value | None:
    result = dot.shape.type
    summed = F32 if result.is_narrow_float else result
    if not all(is_lossless(side.array.shape.type, summed) for side in (vector, matrix)):
        return None
    dims = matrix.array.shape.dims
    own = [*vector.batch, *vector.contracting]
    places = dict(zip(own, (*matrix.batch, *matrix.contracting), strict=True))
    row = new.reshaped(vector.array, [vector.array.shape.dims[dim] for dim in sorted(own)])
    turned = sorted(own, key=places.__getitem__)
    if turned != sorted(own):
        row = new.transpose(row, permutation=tuple(sorted(own).index(dim) for dim in turned))
    wide = new.broadcast(
        new.converted(row, summed), shape=Shape.array(summed, dims), dimensions=tuple(sorted(places.values()))
    )
    left = new.multiply(wide, new.converted(matrix.array, summed))
    zero = new.op("constant", literal=Literal(summed.dtype.type(0)))
    total = new.op(
        "reduce", [left, zero], called=[binary_region("add", summed)], dimensions=tuple(sorted(matrix.contracting))
    )
    kept = [dim for dim in range(len(dims)) if dim not in matrix.contracting]
    wanted = [*matrix.batch, *matrix.free]
    if kept != wanted:
        total = new.transpose(total, permutation=tuple(kept.index(dim) for dim in wanted))
    return new.converted(new.reshaped(total, dot.shape.dims), result)
