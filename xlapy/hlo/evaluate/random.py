"""Random numbers: Threefry and Philox as in Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

The order in which words become elements is that of XLA:CPU, so that the same state gives the same bits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from xlapy.hlo.attributes import RandomAlgorithm, RandomDistribution
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.evaluate.base import Steps, evaluator, who_am_i
from xlapy.hlo.evaluate.numerics import Array, element_type, from_bits, narrow, widen
from xlapy.hlo.evaluate.special import erf_inv, scalar
from xlapy.hlo.shape import Shape

WORD = (1 << 32) - 1
DOUBLE_WORD = (1 << 64) - 1

THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY = 0x1BD11BDA
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10


@evaluator("rng-bit-generator")
def rng_bit_generator(state: Array, *, algorithm: RandomAlgorithm, result: Shape) -> tuple[Array, Array]:
    shape = result.parts[1]
    generate = threefry_bits if algorithm is RandomAlgorithm.THREE_FRY else philox_bits
    bits, following = generate([int(word) for word in state], shape.dims, shape.type.bits == 64)
    return np.array(following, np.uint64), _as_type(bits, shape.type)


def _as_type(bits: Array, target: ElementType) -> Array:
    """The low bits of each element, read as another type."""
    return from_bits(bits & np.uint64((1 << target.bits) - 1), target)


# -- bits ----------------------------------------------------------------------------------------------------------


def threefry_bits(state: Sequence[int], dims: Sequence[int], wide: bool) -> tuple[Array, list[int]]:
    """Bits of 64 or of 32 each, and the state after them.

    The two words of a counter are one wide element, or two neighbours along the first even dimension; along the
    largest one if none is even, where the last has no partner."""
    key, counter = state
    if wide:
        low, high = threefry(key, _counters(counter, dims))
        return low | high << np.uint64(32), [key, (counter + low.size) & DOUBLE_WORD]
    sizes = list(dims) or [1]
    even = [dim for dim, size in enumerate(sizes) if size % 2 == 0]
    split = even[0] if even else sizes.index(max(sizes))
    half = [*sizes[:split], -(-sizes[split] // 2), *sizes[split + 1 :]]
    words = threefry(key, _counters(counter, half))
    paired = np.stack(words, axis=split + 1).reshape([*half[:split], 2 * half[split], *half[split + 1 :]])
    bits = np.take(paired, range(sizes[split]), axis=split).reshape(dims)
    return bits, [key, (counter + words[0].size) & DOUBLE_WORD]


def _counters(first: int, dims: Sequence[int]) -> Array:
    count = np.arange(int(np.prod(dims, dtype=np.int64)), dtype=np.uint64)
    return np.asarray((count + np.uint64(first)).reshape(dims))


def threefry(key: int, counters: Array) -> tuple[Array, Array]:
    """The two words, each in a u64, that Threefry-2x32 with 20 rounds makes of each 64-bit counter."""
    word = np.uint64(WORD)
    keys = [np.uint64(key & WORD), np.uint64(key >> 32)]
    keys.append(keys[0] ^ keys[1] ^ np.uint64(THREEFRY_PARITY))
    low, high = ((counters & word) + keys[0]) & word, ((counters >> np.uint64(32)) + keys[1]) & word
    for group in range(5):
        for rotation in THREEFRY_ROTATIONS[group % 2]:
            low = (low + high) & word
            high = (high << np.uint64(rotation) | high >> np.uint64(32 - rotation)) & word ^ low
        low = (low + keys[(group + 1) % 3]) & word
        high = (high + keys[(group + 2) % 3] + np.uint64(group + 1)) & word
    return low, high


def philox_bits(state: Sequence[int], dims: Sequence[int], wide: bool) -> tuple[Array, list[int]]:
    """Bits of 64 or of 32 each, and the state after them. The four words of a counter are neighbours.

    In a state of two words the key is the high half of the counter too."""
    key, *counter = state
    first = counter[0] + ((counter[1] if len(counter) > 1 else key) << 64)
    size = int(np.prod(dims, dtype=np.int64))
    groups = -(-size * (2 if wide else 1) // 4)
    words = np.stack(philox(key, first, groups), axis=1)
    if wide:
        words = words[:, 0::2] | words[:, 1::2] << np.uint64(32)
    following = first + groups
    halves = [following & DOUBLE_WORD, following >> 64 & DOUBLE_WORD]
    return words.reshape(-1)[:size].reshape(dims), [key, *halves[: len(counter)]]


def philox(key: int, first: int, count: int) -> list[Array]:
    """The four words, each in a u64, that Philox-4x32 with 10 rounds makes of 128-bit counters from `first` on."""
    word, half = np.uint64(WORD), np.uint64(32)
    low = np.arange(count, dtype=np.uint64) + np.uint64(first & DOUBLE_WORD)
    carried = (low < np.uint64(first & DOUBLE_WORD)).astype(np.uint64)
    high = np.uint64(first >> 64 & DOUBLE_WORD) + carried
    x = [low & word, low >> half, high & word, high >> half]
    keys = [key & WORD, key >> 32]
    for _ in range(PHILOX_ROUNDS):
        first_product, second_product = (x[2 * i] * np.uint64(PHILOX_MULTIPLIERS[i]) for i in range(2))
        x = [
            (second_product >> half) ^ x[1] ^ np.uint64(keys[0]),
            second_product & word,
            (first_product >> half) ^ x[3] ^ np.uint64(keys[1]),
            first_product & word,
        ]
        keys = [(part + step) & WORD for part, step in zip(keys, PHILOX_WEYL, strict=True)]
    return x


# -- the state of the program --------------------------------------------------------------------------------------


SCRAMBLE = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
"""Odd multipliers that spread the bits of a seed, between shifts by 33 bits."""


def program_state(seed: int, call: int, draws: int) -> tuple[int, int]:
    """The key: the seed, scrambled. The counter: draws before in this call << 32 | number of the call."""
    key = (seed + SCRAMBLE_START) & DOUBLE_WORD
    for multiplier in SCRAMBLE:
        key = (key ^ key >> 33) * multiplier & DOUBLE_WORD
    return key ^ key >> 33, (draws << 32 | call) & DOUBLE_WORD


SCRAMBLE_START = 0x9E3779B97F4A7C15
"""Keeps seed 0 from being key 0."""


def draw() -> Generator[Any, Any, tuple[int, int]]:
    """The state that an executable hands out in its first call with seed 0; for `yield from`."""
    process = yield from who_am_i()
    state = program_state(0, 0, process.draws)
    process.draws += 1
    return state


@evaluator("rng-get-and-update-state")
def rng_get_and_update_state(*, delta: int) -> Steps:
    state = yield from draw()
    return np.array(state, np.uint64)


@evaluator("rng")
def rng(a: Array, b: Array, *, distribution: RandomDistribution, result: Shape) -> Steps:
    key, counter = yield from draw()
    kind = result.type
    is_wide = kind.bits == 64 or (kind.bits == 32 and kind.is_integer)
    bits, _ = philox_bits([key, 0, counter], result.dims, is_wide)
    with np.errstate(all="ignore"):
        if distribution is RandomDistribution.NORMAL:
            return narrow(_normal(bits, widen(a), widen(b)), kind)
        if kind.is_float:
            numbers = narrow(_uniform(bits, widen(a), widen(b)), kind)
            return np.where(widen(numbers) < widen(b), numbers, a)
        if kind.is_integer:
            return _integers(bits, a, b)
        return np.where(bits & np.uint64(1), b, a)


def _uniform(bits: Array, a: Array, b: Array) -> Array:
    """Multiples of 2^-24 or 2^-53 below 1, moved to [a, b)."""
    digits = np.finfo(a.dtype).nmant + 1
    unit = (bits >> np.uint64(_word_bits(a.dtype) - digits)).astype(a.dtype) * a.dtype.type(2.0**-digits)
    return np.asarray(unit * (b - a) + a)


def _normal(bits: Array, a: Array, b: Array) -> Array:
    """By the inverse of the distribution function, of odd multiples of 2^-24 or 2^-53 between -1 and 1."""
    digits = np.finfo(a.dtype).nmant + 1
    whole = (bits >> np.uint64(_word_bits(a.dtype) - digits)).astype(np.int64)
    unit = (2 * whole + 1 - (1 << digits)).astype(a.dtype) * a.dtype.type(2.0**-digits)
    return np.asarray(scalar(erf_inv)(unit) * a.dtype.type(np.sqrt(2)) * b + a)


def _word_bits(dtype: np.dtype[Any]) -> int:
    return 8 * dtype.itemsize


def _integers(bits: Array, a: Array, b: Array) -> Array:
    """a + the leading part of bits * (b - a): each number as likely as the others up to 2^-32. 64 bits: a remainder."""
    kind = element_type(a)
    low, high = int(a), int(b)
    if high <= low:
        return np.full(bits.shape, a)
    span = high - low
    if kind.bits == 64:
        offsets = [int(word) % span for word in bits.reshape(-1)]
    else:
        shift = 64 if kind.bits == 32 else 32
        offsets = [int(word) * span >> shift for word in bits.reshape(-1)]
    numbers = np.array([low + offset for offset in offsets], dtype=object).reshape(bits.shape)
    return numbers.astype(kind.dtype)
