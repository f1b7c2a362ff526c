"""Every program that the end-to-end tests hold as data: together they use every op."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import xlapy
from tests.builder.examples import EXAMPLES
from tests.e2e import test_awkward_kinds as awkward
from tests.e2e import test_collectives as collectives
from tests.e2e import test_random as random_numbers
from tests.e2e.random_programs import random_program
from tests.e2e.test_against_evaluator import MOVEMENT, element_wise, module_of
from tests.e2e.test_found import CASES
from xlapy.hlo.element_types import ALL
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import Shape

RANDOM_PROGRAMS = 40

TESTED_ELSEWHERE = (
    random_numbers.XLA_TEXT,
    """ENTRY main { a = f32[4] parameter(0)  b = f32[4] parameter(1)  x = f32[4] parameter(2)
         ROOT r = f32[4] regularized-incomplete-beta(a, b, x) }""",  # test_special_functions
)


@cache
def corpus() -> tuple[HloModule, ...]:
    """The modules, each of which some test compiles and compares. Who changes one copies it first."""
    return tuple(_corpus())


def _corpus() -> Iterator[HloModule]:
    for example in EXAMPLES:
        yield example.computation().module
    for case in CASES:
        yield xlapy.hlo.parse(case.text)
    for text in (*TESTED_ELSEWHERE, awkward.FEED_LOOP, awkward.VARIADIC, MOVEMENT.format(t="f32")):
        yield xlapy.hlo.parse(text)
    built = [
        awkward.sender(1),
        awkward.receiver(1),
        awkward.groups(),
        awkward.built_all_reduce(),
        awkward.custom("name"),
    ]
    yield from (computation.module for computation in built)
    yield xlapy.hlo.parse(collectives.XLA_TEXT)
    yield from (xlapy.stablehlo.parse(example.text) for example in collectives.EXAMPLES.values())
    yield collectives.recorded(collectives.pairs, Shape.array("float32", (16, 16)))
    for element_type in ALL:
        for arity in (1, 2):
            opcodes = [spec.name for spec in element_wise(element_type, arity)]
            shapes = [Shape.array(element_type, (4,))] * arity
            yield module_of(shapes, lambda c, p, opcodes=opcodes: [c.add(opcode, p) for opcode in opcodes])
    for seed in range(RANDOM_PROGRAMS):
        yield random_program(seed, steps=15).module
