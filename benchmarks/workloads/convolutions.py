"""Convolutions, their gradients, and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Workload
from benchmarks.workloads.inputs import constant_weights, integers, normal

LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
"""Where batch, features, rows and columns lie in image, kernel and result."""


@dataclass(frozen=True)
class Layer:
    """A convolution of square images, padded so that a stride of one keeps their size."""

    batch: int
    size: int
    inputs: int
    outputs: int
    window: int = 3
    stride: int = 1
    groups: int = 1

    @property
    def label(self) -> str:
        return f"{self.batch}x{self.size}x{self.size}x{self.inputs}-{self.outputs}"

    @property
    def positions(self) -> int:
        """Of the window, in all images."""
        return self.batch * (-(-self.size // self.stride)) ** 2

    @property
    def operations(self) -> float:
        return 2.0 * self.positions * self.window**2 * self.inputs // self.groups * self.outputs


def convolution(layer: Layer, labels: tuple[str, str, str]) -> Callable[..., Any]:
    def function(image: Any, kernel: Any) -> Any:
        strides = (layer.stride, layer.stride)
        return jax.lax.conv_general_dilated(
            image, kernel, strides, "SAME", dimension_numbers=labels, feature_group_count=layer.groups
        )

    return function


def shapes(layer: Layer, labels: tuple[str, str, str]) -> tuple[list[int], list[int], list[int]]:
    """Those of image, kernel and result."""
    small = -(-layer.size // layer.stride)
    sizes = [
        {"N": layer.batch, "H": layer.size, "W": layer.size, "C": layer.inputs},
        {"H": layer.window, "W": layer.window, "I": layer.inputs // layer.groups, "O": layer.outputs},
        {"N": layer.batch, "H": small, "W": small, "C": layer.outputs},
    ]
    image, kernel, result = ([size[letter] for letter in label] for size, label in zip(sizes, labels, strict=True))
    return image, kernel, result


def normal_arrays(*shapes: list[int]) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, _: Any) -> Arrays:
        return [generator.standard_normal(shape, np.float32) for shape in shapes]

    return make


def _constant_weights(name: str, layer: Layer) -> Workload:
    """Inference: the kernel belongs to the program."""
    image, kernel, _ = shapes(layer, LAST)

    def function(array: Any) -> Any:
        return convolution(layer, LAST)(array, constant_weights(kernel))

    return Workload(
        "convolution",
        f"constant_weights_{name}",
        function,
        normal_arrays(image),
        {layer.label: layer},
        operations=lambda layer: layer.operations,
    )


def _forward(name: str, layer: Layer, labels: tuple[str, str, str]) -> Workload:
    image, kernel, _ = shapes(layer, labels)
    return Workload(
        "convolution",
        f"{name}_{labels[0].lower()}",
        convolution(layer, labels),
        normal_arrays(image, kernel),
        {layer.label: layer},
        operations=lambda layer: layer.operations,
    )


_ROUNDINGS_OF_SUMS = 64
"""Errors of a sum grow with the square root of its length: the usual tolerance covers 4096 summands."""


def _gradients(name: str, layer: Layer, labels: tuple[str, str, str]) -> list[Workload]:
    """With respect to the image and to the kernel, given that of the result."""
    image, kernel, result = shapes(layer, labels)
    function = convolution(layer, labels)
    zeros = np.zeros(image, np.float32), np.zeros(kernel, np.float32)

    def of_image(slope: Any, kernel: Any) -> Any:
        return jax.vjp(lambda image: function(image, kernel), zeros[0])[1](slope)[0]

    def of_kernel(slope: Any, image: Any) -> Any:
        return jax.vjp(lambda kernel: function(image, kernel), zeros[1])[1](slope)[0]

    return [
        Workload(
            "convolution",
            f"{name}_{of}_gradient_{labels[0].lower()}",
            gradient,
            normal_arrays(result, other),
            {layer.label: layer},
            operations=lambda layer: layer.operations,
            tolerance=max(1.0, math.sqrt(summands) / _ROUNDINGS_OF_SUMS),
        )
        for of, gradient, other, summands in (
            ("image", of_image, kernel, layer.window**2 * layer.outputs),
            ("kernel", of_kernel, image, layer.positions),
        )
    ]


def max_pool(image: Any) -> Any:
    return jax.lax.reduce_window(image, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def average_pool(image: Any) -> Any:
    return jax.lax.reduce_window(image, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def max_pool_gradient(image: Any) -> Any:
    """Runs as select-and-scatter."""
    return jax.grad(lambda x: (max_pool(x) * 0.5).sum())(image)


def opening(image: Any) -> Any:
    """What is bright in a neighbourhood of 5 by 5: the largest of the smallest."""
    fold = partial(jax.lax.reduce_window, window_dimensions=(5, 5), window_strides=(1, 1), padding="SAME")
    eroded = fold(image, jnp.uint8(255), jax.lax.min)
    return fold(eroded, jnp.uint8(0), jax.lax.max)


IMAGES = {"small": (1, 16, 16, 8), "cache": (4, 56, 56, 64), "memory": (32, 112, 112, 64)}


def average_pool_gradient(image: Any) -> Any:
    return jax.grad(lambda x: jnp.sin(average_pool(x)).sum())(image)


def _pooling(name: str, function: Callable[..., Any]) -> Workload:
    return Workload("convolution", name, function, normal(), IMAGES)


LAYERS = {
    "first": Layer(32, 28, 1, 32),
    "3x3_early": Layer(8, 56, 64, 64),
    "3x3_middle": Layer(1, 28, 128, 128),
    "3x3_late": Layer(8, 14, 256, 256),
    "3x3_last": Layer(1, 7, 512, 512),
    "3x3_stride_2": Layer(8, 56, 64, 128, stride=2),
    "7x7_stride_2": Layer(1, 224, 3, 64, window=7, stride=2),
    "1x1": Layer(4, 56, 64, 256, window=1),
    "depthwise": Layer(4, 56, 64, 64, groups=64),
    "grouped": Layer(4, 28, 128, 128, groups=8),
}
WITH_GRADIENTS = ("3x3_early", "3x3_late", "3x3_stride_2", "7x7_stride_2", "1x1", "depthwise", "grouped")
WITH_CONSTANT_WEIGHTS = ("3x3_middle", "3x3_late", "3x3_last", "1x1", "grouped")

PATCHES = {"1x64x64x3-64": (1, 64, 64), "4x224x224x3-192": (4, 224, 192)}
"""Images, their rows and columns, and features of a patch."""

PATCH = 16


def patches_image_gradient(slopes: Any, kernel: Any) -> Any:
    """Of patches that do not overlap, with respect to their images."""
    count, side, _, _ = slopes.shape
    images = jnp.zeros((count, side * PATCH, side * PATCH, kernel.shape[2]))

    def patches(image: Any) -> Any:
        return jax.lax.conv_general_dilated(image, kernel, (PATCH, PATCH), "VALID", dimension_numbers=LAST)

    return jax.linear_transpose(patches, images)(slopes)[0]


def slopes_of_patches(generator: np.random.Generator, size: Any) -> Arrays:
    count, side, features = size
    sides = ((count, side // PATCH, side // PATCH, features), (PATCH, PATCH, 3, features))
    return [generator.standard_normal(shape, np.float32) for shape in sides]


def operations_of_patches(size: Any) -> float:
    count, side, features = size
    return float(2 * count * side**2 * 3 * features)


WORKLOADS = [
    *(_forward(name, layer, labels) for name, layer in LAYERS.items() for labels in (LAST, FIRST)),
    *(_constant_weights(name, LAYERS[name]) for name in WITH_CONSTANT_WEIGHTS),
    *(
        workload
        for name in WITH_GRADIENTS
        for labels in (LAST, FIRST)
        for workload in _gradients(name, LAYERS[name], labels)
    ),
    Workload(
        "convolution",
        "patches_image_gradient",
        patches_image_gradient,
        slopes_of_patches,
        PATCHES,
        operations=operations_of_patches,
    ),
    _pooling("max_pool", max_pool),
    _pooling("average_pool", average_pool),
    _pooling("max_pool_gradient", max_pool_gradient),
    _pooling("average_pool_gradient", average_pool_gradient),
    Workload(
        "convolution", "opening_u8", opening, integers(0, 256, 1, np.uint8), {"small": (64, 64), "cache": (512, 512)}
    ),
]
