"""The arguments of the programs, made from seeds: numpy alone, so that they are the same with and without JAX.

Each function gives the positional arguments of its program, as trees of arrays. `RandomState` is the generator whose
numbers never change between versions of numpy; recorded results depend on that.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import RandomState

from examples.tinyframe.tree import map_tree

Tree = Any
Arguments = tuple[Tree, ...]

VOCABULARY, WIDTH, HEADS, BLOCKS, LENGTH = 64, 32, 4, 2, 32
"""The transformers: tokens, numbers per token, heads, blocks, and the most tokens of a sequence."""

CONTEXT = 96  # tokens that the decoder's caches have room for
PROMPT = 8

PIXELS = 16
IMAGES = 16
CLASSES = 10

RAYS = (64, 96)  # rows and columns of the picture
SAMPLES = 4096


def perceptron(random: RandomState) -> Arguments:
    return _layers(random, 64, 128, 128, CLASSES), normal(random, 32, 64)


def perceptron_training(random: RandomState) -> Arguments:
    weights, images = perceptron(random)
    return weights, zeros_like(weights), images, integers(random, CLASSES, 32)


def convolutional_training(random: RandomState) -> Arguments:
    weights = {
        "first": scaled(random, 3, 3, 1, 8),
        "second": scaled(random, 3, 3, 8, 16),
        "shift": np.zeros(16, np.float32),
        "stretch": np.ones(16, np.float32),
        "dense": scaled(random, PIXELS // 4 * PIXELS // 4 * 16, CLASSES),
    }
    return weights, normal(random, IMAGES, PIXELS, PIXELS, 1), integers(random, CLASSES, IMAGES)


def transformer(random: RandomState) -> Arguments:
    return _transformer_weights(random), integers(random, VOCABULARY, 4, LENGTH)


def transformer_training(random: RandomState) -> Arguments:
    """Weights, Adam's two averages after some steps, the number of those, and a batch of one token more."""
    weights = _transformer_weights(random)
    first = map_tree(lambda w: 1e-3 * normal(random, *w.shape), weights)
    second = map_tree(lambda w: 1e-5 * uniform(random, *w.shape) + np.float32(1e-6), weights)
    return weights, first, second, np.int32(20), integers(random, VOCABULARY, 4, LENGTH + 1)


def decoding(random: RandomState) -> Arguments:
    weights = _transformer_weights(random)
    weights["positions"] = scaled(random, CONTEXT, WIDTH)
    return weights, integers(random, VOCABULARY, PROMPT)


def lstm(random: RandomState) -> Arguments:
    weights = {"input": scaled(random, 24, 4 * 48), "state": scaled(random, 48, 4 * 48), "bias": normal(random, 4 * 48)}
    return weights, normal(random, 50, 8, 24)


def ray_marcher(random: RandomState) -> Arguments:
    centers = np.concatenate([1.6 * normal(random, 8, 2), 4 + 2 * uniform(random, 8, 1)], 1)
    return centers, 0.3 + 0.5 * uniform(random, 8), np.array([0.5, 0.7, -0.6], np.float32)


def orbits(random: RandomState) -> Arguments:
    """Angles and angular velocities of pendulums, and the error that a step may make."""
    return random.uniform(-2, 2, (64, 2)), np.float64(1e-8)


def filtering(random: RandomState) -> Arguments:
    time = np.arange(SAMPLES) / SAMPLES
    tones = np.sin(2 * np.pi * 50 * time) + 0.5 * np.sin(2 * np.pi * 120 * time)
    signals = tones + random.normal(size=(4, SAMPLES))
    return signals.astype(np.float32), np.hanning(65).astype(np.float32) / 32


def clustering(random: RandomState) -> Arguments:
    centers = random.uniform(-10, 10, (8, 4))
    points = centers[random.randint(8, size=2000)] + random.normal(size=(2000, 4))
    return points.astype(np.float32), points[:8].astype(np.float32)


def particles(random: RandomState) -> Arguments:
    """A seed, and observations of an object that swings."""
    position = 3 * np.sin(np.arange(40) / 4)
    return np.int64(7), position + 0.3 * random.normal(size=40)


# -- what they are made of ---------------------------------------------------------------------------------------------


def normal(random: RandomState, *dims: int) -> np.ndarray:
    return random.normal(size=dims).astype(np.float32)


def uniform(random: RandomState, *dims: int) -> np.ndarray:
    return random.uniform(size=dims).astype(np.float32)


def integers(random: RandomState, limit: int, *dims: int) -> np.ndarray:
    return random.randint(limit, size=dims).astype(np.int32)


def scaled(random: RandomState, *dims: int) -> np.ndarray:
    """Weights that leave the size of what they are multiplied with as it is."""
    return normal(random, *dims) * np.float32(np.prod(dims[:-1]) ** -0.5)


def zeros_like(tree: Tree) -> Tree:
    return map_tree(np.zeros_like, tree)


def _layers(random: RandomState, *widths: int) -> list[dict[str, np.ndarray]]:
    return [
        {"weight": scaled(random, incoming, outgoing), "bias": np.zeros(outgoing, np.float32)}
        for incoming, outgoing in pairwise(widths)
    ]


def _transformer_weights(random: RandomState) -> dict[str, Any]:
    return {
        "tokens": normal(random, VOCABULARY, WIDTH),
        "output": scaled(random, WIDTH, VOCABULARY),
        "positions": normal(random, LENGTH, WIDTH),
        "blocks": [
            {
                "attention": scaled(random, WIDTH, 3 * WIDTH),
                "projection": scaled(random, WIDTH, WIDTH),
                "widen": scaled(random, WIDTH, 4 * WIDTH),
                "narrow": scaled(random, 4 * WIDTH, WIDTH),
                "gains": np.ones((2, WIDTH), np.float32),
            }
            for _ in range(BLOCKS)
        ],
    }
