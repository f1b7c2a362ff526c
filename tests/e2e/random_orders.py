"""Random kernels in which elements meet in an order of their own: sorts, largest numbers, look-ups and updates of rows,
running sums, spectra; and functions of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.e2e.random_kernels import Array, chance, error_of, pick, whole_numbers, within
from tests.support.native import record
from tests.support.surroundings import Case
from tests.support.values import random_array
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.element_types import real_part_type

KEYS = (et.F32, et.F32, et.F64, et.S32, et.S32, et.U32, et.S64, et.U8, et.S8, et.S16, et.U16, et.F16, et.BF16)
TABLES = (et.F32, et.F32, et.F32, et.F64, et.S32, et.BF16, et.F16, et.S8, et.U8, et.S64, et.C64)
FLOATS = (et.F32, et.F32, et.F64, et.BF16, et.F16)
SIZES = (
    *(1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257),
    *(300, 511, 512, 513, 1000, 1023, 1024, 1025, 2049, 3000),
)
MOST = 20_000
SPECTRA = ("FFT", "IFFT", "RFFT", "IRFFT")
FUNCTION_ERRORS = {16: 0.02, 32: 1e-5, 64: 1e-13}
"""Of functions and of spectra, by the bits of the type."""


def random_sort(random: np.random.Generator) -> Case:
    """Along any dimension, up or down, alone or with values that keep the order of equal keys; or a few of the
    largest."""
    element_type = pick(random, KEYS)
    dims = within(random, [pick(random, SIZES) for _ in range(pick(random, (1, 2, 2, 3)))], MOST)
    dim, is_down = int(random.integers(len(dims))), chance(random, 0.5)
    keys = _without_nan(random_array(random, element_type, tuple(dims)))
    values = random.integers(-99, 99, dims).astype(np.int32)
    most = min(dims[-1], int(random.integers(1, 40)))

    def program(keys: XlaOp, values: XlaOp) -> Any:
        before = ops.Gt if is_down else ops.Lt
        if kind == "alone":
            return ops.Sort(keys.builder, [keys], before, dim)
        if kind == "few":
            return _leaves(ops.TopK(keys, most), 2)
        return _leaves(ops.Sort(keys.builder, [keys, values], lambda a, b, i, j: before(a, b), dim, True), 2)

    kind = pick(random, ("alone", "with values", "few"))
    return Case(f"sort of {element_type}{dims} {kind}", record(program, keys, values), [keys, values])


def random_table(random: np.random.Generator) -> Case:
    """Rows of a table: looked up, replaced, or added to."""
    element_type = pick(random, TABLES)
    rows, columns = within(random, [pick(random, SIZES), pick(random, SIZES)], MOST)
    count = min(pick(random, SIZES), MOST // columns + 1)
    table, updates = (whole_numbers(random, element_type, (size, columns)) for size in (rows, count))
    places = random.integers(-1, rows + 1, (count, 1)).astype(pick(random, (np.int32, np.int64)))
    combine = pick(random, (ops.Add, ops.Add, ops.Max))
    combine = ops.Add if element_type.is_complex else combine

    def program(table: XlaOp, places: XlaOp, updates: XlaOp) -> list[XlaOp]:
        found = ops.Gather(table, places, GatherDimensionNumbers((1,), (0,), (0,), 1), (1, columns))
        numbers = ScatterDimensionNumbers((1,), (0,), (0,), 1)
        return [found, ops.Scatter(table, places, updates, combine, numbers)]

    arguments = [table, places, updates]
    title = f"table {element_type}[{rows},{columns}], {count} rows"
    return Case(title, record(program, *arguments), arguments, error_of(element_type))


def random_running_fold(random: np.random.Generator) -> Case:
    """Of all that is in front of an element, or behind it."""
    element_type = pick(random, TABLES)
    dims = within(random, [pick(random, SIZES) for _ in range(pick(random, (1, 2, 2, 3)))], MOST // 4)
    dim, is_backwards = int(random.integers(len(dims))), chance(random, 0.4)
    sizes, reach = [1] * len(dims), dims[dim] - 1
    sizes[dim] = dims[dim]
    padding = [((0, reach) if is_backwards else (reach, 0)) if other == dim else (0, 0) for other in range(len(dims))]
    fold = ops.Add if element_type.is_complex else pick(random, (ops.Add, ops.Add, ops.Max, ops.Min))
    x = whole_numbers(random, element_type, dims)
    zero = np.zeros((), element_type.dtype)
    module = record(lambda x: ops.ReduceWindow(x, zero, fold, sizes, [1] * len(dims), padding), x)
    title = f"running {fold.__name__} of {element_type}{dims} along {dim}"
    return Case(title, module, [x], error_of(element_type))


def random_spectrum(random: np.random.Generator) -> Case:
    kind, element_type = pick(random, SPECTRA), pick(random, (et.C64, et.C64, et.C128))
    rows, length = within(random, [int(random.integers(1, 20)), pick(random, SIZES)], MOST)
    real = real_part_type(element_type)
    is_real = kind == "RFFT"
    columns = length // 2 + 1 if kind == "IRFFT" else length
    x = whole_numbers(random, real if is_real else element_type, (rows, columns))
    module = record(lambda x: ops.Fft(x, kind, (length,)), x)
    return Case(f"{kind} of {real}, {rows} of {length}", module, [x], FUNCTION_ERRORS[real.bits])


_STEPS: tuple[Callable[[XlaOp, XlaOp], XlaOp], ...] = (
    *(ops.Add, ops.Sub, ops.Max, ops.Min, lambda x, y: ops.Neg(x), lambda x, y: ops.Abs(x)),
    *(lambda x, y: ops.Select(ops.Lt(x, y), y, x), lambda x, y: ops.Rev(x, (0,))),
)
_FUNCTIONS = (ops.Exp, ops.Tanh, ops.Logistic, ops.Sin, ops.Cos, ops.Erf, ops.Expm1, ops.Cbrt)


def random_elementwise(random: np.random.Generator) -> Case:
    """A few operations on an array, another one or a row of it, and a scalar; or a function."""
    element_type = pick(random, FLOATS)
    dims = within(random, [pick(random, SIZES) for _ in range(pick(random, (1, 2, 2, 3)))], 3 * MOST)
    kept = dims if chance(random, 0.5) else dims[-1:]
    arguments: list[Array] = [whole_numbers(random, element_type, one) for one in (dims, kept, ())]
    is_function = chance(random, 0.4)

    def program(x: XlaOp, y: XlaOp, scalar: XlaOp) -> XlaOp:
        if is_function:
            return pick(random, _FUNCTIONS)(ops.Add(x, scalar))
        others = [ops.BroadcastInDim(y, dims, range(len(dims) - len(kept), len(dims))), ops.Broadcast(scalar, dims)]
        for _ in range(int(random.integers(1, 6))):
            x = pick(random, _STEPS)(x, pick(random, others))
        return x

    error = FUNCTION_ERRORS[element_type.bits] if is_function else error_of(element_type)
    return Case(f"elements of {element_type}{dims} and {kept}", record(program, *arguments), arguments, error)


def _without_nan(values: Array) -> Array:
    """NaN has no place in an order that a comparison makes."""
    if values.dtype.kind in "iu":
        return values
    with np.errstate(all="ignore"):
        return np.where(np.isnan(values.astype(np.float64)), np.ones((), values.dtype), values)


def _leaves(value: XlaOp, count: int) -> list[XlaOp]:
    return [ops.GetTupleElement(value, number) for number in range(count)]
