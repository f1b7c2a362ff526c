"""tinyframe: derivatives against finite differences, optimizers and programs against what they promise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from examples.tinyframe import (
    SGD,
    Adam,
    Linear,
    Sequential,
    Tanh,
    Tensor,
    compiled,
    compiled_step,
    exp,
    gradient,
    log,
    log_softmax,
    maximum,
    select,
    softmax_cross_entropy,
    sqrt,
    tanh,
)
from examples.tinyframe.tree import flatten, map_tree

NUDGE = 1e-6  # the step of a central difference in float64

SCALAR_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "subtract from a number": lambda x, y: 2 - x * y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "divide a number": lambda x, y: 1 / (x + y),
    "negate": lambda x, y: -x * y,
    "exp": lambda x, y: exp(x) * y,
    "log": lambda x, y: log(x) * y,
    "sqrt": lambda x, y: sqrt(x) * y,
    "tanh": lambda x, y: tanh(x) * y,
    "maximum": lambda x, y: maximum(x, y) * x,
    "select": lambda x, y: select(x >= y, x * x, y),
    "matmul": lambda x, y: x @ y.transposed,
    "reshape": lambda x, y: x.reshape(3, 2) @ y,
    "broadcast a row": lambda x, y: x * y.sum(0),
    "broadcast a column": lambda x, y: x * y.sum(1, keep=True),
    "mean": lambda x, y: x.mean(0) * y,
    "a value used twice": lambda x, y: x * x * y + x,
    "log_softmax": lambda x, y: log_softmax(x * y) * y,
}


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_gradient_agrees_with_differences(name: str) -> None:
    function = SCALAR_FUNCTIONS[name]
    generator = np.random.default_rng(0)
    point = [generator.uniform(0.5, 2, (2, 3)) for _ in range(2)]
    weights = generator.standard_normal(9)  # no function here gives more elements

    def scalar(x: Tensor, y: Tensor) -> Tensor:
        value = function(x, y)
        return (value * weights[: value.size].reshape(value.dims)).sum()

    value = compiled(scalar)
    slopes = compiled(lambda x, y: gradient(scalar(x, y), [x, y]))(*point)
    for argument, slope in zip(point, slopes, strict=True):
        np.testing.assert_allclose(slope, _differences(lambda: value(*point), argument), rtol=1e-6, atol=1e-7)


def _differences(value: Callable[[], Any], argument: np.ndarray) -> np.ndarray:
    """Central differences of `value()` by each element of `argument`, which is changed and restored."""
    slopes = np.zeros_like(argument)
    for index in np.ndindex(argument.shape):
        middle = argument[index]
        argument[index] = middle + NUDGE
        above = value()
        argument[index] = middle - NUDGE
        below = value()
        argument[index] = middle
        slopes[index] = (above - below) / (2 * NUDGE)
    return slopes


def test_gradients_can_be_differentiated_again() -> None:
    def second(x: Tensor) -> Tensor:
        return gradient(gradient((x * x * x).sum(), x).sum(), x)

    np.testing.assert_allclose(compiled(second)(np.array([1.0, 2.0])), [6.0, 12.0])


def test_a_parameter_without_influence_has_gradient_zero() -> None:
    slopes = compiled(lambda x, unused: gradient(x.sum(), {"x": x, "unused": unused}))(np.ones(2), np.ones(3))
    np.testing.assert_array_equal(slopes["x"], np.ones(2))
    np.testing.assert_array_equal(slopes["unused"], np.zeros(3))


def test_only_a_scalar_has_a_gradient() -> None:
    with pytest.raises(ValueError, match="scalar"):
        compiled(lambda x: gradient(x * 2, x))(np.ones(2))


@pytest.mark.parametrize("dims", [(4, 3), (2,), (3, 2)])
def test_shapes_that_do_not_broadcast_are_refused(dims: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        compiled(lambda x, y: x + y)(np.ones((2, 3)), np.ones(dims))


def test_matrices_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="multiply"):
        compiled(lambda x: x @ x)(np.ones((2, 3)))


def test_cross_entropy_of_large_logits_is_finite() -> None:
    logits = np.array([[1000.0, 0.0, -1000.0], [0.0, 0.0, 0.0]], np.float32)
    loss = compiled(softmax_cross_entropy)(logits, np.array([0, 2], np.int32))
    np.testing.assert_allclose(loss, np.log(3) / 2, rtol=1e-6)


def test_each_signature_is_compiled_once() -> None:
    recordings = []

    def double(tree: dict[str, Tensor]) -> dict[str, Tensor]:
        recordings.append(tree)
        return {key: value * 2 for key, value in tree.items()}

    function = compiled(double)
    for size in (3, 4, 3, 4):
        result = function({"x": np.ones(size, np.float32)})
        np.testing.assert_array_equal(result["x"], np.full(size, 2, np.float32))
    assert len(recordings) == len(function.programs) == 2


def test_threads_share_one_program() -> None:
    function = compiled(lambda x: x + 1)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(function(np.zeros(5)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(function.programs) == 1
    np.testing.assert_array_equal(results, np.ones((4, 5)))


def test_sgd_with_momentum_follows_its_formula() -> None:
    step = compiled_step(lambda x: (x * x).sum(), SGD(learning_rate=0.1, momentum=0.5))
    position, velocity, expected, expected_velocity = np.array([2.0]), np.zeros(1), 2.0, 0.0
    for _ in range(5):
        position, velocity, loss = step(position, velocity, np.float64(1))
        np.testing.assert_allclose(loss, expected**2)
        expected_velocity = 0.5 * expected_velocity + 2 * expected
        expected -= 0.1 * expected_velocity
        np.testing.assert_allclose(position, [expected])


def test_adam_first_moves_each_parameter_by_its_learning_rate() -> None:
    optimizer = Adam(learning_rate=0.01)
    start = np.array([3.0, -0.001], np.float32)
    step = compiled_step(lambda x: (x * x).sum(), optimizer)
    moved, _, _ = step(start, optimizer.initialize(start), np.float32(1))
    np.testing.assert_allclose(start - moved, [0.01, -0.01], rtol=1e-3)


def test_a_network_learns_exclusive_or() -> None:
    model = Sequential(Linear(2, 8), Tanh(), Linear(8, 2))
    optimizer = Adam(learning_rate=0.05)
    step = compiled_step(lambda p, x, labels: softmax_cross_entropy(model(p, x), labels), optimizer)
    inputs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    labels = np.array([0, 1, 1, 0], np.int32)
    parameters = model.initialize(np.random.default_rng(0))
    state = optimizer.initialize(parameters)
    for _ in range(200):
        parameters, state, loss = step(parameters, state, np.float32(1), inputs, labels)
    assert loss < 0.01
    np.testing.assert_array_equal(compiled(model.__call__)(parameters, inputs).argmax(axis=1), labels)


def test_trees_come_apart_and_together() -> None:
    tree = {"b": [1, (2, {})], "a": 3}
    leaves, structure = flatten(tree)
    assert leaves == [3, 1, 2]
    assert structure.rebuild(leaves) == tree
    assert map_tree(lambda x, y: x + y, tree, tree) == {"b": [2, (4, {})], "a": 6}
    with pytest.raises(ValueError, match="structure"):
        map_tree(max, tree, {"b": [1, 2], "a": 3})
