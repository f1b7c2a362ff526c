"""The functions of the fold libraries: which one a fold calls, and that they do what kernels of programs do."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import on_threads, record
from tests.support.values import assert_same
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.kernels.makers.base import Kernel, kernel_of_fold
from xlapy.codegen.kernels.tasks import LONG_TASK_BYTES
from xlapy.codegen.kernels.wide_blocks import FEW_THREADS, MOST_BYTES
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.libraries.fold import FOLD_LIBRARIES, LEAST_SIZE, call_of_fusion, call_of_reduce
from xlapy.codegen.libraries.fold_columns import emit_columns, wide_name
from xlapy.codegen.libraries.fold_maps import EXPONENTIALS_OF_PARTS, MAPS, SQUARES_OF_PARTS
from xlapy.codegen.libraries.fold_plan import KINDS
from xlapy.codegen.libraries.fold_problem import NUMBERS, FoldKind
from xlapy.codegen.libraries.fold_rows import TOGETHER
from xlapy.codegen.target import host_target, reference_target
from xlapy.hlo.element_types import BF16, F32, F64, ElementType
from xlapy_runtime.records import replaced

COMBINERS = {"add": ops.Add, "multiply": ops.Mul, "maximum": ops.Max, "minimum": ops.Min}
INITS = {"add": 3, "multiply": 2, "maximum": -5, "minimum": 9}
ROWS, COLUMNS, GROUPS = (140, 259), (140, 259), (3, 70, 261)
UNEVEN = {"rows": (ROWS, (1,)), "columns": (COLUMNS, (0,)), "groups": (GROUPS, (1,)), "all": (GROUPS, (0, 1, 2))}
TYPES = sorted({kind.type for kind in KINDS}, key=lambda t: t.name)


def elements(element_type: ElementType, opcode: str, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    if not element_type.is_float:
        return random.integers(0, 200, dims).astype(element_type.dtype)
    values = random.normal(size=dims)
    if opcode == "multiply":
        return (1 + values * 1e-3).astype(element_type.dtype)
    if opcode != "add":
        values[values < -2.5] = np.nan
        values[:, 30:60] = np.where(values[:, 30:60] < 0, -0.0, -np.inf if opcode == "maximum" else np.inf)
    return values.astype(element_type.dtype)


def fold(x: XlaOp, opcode: str, dimensions: tuple[int, ...], init: float) -> XlaOp:
    value = ops.Constant(x.builder, np.asarray(init).astype(x.shape.type.dtype))
    region = xlapy.XlaBuilder("region")
    a, b = (ops.Parameter(region, n, xlapy.Shape.array(x.shape.type, ()), name) for n, name in enumerate("ab"))
    return ops.Reduce(x.builder, [x], [value], region.build(COMBINERS[opcode](a, b)), dimensions)


def folds_of(opcode: str, way: str) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """All types at once, and what is wider in between."""
    dims, folded = UNEVEN[way]
    arrays = [elements(type, opcode, dims) for type in TYPES]

    def build(*operands: XlaOp) -> list[XlaOp]:
        results = []
        for x in operands:
            results.append(fold(x, opcode, folded, INITS[opcode]))
            if x.shape.type.is_narrow_float:
                wide = fold(ops.ConvertElementType(x, np.float32), opcode, folded, INITS[opcode])
                results += [wide, ops.ConvertElementType(wide, x.shape.type)]
        return results

    return build, arrays


def libraries_of(executable: xlapy.Executable) -> list[str]:
    return [name for name in executable._compiled.program.libraries if name.startswith("fold_")]


@pytest.mark.parametrize("opcode", COMBINERS)
@pytest.mark.parametrize("way", UNEVEN)
def test_a_library_does_what_a_kernel_does(opcode: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, arrays = folds_of(opcode, way)
    module = record(build, *arrays)
    options = xlapy.CompileOptions(verify=True)
    from_library = xlapy.compile(module, options)
    assert len(libraries_of(from_library)) >= len(TYPES)
    results = from_library(*arrays)
    monkeypatch.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    from_kernel = xlapy.compile(module, options)
    assert not libraries_of(from_kernel)
    is_same_order = way in ("rows", "columns", "groups")
    for found, own, wanted in zip(results, from_kernel(*arrays), xlapy.evaluate(module, *arrays), strict=True):
        if found.dtype.kind in "iu" or opcode in ("maximum", "minimum"):
            assert_same(found, wanted)
        if is_same_order:
            assert_same(found, own)
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=2e-2 if found.dtype.itemsize == 2 else 1e-4
        )


def rows_in_doubt(type: ElementType, sign: int, dims: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Rows whose extremum is a number, a zero of one sign or of both, and a NaN of several: the one that wins is at the
    beginning, in between, or among the last elements."""
    random = np.random.default_rng(5)
    x = (sign * (1 + np.abs(random.normal(size=dims)))).astype(type.dtype)
    bits = x.view(f"u{x.dtype.itemsize}")
    negative = 1 << (8 * x.dtype.itemsize - 1)
    quiet = int(np.asarray(np.nan, x.dtype).view(bits.dtype)) & ~negative
    for row in range(dims[0]):
        place, other = random.choice([0, 1, 17, 40, dims[1] // 2, dims[1] - 2, dims[1] - 1], 2, replace=False)
        match row % 7:
            case 1:
                x[row, place] = 0.0
            case 2:
                x[row, place] = -0.0
            case 3:
                x[row, [place, other]] = 0.0, -0.0
            case 4:
                x[row] = np.where(random.integers(2, size=dims[1]), 0.0, -0.0)
            case 5:
                bits[row, place] = quiet + 3 + negative * (row & 1)
            case 6:
                bits[row, place], bits[row, other] = quiet + 1, quiet + 2 + negative
    return x


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("way", ["near", "fetched"])
def test_zeros_and_nans_among_extrema(opcode: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit what folds find that keep marks for every element."""
    types = [type for type in TYPES if type.is_float]
    dims = (140, 259) if way == "near" else (host_target().l2_bytes // (2 * 1001) + 40, 1001)
    arrays = [rows_in_doubt(type, -1 if opcode == "maximum" else 1, dims) for type in types]
    init = -np.inf if opcode == "maximum" else np.inf
    module = record(lambda *operands: [fold(x, opcode, (1,), init) for x in operands], *arrays)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    from_library = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    assert len(libraries_of(from_library)) == len(types)
    results = from_library(*arrays)
    monkeypatch.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
    from_kernel = xlapy.compile(module)
    assert not libraries_of(from_kernel)
    for found, own, wanted in zip(results, from_kernel(*arrays), xlapy.evaluate(module, *arrays), strict=True):
        assert_same(found, wanted)
        assert found.tobytes() == own.tobytes()


MADE = {
    "square": lambda x, y: x * x,
    "product": lambda x, y: x * y,
    "square_of_difference": lambda x, y: (x - y) * (x - y),
    "abs": lambda x, y: ops.Abs(x),
    "abs_of_difference": lambda x, y: ops.Abs(x - y),
}


def test_all_maps_are_tested() -> None:
    tested = {*MADE, *MADE_WITH_EACH, SQUARES_OF_PARTS.name, EXPONENTIALS_OF_PARTS.name}
    assert {made.name for maps in MAPS.values() for made in maps} == tested


@pytest.mark.parametrize("way", ["rows", "columns"])
@pytest.mark.parametrize("made", MADE)
def test_what_is_made_before_a_fold_is_made_by_the_library(
    made: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dims, folded = UNEVEN[way]
    types = [type for type in TYPES if type.is_float]
    for opcode in (opcode for opcode, maps in MAPS.items() if made in {each.name for each in maps}):
        pairs = [(x, x[::-1].copy()) for x in (elements(type, "add", dims) for type in types)]

        def build(*operands: XlaOp) -> list[XlaOp]:
            wide = [ops.ConvertElementType(v, np.float32) if v.shape.type.is_narrow_float else v for v in operands]
            values = [MADE[made](x, y) for x, y in zip(wide[::2], wide[1::2], strict=True)]
            return [fold(value, opcode, folded, INITS[opcode]) for value in values]  # noqa: B023

        arrays = [array for pair in pairs for array in pair]
        module = record(build, *arrays)
        from_library = xlapy.compile(module, xlapy.CompileOptions(verify=True))
        names = {f"fold_{way}_{opcode}_{type.name}{'_f32' * type.is_narrow_float}_{made}" for type in types}
        assert set(libraries_of(from_library)) == names
        with monkeypatch.context() as patched:
            patched.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
            patched.setenv("XLAPY_CACHE_DIR", "off")
            from_kernel = xlapy.compile(module, xlapy.CompileOptions(verify=True))
        assert not libraries_of(from_kernel)
        results = zip(from_library(*arrays), from_kernel(*arrays), xlapy.evaluate(module, *arrays), strict=True)
        for result, own, wanted in results:
            assert_same(result, own)
            np.testing.assert_allclose(result, wanted, rtol=1e-4 if result.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("made", ["itself", "product", "square_of_deviation"])
@pytest.mark.parametrize("rows_more", [-2, 0, 2])
def test_rows_about_as_large_as_a_cache_are_folded_in_the_order_of_kernels(
    rows_more: int, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many vectors are folded side by side depends on whether all arrays together fit the second-level cache."""
    rows, columns = host_target().l2_bytes // (1024 * 4) + rows_more, 1024
    x, y = (np.random.default_rng(n).normal(size=(rows // (1 + (made == "product")), columns)) for n in range(2))
    arrays = [x.astype(np.float32), (y[:, 0] if made == "square_of_deviation" else y).astype(np.float32)]

    def build(x: XlaOp, y: XlaOp) -> XlaOp:
        value = (x - each(y, x, 0)) * (x - each(y, x, 0)) if made == "square_of_deviation" else x * y
        return fold(x if made == "itself" else value, "add", (1,), 0)

    module = record(build, *arrays)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 0)
    from_library = xlapy.compile(module)
    assert libraries_of(from_library) == [f"fold_rows_add_f32{'_' + made if made != 'itself' else ''}"]
    monkeypatch.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
    from_kernel = xlapy.compile(module)
    assert not libraries_of(from_kernel)
    assert_same(from_library(*arrays), from_kernel(*arrays))


@pytest.mark.parametrize("dims", [(1031, 301), (515, 1024), (7, 100_003)])
def test_rows_side_by_side_are_folded_in_the_order_of_kernels(
    dims: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them a task has, and however many are left over."""
    types = [type for type in TYPES if type.bytes * dims[0] * dims[1] > host_target().l2_bytes]
    arrays = [elements(type, "add", dims) for type in types]
    arrays += [elements(F32, "add", dims)] * 2

    def build(*operands: XlaOp) -> list[XlaOp]:
        *plain, x, y = operands
        return [*(fold(each, "add", (1,), 3) for each in plain), fold((x - y) * (x - y), "add", (1,), 3)]

    module = record(build, *arrays)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    with monkeypatch.context() as patched:
        patched.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
        from_kernel = xlapy.compile(module)
    wanted = from_kernel(*arrays)
    assert not libraries_of(from_kernel)
    from_library = xlapy.compile(module)
    assert len(libraries_of(from_library)) == len(types) + 1
    for threads in (1, 2, 3, 8):
        for found, own in zip(on_threads(from_library, threads)(*arrays), wanted, strict=True):
            assert_same(found, own)


def test_tasks_have_rows_to_read_side_by_side() -> None:
    """Unless rows are so few and long that there would be no tasks for many cores."""

    def tasks(rows: int, columns: int) -> Kernel:
        reduce = record(lambda x: fold(x, "add", (1,), 0), np.empty((rows, columns), np.float32)).entry.root
        call = call_of_reduce(reduce, reference_target("avx2"))
        assert call is not None and call.together == TOGETHER
        return kernel_of_fold(call, reduce.operands, reduce)

    whole = tasks(4096, 4096)
    assert whole.grain % TOGETHER == 0
    assert LONG_TASK_BYTES * 3 // 4 < whole.grain * whole.bytes_per_unit <= LONG_TASK_BYTES
    assert tasks(512, 1 << 15).grain == TOGETHER
    assert tasks(64, 1 << 17).grain == 1


MADE_WITH_EACH = {
    "square_of_deviation": lambda x, each: (x - each) * (x - each),
    "exponential": lambda x, each: ops.Exp(x - each),
}


@pytest.mark.parametrize("way", UNEVEN)
@pytest.mark.parametrize("made", MADE_WITH_EACH)
@pytest.mark.parametrize("is_one", [False, True])
def test_elements_and_a_number_for_each_fold(
    made: str, way: str, is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dims, folded = UNEVEN[way]
    kept = () if is_one else tuple(dim for dim in range(len(dims)) if dim not in folded)
    shapes = (dims, tuple(dims[dim] for dim in kept))
    arrays = [np.asarray(elements(F64, "add", shape), type.dtype) for type in (F32, F64) for shape in shapes]

    def build(x: XlaOp, y: XlaOp, z: XlaOp, w: XlaOp) -> list[XlaOp]:
        return [fold(MADE_WITH_EACH[made](x, each(y, x, *kept)), "add", folded, 3) for x, y in ((x, y), (z, w))]

    module = record(build, *arrays)
    from_library = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    by_columns = way in ("columns", "groups")
    names = {f"fold_{'columns' if by_columns else 'rows'}_add_{type}_{made}" for type in ("f32", "f64")}
    assert set(libraries_of(from_library)) == (set() if by_columns and is_one else names)
    monkeypatch.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    from_kernel = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    assert not libraries_of(from_kernel)
    results = zip(from_library(*arrays), from_kernel(*arrays), xlapy.evaluate(module, *arrays), strict=True)
    for result, own, wanted in results:
        if way != "all":  # of which kernels make one row after the other
            assert_same(result, own)
        np.testing.assert_allclose(result, wanted, rtol=1e-4 if result.dtype == np.float32 else 1e-12)


def squares_of_parts(squares: XlaOp, means: XlaOp, mean: XlaOp, size: float) -> XlaOp:
    zero = ops.Broadcast(ops.Constant(means.builder, np.zeros((), means.shape.type.dtype)), means.shape.dims)
    apart = ops.Select(ops.Eq(means, mean), zero, means - mean)
    return squares + apart * apart * np.asarray(size, means.shape.type.dtype)


@pytest.mark.parametrize("way", UNEVEN)
@pytest.mark.parametrize("type", [F32, F64])
def test_moments_of_parts_are_put_together(way: str, type: ElementType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of infinite ones, which may be equal."""
    dims, folded = UNEVEN[way]
    kept = tuple(dim for dim in range(len(dims)) if dim not in folded)
    means = elements(type, "add", dims)
    means[:, 7] = means[2] = np.inf
    whole = np.asarray(means.mean(folded), type.dtype)
    arrays = [abs(elements(type, "add", dims)), means, whole]

    def build(squares: XlaOp, means: XlaOp, mean: XlaOp) -> XlaOp:
        return fold(squares_of_parts(squares, means, each(mean, means, *kept), 48), "add", folded, 0)

    module = record(build, *arrays)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    by = "columns" if way in ("columns", "groups") else "rows"
    assert libraries_of(executable) == [f"fold_{by}_add_{type.name}_squares_of_parts"]
    check_without_libraries(module, executable, arrays, monkeypatch, exactly=way != "all")


@pytest.mark.parametrize("way", UNEVEN)
@pytest.mark.parametrize("type", [F32, F64])
def test_exponentials_of_parts_are_put_together(way: str, type: ElementType, monkeypatch: pytest.MonkeyPatch) -> None:
    dims, folded = UNEVEN[way]
    kept = tuple(dim for dim in range(len(dims)) if dim not in folded)
    tops = elements(type, "add", dims)
    arrays = [abs(elements(type, "add", dims)), tops, np.asarray(tops.max(folded), type.dtype)]

    def build(sums: XlaOp, tops: XlaOp, top: XlaOp) -> XlaOp:
        zero = ops.Broadcast(ops.Constant(tops.builder, np.zeros((), type.dtype)), dims)
        return fold(sums * ops.Exp(ops.Min(tops - each(top, tops, *kept), zero)), "add", folded, 0)

    module = record(build, *arrays)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    by = "columns" if way in ("columns", "groups") else "rows"
    assert libraries_of(executable) == [f"fold_{by}_add_{type.name}_exponentials_of_parts"]
    check_without_libraries(module, executable, arrays, monkeypatch, exactly=way != "all")


def check_without_libraries(
    module: Any,
    executable: xlapy.Executable,
    arrays: list[np.ndarray[Any, Any]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    exactly: bool = True,
) -> None:
    """The results are those of kernels of the program, and of the evaluator."""
    monkeypatch.setattr("xlapy.codegen.libraries.fold.LEAST_SIZE", 1 << 60)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    from_kernel = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    assert not libraries_of(from_kernel)
    own, wanted = (jax.tree.leaves(found) for found in (from_kernel(*arrays), xlapy.evaluate(module, *arrays)))
    for result, same, near in zip(jax.tree.leaves(executable(*arrays)), own, wanted, strict=True):
        if exactly:
            assert_same(result, same)
        limit = {2: 1e-2, 4: 1e-4, 8: 1e-12}[result.dtype.itemsize]
        np.testing.assert_allclose(result.astype(np.float64), near.astype(np.float64), rtol=limit, atol=limit)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,)])
@pytest.mark.parametrize("size", [67, 64])
def test_means_are_divided_by_the_library(dims: tuple[int, ...], size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By constants that are no powers of two, and by some that are, which laws make products of."""
    shape = (size, 70, 261)
    arrays = [elements(type, "add", shape) for type in (F32, F64, BF16)]

    def build(*operands: XlaOp) -> list[XlaOp]:
        results = []
        for x in operands:
            wide = ops.ConvertElementType(x, np.float32) if x.shape.type is BF16 else x
            mean = fold(wide, "add", dims, 0) / np.asarray(size, wide.shape.type.dtype)
            results.append(ops.ConvertElementType(mean, x.shape.type.dtype))
        return results

    module = record(build, *arrays)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    assert len(libraries_of(executable)) == len(arrays)
    assert "kernel." not in executable.llvm_ir()
    check_without_libraries(module, executable, arrays, monkeypatch, exactly=dims != (2,))


def test_only_means_are_divided_by_the_library() -> None:
    """Not what is made of integers or products, nor what is divided by what is no constant, or multiplied by anything
    but powers of two."""
    x = elements(F32, "add", COLUMNS)
    sum = lambda x: fold(x, "add", (0,), 0)  # noqa: E731
    for build in (
        lambda x: fold(x, "maximum", (0,), 0) / np.float32(3),
        lambda x: fold(x, "multiply", (0,), 1) / np.float32(3),
        lambda x: sum(x) * np.float32(3),
        lambda x: sum(x) / np.float32(0),
        lambda x: sum(x) * np.float32(0),
        lambda x: np.float32(3) / sum(x),
        lambda x: sum(x) / sum(ops.Abs(x)),
    ):
        executable = xlapy.compile(record(build, x))
        assert "kernel.0" in executable.llvm_ir()
        np.testing.assert_allclose(executable(x), xlapy.evaluate(record(build, x), x), rtol=1e-4)


@pytest.mark.parametrize("way", ["rows", "columns"])
@pytest.mark.parametrize("length", [40, 4])
def test_small_folds_are_calls_where_they_are_a_small_part_of_a_program(way: str, length: int) -> None:
    """But for short rows, and in loops, which may run more often than anything else. Columns are as many as the widest
    vectors take, which the library folds eight at a time."""
    random = np.random.default_rng(5)
    dims, dim = ((64, length), 1) if way == "rows" else ((length, 8 * host_target().lanes(32)), 0)
    x, y, z = (random.normal(size=shape).astype(np.float32) for shape in ((900, 900), dims, dims))

    def program(x: Any, y: Any, z: Any) -> Any:
        return x @ x, y.sum(dim), (z * z).sum(dim) / 3

    def loop(x: Any, y: Any, z: Any) -> Any:
        return x @ x, jax.lax.fori_loop(0, 10, lambda _, v: v + (v * v).sum(dim, keepdims=True) / 3, y)

    executable = xlapy.compile(jax.jit(program).lower(x, y, z).as_text())
    wanted = [f"fold_{way}_add_f32", f"fold_{way}_add_f32_square"] if way == "columns" or length == 40 else []
    assert libraries_of(executable) == wanted
    for found, right in zip(executable(x, y, z), program(x, y, z), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)
    assert not libraries_of(xlapy.compile(jax.jit(loop, keep_unused=True).lower(x, y, z).as_text()))


@pytest.mark.parametrize("dims", [(0,), (0, 1)])
def test_a_logarithm_of_sums_of_exponentials_is_two_folds(dims: tuple[int, ...]) -> None:
    """Of columns, one after the other; of everything, each in two steps of which the library has the first."""
    x = np.random.default_rng(6).normal(size=(2048, 2048)).astype(np.float32)
    lowered = jax.jit(lambda x: jax.nn.logsumexp(x, dims)).lower(x)
    program = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(verify=True))
    way = "columns" if dims == (0,) else "rows"
    assert {f"fold_{way}_maximum_f32", f"fold_{way}_add_f32_exponential"} <= set(libraries_of(program))
    first, *others = (on_threads(program, threads)(x) for threads in (1, 2, 3, 8))
    for found in others:
        assert_same(found, first)
    wanted = np.log(np.exp(x.astype(np.float64)).sum(dims))
    np.testing.assert_allclose(first, wanted, rtol=1e-6)


def test_the_bits_do_not_depend_on_the_threads() -> None:
    x = np.random.default_rng(0).normal(size=(1100, 1300)).astype(np.float32)

    def build(x: XlaOp) -> list[XlaOp]:
        return [fold(x, "add", dims, 0) for dims in ((0,), (1,), (0, 1))]

    programs = [xlapy.compile(record(build, x), xlapy.CompileOptions(num_threads=n)) for n in (1, 2, 3, 8)]
    first, *others = [program(x) for program in programs]
    for other in others:
        for one, same in zip(first, other, strict=True):
            assert_same(one, same)


def test_folds_that_begin_with_other_constants_are_different_calls() -> None:
    x, inits = np.ones((300, 400), np.float32), (0, 7, -1)

    def build(*operands: XlaOp) -> list[XlaOp]:
        return [fold(x, "add", (0,), init) for x, init in zip(operands, inits, strict=True)]

    program = xlapy.compile(record(build, x, x, x))
    assert libraries_of(program) == ["fold_columns_add_f32"]
    assert [result[0] for result in program(x, x, x)] == [300, 307, 299]


def test_folds_run_with_others() -> None:
    """In one job of the pool, where a program has many that are not large."""
    arrays = [np.random.default_rng(n).normal(size=(200, 300)).astype(np.float32) for n in range(16)]
    module = record(lambda *xs: [fold(x, "maximum", (n % 2,), -np.inf) for n, x in enumerate(xs)], *arrays)
    program = xlapy.compile(module, xlapy.CompileOptions(num_threads=2))
    assert "kernel.joint" in program.llvm_ir()
    for number, (x, found) in enumerate(zip(arrays, program(*arrays), strict=True)):
        assert_same(found, x.max(number % 2))


def finished(x: XlaOp, y: XlaOp, dims: tuple[int, ...]) -> XlaOp:
    """Something that is made from the results of a fold, and from as many other numbers."""
    return ops.Sub(ops.Tanh(ops.Mul(fold(x, "add", dims, 2), y)), y)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_what_is_made_from_results_is_a_second_step(dims: tuple[int, ...], dtype: Any) -> None:
    rows, columns = 1100, 1300
    x = np.random.default_rng(6).normal(size=(rows, columns)).astype(dtype)
    kept = tuple(size for dim, size in enumerate(x.shape) if dim not in dims)
    y = np.random.default_rng(7).normal(size=kept).astype(np.float32) * 0.01

    def build(x: XlaOp, y: XlaOp) -> XlaOp:
        return finished(ops.ConvertElementType(x, np.float32), y, dims)

    module = record(build, x, np.asarray(y, np.float32))
    program = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    assert {name.split("_")[1] for name in libraries_of(program)} == {"columns" if dims == (0,) else "rows"}
    first, *others = (on_threads(program, threads)(x, y) for threads in (1, 2, 3, 8))
    for found in others:
        assert_same(found, first)
    total = 2 + x.astype(np.float64).sum(dims)
    np.testing.assert_allclose(first, np.tanh(total * y) - y, rtol=1e-3, atol=2e-4)


def test_a_second_step_may_overwrite_what_it_reads() -> None:
    """The memory of an operand that nobody reads any more is as good as any other."""
    x = np.random.default_rng(8).normal(size=(1100, 1300)).astype(np.float32)
    y = np.full(1300, 0.01, np.float32)
    module = record(lambda x, y: [finished(x, y, (0,)), ops.Neg(y)], x, y)
    for found, wanted in zip(xlapy.compile(module)(x, y), xlapy.evaluate(module, x, y), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dims", [(0,), (1,)])
def test_small_folds_have_second_steps_where_they_are_a_small_part_of_a_program(dims: tuple[int, ...]) -> None:
    """What is made from results may lie where what it is made from did."""
    dims_of = {"x": (90, 700), "y": (700,) if dims == (0,) else (90,), "z": (1500, 1500)}
    x, y, z = (np.full(size, 0.01, np.float32) for size in dims_of.values())
    module = record(lambda x, y, z: [finished(x, ops.Abs(y), dims), ops.Neg(y), ops.Mul(z, z)], x, y, z)
    program = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    assert [name.split("_")[1] for name in libraries_of(program)] == ["columns" if dims == (0,) else "rows"]
    assert ".finish" in program.llvm_ir()
    first, *others = (on_threads(program, threads)(x, y, z)[0] for threads in (1, 2, 3, 8))
    np.testing.assert_allclose(first, xlapy.evaluate(module, x, y, z)[0], rtol=1e-3, atol=1e-4)
    for found in others:
        assert_same(found, first)


def test_short_rows_of_much_memory_have_a_second_step_beside_more_work() -> None:
    """Rows that otherwise are too short for a library."""
    x, z = (np.random.default_rng(n).random(size, np.float32) for n, size in enumerate([(16384, 64), (1200, 1200)]))
    lowered = jax.jit(lambda x, z: (jnp.tanh(x.sum(1) / 50), z @ z)).lower(x, z)
    program = xlapy.compile(lowered.as_text(), xlapy.CompileOptions(verify=True))
    assert ".finish" in program.llvm_ir()
    np.testing.assert_allclose(program(x, z)[0], np.tanh(x.astype(np.float64).sum(1) / 50), rtol=1e-5)


def test_second_steps_in_a_loop() -> None:
    x = np.random.default_rng(8).normal(size=(1100, 1300)).astype(np.float32)
    y = np.full(1300, 0.01, np.float32)

    def loop(x: Any, y: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(x.sum(0) * y) - y, y)

    lowered = jax.jit(loop).lower(x, y)
    program = xlapy.compile(lowered.as_text())
    assert libraries_of(program) == ["fold_columns_add_f32"]
    np.testing.assert_allclose(program(x, y), lowered.compile()(x, y), rtol=1e-3, atol=1e-4)


def test_folds_of_a_loop() -> None:
    x = np.random.default_rng(1).normal(size=(256, 256)).astype(np.float32)
    text = """HloModule m
      sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
      body { s = (s32[], f32[256,256], f32[256]) parameter(0)
        n = s32[] get-tuple-element(s), index=0  x = f32[256,256] get-tuple-element(s), index=1
        y = f32[256] get-tuple-element(s), index=2  one = s32[] constant(1)  m = s32[] add(n, one)
        z = f32[] constant(0)  r = f32[256] reduce(x, z), dimensions={0}, to_apply=sum  t = f32[256] add(y, r)
        ROOT u = (s32[], f32[256,256], f32[256]) tuple(m, x, t) }
      go { s = (s32[], f32[256,256], f32[256]) parameter(0)  n = s32[] get-tuple-element(s), index=0
        c = s32[] constant(3)  ROOT p = pred[] compare(n, c), direction=LT }
      ENTRY e { x = f32[256,256] parameter(0)  z = s32[] constant(0)  y = f32[256] parameter(1)
        t = (s32[], f32[256,256], f32[256]) tuple(z, x, y)
        w = (s32[], f32[256,256], f32[256]) while(t), condition=go, body=body
        ROOT r = f32[256] get-tuple-element(w), index=2 }"""
    found = xlapy.compile(text)(x, np.zeros(256, np.float32))
    np.testing.assert_allclose(found, 3 * x.astype(np.float64).sum(0), rtol=1e-4, atol=1e-4)


def call_of(build: Any, *arrays: np.ndarray[Any, Any]) -> LibraryCall | None:
    root = record(build, *arrays).entry.root
    found = call_of_reduce(root, host_target())
    return found.call if found is not None else None


def test_which_library_folds() -> None:
    def name(x: np.ndarray[Any, Any], *dims: int) -> str | None:
        call = call_of(lambda x: fold(x, "add", dims, 0), x)
        return call.library if call is not None else None

    large, narrow = np.zeros((512, 512), np.float32), np.zeros((512, 512), ml_dtypes.bfloat16)
    assert name(large, 0) == "fold_columns_add_f32"
    assert name(narrow, 1) == "fold_rows_add_bf16"
    assert name(large.reshape(8, 64, 512), 0, 1) == "fold_columns_add_f32"
    assert name(large.reshape(8, 64, 512), 1, 2) == "fold_rows_add_f32"
    assert name(large.reshape(1, 512, 1, 512), 1) == "fold_columns_add_f32"
    assert name(np.zeros(LEAST_SIZE, np.float32), 0) == "fold_rows_add_f32"


def test_what_a_program_folds_itself() -> None:
    def is_called(x: np.ndarray[Any, Any], *dims: int) -> bool:
        return call_of(lambda x: fold(x, "add", dims, 0), x) is not None

    large = np.zeros((512, 512), np.float32)
    assert is_called(large, 0)
    assert not is_called(large[:10], 0)  # small
    assert not is_called(large.reshape(-1, 64), 1)  # short rows
    assert not is_called(large.reshape(-1, 16), 0)  # few columns
    assert not is_called(large.reshape(8, 64, 512), 0, 2)  # kept in between
    assert not is_called(large.reshape(-1), 0)  # so long that it has to listen
    assert not is_called(large.astype(np.int8), 0)
    assert call_of(lambda x, y: ops.Reduce(x.builder, [x], [y], sum_region(), (0,)), large, np.float32(0)) is None


def test_folds_of_what_is_made_otherwise_are_no_calls() -> None:
    x = np.zeros((512, 512), np.float32)
    narrow = x.astype(ml_dtypes.bfloat16)

    def libraries(build: Any, *arrays: np.ndarray[Any, Any]) -> list[str]:
        return libraries_of(xlapy.compile(record(build, *arrays)))

    def sums(made: Any) -> Any:
        return lambda *operands: fold(made(*operands), "add", (1,), 0)

    assert libraries(sums(lambda x, y: (x - y) * (x - y)), x, x) == ["fold_rows_add_f32_square_of_difference"]
    assert libraries(sums(lambda x, y: ops.Exp(x - each(y, x, 0))), x, x[0]) == ["fold_rows_add_f32_exponential"]
    assert not libraries(sums(lambda x, y: ops.Exp(x - each(y, x, 1))), x, x[0])  # a number for each place, not row
    assert not libraries(sums(lambda x, y: ops.Exp(each(y, x, 0) - x)), x, x[0])
    assert not libraries(sums(lambda x: ops.Exp(x - ops.Constant(x.builder, np.float32(2)))), x)
    assert not libraries(sums(lambda x, y: (x - y) * (y - x)), x, x)
    assert not libraries(sums(lambda x, y: x - y), x, x)
    assert not libraries(sums(lambda x: x * x), narrow)  # rounded before it is folded
    assert not libraries(sums(lambda x, y: x * ops.ConvertElementType(y, np.float32)), x, narrow)
    assert not libraries(sums(lambda x, y: x * ops.Broadcast(y, (512,))), x, x[0])
    assert not libraries(lambda x: fold(x * x, "maximum", (1,), 0), x)


def each(numbers: XlaOp, x: XlaOp, *dimensions: int) -> XlaOp:
    """Numbers that stand in these dimensions of `x`, repeated in all others."""
    return ops.BroadcastInDim(numbers, x.shape.dims, dimensions)


def sum_region() -> Any:
    region = xlapy.XlaBuilder("region")
    a, b = (ops.Parameter(region, n, xlapy.Shape.array(np.float32, ()), name) for n, name in enumerate("ab"))
    return region.build(a + b)


def maximum_call(rows: int, columns: int, dim: int) -> LibraryCall:
    call = call_of(lambda x: fold(x, "maximum", (dim,), 0), np.zeros((rows, columns), np.float32))
    assert call is not None
    return call


def number_of(call: LibraryCall, name: str) -> int:
    return call.numbers[NUMBERS.index(name)]


def test_large_arrays_are_fetched_ahead() -> None:
    rows = host_target().l2_bytes // (1024 * 4)
    assert [number_of(maximum_call(rows, 1024, dim), "ahead") for dim in (0, 1)] == [0, 0]
    assert all(number_of(maximum_call(rows + 1, 1024, dim), "ahead") >= FETCHED_AHEAD for dim in (0, 1))


@pytest.mark.parametrize("opcode", ["add", "maximum"])
@pytest.mark.parametrize("type", [F32, BF16])
def test_wide_blocks_fetch_where_that_does_not_disturb(opcode: str, type: ElementType) -> None:
    """Processors that fetch well on their own are slower if they are told what comes next."""
    for name, cpu, fetches in (("avx2", "znver3", False), ("avx512", "znver4", False), ("avx512", "znver5", True)):
        text = emit_columns(FoldKind(opcode, type, type), replaced(reference_target(name), cpu=cpu)).text()
        wide = text.partition(f"@{wide_name(FoldKind(opcode, type, type))}(")[2].partition("\n}")[0]
        assert ("call void @llvm.prefetch" in wide) == fetches


def test_columns_in_memory_are_folded_by_wide_blocks() -> None:
    rows = host_target().l3_bytes // (2 * 1024 * 4)
    near, far = maximum_call(rows, 1024, 0), maximum_call(rows + 1, 1024, 0)
    assert not near.function.endswith(".wide") and far.function.endswith(".wide")
    blocks, lanes = number_of(far, "blocks"), 1024 // (number_of(far, "blocks") * number_of(far, "width"))
    assert blocks == FEW_THREADS and lanes * blocks * number_of(far, "width") == 1024
    assert number_of(maximum_call(2 * rows // 1000, 500_000, 0), "blocks") >= 500_000 * 4 // MOST_BYTES


def test_long_rows_of_whole_lines_are_read_from_end_to_end_if_no_own_cache_holds_them() -> None:
    rows = host_target().l2_bytes // (2048 * 4)
    calls = [
        maximum_call(*dims, 0) for dims in ((rows, 2048), (rows + 1, 2048), (rows + 1, 2049), (2 * rows + 2, 1024))
    ]
    assert [call.function.endswith(".wide") for call in calls] == [False, True, False, False]


@pytest.mark.parametrize(
    ("opcode", "dtype"), [("sum", ml_dtypes.bfloat16), ("sum", np.float16), ("max", ml_dtypes.bfloat16)]
)
def test_columns_of_narrow_floats_in_memory_are_folded_in_parts(opcode: str, dtype: Any) -> None:
    """Each part from end to end, as those of wide ones: sums of f32, extrema as they are."""
    x = np.random.default_rng(9).normal(size=(4096, 4096)).astype(dtype)
    lowered = jax.jit(lambda x: getattr(x.reshape(32, 128, 4096), opcode)((0, 1))).lower(x)
    program = xlapy.compile(lowered.as_text())
    assert "[16,4096]" in program.hlo_text() or "[16,2,4096]" in program.hlo_text()
    assert all("columns" in name for name in libraries_of(program))
    expected = getattr(x.astype(np.float64), opcode)(0)
    np.testing.assert_allclose(program(x).astype(np.float64), expected, rtol=2.0**-8, atol=1e-3)


@pytest.mark.parametrize(("dim", "way"), [(0, "columns"), (1, "rows")])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_results_of_wide_floats_may_be_narrow(dim: int, way: str, dtype: Any) -> None:
    """They are rounded once, when they are stored."""
    x = np.random.default_rng(11).normal(size=(700, 900)).astype(np.float32)
    wide = xlapy.compile(jax.jit(lambda x: x.sum(dim)).lower(x).as_text())
    narrow = xlapy.compile(jax.jit(lambda x: x.sum(dim).astype(dtype)).lower(x).as_text())
    (library,) = libraries_of(narrow)
    assert library == f"fold_{way}_add_f32_{'f16' if dtype is np.float16 else 'bf16'}"
    np.testing.assert_array_equal(narrow(x), wide(x).astype(dtype))


def test_two_arrays_in_memory_are_folded_by_wide_blocks() -> None:
    """As kernels of programs fold them: what counts is what is read in all."""
    rows = host_target().l3_bytes // (2 * 1024 * 4)
    x, y = (np.empty((rows - 8, 1024), np.float32) for _ in range(2))
    made = (lambda x, y: x * x, lambda x, y: x * y)
    programs = [record(lambda x, y: fold(value(x, y), "add", (0,), 0), x, y) for value in made]  # noqa: B023
    one, both = (call_of_fusion(program.entry, host_target()) for program in programs)
    assert one is not None and not one.call.function.endswith(".wide")
    assert both is not None and both.call.function.endswith(".wide")


@pytest.mark.parametrize("opcode", COMBINERS)
@pytest.mark.parametrize("dims", [(140, 259), (3, 70, 261), (2, 5, 9000), (8, 40, 150)])
def test_wide_blocks_fold_in_the_order_of_narrow_ones(
    opcode: str, dims: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are no multiple of those folded together, columns that are none of a vector, several blocks."""
    arrays = [elements(type, opcode, dims) for type in TYPES]
    module = record(lambda *operands: [fold(x, opcode, (len(dims) - 2,), INITS[opcode]) for x in operands], *arrays)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    narrow = xlapy.compile(module)(*arrays)
    monkeypatch.setattr("xlapy.codegen.libraries.fold.is_in_memory", lambda *_: True)
    executable = xlapy.compile(module, xlapy.CompileOptions(verify=True))
    called = set(re.findall(r"fold_columns_[\w.]+", executable.llvm_ir()))
    assert {name for name in called if name.endswith(".wide")} == called and len(called) == len(TYPES)
    for found, wanted in zip(executable(*arrays), narrow, strict=True):
        assert_same(found, wanted)


@pytest.mark.parametrize("columns", [64, 144, 5008])
def test_columns_in_memory_are_the_same_wherever_an_array_begins(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors begin with the lines of the cache, if rows are whole lines; of 5008 columns those of one block do."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    monkeypatch.setattr("xlapy.codegen.libraries.fold.is_in_memory", lambda *_: True)
    x = np.random.default_rng(0).normal(size=(1031, columns)).astype(np.float32)
    executable = xlapy.compile(record(lambda x: fold(x, "add", (0,), 0), x), xlapy.CompileOptions(num_threads=2))
    room = np.empty(x.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64
    results = []
    for offset in (0, 4, 16, 60, 64):
        placed = room[start + offset :][: x.nbytes].view(np.float32).reshape(x.shape)
        placed[...] = x
        results.append(executable(placed))
    np.testing.assert_allclose(results[0], x.sum(0, np.float64), atol=1e-3)
    assert len({result.tobytes() for result in results}) == 1


def test_elements_in_another_shape_are_folded_as_they_lie() -> None:
    x = np.random.default_rng(4).normal(size=(512, 384)).astype(np.float32)

    def build(x: XlaOp) -> list[XlaOp]:
        halves = ops.Reshape(x, (4, 256, 192))
        return [fold(halves, "add", (1,), 0), fold(ops.Mul(halves, halves), "add", (2,), 0)]

    executable = xlapy.compile(record(build, x))
    assert sorted(libraries_of(executable)) == ["fold_columns_add_f32", "fold_rows_add_f32_square"]
    halves = x.reshape(4, 256, 192).astype(np.float64)
    for found, wanted in zip(executable(x), (halves.sum(1), (halves**2).sum(2)), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_every_call_names_a_function_of_its_library() -> None:
    for columns in (200, 3000, 5000, 50_000):
        call = maximum_call(400, columns, 0)
        assert call.function in FOLD_LIBRARIES[call.library].exports
