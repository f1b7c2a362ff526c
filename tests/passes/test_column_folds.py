"""Folds of columns beside a chain over rows: the same numbers, from one sweep over memory, whatever the threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xlapy
from tests.support.hlo_cases import Case, check_case, load_cases
from tests.support.machine import LIMITS
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions
from xlapy.passes.analysis.in_place import overwritable_operands
from xlapy.passes.fusion.column_folds import ColumnFolds

TOLERANCE = 1e-4  # of sums of hundreds of floats, which the evaluator adds up one by one
CASES = load_cases(Path(__file__).parent / "cases" / "column-folds.hlo")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])
def test_case(case: Case) -> None:
    check_case(case, ColumnFolds(least_bytes=1), tolerance=TOLERANCE)


def test_the_cases_change_and_stay() -> None:
    assert {case.verdict for case in CASES} == {"becomes", "stays"}


def test_small_arrays_stay() -> None:
    changing = next(case for case in CASES if case.verdict == "becomes")
    module = parse(changing.before)
    assert not ColumnFolds(least_bytes=2 << 20).run(module)


REGIONS = """
sum { a = TYPE[] parameter(0)  b = TYPE[] parameter(1)  ROOT s = TYPE[] add(a, b) }
max { a = TYPE[] parameter(0)  b = TYPE[] parameter(1)  ROOT s = TYPE[] maximum(a, b) }
"""
NORMALIZED = (
    REGIONS
    + """ENTRY main {
  x = TYPE[A,B,C] parameter(0)
  g = TYPE[A,B,C] parameter(1)
  zero = TYPE[] constant(0)
  three = TYPE[] constant(3)
  low = TYPE[] constant(LOW)
  m = TYPE[A,B] reduce(x, low), dimensions={2}, to_apply=max
  n = TYPE[A,B,C] broadcast(m), dimensions={0,1}
  d = TYPE[A,B,C] subtract(x, n)
  e = TYPE[A,B,C] multiply(d, g)
  k = TYPE[C] reduce(e, three), dimensions={0,1}, to_apply=sum
  h = TYPE[C] reduce(g, low), dimensions={1,0}, to_apply=max
  ROOT t = (TYPE[A,B,C], TYPE[A,B], TYPE[C], TYPE[C]) tuple(d, m, k, h)
}"""
)
LARGE = {  # elements
    "rows that vectors fill": (4, 256, 512),
    "rows in blocks": (4, 320, 272),
    "rows with a rest": (2, 576, 519),
    "parts that lie as rows do": (32, 32, 520),
    "long rows": (1, 128, 8192),
    "few long rows": (1, 64, 4096),
    "long rows in parts of seventeen": (1, 544, 2048),
    "few columns of many rows": (4, 1024, 64),
    "rows shorter than vectors": (1, 16384, 24),
}


DTYPES = {"f32": np.float32, "f64": np.float64, "s32": np.int32}


def program(type: str, dims: tuple[int, int, int], *, header: str = "") -> str:
    text = NORMALIZED.replace("TYPE", type).replace("LOW", "-inf" if type in ("f32", "f64") else "-2147483648")
    for letters in ("A,B,C", "A,B", "C"):
        sizes = ",".join(str(dims["ABC".index(letter)]) for letter in letters.split(","))
        text = text.replace(f"[{letters}]", f"[{sizes}]")
    return f"{header}\n{text}"


@pytest.mark.parametrize("dims", [pytest.param(dims, id=name) for name, dims in LARGE.items()])
@pytest.mark.parametrize("type", DTYPES)
def test_results(type: str, dims: tuple[int, int, int]) -> None:
    generator = np.random.default_rng(1)
    x, g = ((generator.standard_normal(dims) * 9).astype(DTYPES[type]) for _ in range(2))
    text = program(type, dims)
    one = xlapy.compile(text, CompileOptions(num_threads=1))
    assert "rows at a time" in one.explain(LIMITS)
    d, m, k, h = one(x, g)
    distances = x - x.max(2)[..., None]
    np.testing.assert_array_equal(m, x.max(2))
    np.testing.assert_array_equal(d, distances)
    np.testing.assert_array_equal(h, g.max((0, 1)))
    products = distances.astype(np.float64) * g
    np.testing.assert_allclose(k, products.sum((0, 1)) + 3, atol=TOLERANCE * abs(products).sum((0, 1)).max())
    for threads in (2, 3, 8):
        results = xlapy.compile(text, CompileOptions(num_threads=threads))(x, g)
        for ours, theirs in zip((d, m, k, h), results, strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_few_parts_are_not_for_large_arrays() -> None:
    """There would be nothing to do for most of many threads."""
    assert "rows at a time" not in xlapy.compile(program("f32", (1, 64, 32768))).explain(LIMITS)


def test_a_result_overwrites_an_operand_while_columns_are_folded() -> None:
    dims = (4, 256, 519)
    x, g = (np.random.default_rng(seed).standard_normal(dims, np.float32) for seed in (1, 2))
    wanted = xlapy.compile(program("f32", dims))(x, g)
    donated = program("f32", dims, header="HloModule donated, input_output_alias={ {0}: (0, {}, must-alias) }")
    for ours, theirs in zip(xlapy.compile(donated)(x.copy(), g), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_running_values_overwrite_no_operand() -> None:
    """They have a place for each row of another operand here, and are written before that is read."""
    module = parse(
        REGIONS.replace("TYPE", "f32")
        + """
