"""Early release: what ends the life of more bytes than it begins does not wait for its turn.

    dx = f32[64,256] dot(dz, w)        next in the order: the gradient of the layer before needs it
    dw = f32[256,64] dot(h, dz)        the last to read h and dz: follows at once, though needed in the end only
    r  = f32[256,64] subtract(w, dw)   a result, whose memory is there anyway, and the last to read dw: so does this

Depth first from the root, an order follows the longest way to the first result, and of all layers it keeps what the
gradients of their parameters will be made of. Here an instruction gains the bytes of the values that it is the last to
read, less those of its own result, and runs as soon as it can and gains no less than nothing. Everything else keeps its
place: an update in place, say, comes behind whatever came before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence, Set

from xlapy.hlo.graph import Instruction
from xlapy.hlo.leaves import is_name
from xlapy.passes.analysis.peak import held_bytes, owners_of

Needs = Mapping[Instruction, Sequence[Instruction]]


def release_early(order: Sequence[Instruction], bound: Set[Instruction], needs: Needs) -> tuple[Instruction, ...]:
    """`order` with instructions, none of those that are `bound` to their place, where they free memory; `needs` has
    what must come before some of them beside their operands and control predecessors."""
    return _Release(order, bound, needs).run()


class _Release:
    def __init__(self, order: Sequence[Instruction], bound: Set[Instruction], needs: Needs) -> None:
        self._order = order
        self._bound = bound
        self._place = {instruction: number for number, instruction in enumerate(order)}
        self._owners = owners_of(order)
        results = frozenset(self._owners[order[0].parent.root])
        self._bytes = {value: 0 if value in results else held_bytes(value) for value in order}
        self._readers = self._readers_of_values()
        self._left = {value: len(readers) for value, readers in self._readers.items()}
        """How many have not read a value yet."""
        self._users: dict[Instruction, list[Instruction]] = {instruction: [] for instruction in order}
        self._waits: dict[Instruction, int] = {}
        for instruction in order:
            needed = {*instruction.operands, *instruction.control_predecessors, *needs.get(instruction, ())}
            self._waits[instruction] = len(needed)
            for earlier in needed:
                self._users[earlier].append(instruction)
        self._done: dict[Instruction, None] = {}  # in order
        self._ready: list[tuple[int, int, Instruction]] = []

    def run(self) -> tuple[Instruction, ...]:
        for instruction in self._order:
            self._take(instruction)
            while self._ready:
                self._take(heapq.heappop(self._ready)[-1])
        return tuple(self._done)

    def _take(self, instruction: Instruction) -> None:
        if instruction in self._done:
            return
        self._done[instruction] = None
        for user in self._users[instruction]:
            self._waits[user] -= 1
            self._offer(user)
        for value in self._read(instruction):
            self._left[value] -= 1
            if self._left[value] == 1:
                for reader in self._readers[value]:
                    self._offer(reader)

    def _offer(self, instruction: Instruction) -> None:
        """Lets it run next if it can and does not lose. A gain only grows, each time when this is called again."""
        if self._waits[instruction] or instruction in self._done or instruction in self._bound:
            return
        read = self._read(instruction)
        gain = sum(self._bytes[value] for value in read if self._left[value] == 1) - self._bytes[instruction]
        if gain >= 0:
            heapq.heappush(self._ready, (-gain, self._place[instruction], instruction))

    def _read(self, instruction: Instruction) -> Set[Instruction]:
        """The values that an instruction reads; a name reads none."""
        if is_name(instruction):
            return frozenset()
        return {value for operand in instruction.operands for value in self._owners[operand]}

    def _readers_of_values(self) -> dict[Instruction, list[Instruction]]:
        readers: dict[Instruction, list[Instruction]] = {instruction: [] for instruction in self._order}
        for instruction in self._order:
            for value in self._read(instruction):
                readers[value].append(instruction)
        return readers
