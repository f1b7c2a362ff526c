"""The walk over a program that finds its buffers, and at which points each is needed.

The schedule, with the computations of while and conditional laid out inside it, numbers the points: one for each
instruction, or for all that run together. Names of one thing share its buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xlapy.hlo.buffer_plan import Home, Location
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.leaves import SAME_VALUE, is_renaming, leaf_count, leaf_offset, origin_of_leaf, result_leaves
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.schedule import Schedule
from xlapy.hlo.shape import Shape
from xlapy.hlo.views import ADDRESS_BYTES, is_part, is_view, start_of_part
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.support.registry import Registry


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for one value, or (once merged) for several that are never needed at the same time."""

    bytes: int
    ranges: list[list[int]]  # [first, last] points at which the value is needed, ascending
    location: Location | None = None  # decided from the start for parameters and constants
    keeps: tuple[Buffer, ...] = ()  # buffers that must live as long as this one: operands of a start op
    merged_into: Buffer | None = None

    def touch(self, point: int) -> None:
        """The value is needed at `point`, which is not before any earlier touch of the current range."""
        pending = [self]
        while pending:
            buffer = pending.pop()
            buffer.ranges[-1][1] = max(buffer.ranges[-1][1], point)
            pending.extend(buffer.keeps)

    def representative(self) -> Buffer:
        buffer = self
        while buffer.merged_into is not None:
            buffer = buffer.merged_into
        return buffer


Leaves = list[Buffer | None]
"""One buffer per leaf of a shape; None for a token."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Two buffers that should be one; at `point` one may end where the other begins. Two different ones would mean a
    copy, or just more memory."""

    first: Buffer
    second: Buffer
    point: int
    saves_copy: bool = True


@dataclass(slots=True)
class Assigner:
    """The walk over the program that finds buffers and their ranges."""

    schedule: Schedule
    scratch_bytes: Callable[[Instruction], int]
    point: int = 0
    readers: Counter[Buffer] = field(default_factory=Counter)  # how many of the instructions of this point read each
    leaves: dict[Instruction, Leaves] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    constants: list[Instruction] = field(default_factory=list)  # of the whole program, as far as it has been walked
    scratch: dict[Instruction, Buffer] = field(default_factory=dict)
    points: dict[Instruction, int] = field(default_factory=dict)
    starts: dict[Instruction, int] = field(default_factory=dict)  # of parts: bytes behind where their buffers begin
    donations: Mapping[int, int] = field(default_factory=dict)  # result and parameter, known when both are placed

    def new_buffer(self, shape: Shape, location: Location | None = None) -> Buffer:
        return self.new_memory(shape.bytes, location)

    def new_memory(self, size: int, location: Location | None = None) -> Buffer:
        buffer = Buffer(size, [[self.point, self.point]], location)
        self.buffers.append(buffer)
        return buffer

    def new_leaves(self, shape: Shape) -> Leaves:
        return [self.new_buffer(leaf) if leaf.is_array else None for leaf in shape.leaves()]

    def use(self, instruction: Instruction) -> Leaves:
        """The leaves of an operand, needed at this point."""
        leaves = self.leaves[instruction]
        self.touch(leaves)
        return leaves

    def name(self, instruction: Instruction, start: int) -> Leaves:
        """The leaves of the operand, of which the instruction is another name, or a part that begins at a byte."""
        (operand,) = instruction.operands
        start += self.starts.get(operand, 0)
        if start:
            self.starts[instruction] = start
        return self.leaves[operand]

    def touch(self, leaves: Sequence[Buffer | None]) -> None:
        for buffer in leaves:
            if buffer is not None:
                buffer.touch(self.point)

    def run(self, computation: Computation, arguments: Leaves) -> Leaves:
        """Walks a computation whose parameters are `arguments`; returns the leaves of its root, needed at its end."""
        start = 0
        for parameter in computation.parameters:
            count = leaf_count(parameter.shape)
            self.leaves[parameter] = arguments[start : start + count]
            start += count
        for instruction in self.schedule[computation]:
            if instruction.opcode != "parameter":
                self._come_to(instruction)
                handler = _HANDLERS.get(instruction.opcode) or _produce
                self.leaves[instruction] = handler(self, instruction)
        self.point += 1
        return self.use(computation.root)

    def _come_to(self, instruction: Instruction) -> None:
        """Goes on to the point of an instruction. What runs together has one: all their operands are needed as long as
        one of them runs."""
        together = self.schedule.together(instruction)
        if instruction is together[0]:
            self.point += 1
            read = (buffer for member in together for buffer in self._read(member))
            self.readers = Counter(read) if len(together) > 1 else Counter()
        self.points[instruction] = self.point

    def _read(self, instruction: Instruction) -> set[Buffer]:
        buffers = (buffer for operand in instruction.operands for buffer in self.leaves[operand])
        return {buffer for buffer in buffers if buffer is not None}


