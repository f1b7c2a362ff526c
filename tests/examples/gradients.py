"""Derivatives by central differences, to hold those of tinyframe against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from examples.tinyframe import Tensor, compiled, gradient
from examples.tinyframe.tree import Tree, flatten

NUDGE = 1e-6  # the step of a central difference in float64


def check_gradient(function: Callable[..., Tensor], *point: Tree) -> None:
    """The gradient of a weighed sum of what `function` gives, by every float of `point`, is that of differences."""
    leaves = [leaf for leaf in flatten(point)[0] if leaf.dtype.kind == "f"]
    assert all(leaf.dtype == np.float64 for leaf in leaves), "differences take float64"

    def both(*arguments: Tree) -> tuple[Tensor, list[Tensor]]:
        result = function(*arguments)
        weights = np.cos(np.arange(result.size)).reshape(result.dims)
        total = (result * weights).sum()
        return total, gradient(total, [leaf for leaf in flatten(arguments)[0] if leaf.dtype.kind == "f"])

    program = compiled(both)
    _, slopes = program(*point)
    for argument, slope in zip(leaves, slopes, strict=True):
        expected = differences(lambda: program(*point)[0], argument)
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)


def differences(value: Callable[[], Any], argument: np.ndarray) -> np.ndarray:
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


def doubles(seed: int, *dims: tuple[int, ...]) -> list[np.ndarray]:
    """Arrays of float64 around zero."""
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(size) for size in dims]


def as_doubles(tree: Tree) -> Tree:
    """The parameters of a layer, for differences."""
    leaves, structure = flatten(tree)
    return structure.rebuild([leaf.astype(np.float64) for leaf in leaves])
