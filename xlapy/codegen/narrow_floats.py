"""Floats narrower than f32, in registers held as f32.

`widen` turns the bits in memory into f32 (always exact), `narrow` rounds an f32 to nearest even and gives the bits,
`round` does both. All are branch-free and work on any number of lanes. LLVM's own conversions would call a library
function per lane for everything but f16 on machines with F16C.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from xlapy.codegen.ir import F32, I8, I16, I32, KernelBuilder, Value
from xlapy.codegen.ir_types import QUIET_NAN_BITS
from xlapy_runtime.records import Record


class NarrowFloat(Record):
    """The conversions of one element type."""

    widen: Callable[[KernelBuilder, Value], Value]
    narrow: Callable[[KernelBuilder, Value], Value]
    encode: Callable[[KernelBuilder, Value], Value] | None = None
    """The bits of a value that is rounded already, if that is less work than `narrow`."""
    round_result: Callable[[KernelBuilder, Value], Value] | None = None
    """Rounds what was computed from values of the type, if that is less work than `round`."""
    round_smooth: Callable[[KernelBuilder, Value], Value] | None = None
    """The same for functions, whose values do not lie in the middle of two neighbours, but where errors bring them
    there: which of these is taken then is no matter."""

    def round(self, k: KernelBuilder, value: Value) -> Value:
        return self.widen(k, self.narrow(k, value))


def _bits(k: KernelBuilder, value: Value) -> Value:
    return k.bitcast(value, I32.with_lanes(value.type.lanes))


def _float(k: KernelBuilder, bits: Value) -> Value:
    return k.bitcast(bits, F32.with_lanes(bits.type.lanes))


_LEAST_PERMUTED = 16
"""Lanes that fill a long register, as f32."""

_PACKED = 32
"""Lanes that fill a long register, as halves."""


def _widen_bf16(k: KernelBuilder, raw: Value) -> Value:
    return _float(k, k.shl(k.zext(raw, I32.with_lanes(raw.type.lanes)), 16))


def _mask(k: KernelBuilder, bits: Value, number: int) -> Value:
    """A constant beside bits that are rounded. LLVM takes each mask for a shuffle, and asks for each bit what is known
    of it: that makes code no better, and takes half of the time of a kernel. Where registers hold all that a kernel
    needs, it is not told."""
    if bits.constant is not None or not k.module.has_permute:
        return k.const(bits.type, number)
    return k.in_register(bits.type, number)


def _nearest_bf16(k: KernelBuilder, bits: Value) -> Value:
    """The upper halves count, rounded by adding half a unit. Where that was exactly what was missing, the lower half is
    zero now, and the lowest bit that counts another one in a number that is less by one: both have it if it is even
    without. No masks, which cost more than arithmetic.

    Where an instruction adds products of halves, a mask of that lowest bit has what else is added beside it."""
    lanes = bits.type.lanes
    if k.module.has_pair_products and lanes % _LEAST_PERMUTED == 0 and lanes.bit_count() == 1:
        added = k.or_(k.and_(bits, _mask(k, bits, 1 << 16)), _mask(k, bits, 0x7FFF))
        return k.pair_products(bits, added, _mask(k, bits, (1 << 16) + 1))
    rounded_up = k.add(bits, _mask(k, bits, 0x8000))
    return k.and_(rounded_up, k.or_(k.add(bits, _mask(k, bits, 0x7FFF)), _mask(k, bits, -1 << 17)))


def _of_upper_halves(k: KernelBuilder, bits: Value) -> Value:
    """The value that upper halves are, and whoever encodes it may have them as they are."""
    value = _float(k, k.and_(bits, _mask(k, bits, -1 << 16)))
    k.unmasked[value.text] = bits
    return value


def _narrow_bf16(k: KernelBuilder, value: Value) -> Value:
    """A NaN keeps its upper bits, quiet."""
    bits = _bits(k, value)
    chosen = k.select(k.is_nan(value), k.or_(bits, 0x400000), _nearest_bf16(k, bits))
    return _upper_halves(k, chosen)


def _upper_halves(k: KernelBuilder, bits: Value) -> Value:
    """Permutations take them from two registers at a time, for which a shift of each, a conversion and a join take
    seven. One permutation for all of several registers comes out the same, and takes LLVM half as long again."""
    lanes = bits.type.lanes
    if not k.module.has_permute or lanes < _LEAST_PERMUTED:
        return k.trunc(k.lshr(bits, 16), I16.with_lanes(lanes))
    halves = k.bitcast(bits, I16.with_lanes(2 * lanes))
    packed = _PACKED if lanes % _PACKED == 0 and lanes.bit_count() == 1 else lanes
    pairs = [k.shuffle(halves, None, range(2 * first, 2 * (first + packed))) for first in range(0, lanes, packed)]
    return k.side_by_side([k.shuffle(pair, None, range(1, 2 * packed, 2)) for pair in pairs])


def _encode_bf16(k: KernelBuilder, value: Value) -> Value:
    return _upper_halves(k, k.unmasked.get(value.text) or _bits(k, value))


def _round_bf16_result(k: KernelBuilder, value: Value) -> Value:
    """Needs no look at NaNs: those that operations make, or pass on from values of the type, have nothing in the lower
    half, so that adding to it changes nothing in the upper one."""
    return _of_upper_halves(k, _nearest_bf16(k, _bits(k, value)))


def _round_bf16_smooth(k: KernelBuilder, value: Value) -> Value:
    """Adds half a unit, without a look at which of two neighbours is even."""
    bits = _bits(k, value)
    return _of_upper_halves(k, k.add(bits, _mask(k, bits, 0x8000)))


def _widen_f16(k: KernelBuilder, raw: Value) -> Value:
    return _WIDEN_SMALL["f16"](k, raw) if not k.has_f16c else k.half_to_float(raw)


def _narrow_f16(k: KernelBuilder, value: Value) -> Value:
    return _NARROW_SMALL["f16"](k, value) if not k.has_f16c else k.float_to_half(value)


def _widen_f8e5m2(k: KernelBuilder, raw: Value) -> Value:
    """The upper bytes of halves, which processors widen."""
    if not k.has_f16c:
        return _WIDEN_SMALL["f8e5m2"](k, raw)
    return k.half_to_float(k.shl(k.zext(raw, I16.with_lanes(raw.type.lanes)), 8))


def _narrow_f8e5m2(k: KernelBuilder, value: Value) -> Value:
    """Rounds to what a half holds in its upper byte, by adding and subtracting a number whose unit is the one that
    counts at this magnitude; those of subnormal numbers have one unit. What is too large is so for halves, too."""
    if not k.has_f16c:
        return _NARROW_SMALL["f8e5m2"](k, value)
    form = _FORMATS["f8e5m2"]
    bits = _bits(k, value)
    smallest, largest = ((127 + exponent) << 23 for exponent in (1 - form.bias, form.bias + 1))
    exponent = k.umin(k.umax(k.and_(bits, 0x7F800000), smallest), largest)
    unit = _float(k, k.add(exponent, ((23 - form.mantissa) << 23) + 0x400000))  # half as much more: for either sign
    rounded = _bits(k, k.sub(k.add(value, unit), unit))
    signed = k.or_(k.and_(bits, -1 << 31), rounded)  # what becomes 0 has one, too
    return _upper_bytes(k, _float(k, signed))


def _encode_f8e5m2(k: KernelBuilder, value: Value) -> Value:
    return _upper_bytes(k, value) if k.has_f16c else _NARROW_SMALL["f8e5m2"](k, value)


def _upper_bytes(k: KernelBuilder, value: Value) -> Value:
    return k.trunc(k.lshr(k.float_to_half(value), 8), I8.with_lanes(value.type.lanes))


_NEGATIVE_NAN = -0x400000  # bits of f32


class _Format(Record):
    """An IEEE-like format: `exponent` and `mantissa` bits, `bias`, and what its largest codes mean."""

    exponent: int
    mantissa: int
    bias: int
    has_infinity: bool  # the highest exponent is infinity and NaN
    nan: int  # the code of NaN (without sign, unless `nan_is_negative_zero`)
    largest: int  # the code of the largest finite number, without sign
    nan_is_negative_zero: bool = False  # the FNUZ formats: no -0, its code is NaN
    has_nan: bool = True

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)


_FORMATS = {
    "f16": _Format(5, 10, 15, True, 0x7E00, 0x7BFF),
    "f8e3m4": _Format(3, 4, 3, True, 0x78, 0x6F),
    "f8e4m3": _Format(4, 3, 7, True, 0x7C, 0x77),
    "f8e4m3fn": _Format(4, 3, 7, False, 0x7F, 0x7E),
    "f8e4m3fnuz": _Format(4, 3, 8, False, 0x80, 0x7F, nan_is_negative_zero=True),
    "f8e4m3b11fnuz": _Format(4, 3, 11, False, 0x80, 0x7F, nan_is_negative_zero=True),
    "f8e5m2": _Format(5, 2, 15, True, 0x7E, 0x7B),
    "f8e5m2fnuz": _Format(5, 2, 16, False, 0x80, 0x7F, nan_is_negative_zero=True),
    "f6e2m3fn": _Format(2, 3, 1, False, 0, 0x1F, has_nan=False),
    "f6e3m2fn": _Format(3, 2, 3, False, 0, 0x1F, has_nan=False),
    "f4e2m1fn": _Format(2, 1, 1, False, 0, 0x07, has_nan=False),
}


def _widener(form: _Format) -> Callable[[KernelBuilder, Value], Value]:
    """Puts exponent and mantissa in their f32 places, and adds what the bias differs by. A subnormal number gets the
    least exponent, and loses the 1 that this puts in front of its mantissa: to scale all numbers by a power of two
    would take fewer operations, but processors need a hundred cycles for one that is subnormal as f32, too."""
    shift = 23 - form.mantissa
    least = 128 - form.bias  # the exponent of the smallest normal number, as f32 has it

    def widen(k: KernelBuilder, raw: Value) -> Value:
        bits = k.zext(raw, I32.with_lanes(raw.type.lanes))
        code = k.and_(bits, form.sign - 1)
        placed = k.shl(code, shift)
        normal = k.add(placed, (least - 1) << 23)
        subnormal = k.sub(_float(k, k.add(placed, least << 23)), 2.0 ** (1 - form.bias))
        magnitude = k.select(k.compare("lt", code, 1 << form.mantissa), _bits(k, subnormal), normal)
        value = k.or_(magnitude, k.shl(k.and_(bits, form.sign), 31 - form.exponent - form.mantissa))
        if form.nan_is_negative_zero:
            return _float(k, k.select(k.compare("eq", bits, form.nan), _NEGATIVE_NAN, value))
        if form.has_infinity:
            top = ((1 << form.exponent) - 1) << form.mantissa
            infinite = k.or_(
                k.or_(k.shl(k.and_(code, (1 << form.mantissa) - 1), shift), 0x7F800000), k.and_(value, -(1 << 31))
            )
            return _float(k, k.select(k.compare("ge", code, top), infinite, value))
        if form.has_nan:
            return _float(k, k.select(k.compare("eq", code, form.nan), k.or_(value, QUIET_NAN_BITS[32]), value))
        return _float(k, value)

    return widen


def _narrower(form: _Format) -> Callable[[KernelBuilder, Value], Value]:
    """Rounds by adding a power of two whose unit is the target's unit at that magnitude, then reads off the code."""
    shift = 23 - form.mantissa
    smallest = 1 - form.bias  # exponent of the smallest normal number
    bytes_type = I16 if form.exponent + form.mantissa > 7 else I8

    def narrow(k: KernelBuilder, value: Value) -> Value:
        lanes = value.type.lanes
        bits = _bits(k, value)
        code = k.and_(bits, 0x7FFFFFFF)
        # Normal: drop `shift` bits, ties to even, and move the exponent to the target's bias.
        last = k.and_(k.lshr(code, shift), 1)
        rounded = k.lshr(k.add(code, k.add(last, (1 << (shift - 1)) - 1)), shift)
        normal = k.sub(rounded, (127 - form.bias) << form.mantissa)
        # Subnormal: adding 2^(smallest + shift) leaves the code in the low bits, rounded by the hardware.
        magic = 2.0 ** (smallest + shift)
        summed = k.add(_float(k, code), magic)
        subnormal = k.sub(_bits(k, summed), _constant_bits(magic))
        result = k.select(k.compare("lt", code, (smallest + 127) << 23), subnormal, normal)
        result = _saturate(k, form, value, code, result)
        sign = k.and_(k.lshr(bits, 31 - form.exponent - form.mantissa), form.sign)
        if form.nan_is_negative_zero:
            signed = k.select(k.compare("eq", result, 0), 0, k.or_(result, sign))
            result = k.select(k.compare("eq", result, form.nan), form.nan, signed)
        elif form.has_nan:
            result = k.or_(result, sign)
        else:  # NaN becomes -0, as ml_dtypes has it for a positive one: the sign of a NaN means nothing
            result = k.select(k.is_nan(value), form.sign, k.or_(result, sign))
        return k.trunc(result, bytes_type.with_lanes(lanes))

    return narrow


