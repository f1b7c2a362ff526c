"""Conversion between element types: by value, and reduce-precision."""

from __future__ import annotations

from xlapy.codegen.elements.registry import Emission, element
from xlapy.codegen.ir import F32, F64, I8, I64, IRType, KernelBuilder, Value
from xlapy.codegen.registers import (
    Element,
    Pair,
    from_memory,
    memory_type,
    register_type,
    to_memory,
    wrap_narrow_integer,
)
from xlapy.hlo.element_types import ElementType, real_part_type


@element("bitcast-convert", exact=True)
def bitcast_convert(e: Emission, x: Element) -> Element:
    """Between types of one width: through memory's form, which is nothing but bits."""
    if isinstance(x, Pair) or e.operand_type is e.result_type:
        return x
    bits = to_memory(e.k, x, e.operand_type)
    return from_memory(e.k, e.k.bitcast(bits, memory_type(e.result_type, x.type.lanes)), e.result_type)


@element("convert")
def convert(e: Emission, x: Element) -> Element:
    """The result is rounded by the caller; a float on its way to a narrow one arrives unrounded, so it rounds once."""
    source, target = e.operand_type, e.result_type
    if target.kind == "pred" and isinstance(x, Pair):
        return e.k.or_(e.k.compare("ne", x.re, 0.0), e.k.compare("ne", x.im, 0.0))
    if target.is_complex:
        parts = x if isinstance(x, Pair) else Pair(x, x)
        re = convert_real(e.k, parts.re, real_part_type(source), real_part_type(target))
        if not isinstance(x, Pair):
            return Pair(re, e.k.const(re.type, 0.0))
        return Pair(re, convert_real(e.k, parts.im, real_part_type(source), real_part_type(target)))
    real = x.re if isinstance(x, Pair) else x
    return convert_real(e.k, real, real_part_type(source), target)


def convert_real(k: KernelBuilder, x: Value, source: ElementType, target: ElementType) -> Value:
    """The value of `x` in the register type of `target`."""
    if source is target:
        return x
    if target.kind == "pred":
        return k.compare("ne", x, 0.0 if x.type.is_float else 0)
    if source.kind == "pred":
        return _from_pred(k, x, target)
    if source.is_float:
        return _float_to_float(k, x, target) if target.is_float else _float_to_integer(k, x, target)
    return _integer_to_float(k, x, source, target) if target.is_float else _integer_to_integer(k, x, source, target)


def _from_pred(k: KernelBuilder, x: Value, target: ElementType) -> Value:
    type = register_type(target, x.type.lanes)
    if target.is_float:
        return k.select(x, 1.0, k.const(type, 0.0))
    return k.zext(x, type)


def _float_to_float(k: KernelBuilder, x: Value, target: ElementType) -> Value:
    if x.type.kind == "f64" and target.is_narrow_float:
        return _to_odd(k, x)
    type = register_type(target, x.type.lanes)
    if x.type == type:
        return x
    return k.fpext(x, type) if type.kind == "f64" else k.fptrunc(x, type)


def _to_odd(k: KernelBuilder, x: Value) -> Value:
    """f64 to f32, rounded to odd: an inexact result gets its last bit set, so that rounding it again rounds once.

    f32 has more than two bits beyond every narrow float, which is what this needs."""
    nearest = k.fptrunc(x, F32.with_lanes(x.type.lanes))
    exact = k.fpext(nearest, x.type)
    bits = k.to_integer_bits(nearest)
    too_large = k.compare("gt", k.fabs(exact), k.fabs(x))
    toward_zero = k.sub(bits, k.zext(too_large, bits.type))
    inexact = k.compare("ne", exact, x)
    odd = k.select(inexact, k.or_(toward_zero, 1), bits)
    return k.select(k.is_nan(x), nearest, k.bitcast(odd, nearest.type))


def _float_to_integer(k: KernelBuilder, x: Value, target: ElementType) -> Value:
    """Truncates, saturates, and takes NaN to 0. The hardware only sees values that fit: others are undefined in
    LLVM."""
    lanes = x.type.lanes
    bits = max(32, register_type(target).bits)
    wide = (I64 if bits == 64 else register_type(target).with_kind("i32")).with_lanes(lanes)
    type = register_type(target, lanes)
    lowest, highest = target.integer_range
    if highest < 1 << _MANTISSA[x.type.kind]:
        whole = _truncated(k, _limited(k, x, lowest, highest), target, wide)
        return whole if type.bits == bits else k.trunc(whole, type)
    low, high = k.compare("le", x, float(lowest)), k.compare("ge", x, float(highest + 1))
    inside = k.not_(k.or_(k.or_(low, high), k.is_nan(x)))
    safe = k.select(inside, x, 0.0)
    whole = _truncated(k, safe, target, wide)
    limited = k.select(low, lowest, k.select(high, highest, whole))
    return limited if type.bits == bits else k.trunc(limited, type)


