"""The functions of the chain libraries with several results, or with numbers for each column: means and variances,
batch normalizations, and what folds of parts leave for others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy.codegen.kernels.columns import plan_columns
from xlapy.codegen.kernels.rows import plan_rows
from xlapy.codegen.kernels.wide_columns import widest_plan
from xlapy.codegen.libraries.chain import CHAIN_LIBRARIES, library_name
from xlapy.codegen.libraries.chain_bodies import (
    COLUMN_BODIES,
    FOLDED_BODIES,
    OVER_WIDE_STRIPS,
    is_over_columns,
    is_over_rows,
)
from xlapy.codegen.libraries.chain_body import ChainBody, read_body
from xlapy.codegen.libraries.chain_columns import COLUMNS, widths_of
from xlapy.codegen.libraries.chain_problem import chain_of
from xlapy.codegen.libraries.chain_rows import ROWS
from xlapy.codegen.target import REFERENCE_MACHINES, reference_target
from xlapy.hlo import element_types as et
from xlapy.hlo.kernel_plan import MOST_ON_STACK, RowSpace
from xlapy.passes.fusion.rows import LARGE_ARRAY_BYTES

Program = Callable[..., Any]
TALL = RowSpace((1 << 12, 1 << 12), (0,))


def moments(x: Any, axis: int) -> Any:
    return x.mean(axis), x.var(axis)


def variance(x: Any, axis: int) -> Any:
    return x.var(axis)


def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = x.mean(0), x.var(0)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def batch_norm_and_moments(x: Any, scale: Any, shift: Any) -> Any:
    return batch_norm(x, scale, shift), x.mean(0), x.var(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return (3 + np.random.default_rng(shape).normal(size=shape)).astype(dtype)


def text_of(program: Program, *values: np.ndarray[Any, Any]) -> str:
    with jax.enable_x64(True):
        return jax.jit(program).lower(*values).as_text()


def libraries_of(executable: xlapy.Executable) -> list[str]:
    return [name for name in executable._compiled.program.libraries if name.startswith("chain_")]


def check(
    program: Program, values: list[np.ndarray[Any, Any]], wanted: list[str], patch: pytest.MonkeyPatch
) -> xlapy.Executable:
    """A program calls libraries, whose results are those of kernels of its own, and of XLA, whatever the threads."""
    text = text_of(program, *values)
    executable = xlapy.compile(text, xlapy.CompileOptions(verify=True))
    assert libraries_of(executable) == wanted
    found = jax.tree.leaves(executable(*values))
    with patch.context() as without:
        for limit in ("LEAST_BYTES", "LEAST_WHOLE_BYTES"):
            without.setattr(f"xlapy.codegen.libraries.chain.{limit}", 1 << 60)
        without.setenv("XLAPY_CACHE_DIR", "off")
        from_kernels = xlapy.compile(text)
        assert not libraries_of(from_kernels)
        own = jax.tree.leaves(from_kernels(*values))
    threads = jax.tree.leaves(xlapy.compile(text, xlapy.CompileOptions(num_threads=3))(*values))
    with jax.enable_x64(True):
        exact = jax.tree.leaves(program(*(value.astype(np.float64) for value in values)))
    limit = 1e-4 if values[0].dtype.itemsize == 4 else 1e-12
    for one, two, three, four in zip(found, own, threads, exact, strict=True):
        assert_same(one, two)
        assert_same(one, three)
        np.testing.assert_allclose(one, np.asarray(four), rtol=limit, atol=limit)
    return executable


def name_of(way: str, body: str, dtype: Any) -> str:
    return library_name(way, body, et.element_type_of(np.dtype(dtype)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("program", [moments, variance])
def test_moments_of_rows(program: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(300, 1003, dtype=dtype)
    check(lambda x: program(x, 1), [x], [name_of(ROWS, program.__name__, dtype)], monkeypatch)


@pytest.mark.parametrize("program", [moments, variance])
def test_moments_of_long_rows(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept of them, for which a stack would need room."""
    x = normal(40, 3 * MOST_ON_STACK + 3)
    check(lambda x: program(x, 1), [x], [name_of(ROWS, program.__name__, np.float32)], monkeypatch)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1031, 512), (600, 3, 64, 32)])
