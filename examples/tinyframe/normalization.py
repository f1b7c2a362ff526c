"""Normalization: over classes (softmax), over features, over batches; and dropout."""

from __future__ import annotations

from examples.tinyframe.backend import normalization as recorded
from examples.tinyframe.backend.random import uniform
from examples.tinyframe.tensor import Tensor, differentiable_once, exp, log, sqrt


def softmax(logits: Tensor) -> Tensor:
    """Probabilities along the last dimension; shifted by the largest logit, so that nothing overflows."""
    weights = exp(logits - logits.max_without_gradient(-1, keep=True))
    return weights / weights.sum(-1, keep=True)


def log_softmax(logits: Tensor) -> Tensor:
    """The logarithms of `softmax`, finite where the probabilities are too small to be numbers."""
    shifted = logits - logits.max_without_gradient(-1, keep=True)
    return shifted - log(exp(shifted).sum(-1, keep=True))


def layer_norm(x: Tensor, scale: Tensor, offset: Tensor, epsilon: float) -> Tensor:
    """Each row (the last dimension) with mean zero and variance one, then scaled and moved."""
    centered = x - x.mean(-1, keep=True)
    variance = (centered * centered).mean(-1, keep=True)
    return centered / sqrt(variance + epsilon) * scale + offset


def batch_norm(x: Tensor, scale: Tensor, offset: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Each feature (the last dimension) with mean zero and variance one over the batch, then scaled and moved.

    Also gives the means and variances, without gradient: they are for running statistics."""
    recorder = x.recorder
    handle, mean, variance = recorded.batch_norm(x.handle, scale.handle, offset.handle, epsilon)

    def pullback(g: Tensor) -> tuple[Tensor, ...]:
        slopes = recorded.batch_norm_gradient(x.handle, scale.handle, mean, variance, g.handle, epsilon)
        return tuple(differentiable_once(Tensor(recorder, slope), (x, scale, g), "batch_norm") for slope in slopes)

    return Tensor(recorder, handle, (x, scale, offset), pullback), Tensor(recorder, mean), Tensor(recorder, variance)


def batch_norm_by(x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor, epsilon: float) -> Tensor:
    """`batch_norm` by statistics that are given, as when a trained network is used."""
    handles = (x.handle, scale.handle, offset.handle, mean.handle, variance.handle)
    inverse = 1 / sqrt(variance + epsilon)

    def pullback(g: Tensor) -> tuple[Tensor, ...]:
        batch = tuple(range(x.rank - 1))
        centered = x - mean
        to_scale = (g * centered).sum(batch) * inverse
        to_offset = g.sum(batch)
        to_variance = to_scale * scale * inverse * inverse * -0.5
        return g * (scale * inverse), to_scale, to_offset, -to_offset * scale * inverse, to_variance

    return Tensor(x.recorder, recorded.batch_norm_by(*handles, epsilon), (x, scale, offset, mean, variance), pullback)


def dropout(x: Tensor, share: float) -> Tensor:
    """Zero for a `share` of the elements, drawn anew at each call; the others grow by as much as is missing."""
    if not 0 <= share < 1:
        raise ValueError(f"dropout takes a share from 0 to less than 1, not {share}")
    drawn = Tensor(x.recorder, uniform(x.recorder, x.dims, x.dtype))
    return x * (drawn >= share).as_type(x.dtype) / (1 - share)
