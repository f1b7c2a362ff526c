"""Dynamic slices, and updates of them, that are one block of memory each: copied by the entry, without a kernel.

They are what loops over steps, or over pieces of a batch, read and write. Larger ones have kernels that threads share.
Single elements, as loops over scalars read and write them, are loaded and stored. Of views, the address is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import clamped_start
from xlapy.codegen.frame import Frame
from xlapy.codegen.indexing import SCALAR, Indexing
from xlapy.codegen.ir import PTR, Value
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.hlo.leaves import is_renaming
from xlapy.hlo.shape import Shape
from xlapy.hlo.views import is_block, is_view, view_of


def is_block_copy(instruction: Instruction) -> bool:
    """Whether a dynamic-slice or dynamic-update-slice moves one block of memory that one core may as well copy."""
    whole, part, _ = _operation(instruction)
    if not (part.size and 2 * part.bytes <= PARALLEL_BYTES and is_block(whole, part)):
        return False
    arrays = [instruction, *instruction.operands[:2]]
    return all(is_row_major(array) for array in arrays if array.shape.rank)


def copy_slice(frame: Frame, slice: Instruction) -> None:
    """Copies a block out of the operand."""
    source = _block(frame, slice, frame.array(slice.operands[0]))
    frame.k.memcpy(frame.array(slice), source, slice.shape.bytes)


def store_address(frame: Frame, view: Instruction) -> None:
    """Stores where the block begins."""
    frame.k.store(frame.array(view), _block(frame, view, frame.array(view.operands[0])))


def address_of_array(frame: Frame, value: Instruction) -> Value:
    """Where an array begins, that may be a view."""
    place = frame.array(value)
    return place if view_of(value) is None else frame.k.load(place, PTR)


def copy_update(frame: Frame, update_slice: Instruction) -> None:
    """Copies a block over the operand, which is where the result is."""
    update = update_slice.operands[1]
    frame.k.memcpy(_block(frame, update_slice, frame.array(update_slice)), frame.array(update), update.shape.bytes)


def reads_only_registers(instruction: Instruction) -> bool:
    """Whether what is moved without a kernel has all its scalars from registers."""
    if instruction.opcode == "fusion":
        return update_of_element(instruction) is not None
    moves_block = instruction.opcode in ("dynamic-slice", "dynamic-update-slice") and is_block_copy(instruction)
    return (moves_block and instruction.shape.rank > 0) or is_view(instruction)


def load_element(frame: Frame, slice: Instruction) -> None:
    """Copies an element out of the operand; what takes it for a scalar has it in a register at once."""
    place = _block(frame, slice, frame.array(slice.operands[0]))
    frame.k.memcpy(frame.array(slice), place, slice.shape.bytes)
    names = [user for user in slice.users if user.shape.is_scalar and is_renaming(user)]
    scalars = [name for name in names if name.shape.type is slice.shape.type]
    if scalars:
        element = Array(place, Shape.scalar(slice.shape.type), read_only=False).load(Indexing(frame.k, 1), SCALAR)
        for scalar in scalars:
            frame.define(scalar, 0, element)


class ElementUpdate(NamedTuple):
    """A dynamic-update-slice of one element, in terms of the operands of the fusion around it."""

    root: Instruction
    target: Instruction
    element: Instruction
    starts: tuple[Instruction, ...]


def update_of_element(fusion: Instruction) -> ElementUpdate | None:
    """What a fusion stores, if that is a scalar, written over an element of an array."""
    computation = fusion.called[0]
    root = computation.root
    if root.opcode != "dynamic-update-slice" or root.operands[1].shape.size != 1 or not root.shape.rank:
        return None
    update = root.operands[1]
    while update.opcode in ("broadcast", "reshape", "bitcast") and update.shape.type is root.shape.type:
        update = update.operands[0]
    sources = [root.operands[0], update, *root.operands[2:]]
    if not all(source.opcode == "parameter" for source in sources) or not update.shape.is_scalar:
        return None
    if not (root.shape.is_static and is_row_major(root) and is_row_major(root.operands[0])):
        return None
    target, element, *starts = (fusion.operands[computation.parameters.index(source)] for source in sources)
    return ElementUpdate(root, target, element, tuple(starts))


def store_element(frame: Frame, fusion: Instruction, update: ElementUpdate) -> None:
    """Stores it into the array, which is where the result is."""
    whole, part = fusion.shape, update.root.operands[1].shape
    place = _place(frame, frame.array(fusion), whole, part, update.starts)
    array = Array(place, Shape.scalar(whole.type), read_only=False)
    array.store(Indexing(frame.k, 1), SCALAR, frame.scalar(update.element))


def _operation(instruction: Instruction) -> tuple[Shape, Shape, Sequence[Instruction]]:
    """The whole array, the part of it, and where that begins."""
    operand, *others = instruction.operands
    if instruction.opcode == "dynamic-slice":
        return operand.shape, instruction.shape, others
    return operand.shape, others[0].shape, others[1:]


def _block(frame: Frame, instruction: Instruction, array: Value) -> Value:
    """Where in `array` the part begins."""
    whole, part, starts = _operation(instruction)
    return _place(frame, array, whole, part, starts)


def _place(frame: Frame, array: Value, whole: Shape, part: Shape, starts: Sequence[Instruction]) -> Value:
    """Where a part of an array begins whose starts are scalars."""
    k = frame.k
    for start, size, taken, stride in zip(starts, whole.dims, part.dims, whole.strides(), strict=True):
        if size != taken:
            scalar = frame.scalar(start)
            assert isinstance(scalar, Value)
            place = clamped_start(k, scalar, start.shape.type, size - taken)
            array = k.gep(array, place, stride * whole.type.bytes)
    return array
