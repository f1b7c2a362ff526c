"""`cpu_csr_sparse_dense_ffi`: what JAX calls on CPUs for a sparse matrix, stored by rows, times a dense one.

    f32[4,3] custom-call(f32[9] data, s32[5] starts, s32[9] columns, f32[6,3] x)

Row r of the result is the sum over i in [starts[r], starts[r + 1]) of data[i] * x[columns[i]], in this order; what lies
behind the last row is padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy_runtime.custom_calls import BUILT_IN, Filling
from xlapy_runtime.errors import UnsupportedError

TARGET = "cpu_csr_sparse_dense_ffi"


def _fill(operands: Sequence[np.ndarray[Any, Any]], results: Sequence[np.ndarray[Any, Any]], **entries: Any) -> None:
    if len(operands) != 4 or len(results) != 1:
        raise UnsupportedError(
            f"{TARGET} takes four arrays, and gives one: here are {len(operands)} and {len(results)}"
        )
    data, starts, columns, dense = operands
    (product,) = results
    used = slice(starts[0], starts[-1])
    rows = np.repeat(np.arange(len(product)), np.diff(starts))
    factors = data[used].reshape([-1, *[1] * (dense.ndim - 1)])
    product[...] = 0
    np.add.at(product, rows, factors * dense[columns[used]])


BUILT_IN.register(TARGET, Filling(_fill))
