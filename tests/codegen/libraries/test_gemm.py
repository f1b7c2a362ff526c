"""Products of every type, size, layout and number of threads agree with numpy's in wider types."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import functools
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.guarded_memory import GuardedRoom
from tests.support.shared_cache import shared_cache
from tests.support.targets import lesser_targets
from xlapy.codegen.ir import Module
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.libraries.gemm import (
    LOW_ROWS,
    LOW_ROWS_ALONG_K,
    emit_gemm,
    emit_low,
    emit_windows,
    product_function,
)
from xlapy.codegen.libraries.gemm_in_place import _FAR_CACHES
from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.libraries.gemm_tile import Tile, column_of, preparing_tile_of, tile_shape
from xlapy.codegen.libraries.gemm_types import GEMM_TYPES, LIBRARY_TYPES, UNIT_TYPES, GemmType
from xlapy.codegen.libraries.gemm_vector import DOT_ROWS, dot_rows, stream_heights
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.pool import POOL
from xlapy.codegen.target import Target, host_target, reference_target
from xlapy.native import library_symbols
from xlapy.support.errors import InternalError
from xlapy_runtime import threads
from xlapy_runtime.linking import LinkedCode, link

Array = np.ndarray

EPILOGUE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 5, ctypes.c_void_p, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)

OPERANDS = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "bf16_f32": ml_dtypes.bfloat16,
    "f16_f32": np.float16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fn_f32": ml_dtypes.float8_e4m3fn,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
    "s64": np.int64,
    "c64": np.complex64,
    "c128": np.complex128,
    "amx_s8": np.int8,
    "amx_u8": np.uint8,
    "amx_bf16": ml_dtypes.bfloat16,
    "amx_bf16_f32": ml_dtypes.bfloat16,
    "amx_f32": np.float32,
}
RESULTS = {
    **OPERANDS,
    "bf16_f32": np.float32,
    "f16_f32": np.float32,
    "f8e4m3fn_f32": np.float32,
    "s8": np.int32,
    "u8": np.int32,
    "amx_s8": np.int32,
    "amx_u8": np.int32,
    "amx_bf16_f32": np.float32,
}
EPSILON = {"bf16": 2.0**-8, "amx_bf16": 2.0**-8, "f16": 2.0**-11, "f8e5m2": 2.0**-3, "f64": 2.0**-52, "c128": 2.0**-52}
"""The rounding error of a result; f32's where nothing else is said."""

NAMES = [name for name in sorted(OPERANDS) if LIBRARY_TYPES[name].is_on(host_target())]
INTEGERS = ("s8", "u8", "s32", "s64", "amx_s8", "amx_u8")

SIZES_TO_TEST = [
    (1, 1, 1),
    (3, 5, 7),
    (12, 32, 8),
    (13, 33, 9),
    (2, 17, 40),
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
    (1, 1, 301),  # an inner product
    (1, 300, 65),  # a row times a matrix
    (300, 1, 65),  # a matrix times a column
    (2, 259, 257),
    (6, 139, 41),  # some rows times a matrix
    (4, 300, 130),
    (7, 101, 300),
    (101, 7, 300),
    (37, 131, 259),
    (130, 70, 1100),  # more than one panel along K
    (260, 300, 270),  # packed
    (29, 520, 300),  # strips of B copied
    (150, 531, 600),  # the same, for more than one block, chunk by chunk
    (125, 290, 1024),  # rows of A a power of two apart
    (19, 35, 530),  # two tiles share the rows, two chunks the steps
    (26, 290, 523),  # the same of types that are widened, with steps left over
    (30, 1024, 19),  # rows of B a power of two apart
    (40, 70, 2500),  # pieces along K, the last one shorter
    (3, 5, 70001),  # the same of dot products
]


TARGETS = {
    "host": host_target(),
    # packs more, streams more, goes through two of the columns of blocks of the larger sizes at a time
    "host with small caches": dataclasses.replace(host_target(), l2_bytes=1 << 14, l3_bytes=5 << 19),
    **lesser_targets(),
}


class TargetWithOtherLastCache(Target):
    has_far_last_cache = not host_target().has_far_last_cache


ALL_TARGETS = {
    **TARGETS,
    # packs, or copies, what does not fit its second-level cache (whose size tells its code from the host's)
    "host with another last cache": TargetWithOtherLastCache(
        **{**dataclasses.asdict(host_target()), "l2_bytes": 1 << 15}
    ),
}


TYPES_OF_OTHERS = ("f32", "f64", "s8", "c64")
"""Of one register for a number and of several, of floats and of pairs of products: all kinds of tiles."""


