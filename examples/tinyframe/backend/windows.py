"""Sliding windows: convolution, and sums and maxima over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from examples.tinyframe.backend.recorder import Dims, Handle
from xlapy import ops

Padding = tuple[tuple[int, int], ...]
"""How many elements stand before and behind each dimension; fewer than none: elements that are left out."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """How a kernel slides over an array. `labels` name the dimensions of array, kernel and result: N and C are batch
    and features, I and O the kernel's input and output features. Other letters are spatial; the lists are in the order
    in which the kernel has them."""

    labels: tuple[str, str, str]
    strides: Dims
    padding: Padding
    array_dilation: Dims
    kernel_dilation: Dims


def convolution(x: Handle, kernel: Handle, how: Convolution) -> Handle:
    return ops.ConvGeneralDilated(
        x, kernel, how.strides, how.padding, how.array_dilation, how.kernel_dilation, how.labels
    )


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `sizes`, `strides` apart, over an array whose elements are `dilation` apart; one entry for each of its
    dimensions."""

    sizes: Dims
    strides: Dims
    padding: Padding
    dilation: Dims


def window_sum(x: Handle, windows: Windows) -> Handle:
    zero = _scalar(x, 0)
    return ops.ReduceWindow(
        x, zero, ops.Add, windows.sizes, windows.strides, windows.padding, base_dilations=windows.dilation
    )


def window_max(x: Handle, windows: Windows) -> Handle:
    return ops.ReduceWindow(x, _scalar(x, -np.inf), ops.Max, windows.sizes, windows.strides, windows.padding)


def to_window_max(x: Handle, windows: Windows, values: Handle) -> Handle:
    """One of `values` per window, at the place of the window's largest element, the first of equals; elsewhere zero."""
    zero = _scalar(x, 0)
    return ops.SelectAndScatter(x, ops.Ge, windows.sizes, windows.strides, windows.padding, values, zero, ops.Add)


def _scalar(like: Handle, value: float) -> Handle:
    return ops.Constant(like.builder, np.array(value, like.shape.type.dtype))


def reverse(x: Handle, dimensions: Sequence[int]) -> Handle:
    return ops.Rev(x, tuple(dimensions))
