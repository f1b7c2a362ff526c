"""Losses: one number for a batch."""

from __future__ import annotations

from examples.tinyframe.normalization import log_softmax
from examples.tinyframe.tensor import Tensor


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean of -log p(label) over the rows of `logits`; `labels` holds one class number per row."""
    is_label = logits.indices(-1).equals(labels.reshape(*labels.dims, 1))
    return -(log_softmax(logits) * is_label.as_type(logits.dtype)).sum() / float(logits.dims[0])
