"""Folds of columns join the kernel over rows that makes, or reads, the array.

    f = (f32[4096,1024], f32[4096,1024]) fusion(x), kind=kOutput, calls=two_arrays
    g = f32[4096,1024] get-tuple-element(f), index=1
    ROOT r = f32[1024] reduce(g, zero), dimensions={0}, to_apply=sum

becomes

    f = (f32[4096,1024], f32[32,1024]) fusion(x), kind=kOutput, calls=array_and_sums
    p = f32[32,1024] get-tuple-element(f), index=1
    ROOT r = f32[1024] reduce(p, zero), dimensions={0}, to_apply=sum

So come the gradients of scales and shifts behind a normalization: the arrays that they are sums of are never stored, or
not read a second time. The kernel folds rows in parts (`hlo/column_folds.py`), which depend on the shape alone. Of an
array that was cut into parts before, each of which is folded by itself, these are the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.kernel_plan import (
    KernelLimits,
    RowSpace,
    fold_of,
    fusion_roots,
    is_kernel_constant,
    is_row_major,
    row_space,
    three_parts,
)
from xlapy.hlo.shape import Dims
from xlapy.passes.base import ComputationPass, Record, needed_by, pinned

MOST_PART_BYTES = 1 << 20  # of an array: some tens of microseconds of work
MANY_PARTS = 32  # to share out, if rows are many
LEAST_PARTS = 8
FEW_PARTS, FEW_PARTS_BYTES = 4, 4 << 20
"""So many are enough for arrays of so many bytes: some hundreds of microseconds of work, and a third less than if these
were stored and folded by others (gradients of layer norms of 64 rows of 4096 f32 or 96 of 8192, on one core)."""
LEAST_ROWS = 16  # of a part, beside which what it is folded to is little


@dataclass
class ColumnFolds(ComputationPass):
    """`least_bytes` has an array that is worth it: smaller ones are in a near cache when they are folded."""

    name: ClassVar[str] = "column-folds"
    ops: ClassVar[Set[str]] = frozenset({"reduce"})

    limits: KernelLimits = field(default_factory=KernelLimits)
    least_bytes: int = 1 << 20

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        changed = False
        for fusion in computation.post_order():
            space = _rows_of(fusion)
            if space is None or fixed & {fusion, *_results(fusion)}:
                continue
            found = [each for each in _sums_behind(fusion, space) if each.reduce not in fixed]
            rows, sums = _with_same_parts(found, fusion, space, self.least_bytes)
            room = self.limits.outputs - len(fusion_roots(fusion.called[0]))
            if sums and len(sums) <= room:
                joined = _join(computation, fusion, sums, space, rows)
                names = ", ".join(each.reduce.name for each in sums)
                reason = f"{names} folded what it makes or reads, {rows} rows at a time"
                self.records.append(Record.of(joined, True, reason))
                changed = True
        return changed


@dataclass(frozen=True, slots=True)
class _Sum:
    """A fold of the columns of an array that a kernel over rows makes or reads, for so many `parts` of the rows."""

    reduce: Instruction
    array: Instruction
    parts: int


def _rows_of(fusion: Instruction) -> RowSpace | None:
    """The rows that a kernel takes one after the other."""
    if fusion.opcode != "fusion" or fusion.attributes["kind"] is not FusionKind.OUTPUT:
        return None
    fused = fusion.called[0]
    space = None if fold_steps(fused) is not None else row_space(fold_of(fused))
    return None if space is None or space.is_columns else space


# -- what is folded --------------------------------------------------------------------------------------------------


def _sums_behind(fusion: Instruction, space: RowSpace) -> list[_Sum]:
    """The folds of columns of what a fusion makes or reads that do not have to come before it."""
    found: dict[Instruction, _Sum] = {}
    for array in dict.fromkeys((*fusion.operands, *_results(fusion))):
        if space.is_full(array) and is_row_major(array):
            found.update((each.reduce, each) for each in _sums_of(array, space))
    if any(each.array in fusion.operands for each in found.values()):
        before = needed_by([fusion])
        return [each for each in found.values() if each.reduce not in before]
    return [*found.values()]


def _results(fusion: Instruction) -> list[Instruction]:
    """The arrays that a fusion makes."""
    return [fusion] if fusion.shape.is_array else [user for user in fusion.users if user.opcode == "get-tuple-element"]


def _sums_of(array: Instruction, space: RowSpace) -> Iterator[_Sum]:
    """The folds of the columns of an array, under its name or another one."""
    names = [array, *(user for user in array.users if user.opcode == "reshape" and is_row_major(user))]
    for reduce in dict.fromkeys(user for name in names for user in name.users):
        parts = _parts_folded(reduce, space)
        if parts:
            yield _Sum(reduce, array, parts)


def _parts_folded(reduce: Instruction, space: RowSpace) -> int:
    """How many parts of the rows a reduce folds, each by itself, by an op for which the order is free and in the type
    that memory has. 0 if it is no such reduce."""
    if reduce.opcode != "reduce" or len(reduce.operands) != 2 or not is_row_major(reduce):
        return 0
    array, type = reduce.operands[0].shape, reduce.shape.type
    if type.is_narrow_float or type.is_complex or identity_literal(reduce.called[0]) is None:
        return 0
    parts, rows, length = three_parts(array.dims, reduce.attributes["dimensions"]) or (0, 0, 0)
    if parts * rows != space.rows or length != space.row_length:
        return 0
    if parts > 1 and not is_kernel_constant(reduce.operands[1]):
        return 0
    counted = (parts,) if parts > 1 else ()
    return parts if reduce.shape.dims == (*counted, *_row_dims(space)) else 0


def _row_dims(space: RowSpace) -> Dims:
    return tuple(space.dims[dim] for dim in space.folded)


def _with_same_parts(
    sums: Sequence[_Sum], fusion: Instruction, space: RowSpace, least_bytes: int
) -> tuple[int, list[_Sum]]:
    """How many rows make a part, and the sums that can be made of such parts; none if these are not good, or the arrays
    small."""
    row_bytes = space.row_length * max(leaf.type.bytes for leaf in fusion.shape.leaves())
    if not sums or space.rows * row_bytes < least_bytes:
        return 0, []
    given = [space.rows // each.parts for each in sums if each.parts > 1]
    least = FEW_PARTS if space.rows * row_bytes <= FEW_PARTS_BYTES else LEAST_PARTS
    rows = next(filter(partial(_are_good_parts, space, least), [*given, *_divisors(space, row_bytes)]), 0)
    return rows, [each for each in sums if rows and each.parts in (1, space.rows // rows)]


def _divisors(space: RowSpace, row_bytes: int) -> Iterator[int]:
    """Numbers of rows that could make a part, the best first."""
    wanted = max(LEAST_ROWS, min(MOST_PART_BYTES // row_bytes, space.rows // MANY_PARTS))
    return (rows for rows in range(wanted, LEAST_ROWS - 1, -1) if space.rows % rows == 0)


def _are_good_parts(space: RowSpace, least: int, rows: int) -> bool:
    return rows >= LEAST_ROWS and space.rows // rows >= least


# -- the kernel with its folds ---------------------------------------------------------------------------------------


def _join(
    computation: Computation, fusion: Instruction, sums: Sequence[_Sum], space: RowSpace, rows: int
) -> Instruction:
    """Puts a fusion that folds columns, too, in the place of one; and folds of its parts in that of the sums."""
    kept = _kept_outside(fusion, {each.reduce for each in sums})
    names = [each.reduce.operands[0] for each in sums if each.reduce.operands[0].opcode == "reshape"]
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
        whole = parts if each.parts > 1 else _folded(each.reduce, parts, each.reduce.operands[1], 0)
        computation.replace(each.reduce, whole)
    for number, result in zip(kept, results, strict=False):
        for old in _results(fusion):
            if old.attributes.get("index", 0) == number:
                computation.replace(old, result)
    computation.remove(each.reduce for each in sums)
    computation.remove(name for name in dict.fromkeys(names) if not name.users and not name.is_root)
    computation.remove([*_results(fusion), fusion])
    return joined


def _kept_outside(fusion: Instruction, sums: Iterable[Instruction]) -> list[int]:
    """The numbers of the results that others than the sums read."""
    gone = {*sums}
    names = [each.operands[0] for each in gone if each.operands[0].opcode == "reshape"]
    gone.update(name for name in names if not name.is_root and gone.issuperset(name.users))
    needed = [each for each in _results(fusion) if each.is_root or any(user not in gone for user in each.users)]
    return sorted({each.attributes.get("index", 0) for each in needed})


def _with_folds(
    fusion: Instruction, kept: Sequence[int], sums: Sequence[_Sum], space: RowSpace, rows: int
) -> Computation:
    """What is fused, with the results that are kept and partial folds of columns behind them."""
    fused = fusion.called[0].clone()
    old, outputs = fused.root, fusion_roots(fused)
    roots = [outputs[number] for number in kept]
    dims = (space.rows // rows, rows, *_row_dims(space))
    for each in sums:
        if each.array in fusion.operands:
            value = fused.parameters[fusion.operands.index(each.array)]
        else:
            value = outputs[each.array.attributes.get("index", 0)]
        parts = fused.add("reshape", [value], shape=value.shape.with_dims(dims))
        init = each.reduce.operands[1]
        literal = identity_literal(each.reduce.called[0]) if each.parts == 1 else init.attributes["literal"]
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
