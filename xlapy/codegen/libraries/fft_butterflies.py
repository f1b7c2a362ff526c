"""Short Fourier transforms in registers, the building blocks of long ones.

All are forward transforms: an inverse one is that of the conjugate, conjugated again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.registers import Pair


def butterfly(k: KernelBuilder, values: Sequence[Pair]) -> list[Pair]:
    """The transform of 1, 2, 4, 8 or an odd prime number of values."""
    size = len(values)
    if size == 1:
        return [*values]
    if size == 2:
        return [add(k, *values), subtract(k, *values)]
    if size == 4:
        return _four(k, values)
    if size == 8:
        return _eight(k, values)
    return _odd(k, values)


def _four(k: KernelBuilder, values: Sequence[Pair]) -> list[Pair]:
    a, b, c, d = values
    even_sum, even_difference = add(k, a, c), subtract(k, a, c)
    odd_sum, odd_difference = add(k, b, d), subtract(k, b, d)
    return [
        add(k, even_sum, odd_sum),
        minus_i_times(k, even_difference, odd_difference),
        subtract(k, even_sum, odd_sum),
        plus_i_times(k, even_difference, odd_difference),
    ]


def _eight(k: KernelBuilder, values: Sequence[Pair]) -> list[Pair]:
    sums = [add(k, values[n], values[n + 4]) for n in range(4)]
    differences = [subtract(k, values[n], values[n + 4]) for n in range(4)]
    one, three = differences[1], differences[3]
    half_root = math.sqrt(0.5)
    turned = [
        differences[0],
        Pair(k.mul(k.add(one.re, one.im), half_root), k.mul(k.sub(one.im, one.re), half_root)),
        Pair(differences[2].im, k.neg(differences[2].re)),
        Pair(k.mul(k.sub(three.im, three.re), half_root), k.mul(k.add(three.re, three.im), -half_root)),
    ]
    even, odd = _four(k, sums), _four(k, turned)
    return [value for pair in zip(even, odd, strict=True) for value in pair]


def _odd(k: KernelBuilder, values: Sequence[Pair]) -> list[Pair]:
    """Values n and -n make the cosine part with their sum, the sine part with their difference."""
    size = len(values)
    half = size // 2
    sums = [add(k, values[n], values[size - n]) for n in range(1, half + 1)]
    differences = [subtract(k, values[n], values[size - n]) for n in range(1, half + 1)]
    results = [values[0]] * size
    for term in sums:
        results[0] = add(k, results[0], term)
    for j in range(1, half + 1):
        angles = [2 * math.pi * (j * n % size) / size for n in range(1, half + 1)]
        even = _combination(k, values[0], sums, [math.cos(angle) for angle in angles])
        odd = _combination(k, None, differences, [math.sin(angle) for angle in angles])
        results[j] = minus_i_times(k, even, odd)
        results[size - j] = plus_i_times(k, even, odd)
    return results


def _combination(k: KernelBuilder, start: Pair | None, terms: Sequence[Pair], factors: Sequence[float]) -> Pair:
    """start + the sum of terms times real factors."""

    def part(first: Value | None, values: Sequence[Value]) -> Value:
        total = first
        for value, factor in zip(values, factors, strict=True):
            total = k.mul(value, factor) if total is None else k.muladd(value, factor, total)
        assert total is not None
        return total

    return Pair(
        part(start.re if start else None, [term.re for term in terms]),
        part(start.im if start else None, [term.im for term in terms]),
    )


def add(k: KernelBuilder, a: Pair, b: Pair) -> Pair:
    return Pair(k.add(a.re, b.re), k.add(a.im, b.im))


def subtract(k: KernelBuilder, a: Pair, b: Pair) -> Pair:
    return Pair(k.sub(a.re, b.re), k.sub(a.im, b.im))


def minus_i_times(k: KernelBuilder, a: Pair, b: Pair) -> Pair:
    """a - i b"""
    return Pair(k.add(a.re, b.im), k.sub(a.im, b.re))


def plus_i_times(k: KernelBuilder, a: Pair, b: Pair) -> Pair:
    """a + i b"""
    return Pair(k.sub(a.re, b.im), k.add(a.im, b.re))


def multiply(k: KernelBuilder, a: Pair, b: Pair) -> Pair:
    """a b, each part with one product fused into a sum where the target can."""
    return Pair(
        k.muladd(a.re, b.re, k.neg(k.mul(a.im, b.im))),
        k.muladd(a.re, b.im, k.mul(a.im, b.re)),
    )


def conjugate(k: KernelBuilder, a: Pair) -> Pair:
    return Pair(a.re, k.neg(a.im))
