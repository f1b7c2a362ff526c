"""Sparse matrices of JAX go in, and come out, as what they are, and are multiplied as by XLA."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import xlapy
from tests.jax.agreement import assert_agree, x64_mode

RANDOM = np.random.default_rng(12)
DENSE = np.where(RANDOM.random((6, 5)) < 0.6, 0, RANDOM.normal(size=(6, 5))).astype(np.float32)
DENSE[2] = 0
V = RANDOM.normal(size=5).astype(np.float32)
W = RANDOM.normal(size=(5, 3)).astype(np.float32)
ENTRIES = np.count_nonzero(DENSE) + 4
"""Some of which are padding."""


def test_lists_of_entries() -> None:
    def function(dense: Any, v: Any, w: Any) -> Any:
        matrix = sparse.BCOO.fromdense(dense, nse=ENTRIES)
        sums = sparse.bcoo_reduce_sum(matrix, axes=[0]).todense()
        product = sparse.sparsify(lambda a, b: jnp.sin(a @ b))(matrix, v)
        return matrix @ w, matrix.T.todense(), sums, matrix[1:3].todense(), product, (matrix @ matrix.T).todense()

    assert_agree(function, DENSE, V, W)


@pytest.mark.parametrize("kind", [sparse.BCSR, sparse.CSR])
def test_rows(kind: Any) -> None:
    def function(dense: Any, v: Any, w: Any) -> Any:
        matrix = kind.fromdense(dense, nse=ENTRIES)
        return matrix @ v, matrix @ w, matrix.todense()

    assert_agree(function, DENSE, V, W)


@pytest.mark.parametrize("dtype", [np.int32, np.complex64, np.float64, np.complex128])
def test_elements_of_rows(dtype: Any) -> None:
    """A matrix is an argument, and a result."""
    with x64_mode():
        matrix = sparse.BCSR.fromdense((DENSE * 3).astype(dtype), nse=ENTRIES)
        assert_agree(lambda m, v: (m @ v, m), matrix, (V * 3).astype(dtype))


def test_a_call_with_other_operands_says_what_it_takes() -> None:
    text = """ENTRY e { x = f32[3] parameter(0)
      ROOT c = f32[3] custom-call(x), custom_call_target="cpu_csr_sparse_dense_ffi" }"""
    with pytest.raises(xlapy.XlaError, match="takes four arrays, and gives one: here are 1 and 1"):
        xlapy.compile(text)(V[:3])
