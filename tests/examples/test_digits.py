"""The digits job: its data, its split, and its compiled step beside the one written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from examples.digits import dataset, training
from examples.digits.distortion import Distortion, distorted
from examples.digits.numpy_step import NumpyStep
from examples.digits.picture import COLUMNS, ROWS
from examples.digits.recipes import CONVOLUTIONAL, PERCEPTRON, SPLIT_SEED, cosine_rate

STEPS = 5
QUICK_EPOCHS = 5


def test_the_data_is_whole() -> None:
    examples = dataset.load()
    assert examples.images.shape == (1797, 64)
    assert examples.images.min() == 0
    assert examples.images.max() == 1
    assert sorted(np.bincount(examples.labels)) == [174, 177, 178, 179, 180, 181, 181, 182, 182, 183]


def test_the_split_holds_out_a_fifth_of_each_class() -> None:
    examples = dataset.load()
    learned_from, held_out = dataset.split(examples, SPLIT_SEED)
    assert len(learned_from) + len(held_out) == len(examples)
    shares = np.bincount(held_out.labels) / np.bincount(examples.labels)
    np.testing.assert_allclose(shares, 1 / dataset.HELD_OUT_SHARE, atol=0.005)
    assert len(held_out) >= ROWS * COLUMNS
    again, _ = dataset.split(examples, SPLIT_SEED)
    np.testing.assert_array_equal(again.images, learned_from.images)


def test_the_compiled_step_does_what_the_handwritten_one_does() -> None:
    learned_from, _ = dataset.split(dataset.load(), SPLIT_SEED)
    generator = np.random.default_rng(0)
    parameters = PERCEPTRON.model.initialize(generator)
    state = PERCEPTRON.optimizer.initialize(parameters)
    by_hand = NumpyStep(parameters, PERCEPTRON.optimizer)
    step = training.make_programs(PERCEPTRON).step
    for number, (images, labels) in enumerate(training.shuffled_batches(PERCEPTRON, learned_from, generator)[:STEPS]):
        rate = cosine_rate(number / STEPS)
        parameters, state, loss = step(parameters, state, rate, images, labels)
        np.testing.assert_allclose(loss, by_hand(float(rate), images, labels), rtol=1e-4)
    weights = [layer["weight"] for layer in parameters if layer]
    for compiled, numpy in zip(weights, by_hand.weights, strict=True):
        np.testing.assert_allclose(compiled, numpy, rtol=1e-3, atol=1e-4)


def test_images_are_distorted_each_in_its_own_way() -> None:
    images = dataset.load().images[:50]
    generator = np.random.default_rng(0)
    np.testing.assert_allclose(distorted(images, Distortion(0, 0, 0), generator), images, atol=1e-6)
    changed = distorted(images, Distortion(0.1, 0.05, 0.2), generator)
    assert changed.dtype == np.float32 and changed.min() >= 0 and changed.max() <= 1
    away = np.abs(changed - images).mean(axis=1)
    assert 0.005 < away.min() < away.max() < 0.25
    moved = distorted(np.repeat(images[:1], 500, axis=0), Distortion(0, 0, 0.5), generator)
    np.testing.assert_allclose(moved.mean(), images[0].mean(), rtol=0.1)


def test_a_few_epochs_of_the_convolutional_network() -> None:
    """The recipe, cut short: far from what it reaches in the end, far above chance."""
    learned_from, held_out = dataset.split(dataset.load(), SPLIT_SEED)
    programs = training.make_programs(replace(CONVOLUTIONAL, epochs=QUICK_EPOCHS))
    steps: list[None] = []
    run = training.train(programs, learned_from, 0, lambda: steps.append(None))
    assert len(steps) == QUICK_EPOCHS * training.batches_per_epoch(learned_from)
    assert run.losses[-1] < run.losses[0] / 3
    assert training.accuracy(programs, run, held_out) > 0.9
