"""Folds of what is read under other dimensions: one shape for all that a kernel over rows may hold.

    m = f32[2,4,128,1] reduce(x, lowest), dimensions={4}, to_apply=max
    t = f32[1,2,4,128] reshape(m)
    y = f32[1,2,4,128,128] reshape(x)
    ROOT d = f32[1,2,4,128,128] subtract(y, f32[1,2,4,128,128] broadcast(t))

becomes

    t = f32[1,2,4,128] reduce(y, lowest), dimensions={4}, to_apply=max
    y = f32[1,2,4,128,128] reshape(x)
    ROOT d = f32[1,2,4,128,128] subtract(y, f32[1,2,4,128,128] broadcast(t))

Dimensions of size 1 come and go where programs move them to where a library wants them, as attention does with those of
its groups of heads. Laws bring reduces in front of such reshapes, where most of them meet what makes their array; here
the one whose results return to the elements of the reshaped array gets back behind it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_row_major, row_space
from xlapy.hlo.reshape_groups import pairs_of_wide
from xlapy.hlo.shape import Dims
from xlapy.passes.base import ComputationPass, Record, pinned, replace_all


@dataclass
class ReshapedFolds(ComputationPass):
    name: ClassVar[str] = "reshaped-folds"
    ops: ClassVar[Set[str]] = frozenset({"reduce"})

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements: dict[Instruction, Instruction] = {}
        gone = []
        for reduce in computation.post_order():
            is_free = not (reduce.is_root or fixed & {reduce, *reduce.users})
            found = _read_with_results(reduce) if is_free else None
            if found is None:
                continue
            array, dimensions = found
            reason = f"{array.name} is read with its results, in one kernel over rows"
            self.records.append(Record.of(reduce, True, reason))
            replacements |= dict.fromkeys(reduce.users, _fold_of(reduce, array, dimensions))
            gone += [*reduce.users, reduce]
        replace_all(computation, replacements)
        return computation.remove(gone)


def _read_with_results(reduce: Instruction) -> tuple[Instruction, Dims] | None:
    """The reshape of the array that is folded under whose dimensions all results are read, and which are folded."""
    if reduce.opcode != "reduce" or row_space(reduce) is None:
        return None
    if not all(user.opcode == "reshape" and is_row_major(user) for user in reduce.users):
        return None
    wanted = {user.shape.dims for user in reduce.users}
    for array in reduce.operands[0].users:
        folded = _folded_dims(reduce, array) if array.opcode == "reshape" and is_row_major(array) else None
        if folded is None:
            continue
        kept = tuple(size for dim, size in enumerate(array.shape.dims) if dim not in folded)
        if wanted == {kept}:
            return array, folded
    return None


def _folded_dims(reduce: Instruction, array: Instruction) -> Dims | None:
    """The dimensions of the reshaped `array` that are folded, none of size 1; None if more than such is different."""
    pairs = pairs_of_wide(reduce.operands[0].shape.dims, array.shape.dims)
    return None if pairs is None else tuple(new for old, new in pairs if old in reduce.attributes["dimensions"])


def _fold_of(reduce: Instruction, array: Instruction, dimensions: Dims) -> Instruction:
    """The same fold of the reshaped `array`."""
    return reduce.parent.add(
        "reduce",
        [array, *reduce.operands[1:]],
        called=reduce.called,
        metadata=reduce.metadata,
        **{**reduce.attributes, "dimensions": dimensions},
    )
