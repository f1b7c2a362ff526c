"""Mutated HLO text: read as another module, or refused with a place; nothing else happens."""

from __future__ import annotations

import random
import re

import pytest

from tests.hlo.text.samples import EVERYTHING
from tests.stablehlo.test_dynamic import HLO
from xlapy.hlo.text import parse
from xlapy.support.errors import InternalError, XlaError

PIECES = [re.findall(r"\s+|[\w.%#@$]+|.", text, re.DOTALL) for text in (EVERYTHING, HLO)]
ODD = [*'[](){}<>"%#@=,:-x0\\\x00é', "-1", "100000000000000000000", "1e400", "0x", "->", "f32[", "/*", "ROOT", "?"]


def mutated(generator: random.Random) -> str:
    """A module in which a few pieces are dropped, replaced, doubled, cut short, or followed by something odd."""
    pieces = list(generator.choice(PIECES))
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        place = generator.randrange(len(pieces))
        other = generator.choice(generator.choice(PIECES))
        choices = [
            [],
            [other],
            [pieces[place], other],
            [pieces[place], generator.choice(ODD)],
            [pieces[place][:-1]],
            [pieces[place]] * 2,
        ]
        pieces[place : place + 1] = generator.choice(choices)
        pieces = pieces or [other]
    return "".join(pieces)


def check(seed: int, count: int) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        text = mutated(generator)
        try:
            parse(text)
        except XlaError as error:
            assert not isinstance(error, InternalError), text
            assert "\n" in str(error) and str(error).rstrip().endswith("^"), text


def test_some_mutations() -> None:
    check(seed=1, count=200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_many_mutations(seed: int) -> None:
    check(seed, 10_000)
