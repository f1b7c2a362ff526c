"""The programs by name: what each computes, its arguments, how exactly it must agree, and its files.

`data/<name>.mlir` is the StableHLO that JAX lowered it to; `data/<name>.npz` holds the results that XLA computed, in
the order in which the program gives them. `python -m examples.programs.export` writes both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import RandomState

from examples.programs import inputs
from examples.programs.inputs import Arguments
from examples.tinyframe.tree import flatten

DATA = Path(__file__).parent / "data"
SEED = 20


@dataclass(frozen=True, slots=True)
class Program:
    """A program. `chain` is how many roundings follow one another on the way to its results, about: each contraction,
    sum, division or function of a layer or of a step of a loop is one."""

    name: str
    title: str
    make_arguments: Callable[[RandomState], Arguments]
    chain: int

    @property
    def arguments(self) -> Arguments:
        """The positional arguments, as trees."""
        return self.make_arguments(RandomState(SEED))

    @property
    def leaves(self) -> list[np.ndarray]:
        """The arguments as the exported program takes them."""
        return flatten(self.arguments)[0]

    @property
    def text(self) -> str:
        return self.path("mlir").read_text()

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """What XLA computed, by the names of the results."""
        with np.load(self.path("npz")) as file:
            return {name: file[name] for name in file.files}

    def path(self, suffix: str) -> Path:
        return DATA / f"{self.name}.{suffix}"


PROGRAMS = {
    program.name: program
    for program in (
        Program("perceptron", "a perceptron of three layers", inputs.perceptron, 6),
        Program("perceptron_training", "a step of its training with momentum", inputs.perceptron_training, 16),
        Program("cnn_training", "a training step of a convolutional network", inputs.convolutional_training, 30),
        Program("transformer", "a language model of two transformer blocks", inputs.transformer, 20),
        Program("transformer_training", "a step of its training with Adam", inputs.transformer_training, 60),
        Program("decoding", "text written by the language model, with cached keys and values", inputs.decoding, 20),
        Program("lstm", "a recurrent network over fifty elements", inputs.lstm, 50 * 6),
        Program("ray_marcher", "a picture of spheres, ray by ray", inputs.ray_marcher, 48 * 4),
        Program("orbits", "pendulums, followed with steps of adaptive size", inputs.orbits, 500 * 8),
        Program("fft_filter", "signals filtered by a convolution and in their spectrum", inputs.filtering, 30),
        Program("kmeans", "fifteen rounds of Lloyd's algorithm", inputs.clustering, 15 * 2),
        Program("particle_filter", "an object followed by a thousand random particles", inputs.particles, 40 * 6),
    )
}