def on_machines(names: Sequence[str], targets: Iterable[str] = TARGETS) -> list[Any]:
    """Every type on this machine, and on others those that differ in more than their instructions."""
    return [
        pytest.param(name, target, marks=() if target == "host" or name in TYPES_OF_OTHERS else pytest.mark.slow)
        for name, target in itertools.product(names, targets)
    ]


@functools.cache
def linked(name: str, target: str = "host") -> LinkedCode:
    """A library with those it needs; all targets share one's scratch memory."""
    threads.install(POOL.objects(host_target(), shared_cache()))
    library = LIBRARIES[name]
    imports = dict(library_symbols("scratch", host_target()))
    for needed in library.needs:
        if needed != "scratch":
            imports.update(linked(needed, target).addresses())
    return link(library.objects(ALL_TARGETS[target], shared_cache()), imports, library.exports)


def multiply(
    name: str,
    a: Array,
    b: Array,
    c: Array,
    *,
    accumulate: bool = False,
    num_threads: int = 1,
    epilogue: object = None,
    target: str = "host",
    is_low: bool = False,
) -> Array:
    """c (+)= a @ b by the library for products of this size, or if `is_low` by that for few rows; operands have two
    dimensions, or three with the batch in front."""
    a3, b3, c3 = (array if array.ndim == 3 else array[np.newaxis] for array in (a, b, c))
    numbers = [c3.shape[0], c3.shape[1], c3.shape[2], a3.shape[2]]
    for array in (a3, b3, c3):
        strides = [stride // array.itemsize for stride in array.strides]
        numbers += [strides[0] if array.shape[0] > 1 else 0, *strides[1:]]
    sizes = (ctypes.c_int64 * len(SIZES))(*numbers, int(accumulate))
    named = dict(zip(SIZES, numbers, strict=False))
    library, function = product_function(name, {**named, "m": 1} if is_low else named)
    run = RUN(linked(library, target).address(function))
    callback = ctypes.cast(epilogue, ctypes.c_void_p) if epilogue is not None else None
    places = [array.ctypes.data for array in (a, b, c)]
    run(threads.parallel_address(num_threads), *places, ctypes.addressof(sizes), callback, None)
    return c


def random_array(name: str, shape: tuple[int, ...], seed: int, dtype: type | None = None) -> Array:
    if name in INTEGERS:
        generator = np.random.default_rng(seed)
        limits = np.iinfo(dtype or OPERANDS[name])
        return generator.integers(limits.min, limits.max, shape, dtype=dtype or OPERANDS[name], endpoint=True)
    values = normal_numbers(shape, seed, 0)
    if name.startswith("c"):
        values = values + 1j * normal_numbers(shape, seed, 1)
    return values.astype(dtype or OPERANDS[name])


@functools.cache
def many_normal_numbers(*seed: int) -> Array:
    """As many as rows of no matrix here have, nor several of them."""
    return np.random.default_rng(seed).standard_normal(200_003)


def normal_numbers(shape: tuple[int, ...], *seed: int) -> Array:
    """Of which large arrays have some again: to draw as many takes longer than to multiply them."""
    return np.resize(many_normal_numbers(*seed), shape)


def wide(array: Array) -> Array:
    kind = array.dtype.kind
    return array.astype(np.complex128 if kind == "c" else np.int64 if kind in "iu" else np.float64)


def exact_product(a: Array, b: Array) -> Array:
    """In wider types; of integers, modulo what their own type holds. Numpy multiplies floats much faster: in float64,
    sums of products of digits with 16 bits are exact."""
    if a.dtype.kind not in "iu":
        return wide(a) @ wide(b)
    count = -(-a.dtype.itemsize // 2)
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.int64)
    for (i, x), (j, y) in itertools.product(enumerate(digits(a, count)), enumerate(digits(b, count))):
        if i + j < count:
            total += (x @ y).astype(np.int64) << 16 * (i + j)
    return total


def digits(array: Array, count: int) -> list[Array]:
    """Of integers, to the base 2^16, the lowest ones first; the last ones have the sign."""
    whole = array.astype(np.int64)
    lower = [(whole >> 16 * place & 0xFFFF).astype(np.float64) for place in range(count - 1)]
    return [*lower, (whole >> 16 * (count - 1)).astype(np.float64)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_exact_products(dtype: type) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(0)
    a, b = (random.integers(limits.min, limits.max, (3, *dims), dtype, endpoint=True) for dims in ((9, 70), (70, 8)))
    a[0, 0], b[0, :, 0], a[0, 1], b[0, :, 1] = limits.min, limits.min, limits.max, limits.max
    bits = 64 if dtype is np.int64 else 32  # of the results
    expected = (a.astype(object) @ b.astype(object)) % 2**bits
    np.testing.assert_array_equal(exact_product(a, b).astype(object) % 2**bits, expected)


class Expected:
    """What a product should be (plus what was there before): up to rounding, or exactly modulo 2^bits for integers."""

    def __init__(self, name: str, a: Array, b: Array) -> None:
        self._values = exact_product(a, b)
        if name in INTEGERS:
            self._magnitude = None
            return
        accumulated = EPSILON[name] if name in ("f64", "c128") else 2.0**-23
        self._error = EPSILON.get(name, 0) + accumulated * (2 + np.sqrt(a.shape[-1]))
        self._magnitude = np.abs(wide(a)) @ np.abs(wide(b))

    def plus(self, before: Array) -> Expected:
        """The same on top of what was there."""
        found = copy.copy(self)
        found._values = self._values + wide(before)
        if self._magnitude is not None:
            found._magnitude = self._magnitude + np.abs(wide(before))
        return found

    def check(self, c: Array) -> None:
        if self._magnitude is None:
            assert np.array_equal(c, self._values.astype(c.dtype))
        else:
            assert np.all(np.abs(wide(c) - self._values) <= self._error * self._magnitude)


def assert_product(name: str, c: Array, a: Array, b: Array) -> None:
    Expected(name, a, b).check(c)


@functools.lru_cache(maxsize=len(SIZES_TO_TEST))
def problem(name: str, m: int, n: int, k: int) -> tuple[Array, Array, Expected]:
    """Two matrices, and what their product should be on every machine."""
    a, b = random_array(name, (m, k), 1), random_array(name, (k, n), 2)
    return a, b, Expected(name, a, b)


def layouts(rows: int, columns: int) -> dict[str, Callable[[Array], Array]]:
    """Ways to lay out a matrix: by rows, by columns, and with gaps everywhere."""

    def spread(array: Array) -> Array:
        room = np.zeros((2 * rows + 1, 3 * columns + 1), array.dtype)
        view = room[: 2 * rows : 2, : 3 * columns : 3]
        view[...] = array
        return view

    return {"rows": np.ascontiguousarray, "columns": np.asfortranarray, "spread": spread}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("m", "n", "k"), SIZES_TO_TEST)
def test_every_size_and_layout(name: str, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (m, k), 1), random_array(name, (k, n), 2)
    before = random_array(name, (m, n), 3, RESULTS[name])
    expected = Expected(name, a, b)
    c_layouts = itertools.cycle(layouts(m, n).values())
    for a_layout, b_layout in itertools.product(layouts(m, k).values(), layouts(k, n).values()):
        for c_layout in itertools.islice(c_layouts, 2):
            expected.check(multiply(name, a_layout(a), b_layout(b), c_layout(before)))
    expected.plus(before).check(multiply(name, a, b, before.copy(), accumulate=True))


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "host"])
@pytest.mark.parametrize("name", ["f32", pytest.param("f16", marks=pytest.mark.slow), "s8", "c64"])
def test_other_machines(name: str, target: str) -> None:
    for m, n, k in SIZES_TO_TEST:
        a, b, expected = problem(name, m, n, k)
        for a_layout, b_layout in itertools.product(layouts(m, k).values(), layouts(k, n).values()):
            expected.check(multiply(name, a_layout(a), b_layout(b), np.zeros((m, n), RESULTS[name]), target=target))


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_a_bit(name: str) -> None:
    sizes = [(260, 300, 270), (1, 5000, 300), (5000, 3, 300), (90, 700, 600), (40, 1100, 1050), (7, 1100, 600)]
    for m, n, k in [*sizes, (290, 600, 1024), (64, 60, 4100), (8, 8, 70001)]:
        a, b = random_array(name, (m, k), 4), random_array(name, (k, n), 5)
        for left in (a, np.asfortranarray(a)):
            alone = multiply(name, left, b, np.empty((m, n), RESULTS[name]))
            for num_threads in (2, 3, 8):
                shared = multiply(name, left, b, np.empty((m, n), RESULTS[name]), num_threads=num_threads)
                assert shared.tobytes() == alone.tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "bf16", "s8", "c64"]))
