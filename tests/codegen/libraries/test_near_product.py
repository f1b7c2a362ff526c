"""Products of a matrix by a vector, and of small matrices, whose code is told their sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from xlapy.codegen.jit import emit_object
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.libraries.near_product import near_product_library
from xlapy.codegen.target import host_target, reference_target


def called(left: tuple[int, ...], right: tuple[int, ...], dims: tuple[int, int], kind: str = "f32") -> set[str]:
    """The libraries that a product calls, which is compared with the evaluator."""
    free = [*(size for n, size in enumerate(left) if n != dims[0]), *(s for n, s in enumerate(right) if n != dims[1])]
    shapes = [f"{kind}[{','.join(map(str, shape))}]" for shape in (left, right, free)]
    text = f"""ENTRY e {{ x = {shapes[0]} parameter(0) y = {shapes[1]} parameter(1)
        ROOT d = {shapes[2]} dot(x, y), lhs_contracting_dims={{{dims[0]}}}, rhs_contracting_dims={{{dims[1]}}} }}"""
    generator = np.random.default_rng(5)
    arguments = [generator.standard_normal(shape).astype(kind.replace("f", "float")) for shape in (left, right)]
    compiled = xlapy.compile(text)
    tolerance = 256 * np.finfo(arguments[0].dtype).eps
    np.testing.assert_allclose(compiled(*arguments), xlapy.evaluate(text, *arguments), rtol=tolerance, atol=tolerance)
    return set(re.findall(r"@(near_product_\w+)\(", compiled.llvm_ir()))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_rows_by_a_vector(kind: str) -> None:
    lanes = host_target().lanes(int(kind[1:]))
    found = set()
    for rows, depth in ((20, 7 * lanes), (50, 5 * lanes), (33, 5 * lanes + 1), (9, 6 * lanes - 1)):
        found |= called((rows, depth), (depth,), (1, 0), kind)
        found |= called((depth,), (rows, depth), (0, 1), kind)
    assert len(found) <= 4
    assert all(name.startswith(f"near_product_{kind}_deep_{lanes}_0_8") for name in found)


@pytest.mark.parametrize("vectors", range(1, 5))
def test_short_sums_are_written_out(vectors: int) -> None:
    lanes = host_target().lanes(32)
    name = f"near_product_f32_deep_{lanes}_{vectors}_8"
    assert called((11, vectors * lanes), (vectors * lanes,), (1, 0)) == {name}
    assert called((11, vectors * lanes + 1), (vectors * lanes + 1,), (1, 0)) == {f"{name}_rest"}


@pytest.mark.parametrize("rows", range(1, 8))
def test_few_rows_by_a_vector(rows: int) -> None:
    lanes = host_target().lanes(32)
    for depth in (lanes, 5 * lanes + 3, 9 * lanes):
        assert called((rows, depth), (depth,), (1, 0)) <= {
            f"near_product_f32_deep_{lanes}_{vectors}_{rows}{rest}" for vectors in (0, 1) for rest in ("", "_rest")
        }


def test_short_rows_have_short_vectors() -> None:
    for depth, rest in ((4, ""), (5, "_rest"), (7, "_rest")):
        assert called((30, depth), (depth,), (1, 0)) == {f"near_product_f32_deep_4_1_8{rest}"}


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_vector_by_columns(kind: str) -> None:
    lanes = host_target().lanes(int(kind[1:]))
    for depth, columns in ((5, 40), (3, 2 * lanes), (20, 50), (50, 37), (7, 4 * lanes)):
        for found in (
            called((depth,), (depth, columns), (0, 0), kind),
            called((depth, columns), (depth,), (0, 0), kind),
        ):
            assert len(found) <= 1
            assert all(name.startswith(f"near_product_{kind}_wide_{lanes}_") for name in found)
    assert called((20,), (20, 50), (0, 0), kind)


def test_small_matrices() -> None:
    for rows, depth, columns in ((8, 8, 8), (3, 9, 7), (5, 4, 33), (2, 2, 2), (4, 9, 16), (13, 5, 3)):
        assert called((rows, depth), (depth, columns), (1, 0)), (rows, depth, columns)
        assert called((depth, rows), (depth, columns), (0, 0)), (rows, depth, columns)


def test_what_lies_otherwise_has_kernels() -> None:
    assert not called((5, 8), (7, 8), (1, 1))
    assert not called((5, 8), (8, 7), (1, 0), "f16")


def test_loops_have_kernels() -> None:
    text = """
    c { s = (s32[], f32[20], f32[20,20]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9)
      ROOT l = pred[] compare(i, n), direction=LT }
    b { s = (s32[], f32[20], f32[20,20]) parameter(0) i = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
      j = s32[] add(i, one) x = f32[20] get-tuple-element(s), index=1 a = f32[20,20] get-tuple-element(s), index=2
      y = f32[20] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (s32[], f32[20], f32[20,20]) tuple(j, y, a) }
    ENTRY e { x = f32[20] parameter(0) a = f32[20,20] parameter(1) z = s32[] constant(0)
      t = (s32[], f32[20], f32[20,20]) tuple(z, x, a)
      w = (s32[], f32[20], f32[20,20]) while(t), condition=c, body=b
      ROOT r = f32[20] get-tuple-element(w), index=1 }"""
    assert "near_product" not in xlapy.compile(text).llvm_ir()


@pytest.mark.parametrize("name", ["near_product_f32_deep_4_0_8_rest", "near_product_f64_wide_2_2_4"])
@pytest.mark.parametrize("features", ["sse2", "avx2", "neon"])
def test_other_targets(name: str, features: str) -> None:
    target = reference_target(features)
    assert emit_object(LIBRARIES[name].emit(target).text(), target)


def test_names() -> None:
    assert LIBRARIES["near_product_f32_wide_8_1_4"].exports == ("near_product_f32_wide_8_1_4",)
    assert near_product_library("near_product_s8_wide_8_1_4") is None
    assert near_product_library("near_product_f32_long_8_1_4") is None
