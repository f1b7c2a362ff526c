"""Attention: every place of a sequence looks at the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from examples.tinyframe.layers.base import Training, normal
from examples.tinyframe.normalization import softmax
from examples.tinyframe.parts import split
from examples.tinyframe.tensor import Tensor, select
from examples.tinyframe.tree import Tree


def attention(query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False) -> Tensor:
    """For each row of `query` a mean of the rows of `value`, weighed by how well their keys fit it.

    The last two dimensions are places and features, those before them count independent sequences. With `causal`, a
    place sees none that comes later."""
    scores = query @ key.transposed / math.sqrt(query.dims[-1])
    if causal:
        seen = scores.indices(-2) >= scores.indices(-1)
        scores = select(seen, scores, scores.filled(-math.inf))
    return softmax(scores) @ value


@dataclass(frozen=True, slots=True)
class MultiHeadAttention:
    """Several attentions side by side, each over a share of the features, of one (batch, places, features) array."""

    features: int
    heads: int
    causal: bool = False

    def initialize(self, generator: np.random.Generator) -> Tree:
        return {
            "inward": normal(generator, (self.features, 3 * self.features), 1 / self.features),
            "outward": normal(generator, (self.features, self.features), 1 / self.features),
        }

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        inward: Tensor = parameters["inward"]
        outward: Tensor = parameters["outward"]
        query, key, value = (self._by_head(part) for part in split(x @ inward, -1, 3))
        seen = attention(query, key, value, causal=self.causal)
        return seen.permute(0, 2, 1, 3).reshape(*x.dims) @ outward

    def _by_head(self, x: Tensor) -> Tensor:
        batch, places, features = x.dims
        return x.reshape(batch, places, self.heads, features // self.heads).permute(0, 2, 1, 3)
