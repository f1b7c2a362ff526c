"""Sliding windows: convolution and pooling, of arrays whose dimensions are batch, spatial ones, features.

The gradients of a convolution are convolutions, and so is whatever they are differentiated to: with the stride as a
dilation, and with the roles of batch and features, array and kernel exchanged. How much padding that takes is all that
this file computes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from examples.tinyframe.backend import windows as recorded
from examples.tinyframe.backend.recorder import Dims
from examples.tinyframe.backend.windows import Convolution, Padding, Windows
from examples.tinyframe.parts import reverse
from examples.tinyframe.tensor import Tensor, differentiable_once

SPATIAL = "XYZUVW"
"""Letters for spatial dimensions."""


def convolution(x: Tensor, kernel: Tensor, strides: Sequence[int], padding: Padding) -> Tensor:
    """The (batch, spatial ..., inputs) array `x` with a kernel (spatial ..., inputs, outputs) slid over it."""
    rank = x.rank - 2
    if rank < 1 or kernel.rank != x.rank or kernel.dims[-2] != x.dims[-1]:
        raise ValueError(f"cannot slide the kernel {kernel} over {x}")
    letters = SPATIAL[:rank]
    ones = (1,) * rank
    labels = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return _convolved(x, kernel, Convolution(labels, tuple(strides), padding, ones, ones))


def _convolved(x: Tensor, kernel: Tensor, how: Convolution) -> Tensor:
    handle = recorded.convolution(x.handle, kernel.handle, how)
    return Tensor(
        x.recorder,
        handle,
        (x, kernel),
        lambda g: (_to_array(g, x, kernel, how), _to_kernel(g, x, kernel, how)),
    )


def _to_array(g: Tensor, x: Tensor, kernel: Tensor, how: Convolution) -> Tensor:
    """The gradient of the array: that of the result, spread by the strides, under the kernel turned around."""
    array, kernel_labels, result = how.labels
    extents = _extents(x, g, kernel, how)
    padding = tuple(
        (size - 1 - low, whole + low - spread)
        for (low, _), (whole, spread, size) in zip(how.padding, extents, strict=True)
    )
    turned = reverse(kernel, *(kernel_labels.index(letter) for letter in _letters(how)))
    swapped = kernel_labels.translate(str.maketrans("IO", "OI"))
    labels = (result, swapped, array)
    return _convolved(g, turned, Convolution(labels, how.array_dilation, padding, how.strides, how.kernel_dilation))


def _to_kernel(g: Tensor, x: Tensor, kernel: Tensor, how: Convolution) -> Tensor:
    """The gradient of the kernel: the array under the gradient of the result, summed over the batch."""
    array, kernel_labels, result = how.labels
    extents = _extents(x, g, kernel, how)
    padding = tuple(
        (low, spread - whole + size - 1 - low)
        for (low, _), (whole, spread, size) in zip(how.padding, extents, strict=True)
    )
    labels = (
        array.translate(str.maketrans("NC", "CN")),
        result.translate(str.maketrans("NC", "IO")),
        kernel_labels.translate(str.maketrans("IO", "NC")),
    )
    return _convolved(x, g, Convolution(labels, how.kernel_dilation, padding, how.array_dilation, how.strides))


def _letters(how: Convolution) -> list[str]:
    """The spatial dimensions in the order of the lists."""
    return [letter for letter in how.labels[1] if letter not in "IO"]


def _extents(x: Tensor, g: Tensor, kernel: Tensor, how: Convolution) -> list[tuple[int, int, int]]:
    """Sizes of array, gradient and kernel for each spatial dimension, as they are spread by dilation or strides."""
    return [
        (
            _spread(x.dims[how.labels[0].index(letter)], how.array_dilation[number]),
            _spread(g.dims[how.labels[2].index(letter)], how.strides[number]),
            _spread(kernel.dims[how.labels[1].index(letter)], how.kernel_dilation[number]),
        )
        for number, letter in enumerate(_letters(how))
    ]


def _spread(size: int, distance: int) -> int:
    return (size - 1) * distance + 1


def same_padding(dims: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> Padding:
    """Padding with which as many windows fit along each of `dims` as it has elements, `strides` apart."""
    pairs = []
    for count, size, stride in zip(dims, sizes, strides, strict=True):
        missing = max((-(-count // stride) - 1) * stride + size - count, 0)
        pairs.append((missing // 2, missing - missing // 2))
    return tuple(pairs)


# -- pooling -----------------------------------------------------------------------------------------------------------


def max_pool(x: Tensor, sizes: Sequence[int], strides: Sequence[int], padding: Padding) -> Tensor:
    """The largest element of each window; the gradient goes to the first of the largest."""
    windows = _pooling(x, sizes, strides, padding)

    def pullback(g: Tensor) -> tuple[Tensor]:
        slope = Tensor(x.recorder, recorded.to_window_max(x.handle, windows, g.handle))
        return (differentiable_once(slope, (x, g), "max_pool"),)

    return Tensor(x.recorder, recorded.window_max(x.handle, windows), (x,), pullback)


def average_pool(x: Tensor, sizes: Sequence[int], strides: Sequence[int], padding: Padding) -> Tensor:
    """The mean of each window; padding does not count."""
    windows = _pooling(x, sizes, strides, padding)
    total = _window_sum(x, windows)
    return total * (1 / _counts(x.dims, windows)).astype(x.dtype)


def _pooling(x: Tensor, sizes: Sequence[int], strides: Sequence[int], padding: Padding) -> Windows:
    """Windows over the spatial dimensions of `x`."""
    if not len(sizes) == len(strides) == len(padding) == x.rank - 2:
        raise ValueError(f"windows of {list(sizes)} do not fit {x}: it takes an entry for each spatial dimension")
    return Windows((1, *sizes, 1), (1, *strides, 1), ((0, 0), *padding, (0, 0)), (1,) * x.rank)


def _window_sum(x: Tensor, windows: Windows) -> Tensor:
    """Its gradient is such a sum, too, over the gradients spread by the strides."""
    result = recorded.window_sum(x.handle, windows)

    def pullback(g: Tensor) -> tuple[Tensor]:
        padding = []
        for d, (low, _) in enumerate(windows.padding):
            whole, spread = _spread(x.dims[d], windows.dilation[d]), _spread(g.dims[d], windows.strides[d])
            padding.append((windows.sizes[d] - 1 - low, whole + low - spread))
        return (_window_sum(g, Windows(windows.sizes, windows.dilation, tuple(padding), windows.strides)),)

    return Tensor(x.recorder, result, (x,), pullback)


def _counts(dims: Dims, windows: Windows) -> np.ndarray:
    """How many elements each window has, with ones for batch and features."""
    counts = np.ones((1,) * len(dims))
    for d in range(1, len(dims) - 1):
        (low, high), size = windows.padding[d], windows.sizes[d]
        starts = np.arange(-low, dims[d] + high - size + 1, windows.strides[d])
        inside = np.minimum(starts + size, dims[d]) - np.maximum(starts, 0)
        counts = counts * inside.reshape([-1 if other == d else 1 for other in range(len(dims))])
    return counts
