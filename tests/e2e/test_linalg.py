"""Native factors and triangular systems against the evaluator, small ones, blocks, and several blocks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.native import flatten, record, together
from xlapy import CompileOptions, ops
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.target import host_target
from xlapy.hlo.attributes import Transpose
from xlapy.passes import joint_runs
from xlapy_runtime.records import replaced

Array = np.ndarray[Any, Any]

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
NARROW = (np.float16, ml_dtypes.bfloat16)
WORST_ERROR = 64  # units of the last place of the largest element


def random(dims: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=dims)
    return (values + 1j * generator.normal(size=dims) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def one_triangle(a: Array, lower: bool) -> Array:
    """NaN where nobody may look."""
    is_given = np.tri(a.shape[-1], dtype=bool) if lower else np.tri(a.shape[-1], dtype=bool).T
    return np.where(is_given, a, np.array(np.nan, a.dtype))


def assert_close(found: Array, expected: Array, place: str = "") -> None:
    assert found.dtype == expected.dtype, place
    if np.issubdtype(expected.dtype, np.integer):
        np.testing.assert_array_equal(found, expected, place)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), place)
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    found, reference = (np.nan_to_num(array.astype(wide)) for array in (found, expected))
    error = np.abs(found - reference).max(initial=0) / np.abs(reference).max(initial=1)
    assert error <= WORST_ERROR * ml_dtypes.finfo(expected.dtype).eps, place


Case = tuple[Any, *tuple[Array, ...]]
"""What to build, and of which operands."""


def check(build: Any, *operands: Array) -> Any:
    module = record(build, *operands)
    found = xlapy.compile(module, CompileOptions(verify=True))(*operands)
    for one, other in zip(flatten(found), flatten(xlapy.evaluate(module, *operands)), strict=True):
        assert_close(one, other)
    return found


def check_all(cases: Mapping[str, Case]) -> None:
    """In one program, whose kernels run one by one."""
    module = together([record(build, *operands) for build, *operands in cases.values()])
    arguments = [operand for _, *operands in cases.values() for operand in operands]
    options = CompileOptions(verify=True, disabled_passes={joint_runs.NAME})
    results = xlapy.compile(module, options)(*arguments)
    for place, found, expected in zip(cases, results, xlapy.evaluate(module, *arguments), strict=True):
        for one, other in zip(flatten(found), flatten(expected), strict=True):
            assert_close(one, other, place)


FACTORED = [((), 1), ((40,), 3), ((33,), 8), ((3,), 8), ((2,), 23), ((), 64), ((2,), 65), ((), 150)]


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize(("batch", "size"), FACTORED)
def test_factors(batch: tuple[int, ...], size: int, lower: bool) -> None:
    for dtype in DTYPES[size % 2 :: 2]:
        factor = random((*batch, size, size), dtype)
        a = factor @ np.swapaxes(factor.conj(), -1, -2) + size * np.eye(size, dtype=dtype)
        given = one_triangle(a, lower)
        found = check(lambda x: ops.Cholesky(x, lower), given)
        product = found @ np.swapaxes(found.conj(), -1, -2) if lower else np.swapaxes(found.conj(), -1, -2) @ found
        assert np.abs(product - a).max() <= WORST_ERROR * np.finfo(dtype).eps * np.abs(a).max()


@pytest.mark.parametrize(("batch", "size"), [((20,), 3), ((3,), 20), ((2,), 100)])
def test_what_is_not_positive_definite_has_no_factor(batch: tuple[int, ...], size: int) -> None:
    a = np.broadcast_to(np.eye(size, dtype=np.float32), (*batch, size, size)).copy()
    a[1, size - 1, size - 1] = -1
    for lower in (True, False):
        found = check(lambda x, lower=lower: ops.Cholesky(x, lower), a)
        assert np.isnan(found[1, 0, 0]) and not np.isnan(found[0]).any()


ELIMINATED = [
    *[((40,), (16, 16)), ((19,), (9, 12)), ((8,), (16, 3)), ((11,), (5, 5))],
    *[((), (1, 1)), ((40,), (3, 3)), ((33,), (8, 8)), ((64,), (4, 4)), ((9,), (8, 5)), ((17,), (2, 7))],
    *[((3,), (8, 8)), ((2,), (23, 23)), ((), (5, 12)), ((), (12, 5)), ((), (33, 1)), ((), (1, 9)), ((2, 2), (64, 64))],
]


@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW])
def test_eliminations(dtype: Any) -> None:
    cases = {f"{batch} of {size}": random((*batch, *size), dtype) for batch, size in ELIMINATED}
    check_all({place: (lambda x: list(ops.LU(x)), a) for place, a in cases.items()})


@pytest.mark.parametrize("batch", [40, 37, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eliminations_of_singular_matrices_and_of_nans(batch: int, dtype: Any) -> None:
    """Zeros stay zeros, and equal sizes are told by their place; a NaN stays in the matrix that has it."""
    a = np.random.default_rng(5).integers(-1, 2, size=(batch, 3, 3)).astype(dtype)  # there is nothing to round
    a[0, :, 1] = 0
    check(lambda x: ops.Tuple(x.builder, list(ops.LU(x))), a)
    a[1, 2, 0] = np.nan
    a[2, 0, 0] = np.nan
    factors, *_ = check(lambda x: ops.Tuple(x.builder, list(ops.LU(x))), a)
    assert np.isnan(factors).any((1, 2)).tolist() == [False, True, True, *[False] * (batch - 3)]


@pytest.mark.parametrize(("batch", "size"), [(48, 4), (45, 4), (3, 20)])
def test_eliminations_in_place(batch: int, size: int) -> None:
    def build(x: xlapy.XlaOp) -> xlapy.XlaOp:
        return ops.Tuple(x.builder, list(ops.LU(x * np.float32(2))))

    a = random((batch, size, size), np.float32)
    check(build, a)
    builder = xlapy.XlaBuilder("in place")
    executable = xlapy.compile(builder.build(build(builder.parameter(0, xlapy.Shape.of(a)))))
    assert executable.memory_analysis()["temporary_bytes"] == 0


def reflected(x: xlapy.XlaOp) -> xlapy.XlaOp:
    """What is packed, and what it comes to, of all columns and of some."""
    packed, taus = ops.QrDecomposition(x)
    rows, columns = x.shape.dims[-2:]
    rank, steps = x.shape.rank, min(rows, columns)
    narrow = ops.SliceInDim(packed, 0, steps, 1, rank - 1)
    some = ops.SliceInDim(taus, 0, steps // 2, 1, rank - 2)
    products = [ops.ProductOfElementaryHouseholderReflectors(narrow, factors) for factors in (taus, some)]
    return ops.Tuple(x.builder, [packed, taus, *products])


@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW])
def test_reflections(dtype: Any) -> None:
    shapes = [*ELIMINATED, ((40,), (0, 0)), ((9,), (3, 0)), ((0,), (3, 3))]
    check_all({f"{batch} of {size}": (reflected, random((*batch, *size), dtype)) for batch, size in shapes})


@pytest.mark.parametrize("batch", [40, 37, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_of_what_is_triangular_and_of_nans(batch: int, dtype: Any) -> None:
    """Columns that are zero below the diagonal are not reflected; a NaN stays in the matrix that has it."""
    a = random((batch, 4, 3), dtype)
    a[0] = np.triu(a[0])
    a[1] = 0
    _, taus, *_ = check(reflected, a)
    if np.dtype(dtype).kind == "f":
        assert not taus[:2].any()
    a[1, 3, 1] = np.nan
    a[2, 0, 0] = np.nan
    packed, *_ = check(reflected, a)
    assert np.isnan(packed).any((1, 2)).tolist() == [False, True, True, *[False] * (batch - 3)]


@pytest.mark.parametrize(("batch", "size"), [(48, 4), (45, 4), (3, 20)])
def test_reflections_in_place(batch: int, size: int) -> None:
    def build(x: xlapy.XlaOp) -> xlapy.XlaOp:
        return ops.ProductOfElementaryHouseholderReflectors(*ops.QrDecomposition(x * np.float32(2)))

    a = random((batch, size, size), np.float32)
    check(build, a)
    memory = xlapy.compile(record(build, a)).memory_analysis()
    assert memory["temporary_bytes"] < a.nbytes


SOLVED = [
    ((), 1, 1),
    ((20,), 3, 2),
    ((3,), 5, 1),
    ((2,), 20, 70),
    ((), 64, 5),
    ((2,), 70, 3),
    ((), 130, 70),
    ((), 330, 40),
]
"""The last ones by several blocks: five, of which the first four are a product of two by two."""
FLAGS = [*itertools.product((True, False), (True, False), Transpose)]


@pytest.mark.parametrize(("left", "lower", "transpose"), FLAGS)
def test_systems(left: bool, lower: bool, transpose: Transpose) -> None:
    cases: dict[str, Case] = {}
    for number, (batch, size, columns) in enumerate(SOLVED):
        dtype, unit = DTYPES[(number + left) % 4], bool((number + lower) % 2)
        a = random((*batch, size, size), dtype) / dtype(2 * size**0.5) + 2 * np.eye(size, dtype=dtype)
        given = one_triangle(a.astype(dtype), lower)
        if unit:
            given[..., range(size), range(size)] = np.nan
        b = random((*batch, size, columns) if left else (*batch, columns, size), dtype, 1)
        cases[f"{batch} of {size} for {columns}"] = (
            lambda a, b, unit=unit: ops.TriangularSolve(a, b, left, lower, unit, transpose),
            given,
            b,
        )
    check_all(cases)


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_matrices_go_side_by_side(dtype: Any) -> None:
    """Of less than a vector, of several, and of parts of one; batches that fill vectors, and others."""
    cases: dict[str, Case] = {}
    for size, batch in itertools.product((1, 2, 4, 5, 7, 8), (48, 35)):
        columns = 1 + size * 5 % 8
        a = one_triangle(random((batch, size, size), dtype) / dtype(4) + 2 * np.eye(size, dtype=dtype), True)
        factor = np.nan_to_num(a)
        place = f"{batch} of {size}"
        cases[f"{place}: factor"] = ops.Cholesky, one_triangle(factor @ np.swapaxes(factor.conj(), -1, -2), True)
        for left in (True, False):
            b = random((batch, size, columns) if left else (batch, columns, size), dtype, 1)
            cases[f"{place}, {'left' if left else 'right'}"] = (
                lambda a, b, left=left: ops.TriangularSolve(a, b, left, True, False, Transpose.ADJOINT),
                a,
                b,
            )
    check_all(cases)


def test_large_batches_bypass_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in memory they begin."""
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: replaced(host_target(), l3_bytes=0))
    size, batch = 8, STREAMED_BYTES // 256 + 5
    for count in (batch, batch // 64 * 64 + 64):
        a = np.broadcast_to(4 * np.eye(size, dtype=np.float32) + 1, (count, size, size)).copy()
        a += np.linspace(0, 1, count, dtype=np.float32)[:, None, None] * np.eye(size, dtype=np.float32)
        factor = check(ops.Cholesky, a)
        b = random((count, size, size), np.float32)
        x = check(lambda a, b: ops.TriangularSolve(a, b, True, True, False), factor, b)
        builder = xlapy.XlaBuilder("threads")
        operands = [builder.parameter(number, xlapy.Shape.of(array)) for number, array in enumerate((factor, b))]
        computation = builder.build(ops.TriangularSolve(*operands, True, True, False))
        for threads in (1, 2, 3, 8):
            found = xlapy.compile(computation, CompileOptions(num_threads=threads))(factor, b)
            assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_narrower_vectors(vector_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = replaced(host_target(), vector_bytes=vector_bytes)
    monkeypatch.setattr("xlapy.program_cache.host_target", lambda: target)
    for batch, size in ((20, 3), (21, 6), (2, 20)):
        a = np.broadcast_to(np.tri(size) + size * np.eye(size), (batch, size, size)).astype(np.complex64)
        check(lambda a: ops.Cholesky(a, lower=False), a)
        check(lambda a: ops.TriangularSolve(a, a, False, True, False, Transpose.ADJOINT), a)


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_round_once(dtype: Any) -> None:
    a = (np.tri(5) + 4 * np.eye(5)).astype(dtype)
    b = random((5, 3), dtype)
    check(ops.Cholesky, (a.astype(np.float32) @ a.T.astype(np.float32)).astype(dtype))
    check(lambda a, b: ops.TriangularSolve(a, b, True, True, False), a, b)


def test_a_zero_on_the_diagonal_gives_infinities_and_no_trap() -> None:
    a = np.diag([1.0, 0.0, 2.0]).astype(np.float32)
    found = check(lambda a, b: ops.TriangularSolve(a, b, True, True, False), a, np.ones((3, 1), np.float32))
    assert np.isinf(found[1, 0])


def test_a_solution_may_lie_where_its_right_sides_were() -> None:
    for batch, size in (((40,), 3), ((2,), 30), ((1,), 90)):
        a = np.tri(size, dtype=np.float32) / 8 + np.eye(size, dtype=np.float32)
        a = np.broadcast_to(a, (*batch, size, size)).copy()
        b = random((*batch, size, 4), np.float32)

        def chain(a: xlapy.XlaOp, b: xlapy.XlaOp) -> xlapy.XlaOp:
            squared = ops.DotGeneral(a, a, (((2,), (2,)), ((0,), (0,))))
            factor = ops.Cholesky(squared)
            return ops.TriangularSolve(factor, b * 2.0, True, True, False)

        check(chain, a, b)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    factor = random((300, 300), np.float32)
    a = factor @ factor.T + 300 * np.eye(300, dtype=np.float32)
    builder = xlapy.XlaBuilder("threads")
    x = builder.parameter(0, xlapy.Shape.of(a))
    lower = ops.Cholesky(x)
    computation = builder.build(ops.TriangularSolve(lower, x, False, True, False, Transpose.TRANSPOSE))
    one, two = (xlapy.compile(computation, CompileOptions(num_threads=n))(a) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
