"""Layers over images and other arrays of (batch, spatial dimensions ..., features)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from examples.tinyframe.layers.base import Training, normal
from examples.tinyframe.tensor import Tensor
from examples.tinyframe.tree import Tree
from examples.tinyframe.windows import average_pool, convolution, max_pool, same_padding


@dataclass(frozen=True, slots=True)
class Convolution:
    """The same affine map of every window. With stride 1 the result is as large as the input: edges are padded."""

    inputs: int
    outputs: int
    sizes: tuple[int, ...] = (3, 3)
    stride: int = 1

    def initialize(self, generator: np.random.Generator) -> Tree:
        kernel = normal(generator, (*self.sizes, self.inputs, self.outputs), 2 / (math.prod(self.sizes) * self.inputs))
        return {"kernel": kernel, "bias": np.zeros(self.outputs, np.float32)}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        strides = (self.stride,) * len(self.sizes)
        padding = same_padding(x.dims[1:-1], self.sizes, strides)
        kernel: Tensor = parameters["kernel"]
        bias: Tensor = parameters["bias"]
        return convolution(x, kernel, strides, padding) + bias


@dataclass(frozen=True, slots=True)
class MaxPool:
    """The largest of each window of `size` by `size` (by ...); the windows lie side by side."""

    size: int = 2

    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        rank = x.rank - 2
        return max_pool(x, (self.size,) * rank, (self.size,) * rank, ((0, 0),) * rank)


@dataclass(frozen=True, slots=True)
class AveragePool:
    """The mean of each window of `size` by `size` (by ...); the windows lie side by side."""

    size: int = 2

    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        rank = x.rank - 2
        return average_pool(x, (self.size,) * rank, (self.size,) * rank, ((0, 0),) * rank)
