"""Products of f32 that the matrix unit computes in planes of bf16: what they keep, and what they leave to others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import xlapy
from tests.codegen.libraries.test_gemm import Array, assert_shown_once, multiply
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.libraries.gemm import emit_gemm, kind_on
from xlapy.codegen.libraries.gemm_types import UNIT_TYPES
from xlapy.codegen.target import Target, host_target, reference_target

KIND = UNIT_TYPES["amx_f32"]

SIZES = {"batches": 1, "m": 256, "n": 512, "k": 256, "a_row": 256, "a_step": 1, "b_step": 512, "b_column": 1}


def unit_target() -> Target:
    without = reference_target("avx512")
    return dataclasses.replace(without, features=f"{without.features},+amx-bf16,+amx-int8,+amx-tile")


def test_six_products_for_each() -> None:
    assembly = emit_assembly(emit_gemm(KIND, unit_target()).text(), unit_target())
    of_edges, whole = 1 + 2 + 2 + 4, 4 + 4  # in a panel, and in a part
    assert assembly.count("tdpbf16ps") == 6 * (of_edges + whole)
    assert "gemm_f32_run" in assembly


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "amx_f32"),
        ({"batches": 8, "n": 256, "k": 64}, "amx_f32"),
        ({"m": 128, "n": 128, "k": 128}, "amx_f32"),
        ({"m": 136, "n": 104, "k": 128}, "f32"),  # a fifth of what tiles add up would be of no use
        ({"batches": 8, "m": 96, "n": 128, "k": 64}, "f32"),
        ({"m": 64, "n": 4096}, "amx_f32"),
        ({"m": 48, "n": 4096}, "f32"),  # too few rows for what it takes to pack B
        ({"k": 16, "m": 4096, "n": 4096}, "f32"),
        ({"accumulate": 1}, "f32"),  # what is added to may be subnormal
        ({"a_row": 512, "a_step": 2}, "f32"),
        ({"a_row": 1, "a_step": 256}, "amx_f32"),
    ],
)
def test_which_products_are_computed_in_planes(changed: dict[str, int], kind: str) -> None:
    assert kind_on("f32", unit_target(), SIZES | changed, is_precise=False) == kind


def test_which_are_not_whatever_their_size() -> None:
    assert kind_on("f32", unit_target(), SIZES, is_precise=True) == "f32"
    assert kind_on("f32", unit_target(), SIZES, is_precise=False, is_part=True) == "f32"
    assert kind_on("f32", reference_target("avx512"), SIZES, is_precise=False) == "f32"
    assert kind_on("f64", unit_target(), SIZES, is_precise=False) == "f64"


WITH_A_UNIT = pytest.mark.skipif(not KIND.is_on(host_target()), reason="this machine has no matrix unit for bf16")


def product(name: str, a: Array, b: Array, num_threads: int = 1) -> Array:
    return multiply(name, a, b, np.full((a.shape[0], b.shape[1]), np.nan, np.float32), num_threads=num_threads)


def bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.int32)


@WITH_A_UNIT
class TestOnTheUnit:
    def test_a_product_with_the_identity_changes_nothing(self) -> None:
        random = np.random.default_rng(0)
        a = (random.standard_normal((70, 90)) * 2.0 ** random.integers(-50, 50, (70, 90))).astype(np.float32)
        identity = np.eye(90, dtype=np.float32)
        np.testing.assert_array_equal(bits(product("amx_f32", a, identity)), bits(a))
        np.testing.assert_array_equal(bits(product("amx_f32", identity, a.T)), bits(a.T))

    def test_sums_of_integers_are_exact(self) -> None:
        random = np.random.default_rng(1)
        a, b = (random.integers(-250, 251, shape).astype(np.float32) for shape in ((40, 100), (100, 50)))
        np.testing.assert_array_equal(product("amx_f32", a, b), (a.astype(np.float64) @ b).astype(np.float32))

    @pytest.mark.parametrize("depth", [64, 700, 3000])
    def test_sums_are_as_accurate_as_those_of_multiply_adds(self, depth: int) -> None:
        random = np.random.default_rng(depth)
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((130, depth), (depth, 140)))
        exact, magnitude = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
        in_planes, plain = (np.abs(product(name, a, b) - exact) / magnitude for name in ("amx_f32", "f32"))
        assert in_planes.max() <= plain.max()
        assert in_planes.mean() <= plain.mean()

    @pytest.mark.parametrize("side", ["a", "b"])
    @pytest.mark.parametrize(
        "special", [np.inf, -np.inf, np.nan, 1e-40, -1e-45, 1e-35, 3e38, np.float32(1.17549435e-38)], ids=str
    )
    @pytest.mark.parametrize("is_transposed", [False, True])
    def test_what_planes_do_not_hold_is_left_to_the_processor(
        self, side: str, special: float, is_transposed: bool
    ) -> None:
        random = np.random.default_rng(2)
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((50, 70), (70, 45)))
        (a if side == "a" else b)[-1, -1] = special
        if is_transposed:
            a, b = (np.asfortranarray(matrix) for matrix in (a, b))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(bits(product("amx_f32", a, b)), bits(product("f32", a, b)))

    @pytest.mark.parametrize(("least", "other"), [(-40, -40), (-80, 0), (3, -83), (-100, 20)])
    def test_the_smallest_numbers_that_planes_hold_lose_nothing(self, least: int, other: int) -> None:
        """One step below, the product is that of the processor: equal bits of all it could tell."""
        a, b = np.zeros((33, 40), np.float32), np.zeros((40, 34), np.float32)
        last_bits = 1 + 2.0**-23
        a[0, 0], b[0, 0] = 2.0**least * last_bits, 2.0**other
        a[1, 1], b[1, 1] = 2.0**least, 2.0**other * last_bits
        a[2, 2], b[2, 2] = -(2.0**least) * 1.5, 2.0**other * 1.25
        exact = (a.astype(np.float64) @ b).astype(np.float32)
        np.testing.assert_array_equal(product("amx_f32", a, b), exact)
        np.testing.assert_array_equal(product("amx_f32", a / 2, b), exact / 2)

    @pytest.mark.parametrize(("of_a", "of_b"), [(-49, -49), (-98, 0), (2, -100)])
    def test_of_the_smallest_products_less_is_lost_than_by_rounding(self, of_a: int, of_b: int) -> None:
        random = np.random.default_rng(5)
        a, b = (random.uniform(1, 2, shape) * random.choice([-1, 1], shape) for shape in ((64, 300), (300, 48)))
        a, b = (a * 2.0**of_a).astype(np.float32), (b * 2.0**of_b).astype(np.float32)
        exact, magnitude = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
        in_planes, plain = (np.abs(product(name, a, b) - exact) / magnitude for name in ("amx_f32", "f32"))
        assert (bits(product("amx_f32", a, b)) != bits(product("f32", a, b))).any()  # so it is computed in planes
        assert in_planes.max() <= plain.max()
        smaller = (a / 2).astype(np.float32)
        np.testing.assert_array_equal(bits(product("amx_f32", smaller, b)), bits(product("f32", smaller, b)))

    @pytest.mark.parametrize("num_threads", [2, 3, 8])
    @pytest.mark.parametrize(("m", "k"), [(100, 900), (300, 900), (700, 900), (300, 1700)])
    def test_bits_do_not_depend_on_threads(self, num_threads: int, m: int, k: int) -> None:
        """What the shorter side has is what all parts have."""
        random = np.random.default_rng(3)
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, 400)))
        one = product("amx_f32", a, b)
        np.testing.assert_array_equal(bits(product("amx_f32", a, b, num_threads)), bits(one))
        (a if m < 400 else b)[-1, -1] = np.inf
        one = product("f32", a, b)
        np.testing.assert_array_equal(bits(product("amx_f32", a, b, num_threads)), bits(one))

    @pytest.mark.parametrize("num_threads", [1, 3])
    @pytest.mark.parametrize(("m", "n"), [(150, 1000), (1000, 150)])
    @pytest.mark.parametrize("special", [np.inf, 1e-40])
    def test_a_part_that_planes_do_not_hold_is_left_to_the_processor(
        self, num_threads: int, m: int, n: int, special: float
    ) -> None:
        """Of the longer side: other parts are what they are without it."""
        random = np.random.default_rng(6)
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, 700), (700, n)))
        in_planes = product("amx_f32", a, b)
        (a if m > n else b)[-1, -1] = special
        plain, mixed = product("f32", a, b), product("amx_f32", a, b, num_threads)
        part = 128 + 1000 % 128  # strips of 32, four or fewer to a part
        longer = slice(-(1000 % 128) or None, None), slice(0, 1000 - part)
        for rows, expected in zip(longer, (plain, in_planes), strict=True):
            along = (rows,) if m > n else (slice(None), rows)
            np.testing.assert_array_equal(bits(mixed[along]), bits(expected[along]))

    @pytest.mark.parametrize(
        ("m", "n", "k"), [(33, 31, 1), (1, 70, 40), (129, 257, 513), (300, 64, 1500), (190, 260, 2100), (64, 1, 96)]
    )
    @pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
    def test_any_sizes_and_layouts(self, m: int, n: int, k: int, orders: str) -> None:
        random = np.random.default_rng(m)
        a = np.asarray(random.standard_normal((m, k)), np.float32, order=orders[0])
        b = np.asarray(random.standard_normal((k, n)), np.float32, order=orders[1])
        exact, magnitude = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
        for result in (np.full((m, n), np.nan, np.float32), np.full((n, m), np.nan, np.float32).T):
            product = multiply("amx_f32", a, b, result, num_threads=2)
            assert np.all(np.abs(product - exact) <= 2.0**-23 * (k + 1) * magnitude)

    @pytest.mark.parametrize("num_threads", [2, 3, 8])
    @pytest.mark.parametrize(("m", "n", "k"), [(200, 150, 600), (150, 200, 60), (33, 300, 900), (70, 65, 40)])
    def test_bits_of_small_products_do_not_either(self, m: int, n: int, k: int, num_threads: int) -> None:
        """Of which each thread packs both sides of its share."""
        random = np.random.default_rng(9)
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        for special in (1.0, np.inf, 1e-41):
            a[3, 4] = special
            one = product("amx_f32", a, b)
            np.testing.assert_array_equal(bits(product("amx_f32", a, b, num_threads)), bits(one))
            if special != 1.0:
                np.testing.assert_array_equal(bits(one[3]), bits(product("f32", a, b)[3]))

    @pytest.mark.parametrize("num_threads", [1, 3])
    @pytest.mark.parametrize("k", [70, 700])
    @pytest.mark.parametrize("rows", [(200, 90), (90, 200), (1100, 600)])  # of large ones all threads compute each
    def test_matrices_of_a_batch_are_split_by_themselves(self, rows: tuple[int, int], k: int, num_threads: int) -> None:
        random = np.random.default_rng(7)
        a = random.standard_normal((3, rows[0], k)).astype(np.float32)
        b = random.standard_normal((3, k, rows[1])).astype(np.float32)
        a[1, 5, 5], b[2, 5, 5] = 1e-41, np.nan
        results = [
            multiply(name, a, b, np.full((3, *rows), np.inf, np.float32), num_threads=num_threads)
            for name in ("amx_f32", "f32")
        ]
        np.testing.assert_array_equal(bits(results[0][0]), bits(product("amx_f32", a[0], b[0])))
        for of_unit, plain in zip(*(result[1:] for result in results), strict=True):
            np.testing.assert_array_equal(bits(of_unit[:64, :64]), bits(plain[:64, :64]))  # of the first part

    def test_a_side_may_be_split_panel_by_panel(self) -> None:
        """What is split of 10 strips at 16000 steps takes 32 MB."""
        random = np.random.default_rng(8)
        a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((400, 16000), (16000, 1030)))
        np.testing.assert_array_equal(product("amx_f32", a, b, 2), a @ b)
        a[-1, -1] = np.inf  # of the second panel
        mixed = product("amx_f32", a, b)
        np.testing.assert_array_equal(mixed[:-1], (a[:-1] @ b))
        assert np.all(np.isinf(mixed[-1]) == (b[-1] != 0))

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("special", [None, 1e-40])
    @pytest.mark.parametrize(
        "sizes", [(1, 300, 520, 700), (1, 520, 300, 700), (1, 200, 260, 2000), (3, 70, 130, 90), (2, 1100, 600, 100)]
    )
    def test_the_epilogue_sees_every_finished_block_once(
        self, sizes: tuple[int, int, int, int], special: float | None, order: str
    ) -> None:
        batch, *of_matrix = sizes
        assert_shown_once(batch, "amx_f32", *of_matrix, order, special)

    @pytest.mark.parametrize(("precision", "kind"), [("default", "amx_f32"), ("highest", "f32")])
    def test_who_asks_for_precision_gets_multiply_adds(self, precision: str, kind: str) -> None:
        text = f"""HloModule product
ENTRY main {{ a = f32[300,400] parameter(0)
  b = f32[400,310] parameter(1)
  c = f32[300,310] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}},
    operand_precision={{{precision},{precision}}}
  ROOT t = f32[300,310] tanh(c) }}
"""
        random = np.random.default_rng(4)
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((300, 400), (400, 310)))
        executable = xlapy.compile(text)
        assert f"gemm_{kind}_run" in executable.llvm_ir()
        exact, magnitude = np.tanh(a.astype(np.float64) @ b), np.abs(a).astype(np.float64) @ np.abs(b)
        assert np.all(np.abs(executable(a, b) - exact) <= 2.0**-23 * (1 + np.sqrt(400) * magnitude))
