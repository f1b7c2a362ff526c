"""Operations on the bits of numbers."""

from __future__ import annotations

import numpy as np

from xlapy.hlo.evaluate.base import align, evaluator, instruction_evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, from_bits, narrow, to_bits, widen
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape


@evaluator("popcnt")
def popcnt(operand: Array) -> Array:
    return np.bitwise_count(to_bits(operand)).astype(operand.dtype)


@evaluator("count-leading-zeros")
def count_leading_zeros(operand: Array) -> Array:
    bits = to_bits(operand).astype(np.uint64)
    for distance in (1, 2, 4, 8, 16, 32):
        bits = bits | bits >> np.uint64(distance)  # every bit below the first set one
    return (element_type(operand).bits - np.bitwise_count(bits).astype(np.int64)).astype(operand.dtype)


def _distance(amount: Array) -> tuple[Array, Array]:
    """The amount of a shift as an unsigned number, kept in range; and where it was not."""
    width = element_type(amount).bits
    distance = widen(amount)
    beyond = (distance < 0) | (distance >= width)
    return np.where(beyond, 0, distance).astype(np.uint64), beyond


@evaluator("shift-left")
def shift_left(lhs: Array, rhs: Array) -> Array:
    lhs, rhs = align(lhs, rhs)
    distance, beyond = _distance(rhs)
    shifted = to_bits(lhs).astype(np.uint64) << distance
    return from_bits(_masked(np.where(beyond, np.uint64(0), shifted), lhs), element_type(lhs))


@evaluator("shift-right-logical")
def shift_right_logical(lhs: Array, rhs: Array) -> Array:
    lhs, rhs = align(lhs, rhs)
    distance, beyond = _distance(rhs)
    shifted = to_bits(lhs).astype(np.uint64) >> distance
    return from_bits(np.where(beyond, np.uint64(0), shifted), element_type(lhs))


@evaluator("shift-right-arithmetic")
def shift_right_arithmetic(lhs: Array, rhs: Array) -> Array:
    """An unsigned number is taken by its bits: its highest one is the sign."""
    lhs, rhs = align(lhs, rhs)
    distance, beyond = _distance(rhs)
    width = element_type(lhs).bits
    unused = np.uint64(64 - width)
    signed = (to_bits(lhs).astype(np.uint64) << unused).view(np.int64) >> np.int64(64 - width)
    shifted = signed >> np.where(beyond, width - 1, distance).astype(np.int64)
    return from_bits(_masked(shifted.view(np.uint64), lhs), element_type(lhs))


def _masked(bits: Array, like: Array) -> Array:
    return bits & np.uint64((1 << element_type(like).bits) - 1)


@evaluator("bitcast-convert")
def bitcast_convert(operand: Array, *, result: Shape) -> Array:
    """The first of several parts is the one with the lowest bits."""
    wide, slim = element_type(operand).bits, result.type.bits
    if element_type(operand) is result.type:
        return operand
    if wide == slim:
        return from_bits(to_bits(operand), result.type)
    if element_type(operand).is_complex:
        parts = np.ascontiguousarray(operand if wide < slim else operand[..., None]).view(result.type.dtype)
        return parts if wide > slim else parts[..., 0]
    bits = to_bits(operand).astype(np.uint64)
    if wide > slim:
        shifts = np.arange(0, wide, slim, dtype=np.uint64)
        return from_bits(bits[..., None] >> shifts & np.uint64((1 << slim) - 1), result.type)
    shifts = np.arange(0, slim, wide, dtype=np.uint64)
    return from_bits(np.asarray(np.bitwise_or.reduce(bits << shifts, axis=-1)), result.type)


@instruction_evaluator("bitcast")
def bitcast(instruction: Instruction, operands: list[Array]) -> Array:
    """Reads the bytes, in the order of the operand's layout, in that of the result."""
    source, result = instruction.operands[0].shape, instruction.shape
    major_to_minor = result.minor_to_major[::-1]
    memory = np.ascontiguousarray(operands[0].transpose(source.minor_to_major[::-1])).reshape(-1)
    stored = _only_own_bits(_only_own_bits(memory).view(result.type.dtype))
    return stored.reshape([result.dims[dim] for dim in major_to_minor]).transpose(np.argsort(major_to_minor))


def _only_own_bits(array: Array) -> Array:
    """The same numbers; where they are narrower than a byte, its other bits are zero."""
    own = element_type(array)
    if own.bits >= 8:
        return array
    stored = array.view(np.uint8)
    return ((stored != 0) if own.kind == "pred" else stored & np.uint8((1 << own.bits) - 1)).view(array.dtype)


@evaluator("reduce-precision")
def reduce_precision(operand: Array, *, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds the mantissa to nearest even; what is then beyond the exponents becomes infinite, or zero below them."""
    array = widen(operand)
    exponent_width, mantissa_width = (8, 23) if array.dtype == np.float32 else (11, 52)
    bits = to_bits(array).astype(np.uint64)
    sign = bits & np.uint64(1 << (exponent_width + mantissa_width))
    magnitude = bits ^ sign
    if mantissa_bits < mantissa_width:
        magnitude = _round_mantissa(magnitude, mantissa_width - mantissa_bits)
    infinity = np.uint64(((1 << exponent_width) - 1) << mantissa_width)
    if exponent_bits < exponent_width:
        bias = (1 << (exponent_width - 1)) - 1
        reduced_bias = (1 << (exponent_bits - 1)) - 1
        exponent = (magnitude >> np.uint64(mantissa_width)).astype(np.int64)
        magnitude = np.where(exponent > bias + reduced_bias, infinity, magnitude)
        magnitude = np.where(exponent <= bias - reduced_bias, np.uint64(0), magnitude)
    rounded = from_bits(magnitude | sign, element_type(array))
    return narrow(np.where(np.isnan(array), array, rounded), element_type(operand))


def _round_mantissa(magnitude: Array, dropped: int) -> Array:
    last = magnitude >> np.uint64(dropped) & np.uint64(1)
    rounded = magnitude + (np.uint64((1 << (dropped - 1)) - 1) + last)
    return np.asarray(rounded >> np.uint64(dropped) << np.uint64(dropped))
