"""Training a network by its recipe, and asking it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from examples.digits.dataset import Array, Examples
from examples.digits.distortion import distorted
from examples.digits.recipes import BATCH, Recipe, cosine_rate
from examples.tinyframe import Compiled, Tensor, Training, compiled, compiled_step, softmax_cross_entropy
from examples.tinyframe.tree import Tree


@dataclass(frozen=True, slots=True)
class Programs:
    """The two programs of a recipe, compiled at their first call."""

    recipe: Recipe
    step: Compiled
    logits: Compiled


@dataclass(frozen=True, slots=True)
class Run:
    """One training from one seed: the mean loss of each epoch, and the parameters at the end."""

    seed: int
    losses: list[float]
    parameters: Tree


def make_programs(recipe: Recipe) -> Programs:
    def loss(parameters: Tree, training: Training, images: Tensor, labels: Tensor) -> Tensor:
        return softmax_cross_entropy(recipe.model(parameters, images, training), labels)

    return Programs(recipe, compiled_step(loss, recipe.optimizer), compiled(recipe.model))


def batches_per_epoch(examples: Examples) -> int:
    return len(examples) // BATCH


def train(programs: Programs, examples: Examples, seed: int, after_step: Callable[[], object]) -> Run:
    """Trains from scratch; calls `after_step` after each step."""
    recipe = programs.recipe
    generator = np.random.default_rng(seed)
    parameters = recipe.model.initialize(generator)
    state = recipe.optimizer.initialize(parameters)
    losses = []
    steps = recipe.epochs * batches_per_epoch(examples)
    step = 0
    for _ in range(recipe.epochs):
        epoch_losses = []
        for images, labels in shuffled_batches(recipe, examples, generator):
            parameters, state, loss = programs.step(parameters, state, cosine_rate(step / steps), images, labels)
            epoch_losses.append(float(loss))
            step += 1
            after_step()
        losses.append(float(np.mean(epoch_losses)))
    return Run(seed, losses, parameters)


def shuffled_batches(recipe: Recipe, examples: Examples, generator: np.random.Generator) -> list[tuple[Array, Array]]:
    """One epoch: full batches in a fresh order, of changed images. A remainder smaller than a batch sits out."""
    count = batches_per_epoch(examples)
    order = generator.permutation(len(examples))[: count * BATCH]
    images = examples.images[order]
    if recipe.distortion is not None:
        images = distorted(images, recipe.distortion, generator)
    images += generator.standard_normal(images.shape, np.float32) * np.float32(recipe.noise)
    batches = (count, BATCH)
    return [*zip(images.reshape(*batches, *recipe.dims), examples.labels[order].reshape(batches), strict=True)]


def predict(programs: Programs, parameters: Tree, images: Array) -> Array:
    """The most likely class of each image."""
    logits: Array = programs.logits(parameters, images.reshape(-1, *programs.recipe.dims))
    classes: Array = logits.argmax(axis=1)
    return classes


def accuracy(programs: Programs, run: Run, examples: Examples) -> float:
    return float((predict(programs, run.parameters, examples.images) == examples.labels).mean())
