"""What a function knows of the ranges of the values in it, for operations that are less work there.

It is the values that are remembered, by their names in the text, and not instructions: what a kernel reads from memory
may be anything, since kernels serve all instructions that have the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.ir_types import Range
from xlapy.codegen.math.exponential import LEAST_OF_HIGH
from xlapy.codegen.registers import Element, Pair, is_rounded
from xlapy.hlo.element_types import BF16
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation

_NEVER_NEGATIVE = frozenset({"abs", "cosh", "exponential", "logistic", "sqrt"})
_SUMS = frozenset({"add", "subtract"})
_SIGNS = Range.NEVER_NEGATIVE | Range.NEVER_POSITIVE
_LEAST_TERM = 2.0**-64
_LEAST_SCALE = 2.0**-32
"""Times a sum with the least term, which is a multiple of its unit or near to it, this is far from subnormal."""


def note_range(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element], result: Element) -> None:
    """Remembers what an operation tells of its result."""
    if isinstance(result, Pair) or not instruction.shape.type.is_float:
        return
    known = _sign_of(k, instruction, operands) | _size_of(k, instruction, operands)
    if known is not Range.ANY:
        k.ranges[result.text] = k.ranges.get(result.text, Range.ANY) | known


def _sign_of(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element]) -> Range:
    """On which side of zero a result lies: zeros of both signs are on both sides."""
    if instruction.opcode in _NEVER_NEGATIVE:
        return Range.NEVER_NEGATIVE
    rule = _SIGNS_OF_RESULTS.get(instruction.opcode)
    numbers = [x for x in operands if not isinstance(x, Pair)]
    if rule is None or len(numbers) < len(operands):
        return Range.ANY
    return rule(instruction, numbers, [_known_sign(k, x) for x in numbers])


def _known_sign(k: KernelBuilder, x: Value) -> Range:
    if x.constant is None:
        return k.ranges.get(x.text, Range.ANY) & _SIGNS
    known = Range.NEVER_NEGATIVE if x.constant >= 0 else Range.ANY
    return known | Range.NEVER_POSITIVE if x.constant <= 0 else known


def _negative(sign: Range) -> Range:
    """The sign of what is negated."""
    return {Range.NEVER_NEGATIVE: Range.NEVER_POSITIVE, Range.NEVER_POSITIVE: Range.NEVER_NEGATIVE}.get(sign, sign)


def _sign_of_product(x: Range, y: Range) -> Range:
    """The sign of products and quotients."""
    if Range.ANY in (x, y):
        return Range.ANY
    if Range.NEVER_NEGATIVE in x:
        return y
    return _negative(y)


def _kept_sign(instruction: Instruction, _: Sequence[Value], signs: Sequence[Range]) -> Range:
    return signs[0] if instruction.operands[0].shape.type.is_float else Range.ANY


def _sign_of_multiply(_: Instruction, numbers: Sequence[Value], signs: Sequence[Range]) -> Range:
    is_square = numbers[0].text == numbers[1].text
    return Range.NEVER_NEGATIVE if is_square else _sign_of_product(*signs)


def _sign_of_divide(_: Instruction, numbers: Sequence[Value], signs: Sequence[Range]) -> Range:
    """Zeros have a sign, and so have quotients of them: infinities on either side."""
    return _sign_of_product(*signs) if numbers[1].constant else Range.ANY


def _sign_of_subtract(subtract: Instruction, _: Sequence[Value], signs: Sequence[Range]) -> Range:
    below = Range.NEVER_POSITIVE if _is_below_its_maximum(subtract) else Range.ANY
    return below | (signs[0] & _negative(signs[1]))


_SIGNS_OF_RESULTS: Mapping[str, Callable[[Instruction, Sequence[Value], Sequence[Range]], Range]] = MappingProxyType(
    {
        "add": lambda _, numbers, signs: signs[0] & signs[1],
        "convert": _kept_sign,
        "copy": _kept_sign,
        "divide": _sign_of_divide,
        "maximum": lambda _, numbers, signs: Range.NEVER_NEGATIVE & (signs[0] | signs[1]),
        "minimum": lambda _, numbers, signs: Range.NEVER_POSITIVE & (signs[0] | signs[1]),
        "multiply": _sign_of_multiply,
        "negate": lambda _, numbers, signs: _negative(signs[0]),
        "reduce-precision": _kept_sign,
        "subtract": _sign_of_subtract,
    }
)
"""By ops: the sign of the result of an instruction, from its operands and what is known of their signs."""


def _is_below_its_maximum(subtract: Instruction) -> bool:
    """Whether the result is what an element has less than the largest of the fold that it belongs to."""
    array, top = subtract.operands
    if top.opcode != "broadcast" or top.operands[0].opcode != "reduce":
        return False
    fold = top.operands[0]
    if fold.operands[0] is not array or len(fold.operands) != 2:
        return False
    operation = sole_operation(fold.called[0])
    kept = tuple(dim for dim in range(array.shape.rank) if dim not in fold.attributes["dimensions"])
    return operation is not None and operation.opcode == "maximum" and tuple(top.attributes["dimensions"]) == kept


def _size_of(k: KernelBuilder, instruction: Instruction, operands: Sequence[Element]) -> Range:
    """How large or small a result is."""
    opcode = instruction.opcode
    if opcode == "logistic" or (opcode == "exponential" and is_low(k, operands[0])):
        return Range.AT_MOST_ONE
    if opcode == "convert":
        source = instruction.operands[0].shape.type
        return Range.BYTE if source.is_integer and source.bits <= 8 else Range.ANY
    if opcode == "maximum":
        bounds = [x.constant for x in operands if not isinstance(x, Pair)]
        is_high = any(bound is not None and bound >= LEAST_OF_HIGH for bound in bounds)
        return Range.NEVER_FAR_BELOW if is_high else Range.ANY
    if opcode in _SUMS and instruction.shape.type is BF16:
        numbers = [abs(x.constant) for x in operands if not isinstance(x, Pair) and x.constant is not None]
        if any(number >= _LEAST_TERM for number in numbers) and _all_rounded(k, operands):
            return Range.NEVER_TINY
    return Range.ANY


def _is(k: KernelBuilder, x: Element, wanted: Range) -> bool:
    return not isinstance(x, Pair) and wanted in k.ranges.get(x.text, Range.ANY)


def is_low(k: KernelBuilder, x: Element) -> bool:
    """Whether `x` is known to be 0 at most, wherever it is a number."""
    return _is(k, x, Range.NEVER_POSITIVE)


def is_high(k: KernelBuilder, x: Element) -> bool:
    """Whether `x` is known not to be so low that e^x is subnormal, wherever it is a number."""
    return _is(k, x, Range.NEVER_FAR_BELOW)


def is_fraction(k: KernelBuilder, x: Value) -> bool:
    """Whether `x` is known to lie between 0 and 1 wherever it is a number."""
    return _is(k, x, Range.NEVER_NEGATIVE | Range.AT_MOST_ONE)


def is_byte(k: KernelBuilder, x: Element) -> bool:
    """Whether `x` is known to be an integer of 8 bits."""
    return _is(k, x, Range.BYTE)


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
