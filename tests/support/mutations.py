"""Texts with a few pieces changed, for what must be read as another program or refused with a place."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence


def pieces_of(text: str) -> list[str]:
    """Its words, its blanks and its single signs, in order; joined, they are the text."""
    return re.findall(r"\s+|[\w.%#@$]+|.", text, re.DOTALL)


def mutated(generator: random.Random, texts: Sequence[Sequence[str]], odd: Sequence[str]) -> str:
    """A text in which a few pieces are dropped, replaced, doubled, cut short, or followed by something odd."""
    pieces = list(generator.choice(texts))
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        place = generator.randrange(len(pieces))
        other = generator.choice(generator.choice(texts))
        changes = [
            [],
            [other],
            [pieces[place], other],
            [pieces[place], generator.choice(odd)],
            [pieces[place][:-1]],
            [pieces[place]] * 2,
        ]
        pieces[place : place + 1] = generator.choice(changes)
        pieces = pieces or [other]
    return "".join(pieces)
