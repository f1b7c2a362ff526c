"""Programs for every instruction set: a few of each kind of kernel, at sizes that leave something over everywhere.

Sums are over whole numbers, which no order of evaluation changes, so that nearly everything has one right result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import xlapy
from tests.support.native import flatten, record
from tests.support.values import assert_close, assert_same, edges, random_array
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.element_types import (
    BF16,
    F8E4M3FN,
    F16,
    F32,
    F64,
    S8,
    S16,
    S32,
    S64,
    U8,
    U32,
    U64,
    ElementType,
    element_type_of,
)
from xlapy.hlo.graph import HloModule

Array = np.ndarray[Any, Any]

_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """What to record, its arguments, and how far floats of the result may be off: in units of the last place, or
    relative to the largest of them. Unless told, every bit counts."""

    title: str
    build: Callable[..., Any]
    arguments: tuple[Array, ...]
    ulp: int = 0
    error: float = 0

    def module(self) -> HloModule:
        return _recorded(self)

    def check(self, results: Sequence[Array]) -> None:
        """Compares what an executable returned with the evaluator."""
        for number, (got, wanted) in enumerate(zip(results, _evaluated(self), strict=True)):
            place = f"{self.title}, result {number}"
            inexact = element_type_of(wanted.dtype).is_float
            if inexact and self.ulp:
                assert_close(got, wanted, self.ulp, place)
            elif inexact and self.error:
                np.testing.assert_allclose(got, wanted, 0, self.error * np.abs(wanted).max(), err_msg=place)
            else:
                assert_same(got, wanted, place)


@functools.cache
def _recorded(program: Program) -> HloModule:
    return record(program.build, *program.arguments)


@functools.cache
def _evaluated(program: Program) -> list[Array]:
    """The same for all instruction sets."""
    with np.errstate(all="ignore"):
        return flatten(xlapy.evaluate(_recorded(program), *program.arguments))


def floats(*dims: int, dtype: Any = np.float32) -> Array:
    return _RANDOM.normal(size=dims).astype(dtype)


def wholes(*dims: int, dtype: Any = np.float32) -> Array:
    return _RANDOM.integers(0 if np.dtype(dtype).kind == "u" else -3, 4, dims).astype(dtype)


def anything(element_type: ElementType, size: int) -> Array:
    return np.concatenate([edges(element_type), random_array(_RANDOM, element_type, (size,))])


def pairs_of(element_type: ElementType) -> tuple[Array, Array]:
    """Every number at which things go wrong with every other one."""
    some = edges(element_type)
    return np.repeat(some, some.size), np.tile(some, some.size)


# -- element-wise --------------------------------------------------------------------------------------------------


def chain(x: XlaOp, y: XlaOp) -> XlaOp:
    for _ in range(6):
        x = ops.Select(ops.Gt(x, y), ops.Sqrt(ops.Abs(x)) - y / 3.0, ops.Max(x * y, ops.Floor(x)) + 0.25)
    return x


def functions(x: XlaOp) -> list[XlaOp]:
    exponentials = [ops.Exp(x), ops.Log(ops.Abs(x)), ops.Pow(ops.Abs(x), x), ops.Logistic(x)]
    return [*exponentials, ops.Tanh(x), ops.Sin(x), ops.Tan(x), ops.Cbrt(x), ops.Erf(x)]


def exact_floats(x: XlaOp, y: XlaOp) -> list[XlaOp]:
    nearest = [ops.Round(x), ops.RoundNearestEven(x), ops.Floor(x), ops.Ceil(x), ops.Sign(x)]
    compared = [ops.Lt(x, y), ops.Ne(x, y), ops.Max(x, y), ops.Min(x, y), ops.IsFinite(x)]
    return [x + y, x - y, x * y, x / y, ops.Rem(x, y), ops.Sqrt(x), *nearest, *compared]


def integers(x: XlaOp, y: XlaOp) -> list[XlaOp]:
    """What faults, or is undefined, on some machines: division by zero and overflow of it, shifts beyond the width."""
    shifts = [ops.ShiftLeft(x, y), ops.ShiftRightArithmetic(x, y), ops.ShiftRightLogical(x, y)]
    counts = [ops.PopulationCount(x), ops.Clz(x), ops.Neg(x)]
    return [x / y, ops.Rem(x, y), x * y, x - y, ops.Pow(x, y), ops.Max(x, y), ops.Lt(x, y), *shifts, *counts]


def conversions(to: Sequence[ElementType]) -> Callable[[XlaOp], list[XlaOp]]:
    return lambda x: [ops.ConvertElementType(x, element_type.dtype) for element_type in to]


def complex_numbers(x: XlaOp, y: XlaOp) -> list[XlaOp]:
    return [x + y, x - y, ops.Real(x), ops.Imag(y), ops.Complex(ops.Imag(x), ops.Real(y)), ops.Conj(x), ops.Eq(x, y)]


NUMBERS = (S8, U8, S16, S32, U32, S64, U64, F8E4M3FN, F16, BF16, F32, F64)

ELEMENTWISE = [
    Program("a chain", chain, (floats(1003), floats(1003))),
    *(Program(f"functions of {t}", functions, (floats(517, dtype=t.dtype),), 32) for t in (F16, BF16, F32, F64)),
    *(Program(f"exact ops of {t}", exact_floats, pairs_of(t)) for t in (F8E4M3FN, F16, BF16, F32, F64)),
    *(Program(f"integer ops of {t}", integers, pairs_of(t)) for t in (S8, U8, S16, S32, U32, S64, U64)),
    *(Program(f"{t} to other types", conversions(NUMBERS), (anything(t, 50),)) for t in (S8, U32, S64, F16, F32, F64)),
    Program("complex numbers", complex_numbers, (floats(67, dtype=np.complex64), floats(67, dtype=np.complex64))),
]


# -- folds ---------------------------------------------------------------------------------------------------------


def reductions(x: XlaOp) -> list[XlaOp]:
    results = [ops.Reduce(x, 0, ops.Add, dimensions) for dimensions in ((0,), (1,), (2,), (0, 2), (0, 1, 2))]
    return [*results, ops.Reduce(x, 1, ops.Max, (2,)), ops.Reduce(x, 1, ops.Min, (1,))]


def arg_max(x: XlaOp) -> XlaOp:
    places = ops.BroadcastInDim(ops.Iota(x.builder, np.int32, 67), (5, 67), (1,))

    def later(a: XlaOp, i: XlaOp, b: XlaOp, j: XlaOp) -> list[XlaOp]:
        first = ops.Gt(a, b)
        return [ops.Select(first, a, b), ops.Select(first, i, j)]

    return ops.Reduce(x.builder, [x, places], [-np.inf, np.int32(0)], later, (1,))


def first_largest(x: XlaOp) -> XlaOp:
    """As above, but the first of equals, and NaN wins: by vectors."""
    places = ops.BroadcastInDim(ops.Iota(x.builder, np.int32, 67), (5, 67), (1,))

    def later(a: XlaOp, i: XlaOp, b: XlaOp, j: XlaOp) -> list[XlaOp]:
        keeps = ops.Or(ops.Gt(a, b), ops.Ne(a, a))
        first = ops.Or(keeps, ops.And(ops.Eq(a, b), ops.Lt(i, j)))
        return [ops.Select(keeps, a, b), ops.Select(first, i, j)]

    return ops.Reduce(x.builder, [x, places], [-np.inf, np.int32(0)], later, (1,))


def softmax(x: XlaOp) -> XlaOp:
    shifted = ops.Exp(ops.Sub(x, ops.Reduce(x, -np.inf, ops.Max, (1,)), (0,)))
    return ops.Div(shifted, ops.Reduce(shifted, 0, ops.Add, (1,)), (0,))


def scans(x: XlaOp) -> list[XlaOp]:
    rows, columns = x.shape.dims
    return [
        ops.ReduceWindowWithGeneralPadding(x, 0, ops.Add, (1, columns), (1, 1), (), (), [(0, 0), (columns - 1, 0)]),
        ops.ReduceWindowWithGeneralPadding(x, 0, ops.Max, (rows, 1), (1, 1), (), (), [(0, rows - 1), (0, 0)]),
        ops.ReduceWindow(x, 0, ops.Add, (3, 2), (2, 1), "SAME"),
    ]


FOLDS = [
    *(Program(f"reductions of {t}", reductions, (wholes(6, 37, 21, dtype=t.dtype),)) for t in (S8, S64, BF16, F32)),
    Program("arg max", arg_max, (floats(5, 67),)),
    Program("first largest", first_largest, (wholes(5, 67),)),
    Program("softmax", softmax, (floats(7, 133),), 64),
    Program("scans and windows", scans, (wholes(9, 77),)),
]


# -- movement ------------------------------------------------------------------------------------------------------


def transposes(x: XlaOp) -> list[XlaOp]:
    return [ops.Transpose(x, order) for order in ((2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1))]


def pieces(x: XlaOp, i: XlaOp) -> list[XlaOp]:
    window = ops.DynamicSlice(x, [i, i], (3, 20))
    return [
        window,
        ops.DynamicUpdateSlice(x, window * window, [i, i + i]),
        ops.Pad(x, 7, [(1, 2, 1), (-1, 3, 0)]),
        ops.Concatenate([x, ops.Rev(x, (1,)), x], 1),
        ops.Slice(x, (1, 3), (8, 40), (2, 3)),
    ]


def table(x: XlaOp, places: XlaOp, updates: XlaOp) -> list[XlaOp]:
    taken = ops.Gather(x, places, GatherDimensionNumbers((1,), (0,), (0,), 1), (1, x.shape.dims[1]))
    numbers = ScatterDimensionNumbers((1,), (0,), (0,), 1)
    return [taken, ops.Scatter(x, places, updates, ops.Add, numbers), ops.Scatter(x, places, updates, ops.Max, numbers)]


def sorts(x: XlaOp, y: XlaOp) -> list[XlaOp]:
    keyed = ops.SortKeyVal(x, y, 1)
    by_value = ops.Sort(x.builder, [x, y], lambda a, b, c, d: ops.Gt(c, d), 0, True)
    results = [ops.Sort(y), *(ops.GetTupleElement(pair, n) for pair in (keyed, by_value) for n in (0, 1))]
    return [*results, *(ops.GetTupleElement(ops.TopK(y, 5), n) for n in (0, 1))]


MOVEMENT = [
    *(Program(f"transposes of {t}", transposes, (wholes(3, 21, 35, dtype=t.dtype),)) for t in (U8, BF16, F32, F64)),
    *(Program(f"pixels of {t}", transposes, (wholes(3, 5, 200, dtype=t.dtype),)) for t in (U8, BF16, F32, F64)),
    Program("transposes of c128", transposes, (wholes(3, 5, 7, dtype=np.complex128),)),
    Program("slices, pads, concatenations", pieces, (wholes(9, 43), np.int32(2))),
    Program("gather and scatter", table, (wholes(11, 19), wholes(30, 1, dtype=np.uint8) * 4, wholes(30, 19))),
    Program("sorts", sorts, (wholes(5, 300, dtype=np.int16), floats(5, 300))),
]


# -- products, factors, spectra ------------------------------------------------------------------------------------


def products(a: XlaOp, b: XlaOp, v: XlaOp) -> list[XlaOp]:
    return [ops.Dot(a, b), ops.Dot(a, v), ops.Dot(ops.Transpose(b), ops.Transpose(a)), ops.Dot(v, v)]


def products_with_epilogues(a: XlaOp, b: XlaOp, v: XlaOp) -> list[XlaOp]:
    """Along columns and along rows, with something left over."""
    turned = ops.Dot(ops.Transpose(b), ops.Transpose(a))
    return [ops.Mul(ops.Neg(ops.Dot(a, b)), v, (1,)), ops.Mul(ops.Neg(turned), v, (0,))]


def factors(a: XlaOp, b: XlaOp) -> list[XlaOp]:
    positive = ops.Dot(a, ops.Transpose(a))
    lower = ops.Cholesky(positive)
    return [lower, ops.TriangularSolve(lower, b, True, True, False, "NO_TRANSPOSE")]


def spectra(x: XlaOp) -> list[XlaOp]:
    spectrum = ops.Fft(x, "RFFT", (x.shape.dims[1],))
    return [ops.Real(spectrum), ops.Imag(spectrum), ops.Fft(spectrum, "IRFFT", (x.shape.dims[1],))]


PRODUCTS = [
    Program("products", products, (wholes(13, 40), wholes(40, 35), wholes(40))),
    *(
        Program(
            f"products of {t} with epilogues",
            products_with_epilogues,
            (wholes(140, 40, dtype=t.dtype), wholes(40, 131, dtype=t.dtype), wholes(131, dtype=t.dtype)),
        )
        for t in (F16, F32, F64, S32)
    ),
    Program(
        "products of c64 with epilogues",
        products_with_epilogues,
        (wholes(140, 40, dtype=np.complex64), wholes(40, 131, dtype=np.complex64), wholes(131, dtype=np.complex64)),
    ),
    Program(
        "a convolution",
        lambda x, w: ops.ConvGeneralDilated(x, w, (1, 2), [(1, 1), (0, 1)], (1, 1), (1, 1), ("NHWC", "HWIO", "NHWC")),
        (wholes(2, 9, 11, 6), wholes(3, 3, 6, 10)),
    ),
    *(
        Program(f"factors of {size} rows", factors, (floats(size, 2 * size), floats(size, 5)), error=1e-4)
        for size in (9, 150)
    ),
    *(Program(f"spectra of {size}", spectra, (floats(3, size),), error=1e-6) for size in (96, 35)),
]


# -- random numbers, loops -----------------------------------------------------------------------------------------


def bits(state: XlaOp) -> list[XlaOp]:
    drawn = [
        ops.RngBitGenerator(algorithm, state, xlapy.Shape.array(dtype, (37,)))
        for algorithm in ("RNG_PHILOX", "RNG_THREE_FRY")
        for dtype in (np.uint32, np.uint64)
    ]
    return [ops.GetTupleElement(pair, n) for pair in drawn for n in (0, 1)]


def loop(x: XlaOp, limit: XlaOp) -> list[XlaOp]:
    """Scalars and an array go round; every third time another branch runs."""

    def step(i: XlaOp, total: XlaOp, row: XlaOp, end: XlaOp) -> list[XlaOp]:
        third = ops.Eq(ops.Rem(i, 3), 0)
        changed = ops.Conditional(third, row, lambda r: r * 2.0, row, lambda r: ops.Rev(r, (0,)) - 1.0)
        return [i + 1, total + ops.ConvertElementType(i, np.float32), changed, end]

    start = [np.int32(0), np.float32(0), x, limit]
    done = ops.While(lambda i, total, row, end: ops.Lt(i, end), step, start)
    return [ops.GetTupleElement(done, n) for n in range(3)]


CONTROL = [
    Program("random bits", bits, (np.array([1, 2], np.uint64),)),
    Program("a loop", loop, (wholes(29), np.int32(10))),
]

PROGRAMS = [*ELEMENTWISE, *FOLDS, *MOVEMENT, *PRODUCTS, *CONTROL]
