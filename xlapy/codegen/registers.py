"""How elements look in registers and in memory.

| element type         | register                       | memory               |
|----------------------|--------------------------------|----------------------|
| pred                 | i1                             | i8, 0 or 1           |
| s2, s4, u2, u4       | i8, sign- or zero-extended     | i8, low bits count   |
| s8 ... u64           | i8 ... i64                     | the same             |
| floats below f32     | f32 holding a rounded value    | i8 or i16 bit pattern|
| f32, f64             | f32, f64                       | the same             |
| c64, c128            | a `Pair` of f32, f64           | two floats           |

A value may have any number of lanes; memory holds lanes one after another.

Floats below f32 that are only moved are written with the bits that were read: emitters note where these are. To narrow
what was widened would be work for nothing, and would make another NaN of some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlapy.codegen.ir import F32, F64, I1, I8, I16, I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.ir_types import QUIET_NAN_BITS
from xlapy.codegen.narrow_floats import NARROW_FLOATS, has_negative_zero, sign_bit
from xlapy.hlo.element_types import ElementType, real_part_type


class Pair(NamedTuple):
    """A complex number in registers."""

    re: Value
    im: Value


Element = Value | Pair

_INTEGERS = {8: I8, 16: I16, 32: I32, 64: I64}


def register_type(element_type: ElementType, lanes: int = 1) -> IRType:
    """The IR type of a value in a register; of each part, for a complex one."""
    if element_type.kind == "pred":
        scalar = I1
    elif element_type.is_integer:
        scalar = _INTEGERS[max(8, element_type.bits)]
    else:
        scalar = F64 if real_part_type(element_type).bits == 64 else F32
    return scalar.with_lanes(lanes)


def memory_type(element_type: ElementType, lanes: int = 1) -> IRType:
    """The IR type that is loaded and stored; of each part, for a complex one."""
    part = real_part_type(element_type)
    scalar = register_type(part)
    if part.kind == "pred" or part.is_narrow_float:
        scalar = _INTEGERS[part.bytes * 8]
    return scalar.with_lanes(lanes)


def from_memory(k: KernelBuilder, raw: Value, element_type: ElementType) -> Value:
    """The register value of loaded lanes (of one part of a complex number)."""
    part = real_part_type(element_type)
    if part.kind == "pred":
        return k.compare("ne", raw, 0)
    if part.is_narrow_float:
        value = NARROW_FLOATS[part.name].widen(k, raw)
        _note_bits(k, value, part.name, raw)
        return note_rounded(k, value, part)
    return wrap_narrow_integer(k, raw, part)


def to_memory(k: KernelBuilder, value: Value, element_type: ElementType) -> Value:
    """The lanes to store for a register value; the inverse of `from_memory`."""
    part = real_part_type(element_type)
    if part.kind == "pred":
        return k.zext(value, I8.with_lanes(value.type.lanes))
    if part.is_narrow_float:
        noted = k.bits.get(value.text)
        if noted and noted[0] == part.name:
            return noted[1]
        form = NARROW_FLOATS[part.name]
        return (form.encode if form.encode and is_rounded(k, value, part) else form.narrow)(k, value)
    return value


def _note_bits(k: KernelBuilder, value: Value, name: str, bits: Value) -> None:
    """What `to_memory` gives for a value of the type `name`. Constants are as quickly narrowed."""
    if value.constant is None:
        k.bits[value.text] = name, bits


def moved(k: KernelBuilder, move: Callable[..., Value], *values: Value) -> Value:
    """What `move` makes of values of one type by choosing among their lanes, and its bits of theirs if these are known:
    in case somebody wants them, or else nothing uses them."""
    result = move(*values)
    names = {k.bits[value.text][0] for value in values if value.text in k.bits}
    if len(names) != 1 or not all(value.text in k.bits or value.constant is not None for value in values):
        return result
    name = names.pop()
    narrow = NARROW_FLOATS[name].narrow
    bits = [k.bits[value.text][1] if value.text in k.bits else narrow(k, value) for value in values]
    _note_bits(k, result, name, move(*bits))
    return result


def note_rounded(k: KernelBuilder, value: Value, element_type: ElementType) -> Value:
    """The same value, of which `is_rounded` will tell that it is one of the narrow type."""
    k.rounded.add((value.text, element_type.name))
    return value


def is_rounded(k: KernelBuilder, value: Value, element_type: ElementType) -> bool:
    """Whether the value is known to be one of the narrow type. Most are, but not all are known to be."""
    return (value.text, element_type.name) in k.rounded


def with_zero_added(k: KernelBuilder, value: Value, sum: Value, element_type: ElementType) -> Value:
    """The `sum` of 0 and a value of a narrow type, which is one of the type: the value, or 0 for -0."""
    name, noted = element_type.name, k.bits.get(value.text)
    if noted and noted[0] == name:
        bits = noted[1]
        plain = k.select(k.compare("eq", bits, sign_bit(name)), 0, bits) if has_negative_zero(name) else bits
        _note_bits(k, sum, name, plain)
    return note_rounded(k, sum, element_type)


def is_positive_zero(element: Element) -> bool:
    """Whether it is a constant 0, and not -0."""
    constant = None if isinstance(element, Pair) else element.constant
    return constant == 0 and not np.signbit(constant)


def wrap_narrow_integer(k: KernelBuilder, value: Value, element_type: ElementType) -> Value:
    """The integer wrapped to a width below 8 bits; wider types wrap by themselves."""
    if not element_type.is_integer or element_type.bits >= 8:
        return value
    spare = 8 - element_type.bits
    shift_right = k.ashr if element_type.is_signed else k.lshr
    return shift_right(k.shl(value, spare), spare)


def rounded(
    k: KernelBuilder,
    element: Element,
    element_type: ElementType,
    *,
    of_its_type: bool = False,
    smooth: bool = False,
) -> Element:
    """The result of an operation, brought into the range of its type: narrow floats round, narrow integers wrap.

    `of_its_type`: where the operation took floats, these were of the same type; `smooth`: it is such a function as
    `NarrowFloat.round_smooth` is for."""
    if isinstance(element, Pair):
        return element
    if element_type.is_narrow_float:
        form = NARROW_FLOATS[element_type.name]
        quick = (form.round_smooth if smooth else form.round_result) if of_its_type else None
        if quick is not None:
            return note_rounded(k, quick(k, element), element_type)
        bits = form.narrow(k, element)
        value = form.widen(k, bits)
        _note_bits(k, value, element_type.name, bits)
        return note_rounded(k, value, element_type)
    return wrap_narrow_integer(k, element, element_type)


def constant_element(k: KernelBuilder, element_type: ElementType, number: Any) -> Element:
    """A constant of `element_type` in a register, one lane. Of a numpy scalar that is a NaN it has all bits."""
    if element_type.is_complex:
        part_type = real_part_type(element_type)
        return Pair(*(_constant_float(k, part_type, part) for part in (number.real, number.imag)))
    scalar = register_type(element_type)
    return _constant_float(k, element_type, number) if scalar.is_float else k.const(scalar, int(number.real))


def _constant_float(k: KernelBuilder, element_type: ElementType, number: Any) -> Value:
    usual = k.const(register_type(element_type), float(number.real))
    if not isinstance(number, np.generic) or number == number:
        return usual
    return _nan_of(k, element_type, number, usual)


def _nan_of(k: KernelBuilder, element_type: ElementType, number: np.generic, usual: Value) -> Value:
    """A NaN whose bits a Python float may not have: it never signals, and a narrow type has one only."""
    integer = f"i{number.nbytes}"
    bits = int(number.view(integer))
    if bits == int(np.array(float(number), number.dtype).view(integer)):
        return usual
    if not element_type.is_narrow_float:
        return k.bitcast(k.const(usual.type.integer(), bits), usual.type)
    own_bits = k.const(memory_type(element_type), bits)
    sign = int(np.signbit(np.float32(number))) << (F32.bits - 1)
    payload = bits & ((1 << own_bits.type.bits) - 1)
    own = k.bitcast(k.const(I32, sign | QUIET_NAN_BITS[F32.bits] | payload), F32)  # another value for other bits
    _note_bits(k, own, element_type.name, own_bits)
    return note_rounded(k, own, element_type)


def splat(k: KernelBuilder, element: Element, lanes: int) -> Element:
    """The element in every lane; one that has these lanes already stays."""
    if isinstance(element, Pair):
        return Pair(k.splat(element.re, lanes), k.splat(element.im, lanes))
    return moved(k, lambda value: k.splat(value, lanes), element)


def select(k: KernelBuilder, condition: Value, on_true: Element, on_false: Element) -> Element:
    if isinstance(on_true, Pair) and isinstance(on_false, Pair):
        return Pair(k.select(condition, on_true.re, on_false.re), k.select(condition, on_true.im, on_false.im))
    assert isinstance(on_true, Value) and isinstance(on_false, Value)
    return moved(k, lambda true, false: k.select(condition, true, false), on_true, on_false)


def lanes_of(element: Element) -> int:
    return element.re.type.lanes if isinstance(element, Pair) else element.type.lanes


def parts_of(element: Element) -> tuple[Value, ...]:
    """The values that make up an element: one, or real and imaginary part."""
    return (element.re, element.im) if isinstance(element, Pair) else (element,)


def from_parts(parts: tuple[Value, ...] | list[Value]) -> Element:
    return parts[0] if len(parts) == 1 else Pair(parts[0], parts[1])


def flatten(elements: Sequence[Element]) -> list[Value]:
    """The parts of all elements, as loops and branches carry them."""
    return [part for element in elements for part in parts_of(element)]


def unflatten(values: Sequence[Value], like: Sequence[Element]) -> list[Element]:
    """The elements that a flat list of parts makes up; as many parts each as those of `like`."""
    elements: list[Element] = []
    position = 0
    for element in like:
        count = len(parts_of(element))
        elements.append(from_parts(list(values[position : position + count])))
        position += count
    return elements
