"""The picture of a finished job: how the loss fell, and what the trained network says about images it never saw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from examples.digits.dataset import SIDE, Array, Examples
from examples.digits.training import Run

ROWS, COLUMNS = 4, 6


def draw(path: Path, runs: Sequence[Run], held_out: Examples, predicted: Array) -> None:
    """Writes a PNG: the losses of all runs, and sample predictions with the mistakes first, titled in red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(12, 5), layout="constrained")
    halves = figure.add_gridspec(1, 2, width_ratios=(1, 1.1))
    left, right = figure.add_subfigure(halves[0]), figure.add_subfigure(halves[1])

    axes = left.subplots()
    for run in runs:
        axes.plot(np.arange(1, len(run.losses) + 1), run.losses, label=f"seed {run.seed}")
    axes.set(title="training loss", xlabel="epoch", ylabel="mean cross entropy", yscale="log")
    axes.legend()

    wrong = predicted != held_out.labels
    right.suptitle(f"held-out images: {wrong.sum()} of {len(held_out)} wrong with seed {runs[-1].seed}, mistakes first")
    shown = np.argsort(~wrong, kind="stable")[: ROWS * COLUMNS]
    for axes, index in zip(right.subplots(ROWS, COLUMNS).flat, shown, strict=True):
        axes.imshow(held_out.images[index].reshape(SIDE, SIDE), cmap="gray_r", interpolation="nearest")
        verdict = f"{predicted[index]}, is {held_out.labels[index]}" if wrong[index] else f"{predicted[index]}"
        axes.set_title(verdict, fontsize=9, color="red" if wrong[index] else "black")
        axes.axis("off")

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
