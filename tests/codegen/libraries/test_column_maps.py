"""What a library makes of elements and two numbers of each column, beside the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.targets import lesser_targets
from xlapy import ops
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.libraries.column_maps import COLUMN_MAP_LIBRARIES
from xlapy.codegen.target import Target, host_target

SHAPES = [(301, 1040), (3, 70, 1552), (2, 1, 7, 80_016), (5000, 1040), (301, 1041)]
"""Of the last one, rows are no whole lines: kernels of the program do the same. The largest results bypass caches."""


def quotients(
    dims: tuple[int, ...], dtype: type, columns: tuple[int, ...], *, donates: bool = False
) -> tuple[xlapy.XlaComputation, list[np.ndarray]]:
    random = np.random.default_rng(len(dims))
    x, top = random.normal(size=dims).astype(dtype), random.normal(size=columns).astype(dtype)
    below = random.uniform(1, 100, size=columns).astype(dtype)
    last = tuple(range(len(dims) - len(columns), len(dims)))
    builder = xlapy.XlaBuilder("quotients")
    values = [ops.Parameter(builder, number, xlapy.Shape.of(array)) for number, array in enumerate((x, top, below))]
    repeated = [ops.BroadcastInDim(value, dims, last) for value in values[1:]]
    result = ops.Exp(values[0] - repeated[0]) / repeated[1]
    if donates:
        builder.add_buffer_donor(0)
    return builder.build(result), [x, top, below]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dims", SHAPES)
def test_quotients_of_exponentials(dtype: type, dims: tuple[int, ...]) -> None:
    module, arrays = quotients(dims, dtype, dims[-1:])
    results = [xlapy.compile(module, xlapy.CompileOptions(num_threads=n))(*arrays) for n in (1, 3)]
    np.testing.assert_allclose(results[0], xlapy.evaluate(module, *arrays), rtol=4 * np.finfo(dtype).eps)
    assert results[0].tobytes() == results[1].tobytes()


def test_columns_of_several_dimensions_and_special_numbers() -> None:
    module, (x, top, below) = quotients((40, 20, 416), np.float32, (20, 416))
    x[3, 4, ::5], x[5, 6, ::7], top[8, ::9], below[10, ::11] = np.nan, np.inf, -np.inf, 0
    result = xlapy.compile(module)(x, top, below)
    np.testing.assert_allclose(result, xlapy.evaluate(module, x, top, below), rtol=1e-6)


def test_a_donated_array_is_overwritten() -> None:
    module, (x, top, below) = quotients((301, 1040), np.float32, (1040,), donates=True)
    wanted = xlapy.evaluate(module, x, top, below)
    result = xlapy.compile(module)(x, top, below)
    assert result is x
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


@pytest.mark.parametrize("target", [host_target(), *lesser_targets().values()], ids=["host", *lesser_targets()])
def test_code_for_other_machines(target: Target) -> None:
    for library in COLUMN_MAP_LIBRARIES.values():
        assembly = emit_assembly(library.emit(target).text(), target)
        assert all(f"{name}:" in assembly or f'"{name}":' in assembly for name in library.exports)
