"""Arrays that become columns of one: all are computed at once, and come side by side in registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.kernels.short_rows import plan_short_rows
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse
from xlapy.passes.fusion.fusion import LoopFusion


def stacked(element_type: str, dims: tuple[int, ...], count: int) -> str:
    """Several results of the same arrays, stacked along a new last dimension."""
    sizes = ",".join(map(str, dims))
    whole, column = f"{element_type}[{sizes}]", f"{element_type}[{sizes},1]"
    lines = [f"a = {whole} parameter(0)", f"b = {whole} parameter(1)"]
    for number, opcode in enumerate(("subtract", "add", "maximum", "multiply")[:count]):
        lines.append(f"v{number} = {whole} {opcode}(a, b)")
        lines.append(f"c{number} = {column} reshape(v{number})")
    parts = ", ".join(f"c{number}" for number in range(count))
    root = f"ROOT r = {element_type}[{sizes},{count}] concatenate({parts}), dimensions={{{len(dims)}}}"
    return "HloModule m\nENTRY main {\n" + "\n".join([*lines, root]) + "\n}"


def check(text: str) -> xlapy.Executable:
    generator = np.random.default_rng(3)
    arguments = [
        generator.integers(0, 50, parameter.shape.dims).astype(parameter.shape.type.dtype)
        for parameter in parse(text).entry.parameters
    ]
    compiled = xlapy.compile(text)
    assert_same(compiled(*arguments), xlapy.evaluate(text, *arguments), text)
    return compiled


def joined_first(text: str) -> list[str]:
    """The arrays that no kernel of what reads them makes, as their columns are joined in registers."""
    fusion = LoopFusion()
    fusion.run(parse(text))
    return [record.subject for record in fusion.records if "joined in registers" in record.reason]


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("element_type", ["u8", "s16", "bf16", "f16", "s32", "f32", "f64"])
def test_element_types(element_type: str, count: int) -> None:
    check(stacked(element_type, (1003,), count))


@pytest.mark.parametrize("dims", [(1,), (3,), (5, 7), (40, 33), (9, 64), (3, 4, 130)], ids=str)
def test_dimensions(dims: tuple[int, ...]) -> None:
    check(stacked("f32", dims, 3))


@pytest.mark.parametrize("dims", [(STREAMED_BYTES // 12 + 5,), (STREAMED_BYTES // 12 // 512 + 1, 512)], ids=str)
def test_results_past_the_caches(dims: tuple[int, ...]) -> None:
    check(stacked("f32", dims, 3))


def test_all_columns_are_one_kernel() -> None:
    compiled = check(stacked("f32", (100, 50), 4))
    assert len(re.findall(r"\bfusion\(", compiled.hlo_text())) == 1


def test_columns_of_colours() -> None:
    """Columns that are picked out of such arrays, in rows."""
    check("""HloModule m
      ENTRY main {
        x = f32[40,33,3] parameter(0)
        s0 = f32[40,33,1] slice(x), slice={[0:40], [0:33], [0:1]}
        s2 = f32[40,33,1] slice(x), slice={[0:40], [0:33], [2:3]}
        a = f32[40,33] reshape(s0)
        b = f32[40,33] reshape(s2)
        d = f32[40,33] subtract(a, b)
        e = f32[40,33] add(a, d)
        c0 = f32[40,33,1] reshape(d)
        c1 = f32[40,33,1] reshape(e)
        ROOT r = f32[40,33,2] concatenate(c0, c1), dimensions={2}
      }""")


def test_rows_that_are_turned_become_columns() -> None:
    """As in a product of vectors: what is stacked first and then turned."""
    compiled = check("""HloModule m
      ENTRY main {
        x = f32[5000] parameter(0)
        y = f32[5000] parameter(1)
        s = f32[5000] subtract(x, y)
        a = f32[1,5000] reshape(x)
        b = f32[1,5000] reshape(s)
        c = f32[2,5000] concatenate(a, b), dimensions={0}
        ROOT t = f32[5000,2] transpose(c), dimensions={1,0}
      }""")
    assert "transpose" not in compiled.hlo_text()


def test_columns_that_others_read_are_joined_with_them() -> None:
    """In one kernel, which knows of each vector what column it is of."""
    text = """HloModule m
      ENTRY main {
        x = f32[5000] parameter(0)
        y = f32[5000] parameter(1)
        z = f32[5000,2] parameter(2)
        s = f32[5000] subtract(x, y)
        a = f32[5000,1] reshape(x)
        b = f32[5000,1] reshape(s)
        c = f32[5000,2] concatenate(a, b), dimensions={1}
        ROOT t = f32[5000,2] multiply(c, z)
      }"""
    assert check(text).hlo_text().count("fusion(") == 1
    root = parse(text).entry.root
    assert plan_short_rows([root], lambda i: i.opcode == "parameter", root.shape.bytes, host_target()) is not None


def test_columns_that_are_folded_are_joined_first() -> None:
    text = """HloModule m
      sum {
        p = f32[] parameter(0)
        q = f32[] parameter(1)
        ROOT r = f32[] add(p, q)
      }
      ENTRY main {
        x = f32[500,10] parameter(0)
        y = f32[500,10] parameter(1)
        s = f32[500,10] subtract(x, y)
        a = f32[500,10,1] reshape(x)
        b = f32[500,10,1] reshape(s)
        c = f32[500,10,2] concatenate(a, b), dimensions={2}
        r = f32[500,20] reshape(c)
        m = f32[500,20] multiply(r, r)
        zero = f32[] constant(0)
        ROOT t = f32[500] reduce(m, zero), dimensions={1}, to_apply=sum
      }"""
    check(text)
    assert joined_first(text) == ["c"]


def test_joined_in_place_of_an_operand() -> None:
    """What dies in a loop may be overwritten only by who reads it at its own places."""
    check("""HloModule m
      below { s = (s32[], f32[512,2]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(3)
        ROOT c = pred[] compare(i, n), direction=LT }
      swapped { s = (s32[], f32[512,2]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        one = s32[] constant(1)
        j = s32[] add(i, one)
        v = f32[512,2] get-tuple-element(s), index=1
        s0 = f32[512,1] slice(v), slice={[0:512], [0:1]}
        s1 = f32[512,1] slice(v), slice={[0:512], [1:2]}
        a = f32[512] reshape(s0)
        b = f32[512] reshape(s1)
        d = f32[512] subtract(a, b)
        c0 = f32[512,1] reshape(b)
        c1 = f32[512,1] reshape(d)
        w = f32[512,2] concatenate(c0, c1), dimensions={1}
        ROOT t = (s32[], f32[512,2]) tuple(j, w) }
      ENTRY main {
        v = f32[512,2] parameter(0)
        zero = s32[] constant(0)
        s = (s32[], f32[512,2]) tuple(zero, v)
        l = (s32[], f32[512,2]) while(s), condition=below, body=swapped
        ROOT r = f32[512,2] get-tuple-element(l), index=1
      }""")
