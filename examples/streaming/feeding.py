"""Python's side of the streams: batches into the infeed, losses out of the outfeed, each from a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np

import xlapy
from examples.digits.dataset import Array, Examples
from examples.streaming.program import BATCH

WAIT_SECONDS = 30.0
"""Nothing here takes that long: whoever waits longer waits for someone who has failed."""


def shuffled_batches(examples: Examples, seed: int) -> Iterator[tuple[Array, Array]]:
    """Full batches without end, every epoch in a fresh order."""
    generator = np.random.default_rng(seed)
    while True:
        order = generator.permutation(len(examples))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            yield examples.images[rows], examples.labels[rows]


def feed(device: xlapy.Device, batches: Iterator[tuple[Array, Array]], steps: int) -> threading.Thread:
    """Starts to put batches into the infeed. The queue is bounded: Python stays a few batches ahead, no more."""

    def work() -> None:
        for _, batch in zip(range(steps), batches, strict=False):
            device.transfer_to_infeed(batch, timeout=WAIT_SECONDS)

    return _started(work, "feeder")


def report(device: xlapy.Device, steps: int, show: Callable[[float], object]) -> threading.Thread:
    """Starts to take losses from the outfeed, as soon as the device has put them there; `show` gets each."""

    def work() -> None:
        for _ in range(steps):
            show(float(device.transfer_from_outfeed(timeout=WAIT_SECONDS)))

    return _started(work, "reporter")


def _started(work: Callable[[], None], name: str) -> threading.Thread:
    """A daemon: an interrupted program need not wait for it."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
