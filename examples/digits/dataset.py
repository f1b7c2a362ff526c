"""The handwritten digits, split into a part to learn from and a part to be judged by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SIDE = 8  # pixels
PIXELS = SIDE * SIDE
CLASSES = 10
DARKEST = 16  # the largest value of a pixel in the file
HELD_OUT_SHARE = 5  # one in five


@dataclass(frozen=True, slots=True)
class Examples:
    """Images as rows of 64 pixels from 0 to 1 (float32), and their labels (int32)."""

    images: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)


def load() -> Examples:
    with np.load(Path(__file__).parent / "data" / "digits.npz") as file:
        images = file["images"].reshape(-1, PIXELS).astype(np.float32) / DARKEST
        return Examples(images, file["labels"].astype(np.int32))


def split(examples: Examples, seed: int) -> tuple[Examples, Examples]:
    """The examples to learn from, and a fifth of each class held out, chosen by `seed`."""
    generator = np.random.default_rng(seed)
    held_out = np.zeros(len(examples), bool)
    for label in range(CLASSES):
        members = generator.permutation(np.flatnonzero(examples.labels == label))
        held_out[members[: round(len(members) / HELD_OUT_SHARE)]] = True
    return _choose(examples, ~held_out), _choose(examples, held_out)


def _choose(examples: Examples, chosen: Array) -> Examples:
    return Examples(examples.images[chosen], examples.labels[chosen])
