"""Columns of rows that are too long to be picked from whole vectors: blocks of rows are turned over for all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xlapy
from tests.support.native import check_text
from xlapy.codegen.arrays import MOST_STRIDE, MOST_TURNED
from xlapy.codegen.ir_types import F32, I8, I64
from xlapy.codegen.kernels.loop import plan_loop
from xlapy.codegen.register_transpose import cut
from xlapy.codegen.target import host_target, reference_target
from xlapy.hlo.text import parse

LANES = host_target().lanes(32)


def columns(element_type: str, rows: tuple[int, ...], row: tuple[int, ...], step: int = 1) -> str:
    """The sum of every `step`-th column, each of them multiplied by the first one."""
    whole, dims = ",".join(map(str, (*rows, *row))), ",".join(map(str, rows))
    count, lines = math.prod(row), []
    for number in range(0, count, step):
        place, rest = [], number
        for size in reversed(row):
            place.insert(0, rest % size)
            rest //= size
        parts = ", ".join([f"[0:{size}]" for size in rows] + [f"[{at}:{at + 1}]" for at in place])
        one = f"{element_type}[{dims}{',1' * len(row)}]"
        lines.append(f"s{number} = {one} slice(x), slice={{{parts}}}")
        lines.append(f"c{number} = {element_type}[{dims}] reshape(s{number})")
        lines.append(f"p{number} = {element_type}[{dims}] multiply(c0, c{number})")
        if number:
            before = f"{'t' if number > step else 'p'}{number - step}"
            lines.append(f"t{number} = {element_type}[{dims}] add({before}, p{number})")
    last = (count - 1) // step * step
    lines.append(f"ROOT r = {element_type}[{dims}] negate(t{last})")
    return f"ENTRY e {{ x = {element_type}[{whole}] parameter(0)\n" + "\n".join(lines) + "\n}"


@pytest.mark.parametrize("count", [4, 5, 7, 9, 12, 16, 25, 32, 33])
def test_columns(count: int) -> None:
    text = columns("f32", (301,), (count,))
    check_text(text)
    if MOST_STRIDE < count <= MOST_TURNED:
        code = xlapy.compile(text).llvm_ir()
        assert "gather" not in code
        steps = (LANES, 2 * LANES)  # lanes of one, for short rows and long ones
        assert code.count("load <") <= max(lanes * len(cut(count, F32.with_lanes(lanes))) for lanes in steps)


@pytest.mark.parametrize(("count", "vectors"), [(MOST_STRIDE, 2), (9, 1), (MOST_TURNED, 1), (MOST_TURNED + 1, 2)])
def test_one_vector_of_each_column_is_turned_over(count: int, vectors: int) -> None:
    """Where registers are so long that it is much code."""
    for name, expected in (("avx512", vectors), ("avx2", 2)):
        root, target = parse(columns("f32", (3000,), (count,))).entry.root, reference_target(name)
        plan = plan_loop([root], lambda i: i.opcode == "parameter", 4 * 3000 * count, target)
        assert plan.lanes == expected * target.lanes(32)


@pytest.mark.parametrize("element_type", ["s8", "s16", "bf16", "f64", "s64", "c64"])
def test_element_types(element_type: str) -> None:
    check_text(columns(element_type, (150,), (9,)))
    check_text(columns(element_type, (150,), (20,), 3))


@pytest.mark.parametrize(("rows", "row"), [((150,), (3, 3)), ((7, 40), (2, 1, 3)), ((3, 50), (5, 1)), ((40, 1), (7,))])
def test_rows_of_several_dimensions(rows: tuple[int, ...], row: tuple[int, ...]) -> None:
    check_text(columns("f32", rows, row))


def test_what_is_cut() -> None:
    assert cut(9, F32.with_lanes(8)) == [range(8), range(8, 9)]
    assert cut(7, F32.with_lanes(8)) == [range(4), range(3, 7)]
    assert cut(12, F32.with_lanes(8)) == [range(8), range(8, 12)]
    assert cut(13, F32.with_lanes(8)) == [range(8), range(5, 13)]
    assert cut(5, I64.with_lanes(4)) == [range(4), range(4, 5)]
    assert cut(9, I8.with_lanes(32)) == []
    assert cut(3, F32.with_lanes(8)) == []


def test_what_the_longest_vectors_are_cut_into() -> None:
    assert cut(9, F32.with_lanes(16)) == [range(4), range(4, 8), range(5, 9)]
    assert cut(8, F32.with_lanes(16)) == [range(4), range(4, 8)]
    assert cut(5, I64.with_lanes(8)) == [range(2), range(2, 4), range(3, 5)]
    assert cut(3, F32.with_lanes(16)) == []


def test_blocks_are_turned_over_once_where_results_overwrite_operands() -> None:
    text = """ENTRY e { x = f32[301,3,3] parameter(0) v = f32[301,3] parameter(1)
        t = f32[301,3,3] transpose(x), dimensions={0,2,1} c = f32[301,3,3] cholesky(t), lower=true
        b = f32[301,3,3] broadcast(v), dimensions={0,2} ROOT m = f32[301,3,3] multiply(c, b) }"""
    compiled = xlapy.compile(text)
    functions = compiled.llvm_ir().split("define ")
    [code] = [function for function in functions if "fusion" in function.partition("(")[0]]
    parts = cut(9, F32.with_lanes(LANES))
    rows = f"load <{len(parts[0])} x float>"
    assert LANES <= code.count(rows) < (1 + len(parts)) * LANES
    generator = np.random.default_rng(3)
    x = generator.standard_normal((301, 3, 3)).astype(np.float32) + 4 * np.eye(3, dtype=np.float32)
    x, v = x @ x.transpose(0, 2, 1), generator.standard_normal((301, 3)).astype(np.float32)
    np.testing.assert_allclose(compiled(x, v), xlapy.evaluate(text, x, v), rtol=1e-4, atol=1e-5)
