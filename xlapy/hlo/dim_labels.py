"""Labels of the dimensions of a convolution, as HLO and StableHLO text have them.

b and f are batch and feature of the input and of the output, i and o input and output feature of the kernel, and 0, 1,
2 ... the spatial dimensions of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, ConvolutionSide

LETTERS = ("bf", "io", "bf")
"""Of input, kernel and output."""


def side_of(labels: Sequence[str], letters: str) -> ConvolutionSide:
    """Where the two letters stand, and where 0, 1, 2 ... do. Raises ValueError unless each stands there once."""
    wanted = [*letters, *map(str, range(len(labels) - 2))]
    if sorted(labels) != sorted(wanted):
        raise ValueError(f"does not have each of {', '.join(wanted)} once")
    first, second, *spatial = (labels.index(label) for label in wanted)
    return first, second, tuple(spatial)


def labels_of(numbers: ConvolutionDimensionNumbers) -> list[list[str]]:
    """The labels of the dimensions of input, kernel and output, in order."""
    return [_labels(letters, side) for letters, side in zip(LETTERS, numbers.sides(), strict=True)]


def _labels(letters: str, side: ConvolutionSide) -> list[str]:
    first, second, spatial = side
    labels = {first: letters[0], second: letters[1], **{place: str(number) for number, place in enumerate(spatial)}}
    return [labels[place] for place in sorted(labels)]