normalized {
  x = f32[64,64,64] parameter(0)
  p = f32[64,64] parameter(1)
  zero = f32[] constant(0)
  s = f32[64,64] reduce(x, zero), dimensions={2}, to_apply=sum
  q = f32[64,64] add(s, p)
  b = f32[64,64,64] broadcast(s), dimensions={0,1}
  d = f32[64,64,64] subtract(x, b)
  r = f32[64,64,64] reshape(d)
  c = f32[64,64] reduce(r, zero), dimensions={1}, to_apply=sum
  ROOT t = (f32[64,64,64], f32[64,64], f32[64,64]) tuple(d, c, q)
}
ENTRY main {
  x = f32[64,64,64] parameter(0)
  p = f32[64,64] parameter(1)
  ROOT f = (f32[64,64,64], f32[64,64], f32[64,64]) fusion(x, p), kind=kOutput, calls=normalized
}"""
    )
    assert sorted(overwritable_operands(module.entry.root)) == [(0, 0), (1, 2)]


def test_folds_of_infinities_and_nan() -> None:
    dims = (1, 1024, 256)
    x, g = (np.random.default_rng(seed).standard_normal(dims, np.float32) for seed in (1, 2))
    g[0, 5, 3], g[0, 700, 4], g[0, 700, 5] = np.nan, np.inf, -np.inf
    g[0, :, 6] = -np.inf
    _, _, k, h = xlapy.compile(program("f32", dims))(x, g)
    np.testing.assert_array_equal(h, g.max((0, 1)))
    assert np.isnan(k[3]) and k[4] == -np.inf and k[5] == np.inf


def test_what_only_folds_of_columns_read_is_never_stored() -> None:
    text = (
        REGIONS.replace("TYPE", "f32")
        + """ENTRY main {
  x = f32[1024,512] parameter(0)
  zero = f32[] constant(0)
  s = f32[1024] reduce(x, zero), dimensions={1}, to_apply=sum
  b = f32[1024,512] broadcast(s), dimensions={0}
  d = f32[1024,512] subtract(x, b)
  ROOT c = f32[512] reduce(d, zero), dimensions={0}, to_apply=sum
}"""
    )
    x = np.random.default_rng(1).standard_normal((1024, 512), np.float32)
    executable = xlapy.compile(text)
    assert executable.memory_analysis()["temporary_bytes"] < x.nbytes // 8
    wanted = (x - x.sum(1, dtype=np.float64)[:, None]).sum(0)
    np.testing.assert_allclose(executable(x), wanted, atol=TOLERANCE * abs(wanted).max())
