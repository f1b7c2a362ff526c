"""Random inputs for a signature: ordinary values, and those at which programs go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from xlapy.hlo.element_types import ElementType
from xlapy.hlo.shape import Shape


def random_arguments(shapes: Iterable[Shape], seed: int) -> list[Any]:
    """One value for each shape. Even seeds mix in NaN, infinities, zeros of both signs and integer edges."""
    generator = np.random.default_rng(seed)
    return [random_value(shape, generator, special=seed % 2 == 0) for shape in shapes]


def random_value(shape: Shape, generator: np.random.Generator, *, special: bool) -> Any:
    """An array (a bounded dimension gets any size up to its bound), a tuple of values, or None for a token."""
    if shape.elements is not None:
        return tuple(random_value(part, generator, special=special) for part in shape.elements)
    if shape.is_token:
        return None
    dims = tuple(
        int(generator.integers(0, size + 1)) if shape.is_dynamic_dim(dim) else size
        for dim, size in enumerate(shape.dims)
    )
    return random_array(shape.type, dims, generator, special=special)


def random_array(
    element_type: ElementType, dims: Sequence[int], generator: np.random.Generator, *, special: bool = False
) -> np.ndarray[Any, Any]:
    dtype = element_type.dtype
    if element_type.kind == "pred":
        return generator.integers(0, 2, dims).astype(np.bool_)
    if element_type.is_integer:
        values = generator.integers(0 if element_type.kind == "unsigned" else -4, 5, dims)
        limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        edges: list[Any] = [limits.min, limits.max, 0, 1]
        array = np.asarray(values).astype(dtype)
    elif element_type.is_complex:
        array = (generator.normal(size=dims) + 1j * generator.normal(size=dims)).astype(dtype)
        edges = [complex(np.inf, 1), complex(0.0, -0.0), complex(np.nan, 0)]
    else:
        array = np.asarray(generator.normal(size=dims) * 3).astype(dtype)
        largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, largest, 1e-42]
    if special and array.size:
        chosen = generator.random(dims) < 0.3
        picks = np.asarray(edges, dtype=dtype)[generator.integers(0, len(edges), dims)]
        array = np.where(chosen, picks, array).astype(dtype)
    return np.asarray(array)