@pytest.mark.parametrize(("m", "n", "k"), [(150, 170, 130), (1100, 20, 160), (9, 2300, 140)])
def test_small_matrices_are_shared_out_in_parts(name: str, target: str, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (m, k), 1), random_array(name, (k, n), 2)
    before = random_array(name, (m, n), 3, RESULTS[name])
    expected = Expected(name, a, b).plus(before)
    for a_layout, b_layout in itertools.product(layouts(m, k).values(), layouts(k, n).values()):
        given = a_layout(a), b_layout(b)
        alone = multiply(name, *given, before.copy(), accumulate=True, target=target)
        expected.check(alone)
        for num_threads in (2, 3, 8):
            shared = multiply(name, *given, before.copy(), accumulate=True, num_threads=num_threads, target=target)
            assert shared.tobytes() == alone.tobytes()


@pytest.mark.parametrize(("name", "m"), [("f32", 1), ("f64", 2), ("bf16", 2), ("c64", 1)])
def test_a_large_matrix_is_streamed_in_pieces(name: str, m: int) -> None:
    k, n = 2100, 4099
    a, b = random_array(name, (m, k), 6), random_array(name, (k, n), 7)
    alone = multiply(name, a, b, np.empty((m, n), RESULTS[name]))
    assert_product(name, alone, a, b)
    for num_threads in (2, 3, 8):
        shared = multiply(name, a, b, np.empty((m, n), RESULTS[name]), num_threads=num_threads)
        assert shared.tobytes() == alone.tobytes()


