"""What a function knows of the ranges of the values in it, for operations that are less work there.

It is the values that are remembered, by their names in the text, and not instructions: what a kernel reads from memory
may be anything, since kernels serve all instructions that have the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.ir_types import Range
from xlapy.codegen.registers import Element, Pair, is_rounded
from xlapy.hlo.element_types import BF16
from xlapy.hlo.graph import Instruction

_NEVER_NEGATIVE = frozenset({"abs", "exponential", "logistic"})
_SUMS = frozenset({"add", "subtract"})
_LEAST_TERM = 2.0**-64
_LEAST_SCALE = 2.0**-32
"""Times a sum with the least term, which is a multiple of its unit or near to it, this is far from subnormal."""


def note_range(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element], result: Element) -> None:
    """Remembers what an operation tells of its result."""
    if isinstance(result, Pair):
        return
    known = _range_of(k, instruction, operands)
    if known is not Range.ANY:
        k.ranges[result.text] = known


def _range_of(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element]) -> Range:
    opcode = instruction.opcode
    if opcode in _NEVER_NEGATIVE:
        is_small = opcode == "logistic" or (opcode == "exponential" and _is(k, operands[0], Range.NEVER_POSITIVE))
        return Range.NEVER_NEGATIVE | Range.AT_MOST_ONE if is_small else Range.NEVER_NEGATIVE
    if opcode == "negate" and _is(k, operands[0], Range.NEVER_NEGATIVE):
        return Range.NEVER_POSITIVE
    if opcode in _SUMS and instruction.shape.type is BF16:
        numbers = [abs(x.constant) for x in operands if not isinstance(x, Pair) and x.constant is not None]
        if any(number >= _LEAST_TERM for number in numbers) and _all_rounded(k, operands):
            return Range.NEVER_TINY
    return Range.ANY


def _is(k: KernelBuilder, x: Element, wanted: Range) -> bool:
    return not isinstance(x, Pair) and wanted in k.ranges.get(x.text, Range.ANY)


def is_fraction(k: KernelBuilder, x: Value) -> bool:
    """Whether `x` is known to lie between 0 and 1 wherever it is a number."""
    return _is(k, x, Range.NEVER_NEGATIVE | Range.AT_MOST_ONE)


def is_exactly_scaled(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element]) -> bool:
    """Whether the result is a product of a bf16 and a power of two that needs no rounding, because only the exponent
    changes: that of bf16 has the range of f32, but what gets subnormal may lose bits."""
    if instruction.opcode != "multiply" or instruction.shape.type is not BF16 or not _all_rounded(k, operands):
        return False
    x, scale = operands if isinstance(operands[1], Value) and operands[1].constant is not None else operands[::-1]
    if isinstance(x, Pair) or isinstance(scale, Pair) or scale.constant is None:
        return False
    least = _LEAST_SCALE if _is(k, x, Range.NEVER_TINY) else 1.0
    return abs(scale.constant) >= least and abs(math.frexp(scale.constant)[0]) == 0.5


def _all_rounded(k: KernelBuilder, operands: Sequence[Element]) -> bool:
    return all(not isinstance(x, Pair) and (x.constant is not None or is_rounded(k, x, BF16)) for x in operands)
