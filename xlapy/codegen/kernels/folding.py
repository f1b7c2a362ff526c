"""What a fold along lanes does with the elements: running values, side by side, and how they become one.

The extrema of floats are not what processors compute: a NaN among the elements is the result, and -0 is less than 0.
Emulating that for each element takes five operations in a row. So the comparison that processors have finds the
element, and two marks are kept for all of them: the largest encoding without its sign, which is that of a NaN if there
is one, and which signs occur, which tells zeros apart if the extremum is one.

Some processors have an instruction that tells zeros apart: there only NaNs are looked for.

Where the elements may be read a second time, a quick fold does without: one comparison for two elements tells whether
any is a NaN. Only where that is so, or where the extremum is a zero, the elements are folded again, with both marks.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import IRType, KernelBuilder, Value
from xlapy.codegen.kernels.float_order import extreme_of_numbers
from xlapy.codegen.registers import Element, from_parts, parts_of, register_type, splat
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction

Combine = Callable[[Element, Element], Element]


class Folding:
    """Any commutative, associative op: as many running values as elements are folded at a time."""

    def __init__(self, k: KernelBuilder, combiner: Instruction, identity: Element) -> None:
        self._k = k
        self._combiner = combiner
        self._identity = identity

    def start(self, count: int, lanes: int) -> list[Element]:
        """The state before anything is folded: `count` running values, and what else is to be carried."""
        return [splat(self._k, self._identity, lanes)] * count

    def step(self, state: Sequence[Element], elements: Sequence[Element]) -> list[Element]:
        """The state with one element more in each of the first running values."""
        folded = [self.combine(value, element) for value, element in zip(state, elements, strict=False)]
        return [*folded, *state[len(folded) :]]

    def finish(self, init: Element, state: Sequence[Element], rest: Sequence[Element]) -> Element:
        """All of a state of vectors, and of one of a single running value and a single lane, folded into `init`."""
        total = self._together(state, self.combine)
        return self.combine(init, self.combine(self._of_lanes(total), rest[0]))

    def _of_lanes(self, total: Element) -> Element:
        """All lanes as one. LLVM knows an instruction for sums of bytes, whatever they were converted to."""
        is_sum = self._combiner.opcode == "add" and self._combiner.shape.type.is_integer
        return self._k.sum_of_lanes(only(total)) if is_sum else _across_lanes(self._k, self.combine, total)

    def combine(self, a: Element, b: Element) -> Element:
        return emit_element(self._k, self._combiner, [a, b], unrounded=True)

    def _together(self, values: Sequence[Element], combine: Combine) -> Element:
        total = values[0]
        for value in values[1:]:
            total = combine(total, value)
        return total


class Extremum(Folding):
    """The largest or the smallest of floats. The two marks come last in the state."""

    def start(self, count: int, lanes: int) -> list[Element]:
        bits = self._bits.with_lanes(lanes)
        no_sign = self._k.const(bits, -1 if self._is_maximum else 0)
        return [*super().start(count, lanes), self._k.const(bits, 0), no_sign]

    def step(self, state: Sequence[Element], elements: Sequence[Element]) -> list[Element]:
        k = self._k
        *values, largest, signs = state
        folded = [self._extreme(element, value) for value, element in zip(values, elements, strict=False)]
        for element in elements:
            encoding = k.to_integer_bits(only(element))
            largest = k.smax(only(largest), k.and_(encoding, self._magnitude))
            signs = self._merged_signs(signs, encoding)
        return [*folded, *values[len(folded) :], largest, signs]

    def finish(self, init: Element, state: Sequence[Element], rest: Sequence[Element]) -> Element:
        k = self._k
        *values, largest, signs = state
        value, rest_largest, rest_signs = rest
        total = _across_lanes(k, self._extreme, self._together(values, self._extreme))
        total = only(self._extreme(value, total))
        largest = k.smax(only(_across_lanes(k, self._larger, largest)), only(rest_largest))
        signs = only(self._merged_signs(_across_lanes(k, self._merged_signs, signs), rest_signs))
        zero = k.bitcast(k.and_(signs, ~self._magnitude), total.type)
        total = k.select(k.compare("eq", total, 0.0), zero, total)
        infinity = ((1 << self._exponent_bits) - 1) << self._fraction_bits
        is_nan = k.compare("gt", largest, infinity)  # signed, as there is no sign
        return self.combine(init, k.select(is_nan, k.bitcast(largest, total.type), total))

    @property
    def _is_maximum(self) -> bool:
        return self._combiner.opcode == "maximum"

    @property
    def _bits(self) -> IRType:
        return register_type(self._combiner.shape.type).integer()

    @property
    def _fraction_bits(self) -> int:
        return {32: 23, 64: 52}[self._bits.bits]

    @property
    def _exponent_bits(self) -> int:
        return self._bits.bits - 1 - self._fraction_bits

    @property
    def _magnitude(self) -> int:
        return (1 << (self._bits.bits - 1)) - 1

    def _extreme(self, a: Element, b: Element) -> Element:
        """The larger, or smaller, one; `b` where neither is, which one instruction does where `b` is the older one."""
        k = self._k
        return k.select(k.compare("gt" if self._is_maximum else "lt", only(a), only(b)), only(a), only(b))

    def _larger(self, a: Element, b: Element) -> Element:
        return self._k.smax(only(a), only(b))

    def _merged_signs(self, a: Element, b: Element) -> Element:
        """For maxima, whether all are negative; for minima, whether any is."""
        return self._k.and_(only(a), only(b)) if self._is_maximum else self._k.or_(only(a), only(b))


class _ExtremumByPairs(Extremum, abc.ABC):
    """One mark is kept, last in the state: whether there was a NaN, which a comparison tells of two elements."""

    def start(self, count: int, lanes: int) -> list[Element]:
        return [*Folding.start(self, count, lanes), self._k.const(self._mark.with_lanes(lanes), 0)]

    def step(self, state: Sequence[Element], elements: Sequence[Element]) -> list[Element]:
        *values, nans = state
        folded = [self._extreme(element, value) for value, element in zip(values, elements, strict=False)]
        for one, other in zip(elements[::2], [*elements[1::2], elements[-1]], strict=False):
            nans = self._marked(only(nans), self._k.unordered(only(one), only(other)))
        return [*folded, *values[len(folded) :], nans]

    @property
    @abc.abstractmethod
    def _mark(self) -> IRType:
        """Of one lane."""

    @abc.abstractmethod
    def _marked(self, nans: Value, has_nan: Value) -> Value:
        """The marks, and those of the lanes that have a NaN now."""

    def _extreme_of(self, state: Sequence[Element], rest: Sequence[Element]) -> Value:
        total = _across_lanes(self._k, self._extreme, self._together(state[:-1], self._extreme))
        return only(self._extreme(rest[0], total))


class QuickExtremum(_ExtremumByPairs):
    """The same for almost all elements: not where `is_doubtful` holds. Marks are ones."""

    def finish(self, init: Element, state: Sequence[Element], rest: Sequence[Element]) -> Element:
        return self.combine(init, self._extreme_of(state, rest))

    def is_doubtful(self, state: Sequence[Element], rest: Sequence[Element]) -> Value:
        """Whether there was a NaN, which the result has to be, or the extremum is a zero, whose sign is not known."""
        k = self._k
        nans = k.or_(only(_across_lanes(k, self._either, state[-1])), only(rest[-1]))
        return k.or_(k.compare("ne", nans, 0), k.compare("eq", self._extreme_of(state, rest), 0.0))

    @property
    def _mark(self) -> IRType:
        return self._bits

    def _marked(self, nans: Value, has_nan: Value) -> Value:
        return self._k.or_(nans, self._k.sext(has_nan, nans.type))

    def _either(self, a: Element, b: Element) -> Element:
        return self._k.or_(only(a), only(b))


class ExtremumOfNumbers(_ExtremumByPairs):
    """The same by an instruction that tells zeros apart, so that only NaNs are looked for. Marks are NaNs."""

    def finish(self, init: Element, state: Sequence[Element], rest: Sequence[Element]) -> Element:
        k, total = self._k, self._extreme_of(state, rest)
        has_nan = k.or_(k.any_lane(k.is_nan(only(state[-1]))), k.is_nan(only(rest[-1])))
        return self.combine(init, k.select(has_nan, math.nan, total))

    @property
    def _mark(self) -> IRType:
        return register_type(self._combiner.shape.type)

    def _marked(self, nans: Value, has_nan: Value) -> Value:
        return self._k.select(has_nan, math.nan, nans)

    def _extreme(self, a: Element, b: Element) -> Element:
        return extreme_of_numbers(self._k, only(a), only(b), is_maximum=self._is_maximum)


def folding(k: KernelBuilder, combiner: Instruction, identity: Element) -> Folding:
    if not _is_extremum_of_floats(combiner):
        return Folding(k, combiner, identity)
    return (ExtremumOfNumbers if k.module.has_range else Extremum)(k, combiner, identity)


def quick_folding(k: KernelBuilder, combiner: Instruction, identity: Element, target: Target) -> QuickExtremum | None:
    """A fold that is almost always right, and sooner than `folding`, if there is one. With few registers the marks of
    that do not stay in them."""
    is_quick = _is_extremum_of_floats(combiner) and target.is_x86 and not target.is_avx512
    return QuickExtremum(k, combiner, identity) if is_quick else None


def _is_extremum_of_floats(combiner: Instruction) -> bool:
    is_float = register_type(combiner.shape.type).is_float and not combiner.shape.type.is_complex
    return is_float and combiner.opcode in ("maximum", "minimum")


def _across_lanes(k: KernelBuilder, combine: Combine, value: Element) -> Element:
    """Folds the lanes of a vector by halves."""
    lanes = parts_of(value)[0].type.lanes
    while lanes > 1:
        lanes //= 2
        low = from_parts([k.shuffle(part, None, range(lanes)) for part in parts_of(value)])
        high = from_parts([k.shuffle(part, None, range(lanes, 2 * lanes)) for part in parts_of(value)])
        value = combine(low, high)
    return value


def only(element: Element) -> Value:
    """The single value of an element that is not complex."""
    assert isinstance(element, Value)
    return element
