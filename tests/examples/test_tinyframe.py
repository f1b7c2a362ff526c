"""tinyframe: derivatives against finite differences, optimizers and programs against what they promise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
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
    minimum,
    select,
    sigmoid,
    softmax,
    softmax_cross_entropy,
    sqrt,
    tanh,
)
from examples.tinyframe.parts import concatenate, part, reverse, split
from examples.tinyframe.tree import flatten, map_tree
from tests.examples.gradients import check_gradient

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
    "sigmoid": lambda x, y: sigmoid(x) * y,
    "maximum": lambda x, y: maximum(x, y) * x,
    "minimum": lambda x, y: minimum(x, y) * x,
    "select": lambda x, y: select(x >= y, x * x, y),
    "matmul": lambda x, y: x @ y.transposed,
    "reshape": lambda x, y: x.reshape(3, 2) @ y,
    "broadcast a row": lambda x, y: x * y.sum(0),
    "broadcast a column": lambda x, y: x * y.sum(1, keep=True),
    "mean": lambda x, y: x.mean(0) * y,
    "a value used twice": lambda x, y: x * x * y + x,
    "softmax": lambda x, y: softmax(x * y) * y,
    "log_softmax": lambda x, y: log_softmax(x * y) * y,
    "permute": lambda x, y: x.reshape(2, 3, 1).permute(1, 2, 0) @ y.reshape(3, 2, 1),
    "a matrix for all rows": lambda x, y: x.reshape(2, 1, 3) @ y.transposed,
    "part": lambda x, y: part(x, 1, 1, 3) * part(y, -1, 0, 2),
    "concatenate": lambda x, y: concatenate([x, x * y], 0),
    "split": lambda x, y: split(x * y, 1, 3)[1] * x,
    "reverse": lambda x, y: reverse(x, 0, 1) * y,
}


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_gradient_agrees_with_differences(name: str) -> None:
    generator = np.random.default_rng(0)
    check_gradient(SCALAR_FUNCTIONS[name], *(generator.uniform(0.5, 2, (2, 3)) for _ in range(2)))


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


def test_errors_name_the_line_that_uses_the_framework() -> None:
    double = compiled(lambda x, y: maximum(x, y) * 2)
    with pytest.raises(xlapy.ShapeError, match=r"test_tinyframe.py:\d+: double = compiled"):
        double(np.ones(3, np.float32), np.ones(3, np.float64))


def test_numbers_of_python_are_narrow() -> None:
    scaled = compiled(lambda x, factor: x * factor)
    assert scaled(np.ones(2, np.float32), 3.0).tolist() == [3, 3] and scaled(np.ones(2, np.int32), 3).tolist() == [3, 3]


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
    step = compiled_step(lambda x, training: (x * x).sum(), SGD(learning_rate=0.1, momentum=0.5))
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
    step = compiled_step(lambda x, training: (x * x).sum(), optimizer)
    moved, _, _ = step(start.copy(), optimizer.initialize(start), np.float32(1))
    np.testing.assert_allclose(start - moved, [0.01, -0.01], rtol=1e-3)


def test_a_network_learns_exclusive_or() -> None:
    model = Sequential(Linear(2, 8), Tanh(), Linear(8, 2))
    optimizer = Adam(learning_rate=0.05)
    step = compiled_step(lambda p, training, x, labels: softmax_cross_entropy(model(p, x, training), labels), optimizer)
    inputs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    labels = np.array([0, 1, 1, 0], np.int32)
    parameters = model.initialize(np.random.default_rng(0))
    state = optimizer.initialize(parameters)
    for _ in range(200):
        parameters, state, loss = step(parameters, state, np.float32(1), inputs, labels)
    assert loss < 0.01
    np.testing.assert_array_equal(compiled(model)(parameters, inputs).argmax(axis=1), labels)


def test_a_step_changes_its_parameters_in_place() -> None:
    step = compiled_step(lambda x, training: (x * x).sum(), SGD(learning_rate=0.25))
    start, velocity = np.arange(4.0), np.zeros(4)
    moved, _, _ = step(start, velocity, np.float64(1))
    assert moved is start
    np.testing.assert_allclose(moved, np.arange(4) / 2)


def test_what_is_in_place_has_the_structure_of_the_arguments() -> None:
    with pytest.raises(ValueError, match="structures"):
        compiled(lambda x: x + 1, in_place=1)(np.ones(2))


def test_trees_come_apart_and_together() -> None:
    tree = {"b": [1, (2, {})], "a": 3}
    leaves, structure = flatten(tree)
    assert leaves == [3, 1, 2]
    assert structure.rebuild(leaves) == tree
    assert map_tree(lambda x, y: x + y, tree, tree) == {"b": [2, (4, {})], "a": 6}
    with pytest.raises(ValueError, match="structure"):
        map_tree(max, tree, {"b": [1, 2], "a": 3})
