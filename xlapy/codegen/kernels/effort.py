"""How hard LLVM should try.

Emitters write what they mean: shared, hoisted, vectorized. Behind instruction selection LLVM still looks for better
addresses, constants to take out of loops, an order of instructions, in some eighty passes that take as long as all the
rest. Kernels in which there is nothing to find, or too little to do for it to matter, go without (`Kernel.is_light`).
"""

from __future__ import annotations

from collections.abc import Iterator

from xlapy.hlo import element_types as et
from xlapy.hlo.cost import ARITHMETIC, arithmetic_cost
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape

LIGHT_WORK = 1 << 17  # operations that take a microsecond or two, of which the passes would save a tenth
FUNCTION_WORK = 20  # a transcendental function is about so many operations

WITHOUT_WORK = frozenset({"parameter", "constant", "tuple", "iota", "dynamic-slice", "gather"})
PLAIN_MOVES = frozenset({"parameter", "constant", "tuple", "broadcast", "reshape", "bitcast", "copy", "slice"})
PLAIN_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "reduce", "concatenate"})
"""Ops that are one instruction for each vector, or none: selections, masks and conversions bring constants along, and
what turns vectors round brings orders of lanes. Products are summed in place only by passes."""

PLAIN_TYPES = frozenset({et.F32, et.F64})
WIDE_TYPES = frozenset({et.F32, et.F64, et.S32, et.U32, et.S64, et.U64, et.PRED})
"""Types that instructions have as they are. LLVM 22 fails on what widens and narrows others if it does not optimize."""

LONG_ROW = 128  # elements behind which it does not matter how the place of a row is found


def is_plain(instruction: Instruction) -> bool:
    """Whether LLVM's passes find nothing in the kernel of an instruction, measured on loops that a cache can feed."""
    return all(
        (inside.opcode in PLAIN_MOVES or inside.opcode in PLAIN_ARITHMETIC)
        and all(leaf.type in PLAIN_TYPES and _is_long(leaf) for leaf in inside.shape.leaves())
        for inside in _all_inside(instruction)
    )


def is_small(instruction: Instruction) -> bool:
    """Whether one run of the kernel takes so little that a better one would not be noticed."""
    insides = list(_inside(instruction))
    if any(region_functions(inside) or not _is_counted(inside) for inside in insides):
        return False
    if any(leaf.type not in WIDE_TYPES for inside in _all_inside(instruction) for leaf in inside.shape.leaves()):
        return False
    return sum(map(_work, insides)) <= LIGHT_WORK


def _is_long(shape: Shape) -> bool:
    """An array that is one row, or whose rows are long."""
    return shape.rank < 2 or shape.dims[-1] >= LONG_ROW


def _inside(instruction: Instruction) -> Iterator[Instruction]:
    """What a kernel computes, one instruction after the other."""
    if instruction.opcode == "fusion":
        yield from instruction.called[0]
    else:
        yield instruction


def _all_inside(instruction: Instruction) -> Iterator[Instruction]:
    """The same, with the regions of folds."""
    for inside in _inside(instruction):
        yield inside
        for region in inside.called:
            yield from region


def _is_counted(instruction: Instruction) -> bool:
    """Whether it is known how much there is to do."""
    traits = instruction.spec.traits
    is_known = Trait.ELEMENTWISE in traits or Trait.INDEX_MAP in traits
    return is_known or instruction.opcode in WITHOUT_WORK or instruction.opcode in ARITHMETIC


def _work(instruction: Instruction) -> float:
    """Operations, of which to move an element is one."""
    cost = arithmetic_cost(instruction)
    moved = sum(leaf.size for leaf in instruction.shape.leaves() if leaf.is_array)
    return moved + cost.flops + FUNCTION_WORK * cost.transcendentals
