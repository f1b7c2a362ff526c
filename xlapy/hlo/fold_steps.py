"""Folds in two steps: a kernel folds an array into parts, and whoever started it folds the parts once all are there.

    s = f32[64,131072] parameter(0)
    t = f32[64] reduce(s, identity), dimensions={1}      the first step, dealt out to threads; t is scratch memory
    ROOT r = f32[] reduce(t, zero), dimensions={0}       the second step, by one thread, always in the same order

A fused computation has two steps if its last reduce folds another array than its first one: one of fewer elements.
"""

from __future__ import annotations

from xlapy.hlo.graph import Computation, Instruction


def fold_steps(computation: Computation) -> tuple[Computation, Computation] | None:
    """The steps of a fused computation, if it has two. The first returns the parts; they are the last parameter of the
    second, and the other parameters of both are those of the computation."""
    reduces = [instruction for instruction in computation.post_order() if instruction.opcode == "reduce"]
    if len(reduces) < 2:
        return None
    first, last = (reduce.operands[0] for reduce in (reduces[0], reduces[-1]))
    if first.shape.size == last.shape.size:
        return None
    return split_at(computation, last)


def split_at(computation: Computation, value: Instruction) -> tuple[Computation, Computation]:
    """What makes a value, and what is made from it, as the steps of a fold are."""
    return _copied(computation, value, None), _copied(computation, computation.root, value)


def _copied(computation: Computation, root: Instruction, parts: Instruction | None) -> Computation:
    """What `root` needs, `parts` being one more parameter."""
    copy = Computation(computation.name)
    copies = {
        parameter: copy.add("parameter", shape=parameter.shape, name=parameter.name, number=number)
        for number, parameter in enumerate(computation.parameters)
    }
    if parts is not None:
        copies[parts] = copy.add("parameter", shape=parts.shape, name=parts.name, number=len(copies))
    pending = [root]
    needed = set(pending)
    while pending:
        new = [operand for operand in pending.pop().operands if operand not in copies and operand not in needed]
        needed.update(new)
        pending += new
    for instruction in computation.post_order():
        if instruction in needed and instruction not in copies:
            copies[instruction] = copy.add_copy(instruction, [copies[operand] for operand in instruction.operands])
    copy.set_root(copies[root])
    return copy
