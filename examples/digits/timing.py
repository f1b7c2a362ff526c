"""How long a training step of the perceptron takes, compiled and in numpy, on the same batch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from examples.digits.dataset import Examples
from examples.digits.numpy_step import NumpyStep
from examples.digits.training import Programs, shuffled_batches

ROUNDS = 15
STEPS_PER_ROUND = 20
MICROSECONDS = 1e6


def step_times(programs: Programs, examples: Examples) -> tuple[float, float]:
    """Microseconds per step, of the compiled program and of numpy: medians of rounds that take turns."""
    generator = np.random.default_rng(0)
    recipe = programs.recipe
    parameters = recipe.model.initialize(generator)
    state = recipe.optimizer.initialize(parameters)
    images, labels = shuffled_batches(recipe, examples, generator)[0]
    rate = np.float32(1)
    by_hand = NumpyStep(parameters, recipe.optimizer)

    rounds = [
        (
            _seconds(lambda: programs.step(parameters, state, rate, images, labels)),
            _seconds(lambda: by_hand(1.0, images, labels)),
        )
        for _ in range(ROUNDS)
    ]
    compiled, numpy = (
        statistics.median(column) / STEPS_PER_ROUND * MICROSECONDS for column in zip(*rounds, strict=True)
    )
    return compiled, numpy


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(STEPS_PER_ROUND):
        step()
    return time.perf_counter() - start
