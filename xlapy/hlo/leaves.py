"""Leaves: which instruction really produces an array inside a tuple, or behind a no-op.

A shape's leaves are numbered depth first. `origin_of_leaf` follows tuples, get-tuple-element and ops that only rename
memory to the instruction whose buffer the leaf is.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape

Leaf = tuple[Instruction, int]
"""An instruction and the number of a leaf of its shape."""

SAME_VALUE = frozenset({"opt-barrier", "add-dependency"})
"""Ops whose result is their first operand as it is: they only say what comes before what."""

_MAY_RENAME = frozenset({"bitcast", "bitcast-convert", "reshape", "transpose"})

_NAMES = SAME_VALUE | {"tuple", "get-tuple-element"}


def leaf_count(shape: Shape) -> int:
    return len(shape.leaves())


def leaf_offset(shape: Shape, index: int) -> int:
    """The number of the first leaf of element `index` of a tuple shape."""
    if shape.is_flat:
        return index
    return sum(leaf_count(part) for part in shape.parts[:index])


def leaf_at(shape: Shape, index: Sequence[int]) -> int:
    """The number of the first leaf of the part at an index into nested tuples."""
    number = 0
    for position in index:
        number += leaf_offset(shape, position)
        shape = shape.parts[position]
    return number


def aliased_leaves(instruction: Instruction) -> list[tuple[int, int, int]]:
    """(operand, leaf of it, leaf of the result) for each alias of a custom call: memory that the target changes."""
    return [
        (
            alias.operand,
            leaf_at(instruction.operands[alias.operand].shape, alias.operand_index),
            leaf_at(instruction.shape, alias.output_index),
        )
        for alias in instruction.attributes["output_to_operand_aliasing"]
    ]


def array_leaves(instruction: Instruction) -> list[Leaf]:
    """The leaves that are arrays, not tokens: parameters and results of a program are numbered so."""
    return [(instruction, number) for number, leaf in enumerate(instruction.shape.leaves()) if leaf.is_array]


def leaf_shape(shape: Shape, leaf: int) -> Shape:
    """The shape of a leaf; most shapes are their own only leaf."""
    return shape.leaves()[leaf]


def result_leaves(start: Instruction) -> slice:
    """Which leaves of a start op are results: all, or those of the second element where it returns operands too.

    The leaves before them are the operands, those behind are contexts."""
    if "async_shape" not in start.spec.options:
        return slice(0, leaf_count(start.shape))
    first = leaf_offset(start.shape, 1)
    return slice(first, first + leaf_count(start.shape.parts[1]))


def is_name(instruction: Instruction) -> bool:
    """Another name of values: it takes no time, and needs nothing at a time of its own."""
    return instruction.opcode in _NAMES or is_renaming(instruction)


def bytes_leaving_with(instruction: Instruction) -> int:
    """The bytes of all results of a computation, if nobody reads those of the instruction before it ends; else 0."""
    computation: Computation = instruction.parent
    root = computation.root
    values = [instruction]
    met = {instruction}
    for value in values:
        if (value is not root and not value.users) or not all(map(is_name, value.users)):
            return 0
        following = dict.fromkeys(user for user in value.users if user not in met)  # paths part and meet again
        values.extend(following)
        met.update(following)
    return computation.remembered(bytes_leaving_with, lambda: root.shape.bytes)


def is_renaming(instruction: Instruction) -> bool:
    """The result is the operand's memory under another shape: a bitcast, a reshape between row-major arrays, or a
    transpose that layouts undo.

    Not so a bitcast-convert of a scalar: it lives in a register, which has a type."""
    if instruction.opcode not in _MAY_RENAME:
        return False
    if instruction.opcode == "bitcast":
        return True
    if instruction.opcode == "transpose":
        return moves_nothing(instruction)
    if instruction.opcode == "bitcast-convert":
        types = (instruction.shape.type, instruction.operands[0].shape.type)
        if types[0] is not types[1] and (instruction.shape.is_scalar or any(t.bits < 8 for t in types)):
            return False
    layouts = (instruction.shape.layout, instruction.operands[0].shape.layout)
    return all(layout is None or layout.is_row_major for layout in layouts)


def moves_nothing(transpose: Instruction) -> bool:
    """Every element of the result of a transpose is where it was: the layouts are each other's transposes."""
    before, after = transpose.operands[0].shape, transpose.shape
    if all(shape.layout is None or shape.layout.is_row_major for shape in (before, after)):
        return False
    permutation = transpose.attributes["permutation"]
    in_memory = [permutation[dim] for dim in after.minor_to_major if after.dims[dim] != 1]
    return in_memory == [dim for dim in before.minor_to_major if before.dims[dim] != 1]


def origin_of_leaf(instruction: Instruction, leaf: int) -> Leaf:
    """The instruction, and the leaf of its shape, whose memory `leaf` of `instruction` is."""
    while True:
        if instruction.opcode == "tuple":
            if instruction.shape.is_flat:
                instruction, leaf = instruction.operands[leaf], 0
                continue
            for operand in instruction.operands:
                count = leaf_count(operand.shape)
                if leaf < count:
                    instruction = operand
                    break
                leaf -= count
        elif instruction.opcode == "get-tuple-element":
            operand = instruction.operands[0]
            leaf += leaf_offset(operand.shape, instruction.attributes["index"])
            instruction = operand
        elif instruction.opcode in SAME_VALUE or is_renaming(instruction):
            instruction = instruction.operands[0]
        else:
            return instruction, leaf
