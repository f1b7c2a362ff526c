"""How a routine becomes a custom call target: arrays laid out as LAPACK wants them, in and out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlapy_runtime.custom_calls import BUILT_IN, Filling
from xlapy_runtime.errors import UnsupportedError
from xlapy_runtime.lapack.native import Array, Batch, capsules, matrices_like

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}

NAMES: set[str] = set()
"""All targets of this package. Filled at import, then only read."""

Routine = Callable[..., None]
"""`routine(batch, *operands, *results, **entries)`: matrices column by column, everything else densely packed."""


def require() -> None:
    """Raises UnsupportedError if LAPACK is not there."""
    capsules()


def target(name: str, prefixes: str) -> Callable[[Routine], Routine]:
    """Registers a routine under JAX's name for it, for the element types with these prefixes."""

    def register(routine: Routine) -> Routine:
        for prefix in prefixes:
            register_target(f"lapack_{prefix}{name}_ffi", routine, prefix)
        return routine

    return register


def register_target(name: str, routine: Routine, prefixes: str) -> None:
    """Registers a routine under a name of its own; the operands' element type is one of the prefixes'."""
    NAMES.add(name)
    types: dict[np.dtype[Any], str] = {np.dtype(DTYPES[prefix]): prefix for prefix in prefixes}

    def fill(operands: Sequence[Array], results: Sequence[Array], **entries: Any) -> None:
        rank = max(operand.ndim for operand in operands)  # of a batch of matrices
        dtype = operands[0].dtype
        if rank < 2 or dtype not in types:
            known = " or ".join(map(str, types))
            raise UnsupportedError(f"{name} is for matrices of {known}, and is given {dtype}{list(operands[0].shape)}")
        count = math.prod(results[-1].shape[: rank - 2])
        if not count:
            return
        given = [_packed(operand, operand.ndim == rank) for operand in operands]
        places = [_place(result, result.ndim == rank) for result in results]
        routine(Batch(types[dtype], dtype, count), *given, *places, **entries)
        for result, place in zip(results, places, strict=True):
            if place is not result:
                np.copyto(result, place)

    BUILT_IN.register(name, Filling(fill))


def _is_packed(array: Array, is_matrix: bool) -> bool:
    return bool((array.swapaxes(-1, -2) if is_matrix else array).flags.c_contiguous)


def _packed(array: Array, is_matrix: bool) -> Array:
    """The array itself, or a copy of it in the order of LAPACK."""
    if _is_packed(array, is_matrix):
        return array
    place = _place(array, is_matrix)
    np.copyto(place, array)
    return place


def _place(array: Array, is_matrix: bool) -> Array:
    """The array itself, if it lies as LAPACK wants it, or else one of its size that does."""
    if _is_packed(array, is_matrix):
        return array
    if not is_matrix:
        return np.empty(array.shape, array.dtype)
    return matrices_like(array)
