"""Products that a processor's matrix unit computes, where it has one: what they are elsewhere, but for subnormals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.forks import works_in_a_child
from xlapy.codegen.target import host_target
from xlapy.options import CompileOptions

HAS_UNIT = host_target().has("amx-bf16") and host_target().has("amx-int8")
TYPES = {"s8": np.int8, "u8": np.uint8, "bf16": ml_dtypes.bfloat16}


def product(kind: str, m: int, n: int, k: int, result: str, precision: str = "default") -> str:
    return f"""HloModule products
        ENTRY e {{
          a = {kind}[{m},{k}] parameter(0)
          b = {kind}[{k},{n}] parameter(1)
          ROOT d = {result}[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}},
            operand_precision={{{precision},{precision}}}
        }}"""


@pytest.mark.parametrize("offset", [0, 1, 16, 64])
@pytest.mark.parametrize(("m", "n", "k"), [(33, 47, 129), (40, 200, 128), (64, 256, 4096), (300, 33, 192)])
def test_bytes_at_any_place_in_memory(m: int, n: int, k: int, offset: int) -> None:
    generator = np.random.default_rng(m)
    memory = generator.integers(-128, 128, m * k + 128, dtype=np.int8)
    a, b = memory[offset : offset + m * k].reshape(m, k), generator.integers(-128, 128, (k, n), dtype=np.int8)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(xlapy.compile(product("s8", m, n, k, "s32"))(a, b), wanted)


def test_the_largest_sums_of_bytes() -> None:
    a, b = np.full((48, 4096), -128, np.int8), np.full((4096, 64), -128, np.int8)
    assert np.all(xlapy.compile(product("s8", 48, 64, 4096, "s32"))(a, b) == 4096 << 14)


@pytest.mark.parametrize("precision", ["high", "highest"])
def test_subnormal_operands_count_where_precision_is_wanted(precision: str) -> None:
    a, b = np.full((32, 64), 1e-39, ml_dtypes.bfloat16), np.full((64, 32), 1, ml_dtypes.bfloat16)
    exact = xlapy.compile(product("bf16", 32, 32, 64, "f32", precision))(a, b)
    np.testing.assert_array_equal(exact, np.float32(a[0, 0]) * np.float32(64))
    quick = xlapy.compile(product("bf16", 32, 32, 64, "f32"))(a, b)
    np.testing.assert_array_equal(quick, 0 if HAS_UNIT else exact)


def test_what_is_not_finite_stays_in_its_rows_and_columns() -> None:
    a, b = np.ones((40, 100), ml_dtypes.bfloat16), np.ones((100, 70), ml_dtypes.bfloat16)
    a[3, 99], b[98, 64] = np.inf, np.nan
    found = xlapy.compile(product("bf16", 40, 70, 100, "f32"))(a, b)
    wanted = np.full((40, 70), 100, np.float32)
    wanted[3], wanted[:, 64] = np.inf, np.nan
    np.testing.assert_array_equal(found, wanted)


CONVOLUTIONS = {
    "padded": ("2,9,11,32", "3,3,32,40", "2,9,11,40", "size=3x3 pad=1_1x1_1"),
    "strides": ("1,29,30,24", "3,2,24,38", "1,14,15,38", "size=3x2 stride=2x2"),
    "holes in the window": ("1,22,22,16", "3,3,16,36", "1,20,20,36", "size=3x3 pad=1_1x1_1 rhs_dilate=2x2"),
    "odd features of the result": ("1,20,20,34", "3,3,34,17", "1,20,20,17", "size=3x3 pad=1_1x1_1"),
    "long pieces": ("1,15,16,130", "2,3,130,18", "1,15,16,18", "size=2x3 pad=0_1x1_1"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(("kind", "result"), [("s8", "s32"), ("u8", "s32"), ("bf16", "f32")])
def test_convolutions(name: str, kind: str, result: str) -> None:
    """Of small numbers, whose sums are exact in any order."""
    images, kernel, features, window = CONVOLUTIONS[name]
    text = f"""ENTRY e {{ x = {kind}[{images}] parameter(0) k = {kind}[{kernel}] parameter(1)
        ROOT c = {result}[{features}] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f }}"""
    generator = np.random.default_rng(5)
    x, k = (
        generator.integers(0 if kind == "u8" else -5, 6, [*map(int, dims.split(","))]).astype(TYPES[kind])
        for dims in (images, kernel)
    )
    compiled = xlapy.compile(text)
    assert ("@gemm_amx_" if HAS_UNIT else "@gemm_") in compiled.llvm_ir()
    np.testing.assert_array_equal(compiled(x, k), xlapy.evaluate(text, x, k))
    if kind == "bf16":  # what meets no element is left out, be it zero times infinity
        k[0, 0, 3, 1] = np.inf
        np.testing.assert_array_equal(compiled(x, k), xlapy.evaluate(text, x, k))


@pytest.mark.parametrize(("m", "n", "k"), [(200, 300, 1000), (64, 48, 9000)])
def test_threads_do_not_change_bits(m: int, n: int, k: int) -> None:
    generator = np.random.default_rng(7)
    a, b = (generator.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    text = product("bf16", m, n, k, "f32")
    first, *others = (xlapy.compile(text, CompileOptions(num_threads=count))(a, b) for count in (1, 2, 3, 8))
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_a_child_uses_it_too() -> None:
    run = xlapy.compile(product("s8", 64, 64, 64, "s32"))
    a = np.ones((64, 64), np.int8)
    assert run(a, a)[5, 5] == 64

    def compute() -> None:
        assert run(a, a)[5, 5] == 64

    assert works_in_a_child(compute)