@pytest.mark.parametrize("program", [batch_norm, batch_norm_and_moments])
def test_batch_norms(program: Any, shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numbers for each of all columns that lie side by side, if these have several dimensions."""
    monkeypatch.setattr("xlapy.passes.fusion.rows.LARGE_ARRAY_BYTES", 1 << 20)
    values = [normal(*dims, dtype=dtype) for dims in (shape, shape[1:], shape[1:])]
    check(program, values, [name_of(COLUMNS, program.__name__, dtype)], monkeypatch)


def test_numbers_for_some_columns_are_no_numbers_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlapy.passes.fusion.rows.LARGE_ARRAY_BYTES", 1 << 20)
    check(batch_norm, [normal(700, 3, 64, 32), normal(32), normal(32)], [], monkeypatch)


@pytest.mark.parametrize("across", [True, False])
def test_numbers_across_columns_are_told_from_those_along_them(across: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a square both have the same dimensions."""
    monkeypatch.setattr("xlapy.passes.fusion.rows.LARGE_ARRAY_BYTES", 1 << 20)

    def program(x: Any, scale: Any, shift: Any) -> Any:
        return batch_norm(x, scale if across else scale[:, None], shift)

    wanted = [name_of(COLUMNS, "batch_norm", np.float32)] if across else []
    check(program, [normal(1024, 1024), normal(1024), normal(1024) + 1], wanted, monkeypatch)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2048, 4096), (4096, 2048), (1 << 17, 64)])
def test_parts_of_columns_are_folded_by_a_library(
    shape: tuple[int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = normal(*shape, dtype=dtype)
    executable = check(lambda x: moments(x, 0), [x], [name_of(COLUMNS, "moments_of_parts", dtype)], monkeypatch)
    assert ".wide" in executable.llvm_ir()


def test_parts_of_everything_are_folded_by_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [normal(3000, 3001), normal(3000, 3002)]
    wanted = [name_of(ROWS, body, np.float32) for body in ("exponentials_of_parts", "moments_of_parts")]
    check(lambda x, y: (x.var(), jax.nn.logsumexp(y)), values, wanted, monkeypatch)


def test_results_are_those_of_the_program_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(300, 1003)
    check(lambda x: (x.var(1), x.mean(1)), [x], [name_of(ROWS, "moments", np.float32)], monkeypatch)


def test_what_a_cache_holds_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that knows the sizes of its arrays is faster there."""
    monkeypatch.setattr("xlapy.passes.fusion.rows.LARGE_ARRAY_BYTES", 1 << 16)
    check(batch_norm, [normal(256, 256), normal(256), normal(256)], [], monkeypatch)


def test_every_library_has_a_test() -> None:
    found = {name for name in CHAIN_LIBRARIES if name.split("_", 2)[2].rsplit("_", 1)[0] in ALL_BODIES}
    types = (et.F32, et.F64)
    ways = {ROWS: is_over_rows, COLUMNS: is_over_columns}
    assert found == {library_name(w, b, t) for w, b, t in product(ways, ALL_BODIES, types) if ways[w](b)}
    assert {program.__name__ for program in (moments, variance, batch_norm, batch_norm_and_moments)} == {
        body for body in ALL_BODIES if not body.endswith("of_parts")
    }


ALL_BODIES = FOLDED_BODIES | COLUMN_BODIES


@pytest.mark.parametrize("body", [body for body in ALL_BODIES if is_over_columns(body)])
def test_libraries_have_the_strips_of_plans(body: str) -> None:
    """Of any width that plans for large arrays have, whatever the machine, and none that is wider."""
    values = read_body(ALL_BODIES[body])
    spaces = [RowSpace((3, 1 << bits, 1 << 14), (1,)) for bits in range(6, 12)]
    machines = [reference_target(name) for name in REFERENCE_MACHINES]
    plans = [
        plan_columns(chain_of(values, type, space), LARGE_ARRAY_BYTES, target)
        for type, space, target in product((et.F32, et.F64), spaces, machines)
    ]
    assert all((widest_plan(plan, machines[0]) is not None) == (body in OVER_WIDE_STRIPS) for plan in plans)
    found, widths = {plan.vectors for plan in plans}, widths_of(body)
    if widths:
        assert found <= {*widths} and max(found) == max(widths)


@pytest.mark.parametrize("body", FOLDED_BODIES)
def test_nothing_is_kept_of_rows_that_may_be_long(body: str) -> None:
    chain = chain_of(read_body(ALL_BODIES[body]), et.F32, RowSpace((1 << 20, MOST_ON_STACK), (1,)))
    plan = plan_rows(chain, 0, reference_target("avx2"), in_place=False)
    assert not any(plan.kept)


def test_bodies_name_their_results() -> None:
    one = read_body("x = whole \n y = fold.add x # \n z = exponential y \n results y z")
    other = read_body("x = whole \n y = fold.add x # \n z = exponential y \n results z y")
    fewer = read_body("x = whole \n y = fold.add x # \n z = exponential y")
    assert one == other
    assert isinstance(fewer, ChainBody) and one.nodes == fewer.nodes and len(fewer.results) == 1
