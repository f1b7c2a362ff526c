"""How hard LLVM should try.

Emitters write what they mean: shared, hoisted, vectorized. Behind instruction selection LLVM still looks for better
addresses, constants to take out of loops, an order of instructions, in some eighty passes that take as long as all the
rest. Kernels in which there is nothing to find, in which too little is to do for it to matter, or which wait for memory
anyway, go without (`Kernel.is_light`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from xlapy.codegen.kernels.functions import ROOMY_REGISTERS, ROOTS
from xlapy.codegen.kernels.loop import FUNCTION_WORK, STREAMED_BYTES
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.cost import TRANSCENDENTAL, arithmetic_cost, traffic
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import region_functions
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape

LIGHT_WORK = 1 << 16  # operations that take less than a microsecond, of which the passes would save a tenth
LEAST_PARTS = 24  # of a program's work: of less than one of so many, what the passes save is no hundredth of the whole
LEAST_PARTS_MOVED = 64  # for each element that the kernel moves: memory takes several times as long as an operation
PRODUCTS = frozenset({"dot", "convolution"})
FLOPS_OF_PRODUCT = 2  # for each number that is multiplied and added
FLOPS_OF_STEP = 4  # of products, at their best, in the time of another operation: most take longer
LEAST_PARTS_BEHIND = 64  # the same for what is behind products, which without the passes takes up to twice as long

COUNTED = frozenset({"parameter", "constant", "tuple", "iota", "reduce", "reduce-window"})
"""Ops whose work is known, and whose kernels have few loops, beside those of every element."""

PLAIN_MOVES = frozenset({"parameter", "constant", "tuple", "broadcast", "reshape", "bitcast", "copy", "slice"})
PLAIN_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "reduce", "concatenate"})
"""Ops that are one instruction for each vector, or none: selections, masks and conversions bring constants along, and
what turns vectors round brings orders of lanes. Products are summed in place only by passes."""

PLAIN_TYPES = frozenset({et.F32, et.F64})
WIDE_TYPES = frozenset({et.F32, et.F64, et.S32, et.U32, et.S64, et.U64, et.PRED})
"""Types that instructions have as they are. LLVM 22 fails on what widens and narrows others if it does not optimize."""

MOST_WORK_PER_BYTE = 9  # operations that hide behind memory: a function of each element that is read, and some more

BROKEN_UP = frozenset({"sine", "cosine"})
"""Functions that call a library where a lane needs it. The loop around them is several blocks, of which LLVM looks at
one at a time, and it takes more constants out of the loop than there are registers. (Powers and tangents are such too,
but come out up to a tenth slower if nothing puts their divisions and products in a better order.)"""
MOSTLY_BROKEN = 0.75  # of the functions: sin(x) exp(y) + cos(x) is a tenth slower, the great circle's distance is not

STAYING = frozenset({"parameter", "constant", "tuple", "broadcast"})

NO_WORK = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "reshape", "after-all"})
BYTES_PER_STEP = 64 * 1024
"""What the kernels of a loop move at least, for each instruction of it: a microsecond, of which code that LLVM did not
work on takes no hundredth."""

MANY_CALLS = 24
"""Of kernels, in a step of a loop: LLVM has no registers for what they are given, and takes a millisecond for each to
find that out. Loops with 24 to 100 of them that compute 30 elements are as fast without."""
MOST_SCALARS = 4  # what part of so many instructions is computed by the loop itself: an inverse

LONG_ROW = 1024  # elements behind which it does not matter what is done once in a row
LONG_FOLD = 128  # the same for sums, which read a row and do not write another one


def is_plain(instruction: Instruction) -> bool:
    """Whether LLVM's passes find nothing in the kernel of an instruction, measured on loops that a cache can feed."""
    insides = list(_all_inside(instruction))
    if any(inside.opcode not in PLAIN_MOVES and inside.opcode not in PLAIN_ARITHMETIC for inside in insides):
        return False
    if instruction.opcode == "concatenate":
        return _joins_long_stretches(instruction)
    least = LONG_FOLD if any(inside.opcode == "reduce" for inside in insides) else LONG_ROW
    return _has_long_rows(instruction, insides, PLAIN_TYPES, least)


def _joins_long_stretches(concatenate: Instruction) -> bool:
    """Whether what is copied in one go is as long as a long row, of however many rows."""
    first = concatenate.attributes["dimension"]
    shapes = [concatenate.shape, *(operand.shape for operand in concatenate.operands)]
    return all(
        shape.type in PLAIN_TYPES
        and (shape.layout is None or shape.layout.is_row_major)
        and math.prod(shape.dims[first:]) >= LONG_ROW
        for shape in shapes
    )


def is_broken_up(instruction: Instruction) -> bool:
    """Whether a loop mostly computes functions that break it up, so that LLVM's passes make it no faster."""
    insides = list(_inside(instruction))
    if any(Trait.ELEMENTWISE not in i.spec.traits and i.opcode not in PLAIN_MOVES for i in insides):
        return False
    functions = [inside.opcode for inside in insides if inside.opcode in TRANSCENDENTAL - ROOTS]
    broken = sum(function in BROKEN_UP for function in functions)
    mostly = bool(functions) and broken >= MOSTLY_BROKEN * len(functions)
    return mostly and _has_long_rows(instruction, insides, WIDE_TYPES, LONG_ROW)


