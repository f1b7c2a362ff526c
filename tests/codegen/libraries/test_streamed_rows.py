"""Products of few rows with a matrix that begins in the middle of a line: the same bits, and nothing beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.guarded_memory import read_only
from tests.support.native import record
from xlapy.codegen.ir_memory import CACHE_LINE


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 67, 128), (1, 70, 144), (2, 65, 512), (3, 40, 250)])
def test_the_bits_are_the_same_wherever_a_matrix_begins(dtype: Any, rows: int, depth: int, columns: int) -> None:
    random = np.random.default_rng(columns)
    x, y = (random.normal(size=dims).astype(dtype) for dims in ((rows, depth), (depth, columns)))
    module = record(lambda x, y: x @ y, x, y)
    executable = xlapy.compile(module, xlapy.CompileOptions(num_threads=2))
    room = np.empty(y.nbytes + 2 * CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    results = []
    for offset in (0, y.itemsize, 16, 32, CACHE_LINE - y.itemsize):
        placed = room[start + offset :][: y.nbytes].view(dtype).reshape(y.shape)
        placed[...] = y
        results.append(executable(x, placed))
    results += [executable(x, read_only(y, at_end=at_end)) for at_end in (False, True)]
    np.testing.assert_allclose(results[0], xlapy.evaluate(module, x, y), rtol=1e-4, atol=1e-4)
    assert len({result.tobytes() for result in results}) == 1
