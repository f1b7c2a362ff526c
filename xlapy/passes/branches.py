"""The branches of a conditional and what surrounds them: which of their values exist outside, what they need to be
handed, and copies of them that compute the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_kernel_constant
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.passes.analysis.making import Making, given, making_of
from xlapy.passes.analysis.value_numbers import Numbers, ValueNumbers
from xlapy.passes.base import needed_by, pinned, replace_all


@dataclass(frozen=True, slots=True)
class Part:
    """The value of an instruction, or of one element of the tuple that it is."""

    source: Instruction
    index: int | None = None

    @property
    def shape(self) -> Shape:
        return self.source.shape if self.index is None else self.source.shape.parts[self.index]

    def read(self, value: Instruction) -> Instruction:
        """This part of `value`, which stands for the source."""
        if self.index is None:
            return value
        return value.parent.add("get-tuple-element", [value], index=self.index)


def parts_of(value: Instruction) -> list[Part]:
    """The elements of a tuple, or the one value that there is."""
    if not value.shape.is_tuple:
        return [Part(value)]
    if value.opcode == "tuple":
        return [Part(element) for element in value.operands]
    return [Part(value, index) for index in range(len(value.shape.parts))]


@dataclass(slots=True)
class Branch:
    """A computation to choose, its operand outside, and the numbers of its values.

    `given` are the instructions that only read what comes from outside: the parameter and what it is made of. What
    control edges hold is in `fixed`. `selector` is the number of what chooses the branch; `choice` is its value here,
    where that is known."""

    computation: Computation
    selector: int
    choice: Literal | None
    values: ValueNumbers
    numbers: Numbers
    given: set[Instruction] = field(init=False)
    fixed: set[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        self.given = set(self.computation.parameters)
        self.fixed = pinned(self.computation)
        for instruction in self.computation.post_order():
            is_element = instruction.opcode == "get-tuple-element" and instruction not in self.fixed
            if is_element and instruction.operands[0] in self.given:
                self.given.add(instruction)

    def number(self, part: Part) -> int:
        number = self.numbers[part.source]
        return number if part.index is None else self.values.element(number, part.index)

    def inputs(self) -> list[int]:
        """The numbers of what the branch is handed."""
        return [self.number(part) for part in parts_of(self.computation.parameters[0])]

    def results(self) -> list[Part]:
        return parts_of(self.computation.root)

    def effects(self) -> list[Instruction]:
        return [instruction for instruction in self.computation if instruction.has_effect]

    def numbers_for(self, results: Iterable[Part]) -> set[int]:
        """The numbers of all that `results` and the effects of the branch need."""
        needed = needed_by([*(part.source for part in results), *self.effects()])
        return {self.numbers[instruction] for instruction in needed}


class Outside:
    """The computation that conditionals are in: its values by number, and how it gets more of them.

    Values that nobody needs are not there: they would be computed for a branch that may not run."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.values = ValueNumbers()
        self._numbers = self.values.enter(computation)
        self._first: dict[int, Instruction] = {}
        self._replaced: dict[Instruction, Instruction] = {}
        self._dropped: list[Instruction] = []
        effects = [instruction for instruction in computation if instruction.has_effect]
        self.needed = needed_by([computation.root, *effects, *computation.parameters])
        for instruction in computation.post_order():
            if instruction in self.needed:
                self._first.setdefault(self._numbers[instruction], instruction)

    def branches(self, conditional: Instruction) -> list[Branch]:
        selector, *operands = conditional.operands
        branches = []
        for number, (branch, operand) in enumerate(zip(conditional.called, operands, strict=True)):
            numbers = self.values.enter_region(branch, [self._numbers[operand]])
            choice = _choice(selector, number, len(operands))
            branches.append(Branch(branch, self._numbers[selector], choice, self.values, numbers))
        return branches

    def get(self, number: int) -> Instruction | None:
        """The value with this number, where it exists already."""
        return self._first.get(number)

    def value(self, number: int) -> Instruction:
        """The value with this number, which is here or was brought here."""
        return self._first[number]

    def bring(self, branch: Branch, parts: Iterable[Part]) -> None:
        """Computes parts of a branch here, from what the branch is given; `get` then has them."""
        wanted = list(parts)
        missing = self._missing(branch, [part.source for part in wanted])
        for instruction in branch.computation.post_order() if missing else ():
            number = branch.numbers[instruction]
            if instruction in missing and number not in self._first:
                operands = [self._first[branch.numbers[operand]] for operand in instruction.operands]
                self._enter(self.computation.add_copy(instruction, operands), number)
        for part in wanted:
            if branch.number(part) not in self._first:
                self._enter(part.read(self._first[branch.numbers[part.source]]), branch.number(part))

    def _missing(self, branch: Branch, wanted: list[Instruction]) -> set[Instruction]:
        missing: set[Instruction] = set()
        while wanted:
            instruction = wanted.pop()
            if branch.numbers[instruction] not in self._first and instruction not in missing:
                missing.add(instruction)
                wanted.extend(instruction.operands)
        return missing

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Lets `new` take the place of `old`: in what is asked for from now on, and for its users in `finish`."""
        number = self._numbers[old]
        self._numbers.setdefault(new, number)
        self._replaced[old] = new
        if self._first.get(number) is old:
            self._first[number] = new

    def drop(self, instruction: Instruction) -> None:
        """Removes an instruction in `finish`, when nothing uses it any more."""
        self._dropped.append(instruction)

    def finish(self) -> bool:
        """Replaces and removes, all at once; returns whether there was anything."""
        replace_all(self.computation, self._replaced)
        return self.computation.remove([*self._replaced, *self._dropped])

    def _enter(self, instruction: Instruction, number: int) -> None:
        self._numbers[instruction] = number
        self._first[number] = instruction


def _choice(selector: Instruction, branch: int, count: int) -> Literal | None:
    """The selector, if it can be but one to choose the branch: the last of them serves several numbers."""
    if selector.shape.element_type is PRED:
        return Literal(branch == 0)
    return Literal(branch, selector.shape) if branch < count - 1 else None


@dataclass(slots=True)
class Cut:
    """Where a branch ends and its surroundings begin: the numbers that it is handed, each with a part that has it.

    `computed` is what the branch does itself, `repeated` are constants outside of which it gets copies of its own,
    `chosen` is what has the value that chose the branch, and `packed` are tuples that it is handed element by
    element."""

    inputs: dict[int, Part] = field(default_factory=dict)
    computed: set[Instruction] = field(default_factory=set)
    repeated: dict[Instruction, Instruction] = field(default_factory=dict)
    chosen: set[Instruction] = field(default_factory=set)
    packed: set[Instruction] = field(default_factory=set)


def cut_branch(branch: Branch, results: Iterable[Part], outside: Outside, common: Set[int]) -> Cut:
    """What a branch that returns `results` is best handed; the values of `common` can be computed outside."""
    cut = Cut()
    taken = _worth_taking(branch, outside, common)
    wanted = {part.source for part in results} | set(branch.effects())
    for instruction in reversed(branch.computation.post_order()):
        if instruction not in wanted:
            continue
        number = branch.numbers[instruction]
        value = outside.get(number)
        if instruction in taken:
            cut.inputs.setdefault(number, Part(instruction))
        elif instruction not in branch.given:
            cut.computed.add(instruction)
            wanted.update((*instruction.operands, *instruction.control_predecessors))
        elif number == branch.selector and branch.choice is not None:
            cut.chosen.add(instruction)
        elif value is not None and _is_repeatable(value):
            cut.repeated[instruction] = value
        elif instruction.shape.is_tuple:
            cut.packed.add(instruction)
            cut.inputs.update((branch.number(part), part) for part in parts_of(instruction))
        else:
            cut.inputs.setdefault(number, Part(instruction))
    now = [number for number in branch.inputs() if number in cut.inputs]
    cut.inputs = {number: cut.inputs[number] for number in (*now, *reversed(cut.inputs))}
    return cut


def _is_repeatable(value: Instruction) -> bool:
    """It is made where it is used: a constant, however often repeated, or an iota."""
    of_constant = value.opcode == "broadcast" and is_kernel_constant(value.operands[0])
    return of_constant or value.opcode == "iota" or is_kernel_constant(value)


def _worth_taking(branch: Branch, outside: Outside, common: Set[int]) -> set[Instruction]:
    """The values that the branch shall read from outside, if it needs them."""
    makings: dict[Instruction, Making] = {}
    worth: set[Instruction] = set()
    for instruction in branch.computation.post_order():
        number = branch.numbers[instruction]
        exists = outside.get(number) is not None
        if instruction in branch.given:
            makings[instruction] = given(instruction)
        elif not instruction.operands:
            makings[instruction] = Making()
        elif (exists or number in common) and all(operand in makings for operand in instruction.operands):
            making = makings[instruction] = making_of(instruction, makings)
            shape = instruction.shape
            fits = shape.is_array and (shape.is_scalar or shape.bytes <= making.bytes)
            if fits and (making.has_kernel or (exists and making.is_expensive)):
                worth.add(instruction)
    return worth


def rebuilt(branch: Branch, cut: Cut, results: Sequence[Part], *, as_tuple: bool) -> Computation:
    """A copy that takes a tuple of the inputs of `cut` and returns `results`: as a tuple, or the one that there is."""
    copy = Computation(branch.computation.name)
    (old,) = branch.computation.parameters
    shape = Shape.tuple([part.shape for part in cut.inputs.values()])
    parameter = copy.add("parameter", shape=shape, name=old.name, number=0)
    read = {
        number: copy.add("get-tuple-element", [parameter], index=place, name=part.source.name)
        for place, (number, part) in enumerate(cut.inputs.items())
    }
    copies: dict[Instruction, Instruction] = {}
    for instruction in branch.computation.post_order():
        number = branch.numbers[instruction]
        if instruction in cut.computed:
            copies[instruction] = _copied(copy, instruction, copies)
        elif instruction in cut.packed:
            parts = [read[branch.number(part)] for part in parts_of(instruction)]
            copies[instruction] = copy.add("tuple", parts)
        elif instruction in cut.chosen:
            copies[instruction] = copy.add("constant", literal=branch.choice)
        elif instruction in cut.repeated:
            value = cut.repeated[instruction]
            copies[instruction] = copy.add_copy(value, [copy.add_copy(operand, ()) for operand in value.operands])
        elif number in read:
            copies[instruction] = read[number]
    values = [part.read(copies[part.source]) for part in results]
    copy.set_root(copy.add("tuple", values) if as_tuple else values[0])
    return copy


def _copied(computation: Computation, instruction: Instruction, copies: dict[Instruction, Instruction]) -> Instruction:
    copy = computation.add_copy(instruction, [copies[operand] for operand in instruction.operands])
    for predecessor in instruction.control_predecessors:
        computation.add_control_edge(copies[predecessor], copy)
    return copy
