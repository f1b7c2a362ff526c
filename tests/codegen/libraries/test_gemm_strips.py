"""Products whose right side was packed beforehand have the bits of those that pack it themselves."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.codegen.libraries import test_gemm
from tests.codegen.libraries.test_gemm import RESULTS, RUN, TARGETS, linked, multiply, random_array
from xlapy.codegen.libraries.gemm import LOW_ROWS, is_turned_round, product_function
from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.libraries.gemm_strips import strips_of
from xlapy.codegen.libraries.gemm_types import LIBRARY_TYPES
from xlapy_runtime import threads
from xlapy_runtime.alignment import LINE_BYTES, data_address

Array = np.ndarray

NAMES = [name for name in test_gemm.NAMES if LIBRARY_TYPES[name].planes == 1]  # others are packed in each call

SIZES_TO_TEST = [
    (10, 10, 0),
    (10, 11, 1),
    (13, 33, 9),
    (37, 131, 259),
    (130, 70, 1100),
    (260, 300, 271),
    (29, 520, 300),
    (150, 1100, 601),
    (1100, 20, 160),
    (125, 290, 1024),
    (40, 70, 2500),  # pieces along K
]


def multiply_packed(
    name: str, a: Array, b: Array, *, turned_round: bool = False, num_threads: int = 1, target: str = "host"
) -> Array:
    """a @ b for batches of matrices, with `b` packed beforehand; or the transposes, stored by columns, of which that is
    the left side."""
    batches, m, k = a.shape
    n = b.shape[-1]
    strips = strips_of(name, TARGETS[target], k, n)
    packed = strips.pack(b)
    assert data_address(packed) % LINE_BYTES == 0
    c = np.empty((batches, m, n), RESULTS[name])
    element = strips.element_bytes
    of_a = {"batch": m * k, "across": a.strides[1] // a.itemsize, "step": a.strides[2] // a.itemsize}
    of_b = {"batch": strips.matrix_bytes // element, "across": 1, "step": strips.step_bytes // element}
    counts, sides, arrays = (m, n), (of_a, of_b), (a, packed)
    strides_of_c = {"c_row": n, "c_column": 1}
    if turned_round:
        counts, sides, arrays = (n, m), (of_b, of_a), (packed, a)
        strides_of_c = {"c_row": 1, "c_column": n}
    left, right = sides
    sizes = {
        "batches": batches,
        "m": counts[0],
        "n": counts[1],
        "k": k,
        "a_batch": left["batch"],
        "a_row": left["across"],
        "a_step": left["step"],
        "b_batch": right["batch"],
        "b_column": right["across"],
        "b_step": right["step"],
        "c_batch": m * n,
        "b_strip": strips.strip_bytes // element,
        **strides_of_c,
    }
    assert is_turned_round(sizes) == turned_round
    library, function = product_function(name, sizes)
    run = RUN(linked(library, target).address(function))
    numbers = (ctypes.c_int64 * len(SIZES))(*(sizes.get(each, 0) for each in SIZES))
    places = [array.ctypes.data for array in (*arrays, c)]
    run(threads.parallel_address(num_threads), *places, ctypes.addressof(numbers), None, None)
    return c


def assert_same(name: str, found: Array, wanted: Array, depth: int) -> None:
    """The same bits, unless complex: chunks along K are added up one by one, and need not end at the same steps."""
    if name.startswith("c"):
        precision = np.finfo(found.dtype).eps * depth
        assert np.allclose(found, wanted, rtol=precision, atol=precision)
    else:
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("m", "n", "k"), SIZES_TO_TEST)
def test_every_type_and_size(name: str, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (1, m, k), 1), random_array(name, (1, k, n), 2)
    wanted = multiply(name, a, b, np.empty((1, m, n), RESULTS[name]))
    for right in (b, np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(0, 2, 1)):
        assert_same(name, multiply_packed(name, a, right), wanted, k)
    by_columns = np.ascontiguousarray(a.transpose(0, 2, 1)).transpose(0, 2, 1)
    assert_same(name, multiply_packed(name, by_columns, b), wanted, k)
    assert_same(name, multiply_packed(name, a, b, turned_round=True), wanted, k)


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "host"])
@pytest.mark.parametrize("name", ["f32", "f64", "f16", "s8", "c64"])
def test_other_machines(name: str, target: str) -> None:
    for m, n, k in SIZES_TO_TEST:
        a, b = random_array(name, (1, m, k), 3), random_array(name, (1, k, n), 4)
        wanted = multiply(name, a, b, np.empty((1, m, n), RESULTS[name]), target=target)
        assert_same(name, multiply_packed(name, a, b, target=target), wanted, k)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("m", "n", "k"), [(260, 300, 270), (90, 700, 600), (40, 1100, 1050), (64, 60, 4100)])
def test_threads_do_not_change_a_bit(name: str, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (1, m, k), 5), random_array(name, (1, k, n), 6)
    results = {multiply_packed(name, a, b, num_threads=count).tobytes() for count in (1, 2, 3, 8)}
    assert len(results) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batches", "m", "n", "k"), [(7, LOW_ROWS + 1, 40, 33), (3, 70, 65, 130), (2, 20, 200, 700)])
def test_batches(name: str, batches: int, m: int, n: int, k: int) -> None:
    a, b = random_array(name, (batches, m, k), 7), random_array(name, (batches, k, n), 8)
    wanted = multiply(name, a, b, np.empty((batches, m, n), RESULTS[name]))
    assert_same(name, multiply_packed(name, a, b, num_threads=2), wanted, k)
