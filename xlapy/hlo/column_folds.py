"""Folds of columns that a kernel over rows takes along: it has each element in a register once, and would otherwise
store all of them for another kernel to fold.

    x = f32[4096,1024] parameter(0)
    s = f32[4096] reduce(x, zero), dimensions={1}            rows: the kernel takes one after the other
    e = f32[4096,1024] divide(x, broadcast(s))
    t = f32[64,64,1024] reshape(e)                           in parts of 64 rows
    c = f32[64,1024] reduce(t, zero), dimensions={1}         a result of the kernel beside others

Rows come in parts, of which one thread takes all, in order: so bits do not depend on threads. The results of all parts
are folded by another kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import RowSpace, fusion_roots, row_space


@dataclass(frozen=True, slots=True)
class ColumnFold:
    """A root of a fused computation over rows that folds the columns of `value`, a whole array, part by part."""

    reduce: Instruction
    value: Instruction

    @property
    def part_rows(self) -> int:
        """Rows of each part."""
        return self.reduce.operands[0].shape.dims[1]


def column_folds(computation: Computation) -> Sequence[ColumnFold]:
    """The folds of columns among the roots of a fused computation over rows; all have the same parts."""
    first = next(instruction for instruction in computation.post_order() if instruction.opcode == "reduce")
    space = row_space(first)
    if space is None or space.is_columns:
        return ()
    found = (column_fold(root, space) for root in fusion_roots(computation))
    return [fold for fold in found if fold is not None]


def column_fold(root: Instruction, space: RowSpace) -> ColumnFold | None:
    """The fold of columns of rows that a root is, if it is one."""
    if root.opcode != "reduce" or root.operands[0].opcode != "reshape" or row_space(root) == space:
        return None
    value = root.operands[0].operands[0]
    return ColumnFold(root, value) if space.is_full(value) else None
