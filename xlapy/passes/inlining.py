"""Call inlining: a called computation becomes part of its caller.

    f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    ROOT c = f32[] call(p), to_apply=f        becomes        ROOT n = f32[] negate(p)

Fusions and composites that the input came with are inlined as well: which kernels there are is decided here anew. A
callee is copied to where it is called with what it calls in turn, and never has copies itself, so each instruction is
copied once, however deep calls are nested.

    ROOT c = f32[] conditional(p, x, y), branch_computations={f, f}

calls f, too, of x or y: with a copy of it for each branch, such conditionals inside each other would double at each
level. So what chooses is another conditional, whose branches do nothing; where x and y are the same, nothing is left
to choose. A computation without control flow has no levels, and may have copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes.base import Pass, pinned, replace_all

INLINED = frozenset({"call", "fusion"})


@dataclass
class CallInlining(Pass):
    name: ClassVar[str] = "inline-calls"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = INLINED | {"conditional"}

    def run(self, module: HloModule) -> bool:
        computations = module.computations()
        calls = _calls(computations)
        staying = {module.entry}
        for computation in computations:
            for instruction in computation.calling:
                if instruction not in calls:
                    staying.update(instruction.called)
        changed = False
        for computation in computations:
            if computation in staying:
                changed = _inline(computation, calls) or changed
        return changed


def _calls(computations: Iterable[Computation]) -> set[Instruction]:
    """All calls, and conditionals that call one computation in any case. Callees come first.

    Such a conditional stays, between branches that do nothing, where its operands differ: it is control flow, too."""
    calls: set[Instruction] = set()
    branching: set[Computation] = set()  # what has control flow, by itself or by what it calls
    for computation in computations:
        for instruction in computation.calling:
            callee = instruction.called[0]
            is_conditional = instruction.opcode == "conditional"
            if instruction.opcode in INLINED or (is_conditional and _calls_one(instruction, callee in branching)):
                calls.add(instruction)
                if callee in branching or (is_conditional and _choices(instruction.operands) > 1):
                    branching.add(computation)
            elif Trait.CONTROL in instruction.spec.traits:
                branching.add(computation)
    return calls


def _calls_one(conditional: Instruction, branches: bool) -> bool:
    """Whether a conditional calls the same in any case, of the same, or what has control flow itself."""
    branch = conditional.called[0]
    if any(other is not branch for other in conditional.called):
        return False
    return branches or _choices(conditional.operands) == 1


def _choices(operands: Sequence[Instruction]) -> int:
    """Between how many values a conditional with these operands chooses."""
    return len({*operands[1:]})


def _inline(computation: Computation, calls: Set[Instruction]) -> bool:
    """Inlines the calls in a computation; returns whether there were any."""
    fixed = pinned(computation)
    found = [instruction for instruction in computation.post_order() if instruction in calls]
    results: dict[Instruction, Instruction] = {}
    for call in found:
        operands = [results.get(operand, operand) for operand in call.operands]
        result = _copied(
            computation, _Frame(call, _arguments(computation, call, operands), call.control_predecessors), calls
        )
        if call in fixed:
            computation.replace(call, result)
            computation.remove([call])
        else:
            results[call] = result
    replace_all(computation, results)
    computation.remove(results)
    return bool(found)


@dataclass(slots=True)
class _Frame:
    """A call whose callee is being copied. All that this computes runs behind what `held` the call."""

    call: Instruction
    arguments: Sequence[Instruction]
    held: Sequence[Instruction]
    copies: dict[Instruction, Instruction] = field(init=False)
    waiting: Iterator[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        callee = self.call.called[0]
        self.copies = dict(zip(callee.parameters, self.arguments, strict=True))
        self.waiting = iter(callee.post_order())

    @property
    def result(self) -> Instruction:
        return self.copies[self.call.called[0].root]


def _copied(caller: Computation, outermost: _Frame, calls: Set[Instruction]) -> Instruction:
    """The result of a call, all of which is copied to `caller`, and so is what its callee calls, in place of these
    calls."""
    frames = [outermost]
    while True:
        frame = frames[-1]
        inner = _copy_to_next_call(caller, frame, calls)
        if inner is not None:
            frames.append(inner)
            continue
        frames.pop()
        if not frames:
            return frame.result
        frames[-1].copies[frame.call] = frame.result


def _copy_to_next_call(caller: Computation, frame: _Frame, calls: Set[Instruction]) -> _Frame | None:
    """Copies the instructions of a frame up to a call, which is returned, or all."""
    copies = frame.copies
    for instruction in frame.waiting:
        if instruction in copies:
            continue
        operands = [copies[operand] for operand in instruction.operands]
        held = (*frame.held, *(copies[predecessor] for predecessor in instruction.control_predecessors))
        if instruction in calls:
            return _Frame(instruction, _arguments(caller, instruction, operands), held)
        copies[instruction] = copy = caller.add_copy(instruction, operands)
        for predecessor in held:
            caller.add_control_edge(predecessor, copy)
    return None


def _arguments(caller: Computation, call: Instruction, operands: Sequence[Instruction]) -> Sequence[Instruction]:
    """What the callee of a call with these operands is given: of a conditional, the operand of the branch that it
    takes."""
    if call.opcode != "conditional":
        return operands
    if _choices(operands) == 1:
        return operands[1:2]
    branches = []
    for operand in operands[1:]:
        branch = Computation("chosen")
        branch.set_root(branch.add("parameter", number=0, shape=operand.shape))
        branches.append(branch)
    return [caller.add("conditional", operands, called=branches, metadata=call.metadata)]
