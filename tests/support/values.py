"""Values for tests: arrays that hold the awkward numbers of an element type, and comparison bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from xlapy.hlo.element_types import ElementType, element_type_of, real_part_type
from xlapy.hlo.evaluate.numerics import from_bits, to_bits, total_order

Array = np.ndarray[Any, Any]


def integer_limits(element_type: ElementType) -> tuple[int, int]:
    low = -(1 << (element_type.bits - 1)) if element_type.is_signed else 0
    return low, (1 << (element_type.bits - element_type.is_signed)) - 1


def edges(element_type: ElementType) -> Array:
    """The numbers of a type at which things go wrong."""
    if element_type.kind == "pred":
        return np.array([False, True])
    if element_type.is_integer:
        low, high = integer_limits(element_type)
        chosen = [0, 1, 2, 3, 5, element_type.bits - 1, element_type.bits, high, high - 1, high // 2]
        chosen += [low, low + 1, -1, -2, -3, 7, 31, 32, 63, 64, 100]
        inside = sorted({number for number in chosen if low <= number <= high})
        return np.array(inside, np.int64 if element_type.is_signed else np.uint64).astype(element_type.dtype)
    if element_type.is_float:
        return _float_edges(element_type)
    parts = edges(real_part_type(element_type))
    grid = np.empty((parts.size, parts.size), element_type.dtype)
    grid.real, grid.imag = parts[:, None], parts[None, :]
    return grid.reshape(-1)


def _float_edges(element_type: ElementType) -> Array:
    info = ml_dtypes.finfo(element_type.dtype)
    chosen = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, 2.5, -2.5, 3.0, 100.0, -7.25, np.inf, -np.inf, np.nan]
    chosen += [float(info.max), float(info.min), float(info.tiny), float(info.smallest_subnormal)]
    chosen += [-float(info.tiny), 1 + float(info.eps), float(np.float32(0.1))]
    with np.errstate(all="ignore"):
        return np.array(chosen, np.float64).astype(element_type.dtype)


def random_array(random: np.random.Generator, element_type: ElementType, dims: tuple[int, ...]) -> Array:
    """Small numbers mostly, some of any bits, some edges."""
    size = int(np.prod(dims, dtype=np.int64))
    edge = random.choice(edges(element_type), size) if size else np.zeros(0, element_type.dtype)
    if element_type.kind == "pred":
        return edge.reshape(dims)
    parts = random.choice(3, size, p=[0.8, 0.1, 0.1])
    small = _small(random, element_type, size)
    any_bits = _any_bits(random, element_type, size)
    chosen = np.where(parts == 0, small, np.where(parts == 1, any_bits, edge))
    return np.ascontiguousarray(chosen.astype(element_type.dtype, copy=False)).reshape(dims)


def _small(random: np.random.Generator, element_type: ElementType, size: int) -> Array:
    if element_type.is_integer:
        low, high = integer_limits(element_type)
        return random.integers(max(low, -9), min(high, 9) + 1, size).astype(element_type.dtype)
    numbers = random.normal(size=size) * 3 if random.random() < 0.7 else random.integers(-5, 6, size).astype(float)
    if element_type.is_complex:
        return (numbers + 1j * random.normal(size=size)).astype(element_type.dtype)
    return numbers.astype(element_type.dtype)


def _any_bits(random: np.random.Generator, element_type: ElementType, size: int) -> Array:
    if element_type.is_complex:
        part = real_part_type(element_type)
        pairs = _any_bits(random, part, 2 * size)
        return np.ascontiguousarray(pairs).view(element_type.dtype)
    bits = random.integers(0, 1 << element_type.bits, size, dtype=np.uint64)
    return from_bits(bits, element_type)


def assert_same(got: Any, expected: Any, place: str = "result") -> None:
    """Equal types, shapes and bits; one NaN is as good as another."""
    if isinstance(expected, tuple):
        assert isinstance(got, tuple) and len(got) == len(expected), place
        for number, (part, wanted) in enumerate(zip(got, expected, strict=True)):
            assert_same(part, wanted, f"{place}[{number}]")
        return
    if expected is None:
        assert got is None, place
        return
    assert got.dtype == expected.dtype, f"{place}: {got.dtype} is not {expected.dtype}"
    assert got.shape == expected.shape, f"{place}: {got.shape} is not {expected.shape}"
    differ = np.flatnonzero(~same_elements(got, expected))
    if differ.size:
        first = int(differ[0])
        raise AssertionError(
            f"{place}: {differ.size} of {got.size} elements of {got.dtype}{list(got.shape)} differ, "
            f"the first at {np.unravel_index(first, got.shape)}: "
            f"{got.reshape(-1)[first]!r} is not {expected.reshape(-1)[first]!r}"
        )


def assert_array_equal(got: Array, expected: Array, err_msg: str = "") -> None:
    """What numpy's function of this name asserts: it looks for NaN first, in several passes over large arrays."""
    if got.shape != expected.shape or not (got == expected).all():
        np.testing.assert_array_equal(got, expected, err_msg)


def same_elements(got: Array, expected: Array) -> Array:
    """Which elements have the same bits, or are both NaN; flat."""
    if element_type_of(got.dtype).is_complex:
        real, imag = (same_elements(g, e) for g, e in ((got.real, expected.real), (got.imag, expected.imag)))
        return np.asarray(real & imag)
    flat, wanted = np.ascontiguousarray(got).reshape(-1), np.ascontiguousarray(expected).reshape(-1)
    same = to_bits(flat) == to_bits(wanted)
    if element_type_of(got.dtype).is_float:
        with np.errstate(all="ignore"):
            same |= np.isnan(flat.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    return np.asarray(same)


def assert_close(got: Any, expected: Any, ulp: int, place: str = "result") -> None:
    """Equal types and shapes, and floats at most `ulp` units of the last place apart; NaN meets NaN, and -0 meets 0.

    Units of f32 at least: a narrow float is computed in f32, and then rounded, which may double a difference once."""
    assert got.dtype == expected.dtype and got.shape == expected.shape, f"{place}: {got.dtype}{got.shape}"
    if element_type_of(got.dtype).is_narrow_float:
        distance = np.abs(total_order(got) - total_order(expected)).astype(np.float64)
        ulp = 1
    else:
        with np.errstate(all="ignore"):
            distance = np.abs(got - expected) / np.spacing(np.maximum(np.abs(expected), np.finfo(got.dtype).tiny))
    same = same_elements(got, expected).reshape(got.shape) | (got == expected)
    distance = np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))
    if distance.size and distance.max() > ulp:
        first = int(distance.argmax())
        raise AssertionError(
            f"{place}: element {first} is {got.reshape(-1)[first]!r}, not {expected.reshape(-1)[first]!r}: "
            f"{distance.reshape(-1)[first]} units of the last place apart"
        )
