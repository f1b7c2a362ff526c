"""Rows of padded and joined arrays are made in parts, of which only the ends are asked where an element lies."""

from __future__ import annotations

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import check_all_native, check_native
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaComputation, XlaOp
from xlapy.codegen.kernels import loop, mapped_rows
from xlapy.codegen.kernels.padded_rows import JoinedParts, interior_of, joined_parts
from xlapy.hlo.shape import Shape


def built(function: Callable[[XlaOp], XlaOp], dims: tuple[int, ...]) -> XlaComputation:
    builder = XlaBuilder("program")
    return builder.build(function(builder.parameter(0, Shape.array("f32", dims))))


Widths = list[tuple[int, int, int]]

PADS: dict[str, tuple[tuple[int, ...], Widths]] = {
    "all around": ((150, 200), [(1, 2, 0), (2, 3, 0)]),
    "no vector within": ((3000, 20), [(0, 1, 0), (3, 9, 0)]),
    "one vector and a bit": ((3000, 33), [(1, 0, 0), (0, 1, 0)]),
    "the ends longer than the middle": ((60, 70), [(0, 0, 0), (300, 200, 0)]),
    "cut at one end": ((200, 300), [(-3, 1, 0), (5, -7, 0)]),
    "cut away": ((200, 300), [(-200, 400, 0), (1, 1, 0)]),
    "nothing to pad": ((0, 300), [(200, 0, 0), (1, 1, 0)]),
    "elements between": ((100, 100), [(1, 2, 1), (2, 3, 0)]),
    "elements between neighbours": ((100, 100), [(1, 2, 0), (2, 3, 2)]),
    "images": ((2, 17, 19, 64), [(0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 0)]),
    "features": ((2, 17, 19, 40), [(0, 0, 0), (1, 1, 0), (0, 2, 0), (0, 24, 0)]),
    "one row": ((1, 40_000), [(0, 0, 0), (3, 4, 0)]),
}


@pytest.mark.parametrize("name", PADS)
def test_pads(name: str) -> None:
    dims, widths = PADS[name]
    x = np.random.default_rng(0).integers(1, 100, size=dims)
    check_all_native(
        {
            str(np.dtype(dtype)): (
                lambda p, dtype=dtype: ops.Neg(ops.Pad(p, np.asarray(7).astype(dtype), widths)),
                [x.astype(dtype)],
            )
            for dtype in (np.float32, np.int8, np.complex64, ml_dtypes.bfloat16)
        }
    )


def padded(x: XlaOp, low: int, high: int) -> XlaOp:
    return ops.Pad(x, np.float32(-1), [(low, high, 0), (high, low, 0)])


def neighbours(x: XlaOp, width: int = 1) -> XlaOp:
    """The sum of those above, below, left and right."""
    (rows, columns), around = x.shape.dims, ops.Pad(x, np.float32(0), [(width, width, 0)] * 2)
    places = [(0, width), (2 * width, width), (width, 0), (width, 2 * width)]
    parts = [ops.Slice(around, [row, column], [row + rows, column + columns], [1, 1]) for row, column in places]
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


