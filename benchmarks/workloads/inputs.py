"""Makers of inputs that several families share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.workload import Arrays, Maker

VECTOR_SIZES = {"small": 1 << 10, "cache": 1 << 17, "memory": 1 << 24}
"""Elements: 4 KB, 512 KB and 64 MB of f32."""

MATRIX_SIZES = {"small": (16, 64), "cache": (256, 512), "memory": (4096, 4096)}

IMAGE_SIZES = {"small": (1, 8, 8, 16), "cache": (2, 32, 32, 64), "memory": (16, 128, 128, 64)}
"""Images, rows, columns, channels."""


def normal(count: int = 1, dtype: Any = np.float32) -> Maker:
    """`count` arrays of normally distributed numbers; the size is their shape."""

    def make(generator: np.random.Generator, shape: Any) -> Arrays:
        return [generator.standard_normal(shape, np.float32).astype(dtype) for _ in range(count)]

    return make


def uniform(low: float, high: float, count: int = 1, dtype: Any = np.float32) -> Maker:
    def make(generator: np.random.Generator, shape: Any) -> Arrays:
        return [(generator.random(shape, np.float32) * (high - low) + low).astype(dtype) for _ in range(count)]

    return make


def integers(low: int, high: int, count: int = 1, dtype: Any = np.int32) -> Maker:
    def make(generator: np.random.Generator, shape: Any) -> Arrays:
        return [generator.integers(low, high, shape).astype(dtype) for _ in range(count)]

    return make


def constant_weights(shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    """What a program has as a constant."""
    return np.asarray(np.random.default_rng(list(shape)).standard_normal(tuple(shape), np.float32).astype(dtype))


def scaled(generator: np.random.Generator, shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    """Weights of a layer: normal, divided by the root of the length of a product's sum."""
    values = generator.standard_normal(tuple(shape), np.float32) / np.sqrt(np.float32(shape[0]))
    return np.asarray(values.astype(dtype))
