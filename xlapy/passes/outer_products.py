"""Products of a few steps become sums of outer products, which are element-wise.

    ROOT y = f32[4096,256] dot(f32[4096,3] x, f32[3,256] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}

becomes

    x0 = f32[4096,256] broadcast(f32[4096] x[:, 0]), dimensions={0}
    w0 = f32[4096,256] broadcast(f32[256] w[0]), dimensions={1}
    ...
    ROOT y = f32[4096,256] x0 * w0 + x1 * w1 + x2 * w2 + 0

as points of a few coordinates go into a first layer. Each element of such a product is stored after a few operations,
while tiles of a library begin, end and add up sums of their own; and what comes behind it is part of the same kernel. A
row of it has the rows of w in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.element_types import F32, F64, S32
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes import base, new
from xlapy.passes.base import Pass, pinned, program_computations, replace_all
from xlapy.passes.new import Value

LEAST_STEPS, MOST_STEPS = 2, 8
TYPES = (F32, F64, S32)
LEAST_COLUMNS = 64  # that are some vectors
LEAST_ELEMENTS = 1 << 16  # of a result that is worth a kernel of its own


@dataclass
class OuterProducts(Pass):
    name: ClassVar[str] = "outer-products"
    ops: ClassVar[Set[str]] = frozenset({"dot"})

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            dots = [instruction for instruction in computation if instruction.opcode == "dot"]
            fixed = pinned(computation) if dots else set()
            replacements: dict[Instruction, Instruction] = {}
            for dot in dots:
                if dot not in fixed and _is_of_few_steps(dot):
                    replacements[dot], _ = new.materialize(_sum_of_products(dot), computation, dot)
                    self.records.append(base.Record.of(dot, True, "few steps are a sum of outer products"))
            replace_all(computation, replacements)
            changed = computation.remove(replacements) or changed
        return changed


def _is_of_few_steps(dot: Instruction) -> bool:
    """A product of an array, whose rows are short, and a matrix of few long rows, which element-wise instructions or
    other products need, or the caller."""
    (left, right), numbers = (operand.shape for operand in dot.operands), dot.attributes["dimension_numbers"]
    if dot.shape.type not in TYPES or not (left.type is right.type is dot.shape.type) or not dot.shape.is_static:
        return False
    if numbers.lhs_batch or numbers.rhs_contracting != (0,) or right.rank != 2 or len(numbers.lhs_contracting) != 1:
        return False
    if not LEAST_STEPS <= right.dims[0] <= MOST_STEPS or right.dims[1] < LEAST_COLUMNS:
        return False
    follows = all(user.opcode in _FOLLOWING or Trait.ELEMENTWISE in user.spec.traits for user in dot.users)
    return follows and dot.shape.size >= max(LEAST_ELEMENTS, right.size)


_FOLLOWING = frozenset({"dot", "tuple"})


def _sum_of_products(dot: Instruction) -> Value:
    left, right = dot.operands
    (step,) = dot.attributes["dimension_numbers"].lhs_contracting
    whole = [SliceDimension(0, size) for size in left.shape.dims]
    shape = dot.shape.without_layout()
    free = [size for dim, size in enumerate(left.shape.dims) if dim != step]
    total: Value | None = None
    for number in range(right.shape.dims[0]):
        part = SliceDimension(number, number + 1)
        column = new.slice(left, dimensions=(*whole[:step], part, *whole[step + 1 :]))
        row = new.slice(right, dimensions=(part, SliceDimension(0, right.shape.dims[1])))
        product = new.multiply(
            new.broadcast(new.reshaped(column, free), shape=shape, dimensions=tuple(range(len(free)))),
            new.broadcast(new.reshaped(row, row.shape.dims[1:]), shape=shape, dimensions=(len(free),)),
        )
        total = product if total is None else new.add(total, product)
    assert total is not None
    return new.add(total, new.number(0, like=total))
