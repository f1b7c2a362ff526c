"""The functions of the libraries of small products: which dots call them, and that they do what kernels do."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.guarded_memory import GuardedRoom
from tests.support.native import record
from tests.support.shared_cache import shared_cache
from tests.support.values import assert_same
from xlapy import ops
from xlapy.codegen.libraries.small_product import SIDES, SMALL_PRODUCT_LIBRARIES
from xlapy.codegen.target import host_target
from xlapy_runtime.linking import link


def libraries_of(executable: xlapy.Executable) -> list[str]:
    return [name for name in executable._compiled.program.libraries if name.startswith("small_product")]


def product(a: Any, b: Any) -> Any:
    last = a.shape.rank - 1
    batch = tuple(range(last - 1))
    return ops.DotGeneral(a, b, (((last,), (last - 1,)), (batch, batch)))


def products(*operands: Any) -> list[Any]:
    return [product(a, b) for a, b in zip(operands[::2], operands[1::2], strict=True)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_library_does_what_a_kernel_does(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    shapes = [dims for side in SIDES for dims in ((5003, side, side), (7, 701, side, side))]
    arrays = [random.normal(size=dims).astype(dtype) for dims in shapes for _ in "ab"]
    module = record(products, *arrays)
    programs = [xlapy.compile(module, xlapy.CompileOptions(num_threads=n, verify=True)) for n in (1, 2, 3, 8)]
    name = np.dtype(dtype).str[1:].replace("4", "32").replace("8", "64")
    assert libraries_of(programs[0]) == [f"small_product_{name}_{side}" for side in SIDES]
    monkeypatch.setattr("xlapy.codegen.libraries.small_product.LEAST_WORK", 1 << 60)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    from_kernels = xlapy.compile(module)
    assert not libraries_of(from_kernels)
    wanted = from_kernels(*arrays)
    for program in programs:
        for found, own in zip(program(*arrays), wanted, strict=True):
            assert_same(found, own)
    limit = 1e-4 if dtype == np.float32 else 1e-12
    for number, own in enumerate(wanted):
        np.testing.assert_allclose(own, arrays[2 * number] @ arrays[2 * number + 1], rtol=limit, atol=limit)


@pytest.mark.parametrize("name", SMALL_PRODUCT_LIBRARIES)
def test_nothing_outside_of_the_matrices_is_touched(name: str) -> None:
    """A read or write beyond them ends the process. Ranges of any length leave what surrounds them alone."""
    type, side = name.split("_")[2:]
    dtype, random = np.dtype(type.replace("f", "float")), np.random.default_rng(1)
    library = SMALL_PRODUCT_LIBRARIES[name]
    code = link(library.objects(host_target(), shared_cache()), {}, library.exports)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address(name))
    rooms = [GuardedRoom(1 << 14) for _ in range(3)]
    units = -(-int(side) // 4)
    for count, at_end in itertools.product((1, 2, 5, 15, 16, 17, 26), (False, True)):
        values = [random.normal(size=(count, int(side), int(side))).astype(dtype) for _ in rooms]
        a, b, c = (room.array(each, at_end=at_end) for room, each in zip(rooms, values, strict=True))
        table = (ctypes.c_void_p * 6)(None, None, None, *(array.ctypes.data for array in (a, b, c)))
        begin, end = count // 3, count - count // 4
        run(ctypes.addressof(table), units * begin, units * end)
        expected = values[2].copy()
        expected[begin:end] = (a @ b)[begin:end]
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_which_products_are_calls() -> None:
    def is_called(build: Any, *arrays: np.ndarray[Any, Any]) -> bool:
        return bool(libraries_of(xlapy.compile(record(build, *arrays))))

    def transposed(a: Any, b: Any) -> Any:
        return ops.DotGeneral(a, b, (((2,), (2,)), ((0,), (0,))))

    cubes = np.ones((2000, 4, 4), np.float32)
    assert is_called(product, cubes, cubes)
    assert not is_called(product, cubes[:9], cubes[:9])  # few
    assert not is_called(product, cubes, cubes[:, :, :3])
    assert not is_called(transposed, cubes, cubes)
    assert not is_called(product, np.ones((2000, 5, 5)), np.ones((2000, 5, 5)))


def test_names() -> None:
    assert all(library.exports == (name,) for name, library in SMALL_PRODUCT_LIBRARIES.items())
