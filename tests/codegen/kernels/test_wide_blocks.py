"""What is made of arrays in memory and folded by columns: several rows at a time, the same bits as column by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.native import on_threads
from xlapy.codegen.kernels.wide_blocks import MANY_BLOCKS, MOST_BYTES, vectors_of_block
from xlapy.codegen.target import host_target
from xlapy.options import CompileOptions

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

Program = Callable[[Any], object]

PROGRAMS: dict[str, Program] = {
    "argmax": lambda x: jnp.argmax(x, -2),
    "argmin of what is made": lambda x: jnp.argmin(x * 3 + 1, -2),
    "sum of what is made": lambda x: (x * 3 + x[..., ::-1, :]).sum(-2),
    "largest of what is made": lambda x: (x + 1).max(-2),
    "smallest, and what is made from it": lambda x: 2 * (x * x).min(-2) + 1,
    "product": lambda x: (x * 2).prod(-2),
    "two sums": lambda x: ((x * 3).sum(-2), (x * x * x).sum(-2)),
    "of chosen elements": lambda x: jnp.where(x > 0, x, -x).sum(-2),
}


def compiled(program: Program, array: np.ndarray) -> xlapy.Executable:
    text = jax.jit(program).lower(array).as_text()
    return xlapy.compile(text, options=CompileOptions(num_threads=1))


def bits(results: object) -> list[bytes]:
    return [np.asarray(result).tobytes() for result in (results if isinstance(results, tuple | list) else [results])]


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Says whether arrays are in memory."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    return lambda far: monkeypatch.setattr("xlapy.codegen.kernels.reduce.is_in_memory", lambda *_: far)


@pytest.mark.parametrize("dims", [(64, 1024), (43, 1201), (3, 21, 5003), (2, 8, 1500)])
@pytest.mark.parametrize("type", [np.float32, np.int32])
@pytest.mark.parametrize("name", PROGRAMS)
def test_wide_blocks_fold_in_the_order_of_narrow_ones(
    name: str, type: np.dtype, dims: tuple[int, ...], in_memory: Callable[[bool], None]
) -> None:
    """Rows that are no multiple of those folded together, columns that are none of a vector, several blocks."""
    array = np.random.default_rng(0).integers(-99, 99, dims).astype(type)
    if type is np.float32:
        array[..., 5, :7] = np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, -np.inf
    in_memory(False)
    narrow = compiled(PROGRAMS[name], array)
    in_memory(True)
    wide = compiled(PROGRAMS[name], array)
    assert wide.llvm_ir() != narrow.llvm_ir()
    assert ("call void @llvm.prefetch" in wide.llvm_ir()) == host_target().asks_ahead
    assert bits(wide(array)) == bits(narrow(array))


@pytest.mark.parametrize("name", ["argmax", "sum of what is made"])
def test_threads_change_nothing(name: str, in_memory: Callable[[bool], None]) -> None:
    array = np.random.default_rng(0).standard_normal((300, 9000)).astype(np.float32)
    in_memory(True)
    executable = compiled(PROGRAMS[name], array)
    results = [bits(on_threads(executable, threads)(array)) for threads in (1, 2, 3, 8)]
    assert results.count(results[0]) == len(results)


def test_several_dimensions_are_folded_and_kept(in_memory: Callable[[bool], None]) -> None:
    array = np.random.default_rng(0).standard_normal((6, 2, 19, 1027)).astype(np.float32)

    def program(x: Any) -> Any:
        return (x * 2 + 1).sum((0, 2))

    in_memory(False)
    narrow = bits(compiled(program, array)(array))
    in_memory(True)
    assert bits(compiled(program, array)(array)) == narrow


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda x: jnp.exp(x).sum(0), id="functions take longer than memory"),
        pytest.param(lambda x: (x[:, :512] * 3).sum(0), id="short rows lie one behind the other"),
        pytest.param(lambda x: (x > 0).all(0), id="bits are no values that memory holds"),
        pytest.param(lambda x: (x[:5] * 3).sum(0), id="few rows"),
    ],
)
def test_other_folds_stay_narrow(program: Program, in_memory: Callable[[bool], None]) -> None:
    array = np.ones((32, 2048), np.float32)
    in_memory(False)
    narrow = compiled(program, array).llvm_ir()
    in_memory(True)
    assert compiled(program, array).llvm_ir() == narrow


@pytest.mark.parametrize("columns", [4100, 9000])
def test_columns_of_two_blocks_do_not_take_results_for_operands(
    columns: int, in_memory: Callable[[bool], None]
) -> None:
    """The last block overlaps the one before it; the array of which it makes results is read nowhere else."""
    array = np.random.default_rng(0).standard_normal((43, columns)).astype(np.float32)

    def program(x: Any) -> Any:
        return (x * 3).sum(0) * jnp.sort(x[0])

    in_memory(False)
    narrow = bits(compiled(program, array)(array))
    in_memory(True)
    wide = compiled(program, array)
    for threads in (1, 8):
        assert bits(on_threads(wide, threads)(array)) == narrow


@pytest.mark.parametrize(("dims", "cut"), [((16448, 700), "16,257,4,700"), ((4160, 2048), "16,130,2,2048")])
def test_sums_of_whole_rows_in_parts_are_the_same_for_any_number_of_threads(dims: tuple[int, ...], cut: str) -> None:
    array = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    executable = compiled(lambda x: x.sum(0), array)
    results = [on_threads(executable, threads)(array) for threads in (1, 2, 3, 8)]
    assert f"f32[{cut}]" in executable.hlo_text()
    np.testing.assert_allclose(results[0], array.sum(0, np.float64), atol=1e-3)
    assert len({result.tobytes() for result in results}) == 1


def test_blocks_are_whole_rows_where_many_can_be_shared_out() -> None:
    assert vectors_of_block(4096, 16, MANY_BLOCKS, 4, 4) == 256
    assert vectors_of_block(5003, 16, MANY_BLOCKS, 4, 4) == 157, "of the same width"
    assert vectors_of_block(4096, 16, 1, 4, 4) == 128, "halves"
    assert vectors_of_block(8192, 16, 1, 4, 4) == 128, "quarters, which are as long"
    assert vectors_of_block(8192, 16, 2, 4, 4) == 256, "halves, as there are two groups"
    assert vectors_of_block(256, 16, 1, 4, 4) == 16, "short rows"


@pytest.mark.parametrize("groups", [1, 3, MANY_BLOCKS, 100])
@pytest.mark.parametrize("value_bytes", [4, 8, 12])
def test_blocks_are_no_wider_than_the_columns(groups: int, value_bytes: int) -> None:
    """Each begins where its vectors end in front of the last column, or with it."""
    for columns in (16, 17, 31, 33, 47, 1023, 1025, 4090, 4096, 4100, 100_003):
        vectors = vectors_of_block(columns, 16, groups, 4, value_bytes)
        assert 0 < 16 * vectors <= columns
        assert 16 * vectors * value_bytes <= MOST_BYTES
