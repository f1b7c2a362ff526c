"""Reading and writing at computed places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import MATRIX_SIZES, normal

TABLES = {"small": (100, 16, 8), "cache": (2000, 64, 512), "memory": (200_000, 128, 65536)}
"""Rows, columns, and how many rows are taken."""

TRACES = {"small": (100, 16), "cache": (500, 256), "memory": (1000, 16384)}
"""Steps, and elements written in each."""


def table_and_rows(generator: np.random.Generator, size: Any) -> Arrays:
    rows, columns, taken = size
    return [generator.standard_normal((rows, columns), np.float32), generator.integers(0, rows, taken).astype(np.int32)]


def matrix_and_columns(generator: np.random.Generator, shape: Any) -> Arrays:
    """A column number for each element."""
    return [generator.standard_normal(shape, np.float32), generator.integers(0, shape[1], shape).astype(np.int32)]


def with_updates(generator: np.random.Generator, size: Any) -> Arrays:
    _, columns, taken = size
    return [*table_and_rows(generator, size), generator.standard_normal((taken, columns), np.float32)]


def elements_and_bins(generator: np.random.Generator, size: Any) -> Arrays:
    rows, _, taken = size
    return [np.zeros(rows, np.float32), generator.integers(0, rows, taken).astype(np.int32)]


def trace(start: Any, steps: Any) -> Any:
    """A loop that writes one row of its result in each step."""

    def step(number: Any, state: Any) -> Any:
        row, kept = state
        row = row * 0.99 + 0.1
        return row, jax.lax.dynamic_update_slice(kept, row[None], (number, 0))

    return jax.lax.fori_loop(0, steps.shape[0], step, (start, jnp.zeros((steps.shape[0], start.shape[0]))))[1]


def appended_keys(cache: Any, key: Any, start: Any) -> Any:
    """Writes a few rows into a large array, at a place that is known only when it runs."""
    return jax.lax.dynamic_update_slice(cache, key, (start, 0))


def cache_and_key(generator: np.random.Generator, size: Any) -> Arrays:
    rows, columns, _ = size
    shapes = ((rows, columns), (4, columns))
    return [*(generator.standard_normal(shape, np.float32) for shape in shapes), np.full((), rows // 3, np.int32)]


IMAGES = {"small": (8, 16), "cache": (64, 64), "memory": (64, 224)}
"""Images, and their rows and columns; of three colours."""

BORDER = 4


def mixed_images(images: Any, other: Any, share: Any) -> Any:
    """Each image mixed with another one of the batch."""
    share = share[:, None, None, None]
    return share * images + (1 - share) * images[other]


def cropped_images(images: Any, places: Any) -> Any:
    """A part of each image, from a place of its own on."""
    _, rows, columns, colours = images.shape
    sizes = (rows - BORDER, columns - BORDER, colours)
    return jax.vmap(lambda image, at: jax.lax.dynamic_slice(image, (at[0], at[1], 0), sizes))(images, places)


def images_and(*others: Callable[[np.random.Generator, int], np.ndarray]) -> Maker:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        count, side = size
        images = generator.standard_normal((count, side, side, 3), np.float32)
        return [images, *(other(generator, count) for other in others)]

    return make


def an_order(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.permutation(count).astype(np.int32)


def shares(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.random(count, np.float32)


def corners(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.integers(0, BORDER + 1, (count, 2)).astype(np.int32)


def trace_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    steps, elements = size
    return [generator.standard_normal(elements, np.float32), np.zeros(steps, np.int32)]


def maxima_of_windows(x: Any) -> Any:
    """Of 32 neighbours each, by computed places."""
    return x[jnp.arange(x.shape[0] - 31)[:, None] + jnp.arange(32)].max(1)


def _indexing(name: str, function: Callable[..., Any], inputs: Maker, sizes: Any = None) -> Workload:
    return Workload("indexing", name, function, inputs, sizes or TABLES, moves_memory=False)


WORKLOADS = [
    _indexing("embedding", lambda table, rows: table[rows], table_and_rows),
    _indexing("gather_columns", lambda table, rows: table[:, rows[:16] % table.shape[1]], table_and_rows),
    _indexing(
        "take_along_rows", lambda x, columns: jnp.take_along_axis(x, columns, 1), matrix_and_columns, MATRIX_SIZES
    ),
    _indexing("maxima_of_windows", maxima_of_windows, normal(), {"small": 1 << 9, "cache": 1 << 15, "memory": 1 << 20}),
    _indexing("scatter_add_rows", lambda table, rows, updates: table.at[rows].add(updates), with_updates),
    _indexing("histogram", lambda bins, rows: bins.at[rows].add(1.0), elements_and_bins),
    _indexing("dynamic_update_slice", appended_keys, cache_and_key),
    _indexing("trace_of_a_loop", trace, trace_inputs, TRACES),
    _indexing("mixed_images", mixed_images, images_and(an_order, shares), IMAGES),
    _indexing("cropped_images", cropped_images, images_and(corners), IMAGES),
]
