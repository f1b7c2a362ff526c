"""Expansion of random numbers into random bits and arithmetic.

    ROOT r = f32[3] rng(a, b), distribution=rng_uniform        becomes        a generator of bits and arithmetic:

    state = u64[2] rng-get-and-update-state(), delta=1
    key, counter = the two words of state
    words = (u64[3], u32[4]) rng-bit-generator({key, 0, counter}), algorithm=rng_philox
    unit = f32[3] multiply(convert(shift-right-logical(slice(words), 8)), 2^-24)
    ROOT r = f32[3] add(multiply(unit, subtract(b, a)), a)

An rng-bit-generator becomes one that its kernel can write: u32 or u64, a whole number of counters, words in the order
of the counters. What XLA does with them to get other shapes and types is data movement and conversion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import ml_dtypes

from xlapy.hlo.attributes import ComparisonDirection, OpMetadata, RandomAlgorithm, RandomDistribution, SliceDimension
from xlapy.hlo.element_types import F32, F64, PRED, S32, S64, U2, U4, U8, U16, U32, U64, ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes import new
from xlapy.passes.base import ComputationPass, replace_all
from xlapy.passes.new import Value

UNSIGNED = {2: U2, 4: U4, 8: U8, 16: U16, 32: U32, 64: U64}


@dataclass
class ExpandRandom(ComputationPass):
    name: ClassVar[str] = "expand-random"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = frozenset({"rng", "rng-bit-generator"})

    def run_on(self, computation: Computation) -> bool:
        replacements: dict[Instruction, Instruction] = {}
        for instruction in computation.post_order():
            expanded = _expansion(instruction)
            if expanded is not None:
                written = _as_written(instruction)
                replacements[instruction], _ = new.materialize(expanded, computation, instruction, written)
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _as_written(instruction: Instruction) -> OpMetadata:
    """The metadata, also saying which instruction that was: errors about the expansion are to name what users wrote."""
    known = instruction.metadata
    return replace(known, op_type=known.op_type or instruction.opcode, op_name=known.op_name or instruction.name)


def _expansion(instruction: Instruction) -> Value | None:
    if instruction.opcode == "rng":
        return _numbers(instruction)
    if instruction.opcode == "rng-bit-generator" and not _is_plain(instruction):
        shape = instruction.shape.parts[1]
        following, bits = random_bits(instruction.attributes["algorithm"], instruction.operands[0], shape)
        return new.tuple_(following, bits)
    return None


# -- bits ----------------------------------------------------------------------------------------------------------


def _is_plain(generator: Instruction) -> bool:
    """The kernel can write it as it is."""
    algorithm, shape = generator.attributes["algorithm"], generator.shape.parts[1]
    if shape.type not in (U32, U64) or not shape.size:
        return False
    if algorithm is not RandomAlgorithm.THREE_FRY:
        return shape.bytes % (4 * U32.bytes) == 0
    if shape.type is U64:
        return True
    even = [dim for dim, size in enumerate(shape.dims) if size % 2 == 0]
    return bool(even) and math.prod(shape.dims[even[0] + 1 :]) == 1


def random_bits(algorithm: RandomAlgorithm, state: Value, shape: Shape) -> tuple[Value, Value]:
    """The next state and an array of `shape`, from generators that have a kernel."""
    if not shape.size:
        return state, new.filled(0, shape)
    wide = shape.type.bits == 64
    if algorithm is not RandomAlgorithm.THREE_FRY:
        following, words = _philox(algorithm, state, shape.dims, wide)
    elif wide:
        following, words = _generated(algorithm, state, Shape.array(U64, shape.dims))
    else:
        following, words = _threefry(state, shape.dims)
    return following, _as_type(words, shape.type)


def _generated(algorithm: RandomAlgorithm, state: Value, shape: Shape) -> tuple[Value, Value]:
    result = Shape.tuple([state.shape, shape])
    both = new.rng_bit_generator(state, shape=result, algorithm=algorithm)
    return new.get_tuple_element(both, index=0), new.get_tuple_element(both, index=1)


def _philox(algorithm: RandomAlgorithm, state: Value, dims: Dims, wide: bool) -> tuple[Value, Value]:
    """The words in order; what is left of the last four is dropped."""
    per_counter = 2 if wide else 4
    size = math.prod(dims)
    whole = Shape.array(U64 if wide else U32, (-(-size // per_counter) * per_counter,))
    following, words = _generated(algorithm, state, whole)
    return following, new.reshaped(_leading(words, 0, size), dims)


def _threefry(state: Value, dims: Dims) -> tuple[Value, Value]:
    """The two words of a counter are neighbours along the first even dimension, or else along the largest one."""
    sizes = dims or (1,)
    even = [dim for dim, size in enumerate(sizes) if size % 2 == 0]
    split = even[0] if even else sizes.index(max(sizes))
    half = (*sizes[:split], -(-sizes[split] // 2), *sizes[split + 1 :])
    whole = Shape.array(U32, (2 * math.prod(half),))
    following, words = _generated(RandomAlgorithm.THREE_FRY, state, whole)
    paired = new.reshaped(words, (*half, 2))
    last = len(half)
    order = (*range(split + 1), last, *range(split + 1, last))
    if split + 1 != last:
        paired = new.transpose(paired, permutation=order)
    joined = new.reshaped(paired, (*half[:split], 2 * half[split], *half[split + 1 :]))
    return following, new.reshaped(_leading(joined, split, sizes[split]), dims)


def _leading(array: Value, dimension: int, size: int) -> Value:
    """The first `size` entries along a dimension."""
    dims = array.shape.dims
    if dims[dimension] == size:
        return array
    limits = [size if dim == dimension else whole for dim, whole in enumerate(dims)]
    return new.slice(array, dimensions=tuple(SliceDimension(0, limit) for limit in limits))


def _as_type(words: Value, target: ElementType) -> Value:
    """The low bits of words as another type."""
    if target.bits not in UNSIGNED:
        return _as_narrow_float(words, target)
    unsigned = new.converted(words, UNSIGNED[target.bits])
    if target is unsigned.shape.type:
        return unsigned
    return new.bitcast_convert(unsigned, shape=unsigned.shape.with_type(target))


def _as_narrow_float(words: Value, target: ElementType) -> Value:
    """The low bits of words as a float of a width that no integer has, all of whose bits spell finite numbers.

    Sign, exponent and mantissa move to where an f32 has them, which makes them smaller by a power of two."""
    limits = ml_dtypes.finfo(target.dtype)  # type: ignore[no-untyped-call]
    sign = new.number(1 << (target.bits - 1), words)
    magnitude = new.number((1 << (target.bits - 1)) - 1, words)
    signs = new.shift_left(new.and_(words, sign), new.number(F32.bits - target.bits, words))
    moved = new.shift_left(new.and_(words, magnitude), new.number(_F32_MANTISSA - limits.nmant, words))
    small = new.bitcast_convert(new.or_(signs, moved), shape=words.shape.with_type(F32))
    scale = float(limits.smallest_subnormal) * 2.0 ** (limits.nmant - _F32_LEAST)
    return new.converted(new.multiply(small, new.number(scale, small)), target)


_F32_MANTISSA = 23  # bits
_F32_LEAST = -126  # the exponent of the least normal f32


# -- numbers -------------------------------------------------------------------------------------------------------


def _numbers(rng: Instruction) -> Value:
    """Uniform or normal numbers, from Philox with the program's own state."""
    a, b = (new.repeated(bound, rng.shape.dims) for bound in rng.operands)
    target = rng.shape.type
    wide = target.bits == 64 or (target.bits == 32 and target.is_integer)
    words = Shape.array(U64 if wide else U32, rng.shape.dims)
    _, bits = random_bits(RandomAlgorithm.PHILOX, _program_state(), words)
    if rng.attributes["distribution"] is RandomDistribution.NORMAL:
        return new.converted(_normal(bits, *_computable(a, b)), target)
    if target.is_float:
        numbers = new.converted(_uniform(bits, *_computable(a, b)), target)
        return new.select(_compared(numbers, b, ComparisonDirection.LT), numbers, a)  # not b by rounding
    if target is PRED:
        odd = new.and_(bits, new.number(1, bits))
        return new.select(_compared(odd, new.number(0, odd), ComparisonDirection.NE), b, a)
    return new.select(_compared(a, b, ComparisonDirection.LT), new.add(a, _offset(bits, a, b)), a)