def _saturate(k: KernelBuilder, form: _Format, value: Value, code: Value, result: Value) -> Value:
    """Beyond the largest number: infinity where the format has it, else NaN, else the largest. NaN stays NaN."""
    infinity = ((1 << form.exponent) - 1) << form.mantissa
    beyond = infinity if form.has_infinity else form.nan if form.has_nan else form.largest
    result = k.select(k.compare("gt", result, form.largest), beyond, result)
    overflow = k.compare("gt", code, 0x7F7FFFFF)  # infinity or NaN in f32, whose code may have wrapped
    result = k.select(overflow, beyond, result)
    return k.select(k.is_nan(value), form.nan, result) if form.has_nan else result


def _constant_bits(number: float) -> int:
    return int(struct.unpack("<i", struct.pack("<f", number))[0])


_WIDEN_SMALL = {name: _widener(form) for name, form in _FORMATS.items()}
_NARROW_SMALL = {name: _narrower(form) for name, form in _FORMATS.items()}


def _widen_e8m0(k: KernelBuilder, raw: Value) -> Value:
    """Powers of two, 2^(code - 127); code 255 is NaN, code 0 the subnormal 2^-127."""
    code = k.zext(raw, I32.with_lanes(raw.type.lanes))
    value = k.select(k.compare("eq", code, 0), 0x00400000, k.shl(code, 23))
    return _float(k, k.select(k.compare("eq", code, 255), QUIET_NAN_BITS[32], value))


