"""Products that a processor's matrix unit computes, where it has one: what they are elsewhere, but for subnormals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.forks import works_in_a_child
from xlapy.codegen.target import host_target
from xlapy.options import CompileOptions

HAS_UNIT = host_target().has("amx-bf16")


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
