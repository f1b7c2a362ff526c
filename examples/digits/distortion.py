"""Digits as other hands might have written them: turned, stretched and moved a little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.digits.dataset import SIDE, Array

MARGIN = 1  # of white pixels around an image, for what is read from outside of it


@dataclass(frozen=True, slots=True)
class Distortion:
    """Standard deviations: of the angle in radians, of the logarithms of height and width, of the move in pixels."""

    angle: float
    stretch: float
    move: float


def distorted(images: Array, how: Distortion, generator: np.random.Generator) -> Array:
    """The images, each distorted in a way of its own."""
    count = len(images)
    angle = generator.normal(0, how.angle, count)
    stretch = np.exp(generator.normal(0, how.stretch, (2, count)))
    move = generator.normal(0, how.move, (2, count))
    middle = (SIDE - 1) / 2
    down, right = np.mgrid[:SIDE, :SIDE] - middle
    cosine, sine = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    turned = (cosine * down + sine * right, cosine * right - sine * down)
    rows, columns = (
        place * size[:, None, None] + distance[:, None, None] + middle
        for place, size, distance in zip(turned, stretch, move, strict=True)
    )
    return _read(images.reshape(count, SIDE, SIDE), rows, columns).reshape(images.shape)


def _read(images: Array, rows: Array, columns: Array) -> Array:
    """Each image at fractional places: means of the four pixels around, weighed by how near they are."""
    framed = np.pad(images, ((0, 0), (MARGIN, MARGIN + 1), (MARGIN, MARGIN + 1)))
    outermost = SIDE - 1 + MARGIN
    number = np.arange(len(images))[:, None, None]
    (top, lower), (left, righter) = (_cut(np.clip(place, -MARGIN, outermost) + MARGIN) for place in (rows, columns))
    above = framed[number, top, left] * (1 - righter) + framed[number, top, left + 1] * righter
    below = framed[number, top + 1, left] * (1 - righter) + framed[number, top + 1, left + 1] * righter
    mixed: Array = above * (1 - lower) + below * lower
    return mixed.astype(np.float32)


def _cut(places: Array) -> tuple[Array, Array]:
    """Whole parts and fractions."""
    whole = np.floor(places).astype(int)
    return whole, places - whole
