"""Native convolutions, windows, selections and scans of all kinds against the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.builder.examples import WINDOWS, Example
from tests.support.close_results import check_same, leaves
from tests.support.guarded_memory import read_only
from tests.support.native import on_threads
from tests.support.random_windows import (
    RandomProgram,
    add_convolution,
    add_scan,
    add_selection,
    add_window,
    log_add_exp,
    random_array,
    random_program,
)
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.codegen.target import host_target
from xlapy.hlo.element_types import element_type_named
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse
from xlapy_runtime.records import replaced


@pytest.mark.parametrize("example", WINDOWS, ids=[example.label for example in WINDOWS])
def test_worked_example(example: Example) -> None:
    computation = example.computation()
    for results in (
        xlapy.compile(computation)(*example.arguments),
        xlapy.evaluate(computation, *example.arguments),
    ):
        for one, other in zip(leaves(results), leaves(example.expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)


CASES: dict[str, Callable[[RandomProgram], None]] = {
    "convolution": add_convolution,
    "window": add_window,
    "selection": add_selection,
    "scan": add_scan,
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", CASES)
def test_random_cases(kind: str, seed: int) -> None:
    program = random_program(seed, CASES[kind])
    computation = program.finished()
    check_same(xlapy.compile(computation)(*program.arguments), xlapy.evaluate(computation, *program.arguments))


# -- element types -----------------------------------------------------------------------------------------------------

REAL = ["s8", "s16", "s32", "s64", "uint8", "u16", "u32", "u64", "bf16", "f16", "f32", "f64"]
TINY = ["int4", "uint4", "f8e4m3fn", "f8e5m2"]
WIDE = ["c64", "c128"]


def run_both(build: Callable[[XlaBuilder, list[XlaOp]], list[XlaOp]], arguments: list[Any]) -> Any:
    builder = XlaBuilder("rows")
    parameters = [builder.parameter(number, Shape.of(value)) for number, value in enumerate(arguments)]
    computation = builder.build(ops.Tuple(builder, build(builder, parameters)))
    got = xlapy.compile(computation)(*arguments)
    check_same(got, xlapy.evaluate(computation, *arguments))
    return got


@pytest.mark.parametrize("kind", [*REAL, *TINY, *WIDE, "pred"])
def test_element_types(kind: str) -> None:
    """A convolution along either kind of lanes, and windows, of 3 x 19 x 17 elements."""
    generator = np.random.default_rng(3)
    arguments = [random_array(generator, Shape.array(kind, dims)) for dims in ((1, 19, 3), (1, 3, 19), (3, 3, 17))]

    def build(builder: XlaBuilder, parameters: list[XlaOp]) -> list[XlaOp]:
        last, early, kernel = parameters
        results = [
            ops.ConvGeneral(last, kernel, [1], "SAME", ("NWC", "WIO", "NWC")),
            ops.ConvGeneral(early, kernel, [2], [(1, 2)], ("NCW", "WIO", "NCW")),
        ]
        fold = ops.Or if kind == "pred" else ops.Add
        results.append(ops.ReduceWindow(kernel, False if kind == "pred" else 0, fold, [2, 1, 3], [1, 1, 2], "SAME"))
        results.append(
            ops.ReduceWindow(early, False if kind == "pred" else 0, fold, [1, 1, 19], None, [(0, 0), (0, 0), (18, 0)])
        )
        if kind not in WIDE and kind != "pred":
            source = ops.ReduceWindow(kernel, 0, ops.Max, [2, 2, 1], [1, 1, 1], "VALID")
            results.append(ops.SelectAndScatter(kernel, ops.Ge, [2, 2, 1], [1, 1, 1], "VALID", source, 0, ops.Add))
        return results

    run_both(build, arguments)


@pytest.mark.parametrize(("kind", "wanted"), [("s8", "s32"), ("bf16", "f32"), ("f16", "f64"), ("f32", "f64")])
def test_wider_results(kind: str, wanted: str) -> None:
    generator = np.random.default_rng(5)
    arguments = [random_array(generator, Shape.array(kind, dims)) for dims in ((2, 5, 6), (3, 5, 4))]

    def build(builder: XlaBuilder, p: list[XlaOp]) -> list[XlaOp]:
        labels = ("NCW", "WIO", "NWC")
        return [ops.ConvGeneral(p[0], p[1], [1], "SAME", labels, preferred_element_type=wanted)]

    run_both(build, arguments)


# -- special numbers and shapes ----------------------------------------------------------------------------------------


def test_padding_contributes_nothing_to_a_convolution() -> None:
    kernel = np.array([np.inf, 1, np.nan], np.float32).reshape(3, 1, 1)
    line = np.ones((1, 20, 1), np.float32)
    labels = ("NWC", "WIO", "NWC")
    got, wide = run_both(
        lambda builder, p: [
            ops.ConvGeneral(p[0], p[1], [1], "SAME", labels),
            ops.ConvGeneral(ops.Broadcast(p[0], [2]).reshape([2, 20, 1]), p[1], [1], [(4, 0)], ("NWC", "WIO", "CNW")),
        ],
        [line, kernel],
    )
    assert np.all(np.isnan(got[0, :-1, 0]))
    assert got[0, -1, 0] == np.inf
    assert list(wide[0, 0, :2]) == [0, 0]


def test_nan_and_infinity_in_windows() -> None:
    line = np.array([1, np.nan, -np.inf, 3, np.inf, -0.0, 0.0, 2, 5, np.nan, 1], np.float32)
    results = run_both(
        lambda builder, p: [
            ops.ReduceWindow(p[0], -np.inf, ops.Max, [2], [1], "SAME"),
            ops.ReduceWindow(p[0], 0, ops.Add, [11], None, [(10, 0)]),
            ops.ReduceWindow(p[0], -np.inf, ops.Max, [11], None, [(0, 10)]),
            ops.ReduceWindow(p[0], -np.inf, log_add_exp, [11], None, [(0, 10)]),
            ops.SelectAndScatter(p[0], ops.Ge, [2], [2], [(0, 1)], ops.Iota(builder, "f32", 6), 0, ops.Add),
        ],
        [line],
    )
    assert np.isnan(results[0][:2]).all()
    assert np.isnan(results[1][1:]).all()


def test_nothing_to_fold_or_to_slide_over() -> None:
    empty, batch, none = (np.ones(dims, np.float32) for dims in ((0, 5, 3), (2, 5, 0), (3, 0, 4)))
    kernel = np.ones((3, 3, 4), np.float32)
    labels = ("NWC", "WIO", "NWC")
    results = run_both(
        lambda builder, p: [
            ops.ConvGeneral(p[0], p[3], [1], "SAME", labels),
            ops.ConvGeneral(p[1], p[2], [1], "SAME", labels),
            ops.ConvGeneral(
                ops.Broadcast(ops.ConstantLiteral(builder, np.float32(1)), [2, 0, 3]), p[3], [1], [(2, 2)], labels
            ),
            ops.ReduceWindow(p[0], 1, ops.Add, [1, 2, 1]),
            ops.ReduceWindow(p[1], 1, ops.Add, [1, 7, 1]),
            ops.ReduceWindow(p[3], 1, ops.Add, [1, 4, 1]),
            ops.SelectAndScatter(p[3], ops.Ge, [1, 4, 1], None, "VALID", np.ones((3, 0, 4), np.float32), 7, ops.Add),
        ],
        [empty, batch, none, kernel],
    )
    assert results[1].shape == (2, 5, 4) and not results[1].any()
    assert results[2].shape == (2, 2, 4) and not results[2].any()
    assert np.all(results[-1] == 7)


def test_a_scan_with_a_value_that_is_not_neutral_folds_windows() -> None:
    line = np.arange(1, 13, dtype=np.float32)
    (got,) = run_both(lambda builder, p: [ops.ReduceWindow(p[0], 1, ops.Add, [12], None, [(11, 0)])], [line])
    assert list(got) == [float(sum(range(1, n + 1)) + 12 - n + 1) for n in range(1, 13)]


def test_narrow_floats_accumulate_in_f32() -> None:
    ones = np.ones((2, 1000), Shape.scalar("bf16").type.dtype)
    across, along = run_both(
        lambda builder, p: [
            ops.ReduceWindow(p[0], 0, ops.Add, [1, 1000], None, [(0, 0), (999, 0)]),
            ops.ReduceWindow(ops.Transpose(p[0], [1, 0]), 0, ops.Add, [1000, 1], None, [(999, 0), (0, 0)]),
        ],
        [ones],
    )
    assert float(across[0, -1]) == float(along[-1, 1]) == 1000


def scanned(operand: XlaOp, fold: Any, init: Any, dim: int, *, is_reversed: bool = False) -> XlaOp:
    """Windows from each element to the first, or the last, along a dimension."""
    dims = operand.shape.dims
    sizes, padding = [1] * len(dims), [(0, 0)] * len(dims)
    sizes[dim] = dims[dim]
    padding[dim] = (0, dims[dim] - 1) if is_reversed else (dims[dim] - 1, 0)
    return ops.ReduceWindow(operand, init, fold, sizes, None, padding)


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("dims", [(3, 11, 1000), (20, 2048), (9, 1037)])
def test_scans_across_rows_go_by_strips(dims: tuple[int, ...], is_reversed: bool) -> None:
    generator = np.random.default_rng(21)
    values = generator.normal(size=dims)
    kinds = (np.float32, np.float64, np.int32, np.complex64, Shape.scalar("bf16").type.dtype)
    arguments = [values.astype(kind) for kind in kinds] + [values > 0.5]

    def build(builder: XlaBuilder, p: list[XlaOp]) -> list[XlaOp]:
        *numbers, flags = p
        results = [scanned(operand, ops.Add, 0, len(dims) - 2, is_reversed=is_reversed) for operand in numbers]
        return [*results, scanned(flags, ops.Or, False, len(dims) - 2, is_reversed=is_reversed)]

    run_both(build, arguments)


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(("dims", "dim"), [((100_003,), 0), ((2, 20_000), 1), ((20_000, 3), 0), ((5_000, 600), 0)])
def test_errors_of_long_scanned_sums_do_not_add_up(dims: tuple[int, ...], dim: int, is_reversed: bool) -> None:
    numbers = np.random.default_rng(26).uniform(-0.5, 1, dims)
    for kind, exact in ((np.float32, np.float64), (np.complex64, np.complex128)):
        values = (numbers * (1 - 2j) if kind == np.complex64 else numbers).astype(kind)
        builder = XlaBuilder("scan")
        operand = builder.parameter(0, Shape.of(values))
        executable = xlapy.compile(builder.build(scanned(operand, ops.Add, 0, dim, is_reversed=is_reversed)))
        found = executable(values)
        for threads in (2, 3, 8):
            np.testing.assert_array_equal(on_threads(executable, threads)(values), found)
        turned = np.flip(values, dim) if is_reversed else values
        sums = np.cumsum(turned.astype(exact), axis=dim)
        error = np.abs((np.flip(found, dim) if is_reversed else found) - sums)
        assert error.max() < 4e-7 * np.abs(sums).max()


@pytest.mark.parametrize("dim", [0, 1])
def test_long_scanned_sums_of_what_is_not_finite(dim: int) -> None:
    """Infinities stay, and opposite ones are NaN; negative zeros are one as long as nothing else came."""
    lines = np.ones((6, 3000), np.float32)
    lines[0, 500], lines[1, 2999], lines[2, 1700], lines[3, [100, 2000]] = np.inf, -np.inf, np.nan, [np.inf, -np.inf]
    lines[4], lines[5] = -0.0, np.where(np.arange(3000) % 1500 == 0, np.finfo(np.float32).max, 0)
    if dim == 0:
        lines = np.repeat(lines.T, 9, axis=1)
    for init in (0.0, -0.0):
        (found,) = run_both(lambda builder, p, init=init: [scanned(p[0], ops.Add, np.float32(init), dim)], [lines])
        with np.errstate(over="ignore", invalid="ignore"):
            expected = np.cumsum(np.concatenate([np.full_like(lines.take([0], dim), init), lines], dim), dim)
        expected = np.delete(expected, 0, dim)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(expected)[~np.isnan(found)])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_scans_make_what_they_fold_and_what_follows(dim: int, is_reversed: bool) -> None:
    generator = np.random.default_rng(24)
    values = generator.normal(size=(40, 203))
    arguments = [values.astype(kind) for kind in (np.float32, np.float64, Shape.scalar("bf16").type.dtype)]

    def build(builder: XlaBuilder, p: list[XlaOp]) -> list[XlaOp]:
        whole = [-scanned(x * x, ops.Add, 0, dim, is_reversed=is_reversed) for x in p]
        return [*whole, abs(scanned(-p[0], ops.Max, -np.inf, dim, is_reversed=is_reversed)) + p[0]]

    run_both(build, arguments)


def test_a_scan_is_one_kernel_with_what_it_folds() -> None:
    values = np.random.default_rng(25).normal(size=(600, 500)).astype(np.float32)
    builder = XlaBuilder("scan")
    operand = builder.parameter(0, Shape.of(values))
    computation = builder.build(scanned(1 + operand / 1000, ops.Mul, 1, 1) * 2)
    executable = xlapy.compile(computation)
    entry = executable.hlo_text().split("ENTRY")[1]
    assert entry.count("fusion(") == 1 and "reduce-window" not in entry
    runs = [on_threads(executable, threads)(values) for threads in (1, 2, 3, 8)]
    for other in runs[1:]:
        np.testing.assert_array_equal(other, runs[0])
    np.testing.assert_allclose(runs[0], 2 * np.cumprod(1 + values / 1000, 1), rtol=1e-4)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_scans_for_the_largest_and_smallest_floats(is_reversed: bool) -> None:
    """NaNs reach all that follows, and 0 is more than -0, in vectors and in what is left over."""
    generator = np.random.default_rng(22)
    for kind in (np.float32, np.float64, np.float16):
        lines = np.round(generator.normal(size=(6, 1003)) * 2).astype(kind)
        lines[1, 500] = lines[2, 1001] = lines[3, 3] = np.nan
        lines[3, 700], lines[4, ::7], lines[4, ::5] = -np.nan, np.inf, -np.inf
        lines[5] = np.where(np.arange(1003) % 40 < 20, -0.0, 0.0)
        largest, smallest = run_both(
            lambda builder, p: [
                scanned(p[0], ops.Max, -np.inf, 1, is_reversed=is_reversed),
                scanned(p[0], ops.Min, np.inf, 1, is_reversed=is_reversed),
            ],
            [lines],
        )
        turned = lines[:, ::-1] if is_reversed else lines
        for found, fold in ((largest, np.maximum), (smallest, np.minimum)):
            expected = fold.accumulate(turned, axis=1)
            np.testing.assert_array_equal(found[:, ::-1] if is_reversed else found, expected)
        signs = np.signbit((largest[:, ::-1] if is_reversed else largest)[5])
        has_zero = np.logical_or.accumulate(~np.signbit(turned[5]))
        np.testing.assert_array_equal(signs, ~has_zero)


def test_large_scans_bypass_the_caches_and_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: replaced(host_target(), l3_bytes=0))
    generator = np.random.default_rng(23)
    for dims, dim in (((2080, 2048), 0), ((2080, 2048), 1), ((2080, 2051), 0), ((2080, 2051), 1)):
        values = generator.integers(-9, 9, dims).astype(np.float32)
        builder = XlaBuilder("scan")
        operand = builder.parameter(0, Shape.of(values))
        computation = builder.build(scanned(operand, ops.Add, 0, dim))
        executable, expected = xlapy.compile(computation), np.cumsum(values, axis=dim)
        for threads in (1, 2, 3, 8):
            np.testing.assert_array_equal(on_threads(executable, threads)(values), expected)


# -- threads -----------------------------------------------------------------------------------------------------------


EDGES: dict[str, tuple[list[int], list[int], list[int], list[int], list[tuple[int, int]]]] = {
    "both sides": ([1, 9], [1, 1], [1, 1], [1, 1], [(0, 0), (4, 4)]),
    "every second place": ([1, 3], [1, 2], [1, 1], [1, 1], [(0, 0), (1, 1)]),
    "one side": ([1, 5], [1, 1], [1, 1], [1, 1], [(0, 0), (0, 4)]),
    "wide": ([1, 40], [1, 1], [1, 1], [1, 1], [(0, 0), (30, 20)]),
    "squares": ([3, 3], [2, 2], [1, 1], [1, 1], [(1, 1), (1, 1)]),
    "dilated": ([1, 4], [1, 1], [1, 1], [1, 3], [(0, 0), (7, 5)]),
    "holes": ([1, 4], [1, 1], [1, 2], [1, 1], [(0, 0), (3, 3)]),
    "farther than the array": ([1, 300], [1, 1], [1, 1], [1, 1], [(0, 0), (250, 250)]),
    "cut off": ([1, 4], [1, 1], [1, 1], [1, 1], [(0, 0), (-3, 5)]),
}


@pytest.mark.parametrize("kind", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("window", EDGES)
def test_rows_whose_ends_are_folded_apart(window: str, kind: str) -> None:
    array = np.random.default_rng(1).integers(0, 100, (24, 241)).astype(kind)
    run_both(
        lambda builder, p: [
            ops.ReduceWindowWithGeneralPadding(p[0], 3, combine, *EDGES[window]) for combine in (ops.Add, ops.Max)
        ],
        [array],
    )


def test_results_do_not_depend_on_threads() -> None:
    generator = np.random.default_rng(11)
    arguments = [random_array(generator, Shape.array("f32", dims)) for dims in ((2, 30, 30, 16), (3, 3, 16, 32))]
    builder = XlaBuilder("threads")
    image, kernel = (builder.parameter(number, Shape.of(value)) for number, value in enumerate(arguments))
    labels = ("NHWC", "HWIO", "NHWC")
    computation = builder.build(
        ops.Tuple(
            builder,
            [
                ops.ConvGeneral(image, kernel, [1, 1], "SAME", labels),
                ops.ReduceWindow(image, 0, ops.Add, [1, 5, 5, 1], [1, 1, 1, 1], "SAME"),
                ops.ReduceWindow(image, 0, ops.Add, [1, 30, 1, 1], None, [(0, 0), (29, 0), (0, 0), (0, 0)]),
            ],
        )
    )
    runs = [xlapy.compile(computation, xlapy.CompileOptions(num_threads=threads))(*arguments) for threads in (1, 2, 3)]
    for other in runs[1:]:
        for one, same in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


# -- batch normalization -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32", "f64"])
def test_batch_normalization(kind: str) -> None:
    generator = np.random.default_rng(13)
    arguments = [
        random_array(generator, Shape.array(kind, dims)) for dims in ((4, 5, 6), (5,), (5,), (5,), (5,), (4, 5, 6))
    ]
    arguments[4] = np.abs(arguments[4])

    def build(builder: XlaBuilder, p: list[XlaOp]) -> list[XlaOp]:
        training = ops.BatchNormTraining(p[0], p[1], p[2], 1e-3, 1)
        gradients = ops.BatchNormGrad(p[0], p[1], p[3], p[4], p[5], 1e-1, 1)
        inference = ops.BatchNormInference(p[0], p[1], p[2], p[3], p[4], 1e-1, 1)
        return [*(training[n] for n in range(3)), *(gradients[n] for n in range(3)), inference]

    run_both(build, arguments)


# -- bounded sizes -----------------------------------------------------------------------------------------------------

BOUNDED = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[<=9,2] parameter(0)
  p = f32[<=3,<=7,2] parameter(1)
  k = f32[3,2,4] parameter(2)
  z = f32[] constant(0)
  r = f32[<=5,2] reduce-window(x, z), window={size=3x1 stride=2x1 pad=1_2x0_0}, to_apply=add
  c = f32[<=3,<=13,4] convolution(p, k), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f
  ROOT t = (f32[<=5,2], f32[<=3,<=13,4]) tuple(r, c)
}"""


