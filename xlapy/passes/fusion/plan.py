"""The plan of fusion: groups of instructions, each to become one kernel.

A computation is walked from its results to its inputs. An instruction either joins the groups of all its users (it is
then computed wherever it is used, and never stored), or it is stored, and starts a group of its own. A group thus
holds its root and producers that nobody outside needs; an instruction may be in several groups when computing it
again is cheaper than storing and loading it.

An element op is evaluated once for each *index map* that leads from the root to it: `x + reverse(x)` needs x at two
places. Groups count the distinct maps of each member, so that recomputation has its price and can never grow
exponentially.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xlapy.hlo.attributes import FusionKind, Window
from xlapy.hlo.axis_maps import axis_maps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import (
    FOLDS,
    INDEXED_AT_RUN_TIME,
    MOST_JOINED,
    MOST_WORK_PER_ROW,
    KernelLimits,
    has_small_window,
    is_blocked_transpose,
    is_element_op,
    is_kernel_constant,
    joins_columns,
    looks_once,
    rereads,
    turns_reversed,
)
from xlapy.hlo.leaves import is_renaming, moves_nothing
from xlapy.hlo.ops import Trait
from xlapy.passes.base import Record, pinned
from xlapy.passes.fusion.cost import (
    COPIED_CODE,
    DIVISION,
    FAR_BYTES,
    KERNEL_START,
    Use,
    fused_cost,
    memory_bytes,
    operation_cost,
    stored_cost,
)

IDENTITY = 0
MAX_MAPS = 4  # index maps of one member: codegen computes it once for each
MAX_FAR_MAPS = 9  # of one that would come from beyond the near caches
MAX_COPIES = 16  # groups that one instruction may join
MAX_CHOICES = 4  # the same for one that chooses among its operands: it costs an element nothing, but has code for each
CHOOSING = frozenset({"concatenate", "pad"})
BITS_PICKED = 512  # of a vector whose lanes are read one by one: one for each element is about what LLVM has to do


@dataclass(eq=False, slots=True)
class Group:
    """Instructions that become one kernel. `maps` lists the members, with the index maps at which each is evaluated,
    `shared` how many points next to each other need the same element of it, where there are several."""

    roots: list[Instruction]
    kind: FusionKind
    maps: dict[Instruction, frozenset[int]]
    shared: dict[Instruction, int] = field(default_factory=dict)
    inputs: dict[Instruction, None] = field(default_factory=dict)
    picked: set[tuple[Instruction, int]] = field(default_factory=set)  # what is read lane by lane, and at which map
    weight: float = 0.0
    level: float = 0.0

    @property
    def root(self) -> Instruction:
        return self.roots[0]

    @property
    def domain(self) -> int:
        """The number of points of the kernel's loop nest."""
        if self.kind is FusionKind.INPUT:
            return elements_folded(self.root)
        if self.updates_in_place:
            return self.root.operands[1].shape.size
        if joins_columns(self.root):
            return self.root.operands[0].shape.size
        return self.root.shape.size

    @property
    def updates_in_place(self) -> bool:
        return self.root.opcode == "dynamic-update-slice"

    def takes(self, user: Instruction, position: int) -> bool:
        """Operand `position` of the member `user` may be computed inside."""
        if user is not self.root:
            return True
        if self.kind is FusionKind.INPUT:
            return position < len(user.operands) // 2
        return not self.updates_in_place or position == 1

    def overwrites(self, operand: Instruction) -> bool:
        """The kernel writes to the memory of `operand`, so it should not read there."""
        return self.updates_in_place and _storage(operand) is _storage(self.root.operands[0])

    def reads_at_other_places(self, update: Instruction) -> int:
        """How many arrays `update`, if it is made here, needs of what the kernel writes to, as a step of a stencil
        does: each would have to be stored first. What is a result is stored in any case, and read from memory."""
        members, pending, reading = {update}, [update], []
        while pending and len(members) <= MOST_FOLLOWED:
            instruction = pending.pop()
            if not is_element_op(instruction) or _is_result(instruction):
                continue
            if any(map(self.overwrites, instruction.operands)):
                reading.append(instruction)
                continue
            following = [operand for operand in instruction.operands if operand not in members]
            members.update(following)
            pending += following
        return sum(not rereads(self.root, instruction, members) for instruction in reading)

    def rereads(self, producer: Instruction) -> bool:
        """The kernel reads by `producer` what it is about to write, each element at its own place."""
        return rereads(self.root, producer, self.maps)

    def readers_of(self, producer: Instruction) -> list[Instruction]:
        """The members that read `producer`, which may have thousands of users elsewhere."""
        if len(producer.users) <= len(self.maps):
            return [user for user in producer.users if user in self.maps]
        return [member for member in self.maps if producer in member.operands]

    def evaluations(self, producer: Instruction, needed: frozenset[int]) -> int:
        """How many elements of `producer` the kernel computes. One that is the same along the fastest dimension, as the
        place of a row that is gathered is, is computed before the loop over that dimension; by a fold of columns, which
        takes few of them together, for each few. What is slow takes as long by itself as for all lanes of a vector."""
        shared, points = self.shared_points(producer), self.domain * len(needed)
        if self.kind is FusionKind.INPUT and producer not in self.roots and (columns := _columns_folded(self.root)):
            together = min(columns, COLUMNS_TOGETHER)
            if 1 < together <= shared and operation_cost(producer) >= DIVISION:
                return points * LANES // together
            shared = min(shared, COLUMNS_TOGETHER)
        return points // shared

    def shared_points(self, producer: Instruction) -> int:
        if self.updates_in_place or producer in self.roots:
            return 1
        return min((self._shared_through(reader, producer) for reader in self.readers_of(producer)), default=1)

    def _shared_through(self, reader: Instruction, producer: Instruction) -> int:
        if reader in self.shared or self.maps[reader] != {IDENTITY}:
            return self.shared.get(reader, 1)
        if reader.opcode == "concatenate":
            return self._parts_without(reader, producer)
        return _shared_along_row(reader, producer)

    def _parts_without(self, join: Instruction, producer: Instruction) -> int:
        """Of how many points one needs an operand of `join`: a fold of a few joined parts has code for each of them,
        which makes no other."""
        dim = join.attributes["dimension"]
        is_apart = (
            self.root.opcode == "reduce"
            and dim in self.root.attributes["dimensions"]
            and join.shape.dims == self.root.operands[0].shape.dims
            and join.shape.dims[dim] <= MOST_JOINED
            and len(self.maps) <= MOST_WORK_PER_ROW // 2
        )
        own = sum(operand.shape.dims[dim] for operand in join.operands if operand is producer)
        return max(1, join.shape.dims[dim] // max(own, 1)) if is_apart else 1

    def fits_with(self, other: Group, limits: KernelLimits, *, outputs: int) -> bool:
        """One kernel may hold the members of both, and store so many results."""
        return (
            outputs <= limits.outputs
            and len(self.maps) + len(other.maps) <= limits.instructions
            and len(self.inputs) + len(other.inputs) <= limits.operands
            and self.weight + other.weight <= limits.weight
        )

    def admit(self, member: Instruction, maps: frozenset[int]) -> None:
        shared = self.shared_points(member)
        if shared > 1:
            self.shared[member] = shared
        self.maps[member] = maps
        self.weight += max(operation_cost(member), 1.0) * len(maps)
        self.inputs.pop(member, None)
        for operand in member.operands:
            if not is_kernel_constant(operand):
                self.inputs.setdefault(operand)

    def pick(self, source: Instruction, maps: Collection[int]) -> None:
        """Reads what is stored at places that are computed for each lane."""
        new = {(source, number) for number in maps} - self.picked
        self.picked |= new
        self.weight += len(new) * picking_cost(source)


def picking_cost(source: Instruction) -> float:
    """What it adds to the code of a kernel to read from `source` at one more place that is computed for each lane."""
    return BITS_PICKED / max(source.shape.type.bits, 8) if source.shape.is_array else 0.0


MOST_FOLLOWED = 64

LANES = 8  # of 32 bits, as of the vectors that costs were measured with

COLUMNS_TOGETHER = 64
"""That a fold holds in registers: about as many, of any type."""


def _columns_folded(root: Instruction) -> int:
    """How many columns lie side by side, if it is columns that are folded."""
    if root.opcode != "reduce":
        return 0
    source = root.operands[0].shape
    fastest = next((dim for dim in source.minor_to_major if source.dims[dim] > 1), None)
    return source.dims[fastest] if fastest is not None and fastest not in root.attributes["dimensions"] else 0


MOST_PICKED_BYTES = 2  # of an element that vectors have many of
MOST_PICKED_ROW = 512  # elements of a row that has many ends for what is between them
LEAST_PICKED = 4096  # bytes of an array that is worth a kernel of its own


def is_made_of_rows(joined: Instruction) -> bool:
    """What is padded, or joined of parts of one array, is read by others than those that move it further: a kernel of
    its own picks its vectors, where one that computes something would ask for each lane at the ends of rows where it
    lies. If elements are narrow, vectors have many of these, and storing them costs next to nothing; if rows are long,
    they have few ends."""
    if joined.opcode not in CHOOSING or joined.shape.type.bytes > MOST_PICKED_BYTES or joined.shape.rank < 2:
        return False
    if joined.shape.bytes < LEAST_PICKED or joined.shape.dims[-1] > MOST_PICKED_ROW or not _is_read_by_others(joined):
        return False
    return axis_maps(joined, _is_no_move) is not None


def _is_read_by_others(value: Instruction) -> bool:
    return any(
        _is_read_by_others(user) if user.opcode in ("slice", "reshape", "reverse") else user.opcode not in CHOOSING
        for user in value.users
    )


def _is_no_move(value: Instruction) -> bool:
    return Trait.INDEX_MAP not in value.spec.traits


def _is_joined_for_itself(columns: Instruction) -> bool:
    """Columns are many, and what reads them would choose among them, lane by lane."""
    if columns.shape.size < LEAST_JOINED:
        return False
    others = [user for user in columns.users if not _puts_in_line(user, columns)]
    readers = [i for user in others for i in (user.users if user.opcode == "reshape" else (user,))]
    return all(Trait.ELEMENTWISE in reader.spec.traits or reader.opcode in FOLDS for reader in readers)


def _puts_in_line(user: Instruction, columns: Instruction) -> bool:
    """The elements of a row and of the next one become neighbours, as the halves of a scan do."""
    return user.opcode == "reshape" and user.shape.dims[-1:] != columns.shape.dims[-1:]


LEAST_JOINED = 256  # elements


def _storage(instruction: Instruction) -> Instruction:
    while is_renaming(instruction):
        instruction = instruction.operands[0]
    return instruction


class IndexMaps:
    """Index maps by number: 0 is the identity, every other one a step after a map. Equal steps have equal numbers, and
    so have steps of slices that come to the same, as the differences of differences need them."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._shifts: dict[int, tuple[int, tuple[int, ...]]] = {}  # after which map how far along each dimension
        self.picking: set[int] = set()  # maps from neighbours to what mostly are none

    def after(self, outer: int, user: Instruction, position: int) -> int:
        """The map at which `user`, evaluated at `outer`, reads its operand `position`."""
        step = _index_step(user, position)
        if step is None:
            return outer
        if user.opcode == "slice" and all(part.stride == 1 for part in user.attributes["dimensions"]):
            number = self._after_shift(outer, tuple(part.start for part in user.attributes["dimensions"]))
        else:
            number = self._numbers.setdefault((outer, step), len(self._numbers) + 1)
        if outer in self.picking or user.opcode in PICKING:
            self.picking.add(number)
        return number

    def _after_shift(self, outer: int, starts: tuple[int, ...]) -> int:
        """The map at which a slice reads that begins at `starts`. What folds has more dimensions than its result."""
        base, before = self._shifts.get(outer, (outer, ()))
        if len(before) != len(starts):
            base, before = outer, (0,) * len(starts)
        shift = base, tuple(map(operator.add, before, starts))
        number = self._numbers.setdefault(shift, len(self._numbers) + 1)
        self._shifts[number] = shift
        return number


PICKING = frozenset({"transpose", "reverse", "gather"})
"""Ops that read what mostly are no neighbours in memory for neighbours of their result."""


def _index_step(user: Instruction, position: int) -> Hashable | None:
    """What `user` does to indices on the way to one operand, compared by value; None if nothing."""
    if Trait.INDEX_MAP not in user.spec.traits:
        return (id(user), position) if user.opcode in INDEXED_AT_RUN_TIME else None
    place = position if user.opcode == "concatenate" else 0
    return user.opcode, tuple(user.attributes.values()), user.operands[position].shape.dims, user.shape.dims, place


@dataclass(eq=False)
class FusionPlan:
    """The groups of one computation, in the order of their roots, and the decisions that led to them."""

    computation: Computation
    limits: KernelLimits
    multi_output: bool = True  # a kernel may store several results
    records: list[Record] = field(default_factory=list)
    groups_of: dict[Instruction, dict[Group, None]] = field(default_factory=dict)
    _maps: IndexMaps = field(default_factory=IndexMaps)
    _pinned: set[Instruction] = field(default_factory=set)
    _places: dict[Instruction, dict[Instruction, list[int]]] = field(default_factory=dict)
    _made_of_few: dict[Instruction, int] = field(default_factory=dict)  # so that these copies of all that cost little

    def __post_init__(self) -> None:
        self._pinned = pinned(self.computation)
        self.order = self.computation.post_order()
        self._numbers = {instruction: number for number, instruction in enumerate(self.order)}
        for instruction in reversed(self.order):
            self._place(instruction)

    def groups(self) -> Iterator[Group]:
        """Every group once, each behind the groups it reads."""
        for instruction in self.order:
            for group in self.groups_of.get(instruction, ()):
                if group.root is instruction:
                    yield group

    def absorb(self, kept: Group, other: Group) -> None:
        """Moves the members of `other` into `kept`. Which roots that has then is for the caller to say."""
        for member, maps in other.maps.items():
            groups = self.groups_of[member]
            del groups[other]
            groups[kept] = None
            kept.maps[member] = kept.maps.get(member, frozenset()) | maps
        kept.inputs = {i: None for i in (*other.inputs, *kept.inputs) if i not in kept.maps}
        kept.picked |= other.picked
        kept.weight += other.weight

    def _place(self, instruction: Instruction) -> None:
        kind = _root_kind(instruction)
        if kind is None or instruction in self._pinned:
            return  # its readers know that it is stored
        if not instruction.shape.is_array or not is_element_op(instruction):
            self._start(instruction, kind)
            return
        refusal = self._refusal(instruction)
        maps = {} if refusal else self._maps_by_group(instruction)
        refusal = refusal or self._too_costly(instruction, maps)
        if not refusal:
            self._join(instruction, maps)
        elif not is_renaming(instruction):
            self._start(instruction, kind)
        if refusal and any(user in self.groups_of for user in instruction.users):
            self.records.append(Record.of(instruction, False, refusal))
            if self._maps.picking:
                for group, needed in self._maps_by_group(instruction).items():
                    group.pick(instruction, needed & self._maps.picking)

    def _start(self, root: Instruction, kind: FusionKind) -> None:
        group = Group([root], kind, {})
        group.admit(root, frozenset({IDENTITY}))
        self.groups_of[root] = {group: None}

    def _join(self, producer: Instruction, maps: Mapping[Group, frozenset[int]]) -> None:
        for group, needed in maps.items():
            group.admit(producer, needed)
            for operand, places in self._picked_by(producer, needed).items():
                group.pick(operand, places)
        self.groups_of[producer] = dict.fromkeys(maps)

    def _picked_by(self, reader: Instruction, maps: Collection[int]) -> dict[Instruction, set[int]]:
        """What a member reads lane by lane, of what is stored in any case, and at which maps."""
        found: dict[Instruction, set[int]] = {}
        if reader.opcode not in PICKING and self._maps.picking.isdisjoint(maps):
            return found
        for position, operand in enumerate(reader.operands):
            if operand in self._pinned or _root_kind(operand) is None:
                places = {self._maps.after(outer, reader, position) for outer in maps}
                found.setdefault(operand, set()).update(places & self._maps.picking)
        return found

    def _maps_by_group(self, producer: Instruction) -> dict[Group, frozenset[int]]:
        """The groups of the users, and the index maps at which each would evaluate `producer`."""
        found: dict[Group, set[int]] = {}
        for user in producer.users:
            for position in self._positions(user, producer):
                for group in self.groups_of.get(user, ()):
                    needed = found.setdefault(group, set())
                    place = 0 if user is group.root and joins_columns(user) else position
                    needed.update(self._maps.after(outer, user, place) for outer in group.maps[user])
        return {group: frozenset(needed) for group, needed in found.items()}

    def _positions(self, user: Instruction, producer: Instruction) -> Sequence[int]:
        """Which operands of `user` are `producer`. Of thousands of operands, all are found at once."""
        if user not in self._places:
            places: dict[Instruction, list[int]] = {}
            for position, operand in enumerate(user.operands):
                places.setdefault(operand, []).append(position)
            self._places[user] = places
        return self._places[user][producer]

    def _refusal(self, producer: Instruction) -> str:
        """Why `producer` must be stored, or "" if all its users can compute it."""
        if producer.is_root:
            return "it is the result of the computation"
        if not producer.users:
            return "nobody uses it"
        if producer.opcode == "transpose" and moves_nothing(producer):
            return "it is another name for what is in memory"
        if is_blocked_transpose(producer):
            return "a transpose of this size is faster as a copy in blocks"
        if joins_columns(producer) and _is_joined_for_itself(producer):
            return "its columns are joined in registers"
        if is_made_of_rows(producer):
            return "its narrow rows are picked from others, vector by vector"
        for user in producer.users:
            fault = self._refused_by(user, producer)
            if fault:
                return fault
        return ""

    def _refused_by(self, user: Instruction, producer: Instruction) -> str:
        groups = self.groups_of.get(user)
        if groups is None:
            return f"{user.name} ({user.opcode}) reads it from memory"
        for group in groups:
            if is_blocked_transpose(group.root) and not (user is group.root and turns_reversed(user, producer)):
                return f"{group.root.name} copies it in blocks"
        for position in self._positions(user, producer):
            if not all(group.takes(user, position) for group in groups):
                return f"{user.name} ({user.opcode}) reads operand {position} from memory"
        for group in groups:
            if group.updates_in_place and user is group.root and group.reads_at_other_places(producer) > 1:
                return f"{group.root.name} would wait for several copies of what it updates"
            if any(group.overwrites(operand) for operand in producer.operands) and not group.rereads(producer):
                return f"{group.root.name} could not update {group.root.operands[0].name} in place"
        return ""

    def _too_costly(self, producer: Instruction, maps: Mapping[Group, frozenset[int]]) -> str:
        """Why it pays to store `producer`, or "" if these groups shall compute it, at these places."""
        most = MAX_CHOICES if producer.opcode in CHOOSING else MAX_COPIES if operation_cost(producer) else len(maps)
        if len(maps) > most:
            return f"{len(maps)} kernels would compute it again"
        is_number = producer.opcode == "broadcast" and producer.operands[0].shape.is_scalar  # at any place
        if is_number and is_kernel_constant(producer.operands[0]):
            return ""
        added = max(operation_cost(producer), 1.0)
        for group, needed in maps.items():
            if len(needed) > (MAX_FAR_MAPS if producer.shape.bytes > FAR_BYTES else MAX_MAPS) and not is_number:
                return f"the kernel of {group.root.name} needs it at {len(needed)} places"
            picked = sum(
                picking_cost(operand)
                for operand, places in self._picked_by(producer, needed).items()
                for place in places
                if (operand, place) not in group.picked
            )
            full = (
                len(group.maps) >= self.limits.instructions
                or len(group.inputs) + len(producer.operands) > self.limits.operands
                or group.weight + added * len(needed) + picked > self.limits.weight
            )
            if full:
                return f"the kernel of {group.root.name} is full"
        if len(maps) == 1 and group.domain * len(needed) <= producer.shape.size:
            return ""  # one kernel computes each element at most once: storing it would be more work
        uses = [
            Use(
                group.evaluations(producer, needed),
                frozenset(group.inputs),
                self._can_store(group, producer, needed),
                self._common_bytes(group, producer, needed),
            )
            for group, needed in sorted(maps.items(), key=lambda item: self._numbers[item[0].root])
        ]
        fused, stored = fused_cost(producer, uses), stored_cost(producer, uses)
        if fused > stored:
            evaluations = sum(use.evaluations for use in uses)
            return f"computing {evaluations} elements costs {fused:.3g}, storing {producer.shape.size} {stored:.3g}"
        work = _work_one_by_one(producer, maps)
        if work * sum(use.evaluations for use in uses) * LANES > work * producer.shape.size + stored:
            return f"folds of short rows would compute it one by one, with {work:.0f} operations"
        if len(uses) > 1 and not uses[0].can_store and self._is_made_of_many(producer, copies=len(uses) - 1):
            return f"{len(maps)} kernels would have code for all that it is made of"
        return ""

    def _common_bytes(self, group: Group, producer: Instruction, needed: frozenset[int]) -> int:
        """What the kernel reads only once of what it would read for the producer at the places that it is needed at:
        slices that are read at several of them overlap."""
        if len(needed) < 2:
            return 0
        common, read = 0, set()
        for position, operand in enumerate(producer.operands):
            if operand.opcode == "slice" and memory_bytes(operand.operands[0]):
                for outer in needed:
                    place = self._maps.after(self._maps.after(outer, producer, position), operand, 0)
                    common += operand.shape.type.bytes if (operand.operands[0], place) in read else 0
                    read.add((operand.operands[0], place))
        return common * group.evaluations(producer, frozenset({IDENTITY}))

    def _is_made_of_many(self, producer: Instruction, copies: int) -> bool:
        """Whether code for all that `producer` may be computed from, in so many more kernels, costs more than another
        kernel: each instruction by itself looks as if it did not, as in 20 rounds of a generator of random numbers."""
        most = KERNEL_START / (COPIED_CODE * copies)
        if self._made_of_few.get(producer, 0) >= copies:
            return False
        found, pending, count = {producer}, [producer], 0
        while pending and count <= most:
            instruction = pending.pop()
            count += operation_cost(instruction) > 0
            followed = [o for o in instruction.operands if o not in found and o.shape.is_array and is_element_op(o)]
            found.update(followed)
            pending += followed
        if count <= most:
            self._made_of_few.update(dict.fromkeys(found, copies))
        return count > most

    def _can_store(self, group: Group, producer: Instruction, needed: frozenset[int]) -> bool:
        """`group` computes every element of `producer` once, where it could store it as a result of its own."""
        return (
            self.multi_output
            and group.kind is FusionKind.LOOP
            and not group.updates_in_place
            and needed == {IDENTITY}
            and group.root.shape.dims == producer.shape.dims
            and not is_blocked_transpose(group.root)
            and all(
                Trait.INDEX_MAP not in user.spec.traits and user.opcode not in INDEXED_AT_RUN_TIME
                for user in group.readers_of(producer)
            )
        )


def elements_folded(fold: Instruction) -> int:
    """How many elements a fold looks at, those that it looks at in several windows counted for each."""
    if fold.opcode == "reduce" or looks_once(fold):
        return fold.operands[0].shape.size
    window: Window = fold.attributes["window"]
    places = math.prod(part.size for part in window.dimensions)
    return places * fold.shape.leaves()[0].size


def _work_one_by_one(producer: Instruction, groups: Iterable[Group]) -> float:
    """What an element of `producer` and of all that it is made from at the same place takes, if each of the kernels
    folds few columns and would compute it for a row at a time: what is the same along these fills no vectors. 0 if
    not."""
    if not all(1 < _columns_folded(group.root) < LANES and group.shared_points(producer) > 1 for group in groups):
        return 0.0
    found, pending = {producer}, [producer]
    while pending and len(found) < MOST_FOLLOWED:
        operands = [o for o in pending.pop().operands if o.shape.is_array and o.shape.dims == producer.shape.dims]
        operands = [o for o in operands if o not in found and is_element_op(o)]
        found.update(operands)
        pending += operands
    return sum(map(operation_cost, found))


def _is_result(instruction: Instruction) -> bool:
    """The program returns it, or a loop hands it on to its next step."""
    return instruction.is_root or any(user.is_root and user.opcode == "tuple" for user in instruction.users)


def _shared_along_row(user: Instruction, producer: Instruction) -> int:
    """So many neighbouring elements of `user` are made from the same elements of `producer`."""
    varying: Collection[int] = range(user.shape.rank)
    if user.opcode == "broadcast":
        varying = user.attributes["dimensions"]
    elif user.opcode == "gather" and producer is not user.operands[0]:
        offsets = user.attributes["dimension_numbers"].offset_dims
        varying = [dim for dim in varying if dim not in offsets]
    fastest = next((dim for dim in user.shape.minor_to_major if user.shape.dims[dim] > 1), None)
    return 1 if fastest is None or fastest in varying else user.shape.dims[fastest]


def _root_kind(instruction: Instruction) -> FusionKind | None:
    """The kind of kernel whose root the instruction can be; None if it cannot."""
    if instruction.opcode in FOLDS:
        arrays = instruction.operands[: len(instruction.operands) // 2]
        is_suited = instruction.opcode == "reduce" or has_small_window(instruction) or looks_once(instruction)
        return FusionKind.INPUT if is_suited and all(array.shape.is_static for array in arrays) else None
    if not instruction.shape.is_array or instruction.shape.is_scalar or not instruction.shape.is_static:
        return None
    if instruction.opcode in ("parameter", "constant"):
        return None
    if instruction.opcode == "dynamic-update-slice" or is_element_op(instruction):
        return FusionKind.LOOP
    return None