_HANDLERS: Registry[Callable[[Assigner, Instruction], Leaves]] = Registry("buffer assignment")


def _produce(assigner: Assigner, instruction: Instruction) -> Leaves:
    """An op that writes its result to memory of its own, or over an operand that nobody needs any more."""
    if is_renaming(instruction):
        return assigner.name(instruction, 0)
    operands = [assigner.use(operand) for operand in instruction.operands]
    leaves = assigner.new_leaves(instruction.shape)
    scratch = assigner.scratch_bytes(instruction)
    if scratch:
        assigner.scratch[instruction] = assigner.new_memory(scratch)
    pairs = overwritable_operands(instruction)
    for number, leaf in pairs:
        operand, result = operands[number][0], leaves[leaf]
        if operand is None or result is None or not instruction.operands[number].shape.rank:
            continue
        readers = [other for other, read in enumerate(operands) if operand in read]
        if assigner.readers[operand] > 1:
            continue  # another kernel reads it at the same time
        if all((other, leaf) in pairs for other in readers):  # else one may read it at another index
            assigner.candidates.append(Candidate(operand, result, assigner.point, not _writes_all(instruction)))
    return leaves


def _writes_all(instruction: Instruction) -> bool:
    """The kernel writes each element of its results, also where these lie over an operand."""
    root = instruction.called[0].root if instruction.opcode == "fusion" else instruction
    return root.opcode != "dynamic-update-slice" if root is not instruction else Trait.ELEMENTWISE in root.spec.traits


def _start(assigner: Assigner, instruction: Instruction) -> Leaves:
    """The operands must live until the op is done: as long as what it writes. A first part of the result is them."""
    operands = [buffer for operand in instruction.operands for buffer in assigner.use(operand)]
    own = operands[: result_leaves(instruction).start]
    written = [*instruction.shape.leaves()][len(own) :]
    leaves: Leaves = [assigner.new_buffer(leaf) for leaf in written]
    for buffer in leaves:
        if buffer is not None:
            buffer.keeps = tuple(operand for operand in operands if operand is not None)
    return [*own, *leaves]


def _done(assigner: Assigner, instruction: Instruction) -> Leaves:
    """The results of the start op, complete from now on."""
    started = instruction.operands[0]
    return assigner.use(started)[result_leaves(started)]


for _name, _spec in OPS.items():
    if _spec.start_of is not None:
        _HANDLERS.add(_name, _start)
    if _spec.done_of is not None:
        _HANDLERS.add(_name, _done)


@_HANDLERS.register("constant")
def _constant(assigner: Assigner, instruction: Instruction) -> Leaves:
    assigner.constants.append(instruction)
    return [assigner.new_buffer(instruction.shape, Location(Home.CONSTANT, len(assigner.constants) - 1))]


@_HANDLERS.register("dynamic-slice")
def _dynamic_slice(assigner: Assigner, instruction: Instruction) -> Leaves:
    """A view has an address, of an array that must be there as long as that."""
    if not is_view(instruction):
        return _produce(assigner, instruction)
    operands = [buffer for operand in instruction.operands for buffer in assigner.use(operand)]
    address = assigner.new_memory(ADDRESS_BYTES)
    address.keeps = tuple(buffer for buffer in operands if buffer is not None)
    return [address]