_MANTISSA = {"f32": 24, "f64": 53}


def _truncated(k: KernelBuilder, x: Value, target: ElementType, wide: IRType) -> Value:
    return (k.fptosi if target.is_signed or target.bits < 32 else k.fptoui)(x, wide)


def _limited(k: KernelBuilder, x: Value, lowest: int, highest: int) -> Value:
    """Floats from `lowest` to `highest`, which are floats, too; 0 for a NaN. Each limit is one instruction, which takes
    the second of its operands if the first one is a NaN."""
    if lowest:
        x = k.select(k.is_nan(x), 0.0, x)
    x = k.select(k.compare("gt", x, float(lowest)), x, float(lowest))
    return k.select(k.compare("lt", x, float(highest)), x, float(highest))


def _integer_to_float(k: KernelBuilder, x: Value, source: ElementType, target: ElementType) -> Value:
    type = register_type(target, x.type.lanes)
    if target.is_narrow_float and source.bits > 16:
        return _to_odd(k, _sticky_double(k, x, source))  # too wide for f32 to hold
    return (k.sitofp if source.is_signed else k.uitofp)(x, type)


def _sticky_double(k: KernelBuilder, x: Value, source: ElementType) -> Value:
    """An f64 that rounds like the integer: exact up to 53 bits; beyond, lower bits are gathered into the last one."""
    type = F64.with_lanes(x.type.lanes)
    if source.bits > 32:
        lower = k.and_(x, 0x7FF)
        magnitude_bits = k.and_(x, ~0x7FF)
        sticky = k.select(k.compare("ne", lower, 0), 0x800, k.const(x.type, 0))
        huge = k.compare("gt", _magnitude(k, x, source), 1 << 52, signed=False)
        x = k.select(huge, k.or_(magnitude_bits, sticky), x)
    return (k.sitofp if source.is_signed else k.uitofp)(x, type)


def _magnitude(k: KernelBuilder, x: Value, source: ElementType) -> Value:
    return k.select(k.compare("lt", x, 0), k.neg(x), x) if source.is_signed else x


def _integer_to_integer(k: KernelBuilder, x: Value, source: ElementType, target: ElementType) -> Value:
    type = register_type(target, x.type.lanes)
    if type.bits < x.type.bits:
        x = k.trunc(x, type)
    elif type.bits > x.type.bits:
        x = (k.sext if source.is_signed else k.zext)(x, type)
    return wrap_narrow_integer(k, x, target) if type.kind == I8.kind else x


@element("reduce-precision")
def reduce_precision(e: Emission, x: Value) -> Element:
    """Rounds the mantissa to nearest even in integer arithmetic, then overflows to infinity and flushes to zero."""
    k, form = e.k, e.instruction.attributes
    total, mantissa = (64, 52) if x.type.kind == "f64" else (32, 23)
    bits = k.to_integer_bits(x)
    keep_mantissa: int = min(form["mantissa_bits"], mantissa)
    magnitude = k.and_(bits, (1 << (total - 1)) - 1)
    sign = k.and_(bits, -(1 << (total - 1)))
    if keep_mantissa < mantissa:
        drop = mantissa - keep_mantissa
        last = k.and_(k.lshr(magnitude, drop), 1)
        magnitude = k.add(magnitude, k.add(last, (1 << (drop - 1)) - 1))
        magnitude = k.and_(magnitude, ~((1 << drop) - 1))
    exponent_bits = total - 1 - mantissa
    if form["exponent_bits"] < exponent_bits:
        bias, full_bias = (1 << (form["exponent_bits"] - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = ((1 << exponent_bits) - 1) << mantissa
        overflow = k.compare("ge", magnitude, (full_bias + bias + 1) << mantissa)
        underflow = k.compare("lt", magnitude, (full_bias - bias + 1) << mantissa)
        magnitude = k.select(overflow, infinity, k.select(underflow, 0, magnitude))
    result = k.bitcast(k.or_(magnitude, sign), x.type)
    return k.select(k.is_nan(x), x, result)
