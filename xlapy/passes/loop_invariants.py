"""Loop-invariant code motion: what is the same in every iteration is computed once, in front of the loop.

    b { s = (s32[], f32[8,8], f32[8,8]) parameter(0) ...        w = get-tuple-element(s), index=2
        t = f32[8,8] tanh(w)  ...  ROOT n = tuple(i + 1, dot(x, t), w) }

becomes a loop whose state has tanh(w) as one more element, which the body hands on unchanged.

Invariant are the elements of the state that the body hands on, constants, and what pure ops make of these. Values that
cost nothing or little where they are used stay inside: data movement, scalars, and arrays larger than all that they are
made of (a broadcast, an iota), which would take memory and bandwidth to keep. Loops and conditionals stay as well: a
loop in front of one that never runs might not end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape
from xlapy.passes.base import ComputationPass, Record, needed_by, pinned


@dataclass
class LoopInvariantCodeMotion(ComputationPass):
    name: ClassVar[str] = "hoist-invariants"

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            if instruction.opcode == "while" and instruction not in fixed and is_rewritable(instruction):
                values = _worth_carrying(instruction.called[1])
                if values:
                    names = ", ".join(value.name for value in values)
                    self.records.append(Record.of(instruction, True, f"{names} never change"))
                    _carry(instruction, values)
                    changed = True
        return changed


def is_rewritable(loop: Instruction) -> bool:
    """The state can get another element: it is made and used element by element."""
    return (
        loop.operands[0].opcode == "tuple"
        and loop.called[1].root.opcode == "tuple"
        and not loop.is_root
        and all(user.opcode == "get-tuple-element" for user in loop.users)
    )


def _worth_carrying(body: Computation) -> list[Instruction]:
    """The invariant values that the changing part of the body reads and that shall come from outside."""
    sources = _bytes_of_sources(body)
    found: list[Instruction] = []
    wanted = {operand for i in body if i not in sources for operand in i.operands}
    for instruction in reversed(body.post_order()):
        if instruction not in sources or instruction not in wanted:
            continue
        if _is_computed(instruction) and instruction.shape.bytes <= sources[instruction]:
            found.append(instruction)
        else:
            wanted.update(instruction.operands)
    return found[::-1]


def _bytes_of_sources(body: Computation) -> dict[Instruction, int]:
    """The invariant values, each with the bytes of the arrays from which it is made where it is used.

    Constants are no bytes. What has a kernel of its own is made of itself: it is an array in memory anyway."""
    sources: dict[Instruction, int] = {}
    fixed = pinned(body)
    unchanged = unchanged_elements(body)
    for instruction in body.post_order():
        if instruction in unchanged or instruction.opcode == "constant":
            sources[instruction] = instruction.shape.bytes if instruction in unchanged else 0
        elif _is_movable(instruction) and instruction not in fixed and all(i in sources for i in instruction.operands):
            read = sum(sources[operand] for operand in dict.fromkeys(instruction.operands))
            sources[instruction] = read if _is_cheap_to_place(instruction) else max(read, instruction.shape.bytes)
    return sources


def unchanged_elements(body: Computation) -> set[Instruction]:
    """Where the body reads elements of the state that it hands on as they are."""
    (state,) = body.parameters
    kept = {
        index
        for index, result in enumerate(body.root.operands)
        if result.opcode == "get-tuple-element"
        and result.operands[0] is state
        and result.attributes["index"] == index
        and result.shape.is_array
    }
    return {user for user in state.users if user.opcode == "get-tuple-element" and user.attributes["index"] in kept}


def _is_movable(instruction: Instruction) -> bool:
    forbidden = Trait.CONTROL | Trait.RUNTIME | Trait.COLLECTIVE | Trait.STRUCTURE
    return bool(instruction.operands) and instruction.is_pure and not instruction.spec.traits & forbidden


def _is_cheap_to_place(instruction: Instruction) -> bool:
    """It is computed element by element where it is used, and needs no array of its own."""
    return bool(instruction.spec.traits & (Trait.ELEMENTWISE | Trait.INDEX_MAP))


def _is_computed(instruction: Instruction) -> bool:
    """An array that takes arithmetic to make, not a rearrangement of another one."""
    return (
        _is_movable(instruction)
        and instruction.shape.is_array
        and not instruction.shape.is_scalar
        and instruction.shape.is_static
        and Trait.INDEX_MAP not in instruction.spec.traits
    )


def _carry(loop: Instruction, values: Sequence[Instruction]) -> None:
    """Computes `values` of the body in front of the loop, and hands them in as further elements of its state."""
    computation, init = loop.parent, loop.operands[0]
    outside = _computed_outside(loop, values)
    state = computation.add("tuple", [*init.operands, *(outside[value] for value in values)])
    condition, body = (_with_elements(called, state.shape, values) for called in loop.called)
    larger = computation.add("while", [state], called=[condition, body], name=loop.name, metadata=loop.metadata)
    larger.extra = dict(loop.extra)
    for reader in tuple(loop.users):
        element = computation.add("get-tuple-element", [larger], index=reader.attributes["index"], name=reader.name)
        computation.replace(reader, element)
        computation.remove([reader])
    computation.remove([loop])


def _computed_outside(loop: Instruction, values: Sequence[Instruction]) -> dict[Instruction, Instruction]:
    """Copies of what the values are made of, reading the initial state."""
    body, init = loop.called[1], loop.operands[0]
    (state,) = body.parameters
    copies: dict[Instruction, Instruction] = {}
    needed = needed_by(values)
    for instruction in body.post_order():
        if instruction not in needed or instruction is state:
            continue
        if state in instruction.operands:
            copies[instruction] = init.operands[instruction.attributes["index"]]
        else:
            copies[instruction] = loop.parent.add_copy(instruction, [copies[i] for i in instruction.operands])
    return copies


def _with_elements(computation: Computation, shape: Shape, values: Sequence[Instruction]) -> Computation:
    """A copy with a larger state, from which it reads `values`; if its result is the state, it hands them on."""
    (state,) = computation.parameters
    larger = Computation(computation.name)
    parameter = larger.add("parameter", shape=shape, name=state.name, number=0)
    first = len(shape.parts) - len(values)
    copies = {state: parameter}
    own = [value for value in values if value.parent is computation]
    for number, value in enumerate(own, start=first):
        copies[value] = larger.add("get-tuple-element", [parameter], index=number, name=value.name)
    for instruction in computation.post_order():
        if instruction in copies:
            continue
        copy = copies[instruction] = larger.add_copy(instruction, [copies[operand] for operand in instruction.operands])
        for predecessor in instruction.control_predecessors:
            larger.add_control_edge(copies[predecessor], copy)
    root = copies[computation.root]
    if own:
        root = larger.add("tuple", [*root.operands, *(copies[value] for value in own)], name=root.name)
    larger.set_root(root)
    unused = [i for i in reversed(larger.post_order()) if not i.is_root and i.opcode != "parameter" and i.is_pure]
    for instruction in unused:
        if not instruction.users and not instruction.control_predecessors:
            larger.remove([instruction])
    return larger
