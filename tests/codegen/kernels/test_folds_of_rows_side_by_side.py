"""Folds along the same rows that one kernel has side by side, each by its own op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy

REGIONS = """
add { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] add(a, b) }
maximum { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] maximum(a, b) }
minimum { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] minimum(a, b) }
"""
OPS = ("add", "maximum", "add", "minimum", "add", "maximum", "add")


def folds(type: str, dims: tuple[int, ...], count: int, init: str) -> str:
    """Sums and extrema of an array times different numbers, all of which begin with `init`."""
    whole, rows = ",".join(map(str, dims)), ",".join(map(str, dims[:-1]))
    lines = []
    for number, op in zip(range(count), OPS, strict=False):
        lines += [
            f"c{number} = T[] constant({number + 2})  b{number} = T[{whole}] broadcast(c{number}), dimensions={{}}",
            f"m{number} = T[{whole}] multiply(x, b{number})",
            f"r{number} = T[{rows}] reduce(m{number}, i), dimensions={{{len(dims) - 1}}}, to_apply={op}",
        ]
    shapes, names = ", ".join([f"T[{rows}]"] * count), ", ".join(f"r{number}" for number in range(count))
    body = "\n".join(lines)
    text = f"{REGIONS} ENTRY e {{ x = T[{whole}] parameter(0)  i = T[] constant({init}) {body}\n"
    return (text + f"ROOT t = ({shapes}) tuple({names}) }}").replace("T[", f"{type}[")


@pytest.mark.parametrize("count", [2, 3, 4, 7])
@pytest.mark.parametrize("dims", [(5, 16), (4, 40), (7, 257), (3, 2, 1000), (2, 9)])
@pytest.mark.parametrize(("type", "dtype"), [("f32", np.float32), ("f64", np.float64), ("s16", np.int16)])
def test_folds_of_rows(type: str, dtype: Any, dims: tuple[int, ...], count: int) -> None:
    text = folds(type, dims, count, "3")
    x = np.random.default_rng(0).integers(-9, 9, dims).astype(dtype)
    executable = xlapy.compile(text)
    assert executable.hlo_text().count(" fusion(") == -(-count // 4)
    for found, wanted in zip(executable(x), xlapy.evaluate(text, x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_marks_of_extrema_stay_with_their_folds() -> None:
    x = np.random.default_rng(0).standard_normal((6, 100)).astype(np.float32)
    x[0, 50], x[1], x[2, ::2], x[3, 99] = np.nan, -0.0, -np.inf, np.inf
    text = folds("f32", (6, 100), 4, "-0")
    for found, wanted in zip(xlapy.compile(text)(x), xlapy.evaluate(text, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("vectors", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_few_vectors_times_bytes(vectors: int, transposed: bool) -> None:
    """Nobody writes the matrix as floats, and kernels have four vectors each; one joins what they make."""
    dims, contracted = ("40,72", 1) if transposed else ("72,40", 0)
    text = f"""ENTRY e {{
      x = f32[{vectors},72] parameter(0)
      q = s8[{dims}] parameter(1)
      w = f32[{dims}] convert(q)
      ROOT r = f32[{vectors},40] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}
    }}"""
    generator = np.random.default_rng(0)
    x = generator.integers(-9, 9, (vectors, 72)).astype(np.float32)
    q = generator.integers(-9, 9, (40, 72) if transposed else (72, 40)).astype(np.int8)
    executable = xlapy.compile(text)
    program = executable.hlo_text()
    assert " dot(" not in program
    assert program.count("kind=kInput") == -(-vectors // 4)
    np.testing.assert_array_equal(executable(x, q), xlapy.evaluate(text, x, q))


def test_matrices_that_are_gathered_are_read_in_place() -> None:
    text = """ENTRY e {
      x = f32[3,24] parameter(0)
      experts = f32[5,24,32] parameter(1)
      i = s32[3,1] parameter(2)
      w = f32[3,24,32] gather(experts, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1,24,32}
      ROOT y = f32[3,32] dot(x, w), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0},
        rhs_contracting_dims={1}
    }"""
    generator = np.random.default_rng(0)
    x, experts = (generator.integers(-9, 9, dims).astype(np.float32) for dims in ((3, 24), (5, 24, 32)))
    i = np.array([[4], [-7], [9]], np.int32)  # two of which are moved into the array
    executable = xlapy.compile(text)
    assert "1 kernel>" in repr(executable)
    np.testing.assert_array_equal(executable(x, experts, i), xlapy.evaluate(text, x, experts, i))