def _program_state() -> Value:
    """A state of Philox: the key of the program, and a counter whose high half nobody else has."""
    state = new.rng_get_and_update_state(delta=1)
    key, counter = (new.slice(state, dimensions=(SliceDimension(word, word + 1),)) for word in range(2))
    return new.concatenate(key, new.number(0, key), counter, dimension=0)


def _computable(*values: Value) -> Sequence[Value]:
    """The numbers in f32, or f64 if they are that."""
    return [new.converted(value, F64 if value.shape.type is F64 else F32) for value in values]


def _digits(kind: ElementType) -> int:
    return 53 if kind is F64 else 24


def _uniform(bits: Value, a: Value, b: Value) -> Value:
    """Multiples of 2^-24 or 2^-53 below 1, moved to [a, b)."""
    kind = a.shape.type
    whole = new.shift_right_logical(bits, new.number(kind.bits - _digits(kind), bits))
    unit = new.multiply(new.converted(whole, kind), new.number(2.0 ** -_digits(kind), a))
    return new.add(new.multiply(unit, new.subtract(b, a)), a)


def _normal(bits: Value, mean: Value, deviation: Value) -> Value:
    """By the inverse of the distribution function, of odd multiples of 2^-24 or 2^-53 between -1 and 1."""
    kind = mean.shape.type
    digits = _digits(kind)
    whole = new.converted(
        new.shift_right_logical(bits, new.number(kind.bits - digits, bits)), S64 if kind is F64 else S32
    )
    odd = new.add(new.add(whole, whole), new.number(1 - (1 << digits), whole))
    unit = new.multiply(new.converted(odd, kind), new.number(2.0**-digits, mean))
    standard = new.multiply(new.erf_inv(unit), new.number(math.sqrt(2), mean))
    return new.add(new.multiply(standard, deviation), mean)


def _offset(bits: Value, a: Value, b: Value) -> Value:
    """The leading part of bits * (b - a), as a number of the type of `a`; of 64 bits a remainder."""
    span = new.subtract(new.converted(b, U64), new.converted(a, U64))
    if a.shape.type.bits == 64:
        return new.converted(new.remainder(bits, span), a.shape.type)
    word = new.number(32, span)
    if bits.shape.type is U32:
        leading = new.shift_right_logical(new.multiply(new.converted(bits, U64), span), word)
    else:
        high = new.multiply(new.shift_right_logical(bits, word), span)
        low = new.multiply(new.and_(bits, new.number((1 << 32) - 1, span)), span)
        leading = new.shift_right_logical(new.add(high, new.shift_right_logical(low, word)), word)
    return new.converted(leading, a.shape.type)


def _compared(lhs: Value, rhs: Value, direction: ComparisonDirection) -> Value:
    return new.compare(lhs, rhs, direction=direction)