def _narrow_e8m0(k: KernelBuilder, value: Value) -> Value:
    """The nearest power of two, ties up; what is not positive, or too large, is NaN."""
    bits = _bits(k, value)
    half = k.select(k.compare("lt", bits, 0x00800000), 0x3FFFFF, k.const(bits.type, 0x400000))
    code = k.lshr(k.add(bits, half), 23)
    valid = k.and_(k.compare("gt", value, 0.0), k.compare("lt", code, 255))
    return k.trunc(k.select(valid, code, 255), I8.with_lanes(value.type.lanes))


NARROW_FLOATS = {
    "bf16": NarrowFloat(_widen_bf16, _narrow_bf16, _encode_bf16, _round_bf16_result, _round_bf16_smooth),
    "f16": NarrowFloat(_widen_f16, _narrow_f16),
    "f8e5m2": NarrowFloat(_widen_f8e5m2, _narrow_f8e5m2, _encode_f8e5m2),
    "f8e8m0fnu": NarrowFloat(_widen_e8m0, _narrow_e8m0),
}
NARROW_FLOATS |= {
    name: NarrowFloat(_WIDEN_SMALL[name], _NARROW_SMALL[name]) for name in _FORMATS if name not in NARROW_FLOATS
}


def sign_bit(name: str) -> int:
    """The bit of a narrow float in memory that says that it is negative; 0 if its type has none."""
    if name in _FORMATS:
        return _FORMATS[name].sign
    return 0x8000 if name == "bf16" else 0


def has_negative_zero(name: str) -> bool:
    """Whether the sign bit alone is a zero of the narrow type; else it is no number, or there is no such bit."""
    return name == "bf16" or (name in _FORMATS and not _FORMATS[name].nan_is_negative_zero)
