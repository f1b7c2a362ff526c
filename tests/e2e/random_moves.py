"""Random chains of what moves elements: pads, slices, turns, joins, repetitions, look-ups, with a fold now and then."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.e2e.random_kernels import chance, pick, whole_numbers, within
from tests.support.native import record
from tests.support.surroundings import Case
from tests.support.values import random_array
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import GatherDimensionNumbers
from xlapy.hlo.element_types import ElementType

TYPES = (
    *([et.F32] * 4 + [et.F64, et.BF16, et.F16, et.S8, et.U8, et.S16, et.S32, et.S64]),
    *(et.PRED, et.C64, et.C128, et.F8E4M3FN, et.S4),
)
SIZES = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 23, 24, 25, 28, 31, 32, 33, 40, 47, 48, 63, 64),
    *(65, 96, 100, 128, 129, 200, 256, 257, 300, 500, 512, 1000),
)
MOST = 60_000
MOST_GROWN = 150_000
INDEX_TYPES = (et.S32, et.S64, et.U8, et.S8, et.U32)
PRIMES = (2, 3, 5, 7, 11, 13)


@dataclass
class Moves:
    """What a chain of steps has at hand: a scalar of its type, and places to look up."""

    random: np.random.Generator
    type: ElementType
    scalar: XlaOp
    places: XlaOp

    def below(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def some_dim(self, x: XlaOp) -> int:
        return self.below(0, x.shape.rank)


def pad(m: Moves, x: XlaOp) -> XlaOp:
    dims = [_padding(m, size) for size in x.shape.dims]
    grown = [
        size + low + high + max(size - 1, 0) * inside
        for size, (low, high, inside) in zip(x.shape.dims, dims, strict=True)
    ]
    return ops.Pad(x, m.scalar, dims) if min(grown) >= 0 and math.prod(grown) <= MOST_GROWN else x


def _padding(m: Moves, size: int) -> tuple[int, int, int]:
    """Mostly little, or none; now and then more is cut off in front than there is."""
    if chance(m.random, 0.4):
        return 0, 0, 0
    if chance(m.random, 0.05):
        return -size - 2, size + 4, 0
    return m.below(-4, 6), m.below(-4, 6), pick(m.random, (0, 0, 0, 1, 2))


def reverse(m: Moves, x: XlaOp) -> XlaOp:
    return ops.Rev(x, tuple(dim for dim in range(x.shape.rank) if chance(m.random, 0.5)))


def transpose(m: Moves, x: XlaOp) -> XlaOp:
    return ops.Transpose(x, [int(dim) for dim in m.random.permutation(x.shape.rank)])


def cut(m: Moves, x: XlaOp) -> XlaOp:
    starts = [m.below(0, max(1, size)) if chance(m.random, 0.5) else 0 for size in x.shape.dims]
    starts = [min(start, size) for start, size in zip(starts, x.shape.dims, strict=True)]
    limits = [
        m.below(start, size + 1) if chance(m.random, 0.4) else size
        for start, size in zip(starts, x.shape.dims, strict=True)
    ]
    return ops.Slice(x, starts, limits, [pick(m.random, (1, 1, 1, 2, 3)) for _ in starts])


def join(m: Moves, x: XlaOp) -> XlaOp:
    dim = m.some_dim(x)
    parts = [x, ops.Rev(x, (dim,)), x][: m.below(2, 4)]
    return ops.ConcatInDim(x.builder, parts, dim) if x.shape.size <= MOST_GROWN // 3 else x


def reshape(m: Moves, x: XlaOp) -> XlaOp:
    """The factors of the size, dealt out to new dimensions."""
    rest, dims = x.shape.size, [1] * m.below(1, 4)
    for prime in PRIMES:
        while rest and rest % prime == 0:
            rest //= prime
            dims[m.below(0, len(dims))] *= prime
    dims[-1] *= rest
    return ops.Reshape(x, dims)


def repeat(m: Moves, x: XlaOp) -> XlaOp:
    if x.shape.size > MOST_GROWN // 3:
        return x
    at, dims = m.below(0, x.shape.rank + 1), [*x.shape.dims]
    dims.insert(at, m.below(1, 4))
    return ops.BroadcastInDim(x, dims, [dim + (dim >= at) for dim in range(x.shape.rank)])


def look_up(m: Moves, x: XlaOp) -> XlaOp:
    dim = m.some_dim(x)
    sizes = [1 if other == dim else size for other, size in enumerate(x.shape.dims)]
    if math.prod(sizes) * m.places.shape.size > MOST_GROWN or 0 in x.shape.dims:
        return x
    offsets = tuple(other for other in range(x.shape.rank) if other != dim)
    return ops.Gather(x, m.places, GatherDimensionNumbers(offsets, (dim,), (dim,), 1), sizes)


def double(m: Moves, x: XlaOp) -> XlaOp:
    return ops.Or(x, x) if m.type.kind == "pred" else x + x


def choose(m: Moves, x: XlaOp) -> XlaOp:
    same = ops.Eq(x, ops.Rev(x, (m.some_dim(x),)))
    return ops.Select(same, x, ops.Broadcast(m.scalar, x.shape.dims))


def window(m: Moves, x: XlaOp) -> XlaOp:
    if 0 in x.shape.dims:
        return x
    sizes = [m.below(1, size + 1) for size in x.shape.dims]
    if chance(m.random, 0.5):
        return ops.DynamicSlice(x, _starts(m, x), sizes)
    found = ops.DynamicSlice(x, [np.int32(1)] * x.shape.rank, sizes)
    return ops.DynamicUpdateSlice(x, ops.Rev(found, (m.some_dim(x),)), _starts(m, x))


def _starts(m: Moves, x: XlaOp) -> list[np.int32]:
    return [np.int32(m.below(-2, 9)) for _ in x.shape.dims]


def fold(m: Moves, x: XlaOp) -> XlaOp:
    if m.type.is_complex or 0 in x.shape.dims:
        return x
    return ops.Reduce(x, m.scalar, ops.Or if m.type.kind == "pred" else ops.Max, (m.some_dim(x),))


STEPS: tuple[Callable[[Moves, XlaOp], XlaOp], ...] = (
    *(pad, pad, pad, reverse, transpose, cut, join, reshape, repeat, look_up, double, choose, window, fold),
)


def random_moves(random: np.random.Generator) -> Case:
    element_type = pick(random, TYPES)
    dims = [pick(random, SIZES) for _ in range(pick(random, (1, 2, 2, 3, 3, 4)))]
    if chance(random, 0.4):
        dims[-1] = int(random.integers(5, 33))
    dims = within(random, dims, MOST)
    make = random_array if chance(random, 0.5) else whole_numbers
    places = random.integers(-3, 300, int(random.integers(1, 40))).astype(pick(random, INDEX_TYPES).dtype)
    arguments = [make(random, element_type, tuple(dims)), make(random, element_type, ()), places]

    def program(x: XlaOp, scalar: XlaOp, places: XlaOp) -> list[XlaOp]:
        moves, results = Moves(random, element_type, scalar, places), []
        for _ in range(int(random.integers(1, 5))):
            x = pick(random, STEPS)(moves, x) if x.shape.rank else ops.Broadcast(x, (int(random.integers(1, 40)),))
            if chance(random, 0.15):
                results.append(x)
        return [x, *results]

    module = record(program, *arguments)
    return Case(f"moves of {element_type}{dims}", module, [np.asarray(argument) for argument in arguments])
