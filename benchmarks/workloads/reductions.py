"""Reductions of all, rows and columns, with one and with several operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from benchmarks import equivalents
from benchmarks.workload import Maker, Workload
from benchmarks.workloads.inputs import MATRIX_SIZES, VECTOR_SIZES, integers, normal


def _reduction(
    name: str, function: Callable[..., Any], inputs: Maker | None = None, sizes: Any = MATRIX_SIZES, **options: Any
) -> Workload:
    return Workload("reductions", name, function, inputs or normal(), sizes, **options)


WORKLOADS = [
    _reduction("sum_all", jnp.sum, equivalent=equivalents.sum_all),
    _reduction("sum_rows", lambda x: x.sum(1), equivalent=equivalents.sum_rows),
    _reduction("sum_columns", lambda x: x.sum(0), equivalent=equivalents.sum_columns),
    _reduction("max_rows", lambda x: x.max(1), equivalent=equivalents.max_rows),
    _reduction("max_columns", lambda x: x.max(0), equivalent=equivalents.max_columns),
    _reduction("sum_of_squares", lambda x, y: ((x - y) ** 2).sum(), normal(2)),
    _reduction("argmax_rows", lambda x: jax.lax.argmax(x, 1, np.int32)),
    _reduction("argmax_columns", lambda x: jax.lax.argmax(x, 0, np.int32)),
    _reduction("argmax_all", jnp.argmax, equivalent=equivalents.argmax_all),
    _reduction("all_finite", lambda x: jnp.isfinite(x).all()),
    _reduction("sum_all_f64", jnp.sum, normal(dtype=np.float64), equivalent=equivalents.sum_all),
    _reduction("sum_all_bf16", jnp.sum, normal(dtype=ml_dtypes.bfloat16), tolerance=16),
    _reduction("sum_all_s32", jnp.sum, integers(-100, 100)),
    _reduction("sum_rows_f64", lambda x: x.sum(1), normal(dtype=np.float64), equivalent=equivalents.sum_rows),
    _reduction("sum_columns_bf16", lambda x: x.sum(0), normal(dtype=ml_dtypes.bfloat16), tolerance=16),
    _reduction("sum_columns_s32", lambda x: x.sum(0), integers(-100, 100)),
    # A running sum is as far off as the sum of its roundings; XLA adds in the order of a tree.
    _reduction(
        "cumulative_sum", jax.lax.cumsum, sizes=VECTOR_SIZES, equivalent=equivalents.cumulative_sum, tolerance=4
    ),
    _reduction("cumulative_maximum", jax.lax.cummax, sizes=VECTOR_SIZES),
    _reduction("cumulative_sum_rows", lambda x: jax.lax.cumsum(x, 1)),
    _reduction("cumulative_sum_columns", lambda x: jax.lax.cumsum(x, 0)),
    # In whatever order n factors are multiplied, a product has the relative errors of all its n - 1 roundings: for 4096
    # of them a standard deviation of about 30 half ulps, and some row of 4096 is four times that off.
    _reduction("cumulative_product", lambda x: jax.lax.cumprod(1 + 0.001 * x, 1), tolerance=4),
]
