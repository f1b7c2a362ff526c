"""Layers: values without state. `initialize` makes a layer's parameters, and a call takes them with the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from examples.tinyframe.tensor import Tensor, maximum, tanh
from examples.tinyframe.tree import Tree


class Layer(Protocol):
    def initialize(self, generator: np.random.Generator) -> Tree:
        """Fresh parameters, as numpy arrays."""

    def __call__(self, parameters: Tree, x: Tensor) -> Tensor:
        """The layer's output; rows of `x` are examples."""


@dataclass(frozen=True, slots=True)
class Linear:
    """An affine map of each row. Weights start normal, of variance 2 / inputs: a ReLU's output stays in scale."""

    inputs: int
    outputs: int

    def initialize(self, generator: np.random.Generator) -> Tree:
        scale = np.sqrt(2 / self.inputs)
        weight = generator.standard_normal((self.inputs, self.outputs)) * scale
        return {"weight": weight.astype(np.float32), "bias": np.zeros(self.outputs, np.float32)}

    def __call__(self, parameters: Tree, x: Tensor) -> Tensor:
        weight: Tensor = parameters["weight"]
        bias: Tensor = parameters["bias"]
        return x @ weight + bias


@dataclass(frozen=True, slots=True)
class Relu:
    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor) -> Tensor:
        return maximum(x, 0)


@dataclass(frozen=True, slots=True)
class Tanh:
    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor) -> Tensor:
        return tanh(x)


class Sequential:
    """Layers one after another; the parameters are a list with one entry per layer."""

    def __init__(self, *layers: Layer) -> None:
        self.layers = layers

    def initialize(self, generator: np.random.Generator) -> Tree:
        return [layer.initialize(generator) for layer in self.layers]

    def __call__(self, parameters: Tree, x: Tensor) -> Tensor:
        for layer, own in zip(self.layers, parameters, strict=True):
            x = layer(own, x)
        return x
