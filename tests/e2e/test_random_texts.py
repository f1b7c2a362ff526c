"""Random programs written down and read again, in every form that xlapy writes: the bits of the program itself.

Only `-m slow` runs many of them; a program that ever differed is kept as a case in `test_found.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import Program, random_program
from tests.e2e.random_structures import random_composition
from tests.support.values import assert_same
from xlapy import stablehlo
from xlapy.hlo.graph import HloModule
from xlapy.stablehlo import bytecode

STEPS = 25
COMPOSITE = '{composite.attributes={number = 1 : i64},composite.name="random.part",composite.version="1"}'
SEEDS_PER_TEST = 20


def through_bytecode(module: HloModule) -> HloModule:
    return stablehlo.parse(bytecode.text_of_bytecode(bytecode.bytecode_of_text(stablehlo.to_text(module))))


def through_composites(module: HloModule) -> HloModule:
    """Each call is a composite, which StableHLO names beside what it decomposes into."""
    marked = module.clone()
    for computation in marked.computations():
        for instruction in computation:
            if instruction.opcode == "call":
                instruction.attributes["is_composite"] = True
                instruction.extra["frontend_attributes"] = COMPOSITE
    return stablehlo.parse(stablehlo.to_text(marked, pretty=True))


def test_calls_are_written_as_composites() -> None:
    program = next(p for p in map(random_program, range(10)) if " call(" in p.module.to_text())
    again = through_composites(program.module)
    assert "is_composite=true" in again.to_text()


FORMS: dict[str, Callable[[HloModule], HloModule]] = {
    "HLO": lambda module: xlapy.hlo.parse(module.to_text(long=True)),
    "StableHLO": lambda module: stablehlo.parse(stablehlo.to_text(module)),
    "pretty StableHLO": lambda module: stablehlo.parse(stablehlo.to_text(module, pretty=True)),
    "composites": through_composites,
    "bytecode": through_bytecode,
}


def check(program: Program, form: str, subject: str) -> None:
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(program.module, *program.arguments)
        assert_same(xlapy.evaluate(FORMS[form](program.module), *program.arguments), expected, f"{subject}: {form}")


@pytest.mark.parametrize("form", FORMS)
def test_some(form: str) -> None:
    for seed in range(3):
        check(random_program(seed, STEPS), form, f"seed {seed}")
        check(random_composition(seed, STEPS), form, f"composition of seed {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", range(300_000, 300_400, SEEDS_PER_TEST))
def test_many(first: int, form: str) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(random_program(seed, STEPS), form, f"seed {seed}")
        check(random_composition(seed, STEPS), form, f"composition of seed {seed}")
