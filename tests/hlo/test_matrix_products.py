"""What the graph calls a product of the library is one that the library has."""

from __future__ import annotations

import pytest

from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.libraries.gemm_types import GEMM_TYPES
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS, has_windows
from xlapy.hlo.element_types import ALL, ElementType
from xlapy.hlo.matrix_products import MatrixProduct, library_product
from xlapy.hlo.text import parse
from xlapy.passes.layouts.forms import wants_matrices

NUMBERS = "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"
FOLDED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


PAIRS = [(operand, result) for operand in ALL for result in ALL if result.is_complex or not operand.is_complex]
"""What products are made of, and what they may be."""


def product_of(operand: ElementType, result: ElementType) -> MatrixProduct | None:
    text = f"x = {operand}[32,32] parameter(0)  ROOT d = {result}[32,32] dot(x, x), {FOLDED}"
    return library_product(parse(f"ENTRY e {{ {text} }}").entry.root)


def convolution_of(operand: ElementType, result: ElementType, inputs: int, features: int = 256) -> MatrixProduct | None:
    text = f"""x = {operand}[4,200,{inputs}] parameter(0)  k = {operand}[3,{inputs},{features}] parameter(1)
      ROOT c = {result}[4,200,{features}] convolution(x, k), {NUMBERS}"""
    return library_product(parse(f"ENTRY e {{ {text} }}").entry.root)


def test_every_library_is_of_some_types() -> None:
    found = {call.kind for operand, result in PAIRS if (call := product_of(operand, result)) is not None}
    assert found == set(GEMM_TYPES)


@pytest.mark.parametrize(
    ("type", "rows", "is_a_call"), [("f32", 128, False), ("f32", 129, True), ("f64", 65, True), ("s32", 128, True)]
)
def test_a_vector_by_a_matrix_that_the_nearest_cache_holds_is_a_loop_nest(
    type: str, rows: int, is_a_call: bool
) -> None:
    for vector, matrix, result, contracted in (
        ("64", f"64,{rows}", f"{rows}", (0, 0)),
        ("1,64", f"{rows},64", f"1,{rows}", (1, 1)),
        (f"{rows}", f"64,{rows}", "64", (0, 1)),
    ):
        for exchanged in (False, True):
            dims = (matrix, vector) if exchanged else (vector, matrix)
            left, right = contracted[::-1] if exchanged else contracted
            shape = ",".join(result.split(",")[::-1]) if exchanged else result
            dot = parse(f"""ENTRY e {{ x = {type}[{dims[0]}] parameter(0)  y = {type}[{dims[1]}] parameter(1)
              ROOT d = {type}[{shape}] dot(x, y), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}} }}
            """).entry.root
            assert (library_product(dot) is not None) == is_a_call
            assert not wants_matrices(dot)


def test_convolutions_are_what_the_library_can_pack() -> None:
    for operand, result in PAIRS:
        call = convolution_of(operand, result, 32)
        if call is not None:
            assert has_windows(GEMM_TYPES[call.kind])
            assert call.windows is not None
        odd = convolution_of(operand, result, 31)
        kind = GEMM_TYPES[call.kind] if call else None
        assert (odd is not None) == (kind is not None and kind.pair == 1)


@pytest.mark.parametrize(
    ("type", "inputs", "features", "is_a_call"),
    [
        ("s8", 32, 9, True), ("u8", 32, 9, True), ("s8", 32, 2, False), ("f16", 32, 16, False), ("s32", 32, 16, False),
        ("s8", 16, 24, True), ("u8", 16, 24, False), ("s8", 16, 16, False), ("u8", 16, 40, True),
    ],
)  # fmt: skip
def test_small_convolutions_of_bytes_are_products(type: str, inputs: int, features: int, is_a_call: bool) -> None:
    result = "s32" if type in ("s8", "u8") else type
    convolution = parse(f"""ENTRY e {{ x = {type}[1,14,14,{inputs}] parameter(0)
      k = {type}[3,3,{inputs},{features}] parameter(1)
      ROOT c = {result}[1,14,14,{features}] convolution(x, k),
        window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f }}""").entry.root
    assert (library_product(convolution) is not None) == is_a_call


def test_small_kernels_that_move_along_one_dimension_have_tiles_instead() -> None:
    f32, bf16 = (next(type for type in ALL if type.name == name) for name in ("f32", "bf16"))
    assert [convolution_of(f32, f32, 32, features) is None for features in (128, 170, 171, 256)] == [
        True,
        True,
        False,
        False,
    ]
    assert convolution_of(bf16, f32, 32, 128) is not None


@pytest.mark.parametrize("windows", [False, True])
def test_numbers_are_those_that_the_library_reads(windows: bool) -> None:
    float32 = next(type for type in ALL if type.name == "f32")
    call = convolution_of(float32, float32, 32) if windows else product_of(float32, float32)
    assert call is not None
    assert {*call.sizes} <= {*SIZES}
    assert {*(call.windows or ())} <= {*WINDOW_NUMBERS}
