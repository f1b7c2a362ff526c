"""Losses: one number for a batch."""

from __future__ import annotations

from examples.tinyframe.tensor import Tensor, exp, log


def log_softmax(logits: Tensor) -> Tensor:
    """Logarithms of the probabilities of each row; shifted by the row's maximum, so that nothing overflows."""
    shifted = logits - logits.max_without_gradient(-1, keep=True)
    return shifted - log(exp(shifted).sum(-1, keep=True))


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean of -log p(label) over the rows of `logits`; `labels` holds one class number per row."""
    is_label = logits.indices(-1).equals(labels.reshape(*labels.dims, 1))
    return -(log_softmax(logits) * is_label.as_type(logits.dtype)).sum() / float(logits.dims[0])
