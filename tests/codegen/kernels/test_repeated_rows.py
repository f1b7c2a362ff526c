"""Element-wise programs over short rows that all meet the same row of other numbers."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.native import check_text
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.kernels.repeated_rows import RepeatedRowsPlan, plan_repeated_rows
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse

ROWS = [2, 3, 4, 5, 6, 7, 10, 12, 20]


def less_a_row(element_type: str, dims: tuple[int, ...]) -> str:
    """An array less a row, times another one."""
    whole = f"{element_type}[{','.join(map(str, dims))}]"
    row, last = f"{element_type}[{dims[-1]}]", len(dims) - 1
    return f"""HloModule m
      ENTRY main {{
        x = {whole} parameter(0)
        v = {row} parameter(1)
        w = {row} parameter(2)
        b = {whole} broadcast(v), dimensions={{{last}}}
        c = {whole} broadcast(w), dimensions={{{last}}}
        s = {whole} subtract(x, b)
        ROOT r = {whole} multiply(s, c)
      }}"""


def plan_of(text: str, *, in_place: bool = False) -> RepeatedRowsPlan | None:
    root = parse(text).entry.root
    roots = root.operands if root.opcode == "tuple" else (root,)
    return plan_repeated_rows(roots, lambda i: i.opcode == "parameter", 0, host_target(), in_place=in_place)


@pytest.mark.parametrize("count", ROWS)
@pytest.mark.parametrize("element_type", ["u8", "s16", "bf16", "f16", "s32", "f32", "f64", "s64"])
def test_element_types(element_type: str, count: int) -> None:
    check_text(less_a_row(element_type, (1501, count)))


@pytest.mark.parametrize("count", ROWS)
def test_rows_that_fill_no_vectors_are_planned(count: int) -> None:
    plan = plan_of(less_a_row("f32", (1501, count)))
    assert (plan is None) == (count % host_target().lanes(32) == 0)
    if plan is not None:
        assert not plan.period % count
        assert not plan.period % plan.lanes
        assert plan.units == -(-1501 * count // plan.period)


@pytest.mark.parametrize("dims", [(7, 151, 3), (3, 5, 64, 3), (40, 33, 1, 3), (1, 900, 3), (5, 1, 1000, 1, 3)], ids=str)
def test_dimensions(dims: tuple[int, ...]) -> None:
    assert plan_of(less_a_row("f32", dims)) is not None
    check_text(less_a_row("f32", dims))


def test_rows_of_several_dimensions_and_several_lengths() -> None:
    text = """HloModule m
      ENTRY main {
        x = f32[700,2,3] parameter(0)
        m = f32[2,3] parameter(1)
        v = f32[3] parameter(2)
        i = f32[700,2,3] iota(), iota_dimension=1
        b = f32[700,2,3] broadcast(m), dimensions={1,2}
        c = f32[700,2,3] broadcast(v), dimensions={2}
        p = f32[700,2,3] add(x, b)
        q = f32[700,2,3] multiply(p, c)
        ROOT r = f32[700,2,3] subtract(q, i)
      }"""
    assert plan_of(text) is not None
    check_text(text)


@pytest.mark.parametrize("count", ROWS)
@pytest.mark.parametrize("element_type", ["u8", "bf16", "s32", "f32", "f64"])
def test_rows_that_meet_one_number_each(element_type: str, count: int) -> None:
    """That is computed once for each row, be it a mask."""
    text = """HloModule m
      ENTRY main {
        x = T[1501,1,N] parameter(0)
        v = T[1501] parameter(1)
        w = T[1501] parameter(2)
        r = T[N] parameter(3)
        s = T[1501] add(v, w)
        p = pred[1501] compare(v, w), direction=GT
        b = T[1501,1,N] broadcast(s), dimensions={0}
        m = pred[1501,1,N] broadcast(p), dimensions={0}
        c = T[1501,1,N] broadcast(r), dimensions={2}
        t = T[1501,1,N] multiply(x, b)
        ROOT z = T[1501,1,N] select(m, t, c)
      }""".replace("T[", element_type + "[").replace("N]", f"{count}]")
    if element_type == "f32":
        assert (plan_of(text) is None) == (count % host_target().lanes(32) == 0)
    check_text(text)


@pytest.mark.parametrize("element_type", ["u8", "s8", "u16"])
@pytest.mark.parametrize("operation", ["shift-left", "shift-right-logical", "shift-right-arithmetic"])
def test_bits_of_a_number_are_a_row(element_type: str, operation: str) -> None:
    """Of narrow elements more fit into a vector, of which some rows are computed together."""
    text = f"""HloModule m
      ENTRY main {{
        x = {element_type}[1501] parameter(0)
        b = {element_type}[1501,8] broadcast(x), dimensions={{0}}
        i = {element_type}[1501,8] iota(), iota_dimension=1
        s = {element_type}[1501,8] {operation}(b, i)
        one = {element_type}[] constant(1)
        ones = {element_type}[1501,8] broadcast(one), dimensions={{}}
        ROOT a = {element_type}[1501,8] and(s, ones)
      }}"""
    plan, target = plan_of(text), host_target()
    check_text(text)
    lanes = target.lanes(8 if element_type.endswith("8") else 16)
    if 8 % lanes:
        assert plan is not None
        assert plan.lanes == lanes


def test_rows_of_rows() -> None:
    """What is the same for all of a longer row, and repeated in shorter ones."""
    text = """HloModule m
      ENTRY main {
        x = f32[900,2,3] parameter(0)
        v = f32[900] parameter(1)
        w = f32[900,2] parameter(2)
        c = f32[3] parameter(3)
        b = f32[900,2,3] broadcast(v), dimensions={0}
        d = f32[900,2,3] broadcast(w), dimensions={0,1}
        e = f32[900,2,3] broadcast(c), dimensions={2}
        p = f32[900,2,3] add(x, b)
        q = f32[900,2,3] multiply(p, d)
        ROOT r = f32[900,2,3] subtract(q, e)
      }"""
    assert plan_of(text) is not None
    check_text(text)


def test_what_rows_are_made_from_and_several_results() -> None:
    """A row that is computed, masks, other shapes of the whole, a scalar, and two results of different types."""
    text = """HloModule m
      ENTRY main {
        x = u8[50,30,3] parameter(0)
        v = f32[3] parameter(1)
        s = f32[] parameter(2)
        n = f32[3] negate(v)
        f = f32[50,30,3] convert(x)
        g = f32[1500,3] reshape(f)
        b = f32[1500,3] broadcast(n), dimensions={1}
        c = f32[1500,3] broadcast(s), dimensions={}
        k = pred[3] compare(v, n), direction=GT
        m = pred[1500,3] broadcast(k), dimensions={1}
        p = f32[1500,3] add(g, b)
        q = f32[1500,3] select(m, p, c)
        h = s32[1500,3] convert(p)
        ROOT t = (f32[1500,3], s32[1500,3]) tuple(q, h)
      }"""
    assert plan_of(text) is not None
    check_text(text)


OTHERS = {
    "few": less_a_row("f32", (100, 3)),
    "long rows": less_a_row("f32", (100, 77)),
    "rows that share few elements with vectors": less_a_row("f32", (1000, 13)),
    "columns": """ENTRY e { x = f32[1000,3] parameter(0) v = f32[1000,2] parameter(1)
        s = f32[1000,1] slice(v), slice={[0:1000], [1:2]} r = f32[1000] reshape(s)
        b = f32[1000,3] broadcast(r), dimensions={0} ROOT p = f32[1000,3] multiply(x, b) }""",
    "complex numbers": less_a_row("c64", (1000, 3)),
    "reversed rows": less_a_row("f32", (1000, 3)).replace(
        "s = f32[1000,3] subtract(x, b)", "y = f32[1000,3] reverse(x), dimensions={1} s = f32[1000,3] subtract(y, b)"
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_as_they_were(name: str) -> None:
    assert plan_of(OTHERS[name]) is None
    check_text(OTHERS[name])


@pytest.mark.parametrize("rows", [STREAMED_BYTES // 12 // 64 * 64 + 64, STREAMED_BYTES // 12 // 64 * 64 + 67])
def test_results_past_the_caches(rows: int) -> None:
    check_text(less_a_row("f32", (rows, 3)))


def test_results_do_not_depend_on_threads() -> None:
    text = less_a_row("f32", (100_003, 3))
    generator = np.random.default_rng(3)
    arguments = [generator.normal(size=p.shape.dims).astype(np.float32) for p in parse(text).entry.parameters]
    one, two = (xlapy.compile(text, xlapy.CompileOptions(num_threads=n))(*arguments) for n in (1, 2))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("rows", [1600, 1601])
def test_in_place_of_an_operand(rows: int) -> None:
    """No unit overlaps another one where results replace operands."""
    planned = plan_of(less_a_row("f32", (rows, 3)), in_place=True)
    assert (planned is None) == (rows % 8 != 0)
    check_text(
        """HloModule m
      below { s = (s32[], f32[COUNT,3], f32[3]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(3)
        ROOT c = pred[] compare(i, n), direction=LT }
      scaled { s = (s32[], f32[COUNT,3], f32[3]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        one = s32[] constant(1)
        j = s32[] add(i, one)
        x = f32[COUNT,3] get-tuple-element(s), index=1
        v = f32[3] get-tuple-element(s), index=2
        w = f32[COUNT,3] broadcast(v), dimensions={1}
        p = f32[COUNT,3] add(x, w)
        ROOT t = (s32[], f32[COUNT,3], f32[3]) tuple(j, p, v) }
      ENTRY main {
        x = f32[COUNT,3] parameter(0)
        v = f32[3] parameter(1)
        zero = s32[] constant(0)
        s = (s32[], f32[COUNT,3], f32[3]) tuple(zero, x, v)
        l = (s32[], f32[COUNT,3], f32[3]) while(s), condition=below, body=scaled
        ROOT r = f32[COUNT,3] get-tuple-element(l), index=1
      }""".replace("COUNT", str(rows))
    )
