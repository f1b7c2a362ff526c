"""Mutated programs: each is read as another program, or refused with a place; nothing else happens.

What is read line by line is what is read token by token."""

from __future__ import annotations

import random
import re

import pytest

from tests.stablehlo.structure import structure
from tests.stablehlo.test_dynamic import SIZES
from tests.stablehlo.test_effects import ALL_REDUCE, CHANNELS, STREAMS
from tests.stablehlo.test_errors import PROGRAM
from tests.stablehlo.test_quantized import CONTROL_FLOW
from xlapy import stablehlo
from xlapy.stablehlo.convert import convert_program
from xlapy.stablehlo.reading import parse_tokens
from xlapy.support.errors import InternalError, XlaError

TEXTS = (PROGRAM, STREAMS, CHANNELS, ALL_REDUCE, CONTROL_FLOW, SIZES)
PIECES = [re.findall(r"\s+|[\w.%#@$]+|.", text, re.DOTALL) for text in TEXTS]
ODD = [*'[](){}<>"%#@!^,:=-x0\\\x00é', "-1", "100000000000000000000", "1e400", "0x", "->", "dense<", "tensor<", "\n//"]


def mutated(generator: random.Random) -> str:
    """A program in which a few pieces are dropped, replaced, doubled, cut short, or followed by something odd."""
    pieces = list(generator.choice(PIECES))
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        place = generator.randrange(len(pieces))
        other = generator.choice(generator.choice(PIECES))
        change = generator.randrange(6)
        pieces[place : place + 1] = [
            [],
            [other],
            [pieces[place], other],
            [pieces[place], generator.choice(ODD)],
            [pieces[place][:-1]],
            [pieces[place]] * 2,
        ][change]
        pieces = pieces or [other]
    return "".join(pieces)


def check(seed: int, count: int) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        text = mutated(generator)
        try:
            module = stablehlo.parse(text)
            assert structure(convert_program(*parse_tokens(text))) == structure(module), text
        except XlaError as error:
            assert not isinstance(error, InternalError), text
            assert "\n" in str(error) and str(error).rstrip().endswith("^"), text


def test_some_mutations() -> None:
    check(seed=1, count=400)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_mutations(seed: int) -> None:
    check(seed, 10_000)
