"""Convolutions, and gradients of kernels, whose tiles of the matrix unit read copied regions, f32 in planes of bf16."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.libraries import gemm
from xlapy.codegen.libraries.gemm_types import UNIT_TYPES, unit_name
from xlapy.codegen.target import Target, host_target, reference_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.graph import HloModule
from xlapy.hlo.matrix_products import library_product
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions

Array = np.ndarray[Any, Any]

KIND = UNIT_TYPES["amx_f32"]
WITH_A_UNIT = pytest.mark.skipif(not KIND.is_on(host_target()), reason="this machine has no matrix unit for bf16")

CONVOLUTIONS = {
    "rows of a tile and more": """
      x = f32[2,15,34,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      ROOT c = f32[2,15,34,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "several strips and lines of features": """
      x = f32[3,9,7,96] parameter(0)
      k = f32[3,3,96,72] parameter(1)
      ROOT c = f32[3,9,7,72] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "lines that features do not fill": """
      x = f32[2,15,34,24] parameter(0)
      k = f32[3,3,24,40] parameter(1)
      ROOT c = f32[2,15,34,40] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "lines that features of groups do not fill, strides": """
      x = f32[3,31,33,100] parameter(0)
      k = f32[3,3,50,72] parameter(1)
      ROOT c = f32[3,16,17,72] convolution(x, k),
        window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2""",
    "strides": """
      x = f32[2,31,33,64] parameter(0)
      k = f32[3,3,64,32] parameter(1)
      ROOT c = f32[2,16,17,32] convolution(x, k),
        window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "strides beyond the window": """
      x = f32[4,26,29,64] parameter(0)
      k = f32[2,2,64,40] parameter(1)
      ROOT c = f32[4,9,8,40] convolution(x, k),
        window={size=2x2 stride=3x4 pad=1_0x0_1}, dim_labels=b01f_01io->b01f""",
    "reversed, with holes": """
      x = f32[2,20,21,64] parameter(0)
      k = f32[3,2,64,24] parameter(1)
      ROOT c = f32[2,20,20,24] convolution(x, k),
        window={size=3x2 pad=2_2x1_1 rhs_dilate=2x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f""",
    "reversed lines with holes, stride, far outside": """
      x = f32[2,12,11,64] parameter(0)
      k = f32[3,3,64,72] parameter(1)
      ROOT c = f32[2,16,13,72] convolution(x, k),
        window={size=3x3 stride=1x2 pad=3_3x9_9 rhs_dilate=1x2 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f""",
    "negative padding": """
      x = f32[2,30,31,32] parameter(0)
      k = f32[3,3,32,72] parameter(1)
      ROOT c = f32[2,26,17,72] convolution(x, k),
        window={size=3x3 stride=1x2 pad=-1_-1x3_3 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f""",
    "groups": """
      x = f32[3,15,14,96] parameter(0)
      k = f32[3,3,32,132] parameter(1)
      ROOT c = f32[3,15,14,132] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3""",
    "one dimension": """
      x = f32[5,200,64] parameter(0)
      k = f32[7,64,40] parameter(1)
      ROOT c = f32[5,200,40] convolution(x, k),
        window={size=7 pad=3_3}, dim_labels=b0f_0io->b0f""",
    "three dimensions": """
      x = f32[2,7,9,8,32] parameter(0)
      k = f32[3,2,3,32,32] parameter(1)
      ROOT c = f32[2,7,9,8,32] convolution(x, k),
        window={size=3x2x3 pad=1_1x1_0x1_1}, dim_labels=b012f_012io->b012f""",
    "three dimensions with strides": """
      x = f32[1,9,12,11,32] parameter(0)
      k = f32[3,2,3,32,48] parameter(1)
      ROOT c = f32[1,5,6,3,48] convolution(x, k),
        window={size=3x2x3 stride=2x2x3 pad=1_1x0_0x1_1 rhs_dilate=1x1x2}, dim_labels=b012f_012io->b012f""",
    "more of a kernel than a panel has": """
      x = f32[1,6,5,512] parameter(0)
      k = f32[3,3,512,544] parameter(1)
      ROOT c = f32[1,6,5,544] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "rows too long for one region": """
      x = f32[1,3,600,256] parameter(0)
      k = f32[2,2,256,24] parameter(1)
      ROOT c = f32[1,2,601,24] convolution(x, k),
        window={size=2x2 pad=0_0x1_1}, dim_labels=b01f_01io->b01f""",
    "columns by threads": """
      x = f32[2,5,6,64] parameter(0)
      k = f32[3,3,64,200] parameter(1)
      ROOT c = f32[2,5,6,200] convolution(x, k),
        window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
    "columns by threads, lines that features do not fill, strides": """
      x = f32[3,9,11,72] parameter(0)
      k = f32[3,2,72,133] parameter(1)
      ROOT c = f32[3,5,5,133] convolution(x, k),
        window={size=3x2 stride=2x2 pad=1_1x0_0}, dim_labels=b01f_01io->b01f""",
    "columns by threads, those of groups": """
      x = f32[3,4,5,192] parameter(0)
      k = f32[3,3,96,300] parameter(1)
      ROOT c = f32[3,4,5,300] convolution(x, k),
        window={size=3x3 pad=1_1x2_2 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f, feature_group_count=2""",
    "columns by threads, each contiguous, reversed": """
      x = f32[2,6,5,96] parameter(0)
      k = f32[160,3,3,96] parameter(1)
      ROOT c = f32[2,6,5,160] convolution(x, k),
        window={size=3x3 pad=2_0x1_1 rhs_reversal=1x1}, dim_labels=b01f_o01i->b01f""",
    "columns by threads, three dimensions": """
      x = f32[1,4,5,6,64] parameter(0)
      k = f32[2,3,3,64,100] parameter(1)
      ROOT c = f32[1,3,5,6,100] convolution(x, k),
        window={size=2x3x3 pad=0_0x1_1x1_1}, dim_labels=b012f_012io->b012f""",
    "columns by threads, groups of images, and what follows": """
      x = f32[9,9,9,448] parameter(0)
      k = f32[3,3,448,168] parameter(1)
      c = f32[9,9,9,168] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
      ROOT r = f32[9,9,9,168] negate(c)""",
    "gradient": """
      x = f32[3,12,13,32] parameter(0)
      k = f32[3,12,13,40] parameter(1)
      ROOT c = f32[3,3,32,40] convolution(x, k),
        window={size=12x13 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf""",
    "gradient of many images": """
      x = f32[9,14,14,96] parameter(0)
      k = f32[9,14,14,70] parameter(1)
      ROOT c = f32[3,3,96,70] convolution(x, k),
        window={size=14x14 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf""",
    "gradient, stride, with holes": """
      x = f32[3,52,55,32] parameter(0)
      k = f32[3,25,29,33] parameter(1)
      ROOT c = f32[3,2,32,33] convolution(x, k),
        window={size=25x29 stride=2x3 pad=2_-1x0_5 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf""",
    "gradient, far outside": """
      x = f32[5,20,40,32] parameter(0)
      k = f32[5,14,31,72] parameter(1)
      ROOT c = f32[7,4,32,72] convolution(x, k),
        window={size=14x31 pad=-3_3x-9_3}, dim_labels=f01b_i01o->01bf""",
    "gradient, more of an image than a region has room for": """
      x = f32[1,60,90,128] parameter(0)
      k = f32[1,60,90,12] parameter(1)
      ROOT c = f32[3,3,128,12] convolution(x, k),
        window={size=60x90 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf""",
    "gradient, one dimension": """
      x = f32[9,300,32] parameter(0)
      k = f32[9,300,64] parameter(1)
      ROOT c = f32[5,32,64] convolution(x, k),
        window={size=300 pad=3_1}, dim_labels=f0b_i0o->0bf""",
    "gradient, three dimensions": """
      x = f32[3,5,6,30,32] parameter(0)
      k = f32[3,5,6,30,32] parameter(1)
      ROOT c = f32[2,3,3,32,32] convolution(x, k),
        window={size=5x6x30 pad=1_0x1_1x1_1}, dim_labels=f012b_i012o->012bf""",
    "what follows a gradient": """
      x = f32[5,12,13,64] parameter(0)
      k = f32[5,12,13,40] parameter(1)
      c = f32[3,3,64,40] convolution(x, k), window={size=12x13 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf
      ROOT r = f32[3,3,64,40] negate(c)""",
    "what follows": """
      x = f32[2,15,34,32] parameter(0)
      k = f32[3,3,32,40] parameter(1)
      c = f32[2,15,34,40] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
      ROOT r = f32[2,15,34,40] negate(c)""",
}


def module(name: str) -> HloModule:
    return parse(f"HloModule m\nENTRY main {{{CONVOLUTIONS[name]}\n}}")


def choose(monkeypatch: pytest.MonkeyPatch, *, planes: bool) -> None:
    """Whatever would take less time."""
    for name in ("suit_plane_regions", "suit_plane_gradient"):
        monkeypatch.setattr(gemm, name, lambda *_: planes)


@pytest.fixture
def all_in_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, planes=True)


def compiled(name: str, num_threads: int = 1) -> Executable:
    options = CompileOptions(num_threads=num_threads)
    return Executable(compile_module(module(name), options), options)


def integers(name: str, most: int) -> list[Array]:
    random = np.random.default_rng(len(name))
    return [
        random.integers(-most, most + 1, parameter.shape.dims).astype(np.float32)
        for parameter in module(name).entry.parameters
    ]


def exact(name: str, x: Array, k: Array) -> Array:
    """In f64, by a product for each place of the window."""
    wide = CONVOLUTIONS[name].replace("f32", "f64")
    operands = x.astype(np.float64), k.astype(np.float64)
    return np.asarray(xlapy.compile(f"HloModule m\nENTRY main {{{wide}\n}}")(*operands))


@WITH_A_UNIT
@pytest.mark.usefixtures("all_in_planes")
class TestOnTheUnit:
    @pytest.mark.parametrize("name", CONVOLUTIONS)
    def test_sums_of_integers_are_exact(self, name: str) -> None:
        executable, arguments = compiled(name), integers(name, 60)
        assert "gemm_amx_f32_windows" in executable.llvm_ir()
        np.testing.assert_array_equal(executable(*arguments), exact(name, *arguments))

    @pytest.mark.parametrize("name", ["strides", "groups", "three dimensions", "gradient"])
    def test_small_ones_are_what_the_evaluator_says(self, name: str) -> None:
        arguments = integers(name, 60)
        np.testing.assert_array_equal(compiled(name)(*arguments), xlapy.evaluate(module(name), *arguments))

    @pytest.mark.parametrize("name", ["several strips and lines of features", "gradient of many images"])
    def test_sums_are_as_accurate_as_those_of_multiply_adds(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        random = np.random.default_rng(0)
        arguments = [random.standard_normal(array.shape).astype(np.float32) for array in integers(name, 1)]
        in_planes = compiled(name)(*arguments)
        choose(monkeypatch, planes=False)
        plain = compiled(name)(*arguments)
        right, magnitude = exact(name, *arguments), exact(name, *(np.abs(array) for array in arguments))
        errors = [np.abs(result - right) / magnitude for result in (in_planes, plain)]
        assert errors[0].max() <= errors[1].max()
        assert errors[0].mean() <= errors[1].mean()

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("special", [np.inf, np.nan, 1e-40, 1e-35, 3e38], ids=str)
    @pytest.mark.parametrize("name", ["rows of a tile and more", "columns by threads, those of groups", "gradient"])
    def test_what_planes_do_not_hold_is_left_to_the_processor(
        self, name: str, side: int, special: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments = integers(name, 60)
        arguments[side][-1, -1, -1, -1] = special
        in_planes = compiled(name)(*arguments)
        choose(monkeypatch, planes=False)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(in_planes, compiled(name)(*arguments))

    @pytest.mark.parametrize("num_threads", [1, 2])
    def test_columns_that_planes_do_not_hold_are_computed_once(
        self, num_threads: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Though there are several groups of images, and what follows is done in place."""
        name = "columns by threads, groups of images, and what follows"
        x, k = integers(name, 60)
        k[1, 2, 3, 40], k[0, 0, 0, 160] = 1e-40, 3e38
        x[8, 8, 8, 7] = 0
        in_planes = compiled(name, num_threads)(x, k)
        choose(monkeypatch, planes=False)
        np.testing.assert_array_equal(in_planes, compiled(name)(x, k))

    @pytest.mark.parametrize("num_threads", [2, 3, 8])
    @pytest.mark.parametrize(
        "name",
        ["strides", "groups", "more of a kernel than a panel has", "columns by threads", "gradient of many images"],
    )
    def test_bits_do_not_depend_on_threads(self, name: str, num_threads: int) -> None:
        random = np.random.default_rng(1)
        arguments = [random.standard_normal(array.shape).astype(np.float32) for array in integers(name, 1)]
        one = np.asarray(compiled(name)(*arguments))
        np.testing.assert_array_equal(
            one.view(np.int32), np.asarray(compiled(name, num_threads)(*arguments)).view(np.int32)
        )


NARROW = [
    ("s8", "s32", 32),
    ("s8", "s32", 48),
    ("u8", "s32", 64),
    ("bf16", "bf16", 32),
    ("bf16", "f32", 96),
    ("bf16", "bf16", 40),
]
DTYPES = {"s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "bf16": np.dtype(ml_dtypes.bfloat16)}


def narrow_convolution(operand: str, result: str, features: int, window: str) -> str:
    """Of positions as many as the array has pixels, or half as many each way."""
    side, line = (8, 17) if "stride" in window else (15, 34)
    return f"""HloModule m
    ENTRY main {{
      x = {operand}[2,15,34,{features}] parameter(0)
      k = {operand}[3,3,{features},40] parameter(1)
      ROOT c = {result}[2,{side},{line},40] convolution(x, k), window={window}, dim_labels=b01f_01io->b01f
    }}"""


@pytest.mark.skipif(unit_name("s8", host_target()) is None, reason="this machine has no matrix unit for bytes")
class TestNarrowTypesOnTheUnit:
    """They are not split: runs of bytes end within a tile, and what is not finite is not to meet zeros."""

    @pytest.mark.parametrize(("operand", "result", "features"), NARROW)
    @pytest.mark.parametrize("window", ["{size=3x3 pad=1_1x1_1}", "{size=3x3 stride=2x2 pad=1_1x1_1}"])
    def test_sums_of_integers_are_exact(self, operand: str, result: str, features: int, window: str) -> None:
        text = narrow_convolution(operand, result, features, window)
        random = np.random.default_rng(features)
        arguments = [
            random.integers(0, 3, parameter.shape.dims).astype(DTYPES[operand])
            for parameter in parse(text).entry.parameters
        ]
        compiled = xlapy.compile(text)
        assert f"gemm_amx_{operand}" in compiled.llvm_ir()
        plain = xlapy.compile(text.replace(f"{operand}[", "f64[").replace(f"{result}[", "f64["))
        wanted = np.asarray(plain(*(array.astype(np.float64) for array in arguments)))
        np.testing.assert_array_equal(np.asarray(compiled(*arguments)).astype(np.float64), rounded(wanted, result))

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("special", [np.inf, np.nan], ids=str)
    def test_what_is_not_finite_stays_where_it_is_seen(self, side: int, special: float) -> None:
        text = narrow_convolution("bf16", "f32", 32, "{size=3x3 pad=1_1x1_1}")
        random = np.random.default_rng(0)
        arguments = [
            random.integers(-2, 3, parameter.shape.dims).astype(DTYPES["bf16"])
            for parameter in parse(text).entry.parameters
        ]
        arguments[side][-1, 0, -1, 5] = special
        plain = xlapy.compile(text.replace("bf16", "f32"))
        wanted = plain(*(array.astype(np.float32) for array in arguments))
        np.testing.assert_array_equal(xlapy.compile(text)(*arguments), wanted)


def rounded(sums: Array, type: str) -> Array:
    """To what the result can hold."""
    return sums.astype(DTYPES["bf16"]).astype(np.float64) if type == "bf16" else sums


def unit_target() -> Target:
    without = reference_target("avx512")
    return dataclasses.replace(without, features=f"{without.features},+amx-bf16,+amx-int8,+amx-tile")


@pytest.mark.parametrize("name", UNIT_TYPES)
def test_all_libraries_of_the_unit_are_made_for_it(name: str) -> None:
    kind, target = UNIT_TYPES[name], unit_target()
    assembly = emit_assembly(gemm.emit_windows(kind, target).text(), target)
    assert kind.unit in assembly
    assert "tilezero" in assembly


def kind_of(images: int, side: int, features: int, results: int, **changed: str) -> str:
    x, k, c = (
        f"f32[{images},{side},{side},{features}]",
        f"f32[3,3,{features},{results}]",
        f"f32[{images},{side},{side},{results}]",
    )
    return kind_of_convolution(x, k, c, {"window": "{size=3x3 pad=1_1x1_1}", "dim_labels": "b01f_01io->b01f"} | changed)


def kind_of_gradient(images: int, side: int, features: int, results: int) -> str:
    x, k, c = (
        f"f32[{images},{side},{side},{features}]",
        f"f32[{images},{side},{side},{results}]",
        f"f32[3,3,{features},{results}]",
    )
    window = f"{{size={side}x{side} pad=1_1x1_1}}"
    return kind_of_convolution(x, k, c, {"window": window, "dim_labels": "f01b_i01o->01bf"})


def kind_of_convolution(x: str, k: str, c: str, attributes: dict[str, str]) -> str:
    written = ", ".join(f"{name}={value}" for name, value in attributes.items())
    text = f"""HloModule m
    ENTRY main {{
      x = {x} parameter(0)
      k = {k} parameter(1)
      ROOT c = {c} convolution(x, k), {written}
    }}"""
    call = library_product(parse(text).entry.root)
    assert call is not None
    assert call.windows is not None
    return gemm.kind_on(call.kind, unit_target(), call.sizes, call.windows, is_precise=call.is_precise)


@pytest.mark.parametrize(
    ("images", "side", "features", "results", "kind"),
    [
        (1, 56, 64, 64, "amx_f32"),
        (1, 28, 64, 64, "amx_f32"),
        (8, 7, 512, 512, "amx_f32"),
        (1, 7, 512, 512, "amx_f32"),
        (2, 8, 1280, 1280, "amx_f32"),
        (1, 4, 512, 512, "f32"),  # too few positions for a kernel that is to be split
        (1, 56, 64, 12, "f32"),  # half of a tile and more would be idle
        (1, 56, 48, 64, "amx_f32"),
        (1, 56, 40, 40, "f32"),  # the larger part of tiles would be idle
        (16, 4, 256, 256, "f32"),  # a third of the positions between rows
    ],
)
def test_which_convolutions_are_computed_in_planes(
    images: int, side: int, features: int, results: int, kind: str
) -> None:
    assert kind_of(images, side, features, results) == kind


@pytest.mark.parametrize(
    ("images", "side", "features", "results", "kind"),
    [
        (8, 56, 64, 64, "amx_f32"),
        (1, 28, 128, 128, "amx_f32"),
        (1, 14, 256, 256, "f32"),  # more sums than there is to add to each
        (8, 56, 64, 12, "f32"),  # half of a tile and more would be idle
        (8, 56, 48, 64, "f32"),  # no whole lines
    ],
)
def test_which_gradients_are_computed_in_planes(images: int, side: int, features: int, results: int, kind: str) -> None:
    assert kind_of_gradient(images, side, features, results) == kind


def test_which_are_not_whatever_their_size() -> None:
    assert kind_of(1, 56, 64, 64, operand_precision="{highest,default}") == "f32"