def test_windows_stop_at_the_size_of_a_bounded_dimension() -> None:
    module = parse(BOUNDED)
    executable = xlapy.compile(module)
    generator = np.random.default_rng(19)
    for size in (0, 1, 2, 5, 9):
        for batch, length in ((0, 3), (3, 7), (2, 0), (1, 1), (2, 5)):
            shapes = [Shape.array("f32", dims) for dims in ((size, 2), (batch, length, 2), (3, 2, 4))]
            arguments = [random_array(generator, shape) for shape in shapes]
            check_same(executable(*arguments), xlapy.evaluate(module, *arguments))


@pytest.mark.parametrize("kind", ["u8", "s8", "s16", "bf16", "pred"])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("at_end", [False, True])
def test_narrow_elements_some_apart_of_windows_that_hang_over(kind: str, stride: int, at_end: bool) -> None:
    """Lanes are picked out of vectors, of which nothing is read that lies beside the array."""
    for columns in (5, 31, 32, 33, 64, 130):
        dtype = element_type_named(kind).dtype
        values = np.random.default_rng(columns).integers(0, 2 if kind == "pred" else 9, (3, 6, columns)).astype(dtype)
        x = read_only(values, at_end=at_end)
        places = -(-columns // stride)
        total = max(0, (places - 1) * stride + 3 - columns)
        combined = "or" if kind == "pred" else "add"
        text = f"""HloModule m
          fold {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)  ROOT s = {kind}[] {combined}(a, b) }}
          ENTRY e {{ x = {kind}[3,6,{columns}] parameter(0)  z = {kind}[] constant({"false" if kind == "pred" else 0})
            ROOT w = {kind}[3,6,{places}] reduce-window(x, z), to_apply=fold,
              window={{size=1x3x3 stride=1x1x{stride} pad=0_0x1_1x{total // 2}_{total - total // 2}}} }}"""
        check_same(xlapy.compile(text)(x), xlapy.evaluate(text, x))