def _has_long_rows(
    instruction: Instruction, insides: Sequence[Instruction], types: Set[ElementType], least: int
) -> bool:
    """Whether all arrays are of these types, and what is done once in a row does not matter."""
    arrays = [leaf for value in (*instruction.operands, *insides) for leaf in value.shape.leaves()]
    is_linear = len({array.dims for array in arrays if array.rank}) == 1
    return all(array.type in types and (is_linear or array.rank < 2 or array.dims[-1] >= least) for array in arrays)


def is_small(instruction: Instruction, target: Target, whole: Callable[[], float] = lambda: 0) -> bool:
    """Whether one run of the kernel takes so little that a better one would not be noticed: a fraction of a
    microsecond, or hardly a part of the `whole` work around it.

    Folds with masks must be such a part, and wait for caches too: the logarithm of a small sum of exponentials takes
    1.07 of the time, and a training step of 40 us with two folds that are small parts of it 1.02."""
    insides = list(_inside(instruction))
    if not _may_be_light(instruction):
        return False
    work = sum(map(_work, insides))
    if _has_masks(instruction) and any(map(_moves, insides)):
        return _moved_bytes(instruction) > target.l2_bytes and work <= whole() / LEAST_PARTS
    return work <= LIGHT_WORK or work <= whole() / LEAST_PARTS


def is_small_part(instruction: Instruction, whole: Callable[[], float]) -> bool:
    """Whether a kernel is so small a part of the `whole` work around it that one with less code would not be noticed
    that takes half as long again: it moves little besides."""
    moved = sum(leaf.size for value in (*instruction.operands, instruction) for leaf in _leaves(value))
    if LEAST_PARTS_MOVED * moved > whole() or not _may_be_light(instruction):
        return False
    work = sum(map(_work, _inside(instruction)))
    return work <= LIGHT_WORK or work <= whole() / LEAST_PARTS


def _may_be_light(instruction: Instruction) -> bool:
    """Whether it is known how much there is to do, and LLVM makes code of it that it does not optimize."""
    if any(region_functions(inside) or not _is_counted(inside) for inside in _inside(instruction)):
        return False
    return _survives_unoptimized(instruction)


def work_in(computation: Computation) -> float:
    """Operations at least. What computes much for each element that it moves counts as moving it, unless it is a
    product: nobody knows here how fast it is. Loops and calls do not count at all."""
    return computation.remembered(work_in, lambda: _work_in(computation))


def _work_in(computation: Computation) -> float:
    return sum(_least_work(i) for i in computation if Trait.CONTROL not in i.spec.traits)


def _least_work(instruction: Instruction) -> float:
    if Trait.RUNTIME in instruction.spec.traits or instruction.opcode in NO_WORK:
        return 0
    insides = list(_inside(instruction))
    if all(map(_is_counted, insides)):
        return sum(map(_work, insides))
    moved = sum(leaf.size for value in (*instruction.operands, instruction) for leaf in _leaves(value))
    flops = sum(arithmetic_cost(inside).flops for inside in insides if inside.opcode in PRODUCTS)
    return max(moved, flops / FLOPS_OF_STEP)


def is_small_behind(
    fusion: Instruction, product: Instruction, work: int, depth: int, whole: Callable[[], float]
) -> bool:
    """Whether what a fusion has behind a matrix product is so small a part of that, or of the `whole` work around it,
    that a better one would not be noticed: `work` is what it takes for an element, in multiplications, of which the
    product has `depth` for each."""
    insides = [inside for inside in _inside(fusion) if inside is not product]
    if any(region_functions(inside) or not _is_counted(inside) for inside in insides):
        return False
    if _has_masks(fusion) or not _survives_unoptimized(fusion):
        return False
    least = LEAST_PARTS_BEHIND * work
    return least <= depth or least * product.shape.size * FLOPS_OF_PRODUCT <= whole() * FLOPS_OF_STEP


def is_bound_by_memory(instruction: Instruction, target: Target) -> bool:
    """Whether folds wait for memory, however good their kernel is: measured on softmax, and, over columns, on means,
    variances and gradients. With 16 registers what folds columns is up to a twentieth slower; loops are up to a tenth
    slower with 32, too."""
    is_roomy = target.vector_registers >= ROOMY_REGISTERS
    if not (_is_chain(instruction) if is_roomy else _is_chain_over_rows(instruction)):
        return False
    moved = _moved_bytes(instruction)
    work = sum(map(_work, _inside(instruction)))
    return moved >= max(STREAMED_BYTES, target.l3_bytes) and work <= MOST_WORK_PER_BYTE * moved


