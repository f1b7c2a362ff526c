"""The choice of layouts: whatever orders arrays get, programs compute the same, and the cheapest ones are chosen."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from tests.support.values import assert_same
from xlapy.hlo.graph import HloModule
from xlapy.hlo.text import fingerprint, parse
from xlapy.hlo.verifier import verify
from xlapy.passes.dce import Dce
from xlapy.passes.flatten_call_graph import FlattenCallGraph
from xlapy.passes.layout_choice import LayoutChoice
from xlapy.passes.layouts import forms
from xlapy.passes.layouts.orders import row_major
from xlapy.passes.layouts.prices import Prices
from xlapy.passes.layouts.rebuild import rebuild
from xlapy.passes.layouts.regions import find_regions
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.trial import check_same_values

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


@pytest.fixture(autouse=True)
def small_dots_have_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "LEAST_DOT_WORK", 0)
    monkeypatch.setattr(forms, "LEAST_WANTED_WORK", 0)


@pytest.mark.parametrize("seed", [3, 16, 165, 5481])
def test_programs_that_were_once_wrong(seed: int) -> None:
    """Operands without elements; reduces to scalars; broadcasts of what is stored elsewhere, and of each other."""
    check_random_orders(seed)


@pytest.mark.parametrize("first", range(0, 100, PROGRAMS_PER_TEST))
def test_any_orders_compute_the_same(first: int) -> None:
    changed = [check_random_orders(seed) for seed in range(first, first + PROGRAMS_PER_TEST)]
    assert any(changed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, PROGRAMS_PER_TEST))
def test_any_orders_of_many_programs(first: int) -> None:
    for seed in range(first, first + PROGRAMS_PER_TEST):
        check_random_orders(seed)


WINDOWS = """
larger { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT m = s32[] maximum(a, b) }
ge { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }
sum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
ENTRY main {
  x = s32[2,5,6,3] parameter(0)
  k = s32[2,3,3,4] parameter(1)
  low = s32[] constant(-100)
  zero = s32[] constant(0)
  p = s32[2,4,3,3] reduce-window(x, low), window={size=1x2x3x1 stride=1x1x2x1 pad=0_0x0_0x1_0x0_0}, to_apply=larger
  g = s32[2,5,6,3] select-and-scatter(x, p, zero), window={size=1x2x3x1 stride=1x1x2x1 pad=0_0x0_0x1_0x0_0},
    select=ge, scatter=sum
  t = s32[3,6,5,2] transpose(g), dimensions={3,2,1,0}
  u = s32[2,5,6,3] transpose(t), dimensions={3,2,1,0}
  ROOT c = s32[2,4,4,4] convolution(u, k), window={size=2x3}, dim_labels=b01f_01io->b01f
}"""


def test_windows_in_any_order() -> None:
    """Of equal elements in a window the first is selected: not every order is one for a select-and-scatter."""
    random_numbers, orders = np.random.default_rng(0), set()
    chooser = random.Random(0)
    original = parse(WINDOWS)
    arguments = [random_numbers.integers(0, 3, p.shape.dims, np.int32) for p in original.entry.parameters]
    expected = xlapy.evaluate(original, *arguments)
    for _ in range(40):
        module = original.clone()
        prices = Prices(find_regions(module, keep_entry_layouts=True))
        for region in prices.program.regions:
            prices.set_orders({region: chooser.choice([*itertools.permutations(range(region.shape.rank))])})
            if math.isinf(sum(priced.price() for priced in prices.around([region]))):
                prices.set_orders({region: row_major(region.shape.rank)})
        (selection,) = (i for i in module.entry if i.opcode == "select-and-scatter")
        orders.add(prices.program.region_of[selection].order)
        rebuild(prices)
        verify(module)
        assert_same(xlapy.evaluate(module, *arguments), expected)
    assert len(orders) > 4
    assert all(order.index(1) < order.index(2) for order in orders)


TURNED = """
ENTRY main {
  x = f32[64,48] parameter(0)
  t = f32[48,64] transpose(x), dimensions={1,0}
  n = f32[48,64] negate(t)
  ROOT u = f32[64,48] transpose(n), dimensions={1,0}
}"""


def test_the_choice_is_on_record_with_the_bytes_that_it_saves() -> None:
    choice = LayoutChoice()
    assert choice.run(parse(TURNED))
    (record,) = choice.take_records()
    assert (record.subject, record.made) == ("t", True)
    copied = 2 * (2 * 64 * 48 * 4)
    saved = int(record.reason.partition(": ")[2].partition(" ")[0].replace(",", ""))
    assert saved >= copied, record.reason


def test_nothing_is_chosen_below_a_size() -> None:
    assert not LayoutChoice(least_bytes=1 << 20).run(parse(TURNED))


LAID_OUT = """
HloModule m, entry_computation_layout={(f32[64,48]{0,1}, f32[48])->(f32[64,48]{0,1}, f32[48,64]{1,0})}
ENTRY main {
  x = f32[64,48] parameter(0)
  b = f32[48] parameter(1)
  w = f32[64,48] broadcast(b), dimensions={1}
  a = f32[64,48] add(x, w)
  u = f32[48,64] transpose(a), dimensions={1,0}
  ROOT t = (f32[64,48], f32[48,64]) tuple(a, u)
}"""


def test_arrays_of_callers_are_used_as_they_lie() -> None:
    before = parse(LAID_OUT)
    after = before.clone()
    cpu_pipeline(PipelineOptions(keep_entry_layouts=True)).run(after)
    verify(after)
    assert not [i for i in after.entry if i.opcode == "copy"]
    assert str(after.entry.parameters[0].shape) == "f32[64,48]{0,1}"
    check_same_values(before, after)


MANY_TRANSPOSES = 300


def test_long_chains_end_and_are_cheap() -> None:
    """Each link reads the one before it the other way round, and itself as well: nothing helps all of them."""
    lines = ["  x0 = f32[64,64] parameter(0)"]
    for number in range(MANY_TRANSPOSES):
        lines.append(f"  t{number} = f32[64,64] transpose(x{number}), dimensions={{1,0}}")
        lines.append(f"  x{number + 1} = f32[64,64] subtract(t{number}, x{number})")
    lines[-1] = lines[-1].replace("  x", "  ROOT x", 1)
    module = parse("ENTRY main {\n" + "\n".join(lines) + "\n}")
    choice = LayoutChoice()
    choice.run(module)
    verify(module)
    assert sum(i.opcode == "transpose" for i in module.entry) <= MANY_TRANSPOSES
