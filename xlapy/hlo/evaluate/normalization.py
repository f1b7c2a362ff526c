"""Batch normalization, computed in the wide type and rounded once."""

from __future__ import annotations

import math

import numpy as np

from xlapy.hlo.evaluate.base import align, evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow, widen


@evaluator("batch-norm-inference")
def batch_norm_inference(
    operand: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> Array:
    cut = _common_features(operand, feature_index, scale, offset, mean, variance)
    x, gamma, beta, mu, spread = (widen(array) for array in cut)
    with np.errstate(all="ignore"):
        return narrow(_normalized(x, gamma, beta, mu, spread, epsilon, feature_index), element_type(operand))


def _normalized(
    operand: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float, feature_index: int
) -> Array:
    scale, offset, mean, variance = (
        _along(vector, operand, feature_index) for vector in (scale, offset, mean, variance)
    )
    centered = operand - mean
    return np.asarray(scale * (centered / np.sqrt(variance + variance.dtype.type(epsilon))) + offset)


def _common_features(operand: Array, feature_index: int, *vectors: Array) -> tuple[Array, ...]:
    """Operand and vectors, cut to the smallest number of features among them."""
    count = min(operand.shape[feature_index], *(len(vector) for vector in vectors))
    features = (slice(None),) * feature_index + (slice(count),)
    return (operand[features], *(vector[:count] for vector in vectors))


def _along(vector: Array, operand: Array, feature_index: int) -> Array:
    """The vector as an array that broadcasts along the feature dimension of the operand."""
    return vector.reshape([-1 if dim == feature_index else 1 for dim in range(operand.ndim)])


def _others(operand: Array, feature_index: int) -> tuple[int, ...]:
    return tuple(dim for dim in range(operand.ndim) if dim != feature_index)


def _count(operand: Array, feature_index: int) -> Array:
    """The number of elements of each feature, as one of the operand's type."""
    count = math.prod(operand.shape[dim] for dim in _others(operand, feature_index))
    return np.asarray(count, operand.dtype)


@evaluator("batch-norm-training")
def batch_norm_training(
    operand: Array, scale: Array, offset: Array, *, epsilon: float, feature_index: int
) -> tuple[Array, ...]:
    kind = element_type(operand)
    operand, scale, offset = _common_features(operand, feature_index, scale, offset)
    x = widen(operand)
    others, count = _others(x, feature_index), _count(x, feature_index)
    with np.errstate(all="ignore"):
        mean = x.sum(axis=others, dtype=x.dtype) / count
        centered = x - _along(mean, x, feature_index)
        variance = (centered * centered).sum(axis=others, dtype=x.dtype) / count
        output = _normalized(x, widen(scale), widen(offset), mean, variance, epsilon, feature_index)
        return tuple(narrow(array, kind) for array in (output, mean, variance))


@evaluator("batch-norm-grad")
def batch_norm_grad(
    operand: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    grad_output: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> tuple[Array, ...]:
    kind = element_type(operand)
    operand, grad_output = align(operand, grad_output)
    operand, scale, mean, variance = _common_features(operand, feature_index, scale, mean, variance)
    operand, grad_output = align(operand, grad_output)
    x, gradient = widen(operand), widen(grad_output)
    others, count = _others(x, feature_index), _count(x, feature_index)
    with np.errstate(all="ignore"):
        centered = x - _along(widen(mean), x, feature_index)
        spread = _along(widen(variance), x, feature_index) + x.dtype.type(epsilon)
        deviation = np.sqrt(spread)
        grad_offset = gradient.sum(axis=others, dtype=x.dtype)
        projected = (gradient * centered).sum(axis=others, dtype=x.dtype)
        grad_scale = (gradient * (centered / deviation)).sum(axis=others, dtype=x.dtype)
        rest = gradient * count - _along(grad_offset, x, feature_index)
        rest = rest - _along(projected, x, feature_index) * centered / spread
        grad_operand = _along(widen(scale), x, feature_index) / deviation / count * rest
        return tuple(narrow(array, kind) for array in (grad_operand, grad_scale, grad_offset))
