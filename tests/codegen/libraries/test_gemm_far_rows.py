"""Products of few rows with a large matrix: read by rows, with the same bits as of one that is near, or along K."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.codegen.libraries.test_gemm import (
    ALL_TARGETS,
    NAMES,
    RESULTS,
    assert_product,
    multiply,
    on_machines,
    random_array,
)
from tests.support.native import record


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "s32"], ALL_TARGETS))
@pytest.mark.parametrize("m", [8, 29])
def test_each_element_is_one_chain_of_sums(name: str, target: str, m: int) -> None:
    """Several chunks of steps, and blocks of columns, of which the last are shorter."""
    k, n = 403, 1301
    a, b = random_array(name, (m, k), 30), random_array(name, (k, n), 31)
    far = multiply(name, a, b, np.empty((m, n), RESULTS[name]), target=target)
    last = np.ascontiguousarray(b[:, -33:])
    near = multiply(name, a, last, np.empty((m, 33), RESULTS[name]), target=target)
    assert_product(name, near, a, last)
    assert near.tobytes() == np.ascontiguousarray(far[:, -33:]).tobytes()
    for num_threads in (2, 3, 8):
        shared = multiply(name, a, b, np.empty((m, n), RESULTS[name]), num_threads=num_threads, target=target)
        assert shared.tobytes() == far.tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64", "s32", "bf16"], ALL_TARGETS))
@pytest.mark.parametrize(("m", "n"), [(6, 530), (11, 530), (13, 47), (40, 530), (17, 47)])
def test_columns_along_k_in_several_passes(name: str, target: str, m: int, n: int) -> None:
    """More rows than are multiplied at once, and several chunks, of which the last is shorter; so many that tiles take
    columns for rows; either side has few."""
    k = 1103
    a, b = random_array(name, (m, k), 36), random_array(name, (n, k), 37).T
    product = multiply(name, a, b, np.empty((m, n), RESULTS[name]), target=target)
    assert_product(name, product, a, b)
    turned = multiply(name, b.T, a.T, np.empty((n, m), RESULTS[name]), target=target)
    assert_product(name, turned, b.T, a.T)
    for num_threads in (2, 8):
        shared = multiply(name, a, b, np.empty((m, n), RESULTS[name]), num_threads=num_threads, target=target)
        assert shared.tobytes() == product.tobytes()


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith(("amx", "f16", "bf16")) and name != "amx_f32"]
)
@pytest.mark.parametrize("m", [10, 33, 100, 200])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_parts_that_pack_what_they_need(name: str, m: int, layout: str) -> None:
    """From afar where the second-level cache is small; the sums are made in the same order."""
    k, n = 1102, 611
    a, b = random_array(name, (m, k), 38), random_array(name, (k, n), 39)
    if layout == "columns":
        b = np.asfortranarray(b)
    near = multiply(name, a, b, np.empty((m, n), RESULTS[name]))
    for num_threads in (1, 3):
        far = np.empty((m, n), RESULTS[name])
        multiply(name, a, b, far, num_threads=num_threads, target="host with small caches")
        assert far.tobytes() == near.tobytes()


@pytest.mark.parametrize(("name", "target"), on_machines(["f32", "f64"], ALL_TARGETS))
def test_sums_are_added_to_what_is_there(name: str, target: str) -> None:
    m, k, n = 20, 403, 1301
    a, b, old = random_array(name, (m, k), 32), random_array(name, (k, n), 33), random_array(name, (m, n), 34)
    product = multiply(name, a, b, np.empty((m, n), RESULTS[name]), target=target)
    added = multiply(name, a, b, old.copy(), accumulate=True, target=target)
    rounding = 4 * k * np.finfo(product.dtype).eps  # of either sum, in any order
    np.testing.assert_allclose(added, old + product, rtol=0, atol=rounding * np.abs(a).max() * np.abs(b).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_an_epilogue_and_a_batch(dtype: type, layout: str) -> None:
    """The left side by rows, or with rows side by side at each step; no matrix fits a second-level cache."""
    random = np.random.default_rng(35)
    batches, m, k, n = 2, 19, 601, 1030 if dtype is np.float64 else 1800
    x = (random.normal(size=(batches, m, k)) / k**0.5).astype(dtype)
    if layout == "columns":
        x = np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)
    y, bias = random.normal(size=(batches, k, n)).astype(dtype), random.normal(size=(1, 1, n)).astype(dtype)
    module = record(lambda x, y, bias: xlapy.ops.Tanh(x @ y + bias), x, y, bias)
    results = [xlapy.compile(module, xlapy.CompileOptions(num_threads=n))(x, y, bias) for n in (1, 3)]
    np.testing.assert_allclose(results[0], xlapy.evaluate(module, x, y, bias), rtol=1e-5, atol=1e-5)
    assert results[0].tobytes() == results[1].tobytes()