@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "s8"])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_where_a_streamed_matrix_comes_from_does_not_change_a_bit(name: str, m: int) -> None:
    """From a cache, or from memory, where more of its rows are read side by side; some are left over in either way."""
    k, n = 1031, 1310
    a, b = random_array(name, (m, k), 10), random_array(name, (k, n), 11)
    near = multiply(name, a, b, np.empty((m, n), RESULTS[name]))
    farthest = multiply(name, a, b, np.empty((m, n), RESULTS[name]), target="host with small caches")
    assert farthest.tobytes() == near.tobytes()
    assert_product(name, farthest, a, b)


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("k", [600, 1024])
def test_every_element_is_one_chain_of_sums(name: str, target: str, k: int) -> None:
    """Rows come out the same to the bit, however many there are, and so whichever way they are computed."""
    m, n = 270, 544
    a, b = random_array(name, (m, k), 8), random_array(name, (k, n), 9)
    whole = multiply(name, a, b, np.empty((m, n), RESULTS[name]), target=target)
    for rows in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 30, 100):
        part = multiply(name, a[:rows], b, np.empty((rows, n), RESULTS[name]), target=target)
        assert part.tobytes() == whole[:rows].tobytes()
    by_columns = multiply(name, np.asfortranarray(a), b, np.empty((m, n), RESULTS[name]), target=target)
    assert by_columns.tobytes() == whole.tobytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "n"), [("f32", 128), ("f64", 64), ("c64", 64)])
def test_where_a_matrix_begins_does_not_change_a_bit(name: str, n: int, target: str) -> None:
    """At a line of the caches, or in the middle of one, where it may be copied: whole matrices, and edges of them."""
    a, b = random_array(name, (3, 80, 70), 12), random_array(name, (3, 70, n), 13)
    for columns in (n, n - 3):
        results = []
        for offset in (0, 16):
            room = np.zeros(b.nbytes + 128, np.uint8)
            start = -room.ctypes.data % 64 + offset
            moved = room[start : start + b.nbytes].view(b.dtype).reshape(b.shape)
            moved[...] = b
            c = np.empty((3, 80, columns), RESULTS[name])
            results.append(multiply(name, a, moved[:, :, :columns], c, num_threads=2, target=target))
        assert_product(name, results[0], a, b[:, :, :columns])
        assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "c64", "s32", "bf16"]))
@pytest.mark.parametrize("m", [1, 2, 4])
def test_where_columns_begin_does_not_change_a_bit(name: str, m: int, target: str) -> None:
    """At a line of the caches, or in the middle of one, all of them at the same place, and the last lines in part."""
    n, pitch = 13, 1024
    b = random_array(name, (n, pitch), 20)
    for k in (pitch - 16, pitch - 19, 530, 70):
        a, results = random_array(name, (m, k), 21), set()
        for offset in (0, b.itemsize, 16, 64 - b.itemsize):
            room = np.zeros(b.nbytes + 128, np.uint8)
            start = -room.ctypes.data % 64 + offset
            moved = room[start : start + b.nbytes].view(b.dtype).reshape(b.shape)
            moved[...] = b
            product = multiply(name, a, moved[:, :k].T, np.empty((m, n), RESULTS[name]), target=target)
            results.add(product.tobytes())
        assert_product(name, product, a, b[:, :k].T)
        assert len(results) == 1


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "c64", "s32", "bf16"]))
@pytest.mark.parametrize(("n", "k"), [(19, 520), (150, 333), (61, 260), (37, 1001)])
def test_columns_that_begin_at_the_same_place_of_a_line_go_together(name: str, n: int, k: int, target: str) -> None:
    """Each comes to the same, to the last bit, as if it were the only one."""
    a, b = random_array(name, (1, k), 24), random_array(name, (n, k), 25)
    product = multiply(name, a, b.T, np.empty((1, n), RESULTS[name]), target=target)
    assert_product(name, product, a, b.T)
    alone = [multiply(name, a, column[None].T, np.empty((1, 1), RESULTS[name]), target=target) for column in b]
    assert product.tobytes() == np.hstack(alone).tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "c64", "s32", "bf16"]))
