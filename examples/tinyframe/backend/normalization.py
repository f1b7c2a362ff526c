"""Batch normalization: the three operations that XLA has for it."""

from __future__ import annotations

from examples.tinyframe.backend.recorder import Handle
from xlapy import ops


def batch_norm(x: Handle, scale: Handle, offset: Handle, epsilon: float) -> tuple[Handle, Handle, Handle]:
    """Normalizes each feature (the last dimension) by its own mean and variance: result, means, variances."""
    normalized = ops.BatchNormTraining(x, scale, offset, epsilon, x.shape.rank - 1)
    return normalized[0], normalized[1], normalized[2]


def batch_norm_gradient(
    x: Handle, scale: Handle, mean: Handle, variance: Handle, g: Handle, epsilon: float
) -> tuple[Handle, Handle, Handle]:
    """The gradients of x, scale and offset for the gradient `g` of the result."""
    slopes = ops.BatchNormGrad(x, scale, mean, variance, g, epsilon, x.shape.rank - 1)
    return slopes[0], slopes[1], slopes[2]


def batch_norm_by(x: Handle, scale: Handle, offset: Handle, mean: Handle, variance: Handle, epsilon: float) -> Handle:
    """Normalizes each feature by a mean and a variance that are given."""
    return ops.BatchNormInference(x, scale, offset, mean, variance, epsilon, x.shape.rank - 1)
