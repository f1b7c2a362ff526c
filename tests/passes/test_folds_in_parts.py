"""Folds of an array around, or below, what it is folded to first: the same numbers, from one sweep over memory."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import xlapy
from tests.support.hlo_cases import Case, check_case, load_cases
from tests.support.native import on_threads
from xlapy.codegen.target import host_target
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse
from xlapy.passes.folds_in_parts import FoldsInParts

TOLERANCE = 1e-4  # of sums of thousands of floats, which the evaluator adds up one by one
CASES = load_cases(Path(__file__).parent / "cases" / "folds-in-parts.hlo")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])
def test_case(case: Case) -> None:
    check_case(case, FoldsInParts(least_bytes=1), tolerance=TOLERANCE)


REGIONS = """
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
max { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT m = f32[] maximum(x, y) }
"""
EXPONENTIALS = (
    REGIONS
    + """ENTRY main {
  x = f32[N,C] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[C] reduce(x, low), dimensions={0}, to_apply=max
  f = pred[C] is-finite(m)
  zeros = f32[C] broadcast(zero), dimensions={}
  c = f32[C] select(f, m, zeros)
  b = f32[N,C] broadcast(CENTER), dimensions={1}
  d = f32[N,C] subtract(x, b)
  e = f32[N,C] exponential(d)
  ROOT s = f32[C] reduce(e, zero), dimensions={0}, to_apply=add
}"""
)
SQUARES = (
    REGIONS
    + """ENTRY main {
  x = f32[N,C] parameter(0)
  zero = f32[] constant(0)
  t = f32[C] reduce(x, zero), dimensions={0}, to_apply=add
  n = f32[] constant(N)
  sizes = f32[C] broadcast(n), dimensions={}
  m = f32[C] divide(t, sizes)
  b = f32[N,C] broadcast(m), dimensions={1}
  d = f32[N,C] subtract(x, b)
  q = f32[N,C] multiply(d, d)
  ROOT v = f32[C] reduce(q, zero), dimensions={0}, to_apply=add
}"""
)


def sized(text: str, rows: int, columns: int) -> str:
    return text.replace("[N,C]", f"[{rows},{columns}]").replace("[C]", f"[{columns}]").replace("(N)", f"({rows})")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [EXPONENTIALS.replace("CENTER", c) for c in "mc"] + [SQUARES])
def test_what_is_not_finite_stays_so(text: str) -> None:
    """Each column has other numbers among its elements, in one part, in all of some parts, or in all."""
    inf, nan = np.inf, np.nan
    array = np.random.default_rng(0).standard_normal((2048, 32)).astype(np.float32)
    for column, numbers in enumerate([[inf], [-inf], [nan], [inf, -inf], [inf, nan], [-inf, nan]]):
        array[7 : 7 + len(numbers), column] = numbers
        array[: 1024 + len(numbers), 8 + column] = np.resize(numbers, 1024 + len(numbers))
        array[:, 16 + column] = np.resize(numbers, 2048)
    array[:1024, 24], array[1024:, 25] = -1e5, 1e5
    text = sized(text, 2048, 32)
    module = parse(text)
    assert FoldsInParts(least_bytes=1).run(module)
    np.testing.assert_allclose(evaluate(module, array), evaluate(parse(text), array), rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("infinite", [(), (5,)], ids=["sums only", "an element, too"])
def test_sums_may_be_infinite_where_elements_are_not(infinite: tuple[int, ...]) -> None:
    array = np.full((2048, 32), 3e38, np.float32)
    array[:, 1::2] = -1
    array[infinite, ::2] = np.inf
    text = sized(SQUARES, 2048, 32)
    module = parse(text)
    assert FoldsInParts(least_bytes=1).run(module)
    wanted = evaluate(parse(text), array)
    assert (np.isnan(wanted[::2]) if infinite else np.isinf(wanted[::2])).all()
    np.testing.assert_array_equal(evaluate(module, array), wanted)


def test_a_mean_far_from_zero_costs_no_digits() -> None:
    array = np.random.default_rng(0).standard_normal((2048, 32)).astype(np.float32) + np.float32(1000)
    module = parse(sized(SQUARES, 2048, 32))
    assert FoldsInParts(least_bytes=1).run(module)
    wide = array.astype(np.float64)
    np.testing.assert_allclose(evaluate(module, array), ((wide - wide.mean(0)) ** 2).sum(0), rtol=TOLERANCE)


@pytest.mark.parametrize("text", [EXPONENTIALS.replace("CENTER", "c"), SQUARES])
def test_large_arrays_are_read_once_by_any_number_of_threads(text: str) -> None:
    array = np.random.default_rng(0).standard_normal((131072, 64)).astype(np.float32)
    text = sized(text, 131072, 64)
    exe = xlapy.compile(text)
    results = [np.array(on_threads(exe, threads)(array)) for threads in (1, 2, 3, 8)]
    assert "f32[512,256,64]" in exe.hlo_text(), "in parts"
    wide = array.astype(np.float64)
    right = ((wide - wide.mean(0)) ** 2 if text.count("divide") else np.exp(wide - wide.max(0))).sum(0)
    np.testing.assert_allclose(results[0], right, rtol=1e-5)
    for other in results[1:]:
        assert other.tobytes() == results[0].tobytes()


@pytest.mark.parametrize("columns", [2048, 4096])
def test_wide_rows_are_read_once_in_wide_strips(columns: int) -> None:
    array = np.random.default_rng(0).standard_normal((4096, columns)).astype(np.float32)
    text = sized(SQUARES, 4096, columns)
    executable = xlapy.compile(text)
    results = [np.array(on_threads(executable, threads)(array)) for threads in (1, 2, 3, 8)]
    assert f"f32[64,64,{columns}]" in executable.hlo_text(), "in parts"
    wide = array.astype(np.float64)
    np.testing.assert_allclose(results[0], ((wide - wide.mean(0)) ** 2).sum(0), rtol=1e-5)
    assert len({result.tobytes() for result in results}) == 1


@pytest.mark.parametrize(
    ("rows", "columns", "why"),
    [(48, 2048, "there are few rows"), (4096, 700, "strips would overlap")],
)
def test_other_wide_rows_stay_whole(rows: int, columns: int, why: str) -> None:
    assert not FoldsInParts(least_bytes=1).run(parse(sized(SQUARES, rows, columns))), why


@pytest.mark.parametrize(("rows", "is_cut"), [(4096, True), (512, True), (256, False)])
def test_long_columns_that_are_made_into_new_ones_are_read_twice(rows: int, is_cut: bool) -> None:
    """Strips of short ones stay in a cache."""
    text = sized(SQUARES, rows, 1024).replace("ROOT v", "v")
    assert FoldsInParts(least_bytes=1).run(parse(text.replace("v = f32", "ROOT v = f32")))
    elements = f"  bv = f32[{rows},1024] broadcast(v), dimensions={{1}}\n  ROOT r = f32[{rows},1024] divide(d, bv)\n}}"
    assert FoldsInParts(least_bytes=1).run(parse(text.rstrip().removesuffix("}") + elements)) == is_cut


def softmax_of_columns(rows: int, columns: int) -> str:
    text = sized(EXPONENTIALS.replace("CENTER", "m"), rows, columns).replace("ROOT s", "s").rstrip().removesuffix("}")
    shape = f"f32[{rows},{columns}]"
    return text + f"  bs = {shape} broadcast(s), dimensions={{1}}\n  ROOT r = {shape} divide(e, bs)\n}}"


@pytest.mark.parametrize("repeats_functions", [False, True])
def test_exponentials_are_found_twice_where_that_is_quick(repeats_functions: bool) -> None:
    cut = FoldsInParts(least_bytes=1, repeats_functions=repeats_functions)
    assert cut.run(parse(sized(EXPONENTIALS.replace("CENTER", "m"), 2048, 1024))), "folds are all that is wanted"
    assert cut.run(parse(softmax_of_columns(2048, 1024))) == repeats_functions


def test_a_softmax_of_columns_has_the_same_bits_on_any_number_of_threads() -> None:
    array = np.random.default_rng(0).standard_normal((2048, 4096)).astype(np.float32)
    array[9, :3] = np.inf, -np.inf, np.nan
    array[:, 4] = array[:1500, 5] = -np.inf
    executable = xlapy.compile(softmax_of_columns(2048, 4096))
    assert ("f32[32,64,4096]" in executable.hlo_text()) == host_target().repeats_functions, "in parts"
    with np.errstate(invalid="ignore"):
        results = [np.array(on_threads(executable, threads)(array)) for threads in (1, 2, 3, 8)]
        below = np.exp(array.astype(np.float64) - array.max(0))
        np.testing.assert_allclose(results[0], below / below.sum(0), rtol=1e-5)
    assert len({result.tobytes() for result in results}) == 1
    assert "kernel.0" not in executable.llvm_ir(), "libraries have all of it"


def test_what_parts_come_to_is_folded_by_a_library() -> None:
    """And what is made from it, the logarithm, is a second step, as both are a small part of the program."""
    array = np.random.default_rng(0).standard_normal((2048, 4096)).astype(np.float32)
    array[9, :3] = np.inf, -np.inf, np.nan
    array[:, 4] = array[:1500, 5] = -np.inf
    text = sized(EXPONENTIALS.replace("CENTER", "c"), 2048, 4096).replace("ROOT s", "s").rstrip().removesuffix("}")
    executable = xlapy.compile(f"{text}  g = f32[4096] log(s)\n  ROOT r = f32[4096] add(g, c)\n}}")
    with np.errstate(all="ignore"):
        results = [np.array(on_threads(executable, threads)(array)) for threads in (1, 2, 3, 8)]
        top = np.where(np.isfinite(array.max(0)), array.max(0), 0)
        right = np.log(np.exp(array.astype(np.float64) - top).sum(0)) + top
    np.testing.assert_allclose(results[0], right, rtol=1e-5)
    assert len({result.tobytes() for result in results}) == 1
    kernels = re.findall(r"^define void @(kernel\S+?)\(", executable.llvm_ir(), re.MULTILINE)
    assert sorted(name.split(".")[-1] for name in kernels) == ["finish", "finish"]


@pytest.mark.parametrize(("rows", "columns"), [(4096, 2048), (131072, 64)])
def test_exponentials_of_columns_are_summed_in_parts(rows: int, columns: int) -> None:
    text = EXPONENTIALS.replace("CENTER", "c")
    assert FoldsInParts(least_bytes=1).run(parse(sized(text, rows, columns)))


def test_a_mean_may_be_an_array_of_one_element() -> None:
    """As it is where it keeps the dimensions that were folded."""
    text = f"""{REGIONS} ENTRY main {{
      x = f32[64,512] parameter(0)
      zero = f32[] constant(0)
      t = f32[] reduce(x, zero), dimensions={{0,1}}, to_apply=add
      n = f32[] constant(32768)
      sum = f32[1,1] broadcast(t), dimensions={{}}
      size = f32[1,1] broadcast(n), dimensions={{}}
      mean = f32[1,1] divide(sum, size)
      m = f32[] reshape(mean)
      b = f32[64,512] broadcast(m), dimensions={{}}
      d = f32[64,512] subtract(x, b)
      q = f32[64,512] multiply(d, d)
      ROOT v = f32[] reduce(q, zero), dimensions={{0,1}}, to_apply=add
    }}"""
    array = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    module = parse(text)
    assert FoldsInParts(least_bytes=1).run(module)
    np.testing.assert_allclose(evaluate(module, array), array.size * array.astype(np.float64).var(), rtol=1e-4)
