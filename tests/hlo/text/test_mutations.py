"""Mutated HLO text: read as another module, or refused with a place; nothing else happens."""

from __future__ import annotations

import random

import pytest

from tests.hlo.text.samples import EVERYTHING
from tests.stablehlo.test_dynamic import HLO
from tests.support.mutations import mutated, pieces_of
from xlapy.hlo.text import parse
from xlapy.support.errors import InternalError, XlaError

PIECES = [pieces_of(text) for text in (EVERYTHING, HLO)]
ODD = [*'[](){}<>"%#@=,:-x0\\\x00é', "-1", "100000000000000000000", "1e400", "0x", "->", "f32[", "/*", "ROOT", "?"]


def check(seed: int, count: int) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        text = mutated(generator, PIECES, ODD)
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
