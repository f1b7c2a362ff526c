"""The cost of computing and of moving elements, in units of one cheap vector operation on one element.

The numbers are ratios seen on AVX2 machines: an add is 1, a transcendental function by polynomial about 20, a
division or a square root 5, four bytes to or from memory 2. What starting one more kernel costs counts too.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_kernel_constant
from xlapy.hlo.ops import Trait

KERNEL_START = 10_000.0
COPIED_CODE = 50.0  # an instruction in one more kernel: compiled again, and paid for once per program
PER_BYTE = 0.5
FAR_BYTES = 1 << 20  # of an array that hardly is in a near cache when it is read
FAR_PER_BYTE = 3 * PER_BYTE  # more: its lines are fetched before they are written to, written back, and fetched again
CHEAP = 1.0
DIVISION = 5.0
DELINEARIZATION = 3.0  # indices recovered from a linear one, by multiplication with constants
TRANSCENDENTAL = 20.0
ITERATIVE = 400.0  # series and continued fractions of special functions

OPERATION_COSTS: dict[str, float] = {
    **dict.fromkeys(("divide", "remainder", "sqrt", "rsqrt", "cbrt"), DIVISION),
    **dict.fromkeys(("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic"), TRANSCENDENTAL),
    **dict.fromkeys(("sine", "cosine", "tan", "sinh", "cosh", "tanh", "erf", "power"), TRANSCENDENTAL),
    **dict.fromkeys(("erfc", "erf-inv", "bessel-i0e", "bessel-i1e"), TRANSCENDENTAL),
    **dict.fromkeys(("lgamma", "digamma", "zeta", "polygamma", "regularized-incomplete-beta"), ITERATIVE),
    **dict.fromkeys(("igamma", "igammac", "igamma-grad-a", "random-gamma-grad"), ITERATIVE),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2"), TRANSCENDENTAL),
}


def operation_cost(instruction: Instruction) -> float:
    """What one element of the result costs, its operands given."""
    if instruction.opcode == "map":
        return sum(operation_cost(inner) for inner in instruction.called[0])
    if instruction.opcode == "reshape":
        return 0.0 if _keeps_dimensions_apart(instruction) else DELINEARIZATION
    is_free = Trait.INDEX_MAP in instruction.spec.traits or Trait.STRUCTURE in instruction.spec.traits
    if is_free or instruction.opcode == "bitcast-convert":
        return 0.0
    return OPERATION_COSTS.get(instruction.opcode, CHEAP)


def _keeps_dimensions_apart(reshape: Instruction) -> bool:
    """Each dimension of the operand is one dimension of the result or several: indices are found without division."""
    if not reshape.shape.size:
        return True
    wanted = [size for size in reshape.operands[0].shape.dims if size != 1]
    for size in reshape.shape.dims:
        if size == 1:
            continue
        while wanted and wanted[0] == 1:
            wanted.pop(0)
        if not wanted or wanted[0] % size:
            return False
        wanted[0] //= size
    return True


def memory_bytes(instruction: Instruction) -> int:
    """Bytes that must come from memory to know the whole value: replicated ones count once, generated ones not."""
    if not instruction.shape.is_array or instruction.shape.is_scalar or is_kernel_constant(instruction):
        return 0
    if instruction.opcode == "iota":
        return 0
    if instruction.opcode == "broadcast":
        return memory_bytes(instruction.operands[0]) if instruction.operands[0].opcode != "broadcast" else 0
    return instruction.shape.bytes


@dataclass(frozen=True, slots=True)
class Use:
    """A kernel that needs an instruction: how many of its elements, and what the kernel reads anyway.

    `can_store` says that the kernel could compute each element once and store it as one more result. `common_bytes` are
    those of operands that several of the elements need: a kernel loads them once."""

    evaluations: int
    inputs: Set[Instruction]
    can_store: bool
    common_bytes: int = 0


def fused_cost(instruction: Instruction, uses: Sequence[Use]) -> float:
    """What it costs to compute the instruction in each of the kernels that use it."""
    copied = COPIED_CODE * (len(uses) - 1) if operation_cost(instruction) else 0.0
    return copied + sum(_computed(instruction, use) for use in uses)


def stored_cost(instruction: Instruction, uses: Sequence[Use]) -> float:
    """What it costs to compute every element once, store it, and read it wherever it is used.

    `uses` are in the order in which the kernels run. The first one can keep the value while it stores it for the
    others; no other can, since it may wait for what the first one makes. Else one more kernel is needed."""
    shape = instruction.shape
    first, *others = uses
    if first.can_store and others:
        once = _computed(instruction, first)
    else:
        once, others = KERNEL_START + _computed(instruction, Use(shape.size, frozenset(), False)), [*uses]
    read = max(PER_BYTE * shape.type.bytes, CHEAP)  # a load is an operation, however few bytes it brings
    per_byte = PER_BYTE + (FAR_PER_BYTE if shape.bytes > FAR_BYTES else 0)
    return once + per_byte * shape.bytes + read * sum(use.evaluations for use in others)


def _computed(instruction: Instruction, use: Use) -> float:
    """The operations, and the reads of operands that the kernel would not read without them."""
    per_element = operation_cost(instruction) + PER_BYTE * _bytes_per_element(instruction, use.inputs)
    return use.evaluations * per_element - PER_BYTE * use.common_bytes


def _bytes_per_element(instruction: Instruction, known: Set[Instruction]) -> float:
    """Bytes that are read for one element of the result, over all operands that are arrays in memory."""
    read = [
        operand for operand in dict.fromkeys(instruction.operands) if memory_bytes(operand) and operand not in known
    ]
    whole = sum(memory_bytes(operand) for operand in read) / max(instruction.shape.size, 1)
    return min(whole, sum(operand.shape.type.bytes for operand in read))
