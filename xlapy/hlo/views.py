"""Views: slices at run-time places that are not copied, because products read them where they lie.

    body { s = (f32[100,16,128], ...) parameter(0)  x = f32[100,16,128] get-tuple-element(s), index=0
           v = f32[1,16,128] dynamic-slice(x, i, 0, 0)  r = f32[16,128] reshape(v)
           p = f32[16,64] dot(r, w)  ...  ROOT t = tuple(x, ...) }

A view has memory for an address. What it is a part of is there as long as the view is: it is handed on by the body of
a loop as it came, so that nobody writes to it, and no copy is made for that.

A slice at a place that is known, a *part*, needs no address: it lies so many bytes behind where the whole begins. So
any kernel may read it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import fused_product, fusion_roots, is_row_major
from xlapy.hlo.leaves import Leaf, is_name, is_renaming, origin_of_leaf
from xlapy.hlo.loop_counter import state_index
from xlapy.hlo.matrix_products import library_product
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape

ADDRESS_BYTES = 8

MOST_KEPT = 4
"""Times as large as a part: what is kept for it in memory that others could have."""

_WRITES_OVER = frozenset({"dynamic-update-slice", "scatter", "custom-call"})
_RUNS_OTHERS = (Trait.CONTROL, Trait.RUNTIME, Trait.EFFECT, Trait.START, Trait.DONE)


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


def is_part(instruction: Instruction) -> bool:
    """Whether this is a slice that kernels read where it lies in its operand, so that nothing is copied."""
    if instruction.opcode != "slice" or instruction.is_root or not may_be_part(instruction, instruction.operands[0]):
        return False
    readers = [*_readers(instruction)]
    return bool(readers) and all(_is_kernel(user) for user, _ in readers)


def may_be_part(instruction: Instruction, whole: Instruction) -> bool:
    """Whether kernels could read a slice where it lies in `whole`, which is its operand, or stands for that outside of
    a fusion.

    Nobody else is to need the memory of `whole` as long as they do: there would be a copy of all of it instead."""
    if instruction.shape.size <= 1 or whole.shape.type.bits < 8:
        return False
    if any(dim.stride != 1 for dim in instruction.attributes["dimensions"]):
        return False
    if not is_block(whole.shape, instruction.shape) or not all(map(is_row_major, (whole, instruction))):
        return False
    return _stays(whole, instruction.shape.bytes)


def is_name_or_part(instruction: Instruction) -> bool:
    """It takes no time: it says only where an array lies."""
    return is_name(instruction) or is_part(instruction)


def array_of(value: Instruction) -> Leaf:
    """Whose memory an array is, or is a part of."""
    origin, leaf = origin_of_leaf(value, 0)
    while is_part(origin):
        origin, leaf = origin_of_leaf(origin.operands[0], 0)
    return origin, leaf


def start_of_part(part: Instruction) -> int:
    """How many bytes behind the beginning of its operand a part begins."""
    whole = part.operands[0].shape
    dimensions: tuple[SliceDimension, ...] = part.attributes["dimensions"]
    return whole.type.bytes * sum(dim.start * stride for dim, stride in zip(dimensions, whole.strides(), strict=True))


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


def _is_kernel(user: Instruction) -> bool:
    """Kernels read arrays where the plan says that they are. Structure, others' computations and names, of a result
    above all, pass them on."""
    traits = user.spec.traits
    return (
        not is_renaming(user)
        and Trait.STRUCTURE not in traits
        and user.opcode != "custom-call"
        and not any(map(traits.__contains__, _RUNS_OTHERS))
    )


def _stays(whole: Instruction, taken: int) -> bool:
    """Nobody writes over an array, or over a part of it, while somebody may still want `taken` bytes of it."""
    while is_renaming(whole):
        whole = whole.operands[0]
    if _is_state(whole) and not _is_handed_on(whole):
        return False
    is_given = origin_of_leaf(whole, 0)[0].opcode in ("parameter", "constant")
    return (is_given or whole.shape.bytes <= MOST_KEPT * taken) and not _is_written_over(whole)


def _is_written_over(whole: Instruction) -> bool:
    """Somebody may change a part of an array, which may be read by thousands: they are asked once."""
    body: Computation = whole.parent
    asked = _is_written_over, whole
    return body.remembered(asked, lambda: any(_may_write_over(user) for user, _ in _readers(whole)))


def _may_write_over(user: Instruction) -> bool:
    """It changes a part of an array, or hands it to others that may."""
    roots = fusion_roots(user.called[0]) if user.opcode == "fusion" else (user,)
    if any(root.opcode in _WRITES_OVER for root in roots):
        return True
    return not _is_kernel(user) and not user.is_root


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
    return index is not None and _is_state(value) and state_index(body.root.operands[index], body) == index


def _is_state(value: Instruction) -> bool:
    """An element of the state of a loop, in its body."""
    body: Computation = value.parent
    if state_index(value, body) is None:
        return False
    return body.root.opcode == "tuple" and bool(body.root.shape.matches(body.parameters[0].shape))
