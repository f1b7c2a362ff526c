"""Products by the matrix unit that are cut into parts: narrow operands, whose sums are rounded or left as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.libraries.test_gemm import (
    RESULTS,
    assert_product,
    assert_shown_once,
    multiply,
    random_array,
)
from xlapy.codegen.libraries.gemm_types import UNIT_TYPES
from xlapy.codegen.target import host_target

NAMES = [name for name, kind in UNIT_TYPES.items() if kind.planes == 1 and kind.is_on(host_target())]

SIZES = [
    (192, 192, 192),  # all tiles whole
    (130, 250, 100),
    (250, 193, 70),  # the left side is the longer one
    (200, 300, 2200),  # more than one chunk along K
    (700, 330, 1500),  # no small one
    (520, 200, 40),
    (70, 33, 64),
    (31, 97, 5),
]


@pytest.mark.parametrize("name", NAMES)
class TestParts:
    @pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
    @pytest.mark.parametrize(("m", "n", "k"), SIZES)
    def test_any_sizes_and_layouts(self, name: str, m: int, n: int, k: int, orders: str) -> None:
        a, b = random_array(name, (m, k), 1), random_array(name, (k, n), 2)
        a, b = (np.asarray(array, order=order) for array, order in zip((a, b), orders, strict=True))
        room = np.zeros((m, 2 * n), RESULTS[name])
        for c in (np.zeros((m, n), RESULTS[name]), np.zeros((n, m), RESULTS[name]).T, room[:, ::2]):
            assert_product(name, multiply(name, a, b, c), a, b)

    @pytest.mark.parametrize("num_threads", [2, 3, 8])
    @pytest.mark.parametrize("batch", [1, 5])
    def test_bits_do_not_depend_on_threads(self, name: str, batch: int, num_threads: int) -> None:
        a, b = random_array(name, (batch, 260, 300), 3), random_array(name, (batch, 300, 400), 4)
        results = [
            multiply(name, a, b, np.zeros((batch, 260, 400), RESULTS[name]), num_threads=threads)
            for threads in (1, num_threads)
        ]
        assert results[0].tobytes() == results[1].tobytes()
        assert_product(name, results[0], a, b)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("sizes", [(1, 200, 300, 2200), (1, 300, 200, 64), (3, 70, 200, 90)])
    def test_the_epilogue_sees_every_finished_block_once(
        self, name: str, sizes: tuple[int, int, int, int], order: str
    ) -> None:
        batch, *of_matrix = sizes
        assert_shown_once(batch, name, *of_matrix, order)
