"""The graph: instructions in computations in a module.

An instruction is one use of an op: operands, attributes, called computations, and a shape. Only `Computation` changes a
graph, so that users, names and control edges stay right. Iteration order is defined everywhere.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, TypeVar

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.ops import OPS, OpSpec, Trait
from xlapy.hlo.shape import Shape, Signature
from xlapy.support.errors import ArgumentError, InternalError
from xlapy.support.late import late
from xlapy.support.ordering import CycleError, post_order
from xlapy.support.records import Record
from xlapy.support.text_forms import GRAPH_FORMS, TEXT_FORMS
from xlapy.support.wording import counted

NO_METADATA = OpMetadata()
Found = TypeVar("Found")
_SHAPE = attrgetter("shape")


class Instruction:
    """One use of an op. Compared by identity; created and changed by its `Computation` only.

    `attributes` holds every attribute of the op, defaults included; `called` the called computations, in the order of
    the spec's regions. `extra` keeps what text carried and no pass looks at (sharding, backend_config ...), as
    text. `changed_at` is what the clock of the computation was when anything of it, or who uses it, last changed."""

    __slots__ = (
        "attributes",
        "called",
        "changed_at",
        "control_predecessors",
        "extra",
        "metadata",
        "name",
        "opcode",
        "operands",
        "parent",
        "proof",
        "shape",
        "spec",
        "users",
    )

    def __init__(
        self,
        spec: OpSpec,
        shape: Shape,
        operands: tuple[Instruction, ...],
        attributes: dict[str, Any],
        called: tuple[Computation, ...],
        name: str,
        parent: Computation,
        metadata: OpMetadata,
    ) -> None:
        self.spec = spec
        self.opcode = spec.name
        self.shape = shape
        self.operands = operands
        self.attributes = attributes
        self.called = called
        self.name = name
        self.parent = parent
        self.metadata = metadata
        self.users: dict[Instruction, None] = {}
        self.control_predecessors: tuple[Instruction, ...] = ()
        self.extra: dict[str, str] = {}
        self.proof: tuple[Sequence[Shape], Mapping[str, Any], Shape] | None = None
        self.changed_at = 0

    @property
    def is_proven(self) -> bool:
        """The shape is the one that was inferred, and nothing has changed since that it was inferred from."""
        if self.proof is None or self.called:
            return False
        shapes, attributes, shape = self.proof
        if attributes is not self.attributes or shape is not self.shape or len(shapes) != len(self.operands):
            return False
        return all(map(is_, map(_SHAPE, self.operands), shapes))

    @property
    def has_effect(self) -> bool:
        """It must run even if nobody uses its result. A custom call says so itself; control flow has what it calls."""
        if Trait.EFFECT in self.spec.traits:
            return bool(self.attributes.get("has_side_effect", True))
        return bool(self.called) and _have_effect(self.called)

    @property
    def is_pure(self) -> bool:
        """Same operands, same result, nothing else happens: it may be shared, moved, repeated or dropped."""
        return Trait.PURE in self.spec.traits or (Trait.CONTROL in self.spec.traits and _are_pure(self.called))

    @property
    def is_root(self) -> bool:
        """It is the result of its computation."""
        return self.parent.root is self

    @property
    def sole_user(self) -> Instruction | None:
        """The only user, if there is exactly one and the value is not also the result of the computation."""
        return next(iter(self.users)) if len(self.users) == 1 and not self.is_root else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled is where it stands, for its computation to have it again."""
        return _nth_instruction, (self.parent, list(self.parent).index(self))

    def grouped_operands(self) -> list[Any]:
        """The operands by parameter of the op: an instruction, or a tuple of them where the parameter is variadic."""
        return self.spec.group(self.operands)

    def __repr__(self) -> str:
        operands = ", ".join(operand.name for operand in self.operands)
        return f"<{self.name} = {self.shape} {self.opcode}({operands})>"


