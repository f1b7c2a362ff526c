"""Views: slices at run-time places that are not copied, because products read them where they lie.

    body { s = (f32[100,16,128], ...) parameter(0)  x = f32[100,16,128] get-tuple-element(s), index=0
           v = f32[1,16,128] dynamic-slice(x, i, 0, 0)  r = f32[16,128] reshape(v)
           p = f32[16,64] dot(r, w)  ...  ROOT t = tuple(x, ...) }

A view has memory for an address. What it is a part of is there as long as the view is: it is handed on by the body of
a loop as it came, so that nobody writes to it, and no copy is made for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import fused_product, is_row_major
from xlapy.hlo.leaves import is_renaming, origin_of_leaf
from xlapy.hlo.loop_counter import state_index
from xlapy.hlo.matrix_products import library_product
from xlapy.hlo.shape import Shape

ADDRESS_BYTES = 8


def is_view(instruction: Instruction) -> bool:
    """Whether this is a slice that only products read, which can do so in another array."""
    if instruction.opcode != "dynamic-slice" or instruction.is_root or instruction.shape.size <= 1:
        return False
    whole = instruction.operands[0]
    if not is_block(whole.shape, instruction.shape) or not all(map(is_row_major, (whole, instruction))):
        return False
    readers = [*_readers(instruction)]
    return bool(readers) and all(_multiplies(*reader) for reader in readers) and _is_handed_on(whole)


def view_of(value: Instruction) -> Instruction | None:
    """The view that `value` is, maybe under another shape."""
    origin, _ = origin_of_leaf(value, 0)
    return origin if is_view(origin) else None


def is_block(whole: Shape, part: Shape) -> bool:
    """Whether a part of an array, row by row, is one block of memory wherever it begins."""
    if not (whole.is_static and part.is_static):
        return False
    cut = [dim for dim, (size, taken) in enumerate(zip(whole.dims, part.dims, strict=True)) if size != taken]
    return all(part.dims[dim] == 1 for dim in range(max(cut, default=0)))


def _readers(value: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    """Who reads a value, and under which name."""
    for user in value.users:
        if is_renaming(user) and not user.is_root:
            yield from _readers(user)
        else:
            yield user, value


def _multiplies(user: Instruction, value: Instruction) -> bool:
    """A product, whose operand `value` is, and nothing else."""
    if user.opcode == "dot":
        return True
    product = fused_product(user) if user.opcode == "fusion" else None
    if product is None or product.opcode != "dot" or library_product(product) is None:
        return False
    inside = [
        parameter
        for parameter, operand in zip(user.called[0].parameters, user.operands, strict=True)
        if operand is value
    ]
    return all(parameter.sole_user is product for parameter in inside)


def _is_handed_on(value: Instruction) -> bool:
    """An element of the state that the body of a loop hands on as it is."""
    body: Computation = value.parent
    index = state_index(value, body)
    is_state = index is not None and body.root.opcode == "tuple" and body.root.shape.matches(body.parameters[0].shape)
    return is_state and index is not None and state_index(body.root.operands[index], body) == index