def is_mostly_one_function(instruction: Instruction, target: Target) -> bool:
    """Whether a chain over rows takes one function of each element, beside which all is short that LLVM's passes make
    better: softmax and cross entropy are no slower without, and compile in five sixths of the time. With 16 registers
    they are up to a twenty-fifth slower."""
    if target.vector_registers < ROOMY_REGISTERS or not _is_chain_over_rows(instruction):
        return False
    functions = sum(arithmetic_cost(inside).transcendentals for inside in _inside(instruction))
    elements = max((leaf.size for value in instruction.operands for leaf in _leaves(value)), default=0)
    return elements <= functions < 2 * elements


def _is_chain_over_rows(instruction: Instruction) -> bool:
    """Whether a kernel folds rows, and nothing else."""
    return _is_chain(instruction) and all(map(_folds_rows, _reduces(instruction)))


def _is_chain(instruction: Instruction) -> bool:
    """Whether a kernel folds, and nothing else, numbers that instructions have as they are; without masks, for which
    LLVM's passes find something."""
    if not _reduces(instruction) or _has_masks(instruction) or not _survives_unoptimized(instruction):
        return False
    return not any(region_functions(inside) or not _is_counted(inside) for inside in _inside(instruction))


def _survives_unoptimized(instruction: Instruction) -> bool:
    """Whether LLVM makes code of a kernel that it does not optimize. LLVM 22 fails on what widens and narrows numbers,
    and on some orders of bytes, as masks are in memory."""
    around = (*instruction.operands, instruction)
    if any(leaf.type not in WIDE_TYPES for value in (*around, *_all_inside(instruction)) for leaf in _leaves(value)):
        return False
    moving = list(filter(_moves, _inside(instruction)))
    moved = (value for mover in moving for value in (*mover.operands, mover))
    return not moving or not any(map(_is_mask, (*around, *moved)))


def _moved_bytes(instruction: Instruction) -> int:
    """Of all that a kernel reads and writes."""
    return sum(leaf.bytes for value in (*instruction.operands, instruction) for leaf in _leaves(value))


def _has_masks(instruction: Instruction) -> bool:
    return any(map(_is_mask, _inside(instruction)))


def _is_mask(value: Instruction) -> bool:
    return any(leaf.type is et.PRED for leaf in value.shape.leaves())


def _reduces(instruction: Instruction) -> list[Instruction]:
    return [inside for inside in _inside(instruction) if inside.opcode == "reduce"]


def _folds_rows(reduce: Instruction) -> bool:
    """Neighbours in memory belong to the same fold."""
    return reduce.operands[0].shape.rank - 1 in reduce.attributes["dimensions"]


def _leaves(value: Instruction) -> list[Shape]:
    return [leaf for leaf in value.shape.leaves() if leaf.is_array]


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


def _moves(instruction: Instruction) -> bool:
    """Whether elements come from other places than they go to."""
    return Trait.ELEMENTWISE not in instruction.spec.traits and instruction.opcode not in STAYING


def _is_counted(instruction: Instruction) -> bool:
    """Whether it is known how much there is to do."""
    traits = instruction.spec.traits
    return Trait.ELEMENTWISE in traits or Trait.INDEX_MAP in traits or instruction.opcode in COUNTED


def _work(instruction: Instruction) -> float:
    """Operations, of which to move an element is one."""
    cost = arithmetic_cost(instruction)
    moved = sum(leaf.size for leaf in instruction.shape.leaves() if leaf.is_array)
    return moved + cost.flops + FUNCTION_WORK * cost.transcendentals


def is_brief(instructions: Iterable[Instruction]) -> bool:
    """Whether what a loop does in an iteration is known, and takes some microseconds at most."""
    insides = [i for instruction in instructions for i in _inside(instruction) if i.opcode not in NO_WORK]
    if any(region_functions(i) or not (_is_counted(i) or i.opcode in _BLOCKS) for i in insides):
        return False
    return sum(_updated(i) if i.opcode == "dynamic-update-slice" else _work(i) for i in insides) <= LIGHT_WORK


_BLOCKS = frozenset({"dynamic-slice", "dynamic-update-slice"})


def _updated(update_slice: Instruction) -> int:
    """Elements that are written, where the others are in place."""
    return update_slice.operands[1].shape.size


def is_heavy(loop: Instruction) -> bool:
    """Whether each iteration of a loop, and of those in it, spends its time in kernels, so that it does not matter how
    good the code is that calls these."""
    bodies = [i for called in loop.called for i in called if i.opcode not in NO_WORK]
    moved = sum(_bytes_moved(instruction) for instruction in bodies if not instruction.shape.is_scalar)
    inner = [instruction for instruction in bodies if instruction.opcode == "while"]
    if len(bodies) >= MANY_CALLS and MOST_SCALARS * sum(i.shape.is_scalar for i in bodies) <= len(bodies):
        return all(map(is_heavy, inner))
    return moved >= BYTES_PER_STEP * len(bodies) and all(map(is_heavy, inner))


def _bytes_moved(instruction: Instruction) -> int:
    """By the kernel of an instruction, if it has one."""
    if Trait.CONTROL in instruction.spec.traits or Trait.RUNTIME in instruction.spec.traits:
        return 0
    bytes_moved = traffic(instruction, in_place=True)
    return bytes_moved.read + bytes_moved.written
