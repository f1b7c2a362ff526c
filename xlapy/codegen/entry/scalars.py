"""What is done in registers, with no call."""

from __future__ import annotations

from xlapy.codegen.arrays import Array
from xlapy.codegen.context import CONTEXT_CALL_NUMBER, CONTEXT_PROCESS, CONTEXT_SEED
from xlapy.codegen.elements import emit_element
from xlapy.codegen.entry.base import HANDLERS, Entry
from xlapy.codegen.entry.kernels import write_kernel
from xlapy.codegen.frame import Frame
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I32, I64
from xlapy.codegen.kernels.repack import load_joined
from xlapy.codegen.native_fields import word
from xlapy.codegen.registers import constant_element
from xlapy.hlo.evaluate.random import SCRAMBLE, SCRAMBLE_START
from xlapy.hlo.graph import Instruction
from xlapy.hlo.leaves import is_renaming


def bind_renamed_scalar(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    if not is_renaming(instruction):
        frame.bind(instruction, 0, frame.scalar(instruction.operands[0]))


@HANDLERS.register("bitcast-convert")
def _bits(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """Mostly another name for memory; but a scalar is a register of its own type."""
    operand = instruction.operands[0]
    if is_renaming(instruction):
        return
    if not instruction.shape.is_scalar:
        write_kernel(entry, frame, instruction)
    elif operand.shape.is_scalar:
        frame.bind(instruction, 0, emit_element(frame.k, instruction, [frame.scalar(operand)]))
    elif operand.shape.type.bits < 8:
        joined = load_joined(frame.k, frame.array(operand), operand.shape, instruction.shape.type)
        frame.bind(instruction, 0, joined)
    else:
        parts = Array(frame.array(operand), instruction.shape, read_only=False)
        frame.bind(instruction, 0, parts.load(Indexing(frame.k, 1), Index((), ())))


@HANDLERS.register("constant")
def _constant(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    literal = instruction.attributes["literal"]
    if instruction.shape.is_scalar:
        frame.bind(instruction, 0, constant_element(frame.k, literal.shape.type, literal.scalar()))


@HANDLERS.register("replica-id")
def _replica_id(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    ids = word(k, k.parameters["context"], CONTEXT_PROCESS)
    frame.bind(instruction, 0, k.trunc(ids, I32))


@HANDLERS.register("partition-id")
def _partition_id(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    ids = word(k, k.parameters["context"], CONTEXT_PROCESS)
    frame.bind(instruction, 0, k.trunc(k.lshr(ids, 32), I32))


@HANDLERS.register("rng-get-and-update-state")
def _random_state(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """Key and counter of `random.program_state`. The word of the call number counts draws in its upper half."""
    k = frame.k
    key = k.add(word(k, k.parameters["context"], CONTEXT_SEED), SCRAMBLE_START)
    for multiplier in SCRAMBLE:
        key = k.mul(k.xor(key, k.lshr(key, 33)), multiplier)
    counter_field = k.gep(k.parameters["context"], CONTEXT_CALL_NUMBER, 8)
    counter = k.load(counter_field, I64)
    k.store(counter_field, k.add(counter, 1 << 32))
    state = frame.array(instruction)
    k.store(state, k.xor(key, k.lshr(key, 33)))
    k.store(k.gep(state, 1, 8), counter)
