"""Random bits: a unit of work is one counter, which Threefry or Philox turns into two or four words.

    for counter in [begin, end), `lanes` at a time:  store the words of each counter, one counter after the other

Every word depends on the state and its own number alone, so any split of the units gives the same bits. The expander of
random numbers brings every rng-bit-generator into the form that this writes: whole counters, words in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Indexing
from xlapy.codegen.ir import I32, I64, KernelBuilder, Value
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import RandomAlgorithm
from xlapy.hlo.evaluate.random import (
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    PHILOX_WEYL,
    THREEFRY_PARITY,
    THREEFRY_ROTATIONS,
    WORD,
)
from xlapy.hlo.graph import Instruction
from xlapy.support.errors import InternalError
from xlapy_runtime.records import Record

WORD_BYTES = 4
WORK_PER_WORD = 8  # bytes that could be moved while one word is computed


class BitsPlan(Record):
    """How many counters there are, and what each becomes."""

    algorithm: RandomAlgorithm
    state_words: int
    words: int  # of one counter
    units: int
    lanes: int

    @property
    def bytes_per_unit(self) -> int:
        return self.words * WORD_BYTES * WORK_PER_WORD


def plan_bits(instruction: Instruction, target: Target) -> BitsPlan:
    algorithm: RandomAlgorithm = instruction.attributes["algorithm"]
    state, bits = instruction.shape.parts
    words = 2 if algorithm is RandomAlgorithm.THREE_FRY else 4
    units, rest = divmod(bits.bytes, words * WORD_BYTES)
    if rest or bits.type.bits < 32:
        raise InternalError(f"{instruction} was not expanded into whole counters")
    lanes = min(target.lanes(32), 1 << int(math.log2(max(units, 1))))
    return BitsPlan(algorithm, state.dims[0], words, units, lanes)


def emit_bits(
    k: KernelBuilder, plan: BitsPlan, state: Array, outputs: Sequence[Array], begin: Value, end: Value
) -> None:
    """Writes the words of counters [begin, end); who has the first counter also writes the next state."""
    words = [k.load(k.gep(state.pointer, number, 8), I64) for number in range(plan.state_words)]
    key, low = words[0], words[1]
    high = words[2] if plan.state_words > 2 else key
    with k.if_(k.compare("eq", begin, 0)):
        _store_next_state(k, plan, words, outputs[0])
    keys = _halves(k, key)
    target = outputs[1]

    def step(ix: Indexing, position: Value) -> None:
        number = ix.vector(ix.along_lanes(position))
        counter = k.add(number, low)
        if plan.algorithm is RandomAlgorithm.THREE_FRY:
            made = _threefry(k, keys, _halves(k, counter))
        else:
            carry = k.zext(k.compare("lt", counter, low, signed=False), counter.type)
            made = _philox(k, keys, [*_halves(k, counter), *_halves(k, k.add(carry, high))])
        pointer = k.gep(target.pointer, position, plan.words * WORD_BYTES)
        _store_interleaved(k, pointer, made, target.alias)

    strip(k, begin, end, plan.lanes, step, overlapping=True)


def _store_next_state(k: KernelBuilder, plan: BitsPlan, words: Sequence[Value], target: Array) -> None:
    following = [words[0], k.add(words[1], plan.units)]
    if plan.state_words > 2:
        carry = k.compare("lt", following[1], words[1], signed=False)
        following.append(k.add(words[2], k.zext(carry, I64)))
    for number, word in enumerate(following):
        k.store(k.gep(target.pointer, number, 8), word, alias=target.alias)


def _halves(k: KernelBuilder, double: Value) -> list[Value]:
    """The low and the high 32 bits."""
    type = I32.with_lanes(double.type.lanes)
    return [k.trunc(double, type), k.trunc(k.lshr(double, 32), type)]


def _store_interleaved(k: KernelBuilder, pointer: Value, words: Sequence[Value], alias: str | None) -> None:
    """All words of the first lane, then all of the second ..."""
    lanes = words[0].type.lanes
    if lanes == 1:
        for number, word in enumerate(words):
            k.store(k.gep(pointer, number, WORD_BYTES), word, alias=alias)
        return
    joined = list(words)
    while len(joined) > 1:
        joined = [
            k.shuffle(first, second, range(2 * first.type.lanes))
            for first, second in zip(joined[0::2], joined[1::2], strict=True)
        ]
    order = [word * lanes + lane for lane in range(lanes) for word in range(len(words))]
    k.store(pointer, k.shuffle(joined[0], None, order), alias=alias)


def _threefry(k: KernelBuilder, key: Sequence[Value], counter: Sequence[Value]) -> list[Value]:
    """Threefry-2x32 with 20 rounds; a part of the key is added before the first and after every fourth round."""
    keys = [*key, k.xor(k.xor(key[0], key[1]), THREEFRY_PARITY)]
    low, high = k.add(counter[0], keys[0]), k.add(counter[1], keys[1])
    for group in range(5):
        for rotation in THREEFRY_ROTATIONS[group % 2]:
            low = k.add(low, high)
            high = k.xor(k.or_(k.shl(high, rotation), k.lshr(high, 32 - rotation)), low)
        low = k.add(low, keys[(group + 1) % 3])
        high = k.add(high, k.add(keys[(group + 2) % 3], group + 1))
    return [low, high]


def _philox(k: KernelBuilder, key: Sequence[Value], counter: Sequence[Value]) -> list[Value]:
    """Philox-4x32 with 10 rounds; the key moves on by a Weyl sequence in each."""
    x = list(counter)
    for number in range(PHILOX_ROUNDS):
        round_key = [k.add(part, number * step & WORD) for part, step in zip(key, PHILOX_WEYL, strict=True)]
        low0, high0 = _product(k, x[0], PHILOX_MULTIPLIERS[0])
        low1, high1 = _product(k, x[2], PHILOX_MULTIPLIERS[1])
        x = [k.xor(k.xor(high1, x[1]), round_key[0]), low1, k.xor(k.xor(high0, x[3]), round_key[1]), low0]
    return x


def _product(k: KernelBuilder, word: Value, multiplier: int) -> list[Value]:
    """The low and the high word of the product of two words."""
    return _halves(k, k.mul(k.zext(word, I64.with_lanes(word.type.lanes)), multiplier))
