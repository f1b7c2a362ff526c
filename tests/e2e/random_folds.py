"""Random folds: of rows, of columns, of both, in two steps, with numbers that are computed, or moved, on their way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.e2e.random_kernels import Array, chance, error_of, pick, whole_numbers, within
from tests.support.native import record
from tests.support.surroundings import Case
from tests.support.values import random_array
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType

TYPES = (
    *([et.F32] * 5 + [et.F64] * 3 + [et.BF16] * 2 + [et.F16] * 2),
    *(et.S8, et.U8, et.S16, et.U16, et.S32, et.U32, et.S64, et.U64, et.PRED, et.C64, et.C128),
    *(et.F8E4M3FN, et.F8E5M2, et.F8E4M3B11FNUZ, et.S4, et.U4),
)
TYPES_IN_TWO_STEPS = (et.F32, et.F32, et.F64, et.F64, et.S32, et.S64, et.BF16)
SIZES = (
    *(1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 19, 23, 24, 25, 28, 31, 32, 33, 40, 47, 48, 63, 64),
    *(65, 100, 127, 128, 129, 255, 256, 257, 300, 511, 512, 513, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097),
)
MOST = 100_000
MOST_OF_FUNCTIONS = 20_000
FUNCTION_ERRORS = {8: 0.6, 16: 0.03, 32: 1e-4, 64: 1e-11}
"""Of what is summed in some order, by the bits of the type."""

SUMS = ("sum", "sum", "sum")
EXTREMA = ("largest", "largest", "least", "place of the largest")
OF_FLOATS = ("sum of squares", "sum of products", "largest magnitude", "log-sum-exp", "softmax", "variance")
INEXACT = frozenset({"log-sum-exp", "softmax", "variance"})
ANY_NUMBERS = frozenset({"largest", "least", "place of the largest", "largest magnitude"})

BEFORE = ("nothing", "nothing", "added", "negated", "turned", "rows cut off", "a column cut off")
BEHIND = ("nothing", "nothing", "two results", "doubled", "folded again", "folded again")


@dataclass(frozen=True)
class Fold:
    """One fold of an array of some type."""

    type: ElementType
    kind: str
    dims: tuple[int, ...]
    folded: tuple[int, ...]
    before: str
    behind: str
    has_any_numbers: bool

    def __call__(self, x: XlaOp, y: XlaOp) -> list[XlaOp]:
        result = _FOLDS[self.kind](self, self._prepared(x, y), y)
        if self.behind == "two results" and self.type.is_float:
            return [result, ops.Neg(result)]
        if self.behind == "doubled" and self.type.kind != "pred" and not self.has_any_numbers:
            return [result + result]
        if self.behind == "folded again" and result.shape.rank:
            return [self._folded_again(result)]
        return [result]

    def _prepared(self, x: XlaOp, y: XlaOp) -> XlaOp:
        last, (rows, *_, columns) = len(self.dims) - 1, (*self.dims, self.dims[-1])
        if self.before == "added" and self.type.kind != "pred" and not self.has_any_numbers:
            return x + y
        if self.before == "negated" and self.type.is_float:
            return ops.Neg(x)
        if self.before == "turned":
            return ops.Transpose(x, (*range(1, len(self.dims)), 0))
        if self.before == "rows cut off" and rows > 2:
            return ops.SliceInDim(x, 1, rows, 1, 0)
        if self.before == "a column cut off" and columns > 2:
            return ops.SliceInDim(x, 1, columns, 1, last)
        return x

    def _folded_again(self, result: XlaOp) -> XlaOp:
        every = range(result.shape.rank)
        if result.shape.type.kind == "pred":
            return ops.Reduce(result, np.array(False), ops.Or, every)
        if self.has_any_numbers:
            return ops.Reduce(result, _limit(result.shape.type, 1), ops.Min, every)
        return ops.Reduce(result, np.zeros((), result.shape.type.dtype), ops.Add, every)

    def summed(self, x: XlaOp, dims: tuple[int, ...] | None = None) -> XlaOp:
        return ops.Reduce(x, np.zeros((), self.type.dtype), ops.Add, self.folded if dims is None else dims)

    def largest(self, x: XlaOp) -> XlaOp:
        return ops.Reduce(x, _limit(self.type, -1), ops.Max, self.folded)


def _limit(element_type: ElementType, sign: int) -> Array:
    """What is beyond all numbers, or the last of them: above with sign 1, below with -1."""
    if element_type.kind == "pred":
        return np.array(sign > 0)
    if element_type.is_integer:
        return np.array(element_type.integer_range[sign > 0]).astype(element_type.dtype)
    with np.errstate(all="ignore"):
        infinity = np.array(sign * np.inf).astype(element_type.dtype)
    return infinity if np.isinf(infinity.astype(float)) else np.array(sign * ml_dtypes.finfo(element_type.dtype).max)


def _place_of_largest(fold: Fold, x: XlaOp, y: XlaOp) -> XlaOp:
    """The first of the largest numbers; NaN is larger than all."""
    dim = fold.folded[-1]
    places = ops.Iota(x.builder, x.shape.with_type(et.S32), dim)

    def later(a: XlaOp, i: XlaOp, b: XlaOp, j: XlaOp) -> list[XlaOp]:
        keeps = ops.Or(ops.Gt(a, b), ops.Ne(a, a))
        first = ops.Or(keeps, ops.And(ops.Eq(a, b), ops.Lt(i, j)))
        return [ops.Select(keeps, a, b), ops.Select(first, i, j)]

    found = ops.Reduce(x.builder, [x, places], [_limit(fold.type, -1), np.int32(0)], later, (dim,))
    return ops.GetTupleElement(found, 1)


def _exponentials(fold: Fold, x: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """The largest numbers, exponentials of the distances from them, and their sums."""
    largest = fold.largest(x)
    exponentials = ops.Exp(ops.Sub(x, largest, _kept(fold, x)))
    return largest, exponentials, fold.summed(exponentials)


def _log_sum_exp(fold: Fold, x: XlaOp, y: XlaOp) -> XlaOp:
    largest, _, total = _exponentials(fold, x)
    return ops.Log(total) + largest


def _softmax(fold: Fold, x: XlaOp, y: XlaOp) -> XlaOp:
    _, exponentials, total = _exponentials(fold, x)
    return ops.Div(exponentials, total, _kept(fold, x))


def _variance(fold: Fold, x: XlaOp, y: XlaOp) -> XlaOp:
    count = math.prod(x.shape.dims[dim] for dim in fold.folded)
    mean = fold.summed(x) / np.array(count).astype(fold.type.dtype)
    return fold.summed(ops.Square(ops.Sub(x, mean, _kept(fold, x))))


def _kept(fold: Fold, x: XlaOp) -> tuple[int, ...]:
    return tuple(dim for dim in range(x.shape.rank) if dim not in fold.folded)


_FOLDS: dict[str, Callable[[Fold, Any, Any], XlaOp]] = {
    "sum": lambda fold, x, y: fold.summed(x),
    "sum of squares": lambda fold, x, y: fold.summed(x * x),
    "sum of products": lambda fold, x, y: fold.summed(x * y if x.shape == y.shape else x),
    "largest": lambda fold, x, y: fold.largest(x),
    "least": lambda fold, x, y: ops.Reduce(x, _limit(fold.type, 1), ops.Min, fold.folded),
    "largest magnitude": lambda fold, x, y: fold.largest(ops.Abs(x)),
    "place of the largest": _place_of_largest,
    "log-sum-exp": _log_sum_exp,
    "softmax": _softmax,
    "variance": _variance,
}


def random_fold(random: np.random.Generator) -> Case:
    element_type = pick(random, TYPES)
    kind = pick(random, _kinds(element_type))
    most = MOST_OF_FUNCTIONS if kind in INEXACT else MOST
    dims = within(random, _dims(random, pick(random, (1, 2, 2, 2, 2, 3, 3, 4))), most)
    folded = tuple(dim for dim in range(len(dims)) if chance(random, 0.5)) or (int(random.integers(len(dims))),)
    any_numbers = kind in ANY_NUMBERS and element_type.kind != "pred" and chance(random, 0.6)
    fold = Fold(element_type, kind, tuple(dims), folded, pick(random, BEFORE), pick(random, BEHIND), any_numbers)
    return _case(random, fold)


def random_fold_in_two_steps(random: np.random.Generator) -> Case:
    """The sum of the largest or the least numbers of rows or columns."""
    dims = within(random, _dims(random, 2), MOST // 4)
    folded, kind = (int(random.integers(2)),), pick(random, ("largest", "least"))
    fold = Fold(pick(random, TYPES_IN_TWO_STEPS), kind, tuple(dims), folded, pick(random, BEFORE), BEHIND[-1], False)
    return _case(random, fold)


def _case(random: np.random.Generator, fold: Fold) -> Case:
    make = random_array if fold.has_any_numbers else whole_numbers
    arguments = [make(random, fold.type, fold.dims) for _ in range(2)]
    if fold.kind in INEXACT:
        error = FUNCTION_ERRORS[fold.type.bits]
    else:
        error = 0 if fold.kind in ANY_NUMBERS and fold.behind != "folded again" else error_of(fold.type)
    return Case(str(fold), record(fold, *arguments), arguments, error)


def _dims(random: np.random.Generator, rank: int) -> list[int]:
    return [pick(random, SIZES) if chance(random, 0.8) else int(random.integers(1, 70)) for _ in range(rank)]


def _kinds(element_type: ElementType) -> tuple[str, ...]:
    if element_type.kind == "pred":
        return "largest", "least"
    if element_type.is_complex:
        return SUMS
    return SUMS + EXTREMA + (OF_FLOATS if element_type.is_float else ())