PROGRAMS: dict[str, Callable[[XlaOp], XlaOp]] = {
    "computed before and behind": lambda x: ops.Neg(padded(x * x, 1, 3)) + np.float32(1),
    "two that differ": lambda x: padded(x, 1, 3) * padded(x + x, 3, 1),
    "turned": lambda x: padded(x, 2, 2) + ops.Transpose(padded(x, 3, 1), [1, 0]),
    "reversed": lambda x: ops.Rev(padded(x, 1, 2), [0, 1]) + padded(x, 2, 1),
    "read elsewhere": lambda x: ops.Slice(padded(x, 1, 2), [1, 1], [203, 203], [1, 1]) * padded(x, 1, 1),
    "neighbours": lambda x: x + neighbours(x) * np.float32(0.2),
    "neighbours of neighbours": lambda x: neighbours(neighbours(x, 3) - x),
    "neighbours of few": lambda x: neighbours(ops.Slice(x, [0, 3], [200, 100], [1, 1]), 30),
    "every second": lambda x: ops.Slice(padded(x, 1, 2), [0, 1], [203, 203], [2, 1]),
    "of a pad": lambda x: padded(padded(x, 1, 2), 40, 3),
    "beside a row": lambda x: ops.Mul(padded(x, 3, 3), ops.Slice(padded(x, 3, 3), [0, 0], [1, 206], [1, 1])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pads_inside_of_kernels(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(200, 200)).astype(np.float32)
    check_native(PROGRAMS[name], x)


def test_only_the_edges_of_a_stencil_are_asked() -> None:
    """All neighbours of what is not at an edge are there."""
    builder = XlaBuilder("stencil")
    x = builder.parameter(0, Shape.array("f32", (200, 200)))
    root = builder.build(x + neighbours(x)).module.entry.root
    assert interior_of([root], lambda i: i.opcode == "parameter", 16) == {0: range(1, 199), 1: range(1, 199)}


@pytest.mark.parametrize("widths", [[(1, 1, 0), (1, 0, 0), (0, 0, 0)], [(1, 1, 0), (1, 0, 0), (32, 32, 0)]])
def test_pads_that_are_stored_past_the_caches(widths: Widths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    monkeypatch.setattr(mapped_rows, "streamed_bytes", lambda _: 0)
    x = np.random.default_rng(0).normal(size=(30, 40, 64)).astype(np.float32)
    code = check_native(lambda p: ops.Pad(p, np.float32(-1), widths), x).llvm_ir()
    has_edges = widths[-1] == (32, 32, 0)
    assert "!nontemporal" in code
    assert ("call void @llvm.memcpy" in code) == has_edges
    assert "@llvm.masked.store" not in code, "it would reach into lines that bypass the caches"


def rolled(x: XlaOp, amount: int, dimension: int) -> XlaOp:
    """What lies `amount` places in front along a dimension, round its end."""
    dims = list(x.shape.dims)
    cut, ones = dims[dimension] - amount, [1] * len(dims)
    starts, limits = [0] * len(dims), list(dims)
    starts[dimension] = limits[dimension] = cut
    return ops.ConcatInDim(
        x.builder,
        [ops.Slice(x, starts, dims, ones), ops.Slice(x, [0] * len(dims), limits, ones)],
        dimension,
    )


def mirrored_around(x: XlaOp, width: int) -> XlaOp:
    """With the neighbours of all ends again, in reverse."""
    for dimension in range(len(x.shape.dims)):
        dims = list(x.shape.dims)
        ones, parts = [1] * len(dims), [x]
        for begin, place in ((1, 0), (dims[dimension] - 1 - width, 2)):
            starts, limits = [0] * len(dims), list(dims)
            starts[dimension], limits[dimension] = begin, begin + width
            parts.insert(place, ops.Rev(ops.Slice(x, starts, limits, ones), [dimension]))
        x = ops.ConcatInDim(x.builder, parts, dimension)
    return x


def differences(x: XlaOp) -> XlaOp:
    """Central ones, and one-sided ones at both ends."""
    size = x.shape.dims[0]

    def part(start: int, end: int) -> XlaOp:
        return ops.Slice(x, [start], [end], [1])

    inner = (part(2, size) - part(0, size - 2)) * np.asarray(2).astype(x.shape.type.dtype)
    return ops.ConcatInDim(
        x.builder, [part(1, 2) - part(0, 1), inner, part(size - 1, size) - part(size - 2, size - 1)], 0
    )


def halves(x: XlaOp, dimension: int) -> XlaOp:
    """The sums of neighbours, and their differences."""
    dims = list(x.shape.dims)
    starts, strides = [0] * len(dims), [1] * len(dims)
    strides[dimension] = 2
    even = ops.Slice(x, starts, dims, strides)
    starts[dimension] = 1
    odd = ops.Slice(x, starts, dims, strides)
    return ops.ConcatInDim(x.builder, [even + odd, even - odd], dimension)


def turned(x: XlaOp) -> XlaOp:
    return ops.Transpose(x, [1, 0])


def repeated(x: XlaOp) -> XlaOp:
    return ops.BroadcastInDim(x, [90, *x.shape.dims], [1])


def every_second(x: XlaOp, start: int) -> XlaOp:
    return ops.Slice(x, [0, start], list(x.shape.dims), [1, 2])


JOINED: dict[str, tuple[tuple[int, ...], Callable[[XlaOp], XlaOp]]] = {
    "turned round in both dimensions": (
        (200, 200),
        lambda x: rolled(x, 1, 0) + rolled(x, 199, 0) * rolled(x, 1, 1) - rolled(rolled(x, 3, 0), 198, 1),
    ),
    "turned round in three dimensions": ((40, 30, 70), lambda x: rolled(x, 1, 0) + rolled(x, 29, 1) * rolled(x, 5, 2)),
    "turned round half": ((90, 300), lambda x: rolled(x, 150, 1) + x),
    "no vector within": ((3000, 30), lambda x: rolled(x, 15, 1) + rolled(x, 16, 1)),
    "channels last": ((60, 40, 32), lambda x: rolled(x, 1, 0) + rolled(x, 39, 1)),
    "mirrored": ((200, 201), lambda x: mirrored_around(x, 3)),
    "mirrored in three dimensions": ((30, 40, 50), lambda x: mirrored_around(x, 2) + mirrored_around(x, 2)),
    "a line of differences": ((70_001,), differences),
    "a line turned round": ((65_536,), lambda x: rolled(x, 1, 0) + rolled(x, 65_535, 0) * x),
    "a line turned round far": ((65_536,), lambda x: rolled(x, 40_001, 0) - rolled(x, 30_000, 0)),
    "a padded line": (
        (66_000,),
        lambda x: (
            ops.Pad(x, np.asarray(3).astype(x.shape.type.dtype), [(5, 7, 0)])
            + rolled(rolled(ops.Pad(x, np.asarray(1).astype(x.shape.type.dtype), [(0, 12, 0)]), 1, 0), 9, 0)
        ),
    ),
    "turned over": ((200, 180), lambda x: turned(rolled(x, 2, 0)) + rolled(turned(x), 3, 0)),
    "repeated": ((300,), lambda x: repeated(rolled(x, 5, 0)) + repeated(x)),
    "with a dimension of one": (
        (200, 200),
        lambda x: ops.Reshape(rolled(ops.Reshape(x, [200, 1, 200]), 4, 2), [200, 200]) + x,
    ),
    "of a pad and padded": (
        (200, 200),
        lambda x: ops.Pad(
            rolled(ops.Pad(x, np.asarray(2).astype(x.shape.type.dtype), [(1, 1, 0), (2, 2, 0)]), 1, 1),
            np.asarray(4).astype(x.shape.type.dtype),
            [(0, 3, 0), (2, -2, 0)],
        ),
    ),
    "halves of a line": ((65_536,), lambda x: halves(x, 0)),
    "halves that are no whole vectors": ((70_006,), lambda x: halves(x, 0) + halves(rolled(x, 35_003, 0), 0)),
    "halves of rows": ((90, 130), lambda x: halves(x, 1)),
    "halves of columns": ((90, 130), lambda x: halves(x, 0)),
    "halves of halves": ((128, 66), lambda x: halves(halves(x, 0), 0)),
    "halves of few": ((100, 6), lambda x: halves(x, 1)),
    "padded halves": (
        (90, 130),
        lambda x: ops.Pad(halves(x, 1), np.asarray(3).astype(x.shape.type.dtype), [(1, 2, 0), (0, 0, 0)]),
    ),
    "every second": ((200, 200), lambda x: every_second(rolled(x, 3, 1), 0) * every_second(x, 1)),
    "from all sides": (
        (130, 140),
        lambda x: sum((rolled(rolled(x, i, 0), j, 1) for i in (1, 64, 129) for j in (1, 70, 139)), start=x),
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_joined(name: str) -> None:
    dims, function = JOINED[name]
    x = np.random.default_rng(0).integers(1, 9, size=dims)
    types = (np.float32, np.uint8, np.int16, np.float64, np.complex64, ml_dtypes.bfloat16)
    check_all_native({str(np.dtype(dtype)): (function, [x.astype(dtype)]) for dtype in types})


@pytest.mark.parametrize(
    "name",
    [
        "turned round in both dimensions",
        "a line turned round",
        "a line of differences",
        "a line turned round far",
        "halves of a line",
        "halves that are no whole vectors",
        "halves of rows",
        "halves of columns",
    ],
)
def test_joined_and_stored_past_the_caches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    dims, function = JOINED[name]
    check_native(function, np.random.default_rng(0).normal(size=dims).astype(np.float32))


def test_only_the_edges_of_what_is_turned_round_are_asked() -> None:
    """Of what is joined, each place inside has one operand."""
    builder = XlaBuilder("periodic")
    x = builder.parameter(0, Shape.array("f32", (200, 300)))
    root = builder.build(rolled(x, 1, 0) + rolled(x, 297, 1) * rolled(x, 1, 1)).module.entry.root
    assert interior_of([root], lambda i: i.opcode == "parameter", 16) == {0: range(1, 200), 1: range(1, 297)}


def test_small_arrays_have_parts_in_loops() -> None:
    """What runs once is computed as soon as code for several parts is there."""
    builder = XlaBuilder("ring")
    x = builder.parameter(0, Shape.array("f32", (256,)))
    root = builder.build(rolled(x, 1, 0) + x).module.entry.root
    assert interior_of([root], lambda i: i.opcode == "parameter", 16) == {}
    assert interior_of([root], lambda i: i.opcode == "parameter", 16, repeated=True) == {0: range(1, 256)}


def test_the_longer_part_is_inside() -> None:
    builder = XlaBuilder("parts")
    x = builder.parameter(0, Shape.array("f32", (200, 300)))
    root = builder.build(rolled(x, 100, 1) + x).module.entry.root
    assert interior_of([root], lambda i: i.opcode == "parameter", 16) == {1: range(100, 300)}


def test_parts_that_vectors_fit_into_are_all_that_there_is() -> None:
    """Of what is cut and joined in one dimension, no place is asked in which part it lies."""
    builder = XlaBuilder("halves")
    x = builder.parameter(0, Shape.array("f32", (200, 300)))
    root = builder.build(halves(x, 1)).module.entry.root
    found = joined_parts([root], lambda i: i.opcode == "parameter", 16)
    assert found == JoinedParts(1, (range(150), range(150, 300)))
    assert joined_parts([root], lambda i: i.opcode == "parameter", 256) is None


@pytest.mark.parametrize(("dims", "dimension"), [((1 << 15,), 0), ((128, 256), 0), ((128, 256), 1)])
def test_halves_are_computed_without_asking(dims: tuple[int, ...], dimension: int) -> None:
    code = xlapy.compile(built(lambda x: halves(x, dimension), dims)).llvm_ir()
    assert "masked.load" not in code
    assert code.count(" = fadd <") == code.count(" = fsub <") == 1


def test_few_elements_of_many_joins_are_told_apart() -> None:
    """Eight neighbours on a torus: asked lane by lane where they lie, they would take ten times as long."""
    lines, total = [], "x"
    for number, (rows, columns) in enumerate([(1, 0), (31, 0), (0, 1), (0, 31), (1, 1), (31, 31)]):
        lines.append(
            f"""a{number} = u8[{32 - rows},32] slice(x), slice={{[{rows}:32], [0:32]}}
            b{number} = u8[{rows},32] slice(x), slice={{[0:{rows}], [0:32]}}
            c{number} = u8[32,32] concatenate(a{number}, b{number}), dimensions={{0}}
            d{number} = u8[32,{32 - columns}] slice(c{number}), slice={{[0:32], [{columns}:32]}}
            e{number} = u8[32,{columns}] slice(c{number}), slice={{[0:32], [0:{columns}]}}
            f{number} = u8[32,32] concatenate(d{number}, e{number}), dimensions={{1}}
            s{number} = u8[32,32] add({total}, f{number})"""
        )
        total = f"s{number}"
    text = f"ENTRY e {{ x = u8[32,32] parameter(0) {' '.join(lines)} ROOT r = u8[32,32] negate({total}) }}"
    x = np.random.default_rng(3).integers(0, 9, (32, 32)).astype(np.uint8)
    compiled = xlapy.compile(text)
    np.testing.assert_array_equal(compiled(x), xlapy.evaluate(text, x))
    assert re.search(r"load <\d+ x i8>", compiled.llvm_ir())


@pytest.mark.parametrize(("dims", "dimension"), [((128, 40), 0), ((40, 2048), 1)])
def test_much_that_is_made_of_what_is_joined_has_no_copy_for_each_part(dims: tuple[int, int], dimension: int) -> None:
    """One for nearly all places, and one for those at the edges, of which there are four kinds."""

    def smoothed(x: XlaOp) -> XlaOp:
        width = 1 if dimension == 0 else 16
        below, above = (rolled(x, amount, dimension) for amount in (2 * width, dims[dimension] - 2 * width))
        near = rolled(x, width, dimension) + rolled(x, dims[dimension] - width, dimension)
        total = near + below * above
        for number in range(loop.LONG_STEP):
            total = ops.Sqrt(total + np.float32(number)) if number % 2 else total * x
        return total

    code = check_native(smoothed, np.random.default_rng(0).uniform(1, 2, dims).astype(np.float32)).llvm_ir()
    assert len(re.findall(r" = call .*@llvm\.sqrt\.v", code)) == 2 * (loop.LONG_STEP // 2)
