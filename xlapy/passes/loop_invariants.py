"""Loop-invariant code motion: what is the same in every iteration is computed once, in front of the loop.

    b { s = (s32[], f32[8,8], f32[8,8]) parameter(0) ...        w = get-tuple-element(s), index=2
        t = f32[8,8] tanh(w)  ...  ROOT n = tuple(i + 1, dot(x, t), w) }

becomes a loop whose state has tanh(w) as one more element, which the body hands on unchanged.

The condition is looked at like the body. Invariant are the elements of the state that the body hands on, constants, and
what pure ops make of these. Values that cost nothing or little where they are used stay inside: data movement, scalars
that take a few operations, and arrays larger than all that they are made of (a broadcast, an iota), which would take
memory and bandwidth to keep. Loops and conditionals stay as well: a loop in front of one that never runs might not end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import state_index
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape
from xlapy.passes.analysis.making import Making, given, making_of
from xlapy.passes.base import ComputationPass, Record, needed_by, pinned, supplant


@dataclass
class LoopInvariantCodeMotion(ComputationPass):
    name: ClassVar[str] = "hoist-invariants"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for loop in rewritable_loops(computation):
            values = [value for called in loop.called for value in _worth_carrying(loop, called)]
            if values:
                names = ", ".join(value.name for value in values)
                self.records.append(Record.of(loop, True, f"{names} never change"))
                carry(loop, values)
                changed = True
        return changed


def rewritable_loops(computation: Computation) -> Iterator[Instruction]:
    """The whiles that may be replaced, and whose state can get another element; each is looked at when it is due."""
    fixed = pinned(computation)
    for loop in computation.post_order():
        if loop.opcode == "while" and loop not in fixed and is_rewritable(loop):
            yield loop


def is_rewritable(loop: Instruction) -> bool:
    """The state can get another element: it is made element by element."""
    return loop.operands[0].opcode == "tuple" and loop.called[1].root.opcode == "tuple"


def _worth_carrying(loop: Instruction, computation: Computation) -> list[Instruction]:
    """The invariant values that the changing part of the condition or body reads and that shall come from outside."""
    makings = _invariants(computation, unchanged_elements(loop))
    found: list[Instruction] = []
    wanted = {operand for i in computation if i not in makings for operand in i.operands}
    for instruction in reversed(computation.post_order()):
        if instruction not in makings or instruction not in wanted:
            continue
        if _is_computed(instruction) and _is_worth_keeping(instruction.shape, makings[instruction]):
            found.append(instruction)
        else:
            wanted.update(instruction.operands)
    return found[::-1]


def _is_worth_keeping(shape: Shape, making: Making) -> bool:
    if shape.is_scalar:
        return making.has_kernel or making.is_expensive
    return shape.bytes <= making.bytes


def _invariants(computation: Computation, unchanged: Set[int]) -> dict[Instruction, Making]:
    """The values that are the same in every iteration, and what they are made of there."""
    makings: dict[Instruction, Making] = {}
    fixed = pinned(computation)
    for instruction in computation.post_order():
        if instruction.opcode == "constant":
            makings[instruction] = Making()
        elif state_index(instruction, computation) in unchanged and instruction.shape.is_array:
            makings[instruction] = given(instruction)
        elif _is_movable(instruction) and instruction not in fixed and all(i in makings for i in instruction.operands):
            makings[instruction] = making_of(instruction, makings)
    return makings


def unchanged_elements(loop: Instruction) -> set[int]:
    """The elements of the state that the body hands on as they are."""
    body = loop.called[1]
    return {index for index, result in enumerate(body.root.operands) if state_index(result, body) == index}


def _is_movable(instruction: Instruction) -> bool:
    return bool(instruction.operands) and instruction.is_pure and not instruction.spec.traits & _BOUND


_BOUND = frozenset({Trait.CONTROL, Trait.RUNTIME, Trait.COLLECTIVE, Trait.STRUCTURE})
"""What stays where it is."""


def _is_computed(instruction: Instruction) -> bool:
    """An array or a number that takes arithmetic to make, not a rearrangement of another one."""
    return (
        _is_movable(instruction)
        and instruction.shape.is_array
        and instruction.shape.is_static
        and Trait.INDEX_MAP not in instruction.spec.traits
    )


def carry(loop: Instruction, values: Sequence[Instruction]) -> list[Instruction]:
    """Computes `values` of the body in front of the loop, and hands them in as further elements of its state; what
    they are there."""
    computation, init = loop.parent, loop.operands[0]
    outside = _computed_outside(loop, values)
    state = computation.add("tuple", [*init.operands, *(outside[value] for value in values)])
    condition = _with_elements(loop.called[0], state.shape, values, hands_on=False)
    body = _with_elements(loop.called[1], state.shape, values, hands_on=True)
    replace_loop(loop, computation.add_like(loop, [state], [condition, body]))
    return [outside[value] for value in values]


def replace_loop(loop: Instruction, larger: Instruction) -> None:
    """Puts a loop in the place of another one whose state is the first elements of its own."""
    computation = loop.parent
    readers = [user for user in loop.users if user.opcode == "get-tuple-element"]
    supplant(
        computation,
        {
            reader: computation.add("get-tuple-element", [larger], index=reader.attributes["index"], name=reader.name)
            for reader in readers
        },
    )
    if loop.is_root or loop.users:
        elements = computation.unpacked(larger, len(loop.shape.parts))
        computation.replace(loop, computation.add("tuple", elements))
    computation.remove([loop])


def _computed_outside(loop: Instruction, values: Sequence[Instruction]) -> dict[Instruction, Instruction]:
    """Copies of what the values are made of, reading the initial state."""
    init = loop.operands[0]
    copies: dict[Instruction, Instruction] = {}
    needed = needed_by(values)
    for computation in loop.called:
        for instruction in computation.post_order():
            if instruction not in needed or instruction in computation.parameters:
                continue
            index = state_index(instruction, computation)
            if index is not None:
                copies[instruction] = init.operands[index]
            else:
                copies[instruction] = loop.parent.add_copy(instruction, [copies[i] for i in instruction.operands])
    return copies


def _with_elements(
    computation: Computation, shape: Shape, values: Sequence[Instruction], *, hands_on: bool
) -> Computation:
    """A copy with a larger state, from which it reads those of `values` that were its own. A body hands all on."""
    (state,) = computation.parameters
    larger = Computation(computation.name)
    parameter = larger.add("parameter", shape=shape, name=state.name, number=0)
    first = len(shape.parts) - len(values)
    elements = {
        value: larger.add("get-tuple-element", [parameter], index=number, name=value.name)
        for number, value in enumerate(values, start=first)
        if hands_on or value.parent is computation
    }
    copies = {state: parameter, **elements}
    for instruction in computation.post_order():
        if instruction in copies:
            continue
        copy = copies[instruction] = larger.add_copy(instruction, [copies[operand] for operand in instruction.operands])
        for predecessor in instruction.control_predecessors:
            larger.add_control_edge(copies[predecessor], copy)
    root = copies[computation.root]
    if hands_on:
        root = larger.add("tuple", [*root.operands, *elements.values()], name=root.name)
    larger.set_root(root)
    remove_unused(larger)
    return larger


def remove_unused(computation: Computation) -> None:
    unused: dict[Instruction, None] = {}
    fixed = pinned(computation)
    for instruction in reversed(computation.post_order()):
        is_needed = instruction.is_root or instruction.opcode == "parameter" or not instruction.is_pure
        if not is_needed and instruction not in fixed and all(user in unused for user in instruction.users):
            unused[instruction] = None
    computation.remove(unused)
