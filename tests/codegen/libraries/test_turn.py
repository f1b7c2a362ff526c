"""Transposes by the library of blocks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_array_equal
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.kernels.transpose import line_lanes, plan_transpose, square_side
from xlapy.codegen.target import host_target, reference_target
from xlapy.hlo.text import parse
from xlapy_runtime.records import replaced


def text_of(element_type: str, dims: tuple[int, ...], permutation: tuple[int, ...], mirrored: tuple[int, ...]) -> str:
    source, order = ",".join(map(str, dims)), ",".join(map(str, permutation))
    result = ",".join(str(dims[dim]) for dim in permutation)
    name, reverse = "p", ""
    if mirrored:
        name = "r"
        reverse = f"r = {element_type}[{source}] reverse(p), dimensions={{{','.join(map(str, mirrored))}}}"
    return f"""HloModule m
      ENTRY main {{
        p = {element_type}[{source}] parameter(0)
        {reverse}
        ROOT t = {element_type}[{result}] transpose({name}), dimensions={{{order}}}
      }}"""


def check(text: str, *, by_library: bool = True) -> None:
    shape = parse(text).entry.parameters[0].shape
    array = np.random.default_rng(shape.size).integers(0, 2 if shape.type.name == "pred" else 100, shape.dims)
    compiled = xlapy.compile(text)
    assert ("turn_" in compiled.llvm_ir()) == by_library
    argument = array.astype(shape.type.dtype)
    assert_array_equal(compiled(argument), xlapy.evaluate(text, argument))


@pytest.mark.parametrize("element_type", ["pred", "s8", "u16", "bf16", "f16", "s32", "f32", "u64", "f64"])
def test_element_types(element_type: str) -> None:
    check(text_of(element_type, (70, 90), (1, 0), ()))


@pytest.mark.parametrize("dims", [(16, 16), (33, 17, 65), (19, 3, 40, 37), (3, 21, 2, 18, 33)], ids=str)
def test_orders_of_dimensions(dims: tuple[int, ...]) -> None:
    """Some matrices and some strips, with edges at which blocks overlap."""
    last = len(dims) - 1
    orders = [order for order in itertools.permutations(range(len(dims))) if dims[order[-1]] >= 16 and order[-1] < last]
    for order in orders[:: max(1, len(orders) // 6)]:
        check(text_of("f32", dims, order, ()))


@pytest.mark.parametrize("mirrored", [(0,), (3,), (0, 1), (0, 1, 3)], ids=str)
def test_reversed_dimensions(mirrored: tuple[int, ...]) -> None:
    check(text_of("f32", (3, 5, 40, 50), (0, 1, 3, 2), mirrored))
    check(text_of("f64", (4, 3, 33, 70), (1, 3, 0, 2), mirrored))


OTHERS = {
    "more than two short dimensions that number columns": text_of("u8", (64, 3, 2, 4), (3, 2, 1, 0), ()),
    "many matrices in as many directions": text_of("f32", (2, 40, 3, 2, 2, 33), (0, 4, 3, 2, 5, 1), (0,)),
    "a side shorter than a block": text_of("s8", (7, 200), (1, 0), ()),
    "more than two short dimensions that number rows": text_of("u8", (2, 3, 4, 64), (3, 2, 1, 0), ()),
    "rows and columns that several dimensions number": text_of("f32", (3, 4, 5, 6, 2, 7), (5, 2, 4, 0, 3, 1), ()),
    "smaller blocks, as the same dimension would number rows and columns": text_of("u8", (5, 4, 6), (2, 1, 0), ()),
    "sides too short for any block": text_of("s16", (3, 2, 3), (2, 1, 0), ()),
    "several dimensions that number rows, one of them reversed": text_of("f32", (4, 3, 40, 5), (3, 2, 1, 0), (1,)),
    "elements wider than any": text_of("c128", (40, 50), (1, 0), ()),
    "the fastest dimension stays": text_of("f32", (40, 50, 60), (1, 0, 2), ()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_transposes_have_code_of_their_own(name: str) -> None:
    check(OTHERS[name], by_library=False)


@pytest.mark.parametrize("element_type", ["u8", "s16", "f32", "f64"])
def test_short_dimensions_in_any_order(element_type: str) -> None:
    dims = (3, 6, 5, 9)
    orders = [order for order in itertools.permutations(range(4)) if order[-1] != 3]
    for order in orders[:: 1 if element_type == "f32" else 4]:
        text = text_of(element_type, dims, order, ())
        array = np.arange(math.prod(dims)).astype(parse(text).entry.parameters[0].shape.type.dtype).reshape(dims)
        assert_array_equal(xlapy.compile(text)(array), array.transpose(order))


RUNS = [("u8", 8), ("u8", 16), ("s16", 4), ("f32", 2), ("f32", 4), ("f64", 2), ("f32", 3), ("c64", 1), ("c64", 2)]


@pytest.mark.parametrize(("element_type", "run"), RUNS, ids=str)
@pytest.mark.parametrize("dims", [(4, 3, 70), (70, 3, 4), (33, 70), (5, 4, 6, 7)], ids=str)
def test_runs_that_stay_together(dims: tuple[int, ...], element_type: str, run: int) -> None:
    last = len(dims)
    for order in ((*range(last - 2), last - 1, last - 2, last), (*reversed(range(last)), last)):
        text = text_of(element_type, (*dims, run), order, ())
        array = np.arange(math.prod(dims) * run).reshape(*dims, run)
        array = array.astype(parse(text).entry.parameters[0].shape.type.dtype)
        array = array + 1j * array[::-1] if element_type == "c64" else array
        assert_array_equal(xlapy.compile(text)(array), array.transpose(order))


def test_complex_numbers_are_words() -> None:
    assert "turn_8" in xlapy.compile(text_of("c64", (70, 90), (1, 0), ())).llvm_ir()


def test_a_transpose_of_what_has_another_shape_takes_runs() -> None:
    """As where blocks of an image become rows."""
    text = """HloModule m
      ENTRY main {
        x = f32[64,128] parameter(0)
        r = f32[16,4,32,4] reshape(x)
        t = f32[16,32,4,4] transpose(r), dimensions={0,2,1,3}
        ROOT s = f32[512,16] reshape(t)
      }"""
    x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    expected = x.reshape(16, 4, 32, 4).transpose(0, 2, 1, 3).reshape(512, 16)
    assert_array_equal(xlapy.compile(text)(x), expected)


@pytest.mark.parametrize("element_type", ["u8", "bf16", "s32", "f64"])
@pytest.mark.parametrize(
    ("dims", "order"),
    [((70, 45, 3), (2, 1, 0)), ((2, 67, 65, 3), (0, 3, 2, 1)), ((5, 70, 33, 3), (3, 0, 2, 1))],
    ids=str,
)
def test_columns_that_two_dimensions_number(dims: tuple[int, ...], order: tuple[int, ...], element_type: str) -> None:
    """As where a convolution's weights have their windows last."""
    check(text_of(element_type, dims, order, ()))


