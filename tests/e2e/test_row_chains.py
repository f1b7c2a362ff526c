"""Chains over rows, and over columns, run as one kernel, and give what the evaluator gives."""

from __future__ import annotations

import random
from typing import Any

import jax
import numpy as np
import pytest

import xlapy
from tests.e2e.random_chains import Chain
from tests.support.native import flatten, together
from tests.support.values import assert_same
from xlapy.hlo.text import parse
from xlapy.passes.fusion import rows

REGIONS = """
sum { a = T[] parameter(0)  b = T[] parameter(1)  ROOT s = T[] add(a, b) }
max { a = T[] parameter(0)  b = T[] parameter(1)  ROOT s = T[] maximum(a, b) }
min { a = T[] parameter(0)  b = T[] parameter(1)  ROOT s = T[] minimum(a, b) }
"""
DIMS = [(5, 16), (3, 33), (1, 100), (70, 64), (2, 3, 40), (9, 1, 17), (4, 1000), (16,), (17,), (1000,)]
COLUMNS = [((5, 16), 0), ((33, 33), 0), ((2, 500), 0), ((64, 70), 0), ((70, 200), 0), ((3, 7, 40), 1), ((9, 1, 17), 0)]
"""Dimensions of arrays, and the one along which a column lies."""

SOFTMAX = """
  m = T[R] reduce(x, low), dimensions={L}, to_apply=max
  bm = T[D] broadcast(m), dimensions={K}
  d = T[D] subtract(x, bm)
  e = T[D] exponential(d)
  s = T[R] reduce(e, zero), dimensions={L}, to_apply=sum
  bs = T[D] broadcast(s), dimensions={K}
  ROOT r = T[D] divide(e, bs)
"""
LOG_SUM_EXP = """
  m = T[R] reduce(x, low), dimensions={L}, to_apply=max
  bm = T[D] broadcast(m), dimensions={K}
  d = T[D] subtract(x, bm)
  e = T[D] exponential(d)
  s = T[R] reduce(e, zero), dimensions={L}, to_apply=sum
  l = T[R] log(s)
  ROOT r = T[R] add(l, m)
"""
NORM = """
  two = T[] constant(2)
  b2 = T[D] broadcast(two), dimensions={}
  y = T[D] multiply(x, b2)
  s = T[R] reduce(y, zero), dimensions={L}, to_apply=sum
  bs = T[D] broadcast(s), dimensions={K}
  c = T[D] subtract(y, bs)
  q = T[D] multiply(c, c)
  v = T[R] reduce(q, zero), dimensions={L}, to_apply=sum
  f = T[R] rsqrt(v)
  bf = T[D] broadcast(f), dimensions={K}
  n = T[D] multiply(c, bf)
  ROOT r = (T[D], T[R], T[R]) tuple(n, s, f)
"""


def chain(body: str, type_name: str, dims: tuple[int, ...], folded: int = -1) -> str:
    """A program of one chain over a dimension of `x`, the last one by default."""
    folded %= len(dims)
    kept = [dim for dim in range(len(dims)) if dim != folded]
    words = {
        "T[R]": f"{type_name}[{','.join(str(dims[dim]) for dim in kept)}]",
        "T[D]": f"{type_name}[{','.join(map(str, dims))}]",
        "T[]": f"{type_name}[]",
        "{L}": f"{{{folded}}}",
        "{K}": f"{{{','.join(map(str, kept))}}}",
    }
    text = REGIONS + "ENTRY main { x = T[D] parameter(0)  low = T[] constant(-inf)  zero = T[] constant(0)" + body + "}"
    if not type_name.startswith(("f", "bf")):
        text = text.replace("-inf", "0")
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text


def run(text: str, *arguments: Any, threads: int = 1) -> Any:
    executable = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads, verify=True))
    assert "kind=kOutput" in executable.hlo_text()
    return executable(*arguments)


