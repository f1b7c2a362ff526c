"""The variables in the expressions of the tables, for one element type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.random import RandomState

SEED = 3

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
        "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
        "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
        "bool": np.bool_, "c64": np.complex64, "c128": np.complex128,
    }.items()
}  # fmt: skip

GROUPS = {
    "float": ("f32", "f64", "bf16", "f16"),
    "wide": ("f32", "f64"),
    "complex": ("c64", "c128"),
    "lapack": ("f32", "f64", "c64", "c128"),
    "int": ("i8", "i16", "i32", "i64"),
    "uint": ("u8", "u16", "u32", "u64"),
}
GROUPS["integer"] = (*GROUPS["int"], *GROUPS["uint"])
GROUPS["signed"] = (*GROUPS["float"], *GROUPS["int"])
GROUPS["real"] = (*GROUPS["float"], *GROUPS["integer"])
GROUPS["number"] = (*GROUPS["real"], *GROUPS["complex"])
GROUPS["all"] = (*GROUPS["number"], "bool")


Dims = tuple[int, ...]


def values(dtype: np.dtype[Any], *, plane: Dims = (4, 5), seed: int = SEED) -> dict[str, np.ndarray]:
    """Every variable. `unit` is inside (-1, 1), `chance` inside (0, 1). `plane` is what `x` and its like measure."""
    random = RandomState(seed)

    def general(*dims: int) -> np.ndarray:
        return _general(random, dtype, dims)

    def between(low: float, high: float, *dims: int) -> np.ndarray:
        numbers = random.uniform(low, high, dims)
        return (numbers + 0.3j * numbers if dtype.kind == "c" else numbers).astype(dtype)

    matrix = general(5, 5)
    return {
        "x": general(*plane), "y": general(*plane), "scalar": general(), "vector": general(6), "cube": general(2, 3, 4),
        "positive": between(0.3, 4, *plane), "unit": between(-0.95, 0.95, *plane),
        "chance": between(0.05, 0.95, *plane),
        "sorted": np.sort(between(-3, 3, 8).real).astype(dtype), "series": general(50),
        "matrix": matrix, "tall": general(7, 5), "spd": _positive_definite(matrix),
        "batch": general(3, 4, 4), "batch5": general(3, 5, 2),
        "images": general(2, 8, 9, 2), "kernel": general(3, 2, 2, 4), "local": general(4, 8, 3, 4),
        "indices": random.randint(4, size=4).astype(np.int32), "mask": random.uniform(size=plane) < 0.6,
        "key": np.array([0, 42], np.uint32), "bits4": random.randint(1 << 30, size=4).astype(np.uint32),
    }  # fmt: skip


def empty(dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    """The variables, with nothing in `x` and its like."""
    return values(dtype, plane=(0, 5))


def large(dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    """The variables, with more in `x` and its like than one vector, one block or one thread takes."""
    return values(dtype, plane=(131, 261))


def batched(dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    """The variables three times: what a function is mapped over."""
    several = [values(dtype, seed=SEED + number) for number in range(3)]
    return {name: np.stack([each[name] for each in several]) for name in several[0]}


def edges(dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    """The variables with what functions find difficult in place of numbers: of 4 x 5, in two orders.

    Subnormal numbers are not among them: XLA takes them for zero."""
    info: Any = ml_dtypes.finfo(dtype) if dtype.kind != "c" else np.finfo(dtype)
    big, small = float(info.max), float(info.smallest_normal)
    special = [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.5,
        -0.5,
        2,
        3.5,
        -2.5,
        30,
        -30,
        big,
        -big,
        small,
        -small,
        100,
        -3,
    ]
    first = np.array(special).astype(dtype).reshape(4, 5)
    if dtype.kind == "c":
        first = first + np.array(0.5j, dtype)
    second = np.ascontiguousarray(first[::-1, ::-1])
    return {**values(dtype), "x": first, "y": second, "positive": first}


VALUES = {"edges": edges, "empty": empty, "large": large, "batched": batched}
"""By the mode of a case; `values` for all others."""


def _general(random: RandomState, dtype: np.dtype[Any], dims: Dims) -> np.ndarray:
    if dtype.kind == "b":
        return np.asarray(random.uniform(size=dims) < 0.5)
    if dtype.kind in "iu":
        return np.asarray(random.randint(0 if dtype.kind == "u" else -7, 8, size=dims)).astype(dtype)
    numbers = np.asarray(random.normal(scale=1.5, size=dims))
    return (numbers + 1j * random.normal(size=dims) if dtype.kind == "c" else numbers).astype(dtype)


def _positive_definite(matrix: np.ndarray) -> np.ndarray:
    if matrix.dtype.kind not in "fc":
        return matrix
    wide = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
    return np.asarray(wide @ wide.conj().T + 4 * np.eye(len(wide))).astype(matrix.dtype)
