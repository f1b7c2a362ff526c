"""The choice of layouts: whatever orders arrays get, programs compute the same, and the cheapest ones are chosen."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from tests.support.values import assert_same
from xlapy.hlo.graph import HloModule
from xlapy.hlo.text import fingerprint
from xlapy.hlo.verifier import verify
from xlapy.passes.dce import Dce
from xlapy.passes.flatten_call_graph import FlattenCallGraph
from xlapy.passes.layouts.prices import Prices
from xlapy.passes.layouts.rebuild import rebuild
from xlapy.passes.layouts.regions import find_regions

PROGRAMS_PER_TEST = 20


def prepared(module: HloModule) -> HloModule:
    """As the pass meets it: each computation runs in one place, and nothing is dead."""
    module = module.clone()
    FlattenCallGraph().run(module)
    Dce().run(module)
    return module


def check_random_orders(seed: int) -> bool:
    """Gives every region some order; returns whether that changed anything."""
    program = random_program(seed, 25)
    module = prepared(program.module)
    chooser = random.Random(seed)
    prices = Prices(find_regions(module, keep_entry_layouts=True))
    regions = prices.program.regions
    prices.set_orders({r: chooser.choice([*itertools.permutations(range(r.shape.rank))]) for r in regions})
    before = fingerprint(module)
    rebuild(prices)
    verify(module)
    with np.errstate(all="ignore"):
        expected = xlapy.evaluate(program.module, *program.arguments)
        assert_same(xlapy.evaluate(module, *program.arguments), expected, f"seed {seed}")
    return fingerprint(module) != before


@pytest.mark.parametrize("first", range(0, 100, PROGRAMS_PER_TEST))
def test_any_orders_compute_the_same(first: int) -> None:
    changed = [check_random_orders(seed) for seed in range(first, first + PROGRAMS_PER_TEST)]
    assert any(changed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, PROGRAMS_PER_TEST))
def test_any_orders_of_many_programs(first: int) -> None:
    for seed in range(first, first + PROGRAMS_PER_TEST):
        check_random_orders(seed)
