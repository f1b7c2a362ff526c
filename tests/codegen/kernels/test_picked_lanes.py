"""Gathers from a few neighbours, which lie in registers where there are instructions that pick lanes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from xlapy.codegen.target import host_target

ELEMENTS_OF_REGISTER = {"f32": 16, "s32": 16, "f64": 8, "u64": 8}
MOST_REGISTERS = 8
MOST_SHORT_REGISTERS = 4


def text_of(element_type: str, columns: int, taken: int) -> str:
    """Some columns of a matrix, the same of each row."""
    return f"""HloModule m
      ENTRY main {{
        x = {element_type}[5,{columns}] parameter(0)
        places = s32[{taken},1] parameter(1)
        ROOT g = {element_type}[5,{taken}] gather(x, places), offset_dims={{0}}, collapsed_slice_dims={{1}},
          start_index_map={{1}}, index_vector_dim=1, slice_sizes={{5,1}}
      }}"""


def check(text: str, *, picks: bool) -> None:
    x, places = xlapy.hlo.parse(text).entry.parameters
    (columns, taken), generator = (x.shape.dims[1], places.shape.dims[0]), np.random.default_rng(1)
    numbers = generator.integers(-3, columns + 3, (taken, 1)).astype(np.int32)
    matrix = generator.integers(0, 1000, x.shape.dims).astype(x.shape.type.dtype)
    compiled, target = xlapy.compile(text), host_target()
    code, most = compiled.llvm_ir(), 8 * min(MOST_SHORT_REGISTERS, taken // 2)
    is_short = x.shape.type.bits == 32 and columns <= most
    assert ("vpermi2var" in code) == (picks and target.has_permute)
    assert bool(re.search(r"@llvm\.x86\.avx2\.perm", code)) == (picks and is_short and target.has_short_permute)
    np.testing.assert_array_equal(compiled(matrix, numbers), xlapy.evaluate(text, matrix, numbers))


@pytest.mark.parametrize("element_type", ELEMENTS_OF_REGISTER)
@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("registers", [1, 3])
def test_full_and_partial_registers(element_type: str, registers: int, extra: int) -> None:
    check(text_of(element_type, registers * ELEMENTS_OF_REGISTER[element_type] + extra, 40), picks=True)


@pytest.mark.parametrize("taken", [2, 5, 16, 24, 33, 64])
def test_any_number_of_lanes(taken: int) -> None:
    check(text_of("f32", 16, taken), picks=True)


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("registers", [1, 2, MOST_SHORT_REGISTERS])
@pytest.mark.parametrize("element_type", ["f32", "u32"])
def test_registers_of_half_that_size(element_type: str, registers: int, extra: int) -> None:
    check(text_of(element_type, registers * 8 + extra, 40), picks=True)


@pytest.mark.parametrize("columns", [MOST_REGISTERS * 16 - 1, MOST_REGISTERS * 16])
def test_as_many_registers_as_are_picked_from(columns: int) -> None:
    check(text_of("s32", columns, 40), picks=True)


def test_more_than_registers_hold_is_gathered() -> None:
    check(text_of("f32", MOST_REGISTERS * 16 + 1, 40), picks=False)


def test_few_lanes_of_many_registers_are_gathered() -> None:
    check(text_of("f32", 100, 4), picks=False)


def test_rows_are_not_neighbours() -> None:
    """Elements of one column, in rows that are picked: what lies between them is not all there behind the last one."""
    check(
        """HloModule m
          ENTRY main {
            x = f32[6,3] parameter(0)
            places = s32[32,1] parameter(1)
            ROOT g = f32[3,32] gather(x, places), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0},
              index_vector_dim=1, slice_sizes={1,3}
          }""",
        picks=False,
    )


def test_places_that_are_cut_into_other_rows_are_read_as_they_lie() -> None:
    """Which element a lane needs follows from its number, whatever rows these are in meanwhile."""
    text = """HloModule m
      ENTRY main {
        table = f32[16] parameter(0)
        scale = f32[64] parameter(1)
        places = u8[32,32,2] parameter(2)
        r = u8[64,32] reshape(places)
        c = s32[64,32] convert(r)
        g = f32[64,32] gather(table, c), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
          index_vector_dim=2, slice_sizes={1}
        b = f32[64,32] broadcast(scale), dimensions={0}
        ROOT m = f32[64,32] multiply(g, b)
      }"""
    random = np.random.default_rng(0)
    arrays = [random.normal(size=size).astype(np.float32) for size in (16, 64)]
    places = random.integers(0, 20, (32, 32, 2)).astype(np.uint8)
    compiled = xlapy.compile(text)
    np.testing.assert_array_equal(compiled(*arrays, places), xlapy.evaluate(text, *arrays, places))
    code = compiled.llvm_ir()
    assert not re.search(r"gather\.v\d+i8", code)
    assert re.search(r"load <\d+ x i8>", code)
