"""Folds of columns join the kernel over rows that makes, or reads, the array.

    f = (f32[4096,1024], f32[4096,1024]) fusion(x), kind=kOutput, calls=two_arrays
    g = f32[4096,1024] get-tuple-element(f), index=1
    ROOT r = f32[1024] reduce(g, zero), dimensions={0}, to_apply=sum

becomes

    f = (f32[4096,1024], f32[32,1024]) fusion(x), kind=kOutput, calls=array_and_sums
    p = f32[32,1024] get-tuple-element(f), index=1
    ROOT r = f32[1024] reduce(p, zero), dimensions={0}, to_apply=sum

So come the gradients of scales and shifts behind a normalization: the arrays that they are sums of are never stored, or
not read a second time. The kernel folds rows in parts (`hlo/column_folds.py`), which depend on the shape alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.kernel_plan import KernelLimits, RowSpace, fold_of, fusion_roots, is_row_major, row_space
from xlapy.passes.base import ComputationPass, Record, needed_by, pinned

MOST_PART_BYTES = 1 << 20  # of an array: some tens of microseconds of work
MANY_PARTS = 32  # to share out, if rows are many
LEAST_PARTS = 8
LEAST_ROWS = 16  # of a part, beside which what it is folded to is little


@dataclass
class ColumnFolds(ComputationPass):
    """`least_bytes` has an array that is worth it: smaller ones are in a near cache when they are folded."""

    name: ClassVar[str] = "column-folds"

    limits: KernelLimits = field(default_factory=KernelLimits)
    least_bytes: int = 1 << 20

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        changed = False
        for fusion in computation.post_order():
            space = None if fusion in fixed else _rows_of(fusion)
            rows = 0 if space is None else _part_rows(space, fusion, self.least_bytes)
            if space is None or not rows:
                continue
            sums = [found for found in _sums_behind(fusion, space) if found.reduce not in fixed]
            room = self.limits.outputs - len(fusion_roots(fusion.called[0]))
            if sums and len(sums) <= room:
                joined = _join(computation, fusion, sums, space, rows)
                names = ", ".join(found.reduce.name for found in sums)
                reason = f"{names} folded what it makes or reads, {rows} rows at a time"
                self.records.append(Record.of(joined, True, reason))
                changed = True
        return changed


@dataclass(frozen=True, slots=True)
class _Sum:
    """A fold of the columns of an array that a kernel over rows makes or reads."""

    reduce: Instruction
    array: Instruction


def _rows_of(fusion: Instruction) -> RowSpace | None:
    """The rows that a kernel takes one after the other."""
    if fusion.opcode != "fusion" or fusion.attributes["kind"] is not FusionKind.OUTPUT:
        return None
    fused = fusion.called[0]
    space = None if fold_steps(fused) is not None else row_space(fold_of(fused))
    return None if space is None or space.is_columns else space


def _part_rows(space: RowSpace, fusion: Instruction, least_bytes: int) -> int:
    """How many rows make a part; 0 if there are no good parts, or the arrays are small."""
    width = max(leaf.type.bytes for leaf in fusion.shape.leaves())
    row_bytes = space.row_length * width
    if space.rows * row_bytes < least_bytes:
        return 0
    wanted = max(LEAST_ROWS, min(MOST_PART_BYTES // row_bytes, space.rows // MANY_PARTS))
    divisors = (rows for rows in range(wanted, LEAST_ROWS - 1, -1) if space.rows % rows == 0)
    rows = next(divisors, 0)
    return rows if rows and space.rows // rows >= LEAST_PARTS else 0


# -- what is folded --------------------------------------------------------------------------------------------------


def _sums_behind(fusion: Instruction, space: RowSpace) -> list[_Sum]:
    """The folds of columns of what a fusion makes or reads that do not have to come before it."""
    made = [_Sum(user, array) for array in _results(fusion) for user in array.users]
    read = [_Sum(user, array) for array in fusion.operands for user in array.users]
    found = {each.reduce: each for each in (*read, *made) if _folds_columns(each, space)}
    if any(each.array in fusion.operands for each in found.values()):
        before = needed_by([fusion])
        return [each for each in found.values() if each.reduce not in before]
    return [*found.values()]


def _results(fusion: Instruction) -> list[Instruction]:
    """The arrays that a fusion makes."""
    return [fusion] if fusion.shape.is_array else [user for user in fusion.users if user.opcode == "get-tuple-element"]


def _folds_columns(candidate: _Sum, space: RowSpace) -> bool:
    """A reduce folds all rows of an array, by an op for which the order is free, in the type that memory has."""
    reduce, array = candidate.reduce, candidate.array
    if reduce.opcode != "reduce" or len(reduce.operands) != 2 or reduce.operands[0] is not array:
        return False
    if not (space.is_full(array) and is_row_major(array) and is_row_major(reduce)):
        return False
    type = array.shape.type
    if type.is_narrow_float or type.is_complex or identity_literal(reduce.called[0]) is None:
        return False
    return {*reduce.attributes["dimensions"]} == {*space.kept}


# -- the kernel with its folds ---------------------------------------------------------------------------------------


def _join(
    computation: Computation, fusion: Instruction, sums: Sequence[_Sum], space: RowSpace, rows: int
) -> Instruction:
    """Puts a fusion that folds columns, too, in the place of one; and folds of its parts in that of the sums."""
    kept = _kept_outside(fusion, {each.reduce for each in sums})
    fused = _with_folds(fusion, kept, sums, space, rows)
    roots = fusion_roots(fused)
    joined = computation.add(
        "fusion",
        fusion.operands,
        called=[fused],
        shape=fused.root.shape,
        name=fusion.name,
        metadata=fusion.metadata,
        kind=fusion.attributes["kind"],
    )
    results = [joined] if len(roots) == 1 else computation.unpacked(joined)
    for each, parts in zip(sums, results[len(kept) :], strict=True):
        computation.replace(each.reduce, _folded(each.reduce, parts, each.reduce.operands[1], 0))
    for number, result in zip(kept, results, strict=False):
        for old in _results(fusion):
            if old.attributes.get("index", 0) == number:
                computation.replace(old, result)
    computation.remove([*(each.reduce for each in sums), *_results(fusion), fusion])
    return joined


def _kept_outside(fusion: Instruction, sums: Iterable[Instruction]) -> list[int]:
    """The numbers of the results that others than the sums read."""
    gone = {*sums}
    needed = [each for each in _results(fusion) if each.is_root or any(user not in gone for user in each.users)]
    return sorted({each.attributes.get("index", 0) for each in needed})


def _with_folds(
    fusion: Instruction, kept: Sequence[int], sums: Sequence[_Sum], space: RowSpace, rows: int
) -> Computation:
    """What is fused, with the results that are kept and partial folds of columns behind them."""
    fused = fusion.called[0].clone()
    old, outputs = fused.root, fusion_roots(fused)
    roots = [outputs[number] for number in kept]
    dims = (space.rows // rows, rows, *(space.dims[dim] for dim in space.folded))
    for each in sums:
        if each.array in fusion.operands:
            value = fused.parameters[fusion.operands.index(each.array)]
        else:
            value = outputs[each.array.attributes.get("index", 0)]
        parts = fused.add("reshape", [value], shape=value.shape.with_dims(dims))
        literal = identity_literal(each.reduce.called[0])
        assert literal is not None
        roots.append(_folded(each.reduce, parts, fused.add("constant", literal=literal), 1))
    fused.set_root(roots[0] if len(roots) == 1 else fused.add("tuple", roots))
    if old.opcode == "tuple":
        fused.remove([old])
    return fused


def _folded(like: Instruction, array: Instruction, init: Instruction, dimension: int) -> Instruction:
    """The fold of an array, in the same computation, along one dimension, by the op of another fold."""
    dims = tuple(size for dim, size in enumerate(array.shape.dims) if dim != dimension)
    return array.parent.add(
        "reduce",
        [array, init],
        called=like.called,
        dimensions=(dimension,),
        shape=like.shape.with_dims(dims),
        name=like.name,
        metadata=like.metadata,
    )
