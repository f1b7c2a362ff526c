"""What a layer is, and layers made of layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from examples.tinyframe.tensor import Tensor
from examples.tinyframe.tree import Tree, map_tree

Weights: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]


class Training:
    """Says to a call that it is part of a training step, and takes what has to change besides what gradients say.

    Running statistics are parameters that have no gradient: a layer gives `replace` their next values."""

    def __init__(self) -> None:
        self._following: dict[int, Tensor] = {}

    def replace(self, parameter: Tensor, following: Tensor) -> None:
        """After this step, `parameter` is `following`."""
        self._following[parameter.serial] = following

    def finish(self, parameters: Tree, moved: Tree) -> Tree:
        """The parameters after the step, of which an optimizer has moved those that have gradients."""
        return map_tree(lambda before, after: self._following.get(before.serial, after), parameters, moved)


class Layer(Protocol):
    def initialize(self, generator: np.random.Generator) -> Tree:
        """Fresh parameters, as numpy arrays."""

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        """The layer's output; the first dimension of `x` counts examples. Without `training` the layer is used."""


def normal(generator: np.random.Generator, dims: Sequence[int], variance: float) -> Weights:
    """Numbers around zero, normally distributed."""
    return (generator.standard_normal(dims) * math.sqrt(variance)).astype(np.float32)


class Sequential:
    """Layers one after another; the parameters are a list with one entry per layer."""

    def __init__(self, *layers: Layer) -> None:
        self.layers = layers

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"

    def initialize(self, generator: np.random.Generator) -> Tree:
        return [layer.initialize(generator) for layer in self.layers]

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        for layer, own in zip(self.layers, parameters, strict=True):
            x = layer(own, x, training)
        return x


@dataclass(frozen=True, slots=True)
class Residual:
    """The input, and what a layer adds to it."""

    layer: Layer

    def initialize(self, generator: np.random.Generator) -> Tree:
        return self.layer.initialize(generator)

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return x + self.layer(parameters, x, training)


@dataclass(frozen=True, slots=True)
class Flatten:
    """Each example as one row."""

    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return x.reshape(x.dims[0], math.prod(x.dims[1:]))
