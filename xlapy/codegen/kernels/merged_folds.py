"""Two folds of the same elements, of which the second one waits for the first: both from one look at each element.

    sum(x), and the sum of squares of distances from a center that is made from it
    maximum(x), and the sum of exponentials of what is below a center that is made from it

Some elements are folded in registers, around or below a center of their own, and merged with what those before them
came to. Of n elements with the sum s, and m others with the sum t,

    squares = squares of the n + squares of the m + (t / m - s / n)^2 n m / (n + m)

and sums of exponentials move to the larger one of two maxima. The center of the program may be any number: how far it
is from the mean, or from the maximum, comes last, in the same ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from xlapy.codegen.ir import F64, I64, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.float_order import extreme_of_numbers
from xlapy.codegen.math.outlined import math_function
from xlapy.codegen.registers import register_type
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import RowSpace, sole_operation
from xlapy.hlo.patterns import P, match, variables
from xlapy_runtime.records import Record

TOGETHER = 2
"""Vectors of which exponentials are found step by step: one after the other each would wait for its own steps (256 KB
of f32 on one core of an Intel server: 0.24 ns for an element, not 0.26)."""

x, c, d = variables("x c d")


class MergedFolds(Record):
    """The folds of `array`: by an operation, and by another one of what is made from elements and `center`, of which
    there is one for each fold."""

    array: Instruction
    center: Instruction
    first: Instruction
    second: Instruction

    def merging(self, k: KernelBuilder) -> Merging:
        """How values of these folds are merged."""
        operation = sole_operation(self.first.called[0])
        assert operation is not None
        return _MERGINGS[operation.opcode](k, register_type(self.first.shape.type))


def merged_folds(space: RowSpace, sweeps: Sequence[Sequence[Instruction]]) -> MergedFolds | None:
    """The two folds that the sweeps of a chain are, one after the other, if they can be merged."""
    if [len(sweep) for sweep in sweeps] != [1, 1]:
        return None
    (first,), (second,) = sweeps
    array, type, operation = first.operands[0], first.shape.type, sole_operation(first.called[0])
    last = sole_operation(second.called[0])
    pattern = None if operation is None else _ELEMENTS.get(operation.opcode)
    if pattern is None or last is None or last.opcode != "add":
        return None
    bound = match(pattern, second.operands[0])
    if bound is None or bound["x"] is not array or type.is_narrow_float or not type.is_float:
        return None
    repeated = bound["c"]
    if repeated.opcode != "broadcast" or tuple(repeated.attributes["dimensions"]) != space.kept:
        return None
    if not array.shape.type is type is second.shape.type:
        return None
    return MergedFolds(array, repeated.operands[0], first, second)


_ELEMENTS = MappingProxyType(
    {
        "add": P.multiply(d.where(P.subtract(x, c)), d),
        "maximum": P.exponential(P.subtract(x, c)),
    }
)
"""By the operation of the first fold: what the second one is of."""


class Merging(Protocol):
    """What elements come to is a value of the first fold, and one of the second, with a center of their own."""

    def start(self) -> list[Value]:
        """What no elements come to."""

    def merged(self, before: Value, count: int) -> Callable[[Value, Value, Sequence[Value]], list[Value]]:
        """Merges what elements came to, `before` of which there were, with `count` more of them."""

    def first(self, first: Value, second: Value) -> Value:
        """What the first fold makes of all elements."""

    def second(self, first: Value, second: Value, center: Value, count: Operand) -> Value:
        """What the second one makes of all elements, so many, with the `center` of the program."""


class _Moments:
    def __init__(self, k: KernelBuilder, type: IRType) -> None:
        self._k = k
        self._type = type

    def start(self) -> list[Value]:
        return [self._k.const(self._type, -0.0), self._k.const(self._type, 0.0)]

    def merged(self, before: Value, count: int) -> Callable[[Value, Value, Sequence[Value]], list[Value]]:
        k, size = self._k, self._number(before)
        is_first = k.compare("eq", before, 0)
        weight = self._rounded(k.div(k.mul(size, float(count)), k.add(size, float(count))))
        part = self._rounded(k.div(k.const(F64, 1.0), size))

        def merge(total: Value, squares: Value, elements: Sequence[Value]) -> list[Value]:
            sum, *others = elements
            for other in others:
                sum = k.add(sum, other)
            mean = k.mul(sum, 1 / count)
            for element in elements:
                distance = k.sub(element, mean)
                squares = k.muladd(distance, distance, squares)
            before_mean = k.select(is_first, mean, k.mul(total, part))
            are_equal = k.compare("eq", mean, before_mean)  # infinite ones, too
            apart = k.select(are_equal, k.const(mean.type, 0.0), k.sub(mean, before_mean))
            return [k.add(total, sum), k.muladd(k.mul(apart, apart), weight, squares)]

        return merge

    def first(self, first: Value, second: Value) -> Value:
        return first

    def second(self, first: Value, second: Value, center: Value, count: Operand) -> Value:
        """Sums of finite numbers may be infinite: then so is the distance of each from what is made of it."""
        k = self._k
        number = self._number(count if isinstance(count, Value) else k.const(I64, count))
        apart = k.sub(k.mul(first, self._rounded(k.div(k.const(F64, 1.0), number))), center)
        around = k.muladd(k.mul(apart, apart), self._rounded(number), second)
        size = k.fabs(center)
        return k.select(k.compare("lt", size, math.inf), around, k.add(second, size))

    def _number(self, count: Value) -> Value:
        return self._k.sitofp(count, F64)

    def _rounded(self, number: Value) -> Value:
        return number if self._type is F64 else self._k.fptrunc(number, self._type)


class _Exponentials:
    def __init__(self, k: KernelBuilder, type: IRType) -> None:
        self._k = k
        self._type = type

    def start(self) -> list[Value]:
        return [self._k.const(self._type, -math.inf), self._k.const(self._type, 0.0)]

    def merged(self, before: Value, count: int) -> Callable[[Value, Value, Sequence[Value]], list[Value]]:
        k = self._k

        def merge(top: Value, sum: Value, elements: Sequence[Value]) -> list[Value]:
            new = self._larger(top, _by_pairs(self._larger, elements))
            below = self._finite(new)
            moved = self._power("exp_of_low", k.lesser(k.sub(self._finite(top), below), 0.0))
            others = _by_pairs(k.add, self._powers([k.sub(element, below) for element in elements]))
            return [new, k.muladd(sum, moved, others)]

        return merge

    def first(self, first: Value, second: Value) -> Value:
        """What finds the larger of numbers may find one beside a NaN, of which the exponential is one."""
        return self._k.select(self._k.is_nan(second), second, first)

    def second(self, first: Value, second: Value, center: Value, count: Operand) -> Value:
        k = self._k
        return k.mul(second, self._power("exp", k.sub(self._finite(self.first(first, second)), center)))

    def _larger(self, one: Value, other: Value) -> Value:
        """Of two numbers. What x86 finds of zeros is the second one, and none is negative unless both are."""
        k = self._k
        if k.module.has_maximum:
            return k.maximum(one, other)
        if k.module.has_range:
            return extreme_of_numbers(k, one, other, is_maximum=True)
        found = [k.to_integer_bits(k.greater(*pair)) for pair in ((one, other), (other, one))]
        return k.bitcast(k.and_(*found), one.type)

    def _finite(self, top: Value) -> Value:
        """A maximum, or zero where that is not finite, as distances from it would be none."""
        k = self._k
        return k.select(k.compare("lt", k.fabs(top), math.inf), top, k.const(top.type, 0.0))

    def _powers(self, exponents: Sequence[Value]) -> list[Value]:
        k, found = self._k, []
        for start in range(0, len(exponents), TOGETHER):
            group = exponents[start : start + TOGETHER]
            powers = self._power("exp", k.side_by_side(group))
            lanes = group[0].type.lanes
            found += [
                k.shuffle(powers, None, range(first, first + lanes)) for first in range(0, powers.type.lanes, lanes)
            ]
        return found

    def _power(self, name: str, exponent: Value) -> Value:
        return math_function(self._k, name, (exponent,))


def _by_pairs(combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    """Combined in as few steps, one behind the other, as there may be."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(combine(one, other) for one, other in pairs), *values[len(values) // 2 * 2 :]]
    return values[0]


_MERGINGS: Mapping[str, Callable[[KernelBuilder, IRType], Merging]] = MappingProxyType(
    {"add": _Moments, "maximum": _Exponentials}
)
"""By the operation of the first fold."""
