"""What is known of the range of values, for operations that are less work there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.registers import Element, Pair, is_rounded
from xlapy.hlo.element_types import BF16
from xlapy.hlo.graph import Instruction

_FRACTIONS = frozenset({"logistic"})
_NEVER_NEGATIVE = frozenset({"abs", "exponential", "logistic"})
"""Of real numbers."""


def is_fraction(x: Instruction) -> bool:
    """Whether the real `x` lies between 0 and 1 wherever it is a number."""
    return x.opcode in _FRACTIONS or (x.opcode == "exponential" and _is_never_positive(x.operands[0]))


def _is_never_positive(x: Instruction) -> bool:
    return x.opcode == "negate" and not x.shape.type.is_complex and x.operands[0].opcode in _NEVER_NEGATIVE


_SUMS = frozenset({"add", "subtract"})
_LEAST_TERM = 2.0**-64
_LEAST_SCALE = 2.0**-32
"""Times a sum with the least term, which is a multiple of its unit or near to it, this is far from subnormal."""


def note_range(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element], result: Element) -> None:
    """Remembers of bf16 what `is_exactly_scaled` asks: sums with a constant that is not tiny are zero, or not tiny."""
    if instruction.opcode in _SUMS and instruction.shape.type is BF16 and not isinstance(result, Pair):
        numbers = [abs(x.constant) for x in operands if not isinstance(x, Pair) and x.constant is not None]
        if any(number >= _LEAST_TERM for number in numbers) and _all_rounded(k, operands):
            k.never_tiny.add(result.text)


def is_exactly_scaled(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element]) -> bool:
    """Whether the result is a product of a bf16 and a power of two that needs no rounding, because only the exponent
    changes: that of bf16 has the range of f32, but what gets subnormal may lose bits."""
    if instruction.opcode != "multiply" or instruction.shape.type is not BF16 or not _all_rounded(k, operands):
        return False
    x, scale = operands if isinstance(operands[1], Value) and operands[1].constant is not None else operands[::-1]
    if isinstance(x, Pair) or isinstance(scale, Pair) or scale.constant is None:
        return False
    least = _LEAST_SCALE if x.text in k.never_tiny else 1.0
    return abs(scale.constant) >= least and abs(math.frexp(scale.constant)[0]) == 0.5


def _all_rounded(k: KernelBuilder, operands: Sequence[Element]) -> bool:
    return all(not isinstance(x, Pair) and (x.constant is not None or is_rounded(k, x, BF16)) for x in operands)
