"""Loops over short rows run over longer ones, where several dimensions are one; and over planes of rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.codegen.kernels.merged_dims import merged_dims
from xlapy.hlo.text import parse

PROGRAMS = {
    "scaled": (
        """x = T[6,8,10,3] parameter(0)
           v = T[6] parameter(1)
           b = T[6,8,10,3] broadcast(v), dimensions={0}
           ROOT r = T[6,8,10,3] multiply(x, b)""",
        (6, 240),
    ),
    "scaled by a value that is made": (
        """x = T[6,8,3] parameter(0)
           v = T[6,1,1] parameter(1)
           n = T[6,1,1] negate(v)
           f = T[6] reshape(n)
           b = T[6,8,3] broadcast(f), dimensions={0}
           ROOT r = T[6,8,3] add(x, b)""",
        (6, 24),
    ),
    "scaled in pairs": (
        """x = T[6,8,5,3] parameter(0)
           v = T[6,8] parameter(1)
           b = T[6,8,5,3] broadcast(v), dimensions={0,1}
           ROOT r = T[6,8,5,3] multiply(x, b)""",
        (48, 15),
    ),
    "another shape of a parameter": (
        """x = T[6,40] parameter(0)
           s = T[6,8,5] reshape(x)
           v = T[6] parameter(1)
           b = T[6,8,5] broadcast(v), dimensions={0}
           ROOT r = T[6,8,5] multiply(s, b)""",
        (6, 40),
    ),
    "numbers along one dimension": (
        """x = T[6,4,5,3] parameter(0)
           i = T[6,4,5,3] iota(), iota_dimension=1
           ROOT r = T[6,4,5,3] add(x, i)""",
        (6, 4, 15),
    ),
    "cut, padded, reversed and joined": (
        """x = T[6,8,5,3] parameter(0)
           y = T[6,2,5,3] parameter(1)
           one = T[] parameter(2)
           v = T[6,4,5,3] slice(x), slice={[0:6], [1:8:2], [0:5], [0:3]}
           w = T[6,4,5,3] reverse(v), dimensions={1}
           j = T[6,6,5,3] concatenate(w, y), dimensions={1}
           n = T[6,6,5,3] negate(j)
           ROOT r = T[8,6,5,3] pad(n, one), padding=1_1x0_0x0_0x0_0""",
        (8, 6, 15),
    ),
    "images by number": (
        """x = T[6,4,5,3] parameter(0)
           p = s32[7,1] parameter(1)
           g = T[7,4,5,3] gather(x, p), offset_dims={1,2,3}, collapsed_slice_dims={0}, start_index_map={0},
             index_vector_dim=1, slice_sizes={1,4,5,3}
           ROOT r = T[7,4,5,3] negate(g)""",
        (7, 60),
    ),
    "lines by number": (
        """x = T[6,4,5,3] parameter(0)
           p = s32[2,7] parameter(1)
           g = T[6,2,7,5,3] gather(x, p), offset_dims={0,3,4}, collapsed_slice_dims={1}, start_index_map={1},
             index_vector_dim=2, slice_sizes={6,1,5,3}
           ROOT r = T[6,2,7,5,3] negate(g)""",
        (6, 14, 15),
    ),
    "squares along both sides": (
        """x = T[8,8,3,5] parameter(0)
           v = T[8] parameter(1)
           b = T[8,8,3,5] broadcast(v), dimensions={0}
           c = T[8,8,3,5] broadcast(v), dimensions={1}
           a = T[8,8,3,5] subtract(b, c)
           ROOT r = T[8,8,3,5] multiply(x, a)""",
        (8, 8, 15),
    ),
    "two results": (
        """x = T[6,8,3] parameter(0)
           v = T[6] parameter(1)
           b = T[6,8,3] broadcast(v), dimensions={0}
           p = T[6,8,3] multiply(x, b)
           q = T[6,8,3] add(x, b)
           ROOT r = (T[6,8,3], T[6,8,3]) tuple(p, q)""",
        (6, 24),
    ),
    "colours of their own": (
        """x = T[6,8,3] parameter(0)
           v = T[3] parameter(1)
           b = T[6,8,3] broadcast(v), dimensions={2}
           ROOT r = T[6,8,3] multiply(x, b)""",
        None,
    ),
    "every second line": (
        """x = T[6,8,3] parameter(0)
           v = T[6,4,3] slice(x), slice={[0:6], [0:8:2], [0:3]}
           ROOT r = T[6,4,3] negate(v)""",
        None,
    ),
    "lines that are cut": (
        """x = T[6,8,3] parameter(0)
           v = T[6,5,3] slice(x), slice={[0:6], [2:7], [0:3]}
           ROOT r = T[6,5,3] negate(v)""",
        (6, 15),
    ),
    "lines that are padded and joined": (
        """x = T[6,8,3] parameter(0)
           one = T[] parameter(1)
           n = T[6,8,3] negate(x)
           p = T[6,11,3] pad(n, one), padding=0_0x2_1x0_0
           j = T[6,19,3] concatenate(p, x), dimensions={1}
           ROOT r = T[6,19,3] negate(j)""",
        (6, 57),
    ),
    "parts of rows by number": (
        """x = T[6,9,3] parameter(0)
           p = s32[4,2] parameter(1)
           g = T[4,5,3] gather(x, p), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0,1},
             index_vector_dim=1, slice_sizes={1,5,3}
           ROOT r = T[4,5,3] negate(g)""",
        (4, 15),
    ),
    "a part of each image": (
        """x = T[6,9,8,3] parameter(0)
           p = s64[6,3] parameter(1)
           g = T[6,7,5,3] gather(x, p), offset_dims={1,2,3}, collapsed_slice_dims={}, start_index_map={1,2,3},
             operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,7,5,3}
           ROOT r = T[6,7,5,3] negate(g)""",
        (6, 7, 15),
    ),
    "parts at one number": (
        """x = T[9,3] parameter(0)
           p = s32[4] parameter(1)
           g = T[4,5,3] gather(x, p), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
             index_vector_dim=1, slice_sizes={5,3}
           ROOT r = T[4,5,3] negate(g)""",
        (4, 15),
    ),
    "whole parts at bytes": (
        """x = T[200,3] parameter(0)
           p = u8[4] parameter(1)
           g = T[4,200,3] gather(x, p), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
             index_vector_dim=1, slice_sizes={200,3}
           ROOT r = T[4,200,3] negate(g)""",
        (4, 600),
    ),
    "parts at bytes": (
        """x = T[200,3] parameter(0)
           p = u8[4] parameter(1)
           g = T[4,5,3] gather(x, p), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
             index_vector_dim=1, slice_sizes={5,3}
           ROOT r = T[4,5,3] negate(g)""",
        None,
    ),
}


def text_of(name: str, type_name: str) -> str:
    return f"ENTRY e {{ {PROGRAMS[name][0]} }}".replace("T[", f"{type_name}[")


def arguments(text: str) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    shapes = [parameter.shape for parameter in parse(text).entry.parameters]
    return [generator.integers(0, 5, shape.dims).astype(shape.type.dtype) for shape in shapes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_dimensions_that_nothing_tells_apart_are_one(name: str) -> None:
    root = parse(text_of(name, "f32")).entry.root
    roots = root.operands if root.opcode == "tuple" else (root,)
    merged = merged_dims(roots, lambda instruction: instruction.opcode == "parameter")
    assert (merged and merged.roots[0].shape.dims) == PROGRAMS[name][1]


@pytest.mark.parametrize("type_name", ["f32", "bf16", "s8", "c64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_what_they_were(name: str, type_name: str) -> None:
    text = text_of(name, type_name)
    if "iota" in text and type_name == "c64":
        pytest.skip("numbers are real")
    inputs = arguments(text)
    assert_same(xlapy.compile(text)(*inputs), xlapy.evaluate(text, *inputs))


@pytest.mark.parametrize("index", ["s32", "s64", "u32"])
def test_parts_that_begin_outside_are_moved_inside(index: str) -> None:
    text = text_of("parts of rows by number", "f32").replace("s32", index)
    x = np.arange(6 * 9 * 3, dtype=np.float32).reshape(6, 9, 3)
    low = 0 if index == "u32" else -(2**31)
    high = 2**32 - 1 if index == "u32" else 2**31 - 1
    places = np.array([[low, high], [high, low], [3, high - 1], [2, 4]]).astype(
        index.replace("s", "int").replace("u", "uint")
    )
    assert_same(xlapy.compile(text)(x, places), xlapy.evaluate(text, x, places))


def test_long_rows_stay() -> None:
    text = text_of("scaled", "f32").replace("3]", "64]")
    root = parse(text).entry.root
    assert merged_dims((root,), lambda instruction: instruction.opcode == "parameter") is None


@pytest.mark.parametrize(
    "dims", [(3, 5, 7, 3), (40, 33, 2, 5), (3, 9, 11, 3), (1, 90, 4, 30), (2, 2, 2, 3), (300, 1, 1, 3), (1, 300, 2, 3)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_planes_are_all_there(dims: tuple[int, ...], threads: int) -> None:
    """Nothing can be merged: each dimension has numbers of its own."""
    shape = f"s32[{','.join(map(str, dims))}]"
    numbers = "\n".join(f"i{dim} = {shape} iota(), iota_dimension={dim}" for dim in range(len(dims)))
    text = f"""ENTRY e {{ x = {shape} parameter(0)
      {numbers}
      a = {shape} add(i0, i1)
      b = {shape} multiply(a, i2)
      c = {shape} subtract(b, i3)
      ROOT r = {shape} multiply(x, c) }}"""
    x = np.random.default_rng(2).integers(-9, 9, dims).astype(np.int32)
    result: Any = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(x)
    assert_same(result, xlapy.evaluate(text, x))


def test_ways_through_reshapes_are_not_followed_for_ever() -> None:
    """Each brings axes of its own for dimensions of size 1, and there are twice as many behind each step."""
    lines, last = [], "y"
    for step in range(40):
        lines += [f"a{step} = f32[1,6,8,3] reshape({last})", f"b{step} = f32[6,1,8,3] reshape(a{step})"]
        lines += [f"c{step} = f32[6,8,1,3] reshape({last})", f"d{step} = f32[6,1,8,3] reshape(c{step})"]
        lines.append(f"s{step} = f32[6,1,8,3] add(b{step}, d{step})")
        last = f"s{step}"
    start = "x = f32[6,1,8,3] parameter(0) y = f32[6,1,8,3] cosine(x)"
    root = parse(f"ENTRY e {{ {start} {' '.join(lines)} }}".replace("s39 =", "ROOT s39 =")).entry.root
    assert merged_dims((root,), lambda instruction: instruction.opcode == "parameter") is None


FOLDS = {
    "the largest": "ROOT r = u8[] reduce(x, n), dimensions={0,1,2}, to_apply=maximum",
    "the least from a number on": "ROOT r = u8[] reduce(x, given), dimensions={0,1,2}, to_apply=minimum",
    "the sum, widened": """w = s32[20,30,3] convert(x) z = s32[] constant(5)
        ROOT r = s32[] reduce(w, z), dimensions={0,1,2}, to_apply=add""",
    "whether there is any": """c = u8[] constant(99) b = u8[20,30,3] broadcast(c), dimensions={}
        g = pred[20,30,3] compare(x, b), direction=EQ f = pred[] constant(false)
        ROOT r = pred[] reduce(g, f), dimensions={0,1,2}, to_apply=or""",
    "of some colors less": """v = u8[3] slice(few), slice={[2:5]} b = u8[20,30,3] broadcast(v), dimensions={2}
        s = u8[20,30,3] subtract(x, b) ROOT r = u8[] reduce(s, n), dimensions={0,1,2}, to_apply=maximum""",
}


def test_whole_folds_of_integers_go_along_longer_rows() -> None:
    """All elements of one image are one row, of which whole vectors are folded."""
    kinds = {"maximum": "u8", "minimum": "u8", "add": "s32", "or": "pred"}
    regions = "\n".join(
        f"{op} {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) ROOT c = {kind}[] {op}(a, b) }}"
        for op, kind in kinds.items()
    )
    x = np.random.default_rng(5).integers(0, 98, (20, 30, 3)).astype(np.uint8)
    for name, fold in FOLDS.items():
        text = f"""{regions} ENTRY e {{ x = u8[20,30,3] parameter(0) given = u8[] parameter(1)
            few = u8[6] parameter(2) n = u8[] constant(0) {fold} }}"""
        compiled = xlapy.compile(text)
        for last in (1, 99):
            x[19, 29, 2] = last
            arguments = x, np.uint8(7), np.arange(6, dtype=np.uint8)
            assert_same(compiled(*arguments), xlapy.evaluate(text, *arguments), name)
        has_vectors = re.search(r"load <\d\d+ x i8>", compiled.llvm_ir()) is not None
        assert has_vectors or name == "of some colors less", name


def test_folds_of_short_rows_go_along_longer_ones() -> None:
    """Of floats as well; what is kept stays apart from what is folded."""
    sum_ = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
    generator = np.random.default_rng(6)
    x, y = (generator.integers(0, 256, (4, 5, 20, 3)).astype(np.uint8) for _ in range(2))
    cases = {
        "all": ("f32[]", "0,1,2,3", True),
        "of each image": ("f32[4,5]", "2,3", True),
        "of each group": ("f32[4]", "1,2,3", True),
        "of colors": ("f32[4,5,3]", "2", False),
        "of rows": ("f32[4,5,20]", "3", False),
    }
    for name, (shape, dims, has_vectors) in cases.items():
        text = f"""{sum_} ENTRY e {{ x = u8[4,5,20,3] parameter(0) y = u8[4,5,20,3] parameter(1)
            a = f32[4,5,20,3] convert(x) b = f32[4,5,20,3] convert(y) d = f32[4,5,20,3] subtract(a, b)
            q = f32[4,5,20,3] multiply(d, d) zero = f32[] constant(0)
            ROOT r = {shape} reduce(q, zero), dimensions={{{dims}}}, to_apply=add }}"""
        compiled = xlapy.compile(text)
        assert_same(compiled(x, y), xlapy.evaluate(text, x, y), name)
        if has_vectors:
            assert re.search(r"load <(16|32|64) x i8>", compiled.llvm_ir()), name


def test_folded_dimensions_are_kept_apart_from_others() -> None:
    root = parse("ENTRY e { x = f32[6,8,10,3] parameter(0) ROOT n = f32[6,8,10,3] negate(x) }").entry.root
    dims = []
    for first in (0, 1, 2):
        merged = merged_dims((root,), lambda instruction: instruction.opcode == "parameter", folded=first)
        dims.append(merged and merged.roots[0].shape.dims)
    assert dims == [(1440,), (6, 240), (48, 30)]
