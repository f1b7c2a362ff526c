"""Optimizers: how parameters follow their gradients.

Like layers they have no state of their own. `rate` scales the learning rate of one step: a schedule is the caller's,
and needs no new program, because the scale is an argument of the compiled step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from examples.tinyframe.tensor import Tensor, sqrt
from examples.tinyframe.tree import Tree, map_tree


class Optimizer(Protocol):
    def initialize(self, parameters: Tree) -> Tree:
        """The state before the first step, as numpy arrays."""

    def update(self, parameters: Tree, gradients: Tree, state: Tree, rate: Tensor) -> tuple[Tree, Tree]:
        """The parameters and the state after one step."""


@dataclass(frozen=True, slots=True)
class SGD:
    """Gradient descent; with `momentum`, along a decaying sum of past gradients."""

    learning_rate: float
    momentum: float = 0.0

    def initialize(self, parameters: Tree) -> Tree:
        return map_tree(np.zeros_like, parameters)

    def update(self, parameters: Tree, gradients: Tree, state: Tree, rate: Tensor) -> tuple[Tree, Tree]:
        velocity = map_tree(lambda v, g: v * self.momentum + g, state, gradients)
        return map_tree(lambda p, v: p - v * (rate * self.learning_rate), parameters, velocity), velocity


@dataclass(frozen=True, slots=True)
class Adam:
    """Steps of the size of the learning rate: the mean gradient over the root of the mean squared gradient.

    Both means decay and start at zero; `mean_bias` and `square_bias` hold the decay rates to the power of the step
    number, by which they still fall short.
    """

    learning_rate: float = 1e-3
    mean_decay: float = 0.9
    square_decay: float = 0.999
    epsilon: float = 1e-8

    def initialize(self, parameters: Tree) -> Tree:
        return {
            "mean": map_tree(np.zeros_like, parameters),
            "square": map_tree(np.zeros_like, parameters),
            "mean_bias": np.ones((), np.float32),
            "square_bias": np.ones((), np.float32),
        }

    def update(self, parameters: Tree, gradients: Tree, state: Tree, rate: Tensor) -> tuple[Tree, Tree]:
        mean_bias = state["mean_bias"] * self.mean_decay
        square_bias = state["square_bias"] * self.square_decay
        mean = map_tree(lambda m, g: m + (g - m) * (1 - self.mean_decay), state["mean"], gradients)
        square = map_tree(lambda s, g: s + (g * g - s) * (1 - self.square_decay), state["square"], gradients)
        step_size = rate * self.learning_rate / (1 - mean_bias)
        square_scale = 1 / (1 - square_bias)
        moved = map_tree(
            lambda p, m, s: p - step_size * m / (sqrt(s * square_scale) + self.epsilon), parameters, mean, square
        )
        return moved, {"mean": mean, "square": square, "mean_bias": mean_bias, "square_bias": square_bias}