class Computation:
    """A named graph of instructions with numbered parameters and one root. The only class that changes a graph."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: list[Instruction] = []
        self._instructions: dict[Instruction, None] = {}
        self._calling: dict[Instruction, None] = {}  # those that call computations: few, mostly
        self._impure: dict[Instruction, None] = {}  # those that are not pure whatever they call: few, if any
        self._held: dict[Instruction, None] = {}  # those with control predecessors: few, if any
        self._names: dict[str, int] = {}
        self._root: Instruction | None = None
        self._order: list[Instruction] | None = None
        self._found: dict[Hashable, Any] = {}
        self.calls_version = 0  # grows with every change of what is called
        self.clock = 0  # grows with every change
        self.notes: dict[Hashable, Any] = {}  # what passes leave here for when they come again

    # -- pickling and copying --------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Rows, which name instructions by number: graphs are deeper than what pickles by recursion."""
        numbers = {instruction: number for number, instruction in enumerate(self._instructions)}

        def numbered(instructions: Iterable[Instruction]) -> list[int]:
            return [numbers[instruction] for instruction in instructions]

        rows = [
            (
                (i.spec, i.shape, i.attributes, i.called, i.name, i.metadata),
                i.extra,
                (numbered(i.operands), numbered(i.users), numbered(i.control_predecessors)),
            )
            for i in self._instructions
        ]
        return {
            "name": self.name,
            "names": self._names,
            "rows": rows,
            "parameters": numbered(self.parameters),
            "held": numbered(self._held),
            "root": None if self._root is None else numbers[self._root],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name, self._names, self._order, self.calls_version = state["name"], state["names"], None, 0
        self._found, self.notes, self.clock = {}, {}, 0
        made = [
            Instruction(spec, shape, (), attributes, called, name, self, metadata)
            for (spec, shape, attributes, called, name, metadata), _, _ in state["rows"]
        ]
        for instruction, (_, extra, (operands, users, before)) in zip(made, state["rows"], strict=True):
            instruction.extra = extra
            instruction.operands = tuple(made[number] for number in operands)
            instruction.users = {made[number]: None for number in users}
            instruction.control_predecessors = tuple(made[number] for number in before)
        self._instructions = dict.fromkeys(made)
        self._calling = dict.fromkeys(instruction for instruction in made if instruction.called)
        self._impure = dict.fromkeys(instruction for instruction in made if _is_impure(instruction.spec))
        self.parameters = [made[number] for number in state["parameters"]]
        self._held = {made[number]: None for number in state["held"]}
        self._root = None if state["root"] is None else made[state["root"]]

    # -- reading ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Instruction]:
        """The instructions in the order in which they were added."""
        return iter(tuple(self._instructions))

    def __len__(self) -> int:
        return len(self._instructions)

    def __contains__(self, instruction: Instruction) -> bool:
        return instruction in self._instructions

    @property
    def root(self) -> Instruction:
        """The instruction whose value is the result."""
        if self._root is None:
            raise InternalError(f"computation {self.name} has no root")
        return self._root

    @property
    def has_root(self) -> bool:
        """It is finished: while it is being built, there may be no root yet."""
        return self._root is not None

    @property
    def calling(self) -> Iterable[Instruction]:
        """The instructions that call computations, in the order in which they were added."""
        return tuple(self._calling)

    @property
    def held(self) -> Iterable[Instruction]:
        """The instructions that wait for control predecessors."""
        return self._held.keys()

    @property
    def signature(self) -> Signature:
        """The shapes of the parameters, in order, and of the result."""
        return Signature(tuple(parameter.shape for parameter in self.parameters), self.root.shape)

    @property
    def has_effect(self) -> bool:
        """Something in it, or in what it calls, must run even if nobody uses its result."""
        return _have_effect((self,))

    @property
    def is_pure(self) -> bool:
        """Same arguments, same result, nothing else happens."""
        return _are_pure((self,))

    def post_order(self) -> list[Instruction]:
        """All instructions, each behind its operands and control predecessors, otherwise as they were added."""
        if self._order is None:
            self._order = topological(self._instructions)
            self._found.clear()
        return list(self._order)

    def remembered(self, what: Hashable, find: Callable[[], Found]) -> Found:
        """What is found out about the instructions, and not asked again before they change. It may depend on what they
        call only where that no longer changes."""
        if self._order is None:
            self.post_order()
        if what not in self._found:
            self._found[what] = find()
        found: Found = self._found[what]
        return found

    def called_computations(self) -> Iterator[Computation]:
        """The computations that instructions of this one call, each once, in order."""
        return iter(dict.fromkeys(called for instruction in self._calling for called in instruction.called))

    # -- changing --------------------------------------------------------------------------------------------------

    def add(
        self,
        opcode: str,
        operands: Sequence[Instruction] = (),
        *,
        called: Sequence[Computation] = (),
        shape: Shape | None = None,
        name: str = "",
        metadata: OpMetadata = NO_METADATA,
        **attributes: Any,
    ) -> Instruction:
        """Adds an instruction and returns it. The first or any later one is not root by itself: see `set_root`.

        The shape is inferred; `shape` states it where the op needs that (and its layout, anywhere). Raises ShapeError
        when a constraint of the op is broken."""
        spec = OPS[opcode]
        complete = spec.complete_attributes(attributes)
        signatures = [computation.signature for computation in called]
        shapes = [operand.shape for operand in operands]
        inferred = spec.infer(shapes, complete, signatures, shape)
        chosen = shape if shape is not None and (shape is inferred or shape.matches(inferred)) else inferred
        instruction = self.add_unchecked(spec, chosen, operands, complete, called, name, metadata)
        instruction.proof = shapes, complete, chosen
        return instruction

    def add_unchecked(
        self,
        spec: OpSpec,
        shape: Shape,
        operands: Sequence[Instruction],
        attributes: dict[str, Any],
        called: Sequence[Computation] = (),
        name: str = "",
        metadata: OpMetadata = NO_METADATA,
    ) -> Instruction:
        """Adds an instruction whose shape and attributes are taken as they are, for the verifier to check later."""
        instruction = Instruction(
            spec, shape, tuple(operands), attributes, tuple(called), self._unique(name or spec.name), self, metadata
        )
        self._instructions[instruction] = None
        if instruction.called:
            self._calling[instruction] = None
            self.calls_version += 1
        if _is_impure(spec):
            self._impure[instruction] = None
        self._order = None
        self._become_user(instruction)
        if spec.name == "parameter":
            bisect.insort(self.parameters, instruction, key=lambda parameter: int(parameter.attributes["number"]))
        return instruction

    def set_root(self, instruction: Instruction) -> None:
        """Makes an instruction the result; the one that was stays, for dce to remove."""
        if self._root is not None:
            self._touch(self._root)
        self._root = instruction
        self._found.clear()
        self._touch(instruction)

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Makes every user of `old` use `new`, and `new` the root if `old` was.

        `new` must have the shape of `old`, layouts apart. `old` stays behind without users, for dce to remove."""
        if not old.shape.matches(new.shape):
            raise InternalError(f"{new} cannot replace {old}: the shapes differ")
        if old is new:
            return
        for user in tuple(old.users):
            if user is not new:
                self.replace_operand(user, old, new)
        for instruction in self._held:
            if old in instruction.control_predecessors and instruction is not new:
                kept = (new if p is old else p for p in instruction.control_predecessors)
                instruction.control_predecessors = tuple(dict.fromkeys(kept))
                self._touch(instruction)
        if self._root is old:
            self.set_root(new)
        self._order = None
        self._touch(old, new)

    def set_operands(self, instruction: Instruction, operands: Sequence[Instruction]) -> None:
        """Gives `instruction` other operands; its shape must still be right."""
        self._touch(*instruction.operands)
        for operand in instruction.operands:
            operand.users.pop(instruction, None)
        instruction.operands = tuple(operands)
        self._become_user(instruction)
        self._order = None

    def _become_user(self, instruction: Instruction) -> None:
        self.clock = instruction.changed_at = now = self.clock + 1
        for operand in instruction.operands:
            if operand.parent is not self:
                raise InternalError(f"{instruction} in {self.name} uses {operand} of {operand.parent.name}")
            operand.users[instruction] = None
            operand.changed_at = now

    def _touch(self, *changed: Instruction) -> None:
        """Notes that something of these instructions, or who uses them, is new."""
        self.clock += 1
        for instruction in changed:
            instruction.changed_at = self.clock

    def replace_operand(self, instruction: Instruction, old: Instruction, new: Instruction) -> None:
        """Gives `instruction` the operand `new` wherever it has `old`; the others are not touched."""
        if new.parent is not self:
            raise InternalError(f"{instruction} in {self.name} uses {new} of {new.parent.name}")
        del old.users[instruction]
        instruction.operands = tuple([new if operand is old else operand for operand in instruction.operands])
        new.users[instruction] = None
        self._order = None
        self._touch(instruction, old, new)

    def set_called(self, instruction: Instruction, called: Sequence[Computation]) -> None:
        """Gives `instruction` others to call, as many as its op has regions."""
        instruction.called = tuple(called)
        self.calls_version += 1
        self._found.clear()
        self._touch(instruction)

    def set_attributes(self, instruction: Instruction, **attributes: Any) -> None:
        """Gives `instruction` other values of some attributes; its shape must still be right."""
        instruction.attributes = instruction.spec.complete_attributes({**instruction.attributes, **attributes})
        self._found.clear()
        self._touch(instruction)

    def set_shape(self, instruction: Instruction, shape: Shape) -> None:
        """Changes layouts, or refines dynamic sizes; users are not told."""
        instruction.shape = shape
        self._found.clear()
        self._touch(instruction)

    def add_control_edge(self, before: Instruction, after: Instruction) -> None:
        """Lets `after` run behind `before`, whose value it need not use."""
        if before not in after.control_predecessors:
            after.control_predecessors = (*after.control_predecessors, before)
            self._held[after] = None
            self._order = None
            self._touch(before, after)

    def remove(self, instructions: Iterable[Instruction]) -> bool:
        """Removes instructions that nobody else uses; returns whether there were any. The root stays a promise."""
        doomed = dict.fromkeys(instructions)
        if not doomed:
            return False
        for instruction in doomed:
            for user in instruction.users:
                if user not in doomed:
                    raise InternalError(f"{instruction} cannot be removed: {user} uses it")
            if instruction is self._root:
                raise InternalError(f"{instruction} cannot be removed: it is the root")
        for instruction in doomed:
            self._touch(*instruction.operands)
            for operand in instruction.operands:
                operand.users.pop(instruction, None)
            del self._instructions[instruction]
            if instruction in self._calling:
                del self._calling[instruction]
                self.calls_version += 1
            self._impure.pop(instruction, None)
            self._held.pop(instruction, None)
        for instruction in tuple(self._held):
            instruction.control_predecessors = tuple(p for p in instruction.control_predecessors if p not in doomed)
            self._touch(instruction)
            if not instruction.control_predecessors:
                del self._held[instruction]
        if any(instruction.opcode == "parameter" for instruction in doomed):
            self.parameters = [parameter for parameter in self.parameters if parameter not in doomed]
        self._order = None
        return True

    def insert(self, other: Computation, arguments: Sequence[Instruction]) -> Instruction:
        """Copies the instructions of `other` into this computation, its parameters being `arguments`.

        Returns the copy of its root. Called computations are shared, not copied."""
        copies: dict[Instruction, Instruction] = dict(zip(other.parameters, arguments, strict=True))
        for instruction in other.post_order():
            if instruction not in copies:
                copies[instruction] = self.add_copy(instruction, [copies[o] for o in instruction.operands])
                for predecessor in instruction.control_predecessors:
                    self.add_control_edge(copies[predecessor], copies[instruction])
        return copies[other.root]

    def add_copy(
        self, instruction: Instruction, operands: Sequence[Instruction], shape: Shape | None = None
    ) -> Instruction:
        """Adds an instruction like `instruction`, with other operands (and shape), which are not checked."""
        copy = self.add_unchecked(
            instruction.spec,
            shape or instruction.shape,
            operands,
            dict(instruction.attributes),
            instruction.called,
            instruction.name,
            instruction.metadata,
        )
        copy.extra = dict(instruction.extra)
        return copy

    def add_like(
        self,
        model: Instruction,
        operands: Sequence[Instruction],
        called: Sequence[Computation] = (),
        shape: Shape | None = None,
    ) -> Instruction:
        """Adds an instruction like `model` whose shape is inferred anew: other operands and called computations may
        give it another one. `shape` is as in `add`."""
        instruction = self.add(
            model.opcode,
            operands,
            called=called,
            shape=shape,
            name=model.name,
            metadata=model.metadata,
            **model.attributes,
        )
        instruction.extra = dict(model.extra)
        return instruction

    def unpacked(self, value: Instruction, count: int | None = None) -> list[Instruction]:
        """Adds instructions that read the elements of a tuple one by one, or the first `count` of them."""
        number = len(value.shape.parts) if count is None else count
        return [self.add("get-tuple-element", [value], index=index) for index in range(number)]

    def clone(self, name: str = "", *, computations: Mapping[Computation, Computation] | None = None) -> Computation:
        """A copy of this computation. Called computations are those of `computations` where it has them."""
        clone = Computation(name or self.name)
        copies: dict[Instruction, Instruction] = {}
        for instruction in self.post_order():
            copy = clone.add_copy(instruction, [copies[operand] for operand in instruction.operands])
            copies[instruction] = copy
        if computations:
            for instruction in self._calling:
                clone.set_called(copies[instruction], [computations.get(c, c) for c in instruction.called])
        for instruction in self._held:
            for predecessor in instruction.control_predecessors:
                clone.add_control_edge(copies[predecessor], copies[instruction])
        clone.set_root(copies[self.root])
        return clone

    def _unique(self, wanted: str) -> str:
        if wanted not in self._names:
            self._names[wanted] = 0
            return wanted
        stem = _NUMBER.sub("", wanted) if "." in wanted else wanted
        count = self._names.get(stem, 0)
        while True:
            count += 1
            name = f"{stem}.{count}"
            if name not in self._names:
                self._names[stem] = count
                self._names[name] = 0
                return name

    def __repr__(self) -> str:
        signature = f" {self.signature}" if self._root is not None else ""
        return f"<Computation {self.name}{signature}, {counted(len(self), 'instruction')}>"


_NUMBER = re.compile(r"(\.\d+)+$")


def _nth_instruction(computation: Computation, number: int) -> Instruction:
    return list(computation)[number]


_PURE_OR_CONTROL = frozenset({Trait.PURE, Trait.CONTROL})


def _is_impure(spec: OpSpec) -> bool:
    """Whether uses of an op are not pure, or have an effect, whatever they call."""
    return _PURE_OR_CONTROL.isdisjoint(spec.traits) or Trait.EFFECT in spec.traits


def _have_effect(computations: Iterable[Computation]) -> bool:
    """Something in them has an effect, or in what they call. Each is looked at once, however often it is called."""
    reached = dict.fromkeys(computations)
    waiting = [*reached]
    for computation in waiting:
        if any(Trait.EFFECT in each.spec.traits and each.has_effect for each in computation._impure):
            return True
        for instruction in computation._calling:
            if Trait.EFFECT not in instruction.spec.traits:
                waiting += [called for called in dict.fromkeys(instruction.called) if called not in reached]
                reached.update(dict.fromkeys(instruction.called))
    return False


def _are_pure(computations: Iterable[Computation]) -> bool:
    """All in them is pure, and in what they run as control flow. Each is looked at once."""
    reached = dict.fromkeys(computations)
    waiting = [*reached]
    for computation in waiting:
        if any(_PURE_OR_CONTROL.isdisjoint(each.spec.traits) for each in computation._impure):
            return False
        for instruction in computation._calling:
            if Trait.CONTROL in instruction.spec.traits:
                waiting += [called for called in dict.fromkeys(instruction.called) if called not in reached]
                reached.update(dict.fromkeys(instruction.called))
    return True


def topological(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Each instruction and what it depends on, dependences first, depth first from each in turn. Raises on a cycle."""
    try:
        return post_order(instructions, _predecessors)
    except CycleError as cycle:
        raise InternalError(f"{cycle.target.name} in {cycle.target.parent.name} depends on itself") from None


def _predecessors(instruction: Instruction) -> tuple[Instruction, ...]:
    if not instruction.control_predecessors:
        return instruction.operands
    return (*instruction.operands, *instruction.control_predecessors)


class InputOutputAlias(Record):
    """Result leaf `output_index` may live in the memory of leaf `parameter_index` of parameter `parameter`."""

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...]
    must_alias: bool = False


