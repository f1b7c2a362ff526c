"""The program on the device: a network of two layers, trained by gradient descent on what comes through the infeed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xlapy
from examples.digits.dataset import CLASSES, PIXELS, Array
from xlapy import ops

HIDDEN = 64
BATCH = 32
SCALE = np.float32(0.1)  # standard deviation of the initial weights

BATCH_SHAPE = xlapy.Shape.tuple([xlapy.Shape.array(np.float32, (BATCH, PIXELS)), xlapy.Shape.array(np.int32, (BATCH,))])
EACH_ROW, EACH_COLUMN = (1,), (0,)  # the dimension of a matrix along which a vector is laid
WEIGHT_DIMS = ((PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))


def initial_weights(seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(dims, np.float32) * SCALE for dims in WEIGHT_DIMS]


def training_loop() -> xlapy.XlaComputation:
    """(steps, rate, weights...) -> the weights after so many batches. The loss of each batch goes to the outfeed.

    The token in the loop's state orders infeeds and outfeeds: batch, loss, batch, loss ...
    """
    builder = xlapy.XlaBuilder("training_loop")
    steps = builder.parameter(0, xlapy.Shape.scalar(np.int32), "steps")
    rate = builder.parameter(1, xlapy.Shape.scalar(np.float32), "rate")
    weights = [
        builder.parameter(2 + number, xlapy.Shape.array(np.float32, dims)) for number, dims in enumerate(WEIGHT_DIMS)
    ]
    zero = builder.constant(np.int32(0))
    state = builder.tuple([zero, steps, rate, ops.CreateToken(builder), *weights])
    final = ops.While(lambda state: state[0] < state[1], _round, state)
    return builder.build(builder.tuple([final[4 + number] for number in range(len(weights))]))


def _round(state: Any) -> Any:
    """One round of the loop: (round, steps, rate, token, weights...) -> the same, one batch later."""
    builder = state.builder
    number, steps, rate, token, *weights = [state[part] for part in range(4 + len(WEIGHT_DIMS))]
    batch, token = ops.InfeedWithToken(token, BATCH_SHAPE)
    loss, slopes = _loss_and_gradient(weights, batch[0], batch[1])
    token = ops.OutfeedWithToken(loss, token)
    updated = [weight - rate * slope for weight, slope in zip(weights, slopes, strict=True)]
    return builder.tuple([number + 1, steps, rate, token, *updated])


def _loss_and_gradient(weights: Sequence[Any], images: Any, labels: Any) -> tuple[Any, list[Any]]:
    """The mean cross-entropy of a batch, and its derivative by each weight."""
    first, first_bias, second, second_bias = weights
    active = ops.Max(ops.Add(images @ first, first_bias, EACH_ROW), 0.0)
    logits = ops.Add(active @ second, second_bias, EACH_ROW)
    logits = ops.Sub(logits, ops.Reduce(logits, -np.inf, ops.Max, (1,)), EACH_COLUMN)
    log_sums = ops.Log(ops.Reduce(ops.Exp(logits), 0.0, ops.Add, (1,)))
    log_likelihoods = ops.Sub(logits, log_sums, EACH_COLUMN)
    classes = ops.Iota(images.builder, xlapy.Shape.array(np.int32, (BATCH, CLASSES)), 1)
    is_label = ops.ConvertElementType(ops.Eq(classes, labels, EACH_COLUMN), np.float32)
    loss = ops.ReduceAll(log_likelihoods * is_label, 0.0, ops.Add) * (-1 / BATCH)

    by_logits = (ops.Exp(log_likelihoods) - is_label) * (1 / BATCH)
    by_active = ops.Select(active > 0.0, by_logits @ ops.Transpose(second, (1, 0)), 0.0)
    slopes = [
        ops.Transpose(images, (1, 0)) @ by_active,
        ops.Reduce(by_active, 0.0, ops.Add, (0,)),
        ops.Transpose(active, (1, 0)) @ by_logits,
        ops.Reduce(by_logits, 0.0, ops.Add, (0,)),
    ]
    return loss, slopes
