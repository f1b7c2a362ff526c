"""Which arrays share one order of dimensions: regions.

The arrays that an op with one order for all of them reads and writes are in one region, and so are those that are one
element of a loop's state: its initial value, what the body makes of it, and the result. Where regions meet there is an
op with forms, or one that knows row-major arrays only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.loop_counter import loop_counter
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape
from xlapy.passes.base import pinned, program_computations
from xlapy.passes.layouts.followers import SOURCES, following
from xlapy.passes.layouts.forms import FORMS
from xlapy.passes.layouts.orders import Order, is_movable, order_of, row_major
from xlapy.support.records import Record

UNKNOWN_TRIPS = 16
"""How often a loop is taken to run that does not count."""

MOST_RUNS = 1000.0


@dataclass(eq=False, slots=True)
class Region:
    """Arrays in one order."""

    shape: Shape
    members: list[Instruction] = field(default_factory=list)
    order: Order = ()

    def __post_init__(self) -> None:
        self.order = row_major(self.shape.rank)


class Element(Record):
    """One element of a loop's state."""

    loop: Instruction
    index: int


@dataclass(eq=False)
class Program:
    """A module as regions, and the orders that are not for us to choose."""

    regions: list[Region] = field(default_factory=list)
    region_of: dict[Instruction, Region] = field(default_factory=dict)
    region_of_state: dict[Element, Region] = field(default_factory=dict)
    states: dict[Instruction, Instruction] = field(default_factory=dict)  # parameters, and tuples that become one: loop
    runs: dict[Computation, float] = field(default_factory=dict)
    given: dict[Instruction, Order] = field(default_factory=dict)  # parameters that callers have laid out
    demanded: dict[tuple[Instruction, int], Order] = field(default_factory=dict)  # results, by the element of the root
    pinned: set[Instruction] = field(default_factory=set)
    followers: dict[Instruction, Instruction | None] = field(default_factory=dict)  # with an array that each makes
    formed: dict[Instruction, None] = field(default_factory=dict)

    def array_results(self, instruction: Instruction) -> Iterator[Instruction]:
        """The arrays that an op makes: itself, or what is read from its tuple."""
        if instruction in self.region_of:
            yield instruction
        elif instruction.shape.is_tuple:
            yield from (user for user in instruction.users if user in self.region_of)

    def state_element(self, instruction: Instruction) -> Element | None:
        """The element of a loop's state that an instruction reads."""
        if instruction.opcode != "get-tuple-element":
            return None
        loop = self.states.get(instruction.operands[0])
        return Element(loop, instruction.attributes["index"]) if loop is not None else None


def _is_between_regions(instruction: Instruction) -> bool:
    """The op with forms reads or makes an array in some order, and nothing but arrays with elements; what it makes is
    itself, or read from a tuple of reduces."""
    if instruction.shape.is_tuple and (
        instruction.is_root or any(user.opcode != "get-tuple-element" for user in instruction.users)
    ):
        return False
    shapes = (*instruction.shape.leaves(), *(operand.shape for operand in instruction.operands))
    return all(shape.is_static and shape.size for shape in shapes) and any(map(is_movable, shapes))


def find_regions(module: HloModule, keep_entry_layouts: bool) -> Program:
    """The regions of all computations that run as sequences of kernels."""
    program = Program()
    computations = program_computations(module)
    for computation in computations:
        program.pinned |= pinned(computation)
    _enter_loops(program, computations)
    for computation in reversed(computations):
        program.runs.setdefault(computation, 1.0)
        _enter_runs(program, computation)
    _enter_entry(program, module, keep_entry_layouts)
    classes = _Classes()
    for computation in computations:
        for instruction in computation.post_order():
            _connect(program, classes, instruction)
    _collect(program, classes, computations)
    return program


def _enter_loops(program: Program, computations: Iterable[Computation]) -> None:
    """The loops whose state is made, read and handed on element by element."""
    calls = Counter(called for computation in computations for i in computation for called in i.called)
    for computation in computations:
        for loop in computation:
            is_alone = all(calls[called] == 1 for called in loop.called)
            if loop.opcode == "while" and is_alone and loop not in program.pinned and _is_by_elements(loop):
                program.states[loop] = loop
                program.states[loop.operands[0]] = loop
                for called in loop.called:
                    program.states[called.parameters[0]] = loop
                program.states[loop.called[1].root] = loop


def _is_by_elements(loop: Instruction) -> bool:
    init, body = loop.operands[0], loop.called[1]
    readers = [*loop.users, *(user for called in loop.called for user in called.parameters[0].users)]
    return (
        init.opcode == "tuple"
        and init.sole_user is loop
        and not loop.is_root
        and body.root.opcode == "tuple"
        and not body.root.users
        and all(reader.opcode == "get-tuple-element" for reader in readers)
        and all(not called.parameters[0].is_root for called in loop.called)
    )


