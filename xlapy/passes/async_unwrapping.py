"""Asynchronous wrappers: collectives get the pairs of their own, everything else is called.

    wrapped { q = f32[4] parameter(0)  ROOT g = f32[8] all-gather(q), dimensions={0} }
    s = ((f32[4]), f32[8], s32[]) async-start(p), calls=wrapped             s = (f32[4], f32[8]) all-gather-start(p)
    d = f32[8] async-done(s)                                       becomes  d = f32[8] all-gather-done(s)

What computes has nothing to overlap with: a program's kernels run one after the other, each on all cores.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS, Trait
from xlapy.passes.base import ComputationPass

WRAPPERS = ("async-start", "async-update", "async-done")


@dataclass
class AsyncUnwrapping(ComputationPass):
    name: ClassVar[str] = "unwrap-async"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = frozenset(WRAPPERS)

    def run_on(self, computation: Computation) -> bool:
        """Starts come before what uses them: each wrapper's operand is known by then."""
        wrappers = [instruction for instruction in computation.post_order() if instruction.opcode in WRAPPERS]
        begun: dict[Instruction, Instruction] = {}
        for wrapper in wrappers:
            if wrapper.opcode == "async-start":
                begun[wrapper] = _begin(computation, wrapper)
                _run_behind(computation, wrapper, begun[wrapper])
                _run_before(computation, wrapper, begun[wrapper])
            else:
                begun[wrapper] = begun[wrapper.operands[0]]
            if wrapper.opcode == "async-done":
                result = _end(computation, begun[wrapper], wrapper)
                if result is not begun[wrapper]:  # what held the end of a call need not hold all of it
                    _run_behind(computation, wrapper, result)
                computation.replace(wrapper, result)
        computation.remove(wrappers)
        return bool(wrappers)


def _begin(computation: Computation, start: Instruction) -> Instruction:
    """The start op of a collective, if nothing else is wrapped; or else a call."""
    wrapped = start.called[0]
    root = wrapped.root
    if Trait.ASYNC not in root.spec.traits or tuple(root.operands) != tuple(wrapped.parameters):
        return computation.add("call", start.operands, called=[wrapped], metadata=start.metadata)
    opcode = f"{root.opcode}-start"
    started = OPS[opcode].options.get("async_shape", lambda operands, result: result)
    shape = started([operand.shape for operand in start.operands], root.shape)
    return computation.add(
        opcode, start.operands, called=root.called, shape=shape, metadata=root.metadata, **root.attributes
    )


def _end(computation: Computation, begun: Instruction, done: Instruction) -> Instruction:
    """The result of what was begun."""
    if begun.opcode == "call":
        return begun
    return computation.add(f"{begun.spec.start_of}-done", [begun], metadata=done.metadata)


def _run_behind(computation: Computation, old: Instruction, new: Instruction) -> None:
    """What ran before the one runs before the other."""
    for predecessor in old.control_predecessors:
        computation.add_control_edge(predecessor, new)


def _run_before(computation: Computation, old: Instruction, new: Instruction) -> None:
    """What ran behind the one runs behind the other."""
    for instruction in computation:
        if old in instruction.control_predecessors:
            computation.add_control_edge(new, instruction)
