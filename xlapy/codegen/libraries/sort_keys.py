"""Keys: unsigned integers that order as the elements do, made of their words by a few numbers.

    canonical    zeros (the magnitude is less than `zeros`) are 0, NaNs (it is more than `nans`) are one of them
    key          negative floats have their `magnitude` inverted; `flip` turns the sign bit round, and everything if
                 the order is descending

So the code is the same for all element types of a width; a step that one of them does without has a number that makes
it do nothing. Elements of less than a byte are the lower bits of their words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

import numpy as np

from xlapy.codegen.ir import I8, I64, IRType, Value
from xlapy.codegen.kernels.sort_records import Column, word_type
from xlapy.codegen.libraries.sort_problem import Problem
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.sort_plan import SortKey
from xlapy_runtime.records import Record


def key_numbers(element_type: ElementType, key: SortKey) -> dict[str, int]:
    """What `KeyCode` is told of an element type and an order."""
    word = word_type(element_type.bytes)
    bits = word.bits if element_type.kind == "pred" else element_type.bits
    sign, element = 1 << (bits - 1), (1 << bits) - 1
    has_sign_bit = element_type.is_float and element_type.name != "f8e8m0fnu"  # that is an exponent alone
    infinity = int(np.array(np.inf, element_type.dtype).view(f"u{word.bytes}")) if key.merges_nans else element
    is_signed = has_sign_bit or element_type.is_signed
    return {
        "merges": int(key.merges_zeros or key.merges_nans),
        "zeros": int(key.merges_zeros),
        "nans": infinity,
        "low": sign - 1,
        "element": element,
        "sign": sign if is_signed else 0,
        "magnitude": sign - 1 if has_sign_bit else 0,
        "flip": (sign if is_signed else 0) ^ (element if key.descending else 0),
        "upper": ((1 << word.bits) - 1) ^ element if element_type.is_signed else 0,
    }


class KeyCode(Record):
    """The code between words of elements and keys of the same width, scalars or vectors."""

    problem: Problem
    type: IRType

    def _number(self, name: str) -> Value:
        return self.problem.k.trunc(self.problem[name], self.type)

    def new_merged(self) -> Value:
        """A byte for `encode_all`: so far each key tells its word."""
        merged = self.problem.k.alloca(I8)
        self.problem.k.store(merged, self.problem.k.const(I8, 0))
        return merged

    @contextmanager
    def where_merged(self, merged: Value) -> Iterator[None]:
        """The code in it runs if a key did not tell its word."""
        k = self.problem.k
        with k.if_(k.compare("ne", k.load(merged, I8), 0)):
            yield

    def encode_all(self, words: Sequence[Value], use: Callable[[int, Value], None], merged: Value) -> None:
        """Uses the number and the key of each word; sets the byte `merged` if a key does not tell its word.

        Keys are used one after the other, so that no more words than before need registers."""
        k = self.problem.k

        def each_canonical() -> None:
            differ = []
            for number, word in enumerate(words):
                canonical = self._canonical(word)
                differ.append(k.compare("ne", word, canonical))
                use(number, self.encode(canonical))
            any_of_them = k.any_lane(reduce(k.or_, differ))
            k.store(merged, k.or_(k.load(merged, I8), k.zext(any_of_them, I8)))

        def each() -> None:
            for number, word in enumerate(words):
                use(number, self.encode(word))

        k.if_else(k.compare("ne", self.problem["merges"], 0), each_canonical, each)

    def _canonical(self, word: Value) -> Value:
        k = self.problem.k
        magnitude = k.and_(word, self._number("low"))
        word = k.select(k.compare("gt", magnitude, self._number("nans"), signed=False), self._number("low"), word)
        return k.select(k.compare("lt", magnitude, self._number("zeros"), signed=False), 0, word)

    def _where_negative(self, word: Value, bits: Value) -> Value:
        """`bits` of negative elements, else 0."""
        k = self.problem.k
        if self.type != I8:  # all but bytes are whole elements
            return k.and_(k.ashr(word, self.type.bits - 1), bits)
        return k.select(k.compare("ne", k.and_(word, self._number("sign")), 0), bits, 0)

    def encode(self, word: Value) -> Value:
        """The key of a canonical word."""
        k = self.problem.k
        if self.type == I8:
            word = k.and_(word, self._number("element"))
        return k.xor(k.xor(word, self._where_negative(word, self._number("magnitude"))), self._number("flip"))

    def decode(self, key: Value) -> Value:
        """The word that `encode` made the key of. Above a negative integer are ones."""
        k = self.problem.k
        word = k.xor(key, self._number("flip"))
        other = k.or_(self._number("magnitude"), self._number("upper"))
        return k.xor(word, self._where_negative(word, other))

    def key(self, word: Value) -> Value:
        """The key of any word."""
        return self.encode(self._canonical(word))

    def shared(self) -> Sequence[Value]:
        """The keys that several different words may have."""
        k = self.problem.k
        return [self.encode(word) for word in (k.const(self.type, 0), self._number("low"))]


def restore_merged(code: KeyCode, source: Column, result: Column) -> None:
    """Gives elements whose keys are equal, though they are not, their own bits back, in the order of the row."""
    k, length = code.problem.k, code.problem["length"]
    zero, nan = code.shared()
    with k.loop(0, 2) as which:
        shared = k.select(k.compare("eq", which.index, 0), zero, nan)
        with listening_loop(k, 0, length, carry=[k.const(I64, 0)]) as loop:
            key = code.key(source.load(k, loop.index))
            loop.next = [k.add(loop.values[0], k.zext(k.compare("lt", key, shared, signed=False), I64))]
        with listening_loop(k, 0, length, carry=loop.results) as loop:
            word = source.load(k, loop.index)
            is_member = k.compare("eq", code.key(word), shared)
            with k.if_(is_member):
                result.store(k, loop.values[0], word)
            loop.next = [k.add(loop.values[0], k.zext(is_member, I64))]
