"""The training step once more, written out by hand in numpy: what the compiled step is checked and timed against.

The two hidden layers, the loss, their derivatives and Adam are spelled out for just this network, with in-place updates
where they save a copy: numpy as one would write it for speed.
"""

from __future__ import annotations

import numpy as np

from examples.digits.dataset import Array
from examples.tinyframe import Adam
from examples.tinyframe.tree import Tree


class NumpyStep:
    """Holds copies of the parameters, and moves them by one step per call."""

    def __init__(self, parameters: Tree, adam: Adam) -> None:
        layers = [layer for layer in parameters if layer]  # activations have no parameters
        self._adam = adam
        self.weights = [layer["weight"].copy() for layer in layers]
        self.biases = [layer["bias"].copy() for layer in layers]
        self._moving = self.weights + self.biases
        self._means = [np.zeros_like(array) for array in self._moving]
        self._squares = [np.zeros_like(array) for array in self._moving]
        self._steps = 0

    def __call__(self, rate: float, images: Array, labels: Array) -> float:
        """One step on a batch; gives the loss before it."""
        rows = np.arange(len(labels))
        first, second, third = self.weights
        hidden1 = np.maximum(images @ first + self.biases[0], 0)
        hidden2 = np.maximum(hidden1 @ second + self.biases[1], 0)
        logits = hidden2 @ third + self.biases[2]

        shifted = logits - logits.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        totals = exponentials.sum(axis=1, keepdims=True)
        loss = float((np.log(totals[:, 0]) - shifted[rows, labels]).mean())

        by_logits = exponentials / totals
        by_logits[rows, labels] -= 1
        by_logits /= len(labels)
        by_hidden2 = (by_logits @ third.T) * (hidden2 > 0)
        by_hidden1 = (by_hidden2 @ second.T) * (hidden1 > 0)
        by_weights = [images.T @ by_hidden1, hidden1.T @ by_hidden2, hidden2.T @ by_logits]
        by_biases = [by_hidden1.sum(axis=0), by_hidden2.sum(axis=0), by_logits.sum(axis=0)]

        self._update(rate, by_weights + by_biases)
        return loss

    def _update(self, rate: float, gradients: list[Array]) -> None:
        adam = self._adam
        self._steps += 1
        step_size = np.float32(rate * adam.learning_rate / (1 - adam.mean_decay**self._steps))
        square_scale = np.float32(1 / (1 - adam.square_decay**self._steps))
        for moving, mean, square, slope in zip(self._moving, self._means, self._squares, gradients, strict=True):
            mean += (slope - mean) * np.float32(1 - adam.mean_decay)
            square += (slope * slope - square) * np.float32(1 - adam.square_decay)
            moving -= step_size * mean / (np.sqrt(square * square_scale) + np.float32(adam.epsilon))