@_HANDLERS.register("slice")
def _slice(assigner: Assigner, instruction: Instruction) -> Leaves:
    """A part lies in its operand, which must be there as long as that is read."""
    if not is_part(instruction):
        return _produce(assigner, instruction)
    return assigner.name(instruction, start_of_part(instruction))


@_HANDLERS.register("tuple")
def _tuple(assigner: Assigner, instruction: Instruction) -> Leaves:
    return [buffer for operand in instruction.operands for buffer in assigner.leaves[operand]]


@_HANDLERS.register("get-tuple-element")
def _get_tuple_element(assigner: Assigner, instruction: Instruction) -> Leaves:
    operand = instruction.operands[0]
    start = leaf_offset(operand.shape, instruction.attributes["index"])
    return assigner.leaves[operand][start : start + leaf_count(instruction.shape)]


@_HANDLERS.register(*sorted(SAME_VALUE))
def _same(assigner: Assigner, instruction: Instruction) -> Leaves:
    return assigner.leaves[instruction.operands[0]]


@_HANDLERS.register("send")
def _send(assigner: Assigner, instruction: Instruction) -> Leaves:
    sent = assigner.use(instruction.operands[0])
    return [*sent, assigner.new_buffer(instruction.shape.parts[1]), None]


@_HANDLERS.register("recv-done")
def _recv_done(assigner: Assigner, instruction: Instruction) -> Leaves:
    return [*assigner.use(instruction.operands[0])[:-2], None]


@_HANDLERS.register("call")
def _call(assigner: Assigner, instruction: Instruction) -> Leaves:
    arguments = [buffer for operand in instruction.operands for buffer in assigner.use(operand)]
    return assigner.run(instruction.called[0], arguments)


@_HANDLERS.register("conditional")
def _conditional(assigner: Assigner, instruction: Instruction) -> Leaves:
    operands = [assigner.use(operand) for operand in instruction.operands[1:]]
    assigner.use(instruction.operands[0])
    results = assigner.new_leaves(instruction.shape)
    ends: list[int] = []
    for branch, arguments in zip(instruction.called, operands, strict=True):
        before = len(assigner.buffers)
        produced = assigner.run(branch, arguments)
        own = set(assigner.buffers[before:])
        ends.append(assigner.point)
        for made, result in zip(produced, results, strict=True):
            if made is not None and result is not None and made in own:
                assigner.candidates.append(Candidate(made, result, assigner.point))
    assigner.point += 1
    for operand in operands:
        assigner.touch(operand)  # a branch that runs later may read what an earlier one only passes on
    for result in results:
        if result is not None:
            result.ranges = [[end, end] for end in ends] + [[assigner.point, assigner.point]]
    return results


@_HANDLERS.register("while")
def _while(assigner: Assigner, instruction: Instruction) -> Leaves:
    condition, body = instruction.called
    initial = assigner.use(instruction.operands[0])
    begin = assigner.point
    unchanged = [
        origin_of_leaf(body.root, leaf) == (body.parameters[0], leaf) for leaf in range(leaf_count(instruction.shape))
    ]
    state: Leaves = []
    for leaf, shape in enumerate(instruction.shape.leaves()):
        source = initial[leaf]
        if source is None or (unchanged[leaf] and shape.rank):
            state.append(source)
        else:
            kept = assigner.new_buffer(shape)
            state.append(kept)
            assigner.candidates.append(Candidate(source, kept, begin))
    assigner.run(condition, state)
    produced = assigner.run(body, state)
    end = assigner.point
    for made, old in zip(produced, state, strict=True):
        if made is not None and old is not None and made is not old:
            old.ranges.append([end, end])
            assigner.candidates.append(Candidate(made, old, end))
    assigner.point += 1
    assigner.touch(state)
    return state
