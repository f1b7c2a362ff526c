"""Dynamic slices, and updates of them, that are one block of memory each: copied by the entry, without a kernel.

They are what loops over steps, or over pieces of a batch, read and write. Larger ones have kernels that threads share.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.element_graph import clamped_start
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import Value
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.hlo.shape import Shape


def is_block_copy(instruction: Instruction) -> bool:
    """Whether a dynamic-slice or dynamic-update-slice moves one block of memory that one core may as well copy."""
    whole, part, _ = _operation(instruction)
    if not (part.size and 2 * part.bytes <= PARALLEL_BYTES and whole.is_static and part.is_static):
        return False
    cut = [dim for dim, (size, taken) in enumerate(zip(whole.dims, part.dims, strict=True)) if size != taken]
    arrays = [instruction, *instruction.operands[:2]]
    are_neighbours = all(part.dims[dim] == 1 for dim in range(max(cut, default=0)))
    return are_neighbours and all(is_row_major(array) for array in arrays if array.shape.rank)


def copy_slice(frame: Frame, slice: Instruction) -> None:
    """Copies a block out of the operand."""
    source = _block(frame, slice, frame.array(slice.operands[0]))
    frame.k.memcpy(frame.array(slice), source, slice.shape.bytes)


def copy_update(frame: Frame, update_slice: Instruction) -> None:
    """Copies a block over the operand, which is where the result is."""
    update = update_slice.operands[1]
    frame.k.memcpy(_block(frame, update_slice, frame.array(update_slice)), frame.array(update), update.shape.bytes)


def _operation(instruction: Instruction) -> tuple[Shape, Shape, Sequence[Instruction]]:
    """The whole array, the part of it, and where that begins."""
    operand, *others = instruction.operands
    if instruction.opcode == "dynamic-slice":
        return operand.shape, instruction.shape, others
    return operand.shape, others[0].shape, others[1:]


def _block(frame: Frame, instruction: Instruction, array: Value) -> Value:
    """Where in `array` the part begins."""
    k = frame.k
    whole, part, starts = _operation(instruction)
    for start, size, taken, stride in zip(starts, whole.dims, part.dims, whole.strides(), strict=True):
        if size != taken:
            scalar = frame.scalar(start)
            assert isinstance(scalar, Value)
            place = clamped_start(k, scalar, start.shape.type, size - taken)
            array = k.gep(array, place, stride * whole.type.bytes)
    return array
