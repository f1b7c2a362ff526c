"""Guests in the memory of results that do not exist yet."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from xlapy.hlo.buffer_plan import Home
from xlapy.hlo.graph import HloModule
from xlapy.hlo.text import parse
from xlapy.passes.analysis.replay import check_plan
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.buffers import guests
from xlapy.passes.pipelines import cpu_pipeline
from xlapy.passes.scheduling import schedule

ROWS, WIDTH, LAYERS = 64, 32, 8
ARRAY_BYTES = 4 * ROWS * WIDTH


def _chain() -> str:
    """Sines behind each other, their products from the last to the first, and large results at the end."""
    lines = [f"x0 = f32[{ROWS},{WIDTH}] parameter(0)"]
    for n in range(LAYERS):
        lines.append(f"y{n} = f32[{ROWS},{WIDTH}] sort(x{n}), dimensions={{1}}, to_apply=less")
        lines.append(f"x{n + 1} = f32[{ROWS},{WIDTH}] sine(y{n})")
    last = f"x{LAYERS}"
    for n in reversed(range(LAYERS)):
        lines.append(f"m{n} = f32[{ROWS},{WIDTH}] multiply({last}, y{n})")
        lines.append(f"z{n} = f32[{ROWS},{WIDTH}] sort(m{n}), dimensions={{0}}, to_apply=less")
        last = f"z{n}"
    lines += [f"r{n} = f32[2,{ROWS},{WIDTH}] broadcast({last}), dimensions={{1,2}}" for n in range(2)]
    lines.append(f"s1 = f32[2,{ROWS},{WIDTH}] sort(r1), dimensions={{0}}, to_apply=less")
    less = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }"
    shape = f"f32[2,{ROWS},{WIDTH}]"
    return f"{less} ENTRY e {{ {' '.join(lines)} ROOT t = ({shape}, {shape}) tuple(r0, s1) }}"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "LEAST_LIVE_BYTES", 0)
    monkeypatch.setattr(guests, "LEAST_GUEST_BYTES", 1)


def _arena_bytes(module: HloModule) -> int:
    order = schedule(module)
    plan = assign_buffers(module, order)
    check_plan(module, order, plan)
    return plan.arena_bytes


def test_what_waits_lies_where_results_will_be(monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    """Two results of two arrays each: of eight arrays that wait for the way back, they take in one each."""
    module = parse(_chain())
    cpu_pipeline().run(module)
    with_guests = _arena_bytes(module)
    monkeypatch.setattr(guests, "LEAST_LIVE_BYTES", 1 << 30)
    assert with_guests <= _arena_bytes(module) - 2 * ARRAY_BYTES


def test_small_programs_keep_their_arena() -> None:
    module = parse(_chain())
    order = schedule(module)
    plan = assign_buffers(module, order)
    results = {place for place in plan.leaves[module.entry.root] if place is not None}
    assert {place.home for place in results} == {Home.RESULT}
    values = [plan.location(i) for i in module.entry if i.shape.is_array and i.name[0] in "xyz"]
    assert results.isdisjoint(values)


def test_results_are_right(always: None) -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    options = xlapy.CompileOptions(verify=True)
    for got, expected in zip(xlapy.compile(_chain(), options)(x), xlapy.evaluate(_chain(), x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_have_right_plans(seed: int, always: None) -> None:
    module = random_program(seed, 60).module.clone()
    cpu_pipeline().run(module)
    _arena_bytes(module)
