"""Kernels that LLVM does not try hard for: which they are, and that their results are the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from tests.support.native import flatten

SUMS = """
  sum { a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT s = f32[] add(a, b) }
  largest { a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT m = f32[] maximum(a, b) }
"""


def program(body: str) -> str:
    return f"HloModule m {SUMS} {DOUBLES} ENTRY e {{ {body} }}"


def is_light(text: str) -> bool:
    """Whether the first kernel of the program is one."""
    code = "".join(xlapy.compile(text)._compiled.program.llvm_modules)
    header = next(line for line in code.splitlines() if re.match(r"define void @kernel\.0\.\w+\(", line))
    return "optnone" in header


DOUBLES = "doubles { a = f64[] parameter(0) b = f64[] parameter(1) ROOT s = f64[] add(a, b) }"
PLAIN = {
    "a sum": "x = f32[300000] parameter(0)  y = f32[300000] parameter(1)  ROOT s = f32[300000] add(x, y)",
    "a polynomial": """x = f32[600,500] parameter(0)
        c = f32[] constant(2.5)
        b = f32[600,500] broadcast(c), dimensions={}
        m = f32[600,500] multiply(x, b)  ROOT s = f32[600,500] add(m, x)""",
    "sums of long rows": """x = f64[1000,600] parameter(0)  z = f64[] constant(0)
        ROOT r = f64[1000] reduce(x, z), dimensions={1}, to_apply=doubles""",
    "rows joined": """x = f32[50,3000] parameter(0)  y = f32[40,3000] parameter(1)
        ROOT c = f32[90,3000] concatenate(x, y), dimensions={0}""",
}
BROKEN_UP = """x = f32[300000] parameter(0)  y = f32[300000] parameter(1)
    s = f32[300000] sine(x)  c = f32[300000] cosine(y)  {more}
    p = pred[300000] compare(x, y), direction=LT  m = f32[300000] multiply(s, c)
    ROOT r = f32[300000] select(p, m, {last})"""
WITH_MORE_TO_FIND = {
    "a selection": """x = f32[300000] parameter(0)  y = f32[300000] parameter(1)
        p = pred[300000] compare(x, y), direction=LT  ROOT s = f32[300000] select(p, x, y)""",
    "a function": "x = f32[300000] parameter(0)  ROOT s = f32[300000] tanh(x)",
    "narrow floats": "x = bf16[300000] parameter(0)  ROOT s = bf16[300000] add(x, x)",
    "short rows": """x = f32[9000,40] parameter(0)  y = f32[40] parameter(1)
        b = f32[9000,40] broadcast(y), dimensions={1}  ROOT s = f32[9000,40] add(x, b)""",
    "sums of short rows": """x = f32[50000,20] parameter(0)  z = f32[] constant(0)
        ROOT r = f32[50000] reduce(x, z), dimensions={1}, to_apply=sum""",
    "the largest": """x = f32[100,5000] parameter(0)  z = f32[] constant(-inf)
        ROOT r = f32[100] reduce(x, z), dimensions={1}, to_apply=largest""",
}
SMALL = """x = f32[20,30] parameter(0)  z = f32[] constant(-inf)
    r = f32[20] reduce(x, z), dimensions={1}, to_apply=largest"""


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_plain_is_light(name: str) -> None:
    text = program(PLAIN[name])
    assert is_light(text)
    check_same(text)


@pytest.mark.parametrize("name", WITH_MORE_TO_FIND)
def test_what_is_not_plain_is_not_light(name: str) -> None:
    assert not is_light(program(WITH_MORE_TO_FIND[name]))


def test_what_branches_anyway_is_light() -> None:
    waves = program(BROKEN_UP.format(more="q = f32[300000] sqrt(x)", last="q"))
    assert is_light(waves)
    check_same(waves)
    more = "t = f32[300000] tanh(x)  e = f32[300000] exponential(y)  a = f32[300000] add(t, e)"
    assert not is_light(program(BROKEN_UP.format(more=more, last="a")))


def test_what_is_small_is_light() -> None:
    text = program(SMALL.replace("r =", "ROOT r ="))
    assert is_light(text)
    check_same(text)
    assert not is_light(program(SMALL.replace("r =", "ROOT r =").replace("20", "9000")))


def test_what_widens_is_not_light() -> None:
    assert not is_light(program("x = bf16[200,200] parameter(0)  ROOT y = f32[200,200] convert(x)"))


def check_same(text: str) -> None:
    executable = xlapy.compile(text)
    random = np.random.default_rng(5)
    entry = text[text.index("ENTRY") :]
    arguments = [
        random.standard_normal([int(size) for size in dims.split(",")]).astype(
            {"f32": np.float32, "f64": np.float64}[kind]
        )
        for kind, dims in re.findall(r"(f32|f64)\[([\d,]+)\] parameter", entry)
    ]
    found, wanted = flatten(executable(*arguments)), flatten(xlapy.evaluate(text, *arguments))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-3)
