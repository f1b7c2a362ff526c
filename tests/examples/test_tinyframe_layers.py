"""tinyframe's layers: derivatives against differences, values against numpy, and what changes in training."""

from __future__ import annotations

import numpy as np
import pytest

from examples.tinyframe import (
    SGD,
    BatchNorm,
    Convolution,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    Lstm,
    MaxPool,
    MultiHeadAttention,
    Residual,
    Sequential,
    Tanh,
    Tensor,
    Training,
    compiled,
    compiled_step,
    gradient,
    softmax,
)
from examples.tinyframe.loops import scan
from examples.tinyframe.normalization import batch_norm_by, dropout
from examples.tinyframe.parts import split, take_rows
from tests.examples.gradients import as_doubles, check_gradient, doubles

LAYERS: dict[str, tuple[Layer, list[tuple[int, ...]]]] = {
    "linear": (Linear(3, 2), [(4, 3), (2, 2, 3)]),
    "batch norm": (BatchNorm(3), [(4, 3), (2, 2, 2, 3)]),
    "layer norm": (LayerNorm(3), [(4, 3), (2, 2, 3)]),
    "attention": (MultiHeadAttention(4, 2), [(2, 3, 4), (1, 5, 4)]),
    "causal attention": (MultiHeadAttention(6, 3, causal=True), [(1, 4, 6), (2, 1, 6)]),
    "lstm": (Lstm(2, 3), [(2, 4, 2), (1, 1, 2), (3, 2, 2)]),
    "convolutions": (
        Sequential(Convolution(1, 2), Tanh(), MaxPool(), Convolution(2, 2, stride=2), Flatten(), Linear(4, 2)),
        [(2, 4, 8, 1)],
    ),
    "residual": (Residual(Sequential(LayerNorm(3), Linear(3, 3), Tanh())), [(4, 3)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_gradients_of_layers_agree_with_differences(name: str) -> None:
    layer, shapes = LAYERS[name]
    parameters = as_doubles(layer.initialize(np.random.default_rng(0)))
    for x in doubles(1, *shapes):
        check_gradient(lambda p, x: layer(p, x, Training()), parameters, x)


def test_the_gradient_of_batch_norm_in_use() -> None:
    x, scale, offset, mean = doubles(2, (2, 3, 4), (4,), (4,), (4,))
    check_gradient(lambda *values: batch_norm_by(*values, 1e-3), x, scale, offset, mean, np.arange(1.0, 5))


def test_rows_that_are_taken_twice_get_both_gradients() -> None:
    (table,) = doubles(3, (4, 3))
    numbers = np.array([[0, 2, 2], [3, 0, 2]], np.int32)
    check_gradient(take_rows, table, numbers)


def test_rows_of_a_table() -> None:
    layer = Embedding(5, 3)
    table = layer.initialize(np.random.default_rng(0))
    numbers = np.array([[4, 0], [-7, 9]], np.int32)
    rows = compiled(layer)(table, numbers)
    np.testing.assert_array_equal(rows, table[[[4, 0], [0, 4]]])


def test_batch_norm_learns_the_statistics_that_it_uses() -> None:
    layer = BatchNorm(2, keep=0.5)
    step = compiled_step(lambda p, training, x: layer(p, x, training).sum(), SGD(learning_rate=0.1))
    parameters = layer.initialize(np.random.default_rng(0))
    state = SGD(learning_rate=0.1).initialize(parameters)
    x = np.random.default_rng(1).normal(3, 2, (64, 2)).astype(np.float32)
    for _ in range(30):
        parameters, state, _ = step(parameters, state, np.float32(1), x)
    np.testing.assert_allclose(parameters["mean"], x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(parameters["variance"], x.var(0), rtol=1e-5)
    used = compiled(layer)(parameters, x)
    expected = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * parameters["scale"] + parameters["offset"]
    np.testing.assert_allclose(used, expected, rtol=1e-4, atol=1e-4)


def test_attention_weighs_values_by_their_keys() -> None:
    layer = MultiHeadAttention(4, 1)
    parameters = layer.initialize(np.random.default_rng(0))
    x = np.random.default_rng(1).standard_normal((1, 5, 4)).astype(np.float32)
    query, key, value = np.split(x[0] @ parameters["inward"], 3, axis=-1)
    weights = np.exp(query @ key.T / 2)
    expected = weights / weights.sum(-1, keepdims=True) @ value @ parameters["outward"]
    np.testing.assert_allclose(compiled(layer)(parameters, x)[0], expected, rtol=1e-4, atol=1e-5)


def test_causal_attention_does_not_look_ahead() -> None:
    layer = MultiHeadAttention(4, 2, causal=True)
    parameters = layer.initialize(np.random.default_rng(0))
    program = compiled(layer)
    x = np.random.default_rng(1).standard_normal((1, 6, 4)).astype(np.float32)
    changed = x.copy()
    changed[:, 4:] += 1
    before, after = program(parameters, x), program(parameters, changed)
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert not np.allclose(before[:, 4:], after[:, 4:])


def test_an_lstm_is_its_formula() -> None:
    layer = Lstm(2, 3)
    parameters = layer.initialize(np.random.default_rng(0))
    x = np.random.default_rng(1).standard_normal((2, 4, 2)).astype(np.float32)
    program = compiled(layer)
    output, memory = np.zeros((2, 2, 3), np.float32)
    expected = []
    for time in range(4):
        gates = x[:, time] @ parameters["inward"] + parameters["bias"] + output @ parameters["recurrent"]
        enter, keep, leave = (1 / (1 + np.exp(-part)) for part in np.split(gates, 4, axis=1)[:3])
        memory = keep * memory + enter * np.tanh(gates[:, 9:])
        output = leave * np.tanh(memory)
        expected.append(output)
    np.testing.assert_allclose(program(parameters, x), np.stack(expected, 1), rtol=1e-5, atol=1e-6)


def test_an_lstm_is_one_loop_on_the_device() -> None:
    layer = Lstm(2, 3)
    program = compiled(layer)
    program(layer.initialize(np.random.default_rng(0)), np.ones((1, 9, 2), np.float32))
    assert program.programs[0].hlo_text().count(" while(") == 1


def test_the_gradient_of_a_scan_refuses_to_be_differentiated() -> None:
    def twice(x: Tensor) -> Tensor:
        states = scan(lambda state, element: state * element, x.filled(1, ()), x, [])
        return gradient(gradient(states.sum(), x).sum(), x)

    with pytest.raises(ValueError, match="scan cannot be differentiated again"):
        compiled(twice)(np.ones(3))


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    layer = Dropout(0.25)
    program = compiled(lambda x: (layer({}, x, Training()), layer({}, x)))
    x = np.ones((100, 100), np.float32)
    first, used = program(x)
    second, _ = program(x)
    np.testing.assert_array_equal(used, x)
    assert set(np.unique(first)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert 0.2 < (first == 0).mean() < 0.3
    assert not np.array_equal(first, second)


def test_the_gradient_of_dropout_is_its_mask() -> None:
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        dropped = dropout(x, 0.5)
        return dropped, gradient(dropped.sum(), x)

    dropped, slope = compiled(both)(np.full((8, 8), 3.0))
    np.testing.assert_allclose(dropped, slope * 3)


def test_a_share_of_one_leaves_nothing_to_grow() -> None:
    with pytest.raises(ValueError, match="share"):
        compiled(lambda x: dropout(x, 1))(np.ones(2))


def test_parts_are_equal() -> None:
    with pytest.raises(ValueError, match="apart"):
        compiled(lambda x: split(x, 0, 3)[0])(np.ones(4))


def test_softmax_of_large_logits_is_finite() -> None:
    weights = compiled(softmax)(np.array([[1e4, 0, -1e4]], np.float32))
    np.testing.assert_array_equal(weights, [[1, 0, 0]])
