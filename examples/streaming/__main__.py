"""Trains a digit classifier in one call of one program, which reads its batches from the infeed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

import xlapy
from examples.digits import dataset
from examples.digits.dataset import Array, Examples
from examples.digits.progress import progress_bar
from examples.streaming import feeding, program

SEED = 0
RATE = np.float32(0.1)
REQUIRED_ACCURACY = 0.9
LOSSES_SHOWN = 50  # at the beginning and at the end, averaged
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if the held-out images are told apart well enough."""
    parser = argparse.ArgumentParser(prog="python -m examples.streaming", description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="how many batches to learn from")
    options = parser.parse_args(arguments)
    learned_from, held_out = dataset.split(dataset.load(), SEED)
    executable = xlapy.compile(program.training_loop(), xlapy.CompileOptions(timeout=feeding.WAIT_SECONDS))

    begin = time.perf_counter()
    weights, losses = train(executable, learned_from, options.steps)
    elapsed = time.perf_counter() - begin

    accuracy = float((classify(weights, held_out.images) == held_out.labels).mean())
    first, last = np.mean(losses[:LOSSES_SHOWN]), np.mean(losses[-LOSSES_SHOWN:])
    print(f"{options.steps} batches of {program.BATCH} images in one call: {elapsed:.1f} s")
    print(f"loss {first:.3f} -> {last:.3f}, held-out accuracy {accuracy:.2%} (required: {REQUIRED_ACCURACY:.0%})")
    return 0 if accuracy >= REQUIRED_ACCURACY else 1


def train(executable: xlapy.Executable, examples: Examples, steps: int) -> tuple[list[Array], list[float]]:
    """The weights after `steps` batches, and the loss of each. The call of the program is this thread's only work."""
    device = xlapy.devices(1)[0]
    losses: list[float] = []
    with progress_bar(steps, "streaming") as bar:

        def show(loss: float) -> None:
            losses.append(loss)
            bar.update()

        feeding.feed(device, feeding.shuffled_batches(examples, SEED), steps)
        reporter = feeding.report(device, steps, show)
        weights = executable(np.int32(steps), RATE, *program.initial_weights(SEED))
        reporter.join()
    return list(weights), losses


def classify(weights: Sequence[Array], images: Array) -> Array:
    first, first_bias, second, second_bias = weights
    logits = np.maximum(images @ first + first_bias, 0) @ second + second_bias
    classes: Array = logits.argmax(axis=1)
    return classes


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
