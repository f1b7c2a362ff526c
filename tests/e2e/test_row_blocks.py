"""Products with a chain over rows between them run block by block, and give what the kernels give one by one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import on_threads
from tests.support.values import assert_same
from xlapy.hlo.text import parse

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "c64": np.complex64,
    "s32": np.int32,
}
SIZES = [
    ((), 700, 900),
    ((3,), 601, 256),
    ((3,), 606, 300),  # three rows at a time
    ((4,), 601, 256),  # rows of a prime number, one at a time
    ((4,), 602, 256),  # two at a time, though all rows together are a multiple of four
    ((2, 3), 352, 256),
    ((1, 5), 129, 1100),
    ((), 500, 2100),
]
"""Batch, rows, and elements of a row."""

PROGRAM = """
sum {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT s = {t}[] add(a, b) }}
ENTRY main {{
  q = {t}[{b}{m},{d}] parameter(0)
  k = {t}[{b}{n},{d}] parameter(1)
  v = {t}[{b}{n},{d}] parameter(2)
  w = {t}[{n}] parameter(3)
  s = {t}[{b}{m},{n}] dot(q, k), lhs_batch_dims={{{batch}}}, lhs_contracting_dims={{{last}}},
    rhs_batch_dims={{{batch}}}, rhs_contracting_dims={{{last}}}
  x = {t}[{b}{m},{n}] broadcast(w), dimensions={{{last}}}
  i = s32[{b}{m},{n}] iota(), iota_dimension={row}
  seven = s32[] constant(7)
  sevens = s32[{b}{m},{n}] broadcast(seven), dimensions={{}}
  j = s32[{b}{m},{n}] and(i, sevens)
  e = {t}[{b}{m},{n}] convert(j)
  y = {t}[{b}{m},{n}] multiply(s, x)
  zero = {t}[] constant({zero})
  r = {t}[{b}{m}] reduce(y, zero), dimensions={{{last}}}, to_apply=sum
  h = {t}[{b}{m},{n}] broadcast(r), dimensions={{{kept}}}
  g = {t}[{b}{m},{n}] subtract(y, h)
  f = {t}[{b}{m},{n}] add(g, e)
  ROOT p = {t}[{b}{m},{d}] dot(f, v), lhs_batch_dims={{{batch}}}, lhs_contracting_dims={{{last}}},
    rhs_batch_dims={{{batch}}}, rhs_contracting_dims={{{row}}}
}}
"""


def program(type_name: str, batch: tuple[int, ...], rows: int, length: int, depth: int = 8) -> str:
    rank = len(batch)
    return PROGRAM.format(
        t=type_name,
        zero="(0, 0)" if type_name.startswith("c") else "0",
        b="".join(f"{size}," for size in batch),
        m=rows,
        n=length,
        d=depth,
        batch=",".join(map(str, range(rank))),
        row=rank,
        last=rank + 1,
        kept=",".join(map(str, range(rank + 1))),
    )


def inputs(text: str) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [
        generator.integers(-1, 2, parameter.shape.dims).astype(DTYPES[parameter.shape.type.name])
        for parameter in parse(text).entry.parameters
    ]


def compiled(text: str, *, disabled: bool = False) -> xlapy.Executable:
    options = xlapy.CompileOptions(num_threads=2, verify=True, disabled_passes={"row-blocks"} if disabled else ())
    return xlapy.compile(text, options)


@pytest.mark.parametrize(("batch", "rows", "length"), SIZES)
def test_every_size(batch: tuple[int, ...], rows: int, length: int) -> None:
    """Whole numbers, so that no order of sums matters."""
    text = program("f32", batch, rows, length)
    arguments = inputs(text)
    in_blocks = compiled(text)
    assert "calls=blocks." in in_blocks.hlo_text()
    assert_same(in_blocks(*arguments), xlapy.evaluate(text, *arguments))


@pytest.mark.parametrize("type_name", DTYPES)
def test_every_type_and_number_of_threads(type_name: str) -> None:
    text = program(type_name, (2,), 900, 512)
    arguments = inputs(text)
    expected = compiled(text, disabled=True)(*arguments)
    in_blocks = compiled(text)
    assert "calls=blocks." in in_blocks.hlo_text()
    assert in_blocks.memory_analysis()["temporary_bytes"] == 0
    for num_threads in (1, 2, 3, 8):
        assert_same(on_threads(in_blocks, num_threads)(*arguments), expected, f"{num_threads} threads")


LOOP = """
c {{ s = (s32[], {x}) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }}
b {{ s = (s32[], {x}) parameter(0)  i = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)
  j = s32[] add(i, one)  q = {x} get-tuple-element(s), index=1
  p = {x} call(q, q, q), to_apply=f
  ROOT t = (s32[], {x}) tuple(j, p) }}
ENTRY main {{ q = {x} parameter(0)  z = s32[] constant(0)  t = (s32[], {x}) tuple(z, q)
  l = (s32[], {x}) while(t), condition=c, body=b  ROOT r = {x} get-tuple-element(l), index=1 }}
"""


def test_in_a_loop() -> None:
    """Each round reads what it would overwrite."""
    attention = program("f32", (2,), 512, 512).replace("ENTRY main", "f")
    attention = attention.replace(
        "w = f32[512] parameter(3)", "u = f32[] constant(0.0001)  w = f32[512] broadcast(u), dimensions={}"
    )
    text = attention + LOOP.format(x="f32[2,512,8]")
    x = np.random.default_rng(0).standard_normal((2, 512, 8), np.float32)
    in_blocks = compiled(text)
    assert "calls=blocks." in in_blocks.hlo_text()
    expected = compiled(text, disabled=True)(x)
    np.testing.assert_allclose(in_blocks(x), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
