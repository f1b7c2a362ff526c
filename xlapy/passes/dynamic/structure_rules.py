"""Run-time sizes and structure: element-wise ops, sizes themselves, tuples, barriers.

Element-wise ops compute padding along and ignore it; they share one rule, which is chosen by trait.
"""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.hlo.leaves import SAME_VALUE
from xlapy.passes.dynamic.padding import RULES, Padding


def elementwise(padding: Padding, instruction: Instruction) -> None:
    """Scalars have no size, and fit everything."""
    sizes = padding.least_sizes(*instruction.operands)
    padding.enter_array(instruction, padding.same(instruction), sizes)


@RULES.register("set-dimension-size")
def set_dimension_size(padding: Padding, instruction: Instruction) -> None:
    """The array stays; the size is remembered, if it is not static. What a dimension gains is zero."""
    operand, size = instruction.operands
    dim = instruction.attributes["dimension"]
    array = padding.zeroed(padding.copy(operand), {dim: padding.size(operand, dim)})
    sizes = padding.array_sizes(operand)
    if instruction.shape.is_dynamic_dim(dim):
        sizes[dim] = padding.bounded(padding.copy(size), 0, operand.shape.dims[dim])
    else:
        sizes.pop(dim, None)
    padding.enter_array(instruction, array, sizes)


@RULES.register("get-dimension-size")
def get_dimension_size(padding: Padding, instruction: Instruction) -> None:
    operand, dim = instruction.operands[0], instruction.attributes["dimension"]
    padding.enter(instruction, padding.existing(operand, dim))


@RULES.register("tuple")
def tuple_(padding: Padding, instruction: Instruction) -> None:
    sizes = {
        ((index, *path), dim): size
        for index, operand in enumerate(instruction.operands)
        for (path, dim), size in padding.sizes(operand).items()
    }
    padding.enter(instruction, padding.same(instruction), sizes)


@RULES.register("get-tuple-element")
def get_tuple_element(padding: Padding, instruction: Instruction) -> None:
    index = instruction.attributes["index"]
    sizes = {
        (path[1:], dim): size
        for (path, dim), size in padding.sizes(instruction.operands[0]).items()
        if path[0] == index
    }
    padding.enter(instruction, padding.same(instruction), sizes)


@RULES.register(*sorted(SAME_VALUE))
def same_value(padding: Padding, instruction: Instruction) -> None:
    padding.enter(instruction, padding.same(instruction), padding.sizes(instruction.operands[0]))


@RULES.register("iota")
def iota(padding: Padding, instruction: Instruction) -> None:
    """Made whole: a bounded dimension is as large as its bound."""
    padding.enter(instruction, padding.same(instruction))


@RULES.register("rng")
def rng(padding: Padding, instruction: Instruction) -> None:
    """Made whole: a bounded dimension is as large as its bound."""
    padding.enter(instruction, padding.same(instruction))


@RULES.register("rng-bit-generator")
def rng_bit_generator(padding: Padding, instruction: Instruction) -> None:
    """Made whole: a bounded dimension is as large as its bound."""
    padding.enter(instruction, padding.same(instruction))