@pytest.fixture(name="any_size")
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of any size are one kernel; large ones would take time."""
    monkeypatch.setattr(rows, "SMALL_ARRAY_BYTES", 1 << 30)


PLACES = [*((dims, -1) for dims in DIMS), *COLUMNS]


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("type_name", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("body", [SOFTMAX, LOG_SUM_EXP, NORM], ids=["softmax", "log-sum-exp", "norm"])
def test_a_chain_of_floats(body: str, type_name: str) -> None:
    module = together([chain(body, type_name, dims, folded) for dims, folded in PLACES])
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(p.shape.dims).astype(p.shape.type.dtype) for p in module.entry.parameters]
    executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=1, verify=True))
    assert executable.hlo_text().count("kind=kOutput") == executable.compile_stats().fusions == len(PLACES)
    tolerance = {"f32": 1e-5, "f64": 1e-13, "bf16": 2e-2, "f16": 2e-3}[type_name]
    for place, *results in zip(PLACES, executable(*arrays), xlapy.evaluate(module, *arrays), strict=True):
        for got, wanted in zip(*map(flatten, results), strict=True):
            wide = wanted.astype(np.float64)
            np.testing.assert_allclose(
                got.astype(np.float64), wide, tolerance, tolerance * np.abs(wide).max(), err_msg=str(place)
            )


def random_chain(seed: int) -> tuple[str, tuple[int, ...]]:
    """Reduces and exact element-wise ops, some per row and some per element; many of them are results."""
    choose = random.Random(seed)
    dims, folded = choose.choice(PLACES)
    full = ["x"]
    per_row: list[str] = []
    lines: list[str] = []

    def add(place: list[str], text: str) -> None:
        name = f"v{len(lines)}"
        lines.append(f"  {name} = {text}")
        place.append(name)

    for _ in range(choose.randint(4, 14)):
        match choose.randrange(5):
            case 0 | 1:
                region = choose.choice(["sum", "max", "min"])
                add(per_row, f"T[R] reduce({choose.choice(full)}, zero), dimensions={{L}}, to_apply={region}")
            case 2 if per_row:
                add(full, f"T[D] broadcast({choose.choice(per_row)}), dimensions={{K}}")
            case 3 if per_row:
                op = choose.choice(["add", "subtract", "multiply", "maximum"])
                add(per_row, f"T[R] {op}({choose.choice(per_row)}, {choose.choice(per_row)})")
            case _:
                op = choose.choice(["add", "subtract", "multiply", "xor", "minimum", "remainder"])
                add(full, f"T[D] {op}({choose.choice(full)}, {choose.choice(full)})")
    add(per_row, "T[R] reduce(x, zero), dimensions={L}, to_apply=sum")
    add(full, f"T[D] broadcast({per_row[-1]}), dimensions={{K}}")
    add(full, f"T[D] add({choose.choice(full)}, {full[-1]})")
    results = sorted({full[-1], per_row[-1], choose.choice(full), choose.choice(per_row)} - {"x"})
    shapes = ", ".join("T[D]" if result in full else "T[R]" for result in results)
    body = "\n".join(lines) + f"\n  ROOT r = ({shapes}) tuple({', '.join(results)})\n"
    return chain("\n" + body, "s32", dims, folded), dims


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("seed", range(60))
def test_a_random_chain_of_integers_is_exact(seed: int) -> None:
    text, dims = random_chain(seed)
    x = np.random.default_rng(seed).integers(-9, 9, dims).astype(np.int32)
    assert_same(run(text, x), xlapy.evaluate(parse(text), x), f"seed {seed}")


def test_the_number_of_threads_changes_no_bit() -> None:
    text = chain(SOFTMAX, "f32", (3000, 100))
    x = np.random.default_rng(0).standard_normal((3000, 100)).astype(np.float32)
    assert_same(run(text, x, threads=2), run(text, x))


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(("columns", "folded"), [(16, 1), (37, 1), (32, 0)])
def test_a_chain_overwrites_what_nobody_needs_any_more(columns: int, folded: int) -> None:
    product = f"f32[{columns},{columns}] dot(%s, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    text = chain(SOFTMAX, "f32", (columns, columns), folded)
    text = text.replace("x = ", "p = ").replace("  low =", f"  x = {product % 'p'}  low =")
    text = text.replace("ROOT r =", "r =").replace("divide(e, bs)", f"divide(e, bs)  ROOT q = {product % 'r'}")
    x = np.random.default_rng(0).standard_normal((columns, columns)).astype(np.float32)
    np.testing.assert_allclose(run(text, x), xlapy.evaluate(parse(text), x), 1e-4, 1e-5)
    assert xlapy.compile(text).memory_analysis()["temporary_bytes"] < 2 * x.nbytes


@pytest.mark.usefixtures("any_size")
def test_strips_of_columns_that_overlap_overwrite_nothing() -> None:
    product = "f32[37,37] dot(%s, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = chain(SOFTMAX, "f32", (37, 37), 0)
    text = text.replace("x = ", "p = ").replace("  low =", f"  x = {product % 'p'}  low =")
    text = text.replace("ROOT r =", "r =").replace("divide(e, bs)", f"divide(e, bs)  ROOT q = {product % 'r'}")
    x = np.random.default_rng(0).standard_normal((37, 37)).astype(np.float32)
    np.testing.assert_allclose(run(text, x), xlapy.evaluate(parse(text), x), 1e-4, 1e-5)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("body", [SOFTMAX, NORM], ids=["softmax", "norm"])
@pytest.mark.parametrize("dims", [(1100, 4096), (900, 5000)])
def test_large_columns_in_strips(body: str, dims: tuple[int, ...]) -> None:
    """What is kept of a strip is memory of its task then, and results go past the caches where they lie well."""
    text = chain(body, "f32", dims, 0)
    x = np.random.default_rng(0).standard_normal(dims, np.float32)
    one, three = run(text, x), run(text, x, threads=3)
    for number, wanted in enumerate(flatten(xlapy.evaluate(parse(text), x))):
        assert_same(flatten(one)[number], flatten(three)[number])
        np.testing.assert_allclose(flatten(one)[number], wanted, 2e-5, 2e-5 * np.abs(wanted).max())


def test_a_row_in_several_dimensions() -> None:
    text = """
    sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
    ENTRY main {
      x = s32[7,3,19] parameter(0)
      zero = s32[] constant(0)
      s = s32[7] reduce(x, zero), dimensions={1,2}, to_apply=sum
      b = s32[7,3,19] broadcast(s), dimensions={0}
      ROOT r = s32[7,3,19] subtract(x, b)
    }"""
    x = np.arange(7 * 3 * 19, dtype=np.int32).reshape(7, 3, 19)
    assert_same(run(text, x), xlapy.evaluate(parse(text), x))


SQUARE = """ENTRY main {
  x = f32[SIZE,SIZE] parameter(0)
  v = f32[SIZE] parameter(1)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  ones = f32[SIZE] broadcast(one), dimensions={}
  u = f32[SIZE] add(v, ones)
  s = f32[SIZE] reduce(x, zero), dimensions={1}, to_apply=sum
  t = f32[SIZE] multiply(s, u)
  rows = f32[SIZE,SIZE] broadcast(t), dimensions={0}
  columns = f32[SIZE,SIZE] broadcast(u), dimensions={1}
  p = f32[SIZE,SIZE] multiply(x, rows)
  ROOT r = f32[SIZE,SIZE] add(p, columns)
}
"""
NUMBERED_SQUARE = """ENTRY main {
  x = f32[SIZE,SIZE] parameter(0)
  zero = f32[] constant(0)
  three = s32[] constant(3)
  down = s32[SIZE,1] iota(), iota_dimension=0
  threes = s32[SIZE,1] broadcast(three), dimensions={}
  row = s32[SIZE,1] remainder(down, threes)
  across = s32[1,SIZE] iota(), iota_dimension=1
  more = s32[1,SIZE] broadcast(three), dimensions={}
  column = s32[1,SIZE] remainder(across, more)
  ofrow = s32[SIZE] reshape(row)
  ofcolumn = s32[SIZE] reshape(column)
  rows = s32[SIZE,SIZE] broadcast(ofrow), dimensions={0}
  columns = s32[SIZE,SIZE] broadcast(ofcolumn), dimensions={1}
  like = pred[SIZE,SIZE] compare(rows, columns), direction=EQ
  zeros = f32[SIZE,SIZE] broadcast(zero), dimensions={}
  y = f32[SIZE,SIZE] select(like, x, zeros)
  s = f32[SIZE] reduce(y, zero), dimensions={1}, to_apply=sum
  bs = f32[SIZE,SIZE] broadcast(s), dimensions={0}
  d = f32[SIZE,SIZE] subtract(x, bs)
  ROOT r = f32[SIZE,SIZE] select(like, d, zeros)
}
"""
"""The same numbers along rows and along columns: made once for both, or of other dimensions that look alike."""


@pytest.mark.parametrize("size", [16, 64, 100])
@pytest.mark.parametrize("program", [SQUARE, NUMBERED_SQUARE], ids=["one vector", "numbers"])
def test_rows_and_columns_of_a_square_have_values_of_their_own(program: str, size: int) -> None:
    text = (REGIONS + program).replace("T[]", "f32[]").replace("SIZE", str(size))
    generator = np.random.default_rng(1)
    x, v = (generator.integers(-8, 9, dims).astype(np.float32) for dims in ((size, size), (size,)))
    inputs = (x, v) if program is SQUARE else (x,)
    assert_same(run(text, *inputs), xlapy.evaluate(text, *inputs))


@pytest.mark.parametrize("both", [False, True], ids=["places", "rows and places"])
def test_what_is_made_for_places_is_not_taken_for_rows(*, both: bool) -> None:
    """As many rows as places: the values of both are arrays of the same shape."""
    body = """
      g = T[R] parameter(1)
      e = T[R] exponential(g)
      be = T[D] broadcast(e), dimensions={1}
      s = T[R] reduce(x, zero), dimensions={1}, to_apply=sum
      bs = T[D] broadcast(s), dimensions={0}
      d = T[D] subtract(x, bs)
      p = T[D] multiply(d, be)
      h = T[D] broadcast(OTHER), dimensions={0}
      ROOT r = T[D] add(p, h)
    """
    text = chain(body.replace("OTHER", "e" if both else "s"), "f32", (32, 32))
    generator = np.random.default_rng(0)
    x, g = (generator.standard_normal(dims).astype(np.float32) for dims in ((32, 32), (32,)))
    np.testing.assert_allclose(run(text, x, g), xlapy.evaluate(parse(text), x, g), 1e-5, 1e-5)


@pytest.mark.usefixtures("any_size")
def test_columns_in_several_dimensions() -> None:
    text = """
    sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
    ENTRY main {
      x = s32[3,5,2,4,19] parameter(0)
      w = s32[19] parameter(1)
      zero = s32[] constant(0)
      s = s32[5,4,19] reduce(x, zero), dimensions={0,2}, to_apply=sum
      t = s32[5,1,4,19] reshape(s)
      n = s32[5,1,4,19] negate(t)
      u = s32[5,4,19] reshape(n)
      b = s32[3,5,2,4,19] broadcast(u), dimensions={1,3,4}
      c = s32[3,5,2,4,19] broadcast(w), dimensions={4}
      d = s32[3,5,2,4,19] subtract(x, b)
      m = s32[3,5,2,4,19] multiply(d, c)
      ROOT r = (s32[3,5,2,4,19], s32[5,1,4,19]) tuple(m, n)
    }"""
    x = np.arange(3 * 5 * 2 * 4 * 19, dtype=np.int32).reshape(3, 5, 2, 4, 19)
    w = np.arange(19, dtype=np.int32)
    for got, wanted in zip(run(text, x, w), xlapy.evaluate(parse(text), x, w), strict=True):
        assert_same(got, wanted)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_running_maxima_and_sums_take_the_place_of_the_old_ones(*, transposed: bool) -> None:
    """A row kernel in a loop, results of which are stored where it reads what they are made of."""
    text = """HloModule m
      larger { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] maximum(a, b) }
      plus { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] add(a, b) }
      more { p = (s32[], f32[4,96,40], f32[96], f32[96]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        n = s32[] constant(4)
        ROOT r = pred[] compare(i, n), direction=LT }
      step { p = (s32[], f32[4,96,40], f32[96], f32[96]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        all = f32[4,96,40] get-tuple-element(p), index=1
        best = f32[96] get-tuple-element(p), index=2
        sums = f32[96] get-tuple-element(p), index=3
        zero = s32[] constant(0)
        low = f32[] constant(-inf)
        nothing = f32[] constant(0)
        block = f32[1,96,40] dynamic-slice(all, i, zero, zero), dynamic_slice_sizes={1,96,40}
        x = f32[96,40] reshape(block)
        here = f32[96] reduce(x, low), dimensions={1}, to_apply=larger
        higher = f32[96] maximum(best, here)
        lost = f32[96] subtract(best, higher)
        kept = f32[96] exponential(lost)
        spread = f32[96,40] broadcast(higher), dimensions={0}
        below = f32[96,40] subtract(x, spread)
        e = f32[96,40] exponential(below)
        sum = f32[96] reduce(e, nothing), dimensions={1}, to_apply=plus
        scaled = f32[96] multiply(sums, kept)
        total = f32[96] add(scaled, sum)
        one = s32[] constant(1)
        next = s32[] add(i, one)
        ROOT r = (s32[], f32[4,96,40], f32[96], f32[96]) tuple(next, all, higher, total) }
      ENTRY e { x = f32[4,96,40] parameter(0)
        zero = s32[] constant(0)
        low = f32[] constant(-1e30)
        nothing = f32[] constant(0)
        best = f32[96] broadcast(low), dimensions={}
        sums = f32[96] broadcast(nothing), dimensions={}
        start = (s32[], f32[4,96,40], f32[96], f32[96]) tuple(zero, x, best, sums)
        end = (s32[], f32[4,96,40], f32[96], f32[96]) while(start), condition=more, body=step
        best.1 = f32[96] get-tuple-element(end), index=2
        sums.1 = f32[96] get-tuple-element(end), index=3
        ROOT r = (f32[96], f32[96]) tuple(best.1, sums.1) }"""
    if transposed:
        text = text.replace("96,40", "40,96").replace(
            "reduce(x, low), dimensions={1}", "reduce(x, low), dimensions={0}"
        )
        text = text.replace("(higher), dimensions={0}", "(higher), dimensions={1}")
        text = text.replace("reduce(e, nothing), dimensions={1}", "reduce(e, nothing), dimensions={0}")
    x = np.random.default_rng(0).normal(size=(4, 40, 96) if transposed else (4, 96, 40)).astype(np.float32) * 5
    for got, wanted in zip(xlapy.compile(text)(x), xlapy.evaluate(text, x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


OTHER_ROWS = {
    "values of columns that could be those of rows": """
      q = f32[N] sqrt(w)
      b = f32[N,N] broadcast(q), dimensions={1}
      d = f32[N,N] divide(x, b)""",
    "the same values for rows and columns": """
      q = f32[N] sqrt(w)
      b = f32[N,N] broadcast(q), dimensions={1}
      c = f32[N,N] broadcast(q), dimensions={0}
      p = f32[N,N] multiply(b, c)
      d = f32[N,N] divide(x, p)""",
    "values of rows that are reversed": """
      q = f32[N] sqrt(v)
      b = f32[N,C] broadcast(q), dimensions={0}
      p = f32[N,C] divide(x, b)
      d = f32[N,C] reverse(p), dimensions={0}""",
    "what has values of rows is reversed along them": """
      q = f32[N] sqrt(v)
      b = f32[N,C] broadcast(q), dimensions={0}
      p = f32[N,C] divide(x, b)
      d = f32[N,C] reverse(p), dimensions={1}""",
    "what is kept is read in another row": """
      q = f32[N,C] divide(one, x)
      p = f32[N,C] reverse(q), dimensions={0}
      d = f32[N,C] multiply(q, q)
      e = f32[N,C] add(p, q)""",
    "what is kept is read in another column": """
      q = f32[N,C] divide(one, x)
      p = f32[N,C] reverse(q), dimensions={1}
      d = f32[N,C] multiply(q, q)
      e = f32[N,C] add(p, q)""",
    "what is kept is transposed": """
      q = f32[N,N] divide(one, x)
      p = f32[N,N] transpose(q), dimensions={1,0}
      d = f32[N,N] multiply(q, q)
      e = f32[N,N] add(p, q)""",
    "what is kept is shifted": """
      q = f32[N,C] divide(one, x)
      h = f32[1,C] slice(q), slice={[0:1], [0:C]}
      t = f32[M,C] slice(q), slice={[1:N], [0:C]}
      p = f32[N,C] concatenate(t, h), dimensions={0}
      d = f32[N,C] multiply(q, q)
      e = f32[N,C] add(p, q)""",
}


@pytest.mark.parametrize("columns", [24, 40])
@pytest.mark.parametrize("dim", [0, 1], ids=["columns", "rows"])
@pytest.mark.parametrize("body", OTHER_ROWS.values(), ids=OTHER_ROWS)
def test_what_is_read_in_other_rows(body: str, dim: int, columns: int) -> None:
    """Chains found values once for a row, and kept others from one sweep to the next, which were those of other rows
    where they were read."""
    rows = 24
    if "N,C" not in body:
        columns = rows
    last = "e" if " e = " in body else "d"
    text = (
        REGIONS.replace("T[]", "f32[]")
        + f"""
    ENTRY main {{
      x = f32[N,C] parameter(0)
      v = f32[N] parameter(1)
      w = f32[C] parameter(2)
      low = f32[] constant(-inf)
      number = f32[] constant(1)
      one = f32[N,C] broadcast(number), dimensions={{}}
      {body}
      m = f32[{"CN"[dim]}] reduce(d, low), dimensions={{{dim}}}, to_apply=max
      k = f32[N,C] broadcast(m), dimensions={{{1 - dim}}}
      ROOT r = f32[N,C] subtract({last}, k)
    }}"""
    )
    sizes = {"[N,": f"[{rows},", "[N]": f"[{rows}]", ",N]": f",{rows}]", "[M,": f"[{rows - 1},", ",C]": f",{columns}]"}
    sizes |= {"[C]": f"[{columns}]", "1:N]": f"1:{rows}]", "0:C]": f"0:{columns}]"}
    for word, size in sizes.items():
        text = text.replace(word, size)
    random = np.random.default_rng(0)
    arguments = [random.uniform(1, 9, size).astype(np.float32) for size in ((rows, columns), rows, columns)]
    assert_same(run(text, *arguments), xlapy.evaluate(text, *arguments))


def test_what_is_kept_of_columns_is_not_overwritten_while_it_is_read_elsewhere() -> None:
    """The second sweep keeps the rolled square roots, where the first one had left them as they were."""
    text = (
        REGIONS.replace("T[]", "f32[]")
        + """
    ENTRY main {
      x = f32[17,20] parameter(0)
      low = f32[] constant(-inf)
      q = f32[17,20] sqrt(x)
      h = f32[4,20] slice(q), slice={[13:17], [0:20]}
      t = f32[13,20] slice(q), slice={[0:13], [0:20]}
      r = f32[17,20] concatenate(h, t), dimensions={0}
      m = f32[20] reduce(q, low), dimensions={0}, to_apply=max
      b = f32[17,20] broadcast(m), dimensions={1}
      a = f32[17,20] add(r, b)
      n = f32[20] reduce(a, low), dimensions={0}, to_apply=max
      c = f32[17,20] broadcast(n), dimensions={1}
      d = f32[17,20] subtract(r, c)
      e = f32[17,20] add(d, r)
      ROOT result = (f32[17,20], f32[17,20], f32[20]) tuple(e, a, n)
    }"""
    )
    x = np.random.default_rng(0).uniform(1, 9, (17, 20)).astype(np.float32)
    assert_same(run(text, x), xlapy.evaluate(text, x))


def check_random_chains(seeds: range) -> None:
    for seed in seeds:
        chain = Chain(seed)
        module = parse(chain.text)
        random = np.random.default_rng(seed)
        types = [parameter.shape.type.dtype for parameter in module.entry.parameters]
        arguments = [
            random.integers(-9, 10, dims).astype(dtype) for dims, dtype in zip(chain.parameters, types, strict=True)
        ]
        assert_same(xlapy.compile(module)(*arguments), xlapy.evaluate(module, *arguments), f"seed {seed}")


@pytest.mark.usefixtures("any_size")
def test_random_chains_that_move_elements() -> None:
    check_random_chains(range(40))


@pytest.mark.slow
@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("start", range(1000, 5000, 100))
def test_many_random_chains_that_move_elements(start: int) -> None:
    check_random_chains(range(start, start + 100))


def test_sweeps_write_only_the_places_that_they_use() -> None:
    """So that code grows with the number of sweeps, and not with its square. (Constants that operations read are left
    out: how many there are hangs on how much LLVM is to do.)"""
    many, few = (xlapy.compile(many_sweeps(count)).llvm_ir().splitlines() for count in (32, 16))
    assert sum("@table" not in line for line in many) < 2.2 * len(few)


def test_many_sweeps_give_what_the_evaluator_gives() -> None:
    text = many_sweeps(9)
    x = np.random.default_rng(0).standard_normal((6, 16)).astype(np.float32)
    np.testing.assert_allclose(xlapy.compile(text)(x), xlapy.evaluate(text, x), rtol=1e-5)


def many_sweeps(count: int) -> str:
    """A chain of so many sums of rows, each of what the exponential function makes of the one before."""
    lines = [
        f"""
  e{n} = f32[6,16] exponential(x{n})
  s{n} = f32[6] reduce(e{n}, zero), dimensions={{1}}, to_apply=sum
  b{n} = f32[6,16] broadcast(s{n}), dimensions={{0}}
  x{n + 1} = f32[6,16] divide(e{n}, b{n})"""
        for n in range(count)
    ]
    return f"""
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x0 = f32[6,16] parameter(0)
  zero = f32[] constant(0){"".join(lines)}
  ROOT r = f32[6,16] negate(x{count})
}}"""


@pytest.mark.parametrize(("dims", "chains"), [((4, 4096), 3), ((16, 64), 1), ((3, 20, 64), 1)])
def test_folds_that_wait_for_each_other_are_in_one_kernel_as_far_as_there_is_room(
    dims: tuple[int, ...], chains: int
) -> None:
    def softmaxes(x: Any) -> Any:
        for factor in range(6):
            x = jax.nn.softmax(x * (factor + 1.5))
        return x

    x = np.random.default_rng(3).standard_normal(dims, np.float32)
    text = jax.jit(softmaxes).lower(x).as_text()
    compiled = xlapy.compile(text)
    assert compiled.hlo_text().count("kind=kOutput") == chains
    np.testing.assert_allclose(compiled(x), xlapy.evaluate(text, x), rtol=1e-4)
