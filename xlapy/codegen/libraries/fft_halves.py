"""Real transforms of even length: their neighbours as real and imaginary parts make a transform of half the length.

With Z that of the pairs, and X the spectrum of all N numbers, for k up to N / 2,

    E[k] = (Z[k] + conj(Z[N/2 - k])) / 2            the spectrum of the numbers at even places
    D[k] = (Z[k] - conj(Z[N/2 - k])) / 2            i times that of those at odd places
    X[k] = E[k] - i w^k D[k]                        w = exp(-2 pi i / N), Z[N/2] = Z[0]

    Z[k] = X[k] + conj(X[N/2 - k]) + i w^-k (X[k] - conj(X[N/2 - k]))        twice as large, for the way back

Each comes as a step for one transform, whose lanes are along k, and as one for rows of transforms.

    split, split_rows    Z to X
    join, join_rows      X to Z
"""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import Value
from xlapy.codegen.libraries.fft_butterflies import add, conjugate, minus_i_times, multiply, plus_i_times, subtract
from xlapy.codegen.libraries.fft_step import StepEmitter
from xlapy.codegen.registers import Pair

_Combine = Callable[[StepEmitter, Pair, Pair, Pair], Pair]
"""Of a value, the mirrored one's conjugate and the root w^k."""


def emit_split(e: StepEmitter) -> None:
    _each(e, _split)


def emit_split_rows(e: StepEmitter) -> None:
    _each_row(e, _split)


def emit_join(e: StepEmitter) -> None:
    """The imaginary parts of the first and the last element of X do not count."""
    _each(e, _join)
    k = e.k
    first, last = (k.load(place, e.type) for place in (e.source, e.moved(e.source, e["source_distance"])))
    k.store(e.target, k.add(first, last))
    k.store(e.moved(e.target, 1), k.sub(first, last))


def emit_join_rows(e: StepEmitter) -> None:
    """The first row comes first, because vectors may go beyond its end."""
    k = e.k
    with k.loop(0, e.inner, e.lanes) as vectors:
        at = k.mul(e.clamped(vectors.index, e.inner), 2)
        first = e.load_pairs(e.moved(e.source, at)).re
        last = e.load_pairs(e.moved(e.moved(e.source, e["source_distance"]), at)).re
        e.store_pairs(e.moved(e.target, at), Pair(k.add(first, last), k.sub(first, last)))
    _each_row(e, _join, begin=1)


def _split(e: StepEmitter, value: Pair, mirrored: Pair, root: Pair) -> Pair:
    half = e.k.const(e.vector, 0.5)
    even, turned = add(e.k, value, mirrored), multiply(e.k, subtract(e.k, value, mirrored), root)
    doubled = minus_i_times(e.k, even, turned)
    return Pair(e.k.mul(doubled.re, half), e.k.mul(doubled.im, half))


def _join(e: StepEmitter, value: Pair, mirrored: Pair, root: Pair) -> Pair:
    turned = multiply(e.k, subtract(e.k, value, mirrored), conjugate(e.k, root))
    return plus_i_times(e.k, add(e.k, value, mirrored), turned)


def _each(e: StepEmitter, combine: _Combine) -> None:
    """All k of one transform. `source_distance` is where the element is that mirrors the first."""
    k, count = e.k, e["count"]
    last = e.moved(e.source, e["source_distance"])
    with k.loop(0, count, e.lanes) as vectors:
        at = k.mul(e.clamped(vectors.index, count), 2)
        value = e.load_pairs(e.moved(e.source, at))
        mirrored = conjugate(k, e.load_reversed_pairs(e.moved(last, k.sub(0, at))))
        root = e.load_roots(e.moved(e.roots, k.mul(vectors.index, 2)), 0)
        e.store_pairs(e.moved(e.target, at), combine(e, value, mirrored, root))


def _each_row(e: StepEmitter, combine: _Combine, begin: int = 0) -> None:
    """The same for rows of transforms, `source_step` from one to the next."""
    k, step = e.k, e["source_step"]
    last = e.moved(e.source, e["source_distance"])

    def rows_at(source: Value, mirror: Value, target: Value, root: Pair) -> None:
        with k.loop(0, e.inner, e.lanes) as vectors:
            at = k.mul(e.clamped(vectors.index, e.inner), 2)
            value = e.load_pairs(e.moved(source, at))
            mirrored = conjugate(k, e.load_pairs(e.moved(mirror, at)))
            e.store_pairs(e.moved(target, at), combine(e, value, mirrored, root))

    with k.loop(begin, e["count"]) as rows:
        moved = k.mul(rows.index, step)
        target = e.moved(e.target, k.mul(rows.index, e["target_step"]))
        root = e.load_root(e.moved(e.roots, k.mul(rows.index, 2)), 0)
        rows_at(e.moved(e.source, moved), e.moved(last, k.sub(0, moved)), target, root)
