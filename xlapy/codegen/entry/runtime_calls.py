"""What the runtime does for the program: collectives, streams, custom calls."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.context import CONTEXT_RUNTIME_CALL
from xlapy.codegen.entry.base import Entry, Step
from xlapy.codegen.frame import Frame, Leaf
from xlapy.codegen.ir import I32, PTR
from xlapy.hlo.graph import Instruction
from xlapy.hlo.leaves import aliased_leaves, leaf_shape


def call_runtime(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """Asks the runtime: operand and result addresses in one table, a status back."""
    k = frame.k
    entry.steps[instruction] = (Step(instruction.opcode),)
    site = entry.sites.site(instruction)
    leaves = entry.sites.buffers(instruction)
    if instruction.opcode == "custom-call":
        leaves = _aliased(entry, frame, instruction, leaves)
    table = k.alloca(PTR, max(1, len(leaves)))
    for number, (owner, leaf) in enumerate(leaves):
        k.store(k.gep(table, number, 8), frame.array(owner, leaf))
    arguments = [k.parameters["context"], k.const(I32, site), table]
    status = k.call_value(frame.context_word(CONTEXT_RUNTIME_CALL), arguments, I32)
    frame.fail_if(status)


def _aliased(entry: Entry, frame: Frame, instruction: Instruction, leaves: Sequence[Leaf]) -> list[Leaf]:
    """Puts operands that the target changes in place where their results will be; they are passed as those."""
    places = [
        (number, leaf)
        for number, operand in enumerate(instruction.operands)
        for leaf, shape in enumerate(operand.shape.leaves())
        if shape.is_array
    ]
    passed = list(leaves)
    for number, leaf, result_leaf in aliased_leaves(instruction):
        target = (instruction, result_leaf)
        entry.move(frame, (instruction.operands[number], leaf), target, leaf_shape(instruction.shape, result_leaf))
        passed[places.index((number, leaf))] = target
    return passed