class BufferDonor(Record):
    """The memory of leaf `parameter_index` of parameter `parameter` may become that of any result of its shape."""

    parameter: int
    parameter_index: tuple[int, ...] = ()


class DynamicSize(Record):
    """Names one bounded dimension of an entry parameter or of the result: leaf number (depth first), dimension.

    Once the padder has made every shape static, the run-time sizes travel as s32 scalars: as entry parameters behind
    the original ones, and in a last tuple beside the original result: (result, (size, ...))."""

    leaf: int
    dimension: int


@dataclass(slots=True)
class ModuleConfig:
    """What a module says about itself besides its computations."""

    num_replicas: int = 1
    num_partitions: int = 1
    is_scheduled: bool = False
    aliases: tuple[InputOutputAlias, ...] = ()
    donors: tuple[BufferDonor, ...] = ()
    entry_layout: Signature | None = None
    size_parameters: tuple[DynamicSize, ...] = ()
    size_results: tuple[DynamicSize, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)


class ModuleSource(Record):
    """The text that a module was read from, where that says more than the graph can.

    It speaks for the module as long as this has the fingerprint that it had then: whoever changes the module need not
    know of it."""

    text: str
    fingerprint: str


class HloModule:
    """Computations, one of them the entry. Computations are listed callees first."""

    def __init__(self, name: str, entry: Computation, config: ModuleConfig | None = None) -> None:
        self.name = name
        self.entry = entry
        self.config = config or ModuleConfig()
        self.source: ModuleSource | None = None
        self._known: tuple[tuple[Computation, int], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": ()}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            names = late("xlapy.support.other_names")
            hint = names.hint_for(names.MODULE, name)
            raise AttributeError(f"an HloModule has no {name!r}{hint}", name=name, obj=self)

    def computations(self) -> list[Computation]:
        """Every computation that the entry reaches, callees before callers, the entry last.

        They are found again only when one of them calls others than it did: every pass asks."""
        known = self._known
        if known and known[-1][0] is self.entry:
            for each, version in known:
                if each.calls_version != version:
                    break
            else:
                return [each for each, _ in known]
        found = self._reached()
        self._known = tuple([(each, each.calls_version) for each in found])
        return found

    def _reached(self) -> list[Computation]:
        try:
            return post_order([self.entry], Computation.called_computations)
        except CycleError as cycle:
            raise InternalError(f"computation {cycle.target.name} calls itself") from None

    def opcodes(self) -> set[str]:
        """The ops that instructions of any computation use."""
        return {instruction.opcode for computation in self.computations() for instruction in computation}

    def instructions(self) -> Iterator[Instruction]:
        """Those of all computations, callees before callers, operands before users."""
        for computation in self.computations():
            yield from computation.post_order()

    @property
    def signature(self) -> Signature:
        """The shapes of the parameters of the entry, in order, and of its result."""
        return self.entry.signature

    @property
    def instruction_count(self) -> int:
        """How many there are in all computations."""
        return sum(len(computation) for computation in self.computations())

    def clone(self) -> HloModule:
        """A copy that shares nothing that can change. Aliasing computations stay aliased."""
        copies: dict[Computation, Computation] = {}
        for computation in self.computations():
            copies[computation] = computation.clone(computations=copies)
        config = replace(self.config, extra=dict(self.config.extra))
        copy = HloModule(self.name, copies[self.entry], config)
        copy.source = self.source
        return copy

    def __copy__(self) -> HloModule:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> HloModule:
        return self.clone()

    def to_text(self, *, long: bool = False, layouts: bool = True, large_constants: bool = True) -> str:
        """The module as HLO text; `long` adds metadata and the `%` before names.

        Without `large_constants`, some values are `{...}` and the text does not parse."""
        return str(TEXT_FORMS["hlo"](self, long=long, layouts=layouts, large_constants=large_constants))

    def to_networkx(self) -> Any:
        """The module as a `networkx.MultiDiGraph`; see `xlapy.hlo.to_networkx`."""
        return GRAPH_FORMS["networkx"](self)

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        html = TEXT_FORMS.get("html")
        return None if html is None else html(self)

    def __repr__(self) -> str:
        return f"<HloModule {self.name} {self.signature}, {counted(self.instruction_count, 'instruction')}>"


def no_module(value: object, done: str) -> ArgumentError:
    """The error of who is asked to do something with a module, and gets something else."""
    return ArgumentError(f"an HloModule is {done}, not {type(value).__name__}; xlapy.load makes one of any program")


__all__ = [
    "NO_METADATA",
    "BufferDonor",
    "Computation",
    "DynamicSize",
    "HloModule",
    "InputOutputAlias",
    "Instruction",
    "ModuleConfig",
    "ModuleSource",
    "no_module",
    "topological",
]
