"""Operations that only move data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import IMAGE_SIZES, MATRIX_SIZES, integers, normal, uniform

HEADS = {"small": (1, 16, 4, 16), "cache": (4, 64, 8, 64), "memory": (16, 1024, 16, 64)}
"""Batch, sequence, heads, depth."""


LATTICE = {"cache": (9, 200, 200)}
PICTURES = {"small": (1, 16, 16, 3), "cache": (4, 64, 64, 3), "memory": (64, 224, 224, 3)}
"""Pictures, rows, columns, colours."""


def one_row(generator: np.random.Generator, shape: Any) -> Arrays:
    return [generator.standard_normal(shape[1:], np.float32), np.zeros(shape, np.float32)]


def periodic_laplacian(x: Any) -> Any:
    """All four neighbours, round the ends."""
    return sum(jnp.roll(x, step, axis) for step in (1, -1) for axis in (0, 1)) - 4 * x


def lattice_boltzmann(x: Any) -> Any:
    """A step of a fluid on a lattice: what moves in each of nine directions goes there, and relaxes."""
    ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    x = jnp.stack([jnp.roll(x[number], way, (0, 1)) for number, way in enumerate(ways)])
    along, across = (np.array(parts, np.float32)[:, None, None] for parts in zip(*ways, strict=True))
    weights = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4], np.float32)[:, None, None]
    density = x.sum(0)
    u, v = (x * along).sum(0) / density, (x * across).sum(0) / density
    speed = along * u + across * v
    rest = weights * density * (1 + 3 * speed + 4.5 * speed * speed - 1.5 * (u * u + v * v))
    return x - 0.6 * (x - rest)


def some_mirrored(x: Any, mirrored: Any) -> Any:
    """Some of many pictures the other way round, as they are augmented."""
    return jnp.where(mirrored[:, None, None, None], x[:, :, ::-1], x)


def pictures_to_mirror(generator: np.random.Generator, shape: Any) -> Arrays:
    return [generator.standard_normal(shape, np.float32), generator.random(shape[0]) < 0.5]


def space_to_depth(x: Any) -> Any:
    """Blocks of two by two pixels as features, as networks that merge patches begin."""
    count, rows, columns, colours = x.shape
    blocks = x.reshape(count, rows // 2, 2, columns // 2, 2, colours).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(count, rows // 2, columns // 2, 4 * colours)


def wavelet(x: Any) -> Any:
    """A step of Haar's: sums of neighbours in the first half of a row, differences in the second."""
    even, odd = x[:, ::2], x[:, 1::2]
    return jnp.concatenate([even + odd, even - odd], 1) * 0.70710678


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
    _movement("lattice_boltzmann", lattice_boltzmann, uniform(1, 2), LATTICE),
    _movement("reverse_rows", lambda x: x[::-1]),
    _movement("reverse_columns", lambda x: x[:, ::-1]),
    _movement("broadcast_row", lambda row, like: jnp.broadcast_to(row, like.shape), one_row),
    _movement("slice", lambda x: x[1:-1, 3:-3]),
    _movement("strided_slice", lambda x: x[::2, ::3]),
    _movement("every_second_column", lambda x: x[:, ::2]),
    _movement("mirrored_u8", lambda x: x[:, :, ::-1], integers(0, 256, dtype=np.uint8), PICTURES),
    _movement("some_mirrored", some_mirrored, pictures_to_mirror, PICTURES),
    _movement("reflected_borders", lambda x: jnp.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0)), "reflect"), sizes=PICTURES),
    _movement("space_to_depth", space_to_depth, sizes=PICTURES),
    _movement("wavelet", wavelet),
]
