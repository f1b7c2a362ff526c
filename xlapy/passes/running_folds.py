"""Running folds that were written as trees of them: an array is folded in pairs, these in pairs, and so on, and what is
between the pairs is made from what was folded before it.

    a, b = s32[4] slice(x), slice={[0:8:2]}, s32[4] slice(x), slice={[1:8:2]}
    p = s32[4] xor(a, b)                                       and the same of p, which gives its running folds q
    ...
    ROOT r = s32[8] reshape(concatenate(... q ...))            x and q between one another

becomes

    ROOT r = s32[8] reduce-window(x, 0), window={size=8 pad=7_0}, to_apply=xor

which one kernel computes while it reads the array once. How the tree was built does not matter: of each element of each
array it is known which neighbours of the source are folded in it, and those of the result begin with the first one.
Only for an operation that is the same in any order: of integers, of truth, and the largest or smallest of floats.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from xlapy.hlo.attributes import NO_WINDOW_DIMENSION, SliceDimension, Window, WindowDimension
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.regions import binary_region
from xlapy.passes.base import ComputationPass, pinned, replace_all

EXTREMA = frozenset({"maximum", "minimum"})
SAME_TWICE = EXTREMA | {"and", "or"}
ANY_ORDER = SAME_TWICE | {"add", "multiply", "xor"}
MOVES = frozenset({"slice", "concatenate", "reshape"})

LEAST_FOLDED = 16  # elements: a few of them are folded in registers
MOST_FOLDED = 1 << 22  # whose neighbours are looked at
MOST_INSTRUCTIONS = 1 << 9  # of a tree

Ends: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"
Spans: TypeAlias = tuple[Ends, Ends]
"""The first and the last neighbour that is folded in each element."""


@dataclass
class RunningFolds(ComputationPass):
    name: ClassVar[str] = "running-folds"
    ops: ClassVar[Set[str]] = frozenset({"slice"})

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        seen: set[Instruction] = set()
        found: dict[Instruction, _Tree] = {}
        replacements: dict[Instruction, Instruction] = {}
        for instruction in reversed(computation.post_order()):
            if instruction in seen or instruction in fixed or not _may_end_tree(instruction):
                continue
            tree = _Tree.under(instruction)
            if tree is None:
                continue
            seen.update(tree.members)
            folded = tree.in_one()
            if folded is not None:
                found[instruction], replacements[instruction] = tree, folded
        replace_all(computation, replacements)
        doomed: dict[Instruction, None] = {}
        for tree in found.values():
            for member in reversed(tree.members):
                if not member.is_root and member not in fixed and all(user in doomed for user in member.users):
                    doomed[member] = None
        return computation.remove(doomed)


def _may_end_tree(instruction: Instruction) -> bool:
    """Something else than a move of its elements uses it."""
    if not _is_member(instruction) or max(instruction.shape.dims, default=0) < LEAST_FOLDED:
        return False
    return instruction.is_root or any(user.opcode not in MOVES for user in instruction.users)


def _is_member(instruction: Instruction) -> bool:
    shape = instruction.shape
    if not shape.is_array or not shape.is_static or shape.type.is_complex:
        return False
    return instruction.opcode in MOVES or instruction.opcode in (EXTREMA if shape.type.is_float else ANY_ORDER)


@dataclass(frozen=True)
class _Tree:
    """What is made of `source` by one operation and by moving elements; `members` are in the order in which they are
    computed."""

    source: Instruction
    operation: str
    members: Sequence[Instruction]

    @classmethod
    def under(cls, root: Instruction) -> _Tree | None:
        """What leads to `root`, if it is such a tree and has the dimensions of its source."""
        members, operations, sources = {root: None}, set(), set()
        pending = [root]
        while pending:
            value = pending.pop()
            if value.opcode not in MOVES:
                operations.add(value.opcode)
            for operand in value.operands:
                if not _is_member(operand):
                    sources.add(operand)
                elif operand not in members:
                    members[operand] = None
                    pending.append(operand)
            if len(operations) > 1 or len(sources) > 1 or len(members) > MOST_INSTRUCTIONS:
                return None
        if len(operations) != 1 or len(sources) != 1:
            return None
        [source] = sources
        if source.shape.dims != root.shape.dims or not source.shape.is_static:
            return None
        return cls(source, operations.pop(), [value for value in root.parent.post_order() if value in members])

    def spans(self, dim: int) -> Spans | None:
        """What is folded in each element of the result along a dimension; None if it is not neighbours, or not along
        this dimension only."""
        dims = self.source.shape.dims
        before, behind = dims[:dim], dims[dim + 1 :]
        places = np.arange(dims[dim])
        known: dict[Instruction, Spans] = {self.source: (places, places)}
        for member in self.members:
            own = member.shape.dims
            if own[:dim] != before or own[len(own) - len(behind) :] != behind or len(own) < len(dims):
                return None
            spans = self._folded(member, [known[operand] for operand in member.operands], dim, len(behind))
            if spans is None:
                return None
            known[member] = spans
        return known[self.members[-1]]

    def _folded(self, member: Instruction, operands: Sequence[Spans], dim: int, behind: int) -> Spans | None:
        dims = member.shape.dims
        middle = dims[dim : len(dims) - behind]
        (first, last), *others = operands
        if member.opcode == "reshape":
            return first.reshape(middle), last.reshape(middle)
        if member.opcode == "slice":
            ranges: tuple[SliceDimension, ...] = member.attributes["dimensions"]
            taken = tuple(slice(one.start, one.limit, one.stride) for one in ranges[dim : len(dims) - behind])
            return first[taken], last[taken]
        if member.opcode == "concatenate":
            axis = member.attributes["dimension"] - dim
            if not 0 <= axis < len(middle):
                return None
            firsts, lasts = zip(*operands, strict=True)
            return np.concatenate(firsts, axis), np.concatenate(lasts, axis)
        [(other_first, other_last)] = others
        follows, leads = other_first == last + 1, first == other_last + 1
        if self.operation in SAME_TWICE:
            follows = (first <= other_first) & (other_first <= last + 1)
            leads = (other_first <= first) & (first <= other_last + 1)
        if not (follows | leads).all():
            return None
        return np.minimum(first, other_first), np.maximum(last, other_last)

    def in_one(self) -> Instruction | None:
        """The running fold of the source that it is, from one of the ends; None if it is none."""
        for dim, size in enumerate(self.source.shape.dims):
            spans = self.spans(dim) if LEAST_FOLDED <= size <= MOST_FOLDED else None
            if spans is None:
                continue
            first, last = spans
            places = np.arange(size)
            if np.array_equal(last, places) and not first.any():
                return self._running_fold(dim, WindowDimension(size, padding_low=size - 1))
            if np.array_equal(first, places) and (last == size - 1).all():
                return self._running_fold(dim, WindowDimension(size, padding_high=size - 1))
        return None

    def _running_fold(self, dim: int, along: WindowDimension) -> Instruction:
        root = self.members[-1]
        region = binary_region(self.operation, root.shape.type)
        neutral = identity_literal(region)
        assert neutral is not None
        windows = [along if own == dim else NO_WINDOW_DIMENSION for own in range(root.shape.rank)]
        init = root.parent.add("constant", literal=neutral)
        return root.parent.add(
            "reduce-window",
            [self.source, init],
            called=[region],
            window=Window((*windows,)),
            metadata=root.metadata,
        )