def _enter_runs(program: Program, computation: Computation) -> None:
    """How often what a computation calls runs, while the program runs once."""
    for instruction in computation:
        if Trait.CONTROL in instruction.spec.traits:
            counter = loop_counter(instruction) if instruction.opcode == "while" else None
            trips = counter.trips if counter is not None else UNKNOWN_TRIPS if instruction.opcode == "while" else 1
            for called in instruction.called:
                program.runs[called] = min(program.runs[computation] * max(trips, 1), MOST_RUNS)


def _enter_entry(program: Program, module: HloModule, keep_entry_layouts: bool) -> None:
    """The orders of the entry's parameters and results, where those are not row-major."""
    given = module.config.entry_layout
    if given is None or not keep_entry_layouts:
        return
    for parameter, shape in zip(module.entry.parameters, given.parameters, strict=True):
        if is_movable(shape):
            program.given[parameter] = order_of(shape)
    parts = given.result.parts if given.result.is_tuple else (given.result,)
    for index, shape in enumerate(parts):
        if is_movable(shape):
            program.demanded[module.entry.root, index] = order_of(shape)


def has_entry_layouts(module: HloModule) -> bool:
    """A parameter or result of the entry is not row-major."""
    given = module.config.entry_layout
    shapes = (*given.parameters, given.result) if given is not None else ()
    return any(
        leaf.layout is not None and not leaf.layout.is_row_major
        for shape in shapes
        for leaf in shape.leaves()
        if leaf.is_array
    )


class _Classes:
    """Sets of arrays that are found to be in one region."""

    def __init__(self) -> None:
        self._parents: dict[Instruction | Element, Instruction | Element] = {}

    def find(self, item: Instruction | Element) -> Instruction | Element:
        root = item
        while (parent := self._parents.setdefault(root, root)) is not root:
            root = parent
        while item is not root:
            self._parents[item], item = root, self._parents[item]
        return root

    def join(self, one: Instruction | Element, other: Instruction | Element) -> None:
        self._parents[self.find(other)] = self.find(one)


def _connect(program: Program, classes: _Classes, instruction: Instruction) -> None:
    loop = program.states.get(instruction)
    if loop is not None and instruction.opcode == "tuple":
        for index, operand in enumerate(instruction.operands):
            if is_movable(operand.shape) and operand.opcode not in SOURCES:
                classes.join(Element(loop, index), operand)
        return
    element = program.state_element(instruction)
    if element is not None:
        if is_movable(instruction.shape):
            classes.join(element, instruction)
        return
    if instruction in program.pinned:
        return
    joined: list[Instruction] = []
    places = following(instruction)
    if places is not None and all(is_movable(instruction.operands[place].shape) for place in places):
        results = [i for i in _results(instruction) if is_movable(i.shape)]
        program.followers[instruction] = results[0] if results else None
        joined = [*(instruction.operands[place] for place in places), *results]
    elif instruction.opcode in FORMS and _is_between_regions(instruction):
        program.formed[instruction] = None
        joined = [instruction.operands[place] for place in _joined_by_form(instruction)]
    shared = [value for value in joined if value.opcode not in SOURCES]
    for other in shared[1:]:
        classes.join(shared[0], other)


def _joined_by_form(instruction: Instruction) -> range:
    """The arrays of a reduce of several are read in one order."""
    count = len(instruction.operands) // 2
    return range(count) if instruction.opcode == "reduce" and is_movable(instruction.operands[0].shape) else range(0)


def _results(instruction: Instruction) -> list[Instruction]:
    if instruction.shape.is_tuple:
        return [user for user in instruction.users if user.opcode == "get-tuple-element"]
    return [instruction]


def _collect(program: Program, classes: _Classes, computations: Iterable[Computation]) -> None:
    found: dict[Instruction | Element, Region] = {}
    for computation in computations:
        for instruction in computation.post_order():
            if not is_movable(instruction.shape):
                continue
            if instruction.opcode in SOURCES:
                continue
            key = classes.find(instruction)
            region = found.get(key)
            if region is None:
                region = found[key] = Region(instruction.shape)
                program.regions.append(region)
            region.members.append(instruction)
            program.region_of[instruction] = region
    for loop in dict.fromkeys(program.states.values()):
        for index in range(len(loop.shape.parts)):
            state = classes.find(Element(loop, index))
            if state in found:
                program.region_of_state[Element(loop, index)] = found[state]