@pytest.mark.parametrize("m", [1, 5])
def test_how_many_columns_there_are_does_not_change_a_bit(name: str, m: int, target: str) -> None:
    """Each is summed up in the same order, however many are read side by side."""
    k, most = 75, 35
    a, b = random_array(name, (m, k), 24), random_array(name, (most, k), 25).T
    whole = multiply(name, a, b, np.empty((m, most), RESULTS[name]), target=target)
    assert_product(name, whole, a, b)
    for n in range(1, most):
        product = multiply(name, a, b[:, :n], np.empty((m, n), RESULTS[name]), target=target)
        assert product.tobytes() == np.ascontiguousarray(whole[:, :n]).tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "c64", "s32"]))
def test_strips_that_other_tiles_pack_do_not_change_a_bit(name: str, target: str) -> None:
    """Rows of B a power of two apart, under blocks of many tiles; several strips and an edge, several chunks or one."""
    m, pitch = 1101, 4096 // np.dtype(OPERANDS[name]).itemsize
    for n, k in itertools.product((150, 421), (530, 77)):
        a, b = random_array(name, (m, k), 16), random_array(name, (k, pitch), 17)[:, :n]
        crowded = multiply(name, a, b, np.empty((m, n), RESULTS[name]), num_threads=2, target=target)
        assert_product(name, crowded, a, b)
        dense = np.ascontiguousarray(b[:, :40])
        few = multiply(name, a[:20], dense, np.empty((20, 40), RESULTS[name]), target=target)
        assert few.tobytes() == np.ascontiguousarray(crowded[:20, :40]).tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "s32", "c64"], ALL_TARGETS))
def test_blocks_that_pack_their_rows_do_not_change_a_bit(name: str, target: str) -> None:
    """Rows of A are side by side at each step; several chunks, and blocks whose last rows make no whole tile."""
    m, n, k = 265, 4130, 610
    a, b = random_array(name, (m, k), 18), random_array(name, (k, n), 19)
    packed = multiply(name, np.asfortranarray(a), b, np.empty((m, n), RESULTS[name]), num_threads=3, target=target)
    assert_product(name, packed[:, -40:], a, b[:, -40:])
    in_place = multiply(name, a, b, np.empty((m, n), RESULTS[name]), target=target)
    assert packed.tobytes() == in_place.tobytes()


def test_wide_blocks_of_long_rows_do_not_change_a_bit() -> None:
    """Rows of A that are a power of two apart, more steps than a chunk has, and blocks 1024 columns wide."""
    m, n, k = 2120, 1030, 1100
    a, b = random_array("f32", (m, 2048), 14)[:, :k], random_array("f32", (k, n), 15)
    whole = multiply("f32", a, b, np.empty((m, n), np.float32), num_threads=3)
    assert_product("f32", whole, a, b)
    part = multiply("f32", np.ascontiguousarray(a[-30:]), b, np.empty((30, n), np.float32))
    assert part.tobytes() == whole[-30:].tobytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(5, 6, 7), (33, 40, 50), (1, 70, 64), (64, 2, 64), (14, 16, 3), (31, 45, 12), (60, 70, 64)]
)
def test_batches(name: str, m: int, n: int, k: int) -> None:
    batch = 9
    a, b = random_array(name, (batch, m, k), 6), random_array(name, (batch, k, n), 7)
    c = multiply(name, a, b, np.empty((batch, m, n), RESULTS[name]), num_threads=2)
    assert_product(name, c, a, b)
    transposed = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
    assert_product(name, multiply(name, a, transposed, np.empty_like(c)), a, b)
    columns = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)
    assert_product(name, multiply(name, columns, transposed, np.empty_like(c)), a, b)
    shared = multiply(name, a, b[:1], np.empty_like(c))
    assert_product(name, shared, a, np.broadcast_to(b[:1], b.shape))
    outer_batch = np.empty((m, batch, n), RESULTS[name]).swapaxes(0, 1)
    assert_product(name, multiply(name, a, b, outer_batch), a, b)


