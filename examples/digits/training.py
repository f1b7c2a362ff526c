"""The recipe: the network, how it is trained, and how it is judged. Everything here was fixed before the runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from examples.digits.dataset import CLASSES, PIXELS, Array, Examples
from examples.tinyframe import Adam, Compiled, Linear, Relu, Sequential, compiled, compiled_step, softmax_cross_entropy
from examples.tinyframe.tree import Tree

SPLIT_SEED = 0
SEEDS = (0, 1, 2, 3, 4)  # of the initial weights, the order of the batches and the noise
EPOCHS = 30
BATCH = 64
NOISE = np.float32(0.15)  # standard deviation added to pixels while training: no two epochs see the same image

MODEL = Sequential(Linear(PIXELS, 256), Relu(), Linear(256, 128), Relu(), Linear(128, CLASSES))
OPTIMIZER = Adam(learning_rate=2e-3)


@dataclass(frozen=True, slots=True)
class Programs:
    """The two programs of the job, compiled at their first call."""

    step: Compiled
    logits: Compiled


@dataclass(frozen=True, slots=True)
class Run:
    """One training from one seed: the mean loss of each epoch, and the parameters at the end."""

    seed: int
    losses: list[float]
    parameters: Tree


def make_programs() -> Programs:
    step = compiled_step(lambda parameters, x, labels: softmax_cross_entropy(MODEL(parameters, x), labels), OPTIMIZER)
    return Programs(step, compiled(MODEL.__call__))


def batches_per_epoch(examples: Examples) -> int:
    return len(examples) // BATCH


def train(programs: Programs, examples: Examples, seed: int, after_step: Callable[[], object]) -> Run:
    """Trains from scratch; calls `after_step` after each step."""
    generator = np.random.default_rng(seed)
    parameters = MODEL.initialize(generator)
    state = OPTIMIZER.initialize(parameters)
    losses = []
    steps = EPOCHS * batches_per_epoch(examples)
    step = 0
    for _ in range(EPOCHS):
        epoch_losses = []
        for images, labels in shuffled_batches(examples, generator):
            parameters, state, loss = programs.step(parameters, state, cosine_rate(step / steps), images, labels)
            epoch_losses.append(float(loss))
            step += 1
            after_step()
        losses.append(float(np.mean(epoch_losses)))
    return Run(seed, losses, parameters)


def shuffled_batches(examples: Examples, generator: np.random.Generator) -> list[tuple[Array, Array]]:
    """One epoch: full batches in a fresh order, noise on the images. A remainder smaller than a batch sits out."""
    count = batches_per_epoch(examples)
    order = generator.permutation(len(examples))[: count * BATCH].reshape(count, BATCH)
    noise = generator.standard_normal((count, BATCH, PIXELS), np.float32) * NOISE
    return [(examples.images[rows] + own, examples.labels[rows]) for rows, own in zip(order, noise, strict=True)]


def cosine_rate(progress: float) -> np.float32:
    """The learning rate's scale: from one to zero along half a cosine."""
    return np.float32(0.5 * (1 + math.cos(math.pi * progress)))


def predict(programs: Programs, parameters: Tree, images: Array) -> Array:
    """The most likely class of each image."""
    logits: Array = programs.logits(parameters, images)
    classes: Array = logits.argmax(axis=1)
    return classes


def accuracy(programs: Programs, run: Run, examples: Examples) -> float:
    return float((predict(programs, run.parameters, examples.images) == examples.labels).mean())
