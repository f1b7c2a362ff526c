"""Operations that only move data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import IMAGE_SIZES, MATRIX_SIZES, normal

HEADS = {"small": (1, 16, 4, 16), "cache": (4, 64, 8, 64), "memory": (16, 1024, 16, 64)}
"""Batch, sequence, heads, depth."""


def one_row(generator: np.random.Generator, shape: Any) -> Arrays:
    return [generator.standard_normal(shape[1:], np.float32), np.zeros(shape, np.float32)]


def periodic_laplacian(x: Any) -> Any:
    """All four neighbours, round the ends."""
    return sum(jnp.roll(x, step, axis) for step in (1, -1) for axis in (0, 1)) - 4 * x


def _movement(name: str, function: Callable[..., Any], inputs: Maker | None = None, sizes: Any = None) -> Workload:
    return Workload("movement", name, function, inputs or normal(), sizes or MATRIX_SIZES)


WORKLOADS = [
    _movement("transpose", lambda x: x.T),
    _movement("transpose_bf16", lambda x: x.T, normal(dtype=ml_dtypes.bfloat16)),
    _movement("transpose_f64", lambda x: x.T, normal(dtype=np.float64)),
    _movement("channels_first", lambda x: x.transpose(0, 3, 1, 2), sizes=IMAGE_SIZES),
    _movement("heads_first", lambda x: x.transpose(0, 2, 1, 3), sizes=HEADS),
    _movement("concatenate_rows", lambda x, y: jnp.concatenate([x, y], 0), normal(2)),
    _movement("concatenate_columns", lambda x, y: jnp.concatenate([x, y], 1), normal(2)),
    _movement("pad", lambda x: jnp.pad(x, ((1, 1), (2, 2)))),
    _movement("periodic_laplacian", periodic_laplacian),
    _movement("reverse_rows", lambda x: x[::-1]),
    _movement("reverse_columns", lambda x: x[:, ::-1]),
    _movement("broadcast_row", lambda row, like: jnp.broadcast_to(row, like.shape), one_row),
    _movement("slice", lambda x: x[1:-1, 3:-3]),
    _movement("strided_slice", lambda x: x[::2, ::3]),
]
