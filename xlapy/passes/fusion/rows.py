"""Row fusion: reduces over the rows, or columns, of an array become one kernel with all that is computed from them row
by row.

    m = f32[n] reduce(x, lowest), dimensions={1}, to_apply=max
    e = f32[n,c] exponential(x - broadcast(m))
    s = f32[n] reduce(e, zero), dimensions={1}, to_apply=sum
    ROOT r = f32[n,c] divide(e, broadcast(s))

becomes

    ROOT r.fusion = f32[n,c] fusion(x), kind=kOutput, calls=fused.r

A kernel per step would move the array through memory once per step; this one reads it once, a row at a time. What such
a kernel may hold is fixed in `hlo/kernel_plan.py`.

A chain starts at a reduce and takes every instruction that continues it. Everything has a level, one higher behind each
chain; a chain takes only what needs nothing of a higher level than its own, so no chain can wait for itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.element_types import F32
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import (
    MOST_REREAD_BYTES,
    MOST_ROW_BYTES,
    WIDEST_STRIP,
    KernelLimits,
    RowSpace,
    is_blocked_transpose,
    is_element_op,
    is_kernel_constant,
    is_row_major,
    row_space,
)
from xlapy.hlo.ops import Trait
from xlapy.passes.base import Pass, Record, pinned, program_computations
from xlapy.passes.fusion.build import replace_groups
from xlapy.passes.fusion.cost import CHEAP, memory_bytes, operation_cost
from xlapy.passes.fusion.left_to_readers import ChainResults
from xlapy.passes.fusion.plan import IDENTITY, MOST_FOLLOWED, Group

SMALL_ARRAY_BYTES = 4 * 1024
LARGE_ARRAY_BYTES = 32 << 20
"""Of an array whose columns are folded. On cores with 1 MB of second-level cache and 32 MB of the third, a softmax and
a normalization over columns, and their gradients, take 0.6 to 0.8 of the time in one kernel where arrays have 4 KB, 0.6
to 1.1 of it where they have 8 KB, 0.7 to 1.2 from 0.5 to 16 MB, and 0.6 to 0.9 where they have 32 or 64 MB."""

MOST_GROUP_BYTES = 1 << 20
"""Of one of several matrices, each of whose columns are folded by themselves: a second-level cache holds it from the
first sweep to the last one, so that one kernel takes 0.4 to 0.9 of the time, where all of them have 16 KB to 16 MB."""

LEAST_FOLDS = 4
"""Of which each needs the one before it, as the gradient of a softmax behind a softmax has. A kernel of more keeps what
it makes between them, of each row, or computes it again and again: it holds as many more as there is room for. 30
softmaxes of rows of 64, one behind the other, take 40 us in several kernels, 440 in one."""

OVERWRITING = frozenset({"dynamic-update-slice", "scatter", "while", "custom-call"})
"""What may change an array in place: others should not read it for longer than they have to."""


@dataclass
class RowFusion(Pass):
    name: ClassVar[str] = "row-fusion"

    limits: KernelLimits = field(default_factory=KernelLimits)

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            changed = _RowChains(computation, self.limits, self.records).fuse() or changed
        return changed


@dataclass(eq=False, slots=True)
class _Chain:
    """Instructions over the rows of one array; all that they read from outside has at most their level."""

    space: RowSpace
    level: int
    members: dict[Instruction, None] = field(default_factory=dict)
    weight: float = 0.0
    results: ChainResults = field(init=False)


class _RowChains:
    """The chains of one computation."""

    def __init__(self, computation: Computation, limits: KernelLimits, records: list[Record]) -> None:
        self.computation = computation
        self.limits = limits
        self.records = records
        self.order = computation.post_order()
        self.place = {instruction: number for number, instruction in enumerate(self.order)}
        self.fixed = pinned(computation)
        self.chain_of: dict[Instruction, _Chain] = {}
        self.levels: dict[Instruction, int] = {}
        self.folds: dict[Instruction, int] = {}  # behind each other, up to a member of a chain
        self.left: set[Instruction] = set()

    def fuse(self) -> bool:
        for instruction in self.order:
            self._enter(instruction)
        groups = []
        chains = list(dict.fromkeys(self.chain_of.values()))
        for chain in sorted(chains, key=lambda chain: chain.level):
            chain.results = self._results(chain)
            self.left |= chain.results.left
        for chain in chains:
            group = self._group(chain)
            fault = _fault(group, chain, self.limits)
            if fault:
                self.records.append(Record.of(group.root, False, fault))
            else:
                groups.append(group)
        groups.sort(key=lambda group: group.level)
        replace_groups(self.computation, groups, self.place, self.records)
        self._remove(group.maps for group in groups)
        return bool(groups)

    def _remove(self, members: Iterable[dict[Instruction, frozenset[int]]]) -> None:
        """Removes what has become useless; values that others compute as well stay."""
        for instruction in sorted({i for some in members for i in some}, key=self.place.__getitem__, reverse=True):
            if not instruction.users and not instruction.is_root:
                self.computation.remove([instruction])

    # -- from reduces to results

    def _enter(self, instruction: Instruction) -> None:
        """Finds the chain of an instruction, if any, and its level."""
        chain = self._continued(instruction) or self._started(instruction)
        if chain is None:
            self.levels[instruction] = self._level_behind(instruction.operands)
            return
        chain.members[instruction] = None
        chain.weight += max(operation_cost(instruction), 1.0)
        self.chain_of[instruction] = chain
        self.levels[instruction] = chain.level
        self.folds[instruction] = self._folds_up_to(instruction, (chain,))

    def _folds_up_to(self, instruction: Instruction, chains: Collection[_Chain]) -> int:
        """How many folds of these chains, of which each needs the one before it, an instruction needs; itself
        included."""
        before = (self.folds[operand] for operand in instruction.operands if self.chain_of.get(operand) in chains)
        return max(before, default=0) + (instruction.opcode == "reduce")

    def _level_behind(self, operands: Iterable[Instruction]) -> int:
        return max((self.levels[operand] + (operand in self.chain_of) for operand in operands), default=0)

    def _continued(self, instruction: Instruction) -> _Chain | None:
        """The chain that the instruction can join: one that it reads, merged with the others that it reads."""
        chains = list(dict.fromkeys(self.chain_of[i] for i in instruction.operands if i in self.chain_of))
        if not chains or instruction in self.fixed:
            return None
        fitting = [chain for chain in chains if chain.space.continues(instruction)]
        if not fitting:
            return None
        first, *others = fitting
        mergeable = [chain for chain in others if chain.level == first.level and chain.space == first.space]
        parts = {first, *mergeable}
        outside = [operand for operand in instruction.operands if self.chain_of.get(operand) not in parts]
        size = sum(len(chain.members) for chain in parts)
        weight = sum(chain.weight for chain in parts) + operation_cost(instruction)
        if self._level_behind(outside) > first.level or 2 * size >= self.limits.instructions:
            return None
        if 2 * weight > self.limits.weight or self._folds_up_to(instruction, parts) > _most_folds(first.space):
            return None
        for chain in mergeable:
            first.members |= chain.members
            first.weight += chain.weight
            self.chain_of.update(dict.fromkeys(chain.members, first))
        return first

    def _started(self, instruction: Instruction) -> _Chain | None:
        if instruction.opcode != "reduce" or instruction in self.fixed:
            return None
        space = row_space(instruction)
        if space is None or not _pays(instruction, space):
            return None
        return _Chain(space, self._level_behind(instruction.operands))

    # -- from reduces to parameters

    def _results(self, chain: _Chain) -> ChainResults:
        """What the chain stores. The results of those below it are known."""

        def is_inside(user: Instruction) -> bool:
            return user in chain.members or (is_element_op(user) and all(i in chain.members for i in user.users))

        def lies_in_memory(source: Instruction) -> bool:
            other = self.chain_of.get(source)
            if other is not None:
                return source in other.results.stored
            if any(user.opcode in OVERWRITING for user in source.users):
                return False
            if not is_element_op(source):
                return True
            is_cheap = operation_cost(source) <= CHEAP and _reads_less(source)
            return not (is_cheap or all(map(is_inside, source.users)))

        return ChainResults(sorted(chain.members, key=self.place.__getitem__), chain.space, lies_in_memory)

    def _group(self, chain: _Chain) -> Group:
        """The chain with its producers, as far as its results need it."""
        group = Group(
            sorted(chain.results.stored, key=self.place.__getitem__), FusionKind.OUTPUT, {}, level=chain.level
        )
        needed = set(group.roots)
        for member in sorted(chain.members, key=self.place.__getitem__, reverse=True):
            if member in needed:
                group.admit(member, frozenset({IDENTITY}))
                needed.update(member.operands)
        for member in chain.members:
            if member in group.maps:
                group.inputs.pop(member, None)
        waiting = sorted(group.inputs, key=self.place.__getitem__)
        while waiting and 2 * len(group.maps) < self.limits.instructions:
            producer = waiting.pop()
            if producer in group.maps or not self._is_absorbed(producer, group, chain.space):
                continue
            group.admit(producer, frozenset({IDENTITY}))
            group.inputs = {operand: None for operand in group.inputs if operand not in group.maps}
            waiting = sorted({*waiting, *producer.operands} & group.inputs.keys(), key=self.place.__getitem__)
        return group

    def _is_absorbed(self, producer: Instruction, group: Group, space: RowSpace) -> bool:
        """The kernel shall compute `producer`, rather than read it."""
        if producer in self.left and producer not in group.maps:
            return True
        if producer in self.fixed or producer in self.chain_of or not is_element_op(producer):
            return False
        if producer.shape.is_scalar or is_kernel_constant(producer) or is_blocked_transpose(producer):
            return False
        if space.is_full(producer) and _is_other_name(producer):
            return False
        is_repeated = producer.shape.size not in (space.rows, math.prod(space.dims))
        if operation_cost(producer) and is_repeated and not _is_cheaply_generated(producer):
            return False
        if not producer.is_root and all(user in group.maps and user not in self.left for user in producer.users):
            return True
        return operation_cost(producer) <= CHEAP and _reads_less(producer)


def _most_folds(space: RowSpace) -> int:
    """How many folds, of which each needs the one before it, a kernel may hold."""
    row_bytes = space.row_length * space.rows_at_once(in_place=False) * F32.bytes
    return max(LEAST_FOLDS, MOST_ROW_BYTES // row_bytes)


def _pays(reduce: Instruction, space: RowSpace) -> bool:
    """A chain may be more than the reduce it would start at. Of an array that is a single row, it is if it returns to
    the elements: all else is a fold, whose result is a scalar for others to use."""
    if space.is_columns:
        return _may_take_columns(reduce, space)
    return bool(space.kept) or returns_to_elements(reduce, space)


def _may_take_columns(reduce: Instruction, space: RowSpace) -> bool:
    """A kernel over the columns may pay: the arrays are so small that starting kernels is what takes time, or there are
    several that a near cache holds one by one, or no cache holds them, and strips of them can be stored past the
    caches. Else kernels that stream whole rows are as fast."""
    size = reduce.operands[0].shape.bytes
    groups = space.rows // space.dims[-1]
    is_near = size <= SMALL_ARRAY_BYTES or (groups > 1 and size <= groups * MOST_GROUP_BYTES)
    pays = is_near or (size >= LARGE_ARRAY_BYTES and space.has_whole_strips)
    return pays and returns_to_elements(reduce, space)


def returns_to_elements(reduce: Instruction, space: RowSpace) -> bool:
    """What the reduce makes of rows or columns is used for their elements again: all else is a single sweep."""
    pending, seen = [reduce], {reduce}
    while pending and len(seen) < MOST_FOLLOWED:
        for user in pending.pop().users:
            if user not in seen and space.continues(user):
                if space.is_full(user):
                    return True
                seen.add(user)
                pending.append(user)
    return False


def _is_cheaply_generated(producer: Instruction) -> bool:
    """Computing it again, from places alone, is no more work than loading it."""
    return operation_cost(producer) <= CHEAP and not any(memory_bytes(operand) for operand in producer.operands)


def _is_other_name(producer: Instruction) -> bool:
    """The array is another one, as it is in memory, under the dimensions of the chain: there its rows are seen."""
    if producer.opcode != "reshape" or not is_row_major(producer):
        return False
    (source,) = producer.operands
    return is_row_major(source) and not is_element_op(source)


def _reads_less(producer: Instruction) -> bool:
    """Computing it again reads no more than reading it would."""
    return sum(memory_bytes(operand) for operand in producer.operands) <= memory_bytes(producer) and not (
        Trait.INDEX_MAP in producer.spec.traits and producer.opcode not in ("broadcast", "reshape")
    )


def _fault(group: Group, chain: _Chain, limits: KernelLimits) -> str:
    """Why the chain shall not be one kernel, or ""."""
    kept = [member for member in group.maps if member in chain.members and member.opcode != "reshape"]
    reduces = [member for member in kept if member.opcode == "reduce"]
    if len(reduces) == len(kept) == 1:
        return "a reduce without a chain"
    is_large = reduces[0].operands[0].shape.bytes >= LARGE_ARRAY_BYTES
    is_reread = is_large and _widest_strip(chain, reduces[0]) > MOST_REREAD_BYTES
    if chain.space.is_columns and is_reread and not any(map(chain.space.is_full, group.roots)):
        return "columns that are only read stream faster row by row, even twice"
    if len(group.roots) > limits.outputs or len(group.inputs) > limits.operands or group.weight > limits.weight:
        return "its kernel would be too large"
    return ""


def _widest_strip(chain: _Chain, reduce: Instruction) -> int:
    """Bytes of the widest strip of columns that a kernel would take together."""
    width = min(chain.space.dims[-1], WIDEST_STRIP) * reduce.operands[0].shape.type.bytes
    return chain.space.row_length * width
