"""Maps of single rows: affine ones, tables, activations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.tinyframe.layers.base import Training, normal
from examples.tinyframe.parts import take_rows
from examples.tinyframe.tensor import Tensor, maximum, tanh
from examples.tinyframe.tree import Tree


@dataclass(frozen=True, slots=True)
class Linear:
    """An affine map of each row. Weights start normal, of variance 2 / inputs: a ReLU's output stays in scale."""

    inputs: int
    outputs: int

    def initialize(self, generator: np.random.Generator) -> Tree:
        weight = normal(generator, (self.inputs, self.outputs), 2 / self.inputs)
        return {"weight": weight, "bias": np.zeros(self.outputs, np.float32)}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        weight: Tensor = parameters["weight"]
        bias: Tensor = parameters["bias"]
        return x @ weight + bias


@dataclass(frozen=True, slots=True)
class Embedding:
    """A row of the table for each number from 0 on, in place of it."""

    vocabulary: int
    features: int

    def initialize(self, generator: np.random.Generator) -> Tree:
        return normal(generator, (self.vocabulary, self.features), 1 / self.features)

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return take_rows(parameters, x)


@dataclass(frozen=True, slots=True)
class Relu:
    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return maximum(x, 0)


@dataclass(frozen=True, slots=True)
class Tanh:
    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return tanh(x)
