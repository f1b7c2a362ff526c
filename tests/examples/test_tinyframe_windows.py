"""tinyframe's sliding windows: convolution and pooling."""

from __future__ import annotations

import numpy as np
import pytest

from examples.tinyframe import Tensor, compiled, gradient
from examples.tinyframe.windows import average_pool, convolution, max_pool, same_padding
from tests.examples.gradients import check_gradient, doubles

# dims of the array, of the kernel, strides, padding
CONVOLUTIONS = {
    "one dimension": ((2, 5, 3), (2, 3, 4), (1,), ((0, 0),)),
    "edges padded": ((2, 4, 4, 2), (3, 3, 2, 3), (1, 1), ((1, 1), (1, 1))),
    "strides that leave a rest": ((1, 6, 5, 2), (2, 3, 2, 2), (3, 2), ((0, 1), (2, 0))),
    "edges cut off": ((1, 7, 3, 1), (2, 1, 1, 2), (2, 1), ((-1, -2), (1, -1))),
    "more padding than kernel": ((1, 3, 1), (2, 1, 2), (1,), ((3, 4),)),
    "three dimensions": ((1, 3, 2, 3, 2), (2, 2, 1, 2, 1), (1, 1, 2), ((0, 1), (0, 0), (1, 0))),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_gradient_of_a_convolution(name: str) -> None:
    array, kernel, strides, padding = CONVOLUTIONS[name]
    check_gradient(lambda x, k: convolution(x, k, strides, padding), *doubles(0, array, kernel))


def test_a_convolution_is_the_sum_over_its_windows() -> None:
    x, kernel = doubles(1, (2, 5, 6, 3), (3, 2, 3, 4))
    result = compiled(lambda x, k: convolution(x, k, (2, 1), ((0, 0), (0, 0))))(x, kernel)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), axis=(1, 2))[:, ::2]
    np.testing.assert_allclose(result, np.einsum("nyxcij,ijco->nyxo", windows, kernel))


def test_gradients_of_convolutions_can_be_differentiated_again() -> None:
    def slope(x: Tensor, kernel: Tensor) -> Tensor:
        result = convolution(x, kernel, (2, 1), ((1, 0), (0, 1)))
        by_x, by_kernel = gradient((result * result).sum(), [x, kernel])
        return (by_x * by_x).sum() + (by_kernel * by_kernel).sum()

    check_gradient(slope, *(array / 4 for array in doubles(2, (1, 4, 3, 2), (2, 2, 2, 1))))


# dims of the array, sizes, strides, padding
POOLS = {
    "side by side": ((2, 4, 4, 2), (2, 2), (2, 2), ((0, 0), (0, 0))),
    "overlapping": ((1, 5, 4, 2), (3, 2), (1, 1), ((0, 0), (0, 0))),
    "edges padded": ((1, 5, 3, 1), (3, 3), (2, 1), ((1, 1), (1, 2))),
    "one dimension with a rest": ((2, 7, 2), (2,), (3,), ((0, 0),)),
}


@pytest.mark.parametrize("name", POOLS)
def test_the_gradients_of_pools(name: str) -> None:
    dims, *how = POOLS[name]
    (x,) = doubles(3, dims)
    check_gradient(lambda x: max_pool(x, *how) + average_pool(x, *how) * 2, x)


def test_pools_look_at_elements_and_not_at_padding() -> None:
    x = -np.arange(1.0, 5).reshape(1, 4, 1)
    largest, mean = compiled(lambda x: [pool(x, (3,), (1,), ((1, 1),)) for pool in (max_pool, average_pool)])(x)
    np.testing.assert_array_equal(largest.ravel(), [-1, -1, -2, -3])
    np.testing.assert_allclose(mean.ravel(), [-1.5, -2, -3, -3.5])


def test_the_gradient_of_a_maximum_refuses_to_be_differentiated() -> None:
    def twice(x: Tensor) -> Tensor:
        return gradient(gradient((max_pool(x, (2,), (2,), ((0, 0),)) * x.sum()).sum(), x).sum(), x)

    with pytest.raises(ValueError, match="max_pool cannot be differentiated again"):
        compiled(twice)(np.ones((1, 4, 1)))


def test_same_padding_gives_a_window_per_stride() -> None:
    assert same_padding((8, 7, 5), (3, 3, 2), (1, 2, 3)) == ((1, 1), (1, 1), (0, 0))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="kernel"):
        compiled(lambda x, k: convolution(x, k, (1,), ((0, 0),)))(np.ones((1, 4, 2)), np.ones((2, 3, 1)))
    with pytest.raises(ValueError, match="windows"):
        compiled(lambda x: max_pool(x, (2, 2), (1,), ((0, 0),)))(np.ones((1, 4, 2)))
