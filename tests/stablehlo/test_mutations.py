"""Mutated programs: each is read as another program, or refused with a place; nothing else happens.

What is read line by line is what is read token by token."""

from __future__ import annotations

import random

import pytest

from tests.stablehlo.structure import structure
from tests.stablehlo.test_dynamic import SIZES
from tests.stablehlo.test_effects import ALL_REDUCE, CHANNELS, STREAMS
from tests.stablehlo.test_errors import PROGRAM
from tests.stablehlo.test_quantized import CONTROL_FLOW
from tests.support.mutations import mutated, pieces_of
from xlapy import stablehlo
from xlapy.stablehlo.convert import convert_program
from xlapy.stablehlo.reading import parse_tokens
from xlapy.support.errors import InternalError, XlaError

TEXTS = (PROGRAM, STREAMS, CHANNELS, ALL_REDUCE, CONTROL_FLOW, SIZES)
PIECES = [pieces_of(text) for text in TEXTS]
ODD = [*'[](){}<>"%#@!^,:=-x0\\\x00é', "-1", "100000000000000000000", "1e400", "0x", "->", "dense<", "tensor<", "\n//"]


def check(seed: int, count: int) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        text = mutated(generator, PIECES, ODD)
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
