"""Real transforms of even length: their neighbours as real and imaginary parts make a transform of half the length.

With Z that of the pairs, and X the spectrum of all N numbers, for k up to N / 2,

    E[k] = (Z[k] + conj(Z[N/2 - k])) / 2            the spectrum of the numbers at even places
    D[k] = (Z[k] - conj(Z[N/2 - k])) / 2            i times that of those at odd places
    X[k] = E[k] - i w^k D[k]                        w = exp(-2 pi i / N), Z[N/2] = Z[0]

    Z[k] = X[k] + conj(X[N/2 - k]) + i w^-k (X[k] - conj(X[N/2 - k]))        twice as large, for the way back

A mirrored pair shares its terms, as E[N/2 - k] = conj(E[k]) and w^(N/2 - k) D[N/2 - k] = conj(w^k D[k]):

    X[N/2 - k] = conj(E[k] + i w^k D[k])

and so on the way back. Each comes as a step for one transform, whose lanes are along k, and as one for rows of
transforms.

    split, split_rows    Z to X
    join, join_rows      X to Z
"""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import I64, Value
from xlapy.codegen.libraries.fft_butterflies import add, conjugate, minus_i_times, multiply, plus_i_times, subtract
from xlapy.codegen.libraries.fft_step import StepEmitter
from xlapy.codegen.registers import Pair

_Combine = Callable[[StepEmitter, Pair, Pair, Pair], tuple[Pair, Pair]]
"""Of a value, the mirrored one's conjugate and the root w^k: the result for k, and that for N / 2 - k."""


def emit_split(e: StepEmitter) -> None:
    k = e.k
    streams = k.and_(k.compare("ne", e["past_caches"], 0), e.has_whole_pairs(e.target))
    k.if_else(streams, lambda: _each_past_caches(e, _split), lambda: _each(e, _split))


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


def _split(e: StepEmitter, value: Pair, mirrored: Pair, root: Pair) -> tuple[Pair, Pair]:
    """The last element of X has an imaginary part of zero, which is taken from zero, as its negative would be -0."""
    half = e.k.const(e.vector, 0.5)
    even, turned = add(e.k, value, mirrored), multiply(e.k, subtract(e.k, value, mirrored), root)
    near, far = (
        Pair(e.k.mul(doubled.re, half), e.k.mul(doubled.im, half))
        for doubled in (minus_i_times(e.k, even, turned), plus_i_times(e.k, even, turned))
    )
    return near, Pair(far.re, e.k.sub(0.0, far.im))


def _join(e: StepEmitter, value: Pair, mirrored: Pair, root: Pair) -> tuple[Pair, Pair]:
    turned = multiply(e.k, subtract(e.k, value, mirrored), conjugate(e.k, root))
    even = add(e.k, value, mirrored)
    return plus_i_times(e.k, even, turned), conjugate(e.k, minus_i_times(e.k, even, turned))


def _combined(e: StepEmitter, combine: _Combine, at: Value) -> tuple[Pair, Pair]:
    """The results from position `at` on, and those that mirror them. `source_distance` is where the element is that
    mirrors the first; the roots lie in planes."""
    pairs = e.k.mul(at, 2)
    mirror = e.moved(e.moved(e.source, e["source_distance"]), e.k.sub(0, pairs))
    value, mirrored = e.load_pairs(e.moved(e.source, pairs)), conjugate(e.k, e.load_reversed_pairs(mirror))
    return combine(e, value, mirrored, e.load_planes(e.moved(e.roots, at), e["roots_plane"]))


def _each(e: StepEmitter, combine: _Combine) -> None:
    """All k of one transform, from both ends to the middle."""
    k = e.k
    last = e.moved(e.target, e["source_distance"])
    with k.loop(0, k.add(k.udiv(e["source_distance"], 4), 1), e.lanes) as vectors:
        pairs = k.mul(vectors.index, 2)
        near, far = _combined(e, combine, vectors.index)
        e.store_pairs(e.moved(e.target, pairs), near)
        e.store_reversed_pairs(e.moved(last, k.sub(0, pairs)), far)


def _each_past_caches(e: StepEmitter, combine: _Combine) -> None:
    """All k of one transform in order, in whole lines: those of mirrored results would not begin where lines do. What
    lies in lines in which there is something else, the first ones and the last, is stored by itself."""
    k, count = e.k, e["count"]
    first = k.smin(e.pairs_to_line(e.target), count)
    rest = k.add(first, k.and_(k.sub(count, first), -e.lanes))

    def place(at: Value) -> Value:
        return e.moved(e.target, k.mul(at, 2))

    def near(at: Value) -> Pair:
        return _combined(e, combine, at)[0]

    k.prefetch(place(rest), 2 * e.lanes * e.type.bytes, for_writing=True)
    e.store_first_pairs(e.target, near(k.const(I64, 0)), first)
    with k.loop(first, rest, e.lanes) as vectors:
        e.store_pairs(place(vectors.index), near(vectors.index), past_caches=True)
    e.store_first_pairs(place(rest), near(rest), k.sub(count, rest))


def _each_row(e: StepEmitter, combine: _Combine, begin: int = 0) -> None:
    """The same for rows of transforms, `source_step` from one to the next: each by itself and in order, because of what
    vectors write beyond the end of a row."""
    k, step = e.k, e["source_step"]
    last = e.moved(e.source, e["source_distance"])

    def rows_at(source: Value, mirror: Value, target: Value, root: Pair) -> None:
        with k.loop(0, e.inner, e.lanes) as vectors:
            at = k.mul(e.clamped(vectors.index, e.inner), 2)
            value = e.load_pairs(e.moved(source, at))
            mirrored = conjugate(k, e.load_pairs(e.moved(mirror, at)))
            near, _ = combine(e, value, mirrored, root)
            e.store_pairs(e.moved(target, at), near)

    with k.loop(begin, e["count"]) as rows:
        moved = k.mul(rows.index, step)
        target = e.moved(e.target, k.mul(rows.index, e["target_step"]))
        root = e.load_root(e.moved(e.roots, k.mul(rows.index, 2)), 0)
        rows_at(e.moved(e.source, moved), e.moved(last, k.sub(0, moved)), target, root)
