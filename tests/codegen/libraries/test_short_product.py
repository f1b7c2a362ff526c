"""Products of many short rows by one small matrix."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.short_products import LEAST_ROWS, MOST_BYTES

SIDES = [(depth, columns) for depth in (2, 3, 4) for columns in (2, 3, 4)]


def _text(kind: str, rows: str, matrix: tuple[int, int], contracted: int) -> str:
    last = rows.count(",")
    result = f"{rows.rpartition(',')[0]},{matrix[1 - contracted]}"
    return f"""ENTRY e {{ x = {kind}[{rows}] parameter(0) m = {kind}[{matrix[0]},{matrix[1]}] parameter(1)
        ROOT r = {kind}[{result}] dot(x, m), lhs_contracting_dims={{{last}}},
            rhs_contracting_dims={{{contracted}}} }}"""


@pytest.mark.parametrize("contracted", [0, 1])
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(("depth", "columns"), SIDES)
def test_rows(depth: int, columns: int, kind: str, contracted: int) -> None:
    matrix = (columns, depth) if contracted else (depth, columns)
    random = np.random.default_rng(depth)
    for rows in (str(LEAST_ROWS), "3,37"):
        text = _text(kind, f"{rows},{depth}", matrix, contracted)
        compiled = xlapy.compile(text)
        assert f"short_product_{kind}_{depth}_{columns}" in compiled.llvm_ir()
        x = random.integers(-9, 9, (*map(int, rows.split(",")), depth)).astype(kind.replace("f", "float"))
        m = random.integers(-9, 9, matrix).astype(x.dtype)
        np.testing.assert_array_equal(compiled(x, m), x @ (m.T if contracted else m))


def test_threads_give_the_same() -> None:
    x = np.random.default_rng(0).standard_normal((200_003, 3)).astype(np.float32)
    m = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
    text = _text("f32", "200003,3", (3, 3), 1)
    results = [xlapy.compile(text, xlapy.CompileOptions(num_threads=n))(x, m) for n in (1, 2, 3, 8)]
    np.testing.assert_allclose(results[0], x @ m.T, rtol=1e-5, atol=1e-5)
    assert all(np.array_equal(result, results[0]) for result in results)


FEW, LARGE = str(LEAST_ROWS - 1), str(MOST_BYTES // 12 + 1)


@pytest.mark.parametrize(("rows", "matrix"), [(FEW, (3, 3)), (LARGE, (3, 3)), ("64", (5, 3)), ("64", (3, 5))])
def test_others(rows: str, matrix: tuple[int, int]) -> None:
    assert "short_product" not in xlapy.compile(_text("f32", f"{rows},{matrix[0]}", matrix, 0)).llvm_ir()


def test_what_is_around_is_fused() -> None:
    text = _text("f32", "100,3", (3, 3), 0).replace("ROOT r", "d")
    text = text.replace(" }", " ROOT n = f32[100,3] exponential(d) }")
    assert "short_product" not in xlapy.compile(text).llvm_ir()
