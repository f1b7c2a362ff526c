"""A picture of a run: each case's speed relative to XLA, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import XLA, Outcome
from benchmarks.report import families, is_behind

_INCHES_PER_CASE = 0.17
_INK = "#1f4e79"
_WARNING = "#b8331f"


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Writes the picture; its format follows from the file's ending. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [outcome for group in families(outcomes).values() for outcome in group if XLA in outcome.ratios]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + _INCHES_PER_CASE * len(rows)))
    for height, outcome in enumerate(rows):
        ratio = outcome.ratios[XLA]
        color = _WARNING if is_behind(outcome) else _INK
        axes.plot([ratio.low, ratio.high], [height, height], color=color, linewidth=1)
        axes.plot(ratio.median, height, "o", color=color, markersize=3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [outcome.case.name for outcome in rows], fontsize=6)
    axes.set_ylim(len(rows), -1)
    axes.grid(axis="x", which="both", linewidth=0.2)
    axes.set_xlabel("XLA's time over xlapy's, per call (right of 1: xlapy is faster); lines: 95 % intervals")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
