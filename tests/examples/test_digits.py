"""The digits job: its data, its split, and its compiled step beside the one written by hand."""

from __future__ import annotations

import numpy as np

from examples.digits import dataset, training
from examples.digits.numpy_step import NumpyStep
from examples.digits.picture import COLUMNS, ROWS

STEPS = 5


def test_the_data_is_whole() -> None:
    examples = dataset.load()
    assert examples.images.shape == (1797, 64)
    assert examples.images.min() == 0
    assert examples.images.max() == 1
    assert sorted(np.bincount(examples.labels)) == [174, 177, 178, 179, 180, 181, 181, 182, 182, 183]


def test_the_split_holds_out_a_fifth_of_each_class() -> None:
    examples = dataset.load()
    learned_from, held_out = dataset.split(examples, training.SPLIT_SEED)
    assert len(learned_from) + len(held_out) == len(examples)
    shares = np.bincount(held_out.labels) / np.bincount(examples.labels)
    np.testing.assert_allclose(shares, 1 / dataset.HELD_OUT_SHARE, atol=0.005)
    assert len(held_out) >= ROWS * COLUMNS
    again, _ = dataset.split(examples, training.SPLIT_SEED)
    np.testing.assert_array_equal(again.images, learned_from.images)


def test_the_compiled_step_does_what_the_handwritten_one_does() -> None:
    learned_from, _ = dataset.split(dataset.load(), training.SPLIT_SEED)
    generator = np.random.default_rng(0)
    parameters = training.MODEL.initialize(generator)
    state = training.OPTIMIZER.initialize(parameters)
    by_hand = NumpyStep(parameters, training.OPTIMIZER)
    step = training.make_programs().step
    for number, (images, labels) in enumerate(training.shuffled_batches(learned_from, generator)[:STEPS]):
        rate = training.cosine_rate(number / STEPS)
        parameters, state, loss = step(parameters, state, rate, images, labels)
        np.testing.assert_allclose(loss, by_hand(float(rate), images, labels), rtol=1e-4)
    weights = [layer["weight"] for layer in parameters if layer]
    for compiled, numpy in zip(weights, by_hand.weights, strict=True):
        np.testing.assert_allclose(compiled, numpy, rtol=1e-3, atol=1e-4)
