"""Logic, shifts, bit counts, comparison and choice."""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.elements.registry import Emission, element
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.narrow_floats import has_negative_zero
from xlapy.codegen.registers import Element, Pair, select, to_memory
from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import ElementType


@element("and", exact=True)
def and_(e: Emission, x: Value, y: Value) -> Element:
    return e.k.and_(x, y)


@element("or", exact=True)
def or_(e: Emission, x: Value, y: Value) -> Element:
    return e.k.or_(x, y)


@element("xor", exact=True)
def xor(e: Emission, x: Value, y: Value) -> Element:
    return e.k.xor(x, y)


@element("not")
def not_(e: Emission, x: Value) -> Element:
    return e.k.not_(x)


@element("shift-left")
def shift_left(e: Emission, x: Value, amount: Value) -> Element:
    return _shift(e, e.k.shl, x, amount)


@element("shift-right-logical")
def shift_right_logical(e: Emission, x: Value, amount: Value) -> Element:
    width = e.result_type.bits
    bits = e.k.and_(x, (1 << width) - 1) if width < 8 else x
    return _shift(e, e.k.lshr, bits, amount)


@element("shift-right-arithmetic")
def shift_right_arithmetic(e: Emission, x: Value, amount: Value) -> Element:
    """Beyond the width only the sign is left. An unsigned value is shifted as the signed value of the same bits."""
    k, width = e.k, e.result_type.bits
    if width < 8:
        x = k.ashr(k.shl(x, 8 - width), 8 - width)
    inside = k.compare("lt", _amount(e, amount), width, signed=False)
    return k.ashr(x, k.select(inside, _amount(e, amount), width - 1))


def _shift(e: Emission, shift: Callable[[Value, Value], Value], x: Value, amount: Value) -> Value:
    """Beyond the width nothing is left; a negative amount is a huge one."""
    k, width = e.k, e.result_type.bits
    inside = k.compare("lt", _amount(e, amount), width, signed=False)
    return k.select(inside, shift(x, k.select(inside, _amount(e, amount), 0)), 0)


def _amount(e: Emission, amount: Value) -> Value:
    width = e.result_type.bits
    return e.k.and_(amount, (1 << width) - 1) if width < 8 else amount


@element("popcnt")
def popcnt(e: Emission, x: Value) -> Element:
    width = e.result_type.bits
    return e.k.ctpop(e.k.and_(x, (1 << width) - 1) if width < 8 else x)


@element("count-leading-zeros")
def count_leading_zeros(e: Emission, x: Value) -> Element:
    width = e.result_type.bits
    if width < 8:
        return e.k.sub(e.k.ctlz(e.k.and_(x, (1 << width) - 1)), 8 - width)
    return e.k.ctlz(x)


@element("is-finite", exact=True)
def is_finite(e: Emission, x: Value) -> Element:
    return e.k.compare("lt", e.k.fabs(x), float("inf"))


@element("copy", exact=True)
def copy(e: Emission, x: Element) -> Element:
    return x


@element("select", exact=True)
def choose(e: Emission, pred: Value, on_true: Element, on_false: Element) -> Element:
    return select(e.k, pred, on_true, on_false)


@element("compare", exact=True)
def compare(e: Emission, x: Element, y: Element) -> Element:
    direction: ComparisonDirection = e.instruction.attributes["direction"]
    if isinstance(x, Pair) and isinstance(y, Pair):
        return _complex_compare(e.k, direction, x, y)
    assert isinstance(x, Value) and isinstance(y, Value)
    if e.instruction.attributes["type"] is ComparisonType.TOTALORDER:
        x, y = (_ordered_bits(e.k, value, e.operand_type) for value in (x, y))
    return e.k.compare(direction.value.lower(), x, y, signed=_is_signed(e.operand_type))


def _is_signed(element_type: ElementType) -> bool:
    return element_type.is_signed or element_type.is_float


def _complex_compare(k: KernelBuilder, direction: ComparisonDirection, x: Pair, y: Pair) -> Value:
    """By real part, then by imaginary part; only NE holds with a NaN in either."""
    same_re = k.compare("eq", x.re, y.re)
    if direction in (ComparisonDirection.EQ, ComparisonDirection.NE):
        equal = k.and_(same_re, k.compare("eq", x.im, y.im))
        return equal if direction is ComparisonDirection.EQ else k.not_(equal)
    name = direction.value.lower()
    decided = k.and_(k.compare(name[0] + "t", x.re, y.re), k.not_(k.or_(k.is_nan(x.im), k.is_nan(y.im))))
    return k.or_(decided, k.and_(same_re, k.compare(name, x.im, y.im)))


def _ordered_bits(k: KernelBuilder, x: Value, element_type: ElementType) -> Value:
    """Integers in the total order of floats: the bits, those of a negative number flipped but for the sign. Of a narrow
    float those in memory, where a number has a sign there: processors that widen a NaN may give it other ones."""
    if not x.type.is_float:
        return x
    has_sign = element_type.is_narrow_float and has_negative_zero(element_type.name)
    is_whole = element_type.bits == 8 * element_type.bytes
    bits = to_memory(k, x, element_type) if has_sign and is_whole else k.to_integer_bits(x)
    negative = k.ashr(bits, bits.type.bits - 1)
    return k.xor(bits, k.lshr(negative, 1))
