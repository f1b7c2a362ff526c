"""Layers that keep values in scale, and one that keeps a network from relying on single values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.tinyframe.layers.base import Training
from examples.tinyframe.normalization import batch_norm, batch_norm_by, dropout, layer_norm
from examples.tinyframe.tensor import Tensor
from examples.tinyframe.tree import Tree


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """Normalizes features: in training by the batch's own statistics, in use by the running ones.

    Running statistics follow those of the batches by a share of `1 - keep` per step."""

    features: int
    keep: float = 0.9
    epsilon: float = 1e-5

    def initialize(self, generator: np.random.Generator) -> Tree:
        zeros, ones = np.zeros(self.features, np.float32), np.ones(self.features, np.float32)
        return {"scale": ones, "offset": zeros, "mean": zeros.copy(), "variance": ones.copy()}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        scale, offset = parameters["scale"], parameters["offset"]
        if training is None:
            return batch_norm_by(x, scale, offset, parameters["mean"], parameters["variance"], self.epsilon)
        result, mean, variance = batch_norm(x, scale, offset, self.epsilon)
        for name, seen in (("mean", mean), ("variance", variance)):
            running: Tensor = parameters[name]
            training.replace(running, running + (seen - running) * (1 - self.keep))
        return result


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Normalizes each row by its own statistics."""

    features: int
    epsilon: float = 1e-5

    def initialize(self, generator: np.random.Generator) -> Tree:
        return {"scale": np.ones(self.features, np.float32), "offset": np.zeros(self.features, np.float32)}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return layer_norm(x, parameters["scale"], parameters["offset"], self.epsilon)


@dataclass(frozen=True, slots=True)
class Dropout:
    """In training, sets a share of the elements to zero; in use, nothing."""

    share: float = 0.5

    def initialize(self, generator: np.random.Generator) -> Tree:
        return {}

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        return x if training is None else dropout(x, self.share)
