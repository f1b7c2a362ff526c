"""Products of many small matrices: loop nests that know their sizes, without a call of the matrix library."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy.codegen.libraries.gemm_types import unit_name
from xlapy.codegen.target import host_target
from xlapy.hlo.matrix_products import SMALL_MATRIX_WORK

BATCH = 300
SIZES = [
    (1, 3, 3),
    (2, 2, 2),
    (3, 3, 3),
    (3, 1, 3),
    (4, 4, 4),
    (5, 6, 7),
    (8, 8, 8),
    (16, 1, 16),
    (1, 64, 8),
    (2, 3, 70),
]
"""Rows, columns, length of the sums."""

TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "s32": np.int32, "c64": np.complex64}
TOLERANCES = {"f32": 1e-5, "f64": 1e-13, "bf16": 1e-2, "s32": 0, "c64": 1e-5}


def program(type: str, batch: int) -> str:
    """A product for each size, with each of its sides as it is and transposed; operands are parts of one vector."""
    lines, results = [], []
    for number, ((m, n, k), left, right) in enumerate(product(SIZES, (1, 2), (1, 2))):
        a = (batch, m, k) if left == 2 else (batch, k, m)
        b = (batch, k, n) if right == 1 else (batch, n, k)
        for name, dims in (("a", a), ("b", b)):
            size, shape = int(np.prod(dims)), ",".join(map(str, dims))
            lines.append(f"  s{name}{number} = {type}[{size}] slice(x), slice={{[{number}:{number + size}]}}")
            lines.append(f"  {name}{number} = {type}[{shape}] reshape(s{name}{number})")
        shape = f"{type}[{batch},{m},{n}]"
        lines.append(
            f"  d{number} = {shape} dot(a{number}, b{number}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
            f"lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}"
        )
        results.append((f"d{number}", shape))
    names, shapes = (", ".join(column) for column in zip(*results, strict=True))
    length = batch * max(max(m * k, k * n) for m, n, k in SIZES) + 4 * len(SIZES)
    return "\n".join(
        ["HloModule products", "ENTRY main {", f"  x = {type}[{length}] parameter(0)", *lines]
        + [f"  ROOT all = ({shapes}) tuple({names})", "}"]
    )


def numbers(text: str, type: str) -> np.ndarray:
    length = int(text.partition(f"x = {type}[")[2].partition("]")[0])
    return (np.random.default_rng(5).standard_normal(length) * 4).astype(TYPES[type])


@pytest.mark.parametrize("type", TYPES)
def test_small_products_are_right_and_need_no_library(type: str) -> None:
    assert all(m * n * k <= SMALL_MATRIX_WORK for m, n, k in SIZES)
    text = program(type, BATCH)
    x = numbers(text, type)
    executable = xlapy.compile(text)
    assert "gemm_" not in executable.llvm_ir()
    for own, expected in zip(executable(x), xlapy.evaluate(text, x), strict=True):
        tolerance = TOLERANCES[type] * 200
        np.testing.assert_allclose(np.asarray(own, expected.dtype), expected, rtol=TOLERANCES[type], atol=tolerance)


def test_larger_matrices_go_to_the_library() -> None:
    text = """HloModule larger
ENTRY main { a = f32[50,9,9] parameter(0)
  b = f32[50,9,9] parameter(1)
  ROOT d = f32[50,9,9] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
    rhs_contracting_dims={1} }
"""
    assert "gemm_f32_low" in xlapy.compile(text).llvm_ir()


@pytest.mark.parametrize("type", ["f32", "bf16", "c64"])
@pytest.mark.parametrize("right_batch", ["{0,2}", "{2,0}"])
def test_batches_that_lie_apart_are_calls_one_after_the_other(type: str, right_batch: str) -> None:
    """The scores of attention, with heads between the positions and their depths."""
    shape = (3, 20, 5, 16) if right_batch == "{0,2}" else (5, 20, 3, 16)
    text = f"""HloModule scores
ENTRY main {{ q = {type}[3,24,5,16] parameter(0)
  k = {type}[{",".join(map(str, shape))}] parameter(1)
  ROOT s = {type}[3,5,24,20] dot(q, k), lhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}},
    rhs_batch_dims={right_batch}, rhs_contracting_dims={{3}} }}
"""
    generator = np.random.default_rng(3)
    inputs = [generator.standard_normal(size).astype(TYPES[type]) for size in ((3, 24, 5, 16), shape)]
    executable = xlapy.compile(text)
    kind = "f32" if type == "f32" else unit_name(type, host_target()) or type  # f32 in planes: not of so few rows
    assert f"gemm_{kind}_run" in executable.llvm_ir()
    expected = xlapy.evaluate(text, *inputs)
    tolerance = TOLERANCES[type] * 10
    np.testing.assert_allclose(
        executable(*inputs).astype(np.complex64), expected.astype(np.complex64), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("type", ["s8", "u8", "u32", "u64"])
def test_integers_of_no_library_wrap_like_those_of_one(type: str) -> None:
    """Sums of bytes that have few bits, and unsigned ones: the low bits of what a library computes, and small ones."""
    text = f"""HloModule wrapping
ENTRY main {{ a = {type}[40,70] parameter(0)
  b = {type}[70,50] parameter(1)
  c = {type}[70] parameter(2)
  d = {type}[12,17] parameter(3)
  ab = {type}[40,50] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ac = {type}[40] dot(a, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  cc = {type}[] dot(c, c), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  dd = {type}[17,17] dot(d, d), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  ROOT all = ({type}[40,50], {type}[40], {type}[], {type}[17,17]) tuple(ab, ac, cc, dd) }}
"""
    dtype = np.dtype({"s8": np.int8, "u8": np.uint8, "u32": np.uint32, "u64": np.uint64}[type])
    limits, generator = np.iinfo(dtype), np.random.default_rng(9)
    sides = [(40, 70), (70, 50), (70,), (12, 17)]
    inputs = [generator.integers(limits.min, limits.max, dims, dtype, endpoint=True) for dims in sides]
    executable = xlapy.compile(text)
    assert "gemm_" in executable.llvm_ir()
    for own, expected in zip(executable(*inputs), xlapy.evaluate(text, *inputs), strict=True):
        np.testing.assert_array_equal(own, expected)