@pytest.mark.parametrize("element_type", ["u8", "bf16", "s32", "f64"])
@pytest.mark.parametrize("dims", [(3, 45, 70), (2, 65, 2, 67), (3, 64, 1, 71)], ids=str)
def test_rows_that_two_dimensions_number(dims: tuple[int, ...], element_type: str) -> None:
    """As where gradients of these weights come with their windows first."""
    check(text_of(element_type, dims, tuple(reversed(range(len(dims)))), ()))


def test_columns_that_two_dimensions_number_may_be_reversed() -> None:
    for mirrored in ((1,), (2,), (1, 2)):
        check(text_of("f64", (70, 45, 3), (2, 1, 0), mirrored))


def test_as_many_digits_as_there_are() -> None:
    check(text_of("f32", (4, 40, 3, 2, 33), (0, 3, 2, 4, 1), (0,)))


@pytest.mark.parametrize("columns", [64, 1000], ids=["narrow", "wide"])
@pytest.mark.parametrize(("dtype", "name"), [("u1", "u8"), ("u2", "u16"), ("f4", "f32"), ("f8", "f64")])
def test_results_past_the_caches_of_sources_anywhere_in_memory(dtype: str, name: str, columns: int) -> None:
    """Rows of the operand begin where cache lines do, or within one."""
    width = np.dtype(dtype).itemsize
    rows = -(-host_target().l3_bytes // (2 * columns * width * 64)) * 64
    compiled = xlapy.compile(text_of(name, (rows, columns), (1, 0), ()))
    memory = np.arange(rows * columns + 128, dtype=np.uint32).astype(dtype)
    first = -memory.ctypes.data % 64 // width
    for offset in (0, 1, 64 // width - 1):
        source = memory[first + offset :][: rows * columns].reshape(rows, columns)
        assert np.array_equal(compiled(source), source.T)  # looks once at these large arrays


@pytest.mark.parametrize(("dtype", "name"), [("u1", "u8"), ("u2", "u16"), ("f4", "f32"), ("f8", "f64")])
def test_results_past_the_caches_of_vectors_of_half_a_line(
    dtype: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several blocks make one whose rows are lines; the last columns are in two of these."""
    target = replaced(host_target(), vector_bytes=CACHE_LINE // 2, l3_bytes=0)
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: target)
    rows, width = 320, np.dtype(dtype).itemsize
    columns = STREAMED_BYTES // (rows * width) + 7
    check(text_of(name, (rows, columns), (1, 0), ()))


def test_results_do_not_depend_on_threads() -> None:
    text = text_of("f32", (5, 700, 300), (2, 0, 1), ())
    array = np.random.default_rng(3).normal(size=(5, 700, 300)).astype(np.float32)
    for threads in (1, 2, 3, 8):
        compiled = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))
        assert_array_equal(compiled(array), np.transpose(array, (2, 0, 1)))


@pytest.mark.parametrize(
    ("kind", "dims", "is_line"),
    [
        ("f64", (256, 512), True),  # rows of the operand and of the result are powers of two
        ("f32", (500, 1024), True),
        ("f32", (1024, 500), True),
        ("f64", (500, 300), False),
        ("f32", (64, 64), False),
        ("f32", (8192, 4096), False),  # too many pages for short pieces of each
    ],
)
def test_squares_are_lines_where_rows_lie_alike_in_the_nearest_cache(
    kind: str, dims: tuple[int, int], is_line: bool
) -> None:
    rows, columns = dims
    target = reference_target("avx2")
    root = parse(f"""ENTRY e {{ x = {kind}[{rows},{columns}] parameter(0)
        ROOT t = {kind}[{columns},{rows}] transpose(x), dimensions={{1,0}} }}""").entry.root
    plan = plan_transpose(root, target)
    assert plan is not None
    width = root.shape.type.bytes
    side = line_lanes(width) if is_line else square_side(width, target)
    assert side in (plan.square, plan.stretch)
