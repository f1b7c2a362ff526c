"""Recurrent layers: a state that runs along a sequence, in one loop of the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.tinyframe.layers.base import Training, normal
from examples.tinyframe.loops import scan
from examples.tinyframe.parts import concatenate, split
from examples.tinyframe.tensor import Tensor, sigmoid, tanh
from examples.tinyframe.tree import Tree


@dataclass(frozen=True, slots=True)
class Lstm:
    """Long short-term memory: (batch, time, inputs) to the outputs at each time, (batch, time, features).

    What does not depend on the state, the product of all inputs with their weights, is done before the loop."""

    inputs: int
    features: int

    def initialize(self, generator: np.random.Generator) -> Tree:
        bias = np.zeros(4 * self.features, np.float32)
        bias[self.features : 2 * self.features] = 1  # to begin with, remember
        return {
            "inward": normal(generator, (self.inputs, 4 * self.features), 1 / self.inputs),
            "recurrent": normal(generator, (self.features, 4 * self.features), 1 / self.features),
            "bias": bias,
        }

    def __call__(self, parameters: Tree, x: Tensor, training: Training | None = None) -> Tensor:
        gates = (x @ parameters["inward"] + parameters["bias"]).permute(1, 0, 2)
        start = gates.filled(0, (x.dims[0], 2 * self.features))
        states = scan(_step, start, gates, [parameters["recurrent"]])
        outputs, _ = split(states, -1, 2)
        return outputs.permute(1, 0, 2)


def _step(state: Tensor, gates: Tensor, recurrent: Tensor) -> Tensor:
    """One time: outputs and memory, side by side in the state."""
    output, memory = split(state, -1, 2)
    enter, keep, leave, candidate = split(gates + output @ recurrent, -1, 4)
    memory = sigmoid(keep) * memory + sigmoid(enter) * tanh(candidate)
    return concatenate([sigmoid(leave) * tanh(memory), memory], -1)
