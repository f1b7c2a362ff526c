"""The recipes: which networks there are, and how each is trained. Everything here was fixed before the runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.digits.dataset import CLASSES, PIXELS, SIDE
from examples.digits.distortion import Distortion
from examples.tinyframe import (
    Adam,
    BatchNorm,
    Convolution,
    Dropout,
    Flatten,
    Layer,
    Linear,
    MaxPool,
    Relu,
    Sequential,
)

SPLIT_SEED = 0
SEEDS = (0, 1, 2, 3, 4)  # of the initial weights, the order of the batches and what changes the images
BATCH = 64


@dataclass(frozen=True, slots=True)
class Recipe:
    """A network and its training. It sees images as `dims` each; those to learn from are distorted and get noise, so
    that no two epochs see the same."""

    name: str
    model: Layer
    dims: tuple[int, ...]
    optimizer: Adam
    epochs: int
    noise: float  # standard deviation added to pixels
    distortion: Distortion | None
    required_accuracy: float


PERCEPTRON = Recipe(
    name="mlp",
    model=Sequential(Linear(PIXELS, 256), Relu(), Linear(256, 128), Relu(), Linear(128, CLASSES)),
    dims=(PIXELS,),
    optimizer=Adam(learning_rate=2e-3),
    epochs=30,
    noise=0.15,
    distortion=None,
    required_accuracy=0.97,
)

CONVOLUTIONAL = Recipe(
    name="cnn",
    model=Sequential(
        *(Convolution(1, 32), BatchNorm(32), Relu()),
        *(Convolution(32, 32), BatchNorm(32), Relu(), MaxPool()),
        *(Convolution(32, 64), BatchNorm(64), Relu()),
        *(Flatten(), Dropout(0.3), Linear(4 * 4 * 64, CLASSES)),
    ),
    dims=(SIDE, SIDE, 1),
    optimizer=Adam(learning_rate=2e-3),
    epochs=30,
    noise=0.05,
    distortion=Distortion(angle=0.1, stretch=0.05, move=0.2),
    required_accuracy=0.985,
)

RECIPES = {recipe.name: recipe for recipe in (PERCEPTRON, CONVOLUTIONAL)}
"""By name: what `--model` takes."""


def cosine_rate(progress: float) -> np.float32:
    """The learning rate's scale: from one to zero along half a cosine."""
    return np.float32(0.5 * (1 + np.cos(np.pi * progress)))
