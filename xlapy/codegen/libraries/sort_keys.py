"""Keys: unsigned integers that order as the elements do, made of their words by a few numbers.

    canonical    zeros (if the magnitude is less than `zeros`) are 0, NaNs (if it is more than `nans`) are one of them
    key          the word at the upper end of its bits (`spare` are left over); negative floats have their `magnitude`
                 inverted; `flip` turns the sign bit round, and everything if the order is descending

A magnitude is what `low` leaves of a word. Each step is one of every element type; where one is not wanted its number
makes it do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xlapy.codegen.ir import I8, I64, IRType, Value
from xlapy.codegen.kernels.sort_records import Column, word_type
from xlapy.codegen.libraries.sort_problem import Problem
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.sort_plan import SortKey


def key_numbers(element_type: ElementType, key: SortKey) -> dict[str, int]:
    """What `KeyCode` is told of an element type and an order."""
    bits = word_type(element_type.bytes).bits
    sign, every = 1 << (bits - 1), (1 << bits) - 1
    spare = 0 if element_type.kind == "pred" else bits - element_type.bits
    has_sign_bit = element_type.is_float and element_type.name != "f8e8m0fnu"  # that is an exponent alone
    infinity = int(np.array(np.inf, element_type.dtype).view(f"u{element_type.bytes}")) if key.merges_nans else every
    return {
        "spare": spare,
        "magnitude": sign - 1 if has_sign_bit else 0,
        "flip": (sign if has_sign_bit or element_type.is_signed else 0) ^ (every if key.descending else 0),
        "low": (sign - 1) >> spare,
        "kept_bits": every if element_type.is_signed else every >> spare,
        "zeros": int(key.merges_zeros),
        "nans": infinity,
        "nan": sign - 1,  # one that sorts behind infinity
    }


@dataclass(frozen=True, slots=True)
class KeyCode:
    """The code between words of elements and keys of the same width, scalars or vectors."""

    problem: Problem
    type: IRType

    def _number(self, name: str) -> Value:
        return self.problem.k.trunc(self.problem[name], self.type)

    def canonical(self, word: Value) -> Value:
        """The word that stands for all that the key does not tell apart."""
        k = self.problem.k
        magnitude = k.and_(word, self._number("low"))
        word = k.select(k.compare("gt", magnitude, self._number("nans"), signed=False), self._number("nan"), word)
        return k.select(k.compare("lt", magnitude, self._number("zeros"), signed=False), 0, word)

    def encode(self, word: Value) -> Value:
        """The key of a canonical word."""
        k = self.problem.k
        if self.type == I8:  # all others fill their words
            word = k.shl(word, self._number("spare"))
        inverted = k.and_(k.ashr(word, self.type.bits - 1), self._number("magnitude"))
        return k.xor(k.xor(word, inverted), self._number("flip"))

    def key(self, word: Value) -> Value:
        return self.encode(self.canonical(word))

    def decode(self, key: Value) -> Value:
        """The word that `encode` made the key of; what is spare repeats the sign, if `kept_bits` has it."""
        k = self.problem.k
        word = k.xor(key, self._number("flip"))
        word = k.xor(word, k.and_(k.ashr(word, self.type.bits - 1), self._number("magnitude")))
        return k.and_(k.ashr(word, self._number("spare")), self._number("kept_bits")) if self.type == I8 else word

    def merged(self) -> Sequence[Value]:
        """The keys that several different words may have."""
        k = self.problem.k
        return [self.encode(word) for word in (k.const(self.type, 0), self._number("nan"))]


def restore_merged(code: KeyCode, source: Column, result: Column) -> None:
    """Gives elements whose keys are equal, though they are not, their own bits back, in the order of the row."""
    k, length = code.problem.k, code.problem["length"]
    zero, nan = code.merged()
    with k.loop(0, 2) as which:
        merged = k.select(k.compare("eq", which.index, 0), zero, nan)
        with listening_loop(k, 0, length, carry=[k.const(I64, 0)]) as loop:
            key = code.key(source.load(k, loop.index))
            loop.next = [k.add(loop.values[0], k.zext(k.compare("lt", key, merged, signed=False), I64))]
        with listening_loop(k, 0, length, carry=loop.results) as loop:
            word = source.load(k, loop.index)
            is_member = k.compare("eq", code.key(word), merged)
            with k.if_(is_member):
                result.store(k, loop.values[0], word)
            loop.next = [k.add(loop.values[0], k.zext(is_member, I64))]
