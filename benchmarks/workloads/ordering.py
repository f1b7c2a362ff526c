"""Sorting and searching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import MATRIX_SIZES, integers, normal

LENGTHS = {"small": 1 << 8, "cache": 1 << 14, "memory": 1 << 20}
ROWS = {"small": (16, 16), "cache": (1024, 100), "memory": (65536, 32)}
KEYS = {"small": (1 << 8, 16), "cache": (1 << 14, 1 << 10), "memory": (1 << 20, 1 << 10)}


def keys_and_values(generator: np.random.Generator, length: Any) -> Arrays:
    return [generator.integers(-1000, 1000, length).astype(np.int32), generator.standard_normal(length, np.float32)]


def sorted_and_wanted(generator: np.random.Generator, size: Any) -> Arrays:
    length, wanted = size
    return [np.sort(generator.standard_normal(length, np.float32)), generator.standard_normal(wanted, np.float32)]


def _ordering(name: str, function: Callable[..., Any], inputs: Maker, sizes: Any) -> Workload:
    return Workload("ordering", name, function, inputs, sizes)


WORKLOADS = [
    _ordering("sort_f32", jnp.sort, normal(), LENGTHS),
    _ordering("sort_s32", jnp.sort, integers(-(2**31), 2**31 - 1), LENGTHS),
    _ordering("argsort_f32", jnp.argsort, normal(), LENGTHS),
    _ordering("sort_key_value", lambda k, v: jax.lax.sort((k, v), num_keys=1), keys_and_values, LENGTHS),
    _ordering("sort_f64", jnp.sort, normal(dtype=np.float64), LENGTHS),
    _ordering("sort_rows", lambda x: jnp.sort(x, axis=1), normal(), ROWS),
    _ordering("sort_key_value_rows", lambda k, v: jax.lax.sort((k, v), num_keys=1), keys_and_values, ROWS),
    _ordering("top_10_of_rows", lambda x: jax.lax.top_k(x, 10), normal(), ROWS),
    _ordering("top_2_of_rows", lambda x: jax.lax.top_k(x, 2), normal(), MATRIX_SIZES),
    _ordering("top_50", lambda x: jax.lax.top_k(x, 50), normal(), LENGTHS),
    _ordering("searchsorted", jnp.searchsorted, sorted_and_wanted, KEYS),
]
