"""Native convolutions, windows, selections and scans against the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.builder.examples import WINDOWS, Example
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
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse
from xlapy_runtime.records import replaced

TOLERANCES = {
    "bfloat16": 0.02,
    "float16": 0.004,
    "float32": 2e-4,
    "float64": 1e-9,
    "complex64": 1e-4,
    "complex128": 1e-9,
}


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def check_same(got: Any, wanted: Any) -> None:
    for one, other in zip(leaves(got), leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        tolerance = TOLERANCES.get(
            str(other.dtype), 0.3 if other.dtype.itemsize == 1 and other.dtype.kind == "V" else 0
        )
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance)


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
    runs = []
    for threads in (1, 2, 3, 8):
        executable = xlapy.compile(computation, xlapy.CompileOptions(num_threads=threads))
        entry = executable.hlo_text().split("ENTRY")[1]
        assert entry.count("fusion(") == 1 and "reduce-window" not in entry
        runs.append(executable(values))
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
        for threads in (1, 2, 3, 8):
            found = xlapy.compile(computation, xlapy.CompileOptions(num_threads=threads))(values)
            np.testing.assert_array_equal(found, np.cumsum(values, axis=dim))


# -- threads -----------------------------------------------------------------------------------------------------------


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


# -- convolutions as matrix products -----------------------------------------------------------------------------------

PRODUCTS = {
    "short rows, features first": """
      x = f32[8,32,7,7] parameter(0)
      k = f32[24,32,3,3] parameter(1)
      ROOT c = f32[8,24,7,7] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01""",
    "features last": """
      x = f32[3,15,14,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "stride, uneven padding": """
      x = f32[3,31,27,24] parameter(0)
      k = f32[3,5,24,33] parameter(1)
      ROOT c = f32[3,16,10,33] convolution(x, k),
        window={size=3x5 stride=2x3 pad=0_2x4_1}, dim_labels=b01f_01io->b01f""",
    "negative padding": """
      x = f32[3,31,37,24] parameter(0)
      k = f32[3,2,24,33] parameter(1)
      ROOT c = f32[3,25,38,33] convolution(x, k),
        window={size=3x2 pad=-3_-1x-2_4}, dim_labels=b01f_01io->b01f""",
    "reversed, with holes": """
      x = f32[3,20,21,36] parameter(0)
      k = f32[3,2,36,24] parameter(1)
      ROOT c = f32[3,20,20,24] convolution(x, k),
        window={size=3x2 pad=2_2x1_1 rhs_dilate=2x3 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f""",
    "reversed, with holes, many features": """
      x = f32[2,20,21,68] parameter(0)
      k = f32[3,2,68,24] parameter(1)
      ROOT c = f32[2,20,20,24] convolution(x, k),
        window={size=3x2 pad=2_2x1_1 rhs_dilate=2x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f""",
    "reversed lines, far outside": """
      x = f32[2,12,11,64] parameter(0)
      k = f32[3,3,64,72] parameter(1)
      ROOT c = f32[2,16,14,72] convolution(x, k),
        window={size=3x3 stride=1x2 pad=3_3x9_9 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f""",
    "rows too long for one region": """
      x = f32[1,3,600,256] parameter(0)
      k = f32[2,2,256,24] parameter(1)
      ROOT c = f32[1,2,601,24] convolution(x, k),
        window={size=2x2 pad=0_0x1_1}, dim_labels=b01f_01io->b01f""",
    "stride beyond the window": """
      x = f32[4,26,29,64] parameter(0)
      k = f32[2,2,64,40] parameter(1)
      ROOT c = f32[4,9,8,40] convolution(x, k),
        window={size=2x2 stride=3x4 pad=1_0x0_1}, dim_labels=b01f_01io->b01f""",
    "groups": """
      x = f32[3,15,14,48] parameter(0)
      k = f32[3,3,16,96] parameter(1)
      ROOT c = f32[3,15,14,96] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3""",
    "one dimension": """
      x = f32[5,200,64] parameter(0)
      k = f32[7,64,32] parameter(1)
      ROOT c = f32[5,200,32] convolution(x, k),
        window={size=7 pad=3_3}, dim_labels=b0f_0io->b0f""",
    "three dimensions": """
      x = f32[2,7,9,8,16] parameter(0)
      k = f32[3,2,3,16,32] parameter(1)
      ROOT c = f32[2,7,9,8,32] convolution(x, k),
        window={size=3x2x3 pad=1_1x1_0x1_1}, dim_labels=b012f_012io->b012f""",
    "gradient of a kernel": """
      x = f32[8,20,21,50] parameter(0)
      k = f32[8,20,21,40] parameter(1)
      ROOT c = f32[3,5,50,40] convolution(x, k),
        window={size=20x21 pad=1_1x2_2}, dim_labels=f01b_i01o->01bf""",
    "dilated input": """
      x = f32[4,13,12,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[4,26,24,40] convolution(x, k),
        window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f""",
    "batch inside": """
      x = f32[12,15,32,14] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[12,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=01fb_01io->01bf""",
    "mixed orders": """
      x = f32[13,5,14,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[5,14,13,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=0b1f_10io->b10f""",
    "f64": """
      x = f64[3,15,14,32] parameter(0)
      k = f64[3,3,32,40] parameter(1)
      ROOT c = f64[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "bf16": """
      x = bf16[3,15,14,32] parameter(0)
      k = bf16[3,3,32,40] parameter(1)
      ROOT c = bf16[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "f16, short rows": """
      x = f16[8,32,7,7] parameter(0)
      k = f16[24,32,3,3] parameter(1)
      ROOT c = f16[8,24,7,7] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01""",
    "s32": """
      x = s32[3,15,14,32] parameter(0)
      k = s32[3,3,32,40] parameter(1)
      ROOT c = s32[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "s64": """
      x = s64[3,15,14,32] parameter(0)
      k = s64[3,3,32,40] parameter(1)
      ROOT c = s64[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "s8 with sums of 32 bits": """
      x = s8[3,15,14,32] parameter(0)
      k = s8[3,3,32,40] parameter(1)
      ROOT c = s32[3,15,14,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "few input features, stride": """
      x = f32[2,61,64,3] parameter(0)
      k = f32[7,7,3,40] parameter(1)
      ROOT c = f32[2,31,32,40] convolution(x, k),
        window={size=7x7 stride=2x2 pad=3_3x3_2}, dim_labels=b01f_01io->b01f""",
    "one input feature": """
      x = f32[9,28,27,1] parameter(0)
      k = f32[3,3,1,32] parameter(1)
      ROOT c = f32[9,28,27,32] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "few input features, reversed, with holes": """
      x = f32[9,30,31,2] parameter(0)
      k = f32[4,3,2,33] parameter(1)
      ROOT c = f32[9,25,29,33] convolution(x, k),
        window={size=4x3 pad=2_2x2_2 rhs_dilate=3x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f""",
    "few input features, reversed lines, far outside": """
      x = f32[2,12,51,5] parameter(0)
      k = f32[3,3,5,72] parameter(1)
      ROOT c = f32[2,16,34,72] convolution(x, k),
        window={size=3x3 stride=1x2 pad=3_3x9_9 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f""",
    "few input features in long lines": """
      x = f32[1,3,9000,3] parameter(0)
      k = f32[2,3,3,24] parameter(1)
      ROOT c = f32[1,2,9000,24] convolution(x, k),
        window={size=2x3 pad=0_0x1_1}, dim_labels=b01f_01io->b01f""",
    "few input features of groups": """
      x = f32[3,35,34,6] parameter(0)
      k = f32[3,3,2,96] parameter(1)
      ROOT c = f32[3,35,34,96] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3""",
    "few input features, one dimension": """
      x = f64[5,400,4] parameter(0)
      k = f64[9,4,32] parameter(1)
      ROOT c = f64[5,400,32] convolution(x, k),
        window={size=9 pad=4_4}, dim_labels=b0f_0io->b0f""",
    "few input features, three dimensions": """
      x = s32[2,9,12,13,3] parameter(0)
      k = s32[3,2,3,3,32] parameter(1)
      ROOT c = s32[2,9,12,13,32] convolution(x, k),
        window={size=3x2x3 pad=1_1x1_0x1_1}, dim_labels=b012f_012io->b012f""",
    "more features than positions": """
      x = f32[1,7,7,96] parameter(0)
      k = f32[3,3,96,176] parameter(1)
      ROOT c = f32[1,7,7,176] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "more features than positions, groups": """
      x = f64[2,9,8,144] parameter(0)
      k = f64[3,2,72,208] parameter(1)
      ROOT c = f64[2,5,9,208] convolution(x, k),
        window={size=3x2 stride=2x1 pad=2_2x1_3 rhs_dilate=2x3 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f,
        feature_group_count=2""",
    "more features than positions, mixed orders": """
      x = s32[5,3,6,64] parameter(0)
      k = s32[3,3,64,130] parameter(1)
      ROOT c = s32[6,3,5,130] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=0b1f_10io->1b0f""",
    "more features than positions, large kernel": """
      x = f32[1,5,6,256] parameter(0)
      k = f32[3,3,256,1024] parameter(1)
      ROOT c = f32[1,5,6,1024] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_convolution_by_the_matrix_product_library(name: str) -> None:
    text = f"HloModule m\nENTRY main {{{PRODUCTS[name]}\n}}"
    generator = np.random.default_rng(len(name))
    arguments = [random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters]
    compiled = xlapy.compile(text)
    assert "_windows" in compiled.llvm_ir()
    check_same(compiled(*arguments), xlapy.evaluate(text, *arguments))


@pytest.mark.parametrize("name", [name for name in PRODUCTS if name.startswith("more features than positions")])
def test_convolutions_of_few_positions_do_not_depend_on_threads(name: str) -> None:
    text = f"HloModule m\nENTRY main {{{PRODUCTS[name]}\n}}"
    generator = np.random.default_rng(2)
    arguments = [random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters]
    results = [
        xlapy.compile(text, xlapy.CompileOptions(num_threads=count))(*arguments).tobytes() for count in (1, 2, 3, 8)
    ]
    assert len(set(results)) == 1


def with_epilogue(text: str, behind: str) -> str:
    """The program with something behind its convolution; `T[]` and `P[]` are its shape, and the same of predicates."""
    program = parse(f"HloModule m\nENTRY main {{{text}\n}}")
    shape = program.entry.root.shape.without_layout()
    words = {"P[]": str(shape.with_type(PRED)), "T[]": str(shape)}
    for word, meaning in words.items():
        behind = behind.replace(word, meaning)
    return f"HloModule m\nENTRY main {{{text.replace('ROOT c', 'c')}\n{behind}\n}}"


@pytest.mark.parametrize("name", PRODUCTS)
def test_convolutions_and_what_is_behind_them(name: str) -> None:
    text = with_epilogue(PRODUCTS[name], "a = T[] abs(c)  ROOT m = T[] maximum(a, c)")
    generator = np.random.default_rng(len(name))
    arguments = [random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters]
    alone = f"HloModule m\nENTRY main {{{PRODUCTS[name]}\n}}"
    compiled = [xlapy.compile(program, xlapy.CompileOptions(num_threads=2)) for program in (alone, text)]
    moves_elements = name in ("short rows, features first", "f16, short rows", "dilated input")
    assert ("kind=kCustom" in compiled[1].hlo_text()) != moves_elements
    product, got = (np.asarray(executable(*arguments)) for executable in compiled)
    assert got.tobytes() == np.maximum(np.abs(product), product).tobytes()


@pytest.mark.parametrize(
    "name",
    [
        "features last",
        "one input feature",
        "gradient of a kernel",
        "groups",
        "more features than positions",
        "bf16",
    ],
)
def test_epilogues_do_not_hide_special_numbers(name: str) -> None:
    """What is summed again has its epilogue again, and whether it must be shows before the first one."""
    behind = "f = P[] is-finite(c)  z = T[] convert(f)  ROOT s = T[] select(f, c, z)"
    text = with_epilogue(PRODUCTS[name], behind)
    generator = np.random.default_rng(3)
    image, kernel = (random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters)
    kernel[(0,) * kernel.ndim] = np.inf
    compiled = xlapy.compile(text)
    assert "kind=kCustom" in compiled.hlo_text()
    check_same(compiled(image, kernel), xlapy.evaluate(text, image, kernel))


@pytest.mark.parametrize(
    "name",
    [
        "features last",
        "few input features, stride",
        "short rows, features first",
        "gradient of a kernel",
        "groups",
        "more features than positions, groups",
        "more features than positions, large kernel",
        "bf16",
    ],
)
def test_special_numbers_do_not_meet_what_lies_outside(name: str) -> None:
    text = f"HloModule m\nENTRY main {{{PRODUCTS[name]}\n}}"
    generator = np.random.default_rng(3)
    image, kernel = (random_array(generator, parameter.shape) for parameter in parse(text).entry.parameters)
    for special in (np.inf, np.nan):
        kernel[(0,) * kernel.ndim] = special
        got, wanted = xlapy.compile(text)(image, kernel), xlapy.evaluate(text, image, kernel)
        assert 0 < np.isfinite(wanted.astype(np.float32)).mean() < 1
        check_same(got, wanted)


# -- select-and-scatter ------------------------------------------------------------------------------------------------

SELECTIONS = {
    "blocks of overlapping rows": ((2, 70, 9, 16), (1, 3, 3, 1), (1, 2, 2, 1), (0, 0), (0, 1)),
    "each row in several windows": ((1, 90, 7, 8), (1, 5, 2, 1), (1, 1, 1, 1), (3, 2), (0, 0)),
    "tiles": ((1, 80, 6, 16), (1, 2, 2, 1), (1, 2, 2, 1), (0, 0), (0, 0)),
    "tiles over the edges": ((3, 65, 5, 8), (1, 2, 2, 1), (1, 2, 2, 1), (1, 0), (0, 1)),
    "gaps": ((1, 75, 7, 16), (1, 2, 1, 1), (1, 3, 2, 1), (0, 0), (1, 1)),
    "windows beside the array": ((1, 40, 6, 8), (1, 2, 2, 1), (1, 1, 1, 1), (9, 9), (5, 1)),
    "cut edges": ((1, 60, 8, 8), (1, 2, 2, 1), (1, 2, 2, 1), (-5, -4), (-1, 0)),
    "no lanes": ((2, 3, 40, 12), (1, 1, 3, 3), (1, 1, 2, 2), (0, 0), (0, 0)),
    "free dimensions inside": ((40, 5, 3, 8), (2, 3, 1, 1), (2, 2, 1, 1), (1, 1), (0, 1)),
}
"""The array, sizes and strides of the window, and the padding of its dimensions 1 and 2 (0 and 1 for the last case)."""


@pytest.mark.parametrize("case", SELECTIONS)
@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
def test_selections_by_blocks_of_rows(case: str, kind: str) -> None:
    """The same bits as the reference, with one thread and with three: each element is updated in the same order."""
    dims, sizes, strides, *paddings = SELECTIONS[case]
    axes = (0, 1) if case == "free dimensions inside" else (1, 2)
    padding = [(0, 0)] * 4
    for axis, each in zip(axes, paddings, strict=True):
        padding[axis] = each
    counts = [
        (size + low + high - window) // stride + 1
        for size, window, stride, (low, high) in zip(dims, sizes, strides, padding, strict=True)
    ]
    generator = np.random.default_rng(len(case))
    few = generator.integers(-2, 3, dims)  # many are equal
    operand = np.where(generator.random(dims) < 0.02, np.nan, few).astype(Shape.scalar(kind).type.dtype)
    source = random_array(generator, Shape.array(kind, counts))
    builder = XlaBuilder("selection")
    parameters = [builder.parameter(number, Shape.of(value)) for number, value in enumerate((operand, source))]
    computation = builder.build(
        ops.SelectAndScatter(parameters[0], ops.Ge, sizes, strides, padding, parameters[1], 0.25, ops.Add)
    )
    wanted = xlapy.evaluate(computation, operand, source)
    for threads in (1, 3):
        got = xlapy.compile(computation, xlapy.CompileOptions(num_threads=threads))(operand, source)
        np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def padded_selection(kind: str, dims: tuple[int, ...], lows: tuple[int, ...], cuts: tuple[int, ...]) -> HloModule:
    """A selection over an array with `lows` elements of padding in front of each dimension and one behind the first
    two, of whose result `cuts` elements are dropped in front of each dimension, and one behind the first two."""
    highs = (1, 1, *(0 for _ in dims[2:]))
    padded = [low + size + high for low, size, high in zip(lows, dims, highs, strict=True)]
    windows, strides = (3, 2, *(1 for _ in dims[2:])), (2, 2, *(1 for _ in dims[2:]))
    counts = [(size - window) // stride + 1 for size, window, stride in zip(padded, windows, strides, strict=True)]
    kept = [(cut, size - high) for cut, size, high in zip(cuts, padded, highs, strict=True)]
    listed = [",".join(map(str, sizes)) for sizes in (dims, counts, padded, [end - begin for begin, end in kept])]
    x, source, whole, result = (f"{kind}[{sizes}]" for sizes in listed)
    return parse(f"""HloModule m
      ge {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }}
      add {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)  ROOT s = {kind}[] add(a, b) }}
      ENTRY main {{
        x = {x} parameter(0)
        source = {source} parameter(1)
        beside = {kind}[] constant(0.5)
        p = {whole} pad(x, beside), padding={"x".join(f"{low}_{high}" for low, high in zip(lows, highs, strict=True))}
        init = {kind}[] constant(2)
        s = {whole} select-and-scatter(p, source, init), select=ge, scatter=add,
          window={{size={"x".join(map(str, windows))} stride={"x".join(map(str, strides))}}}
        ROOT r = {result} slice(s), slice={{{", ".join(f"[{begin}:{end}]" for begin, end in kept)}}}
      }}""")


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
@pytest.mark.parametrize(
    ("dims", "lows", "cuts"),
    [
        ((70, 6, 16), (0, 0, 0), (0, 0, 0)),
        ((70, 6, 16), (2, 1, 0), (2, 1, 0)),
        ((41, 5, 8), (1, 3, 0), (5, 0, 0)),
        ((41, 5, 3), (1, 2, 0), (0, 3, 0)),
        ((40, 6, 7), (0, 1, 1), (3, 1, 2)),
        ((37, 9), (1, 1), (1, 1)),
    ],
)
def test_selections_with_what_lies_beside_the_array(
    dims: tuple[int, ...], lows: tuple[int, ...], cuts: tuple[int, ...], kind: str
) -> None:
    """Padding may be selected, and then nothing of that is in the result; in one kernel, with the same bits."""
    module = padded_selection(kind, dims, lows, cuts)
    generator = np.random.default_rng(sum(dims))
    few = np.where(generator.random(dims) < 0.02, np.nan, generator.integers(-2, 3, dims))
    operand = few.astype(Shape.scalar(kind).type.dtype)
    source = random_array(generator, module.entry.parameters[1].shape)
    wanted = xlapy.evaluate(module, operand, source)
    for threads in (1, 3):
        executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=threads))
        assert "s.fusion" in executable.hlo_text()
        np.testing.assert_array_equal(executable(operand, source).view(np.uint8), wanted.view(np.uint8))
