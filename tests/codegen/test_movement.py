"""Kernels that move data against numpy: blocked transposes, joins by stretches, strided reads, gathered folds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

import xlapy
from tests.support.guarded_memory import fenced_results, read_only
from tests.support.native import record, together
from tests.support.targets import lesser_targets
from tests.support.values import assert_array_equal
from xlapy import ops
from xlapy.api import load
from xlapy.codegen.ir import KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels import concatenate, interleave, loop
from xlapy.codegen.registers import constant_element
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.hlo.element_types import element_type_of

TARGETS = {"host": host_target(), **lesser_targets()}
CHECKED = xlapy.CompileOptions(verify=True)
Build = Callable[..., xlapy.XlaOp]


def run(build: Build, *arrays: np.ndarray) -> np.ndarray:
    """The result of `build(builder, *parameters)` for `arrays`."""
    b = xlapy.XlaBuilder("movement")
    parameters = [ops.Parameter(b, n, xlapy.Shape.of(array)) for n, array in enumerate(arrays)]
    return xlapy.compile(b.build(build(b, *parameters)), CHECKED)(*arrays)


def numbers(dims: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return (np.random.default_rng(sum(dims)).standard_normal(dims) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "bool", "complex64"])
@pytest.mark.parametrize(
    ("dims", "permutation"),
    [
        ((100, 37), (1, 0)),
        ((130, 129), (1, 0)),
        ((5, 100, 37), (0, 2, 1)),
        ((5, 100, 37), (2, 1, 0)),
        ((40, 3, 50), (2, 0, 1)),
        ((64, 64, 64), (1, 2, 0)),
        ((17, 1, 300), (2, 1, 0)),
        ((3, 500), (1, 0)),
        ((2, 9, 11, 64), (0, 3, 1, 2)),
        ((1, 5, 7, 40, 3), (3, 4, 0, 1, 2)),
        ((40, 33, 9), (2, 1, 0)),
        ((40, 33, 9), (1, 2, 0)),
        ((40, 33, 9), (2, 0, 1)),
        ((40, 33, 3, 3), (2, 3, 1, 0)),
        ((3, 40, 7, 2, 1, 5), (5, 4, 0, 3, 2, 1)),
        ((2, 70, 2, 3, 2, 2), (5, 2, 4, 0, 3, 1)),
    ],
)
def test_transpose(dims: tuple[int, ...], permutation: tuple[int, ...], dtype: str) -> None:
    x = numbers(dims, dtype)
    assert (run(lambda b, p: ops.Transpose(p, permutation), x) == x.transpose(permutation)).all()


LARGE = max(loop.STREAMED_BYTES, host_target().l3_bytes // 2)
"""Bytes of results that bypass the caches."""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("rows", "batch", "dtype"),
    [
        *[(2064, 1, "float32"), (2048, 1, "int32"), (48, 5, "float32"), (1 << 16, 3, "float32"), (1000, 1, "float64")],
        *[(2080, 1, "int16"), (96, 5, "uint16"), (2112, 1, "int8"), (1 << 16, 3, "uint8")],
    ],
)
def test_large_matrices_are_turned_past_the_caches(rows: int, batch: int, dtype: str, threads: int) -> None:
    """The last block of a row repeats columns of the one before it. Between fences results lie askew."""
    width = np.dtype(dtype).itemsize
    columns = LARGE // (rows * batch * width) + 3
    text = f"""HloModule turned
      ENTRY e {{ x = {xlapy.Shape.of(np.empty((batch, rows, columns), dtype))} parameter(0)
        ROOT t = {xlapy.Shape.of(np.empty((batch, columns, rows), dtype))} transpose(x), dimensions={{0,2,1}} }}"""
    x = np.arange(batch * rows * columns).reshape(batch, rows, columns).astype(dtype)
    executable = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))
    if host_target().vector_bytes == CACHE_LINE:
        assert "past_caches" in executable.llvm_ir()
    assert_array_equal(executable(x), x.swapaxes(1, 2))
    with fenced_results():
        assert_array_equal(executable.run(x, seed=0), x.swapaxes(1, 2))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("row", "dtype"), [(32, "float32"), (64, "int32"), (128, "int16"), (2048, "float32")])
def test_large_results_have_their_rows_in_the_order_of_the_operand(row: int, dtype: str, threads: int) -> None:
    """Where these are short. Whole rows, and computed ones that are read in two orders."""
    count = LARGE // (2 * 7 * row * np.dtype(dtype).itemsize) + 3
    x = np.arange(2 * count * 7 * row).reshape(2, count, 7, row).astype(dtype)
    b = xlapy.XlaBuilder("rows")
    p = ops.Parameter(b, 0, xlapy.Shape.of(x))
    whole = ops.Transpose(p, (2, 0, 1, 3))
    executable = xlapy.compile(b.build(whole), xlapy.CompileOptions(num_threads=threads))
    assert "llvm.smin" not in executable.llvm_ir()  # of what is fetched of rows that come in another order
    assert_array_equal(executable(x), x.transpose(2, 0, 1, 3))
    with fenced_results():
        assert_array_equal(executable.run(x, seed=0), x.transpose(2, 0, 1, 3))
    b = xlapy.XlaBuilder("rows")
    p = ops.Parameter(b, 0, xlapy.Shape.of(x))
    both = ops.Transpose(p, (2, 0, 1, 3)) - ops.Reshape(p, (7, 2, count, row))
    executable = xlapy.compile(b.build(both), xlapy.CompileOptions(num_threads=threads))
    assert_array_equal(executable(x), x.transpose(2, 0, 1, 3) - x.reshape(7, 2, count, row))


@pytest.mark.parametrize("dtype", ["int8", "bool"])
@pytest.mark.parametrize("columns", [100, 1000, 4096])
def test_narrow_elements_that_are_only_moved(columns: int, dtype: str) -> None:
    """They fill vectors, which bypass the caches where results are large."""
    rows = LARGE // (columns * np.dtype(dtype).itemsize) + 5
    x = (np.arange(rows * columns, dtype=np.int64) * 2654435761 >> 7).reshape(rows, columns).astype(dtype)
    programs: dict[str, tuple[Build, np.ndarray]] = {
        "reversed": (lambda b, p: ops.Rev(p, [1]), x[:, ::-1]),
        "cut": (lambda b, p: ops.Slice(p, [2, 1], [rows, columns], [1, 1]), x[2:, 1:]),
        "joined": (lambda b, p: ops.ConcatInDim(b, [p, p], 1), np.concatenate([x, x], 1)),
    }
    for name, (build, expected) in programs.items():
        assert_array_equal(run(build, x), expected, err_msg=name)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dimensions", [(0,), (2,), (0, 2), (1, 2)])
@pytest.mark.parametrize(("row", "dtype"), [(64, "float32"), (4096, "int16"), (32, "float64"), (1000, "int32")])
def test_large_results_that_are_reversed(row: int, dtype: str, dimensions: tuple[int, ...], threads: int) -> None:
    """They are written backwards, where rows are whole vectors. As it is, computed, and beside what lies as it does."""
    count = LARGE // (5 * row * np.dtype(dtype).itemsize) + 3
    x = np.arange(5 * count * row).reshape(5, count, row).astype(dtype)
    for is_computed in (False, True):
        b = xlapy.XlaBuilder("reversed")
        p = ops.Parameter(b, 0, xlapy.Shape.of(x))
        result = ops.Rev(p + p, dimensions) - p if is_computed else ops.Rev(p, dimensions)
        expected = np.flip(x + x, dimensions) - x if is_computed else np.flip(x, dimensions)
        executable = xlapy.compile(b.build(result), xlapy.CompileOptions(num_threads=threads))
        assert_array_equal(executable(x), expected)
        with fenced_results():
            assert_array_equal(executable.run(x, seed=0), expected)


def test_a_large_vector_is_reversed() -> None:
    x = np.arange(LARGE // 4 + 5, dtype=np.int32)
    assert_array_equal(run(lambda b, p: ops.Rev(p, [0]), x), x[::-1])


@pytest.mark.parametrize("columns", [301, 1000, 4001])
@pytest.mark.parametrize("threads", [1, 3])
def test_large_slices_whose_rows_begin_anywhere(columns: int, threads: int) -> None:
    """Rows meet inside of lines that neither of them may store past the caches."""
    x = np.arange((LARGE // (4 * columns) + 7) * (columns + 9), dtype=np.float32).reshape(-1, columns + 9)
    b = xlapy.XlaBuilder("slice")
    part = ops.Slice(ops.Parameter(b, 0, xlapy.Shape.of(x)), [1, 3], [x.shape[0] - 1, 3 + columns], [1, 1])
    executable = xlapy.compile(b.build(part), xlapy.CompileOptions(num_threads=threads))
    code = executable.llvm_ir()
    assert "!nontemporal" in code and "@llvm.masked.store" not in code
    assert_array_equal(executable(x), x[1:-1, 3 : 3 + columns])
    with fenced_results():
        assert_array_equal(executable.run(x, seed=0), x[1:-1, 3 : 3 + columns])


TYPES_BY_WIDTH = ("int8", "int16", "float32", "float64")


@pytest.mark.parametrize(("length", "few"), [(16, 2), (17, 3), (2049, 4), (33, 7), (20_011, 9), (64, 15)])
def test_a_long_dimension_and_a_few_elements(length: int, few: int) -> None:
    """Both ways round, for elements of each width, with something in front and with several short dimensions."""
    arrays = [numbers((length, few), dtype) for dtype in TYPES_BY_WIDTH]
    arrays += [numbers((few, length), dtype) for dtype in TYPES_BY_WIDTH]
    turned = [(x, (1, 0)) for x in arrays]
    turned += [(numbers((3, length, few)), (0, 2, 1)), (numbers((3, few, length)), (0, 2, 1))]
    turned += [(numbers((length, 2, few)), order) for order in ((2, 1, 0), (1, 2, 0), (1, 0, 2), (2, 0, 1))]
    turned += [(numbers((few, 2, length)), order) for order in ((2, 1, 0), (2, 0, 1), (1, 2, 0), (0, 2, 1))]
    b = xlapy.XlaBuilder("turned")
    parameters = [ops.Parameter(b, number, xlapy.Shape.of(x)) for number, (x, _) in enumerate(turned)]
    orders = [order for _, order in turned]
    results = [ops.Transpose(parameter, order) for parameter, order in zip(parameters, orders, strict=True)]
    executable = xlapy.compile(b.build(ops.Tuple(b, results)), CHECKED)
    for got, (x, order) in zip(executable(*(x for x, _ in turned)), turned, strict=True):
        assert_array_equal(got, x.transpose(order))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [64, 20_000, 20_001])
def test_a_few_elements_of_each_past_the_caches(length: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vectors lie as that needs it: not if the lines have other lengths, nor if a vector has no more elements
    than there are lines, which are turned by square blocks."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(interleave, "is_streamed", lambda *_: True)
    options = xlapy.CompileOptions(num_threads=3)
    for dtype, few in product(("float32", "float64"), (3, 5)):
        for x, order in ((numbers((length, few), dtype), (1, 0)), (numbers((2, few, length), dtype), (0, 2, 1))):
            b = xlapy.XlaBuilder("turned")
            turned = ops.Transpose(ops.Parameter(b, 0, xlapy.Shape.of(x)), order)
            executable = xlapy.Executable(compile_module(load(b.build(turned)), options, TARGETS[target]), options)
            is_few = few < TARGETS[target].lanes(x.itemsize * 8)
            assert ("!nontemporal" in executable.llvm_ir()) == (length % 2 == 0 and is_few)
            with fenced_results():
                assert_array_equal(executable.run(x, seed=0), x.transpose(order))


@pytest.mark.parametrize("dims", [(0, 3), (3, 0), (0, 5000, 3), (0, 3, 5000)])
def test_nothing_to_turn(dims: tuple[int, ...]) -> None:
    order = (*range(len(dims) - 2), len(dims) - 1, len(dims) - 2)
    assert run(lambda b, p: ops.Transpose(p, order), numbers(dims)).shape == tuple(dims[dim] for dim in order)


@pytest.mark.parametrize("size", [5, 31, 32, 33, 64, 100, 1000])
@pytest.mark.parametrize("stride", [2, 3, 4, 5])
def test_strided_slice(size: int, stride: int) -> None:
    x = numbers((3, size))
    got = run(lambda b, p: ops.SliceInDim(p, 1, size, stride, 1) * 2, x)
    assert (got == x[:, 1::stride] * 2).all()


@pytest.mark.parametrize("sizes", [(1, 5, 100), (40, 50, 3), (10_000, 3, 20_000), (0, 4, 0)])
@pytest.mark.parametrize("dimension", [0, 1])
def test_concatenate_of_arrays_and_of_computed_ones(sizes: tuple[int, ...], dimension: int) -> None:
    arrays = [numbers((3, size) if dimension else (size, 7)) for size in sizes]
    joined = run(lambda b, x, y, z: ops.ConcatInDim(b, [x, y, z], dimension), *arrays)
    assert (joined == np.concatenate(arrays, dimension)).all()
    computed = run(lambda b, x, y, z: ops.ConcatInDim(b, [x * 2, -y, z + 1], dimension), *arrays)
    x, y, z = arrays
    assert (computed == np.concatenate([x * 2, -y, z + 1], dimension)).all()


def test_arrays_of_which_whole_vectors_are_chosen_need_no_masks() -> None:
    """Parts that are joined along an outer dimension, inside of a larger kernel: all are read, and one is taken."""
    text = """HloModule m
      ENTRY main {
        a = f32[1,100] parameter(0)
        b = f32[2,100] parameter(1)
        c = f32[100] parameter(2)
        joined = f32[3,100] concatenate(a, b), dimensions={0}
        repeated = f32[3,100] broadcast(c), dimensions={1}
        ROOT d = f32[3,100] divide(joined, repeated)
      }"""
    a, b, c = (np.random.default_rng(3).standard_normal(dims, np.float32) for dims in ((1, 100), (2, 100), 100))
    compiled = xlapy.compile(text)
    assert "masked.load" not in compiled.llvm_ir()
    assert_array_equal(compiled(a, b, c), np.concatenate([a, b]) / c)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("first", [concatenate.SHARE - 2, concatenate.SHARE - 31, 2 * concatenate.SHARE - 1])
@pytest.mark.parametrize("rows", [1, 5])
def test_shares_that_end_just_behind_the_begin_of_an_operand(rows: int, first: int, threads: int) -> None:
    """Fewer elements than a vector has: it must not begin in front of the operand."""
    text = f"""HloModule joined
      ENTRY e {{ x = f32[{rows},{first}] parameter(0)  y = f32[{rows},70] parameter(1)
        z = f32[{rows},9000] parameter(2)  n = f32[{rows},70] negate(y)
        ROOT c = f32[{rows},{first + 9070}] concatenate(x, n, z), dimensions={{1}} }}"""
    x, y, z = (numbers((rows, size)) for size in (first, 70, 9000))
    executable = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))
    with fenced_results():
        got = executable.run(x, y, z, seed=0)
    assert_array_equal(got, np.concatenate([x, -y, z], 1))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "bool"])
@pytest.mark.parametrize("rows", [1, 5])
def test_long_parts_in_memory_are_joined_by_one_code(rows: int, dtype: str, threads: int) -> None:
    sizes = (concatenate.SHARE - 2, concatenate.LONG_STRETCH, 0, 2 * concatenate.SHARE + 33, 700)
    arrays = [numbers((rows, size), dtype) for size in sizes]
    executable = joined(arrays, threads)
    with fenced_results():
        got = executable.run(*arrays, seed=0)
    assert_array_equal(got, np.concatenate(arrays, 1))


@pytest.mark.parametrize("rows", [2, 150])
def test_more_parts_that_are_joined_take_no_more_code(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In many rows they are stored past the caches, and begin anywhere in lines of those. A library, which has those in
    a cache, is left out."""
    monkeypatch.setattr("xlapy.codegen.kernels.makers.loops.call_of_runs", lambda *_: None)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    arrays = [numbers((rows, 12_000 // rows + 1001 * number)) for number in range(1, 9)]
    few, many = joined(arrays[:2], 2), joined(arrays, 2)
    assert_array_equal(many(*arrays), np.concatenate(arrays, 1))
    assert many.llvm_ir().count(" = load <") == few.llvm_ir().count(" = load <")


def joined(arrays: Sequence[np.ndarray], threads: int) -> xlapy.Executable:
    """A program that joins the columns of such arrays."""
    builder = xlapy.XlaBuilder("joined")
    shapes = [xlapy.Shape.array(array.dtype, array.shape) for array in arrays]
    parameters = [builder.parameter(number, shape, f"x{number}") for number, shape in enumerate(shapes)]
    program = builder.build(ops.ConcatInDim(builder, parameters, 1))
    return xlapy.compile(program, xlapy.CompileOptions(num_threads=threads))


@pytest.mark.parametrize("dims", [(9, 130), (100, 7), (3, 50, 20)])
def test_the_first_of_equal_maxima_wins_along_any_dimension(dims: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 5, dims).astype(np.float32)

    def larger(best: xlapy.XlaOp, at: xlapy.XlaOp, value: xlapy.XlaOp, place: xlapy.XlaOp) -> list[xlapy.XlaOp]:
        take = ops.Gt(value, best)
        return [ops.Select(take, value, best), ops.Select(take, place, at)]

    for dimension in range(len(dims)):

        def build(b: xlapy.XlaBuilder, p: xlapy.XlaOp, dimension: int = dimension) -> xlapy.XlaOp:
            places = ops.Iota(b, xlapy.Shape.array("int32", dims), dimension)
            inits = [ops.Constant(b, np.float32(-np.inf)), ops.Constant(b, np.int32(0))]
            return ops.GetTupleElement(ops.Reduce(b, [p, places], inits, larger, [dimension]), 1)

        assert (run(build, x) == x.argmax(dimension)).all()


@pytest.mark.parametrize("size", [64, 65, 1000, 100_003])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_stores_that_bypass_the_caches(size: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that are not where such stores need them, and ends that fill no vector, are stored as usual."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    x = numbers((size,), dtype)
    b = xlapy.XlaBuilder("streamed")
    p = ops.Parameter(b, 0, xlapy.Shape.of(x))
    executable = xlapy.compile(b.build(ops.Add(p, p)))
    for _ in range(4):  # numpy puts small results at other places each time
        kept = executable(x)
        assert (executable(x) == x + x).all() and (kept == x + x).all()
    assert "!nontemporal" in executable.llvm_ir()


@pytest.mark.parametrize("dims", [(5, 64), (3, 1, 32), (7, 160), (2, 3, 100), (40, 1000)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_rows_that_bypass_the_caches(dims: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that no whole vectors fill are stored as usual, and results that are not where such stores need them."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    x = numbers(dims, dtype)
    b = xlapy.XlaBuilder("streamed")
    p = ops.Parameter(b, 0, xlapy.Shape.of(x))
    executable = xlapy.compile(b.build(ops.Rev(ops.Add(p, p), [0])))
    for _ in range(4):  # numpy puts small results at other places each time
        kept = executable(x)
        assert (executable(x) == (x + x)[::-1]).all() and (kept == (x + x)[::-1]).all()
    if dims[-1] & (dims[-1] - 1) == 0:
        assert "!nontemporal" in executable.llvm_ir()


def test_several_results_that_bypass_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is computed in one place, whether it bypasses the caches or not, and rounded there."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    x = numbers((300_001,))
    b = xlapy.XlaBuilder("streamed")
    p = ops.Parameter(b, 0, xlapy.Shape.of(x))
    narrow = ops.ConvertElementType(ops.Sqrt(ops.Abs(p)), "bfloat16")
    executable = xlapy.compile(b.build(ops.Tuple(b, [narrow, ops.Mul(p, p)])))
    roots, squares = executable(x)
    assert (squares == x * x).all()
    assert (roots == np.sqrt(np.abs(x)).astype(roots.dtype)).all()
    code = executable.llvm_ir()
    assert code.count("@llvm.sqrt.v") == 2  # it is declared, and called
    assert code.count("!nontemporal") == 2 and len(re.findall(r"store <\d+ x ", code)) == 4


@pytest.mark.parametrize("is_read", [False, True])
def test_many_results_that_leave_bypass_the_caches(is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is small enough to stay in a cache, but nobody reads it before all are there."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "STREAMED_BYTES", 1 << 20)
    size = 1 << 18
    count = -(-loop.streamed_bytes(host_target()) // (4 * size)) + 1
    b = xlapy.XlaBuilder("leaving")
    p = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (size,)))
    results = [ops.Sort(b, [p * float(number)]) if is_read else p * float(number) for number in range(count)]
    executable = xlapy.compile(b.build(ops.Tuple(b, results)), xlapy.CompileOptions(num_threads=2))
    assert ("!nontemporal" in executable.llvm_ir()) != is_read
    if not is_read:
        x = numbers((size,))
        for number, result in enumerate(executable(x)):
            assert (result == x * np.float32(number)).all()


@pytest.mark.parametrize("offset", [0, 16])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_that_are_repeated_beside_stores_past_the_caches(
    offset: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are copied to where cache lines begin, if they lie elsewhere."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr(loop, "is_streamed", lambda *_: True)
    memory = np.zeros(4 * 128 + 2 * CACHE_LINE, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE + offset
    row = memory[first : first + 4 * 128].view(np.float32)
    row[:] = numbers((128,))
    x = numbers((3000, 128))
    b = xlapy.XlaBuilder("repeated")
    p, q = (ops.Parameter(b, number, xlapy.Shape.of(array)) for number, array in enumerate((x, row)))
    every = ops.BroadcastInDim(q, (3000, 128), (1,))
    executable = xlapy.compile(b.build(p * every + every), xlapy.CompileOptions(num_threads=threads))
    code = executable.llvm_ir()
    assert "!nontemporal" in code and "alloca i8, i64 512" in code
    assert_array_equal(executable(x, row), x * row + row)


def test_strided_reads_end_with_the_last_element() -> None:
    """Lanes are picked from whole vectors. Two lanes, four elements apart, came from one that went beyond the array."""
    shapes = [(count, step) for count in (2, 3, 4, 5, 8, 17) for step in (2, 3, 4, 5)]
    arrays = [
        read_only(numbers((3, (count - 1) * step + 1), dtype))
        for count, step in shapes
        for dtype in ("float32", "float64", "int8")
    ]
    steps = [step for _, step in shapes for _ in range(3)]
    b = xlapy.XlaBuilder("strided")
    parameters = [ops.Parameter(b, number, xlapy.Shape.of(x)) for number, x in enumerate(arrays)]
    results = [
        -ops.Slice(parameter, (0, 0), x.shape, (1, step))
        for parameter, x, step in zip(parameters, arrays, steps, strict=True)
    ]
    executable = xlapy.compile(b.build(ops.Tuple(b, results)), CHECKED)
    for got, x, step in zip(executable(*arrays), arrays, steps, strict=True):
        assert_array_equal(got, -x[:, ::step])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 6), (96, 4), (128, 3), (32, 12)])
def test_strided_reads_of_what_is_cut_into_other_rows_end_there(rows: int, columns: int, dtype: str) -> None:
    """Which column lanes read does not follow from where the first of them begins, if these lie in several rows."""
    x, scale = read_only(numbers((rows, columns), dtype)), numbers((2,), dtype)
    whole, size = x.reshape(2, -1), x.size // 2
    choices = [(first, step) for step in (2, 3) for first in range(step)]
    b = xlapy.XlaBuilder("cut")
    p, q = ops.Parameter(b, 0, xlapy.Shape.of(x)), ops.Parameter(b, 1, xlapy.Shape.of(scale))
    results = []
    for first, step in choices:
        part = ops.Slice(ops.Reshape(p, [2, size]), (0, first), (2, size), (1, step))
        results.append(part * ops.BroadcastInDim(q, [2, len(range(first, size, step))], [0]))
    executable = xlapy.compile(b.build(ops.Tuple(b, results)), CHECKED)
    for got, (first, step) in zip(executable(x, scale), choices, strict=True):
        assert_array_equal(got, whole[:, first::step] * scale[:, None])


CHOSEN = np.arange(3 * 97).reshape(3, 97) % 3 == 0
MOVES: dict[str, Build] = {
    "reverse": lambda b, x, v: ops.Rev(x, [1]),
    "every second": lambda b, x, v: ops.Slice(x, [0, 0], [3, 97], [1, 2]),
    "pad": lambda b, x, v: ops.Pad(x, v, [(0, 1, 1), (2, -3, 1)]),
    "concatenate": lambda b, x, v: ops.Rev(ops.ConcatInDim(b, [x, ops.Rev(x, [1])], 1), [0]),
    "select": lambda b, x, v: ops.Select(ops.Constant(b, CHOSEN), x, ops.Broadcast(v, [3, 97])),
    "turn": lambda b, x, v: ops.Transpose(ops.Pad(ops.Rev(x, [0]), v, [(3, 0, 0), (1, 1, 2)]), [1, 0]),
}


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("name", list(MOVES))
def test_floats_that_are_only_moved_keep_their_bits(name: str, target: str) -> None:
    """Those of every NaN too, as if they were integers. They were widened and narrowed again, which made NaNs quiet,
    and took ten times as long for 8-bit floats."""
    bits = {size: np.random.default_rng(0).integers(0, 1 << size * 8, (3, 97)).astype(f"u{size}") for size in (1, 2)}
    bits[1][:, ::5] |= 0x7C
    bits[2][:, ::5] |= 0x7F80

    def moved(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        module = together([record(lambda x, v: MOVES[name](x.builder, x, v), x, x[0, 0]) for x in arrays])
        executable = xlapy.Executable(compile_module(module, CHECKED, TARGETS[target]), CHECKED)
        results = executable.run(*(argument for x in arrays for argument in (x, x[0, 0])), seed=0)
        return [result.view(f"u{result.itemsize}") for result in results]

    names = ["float16", "bfloat16", "float8_e5m2", "float8_e4m3", "float8_e3m4", "float8_e4m3fnuz", "float8_e8m0fnu"]
    kinds = [element_type_of(name).dtype for name in names]
    wanted = dict(zip(bits, moved([*bits.values()]), strict=True))
    for kind, found in zip(kinds, moved([bits[kind.itemsize].view(kind) for kind in kinds]), strict=True):
        assert_array_equal(found, wanted[kind.itemsize], str(kind))


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("f32", [0x7F800001, 0xFF812345]),
        ("f64", [0x7FF0000000000001, 0xFFF0000012345678]),
        ("bf16", [0x7F81, 0xFFFF]),
        ("f16", [0x7C01, 0xFE55]),
        ("f8e5m2", [0x7D, 0xFF]),
        ("f8e4m3fn", [0x7F, 0xFF]),
        ("c64", [0x7F8000017F800002, 0x3F800000FF800003]),
    ],
)
def test_constants_that_are_nans_keep_their_bits(dtype: str, bits: list[int]) -> None:
    """Filled in, joined, and as tables: signalling ones became quiet."""
    kind = element_type_of(dtype).dtype
    nans = np.array(bits, f"u{kind.itemsize}").view(kind)
    b = xlapy.XlaBuilder("constants")
    x = ops.Parameter(b, 0, xlapy.Shape.of(nans), "x")
    first, second = (ops.Constant(b, nan) for nan in nans)
    filled = ops.Pad(x, first, [(2, 1, 1)])
    joined = ops.ConcatInDim(b, [ops.Broadcast(second, (5,)), x, ops.Constant(b, nans)], 0)
    computation = b.build(ops.Tuple(b, [filled, joined, ops.Broadcast(first, (9,))]))
    for native, expected in zip(xlapy.compile(computation)(nans), xlapy.evaluate(computation, nans), strict=True):
        assert_array_equal(np.asarray(native).view(np.uint8), np.asarray(expected).view(np.uint8))
        words = np.asarray(native).view(nans.view(f"u{min(kind.itemsize, 8)}").dtype)
        assert set(words.tolist()) <= {*bits}


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "f8e5m2", "f8e4m3fn"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_nan_of_python_is_a_constant_as_other_numbers_are(dtype: str, sign: int) -> None:
    element_type = element_type_of(dtype)
    nan = np.array(math.copysign(math.nan, sign), element_type.dtype)
    with KernelBuilder(Module(), "constants", [], None) as k:
        element = constant_element(k, element_type, nan[()])
    assert isinstance(element, Value)
    assert element.constant is not None
    b = xlapy.XlaBuilder("filled")
    filled = xlapy.compile(b.build(ops.Broadcast(ops.Constant(b, nan), (5,))), CHECKED)()
    assert np.asarray(filled).tobytes() == nan.tobytes() * 5