@pytest.mark.parametrize("repeats", ["neither", "a", "b"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_large_batches(name: str, repeats: str) -> None:
    """Of which the next matrices are fetched, unless all have the same one."""
    m, n, k = 50, 72, 61
    batch = 2 * _FAR_CACHES * host_target().l2_bytes // ((m + n) * k * np.dtype(RESULTS[name]).itemsize)
    a, b = random_array(name, (batch, m, k), 6), random_array(name, (batch, k, n), 7)
    a = np.broadcast_to(a[0], a.shape) if repeats == "a" else a
    b = np.broadcast_to(b[0], b.shape) if repeats == "b" else b
    c = multiply(name, a, b, np.empty((batch, m, n), RESULTS[name]), num_threads=2)
    assert_product(name, c, a, b)
    for index in (0, batch // 2, batch - 1):
        assert np.array_equal(multiply(name, a[index], b[index], np.empty((m, n), RESULTS[name])), c[index])


@pytest.mark.parametrize("name", [name for name in NAMES if name not in INTEGERS])
@pytest.mark.parametrize(("m", "n", "k"), [(13, 33, 40), (1, 300, 65), (300, 1, 65), (260, 300, 270)])
def test_what_is_not_finite_stays_in_its_row_or_column(name: str, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (m, k), 8), random_array(name, (k, n), 9)
    a[m // 2, k // 3] = np.nan
    b[k // 2, n // 3] = np.inf
    with np.errstate(invalid="ignore"):
        expected = np.isfinite(wide(a) @ wide(b))
        finite = np.isfinite(wide(multiply(name, a, b, np.empty((m, n), RESULTS[name]))))
    assert np.array_equal(finite, expected)


def test_narrow_results_are_rounded_once_and_overflow_to_infinity() -> None:
    a = np.full((1, 4), 256, np.float16)
    b = np.array([[256, 255, 1], [0, 0, 2.0**-9], [0, 0, 0], [0, 0, 0]], np.float16)
    c = multiply("f16", a, b, np.empty((1, 3), np.float16))
    assert c.tolist() == [[np.inf, 65280, 256.5]]
    tiny = np.full((1, 1), 2.0**-12, np.float16)
    subnormal = multiply("f16", tiny, np.full((1, 1), 3 * 2.0**-12, np.float16), np.empty((1, 1), np.float16))
    assert subnormal.item() == 3 * 2.0**-24
    thirds = np.full((1, 3), 1 / 3, ml_dtypes.bfloat16)
    expected = (wide(thirds) @ wide(thirds.T)).astype(ml_dtypes.bfloat16)
    assert multiply("bf16", thirds, thirds.T, np.empty((1, 1), ml_dtypes.bfloat16)) == expected


EPILOGUE_CASES = [
    ("f32", 3, 5, 0),
    ("f32", 0, 5, 3),
    ("f32", 5, 6, 7),
    ("f32", 1, 300, 65),  # one row, streamed
    ("f32", 300, 1, 65),  # dot products along K
    ("f32", 3, 300, 130),
    ("f32", 300, 7, 130),
    ("f32", 29, 520, 300),  # strips of B copied
    ("f32", 150, 531, 600),
    ("f64", 37, 131, 259),
    ("s8", 37, 131, 259),
    ("s64", 33, 40, 50),
    ("f16", 1, 3000, 64),
    ("bf16_f32", 37, 131, 259),
    ("f8e5m2", 20, 130, 70),
    ("c128", 5, 300, 90),
    ("f32", 13, 33, 40),
    ("f32", 260, 300, 270),
    ("f32", 130, 70, 1100),
    ("f32", 1, 3000, 64),
    ("f32", 70, 2, 64),
    ("bf16", 130, 300, 1100),
    ("c64", 70, 90, 80),
]


SINGLE_EPILOGUE_CASES = [
    ("f32", 64, 60, 4100),
    ("bf16", 64, 60, 4100),
    ("c128", 40, 50, 4100),
    ("f32", 3, 5, 70001),
    ("f32", 1, 4100, 1100),
    ("bf16", 150, 170, 130),
    ("s8", 1100, 20, 160),
    ("c64", 9, 2300, 140),
]
"""Products in pieces along K, or in parts that each thread packs by itself, into which a batch is not cut."""


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("batch", "name", "m", "n", "k"),
    [*((2, *case) for case in EPILOGUE_CASES), *((1, *case) for case in SINGLE_EPILOGUE_CASES)],
)
def test_the_epilogue_sees_every_finished_block_once(batch: int, name: str, m: int, n: int, k: int, order: str) -> None:
    assert_shown_once(batch, name, m, n, k, order)


def assert_shown_once(batch: int, name: str, m: int, n: int, k: int, order: str, special: float | None = None) -> None:
    """That an epilogue sees all of a product once, one with a `special` number among its elements."""
    a, b = random_array(name, (batch, m, k), 10), random_array(name, (batch, k, n), 11)
    if special is not None:
        b[-1, -1, -1] = special
    plain = np.empty((batch, m, n), RESULTS[name])
    room = np.empty((batch, n, m), RESULTS[name]).swapaxes(1, 2) if order == "F" else np.empty_like(plain)
    for index in range(batch):
        multiply(name, a[index], b[index], plain[index])
    visits = np.zeros((batch, m, n), np.int64)
    wrong: list[tuple[int, int, int]] = []

    def negate(_: int, block: int, index: int, row: int, rows: int, column: int, columns: int, *source: int) -> None:
        part = (index, slice(row, row + rows), slice(column, column + columns))
        visits[part] += 1
        if block != room[index, row:, column:].ctypes.data:
            wrong.append((index, row, column))
        room[part] = -(room[part] if source[0] == block else buffered(*source, rows, columns))

    def buffered(place: int, pitch: int, rows: int, columns: int) -> Array:
        content = (ctypes.c_char * (rows * pitch)).from_address(place)
        return np.ndarray((rows, columns), room.dtype, content, strides=(pitch, room.itemsize))

    multiply(name, a, b, room, num_threads=2, epilogue=EPILOGUE(negate))
    assert not wrong
    assert np.all(visits == 1)
    assert_product(name, -room, a, b)


def test_many_threads_multiply_at_once() -> None:
    """More of them than there are slots of scratch memory."""
    a, b = random_array("f32", (260, 270), 12), random_array("f32", (270, 300), 13)
    expected = multiply("f32", a, b, np.empty((260, 300), np.float32)).tobytes()
    same: list[bool] = []

    def work() -> None:
        for _ in range(3):
            c = multiply("f32", a, b, np.empty((260, 300), np.float32), num_threads=2)
            same.append(c.tobytes() == expected)

    workers = [threading.Thread(target=work) for _ in range(24)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert same == [True] * 72


INSTRUCTIONS = {
    ("sse2", "f32"): ("mulps", "addps"),
    ("avx2", "f32"): ("vfmadd", "%ymm"),
    ("avx512", "f32"): ("vfmadd", "%zmm"),
    ("neon", "f32"): ("fmla", ".4s"),
    ("sse2", "s8"): ("pmaddwd",),
    ("avx2", "s8"): ("vpmaddwd", "%ymm"),
    ("avx512", "s8"): ("vpmaddwd", "%zmm"),
    ("neon", "s8"): ("mla", ".4s"),
    ("neon", "c64"): ("fmla", ".4s"),
    ("neon", "f64"): ("fmla", ".2d"),
}


@pytest.mark.parametrize(("machine", "name"), INSTRUCTIONS)
def test_other_machines_get_their_instructions_and_no_spills(machine: str, name: str) -> None:
    """The library for few rows is made of the same functions: for one type that is looked at."""
    target = reference_target(machine)
    texts = [emit(GEMM_TYPES[name], target).text() for emit in (emit_gemm, emit_low)[: 1 + (name == "f32")]]
    assembly = "".join(emit_assembly(text, target) for text in texts)
    for instruction in INSTRUCTIONS[machine, name]:
        assert instruction in assembly
    assert not libm_calls(assembly)
    kind = GEMM_TYPES[name].on(target)
    shape = tile_shape(kind, target)
    for main in (shape, shape.broadened or shape):
        assert not spills_of_tile(assembly, kind, Tile(main.rows, main.vectors))
    assert not spills_of_tile(assembly, kind, column_of(shape))
    if name == "f32" and machine == "avx2":  # where most of a large product is computed, several steps at a turn
        assert not spills_of_tile(assembly, kind, preparing_tile_of(shape))


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_tiles_of_lines_have_as_many_rows_as_registers_have_room_for(name: str) -> None:
    target = reference_target("avx512")
    kind = GEMM_TYPES[name].on(target)
    shape = tile_shape(kind, target).of_lines
    assert shape.rows > tile_shape(kind, target).rows
    assembly = emit_assembly(emit_windows(kind, target).text(), target)
    assert not spills_of_tile(assembly, kind, Tile(shape.rows, shape.vectors))
    assert not spills_of_tile(assembly, kind, Tile(shape.rows, shape.vectors, copies=True))


@pytest.mark.parametrize(("name", "instruction"), [("amx_u8", "tdpbuud"), ("amx_bf16", "tdpbf16ps")])
def test_a_matrix_unit_is_used_where_there_is_one(name: str, instruction: str) -> None:
    without = reference_target("avx512")
    target = dataclasses.replace(without, features=f"{without.features},+amx-bf16,+amx-int8,+amx-tile")
    assembly = emit_assembly(emit_gemm(UNIT_TYPES[name], target).text(), target)
    of_edges, whole = 1 + 2 + 2 + 4, 4 + 4  # in a panel, and in a part
    assert assembly.count(instruction) == of_edges + whole
    assert "tilerelease" in assembly
    with pytest.raises(InternalError, match=f"has no matrix unit for products of {name}"):
        emit_gemm(UNIT_TYPES[name], without)


def spills_of_tile(assembly: str, kind: GemmType, tile: Tile) -> list[str]:
    """Instructions that move whole vectors between registers and the stack."""
    start = assembly.index(f"\n{tile.name(kind)}:")
    body = assembly[start : assembly.index(".Lfunc_end", start)]
    has_frame_pointer = "%rsp, %rbp" in body  # else that is a register like others
    stack = re.compile(r"%rsp|%rbp|\[sp" if has_frame_pointer else r"%rsp|\[sp")
    vector = re.compile(r"%[xyz]mm|\bq\d")
    return [line for line in body.splitlines() if stack.search(line) and vector.search(line)]


def libm_calls(assembly: str) -> set[str]:
    """Functions of the C library that code for vectors must not fall back to."""
    forbidden = {"fmaf", "fma", "__extendhfsf2", "__truncsfhf2", "__truncsfbf2"}
    return forbidden & set(assembly.replace("@PLT", " ").split())


@pytest.mark.parametrize("name", ["f32", "c64", "bf16", "s8"])
@pytest.mark.parametrize(("m", "n", "k"), [(17, 40, 70), (100, LOW_ROWS + 1, 33), (17, 18, 9000)])
def test_the_library_for_few_rows_does_the_same_with_many(name: str, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (m, k), 1), random_array(name, (k, n), 2)
    results = [multiply(name, a, b, np.empty((m, n), RESULTS[name]), is_low=is_low) for is_low in (False, True)]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("machine", ["sse2", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("name", GEMM_TYPES)
def test_every_way_for_few_rows_is_in_their_library(machine: str, name: str) -> None:
    target = reference_target(machine)
    shape = tile_shape(GEMM_TYPES[name].on(target), target)
    rows = [DOT_ROWS, *stream_heights(GEMM_TYPES[name], shape), *(most for most, _ in shape.wide)]
    assert max(rows) <= LOW_ROWS
    assert dot_rows(GEMM_TYPES[name], shape) <= LOW_ROWS_ALONG_K


def test_narrow_vectors_of_a_wide_machine() -> None:
    target: Target = dataclasses.replace(reference_target("avx512"), vector_bytes=32)
    assembly = emit_assembly(emit_gemm(GEMM_TYPES["f32"], target).text(), target)
    assert "%ymm" in assembly
    assert "%zmm" not in assembly


def test_a_library_is_made_once(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", version=b"1")
    made: list[str] = []

    def emit(target: Target) -> Module:
        made.append(target.cpu)
        module = Module()
        module.define("answer", "define i32 @answer() { ret i32 42 }")
        return module

    library = Library("answers", ("answer",), emit)
    first = library.objects(host_target(), cache)
    assert library.objects(host_target(), cache) == first
    assert len(made) == 1
    other = dataclasses.replace(host_target(), l2_bytes=1)
    library.objects(other, cache)
    assert len(made) == 2
    code = link(first, {}, library.exports)
    assert ctypes.CFUNCTYPE(ctypes.c_int)(code.address("answer"))() == 42


GUARDED = [
    (name, target)
    for name in ("f32", "bf16", "s8", "c64", "amx_s8", "amx_bf16", "amx_f32")
    for target in TARGETS
    if LIBRARY_TYPES[name].is_on(TARGETS[target])
]


@pytest.mark.parametrize(("name", "target"), GUARDED)
def test_nothing_outside_of_the_operands_is_touched(name: str, target: str) -> None:
    """A read or write beyond them ends the process."""
    rooms = [GuardedRoom(1 << 18) for _ in range(3)]
    generator = np.random.default_rng(14)
    for number in range(200):
        batch = () if number % 4 else (5,)
        sizes = [1, 2, 3, 5, 7, 8, 13, 17, 31, 33, 50, *(() if batch else (64, 70, 128, 139))]
        m, n, k = (int(size) for size in generator.choice(sizes, 3))
        a, b = random_array(name, (*batch, m, k), 1), random_array(name, (*batch, k, n), 2)
        before = np.zeros((*batch, m, n), RESULTS[name])
        at_end, a_by_columns, b_by_columns, c_by_columns = generator.integers(0, 2, 4)
        placed = []
        for room, array, by_columns in zip(
            rooms, (a, b, before), (a_by_columns, b_by_columns, c_by_columns), strict=True
        ):
            by_rows = room.array(array.swapaxes(-1, -2) if by_columns else array, at_end=bool(at_end))
            placed.append(by_rows.swapaxes(-1, -2) if by_columns else by_rows)
        multiply(name, *placed, target=target)
        assert_product(name, placed[2], a, b)
